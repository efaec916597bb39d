"""What tests record in place of a cleanup is what the cleanup would have recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from conftest import Outcome
from lowtide_spark.frames.store import Store
from scene import Scene

from lowtide.cleaning.facts import Fact, region_watermark, valid
from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore
from lowtide.tables import settings
from lowtide.values.intervals import Intervals

pytestmark = pytest.mark.usefixtures("swept")


def test_the_records_of_a_test_are_those_of_the_jobs(
    job: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    connector: Store,
    state: StateStore,
    recorded: Callable[..., int],
) -> None:
    """For a table of complete transactions, twice with writes between, and for one in two families and regions: the
    facts, the table's life, its epoch and the time sample are the same, and the jobs change no cell."""

    def told(table: str) -> tuple[list[Fact], int, int]:
        """Without what names the run, its moment and what it read: what is cleaned is the same for every other run."""
        kept = state.read(table)
        (newest,) = {max(r.created for r in connector.regions(table))}
        assert kept.incarnation.newest_region == newest
        now = datetime.now(UTC).timestamp() * 1000
        for fact in kept.facts:
            assert now - 600_000 < fact.full_pass_at <= fact.recorded_at <= now
        plain = [replace(f, run="", recorded_at=0, full_pass_at=0, read=Intervals(), read_since=0) for f in kept.facts]
        return plain, kept.incarnation.number, kept.epoch.counter

    shapes = [(("a",), ()), (("a", "b"), (b"m",))]
    pairs = [tuple(scene.table(families, splits=splits) for _ in range(2)) for families, splits in shapes]
    by_jobs, by_hand = zip(*pairs, strict=True)
    for number in range(2):
        for table in (*by_jobs, *by_hand):
            scene.committed(table, row=b"%d" % number)
            scene.committed(table, row=b"z", value=b"")
        watermark = recorded(*by_hand)
        sample = state.samples()[-1]
        before = {table: omid.raw(table) for table in by_jobs}
        named = [part for table in by_jobs for part in ("--table", table)]
        assert job("orphan_cleanup", *named, "--full", "--execute").code == 0
        assert job("watermark_collection", "--execute").code == 0
        assert {table: omid.raw(table) for table in by_jobs} == before
        assert [told(table) for table in by_hand] == [told(table) for table in by_jobs]
        assert sample[1] == state.samples()[-1][1] == watermark == state.recorded_low_watermark().low_watermark
        assert timedelta() <= state.samples()[-1][0] - sample[0] < timedelta(minutes=10)
    shaped = {d.table: settings.shape_of(d, d.families) for d in connector.descriptors()}
    for table in (*by_jobs, *by_hand):
        regions, kept = connector.regions(table), state.read(table)
        facts = valid(kept.facts, {"a"}, kept.incarnation, shaped[table])
        assert {region_watermark(r.keys, facts) >= watermark for r in regions} == {True}


@pytest.mark.parametrize("left", ["orphan", "crashed_after_commit"])
def test_nothing_is_recorded_of_a_table_that_is_not_clean(
    scene: Scene, state: StateStore, recorded: Callable[..., int], left: str
) -> None:
    """A test whose table a cleanup would change has to run it."""
    table = scene.table()
    getattr(scene, left)(table)
    with pytest.raises(AssertionError, match="would have something to do"):
        recorded(table)
    assert state.read(table).facts == ()
