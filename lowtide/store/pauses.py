"""Pauses: who said that nothing is to be written for a while."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime

from lowtide.errors import ConsentError, StoreError, UsageError
from lowtide.store.records import Claim
from lowtide.store.rows import COLUMN, Rows, dump
from lowtide.tables.consent import Pause, objection

_ROW = b"pauses"
#: The column of those that are for every table; no table has that name.
_ALL = b"*"
_TRIES = 5


class PauseRows(Rows):
    """The row ``pauses``: a column a table, and one for all, each with its pauses. A column that is not there, or an
    empty list, has none.
    """

    def pauses(self) -> list[Pause]:
        """All pauses, those that are over included until the next one is made; the one that ends last comes first."""
        found = [p for value in self._pauses().values() for p in _parsed(value)]
        return sorted(found, key=lambda p: p.until, reverse=True)

    def pauses_of(self, table: str) -> tuple[list[Pause], list[Claim]]:
        """The pauses of *table* and of the whole store, and what stands in the records as long as no other one comes.
        Two claims, for a pause of another table ends no write; none where there are no records at all.
        """
        if not self.exists():
            return [], []
        stored = self._pauses()
        columns = [_column(None), _column(table)]
        found = [p for column in columns for p in _parsed(stored.get(column, b""))]
        return found, [self._pause_claim(column, stored.get(column)) for column in columns]

    def check_not_paused(self, *tables: str) -> None:
        """Refuse to write by hand to *tables* where one of them is paused, or the store. Jobs ask more
        (``lowtide_spark.frames.consent``): what a table's descriptor says the gateway does not tell.

        Raises:
            ConsentError: names the pause, and what ends it.
        """
        for table in tables:
            pauses, _ = self.pauses_of(table)
            what, remedy = objection(table, "", pauses, self.server_time()) if pauses else ("", "")
            if what:
                raise ConsentError(f"nothing is written to {table}: {what}", remedy)

    def add_pause(self, pause: Pause, now: datetime) -> None:
        """Write a pause; those of the same table that are over at *now*, HBase's time, go.

        Raises:
            StoreError: others write pauses of the same table all the time.
        """
        self._change_pauses(pause.table, lambda known: [*(p for p in known if p.lasts(now)), pause])

    def drop_pause(self, id: str) -> Pause:
        """End a pause, over or not.

        Raises:
            UsageError: there is none of that id.
            StoreError: as :meth:`add_pause`.
        """
        for pause in self.pauses():
            if pause.id == id:
                self._change_pauses(pause.table, lambda known: [p for p in known if p.id != id])
                return pause
        msg = f"there is no pause {id}; `lowtide pauses` shows those there are"
        raise UsageError(msg)

    def _pauses(self) -> dict[bytes, bytes]:
        return self._one(_ROW) if self.exists() else {}

    def _change_pauses(self, table: str | None, change: Callable[[list[Pause]], Iterable[Pause]]) -> None:
        column = _column(table)
        for _ in range(_TRIES):
            stored = self._pauses().get(column)
            value = dump([p.to_json() for p in change(_parsed(stored or b""))])
            if stored == value or self._change(_ROW, column, stored, value):
                return
        msg = f"the pauses of {table or 'the store'} are changed by others all the time; try again"
        raise StoreError(msg)

    def _pause_claim(self, column: bytes, value: bytes | None) -> Claim:
        name = column.removeprefix(COLUMN)
        what = "the store" if name == _ALL else name.decode()
        return self._claim(_ROW, column, value, f"a pause of {what} began; `lowtide pauses` shows it")


def _column(table: str | None) -> bytes:
    return COLUMN + (_ALL if table is None else table.encode())


def _parsed(value: bytes) -> list[Pause]:
    return [Pause.from_json(one) for one in json.loads(value)] if value else []
