"""What becomes of the oracle of a plan, of its commit table and of the records, and what another leaves beside it."""

from __future__ import annotations

from collections.abc import Callable

from lowtide.errors import LowtideError
from lowtide.lab.workload.client import COMMIT_TABLE, CommitEntry
from tests.chaos.judge import CHECKPOINTS, Judge, Raw, shadow, standing, start_of, unproved
from tests.chaos.laboratory import FAMILIES, OTHER_COMMITS, OTHER_DATA, OTHERS, STATE, Laboratory, row
from tests.chaos.nemeses import Kind
from tests.chaos.oracle_steps import Event, Oracle
from tests.chaos.people import People
from tests.chaos.steps import ROWS, Table
from tests.chaos.striking import Strikes
from tests.chaos.tables import Tables

_SNAPSHOT = f"of-{COMMIT_TABLE}"
#: Rows that another oracle's table has.
_OTHER_ROWS = 4
#: So many clients begin, for one of them to have a number that is wanted.
_SOME = 30


class Oracles:
    """Lets it happen. *in_flight*: transactions of which nobody can say what became of them. *forgotten* is called when
    the oracle begins anew, with the tables that are emptied then; *entries_came_back* when the commit table is another.
    """

    def __init__(
        self,
        lab: Laboratory,
        judge: Judge,
        strikes: Strikes,
        tables: Tables,
        people: People,
        in_flight: dict[int, int],
        forgotten: Callable[[list[Table]], None],
        entries_came_back: Callable[[], object],
    ) -> None:
        self._lab = lab
        self._judge = judge
        self._strikes = strikes
        self._tables = tables
        self._people = people
        self._in_flight = in_flight
        self._forgotten = forgotten
        self._entries_came_back = entries_came_back
        #: Whether the records are of before the oracle was made anew.
        self._old_records = False
        #: Whether a person has to say of the commit table that it is whole, what it lacks, and the tables that Omid's
        #: readers do not see whole until then.
        self._doubted = False
        self._lacking: dict[int, CommitEntry] = {}
        self._hidden: set[str] = set()
        #: The tables of another oracle that are there.
        self._theirs: set[str] = set()

    def happen(self, step: Oracle) -> str | None:
        """One step; what came of it."""
        self._strikes.put_back(Kind.ORACLE, Kind.HBASE, Kind.SERVER, Kind.GATEWAY)
        try:
            return self._again(step.number) if step.event is Event.AGAIN else self._EVENTS[step.event](self)
        except LowtideError as error:
            return type(error).__name__

    def settle(self) -> None:
        """The faults end: whatever a person has to do is done, and nothing is left of another oracle."""
        if self._old_records:
            self._pass()
            self._reset()
        if self._doubted:
            self._whole()
        self._gone()

    def foreign(self) -> dict[str, Raw]:
        """What is there of another oracle's."""
        return {table: self._lab.raw(table) for table in sorted(self._theirs)}

    # -- made anew

    def _anew(self) -> str:
        """Everything that its clients were at is over, and the tables lose what they have."""
        self._tables.make_fit()
        emptied = [table for table in sorted(self._tables.there) if self._lab.omid.raw(table)]
        self._lab.make_oracle_anew()
        for table in emptied:
            self._lab.omid.truncate(table)
            self._lab.omid.raw(table)  # clients find its regions by that
        self._judge.begins_anew(self._lab.journal())
        self._forgotten(emptied)
        self._old_records = True
        self._doubted, self._lacking = False, {}
        return f"{', '.join(emptied) or 'nothing'} is emptied"

    def _again(self, number: int) -> str:
        """It has written one cell, and nothing more; of a few that begin, the first who has such a number."""
        journaled = {start for start, commit in self._judge.of_before().items() if commit is not None}
        table, key = sorted(self._tables.there)[number % 2], (row(number % ROWS).encode(), b"a", b"p")
        for start in (self._lab.omid.begin() for _ in range(_SOME)):
            if start in journaled:
                self._lab.omid.put(table, *key, start, b"again")
                self._judge.history.abandoned(start, table, (*key, start), b"again")
                return f"in {table}"
        return "nobody has"

    def _pass(self) -> None:
        self._lab.pass_all()
        self._lab.omid.advance_watermark()

    def _lose(self) -> None:
        self._lab.omid.drop(STATE)
        self._judge.lost_records()
        self._people.lost_records()

    def _reset(self) -> str | None:
        """As the documentation asks, when all that was begun is over, and no sooner than Lowtide lets one."""
        if not self._old_records:
            return "there is no reason"
        try:
            self._lab.reset_anew()
        except LowtideError:
            raise
        except Exception as error:
            self._judge.wrong.append(f"the records could not be reset: {type(error).__name__} (9)")
            return "it failed"
        self._in_flight.clear()
        self._old_records = self._doubted = False
        self._judge.recorded("a reset", "a person", self._lab.raw(STATE))
        return None

    # -- the commit table

    def _keep(self) -> None:
        self._forget_snapshot()
        self._lab.omid.snapshot(COMMIT_TABLE, _SNAPSHOT)

    def _back(self) -> str:
        """The oracle goes on, and raises its low watermark. What was pruned since comes back too, and is right."""
        if _SNAPSHOT not in self._lab.omid.snapshots():
            return "there is none"
        before = self._lab.omid.commit_table()
        self._lab.omid.restore(_SNAPSHOT)
        self._entries_came_back()
        self._forget_snapshot()
        now = self._lab.omid.commit_table()
        self._lacking |= {start: entry for start, entry in before.items() if now.get(start) != entry}
        self._lab.new_commit_table()
        self._lab.omid.advance_watermark()
        self._doubted = True
        self._hidden |= set(self._tables.every()) - self._judge.came_back
        self._judge.came_back |= self._hidden
        return f"it lacks {len(self._lacking)}"

    def _whole(self) -> None:
        """What it lacks is there as of another backup."""
        for start, entry in self._lacking.items():
            if entry.commit is not None:
                self._lab.omid.add_commit_entry(start, entry.commit)
            if entry.invalid:
                self._lab.omid.invalidate(start)
        self._judge.came_back -= self._hidden
        self._lacking, self._hidden, self._doubted = {}, set(), False
        self._lab.commit_table_whole()

    def _forget_snapshot(self) -> None:
        if _SNAPSHOT in self._lab.omid.snapshots():
            self._lab.omid.delete_snapshot(_SNAPSHOT)

    # -- another oracle

    def _other(self) -> str | None:
        """Its commit table proves what lies in its table, under numbers that ours gives too."""
        if self._theirs:
            return "it is there"
        self._lab.omid.create(OTHER_COMMITS, ("F", "LWF"), omid_enabled=False, versions=1)
        self._lab.omid.create(OTHER_DATA, FAMILIES)
        starts = [self._lab.omid.begin() for _ in range(_OTHER_ROWS)]
        self._fill(starts)
        for start in starts:
            key = bytes([start & 15]) + start.to_bytes(8, "big")
            self._lab.omid.put(OTHER_COMMITS, key, b"F", b"C", start, bytes([CHECKPOINTS]))
        self._lab.omid.advance_watermark()
        self._theirs |= {OTHER_COMMITS, OTHER_DATA}
        return None

    def _import(self) -> str | None:
        """It is older than all that Lowtide has seen. Some have numbers that ours gave to transactions which never
        committed; there they did.
        """
        if self._theirs:
            return "it is there"
        first = self._lab.origins[0]
        self._lab.omid.create(OTHER_DATA, FAMILIES)
        self._fill([first + CHECKPOINTS * n for n in range(1, _OTHER_ROWS + 1)])
        starts = self._orphans()[-_OTHER_ROWS:]
        self._fill(starts)
        for number, start in enumerate(starts, 1):
            proof = shadow((row(number).encode(), b"a", b"p", start))
            self._lab.omid.put(OTHER_DATA, *proof, (start + CHECKPOINTS).to_bytes(8, "big"))
        self._theirs.add(OTHER_DATA)
        return f"{len(starts)} have numbers of ours"

    def _orphans(self) -> list[int]:
        """Those that are over, never committed, and have cells in tables that nobody has yet to confirm."""
        history, watermark = self._judge.history, self._lab.omid.watermark()
        tables = [raw for table, raw in self._tables.raw().items() if table not in self._tables.imported]
        bare = {start_of(key[3]) for raw in tables for key in unproved(standing(raw))}
        return sorted(start for start in bare & history.ended - history.commits.keys() if start <= watermark)

    def _fill(self, starts: list[int]) -> None:
        for number, start in enumerate(starts, 1):
            self._lab.omid.put(OTHER_DATA, row(number).encode(), b"a", b"p", start, b"theirs")

    def _gone(self) -> None:
        for table in sorted(self._theirs):
            self._lab.omid.drop(table)
        self._theirs.clear()
        self._lab.name_oracles([], [])

    _EVENTS: dict[Event, Callable] = {  # type: ignore[type-arg]  # noqa: RUF012
        Event.NOTE: lambda self: self._lab.note_timestamp(),
        Event.ANEW: _anew,
        Event.PASS: _pass,
        Event.LOSE: _lose,
        Event.RESET: _reset,
        Event.KEEP: _keep,
        Event.BACK: _back,
        Event.WHOLE: _whole,
        Event.OTHER: _other,
        Event.COMMITS: lambda self: self._lab.name_oracles(list(Table), [OTHER_COMMITS]),
        Event.NAMED: lambda self: self._lab.name_oracles(list(Table), list(OTHERS)),
        Event.IMPORT: _import,
        Event.GONE: _gone,
    }
