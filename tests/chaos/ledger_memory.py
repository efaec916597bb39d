"""The ledger's tables in memory, as HBase keeps them: a cell is the one of the greatest stamp, and stamps are of the
clock of the server that has the table, which may be behind.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from lowtide.ledger import steps
from lowtide.ledger.model import FAMILY, Table

#: When the clocks of plans begin, ms.
BEGIN = 1_800_000_000_000
#: HBase refuses a server whose clock is off by more, ms.
MOST_BEHIND = 30_000
#: What a read or a write takes, ms: most are a moment apart, some are not.
_PACE = (0, 1, 1, 2, 7)
_FOREVER = 2**31 - 1

Tables = dict[str, dict[str, dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Index:
    """The rows of the index from *start* to before *stop*, as the job reads them. Answer: pairs of the row and when
    HBase wrote it, by the server's clock.
    """

    start: str
    stop: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A table as it was at one moment, with the stamps of its cells and of what was removed."""

    rows: Mapping[str, dict[str, str]]
    stamps: Mapping[str, Mapping[str, int]]
    gone: Mapping[str, int]


class Memory:
    """Answers operations, each of them atomic.

    A put does not show beneath a cell of a later stamp, nor beneath the removal of its row at the same ms or later; a
    removal takes what is not stamped later. What a check puts is stamped no earlier than the cell that it looked at.
    """

    def __init__(self, users: Iterable[str], pace: random.Random | None = None) -> None:
        self.tables: Tables = {table: {} for table in Table}
        self.tables[Table.USERS] = {one: {"nickname": one} for one in users}
        #: The clock of all who have the right time, ms; by how much the server of a table is behind it.
        self.now = BEGIN
        self.behind: dict[str, int] = dict.fromkeys(Table, 0)
        self._pace = pace or random.Random(0)
        self._stamps: dict[str, dict[str, dict[str, int]]] = {table: {} for table in Table}
        self._gone: dict[str, dict[str, int]] = {table: {} for table in Table}

    def __call__(self, operation: Any) -> Any:
        self.now += self._pace.choice(_PACE)
        if isinstance(operation, Index):
            stamps = self._stamps[Table.OPEN]
            rows = sorted(row for row in self.tables[Table.OPEN] if operation.start <= row < operation.stop)
            return [(row, max(stamps[row].values())) for row in rows]
        table = self.tables[operation.table]
        match operation:
            case steps.Read(_, rows):
                assert "" not in rows, "HBase takes no empty key"
                return [table.get(row, {}) for row in rows]
            case steps.Scan(_, start, stop, limit, True):
                found = sorted((row for row in table if stop < row <= start), reverse=True)
                return [(row, table[row]) for row in found[:limit]]
            case steps.Scan(_, start, stop, limit):
                found = sorted(row for row in table if start <= row and (not stop or row < stop))
                return [(row, table[row]) for row in found[:limit]]
            case steps.CheckAndPut(of, row, column, expected):
                if table.get(row, {}).get(column) != expected:
                    return False
                seen = -1 if expected is None else self._stamps[of].get(row, {}).get(column, -1)
                self._put(of, row, operation.cells, max(seen, self._server(of)))
                return True
            case steps.Put(of, row, cells):
                self._put(of, row, cells, self._server(of))
            case steps.Remove(of, row):
                self._remove(of, row)
        return None

    def _server(self, table: str) -> int:
        return self.now - self.behind[table]

    def _put(self, table: str, row: str, cells: Mapping[str, str], at: int) -> None:
        if at <= self._gone[table].get(row, -1):
            return
        stamps = self._stamps[table].setdefault(row, {})
        shown = {name: str(value) for name, value in cells.items() if at >= stamps.get(name, -1)}
        stamps |= dict.fromkeys(shown, at)
        # Rows are never changed in place: whoever has read one has what he has read.
        self.tables[table][row] = {**self.tables[table].get(row, {}), **shown}

    def _remove(self, table: str, row: str) -> None:
        at = self._server(table)
        self._gone[table][row] = max(at, self._gone[table].get(row, -1))
        stamps = self._stamps[table].pop(row, {})
        later = {name: stamp for name, stamp in stamps.items() if stamp > at}
        cells = self.tables[table].pop(row, {})
        if later:
            self._stamps[table][row] = later
            self.tables[table][row] = {name: cells[name] for name in later}

    # -- what operators do

    def copy(self, table: str) -> Copy:
        """A snapshot."""
        stamps = {row: dict(each) for row, each in self._stamps[table].items()}
        return Copy(dict(self.tables[table]), stamps, dict(self._gone[table]))

    def restore(self, table: str, copy: Copy) -> None:
        """The table is what it was."""
        self.tables[table] = dict(copy.rows)
        self._stamps[table] = {row: dict(each) for row, each in copy.stamps.items()}
        self._gone[table] = dict(copy.gone)

    def lose(self, table: str, rows: Iterable[str]) -> None:
        """Rows that expired: nothing hides what comes later."""
        for row in rows:
            self.tables[table].pop(row, None)
            self._stamps[table].pop(row, None)


class Gateway:
    """As much of a connection to the Thrift gateway as whoever begins to work on the ledger asks. *expiring*: the table
    that keeps a cell for a day.
    """

    def __init__(self, memory: Memory, expiring: str = "") -> None:
        self._memory = memory
        self._expiring = expiring

    def tables(self) -> list[bytes]:
        """Those that there are."""
        return [table.encode() for table in Table]

    def table(self, name: str) -> Any:
        """What it keeps, and its rows."""

        def rows(keys: Iterable[bytes]) -> list[tuple[bytes, dict[bytes, bytes]]]:
            found = [(key, self._memory.tables[name].get(key.decode(), {})) for key in keys]
            return [(key, {f"{FAMILY}:{c}".encode(): v.encode() for c, v in cells.items()}) for key, cells in found]

        ttl = 86_400 if name == self._expiring else _FOREVER
        return SimpleNamespace(families=lambda: {FAMILY.encode(): {"time_to_live": ttl}}, rows=rows)
