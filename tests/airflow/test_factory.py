"""The factory: what it makes of its arguments, and what it refuses; two stores under a real scheduler are in
test_two_stores_runs.py.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.exceptions import ParamValidationError
from airflow.sdk import DAG, BaseNotifier
from airflow.sdk.definitions.param import process_params
from airflow.sdk.exceptions import AirflowFailException, TaskAwaitingInput
from lowtide_airflow.approved import APPROVE
from lowtide_airflow.dags import MAKERS
from lowtide_airflow.factory import has_ledger, lowtide_assets, lowtide_dags
from lowtide_airflow.hook import HBaseHook
from lowtide_airflow.stores import store
from lowtide_airflow.view import Reader
from lowtide_airflow.wiring import APPROVED, SCHEDULES
from test_approval import Asked, a_plan
from test_arguments import context
from test_dag_files import ROOT, job_tasks, serialized

from lowtide.errors import UnnamedStoreError, UsageError
from lowtide.run.submit import POOL


class Told(BaseNotifier):
    """A notifier that keeps for what it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.of: list[str] = []

    def notify(self, context: Any) -> None:
        self.of.append(context["task"].task_id)


@pytest.fixture
def stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """Two stores that this Airflow serves, one of them with a ledger."""
    files = {name: tmp_path / f"{name}.yaml" for name in ("orders-prod", "orders-test")}
    files["orders-prod"].write_text("hbase: {zookeeper_quorum: zk1, thrift: {host: gateway1}}\nledger: {}\n")
    files["orders-test"].write_text("hbase: {zookeeper_quorum: zk2, thrift: {host: gateway2}}\n")
    monkeypatch.setenv("AIRFLOW__LOWTIDE__STORES", json.dumps({name: str(file) for name, file in files.items()}))
    own = tmp_path / "lowtide.yaml"
    own.write_text("grace: 3d\n")
    monkeypatch.setenv("LOWTIDE_CONFIG", str(own))
    return files


def listens(dag: DAG) -> set[str]:
    condition = getattr(serialized(dag).timetable, "asset_condition", None)
    return {asset.name for asset, _ in condition.iter_assets()} if condition else set()


def sends(dag: DAG) -> set[str]:
    return {outlet.name for task in dag.tasks for outlet in task.outlets}


def test_every_dag_has_a_maker_and_a_schedule() -> None:
    """Those that ask for an approval have its task, and no other has."""
    made = lowtide_dags(dags=list(MAKERS))
    assert set(MAKERS) == set(SCHEDULES) == set(made)
    assert {name for name, dag in made.items() if APPROVE in dag.task_ids} == set(APPROVED)
    assert [dag.dag_id for dag in made.values()] == list(MAKERS)


def test_two_stores_share_nothing(stores: dict[str, Path]) -> None:
    """Ids, pools, what they send and listen to: all have the store's name, but those of the nameless store."""
    made = [lowtide_dags(name) for name in (None, *stores)]
    ids = [dag.dag_id for each in made for dag in each.values()]
    assert len(set(ids)) == len(ids) == 16
    assert {"orphan_cleanup", "orders-prod.orphan_cleanup", "orders-test.orphan_cleanup"} <= set(ids)
    names = [{name for dag in each.values() for name in sends(dag) | listens(dag)} for each in made]
    assert names[0] == {"lowtide_cleaned", "lowtide_marked"}
    assert sum(map(len, names)) == len(set.union(*names))
    pools = [{task.pool for dag in each.values() for task in job_tasks(dag)} for each in made]
    assert pools == [{POOL}, {"orders-prod.lowtide"}, {"orders-test.lowtide"}]
    for name, each in zip(stores, made[1:], strict=True):
        assert sends(each["orphan_cleanup"]) == listens(each["watermark_collection"]) == {f"{name}.lowtide_cleaned"}
        assert listens(each["commit_table_pruning"]) == {lowtide_assets(name).marked.name}
        for dag in each.values():
            assert name in dag.tags
            assert f"pool `{name}.lowtide`" in dag.doc_md
            [deadline] = dag.deadline
            assert deadline.callback.kwargs == {"store": name}
            for task in job_tasks(dag):
                assert (getattr(task, "store", None) or task.partial_kwargs["store"]) == name


