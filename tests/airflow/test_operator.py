"""What the operator submits, and what it hands on; the whole way through a scheduler is in test_runs.py."""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.sdk.execution_time.timeout import timeout
from lowtide_airflow import approved
from lowtide_airflow.operator import SUMMARY_KEY, LowtideSparkOperator
from test_arguments import DAY, FORM, context

from lowtide.config import Config
from lowtide.run.summary import Counts, Summary, TableReport

DONE = Asset("done")
SPARK = {"conn_type": "spark", "host": "local[1]"}
MODE = "spark.submit.deployMode"


class Ran:
    """One run of the operator, up to spark-submit and from there on: what was submitted, pushed and handed on."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        kind: str,
        conf: dict[str, Any] | None,
        /,
        connection: Mapping[str, Any] = {},
        left: Mapping[str, Any] = {},
        **settings: Any,
    ) -> None:
        self.pushed: dict[str, Any] = {}
        self.approved: Any = None

        def submitted(operator: Any, _: Any) -> None:
            self.arguments = list(operator.application_args)
            if "--approved" in self.arguments:
                self.approved = json.loads(Path(self._after("--approved")).read_text())
            acts = "--execute" in self.arguments or "--as-configured" in self.arguments
            report = TableReport("orders", Counts(deleted=3))
            summary = Summary("orphan_cleanup", "r1", acts, low_watermark=1049, tables=[report])
            summary.write(Path(self._after("--summary")))

        monkeypatch.setattr(SparkSubmitOperator, "execute", submitted)
        monkeypatch.setenv("AIRFLOW_CONN_SPARK_LOWTIDE", json.dumps({**SPARK, **connection}))
        operator = LowtideSparkOperator(task_id="clean", job="orphan_cleanup", outlets=[DONE], **settings)
        ti = SimpleNamespace(
            task_id="clean",
            map_index=0,
            try_number=1,
            max_tries=0,
            xcom_push=self.pushed.__setitem__,
            xcom_pull=lambda task_ids, **_: left.get(task_ids),
        )
        events: Any = defaultdict(SimpleNamespace)
        dag = SimpleNamespace(params=FORM)
        known = {**context(kind, conf, DAY), "dag": dag, "ti": ti, "outlet_events": events}
        operator.execute(known)  # type: ignore[arg-type]
        self.outlets = list(operator.outlets)
        self.told = dict(events)

    def _after(self, name: str) -> str:
        return self.arguments[self.arguments.index(name) + 1]


def test_a_connection_that_leads_elsewhere_when_it_is_submitted_is_not_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The provider looks it up again, and takes YARN where it cannot be read in that moment: all was judged for another
    master.
    """
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_LOWTIDE", json.dumps(SPARK))
    operator = LowtideSparkOperator(task_id="clean", job="orphan_cleanup")
    operator._prepare(Config())
    assert operator._get_hook()._connection["master"] == SPARK["host"]
    monkeypatch.delenv("AIRFLOW_CONN_SPARK_LOWTIDE")
    with pytest.raises(AirflowException, match=r"led to local\[1\] and, .* to yarn; nothing was submitted"):
        operator._get_hook()


