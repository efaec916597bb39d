"""What is to happen, from a seed. Pure: the same seed gives the same plan, and nothing here touches a store."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import inf

from tests.chaos import ledger_plan, scenes, sql_plan, worlds
from tests.chaos.ledger_plan import LedgerStep
from tests.chaos.maker import ALWAYS, Maker
from tests.chaos.nemeses import ANY, Kind, Nemesis, Place, drawn
from tests.chaos.sql_plan import SqlStep
from tests.chaos.steps import (
    APPROVABLE,
    COMING,
    COUNTED,
    RECORD,
    ROWS,
    TABLES,
    TIMED,
    Act,
    Alter,
    Change,
    Clients,
    Look,
    Moment,
    Phantom,
    Read,
    Resume,
    Run,
    Say,
    Seam,
    Settle,
    Step,
    Table,
    Turn,
    Word,
    every,
    lines,
    numbers_in,
    only,
)
from tests.chaos.worlds import World

#: The seams at which :mod:`tests.store.deadman` catches what a run does, by how often a plan stops at one.
KINDS = {"connector": 6, "read": 3, "gateway": 5, "hbase": 1, "files": 2, RECORD: 1, COUNTED: 1, TIMED: 1}
#: Of some kinds a run has many effects; the others come one to three times.
_RATES = {"read": 0.2, "gateway": 0.12, RECORD: 3, COUNTED: 3, TIMED: 0.3}
#: Runs of jobs in a plan, or some more.
JOBS = 7


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
    #: by, no table is lost any more, whose committed cells it would drop before they are healed, and nothing is torn.
    compactor: bool = False
    #: Whether Apache Phoenix has tables too, with clients of its own. The store has to have it.
    phoenix: bool = False
    #: Whether the journal lets go of what it had when a pruning began, where no HBase snapshot is there.
    sweeps: bool = False
    #: Whether the oracle is in low-latency mode, as the configuration says: clients write their entries themselves,
    #: each where there is no mark, so that a mark has to stay.
    low_latency: bool = False
    #: The numbers of the steps of each scene of its world; between those is what comes by chance.
    scenes: tuple[frozenset[int], ...] = ()
    #: From this number on steps and seams were drawn into the others: nemeses, and where runs stand still. Nothing was,
    #: unless it is said.
    drawn_from: float = inf

    def numbers(self) -> list[int]:
        """Of all steps and seams, from the outermost on."""
        return [number for step in self.steps for number in numbers_in(step)]

    def only(self, kept: Collection[int]) -> Plan:
        """What is left of it with these numbers alone. What was to happen at a seam that goes, goes with it."""
        return replace(self, steps=only(self.steps, frozenset(kept)))

    def with_scenes(self, kept: Collection[int]) -> Plan:
        """What is left of it where of its scenes only these are played, the first being 0, and where nothing else
        happens once one has begun: nothing either that was drawn into it, which may keep a scene from being one.
        """
        begun = next((at for at, step in enumerate(self.steps) if self.scene_of(step) is not None), len(self.steps))
        after = (step for step in self.steps[begun:] if self.scene_of(step) in kept)
        left = replace(self, steps=(*self.steps[:begun], *after))
        return left.only([number for number in left.numbers() if number < self.drawn_from])

    def scene_of(self, step: Step) -> int | None:
        """Which of its scenes a step is of; None: of none."""
        return next((at for at, scene in enumerate(self.scenes) if step.number in scene), None)

    def jobs(self) -> int:
        """How many runs of jobs it has."""
        return sum(isinstance(step, Run) for step in self.every())

    def every(self) -> Iterator[Step]:
        """All steps, those at seams after the run that they happen in."""
        yield from every(self.steps)

    def __str__(self) -> str:
        parts = {"torn transactions": self.torn, "a ledger": self.ledger, "Omid's own compactor": self.compactor}
        parts |= {"Phoenix": self.phoenix, "a journal that lets go": self.sweeps, "low latency": self.low_latency}
        too = "".join(f", {what} too" for what, there in parts.items() if there)
        return "\n".join([f"seed {self.seed}{too}", *lines(self.steps, "")])


def made(seed: int, jobs: int = JOBS, nemeses: Collection[Kind] = (), parks: int = 0, *, phoenix: bool = False) -> Plan:
    """The plan of a seed, with *jobs* runs of jobs or some more, and some nemeses of these kinds; of its runs at most
    *parks* more stand still before they write, and go on when others have been there. With *phoenix* it is another one,
    in which clients of Apache Phoenix take steps too, and none of the ledger.
    """
    world = worlds.of(seed)
    ledger = (seed % 3 == 0 or world is World.LEDGER) and not phoenix
    maker = _Drawer(seed, world, ledger=ledger, phoenix=phoenix)
    # Scenes have nemeses too, which come where they were asked for.
    steps = tuple(step for step in maker.steps(jobs) if not isinstance(step, Nemesis) or step.kind in nemeses)
    drawn_from = 1 + max(number for step in steps for number in numbers_in(step))
    numbers = count(drawn_from)
    # A run that went on while something is forged would repair by it.
    if parks and world is not World.LEDGER:
        steps = _with_parks(steps, parks, random.Random(f"parks/{seed}"), numbers)
    in_peace = frozenset().union(*maker.scenes) if maker.in_peace else ()
    places = [at for at, step in enumerate(steps) if at and step.number not in in_peace]
    runs = [at for at in places if isinstance(step := steps[at], Run) and "--execute" in step.arguments]
    found = drawn(seed, numbers, nemeses, places, runs)
    # The last first, and into a run before there is something new before it: all else stays where it is.
    for nemesis, place in sorted(found, key=lambda one: (one[1].step, one[1].seam), reverse=True):
        steps = _with_nemesis(steps, nemesis, place, numbers)
    return Plan(
        seed,
        steps,
        maker.torn,
        maker.ledger,
        maker.compactor,
        phoenix,
        maker.sweeps,
        maker.low_latency,
        tuple(maker.scenes),
        drawn_from,
    )


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


class _Drawer(Maker):
    """Draws what meets by chance, between the scenes of a world."""

    def __init__(self, seed: int, world: World, *, ledger: bool, phoenix: bool) -> None:
        super().__init__(seed, world)
        self.phoenix = phoenix
        self.torn, self.ledger, self.compactor = world is World.TORN, ledger, world is World.COMPACTOR
        self.sweeps = world is World.SWEPT
        self._changes = _QUIET | _BY_WORLD[world]
        self._job = "commit_table_pruning"
        #: Of each scene the numbers of its steps.
        self.scenes: list[frozenset[int]] = []

    def steps(self, jobs: int) -> tuple[Step, ...]:
        # Whoever is to come back must have been there.
        made: list[Step] = [self.clients(25), *self._begin(), self.watermark(), *self._begin(), self._look()]
        # Or there would be none yet, mostly, when something is to be restored.
        kept = 0 if self.sweeps else 0.5
        made += [Alter(self.next(), Change.SNAPSHOT, table) for table in TABLES if self.chance.random() < kept]
        if self.ledger:
            aged = self.world is World.LEDGER
            made += ledger_plan.begun(self.chance, self.next, self.seed, aged=aged)
        if self.phoenix:
            made += sql_plan.begun(self.next, self.seed)
        left = [] if self.phoenix else scenes.of_world(self, ledger=self.ledger)
        runs = 0
        while runs < jobs or left:
            if left:
                scene = [*([Settle(self.next())] if self.in_peace else []), *left.pop(0)(self)]
                self.scenes.append(frozenset(step.number for step in scene))
                made += scene
            made += self._between(self.chance.randint(1, 4) if self.world is not World.LEDGER or not left else 1)
            # A run takes seconds, and most of a plan's are its scenes'.
            if not left or self.chance.random() < (0.1 if self.world is World.LEDGER else 0.25):
                made.append(self._run(depth=0))
            if self.chance.random() < 0.3:
                made.append(Resume(self.next(), self.chance.randrange(100)))
            runs = sum(isinstance(step, Run) for step in every(made))
        return tuple(made)

    def _begin(self) -> list[Step]:
        """Omid's own compactor loses what a client wrote into one file and proved in another: there nobody is suspended
        in the middle.
        """
        return [] if self.compactor else [self.open()]

    def _between(self, number: int) -> list[Step]:
        return [self._step() for _ in range(number)]

    def _step(self) -> Step:
        makers = {
            self._some_clients: 4,
            **({} if self.compactor else {self.open: 3, self._turn: 6}),
            self.watermark: 4,
            self._phantom: 1,
            # Omid's own compactor drops what has no proof yet.
            **({} if self.compactor else {self.land: 2}),
            self._alter: 5,
            self._say: 2,
            self._look: 2,
            self._read: 3,
            self._resume: 1,
            **({self._transfer: 12} if self.ledger else {}),
            **({self._sql: 20} if self.phoenix else {}),
        }
        return self.of(makers)()

    def _some_clients(self) -> Clients:
        return self.clients(self.chance.randint(3, 12))

    def _turn(self) -> Turn:
        return Turn(self.next(), self.chance.randrange(100), self.chance.choice((1, 1, 2, 3, 9)))

    def _phantom(self) -> Phantom:
        return Phantom(self.next())

    def _table(self) -> Table:
        return self.of({Table.A: 3, Table.B: 3, Table.C: 1})

    def _alter(self) -> Alter:
        change = self.of(self._changes)
        table = Table.C if change in COMING else self._table()
        return Alter(self.next(), change, table, self.chance.randrange(1, ROWS))

    def _say(self) -> Say:
        return Say(self.next(), self.of(_WORDS), self._table())

    def _look(self) -> Look:
        return Look(self.next())

    def _read(self) -> Read:
        chance = self.chance
        return Read(self.next(), chance.randrange(100), chance.random() < 0.3, heals=chance.random() < 0.3)

    def _resume(self) -> Resume:
        return Resume(self.next(), self.chance.randrange(100))

    def _transfer(self) -> LedgerStep:
        return ledger_plan.step(self.chance, self.next(), self.seed)

    def _sql(self) -> SqlStep:
        return sql_plan.step(self.chance, self.next(), self.seed)

    def _next_job(self) -> str:
        chance = self.chance
        if self.ledger and chance.random() < 0.4:
            return ledger_plan.REPAIR
        self._job = _CHAIN[self._job] if chance.random() < 0.65 else self.of(_JOBS)
        return self._job

    def _run(self, depth: int) -> Run:
        chance = self.chance
        job = self._next_job()
        number = self.next()
        arguments = tuple(self._arguments(job))
        kinds = ledger_plan.KINDS if job == ledger_plan.REPAIR else KINDS
        seams = tuple(self._seam(depth, kinds) for _ in range(chance.choice((0, 1, 1, 2, 3))))
        # Whatever comes after a death, or before a run that is parked goes on, is not reached: one of these is enough.
        last = next((i for i, seam in enumerate(seams) if seam.act in (Act.DIE, Act.PART)), len(seams))
        return Run(number, job, arguments, chance.randrange(100), seams[: last + 1])

    def _arguments(self, job: str) -> Iterator[str]:
        chance = self.chance
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
        yield from ALWAYS.get(job, ())
        if job == ledger_plan.REPAIR:
            yield from ledger_plan.arguments(chance)
        if chance.random() < (0.8 if job in APPROVABLE else 0.9):
            yield "--execute"

    def _seam(self, depth: int, kinds: Mapping[str, int]) -> Seam:
        chance = self.chance
        number = self.next()
        act = self.of({Act.ON: 4, Act.DIE: 2, Act.PART: 2, Act.PARK: 2})
        steps = self._between(chance.choice((0, 1, 2, 4)))
        if depth == 0 and act is Act.ON and chance.random() < 0.4:
            steps.append(self._run(depth + 1))
        kind = self.of(kinds)
        rate = ledger_plan.RATE if kinds is ledger_plan.KINDS else _RATES.get(kind, 0.6)
        nth = 1 + min(int(chance.expovariate(rate)), 30)
        moment = self.of({Moment.BEFORE: 3, Moment.AFTER: 1}) if act is not Act.PART else Moment.BEFORE
        return Seam(
            number, kind, nth, moment, act, tuple(steps), round(chance.uniform(0.1, 0.9), 2), chance.getrandbits(32)
        )
