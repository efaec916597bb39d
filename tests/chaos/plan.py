"""What is to happen, from a seed. Pure: the same seed gives the same plan, and nothing here touches a store.

Every step and every seam has a number, so that a plan can be cut down: a seed and the numbers that are left say all.
Where a step names one of several (an open group of clients, a parked run), it *picks* it by a number modulo how many
there are then, and does nothing where there is none: a plan is still a plan whatever is cut from it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import count
from typing import Any, TypeAlias, TypeVar

from tests.chaos import ledger_plan, sql_plan
from tests.chaos.ledger_plan import LedgerStep
from tests.chaos.ledger_scenes import Scenes
from tests.chaos.nemeses import ANY, Kind, Nemesis, Place, drawn
from tests.chaos.oracle_scenes import WORDS as WORDS_OF_ORACLES
from tests.chaos.oracle_scenes import Oracle
from tests.chaos.oracle_scenes import Scenes as ScenesOfOracles
from tests.chaos.sql_plan import SqlStep

T = TypeVar("T")


class Table(StrEnum):
    """The tables of a plan."""

    A = "chaos_a"
    B = "chaos_b"
    C = "chaos_c"
    """It comes and goes; at the beginning there is none."""


class Act(StrEnum):
    """What becomes of a run at a seam, when the steps of the seam are over."""

    ON = "goes on"
    DIE = "dies"
    PART = "dies in it"
    """In a write that consists of pieces: some of them are applied. Elsewhere it dies before it."""
    PARK = "is parked"
    """It stands still, whatever happens, until a step resumes it."""


class Moment(StrEnum):
    """Where at an effect."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Clients:
    """So many transactions of a script that *seed* makes, from begin to end."""

    number: int
    seed: str
    transactions: int
    #: Half of them are small, and end at these crash points alone.
    crashing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Open:
    """A group of clients begins: some transactions that overlap, carried out by :class:`Turn`."""

    number: int
    seed: str
    #: One client alone, that means well.
    calm: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """An open group takes so many turns."""

    number: int
    pick: int
    turns: int


@dataclass(frozen=True, slots=True)
class Watermark:
    """The low watermark passes everything begun so far."""

    number: int


@dataclass(frozen=True, slots=True)
class Phantom:
    """The oracle commits a transaction whose client has rolled everything back (point 14)."""

    number: int


@dataclass(frozen=True, slots=True)
class Land:
    """The commit entry of a client that had no answer lands late: an oracle that lost its lease had sent it (point 13);
    or, *guarded*, only where there is no mark: by the client of an oracle in low-latency mode (11). With *taken* its
    client completes then, though none of its shadow cells came, and takes the entry away again.
    """

    number: int
    pick: int
    guarded: bool
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Compact:
    """The commit table is compacted: nothing tells any more which of its rows were deleted."""

    number: int


class Change(StrEnum):
    """What is done to a table."""

    FLUSH = "is flushed"
    COMPACT = "is compacted"
    MINOR = "has some files compacted"
    SPLIT = "is split"
    MERGE = "is merged"
    MOVE = "has a region moved"
    TRUNCATE = "is truncated"
    ANEW = "is made anew"
    FAMILY = "gets a family"
    DISABLE = "is disabled"
    ENABLE = "is enabled"
    SNAPSHOT = "has an HBase snapshot taken"
    RESTORE = "is restored from it"
    CLONE = "is dropped and cloned from it"
    HIDE = "hides cells"
    SHOW = "no longer hides cells"
    MAKE = "is made"
    COPY = "is made as a copy of another"
    DROP = "is dropped for good"
    PLAIN = "is there as a plain one, of another family"
    COMPACTOR = "gets Omid's own compactor"
    LOAD = "has what its HBase snapshot has loaded in bulk, after it lost everything"
    UNMARK = "has the mark of a family taken off"
    MARK = "has all marks again"
    GARBLE = "has the shadow cells of a torn transaction garbled"
    RENAME = "is under another name"
    NEWER = "has its newer files compacted"
    FREEZE = "takes no writes"
    THAW = "takes writes again"
    BARE = "has the marks of all families taken off"
    UNSNAP = "has its HBase snapshot deleted"
    DEAFEN = "is there while the journal takes no writes"
    HEAR = "is there while the journal takes writes again"
    LOSE = "is there while the journal loses all that it has"


#: After these a table is not what its clients made it.
LOSING = frozenset({Change.TRUNCATE, Change.ANEW, Change.RESTORE, Change.CLONE, Change.MAKE, Change.COPY, Change.DROP})
#: What is done to the table that comes and goes alone.
_COMING = frozenset({Change.MAKE, Change.COPY, Change.DROP})


@dataclass(frozen=True, slots=True)
class Alter:
    """A change of a table; *key* is the number of a row."""

    number: int
    change: Change
    table: Table
    key: int = 0


class Word(StrEnum):
    """What people and readers say."""

    PAUSE = "paused"
    RESUME = "no longer paused"
    VETO = "vetoed"
    CONSENT = "no longer vetoed"
    HOLD = "held"
    KEEP = "held from where a reader reads"
    RELEASE = "released"
    FORGET = "forgotten"
    CONFIRM = "confirmed"
    RESOLVE = "whence a person decides of a transaction"
    DECIDE = "whence a person decides of all that nothing proves"
    MEET = "read by clients of an oracle that has a successor, who mark what they find no proof of"
    ACCEPT = "there while a person goes on without what the journal has lost"
    RESET = "cleaned from 0 again, as all are: the records are reset"


@dataclass(frozen=True, slots=True)
class Say:
    """A word about a table."""

    number: int
    word: Word
    table: Table


@dataclass(frozen=True, slots=True)
class Look:
    """A reader opens a read point."""

    number: int


@dataclass(frozen=True, slots=True)
class Read:
    """A reader that was opened reads all tables: through Omid's client, or, where the low watermark has passed it, with
    *as_of* through the data source too. Omid's client writes the shadow cells that it misses, where it *heals*.
    """

    number: int
    pick: int
    as_of: bool
    heals: bool = False


@dataclass(frozen=True, slots=True)
class Age:
    """What runs have put aside was put there so long ago that it may be swept; not where one is at work."""

    number: int


@dataclass(frozen=True, slots=True)
class Resume:
    """A parked run goes on."""

    number: int
    pick: int


