"""The jobs on YARN, in client mode, as docs/clusters.md says. In the order of the file: the days of one store."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from days_kit import Days, entries_are_pruned, history_goes, left
from shown import check_snapshots
from yarn_kit import NOWHERE, PATIENCE, Ended, Site, tell

from lowtide.lab.waiting import reached
from lowtide.lab.workload import OmidClient, Shape, run

SHAPE = Shape(tables=("orders", "stock"))
TRANSACTIONS = 300
POINTS = 30
#: History may go as soon as it is history.
YOUNG = {"budget": {"share": 1.0}, "read": "snapshot", "history_max_age": "0s", "min_history_age": "0s"}


@pytest.fixture(scope="module")
def days(site: Site, omid: OmidClient, tmp_path_factory: pytest.TempPathFactory) -> Days:
    """A workload whose clients crashed, and the recipe's configuration: everything is read from HBase snapshots."""
    out = tmp_path_factory.mktemp("history") / "history"
    result = run(site.stack, 17, TRANSACTIONS, out, shape=SHAPE, kills=1, halts=1, regions=3, omid=omid)
    # Executors have no Python that works: the documented way needs none.
    config = site.configuration({"spark.executorEnv.PYSPARK_PYTHON": NOWHERE}, defaults=YOUNG)
    return Days(result.model, omid.watermark(), config)


def clean(site: Site, days: Days, *more: str, meanwhile: Callable[[], None] = lambda: None) -> Ended:
    return site.run("orphan_cleanup", "--config", str(days.config), "--full", *more, meanwhile=meanwhile)


def test_a_dry_run_reads_hbase_snapshots_from_hdfs_and_changes_nothing(
    site: Site, omid: OmidClient, days: Days
) -> None:
    """Executors in YARN's containers, without a Python that works, read both tables from HBase's files and find what
    brute force finds.
    """
    for table in days.model.tables:
        omid.flush(table)  # as the HBase snapshot does: what rolled back, behind its delete markers, is gone then
    before = {table: omid.raw(table) for table in days.model.tables}
    pythons: set[str | None] = set()

    def look() -> None:
        assert reached(lambda: len(site.executors()) == 2, PATIENCE, pause=0.1)
        pythons.update(executor.environment.get("PYSPARK_PYTHON") for executor in site.executors())

    planned = clean(site, days, meanwhile=look)
    assert planned.code == 0, planned.output
    assert {table["table"]: table["read"] for table in planned.summary["tables"] if table["counts"]["cells_read"]} == {
        table: "snapshot" for table in SHAPE.tables
    }
    assert planned.totals["deleted"] > 0
    assert planned.totals["healed"] > 0
    assert planned.totals["deleted"] + planned.totals["healed"] >= left(omid, days) > 50
    assert {table: omid.raw(table) for table in days.model.tables} == before
    application = site.applications("lowtide orphan_cleanup")[-1]
    logs = site.containers(application["id"])
    assert len(logs) == 2
    assert any("Finished task" in log.read_text("utf-8", "replace") for log in logs)
    assert pythons == {NOWHERE}


def test_what_goes_is_put_aside_on_hdfs(site: Site, omid: OmidClient, days: Days) -> None:
    """A run that acts does what was planned: nothing unproved is left, every read point shows what the model says, and
    the sideline of each table is on HDFS.
    """
    done = clean(site, days, "--execute")
    assert (done.code, done.summary["state"]) == (0, "done"), done.output
    days.first = done.summary["run"]
    assert left(omid, days) == 0
    check_snapshots(omid, days.model, days.model.read_timestamps(POINTS))
    listed = site.cluster.fs("-ls", "-R", "/lowtide/sideline").splitlines()
    for table in SHAPE.tables:
        assert any(f"/{table}/" in line and line.endswith(".parquet") for line in listed), listed


def test_a_restore_brings_it_back(site: Site, omid: OmidClient, days: Days) -> None:
    """``lowtide restore`` reads the sideline from HDFS and puts back every cell that the run deleted: a cleanup finds
    as many again. Readers see none of them.
    """
    ended = site.lowtide("restore", days.first, "--config", str(days.config), "--execute")
    assert ended.code == 0, ended.output
    check_snapshots(omid, days.model, days.model.read_timestamps(POINTS))
    back = left(omid, days)
    tell(f"{back} cells came back")
    assert back > 0
    again = clean(site, days, "--execute")
    assert (again.code, again.totals["deleted"]) == (0, back), again.output
    assert left(omid, days) == 0


def test_history_goes_that_no_reader_needs(site: Site, omid: OmidClient, days: Days) -> None:
    """Watermarks are collected, and history GC deletes; at the marks and now every table shows what the model says."""
    history_goes(site, omid, days, SHAPE.tables, more_than=100)


def test_commit_entries_are_pruned(site: Site, omid: OmidClient, days: Days) -> None:
    """No entry is left at or below the bound, and what the commit table proved is still shown."""
    entries_are_pruned(site, omid, days)


def test_exit_codes_reach_the_caller(site: Site, days: Days) -> None:
    """1 for a table that is not there, 2 for a sideline that executors elsewhere would not find: both are said by a
    driver that has its executors.
    """
    absent = site.run("orphan_cleanup", "--config", str(days.config), "--table", "nosuch")
    assert absent.code == 1, absent.output
    assert any("nosuch" in problem for problem in absent.problems)
    here = site.configuration(state={"sideline": "/tmp/lowtide-sideline"})
    refused = site.run("orphan_cleanup", "--config", str(here), "--execute")
    assert refused.code == 2, refused.output
    assert any("sideline" in problem for problem in refused.problems)
