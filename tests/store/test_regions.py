"""Regions split, merge and move; tables come, go and come back; intervals arrive in any order: the records stay
right.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark.cleaning import suspects
from lowtide_spark.frames.inventory import META
from lowtide_spark.frames.store import Store
from scene import Scene

from lowtide.cleaning.facts import cleaned_intervals, region_watermark, valid
from lowtide.lab.workload import OmidClient
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore
from lowtide.tables import settings
from lowtide.values.formats import after, encode_long, shadow_qualifier

Job = Callable[..., Outcome]
ROWS = (b"a", b"h", b"p", b"z")


def clean(job: Job, table: str, *extra: str) -> Outcome:
    """Run orphan_cleanup for one table, acting."""
    return job("orphan_cleanup", "--table", table, "--execute", *extra)


def watermarks(connector: Store, state: StateStore, table: str) -> list[int]:
    """The watermark of each region now, in key order."""
    regions = connector.regions(table)
    recorded = state.read(table)
    (descriptor,) = [d for d in connector.descriptors() if d.table == table]
    facts = valid(recorded.facts, {"a"}, recorded.incarnation.advance(regions), settings.shape_of(descriptor, {"a"}))
    return [region_watermark(r.keys, facts) for r in regions]


def test_daughters_and_merged_regions_keep_what_was_recorded(
    job: Job, scene: Scene, omid: OmidClient, connector: Store, state: StateStore
) -> None:
    """After a split, a merge and a move nothing is read again, and each region has its parents' watermark."""
    table = scene.table(splits=(b"g", b"s"))
    for row in ROWS:
        scene.orphan(table, row=row)
    watermark = after(omid.advance_watermark()) - 1
    assert clean(job, table).code == 0
    assert watermarks(connector, state, table) == [watermark] * 3
    scene.committed(table, row=b"a")
    omid.flush(table)
    omid.split(table, b"c")
    assert watermarks(connector, state, table) == [watermark] * 4
    omid.move(table, b"p")
    second = after(omid.advance_watermark()) - 1
    outcome = clean(job, table)
    assert (outcome.code, outcome.table(table)["intervals"]) == (0, [[watermark + 1, second + 1]])
    assert watermarks(connector, state, table) == [second] * 4
    omid.compact(table, major=True)
    omid.merge(table, b"a")
    assert watermarks(connector, state, table) == [second] * 3
    assert job("watermark_collection", "--execute").code == 0
    published = state.watermarks()[table]["regions"]
    assert [r["watermark"] for r in published] == [second] * 3


def test_a_region_is_told_as_opened_when_its_server_had_not_opened_it_yet(
    scene: Scene, omid: OmidClient, connector: Store
) -> None:
    """By that time the server cannot have read the table's settings, and hbase:meta has it as open only later. Each
    region is told of, parents of splits are not; of a table that is disabled it is told that none is open.
    """
    table = scene.table(splits=(b"g", b"s"))
    scene.table()
    scene.orphan(table)
    omid.flush(table)
    first = connector.opened(table)
    omid.split(table, b"n")
    omid.move(table, b"a")
    opened = connector.opened(table)
    kept = first.keys() & opened.keys()
    assert (len(first), len(opened), len(kept)) == (3, 4, 2), "the parent of the split is gone"
    assert sorted(opened[region] > first[region] for region in kept) == [False, True]
    assert set(opened) == {region.name for region in connector.regions(table)}
    with connect(connector.config.hbase.thrift) as gateway:
        rows = gateway.table(META).scan(row_start=f"{table},,".encode(), row_stop=f"{table} ,,".encode())
        located = {row.split(b".")[-2].decode(): row for row, _ in rows}
        for region, sent in opened.items():
            _, at = gateway.table(META).row(located[region], [b"info:server"], include_timestamp=True)[b"info:server"]
            assert 0 < sent < at, region
        gateway.disable_table(table)
        assert set(connector.opened(table).values()) == {0}
        gateway.enable_table(table)
    assert min(connector.opened(table).values()) > max(opened.values())


