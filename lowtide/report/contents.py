"""A report's values from what was read of a store (:mod:`lowtide.health.reader`) and from summaries of jobs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from lowtide.config import Config
from lowtide.errors import StoreError
from lowtide.health import Reading
from lowtide.health.bound import blocker_text
from lowtide.report.observation import Day, JobRun, Leftovers, Observation, RegionMark
from lowtide.values.clock import Clock, from_millis
from lowtide.values.keyranges import KeyRange


def observation(reading: Reading, leftovers: tuple[Leftovers, ...] = ()) -> Observation:
    """The store as it was at that moment, with the *leftovers* of a dry run; without the commit table.

    Raises:
        StoreError: the low watermark could not be read.
    """
    if reading.low_watermark is None:
        raise StoreError(reading.low_watermark_problem)
    bound = reading.bound
    return Observation(
        at=reading.at,
        low_watermark=reading.low_watermark,
        bound=None if bound is None else bound.value,
        leftovers=leftovers,
        regions=published_regions(reading.watermarks),
        blockers=() if bound is None else tuple(blocker_text(each) for each in bound.blockers),
    )


def published_regions(watermarks: Mapping[str, Mapping[str, Any]]) -> tuple[RegionMark, ...]:
    """Every region's watermark as ``watermark_collection`` published it last, by table and key."""
    return tuple(
        RegionMark(table, str(KeyRange(bytes.fromhex(r["start"]), bytes.fromhex(r["stop"]))), r["watermark"])
        for table, published in sorted(watermarks.items())
        for r in sorted(published["regions"], key=lambda r: str(r["start"]))
    )


def leftovers(summary: Mapping[str, Any], config: Config) -> tuple[Leftovers, ...]:
    """What a dry run of ``orphan_cleanup`` found, by data table."""
    return tuple(
        Leftovers(t["table"], t["counts"]["deleted"], t["counts"]["healed"], t["counts"]["cells_read"])
        for t in sorted(summary["tables"], key=lambda t: str(t["table"]))
        if t["table"] != config.omid.commit_table  # named for the marks it is given
    )


def job_run(summary: Mapping[str, Any], days: Sequence[Day] = ()) -> JobRun:
    """A run from its summary. An orphan cleanup whose intervals lie within one of *days* was for that day."""
    totals = summary["totals"]
    return JobRun(
        job=summary["job"],
        run=summary["run"],
        started=from_millis(summary["started"]),
        seconds=summary["seconds"],
        execute=summary["execute"],
        state=summary["state"],
        day=_single_day(summary, days),
        healed=totals["healed"],
        deleted=totals["deleted"],
        marked=totals["marked"],
        pruned=totals["pruned"],
        # Summaries of earlier versions lack them.
        finished=totals.get("finished", 0),
        dropped=totals.get("dropped", 0),
        problems=(*summary["problems"], *(f"{t['table']}: {p}" for t in summary["tables"] for p in t["problems"])),
    )


def _single_day(summary: Mapping[str, Any], days: Sequence[Day]) -> date | None:
    intervals = [interval for table in summary["tables"] for interval in table["intervals"]]
    if summary["job"] != "orphan_cleanup" or not intervals:
        return None
    start, end = min(a for a, _ in intervals), max(b for _, b in intervals)
    return next((day.date for day in days if day.from_ts <= start and end <= day.to_ts), None)


def last_days(clock: Clock, today: date, count: int) -> tuple[Day, ...]:
    """The *count* days (UTC) before *today* by the oracle's clock; none where the clock knows no times."""
    midnights = [datetime.combine(today - timedelta(days=back), time(), UTC) for back in range(count, -1, -1)]
    try:
        stamps = [clock.timestamp(at) for at in midnights]
    except StoreError:
        return ()
    edges = zip(midnights, stamps, stamps[1:], strict=False)
    return tuple(Day(at.date(), start, end) for at, start, end in edges if start < end)
