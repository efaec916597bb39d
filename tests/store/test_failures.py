"""What HBase refuses a job, and what dead runs left: nothing that follows is done without what had to come before
it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deadman
import pytest
import wreck
from conftest import Outcome
from deadman import Moment
from lowtide_spark.frames.store import Store
from pyspark.sql import functions as F
from scene import Scene

from lowtide.config import Config
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]
COMMIT_TABLE = Config().omid.commit_table


def refusing(patched: pytest.MonkeyPatch, op: str, where: str = COMMIT_TABLE) -> None:
    """HBase refuses these writes to the commit table, or to another: they name a family that it has not."""
    write = Store.write

    def elsewhere(self: Store, mutations: Any, table: str, **named: Any) -> Any:
        if table == where:
            nowhere = F.when(F.col("op") == op, F.lit(b"nowhere")).otherwise(F.col("family"))
            mutations = mutations.withColumn("family", nowhere)
        return write(self, mutations, table, **named)

    patched.setattr(Store, "write", elsewhere)


def test_nothing_is_pruned_where_the_journal_cannot_be_written(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal is the only proof for what is restored later: a journal that refuses what is put into it leaves every
    entry where it is.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    omid.advance_watermark()
    assert job("orphan_cleanup", "--table", table, "--full", "--execute").code == 0
    assert scene.healed(table, start) == commit
    assert job("watermark_collection", "--execute").code == 0
    before = omid.commit_table()
    assert start in before
    pruning = ("commit_table_pruning", "--grace", "0s", "--execute")
    with monkeypatch.context() as patched:
        refusing(patched, "put", Config().state.journal_table)
        refused = job(*pruning)
    assert omid.commit_table() == before
    assert refused.code == 1
    assert "journal entries could not be written; nothing was pruned" in refused.problems
    assert refused.totals["pruned"] == 0
    done = job(*pruning)
    assert done.code == 0, done.problems
    assert start not in omid.commit_table()


def test_without_its_mark_nothing_is_deleted(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where HBase refuses an invalidation mark, the orphan stays, its range is not recorded, the run is red; the next
    one goes on.
    """
    table = scene.table()
    start = scene.orphan(table)
    omid.advance_watermark()
    with monkeypatch.context() as patched:
        refusing(patched, "put_if_absent")
        refused = job("orphan_cleanup", "--table", table, "--execute")
    assert scene.has(table, start)
    assert refused.code == 1
    assert "1 invalidation marks could not be put" in refused.problems
    assert "its invalidation mark cannot be read back" in refused.problems
    assert (state.read(table).facts, start in omid.commit_table()) == ((), False)
    again = job("orphan_cleanup", "--table", table, "--execute")
    assert again.code == 0, again.problems
    assert not scene.has(table, start)


