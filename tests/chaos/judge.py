"""What must be true of a store, whatever happened to it: judged from what clients did and from raw cells.

Own code: nothing of Lowtide is imported, neither what it does nor what its tests know of it
(``tests/unit/test_chaos.py`` sees to that). The rules are those of docs/safety.md, by the numbers that the docstrings
name, computed the long way: a transaction committed if its client or the oracle said so when it happened, and what a
reader is shown at every read point is worked out from all versions.

The store is serial while it is judged: between two looks one write of one run happened, and nothing else.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: A start timestamp and its checkpoints.
CHECKPOINTS = 50
_BEFORE, _BEHIND = b"\x00\xc2\x80", b"\xc2\x80"
#: Above every timestamp.
LAST = 2**63
#: Why the proofs that a run goes by are of before.
ANEW, ENTRIES_BACK = "the oracle was made anew", "the commit table came back"
_LEFT = "was left as it was, and its range is recorded (3)"
_GARBLED = "is of no form that is known, and its range is recorded (8)"


class Cell(NamedTuple):
    """A cell, or a delete marker, as HBase has it."""

    row: bytes
    family: bytes
    qualifier: bytes
    timestamp: int
    kind: str
    value: bytes


Key = tuple[bytes, bytes, bytes, int]
Column = tuple[bytes, bytes, bytes]
Raw = frozenset[Cell]


class Entry(NamedTuple):
    """What the commit table has of a transaction."""

    commit: int | None
    invalid: bool


def start_of(timestamp: int) -> int:
    """The transaction that a cell's timestamp belongs to."""
    return timestamp // CHECKPOINTS * CHECKPOINTS


def is_shadow(qualifier: bytes) -> bool:
    """Whether it is a shadow cell's."""
    return len(qualifier) >= 5 and qualifier.startswith(_BEFORE) and qualifier.endswith(_BEHIND)


def shadow(key: Key) -> Key:
    """The shadow cell of a data cell."""
    row, family, qualifier, timestamp = key
    return row, family, _BEFORE + qualifier + _BEHIND, timestamp


def proved(key: Key) -> Key:
    """The data cell of a shadow cell."""
    row, family, qualifier, timestamp = key
    return row, family, qualifier[len(_BEFORE) : len(qualifier) - len(_BEHIND)], timestamp


def standing(cells: Iterable[Cell]) -> dict[Key, bytes]:
    """What no delete marker hides."""
    exact: set[Key] = set()
    column: dict[Column, int] = {}
    family: dict[tuple[bytes, bytes], int] = {}
    puts: dict[Key, bytes] = {}
    for row, of, qualifier, timestamp, kind, value in cells:
        match kind:
            case "put":
                puts[row, of, qualifier, timestamp] = value
            case "delete":
                exact.add((row, of, qualifier, timestamp))
            case "delete_column":
                column[row, of, qualifier] = max(timestamp, column.get((row, of, qualifier), -1))
            case "delete_family":
                family[row, of] = max(timestamp, family.get((row, of), -1))
            case other:
                raise AssertionError(f"a cell of the kind {other}")
    return {
        key: value
        for key, value in puts.items()
        if key not in exact and key[3] > max(column.get(key[:3], -1), family.get(key[:2], -1))
    }


def commit_entries(raw: Raw) -> dict[int, Entry]:
    """The commit table, by start timestamp."""
    found: dict[int, Entry] = {}
    for (row, _, qualifier, _), value in standing(raw).items():
        if len(row) != 9 or row[0] != row[8] % 16:
            continue
        start = int.from_bytes(row[1:], "big")
        known = found.get(start, Entry(None, False))
        if qualifier == b"C":
            known = known._replace(commit=start + varint(value))
        elif qualifier == b"IT":
            known = known._replace(invalid=True)
        found[start] = known
    return found


def journal_entries(raw: Raw) -> dict[int, int | None]:
    """The journal, by start timestamp: the commit timestamp of what was pruned; None: a mark."""
    found: dict[int, int | None] = {}
    for (row, _, qualifier, _), value in standing(raw).items():
        if len(row) == 9 and row[0] == row[8] % 16 and qualifier in (b"C", b"IT"):
            start = int.from_bytes(row[1:], "big")
            found[start] = int.from_bytes(value, "big") if qualifier == b"C" else found.get(start)
    return found


def low_watermark(raw: Raw) -> int:
    """The one that the oracle wrote into the commit table last: of what stands, since tests write others above it and
    delete them.
    """
    versions = [(key[3], value) for key, value in standing(raw).items() if key[0] == b"LOW_WATERMARK"]
    return int.from_bytes(max(versions)[1], "big") if versions else 0


def varint(value: bytes) -> int:
    """The number that the commit table has as a value."""
    return sum((byte & 127) << 7 * place for place, byte in enumerate(value))


