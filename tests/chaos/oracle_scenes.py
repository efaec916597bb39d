"""Scenes of oracles: what becomes of the one and of its commit table, and what another leaves beside it; each time a
little different.

An oracle that is made anew gives numbers a second time. All that its clients were at is over by then, and the tables
lose what they have; Lowtide's records and its journal are of before until somebody resets them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from tests.chaos.plan import Run, Seam, Step

    Scene = Callable[[], list[Step]]


class Event(StrEnum):
    """What becomes of an oracle, or what a person says of it."""

    NOTE = "what the oracle counts is kept"
    ANEW = "the oracle is made anew, with an empty commit table, and counts on from what was kept"
    AGAIN = "a client that dies has a number that the journal knows of another"
    PASS = "the oracle passes all numbers that it ever gave"
    LOSE = "the records are lost"
    RESET = "the records are reset, since the oracle was made anew"
    KEEP = "an HBase snapshot of the commit table is taken"
    BACK = "the commit table is restored from it"
    WHOLE = "a person sees to it that the commit table is whole, and says so"
    OTHER = "another oracle's tables are there"
    COMMITS = "the commit table of another oracle is named"
    NAMED = "all tables of another oracle are named"
    IMPORT = "a table of another oracle is there, without its commit table"
    GONE = "nothing of another oracle is there any more"


@dataclass(frozen=True, slots=True)
class Oracle:
    """One of these."""

    number: int
    event: Event


#: As plans print it.
WORDS: dict[type, Callable[[Oracle], str]] = {Oracle: lambda step: str(step.event)}


#: Where a cleanup of empty tables has done all that there was to do: it looks whether an entry came meanwhile.
UNRECORDED = "read", 6


@dataclass
class Scenes:
    """Draws them. The others make what plans of every world have: *clients* transactions, which end in these ways;
    *journaled* some whose entries go to the journal; *over* that nobody is in the middle of anything; *emptied* that
    the tables lose everything; *run* a run of a job; *at* a seam with steps, *parked* one at which a run stands still,
    *resumed* that it goes on; *said* what a person says.
    """

    chance: random.Random
    number: Callable[[], int]
    clients: Callable[[int, tuple[int, ...]], Step]
    watermark: Callable[[], Step]
    journaled: Callable[[], list[Step]]
    over: Callable[[], list[Step]]
    emptied: Callable[[], list[Step]]
    run: Callable[..., Run]
    at: Callable[..., Seam]
    parked: Callable[[str, int], Seam]
    resumed: Callable[[], Step]
    decided: Callable[[], Step]
    same_oracle: Callable[[], Step]

    def all(self) -> list[Scene]:
        """In some order; of runs that an oracle which is made anew meets one, and so of another oracle's tables."""
        choice = self.chance.choice
        scenes: list[Scene] = [
            self._numbers_come_twice,
            choice((self._stood_still, self._stood_still, self._not_yet_recorded)),
            self._entries_come_back,
            choice((self._beside_another, self._beside_another, self._taken_for_ours)),
        ]
        self.chance.shuffle(scenes)
        return scenes

    # -- an oracle that is made anew

    def _numbers_come_twice(self) -> list[Step]:
        """What the journal has of one life of the oracle has the numbers of orphans of the next. Runs see in between
        that it was made anew, and a person takes the commit table for whole all the same; or the records were lost, and
        there are more of its clients.
        """
        lost = self.chance.random() < 0.4
        doubted = [self._cleanup(), self._now(Event.PASS), self._now(Event.WHOLE), self._cleanup()]
        return [
            *self.over(),
            self._now(Event.NOTE),
            self.clients(24, (4,)),
            *self.journaled(),
            *([self._now(Event.LOSE)] if lost else []),
            self._now(Event.ANEW),
            *(self._now(Event.AGAIN) for _ in range(3)),
            *([self.clients(20, (1,))] if lost else []),
            *([] if lost else doubted),
            *self._reset(),
            self._cleanup(),
            self._job("journal_replay"),
            self.decided(),
        ]

    def _not_yet_recorded(self) -> list[Step]:
        """The oracle is made anew when a cleanup has read tables that are empty, and has yet to say so."""
        return [
            *self.over(),
            *self.emptied(),
            self.watermark(),
            self._cleanup(self.at(*UNRECORDED, self._now(Event.ANEW))),
            self.clients(12, (0, 4)),
            *self._reset(),
            self._cleanup(),
        ]

    def _stood_still(self) -> list[Step]:
        """A run is about to write, and the oracle is made anew before it goes on, with transactions of its next life
        under the numbers that the run has read; the records are reset before, or after.
        """
        ((job, nth),) = self.chance.choices(
            (("commit_table_pruning", 2), ("orphan_cleanup", 1), ("journal_replay", 1)), (4, 1, 1)
        )
        before = self.journaled()
        if job == "commit_table_pruning":
            before = before[:-1]
        if job == "orphan_cleanup":
            before = [self.watermark()]
        early = self.chance.random() < 0.3
        return [
            *self.over(),
            self._now(Event.NOTE),
            self.clients(20, (0, 1, 4) if job == "orphan_cleanup" else (4,)),
            *before,
            self._job(job, self.parked("connector", nth)),
            self._now(Event.ANEW),
            self.clients(30, (4,)),
            *(self._reset() if early else [self._now(Event.PASS)]),
            self.resumed(),
            *([] if early else self._reset()),
            self._cleanup(),
        ]

    # -- the commit table

    def _entries_come_back(self) -> list[Step]:
        """The commit table comes back from before some transactions committed; until a person has seen to it that it
        is whole no job goes by it.
        """
        return [
            self._cleanup(),
            self._now(Event.KEEP),
            self.clients(16, (4,)),
            self.watermark(),
            self._now(Event.BACK),
            *self._some(self._cleanup(), self._job("watermark_collection"), self._job("commit_table_pruning")),
            self._now(Event.WHOLE),
            self._cleanup(),
        ]

    # -- another oracle

    def _beside_another(self) -> list[Step]:
        """Another oracle's tables are there: nobody says so, or names only its commit table, or all of them."""
        return [
            self._now(Event.OTHER),
            self._cleanup(),
            self._now(Event.COMMITS),
            self._cleanup(),
            self._now(Event.NAMED),
            self._cleanup(),
            self._now(Event.GONE),
        ]

    def _taken_for_ours(self) -> list[Step]:
        """A table of another oracle's comes after the records began anew, of this one: nobody has confirmed it."""
        return [
            self._job("watermark_collection"),
            self.same_oracle(),
            self._now(Event.IMPORT),
            self._cleanup(),
            self._now(Event.GONE),
        ]

    # -- steps

    def _now(self, event: Event) -> Oracle:
        return Oracle(self.number(), event)

    def _reset(self) -> list[Step]:
        """Not before the oracle has passed what it gave: Lowtide refuses it."""
        return [self._now(Event.PASS), self._now(Event.RESET)]

    def _cleanup(self, *seams: Seam) -> Run:
        return self._job("orphan_cleanup", *seams)

    def _job(self, job: str, *seams: Seam) -> Run:
        return self.run(job, *seams)

    def _some(self, *steps: Step) -> list[Step]:
        """One or more of them, the first among them."""
        others = [step for step in steps[1:] if self.chance.random() < 0.4]
        return [steps[0], *others]
