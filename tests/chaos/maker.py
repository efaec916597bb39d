"""What steps are made of, whatever a plan is about. Pure: the same calls give the same steps."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from itertools import count
from typing import TypeAlias, TypeVar

from tests.chaos.steps import TURN, Act, Clients, Land, Moment, Open, Run, Seam, Step, Turn, Watermark
from tests.chaos.worlds import WORLDS, World

T = TypeVar("T")
#: What a run of a job has at least.
ALWAYS = {
    "commit_table_pruning": ("--grace", "0s"),
    "sideline_restore": ("--restore", "{run}"),
    "journal_replay": ("--from", "2020-01-01T00:00:00Z"),
}


class Maker:
    """Numbers the steps of a plan, and draws by its seed."""

    def __init__(self, seed: int, world: World) -> None:
        self.seed = seed
        self.world = world
        self.chance = random.Random(f"chaos/{seed}")
        #: Whether its scenes begin in order, and no nemesis comes in the middle of one, which may keep it from being
        #: one: it is so in two plans of three of each world.
        self.in_peace = seed % 3 != 1
        #: Whether the oracle of the plan is in low-latency mode.
        self.low_latency = world is World.LATE and seed // len(WORLDS) % 2 == 0
        self._numbers = count()

    def next(self) -> int:
        """The number of the next step or seam."""
        return next(self._numbers)

    def of(self, weighed: Mapping[T, int]) -> T:
        """One of them, by what each weighs."""
        (chosen,) = self.chance.choices(list(weighed), list(weighed.values()))
        return chosen

    def variant(self, *things: T) -> T:
        """One of them: plans of a world that follow each other have one after the other, so that a few have all."""
        return things[self.seed // len(WORLDS) % len(things)]

    def shuffled(self, *things: T) -> list[T]:
        """All of them, in some order."""
        found = list(things)
        self.chance.shuffle(found)
        return found

    def clients(self, transactions: int, crashing: tuple[int, ...] = (), *, deleting: bool = False) -> Clients:
        """So many transactions, from begin to end; *crashing* and *deleting* as :class:`Clients` says."""
        number = self.next()
        return Clients(number, f"{self.seed}.{number}", transactions, crashing, deleting)

    def open(self, *, calm: bool = False) -> Open:
        """Clients that are suspended in the middle, or a *calm* one."""
        number = self.next()
        return Open(number, f"{self.seed}.{number}", calm)

    def watermark(self) -> Watermark:
        """The low watermark passes what is over."""
        return Watermark(self.next())

    def land(self, pick: int | None = None, *, taken: bool | None = None) -> Land:
        """The entry of some client that died lands late, or of the one that *pick* names; *taken* away or not, or by
        chance.
        """
        if taken is None:
            # Not where the commit table is compacted: then nothing tells of it.
            taken = self.world is World.LATE and self.chance.random() < 0.5
        guarded = self.chance.random() < 0.3 or self.low_latency
        return Land(self.next(), self.chance.randrange(100) if pick is None else pick, guarded, taken)

    # -- runs

    def cleanup(self, *seams: Seam, full: bool = False) -> Run:
        """Of all tables, which acts."""
        arguments = ("--full", "--execute") if full else ("--execute",)
        return Run(self.next(), "orphan_cleanup", arguments, 0, seams)

    def early_part(self) -> Run:
        """A cleanup of what began before the collection that was last: of an oracle that counts, times are known by
        those.
        """
        return Run(self.next(), "orphan_cleanup", ("--to", "{time}", "--execute"), -1)

    def job(self, job: str, *seams: Seam, pick: int = 0, execute: bool = True) -> Run:
        """A run with what those of its job have at least, which acts if it is to *execute*."""
        return Run(self.next(), job, (*ALWAYS.get(job, ()), *(["--execute"] if execute else [])), pick, seams)

    def run(self, job: str, *arguments: str, seams: tuple[Seam, ...] = ()) -> Run:
        """A run with these arguments, and no others."""
        return Run(self.next(), job, arguments, 0, seams)

    # -- their seams

    def at(self, kind: str, nth: int, *steps: Step) -> Seam:
        """Before the *nth* effect of a kind *steps* happen; then the run goes on."""
        return Seam(self.next(), kind, nth, Moment.BEFORE, Act.ON, steps)

    def after(self, kind: str, nth: int, *steps: Step) -> Seam:
        """Behind it they do."""
        return Seam(self.next(), kind, nth, Moment.AFTER, Act.ON, steps)

    def parking(self, kind: str, nth: int) -> Seam:
        """Before it the run stands still, until somebody resumes it."""
        return Seam(self.next(), kind, nth, Moment.BEFORE, Act.PARK)

    def in_turn(self, *steps: Step) -> Seam:
        """While the first write of a run that keeps to a rate waits for its turn."""
        return self.at(TURN, 1, *steps)

    def dying(self, kind: str, nth: int) -> Seam:
        """Behind it the run is dead."""
        return Seam(self.next(), kind, nth, Moment.AFTER, Act.DIE)

    # -- some that follow each other

    def all_end(self, groups: int) -> list[Step]:
        """Of those that are in the middle of something the last so many groups go on to their ends."""
        return [Turn(self.next(), -1, 40) for _ in range(groups)]

    def pruned(self) -> list[Step]:
        """Everything that is over is healed, and its entries go to the journal."""
        return [
            self.watermark(),
            self.cleanup(),
            self.job("watermark_collection"),
            self.job("commit_table_pruning"),
        ]


#: Makes what has to meet in an order that hardly comes by itself, each time a little different.
Scene: TypeAlias = Callable[[Maker], list[Step]]