def shown(cells: Mapping[Key, bytes], commits: Mapping[int, int], point: int) -> dict[Column, bytes]:
    """What a reader at a read point is shown of a table: of each column the highest version that was committed before
    it, unless it is a tombstone, or the highest family tombstone that was committed before it hides it: one that was
    committed at or after the version's timestamp.
    """
    newest: dict[Column, int] = {}
    for key in cells:
        column, timestamp = key[:3], key[3]
        if is_shadow(key[2]) or commits.get(start_of(timestamp), LAST) >= point:
            continue
        if timestamp > newest.get(column, -1):
            newest[column] = timestamp
    found = {}
    for column, timestamp in newest.items():
        row, family, qualifier = column
        value = cells[(*column, timestamp)]
        tombstone = newest.get((row, family, b""))
        hidden = tombstone is not None and commits[start_of(tombstone)] >= timestamp
        if qualifier and value and not hidden:
            found[column] = value
    return found


def unproved(cells: Mapping[Key, bytes]) -> Iterator[Key]:
    """Data cells without a shadow cell of their own."""
    return (key for key in cells if not is_shadow(key[2]) and shadow(key) not in cells)


def garbled(cells: Mapping[Key, bytes]) -> Iterator[Key]:
    """Shadow cells of data that is there which name no commit timestamp."""
    return (key for key, value in cells.items() if is_shadow(key[2]) and len(value) != 8 and proved(key) in cells)


@dataclass
class History:
    """What clients did, as they told it, and what became of their tables by other hands than Lowtide's."""

    commits: dict[int, int] = field(default_factory=dict)
    #: Transactions whose client told their end, or died.
    ended: set[int] = field(default_factory=set)
    begun: set[int] = field(default_factory=set)
    #: Committed, with a sibling's shadow cell as the only proof (crash point 10).
    torn: set[int] = field(default_factory=set)
    #: Of clients that died before they asked for their commit, or before they had an answer (crash point 1).
    unanswered: set[int] = field(default_factory=set)
    #: What the tables have by that: never what is only not visible.
    tables: dict[str, dict[Key, bytes]] = field(default_factory=lambda: defaultdict(dict))
    #: Whatever was written to them at any time.
    ever: dict[str, dict[Key, bytes]] = field(default_factory=lambda: defaultdict(dict))
    snapshots: dict[str, tuple[dict[Key, bytes], set[int]]] = field(default_factory=dict)
    #: Of which tables an HBase snapshot is there; of the others that had one there is what was exported of it.
    standing: set[str] = field(default_factory=set)
    #: Tables that lost everything since an HBase snapshot of them was taken.
    empty_since: set[str] = field(default_factory=set)
    #: Committed, and nothing in the store need tell: a person decides, and until then nothing becomes of the cells.
    untold: set[int] = field(default_factory=set)
    #: Committed, and the journal has let go of it: what goes by that has to know that it did.
    let_go: set[int] = field(default_factory=set)
    #: Committed, as the next, and a person said by mistake that they never did: readers are shown nothing of them then.
    mistaken: dict[int, int] = field(default_factory=dict)
    #: Up to where a run has recorded all of a table as cleaned, since it last lost anything but by what came back.
    cleaned: dict[str, int] = field(default_factory=dict)
    #: The highest prune bound by which anything was pruned.
    pruned: int = 0

    def read(self, line: str) -> None:
        """One line of a client's log."""
        event = json.loads(line)
        start = event["start"]
        match event["event"]:
            case "begin":
                self.begun.add(start)
            case "cells":
                for table, row, family, qualifier, checkpoint, _, value in event["cells"]:
                    key = (_bytes(row), _bytes(family), _bytes(qualifier), start + checkpoint)
                    self.tables[table][key] = self.ever[table][key] = _bytes(value)
            case "end":
                self.ended.add(start)
                if event.get("commit") is not None:
                    self.commits[start] = event["commit"]
                    if event.get("crash") == 10:
                        self.torn.add(start)
                elif event.get("crash") == 1:
                    self.unanswered.add(start)

    def committed(self, start: int, commit: int) -> None:
        """Of a transaction that nobody logs: the oracle has committed it."""
        self.commits[start] = commit
        self.begun.add(start)
        self.ended.add(start)

    def taken_for_aborted(self, start: int) -> None:
        """A person said of one that committed that it never did, and nothing tells otherwise."""
        self.mistaken[start] = self.commits.pop(start)

    def said_of(self, start: int) -> int | None:
        """When it committed, by whoever knows, be somebody mistaken or not; None: it never did."""
        return self.commits.get(start, self.mistaken.get(start))

    def committed_after_all(self, start: int, tables: Mapping[str, Raw], *, whole: bool) -> None:
        """The journal says again what became of it. What is not back in the *tables* was removed; where the *whole* of
        it is back readers are shown it.
        """
        self.commits[start] = self.mistaken.pop(start)
        for table, raw in tables.items():
            there = standing(raw)
            for key in [key for key in self.tables[table] if start_of(key[3]) == start and key not in there]:
                del self.tables[table][key]
        if whole:
            self.torn.discard(start)
            self.untold.discard(start)

    def abandoned(self, start: int, table: str, key: Key, value: bytes) -> None:
        """Of a transaction that nobody logs: its client wrote one cell, and died."""
        self.tables[table][key] = self.ever[table][key] = value
        self.begun.add(start)
        self.ended.add(start)

    def emptied(self, table: str) -> None:
        """A table has lost everything."""
        self.tables[table] = {}
        self.cleaned.pop(table, None)
        self.empty_since.add(table)

    def loadable(self, table: str, raw: Raw) -> bool:
        """Whether what an HBase snapshot of the table has may be added to what there is: it lost that, and nothing that
        was written and committed since has gone, such as a tombstone over what would come.
        """
        written = {key for key in self.tables[table] if start_of(key[3]) in self.commits}
        return table in self.empty_since and self.restorable(table) and written <= standing(raw).keys()

    def loaded(self, table: str) -> None:
        """What the HBase snapshot of the table has came to what there is."""
        self.tables[table] |= self.snapshots[table][0]

    def untold_where(self, cells: Mapping[Key, bytes], proofs: Collection[int]) -> None:
        """Of what committed and has cells here without shadow cells nothing need tell, but where *proofs*, the
        transactions of commit table and journal, do.
        """
        for start in {start_of(key[3]) for key in unproved(cells)} & self.commits.keys() - set(proofs):
            self.untold_of(start)

    def kept(self, table: str) -> None:
        """An HBase snapshot of the table was taken."""
        self.snapshots[table] = (dict(self.tables[table]), self.begun - self.ended)
        self.standing.add(table)
        self.empty_since.discard(table)

    def restorable(self, table: str) -> bool:
        """Whether the HBase snapshot of the table tells who committed: none did that was under way when it was taken.

        Of one that was, it may lack the shadow cells, and nothing else in the store need tell: a person decides, or the
        cell goes (docs/safety.md, "What Lowtide cannot see").
        """
        return table in self.snapshots and not self.snapshots[table][1] & self.commits.keys()

    def untold_of(self, start: int) -> None:
        """A transaction committed, and nothing in the store need tell."""
        self.torn.add(start)
        self.untold.add(start)

    def left_to_a_person(self, table: str) -> bool:
        """Whether the table may come back as its HBase snapshot has it though some committed that were under way then:
        all of them began before what was cleaned of it, which is why cells of theirs that nothing proves wait for a
        person (docs/safety.md, "When absence proves something").
        """
        return table in self.snapshots and self._late_in(table) <= self._up_to(self.cleaned.get(table, -1))

    def left_to_a_person_elsewhere(self, source: str) -> bool:
        """The same under a name that is new: they began before the greatest prune bound, and none is under way."""
        if source not in self.snapshots or not self.snapshots[source][1] <= self.ended:
            return False
        return self._late_in(source) <= self._up_to(self.pruned)

    def _late_in(self, table: str) -> set[int]:
        return self.snapshots[table][1] & self.commits.keys()

    def _up_to(self, start: int) -> set[int]:
        return {each for each in self.begun if each <= start}

    def restored(self, table: str) -> None:
        """The table is again what the HBase snapshot has."""
        self.copied(table, table)

    def copyable(self, table: str) -> bool:
        """Whether, also, nothing is under way any more that was then: its client would not complete a copy."""
        return self.restorable(table) and self.snapshots[table][1] <= self.ended

    def copied(self, source: str, table: str) -> None:
        """The table is what the HBase snapshot of *source* has. Of who was under way then nothing need tell."""
        self.torn |= self._late_in(source)
        self.untold |= self._late_in(source)
        self.tables[table] = dict(self.snapshots[source][0])
        self.ever[table] |= self.tables[table]

    def torn_columns(self, table: str, but: Collection[int] = ()) -> set[Column]:
        """What readers may be shown wrongly until somebody heals it, *but* for these transactions."""
        torn = {key[:3] for key in self.tables[table] if start_of(key[3]) in self.torn.difference(but)}
        families = {(row, family) for row, family, qualifier in torn if not qualifier}
        return torn | {key[:3] for key in self.tables[table] if key[:2] in families}


