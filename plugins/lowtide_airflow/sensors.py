"""Sensors on the ledger's transactions and on the store: blocking (``poke``, ``reschedule``) or deferred, one
condition each.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import lowtide_airflow.required  # noqa: F401 - before Airflow's names, which a wrong one may lack

# isort: split
from airflow.sdk import BaseSensorOperator
from airflow.sdk.configuration import conf
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from lowtide.errors import GatewayError, LowtideError, UsageError
from lowtide.health.conditions import (
    CheckResult,
    CommitTableLarger,
    Condition,
    LowWatermarkPast,
    RegionWatermarkPast,
    TransactionIs,
    TransactionsSettled,
    TransactionsStuck,
    check,
    parse_patience,
    pauses,
)
from lowtide_airflow.hook import HBaseHook
from lowtide_airflow.triggers import ConditionTrigger

if TYPE_CHECKING:
    from airflow.sdk import Context

__all__ = [
    "CommitTableSensor",
    "ConditionSensor",
    "LowWatermarkSensor",
    "RegionWatermarkSensor",
    "TransactionStateSensor",
    "TransactionsSettledSensor",
    "TransactionsStuckSensor",
]


class ConditionSensor(BaseSensorOperator):
    """Base of the sensors: checks a condition until it holds.

    A gateway that does not answer is tried again, with growing pauses; when these have come to *patience*, the sensor
    fails. Each try may take as long as the gateway's ``timeout`` besides.
    ``timeout``, ``soft_fail``, ``mode`` and the rest are Airflow's.

    :param hbase_conn_id: see :class:`lowtide_airflow.hook.HBaseHook`
    :param patience: how long is paused between tries at a gateway that is away, in all, as in 5m
    :param deferrable: wait in the triggerer instead of on a worker
    """

    template_fields: Sequence[str] = ("hbase_conn_id",)

    def __init__(
        self,
        *,
        hbase_conn_id: str = HBaseHook.default_conn_name,
        patience: str = "5m",
        deferrable: bool = conf.getboolean("operators", "default_deferrable", fallback=False),
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.hbase_conn_id = hbase_conn_id
        parse_patience(patience)
        self.patience = patience
        self.deferrable = deferrable

    def condition(self) -> Condition:
        """What is waited for.

        Raises:
            UsageError: its settings cannot be meant.
        """
        raise NotImplementedError

    def poke(self, context: Context) -> bool:  # noqa: ARG002
        """Check once; a gateway that is away counts as one long check."""
        try:
            result = self._patiently(self.condition())
        except UsageError as error:
            raise AirflowFailException(str(error)) from error
        except LowtideError as error:
            raise AirflowException(str(error)) from error
        self.log.info("%s", result.text)
        if result.never:
            msg = f"{result.text}: that cannot come any more"
            raise AirflowFailException(msg)
        return result.met

    def execute(self, context: Context) -> Any:
        """Wait here, or check once and wait in the triggerer."""
        if not self.deferrable:
            return super().execute(context)
        if not self._checked_at_once(context):
            self.defer(
                trigger=ConditionTrigger(
                    condition=self.condition().to_json(),
                    poke_interval=float(self.poke_interval),
                    hbase_conn_id=self.hbase_conn_id,
                    patience=self.patience,
                ),
                method_name="execute_complete",
                timeout=timedelta(seconds=self.timeout),
            )
        return None

    def execute_complete(self, context: Context, event: dict[str, Any]) -> None:  # noqa: ARG002
        """The trigger has fired; with an error that a retry cannot mend, the sensor fails for good."""
        if "error" in event:
            raise (AirflowFailException if event.get("final") else AirflowException)(event["error"])
        self.log.info("%s", event["text"])

    def _checked_at_once(self, context: Context) -> bool:
        """A check without patience: that is left to the triggerer."""
        patience, self.patience = self.patience, "0s"
        try:
            return self.poke(context)
        except AirflowFailException as error:
            # As Airflow does at every other look, of a blocking sensor and of one that comes back.
            for option in ("soft_fail", "never_fail"):
                if getattr(self, option):
                    msg = f"{error}; skipped, as {option} is set"
                    raise AirflowSkipException(msg) from error
            raise
        except AirflowException as error:
            self.log.warning("%s; the triggerer tries on", error)
            return False
        finally:
            self.patience = patience

    def _patiently(self, condition: Condition) -> CheckResult:
        config = HBaseHook(self.hbase_conn_id).config()
        for pause in pauses(parse_patience(self.patience)):
            try:
                return check(condition, config)
            except GatewayError as error:
                self.log.warning("%s; again in %.0f s", error, pause)
                time.sleep(pause)
        return check(condition, config)


class TransactionsSettledSensor(ConditionSensor):
    """Waits until every transaction of the ledger that began before a time is finished or dropped.

    :param before: ISO 8601 with zone; templated, as in ``{{ data_interval_end.isoformat() }}``
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "before")

    def __init__(self, *, before: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.before = before

    def condition(self) -> Condition:
        """All settled before the time."""
        return TransactionsSettled(past=self.before)


class TransactionsStuckSensor(ConditionSensor):
    """Waits until the index of open transactions has more entries than a number that are older than an age: then a
    repair is due.

    :param older_than: a duration, as in 15m; templated
    :param more_than: a number from 0 on
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "older_than")

    def __init__(self, *, older_than: str, more_than: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.older_than = older_than
        self.more_than = more_than

    def condition(self) -> Condition:
        """More stuck than the number."""
        return TransactionsStuck(older_than=self.older_than, more_than=self.more_than)


class TransactionStateSensor(ConditionSensor):
    """Waits until one transaction of the ledger is in a state, or beyond it; fails when it was dropped instead.

    :param transaction: its id; templated
    :param state: initial, in progress, committed, finished or dropped
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "transaction", "state")

    def __init__(self, *, transaction: str, state: str = "finished", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.transaction = transaction
        self.state = state

    def condition(self) -> Condition:
        """The transaction's state."""
        return TransactionIs(transaction=self.transaction, state=self.state)


class LowWatermarkSensor(ConditionSensor):
    """Waits until the oracle's low watermark is past a time.

    :param past: ISO 8601 with zone; templated
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "past")

    def __init__(self, *, past: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.past = past

    def condition(self) -> Condition:
        """The low watermark."""
        return LowWatermarkPast(past=self.past)


class RegionWatermarkSensor(ConditionSensor):
    """Waits until every region of a table is clean up to a time, as published by ``watermark_collection``.

    :param table: name; templated
    :param past: ISO 8601 with zone; templated
    """

    template_fields: Sequence[str] = (*ConditionSensor.template_fields, "table", "past")

    def __init__(self, *, table: str, past: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table
        self.past = past

    def condition(self) -> Condition:
        """The table's lowest region watermark."""
        return RegionWatermarkPast(table=self.table, past=self.past)


class CommitTableSensor(ConditionSensor):
    """Waits until the commit table has more rows of transactions than a number. A check reads at most one row more than
    that.

    :param larger_than: a number from 0 on
    """

    def __init__(self, *, larger_than: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.larger_than = larger_than

    def condition(self) -> Condition:
        """The commit table's size."""
        return CommitTableLarger(than=self.larger_than)
