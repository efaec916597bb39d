"""The DAG files as Airflow loads them: nothing is scheduled and no store is there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pendulum
import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import DAG, BaseHook
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.serialization.serialized_objects import DagSerialization
from airflow.timetables.base import TimeRestriction
from lowtide_airflow.operator import LowtideSparkOperator, _master
from lowtide_airflow.stores import Store

from lowtide.config import CONFIG_VARIABLE, Config, Spark
from lowtide.run.submit import POOL

ROOT = Path(__file__).resolve().parents[2]
DAGS = {
    "orphan_cleanup",
    "watermark_collection",
    "commit_table_pruning",
    "history_gc",
    "transaction_repair",
    "verification",
}


ASSETS = Store().assets


@pytest.fixture(scope="module")
def bag(with_ledger: Path) -> DagBag:
    return DagBag(ROOT / "dags", known_pools={POOL, "default_pool"})


@pytest.fixture(params=sorted(DAGS))
def dag(request: pytest.FixtureRequest, bag: DagBag) -> DAG:
    return bag.dags[request.param]


def serialized(dag: DAG) -> Any:
    """The DAG as the scheduler has it."""
    return DagSerialization.from_dict(DagSerialization.to_dict(dag))


def job_tasks(dag: DAG) -> Iterator[Any]:
    """The tasks that start a Spark job."""
    return (task for task in dag.tasks if issubclass(getattr(task, "operator_class", type(task)), LowtideSparkOperator))


def test_a_job_goes_where_the_connection_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """And its driver listens where executors there reach it, whatever the configuration says of jobs without a
    connection.
    """
    operator = LowtideSparkOperator(task_id="clean", job="orphan_cleanup")
    config = Config(spark=Spark(master="local[2]", connector_class_path=["connector.jar"]))
    for given, listens in (
        ({"host": "yarn"}, None),
        ({"host": "local[1]"}, "127.0.0.1"),
        ({"host": "localhost", "port": 7077}, None),
        ({"host": "spark://localhost", "port": 7077}, None),
        ({"host": "spark://spark:7077"}, None),
        ({"conn_type": "yarn"}, None),
    ):
        operator.conf = None
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_LOWTIDE", json.dumps({"conn_type": "spark", **given}))
        operator._prepare(config)
        assert operator.conf.get("spark.driver.host") == listens
        there = BaseHook.get_connection("spark_lowtide")
        assert _master(there) == SparkSubmitHook(conn_id="spark_lowtide")._resolve_connection()["master"]


def test_every_file_loads(bag: DagBag) -> None:
    """Without an error, without a warning, one DAG a file; and none is missing."""
    assert bag.import_errors == {}
    assert set(bag.dags) == DAGS == {file.stem for file in (ROOT / "dags").glob("*.py")}
    assert not bag.dag_warnings
    assert not bag.captured_warnings


def test_without_a_ledger_there_is_no_repair_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file loads all the same; a configuration that cannot be read is told by that file alone."""
    file = tmp_path / "lowtide.yaml"
    monkeypatch.setenv(CONFIG_VARIABLE, str(file))
    file.write_text("grace: 3d\n")
    bag = DagBag(ROOT / "dags")
    assert (bag.import_errors, set(bag.dags)) == ({}, DAGS - {"transaction_repair"})
    file.write_text("tables: {ledger_transactions: {mode: execute}}\n")
    assert set(DagBag(ROOT / "dags" / "transaction_repair.py").dags) == {"transaction_repair"}
    file.write_text("graze: 3d\n")
    bag = DagBag(ROOT / "dags")
    assert set(bag.dags) == DAGS - {"transaction_repair"}
    [(name, error)] = bag.import_errors.items()
    assert (Path(name).name, "graze: unknown key" in error) == ("transaction_repair.py", True)


def test_files_load_fast(bag: DagBag) -> None:
    """Airflow parses them again and again: under a second each, after Airflow's own import."""
    assert {
        Path(stat.file).name: stat.duration for stat in bag.dagbag_stats if stat.duration > timedelta(seconds=1)
    } == {}


BLOCKED = """
    import socket, sys

    class Blocker:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {"pyspark", "py4j", "happybase", "Hbase_thrift", "thriftpy2"}:
                raise ImportError(f"{name} must not be imported here")

    def refuse(*_):
        raise OSError("nothing may be connected to here")

    sys.meta_path.insert(0, Blocker())
    socket.socket.connect = socket.socket.connect_ex = refuse
"""


