"""The sideline's disk is full. All files of a driver's process end early then, those of whoever shares it too: this is
tried in a driver of one's own.
"""

from __future__ import annotations

from collections.abc import Callable

import deadman
import disks
import pytest
from conftest import Outcome
from deadman import Moment
from pyspark.sql import SparkSession
from scene import Scene

from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore

pytestmark = pytest.mark.usefixtures("swept")


@pytest.mark.skipif(not disks.POSSIBLE, reason="a disk that is full for one process alone takes Linux")
def test_where_the_sideline_has_no_room_nothing_is_removed(
    job: Callable[..., Outcome], scene: Scene, omid: OmidClient, state: StateStore, spark: SparkSession
) -> None:
    """The disk fills up while a run puts aside what is to go: that is said, with what mends it, and everything stays
    and is in no record. With room again the next run does it all.
    """
    table = scene.table()
    start = scene.orphan(table)
    omid.advance_watermark()
    driver = disks.driver(spark)

    def watch(effect: deadman.Effect, moment: Moment) -> None:
        disks.set_full(
            driver, full=effect.step in ("sideline.put_aside", "file_list.write") and moment is Moment.BEFORE
        )

    clean = ("orphan_cleanup", "--table", table, "--execute")
    outcome = deadman.run(lambda: job(*clean), watch).result
    assert scene.has(table, start)
    assert outcome is not None
    assert outcome.code == 1
    assert "cannot be written, so nothing that was to go there is removed" in outcome.problems
    assert "see that state.sideline has room" in outcome.problems
    assert (state.read(table).facts, outcome.totals["deleted"]) == ((), 0)
    again = job(*clean)
    assert again.code == 0, again.problems
    assert not scene.has(table, start)
