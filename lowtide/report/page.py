"""The report as one HTML page.

The plots are HTML and CSS, drawn by the template: bars that are cells of a table, and marks on an axis of days. So the
page needs no script and no other host (its own content policy forbids both), weighs some ten kilobytes, follows the
reader's light or dark theme, prints, and each number stands beside its bar. plotly.js was weighed for it: 4.8 MB
inlined for four bar charts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import groupby

from jinja2 import Environment

from lowtide.report.html import environment, rendered
from lowtide.report.observation import Day, RegionMark, Report
from lowtide.values.clock import WorldClock, is_world
from lowtide.values.formats import WORLD_CLOCK_MIN
from lowtide.values.text import moment_text

#: Regions drawn one by one; of more, those that are furthest behind.
_MOST_REGIONS = 120


def render(report: Report) -> str:
    """The page of *report*: a whole HTML document."""
    regions, hidden = _furthest_behind(report.after.regions)
    return rendered(
        _environment(),
        "page.html.j2",
        report=report,
        before=report.before,
        after=report.after,
        faults=report.faults,
        axis=Axis.of(report),
        regions=[(table, list(marks)) for table, marks in groupby(regions, key=lambda m: m.table)],
        hidden_regions=hidden,
    )


@dataclass(frozen=True, slots=True)
class Axis:
    """The oracle's timestamps from *low* to *high*, left to right, with the days on them."""

    low: int
    high: int
    days: tuple[Day, ...]

    @classmethod
    def of(cls, report: Report) -> Axis:
        """Wide enough for every day, mark and read point of *report*."""
        marks = [m.watermark for m in report.after.regions]
        marks += [report.after.low_watermark, report.after.bound or 0]
        marks += [d.to_ts for d in report.days]
        marks += [s.timestamp for s in report.check.snapshots] if report.check else []
        lows = [d.from_ts for d in report.days[:1]] or [m for m in marks if m]
        low = min(lows, default=0)
        high = max(marks)
        # A world clock's numbers begin in 1970: without days, the axis begins where there is something to see.
        margin = 0 if report.days or high < WORLD_CLOCK_MIN else (high - low) // 10
        return cls(low - margin if report.days or margin else 0, max(high, 1), report.days)

    def percent(self, timestamp: int) -> float:
        """Where *timestamp* lies between the ends, as a number of 0 to 100."""
        share = (timestamp - self.low) / max(self.high - self.low, 1)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def spans(self) -> Iterator[tuple[Day, float, float]]:
        """Each day with its left edge and its width, in percent."""
        for day in self.days:
            left = self.percent(day.from_ts)
            yield day, left, round(self.percent(day.to_ts) - left, 2)


def _furthest_behind(regions: Sequence[RegionMark]) -> tuple[list[RegionMark], int]:
    """The regions to draw, in the order given, and how many are left out."""
    if len(regions) <= _MOST_REGIONS:
        return list(regions), 0
    shown = sorted(regions, key=lambda r: r.watermark)[:_MOST_REGIONS]
    return sorted(shown, key=lambda r: (r.table, r.keys)), len(regions) - len(shown)


@cache
def _environment() -> Environment:
    return environment("lowtide.report", stamp=_stamp, day=_day)


def _stamp(timestamp: int) -> str:
    """A world clock's timestamp as a time, to the minute: it stands in large figures; a counter's as the number that it
    is.
    """
    return moment_text(WorldClock().time(timestamp)) if is_world(timestamp) else f"{timestamp:,}"


def _day(day: date | None) -> str:
    return f"{day:%a} {day.day} {day:%b}" if day else "later"
