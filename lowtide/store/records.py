"""What the state table holds, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from lowtide.cleaning.facts import Fact, Incarnation
from lowtide.tables.inventory import Entry
from lowtide.values.intervals import Intervals


@dataclass(frozen=True, slots=True)
class Epoch:
    """Whose turn it is on a table, stored as ``COUNTER/NONCE/GENERATION`` and compared whole.

    A counter alone would come to a late run's number again where the state table was lost, or reset after the oracle
    was made anew.
    """

    counter: int = 0
    nonce: str = ""
    generation: int = 0

    @classmethod
    def parse(cls, stored: bytes | None) -> Epoch:
        """As stored; that of a table nobody began is 0, and before there were nonces it was the counter alone."""
        counter, _, rest = (stored or b"0").decode().partition("/")
        nonce, _, generation = rest.partition("/")
        return cls(int(counter), nonce, int(generation or 0))

    def next(self, nonce: str, generation: int) -> Epoch:
        """The one that a run takes after it."""
        return Epoch(self.counter + 1, nonce, generation)

    def __str__(self) -> str:
        return f"{self.counter}/{self.nonce}/{self.generation}" if self.nonce else str(self.counter)


@dataclass(frozen=True, slots=True)
class TableState:
    """What is recorded of one table."""

    table: str
    epoch: Epoch
    incarnation: Incarnation
    facts: tuple[Fact, ...]
    #: Of which start timestamps facts told that were forgotten (:func:`lowtide.cleaning.facts.cleaned_before`).
    forgotten: Intervals = field(default_factory=Intervals)


class Listing(NamedTuple):
    """The inventory as published last, and the low watermark that was read before it; 0: not known."""

    entries: tuple[Entry, ...] = ()
    low_watermark: int = 0
    #: Tables of which somebody confirmed that their transactions are this oracle's.
    confirmed: frozenset[str] = frozenset()
    #: HBase's time, ms, before the tables were listed; 0: not known.
    at: int = 0


class Recorded(NamedTuple):
    """The highest low watermark seen, when it was seen first, and the lowest one seen *after* it; None: it never went
    back.
    """

    low_watermark: int
    at: datetime
    back: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """A prune bound, inclusive, and when it was computed; *since* is when it was first seen at this value.

    The blockers are those of :func:`lowtide.cleaning.facts.by_reason`.
    """

    at: datetime
    value: int
    blockers: tuple[dict[str, Any], ...] = ()
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class History:
    """A table's ancient history mark: *applied*, which readers are held to, and *intended* by a run that has not
    applied it yet.
    """

    table: str
    applied: int = 0
    intended: int = 0
    #: When and by which run the mark was applied, and what keeps it from moving on.
    about: Mapping[str, Any] = field(default_factory=dict)
    #: When and by which run the other one was announced.
    intent: Mapping[str, Any] = field(default_factory=dict)
    #: The newest claim to the mark, as it is stored.
    claim: bytes | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """A cell of the records and the value that it has as long as a run may write; whoever takes over changes it. None:
    there is no such cell.

    Executors read it again before each batch of mutations: they may write on when the run that sent them has long
    ended.
    """

    table: str
    row: bytes
    family: str
    qualifier: str
    value: bytes | None
    #: What has happened where it stands no more; empty: another run has taken over.
    lost: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """A run's claim to a table's mark; it holds as long as nobody claims after it."""

    table: str
    mark: int
    token: bytes


@dataclass(frozen=True, slots=True)
class Journal:
    """What is remembered of the journal: whether it was ever made, and what its row about itself has
    (:class:`lowtide.journal.life.OwnRow`).
    """

    there: bool = False
    horizon: int = 0
    pruned: int = 0
    #: When its table was made, enabled or restored last, ms: its life in which it is known to be whole. 0: not looked
    #: at yet.
    stated: int = 0
    #: What makes it doubtful that it is whole; empty: nothing.
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """What is known of runs however many others came after: summaries in short, newest first."""

    #: What the last runs that acted left undone, each of one table, or of a run as a whole. ``started`` is that of the
    #: first of the runs that failed one after the other, ``last`` of the last of them.
    failing: tuple[dict[str, Any], ...] = ()
    #: Of each job the last run that acted and the last dry run, without their tables and problems.
    last: tuple[dict[str, Any], ...] = ()
    #: When the first run began since this is kept; None: there was none.
    first: datetime | None = None