@dataclass(frozen=True, slots=True)
class Seam:
    """At the *nth* effect of a kind, or read (1: the first), before or after it: *steps* happen, then the run acts."""

    number: int
    kind: str
    nth: int
    moment: Moment
    act: Act
    steps: tuple[Step, ...] = ()
    share: float = 0.5
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """A run of a job.

    ``{run}`` in its arguments stands for the id of an earlier one, which *pick* names; ``{time}`` for when an earlier
    one ended; ``{plan}`` for an earlier dry one's, whose arguments it has, and which it is held to. *again*: under the
    id of the last one that acted, as when somebody has Airflow do it again, or two of its databases are at it.
    """

    number: int
    job: str
    arguments: tuple[str, ...]
    pick: int = 0
    seams: tuple[Seam, ...] = ()
    again: bool = False


Happening: TypeAlias = (
    Clients | Open | Turn | Watermark | Phantom | Land | Compact | Alter | Say | Look | Read | Age | Resume | Run
)
Step: TypeAlias = Happening | Nemesis | LedgerStep | SqlStep | Oracle

#: Effects by the step that makes them, whatever their seam: where a cleanup records what it has done, and where a
#: pruning has noted how many entries there are, and has yet to see whether a cell needs one.
RECORD, COUNTED = "record_all", "add_commit_count"
#: Where a run asks HBase for its time, twice each time: a cleanup when it begins, with the low watermark, and before it
#: makes up what to record.
TIMED = "passing_row"
#: Where the first write of a run that keeps to a rate waits for its turn, to a table of the plan or of the ledger.
TURN = "turn"
#: Where a run has written the files of what is to go, and has yet to give them their names.
WRITTEN = "put_aside"
#: Where a history GC tells others which mark it has planned for a table, and where it publishes it.
INTENDED, MARKED = "intend", "apply_mark"
#: The seams at which :mod:`tests.store.deadman` catches what a run does, by how often a plan stops at one.
KINDS = {"connector": 6, "read": 3, "gateway": 5, "hbase": 1, "files": 2, RECORD: 1, COUNTED: 1, TIMED: 1}
#: Of some kinds a run has many effects; the others come one to three times.
_RATES = {"read": 0.2, "gateway": 0.12, RECORD: 3, COUNTED: 3, TIMED: 0.3}
#: The arguments of a run that keeps to a rate, which nothing of a plan would feel.
AT_A_RATE = ("--rate", "1000000", "--write-rate", "1000000")
#: The jobs that can be held to an approved plan.
APPROVABLE = ("orphan_cleanup", "history_gc")
#: Runs of jobs in a plan, or some more.
JOBS = 7


class World(StrEnum):
    """What a plan is about. As many seeds that follow each other have all of them."""

    TORN = "torn transactions"
    """Some have a sibling's shadow cell as the only proof, and that is where it is hard to see. No table loses any."""
    BACK = "tables that come back"
    LATE = "entries that land late"
    COMPACTOR = "Omid's own compactor"
    SWEPT = "a journal that lets go of what is old"
    """At once, where no HBase snapshot is there; a backup's cells come back after that. Or somebody empties it."""
    HISTORY = "history that goes"
    ORACLE = "an oracle that is made anew"
    """Its numbers come a second time. Or its commit table comes back, or another oracle's tables are beside it."""
    LEDGER = "the ledger"
    """Plans of the others have one now and then; here its scenes are most of what happens."""


