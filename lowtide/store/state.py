"""Lowtide's own table in the store: what was cleaned, the marks, the runs.

One row a table for everything that a run records about it, so that each write can check the table's *epoch* in the same row
atomically: a late, killed or second run cannot move state. Rows (family ``s``, JSON values, numbers in names zero-padded so that they sort):

``format``                which format these records have, since when, and which version of Lowtide says so; without the row it is 1
``table/NAME``            epoch, incarnation, one ``fact/START-STOP`` (hex) per cleaned key range
``oracle``                the highest low watermark seen, and how far it went back, if it ever did
``generation``            how often the records were reset, and since when the journal's rows are of the oracle that there is now
``cluster``               the newest run's token: through the gateway and past it the same must be read
``clock/MILLIS``          a sample: the oracle's timestamp at that wall-clock time
``bound/INVERTED-MILLIS`` the prune bound computed then, newest first
``journal``               whether the journal was ever made, what it says of itself, and in which life of its table it is known to be whole
``commits``               commit entries and invalidation marks as counted, one column a count, the newest few hundred
``inventory``             the tables found last, and the low watermark that was read before them
``confirmed/NAME``        that somebody said that a table's transactions are this oracle's
``watermarks/NAME``       region watermarks computed last
``history/NAME``          the ancient history mark applied, and the one that a run intends to apply
``hold/NAME/ID``          a hold on a table's history; an empty value is one that was let go
``uncompacted/NAME``      what history GC removed and no major compaction has dropped yet, one column a region
``reads/NAME``            how many snapshots of a table were read, one counter an age (``lowtide.history.advice``), eight bytes each
``now/TOKEN``             written and removed again, for the time of HBase's clock
``run/INVERTED-MILLIS/JOB/RUN``   a run's summary, newest first
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from lowtide import __version__
from lowtide.cleaning.commit_count import CommitCount
from lowtide.cleaning.facts import Fact, Incarnation, Region, still_blocking
from lowtide.errors import FencedError, FormatError, StoreError, WatermarkError
from lowtide.history.advice import bucket
from lowtide.history.compaction import Uncompacted
from lowtide.history.mark import Hold
from lowtide.journal.life import Journal
from lowtide.store.gateway import FAMILY_SETTINGS, check_and_put, kept_for
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.clock import EPOCH, millis
from lowtide.values.durations import duration_text
from lowtide.values.formats import decode_long
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange

FAMILY = "s"
#: Of the records, as this version writes them. It reads every one up to it: 1, before there was a row that tells, is taken as it is; what it lacks
#: (a fact's shape, an inventory's low watermark, the journal's life) counts as not known.
FORMAT = 3
_COLUMN = f"{FAMILY}:".encode()
_EPOCH = b"s:epoch"
_INCARNATION = b"s:incarnation"
_VALUE = b"s:value"
_FACT = b"s:fact/"
_MARK = b"s:mark"
_INTENDED = b"s:intended"
_COMMITS = b"commits"
_FORMAT = b"format"
_CONFIRMED = b"confirmed/"
_COUNT = b"s:count/"
#: Counts of the commit table that are kept: some months, read at once.
_COUNTS = 200
_MAX_MILLIS = 10**15
#: A run that said so long ago that it removes history, and nothing since, is dead.
REMOVES_FOR = timedelta(days=1)
#: A mark that was announced so long ago and is not applied yet is a dead run's, or one's that plans anew for long. A hold may take its
#: claim: the run can then no longer apply the mark, whether it lives or not.
ANNOUNCED_FOR = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Epoch:
    """Whose turn it is on a table, stored as ``COUNTER/NONCE/GENERATION`` and compared whole.

    A counter alone would come to a late run's number again where the state table was lost, or reset after the oracle was made anew.
    """

    counter: int = 0
    nonce: str = ""
    generation: int = 0

    @classmethod
    def parse(cls, stored: bytes | None) -> Epoch:
        """As stored; that of a table nobody began is 0, and before there were nonces it was the counter alone."""
        counter, _, rest = (stored or b"0").decode().partition("/")
        nonce, _, generation = rest.partition("/")
        return cls(int(counter), nonce, int(generation or 0))

    def next(self, nonce: str, generation: int) -> Epoch:
        """The one that a run takes after it."""
        return Epoch(self.counter + 1, nonce, generation)

    def __str__(self) -> str:
        return f"{self.counter}/{self.nonce}/{self.generation}" if self.nonce else str(self.counter)


@dataclass(frozen=True, slots=True)
class TableState:
    """What is recorded of one table."""

    table: str
    epoch: Epoch
    incarnation: Incarnation
    facts: tuple[Fact, ...]


class Listing(NamedTuple):
    """The inventory as published last, and the low watermark that was read before it; 0: not known."""

    entries: tuple[Entry, ...] = ()
    low_watermark: int = 0
    #: Tables of which somebody said that their transactions are this oracle's.
    confirmed: frozenset[str] = frozenset()


class Recorded(NamedTuple):
    """The highest low watermark seen, when it was seen first, and the lowest one seen *after* it; None: it never went back."""

    low_watermark: int
    at: datetime
    back: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A prune bound, inclusive, and when it was computed; *since* is when it was first seen at this value.

    The blockers are those of :func:`lowtide.cleaning.facts.by_reason`.
    """

    at: datetime
    value: int
    blockers: tuple[dict[str, Any], ...] = ()
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class History:
    """A table's ancient history mark: *applied*, which readers are held to, and *intended* by a run that has not applied it yet."""

    table: str
    applied: int = 0
    intended: int = 0
    #: When and by which run the mark was applied, and what keeps it from moving on.
    about: Mapping[str, Any] = field(default_factory=dict)
    #: When and by which run the other one was announced.
    intent: Mapping[str, Any] = field(default_factory=dict)
    #: The newest claim to the mark, as it is stored.
    claim: bytes | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A cell of the records and the value that it has as long as a run may write; whoever takes over changes it.

    Executors read it again before each batch of mutations: they may write on when the run that sent them has long ended.
    """

    table: str
    row: bytes
    family: str
    qualifier: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Intent:
    """A run's claim to a table's mark; it holds as long as nobody claims after it."""

    table: str
    mark: int
    token: bytes


class StateStore:
    """Reads and checked writes of the state table through one happybase connection. Not thread-safe, as happybase is not.

    The first of them looks at the format too, and every one raises :class:`FormatError` where a newer Lowtide wrote the records.
    """

    def __init__(
        self,
        connection: Any,
        table: str,
        *,
        there: bool = False,
        nonce: Callable[[], str] = lambda: secrets.token_hex(8),
    ) -> None:
        """*there*: whether the table is known to be there; else that is asked for when it is first read. *nonce*: a new text at each call."""
        self._connection = connection
        self._name = table
        self._there = there
        self._nonce = nonce
        self._handle = connection.table(table)
        self._format_seen = False

    @property
    def connection(self) -> Any:
        """The one that it was made with."""
        return self._connection

    @property
    def _table(self) -> Any:
        """The table, whose format is known from here on."""
        if not self._format_seen:
            self._check_format(self._handle.row(_FORMAT).get(_VALUE))
        return self._handle

    def _check_format(self, stored: bytes | None) -> None:
        value = json.loads(stored) if stored else {}
        if value.get("format", 1) > FORMAT:
            msg = (
                f"the records in {self._name} have format {value['format']}, written by Lowtide {value.get('lowtide', 'of another version')}; "
                f"this is Lowtide {__version__}, which knows formats up to {FORMAT}. Upgrade it on this machine; nothing was done"
            )
            raise FormatError(msg)
        self._format_seen = True

    # -- life of the state table

    def exists(self) -> bool:
        """Whether the state table is there; reads on a store without one give empty answers. Once there, it is not asked for again."""
        self._there = self._there or self.has_table(self._name)
        return self._there

    def has_table(self, name: str) -> bool:
        """Whether HBase has a table of that name."""
        return name.encode() in self._connection.tables()

    def create(self) -> None:
        """Make the state table; nothing happens where it is."""
        if not self.exists():
            self._connection.create_table(self._name, {FAMILY: FAMILY_SETTINGS})

    def say_format(self) -> None:
        """Write which format the records have from here on, where that is not said yet: an older Lowtide that knows the row refuses them then."""
        known = self._table.row(_FORMAT).get(_VALUE)
        if json.loads(known or b"{}").get("format", 1) < FORMAT:
            value = {"format": FORMAT, "since": _now(), "lowtide": __version__}
            self._check_and_put(_FORMAT, (_VALUE, known), (_VALUE, _dump(value)))

    def reset(self, *, same_oracle: bool = False) -> None:
        """Forget all cleaned ranges, bounds, samples and the low watermark seen; epochs and past runs stay.

        For an oracle that was made anew: after it, everything is cleaned again from 0, and what the journal holds of a transaction proves nothing of
        another that the oracle gave the same number since. ``lowtide.store.reset`` says when it may be done. With *same_oracle* no number was given
        twice, as where only the commit table came back: what the journal holds stays a proof.
        """
        if not self.exists():
            return
        since = self.numbered_anew() if same_oracle else millis(self.server_time())
        value = {"generation": self.generation() + 1, "since": since}
        self._table.put(b"generation", {_VALUE: _dump(value)})  # first: a run under way looks at it before it acts
        self.say_format()
        self.put_inventory(self.inventory())  # its low watermark says nothing of another life's timestamps
        for row, _ in list(self._scan(b"table/")):
            self.void(row.removeprefix(b"table/").decode())
        for prefix in (b"oracle", b"clock/", b"bound/", b"watermarks/"):
            for row, _ in list(self._scan(prefix)):
                self._table.delete(row)

    def void(self, table: str) -> int:
        """Forget what was cleaned of *table*, which is read from 0 then; a run under way records nothing of it. How many ranges were recorded."""
        taken = self.begin(table, [])
        unseen = Incarnation(taken.incarnation.number + 1, -1)
        self._write_checked(taken, _INCARNATION, _dump(asdict(unseen)))
        if taken.facts:
            self._table.delete(_row(table), columns=[_fact_column(f.keys) for f in taken.facts])
        return len(taken.facts)

    def server_time(self) -> datetime:
        """The time by the clock of the region server that holds the state table, to the millisecond."""
        row = f"now/{secrets.token_hex(8)}".encode()
        self._table.put(row, {_VALUE: b"{}"})
        try:
            _, at = self._table.row(row, [_VALUE], include_timestamp=True)[_VALUE]
        finally:
            self._table.delete(row)
        return _time(at)

    def say_cluster(self) -> None:
        """Write a new token: whoever reaches the same table otherwise reads it, or a newer run's."""
        self._table.put(b"cluster", {_VALUE: _dump({"token": self._nonce(), "at": _now()})})

    def cluster(self) -> bytes | None:
        """The token, as it is stored; None before a run has acted."""
        return self._table.row(b"cluster").get(_VALUE) if self.exists() else None

    # -- the oracle

    def generation(self) -> int:
        """How often the records were reset: a new life of the oracle, as far as is known here."""
        return int(self._json(b"generation", {}).get("generation", 0))

    def numbered_anew(self) -> int:
        """Wall-clock ms; rows of the journal that are older may be of transactions whose numbers the oracle gave a second time. 0: there are none."""
        return int(self._json(b"generation", {}).get("since", 0))

    def check_low_watermark(self, current: int) -> None:
        """Refuse a low watermark below the highest one recorded: the oracle lost its timestamps, and every recorded watermark is void.

        So is one that was below it at any time since, however far it has come again.

        Raises:
            WatermarkError: *current* is below the recorded one, or one before it was.
        """
        recorded = self.low_watermark_seen()
        if recorded is None or (current >= recorded.low_watermark and recorded.back is None):
            return
        went = current if current < recorded.low_watermark else recorded.back
        again = "" if went == current else f", and has come to {current} again"
        msg = (
            f"the low watermark has gone back from {recorded.low_watermark} to {went}{again}: the oracle was made anew or has forgotten its timestamps "
            "(an in-memory timestamp store does at a restart) or this is another oracle; no recorded watermark can be trusted. "
            "Configure a persistent timestamp store, make sure that every transaction of before is over, "
            "then run: lowtide state reset"
        )
        raise WatermarkError(msg)

    def remember_gone_back(self, current: int) -> None:
        """Remember a low watermark below the recorded one; nothing happens where it is not."""
        while (known := self._table.row(b"oracle").get(_VALUE) if self.exists() else None) is not None:
            value = json.loads(known)
            if current >= value["low_watermark"] or value.get("back", current + 1) <= current:
                return
            if self._check_and_put(b"oracle", (_VALUE, known), (_VALUE, _dump({**value, "back": current}))):
                return

    def record_low_watermark(self, current: int) -> None:
        """Remember *current* as seen (it never goes down), after :meth:`check_low_watermark`."""
        while True:
            known = self._table.row(b"oracle").get(_VALUE)
            if known is not None and json.loads(known)["low_watermark"] >= current:
                return
            before = json.loads(known) if known is not None else {}
            value = {**before, "low_watermark": current, "at": _now()}
            if self._check_and_put(b"oracle", (_VALUE, known), (_VALUE, _dump(value))):
                return

    def recorded_low_watermark(self) -> int:
        """The highest low watermark ever seen; 0 on a new store."""
        return int(self._json(b"oracle", {}).get("low_watermark", 0))

    def low_watermark_seen(self) -> Recorded | None:
        """The highest low watermark ever seen, and when it was seen first; None on a new store."""
        value = self._json(b"oracle", None)
        return None if value is None else Recorded(value["low_watermark"], _time(value["at"]), value.get("back"))

    def add_sample(self, at: datetime, timestamp: int) -> None:
        """Remember that at *at* the oracle had given out *timestamp*."""
        self._table.put(b"clock/%020d" % millis(at), {_VALUE: _dump({"timestamp": timestamp})})

    def samples(self) -> list[tuple[datetime, int]]:
        """All samples, by time."""
        return [
            (EPOCH + timedelta(milliseconds=int(row[6:])), json.loads(cells[_VALUE])["timestamp"])
            for row, cells in self._scan(b"clock/")
        ]

    # -- tables

    def read(self, table: str) -> TableState:
        """What is recorded of *table*; an empty state where nothing is."""
        cells = self._table.row(_row(table)) if self.exists() else {}
        raw = cells.get(_INCARNATION)
        incarnation = Incarnation(**json.loads(raw)) if raw else Incarnation.unseen()
        facts = tuple(
            _parse_fact(value) for column, value in sorted(cells.items()) if column.startswith(_FACT) and value
        )
        return TableState(table, Epoch.parse(cells.get(_EPOCH)), incarnation, facts)

    def begin(self, table: str, regions: Sequence[Region]) -> TableState:
        """Take the table's next epoch; whoever held it before can no longer record.

        The incarnation is brought up to date with *regions*, the regions as listed now.
        """
        while True:
            epoch = self.read(table).epoch
            known = str(epoch).encode() if epoch.counter else None
            new = epoch.next(self._nonce(), self.generation())
            if self._check_and_put(_row(table), (_EPOCH, known), (_EPOCH, str(new).encode())):
                break
        # Read again: whoever held the epoch before could record until now, and cannot any more.
        state = replace(self.read(table), epoch=new)
        taken = replace(state, incarnation=state.incarnation.advance(regions))
        if taken.incarnation != state.incarnation:
            self._write_checked(taken, _INCARNATION, _dump(asdict(taken.incarnation)))
        return taken

    def epoch_claim(self, taken: TableState) -> Claim:
        """What stands as long as nobody has taken the table over from *taken*."""
        return self._claim(_row(taken.table), _EPOCH, str(taken.epoch).encode())

    def mark_claim(self, intent: Intent) -> Claim:
        """What stands as long as nobody has claimed the table's mark after *intent*."""
        return self._claim(_history_row(intent.table), _INTENDED, intent.token)

    def _claim(self, row: bytes, column: bytes, value: bytes) -> Claim:
        return Claim(self._name, row, FAMILY, column.removeprefix(_COLUMN).decode(), value)

    def record(self, taken: TableState, fact: Fact) -> None:
        """Record a cleaned key range under the epoch of *taken*, in place of the fact of exactly that range.

        Raises:
            FencedError: the epoch has moved on.
        """
        self._write_checked(taken, _fact_column(fact.keys), _dump(_fact_value(fact)))

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
            raise FencedError(_taken_over(taken))

    def _write_checked(self, taken: TableState, column: bytes, value: bytes) -> None:
        expected = str(taken.epoch).encode()
        if not self._check_and_put(_row(taken.table), (_EPOCH, expected), (column, value)):
            raise FencedError(_taken_over(taken))

    # -- marks

    def add_bound(self, bound: Bound) -> None:
        """Log a prune bound, with since when it and each of its blockers stand."""
        before = next(iter(self.bounds(1)), None)
        at = millis(bound.at)
        stands = before is not None and before.value == bound.value
        value = {
            "value": bound.value,
            "at": at,
            "since": min(at, millis(before.since or before.at)) if before and stands else at,
            "blockers": still_blocking(bound.blockers, before.blockers if before else (), at),
        }
        self._table.put(b"bound/%020d" % (_MAX_MILLIS - millis(bound.at)), {_VALUE: _dump(value)})

    def bounds(self, limit: int | None = None) -> list[Bound]:
        """Logged prune bounds, newest first."""
        return [
            Bound(_time(v["at"]), v["value"], tuple(v["blockers"]), _time(v.get("since", v["at"])))
            for v in self._values(b"bound/", limit)
        ]

    def journal(self) -> Journal:
        """What is remembered of the journal."""
        return Journal(**self._json(b"journal", {})) if self.exists() else Journal()

    def remember_journal(self, horizon: int = 0, pruned: int = 0, stated: int = 0) -> None:
        """Remember that the journal is there, that nothing up to *horizon*, a start timestamp, need be in it, and how far was *pruned*.

        Neither goes down. *stated*: the life of its table, where none is remembered yet.
        """
        self._change_journal(
            lambda known: replace(
                known,
                there=True,
                horizon=max(horizon, known.horizon),
                pruned=max(pruned, known.pruned),
                stated=known.stated or stated,
            )
        )

    def doubt_journal(self, why: str) -> None:
        """Remember *why* the journal may have lost rows, until :meth:`settle_journal`."""
        self._change_journal(lambda known: replace(known, doubt=why))

    def settle_journal(self, *, there: bool, horizon: int, stated: int) -> None:
        """Remember what a person said: of the journal in this life of its table, or without one, all but what lies at or below *horizon* is known."""
        self._change_journal(
            lambda known: Journal(there, max(horizon, known.horizon), known.pruned, stated if there else 0)
        )

    def _change_journal(self, change: Callable[[Journal], Journal]) -> None:
        while True:
            raw = self._table.row(b"journal").get(_VALUE)
            known = Journal(**json.loads(raw)) if raw else Journal()
            new = change(known)
            if new == known or self._check_and_put(b"journal", (_VALUE, raw), (_VALUE, _dump(asdict(new)))):
                return

    def check_kept(self) -> None:
        """Refuse to go by records that vanish by themselves.

        Raises:
            StoreError: the state table has a TTL.
        """
        if (kept := kept_for(self._connection, self._name)) is not None:
            msg = (
                f"the state table {self._name} keeps a cell for {duration_text(kept)} only (TTL): marks, holds and what is known of the oracle and the "
                f"journal vanish. In HBase's shell: alter '{self._name}', {{NAME => '{FAMILY}', TTL => 'FOREVER'}}; then see 'The state table is gone' "
                "in docs/backups.md"
            )
            raise StoreError(msg)

    def add_commit_count(self, count: CommitCount) -> None:
        """Keep a count of the commit table; the oldest of many go."""
        value = {"entries": count.entries, "marks": count.marks}
        self._table.put(_COMMITS, {_COUNT + b"%020d" % millis(count.at): _dump(value)})
        kept = sorted(self._table.row(_COMMITS))
        if len(kept) > _COUNTS:
            self._table.delete(_COMMITS, columns=kept[:-_COUNTS])

    def commit_counts(self) -> list[CommitCount]:
        """The counts of the commit table that are kept, oldest first; one row is read for all."""
        cells = self._table.row(_COMMITS) if self.exists() else {}
        return [
            CommitCount(_time(int(column.removeprefix(_COUNT))), **json.loads(value))
            for column, value in sorted(cells.items())
        ]

    def put_watermarks(self, table: str, value: dict[str, Any]) -> None:
        """Publish a table's region watermarks for the page and the command line."""
        self._table.put(b"watermarks/" + table.encode(), {_VALUE: _dump(value)})

    def watermarks(self) -> dict[str, dict[str, Any]]:
        """All published region watermarks, by table."""
        return {row[11:].decode(): json.loads(cells[_VALUE]) for row, cells in self._scan(b"watermarks/")}

    def drop_watermarks(self, keep: Sequence[str]) -> None:
        """Remove published watermarks of tables that are not in *keep* (dropped or no longer transactional)."""
        for name in self.watermarks():
            if name not in keep:
                self._table.delete(b"watermarks/" + name.encode())

    def put_inventory(self, entries: Sequence[Entry], low_watermark: int = 0) -> None:
        """Publish the inventory, with the low watermark that was read before it."""
        tables = [
            {
                "table": e.table,
                "kind": e.kind.value,
                "enabled": e.enabled,
                "families": sorted(e.families),
                "unmarked": sorted(e.unmarked),
                "mark": e.mark,
                "bytes": e.bytes,
                "names": e.names,
                "doubt": e.doubt,
                "compactor": e.compactor,
                "came_after": e.came_after,
            }
            for e in entries
        ]
        self._table.put(b"inventory", {_VALUE: _dump({"low_watermark": low_watermark, "tables": tables})})

    def listing(self) -> Listing:
        """The inventory as published last, with what belongs to it."""
        confirmed = frozenset(row.removeprefix(_CONFIRMED).decode() for row, _ in self._scan(_CONFIRMED))
        return Listing(tuple(self.inventory()), self._inventory()["low_watermark"], confirmed)

    def confirm(self, table: str) -> None:
        """Remember that the transactions of *table* are this oracle's."""
        self._table.put(_CONFIRMED + table.encode(), {_VALUE: _dump({"at": _now()})})

    def sweep_confirmed(self, entries: Sequence[Entry]) -> None:
        """Drop what was confirmed of tables that are no longer in question by *entries*: another table of that name is another question."""
        asked = {e.table for e in entries if e.came_after}
        for row, _ in list(self._scan(_CONFIRMED)):
            if row.removeprefix(_CONFIRMED).decode() not in asked:
                self._table.delete(row)

    def _inventory(self) -> dict[str, Any]:
        """As stored; in format 1 it was the tables alone."""
        value = self._json(b"inventory", [])
        return {"low_watermark": 0, "tables": value} if isinstance(value, list) else value

    def inventory(self) -> list[Entry]:
        """The inventory as published last; empty before the first run."""
        return [
            Entry(
                v["table"],
                Kind(v["kind"]),
                v["enabled"],
                frozenset(v["families"]),
                frozenset(v["unmarked"]),
                v["mark"],
                v["bytes"],
                tuple(v.get("names", ())),
                v.get("doubt", ""),
                compactor=v.get("compactor", False),
                came_after=v.get("came_after", 0),
            )
            for v in self._inventory()["tables"]
        ]

    # -- history

    def history(self, table: str) -> History:
        """The table's mark; 0 where none was ever applied."""
        cells = self._table.row(_history_row(table)) if self.exists() else {}
        return _parse_history(table, cells)

    def histories(self) -> list[History]:
        """The marks of all tables that have one, by name."""
        return [_parse_history(row[8:].decode(), cells) for row, cells in self._scan(b"history/")]

    def intend(self, table: str, mark: int, run: str, seen: History | None = None) -> Intent:
        """Say which mark a run is going to apply, before it reads the holds; it takes the place of any claim before it.

        Args:
            table: name.
            mark: to be applied.
            run: id.
            seen: the table's history as it was before the run read the table; what was read is worth nothing if somebody has claimed
                the mark since, to remove or to put back. None: whatever was claimed is overtaken.

        Raises:
            FencedError: there is a claim that came after *seen*.
        """
        row = _history_row(table)
        while True:
            known = self._table.row(row).get(_INTENDED) if seen is None else seen.claim
            token = _claim(known, mark, run)
            if self._change(row, _INTENDED, known, token):
                return Intent(table, mark, token)
            if seen is not None:
                raise FencedError(_overtaken(table))

    def lower_intent(self, intent: Intent, mark: int, run: str) -> Intent:
        """Intend less than *intent* did: a hold came between, or nothing is applied after all.

        Raises:
            FencedError: another run has claimed the mark since.
        """
        return self._claim_again(intent, mark, run)

    def begin_removal(self, intent: Intent, run: str) -> Intent:
        """Say that *run* removes history from here on, after it applied its mark: no restore may begin until it ends.

        Raises:
            FencedError: another run, or a restore, has claimed the mark since.
        """
        return self._claim_again(intent, intent.mark, run, removing=True)

    def end_removal(self, intent: Intent, run: str) -> None:
        """Say that *run* removes nothing any more.

        Raises:
            FencedError: another run has claimed the mark since; it says so itself.
        """
        self._claim_again(intent, intent.mark, run)

    def overtake(self, seen: History, now: datetime, by: str) -> bool:
        """Take the claim of a run that announced a mark long ago and has not applied it, so that it never will; whether that was done.

        The mark may have been applied since *seen*: look again.
        """
        if seen.claim is None or seen.intended <= seen.applied or now < _time(seen.intent.get("at", 0)) + ANNOUNCED_FOR:
            return False
        token = _claim(seen.claim, seen.applied, by)
        return self._change(_history_row(seen.table), _INTENDED, seen.claim, token)

    def check_claim(self, intent: Intent) -> None:
        """Refuse to go on where another has claimed the mark since.

        Raises:
            FencedError: that is so.
        """
        if self.history(intent.table).claim != intent.token:
            raise FencedError(_overtaken(intent.table))

    def _claim_again(self, intent: Intent, mark: int, run: str, *, removing: bool = False) -> Intent:
        token = _claim(intent.token, mark, run, removing=removing)
        if not self._change(_history_row(intent.table), _INTENDED, intent.token, token):
            raise FencedError(_overtaken(intent.table))
        return Intent(intent.table, mark, token)

    def apply_mark(self, intent: Intent, about: Mapping[str, Any]) -> int:
        """Apply the intended mark; returns the mark that holds now: never less than the one before.

        Raises:
            FencedError: another run has claimed the mark since.
        """
        before = self.history(intent.table).applied
        if intent.mark <= before:
            self.check_claim(intent)  # it must be ours here too: the run is about to act
            return before
        row, mark = _history_row(intent.table), _dump({**about, "mark": intent.mark, "at": _now()})
        if not self._check_and_put(row, (_INTENDED, intent.token), (_MARK, mark)):
            raise FencedError(_overtaken(intent.table))
        return intent.mark

    def raise_mark(self, table: str, mark: int, run: str) -> None:
        """Apply *mark*, if it is above the one that holds, whoever has a claim: what lies before it is gone already, by another's hand."""
        while self.history(table).applied < mark:
            with suppress(FencedError):
                self.apply_mark(self.intend(table, mark, run), {"run": run, "held_by": []})

    def reads(self) -> dict[str, dict[int, int]]:
        """By table: how many snapshots were read, by the bucket of their age."""
        return {
            row[6:].decode(): {int(column[6:]): decode_long(value) for column, value in cells.items()}
            for row, cells in self._scan(b"reads/")
        }

    def count_read(self, table: str, age: timedelta) -> None:
        """Count a snapshot that was *age* old when it was no longer needed."""
        self._table.counter_inc(f"reads/{table}".encode(), b"s:age/%d" % bucket(age))

    def uncompacted(self, table: str) -> dict[str, Uncompacted]:
        """What history GC removed from *table* and no major compaction had dropped when it was recorded, by region. An estimate."""
        cells = self._table.row(_uncompacted_row(table)) if self.exists() else {}
        return {
            column.removeprefix(_COLUMN).decode(): Uncompacted(**json.loads(value)) for column, value in cells.items()
        }

    def all_uncompacted(self) -> dict[str, int]:
        """The bytes of that, by table."""
        return {
            row[12:].decode(): sum(sum(json.loads(value)["removed"].values()) for value in cells.values())
            for row, cells in self._scan(b"uncompacted/")
        }

    def put_uncompacted(self, table: str, value: Mapping[str, Uncompacted]) -> None:
        """Record *value* and nothing else of *table*."""
        row = _uncompacted_row(table)
        gone = [column for column in self._table.row(row) if column.removeprefix(_COLUMN).decode() not in value]
        if gone:
            self._table.delete(row, columns=gone)
        if value:
            self._table.put(row, {_COLUMN + region.encode(): _dump(asdict(one)) for region, one in value.items()})

    def holds(self, table: str | None = None) -> list[Hold]:
        """The holds on *table*, or on all tables, expired ones included; by table and age."""
        prefix = b"hold/" + (f"{table}/".encode() if table is not None else b"")
        return [Hold.from_json(json.loads(cells[_VALUE])) for _, cells in self._scan(prefix) if cells.get(_VALUE)]

    def add_hold(self, hold: Hold) -> None:
        """Write a hold. It counts once the mark was seen not to have passed it: see ``lowtide.history.holding``."""
        self._table.put(_hold_row(hold), {_VALUE: _dump(hold.to_json())})

    def change_hold(self, old: Hold, new: Hold) -> bool:
        """Put *new* in the place of *old*, if that is still there as it was."""
        return self._change(_hold_row(old), _VALUE, _dump(old.to_json()), _dump(new.to_json()))

    def drop_hold(self, hold: Hold) -> bool:
        """Let go of a hold, if it is still there as it was: one that was renewed meanwhile stays."""
        row = _hold_row(hold)
        if not self._change(row, _VALUE, _dump(hold.to_json()), b""):
            return False
        self._table.delete(row)
        return True

    # -- runs

    def add_run(self, summary: dict[str, Any]) -> None:
        """Keep a run's summary (it must have ``job``, ``run`` and ``started``, ms)."""
        row = f"run/{_MAX_MILLIS - summary['started']:020d}/{summary['job']}/{summary['run']}".encode()
        self._table.put(row, {_VALUE: _dump(summary)})

    def runs(self, limit: int = 50, job: str | None = None) -> list[dict[str, Any]]:
        """Summaries, newest first, of one job or of all."""
        found: list[dict[str, Any]] = []
        for value in self._values(b"run/", limit if job is None else None):
            if job is None or value["job"] == job:
                found.append(value)
            if len(found) >= limit:
                break
        return found

    def sweep(self, before: datetime) -> None:
        """Drop runs, and bounds but the newest, that are older than *before*. A bound that old has passed every grace."""
        for prefix, spare in ((b"run/", 0), (b"bound/", 1)):
            for row, _ in list(self._scan(prefix))[spare:]:
                at = _MAX_MILLIS - int(row.split(b"/")[1])
                if at < millis(before):
                    self._table.delete(row)

    # -- helpers

    def _change(self, row: bytes, column: bytes, old: bytes | None, new: bytes) -> bool:
        """Put *new*, which nobody else writes, in the place of *old*; whether that was done.

        HBase's client in the gateway repeats a check whose answer it lost, and is refused by what it wrote itself the first time: so
        a refusal is looked at.
        """
        return (
            self._check_and_put(row, (column, old), (column, new)) or self._table.row(row, [column]).get(column) == new
        )

    def _check_and_put(self, row: bytes, check: tuple[bytes, bytes | None], put: tuple[bytes, bytes]) -> bool:
        """:func:`lowtide.store.gateway.check_and_put` on the state table; what was put is what the table shows then.

        HBase gives a put the later of its server's clock and the time of the *checked* cell. Where the clock has stepped back, the put may
        come to lie below the cell that it was to take the place of, and nobody sees it.

        Raises:
            StoreError: that happened.
        """
        table = self._table
        if not check_and_put(self._connection, self._name, row, check, put):
            return False
        if check[0] == put[0]:
            return True
        shown = table.row(row, [check[0], put[0]])
        if shown.get(put[0]) != put[1] and shown.get(check[0]) == check[1]:
            msg = (
                f"HBase took a write to row {row.decode()} of {self._name} and still shows what was there before: the clock of its region "
                "server has stepped back. Set the clocks of the region servers, then run again"
            )
            raise StoreError(msg)
        return True

    def _scan(self, prefix: bytes, limit: int | None = None) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        if not self.exists():
            return iter(())
        rows: Iterator[tuple[bytes, dict[bytes, bytes]]] = self._table.scan(row_prefix=prefix, limit=limit)
        return rows

    def _values(self, prefix: bytes, limit: int | None) -> Iterator[Any]:
        return (json.loads(cells[_VALUE]) for _, cells in self._scan(prefix, limit))

    def _json(self, row: bytes, default: Any) -> Any:
        value = self._one(row).get(_VALUE) if self.exists() else None
        return json.loads(value) if value else default

    def _one(self, row: bytes) -> dict[bytes, bytes]:
        """A row; the first is read together with the format."""
        if self._format_seen:
            found: dict[bytes, bytes] = self._handle.row(row)
            return found
        both = dict(self._handle.rows([_FORMAT, row]))
        self._check_format(both.get(_FORMAT, {}).get(_VALUE))
        together: dict[bytes, bytes] = both.get(row, {})
        return together