def in_a_new_python(code: str, folder: Path, **environment: str) -> str:
    """Run *code* in a process of its own, outside the checkout, as a server does; what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=os.environ | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_files_load_without_spark_and_without_a_store(tmp_path: Path) -> None:
    """The processor of DAG files may have neither installed, and must not wait for a server."""
    printed = in_a_new_python(
        BLOCKED
        + f"""
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag({str(ROOT / "dags")!r})
    assert bag.import_errors == {{}}, bag.import_errors
    print("loaded", *sorted(bag.dags))
    """,
        tmp_path,
    )
    assert printed.splitlines()[-1].split() == ["loaded", *sorted(DAGS)]


def test_every_task_has_owner_retries_and_a_time_limit(dag: DAG) -> None:
    """And the time between retries grows."""
    for task in dag.tasks:
        assert task.owner == "lowtide"
        assert task.retries >= 1
        assert task.retry_exponential_backoff
        assert task.retry_delay >= timedelta(seconds=1)
        assert task.execution_timeout


def test_every_job_sits_in_the_one_slot_pool(dag: DAG) -> None:
    """A backfill ignores max_active_runs: only the pool keeps it from running beside the daily run."""
    tasks = list(job_tasks(dag))
    assert tasks
    assert [(task.pool, task.pool_slots) for task in tasks] == [(POOL, 1)] * len(tasks)


def test_every_job_refuses_what_its_form_does_not_have(dag: DAG) -> None:
    """A misspelt key of a trigger's conf would be ignored, and the job would act on more than was meant."""
    assert all(getattr(task, "only_form", None) or task.partial_kwargs["only_form"] for task in job_tasks(dag))


def test_the_page_says_what_each_kind_of_run_means(dag: DAG) -> None:
    """Scheduled, backfilled, by hand; and which pool must be there."""
    # What only looks has nothing to execute.
    acts = () if dag.dag_id == "verification" else ("*Execute* ticked",)
    for words in ("**scheduled**", "**backfill**", "**by hand**", "pool `lowtide`", *acts):
        assert words in dag.doc_md
    assert "lowtide" in dag.tags
    assert not dag.catchup


def test_the_form_explains_every_field_and_is_valid_as_it_stands(dag: DAG) -> None:
    """A scheduled DAG whose form lacks a default does not load."""
    dag.validate()
    assert dag.params.validate().get("execute", False) is False
    assert ("execute" in dag.params) == (dag.dag_id != "verification")
    for _name, param in dag.params.items():
        # What Airflow's form takes for required, and does not let anybody empty.
        assert "null" in param.schema["type"]
        assert param.schema["title"]
        assert param.schema["section"]
        assert len(param.description) > 20


@pytest.mark.parametrize(
    ("dag_id", "given"),
    [
        ("orphan_cleanup", {"tables": "orders"}),
        ("orphan_cleanup", {"tables": [""]}),
        ("orphan_cleanup", {"execute": "yes"}),
        ("orphan_cleanup", {"from": "yesterday"}),
        ("orphan_cleanup", {"budget_rows": 0}),
        ("history_gc", {"to": "last week"}),
        ("orphan_cleanup", {"budget_share": 0}),
        ("orphan_cleanup", {"budget_share": 1.5}),
        ("history_gc", {"budget_share": 2}),
        ("commit_table_pruning", {"grace": "24"}),
        ("commit_table_pruning", {"grace": "soon"}),
        ("transaction_repair", {"grace": "-1h"}),
        ("transaction_repair", {"from": "2026-01-01"}),
        ("verification", {"sample": 2}),
        ("verification", {"rate": "fast"}),
        ("orphan_cleanup", {"rate": 0, "write_rate": 5}),
        ("transaction_repair", {"write_rate": "2k"}),
    ],
)
def test_the_form_refuses_what_cannot_be_meant(bag: DagBag, dag_id: str, given: dict[str, Any]) -> None:
    """Before a run is made; also of a backfill's form."""
    with pytest.raises(ValueError, match=str(next(iter(given)))):
        serialized(bag.dags[dag_id]).params.deep_merge(given).validate()


@pytest.mark.parametrize(
    ("dag_id", "given"),
    [
        ("orphan_cleanup", {"tables": ["orders"], "from": "2026-01-01T00:00:00+00:00", "to": None, "budget_rows": 5}),
        ("orphan_cleanup", {"budget_share": 0.2}),
        ("history_gc", {"budget_share": 0.2}),
        ("commit_table_pruning", {"grace": "1d12h"}),
        ("commit_table_pruning", {"grace": "0s"}),
        ("watermark_collection", {"execute": True}),
        ("transaction_repair", {"execute": True, "full": True, "grace": "15m"}),
        ("verification", {"tables": ["orders"], "sample": 0.1, "rate": 30_000}),
    ],
)
def test_the_form_takes_what_the_docs_promise(bag: DagBag, dag_id: str, given: dict[str, Any]) -> None:
    """The counterpart of the test before."""
    assert serialized(bag.dags[dag_id]).params.deep_merge(given).validate().items() >= given.items()


def test_templates_render_with_and_without_a_logical_date(dag: DAG) -> None:
    """Runs that an asset or the API started lack every date; a template that names one fails such a run."""
    environment = dag.get_template_env()
    dates = {"ds": "2026-01-31", "logical_date": datetime(2026, 1, 31, tzinfo=UTC)}
    for task in job_tasks(dag):
        plain = task.unmap({"tables": ["orders", "stock"]}) if isinstance(task, MappedOperator) else task
        for context in ({"task": plain, "params": {}}, {"task": plain, "params": {}, **dates}):
            plain.render_template_fields(context, environment)
            if isinstance(task, MappedOperator):
                label = environment.from_string(task.map_index_template).render(context)
                assert label == "orders and 1 more"


