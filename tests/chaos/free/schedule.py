"""What is to happen, and when, from a seed. Pure: the same seed and length give the same schedule.

It has *lanes*, each of which is walked by a thread of its own: what is due in one waits for nobody in another. The
steps are those of :mod:`tests.chaos.plan`, but for what a process or a server suffers. What comes of it depends on who
is faster; that is recorded, not repeated.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import count
from typing import TypeAlias, TypeVar

from tests.chaos.steps import ROWS, TABLES, Alter, Change, Look, Read, Run, Watermark, told

T = TypeVar("T")


class Lane(StrEnum):
    """Who walks through it."""

    TABLES = "tables"
    READERS = "readers"
    AS_OF = "readers as of"
    SERVERS = "servers"
    RUNS = "runs"
    CLIENTS = "clients"


class Fate(StrEnum):
    """What becomes of a process."""

    ENDS = "ends"
    KILLED = "is killed"
    STOPPED = "stands still"


class Part(StrEnum):
    """A part of the store."""

    REGION_SERVER = "a region server"
    GATEWAY = "the gateway"
    ORACLE = "the oracle"


@dataclass(frozen=True, slots=True)
class Client:
    """A client process of two threads, with a script that *seed* makes; it lives so many seconds."""

    number: int
    seed: str
    lives: float
    killed: bool


@dataclass(frozen=True, slots=True)
class Job:
    """A run, and its fate: so many seconds after it has said that *phase* is over, or after its start.

    One that stands still does so for *lasting* seconds. Of the phases that a job has there are other names in others;
    a run that ends before its fate comes ends.
    """

    number: int
    run: Run
    fate: Fate
    phase: str | None
    after: float
    lasting: float


@dataclass(frozen=True, slots=True)
class Strike:
    """A part of the store is killed, and started again so many seconds later."""

    number: int
    part: Part
    pick: int
    down: float


@dataclass(frozen=True, slots=True)
class Reset:
    """The records are reset, as of the same oracle."""

    number: int


Step: TypeAlias = Alter | Watermark | Look | Read | Client | Job | Strike | Reset


@dataclass(frozen=True, slots=True)
class Due:
    """A step, and when it is due: seconds after the beginning, or at once where the lane is late."""

    at: float
    step: Step


@dataclass(frozen=True, slots=True)
class Schedule:
    """What is to happen within so many seconds."""

    seed: int
    seconds: float
    lanes: Mapping[Lane, tuple[Due, ...]]

    def __str__(self) -> str:
        dues = [(due.at, lane, due.step) for lane, dues in self.lanes.items() for due in dues]
        dues.sort(key=lambda due: due[0])
        return "\n".join(f"{at:6.1f} {lane}: {spoken(step)}" for at, lane, step in dues)


#: Jobs that this mode has, and how often; and the arguments that they may have, with how likely each is.
JOBS = {
    "orphan_cleanup": 8,
    "watermark_collection": 4,
    "commit_table_pruning": 5,
    "history_gc": 5,
    "sideline_restore": 2,
    "journal_replay": 1,
}
_ARGUMENTS: Mapping[str, Mapping[tuple[str, ...], float]] = {
    "orphan_cleanup": {("--table", "{table}"): 0.25, ("--full",): 0.3},
    "watermark_collection": {},
    "commit_table_pruning": {("--grace", "0s"): 1},
    "history_gc": {("--table", "{table}"): 0.25, ("--compact",): 0.2},
    "sideline_restore": {("--restore", "{run}"): 1},
    "journal_replay": {("--from", "2020-01-01T00:00:00Z"): 1},
}
#: A client or a run waits for a disabled table, and what a table was when it was restored, beside clients that go on,
#: nobody can tell afterwards.
_CHANGES = {
    Change.FLUSH: 4,
    Change.COMPACT: 3,
    Change.SPLIT: 2,
    Change.MERGE: 1,
    Change.MOVE: 2,
    Change.FAMILY: 1,
    Change.SNAPSHOT: 3,
}
#: By job, the phase with which it has decided and has not written yet: what it says then is ``PHASE took ... s``.
DECIDED = {"orphan_cleanup": "decide", "history_gc": "decide", "commit_table_pruning": "gate"}
#: Others after which a fate may come.
_PHASES = {
    "orphan_cleanup": ("plan", "find", "act"),
    "history_gc": ("plan", "find", "act"),
    "commit_table_pruning": ("plan", "find", "act"),
    "watermark_collection": ("start", "collect"),
    "journal_replay": ("plan", "find"),
    "sideline_restore": ("start",),
}
_PARTS = {Part.REGION_SERVER: 5, Part.GATEWAY: 2, Part.ORACLE: 3}
#: Clients and runs at a time.
CLIENTS, RUNS = 2, 2


def made(seed: int, seconds: float, *, region_servers: bool = True) -> Schedule:
    """The schedule of a seed. Without *region_servers* that are processes of their own none is killed."""
    maker = _Maker(seed, seconds, region_servers=region_servers)
    return Schedule(seed, seconds, {lane: tuple(maker.lane(lane)) for lane in Lane})


class _Maker:
    def __init__(self, seed: int, seconds: float, *, region_servers: bool) -> None:
        self._seed, self._seconds = seed, seconds
        self._chance = random.Random(f"free/{seed}")
        self._numbers = count()
        self._parts = {p: n for p, n in _PARTS.items() if region_servers or p is not Part.REGION_SERVER}

    def lane(self, lane: Lane) -> Iterator[Due]:
        """Its steps, each so long after the one before it; those of processes follow each other without a pause."""
        step, pause, begin = {
            Lane.TABLES: (self._table, 4.0, 4.0),
            Lane.READERS: (self._reader, 1.5, 6.0),
            Lane.AS_OF: (self._as_of, 8.0, 30.0),
            Lane.SERVERS: (self._server, 45.0, 25.0),
            Lane.RUNS: (self._job, 9.0, 8.0),
            Lane.CLIENTS: (self._client, 6.0, 0.0),
        }[lane]
        at = begin
        while at < self._seconds:
            yield Due(round(at, 2), step())
            at += self._chance.expovariate(1 / pause)

    def _next(self) -> int:
        return next(self._numbers)

    def _of(self, weighed: Mapping[T, float]) -> T:
        (chosen,) = self._chance.choices(list(weighed), list(weighed.values()))
        return chosen

    def _table(self) -> Step:
        step: Callable[[], Step] = self._of({self._change: 30, self._watermark: 8, lambda: Reset(self._next()): 1})
        return step()

    def _change(self) -> Step:
        key = self._chance.randrange(1, ROWS)
        return Alter(self._next(), self._of(_CHANGES), self._chance.choice(TABLES), key)

    def _watermark(self) -> Step:
        return Watermark(self._next())

    def _reader(self) -> Step:
        look = self._chance.random() < 0.3
        return Look(self._next()) if look else Read(self._next(), self._chance.randrange(100), False)

    def _as_of(self) -> Step:
        return Read(self._next(), self._chance.randrange(100), True)

    def _server(self) -> Step:
        part = self._of(self._parts)
        return Strike(self._next(), part, self._chance.randrange(100), round(self._chance.uniform(0, 12), 2))

    def _job(self) -> Step:
        chance = self._chance
        number = self._next()
        run = Run(number, job := self._of(JOBS), tuple(self._arguments(job)), chance.randrange(100))
        fate = self._of({Fate.ENDS: 4, Fate.KILLED: 3, Fate.STOPPED: 4})
        decided, kind = DECIDED.get(job), chance.random()
        phase = decided if decided and kind < 0.5 else chance.choice(_PHASES[job]) if kind < 0.75 else None
        after = round(chance.choice((0, chance.uniform(0, 1.5))) if phase else chance.uniform(1, 45), 2)
        return Job(number, run, fate, phase, after, round(chance.uniform(5, 45), 2))

    def _arguments(self, job: str) -> Iterator[str]:
        for words, likely in _ARGUMENTS[job].items():
            if self._chance.random() < likely:
                yield from (self._chance.choice(TABLES) if word == "{table}" else word for word in words)
        if self._chance.random() < 0.9:
            yield "--execute"

    def _client(self) -> Step:
        number = self._next()
        chance = self._chance
        return Client(number, f"f{self._seed}.{number}", round(chance.uniform(8, 60), 2), chance.random() < 0.6)


def spoken(step: Step) -> str:
    """A step in a few words."""
    match step:
        case Client():
            return f"clients by {step.seed} work for {step.lives} s and {'are killed' if step.killed else 'end'}"
        case Job(fate=Fate.ENDS):
            return told(step.run)
        case Job():
            since = f"{step.phase} is over" if step.phase else "it began"
            lasting = f" for {step.lasting} s" if step.fate is Fate.STOPPED else ""
            return f"{told(step.run)}; {step.after} s after {since} it {step.fate}{lasting}"
        case Strike():
            return f"{step.part} ({step.pick}) is killed, and starts again after {step.down} s"
        case Reset():
            return "the records are reset"
        case _:
            return told(step)