def test_a_job_works_on_the_store_of_its_dag(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By that store's configuration, whatever the worker's own is; a store that the worker does not know fails the task
    for good.
    """
    file = tmp_path / "orders.yaml"
    file.write_text(
        "hbase: {zookeeper_quorum: zk1, thrift: {host: gateway}}\nspark: {conf: {spark.sql.shuffle.partitions: '3'}}\n"
    )
    monkeypatch.setenv("LOWTIDE_CONFIG", str(tmp_path / "none.yaml"))
    monkeypatch.setenv("AIRFLOW__LOWTIDE__STORES", json.dumps({"orders": str(file)}))
    ran = Ran(monkeypatch, "manual", None, store="orders")
    assert ran.arguments[-4:-2] == ["--config", str(file)]
    with pytest.raises(AirflowFailException, match="no store 'other'"):
        Ran(monkeypatch, "manual", None, store="other")
    with pytest.raises(AirflowFailException, match="cannot read the configuration"):
        Ran(monkeypatch, "manual", None)
    monkeypatch.setenv("LOWTIDE_CONFIG", str(file))
    assert "--config" not in Ran(monkeypatch, "manual", None).arguments


def test_a_misspelt_key_of_conf_starts_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """In Lowtide's own DAGs; a DAG of somebody's own may take what it likes."""
    conf = {"execute": True, "table": ["orders"]}
    with pytest.raises(AirflowFailException, match=r"'table' \(tables may be meant\)"):
        Ran(monkeypatch, "manual", conf, only_form=True)
    assert "--execute" in Ran(monkeypatch, "manual", {**FORM, "execute": True}, only_form=True).arguments
    assert "--execute" in Ran(monkeypatch, "manual", conf).arguments


@pytest.mark.parametrize("kind", ["manual", "scheduled", "backfill"])
def test_a_plan_never_acts(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """Whatever the run is and the configuration says; what it found goes to the person who approves it, and nothing is
    handed on.
    """
    ran = Ran(monkeypatch, kind, {"approval": True, "execute": True}, plans=True)
    assert not {"--execute", "--as-configured"} & set(ran.arguments)
    assert ran.pushed[approved.PLAN_KEY]["run"] == "r1"
    assert (ran.outlets, ran.told) == ([], {})


def test_what_acts_is_held_to_the_plan_that_was_approved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an approval is asked for: without one nothing is submitted at all."""
    plan = {"run": "the plan"}
    monkeypatch.setattr(approved, "approved_plan", lambda *_: plan)
    monkeypatch.setattr(approved, "approver", lambda _: "Ann Lee")
    ran = Ran(monkeypatch, "manual", {"approval": True, "execute": True})
    assert ran.approved == plan
    assert "--execute" in ran.arguments
    assert "approved_by=Ann Lee" in ran.arguments, "the run's summary says who approved it"
    alone = Ran(monkeypatch, "manual", {"execute": True})
    assert alone.approved is None
    assert not any(each.startswith("approved_by=") for each in alone.arguments)


def test_who_was_asked_is_held_to_although_nobody_asks_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """The approval is switched off while a scheduled run waits for it: the person approved that plan and no other. An
    answer to another plan, or none of them left, is refused.
    """
    plan = {"run": "the plan"}
    answer = {"chosen_options": ["Approve"], "responded_by_user": {"name": "Ann Lee"}, "plans": [approved.digest(plan)]}
    left = {"approve": answer, "plan": plan}
    ran = Ran(monkeypatch, "scheduled", {"approval": False}, left=left)
    assert ran.approved == plan, "it acts on whatever it finds"
    assert "approved_by=Ann Lee" in ran.arguments
    with pytest.raises(AirflowFailException, match="is not one that was approved"):
        Ran(monkeypatch, "scheduled", {"approval": False}, left={**left, "plan": {"run": "another"}})
    assert Ran(monkeypatch, "scheduled", {"approval": False}).approved is None


def test_only_what_acted_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run has nothing for those who listen."""
    assert Ran(monkeypatch, "manual", {"execute": False}).outlets == []
    ran = Ran(monkeypatch, "manual", {"execute": True})
    assert ran.outlets == [DONE]
    assert ran.told[DONE].extra == ran.pushed[SUMMARY_KEY]


def test_cells_are_listed_for_who_looks_at_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before an approval, and in a dry run by hand; but no dry run is refused for want of a place that all executors
    reach, and so many cells go into Airflow's database as the installation allows.
    """

    def lists(conf: dict[str, Any], host: str = "local[1]", **settings: Any) -> bool:
        return "--list" in Ran(monkeypatch, "manual", conf, {"host": host}, **settings).arguments

    assert lists({"execute": False})
    assert lists({"approval": True, "execute": True}, plans=True)
    assert not lists({"execute": True})
    assert not lists({"execute": False}, host="spark://elsewhere:7077"), "the sideline is a folder of this machine"
    assert lists({"approval": True, "execute": True}, host="spark://elsewhere:7077", plans=True), "which acting needs"


def test_a_task_whose_time_is_over_ends_its_driver_and_says_what_to_change(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Airflow's own words would be a process's number. What the run did stays done, so the task may be retried."""
    own_spark(monkeypatch)
    (tmp_path / "spark-submit").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "spark-submit").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_LOWTIDE", json.dumps(SPARK))
    operator = LowtideSparkOperator(task_id="clean", job="orphan_cleanup", execution_timeout=timedelta(hours=12))
    ti = SimpleNamespace(
        task_id="clean", map_index=0, try_number=1, max_tries=0, xcom_push=None, xcom_pull=lambda **_: None
    )
    given: Any = {**context("scheduled", None, DAY), "ti": ti}
    with timeout(5), pytest.raises(AirflowException, match=r"after 12 h 0 min.*\[lowtide\] job_timeout") as told:
        operator.execute(given)
    assert not isinstance(told.value, AirflowFailException), "another try goes on from there"
    assert "What it did is done" in str(told.value)
    driver: Any = operator._hook
    assert driver._submit_sp.poll() is not None, "the driver goes on deleting"
    assert "job_timeout=43200" in operator.application_args, "the job warns by it"


def test_settings_that_results_depend_on_are_refused_without_a_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of a task's own, too; nothing is submitted."""
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with pytest.raises(AirflowFailException, match=r"conf of the task has spark\.sql\.ansi\.enabled=false"):
        Ran(monkeypatch, "manual", {"execute": True}, conf={"spark.sql.ansi.enabled": "false"})


def own_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the Spark of this Python found, and no other's settings."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for name in ("SPARK_HOME", "SPARK_CONF_DIR", "DEPLOY_MODE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"connection": {"extra": {"deploy-mode": "cluster"}}}, "the connection spark_lowtide has deploy mode cluster"),
        ({"deploy_mode": "cluster"}, "the task has deploy mode cluster"),
        ({"conf": {MODE: "cluster"}}, "conf of the task has spark.submit.deployMode=cluster"),
        ({"env_vars": {"DEPLOY_MODE": "cluster"}}, "the environment has DEPLOY_MODE=cluster"),
    ],
)
def test_a_driver_elsewhere_is_refused_without_a_retry(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], named: str
) -> None:
    """Wherever deploy mode cluster is asked for, the place is named, with what to set; nothing is submitted."""
    own_spark(monkeypatch)
    with pytest.raises(AirflowFailException, match=rf"{re.escape(named)}.*exit code would be lost.*client"):
        Ran(monkeypatch, "manual", {"execute": True}, **settings)


def test_defaults_of_spark_yield_to_a_connection_that_says_client(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They are refused where nothing wins over them."""
    own_spark(monkeypatch)
    (tmp_path / "spark-defaults.conf").write_text(f"{MODE} cluster\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    with pytest.raises(AirflowFailException, match=r"spark-defaults\.conf has spark\.submit\.deployMode=cluster"):
        Ran(monkeypatch, "manual", {"execute": True})
    assert Ran(monkeypatch, "manual", {"execute": True}, connection={"extra": {"deploy-mode": "client"}}).arguments


def test_a_spark_that_does_not_fit_is_not_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The provider's program obeys SPARK_HOME as any does; its version is seen before, and there is no retry."""
    for name in ("spark-submit", "home/bin/spark-class", "home/jars/spark-core_2.12-3.4.4.jar"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "home"))
    with pytest.raises(AirflowFailException, match=rf"SPARK_HOME \({tmp_path}/home\) has Spark 3\.4\.4"):
        Ran(monkeypatch, "manual", {"execute": True})
