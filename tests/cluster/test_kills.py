"""Executors that are killed while a job works: SIGKILL of a container's process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from shown import check_snapshots, unproved
from yarn_kit import PATIENCE, Ended, Executor, Site, held_still, tell

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


def finished(site: Site, config: Path, done: Ended) -> Ended:
    """The cleanup to its end: a run that lost what it had planned says so, and another does the rest."""
    if done.code == 0:
        return done
    tell(f"the run ended with {done.code}: {done.problems}")
    assert done.code == 1
    assert all("an executor was lost" in problem and "Run again" in problem for problem in done.problems), done.output
    return site.run("orphan_cleanup", "--config", str(config), "--full", "--execute")


@seeds.each("an executor killed while it reads", always=[3])
def test_an_executor_that_is_killed_while_it_reads_costs_no_cell(
    site: Site, omid: OmidClient, tables: Tables, seed: int
) -> None:
    """In the middle of a scan one executor is ended by SIGKILL. Spark reads that piece again in another container, and
    the cleanup ends well; or it was a later scan, and what was planned is lost with the executor: then the run says so,
    and the next one does it all. The model holds.
    """
    model, watermark = tables("read", seed)
    config = site.configuration(CONF, defaults={"budget": {"share": 1.0}, "read": "rpc"})
    killed: list[Executor] = []

    def kill() -> None:
        site.kill_one_in("lowtide.connector.PieceReader.next", killed)

    first = site.run("orphan_cleanup", "--config", str(config), "--full", "--execute", meanwhile=kill)
    (victim,) = killed
    tell(f"killed while it read: {victim.name}, with {len(victim.unfinished())} tasks under way")
    assert victim.unfinished()
    application = site.applications("lowtide orphan_cleanup")[-1]
    assert len(site.containers(application["id"])) == 3, "two, and one in place of the dead"
    done = finished(site, config, first)
    assert (done.code, done.summary["state"]) == (0, "done"), done.output
    check(omid, model, watermark)


@seeds.each("executors killed while they write", always=[3])
def test_executors_that_are_killed_while_they_delete_leave_nothing_half_done(
    site: Site, omid: OmidClient, tables: Tables, seed: int
) -> None:
    """When some cells of a table have gone and others have not, every executor is ended by SIGKILL, and what the run
    had planned is lost with them: it is red, and says in a sentence that executors were lost. Another run does the
    rest, and the model holds.
    """
    model, watermark = tables("write", seed)
    config = site.configuration(CONF, defaults={"budget": {"share": 1.0}, "read": "rpc"})
    table = model.tables[0]
    found: list[tuple[list[Executor], int, int]] = []

    def deletes() -> int:
        return sum(cell.kind == "delete" for cell in omid.raw(table))

    def kill() -> None:
        """As soon as the first cell has gone."""
        began = deletes()
        assert reached(lambda: deletes() > began, PATIENCE, pause=0.0), "nothing was deleted"
        executors = site.executors()
        with held_still(executors):
            found.append((executors, deletes() - began, len(unproved(omid, table, watermark))))
            for executor in executors:
                executor.process.kill()

    first = site.run("orphan_cleanup", "--config", str(config), "--full", "--execute", meanwhile=kill)
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
    assert first.code == 1, first.output
    done = finished(site, config, first)
    assert (done.code, done.summary["state"]) == (0, "done"), done.output
    check(omid, model, watermark)
