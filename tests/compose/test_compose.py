"""`docker-compose up` as it is meant to end, and a cleanup from Airflow's API to the cells on HDFS. In the order of the file."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from composed import Composed, tell

from lowtide.airflowctl.dags import Dags
from lowtide.airflowctl.rest import Rest

JOBS = {"orphan_cleanup", "watermark_collection", "commit_table_pruning", "history_gc", "transaction_repair"}
WORKERS = ("spark-worker-1", "spark-worker-2")
TABLES = {"accounts", "audit", "orders"}

_RUNS = """
import json
from lowtide.config import load
from lowtide.gateway import connect
from lowtide.state import StateStore
config = load()
with connect(config.hbase.thrift) as connection:
    print(json.dumps(StateStore(connection, config.state.table).runs(job="orphan_cleanup")))
"""
_GET = "import sys; from urllib.request import urlopen; print(urlopen(sys.argv[1]).read().decode())"


def survey(stack: Composed) -> dict[str, dict[str, Any]]:
    """What a survey of snapshots finds, by table."""
    stack.exec("scheduler", "lowtide", "survey", "--snapshot", "--json", "/tmp/survey.json")
    found = stack.json("scheduler", "cat", "/tmp/survey.json")
    assert not found["problems"], found["problems"]
    return {table["table"]: table for table in found["tables"]}


def leftovers(found: dict[str, dict[str, Any]], kind: str) -> int:
    """How many cells of that kind all tables have."""
    return sum(int(table[kind]["value"]) for table in found.values())


def test_nobody_sees_the_page_without_a_login(stack: Composed, rest: Rest) -> None:
    """Page and data are refused to strangers and shown to the user of the env file."""
    for path in ("lowtide/", "lowtide/data", "api/v2/dags"):
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{stack.airflow}/{path}", timeout=30)
        assert refused.value.code in (401, 403), path
    assert rest.below("lowtide/data")["health"]["sentence"]


def test_every_dag_is_loaded_and_runs(dags: Dags, rest: Rest) -> None:
    """None is paused."""
    assert dags.import_errors() == {}
    found = {dag["dag_id"]: dag["is_paused"] for dag in rest.get("dags", limit=100)["dags"]}
    assert found == dict.fromkeys(JOBS, False)


def test_a_run_through_the_api_cleans_the_store(stack: Composed, dags: Dags) -> None:
    """Crashed clients left cells; a run of orphan_cleanup that executes leaves none, on the cluster, from snapshots."""
    before = survey(stack)
    orphans, heals = leftovers(before, "orphans"), leftovers(before, "heals")
    tell(f"before: {orphans} orphans, {heals} cells without proof")
    assert before.keys() >= TABLES
    assert orphans > 0
    assert heals > 0

    run = dags.trigger("orphan_cleanup", {"execute": True, "full": True})
    [ended] = dags.wait([run], timeout=1800, progress=tell)
    assert ended.state == "success", stack.tail("scheduler")

    [summary] = [
        s
        for s in json.loads(stack.exec("scheduler", "python3", "-c", _RUNS))
        if s["context"].get("run_id") == run.run_id
    ]
    assert summary["state"] == "done"
    read = {table["table"]: table["read"] for table in summary["tables"] if table["counts"]["cells_read"]}
    assert read == dict.fromkeys(TABLES, "snapshot")
    assert (summary["totals"]["deleted"], summary["totals"]["healed"]) == (orphans, heals)

    after = survey(stack)
    tell(f"after: {leftovers(after, 'orphans')} orphans, {leftovers(after, 'heals')} cells without proof")
    assert leftovers(after, "orphans") == leftovers(after, "heals") == 0


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


def test_every_snapshot_reads_as_the_clients_wrote_it(stack: Composed) -> None:
    """Through Omid's own client, compared with the record of what was committed."""
    said = stack.run("run", "--rm", "--no-deps", "-T", "workload", "compare")
    tell(said.strip().splitlines()[-1])
    assert "equal the model" in said


def test_the_page_tells_of_the_run(rest: Rest) -> None:
    """Airflow's tab has the cleanup among its runs."""
    runs = rest.below("lowtide/data")["runs"]
    assert any(run["job"] == "orphan_cleanup" and run["execute"] for run in runs)
