"""Looking at a store for a report: small reads through the Thrift gateway, and summaries of jobs turned into the report's values.

Only :func:`commit_rows` reads more than a few rows: it goes through the whole commit table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from lowtide.config import Config
from lowtide.errors import StoreError
from lowtide.report.observation import CommitRows, Day, JobRun, Leftovers, Observation, RegionMark, by_day
from lowtide.store.gateway import low_watermark
from lowtide.store.state import StateStore
from lowtide.values.clock import EPOCH, Clock, oracle_clock
from lowtide.values.formats import COMMIT_QUALIFIER, INVALID_QUALIFIER, parse_commit_key
from lowtide.values.keyranges import KeyRange

_FIRST_ROW = b"\x00"
#: No start timestamp's row begins higher: the first byte is a bucket of 0 to 15.
_AFTER_LAST_ROW = b"\x10"
_BATCH = 1000


def observe(connection: Any, config: Config, leftovers: tuple[Leftovers, ...] = ()) -> Observation:
    """The store as the state table and the oracle tell of it now; without the commit table (see :func:`commit_rows`).

    Raises:
        StoreError: the low watermark cannot be read.
    """
    state = StateStore(connection, config.state.table)
    bound = next(iter(state.bounds(1)), None)
    return Observation(
        at=datetime.now(UTC),
        low_watermark=low_watermark(connection, config),
        bound=None if bound is None else bound.value,
        leftovers=leftovers,
        regions=published_regions(state.watermarks()),
        blockers=() if bound is None else _blockers(bound.blockers),
    )


def published_regions(watermarks: Mapping[str, Mapping[str, Any]]) -> tuple[RegionMark, ...]:
    """Every region's watermark as ``watermark_collection`` published it last, by table and key."""
    return tuple(
        RegionMark(table, str(KeyRange(bytes.fromhex(r["start"]), bytes.fromhex(r["stop"]))), r["watermark"])
        for table, published in sorted(watermarks.items())
        for r in sorted(published["regions"], key=lambda r: str(r["start"]))
    )


def uncleaned_regions(connection: Any, tables: Iterable[str]) -> tuple[RegionMark, ...]:
    """The regions of *tables* as listed now, each with watermark 0, for a store that nothing has cleaned yet."""
    return tuple(
        RegionMark(table, str(KeyRange(region["start_key"], region["end_key"])), 0)
        for table in sorted(tables)
        for region in sorted(connection.table(table).regions(), key=lambda r: bytes(r["start_key"]))
    )


def commit_rows(connection: Any, config: Config, days: Sequence[Day]) -> tuple[CommitRows, ...]:
    """The commit table's entries and marks, counted by day. A row with both counts as a mark, which is how readers take it."""
    entries: list[int] = []
    marks: list[int] = []
    family = config.omid.commit_family.encode()
    commit, invalid = (family + b":" + name for name in (COMMIT_QUALIFIER, INVALID_QUALIFIER))
    table = connection.table(config.omid.commit_table)
    for row, cells in table.scan(row_start=_FIRST_ROW, row_stop=_AFTER_LAST_ROW, batch_size=_BATCH):
        start = parse_commit_key(row)
        if start is not None and invalid in cells:
            marks.append(start)
        elif start is not None and commit in cells:
            entries.append(start)
    return by_day(entries, marks, days)


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
        started=EPOCH + timedelta(milliseconds=summary["started"]),
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
    """The *count* days (UTC) before *today* by the oracle's clock; none where the clock cannot tell."""
    midnights = [datetime.combine(today - timedelta(days=back), time(), UTC) for back in range(count, -1, -1)]
    try:
        stamps = [clock.timestamp(at) for at in midnights]
    except StoreError:
        return ()
    edges = zip(midnights, stamps, stamps[1:], strict=False)
    return tuple(Day(at.date(), start, end) for at, start, end in edges if start < end)


def clock_of(config: Config, state: StateStore, watermark: int) -> Clock:
    """The oracle's clock, by ``omid.clock`` and its low watermark."""
    return oracle_clock(config.omid.clock, watermark, state.samples)


def _blockers(blockers: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """What holds the bound, a sentence for each table, reason and remedy; the first of its regions by their keys."""
    return tuple(
        f"{b['table']} {b['keys'] or ''}{f' and {more} more regions' if (more := b.get('regions', 1) - 1) else ''}".strip()
        + f": {b['reason']}. Remedy: {b['remedy']}"
        for b in blockers
    )
