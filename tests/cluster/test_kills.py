"""Executors that are killed while a job works: SIGKILL of a container's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shown import check_snapshots, unproved
from yarn_kit import PATIENCE, Executor, Site, held_still, tell

from lowtide.lab.waiting import reached
from lowtide.lab.workload import Model, OmidClient, Shape, run
from tests import seeds

TRANSACTIONS = 500
POINTS = 30
#: So that there are many tasks, and some of them are under way at any moment.
REGIONS = 15
CONF = {"spark.sql.shuffle.partitions": "40"}

Tables = Callable[[str, int], tuple[Model, int]]


@pytest.fixture
def tables(site: Site, omid: OmidClient, tmp_path: Path) -> Iterator[Tables]:
    """A workload in tables of the test's own; they go with it."""
    made: list[str] = []

    def work(name: str, seed: int) -> tuple[Model, int]:
        made[:] = [f"{name}1", f"{name}2"]
        shape = Shape(tables=made)
        result = run(
            site.stack,
            seed,
            TRANSACTIONS,
            tmp_path / "history",
            shape=shape,
            kills=0,
            halts=0,
            regions=REGIONS,
            omid=omid,
        )
        return result.model, omid.watermark()

    yield work
    for table in made:
        omid.drop(table)


def check(omid: OmidClient, model: Model, watermark: int) -> None:
    """Nothing unproved is left, and readers are shown what the model says."""
    assert {table: unproved(omid, table, watermark) for table in model.tables} == {table: [] for table in model.tables}
    compared = check_snapshots(omid, model, model.read_timestamps(POINTS))
    tell(f"{compared} comparisons of tables at read points equal the model")


@seeds.each("an executor killed while it reads", always=[3])
def test_an_executor_that_is_killed_while_it_reads_costs_no_cell(
    site: Site, omid: OmidClient, tables: Tables, seed: int
) -> None:
    """In the middle of a scan of a live table one executor is ended by SIGKILL. Spark reads that piece again in
    another container, and the cleanup finds all there is: it ends well, and the model holds.
    """
    model, watermark = tables("read", seed)
    config = site.configuration(CONF, defaults={"budget": {"share": 1.0}, "read": "rpc"})
    killed: list[Executor] = []

    def kill() -> None:
        site.kill_one_in("lowtide.connector.PieceReader.next", killed)

    done = site.run("orphan_cleanup", "--config", str(config), "--full", "--execute", meanwhile=kill)
    (victim,) = killed
    tell(f"killed while it read: {victim.name}, with {len(victim.unfinished())} tasks under way")
    assert victim.unfinished()
    assert (done.code, done.summary["state"]) == (0, "done"), done.output
    application = site.applications("lowtide orphan_cleanup")[-1]
    assert len(site.containers(application["id"])) == 3, "two, and one in place of the dead"
    assert done.totals["deleted"] > 50
    check(omid, model, watermark)


@seeds.each("executors killed while they write", always=[3])
def test_executors_that_are_killed_while_they_delete_leave_nothing_half_done(
    site: Site, omid: OmidClient, tables: Tables, seed: int
) -> None:
    """When some cells of a table have gone and others have not, every executor is ended by SIGKILL. Others go on where
    they were: a cell that is gone already is no failure, and the model holds.
    """
    model, watermark = tables("write", seed)
    config = site.configuration(CONF, defaults={"budget": {"share": 1.0}, "read": "rpc"})
    first = model.tables[0]
    planned = {key for key in unproved(omid, first, watermark)}
    found: list[tuple[list[Executor], int, int]] = []

    def kill() -> None:
        """By the first cell that has gone."""

        def deletes() -> int:
            return sum(cell.kind == "delete" for cell in omid.raw(first))

        began = deletes()
        assert reached(lambda: deletes() > began, PATIENCE, pause=0.0), "nothing was deleted"
        executors = site.executors()
        with held_still(executors):
            gone = deletes() - began
            found.append((executors, gone, len(unproved(omid, first, watermark))))
            for executor in executors:
                executor.process.kill()

    done = site.run("orphan_cleanup", "--config", str(config), "--full", "--execute", meanwhile=kill)
    ((victims, gone, still),) = found
    under_way = sum(len(victim.unfinished()) for victim in victims)
    tell(
        f"killed while they wrote: {', '.join(victim.name for victim in victims)}, {under_way} tasks under way; "
        f"{gone} cells were gone, {still} not"
    )
    assert len(victims) == 2
    assert gone > 0
    assert still > 0, "the writing was over"
    assert under_way > 0
    if done.code:
        tell(f"the run ended with {done.code}: {done.problems}")
        done = site.run("orphan_cleanup", "--config", str(config), "--full", "--execute")
    assert (done.code, done.summary["state"]) == (0, "done"), done.output
    assert planned
    check(omid, model, watermark)
