"""A job on YARN through Airflow's scheduler, by the connection ``spark_lowtide``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from yarn_kit import PATIENCE, Site, tell

from lowtide.lab.airflow import LocalAirflow, free_port_config
from lowtide.lab.workload import OmidClient
from tests.new_day import wait_for_a_new_day

TABLE = "through_airflow"
SPARK = {"conn_type": "spark", "host": "yarn", "extra": {"deploy-mode": "client"}}


@pytest.fixture
def orphans(omid: OmidClient) -> Iterator[int]:
    """A table with cells of clients that died; how many."""
    omid.create(TABLE, ("a",), splits=("row5",))
    starts = [omid.begin() for _ in range(10)]
    for number, start in enumerate(starts):
        omid.put(TABLE, b"row%d" % number, b"a", b"q", start, b"never committed")
    omid.advance_watermark()
    yield len(starts)
    omid.drop(TABLE)


@pytest.fixture
def airflow(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalAirflow]:
    """Airflow with the connection, and the cluster's configuration in its environment. Lowtide's own master is another:
    it is the connection that counts.
    """
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    file = site.configuration(spark={"master": "local[1]"})
    local = LocalAirflow(free_port_config(tmp_path / "airflow", lowtide_config=file))
    wait_for_a_new_day()
    try:
        local.up(tell)
        local.command(["connections", "add", "spark_lowtide", "--conn-json", json.dumps(SPARK)])
        yield local
    finally:
        local.down()


def test_the_connection_leads_a_run_to_yarn(site: Site, omid: OmidClient, airflow: LocalAirflow, orphans: int) -> None:
    """A triggered run acts on the cluster: YARN had an application of that name with executors, the cells are gone, and
    the summary came back to the task.
    """
    before = len(site.applications("lowtide orphan_cleanup"))
    yesterday = datetime.combine(datetime.now(UTC).date() - timedelta(days=1), datetime.min.time(), UTC)
    form = {"execute": True, "full": True, "tables": [TABLE]}
    triggered = airflow.dags.trigger(
        "orphan_cleanup", form, logical_date=yesterday
    )  # so no daily run is made beside it
    airflow.dags.unpause("orphan_cleanup")
    (run,) = airflow.dags.wait([triggered], timeout=2 * PATIENCE)
    tasks = {task.task_id: task for task in airflow.dags.tasks(run)}
    log = airflow.dags.log(run, tasks["clean"])
    tell(f"orphan_cleanup through Airflow: {run.state}, {run.seconds:.0f} s, its task {tasks['clean'].seconds:.0f} s")
    assert run.state == "success", log
    applications = site.applications("lowtide orphan_cleanup")[before:]
    assert len(applications) == 1
    assert site.containers(applications[0]["id"])
    assert sum(cell.kind == "delete" for cell in omid.raw(TABLE)) == orphans
    assert f"deleted {orphans}" in log, log
