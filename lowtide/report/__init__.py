"""The report: what a store was like, what was done, what it is like now; as one HTML page and as tables in the
terminal.

::

    page = render(Report(title="...", made_at=now, before=seen_before, after=seen_now, runs=runs, check=check))

``render`` and the values it takes are pure. The page asks no other host for anything and runs no script.
"""

from lowtide.report.observation import (
    Bank,
    CommitRows,
    Day,
    JobRun,
    Leftovers,
    ModelCheck,
    Observation,
    ReadPointCheck,
    RegionMark,
    Report,
    Workload,
    by_day,
    day_of,
)
from lowtide.report.page import render

__all__ = [
    "Bank",
    "CommitRows",
    "Day",
    "JobRun",
    "Leftovers",
    "ModelCheck",
    "Observation",
    "ReadPointCheck",
    "RegionMark",
    "Report",
    "Workload",
    "by_day",
    "day_of",
    "render",
]