#: By the seed's remainder. From seed 1 on the longest plan comes last: whoever has little time has begun all. The third
#: and the sixth have a ledger in any case, which takes its time: the third is about one, the sixth is short.
WORLDS = (World.HISTORY, World.TORN, World.LATE, World.LEDGER, World.BACK, World.SWEPT, World.COMPACTOR, World.ORACLE)
#: Rows of a table are so many.
ROWS = 8


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to happen."""

    seed: int
    steps: tuple[Step, ...]
    #: Whether clients may leave torn transactions, whose proof is a sibling's shadow cell alone. Only where no table
    #: loses any: without it nothing in a store tells of the commit.
    torn: bool
    #: Whether there is a ledger too, with clients and repairs of its own.
    ledger: bool = False
    #: Whether tables get Omid's own compactor, for good. Where it is on, nothing deletes families, which it loses rows
    #: by, no table is lost, whose committed cells it would drop before they are healed, and nothing is torn.
    compactor: bool = False
    #: Whether Apache Phoenix has tables too, with clients of its own. The store has to have it.
    phoenix: bool = False
    #: Whether the journal lets go of what it had when a pruning began, where no HBase snapshot is there.
    sweeps: bool = False
    #: Whether the oracle is in low-latency mode, as the configuration says: clients write their entries themselves,
    #: each where there is no mark, so that a mark has to stay.
    low_latency: bool = False

    def numbers(self) -> list[int]:
        """Of all steps and seams, from the outermost on."""
        return [number for step in self.steps for number in _numbers(step)]

    def only(self, kept: Collection[int]) -> Plan:
        """What is left of it with these numbers alone. What was to happen at a seam that goes, goes with it."""
        return replace(self, steps=_only(self.steps, frozenset(kept)))

    def jobs(self) -> int:
        """How many runs of jobs it has."""
        return sum(isinstance(step, Run) for step in self.every())

    def every(self) -> Iterator[Step]:
        """All steps, those at seams after the run that they happen in."""
        yield from _every(self.steps)

    def __str__(self) -> str:
        parts = {"torn transactions": self.torn, "a ledger": self.ledger, "Omid's own compactor": self.compactor}
        parts |= {"Phoenix": self.phoenix, "a journal that lets go": self.sweeps, "low latency": self.low_latency}
        too = "".join(f", {what} too" for what, there in parts.items() if there)
        return "\n".join([f"seed {self.seed}{too}", *_lines(self.steps, "")])


def made(seed: int, jobs: int = JOBS, nemeses: Collection[Kind] = (), parks: int = 0, *, phoenix: bool = False) -> Plan:
    """The plan of a seed, with *jobs* runs of jobs or some more, and some nemeses of these kinds; of its runs at most
    *parks* more stand still before they write, and go on when others have been there. With *phoenix* it is another one,
    in which clients of Apache Phoenix take steps too, and none of the ledger.
    """
    world = WORLDS[seed % len(WORLDS)]
    ledger = (seed % 3 == 0 or world is World.LEDGER) and not phoenix
    maker = _Maker(seed, world, ledger=ledger, phoenix=phoenix)
    # Scenes have nemeses too, which come where they were asked for.
    steps = tuple(step for step in maker.steps(jobs) if not isinstance(step, Nemesis) or step.kind in nemeses)
    numbers = count(1 + max(number for step in steps for number in _numbers(step)))
    # A run that went on while something is forged would repair by it.
    if parks and world is not World.LEDGER:
        steps = _with_parks(steps, parks, random.Random(f"parks/{seed}"), numbers)
    runs = [at for at, step in enumerate(steps) if isinstance(step, Run) and "--execute" in step.arguments]
    found = drawn(seed, numbers, nemeses, len(steps), runs)
    # The last first, and into a run before there is something new before it: all else stays where it is.
    for nemesis, place in sorted(found, key=lambda one: (one[1].step, one[1].seam), reverse=True):
        steps = _with_nemesis(steps, nemesis, place, numbers)
    return Plan(seed, steps, maker.torn, maker.ledger, maker.compactor, phoenix, maker.sweeps, maker.low_latency)


def _with_parks(steps: Sequence[Step], parks: int, chance: random.Random, numbers: Iterator[int]) -> tuple[Step, ...]:
    """Runs that act are parked, the first *parks* of them; after the next run the one that has stood longest goes on,
    mostly.
    """
    found: list[Step] = []
    parked = standing = 0
    for step in steps:
        if not isinstance(step, Run):
            found.append(step)
            continue
        # One of those that stood when this run came.
        resumed = [Resume(next(numbers), 0)] if standing and chance.random() < 0.7 else []
        parks_too = parked < parks and "--execute" in step.arguments
        found += [_parked(step, chance, next(numbers)) if parks_too else step, *resumed]
        parked += parks_too
        standing += parks_too - len(resumed)
    return tuple(found)


def _parked(run: Run, chance: random.Random, number: int) -> Run:
    """Where it has decided, mostly: before its first write of mutations, or before any other change. It does not die
    before.
    """
    kind, nth = chance.choice((("connector", 1), ("connector", 1), (ANY, chance.randint(3, 12))))
    seam = Seam(number, kind, nth, Moment.BEFORE, Act.PARK)
    return replace(run, seams=(seam, *(each for each in run.seams if each.act is Act.ON)))


def _with_nemesis(steps: tuple[Step, ...], nemesis: Nemesis, place: Place, numbers: Iterator[int]) -> tuple[Step, ...]:
    """It comes between two steps, or at a seam of its own of a run."""
    before, here, after = steps[: place.step], steps[place.step], steps[place.step + 1 :]
    if not place.seam:
        return (*before, nemesis, here, *after)
    assert isinstance(here, Run)
    moment = Moment.AFTER if place.after else Moment.BEFORE
    seam = Seam(next(numbers), place.seam, place.nth, moment, Act.ON, (nemesis,))
    return (*before, replace(here, seams=(seam, *here.seams)), *after)


#: What usually follows what.
_CHAIN = {
    "orphan_cleanup": "watermark_collection",
    "watermark_collection": "commit_table_pruning",
    "commit_table_pruning": "history_gc",
    "history_gc": "orphan_cleanup",
    "sideline_restore": "orphan_cleanup",
    "journal_replay": "orphan_cleanup",
}
_JOBS = {
    "orphan_cleanup": 8,
    "watermark_collection": 3,
    "commit_table_pruning": 5,
    "history_gc": 4,
    "sideline_restore": 2,
    "journal_replay": 1,
}
#: What a run of a job has at least.
_ALWAYS = {
    "commit_table_pruning": ("--grace", "0s"),
    "sideline_restore": ("--restore", "{run}"),
    "journal_replay": ("--from", "2020-01-01T00:00:00Z"),
}
_QUIET = {
    Change.FLUSH: 4,
    Change.COMPACT: 3,
    Change.MINOR: 2,
    Change.SPLIT: 2,
    Change.MERGE: 1,
    Change.MOVE: 2,
    Change.FAMILY: 1,
    Change.SNAPSHOT: 3,
    Change.DISABLE: 1,
    Change.HIDE: 1,
    Change.SHOW: 1,
    Change.FREEZE: 1,
    Change.THAW: 1,
}
_LOUD = {
    Change.LOAD: 3,
    Change.TRUNCATE: 2,
    Change.ANEW: 1,
    Change.RESTORE: 4,
    Change.CLONE: 3,
    Change.MAKE: 4,
    Change.COPY: 2,
    Change.DROP: 2,
}
_BY_WORLD = {
    World.TORN: {Change.UNMARK: 1, Change.MARK: 1, Change.GARBLE: 1, Change.RENAME: 1, Change.DISABLE: 2},
    World.BACK: _LOUD,
    World.LATE: _LOUD,
    World.COMPACTOR: {Change.COMPACTOR: 4, Change.COMPACT: 6, Change.NEWER: 3},
    # While an HBase snapshot is there nothing goes from the journal.
    World.SWEPT: {Change.SNAPSHOT: 1, Change.UNSNAP: 4, Change.LOAD: 3, Change.TRUNCATE: 2, Change.RESTORE: 2},
    World.HISTORY: _LOUD,
    World.ORACLE: {},
    World.LEDGER: {},
}
_WORDS = {
    Word.PAUSE: 2,
    Word.VETO: 2,
    Word.HOLD: 3,
    Word.RESUME: 2,
    Word.CONSENT: 2,
    Word.KEEP: 1,
    Word.RELEASE: 2,
    Word.FORGET: 2,
    Word.CONFIRM: 1,
    Word.RESOLVE: 3,
    Word.DECIDE: 1,
    Word.MEET: 1,
    Word.RESET: 1,
}


class _Maker:
    def __init__(self, seed: int, world: World, *, ledger: bool, phoenix: bool) -> None:
        self._seed = seed
        self._world = world
        self.phoenix = phoenix
        self._chance = random.Random(f"chaos/{seed}")
        self._numbers = count()
        self.torn, self.ledger, self.compactor = world is World.TORN, ledger, world is World.COMPACTOR
        self.sweeps = world is World.SWEPT
        self.low_latency = world is World.LATE and seed // len(WORLDS) % 2 == 0
        self._changes = _QUIET | _BY_WORLD[world]
        self._job = "commit_table_pruning"

    def steps(self, jobs: int) -> tuple[Step, ...]:
        # Whoever is to come back must have been there.
        made: list[Step] = [self._clients(25), *self._begin(), self._watermark(), *self._begin(), self._look()]
        # Or there would be none yet, mostly, when something is to be restored.
        kept = 0 if self.sweeps else 0.5
        made += [
            Alter(self._next(), Change.SNAPSHOT, table) for table in (Table.A, Table.B) if self._chance.random() < kept
        ]
        if self.ledger:
            aged = self._world is World.LEDGER
            made += ledger_plan.begun(self._chance, self._next, self._seed, aged=aged)
        if self.phoenix:
            made += sql_plan.begun(self._next, self._seed)
        scenes = [] if self.phoenix else self._scenes()
        runs = 0
        while runs < jobs or scenes:
            if scenes:
                made += scenes.pop(0)()
            made += self._between(self._chance.randint(1, 4) if self._world is not World.LEDGER or not scenes else 1)
            # A run takes seconds, and most of a plan's are its scenes'.
            if not scenes or self._chance.random() < (0.1 if self._world is World.LEDGER else 0.25):
                made.append(self._run(depth=0))
            if self._chance.random() < 0.3:
                made.append(Resume(self._next(), self._chance.randrange(100)))
            runs = sum(isinstance(step, Run) for step in _every(made))
        return tuple(made)

    # -- scenes: what has to meet in an order that hardly comes by itself, each time a little different

    def _scenes(self) -> list[Callable[[], list[Step]]]:
        chance = self._chance
        match self._world:
            case World.TORN:
                unseen = [Change.DISABLE, Change.UNMARK, Change.GARBLE]
                chance.shuffle(unseen)
                # After the last there is a table that nobody has confirmed.
                return [self._late, *(partial(self._unseen, change) for change in (*unseen, Change.RENAME))]
            case World.BACK:
                # No collection is to have told the bound before the first.
                scenes = [self._as_it_was, self._back_at_the_last_moment, self._replayed]
                chance.shuffle(scenes)
                return [self._under_a_new_name, *scenes]
            case World.COMPACTOR:
                return [self._healed_before_a_compaction, self._refused, self._hidden]
            case World.SWEPT:
                scenes = [self._waiting_for_the_journal, self._kept_for_a_snapshot, self._let_go_of, self._lost]
                chance.shuffle(scenes)
                return scenes
            case World.HISTORY:
                scenes = [self._history_of_another, self._held_at_the_last_moment, self._back_while_it_goes]
                chance.shuffle(scenes)
                return [*scenes, self._put_back_into_another, self._under_one_name]
            case World.LEDGER:
                paced = (AT_A_RATE, TURN)
                return Scenes(chance, self._next, self._seed, self._run_of, self._at, self._dying, paced).all()
            case World.ORACLE:
                return self._of_oracles().all()
            case _:
                scenes = [
                    self._late,
                    self._hidden,
                    self._overtaken,
                    self._unjournaled,
                    self._bare,
                    self._paused_while_it_waits,
                ]
                chance.shuffle(scenes)
                return scenes

    def _of_oracles(self) -> ScenesOfOracles:
        tables = (Table.A, Table.B)
        return ScenesOfOracles(
            self._chance,
            self._next,
            self._clients,
            self._watermark,
            self._pruned,
            over=lambda: self._all_end(4),
            emptied=lambda: [Alter(self._next(), Change.TRUNCATE, table) for table in tables],
            run=self._job_of,
            at=self._at,
            parked=self._parking,
            resumed=lambda: Resume(self._next(), -1),
            decided=lambda: Say(self._next(), Word.DECIDE, Table.A),
            same_oracle=lambda: Say(self._next(), Word.RESET, Table.A),
        )

    def _cleanup(self, *seams: Seam, full: bool = False) -> Run:
        arguments = ("--full", "--execute") if full else ("--execute",)
        return Run(self._next(), "orphan_cleanup", arguments, 0, seams)

    def _early_part(self) -> Run:
        """A cleanup of what began before the collection that was last: of an oracle that counts, times are known by
        those.
        """
        return Run(self._next(), "orphan_cleanup", ("--to", "{time}", "--execute"), -1)

    def _job_of(self, job: str, *seams: Seam, pick: int = 0, execute: bool = True) -> Run:
        return Run(self._next(), job, (*_ALWAYS.get(job, ()), *(["--execute"] if execute else [])), pick, seams)

    def _at(self, kind: str, nth: int, *steps: Step) -> Seam:
        return Seam(self._next(), kind, nth, Moment.BEFORE, Act.ON, steps)

    def _parking(self, kind: str, nth: int) -> Seam:
        return Seam(self._next(), kind, nth, Moment.BEFORE, Act.PARK)

    def _in_turn(self, *steps: Step) -> Seam:
        """While the first write of a run that keeps to a rate waits for its turn."""
        return self._at(TURN, 1, *steps)

    def _run_of(self, job: str, *arguments: str, seams: tuple[Seam, ...] = ()) -> Run:
        return Run(self._next(), job, arguments, 0, seams)

    def _dying(self, kind: str, nth: int) -> Seam:
        return Seam(self._next(), kind, nth, Moment.AFTER, Act.DIE)

    def _unseen(self, change: Change) -> list[Step]:
        """The only proof is where a cleanup does not see it, or cannot read it."""
        # A client proves its cells table by table, so that the half that is proved is in the first, mostly.
        table = self._of({Table.A: 4, Table.B: 1})
        steps: list[Step] = [self._clients(20, (10,)), self._watermark(), Compact(self._next())]
        if change is Change.RENAME:
            steps += self._all_end(6)  # or somebody would write to what is not there
            steps += [self._job_of("watermark_collection")]  # by which a table that comes later is told from others
        if change is Change.GARBLE:
            steps += [Alter(self._next(), change, table, key) for key in self._chance.sample(range(1, ROWS), 2)]
        else:
            steps += [Alter(self._next(), change, table, self._chance.randrange(1, ROWS))]
        steps += [self._cleanup(full=self._chance.random() < 0.3)]
        if change is Change.UNMARK:
            steps += [Alter(self._next(), Change.MARK, table)]
        return steps

    def _snapshots(self) -> list[Step]:
        """Some are under way when HBase snapshots are taken, and end well afterwards."""
        steps: list[Step] = []
        for _ in range(5):
            steps += [self._open(calm=True), Turn(self._next(), -1, self._chance.randint(0, 2))]
        steps += [Alter(self._next(), Change.SNAPSHOT, table) for table in (Table.A, Table.B)]
        return [*steps, *self._all_end(7), self._watermark()]

    def _all_end(self, groups: int) -> list[Step]:
        """Of those that are in the middle of something the last so many groups go on to their ends."""
        return [Turn(self._next(), -1, 40) for _ in range(groups)]

    def _under_a_new_name(self) -> list[Step]:
        """What an HBase snapshot has comes back, under the name of a table that was cleaned less far, and the tables
        themselves are gone.
        """
        away = self._of({Change.TRUNCATE: 1, Change.ANEW: 1})
        source = self._chance.choice((0, ROWS - 1))
        return [
            *self._all_end(3),
            Alter(self._next(), Change.MAKE, Table.C),
            self._clients(6),
            self._watermark(),
            self._run_of("orphan_cleanup", "--table", Table.C, "--execute"),
            Alter(self._next(), Change.DROP, Table.C),
            *self._snapshots(),
            self._cleanup(),
            self._job_of("commit_table_pruning"),
            *(Alter(self._next(), away, table) for table in (Table.A, Table.B)),
            Alter(self._next(), Change.COPY, Table.C, source),
            Say(self._next(), Word.CONFIRM, Table.C),
            Compact(self._next()),
            self._cleanup(),
            Say(self._next(), Word.DECIDE, Table.A),
            Alter(self._next(), Change.DROP, Table.C),
        ]

    def _as_it_was(self) -> list[Step]:
        """Tables come back as they were when somebody was under way, who has committed since; readers meet what is
        there, what was cleaned of a table is forgotten, an early part of it is cleaned first, the records are reset.
        """
        back = self._of({Change.RESTORE: 2, Change.CLONE: 1})
        tables = (Table.A, Table.B)
        in_parts = self._chance.random() < 0.5
        met, forgotten = self._chance.sample(tables, 2)
        return [
            *([self._job_of("watermark_collection")] if in_parts else []),
            *self._snapshots(),
            self._cleanup(),
            *(Alter(self._next(), back, table) for table in tables),
            Compact(self._next()),
            Say(self._next(), Word.MEET, met),
            *([Say(self._next(), Word.RESET, met)] if self._chance.random() < 0.4 else []),
            Say(self._next(), Word.FORGET, forgotten),
            *([self._early_part()] if in_parts else []),
            self._cleanup(),
            Say(self._next(), Word.DECIDE, Table.A),
        ]

    def _back_at_the_last_moment(self) -> list[Step]:
        """A table comes back when a cleanup is about to record it; another when a pruning knows how far all are."""
        tables = self._chance.sample((Table.A, Table.B), 2)
        back = self._of({Change.RESTORE: 1, Change.CLONE: 1})
        first, second = (Alter(self._next(), back, table) for table in tables)
        return [
            Alter(self._next(), Change.MAKE, Table.C),
            self._clients(20, (4,)),
            *(Alter(self._next(), Change.SNAPSHOT, table) for table in tables),
            self._watermark(),
            self._cleanup(self._at(*self._of({(TIMED, 5): 4, (RECORD, 1): 1}), first)),
            self._cleanup(),
            self._job_of("watermark_collection"),
            self._job_of("commit_table_pruning", self._at(COUNTED, 1, second)),
        ]

    def _replayed(self) -> list[Step]:
        """A table comes back, and its commit entries from the journal; readers need no cleanup then."""
        table = self._chance.choice((Table.A, Table.B))
        return [
            self._clients(14, (4,)),
            Alter(self._next(), Change.SNAPSHOT, table),
            *self._pruned(),
            Alter(self._next(), Change.RESTORE, table),
            self._job_of("journal_replay"),
            Look(self._next()),
            Read(self._next(), -1, as_of=False),
            self._cleanup(),
        ]

    def _overtaken(self) -> list[Step]:
        """A cleanup stands still before it writes; another takes its tables over, and dies; the first goes on."""
        ends, nth = self._of({((0, 1, 4), 1): 2, ((4, 5), 1): 2, ((0, 1, 4), 2): 1})
        parked = self._parking("connector", nth)
        dies = Seam(self._next(), "connector", 1, Moment.BEFORE, Act.DIE)
        return [
            self._clients(16, ends),
            self._watermark(),
            self._cleanup(parked),
            self._cleanup(dies),
            Resume(self._next(), -1),
        ]

    def _paused_while_it_waits(self) -> list[Step]:
        """Somebody pauses the tables while a cleanup that keeps to a rate has written nothing to them yet, as it waits
        for its turn.
        """
        tables = (Table.A, Table.B)
        pauses = [Say(self._next(), Word.PAUSE, table) for table in tables]
        return [
            self._clients(16, self._of({(4, 5): 2, (0, 4): 1})),
            self._watermark(),
            self._run_of("orphan_cleanup", *AT_A_RATE, "--execute", seams=(self._in_turn(*pauses),)),
            *(Say(self._next(), Word.RESUME, table) for table in tables),
        ]

    def _bare(self) -> list[Step]:
        """A table has shadow cells, cells without, and no mark; it is disabled too, or not."""
        table = self._chance.choice((Table.A, Table.B))
        away = self._chance.random() < 0.5
        return [
            self._clients(14, (4,)),
            self._watermark(),
            Alter(self._next(), Change.BARE, table),
            *([Alter(self._next(), Change.DISABLE, table)] if away else []),
            self._cleanup(),
            self._job_of("watermark_collection"),
            self._job_of("commit_table_pruning"),
            *([Alter(self._next(), Change.ENABLE, table)] if away else []),
            Alter(self._next(), Change.MARK, table),
        ]

    def _healed_before_a_compaction(self) -> list[Step]:
        """What was healed, by a reader or by a cleanup, lies in a newer file than what was there, and the newer files
        are compacted alone.
        """
        # The other has two regions, and in each fewer files to compact.
        table = self._of({Table.B: 3, Table.A: 1})
        return [
            self._clients(12, (4,)),
            Look(self._next()),
            self._clients(12, (4,)),
            Alter(self._next(), Change.FLUSH, table),
            Alter(self._next(), Change.COMPACT, table),
            Read(self._next(), -1, as_of=False, heals=True),
            *self._pruned(),
            Alter(self._next(), Change.FLUSH, table),
            self._clients(3),
            Alter(self._next(), Change.COMPACTOR, table),
            Alter(self._next(), Change.NEWER, table),
            Alter(self._next(), Change.COMPACT, table),
        ]

    def _pruned(self) -> list[Step]:
        """Everything that is over is healed, and its entries go to the journal."""
        return [
            self._watermark(),
            self._cleanup(),
            self._job_of("watermark_collection"),
            self._job_of("commit_table_pruning"),
        ]

    def _kept_for_a_snapshot(self) -> list[Step]:
        """The journal has to keep what an HBase snapshot may need, of a table that is gone too, or whose name a plain
        one has by now, and it comes back.
        """
        table = self._chance.choice((Table.A, Table.B))
        gone, plain = self._of({(False, False): 2, (True, False): 1, (True, True): 2})
        return [
            *(self._all_end(3) if gone else []),
            *([Alter(self._next(), Change.MAKE, Table.C)] if gone else []),
            self._clients(14, (4,)),
            Alter(self._next(), Change.SNAPSHOT, Table.C if gone else table),
            *self._pruned(),
            *([Alter(self._next(), Change.DROP, Table.C)] if gone else []),
            *([Alter(self._next(), Change.PLAIN, Table.C)] if plain else []),
            self._job_of("commit_table_pruning", execute=False),
            self._job_of("commit_table_pruning"),
            *([Alter(self._next(), Change.DROP, Table.C)] if plain else []),
            *([] if gone else [Alter(self._next(), Change.RESTORE, table), self._cleanup()]),
            Alter(self._next(), Change.UNSNAP, Table.C if gone else table),
        ]

    def _waiting_for_the_journal(self) -> list[Step]:
        """A table that came back has not been cleaned since: what it needs stays, though its HBase snapshot is gone."""
        table = self._chance.choice((Table.A, Table.B))
        return [
            self._clients(14, (4,)),
            Alter(self._next(), Change.SNAPSHOT, table),
            *self._pruned(),
            Alter(self._next(), Change.RESTORE, table),
            Alter(self._next(), Change.UNSNAP, table),
            self._job_of("commit_table_pruning", execute=False),
            self._job_of("commit_table_pruning"),
            self._cleanup(),
        ]

    def _let_go_of(self) -> list[Step]:
        """What a backup has comes back after the journal has let go of what proved it: a person decides."""
        tables = self._chance.choice(((Table.A,), (Table.A, Table.B)))
        return [
            *self._all_end(3),
            self._clients(14, (4,)),
            *(Alter(self._next(), Change.SNAPSHOT, table) for table in (Table.A, Table.B)),
            *self._pruned(),
            *(Alter(self._next(), Change.UNSNAP, table) for table in (Table.A, Table.B)),
            self._job_of("commit_table_pruning"),
            *(Alter(self._next(), Change.TRUNCATE, table) for table in tables),
            *(Alter(self._next(), Change.LOAD, table) for table in tables),
            self._cleanup(),
            Say(self._next(), Word.DECIDE, Table.A),
        ]

    def _lost(self) -> list[Step]:
        """A table comes back, and somebody empties the journal, before a cleanup or when it is at work."""
        table = self._chance.choice((Table.A, Table.B))
        lose = Alter(self._next(), Change.LOSE, table)
        at_work = self._chance.random() < 0.5
        return [
            *self._all_end(3),
            self._clients(14, (4,)),
            Alter(self._next(), Change.SNAPSHOT, table),
            *self._pruned(),
            *([] if at_work else [lose]),
            Alter(self._next(), Change.RESTORE, table),
            self._cleanup(*([self._at("read", self._chance.randint(2, 12), lose)] if at_work else [])),
            Say(self._next(), Word.ACCEPT, table),
            self._cleanup(),
            Say(self._next(), Word.DECIDE, Table.A),
            Alter(self._next(), Change.UNSNAP, table),
        ]

    def _old(self) -> list[Step]:
        """Cells have versions that nobody needs any more: of an oracle that counts, times are known by collections."""
        return [self._clients(20), self._watermark(), self._cleanup(), self._job_of("watermark_collection")]

    def _history_of_another(self) -> list[Step]:
        """A table comes back, or another has its name, while a run that removes history stands somewhere."""
        table = self._chance.choice((Table.A, Table.B))
        back = self._of({Change.RESTORE: 3, Change.CLONE: 1})
        return [
            Alter(self._next(), Change.SNAPSHOT, table),
            *self._old(),
            self._job_of("history_gc", self._somewhere(Alter(self._next(), back, table))),
        ]

    def _held_at_the_last_moment(self) -> list[Step]:
        """Somebody holds a table from where a reader reads when a run has decided what goes, or when it has said so."""
        said = [Say(self._next(), Word.KEEP, table) for table in (Table.A, Table.B)]
        return [
            Look(self._next()),
            *self._old(),
            self._job_of("history_gc", self._at(self._of({INTENDED: 3, MARKED: 1}), 1, *said)),
            Read(self._next(), -1, as_of=True),
            *(Say(self._next(), Word.RELEASE, table) for table in (Table.A, Table.B)),
        ]

    def _back_while_it_goes(self) -> list[Step]:
        """What a run has removed is put back while another removes what was over it; the clock is off, and a table
        hides cells, when others would remove some.
        """
        # Three runs after it can be restored from.
        restore = self._job_of("sideline_restore", pick=-3)
        off = self._chance.choice((-1, 1)) * 86_400
        table = self._chance.choice((Table.A, Table.B))
        return [
            *self._old(),
            self._job_of("history_gc"),
            *self._old(),
            self._job_of("history_gc", self._at("connector", self._chance.choice((1, 1, 2, 3)), restore)),
            *self._old(),
            Nemesis(self._next(), Kind.CLOCK, 1, off),
            self._job_of("history_gc"),
            Alter(self._next(), Change.HIDE, table, self._chance.randrange(1, ROWS)),
            self._job_of("history_gc"),
            Alter(self._next(), Change.SHOW, table),
        ]

    def _under_one_name(self) -> list[Step]:
        """A cleanup has another under its name while it puts aside, or after it died of that. What they put aside is
        old when it is put back, while another run sweeps; a third under that name then puts more there.
        """
        act = self._of({Act.DIE: 1, Act.PARK: 1})
        written = Seam(self._next(), WRITTEN, 1, Moment.AFTER, act)
        restore = self._job_of(
            "sideline_restore", self._at("connector", 1, self._job_of("watermark_collection")), pick=-1
        )
        return [
            self._clients(16, (0, 1)),
            self._watermark(),
            self._cleanup(written),
            replace(self._cleanup(), again=True),
            Resume(self._next(), -1),
            Age(self._next()),
            restore,
            Age(self._next()),  # its folder was written to by who read it
            self._clients(8, (0, 1)),
            self._watermark(),
            replace(self._cleanup(), again=True),
        ]

    def _put_back_into_another(self) -> list[Step]:
        """A table comes back while what went of the one before is put back."""
        tables = (Table.A, Table.B)
        back = [Alter(self._next(), Change.RESTORE, table) for table in tables]
        return [
            *self._old(),
            self._job_of("history_gc"),
            *(Alter(self._next(), Change.SNAPSHOT, table) for table in tables),
            self._job_of("sideline_restore", self._somewhere(*back), pick=-1),
        ]

    def _somewhere(self, *steps: Step) -> Seam:
        """Before a run's first write of mutations, mostly, or before any change between what it decided and its end."""
        kind, nth = self._chance.choice((("connector", 1), ("connector", 1), (ANY, self._chance.randint(4, 14))))
        return self._at(kind, nth, *steps)

    def _late(self) -> list[Step]:
        """Entries land before a cleanup, between what it decides and its first write, or both."""
        before = [self._land() for _ in range(self._chance.randint(0, 2))]
        between = [self._land() for _ in range(self._chance.randint(2, 4))]
        return [
            self._clients(12, (1,)),
            self._watermark(),
            *before,
            self._cleanup(self._at("connector", 1, *between)),
            Say(self._next(), Word.DECIDE, Table.A),
        ]

    def _refused(self) -> list[Step]:
        """HBase refuses what a cleanup writes from somewhere on."""
        tables = (Table.A, Table.B)
        frozen = [Alter(self._next(), Change.FREEZE, table) for table in tables]
        # Where all are orphans their marks come first, and then what goes.
        ends, nth = self._of({((0, 1), 2): 3, ((4, 5), 1): 1, ((0, 1, 4), 3): 1})
        return [
            self._clients(16, ends),
            self._watermark(),
            self._cleanup(self._at("connector", nth, *frozen)),
            *(Alter(self._next(), Change.THAW, table) for table in tables),
            self._cleanup(),
        ]

    def _unjournaled(self) -> list[Step]:
        """The journal refuses what a pruning writes: all of it, or from where it has begun to act."""
        deaf = Alter(self._next(), Change.DEAFEN, Table.A)
        begun = self._chance.random() < 0.7
        return [
            self._clients(12, (4,)),
            self._watermark(),
            self._cleanup(),
            self._job_of("watermark_collection"),
            *([] if begun else [deaf]),
            self._job_of("commit_table_pruning", *([self._at("connector", 1, deaf)] if begun else [])),
            Alter(self._next(), Change.HEAR, Table.A),
            self._job_of("commit_table_pruning"),
        ]

    def _hidden(self) -> list[Step]:
        """A cleanup meets a table that hides cells."""
        table = self._chance.choice((Table.A, Table.B))
        return [
            self._clients(8, (0, 1, 4)),
            self._watermark(),
            Alter(self._next(), Change.HIDE, table, self._chance.randrange(1, ROWS)),
            self._cleanup(),
            Alter(self._next(), Change.SHOW, table),
        ]

    # -- steps

    def _begin(self) -> list[Step]:
        """Omid's own compactor loses what a client wrote into one file and proved in another: there nobody is suspended
        in the middle.
        """
        return [] if self.compactor else [self._open()]

    def _next(self) -> int:
        return next(self._numbers)

    def _between(self, number: int) -> list[Step]:
        return [self._step() for _ in range(number)]

    def _step(self) -> Step:
        makers = {
            self._some_clients: 4,
            **({} if self.compactor else {self._open: 3, self._turn: 6}),
            self._watermark: 4,
            self._phantom: 1,
            # Omid's own compactor drops what has no proof yet.
            **({} if self.compactor else {self._land: 2}),
            self._alter: 5,
            self._say: 2,
            self._look: 2,
            self._read: 3,
            self._resume: 1,
            **({self._transfer: 12} if self.ledger else {}),
            **({self._sql: 20} if self.phoenix else {}),
        }
        return self._of(makers)()

    def _of(self, weighed: Mapping[T, int]) -> T:
        (chosen,) = self._chance.choices(list(weighed), list(weighed.values()))
        return chosen

    def _clients(self, transactions: int, crashing: tuple[int, ...] = ()) -> Clients:
        number = self._next()
        return Clients(number, f"{self._seed}.{number}", transactions, crashing)

    def _some_clients(self) -> Clients:
        return self._clients(self._chance.randint(3, 12))

    def _open(self, *, calm: bool = False) -> Open:
        number = self._next()
        return Open(number, f"{self._seed}.{number}", calm)

    def _turn(self) -> Turn:
        return Turn(self._next(), self._chance.randrange(100), self._chance.choice((1, 1, 2, 3, 9)))

    def _watermark(self) -> Watermark:
        return Watermark(self._next())

    def _phantom(self) -> Phantom:
        return Phantom(self._next())

    def _land(self) -> Land:
        # Not where the commit table is compacted: then nothing tells of it.
        taken = self._world is World.LATE and self._chance.random() < 0.5
        guarded = self._chance.random() < 0.3 or self.low_latency
        return Land(self._next(), self._chance.randrange(100), guarded, taken)

    def _table(self) -> Table:
        return self._of({Table.A: 3, Table.B: 3, Table.C: 1})

    def _alter(self) -> Alter:
        change = self._of(self._changes)
        table = Table.C if change in _COMING else self._table()
        return Alter(self._next(), change, table, self._chance.randrange(1, ROWS))

    def _say(self) -> Say:
        return Say(self._next(), self._of(_WORDS), self._table())

    def _look(self) -> Look:
        return Look(self._next())

    def _read(self) -> Read:
        chance = self._chance
        return Read(self._next(), chance.randrange(100), chance.random() < 0.3, heals=chance.random() < 0.3)

    def _resume(self) -> Resume:
        return Resume(self._next(), self._chance.randrange(100))

    def _transfer(self) -> LedgerStep:
        return ledger_plan.step(self._chance, self._next(), self._seed)

    def _sql(self) -> SqlStep:
        return sql_plan.step(self._chance, self._next(), self._seed)

    def _next_job(self) -> str:
        chance = self._chance
        if self.ledger and chance.random() < 0.4:
            return ledger_plan.REPAIR
        self._job = _CHAIN[self._job] if chance.random() < 0.65 else self._of(_JOBS)
        return self._job

    def _run(self, depth: int) -> Run:
        chance = self._chance
        job = self._next_job()
        number = self._next()
        arguments = tuple(self._arguments(job))
        kinds = ledger_plan.KINDS if job == ledger_plan.REPAIR else KINDS
        seams = tuple(self._seam(depth, kinds) for _ in range(chance.choice((0, 1, 1, 2, 3))))
        # Whatever comes after a death, or before a run that is parked goes on, is not reached: one of these is enough.
        last = next((i for i, seam in enumerate(seams) if seam.act in (Act.DIE, Act.PART)), len(seams))
        return Run(number, job, arguments, chance.randrange(100), seams[: last + 1])

    def _arguments(self, job: str) -> Iterator[str]:
        chance = self._chance
        if job in APPROVABLE and chance.random() < 0.15:
            yield from ("--approved", "{plan}")
            return
        if job in APPROVABLE and chance.random() < 0.25:
            yield from ("--table", self._table())
        if job == "orphan_cleanup" and chance.random() < 0.3:
            yield "--full"
        if job in APPROVABLE and chance.random() < 0.15:
            yield from ("--to", "{time}")
        if job == "history_gc" and chance.random() < 0.2:
            yield "--compact"
        yield from _ALWAYS.get(job, ())
        if job == ledger_plan.REPAIR:
            yield from ledger_plan.arguments(chance)
        if chance.random() < (0.8 if job in APPROVABLE else 0.9):
            yield "--execute"

    def _seam(self, depth: int, kinds: Mapping[str, int]) -> Seam:
        chance = self._chance
        number = self._next()
        act = self._of({Act.ON: 4, Act.DIE: 2, Act.PART: 2, Act.PARK: 2})
        steps = self._between(chance.choice((0, 1, 2, 4)))
        if depth == 0 and act is Act.ON and chance.random() < 0.4:
            steps.append(self._run(depth + 1))
        kind = self._of(kinds)
        rate = ledger_plan.RATE if kinds is ledger_plan.KINDS else _RATES.get(kind, 0.6)
        nth = 1 + min(int(chance.expovariate(rate)), 30)
        moment = self._of({Moment.BEFORE: 3, Moment.AFTER: 1}) if act is not Act.PART else Moment.BEFORE
        return Seam(
            number, kind, nth, moment, act, tuple(steps), round(chance.uniform(0.1, 0.9), 2), chance.getrandbits(32)
        )