def test_the_example_of_the_page_works(stores: dict[str, Path], tmp_path: Path) -> None:
    """As it stands, with a notifier in the place of that of Airflow's provider for mail; Airflow finds its DAGs."""
    page = (ROOT / "docs/airflow.md").read_text("utf-8")
    (example,) = (each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "lowtide_dags" in each)
    mail = "from airflow.providers.smtp.notifications.smtp import SmtpNotifier\n"
    assert mail in example
    instead = "import test_factory\nSmtpNotifier = lambda **_: test_factory.Told()\n"
    file = tmp_path / "dags" / "stores.py"
    file.parent.mkdir()
    file.write_text(example.replace(mail, instead))
    bag = DagBag(file.parent)
    assert bag.import_errors == {}
    assert len(bag.dags) == 6 + 2
    assert bag.dags["orders-prod.orphan_cleanup"].params["approval"] is True


def test_a_ledger_is_repaired_where_there_is_one(stores: dict[str, Path]) -> None:
    """Unless it is asked for by name, which reads no configuration."""
    assert "transaction_repair" in lowtide_dags("orders-prod")
    assert "transaction_repair" not in lowtide_dags("orders-test")
    assert (has_ledger("orders-prod"), has_ledger("orders-test"), has_ledger()) == (True, False, False)
    stores["orders-test"].unlink()
    assert set(lowtide_dags("orders-test", dags=["transaction_repair"])) == {"transaction_repair"}
    with pytest.raises(UsageError, match=r"cannot read the configuration .*orders-test\.yaml"):
        lowtide_dags("orders-test")