def test_a_wrong_mark_that_cannot_be_removed_is_told(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit with a mark is healed all the same; the run that could not remove the mark is red, and names it."""
    table = scene.table()
    start, commit = scene.committed(table, qualifier=b"sibling")
    scene.cell(table, start)
    assert omid.invalidate(start)
    omid.advance_watermark()
    with monkeypatch.context() as patched:
        refusing(patched, "delete_version")
        refused = job("orphan_cleanup", "--table", table, "--execute")
    assert "1 wrong marks could not be removed" in refused.problems
    assert (refused.code, refused.totals["unmarked"]) == (1, 0)
    assert scene.healed(table, start) == commit
    assert omid.commit_table()[start].invalid


def test_what_dead_runs_made_of_hbases_is_swept(
    job: Job, scene: Scene, omid: OmidClient, stack: Stack, configure: Callable[..., Path]
) -> None:
    """The next cleanup of a table that reads an HBase snapshot drops those of dead runs, of history GC too, and folders
    that are older than a day; other tables', and what only looks like them, it leaves alone.
    """
    config = configure(defaults={"read": "snapshot", "history_max_age": "0s", "min_history_age": "0s"})
    table, other = scene.table(), scene.table()
    scene.committed(table)
    omid.advance_watermark()
    for name in (table, other):
        assert job("orphan_cleanup", "--table", name, "--full", "--execute", config=config).code == 0
    assert job("watermark_collection", "--execute", config=config).code == 0

    def dies(name: str, *arguments: str) -> None:
        def watch(effect: deadman.Effect, moment: Moment) -> deadman.Die | None:
            return deadman.Die() if effect.name == "createSnapshot" and moment is Moment.AFTER else None

        assert deadman.run(lambda: job(name, *arguments, "--execute", config=config), watch).killed

    dies("orphan_cleanup", "--table", table, "--full")
    dies("orphan_cleanup", "--table", other, "--full")
    dies("history_gc", "--table", table)
    alike = f"lowtide-run-{table}-of-somebody"
    omid.snapshot(table, alike)
    assert (len(wreck.snapshots(omid, table)), len(wreck.snapshots(omid, other))) == (3, 1)
    old, young = sorted(wreck.folders(stack, table))
    for name in (old, *wreck.folders(stack, other)):
        before = time.time() - 25 * 3600
        os.utime(wreck.scratch(stack) / name, (before, before))
    again = job("orphan_cleanup", "--table", table, "--full", "--execute", config=config)
    assert again.code == 0, again.problems
    assert wreck.snapshots(omid, table) == [alike]
    assert wreck.folders(stack, table) == [young]
    assert (len(wreck.snapshots(omid, other)), len(wreck.folders(stack, other))) == (1, 1)
    for name in (alike, *wreck.snapshots(omid, other)):
        omid.delete_snapshot(name)


def test_what_a_dead_run_left_is_swept_where_nothing_is_to_be_read_any_more(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """A run that dies when all is recorded leaves its HBase snapshot, which keeps files of the table; the next one has
    nothing to do there and drops it."""
    config = configure(defaults={"read": "snapshot"})
    table = scene.table()
    scene.orphan(table)
    omid.advance_watermark()

    def watch(effect: deadman.Effect, moment: Moment) -> deadman.Die | None:
        return deadman.Die() if effect.name == "dropSnapshot" and moment is Moment.BEFORE else None

    clean = ("orphan_cleanup", "--table", table, "--execute")
    assert deadman.run(lambda: job(*clean, config=config), watch).killed
    assert len(wreck.snapshots(omid, table)) == 1
    again = job(*clean, config=config)
    assert again.code == 0, again.problems
    assert again.totals["cells_read"] == 0
    assert wreck.snapshots(omid, table) == []


def test_a_sideline_whose_list_was_cut_off_hides_no_other(
    job: Job, scene: Scene, omid: OmidClient, tmp_path: Path
) -> None:
    """A run that dies while it writes the list of what it put aside has removed nothing of that table; its other tables
    can be restored.
    """
    first, second = scene.table(), scene.table()
    orphans = [(table, scene.orphan(table)) for table in (first, second)]
    omid.advance_watermark()
    both = ("orphan_cleanup", "--table", first, "--table", second, "--execute", "--run-id", "cut-off")
    lists = 0

    def watch(effect: deadman.Effect, moment: Moment) -> deadman.Die | None:
        nonlocal lists
        lists += (effect.name, effect.step) == ("write", "file_list.write") and moment is Moment.BEFORE
        return deadman.Die(0.5) if lists == 2 else None

    dead = deadman.run(lambda: job(*both), watch)
    assert dead.killed
    assert dead.applied is not None
    assert 0 < dead.applied[0] < dead.applied[1]
    assert [scene.has(*orphan) for orphan in orphans] == [False, True]
    back = job("sideline_restore", "--restore", "cut-off", "--execute")
    assert scene.has(*orphans[0]), back.problems
    assert scene.has(*orphans[1])
    assert back.totals["restored"] == 1
    assert back.code == 0, "some lay there already: the others were to come back"
    assert back.totals["skipped"] == {"there already": 1}
    again = job(*both)
    assert again.code == 0, again.problems
    assert [scene.has(*orphan) for orphan in orphans] == [False, False]