def test_a_region_that_splits_while_the_run_reads_is_covered(
    job: Job, scene: Scene, omid: OmidClient, connector: Store, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A split between planning and reading loses no row: the key range planned is what is read and recorded."""
    table = scene.table(splits=(b"m",))
    orphans_put = [scene.orphan(table, row=row) for row in ROWS]
    omid.flush(table)
    watermark = after(omid.advance_watermark()) - 1
    find = suspects.find
    split: list[str] = []

    def splitting(*arguments: Any) -> None:
        if not split:
            split.append(table)
            omid.split(table, b"d")
        find(*arguments)

    monkeypatch.setattr(suspects, "find", splitting)
    outcome = clean(job, table)
    assert (outcome.code, outcome.totals["deleted"]) == (0, len(orphans_put))
    assert scene.data(table) == {}
    assert watermarks(connector, state, table) == [watermark] * 3


def test_days_in_any_order_end_as_one_pass(
    job: Job, scene: Scene, omid: OmidClient, connector: Store, state: StateStore
) -> None:
    """Backfilled days, out of order, one of them twice, leave the same cells and the same cleaned interval as one
    pass.
    """
    table, other = scene.table(), scene.table()
    state.create()
    now = datetime.now(UTC).replace(microsecond=0)
    days = [now - timedelta(days=5 - n) for n in range(4)]
    state.add_sample(days[0] - timedelta(days=400), 0)
    for day in days:
        state.add_sample(day, omid.begin())
        for name in (table, other):
            scene.orphan(name, row=b"orphan")
            scene.crashed_after_commit(name, row=b"healed")
    omid.advance_watermark()
    state.add_sample(now - timedelta(days=1), omid.begin())
    edges = [
        (now - timedelta(days=399)).isoformat(),
        *(d.isoformat() for d in days[1:]),
        (now - timedelta(hours=23)).isoformat(),
    ]
    for n in (2, 0, 3, 2, 1):
        assert clean(job, table, "--from", edges[n], "--to", edges[n + 1]).code == 0
    assert clean(job, other, "--full", "--to", edges[-1]).code == 0
    cleaned = []
    for name in (table, other):
        recorded = state.read(name)
        (region,) = connector.regions(name)
        cleaned.append(cleaned_intervals(region.keys, recorded.facts))
    assert cleaned[0] == cleaned[1]
    assert len(cleaned[0].pairs) == 1
    versions = [len(scene.data(name)) for name in (table, other)]
    assert versions == [8, 8]  # four healed cells with their shadow cells


def test_a_gap_holds_the_watermark(
    job: Job, scene: Scene, omid: OmidClient, connector: Store, state: StateStore
) -> None:
    """A day that was left out keeps the region watermark below it; a scheduled run without --from fills the gap."""
    table = scene.table()
    state.create()
    now = datetime.now(UTC).replace(microsecond=0)
    state.add_sample(now - timedelta(days=300), 0)
    state.add_sample(now - timedelta(hours=20), omid.begin())
    scene.orphan(table)
    state.add_sample(now - timedelta(hours=10), omid.begin())
    late = scene.orphan(table, row=b"late")
    watermark = after(omid.advance_watermark()) - 1
    assert clean(job, table, "--from", (now - timedelta(hours=9)).isoformat()).code == 0
    assert not scene.has(table, late, row=b"late")
    assert watermarks(connector, state, table) == [0]
    assert clean(job, table).totals["deleted"] == 1
    assert watermarks(connector, state, table) == [watermark]


def test_an_empty_table_and_a_new_one_are_recorded(
    job: Job, scene: Scene, omid: OmidClient, connector: Store, state: StateStore
) -> None:
    """Empty regions are recorded like others, so that they hold nothing back."""
    table = scene.table(splits=(b"g", b"s"))
    watermark = after(omid.advance_watermark()) - 1
    assert clean(job, table).code == 0
    assert watermarks(connector, state, table) == [watermark] * 3


def test_a_clone_is_a_table_of_its_own(
    job: Job, scene: Scene, omid: OmidClient, connector: Store, state: StateStore
) -> None:
    """A table cloned from an HBase snapshot inherits no record: it is cleaned from 0."""
    table = scene.table()
    scene.orphan(table)
    omid.snapshot(table, f"{table}-snap")
    omid.advance_watermark()
    assert clean(job, table).code == 0
    clone = f"{table}clone"
    omid.clone(f"{table}-snap", clone)
    scene.tables.append(clone)
    omid.delete_snapshot(f"{table}-snap")
    assert watermarks(connector, state, clone) == [0]
    outcome = clean(job, clone)
    assert (outcome.code, outcome.totals["deleted"]) == (0, 1)


@pytest.mark.usefixtures("no_snapshots")
def test_both_ways_of_reading_see_the_same(job: Job, scene: Scene, omid: OmidClient, configure: Any) -> None:
    """Over an HBase snapshot, made after the low watermark was read and with the memstore flushed, a run finds what it
    finds over rpc; none is left.
    """
    table = scene.table(splits=(b"m",))
    for row in ROWS:
        scene.orphan(table, row=row)
        scene.crashed_after_commit(table, row=row)
    omid.advance_watermark()
    live = job("orphan_cleanup", "--table", table)
    found = [live.totals[n] for n in ("candidates", "healed", "deleted")]
    assert found == [2 * len(ROWS), len(ROWS), len(ROWS)]
    snapshot = configure(defaults={"read": "snapshot", "budget": {"share": 1.0}})
    read = job("orphan_cleanup", "--table", table, "--execute", config=snapshot)
    assert read.table(table)["read"] == "snapshot"
    assert [read.totals[n] for n in ("candidates", "healed", "deleted")] == found
    assert read.code == 0
    assert omid.snapshots() == []
    assert job("orphan_cleanup", "--table", table, "--full").totals["candidates"] == len(
        ROWS
    )  # their entries are still there


def test_a_bulk_load_is_found_by_the_full_pass(job: Job, scene: Scene, omid: OmidClient) -> None:
    """Cells that arrive below the watermark with old timestamps, as a bulk load's do, are healed or removed by the full
    pass.
    """
    table = scene.table()
    start, commit = omid.begin(), omid.begin()
    orphan = omid.begin()
    omid.advance_watermark()
    assert clean(job, table).code == 0
    scene.cell(table, start, row=b"loaded")
    omid.put(table, b"other", b"a", shadow_qualifier(b"q"), start, encode_long(commit))
    scene.cell(table, orphan, row=b"loaded too")
    assert clean(job, table, "--full").code == 0
    assert scene.healed(table, start, row=b"loaded") == commit
    assert not scene.has(table, orphan, row=b"loaded too")