def _every(steps: Sequence[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        if isinstance(step, Run):
            for seam in step.seams:
                yield from _every(seam.steps)


def _numbers(step: Step) -> Iterator[int]:
    yield step.number
    if isinstance(step, Run):
        for seam in step.seams:
            yield seam.number
            for inner in seam.steps:
                yield from _numbers(inner)


def _only(steps: Sequence[Step], kept: frozenset[int]) -> tuple[Step, ...]:
    return tuple(
        replace(
            step,
            seams=tuple(replace(seam, steps=_only(seam.steps, kept)) for seam in step.seams if seam.number in kept),
        )
        if isinstance(step, Run)
        else step
        for step in steps
        if step.number in kept
    )


def _lines(steps: Sequence[Step], indent: str) -> Iterator[str]:
    for step in steps:
        yield f"{indent}{step.number}: {told(step)}"
        if isinstance(step, Run):
            for seam in step.seams:
                piece = f", {seam.share} of it by {seam.seed}" if seam.act is Act.PART else ""
                yield f"{indent}  {seam.number}: {seam.moment} {seam.kind} {seam.nth} it {seam.act}{piece}"
                yield from _lines(seam.steps, indent + "    ")


def told(step: Step) -> str:
    """A step in a few words."""
    return _WORDS_OF[type(step)](step)


_WORDS_OF: dict[type, Callable[[Any], str]] = {
    Clients: lambda step: (
        f"{step.transactions} transactions by {step.seed}"
        f"{f', half of which end at {step.crashing}' if step.crashing else ''}"
    ),
    Open: lambda step: f"{'a calm client' if step.calm else 'clients'} by {step.seed} begin{'s' * step.calm}",
    Turn: lambda step: f"clients {step.pick} take {step.turns} turns",
    Watermark: lambda _: "the low watermark moves on",
    Phantom: lambda _: "the oracle commits what its client rolled back",
    Land: lambda step: (
        f"the entry of the dead client {step.pick} lands late{', where no mark is' if step.guarded else ''}"
        f"{', and is taken away' * step.taken}"
    ),
    Compact: lambda _: "the commit table is compacted",
    Alter: lambda step: f"{step.table} {step.change} (row {step.key})",
    Say: lambda step: f"{step.table} is {step.word}",
    Look: lambda _: "a reader begins",
    Read: lambda step: f"reader {step.pick} reads{', as of it too' * step.as_of}{', and heals' * step.heals}",
    Nemesis: str,
    Resume: lambda step: f"parked run {step.pick} goes on",
    Age: lambda _: "what was put aside is old",
    Run: lambda step: " ".join((step.job, *step.arguments)) + ", under the name of the last" * step.again,
    **WORDS_OF_ORACLES,
    **ledger_plan.WORDS,
    **sql_plan.WORDS,
}
