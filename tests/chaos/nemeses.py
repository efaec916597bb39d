"""Nemeses: what fails around the jobs, and where in a plan it does. Pure, as plans are.

They are drawn by themselves, when all else of a plan is: a seed means the same with them and without. Each has a number
above those of the plan, as a seam has that was put into a run for it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What fails."""

    GATEWAY = "the gateway is killed"
    ORACLE = "the oracle is killed"
    HBASE = "HBase is killed"
    SERVER = "a region server is killed"
    GATEWAY_CUT = "the gateway's network cuts"
    GATEWAY_LOSE = "the gateway's network loses answers"
    GATEWAY_DELAY = "the gateway's network delays"
    GATEWAY_SWALLOW = "the gateway's network swallows"
    CUT = "HBase's network cuts"
    LOSE = "HBase's network loses answers"
    DELAY = "HBase's network delays"
    SWALLOW = "HBase's network swallows"
    LATE = "HBase's network holds a request back"
    TASK = "HBase's network cuts until a task fails"
    CLOCK = "the driver's clock is off"
    DISK = "the sideline's disk is full"
    FOLDER = "the sideline's folder is away"


#: Those that go through the relay before HBase's servers.
AT_HBASE = frozenset({Kind.CUT, Kind.LOSE, Kind.DELAY, Kind.SWALLOW, Kind.LATE, Kind.TASK})
#: Those that go through the one before the gateway.
AT_GATEWAY = frozenset({Kind.GATEWAY_CUT, Kind.GATEWAY_LOSE, Kind.GATEWAY_DELAY, Kind.GATEWAY_SWALLOW})
#: Those that leave others on the same store alone, and are over soon.
SHARED = frozenset(
    {
        Kind.GATEWAY,
        Kind.CLOCK,
        Kind.DISK,
        Kind.FOLDER,
        *AT_GATEWAY,
    }
)
#: Those of a store of one process, and of one with region servers of its own.
ALONE = frozenset(Kind) - {Kind.SERVER}
SERVERS = frozenset(Kind)

#: How often each comes beside the others. HBase as a whole takes half a minute to come back.
_OFTEN = {
    Kind.GATEWAY: 2,
    Kind.ORACLE: 3,
    Kind.HBASE: 1,
    Kind.SERVER: 8,
    Kind.GATEWAY_CUT: 1,
    Kind.GATEWAY_LOSE: 2,
    Kind.GATEWAY_DELAY: 1,
    Kind.GATEWAY_SWALLOW: 1,
    Kind.CUT: 3,
    Kind.LOSE: 7,
    Kind.DELAY: 1,
    Kind.SWALLOW: 2,
    Kind.LATE: 6,
    Kind.TASK: 3,
    Kind.CLOCK: 3,
    Kind.DISK: 4,
    Kind.FOLDER: 2,
}
#: Any change that a run makes, whatever its seam: from the first on, evenly, most of them lie between what it decided
#: and what it records last.
ANY = "any"
#: The seams at which one comes, and up to which of their effects: those of a run are about so many.
SEAMS = {ANY: (6, 16), "connector": (4, 3), "rows": (1, 4), "gateway": (1, 12), "files": (3, 6), "read": (2, 20)}
#: Of a plan.
MOST = 3
#: A clock is off by so many seconds, or behind by them.
OFF = (20, 600, 86_400)


@dataclass(frozen=True, slots=True)
class Nemesis:
    """Something fails, for so many more steps (0: it is back at once, or as soon as a run has met it)."""

    number: int
    kind: Kind
    lasts: int = 0
    #: How many requests are lied about; by how many seconds a clock is off; which of the servers.
    size: int = 1

    def __str__(self) -> str:
        size = f", {self.size}" if self.kind in _SIZED else ""
        return f"{self.kind}{size}{f', for {self.lasts} steps' if self.lasts else ''}"


_SIZED = frozenset(Kind) - {Kind.GATEWAY, Kind.ORACLE, Kind.HBASE, Kind.DISK, Kind.FOLDER}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a nemesis comes: before a step of the plan's, or, if that is a run, at its *nth* effect of a kind."""

    step: int
    seam: str = ""
    nth: int = 1
    after: bool = False


def drawn(
    seed: int, numbers: Iterator[int], kinds: Collection[Kind], places: Sequence[int], runs: Sequence[int]
) -> list[tuple[Nemesis, Place]]:
    """One to :data:`MOST` nemeses of these *kinds* for a plan, at these *places* of its steps, of which *runs* are
    runs of jobs; none where there are no kinds.
    """
    if not kinds:
        return []
    chance = random.Random(f"nemeses/{seed}")
    found = []
    for _ in range(chance.choice((1, 2, 2, MOST, MOST))):
        nemesis = _nemesis(chance, next(numbers), kinds)
        found.append((nemesis, _place(chance, nemesis.kind, places, runs)))
    return found


def _nemesis(chance: random.Random, number: int, kinds: Collection[Kind]) -> Nemesis:
    (kind,) = chance.choices([k for k in Kind if k in kinds], [_OFTEN[k] for k in Kind if k in kinds])
    sizes: dict[Kind, Callable[[], int]] = {
        Kind.CLOCK: lambda: chance.choice((-1, 1)) * chance.choice(OFF),
        Kind.SERVER: lambda: chance.randrange(9),
        # More than any client's patience, and less than two attempts at a task have together.
        Kind.TASK: lambda: 8,
    }
    size = sizes.get(kind, lambda: chance.choice((1, 1, 2, 3)))()
    lasts = chance.choice((0, 1, 2, 4))
    return Nemesis(number, kind, 0 if kind in (Kind.ORACLE, Kind.HBASE) else lasts, size)


def _place(chance: random.Random, kind: Kind, places: Sequence[int], runs: Sequence[int]) -> Place:
    # A run compares the clocks when it begins.
    if kind is Kind.CLOCK and runs and chance.random() < 0.6:
        return Place(chance.choice(runs))
    # Runs ask the gateway when they begin, and never again.
    if not runs or kind in AT_GATEWAY or chance.random() < 0.2:
        return Place(chance.choice(places))
    (seam,) = chance.choices(list(SEAMS), [often for often, _ in SEAMS.values()])
    return Place(chance.choice(runs), seam, chance.randint(1, SEAMS[seam][1]), chance.random() < 0.25)
