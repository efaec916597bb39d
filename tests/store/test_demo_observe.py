"""What a report says of a store, on a real one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from lowtide.cleaning.facts import Blocker
from lowtide.config import load
from lowtide.health.reader import read_through
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.report import CommitRows, Day, RegionMark, contents, scans
from lowtide.store.gateway import connect
from lowtide.store.records import Bound
from lowtide.store.state import StateStore


@pytest.fixture
def commit_entries(omid: OmidClient):
    """Entries and marks of transactions of our own, taken away again after the test."""
    starts: list[int] = []

    def add(*, invalid: bool) -> int:
        start = omid.begin()
        starts.append(start)
        if invalid:
            assert omid.invalidate(start)
        else:
            omid.add_commit_entry(start, omid.begin())
        return start

    yield add
    for start in starts:
        omid.delete_commit_entry(start)


def test_commit_rows_are_counted_by_day(
    omid: OmidClient, configure: Callable[..., Path], commit_entries: Callable[..., int]
):
    """Entries and marks are counted apart, each on its day; the low watermark's row is neither."""
    first = omid.begin()
    for invalid in (False, False, True):
        commit_entries(invalid=invalid)
    second = omid.begin()
    for invalid in (False, True, True):
        commit_entries(invalid=invalid)
    third = omid.begin()
    commit_entries(invalid=True)
    days = (
        Day(date(2026, 1, 28), 0, first),
        Day(date(2026, 1, 29), first, second),
        Day(date(2026, 1, 30), second, third),
    )
    config = load(configure())
    with connect(config.hbase.thrift) as connection:
        rows = scans.commit_rows(connection, config, days)
    others = [e for start, e in omid.commit_table().items() if start < first]  # of other tests
    assert rows == (
        CommitRows(days[0].date, sum(not e.invalid for e in others), sum(e.invalid for e in others)),
        CommitRows(days[1].date, 2, 1),
        CommitRows(days[2].date, 1, 2),
        CommitRows(None, 0, 1),
    )


def test_regions_before_any_cleaning(omid: OmidClient, configure: Callable[..., Path]):
    """Every region of the named tables is there, in key order, with nothing cleaned."""
    omid.create("observed", ("a",), splits=("m", "t"))
    try:
        with connect(load(configure()).hbase.thrift) as connection:
            regions = scans.uncleaned_regions(connection, ["observed"])
    finally:
        omid.drop("observed")
    assert regions == tuple(RegionMark("observed", keys, 0) for keys in ("[-∞, m)", "[m, t)", "[t, ∞)"))


def test_marks_are_told_as_published(stack: Stack, omid: OmidClient, configure: Callable[..., Path]):
    """Low watermark from the oracle; region watermarks, newest bound and its blockers as the state table has them."""
    config = load(configure(state={"table": "OBSERVED_STATE"}))
    try:
        with connect(config.hbase.thrift) as connection:
            state = StateStore(connection, config.state.table)
            state.create()
            state.add_bound(Bound(datetime(2026, 1, 29, tzinfo=UTC), 10))
            holding = Blocker("t", "r1", "[m, ∞)", 20, "never cleaned", "clean it")
            as_dict = {name: getattr(holding, name) for name in Blocker.__slots__}
            state.add_bound(Bound(datetime(2026, 1, 30, tzinfo=UTC), 20, (as_dict,)))
            ranges = [("m", "", 20), ("", "m", 70)]
            state.put_watermarks(
                "t",
                {
                    "regions": [
                        {"region": str(n), "start": a.encode().hex(), "stop": b.encode().hex(), "watermark": mark}
                        for n, (a, b, mark) in enumerate(ranges)
                    ]
                },
            )
            seen = contents.observation(read_through(connection, config, datetime.now(UTC)))
        assert seen.low_watermark == omid.watermark()
        assert seen.bound == 20
        assert seen.regions == (RegionMark("t", "[-∞, m)", 70), RegionMark("t", "[m, ∞)", 20))
        assert seen.blockers == ("t [m, ∞): never cleaned. Remedy: clean it",)
    finally:
        omid.drop("OBSERVED_STATE")
