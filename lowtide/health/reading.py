"""What was read of a store at one moment (:mod:`lowtide.health.reader` reads it)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lowtide.cleaning.commit_count import CommitCount
from lowtide.history.mark import Hold
from lowtide.ledger.settled import Settled
from lowtide.store.records import Bound, History, Outcomes
from lowtide.tables.consent import Pause
from lowtide.tables.inventory import Entry
from lowtide.values.clock import Clock, oracle_clock
from lowtide.values.skew import Allotted


@dataclass(frozen=True, slots=True)
class LedgerReading:
    """What was read of the ledger's index: the settled mark, and the entries from there on that are older than the
    grace.

    An entry is put before its transaction and goes after its end, so these are the transactions that are stuck, and
    perhaps a few that are over.
    """

    settled: Settled = field(default_factory=Settled)
    #: Counted up to as many as were read; *more*: there may be more.
    stuck: int = 0
    more: bool = False
    #: When the first of them began, by its client's clock.
    oldest: datetime | None = None
    #: Why the index cannot be read.
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of a store at one moment; a text is the reason why something could not be read."""

    at: datetime
    #: Why nothing could be read at all.
    unreachable: str = ""
    #: Whether that is because a newer Lowtide wrote the records.
    newer: bool = False
    #: The format of the records; 0: there are none.
    state_format: int = 0
    low_watermark: int | None = None
    low_watermark_problem: str = ""
    #: Why the oracle counts as down.
    oracle_problem: str = ""
    #: What the oracle has allotted to itself, and when by HBase's clock; None where HBase does not have it.
    allotted: Allotted | None = None
    #: The highest low watermark recorded, and when it was recorded first.
    recorded: tuple[int, datetime] | None = None
    #: The lowest one that was read after that.
    went_back: int | None = None
    #: The names of all tables in HBase.
    listed: frozenset[str] = frozenset()
    #: Newest first, as many as were read.
    bounds: tuple[Bound, ...] = ()
    inventory: tuple[Entry, ...] = ()
    watermarks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    #: Summaries, newest first, as many as were read.
    runs: tuple[Mapping[str, Any], ...] = ()
    #: Whether there may be older runs than those.
    more_runs: bool = False
    #: Of the last run of each job, however old it is.
    outcomes: Outcomes = field(default_factory=Outcomes)
    #: How full the commit table was, oldest first.
    commit_counts: tuple[CommitCount, ...] = ()
    #: ``omid.clock``.
    clock_kind: str = "auto"
    samples: tuple[tuple[datetime, int], ...] = ()
    #: Ancient history marks, applied and intended, by table.
    histories: tuple[History, ...] = ()
    #: Bytes that history GC removed and no major compaction had dropped at its last run, by table.
    uncompacted: Mapping[str, int] = field(default_factory=dict)
    #: Holds on history, expired ones included.
    holds: tuple[Hold, ...] = ()
    #: Pauses, those that are over included.
    pauses: tuple[Pause, ...] = ()
    #: None where there is no ledger.
    ledger: LedgerReading | None = None

    @property
    def bound(self) -> Bound | None:
        """The prune bound as collected last."""
        return self.bounds[0] if self.bounds else None

    @property
    def clock(self) -> Clock:
        """The oracle's clock; where nothing is known of it, one that knows no time."""
        marks = [self.low_watermark or 0, self.recorded[0] if self.recorded else 0]
        return oracle_clock(self.clock_kind, max(marks), lambda: self.samples)
