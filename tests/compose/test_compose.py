"""`docker-compose up` as it is meant to end, and a cleanup from Airflow's API to the cells on HDFS. In the order of the
file.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from composed import Composed, tell

from lowtide.lab.airflow.dags import Dags, Run
from lowtide.lab.airflow.rest import Rest

JOBS = {
    "orphan_cleanup",
    "watermark_collection",
    "commit_table_pruning",
    "history_gc",
    "verification",
}
WORKERS = ("spark-worker-1", "spark-worker-2")
TABLES = {"accounts", "audit", "orders"}

_RUNS = """
import json
from lowtide.config import load
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore
config = load()
with connect(config.hbase.thrift) as connection:
    print(json.dumps(StateStore(connection, config.state.table).runs(job="orphan_cleanup")))
"""
_GET = "import sys; from urllib.request import urlopen; print(urlopen(sys.argv[1]).read().decode())"


def summaries(stack: Composed) -> dict[str, dict[str, Any]]:
    """What runs of orphan_cleanup did, as the state table has it, by Airflow's name of the run."""
    found = stack.json("scheduler", "python3", "-c", _RUNS)
    return {summary["context"]["run_id"]: summary for summary in reversed(found)}  # of several tries the last


def daily_run(dags: Dags) -> Run:
    """The run that the scheduler makes by itself as soon as it finds the DAG."""
    deadline = time.monotonic() + 300
    while not (found := dags.runs("orphan_cleanup", kind="scheduled")):
        assert time.monotonic() < deadline, "the scheduler made no daily run"
        time.sleep(2)
    return found[0]


def counts(summary: dict[str, Any]) -> tuple[int, int]:
    """Orphans deleted and cells healed, or planned so."""
    return summary["totals"]["deleted"], summary["totals"]["healed"]


def test_nobody_sees_the_page_without_a_login(stack: Composed, rest: Rest) -> None:
    """Page and data are refused to strangers and shown to the user of the env file."""
    for path in ("lowtide/", "lowtide/data", "api/v2/dags"):
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{stack.airflow}/{path}", timeout=30)
        assert refused.value.code in (401, 403), path
    deadline = time.monotonic() + 60
    while (data := rest.below("lowtide/data"))["waiting"]:
        assert time.monotonic() < deadline
        time.sleep(0.5)
    assert data["health"]["sentence"]


def test_every_dag_is_loaded_and_runs(dags: Dags, rest: Rest) -> None:
    """None is paused."""
    assert dags.import_errors() == {}
    found = {dag["dag_id"]: dag["is_paused"] for dag in rest.get("dags", limit=100)["dags"]}
    assert found == dict.fromkeys(JOBS, False)


def test_a_run_through_the_api_cleans_the_store(stack: Composed, dags: Dags) -> None:
    """What the scheduled dry run found, a run that executes does, on the cluster and from HBase snapshots; a survey
    then finds no orphan.
    """
    scheduled = daily_run(dags)
    executing = dags.trigger("orphan_cleanup", {"execute": True, "full": True})
    for run in dags.wait([scheduled, executing], timeout=3600, progress=tell):
        assert run.state == "success", stack.tail("scheduler")

    found = summaries(stack)
    planned, done = found[scheduled.run_id], found[executing.run_id]
    tell("orphans and cells without proof: {} and {}".format(*counts(planned)))
    assert min(counts(planned)) > 0
    assert counts(done) == counts(planned)
    assert (planned["execute"], done["execute"], done["state"]) == (False, True, "done")
    read = {table["table"]: table["read"] for table in done["tables"] if table["counts"]["cells_read"]}
    assert read == dict.fromkeys(TABLES, "snapshot")

    stack.exec("scheduler", "lowtide", "survey", "--snapshot", "--json", "/tmp/survey.json")
    after = stack.json("scheduler", "cat", "/tmp/survey.json")
    assert after["problems"] == []
    # Committed cells are not looked at: those of transactions with a commit entry are healed anew until the entry is
    # pruned.
    assert {table["table"]: table["orphans"]["value"] for table in after["tables"]} == dict.fromkeys(TABLES, 0)


def test_the_jobs_ran_on_both_workers(stack: Composed) -> None:
    """Each worker ran an executor of the cleanup; nothing ran in the driver's process."""
    with urlopen(f"{stack.spark}/json", timeout=30) as answer:
        done = json.load(answer)["completedapps"]
    cleanups = {app["id"] for app in done if app["name"] == "lowtide orphan_cleanup"}
    assert cleanups
    for worker in WORKERS:
        finished = stack.json(worker, "python3", "-c", _GET, "http://localhost:8081/json")["finishedexecutors"]
        assert cleanups & {executor["appid"] for executor in finished}, worker


def test_what_went_is_put_aside_on_hdfs(stack: Composed) -> None:
    """The executors wrote it where every one of them can read it."""
    listed = stack.exec("namenode", "store/serve", "fs", "-ls", "-R", "/lowtide/sideline")
    for table in TABLES:
        assert re.search(rf"/{table}/.*\.parquet$", listed, re.MULTILINE), listed


def test_every_read_point_reads_as_the_clients_wrote_it(stack: Composed) -> None:
    """Through Omid's own client, compared with the record of what was committed."""
    said = stack.run("run", "--rm", "--no-deps", "-T", "workload", "compare")
    tell(said.strip().splitlines()[-1])
    assert "equal the model" in said


def test_the_page_tells_of_the_run(rest: Rest) -> None:
    """Airflow's tab has the cleanup among its runs, as soon as it has read the store again: what it answers first is
    what it read last.
    """
    deadline = time.monotonic() + 300
    while not any(run["job"] == "orphan_cleanup" and run["execute"] for run in rest.below("lowtide/data")["runs"]):
        assert time.monotonic() < deadline
        time.sleep(2)
