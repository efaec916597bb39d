"""What was cleaned of each table, under its epoch: whose turn it is."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from lowtide.cleaning.facts import Fact, Incarnation, Region, cleaned_before
from lowtide.errors import FencedError
from lowtide.store.gateway import CheckedPut
from lowtide.store.oracle import OracleRows
from lowtide.store.records import Claim, Epoch, TableState
from lowtide.store.rows import COLUMN, dump
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange

_EPOCH = COLUMN + b"epoch"
_INCARNATION = COLUMN + b"incarnation"
_FORGOTTEN = COLUMN + b"forgotten"
_FACT = COLUMN + b"fact/"


class FactRows(OracleRows):
    """The rows ``table/``."""

    def read(self, table: str) -> TableState:
        """What is recorded of *table*; an empty state where nothing is."""
        return _parse_state(table, self._table.row(_row(table)) if self.exists() else {})

    def read_all(self, tables: Iterable[str]) -> dict[str, TableState]:
        """What is recorded of each table, as :meth:`read` gives it."""
        names = list(tables)
        found = dict(self._table.rows([_row(table) for table in names])) if names and self.exists() else {}
        return {table: _parse_state(table, found.get(_row(table), {})) for table in names}

    def begin(self, table: str, regions: Sequence[Region]) -> TableState:
        """Take the table's next epoch; see :meth:`begin_all`.

        Raises:
            FencedError: another run has taken the one after it already.
        """
        taken, overtaken = self.begin_all({table: regions})
        if table in overtaken:
            raise FencedError(taken_over(overtaken[table]))
        return taken[table]

    def begin_all(self, tables: Mapping[str, Sequence[Region]]) -> tuple[dict[str, TableState], dict[str, TableState]]:
        """Take the tables' next epochs; whoever held one before can no longer record.

        The incarnations are brought up to date with the tables' regions, as listed now. The states of the tables that
        were taken, and of those that another run has taken over again before that was done: these are not the caller's.
        """
        new: dict[str, Epoch] = {}
        while left := [table for table in tables if table not in new]:
            epochs = {table: state.epoch for table, state in self.read_all(left).items()}
            generation = self.generation()
            nexts = {table: epoch.next(self._nonce(), generation) for table, epoch in epochs.items()}
            asked = [
                (
                    _row(table),
                    (_EPOCH, str(epochs[table]).encode() if epochs[table].counter else None),
                    (_EPOCH, str(nexts[table]).encode()),
                )
                for table in left
            ]
            for table, is_done in zip(left, self._check_and_put_all(asked), strict=True):
                if is_done:
                    new[table] = nexts[table]
        # Read again: whoever held an epoch before could record until now, and cannot any more.
        found = self.read_all(tables)
        taken = {
            table: replace(state, epoch=new[table], incarnation=state.incarnation.advance(tables[table]))
            for table, state in found.items()
        }
        advanced = [state for table, state in taken.items() if state.incarnation != found[table].incarnation]
        asked = [_under_epoch(state, _INCARNATION, dump(asdict(state.incarnation))) for state in advanced]
        done = self._check_and_put_all(asked)
        overtaken = {state.table: state for state, is_done in zip(advanced, done, strict=True) if not is_done}
        overtaken |= {table: state for table, state in taken.items() if found[table].epoch != state.epoch}
        return {table: state for table, state in taken.items() if table not in overtaken}, overtaken

    def epoch_claim(self, taken: TableState) -> Claim:
        """What stands as long as nobody has taken the table over from *taken*."""
        return self._claim(_row(taken.table), _EPOCH, str(taken.epoch).encode())

    def record(self, taken: TableState, fact: Fact) -> None:
        """Record a cleaned key range under the epoch of *taken*, in place of the fact of exactly that range.

        Raises:
            FencedError: the epoch has moved on.
        """
        if self.record_all([(taken, fact)]):
            raise FencedError(taken_over(taken))

    def record_all(self, facts: Sequence[tuple[TableState, Fact]]) -> set[str]:
        """Record cleaned key ranges of several tables, each as :meth:`record` does; the tables whose epoch has moved
        on, of which nothing (more) was recorded.
        """
        asked = [_under_epoch(taken, _fact_column(fact.keys), dump(_fact_value(fact))) for taken, fact in facts]
        done = self._check_and_put_all(asked)
        return {taken.table for (taken, _), is_done in zip(facts, done, strict=True) if not is_done}

    def forget(self, taken: TableState, keys: KeyRange) -> None:
        """Blank the fact of exactly this key range, under the epoch of *taken*.

        Raises:
            FencedError: the epoch has moved on.
        """
        self._write_checked(taken, _fact_column(keys), b"")

    def check_epoch(self, taken: TableState) -> None:
        """Before marks, heals and deletes: refuse to go on under an epoch that is not the newest any more.

        Raises:
            FencedError: the epoch has moved on, or the state table was lost.
        """
        stored = self._table.row(_row(taken.table), [_EPOCH]).get(_EPOCH) if self.exists() else None
        if stored != str(taken.epoch).encode():
            raise FencedError(taken_over(taken))

    def void(self, table: str, *, entirely: bool = False) -> int:
        """Forget what was cleaned of *table*, which is read from 0 then; a run under way records nothing of it. How
        many ranges were recorded.

        Of which time something was cleaned stays known (:attr:`TableState.forgotten`): what comes back, and has
        neither proof nor mark, is no orphan for that. *entirely*: not that either.
        """
        taken = self.begin(table, [])
        unknown = Incarnation(taken.incarnation.number + 1, -1)
        known = cleaned_before(taken.facts, unknown, lambda: 0, taken.forgotten)
        forgotten = Intervals() if entirely else known
        if forgotten != taken.forgotten:  # before the facts go
            self._write_checked(taken, _FORGOTTEN, dump([list(p) for p in forgotten]))
        self._write_checked(taken, _INCARNATION, dump(asdict(unknown)))
        if taken.facts:
            self._table.delete(_row(table), columns=[_fact_column(f.keys) for f in taken.facts])
        return len(taken.facts)

    def _write_checked(self, taken: TableState, column: bytes, value: bytes) -> None:
        if not self._check_and_put(*_under_epoch(taken, column, value)):
            raise FencedError(taken_over(taken))


def _under_epoch(taken: TableState, column: bytes, value: bytes) -> CheckedPut:
    """A write that is done as long as nobody has taken the table over."""
    return _row(taken.table), (_EPOCH, str(taken.epoch).encode()), (column, value)


def _row(table: str) -> bytes:
    return b"table/" + table.encode()


def _parse_state(table: str, cells: Mapping[bytes, bytes]) -> TableState:
    raw = cells.get(_INCARNATION)
    incarnation = Incarnation(**json.loads(raw)) if raw else Incarnation.unknown()
    facts = tuple(_parse_fact(value) for column, value in sorted(cells.items()) if column.startswith(_FACT) and value)
    forgotten = Intervals.of((a, b) for a, b in json.loads(cells.get(_FORGOTTEN, b"[]")))
    return TableState(table, Epoch.parse(cells.get(_EPOCH)), incarnation, facts, forgotten)


def taken_over(taken: TableState) -> str:
    return (
        f"another run has taken over table {taken.table} (epoch {taken.epoch} is no longer the newest); "
        "what this run did is safe, but it records nothing more. Let the newer run finish"
    )


def _fact_column(keys: KeyRange) -> bytes:
    return _FACT + f"{keys.start.hex()}-{keys.stop.hex()}".encode()


def _fact_value(fact: Fact) -> dict[str, Any]:
    return {
        "start": fact.keys.start.hex(),
        "stop": fact.keys.stop.hex(),
        "intervals": [list(p) for p in fact.intervals],
        "families": sorted(fact.families),
        "incarnation": fact.incarnation,
        "run": fact.run,
        "recorded_at": fact.recorded_at,
        "full_pass_at": fact.full_pass_at,
        "read": [list(p) for p in fact.read],
        "read_since": fact.read_since,
        "shape": fact.shape,
        "before": [list(p) for p in fact.before or ()],
    }


def _parse_fact(raw: bytes) -> Fact:
    value = json.loads(raw)
    return Fact(
        KeyRange(bytes.fromhex(value["start"]), bytes.fromhex(value["stop"])),
        Intervals.of((a, b) for a, b in value["intervals"]),
        frozenset(value["families"]),
        value["incarnation"],
        value["run"],
        value["recorded_at"],
        value["full_pass_at"],
        # A record of before there were these says of no run what it has read, so that nothing is left out for it.
        Intervals.of((a, b) for a, b in value.get("read", [])),
        value.get("read_since", 0),
        value.get("shape", ""),
        _parse_before(value["before"]) if "before" in value else None,
    )


def _parse_before(value: Any) -> Intervals:
    """It was a bound, inclusive, before it was intervals."""
    return Intervals.up_to(value) if isinstance(value, int) else Intervals.of((a, b) for a, b in value)