def test_a_batch_of_one_is_labelled_with_its_table(bag: DagBag) -> None:
    """The failing table is then seen in the grid."""
    task = bag.dags["orphan_cleanup"].get_task("clean")
    template = bag.dags["orphan_cleanup"].get_template_env().from_string(task.map_index_template)
    assert template.render({"task": task.unmap({"tables": ["orders"]})}) == "orders"


def test_every_run_has_a_time_to_work_on_and_a_backfill_can_be_made(dag: DAG) -> None:
    """Airflow 3 reads ``@daily`` as a timetable with empty intervals, over which a cleanup would do nothing."""
    timetable = serialized(dag).timetable
    assert timetable.periodic
    restriction = TimeRestriction(pendulum.datetime(2026, 1, 1), None, catchup=True)
    info = timetable.next_dagrun_info(last_automated_data_interval=None, restriction=restriction)
    first = 4 if dag.dag_id == "verification" else 1  # the first Sunday
    assert info.data_interval.start == datetime(2026, 1, first, tzinfo=UTC)
    length = {"transaction_repair": timedelta(hours=1), "verification": timedelta(weeks=1)}.get(
        dag.dag_id, timedelta(days=1)
    )
    assert info.data_interval.end == info.data_interval.start + length
    assert info.run_after == info.data_interval.end


def test_serialisation_loses_nothing(dag: DAG) -> None:
    """What the scheduler works with is what the file says; and no task waits for itself."""
    again = serialized(dag)
    for task in dag.tasks:
        other = again.get_task(task.task_id)
        for name in ("owner", "retries", "pool", "trigger_rule", "execution_timeout", "downstream_task_ids"):
            assert getattr(other, name) == getattr(task, name)
    assert again.params.dump() == dag.params.dump()
    dag.check_cycle()


def test_each_dag_hands_on_to_the_next(bag: DagBag) -> None:
    """Cleanup to watermarks to pruning; each hears of the one before and of no other."""

    def sends(dag_id: str) -> list[str]:
        return [outlet.name for task in bag.dags[dag_id].tasks for outlet in task.outlets]

    def hears(dag_id: str) -> list[str]:
        return [asset.name for asset, _ in serialized(bag.dags[dag_id]).timetable.asset_condition.iter_assets()]

    assert sends("orphan_cleanup") == hears("watermark_collection") == [ASSETS.cleaned.name]
    assert sends("watermark_collection") == hears("commit_table_pruning") == [ASSETS.marked.name]
    assert sends("transaction_repair") == [ASSETS.settled.name]


def test_each_dag_does_what_it_is_called_after(bag: DagBag) -> None:
    """Its job, and the one whose plan is asked for; nothing else."""
    jobs = {
        name: {getattr(task, "job", None) or task.partial_kwargs["job"] for task in job_tasks(bag.dags[name])}
        for name in DAGS
    }
    assert jobs == {name: {name} for name in DAGS - {"verification"}} | {"verification": {"verify"}}


def test_a_failed_batch_turns_the_run_red_and_still_hands_on(bag: DagBag) -> None:
    """The task that hands on runs whatever happened; beside it stands one that fails with any batch."""
    clean = bag.dags["orphan_cleanup"].get_task("clean")
    rules = {task.task_id: task.trigger_rule for task in clean.downstream_list}
    assert rules == {"hand_over": "all_done", "all_cleaned": "all_success"}
    assert all(not task.downstream_list for task in clean.downstream_list)


PLUGINS = """
    import operator as known
    from airflow import plugins_manager
    from airflow.sdk import plugins_manager as in_workers

    plugins, errors = plugins_manager._get_plugins()
    assert not errors, errors
    print("core", [p.name for p in plugins].count("lowtide"), [p.listeners for p in plugins if p.name == "lowtide"])
    workers, errors = in_workers._get_plugins()
    assert not errors, errors
    print("workers", [p.name for p in workers].count("lowtide"))
    import operator
    assert operator is known and operator.__file__.endswith("/operator.py") and "lowtide" not in operator.__file__
"""


@pytest.mark.parametrize("folder", ["none", "plugins"])
def test_the_plugin_is_loaded_once_and_hides_nothing(folder: str, tmp_path: Path) -> None:
    """By its entry point, also where Airflow's folder of plugins is ours: there, files would run as modules of their
    bare names.
    """
    place = str(ROOT / "plugins") if folder == "plugins" else str(tmp_path)
    printed = in_a_new_python(BLOCKED + PLUGINS, tmp_path, AIRFLOW__CORE__PLUGINS_FOLDER=place)
    assert [line for line in printed.splitlines() if line.startswith(("core", "workers"))] == [
        "core 1 [[]]",
        "workers 1",
    ]
