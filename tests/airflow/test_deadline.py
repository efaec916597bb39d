"""What is said of a run that did not end well in time. That a scheduler notices it is tested in ``test_runs``."""

from __future__ import annotations

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DeadlineReference
from airflow.sdk.observability import stats
from lowtide_airflow import view
from lowtide_airflow.deadline import deadline, late, late_text
from test_dag_files import ROOT

from lowtide.health import Health, Level, Reading
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.run.summary import Summary

CONTEXT = {
    "dag_run": {"dag_id": "orphan_cleanup", "dag_run_id": "scheduled__1"},
    "deadline": {"id": "1", "deadline_time": "2026-03-10 12:00:00+00:00"},
}


def test_every_dag_has_the_deadline_of_the_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day from being queued unless configured; its own callback where one is named; none at 0."""
    alert = deadline()
    assert alert is not None
    assert (alert.reference, alert.interval) == (DeadlineReference.DAGRUN_QUEUED_AT, timedelta(days=1))
    assert (alert.callback.path, alert.callback.kwargs) == ("lowtide_airflow.deadline.late", {})
    own = {"DEADLINE": "60", "DEADLINE_CALLBACK": "their.pager", "DEADLINE_CALLBACK_KWARGS": '{"to": "ops"}'}
    for environment, expected in ((own, [(60, "their.pager", {"to": "ops"})]), ({"DEADLINE": "0"}, None)):
        with monkeypatch.context() as there:
            for name, value in environment.items():
                there.setenv(f"AIRFLOW__LOWTIDE__{name}", value)
            alerts = [dag.deadline for dag in DagBag(ROOT / "dags").dags.values()]
        found = [
            each and [(a.interval.total_seconds(), a.callback.path, a.callback.kwargs) for a in each] for each in alerts
        ]
        assert len(found) >= 5
        assert found == [expected] * len(found)


def test_the_store_is_asked_why_and_its_silence_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The words have the run, its deadline and the state of the store; they are logged as an error, counted, and
    returned to Airflow.
    """
    file = tmp_path / "lowtide.yaml"
    file.write_text("hbase: {thrift: {port: 1, timeout: 1s}}\n")
    monkeypatch.setenv("LOWTIDE_CONFIG", str(file))
    counted: list[str] = []
    monkeypatch.setattr(stats, "incr", lambda name, *_, **__: counted.append(name))
    with caplog.at_level(logging.ERROR, "lowtide_airflow.deadline"):
        words = asyncio.run(late(CONTEXT))
    assert "orphan_cleanup has not ended well by 2026-03-10 12:00:00+00:00, its deadline: run scheduled__1." in words
    assert "The store cannot be read" in words
    assert caplog.messages == [words]
    assert counted == ["lowtide.orphan_cleanup.late"]


def test_the_words_end_with_the_commands_that_help() -> None:
    """Those of the worst finding; of a store that is well, none."""
    finding = Finding(Cause.BEHIND, Severity.WARNING, "what", "why", "remedy", ("lowtide run orphan_cleanup",))
    bad = late_text("d", "r", "then", Health(Level.ATTENTION, "It is stuck.", (finding,)))
    assert bad == "d has not ended well by then, its deadline: run r. It is stuck.\n    lowtide run orphan_cleanup"
    assert late_text("d", "r", "then", Health(Level.FINE, "All is well.", (finding,))).endswith("All is well.")


def test_the_commands_act_on_the_store_of_the_late_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a store with a name they have its configuration: whoever is called has another one, or none."""
    file = tmp_path / "east.yaml"
    file.write_text("hbase: {zookeeper_quorum: zk1, thrift: {host: gateway}}\n")
    monkeypatch.setenv("AIRFLOW__LOWTIDE__STORES", f'{{"east": "{file}"}}')
    runs = (Summary("orphan_cleanup", "r1", True, 1_000, problems=["broken"]).to_json(),)
    monkeypatch.setattr(view, "read", lambda *_, **__: Reading(datetime(2026, 3, 10, tzinfo=UTC), runs=runs))
    assert asyncio.run(late(CONTEXT, "east")).endswith(f"--config {file}")


def test_a_metrics_backend_that_fails_costs_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The words come all the same."""
    monkeypatch.setenv("LOWTIDE_CONFIG", str(tmp_path / "none.yaml"))

    def refuse(*_: object, **__: object) -> None:
        raise OSError("no backend")

    monkeypatch.setattr(stats, "incr", refuse)
    with caplog.at_level(logging.WARNING, "lowtide_airflow.metrics"):
        assert "scheduled__1" in asyncio.run(late(CONTEXT))
    assert "the metrics of the late orphan_cleanup could not be sent: no backend" in caplog.messages
