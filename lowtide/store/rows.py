"""Rows of the state table: reads that know its format, and writes with a check. What the rows mean is described where
each subject is.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from lowtide import __version__
from lowtide.errors import FormatError, StoreError
from lowtide.store.gateway import FAMILY_SETTINGS, CheckedPut, check_and_put, has_table, kept_for
from lowtide.store.records import Claim
from lowtide.values.clock import from_millis, now_millis
from lowtide.values.durations import duration_text

FAMILY = "s"
#: Of the records, as this version writes them. It reads every one up to it: 1, before there was a row that tells, is
#: taken as it is; what it lacks (a fact's shape, an inventory's low watermark, the journal's life) counts as not known.
#: 4 may hold pauses: who does not know them would write in spite of them. 5 says for which times a table was cleaned
#: before it came back (``before``, ``forgotten``), and tells Lowtide's own invalidation marks from Omid's, in commit
#: table and journal: who does not know these would take committed cells of a restored table for orphans, and
#: marks of Lowtide's for none. tests/unit/records.json has rows of each number: records that change take a new one.
FORMAT = 5
COLUMN = f"{FAMILY}:".encode()
VALUE = COLUMN + b"value"
#: From which times are taken in the keys of rows that are read newest first, ms.
MAX_MILLIS = 10**15
_FORMAT = b"format"
#: Checks that are sent together.
_AT_ONCE = 500
#: Rows that are read together afterwards: each is asked for the columns of all.
_SHOWN_AT_ONCE = 50


class Rows:
    """Reads and checked writes of the state table through one happybase connection. Not thread-safe, as happybase is
    not.

    The first of them reads the format too, and every one raises :class:`FormatError` where a newer Lowtide wrote the
    records.
    """

    def __init__(
        self,
        connection: Any,
        table: str,
        *,
        there: bool = False,
        nonce: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        """*there*: whether the table is known to be there; else that is asked for when it is first read. *nonce*: a new
        text at each call.
        """
        self._connection = connection
        self._name = table
        self._there = there
        self._nonce = nonce
        self._handle = connection.table(table)
        #: As read; 0: not yet.
        self._format = 0

    @property
    def connection(self) -> Any:
        """The one that it was made with."""
        return self._connection

    @property
    def format_read(self) -> int:
        """The format of the records, as it was read with the first of them; 0: none was read yet. It costs no read."""
        return self._format

    @property
    def _table(self) -> Any:
        """The table, whose format is known from here on."""
        if not self._format:
            self._check_format(self._handle.row(_FORMAT).get(VALUE))
        return self._handle

    def _check_format(self, stored: bytes | None) -> None:
        value = json.loads(stored) if stored else {}
        found = int(value.get("format", 1))
        if found > FORMAT:
            # Two checkouts may call themselves alike: the day and the place tell which is which.
            since = f" on {from_millis(value['since']):%Y-%m-%d}" if "since" in value else ""
            fact = (
                f"the records in {self._name} have format {found}, written by Lowtide "
                f"{value.get('lowtide', 'of another version')}{since}; this is Lowtide {__version__} in "
                f"{Path(__file__).resolve().parents[2]}, an older one whatever its number says: it knows formats up to "
                f"{FORMAT}"
            )
            raise FormatError(fact, "Upgrade it on this machine; nothing was done")
        self._format = found

    def exists(self) -> bool:
        """Whether the state table is there; reads on a store without one give empty answers. Once there, it is not
        asked for again.
        """
        self._there = self._there or self.has_table(self._name)
        return self._there

    @property
    def seen(self) -> bool:
        """Whether the state table was seen to be there; it costs no read."""
        return self._there

    def has_table(self, name: str) -> bool:
        """Whether HBase has a table of that name.

        Raises:
            IOError: HBase's, with the right that is missing: it has the table, and this user may not see it.
        """
        return has_table(self._connection, name)

    def create(self) -> None:
        """Make the state table; nothing happens where it is."""
        if not self.exists():
            self._connection.create_table(self._name, {FAMILY: FAMILY_SETTINGS})

    def record_format(self) -> None:
        """Write which format the records have from here on, where that is not recorded yet: an older Lowtide that knows
        the row refuses them then. Whoever acts by the records, or decides something in them by hand, does that first:
        an older one would not see what was written.

        Raises:
            FormatError: a newer Lowtide wrote there since they were read.
        """
        known = self._table.row(_FORMAT).get(VALUE)
        self._check_format(known)
        if json.loads(known or b"{}").get("format", 1) < FORMAT:
            value = {"format": FORMAT, "since": now_millis(), "lowtide": __version__}
            self._check_and_put(_FORMAT, (VALUE, known), (VALUE, dump(value)))

    def check_kept(self) -> None:
        """Refuse to go by records that vanish by themselves.

        Raises:
            StoreError: the state table has a TTL.
        """
        if (kept := kept_for(self._connection, self._name)) is not None:
            msg = (
                f"the state table {self._name} keeps a cell for {duration_text(kept)} only (TTL): marks, holds and "
                f"what is known of the oracle and the journal vanish. In HBase's shell: alter '{self._name}', {{NAME "
                f"=> '{FAMILY}', TTL => 'FOREVER'}}; then see 'The state table is gone' in docs/backups.md"
            )
            raise StoreError(msg)

    def written_format(self) -> int:
        """The format that is recorded; 1 where none is."""
        return int(json.loads(self._table.row(_FORMAT).get(VALUE) or b"{}").get("format", 1))

    def server_time(self) -> datetime:
        """The time by the clock of the region server that holds the state table, to the millisecond.

        Raises:
            StoreError: what was just written there is not shown.
        """
        with self.passing_row() as (_, _, at):
            return at

    @contextmanager
    def passing_row(self) -> Iterator[tuple[str, bytes, datetime]]:
        """A row of one's own with a new value, and when HBase wrote it by its own clock; removed at the end.

        Raises:
            StoreError: the row is not shown. HBase can be told to answer with nothing what a user may not read.
        """
        row, value = f"now/{secrets.token_hex(8)}", dump({"token": secrets.token_hex(8)})
        self._table.put(row.encode(), {VALUE: value})
        try:
            shown = self._table.row(row.encode(), [VALUE], include_timestamp=True)
            if VALUE not in shown:
                msg = (
                    f"{self._name} does not show what was just written there; let the user that Lowtide has at the "
                    f"gateway read it, in HBase's shell: grant '<user>', 'RW', '{self._name}'"
                )
                raise StoreError(msg)
            yield row, value, from_millis(shown[VALUE][1])
        finally:
            self._table.delete(row.encode())

    def passed(self, row: str) -> bytes | None:
        """The value of a :meth:`passing_row` of somebody else's; None: it is not here."""
        found: bytes | None = self._table.row(row.encode(), [VALUE]).get(VALUE)
        return found

    def _claim(self, row: bytes, column: bytes, value: bytes | None, lost: str = "") -> Claim:
        return Claim(self._name, row, FAMILY, column.removeprefix(COLUMN).decode(), value, lost)

    def _change(self, row: bytes, column: bytes, old: bytes | None, new: bytes) -> bool:
        """Put *new*, which nobody else writes, in the place of *old*; whether that was done.

        HBase's client in the gateway repeats a check whose answer it lost, and is refused by what it wrote itself the
        first time: so a refusal is checked.
        """
        return (
            self._check_and_put(row, (column, old), (column, new)) or self._table.row(row, [column]).get(column) == new
        )

    def _check_and_put(self, row: bytes, check: tuple[bytes, bytes | None], put: tuple[bytes, bytes]) -> bool:
        """:func:`lowtide.store.gateway.check_and_put` on the state table; what was put is what the table shows then.

        HBase gives a put the later of its server's clock and the time of the *checked* cell. Where the clock has
        stepped back, or is behind that of the server that had the row before, the put may come to lie below the cell
        that it was to take the place of, or below the deletion of one, and nobody sees it.

        Raises:
            StoreError: that happened.
        """
        (done,) = self._check_and_put_all([(row, check, put)])
        return done

    def _check_and_put_all(self, asked: Sequence[CheckedPut]) -> list[bool]:
        """:meth:`_check_and_put` of each, which were done: HBase's own client is asked for many at once."""
        together = getattr(self._connection, "check_and_put_all", None) if len(asked) > 1 else None
        done: list[bool] = []
        for portion in _portions(asked, _AT_ONCE):
            if together is None:
                was_done = [check_and_put(self._connection, self._name, *one) for one in portion]
            else:
                was_done = together(self._name, portion)
            # What is put over the cell that was checked is no earlier than that.
            unsure = [one for one, was in zip(portion, was_done, strict=True) if was and not _is_over_its_check(one)]
            for some in _portions(unsure, _SHOWN_AT_ONCE):
                self._check_shown(some)
            done += was_done
        return done

    def _check_shown(self, done: Sequence[CheckedPut]) -> None:
        columns = sorted({column for _, check, put in done for column in (check[0], put[0])})
        shown = dict(self._table.rows(sorted({row for row, _, _ in done}), columns))
        for row, check, put in done:
            cells = shown.get(row, {})
            if cells.get(put[0]) != put[1] and cells.get(check[0]) == check[1]:
                msg = (
                    f"HBase took a write to row {row.decode()} of {self._name} and still shows what was there before: "
                    "the clock of its region server has stepped back, or is behind that of the one that had the row "
                    "before. Set the clocks of the region servers, wait two minutes, then run again"
                )
                raise StoreError(msg)

    def _scan(self, prefix: bytes, limit: int | None = None) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        if not self.exists():
            return iter(())
        rows: Iterator[tuple[bytes, dict[bytes, bytes]]] = self._table.scan(row_prefix=prefix, limit=limit)
        return rows

    def _values(self, prefix: bytes, limit: int | None) -> Iterator[Any]:
        return (json.loads(cells[VALUE]) for _, cells in self._scan(prefix, limit))

    def _json(self, row: bytes, default: Any) -> Any:
        value = self._one(row).get(VALUE) if self.exists() else None
        return json.loads(value) if value else default

    def _one(self, row: bytes) -> dict[bytes, bytes]:
        """A row; the first is read together with the format."""
        if self._format:
            found: dict[bytes, bytes] = self._handle.row(row)
            return found
        both = dict(self._handle.rows([_FORMAT, row]))
        self._check_format(both.get(_FORMAT, {}).get(VALUE))
        together: dict[bytes, bytes] = both.get(row, {})
        return together


def _portions(asked: Sequence[CheckedPut], size: int) -> Iterator[Sequence[CheckedPut]]:
    return (asked[i : i + size] for i in range(0, len(asked), size))


def dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _is_over_its_check(one: CheckedPut) -> bool:
    _, (checked, expected), (column, _) = one
    return column == checked and expected is not None
