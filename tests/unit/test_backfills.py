"""A backfill of the local Airflow is made again where its database was locked."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest
from tenacity import wait_none

from lowtide.lab.airflow.config import AirflowError
from lowtide.lab.airflow.dags import Dags

DAY = date(2026, 1, 1)


class NoRuns:
    """Airflow's API, of a DAG without runs."""

    def get(self, *_: str, **__: Any) -> Any:
        return {"dag_runs": []}

    def patch(self, *_: str, **__: Any) -> Any:
        return {}


def _backfill(monkeypatch: pytest.MonkeyPatch, answers: list[str]) -> list[Sequence[str]]:
    """Every command that was run; *answers* are what goes wrong, one a command."""
    ran: list[Sequence[str]] = []

    def command(arguments: Sequence[str]) -> str:
        ran.append(arguments)
        if len(ran) <= len(answers):
            raise AirflowError(answers[len(ran) - 1])
        return ""

    monkeypatch.setattr(Dags._create.retry, "wait", wait_none())  # type: ignore[attr-defined]
    Dags(NoRuns(), command).backfill("orphan_cleanup", DAY, DAY)  # type: ignore[arg-type]
    return ran


def test_a_locked_database_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Airflow takes back what it had made of the backfill, so the same command can be run again."""
    locked = "airflow failed with exit code 1:\n(sqlite3.OperationalError) database is locked\n[SQL: INSERT ...]"
    ran = _backfill(monkeypatch, [locked, locked])
    assert ran == [ran[0]] * 3


def test_what_airflow_refuses_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking again would not help."""
    with pytest.raises(AirflowError, match="Another backfill is running"):
        _backfill(monkeypatch, ["Another backfill is running for Dag orphan_cleanup", "never asked"])