def _bytes(text: str) -> bytes:
    return text.encode("iso-8859-1")


@dataclass(frozen=True)
class Seen:
    """What there was at one moment."""

    tables: Mapping[str, Raw]
    commit_table: Raw
    journal: Raw
    #: The tables of another oracle.
    foreign: Mapping[str, Raw] = field(default_factory=dict)


@dataclass(frozen=True)
class Records:
    """Lowtide's own records, by row and column, as its state table has them."""

    rows: Mapping[bytes, Mapping[bytes, bytes]]

    @classmethod
    def of(cls, raw: Raw) -> Records:
        """What a reader of the state table is shown."""
        rows: dict[bytes, dict[bytes, tuple[int, bytes]]] = defaultdict(dict)
        for (row, _, qualifier, timestamp), value in standing(raw).items():
            if timestamp >= rows[row].get(qualifier, (-1, b""))[0]:
                rows[row][qualifier] = timestamp, value
        return cls({row: {q: value for q, (_, value) in cells.items()} for row, cells in rows.items()})

    def _of(self, prefix: bytes) -> Iterator[tuple[str, Mapping[bytes, bytes]]]:
        return ((row[len(prefix) :].decode(), self.rows[row]) for row in sorted(self.rows) if row.startswith(prefix))

    def epochs(self) -> dict[str, int]:
        """The counter of each table's epoch."""
        return {name: int(cells[b"epoch"].split(b"/")[0]) for name, cells in self._of(b"table/") if b"epoch" in cells}

    def facts(self) -> dict[tuple[str, bytes], dict[str, Any]]:
        """What is recorded as cleaned, by table and column."""
        return {
            (name, column): json.loads(value)
            for name, cells in self._of(b"table/")
            for column, value in cells.items()
            if column.startswith(b"fact/") and value
        }

    def marks(self) -> dict[str, int]:
        """The history marks that readers are held to."""
        return {name: mark["mark"] for name, mark in self._marks().items()}

    def removing(self) -> dict[str, int]:
        """Those before which a run removes history. Who confirms a table removes nothing: what lies before its mark
        was gone when it came.
        """
        return {name: mark["mark"] for name, mark in self._marks().items() if mark.get("run") != "lowtide confirm"}

    def removers(self, table: str) -> set[str]:
        """The runs that say that they remove history of the table, or died of it."""
        claim = json.loads(self.rows.get(b"history/" + table.encode(), {}).get(b"intended", b"{}"))
        return set(claim.get("removing", ()))

    def _marks(self) -> dict[str, dict[str, Any]]:
        return {name: json.loads(cells[b"mark"]) for name, cells in self._of(b"history/") if b"mark" in cells}

    def bound(self) -> int:
        """The prune bound that was published last."""
        newest = next((cells for _, cells in self._of(b"bound/")), None)
        return int(json.loads(newest[b"value"])["value"]) if newest else 0

    def watermarks(self) -> list[tuple[str, bytes, bytes, int]]:
        """The region watermarks that were published: table, key range [start, stop), watermark."""
        return [
            (name, bytes.fromhex(one["start"]), bytes.fromhex(one["stop"]), one["watermark"])
            for name, cells in self._of(b"watermarks/")
            for one in json.loads(cells[b"value"])["regions"]
        ]


