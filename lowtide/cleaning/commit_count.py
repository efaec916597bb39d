"""How full the commit table is: what ``commit_table_pruning`` counts of it, in the state table and in its summary.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

_WHEN = ("left", "before")


@dataclass(frozen=True, slots=True)
class CommitCount:
    """All commit entries and invalidation marks that the commit table held at *at* (wall clock of the job's driver).

    A row with both counts as both. What clients wrote while it was counted may be in it or not.
    """

    at: datetime
    entries: int
    marks: int


def count_figures(when: str, count: CommitCount) -> dict[str, int]:
    """*count* as a run's summary has it, of ``before`` the run acted, or of what it ``left``."""
    entries, marks = _names(when)
    return {entries: count.entries, marks: count.marks}


def counted_figures(figures: Mapping[str, int]) -> tuple[int, int] | None:
    """Entries and marks as counted last in a summary's *figures*; None: nothing was counted, as in summaries of earlier
    versions.
    """
    for entries, marks in map(_names, _WHEN):
        if entries in figures and marks in figures:
            return figures[entries], figures[marks]
    return None


def _names(when: str) -> tuple[str, str]:
    return f"commit entries {when}", f"invalidation marks {when}"