def _row(table: str) -> bytes:
    return b"table/" + table.encode()


def _taken_over(taken: TableState) -> str:
    return (
        f"another run has taken over table {taken.table} (epoch {taken.epoch} is no longer the newest); "
        "what this run did is safe, but it records nothing more. Let the newer run finish"
    )


def _history_row(table: str) -> bytes:
    return b"history/" + table.encode()


def _uncompacted_row(table: str) -> bytes:
    return b"uncompacted/" + table.encode()


def _parse_history(table: str, cells: Mapping[bytes, bytes]) -> History:
    applied, intended = (json.loads(cells[c]) if cells.get(c) else {} for c in (_MARK, _INTENDED))
    return History(table, applied.get("mark", 0), intended.get("mark", 0), applied, intended, cells.get(_INTENDED))


def _claim(known: bytes | None, mark: int, run: str, *, removing: bool = False) -> bytes:
    """A claim in the place of *known*. Which other runs remove it goes on telling: to be overtaken does not end a write under way."""
    others = json.loads(known).get("removing", {}) if known else {}
    young = {r: at for r, at in others.items() if r != run and _now() - at < REMOVES_FOR // timedelta(milliseconds=1)}
    told = {**young, **({run: _now()} if removing else {})}
    value = {"mark": mark, "run": run, "at": _now(), "claim": secrets.token_hex(8)}
    return _dump({**value, "removing": told} if told else value)


def _overtaken(table: str) -> str:
    return (
        f"another run of history_gc has taken over table {table}, or a restore or a hold has; this one does nothing more to it. "
        "Let the newer run finish, then run again"
    )


def _hold_row(hold: Hold) -> bytes:
    return f"hold/{hold.table}/{hold.id}".encode()


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
    )


def _dump(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), sort_keys=True).encode()


def _time(at: int) -> datetime:
    return EPOCH + timedelta(milliseconds=at)


def _now() -> int:
    return int(time.time() * 1000)
