"""The DAGs on a store with Apache Phoenix: nobody names its tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from installation import PATIENCE, SUBMITTED, first_of_its_kind, follow_only, installation

from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.lab.workload.phoenix import DDL
from lowtide.lab.workload.sql import PhoenixClient
from tests.prove import PROVE

FOLLOWERS = ("watermark_collection", "commit_table_pruning")


@pytest.mark.turns(2)  # the chains of test_runs.py run always
def test_the_dags_find_phoenixs_tables_by_themselves(tmp_path: Path) -> None:
    """One run without a table named cleans tables, indexes and the table of view indexes, and hands on to the prune
    bound and to pruning: what never was committed is gone from SQL, what was is there, and no entry of the commit table
    is left at or below the bound. In ``make prove`` each job is a process of its own, made by the real
    ``spark-submit``."""
    # Phoenix takes timestamps for nanoseconds: the oracle's clock is the world's.
    config = free_ports_config(tmp_path / "store", phoenix=True, timestamps="world", conflict_map_size=64)
    stack = Stack(config)
    site = installation(tmp_path, stack, {}, warm=not PROVE)
    with site as (airflow, _), OmidClient(stack) as omid, PhoenixClient(stack) as phoenix:
        for statement in DDL:
            phoenix.execute(statement)
        phoenix.execute("UPSERT INTO PX_V (ID, A, K) VALUES (1, 'never', 77)")
        assert phoenix.commit(point=1)
        phoenix.execute("UPSERT INTO PX_A (ID, A, B) VALUES (1, 'a', 'b')")
        start = phoenix.start()
        assert phoenix.commit(point=4)
        omid.advance_watermark()
        dirty = "SELECT K FROM PX_V WHERE K = 77"
        assert phoenix.query(dirty) == [(77,)], "Phoenix reads uncommitted rows through view indexes"
        phoenix.commit()
        assert start in omid.commit_table()

        follow_only(airflow.dags, "orphan_cleanup", *FOLLOWERS)
        (run,) = airflow.dags.wait([airflow.dags.trigger("orphan_cleanup", {"execute": True})], timeout=PATIENCE)
        assert run.state == "success"
        runs = [run, *(first_of_its_kind(airflow.dags, name, "asset_triggered") for name in FOLLOWERS)]
        assert [run.state for run in runs] == ["success"] * 3
        for run in runs:
            jobs = [t for t in airflow.dags.tasks(run) if t.task_id in ("clean", "collect", "prune")]
            assert [f"{SUBMITTED}{run.dag_id}" in airflow.dags.log(run, job) for job in jobs] == [PROVE]
        assert start not in omid.commit_table()
        assert phoenix.query(dirty) == phoenix.query("SELECT /*+ NO_INDEX */ K FROM PX_V") == []
        for hint in ("NO_INDEX", "INDEX(PX_A PX_A_COVERED)"):
            assert phoenix.query(f"SELECT /*+ {hint} */ ID, A, B FROM PX_A") == [(1, "a", "b")]
