"""What one asks of Airflow: unpause, trigger, backfill, wait, look."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from tenacity import retry, retry_if_exception_message, stop_after_attempt, wait_fixed

from lowtide.lab.airflow.config import AirflowError
from lowtide.lab.airflow.rest import Rest

Progress = Callable[[str], None]

_OVER = ("success", "failed")
_PAGE = 100
_POLL_SECONDS = 0.5
_LOCKED = "database is locked"
#: Airflow says so until it has seen that a backfill is over, for which it looks twice a minute.
_STILL = "There can be only one running backfill"


@dataclass(frozen=True)
class Run:
    """A DAG run as Airflow tells of it.

    *kind* is its run type; runs without a logical date have none of the three times.
    """

    dag_id: str
    run_id: str
    kind: str
    state: str
    logical_date: datetime | None
    interval: tuple[datetime, datetime] | None
    seconds: float | None

    @property
    def over(self) -> bool:
        """Whether it has ended, well or not."""
        return self.state in _OVER


@dataclass(frozen=True)
class Task:
    """A task instance of a run; *label* names what a mapped one is about, *map_index* is -1 for others."""

    task_id: str
    map_index: int
    label: str
    state: str
    tries: int
    seconds: float | None


class Dags:
    """The DAGs of a local Airflow. *command* runs ``airflow`` with these arguments and gives its output back."""

    def __init__(self, rest: Rest, command: Callable[[Sequence[str]], str]) -> None:
        self._rest = rest
        self._command = command

    def names(self) -> list[str]:
        """Every DAG that is loaded."""
        return sorted(dag["dag_id"] for dag in self._rest.get("dags", limit=_PAGE)["dags"])

    def import_errors(self) -> dict[str, str]:
        """What went wrong, by file that did not load."""
        found = self._rest.get("importErrors", limit=_PAGE)["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in found}

    def unpause(self, dag_id: str) -> None:
        """Let the DAG run. Airflow then starts the last daily run that is due, unless one of that day exists."""
        self._rest.patch("dags", dag_id, body={"is_paused": False})

    def pause(self, dag_id: str) -> None:
        """Start no more of its runs; those that run go on."""
        self._rest.patch("dags", dag_id, body={"is_paused": True})

    def trigger(
        self,
        dag_id: str,
        conf: dict[str, Any] | None = None,
        *,
        logical_date: datetime | None = None,
        interval: tuple[datetime, datetime] | None = None,
    ) -> Run:
        """Start a manual run, as the page's trigger button does, with *conf* over the form's defaults.

        With a *logical_date*, the beginning of a day, it stands for that day: no daily run is made for it any more. A
        paused DAG keeps the run waiting. *interval* is its data interval, as somebody specified it by hand; Airflow
        takes none without a *logical_date*.
        """
        body: dict[str, Any] = {"logical_date": logical_date.isoformat() if logical_date else None, "conf": conf or {}}
        if interval:
            body |= {"data_interval_start": interval[0].isoformat(), "data_interval_end": interval[1].isoformat()}
        return _run(self._rest.post("dags", dag_id, "dagRuns", body=body))

    def mark(self, run: Run, state: str) -> Run:
        """Declare a run to be over, as ``success`` or ``failed``; its tasks that wait never start."""
        return _run(self._rest.patch("dags", run.dag_id, "dagRuns", run.run_id, body={"state": state}))

    def backfill(
        self,
        dag_id: str,
        first: date,
        last: date,
        *,
        conf: dict[str, Any] | None = None,
        max_active_runs: int | None = None,
        reprocess: str | None = None,
        backwards: bool = False,
    ) -> list[Run]:
        """Create a run for every interval from *first* to *last*, both inclusive: ``airflow backfill create``.

        Returns the runs that this backfill made or took over, in the order of their dates. A date that has a run
        already is left out unless *reprocess* is ``completed`` or ``failed``. The DAG is unpaused after its runs were
        made, so that no scheduled run takes a date first.

        Raises:
            AirflowError: Airflow refused; the message is its own.
        """
        asked = [
            "backfill",
            "create",
            "--dag-id",
            dag_id,
            "--from-date",
            first.isoformat(),
            "--to-date",
            last.isoformat(),
        ]
        asked += ["--dag-run-conf", json.dumps(conf)] if conf is not None else []
        asked += ["--max-active-runs", str(max_active_runs)] if max_active_runs is not None else []
        asked += ["--reprocess-behavior", reprocess] if reprocess is not None else []
        asked += ["--run-backwards"] if backwards else []
        before = {run.run_id: run for run in self.runs(dag_id)}
        self._create(asked)
        self.unpause(dag_id)
        made = [run for run in self.runs(dag_id, kind="backfill") if run != before.get(run.run_id)]
        return sorted(made, key=lambda run: str(run.logical_date))

    @retry(
        retry=retry_if_exception_message(match=f"(?s).*({_LOCKED}|{_STILL})"),
        stop=stop_after_attempt(15),
        wait=wait_fixed(3),
        reraise=True,
    )
    def _create(self, asked: Sequence[str]) -> None:
        """Tried for a while: a backfill may just be over, and a database be locked.

        SQLite lets nobody write who read before another wrote, as the scheduler does all the time; Airflow then takes
        the backfill back.
        """
        self._command(asked)

    def runs(self, dag_id: str, kind: str | None = None) -> list[Run]:
        """The last hundred runs, newest first."""
        found = self._rest.get("dags", dag_id, "dagRuns", limit=_PAGE, order_by="-id", run_type=kind)["dag_runs"]
        return [_run(each) for each in found]

    def run(self, dag_id: str, run_id: str) -> Run:
        """One run as it is now."""
        return _run(self._rest.get("dags", dag_id, "dagRuns", run_id))

    def wait(self, runs: Iterable[Run], *, timeout: float = 1800, progress: Progress = lambda _: None) -> list[Run]:
        """Wait until all of *runs* are over and return them as they ended; each change of state is told to *progress*.

        Raises:
            AirflowError: some were not over after *timeout* seconds.
        """
        asked = list(runs)
        ended = {_key(run): run for run in self.as_they_end(asked, timeout=timeout, progress=progress)}
        return [ended[_key(run)] for run in asked]

    def as_they_end(
        self, runs: Iterable[Run], *, timeout: float = 1800, progress: Progress = lambda _: None
    ) -> Iterator[Run]:
        """Each of *runs* when it is over, in the order in which they end; each change of state is told to *progress*.

        Raises:
            AirflowError: some were not over after *timeout* seconds.
        """
        waiting = {_key(run): run for run in runs}
        deadline = time.monotonic() + timeout
        while waiting:
            for key, before in list(waiting.items()):
                now = waiting[key] = before if before.over else self.run(*key)
                if now.state != before.state:
                    progress(f"{now.dag_id} {now.run_id}: {now.state}")
                if now.over:
                    yield waiting.pop(key)
            if waiting and time.monotonic() > deadline:
                left = ", ".join(f"{run.run_id} ({run.state})" for run in waiting.values())
                raise AirflowError(f"not over after {timeout:.0f} s: {left}; see their logs on Airflow's page")
            time.sleep(_POLL_SECONDS if waiting else 0)

    def tasks(self, run: Run) -> list[Task]:
        """The task instances of a run."""
        found = self._rest.get("dags", run.dag_id, "dagRuns", run.run_id, "taskInstances", limit=_PAGE)
        return [
            Task(
                each["task_id"],
                each["map_index"],
                each["rendered_map_index"] or "",
                each["state"] or "none",
                each["try_number"],
                each["duration"],
            )
            for each in found["task_instances"]
        ]

    def log(self, run: Run, task: Task) -> str:
        """What the last try of a task wrote."""
        path = ("dags", run.dag_id, "dagRuns", run.run_id, "taskInstances", task.task_id, "logs", str(task.tries))
        content = self._rest.get(*path, map_index=task.map_index, full_content="true")["content"]
        return "\n".join(part for line in content for part in _log_lines(line))

    def asset_events(self, run: Run) -> list[dict[str, Any]]:
        """The asset events that a run sent, with their ``extra``."""
        events = self._rest.get("assets", "events", source_dag_id=run.dag_id, source_run_id=run.run_id, limit=_PAGE)
        found: list[dict[str, Any]] = events["asset_events"]
        return found


def _key(run: Run) -> tuple[str, str]:
    return run.dag_id, run.run_id


def _run(answer: dict[str, Any]) -> Run:
    start, end = _time(answer["data_interval_start"]), _time(answer["data_interval_end"])
    return Run(
        answer["dag_id"],
        answer["dag_run_id"],
        answer["run_type"],
        answer["state"],
        _time(answer["logical_date"]),
        (start, end) if start and end else None,
        answer["duration"],
    )


def _log_lines(line: Any) -> list[str]:
    if isinstance(line, str):
        return [line]
    errors = [f"{error['exc_type']}: {error['exc_value']}" for error in line.get("error_detail") or []]
    return [str(line.get("event", "")), *errors]


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