@dataclass
class Judge:
    """What it finds wrong it says in ``wrong``, each with where it was seen."""

    history: History = field(default_factory=History)
    wrong: list[str] = field(default_factory=list)
    #: Tables that came back from an HBase snapshot since a run last cleaned all of them: until then Omid's readers need
    #: not see what was pruned.
    came_back: set[str] = field(default_factory=set)
    held: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    #: From where on read points show of a table what they showed before Omid's own compactor was at it.
    floors: dict[str, int] = field(default_factory=dict)
    _records: Records = field(default_factory=lambda: Records({}))
    #: What the last look at the records found recorded as cleaned, with its table.
    _fresh: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    _owners: dict[str, str] = field(default_factory=dict)
    #: The highest epoch that each table ever had.
    _highest: dict[str, int] = field(default_factory=dict)
    #: How often something was compared, by rule: a judge that judged nothing has found nothing.
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    #: The files in sidelines that were there at the last look, by the run's folder, and those of them that are old.
    _aside: set[tuple[str, str]] = field(default_factory=set)
    _old: set[tuple[str, str]] = field(default_factory=set)
    #: Whether the journal may let go of what nobody needs.
    sweeps: bool = False
    #: Whether marks in the commit table have to stay: clients would commit where one has gone.
    keeps_marks: bool = False
    #: What the journal had when the oracle was made anew: it says nothing of the transactions of now.
    _of_before: Raw = frozenset()

    def begins_anew(self, journal: Raw) -> None:
        """The oracle was made anew: what was known of transactions is of others, whose numbers come a second time, and
        so is what the *journal* has.
        """
        self.history = History()
        self._of_before = journal
        self.came_back.clear()
        self.floors.clear()

    def of_before(self) -> dict[int, int | None]:
        """What the journal had then, by start timestamp."""
        return journal_entries(self._of_before)

    def lost_records(self) -> None:
        """The records are gone: they begin anew, whoever is to write them first."""
        self._records = Records({})
        self._highest.clear()
        self._owners.clear()

    @property
    def marks(self) -> dict[str, int]:
        """The history marks seen last."""
        return self._records.marks()

    def kept(self, table: str) -> int:
        """The first read point of which nothing has gone, by a history mark or by Omid's own compactor."""
        return max(self.marks.get(table, -1), self.floors.get(table, -1))

    def compacted(self, table: str, watermark: int) -> None:
        """Omid's own compactor was at a table: of what began at or below the low watermark it keeps what began last."""
        commits = [commit for start, commit in self.history.commits.items() if start <= watermark]
        self.floors[table] = max(commits, default=-1) + 1

    @property
    def bound(self) -> int:
        """The prune bound seen last."""
        return self._records.bound()

    def _say(self, where: str, what: str) -> None:
        self.wrong.append(f"{where}: {what}")

    # -- one write of one run

    def written_by_one_of_before(self, where: str, before: Seen, after: Seen, why: str = ANEW) -> None:
        """(2) A run that began before the oracle was made anew changes nothing but records: the numbers that it goes by
        are others' by now. Nor does a cleanup that read a commit table which has come back since, or a restore that
        was yet to decide: they may be.
        """
        self.counts[f"writes since {why}"] += 1
        if before != after:
            self._say(where, f"{why} since the run began, and it has written (2)")

    def written_by_a_wrong_clock(self, where: str, before: Seen, after: Seen) -> None:
        """A run whose machine's clock and HBase's were more than a minute apart when it began changes nothing but
        records.
        """
        self.counts["writes by a wrong clock"] += 1
        if before != after:
            self._say(where, "the clock of the run's machine is off, and it has written")

    def put_back_beside(self, where: str, before: Seen, after: Seen) -> None:
        """(7) Nothing is put back into a table while some run removes history of it: what hides a cell could go while
        the cell comes.
        """
        for table in after.tables:
            if before.tables[table] != after.tables[table]:
                self.counts["looks for who removes beside a restore"] += 1
                if removers := sorted(self._records.removers(table)):
                    self._say(where, f"it put back into {table}, of which {removers} remove history (7)")

    def written(
        self,
        where: str,
        before: Seen,
        after: Seen,
        aside: Mapping[str, Collection[Key]],
        *,
        came_back: Collection[str] = (),
        listed_again: Collection[str] = (),
        silent: Collection[str] = (),
        owner: str = "",
    ) -> None:
        """Judge what one write of a run did.

        *aside*: what its sideline has of each table. *came_back*: tables that came back since the run looked, which it
        cannot know, but for those that it has *listed again* before it has the journal let go of anything. *silent*:
        tables to which nothing may be written. *owner*: the run, if it writes under the epochs of its tables.

        (6) It writes to no table that another run has taken over, and puts no marks where none is its own any more.

        (1) What the mark keeps stays: every read point from the mark on shows what it showed. (2) No shadow cell, entry
        or mark says what is not so. (4) What left the commit table is in the journal, and no cell needs it. (7) What
        went is aside. Nothing above the low watermark is touched; no cell comes that no client wrote.
        """
        watermark = low_watermark(before.commit_table)
        for table in sorted(before.foreign):
            self.counts["looks at another oracle's tables"] += 1
            if before.foreign[table] != after.foreign.get(table):
                self._say(where, f"{table} is another oracle's, and was written to (6)")
        for table in after.tables:
            was, is_ = standing(before.tables[table]), standing(after.tables[table])
            if was != is_:
                self.counts["writes that changed a table"] += 1
                if table in silent:
                    self._say(where, f"{table} was written to, and somebody has said no")
                if owner and self._owners.get(table) != owner:
                    self._say(where, f"{table} was written to, which {self._owners.get(table)} took over (6)")
                self._table(f"{where}, {table}", watermark, was, is_, (table, aside.get(table, ())))
        self._commit_table(where, watermark, before, after, came_back, set(came_back) - set(listed_again))
        if owner and owner not in self._owners.values():
            marks = [{s for s, e in commit_entries(seen.commit_table).items() if e.invalid} for seen in (before, after)]
            for start in sorted(marks[1] - marks[0]):
                self._say(where, f"{start} got a mark by a run all of whose tables others have taken over (6)")

    def _table(
        self,
        where: str,
        watermark: int,
        was: Mapping[Key, bytes],
        now: Mapping[Key, bytes],
        of: tuple[str, Collection[Key]],
    ) -> None:
        table, aside = of
        changed = {key for key in was.keys() | now.keys() if was.get(key) != now.get(key)}
        commits = self.history.commits
        for key in sorted(changed):
            start = start_of(key[3])
            if start > watermark:
                self._say(where, f"{key} is above the low watermark {watermark} and was touched")
            if key in was and key in now:
                self._say(where, f"{key} has another value")
            elif key in was:
                if not is_shadow(key[2]) and key not in aside:
                    self._say(where, f"{key} went and is in no sideline (7)")
                if is_shadow(key[2]) and start in commits and proved(key) in now:
                    self._say(where, f"the shadow cell {key} went, and its data stands (1)")
            elif not is_shadow(key[2]):
                if self.history.ever[table].get(key) != now[key]:
                    self._say(where, f"{key} came, and no client wrote it")
            elif int.from_bytes(now[key], "big") != self.history.said_of(start):
                self._say(where, f"a shadow cell {key} came, of a transaction with {commits.get(start)} (2)")
        self._points(where, was, now, {key[0] for key in changed}, self.marks.get(table, -1))

    def _points(
        self, where: str, was: Mapping[Key, bytes], now: Mapping[Key, bytes], rows: Collection[bytes], mark: int
    ) -> None:
        """Every read point from the mark on shows of these rows what it showed."""
        old, new = ({k: v for k, v in cells.items() if k[0] in rows} for cells in (was, now))
        commits = self.history.commits
        for point in self._read_points(old.keys() | new.keys(), mark):
            self.counts["read points of changed rows"] += 1
            if (a := shown(old, commits, point)) != (b := shown(new, commits, point)):
                self._say(where, f"at {point}, the mark is {mark}, {_difference(a, b)} (1)")
                return

    def _read_points(self, keys: Iterable[Key], mark: int) -> list[int]:
        """The mark, and each point from there on at which these cells may show something else."""
        commits = self.history.commits
        points = {commits[start] + 1 for key in keys if (start := start_of(key[3])) in commits}
        return sorted({mark, *(point for point in points if point > mark)})

    def _commit_table(
        self,
        where: str,
        watermark: int,
        before: Seen,
        after: Seen,
        came_back: Collection[str],
        unlisted: Collection[str],
    ) -> None:
        was, now = commit_entries(before.commit_table), commit_entries(after.commit_table)
        was_journaled, journal = (journal_entries(seen.journal - self._of_before) for seen in (before, after))
        commits = self.history.commits
        self._journal(where, was_journaled, journal)
        if gone := was_journaled.keys() - journal.keys():
            self._let_go(where, gone, after, unlisted)
        for start in sorted(was.keys() | now.keys()):
            old, new = was.get(start, Entry(None, False)), now.get(start, Entry(None, False))
            if old == new:
                continue
            self.counts["changes of the commit table"] += 1
            if start > watermark:
                self._say(where, f"the row of {start}, above the low watermark {watermark}, was changed")
            if new.invalid and not old.invalid and start in commits:
                self._say(where, f"{start} got a mark, and committed at {commits[start]} (2)")
            if new.commit not in (None, old.commit) and new.commit != commits.get(start):
                self._say(where, f"{start} got the entry {new.commit}, and has {commits.get(start)} (2)")
            if old.commit is not None and new.commit is None:
                if journal.get(start) != old.commit and not old.invalid:
                    self._say(where, f"the entry of {start} went, and the journal has {journal.get(start)} (4)")
                self._needed(where, start, after, came_back)
            if old.invalid and not new.invalid and (self.keeps_marks or start not in {*journal, *commits}):
                self._say(where, f"the mark of {start} went, and the journal has nothing, or it had to stay (4)")

    def put_right(
        self, where: str, now: Seen, *, whole: bool, back: Mapping[str, Collection[Key]] | None = None
    ) -> None:
        """A restore has ended, that was told of what somebody was mistaken about, *whole*: it says that all is back. By
        the journal it is so from then on; (5) readers are to see what is *back*, of tables in which that went well, at
        once.
        """
        came = back or {}
        journal = journal_entries(now.journal)
        for start in [s for s, commit in self.history.mistaken.items() if journal.get(s) == commit]:
            self.counts["mistakes put right"] += 1
            self.history.committed_after_all(start, now.tables, whole=whole)
            for table, raw in now.tables.items():
                for key in unproved(standing(raw)):
                    if start_of(key[3]) == start and (whole or key in came.get(table, ())):
                        self._say(where, f"{table} {key} is back as committed, and lacks its shadow cell (5)")

    def _journal(self, where: str, was: Mapping[int, int | None], now: Mapping[int, int | None]) -> None:
        """No commit timestamp there becomes another, and what comes is so."""
        for start in sorted(now):
            if was.get(start) is not None and was[start] != now[start]:
                self._say(where, f"{start} has {now[start]} in the journal, and had {was[start]} (4)")
            elif start not in was and now[start] not in (None, said := self.history.said_of(start)):
                self._say(where, f"{start} came into the journal with {now[start]}, and has {said} (2)")

    def _let_go(self, where: str, gone: Collection[int], after: Seen, unlisted: Collection[str]) -> None:
        """Nothing goes from the journal, or, where it may let go, nothing that an HBase snapshot or a cell may need."""
        for start in sorted(gone):
            if not self.sweeps:
                self._say(where, f"{start} went from the journal (4)")
            elif self.history.standing:
                self._say(where, f"{start} went from the journal, and {sorted(self.history.standing)} are kept (4)")
            else:
                self.counts["let go of by the journal"] += 1
                self.history.let_go |= {start} & self.history.commits.keys()
                self._needed(where, start, after, unlisted)

    def _needed(self, where: str, start: int, after: Seen, came_back: Collection[str]) -> None:
        if start not in self.history.commits:
            return
        for table, raw in after.tables.items():
            if table in came_back:
                continue
            for key in unproved(standing(raw)):
                if start_of(key[3]) == start:
                    self._say(where, f"the entry of {start} went, and {table} {key} lacks its shadow cell (4)")

    def dry(self, where: str, before: Seen, after: Seen) -> None:
        """A run that is not to act changes nothing but records."""
        self.counts["writes of runs that are not to act"] += 1
        if before != after:
            self._say(where, "it is not to act, and has written")

    # -- the records

    def recorded(self, where: str, run: str, raw: Raw, *, of_before: str = "") -> None:
        """(6) Counters and marks only grow, and what is recorded as cleaned is so by the run that took the table over
        last, and by none that is *of before*, as of an oracle that was made anew since. A mark passes no hold.
        """
        old, new = self._records, Records.of(raw)
        self._records = new
        self._fresh = [(t, fact) for (t, column), fact in new.facts().items() if old.facts().get((t, column)) != fact]
        self.counts["looks at the records"] += 1
        self._recorded_by_one_of_before(where, run, of_before)
        for table, epoch in new.epochs().items():
            before = self._highest.get(table, 0)
            if epoch < before:
                self._say(where, f"the epoch of {table} went from {before} back to {epoch} (6)")
            if epoch > before:
                self._owners[table] = run
                self._highest[table] = epoch
        facts = old.facts()
        for (table, column), fact in new.facts().items():
            if facts.get((table, column)) != fact and self._owners.get(table) != run:
                self._say(where, f"{run} recorded of {table}, which {self._owners.get(table)} took over (6)")
        for table, mark in old.marks().items():
            if new.marks().get(table, 0) < mark:
                self._say(where, f"the history mark of {table} went from {mark} back to {new.marks().get(table)} (6)")
        for table, points in self.held.items():
            if points and new.removing().get(table, 0) > min(points):
                self._say(
                    where, f"the history mark of {table}, {new.removing()[table]}, passed the hold {min(points)} (5)"
                )

    def _recorded_by_one_of_before(self, where: str, run: str, why: str) -> None:
        for table in sorted(self.just_recorded(run)) if why else ():
            self._say(where, f"{why} since {run} began, and it recorded of {table} (3)")

    def done(self, where: str, run: str, first: Seen, now: Seen, came_back: Collection[str]) -> None:
        """(3) Of what a run has just recorded as cleaned it has left nothing undone: no cell lacks its shadow cell that
        lacked it when the run began, *first*. (8) Nor has one a shadow cell that names no commit timestamp, then and
        now. *came_back*: tables that did since it looked.
        """
        for table, fact in self._fresh:
            if fact["run"] != run or table in came_back or table not in first.tables:
                continue
            start, stop = bytes.fromhex(fact["start"]), bytes.fromhex(fact["stop"])
            was, is_ = standing(first.tables[table]), standing(now.tables[table])
            left = dict.fromkeys(set(unproved(was)) & set(unproved(is_)), _LEFT)
            left |= dict.fromkeys(set(garbled(was)) & set(garbled(is_)), _GARBLED)
            self.counts["ranges recorded"] += 1
            for key, what in sorted(left.items()):
                here = start <= key[0] and (not stop or key[0] < stop) and key[1].decode() in fact["families"]
                if here and any(a <= key[3] < b for a, b in fact["read"]):
                    self._say(where, f"{table} {key} {what}")

    def just_recorded(self, run: str) -> set[str]:
        """The tables of which the last look at the records found something new as cleaned by the run."""
        return {table for table, fact in self._fresh if fact["run"] == run}

    def went_by(self, where: str, table: str, flushes: int) -> None:
        """(3) A run has acted on a table whose servers may lose what they acknowledged, or recorded it: what clients
        wrote is in files before it reads it, and again before it goes by that.
        """
        self.counts["looks for what a server may lose"] += 1
        if flushes < 2:
            self._say(where, f"{table} was flushed {flushes} times, and its servers may lose what was gone by (3)")

    def dropped(self, table: str) -> None:
        """A table is gone for good; one of its name begins anew."""
        self._highest.pop(table, None)
        self._owners.pop(table, None)

    def cleaned(self, tables: Collection[str], came_back: Collection[str]) -> None:
        """A run has read all of these *tables*, and ended well: they are as good as ever, but for those that *came
        back* since it looked.
        """
        self.came_back -= set(tables) - set(came_back)

    def replayed(self) -> None:
        """All that the journal has of commits is in the commit table again: Omid's readers see what came back whole,
        but for what nothing tells of.
        """
        self.came_back.clear()

    def cleaned_up_to(self, watermark: int, tables: Collection[str], came_back: Collection[str]) -> None:
        """A run has recorded all of these *tables* as cleaned up to a low watermark."""
        for table in set(tables) - set(came_back):
            self.history.cleaned[table] = max(watermark, self.history.cleaned.get(table, -1))

    def published(self, where: str, seen: Seen, came_back: Collection[str] = ()) -> None:
        """(3) When a collection has published: whatever committed at or below the bound, or at or below the watermark
        of its region, has its shadow cell; neither is above the low watermark. *came_back*: tables that did since the
        run looked, of which it says nothing.
        """
        watermark, bound = low_watermark(seen.commit_table), self.bound
        if bound > watermark:
            self._say(where, f"the bound {bound} is above the low watermark {watermark} (3)")
        of_regions = self._records.watermarks()
        for table, raw in seen.tables.items():
            if table in self.came_back or table in came_back:
                continue
            for key in unproved(standing(raw)):
                start = start_of(key[3])
                if start not in self.history.commits:
                    continue
                here = [w for t, a, b, w in of_regions if t == table and a <= key[0] and (not b or key[0] < b)]
                self.counts["unproved cells beside the bound"] += 1
                if start <= max([bound, *here]):
                    self._say(where, f"{table} {key} lacks its shadow cell: bound {bound}, watermark {here} (3)")

    # -- what was put aside

    def aside(self, where: str, files: Collection[tuple[str, str]], reading: Collection[str]) -> None:
        """(7) When a run has ended, these *files* are in sidelines. None has gone but old ones, and none of the runs
        whose sidelines somebody is *reading* now.
        """
        self.counts["looks at sidelines"] += 1
        for run, file in sorted(self._aside - set(files)):
            if (run, file) not in self._old:
                self._say(where, f"{file} of {run} went, and was put aside lately (7)")
            elif run in reading:
                self._say(where, f"{file} of {run} went, and somebody puts it back (7)")
            else:
                self.counts["files that were swept"] += 1
        self._old &= set(files)
        self._aside = set(files)

    def is_old(self) -> None:
        """All that was put aside was so long ago."""
        self._old = set(self._aside)

    def could_put_aside(self, where: str, problems: str) -> None:
        """(7) A run has ended, and nothing has befallen the sideline: whoever has to may put something there, whoever
        else has its name.
        """
        for problem in problems.splitlines():
            if "the sideline " in problem and "cannot be " in problem:
                self._say(where, f"{problem}, and it can (7)")

    # -- readers

    def read(self, where: str, table: str, point: int, got: Mapping[Column, bytes], *, whole: bool = False) -> None:
        """(1), (2), (5) What a reader was shown at a read point that it may read at. *whole*: none is torn now."""
        if table in self.came_back or point < self.floors.get(table, -1):
            return
        expected = shown(self.history.tables[table], self.history.commits, point)
        self.counts["reads"] += 1
        torn = () if whole else self.history.torn_columns(table)
        if got != expected and (told := _difference(expected, got, torn)):
            self._say(where, f"a reader of {table} at {point}: {told} (5)")

    def read_failed(self, where: str, error: object, *, shaken: bool) -> None:
        """(9) A reader had an error: where a server was killed before (*shaken*) that may be; else it may not."""
        self.counts["reads that failed"] += 1
        if not shaken:
            self._say(where, f"a reader failed, and all servers were there: {error} (9)")

    def read_as_of(self, where: str, table: str, point: int, got: Mapping[Column, bytes], mark: int) -> None:
        """(5) What a read as of a read point gave: all that was shown there, or it had to fail; before the mark it had
        to, and where it met what the journal has let go of.
        """
        self.counts["reads as of"] += 1
        if point < mark:
            self._say(where, f"{table} was read as of {point}, and the mark is {mark} (5)")
        if table in self.floors:
            self._say(where, f"{table} was read as of {point}, and Omid's own compactor is on it (5)")
        expected = shown(self.history.tables[table], self.history.commits, point)
        if told := _difference(expected, got, self.history.torn_columns(table, self.history.let_go)):
            self._say(where, f"{table} as of {point}: {told} (5)")

    def ended(self, where: str, code: int, summary: Mapping[str, Any]) -> None:
        """A run ends well or says why not, in words that somebody wrote for it."""
        problems = [*summary["problems"], *(p for table in summary["tables"] for p in table["problems"])]
        for problem in problems:
            if problem.startswith("unexpected "):
                self._say(where, problem)
        if code and not problems:
            self._say(where, f"it ended with {code} and does not say why")

    def held_to(self, where: str, totals: Mapping[str, Any], approved: Mapping[str, Any]) -> None:
        """(10) A run that is held to a plan does no more of anything than it."""
        self.counts["runs held to a plan"] += 1
        for name in ("healed", "deleted", "marked", "removed"):
            if (done := totals.get(name, 0)) > (most := approved.get(name, 0)):
                self._say(where, f"{done} {name}, and {most} were approved (10)")

    # -- the end

    def came_up(self, bound: int, watermark: int, others: Collection[str]) -> None:
        """(9) When the faults have ended and all jobs went well, the prune bound has come up to the low watermark that
        the collection read, unless it is held back by *others*, tables that are no matter of the plan.
        """
        if bound < watermark and not others:
            self._say("at the end", f"the bound is {bound}, the low watermark {watermark}: nothing is pruned (9)")

    def at_the_end(self, seen: Seen) -> None:
        """(9) When all is over: at or below the low watermark every cell has its shadow cell, nothing is left of what
        never committed, and what clients wrote and the mark keeps is there.
        """
        watermark = low_watermark(seen.commit_table)
        commits = self.history.commits
        for start, entry in sorted(commit_entries(seen.commit_table).items()):
            if start <= self.bound and start in self.history.begun and not (entry.invalid and self.keeps_marks):
                self._say("at the end", f"{entry} of {start} is at or below the bound {self.bound} (9)")
        for table, raw in seen.tables.items():
            cells = standing(raw)
            for key in unproved(cells):
                if start_of(key[3]) <= watermark:
                    self._say("at the end", f"{table} {key} has no shadow cell (9)")
            for key, value in cells.items():
                start = start_of(key[3])
                if is_shadow(key[2]) and int.from_bytes(value, "big") != commits.get(start):
                    self._say("at the end", f"{table} {key} says {value.hex()}, of {commits.get(start)} (2)")
            self._as_written(table, cells)

    def _as_written(self, table: str, cells: Mapping[Key, bytes]) -> None:
        """Every read point from the mark on shows of each row what clients wrote."""
        here = {k: v for k, v in cells.items() if not is_shadow(k[2])}
        mark, commits = self.kept(table), self.history.commits
        for was, now in _by_row(self.history.tables[table], here):
            for point in self._read_points(was.keys() | now.keys(), mark):
                self.counts["read points at the end"] += 1
                if (a := shown(was, commits, point)) != (b := shown(now, commits, point)):
                    self._say("at the end", f"{table} at {point}, the mark is {mark}: {_difference(a, b)} (1)")
                    break


def _by_row(*tables: Mapping[Key, bytes]) -> Iterator[list[dict[Key, bytes]]]:
    """Tables by their rows: what is shown of one depends on no other."""
    rows: dict[bytes, list[dict[Key, bytes]]] = defaultdict(lambda: [{} for _ in tables])
    for number, table in enumerate(tables):
        for key, value in table.items():
            rows[key[0]][number][key] = value
    return iter(rows.values())


def _difference(expected: Mapping[Column, bytes], got: Mapping[Column, bytes], but: Collection[Column] = ()) -> str:
    """What differs; empty: nothing, *but* these columns."""
    columns = [c for c in sorted(expected.keys() | got.keys()) if c not in but and expected.get(c) != got.get(c)]
    return "; ".join(f"{c} is {got.get(c)!r} and was to be {expected.get(c)!r}" for c in columns[:3])
