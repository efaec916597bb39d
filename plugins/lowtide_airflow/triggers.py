"""Triggers that wait for a condition, in the triggerer: happybase blocks, so every check is in a thread of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import lowtide_airflow.required  # noqa: F401 - before Airflow's names, which a wrong one may lack

# isort: split
from airflow.triggers.base import BaseEventTrigger, BaseTrigger, TriggerEvent

from lowtide.errors import GatewayError, LowtideError, StoreError, UsageError
from lowtide.health.conditions import CheckResult, Condition, check, from_json, parse_patience, pauses
from lowtide_airflow.hook import HBaseHook

__all__ = [
    "ConditionTrigger",
    "ConditionWatcher",
]

#: Seconds between two tries of a watcher at a store that cannot be read, at most; and before it ends with an error.
_WATCHERS_PAUSE = 300.0
#: Seconds after which the triggerer has handed an event on; it does so about once a second, and its supervisor again.
_HANDED_ON = 10.0


class ConditionTrigger(BaseTrigger):
    """Waits until a condition holds, for a deferred sensor. Fires once: ``{"met": ..., "text": ...}``, or ``{"error":
    ..., "final": ...}``: final is what a retry cannot mend, a condition that can never hold or cannot be meant.

    A gateway that does not answer is tried again with growing pauses; when these have come to *patience*, that is the
    error.

    :param condition: of :meth:`lowtide.health.conditions.Condition.to_json`
    :param poke_interval: seconds between two checks
    :param hbase_conn_id: see :class:`lowtide_airflow.hook.HBaseHook`
    :param patience: a duration, as in 5m
    """

    def __init__(
        self,
        condition: Mapping[str, Any],
        poke_interval: float = 60.0,
        hbase_conn_id: str = HBaseHook.default_conn_name,
        patience: str = "5m",
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Airflow gives it no types
        self.condition = dict(condition)
        self.poke_interval = poke_interval
        self.hbase_conn_id = hbase_conn_id
        self.patience = patience

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments."""
        return f"{__name__}.{type(self).__name__}", {
            "condition": self.condition,
            "poke_interval": self.poke_interval,
            "hbase_conn_id": self.hbase_conn_id,
            "patience": self.patience,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check, wait, check again."""
        try:
            condition = from_json(self.condition)
            while True:
                result = await self._patiently(condition)
                self.log.info("%s", result.text)
                if result.never:
                    yield TriggerEvent({"error": f"{result.text}: that cannot come any more", "final": True})
                    return
                if result.met:
                    yield TriggerEvent({"met": True, "text": result.text})
                    return
                await asyncio.sleep(self.poke_interval)
        except LowtideError as error:
            yield TriggerEvent({"error": str(error), "final": isinstance(error, UsageError)})

    async def _patiently(self, condition: Condition) -> CheckResult:
        for pause in pauses(parse_patience(self.patience)):
            try:
                return await self._check(condition)
            except GatewayError as error:
                self.log.warning("%s; again in %.0f s", error, pause)
                await asyncio.sleep(pause)
        return await self._check(condition)

    async def _check(self, condition: Condition) -> CheckResult:
        config = await HBaseHook(self.hbase_conn_id).aconfig()
        return await asyncio.to_thread(check, condition, config)


class ConditionWatcher(BaseEventTrigger):
    """Watches a condition for an ``AssetWatcher``: an event each time it comes to hold, or, of conditions with *every*,
    each time another *every* has passed.

    Its cursor is kept in the asset's state store: after a restart of the triggerer no event is sent a second time, and
    what came meanwhile is sent then. The cursor moves ten seconds after the event was sent: a triggerer that dies
    between the two sends it twice.

    What may pass (a gateway that does not answer, a table that is not there, clocks that differ) is waited for, however
    long, with a warning at each try. What cannot pass by itself (a condition that can never hold, or that this store
    cannot tell of; a bad configuration; a connection that is not there) is logged as an error, and five minutes later
    ends the watcher: Airflow logs that too, counts it in its metric ``triggers.failed``, and starts the watcher anew,
    by the configuration as it is then.

    :param condition: of :meth:`lowtide.health.conditions.Condition.to_json`
    :param poll_interval: seconds between two checks
    :param hbase_conn_id: see :class:`lowtide_airflow.hook.HBaseHook`
    """

    def __init__(
        self,
        condition: Mapping[str, Any],
        poll_interval: float = 60.0,
        hbase_conn_id: str = HBaseHook.default_conn_name,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # Airflow gives it no types
        self.condition = dict(condition)
        self.poll_interval = poll_interval
        self.hbase_conn_id = hbase_conn_id

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Class and arguments, by which Airflow distinguishes watchers."""
        return f"{__name__}.{type(self).__name__}", {
            "condition": self.condition,
            "poll_interval": self.poll_interval,
            "hbase_conn_id": self.hbase_conn_id,
        }

    @property
    def cursor_key(self) -> str:
        """The cursor's name in the asset's state store: of the whole condition and the connection, as an asset may have
        several watchers of a kind, and the same of two stores. That of the default connection is the name that
        cursors had before connections counted.
        """
        named = self.hbase_conn_id != HBaseHook.default_conn_name
        return f"lowtide cursor of {json.dumps(self.condition, sort_keys=True)}{f' by {self.hbase_conn_id}' * named}"

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Check for ever.

        Raises:
            UsageError: there is nothing in this store that could be watched so, or it can no longer come.
        """
        try:
            async for event in self._events():
                yield event
        except UsageError as error:
            self.log.error("%s; the watcher ends in %.0f s and is started anew", error, _WATCHERS_PAUSE)
            await asyncio.sleep(_WATCHERS_PAUSE)  # Airflow starts one that ended at once
            raise

    async def _events(self) -> AsyncIterator[TriggerEvent]:
        condition = from_json(self.condition)
        cursor = await self._stored()
        while True:
            result = await self._eventually(condition)
            if result.never:
                msg = f"{result.text}: that cannot come any more; take this watcher off its asset"
                raise UsageError(msg)
            moved, event = condition.news(cursor, result)
            if event:
                yield TriggerEvent({"condition": self.condition, "text": result.text, "level": result.level})
            elif moved != cursor:
                await self._store(moved)
            cursor = moved
            if event:
                await asyncio.sleep(_HANDED_ON)
                await self._store(cursor)
            await asyncio.sleep(self.poll_interval)

    async def _eventually(self, condition: Condition) -> CheckResult:
        pause = 1.0
        while True:
            try:
                config = await HBaseHook(self.hbase_conn_id).aconfig()
                return await asyncio.to_thread(check, condition, config)
            except StoreError as error:
                self.log.warning("%s; again in %.0f s", error, pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _WATCHERS_PAUSE)

    async def _stored(self) -> Any:
        if self.asset_state_store is None:
            return None
        return await self.asset_state_store.aget(self.cursor_key)

    async def _store(self, cursor: Any) -> None:
        if self.asset_state_store is not None:
            await self.asset_state_store.aset(self.cursor_key, cursor)
