"""What is to happen through Apache Phoenix: its clients' steps. Pure, as :mod:`plan` is.

There is one writer: what it would overlap with is Omid's to refuse, and tried elsewhere. Its transaction may stay open
while anything else happens, or be left at a point of its commit, as by a client that died.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from lowtide.lab.workload.phoenix import PHYSICAL


class Fate(StrEnum):
    """What becomes of a transaction: of those that stop, at which point of Omid's commit."""

    COMMIT = "commits"
    ROLL_BACK = "is rolled back"
    UNDECIDED = "dies before it asks"
    ENTRY_ONLY = "dies before its first shadow cell"
    HALF = "dies between its shadow cells"
    ENTRY_TOO = "dies before its entry is deleted"
    NO_ANSWER = "never hears that it committed"
    NO_ORACLE = "finds no oracle, and marks itself"


#: The points of ``CrashPoints``; without one a transaction ends as clients end it.
POINTS = {
    Fate.UNDECIDED: 1,
    Fate.ENTRY_ONLY: 4,
    Fate.HALF: 5,
    Fate.ENTRY_TOO: 6,
    Fate.NO_ANSWER: 7,
    Fate.NO_ORACLE: 8,
}
_FATES = {Fate.COMMIT: 12, Fate.ROLL_BACK: 2, **dict.fromkeys(POINTS, 2)}


@dataclass(frozen=True, slots=True)
class Transactions:
    """So many transactions that *seed* draws, from begin to end, each with a fate of its own."""

    number: int
    seed: str
    transactions: int


@dataclass(frozen=True, slots=True)
class Begin:
    """The statements of a transaction that *seed* draws are sent, and it waits."""

    number: int
    seed: str


@dataclass(frozen=True, slots=True)
class End:
    """The transaction that waits ends, if one does."""

    number: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class Ask:
    """A session begins to read, and stays where it is."""

    number: int


@dataclass(frozen=True, slots=True)
class AskAgain:
    """A session that reads asks everything once more."""

    number: int
    pick: int


class Physical(StrEnum):
    """What is done to a physical table, which loses nothing by it."""

    FLUSH = "is flushed"
    COMPACT = "is compacted"
    SPLIT = "is split"
    MOVE = "has a region moved"


@dataclass(frozen=True, slots=True)
class Alter:
    """A change of a physical table, at one of its rows."""

    number: int
    change: Physical
    table: str
    pick: int


SqlStep: TypeAlias = Transactions | Begin | End | Ask | AskAgain | Alter


def fate(chance: random.Random) -> Fate:
    """What becomes of a transaction."""
    return chance.choices(list(_FATES), list(_FATES.values()))[0]


def begun(number: Callable[[], int], seed: int) -> Iterator[SqlStep]:
    """What there is before anything else."""
    first = number()
    yield Transactions(first, f"{seed}.{first}", 20)
    yield Ask(number())


def step(chance: random.Random, number: int, seed: int) -> SqlStep:
    """One step of Phoenix's clients, or of one of their tables."""
    kinds: dict[str, int] = {"transactions": 3, "begin": 4, "end": 3, "ask": 1, "again": 2, "alter": 3}
    match chance.choices(list(kinds), list(kinds.values()))[0]:
        case "transactions":
            return Transactions(number, f"{seed}.{number}", chance.randint(1, 6))
        case "begin":
            return Begin(number, f"{seed}.{number}")
        case "end":
            return End(number, fate(chance))
        case "ask":
            return Ask(number)
        case "again":
            return AskAgain(number, chance.randrange(100))
        case _:
            return Alter(number, chance.choice(list(Physical)), chance.choice(PHYSICAL), chance.randrange(100))


WORDS: dict[type, Callable[[Any], str]] = {
    Transactions: lambda step: f"{step.transactions} transactions of SQL by {step.seed}",
    Begin: lambda step: f"a transaction of SQL by {step.seed} begins",
    End: lambda step: f"the transaction of SQL that waits {step.fate}",
    Ask: lambda _: "a session of SQL begins to read",
    AskAgain: lambda step: f"session {step.pick} of SQL asks again",
    Alter: lambda step: f"{step.table} {step.change} (row {step.pick})",
}
