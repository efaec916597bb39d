"""Zombies: a real run is stopped (SIGSTOP) after its decision, others are there meanwhile, and it goes on (SIGCONT).

All else goes as the baton has it (:mod:`tests.chaos.director`), one thing at a time and judged write by write; the run
that stands still is a process of its own, as ``lowtide run`` starts it, and what it did is judged as a whole: before it
stood still, and after. That the decision is made it says itself (``decide took ... s``, of a pruning ``gate took``):
the signal is sent as soon as the line is read. Whether it had begun to write all the same the store tells.

A zombie may do what is right whoever does it. It may not write to a table that another run has taken over, that came
back or was made anew, that somebody has said no of, or to anything once the records were reset; nor any record of such
a table (:func:`tests.chaos.free.judging.resumed`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias

from tests.chaos import steps
from tests.chaos.plan import Plan
from tests.chaos.steps import TABLES, Alter, Change, Clients, Run, Say, Watermark, Word

_ARGUMENTS = {
    "orphan_cleanup": ("--full",),
    "commit_table_pruning": ("--grace", "0s"),
    "sideline_restore": ("--restore", "{run}"),
    "journal_replay": ("--from", "2020-01-01T00:00:00Z"),
}
_CHAIN = ("orphan_cleanup", "watermark_collection", "commit_table_pruning", "history_gc")
_LOSING = ("an HBase restore", "the table is made anew")


@dataclass(frozen=True, slots=True)
class Reset:
    """``lowtide state reset --same-oracle``."""

    number: int


@dataclass(frozen=True, slots=True)
class Oracle:
    """The oracle is killed and started again."""

    number: int


@dataclass(frozen=True, slots=True)
class Zombie:
    """A run stands still so many seconds after its decision; *meanwhile* happens; it goes on."""

    number: int
    job: str
    arguments: tuple[str, ...]
    delay: float
    what: str
    meanwhile: tuple[Step, ...]


Step: TypeAlias = steps.Step | Reset | Oracle | Zombie

#: What there is between stop and go, by job; a job comes as often as it has something that may go wrong.
CASES = (
    ("orphan_cleanup", "another run"),
    ("history_gc", "an HBase restore"),
    ("commit_table_pruning", "an HBase restore"),
    ("orphan_cleanup", "the records are reset"),
    ("history_gc", "a sideline restore"),
    ("commit_table_pruning", "the oracle starts again"),
    ("orphan_cleanup", "an HBase restore"),
    ("history_gc", "the records are reset"),
    ("commit_table_pruning", "the records are reset"),
    ("orphan_cleanup", "the oracle starts again"),
    ("history_gc", "another run"),
    ("commit_table_pruning", "another run"),
    ("orphan_cleanup", "all jobs"),
    ("history_gc", "the oracle starts again"),
    ("commit_table_pruning", "a journal replay"),
    ("orphan_cleanup", "somebody says no"),
    ("history_gc", "somebody says no"),
    ("orphan_cleanup", "a sideline restore"),
    ("history_gc", "all jobs"),
    ("orphan_cleanup", "the table is made anew"),
    ("history_gc", "the table is made anew"),
)


def made(seed: int) -> Plan:
    """The plan of a seed. Seeds in a row have the cases in their order; in some the run may have begun to write."""
    job, what = CASES[seed % len(CASES)]
    return Plan(seed, tuple(_Maker(seed, job, what).steps()), torn=False)  # type: ignore[arg-type]


class _Maker:
    def __init__(self, seed: int, job: str, what: str) -> None:
        self._seed, self._job, self._what = seed, job, what
        self._chance = random.Random(f"zombies/{seed}")
        self._numbers = count()

    def steps(self) -> Iterator[Step]:
        """What leads to the zombie, so that it has something to decide, and the zombie."""
        job, what = self._job, self._what
        yield from self._clients(30)
        for table in TABLES:
            yield Alter(next(self._numbers), Change.SNAPSHOT, table)
        yield from self._clients(10)
        if job != "orphan_cleanup" or what == "a sideline restore":
            yield from self._runs("orphan_cleanup", "watermark_collection")
        if what == "a journal replay":
            yield from self._runs("commit_table_pruning")
        if job == "history_gc" and what == "a sideline restore":
            yield from self._runs("history_gc")
        yield from self._clients(25)
        if job != "orphan_cleanup":
            yield from self._runs("orphan_cleanup", "watermark_collection")
        meanwhile = tuple(self._meanwhile())
        # What came back or came anew in the middle of a batch is no fault of who sent it.
        writing = self._chance.random() < 0.3 and what not in _LOSING
        delay = round(self._chance.uniform(0.1, 2.5), 2) if writing else 0.0
        yield Zombie(next(self._numbers), job, (*_ARGUMENTS.get(job, ()), "--execute"), delay, what, meanwhile)

    def _meanwhile(self) -> Iterator[Step]:
        number, chance, table = next(self._numbers), self._chance, self._chance.choice(TABLES)
        steps: dict[str, Callable[[], Iterable[Step]]] = {
            "another run": lambda: self._after_watermark(self._job),
            "all jobs": lambda: self._after_watermark(*_CHAIN),
            "a sideline restore": lambda: [self._run("sideline_restore")],
            "a journal replay": lambda: [self._run("journal_replay")],
            "an HBase restore": lambda: [Alter(number, chance.choice((Change.RESTORE, Change.CLONE)), table)],
            "the table is made anew": lambda: [Alter(number, chance.choice((Change.ANEW, Change.TRUNCATE)), table)],
            "somebody says no": lambda: [Say(number, chance.choice((Word.PAUSE, Word.VETO)), table)],
            "the records are reset": lambda: [Reset(number)],
            "the oracle starts again": lambda: [Oracle(number)],
        }
        yield from steps[self._what]()
        yield from list(self._clients(8))[: chance.choice((1, 2))]

    def _clients(self, transactions: int) -> Iterator[Step]:
        number = next(self._numbers)
        yield Clients(number, f"z{self._seed}.{number}", transactions)
        yield Watermark(next(self._numbers))

    def _run(self, job: str) -> Run:
        arguments = (*_ARGUMENTS.get(job, ()), "--execute")
        return Run(next(self._numbers), job, arguments, self._chance.randrange(100))

    def _runs(self, *jobs: str) -> Iterator[Step]:
        return map(self._run, jobs)

    def _after_watermark(self, *jobs: str) -> Iterator[Step]:
        yield Watermark(next(self._numbers))
        yield from self._runs(*jobs)