def test_the_environment_leads_no_two_stores_to_one_place(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a store is and what is its own, its file says; what stores may share, variables may set."""
    monkeypatch.setenv("LOWTIDE_SPARK__MASTER", "local[3]")
    assert store("orders-prod").load().spark.master == "local[3]"
    monkeypatch.setenv("LOWTIDE_HBASE__ZNODE", "/elsewhere")
    assert store().load().hbase.znode == "/elsewhere"
    with pytest.raises(UsageError, match=r"LOWTIDE_HBASE__ZNODE in the environment .* say it in .*orders-prod\.yaml"):
        store("orders-prod").load()
    monkeypatch.delenv("LOWTIDE_HBASE__ZNODE")
    monkeypatch.setenv("LOWTIDE_DEFAULTS__MODE", "execute")
    with pytest.raises(UsageError, match="LOWTIDE_DEFAULTS__MODE in the environment would count for every store"):
        store("orders-prod").load()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ledger: {}", r"orders-prod\.yaml does not say where its store is, and it is one of several"),
        ("hbase: {zookeeper_quorum: zk1}", "the store is at zk1, and no Thrift gateway of it is named"),
    ],
)
def test_a_store_with_a_name_is_that_of_its_file_and_no_other(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    """Never this machine's for want of another: its DAGs do not load, its tasks fail, its page and its metrics say
    why, and a sensor's connection that names only the store leads nowhere.
    """
    stores["orders-prod"].write_text(text)
    with pytest.raises(UnnamedStoreError, match=said):
        lowtide_dags("orders-prod")
    assert "orphan_cleanup" in lowtide_dags("orders-test"), "the others go on"
    (task,) = job_tasks(lowtide_dags("orders-prod", dags=["watermark_collection"])["watermark_collection"])
    with pytest.raises(AirflowFailException, match=said):
        task.execute({**context("scheduled", None), "dag": task.dag})
    assert re.search(said, Reader("orders-prod")().reading.unreachable)
    monkeypatch.setenv("AIRFLOW_CONN_ORDERS", json.dumps({"conn_type": "hbase", "extra": {"store": "orders-prod"}}))
    with pytest.raises(UnnamedStoreError, match=said):
        HBaseHook("orders").config()


def test_where_stores_have_names_none_is_meant_without_one(
    stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Unless there is a configuration for the one without a name: never this machine's store, beside those."""
    said = (
        "no store is named, and this Airflow serves orders-prod, orders-test; name one of them, or set LOWTIDE_CONFIG"
    )
    assert store().load().grace == HBaseHook().config().grace == timedelta(days=3)
    (task,) = job_tasks(lowtide_dags(dags=["watermark_collection"])["watermark_collection"])
    monkeypatch.delenv("LOWTIDE_CONFIG")
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(UnnamedStoreError, match=said):
        HBaseHook().config()
    with pytest.raises(AirflowFailException, match=said):
        task.execute({**context("scheduled", None), "dag": task.dag})
    assert re.search(said, Reader()().reading.unreachable)
    monkeypatch.setenv("AIRFLOW_CONN_GATEWAY", json.dumps({"conn_type": "hbase", "host": "gateway1"}))
    assert HBaseHook("gateway").config().hbase.thrift.host == "gateway1"


def test_a_schedule_is_for_all_or_for_those_that_are_named() -> None:
    """In its time zone; the page says when each runs."""
    usual = lowtide_dags(dags=["orphan_cleanup", "verification"])
    assert "It runs\nevery day at midnight UTC." in usual["orphan_cleanup"].doc_md
    made = lowtide_dags(schedule={"orphan_cleanup": "0 3 * * *", "history_gc": None}, timezone="Europe/Berlin")
    shown = {name: serialized(dag).timetable.summary for name, dag in made.items()}
    assert (shown["orphan_cleanup"], shown["history_gc"], shown["verification"]) == ("0 3 * * *", "None", "0 0 * * 0")
    assert "by the cron expression `0 3 * * *`, Europe/Berlin" in made["orphan_cleanup"].doc_md
    assert "runs only when somebody, or an event, starts it" in made["history_gc"].doc_md
    assert "every Sunday at midnight Europe/Berlin" in made["verification"].doc_md
    for_all = lowtide_dags(dags=["orphan_cleanup", "watermark_collection"], schedule="@hourly")
    assert "0 * * * *" in serialized(for_all["orphan_cleanup"]).timetable.summary
    assert "0 * * * *" in serialized(for_all["watermark_collection"]).timetable.summary
    nothing = lowtide_dags(dags=["watermark_collection", "verification"], schedule=None)
    assert listens(nothing["watermark_collection"]) == {"lowtide_cleaned"}
    assert not serialized(nothing["verification"]).timetable.can_be_scheduled


def test_people_are_called() -> None:
    """Callbacks lie on every task, also mapped ones, those of runs on the DAG; an approval has its approvers and calls
    its notifiers when it begins to wait.
    """
    failed, run_failed, asked = Told(), Told(), Told()
    made = lowtide_dags(
        dags=["orphan_cleanup", "verification"],
        callbacks={"on_failure_callback": failed},
        run_callbacks={"on_failure_callback": [run_failed]},
        approvers=["ann", {"id": "7", "name": "bob"}],
        notifiers=asked,
        default_args={"retries": 7, "email_on_failure": False},
        tags=["bank"],
        approval=True,
    )
    for dag in made.values():
        assert dag.on_failure_callback == [run_failed]
        assert "bank" in dag.tags
        for task in dag.tasks:
            assert (list(task.on_failure_callback), task.retries, task.owner) == ([failed], 7, "lowtide")
    cleanup = made["orphan_cleanup"]
    assert cleanup.params["approval"] is True
    assert cleanup.get_task(APPROVE).assigned_users == [{"id": "ann", "name": "ann"}, {"id": "7", "name": "bob"}]


@pytest.mark.parametrize("given", [False, None])
def test_an_approval_that_is_asked_for_cannot_be_left_out(given: bool | None) -> None:
    """Whoever may trigger a run need not be who may approve it: a run without is refused. Where nobody asks for it, a
    form may.
    """
    asked, free = (lowtide_dags(dags=["orphan_cleanup"], approval=each)["orphan_cleanup"] for each in (True, False))
    conf = {"approval": given, "execute": True}
    with pytest.raises(ParamValidationError, match="True was expected"):
        process_params(asked, asked.get_task(APPROVE), conf, suppress_exception=False)
    assert process_params(asked, asked.get_task(APPROVE), {"execute": True}, suppress_exception=False)["approval"]
    for choice in (True, False):
        told = process_params(free, free.get_task(APPROVE), {"approval": choice}, suppress_exception=False)
        assert told["approval"] is choice


def test_those_who_may_approve_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the question is put, and Airflow is told who alone may answer it."""
    put: dict[str, Any] = {}
    monkeypatch.setattr(
        "airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **about: put.update(about)
    )
    told = Told()
    task = lowtide_dags(dags=["history_gc"], approvers=["ann"], notifiers=[told])["history_gc"].get_task(APPROVE)
    ti = Asked([a_plan(3)])
    with pytest.raises(TaskAwaitingInput):
        task.execute({**context("manual", {"execute": True}), "ti": ti, "task_instance": ti, "task": task})
    assert put["assigned_users"] == [{"id": "ann", "name": "ann"}]
    assert told.of == [APPROVE]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"store": "orders"}, r"no store 'orders' in the section \[lowtide\].*names orders-prod, orders-test"),
        ({"dags": ["cleanup"]}, "dags names 'cleanup'"),
        ({"dags": "orphan_cleanup"}, r"dags is 'orphan_cleanup'.*\['orphan_cleanup'\]"),
        ({"dags": []}, "dags is empty"),
        ({"schedule": "daily"}, "the schedule of orphan_cleanup is 'daily'.*cron expression"),
        ({"schedule": "@once"}, "is '@once'"),
        ({"schedule": {"orphan_cleanup": "61 * * * *"}}, r"is '61 \* \* \* \*'"),
        ({"schedule": {"cleanup": "@daily"}}, "schedule names 'cleanup'"),
        ({"schedule": {"history_gc": "@daily"}, "dags": ["verification"]}, "schedule names 'history_gc'"),
        ({"schedule": 3600}, "schedule is 3600"),
        ({"timezone": "Europe/Bern"}, "timezone is 'Europe/Bern'"),
        ({"timezone": None}, "timezone is None"),
        ({"pool": ""}, "pool has ''"),
        ({"default_args": {"pool": "mine"}}, "default_args has pool='mine'.*pool="),
        ({"default_args": {"trigger_rule": "always"}}, "trigger_rule='always'"),
        ({"default_args": {"params": {"execute": True}}}, "a run acts where its form says so"),
        ({"default_args": {"defaults": "Approve"}}, "an approval is a person's answer"),
        (
            {"default_args": {"env_vars": {"LOWTIDE_HBASE__ZNODE": "/x"}}},
            "variables 'LOWTIDE_HBASE__ZNODE'",
        ),
        ({"default_args": ["owner"]}, r"default_args is \['owner'\]"),
        ({"callbacks": {"on_failure": print}}, "callbacks names 'on_failure'"),
        ({"callbacks": {"on_failure_callback": "page"}}, "callbacks has 'page' as on_failure_callback"),
        ({"callbacks": print}, "callbacks is <built-in function print>"),
        ({"run_callbacks": {"on_retry_callback": print}}, "run_callbacks names 'on_retry_callback'"),
        (
            {"callbacks": {"on_failure_callback": print}, "default_args": {"on_failure_callback": print}},
            "on_failure_callback stands in callbacks and in default_args",
        ),
        ({"approvers": "ann"}, "approvers is 'ann'"),
        ({"approvers": [7]}, "approvers has 7"),
        ({"notifiers": [print]}, "notifiers has <built-in function print>"),
        ({"approvers": ["ann"], "dags": ["verification"]}, "approvers given for verification"),
        ({"approval": True, "dags": ["watermark_collection"]}, "approval given for watermark_collection"),
        ({"tags": "bank"}, "tags is 'bank'"),
        ({"spark_conn_id": None}, "spark_conn_id has None"),
    ],
)
def test_what_cannot_be_meant_is_named(stores: dict[str, Path], given: dict[str, Any], said: str) -> None:
    """When the file is imported, so that Airflow shows it: the argument, what was found, and the remedy."""
    with pytest.raises(UsageError) as error:
        lowtide_dags(**given)
    assert error.match(f"(?s){said}")
    assert error.value.remedy


def test_a_store_has_one_name(stores: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """With two there would be two pools, and two jobs at work on it at once."""
    file = stores["orders-prod"]
    monkeypatch.setenv("LOWTIDE_CONFIG", str(file))
    with pytest.raises(UsageError, match=r"orders-prod\.yaml, is that of the store orders-prod"):
        lowtide_dags()
    monkeypatch.delenv("LOWTIDE_CONFIG")
    with pytest.raises(UsageError, match="orders-prod, orders-test, and nothing says which one has no name"):
        lowtide_dags()
    around = file.parent / ".." / file.parent.name / file.name
    monkeypatch.setenv("AIRFLOW__LOWTIDE__STORES", json.dumps({"a": str(file), "b": str(around)}))
    with pytest.raises(UsageError, match=r"orders-prod\.yaml for a and for b"):
        lowtide_dags("a")


@pytest.mark.parametrize(
    "given",
    [
        "orders",
        '["orders"]',
        '{"a.b": "/x.yaml"}',
        '{"": "/x.yaml"}',
        '{"orders": "x.yaml"}',
        '{"orders": 3}',
        '{"orders": "/x.yaml", "orders": "/y.yaml"}',
    ],
)
def test_a_section_that_names_no_stores_is_refused(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what it says; an Airflow with one store needs none of it."""
    monkeypatch.setenv("AIRFLOW__LOWTIDE__STORES", given)
    for name in ("orders", None):
        with pytest.raises(UsageError, match=r"\[lowtide\] stores"):
            lowtide_dags(name, dags=["verification"])
