"""What a survey found: plain values, made by the job ``survey``, shown by others. Pure.

Timestamps are the oracle's, inclusive where they are marks; bytes are those of KeyValues, before encoding and
compression. What is not known is None.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from lowtide.survey.estimate import Estimate

NOTHING = Estimate.exact(0)

#: What a run costs before its first cell (Spark's start, plans), and guarded mutations a second: both measured on two
#: cores with HBase on the same machine (bench/), so that a cluster is rather faster.
START_SECONDS = 20.0
MUTATIONS_PER_SECOND = 20_000


class Severity(StrEnum):
    """How much a notice matters."""

    #: Committed data are lost, or answers are wrong, as things stand.
    DANGER = "danger"
    #: Something is kept from being cleaned, or will be in danger.
    CAUTION = "caution"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that the owner should know; *table* is empty where it is about the store."""

    severity: Severity
    table: str
    what: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class TableFindings:
    """One transactional table.

    *orphans* would be deleted, *heals* written again with their shadow cells; *heal_bytes* are what that writes.
    *others* are cells that stay as they are, by reason, as found in the regions that were read. *seconds* is what
    reading took.
    """

    table: str
    regions: int
    regions_read: int
    cells: Estimate = NOTHING
    bytes: Estimate = NOTHING
    orphans: Estimate = NOTHING
    orphan_bytes: Estimate = NOTHING
    heals: Estimate = NOTHING
    heal_bytes: Estimate = NOTHING
    others: dict[str, int] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    #: What SQL calls it, where that is another name: the view indexes that share a table.
    names: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The table's name, with SQL's names where they are others."""
        return self.table if self.names in ((), (self.table,)) else f"{self.table} ({', '.join(self.names)})"

    @property
    def is_exact(self) -> bool:
        """Whether every region was read."""
        return self.regions_read == self.regions


@dataclass(frozen=True, slots=True)
class AgeRow:
    """Rows of the commit table whose transactions began that long ago: commit entries, invalidation marks, and rows
    of other forms.
    """

    age: str
    entries: int
    marks: int
    others: int


@dataclass(frozen=True, slots=True)
class CommitTableFindings:
    """The commit table. *per_day* is how many rows of transactions of the last *window_days* stayed, a day."""

    rows: tuple[AgeRow, ...]
    #: Rows of transactions at or below the low watermark: none of these is needed once all regions are clean.
    settled: int
    bytes: int
    per_day: float | None = None
    window_days: float | None = None

    @property
    def window(self) -> timedelta:
        """The time in which *per_day* was counted."""
        return timedelta(days=self.window_days or 0)

    @property
    def entries(self) -> int:
        """Commit entries of any age."""
        return sum(r.entries for r in self.rows)

    @property
    def marks(self) -> int:
        """Invalidation marks of any age."""
        return sum(r.marks for r in self.rows)


@dataclass(frozen=True, slots=True)
class Survey:
    """A store as a survey found it, and what Lowtide would do. *problems* are what could not be read."""

    at: datetime
    run: str
    low_watermark: int
    #: Seconds since the oracle gave out the low watermark; None with a counter that has no time samples.
    watermark_age: float | None
    tables: tuple[TableFindings, ...]
    commit_table: CommitTableFindings | None
    #: Invalidation marks that a cleanup would put first: at least so many, where not all regions were read.
    marks_to_put: int
    notices: tuple[Notice, ...]
    sample: float | None = None
    #: Cells a second that the survey kept to; 0: no limit.
    rate: int = 0
    #: Seconds that reading took.
    seconds: float = 0.0
    problems: tuple[str, ...] = ()

    @property
    def orphans(self) -> Estimate:
        """Orphaned cells in all tables."""
        return sum((t.orphans for t in self.tables), NOTHING)

    @property
    def heals(self) -> Estimate:
        """Cells to heal in all tables."""
        return sum((t.heals for t in self.tables), NOTHING)

    @property
    def cleanup_seconds(self) -> float:
        """About how long the first cleanup takes where this survey ran: reading as fast as this survey did, then
        acting.
        """
        read = sum(t.cells.value * t.regions_read / t.regions for t in self.tables if t.regions)
        everything = sum(t.cells.value for t in self.tables)
        actions = self.orphans.value + self.heals.value + self.marks_to_put
        return START_SECONDS + self.seconds * (everything / read if read else 1) + actions / MUTATIONS_PER_SECOND

    def to_json(self) -> str:
        """All of it for programs."""
        content = {**asdict(self), "cleanup_seconds": round(self.cleanup_seconds, 1)}
        return json.dumps(content, indent=2, default=lambda value: value.isoformat()) + "\n"
