"""What may happen in a plan: steps, the seams of runs, and what they are called when a plan is printed. Pure.

Every step and every seam has a number, so that a plan can be cut down: a seed and the numbers that are left say all.
Where a step names one of several (an open group of clients, a parked run), it *picks* it by a number modulo how many
there are then, and does nothing where there is none: a plan is still a plan whatever is cut from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, TypeAlias

from tests.chaos import ledger_plan, oracle_steps, sql_plan
from tests.chaos.ledger_plan import LedgerStep
from tests.chaos.nemeses import Nemesis
from tests.chaos.oracle_steps import Oracle
from tests.chaos.sql_plan import SqlStep


class Table(StrEnum):
    """The tables of a plan."""

    A = "chaos_a"
    B = "chaos_b"
    C = "chaos_c"
    """It comes and goes; at the beginning there is none."""


#: Those that are there from the beginning on.
TABLES = (Table.A, Table.B)


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
    #: They delete columns, nearly all there are.
    deleting: bool = False


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
    ALONE = "is truncated, and has a cell of somebody who died before it had its shadow cell"
    UNSNAP = "has its HBase snapshot deleted"
    DEAFEN = "is there while the journal takes no writes"
    HEAR = "is there while the journal takes writes again"
    UNHEAL = "is on a server that dies, and has lost what a cleanup has just healed, though it had said that it had it"
    LOSE = "is there while the journal loses all that it has"
    LOOSE = "is on servers that may lose what they acknowledged"
    FIRM = "is on servers that lose nothing any more"


#: After these a table is not what its clients made it.
LOSING = frozenset(
    {
        Change.TRUNCATE,
        Change.ALONE,
        Change.ANEW,
        Change.RESTORE,
        Change.CLONE,
        Change.MAKE,
        Change.COPY,
        Change.DROP,
    }
)
#: What is done to the table that comes and goes alone.
COMING = frozenset({Change.MAKE, Change.COPY, Change.DROP})


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
    MISTAKE = "whence a person says, by mistake, that one which nothing proves never committed"
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
class Settle:
    """People put everything in order: what fails works again, and whoever said no to something takes it back."""

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

    ``{run}`` in its arguments stands for the id of an earlier one, which *pick* names; ``{before}`` for one of before
    the oracle was made anew; ``{time}`` for when an earlier one ended; ``{plan}`` for an earlier dry one's, whose
    arguments it has, and which it is held to. *again*: under the id of the last one that acted, as when somebody has
    Airflow do it again, or two of its databases are at it.
    """

    number: int
    job: str
    arguments: tuple[str, ...]
    pick: int = 0
    seams: tuple[Seam, ...] = ()
    again: bool = False


Happening: TypeAlias = (
    Clients
    | Open
    | Turn
    | Watermark
    | Phantom
    | Land
    | Compact
    | Alter
    | Say
    | Look
    | Read
    | Age
    | Settle
    | Resume
    | Run
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
#: Where a cleanup heals, or deletes, in a table; and where it looks whether the cells that it healed are.
ACTS, LOOKS_AGAIN = "_act", "_send"
#: Reads, by the step that makes them: where a cleanup reads what it suspects, and where it searches all tables for
#: proofs; where a restore does that is told of a mistake.
READS, SEARCHES, ASKED = "read of read_once", "freeze of verdicts", "read of _check_shadow_cells"
#: Stands in a restore's arguments for the transaction of which somebody was mistaken last, and when it committed.
MISTAKEN = "{mistaken}"
#: The arguments of a run that keeps to a rate, which nothing of a plan would feel.
AT_A_RATE = ("--rate", "1000000", "--write-rate", "1000000")
#: The jobs that can be held to an approved plan.
APPROVABLE = ("orphan_cleanup", "history_gc")
#: Rows of a table are so many.
ROWS = 8


def every(steps: Sequence[Step]) -> Iterator[Step]:
    """All of them, those at seams after the run that they happen in."""
    for step in steps:
        yield step
        if isinstance(step, Run):
            for seam in step.seams:
                yield from every(seam.steps)


def numbers_in(step: Step) -> Iterator[int]:
    """Its own, and those of all that is in it, from the outermost on."""
    yield step.number
    if isinstance(step, Run):
        for seam in step.seams:
            yield seam.number
            for inner in seam.steps:
                yield from numbers_in(inner)


def only(steps: Sequence[Step], kept: frozenset[int]) -> tuple[Step, ...]:
    """What is left of them with these numbers alone. What was to happen at a seam that goes, goes with it."""
    return tuple(
        replace(
            step,
            seams=tuple(replace(seam, steps=only(seam.steps, kept)) for seam in step.seams if seam.number in kept),
        )
        if isinstance(step, Run)
        else step
        for step in steps
        if step.number in kept
    )


def lines(steps: Sequence[Step], indent: str) -> Iterator[str]:
    """As a plan prints them, one a line."""
    for step in steps:
        yield f"{indent}{step.number}: {told(step)}"
        if isinstance(step, Run):
            for seam in step.seams:
                piece = f", {seam.share} of it by {seam.seed}" if seam.act is Act.PART else ""
                yield f"{indent}  {seam.number}: {seam.moment} {seam.kind} {seam.nth} it {seam.act}{piece}"
                yield from lines(seam.steps, indent + "    ")


def told(step: Step) -> str:
    """A step in a few words."""
    return _WORDS_OF[type(step)](step)


_WORDS_OF: dict[type, Callable[[Any], str]] = {
    Clients: lambda step: (
        f"{step.transactions} transactions by {step.seed}"
        f"{f', half of which end at {step.crashing}' if step.crashing else ''}{', which delete' * step.deleting}"
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
    Settle: lambda _: "everything is put in order",
    Run: lambda step: " ".join((step.job, *step.arguments)) + ", under the name of the last" * step.again,
    **oracle_steps.WORDS,
    **ledger_plan.WORDS,
    **sql_plan.WORDS,
}
