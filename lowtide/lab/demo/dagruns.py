"""Runs of Airflow, followed until they are over, with what the jobs did from the state table."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from lowtide.config import Config
from lowtide.lab.airflow import LocalAirflow, Run
from lowtide.lab.demo.settings import DemoError
from lowtide.report import Day, JobRun
from lowtide.report.contents import job_run
from lowtide.store.state import opened

Tell = Callable[[str], None]

_POLL_SECONDS = 1.0
_PATIENCE_SECONDS = 1800
#: What a job without counts has done.
_WITHOUT_COUNTS = {"watermark_collection": "region watermarks and prune bound published"}


@dataclass
class Backfill:
    """A backfill of ``orphan_cleanup``. *done* are the job runs of the days that are over, by day."""

    airflow: LocalAirflow
    config: Config
    runs: list[Run]
    days: Sequence[Day]
    done: list[JobRun] = field(default_factory=list)

    @classmethod
    def create(cls, airflow: LocalAirflow, config: Config, days: Sequence[Day]) -> Backfill:
        """``airflow backfill create`` over *days*, two at a time: while one has the pool's only slot, the other chooses
        its tables.
        """
        runs = airflow.dags.backfill("orphan_cleanup", days[0].date, days[-1].date, max_active_runs=2)
        return cls(airflow, config, runs, days)

    def follow(self, tell: Tell) -> None:
        """Wait until every day is over, and tell of each as it ends.

        Raises:
            DemoError: a day failed, or it takes longer than half an hour.
        """
        for run in _follow(self.airflow, self.runs):
            jobs = _jobs_of(self.config, run, self.days)
            self.done = sorted([*self.done, *jobs], key=lambda job: (str(job.day), job.started))
            day = f"{run.logical_date:%A, %d %B}" if run.logical_date else run.run_id
            tell(f"{day}: {_told(jobs)}: {run.state}")
            _check(run, jobs, self.airflow)


def run_dag(airflow: LocalAirflow, config: Config, dag_id: str, at: datetime, tell: Tell) -> list[JobRun]:
    """Trigger a DAG by hand for the interval that begins *at*, let it run, and wait; its job runs.

    Raises:
        DemoError: it failed.
    """
    tell(f"{dag_id}: triggered")
    answer = airflow.rest.post(
        "dags",
        dag_id,
        "dagRuns",
        body={"logical_date": at.isoformat(), "conf": {"execute": True}},
    )
    airflow.dags.unpause(dag_id)
    for run in _follow(airflow, [airflow.dags.run(dag_id, answer["dag_run_id"])]):
        jobs = _jobs_of(config, run)
        tell(f"{dag_id}: {_told(jobs)}: {run.state}")
        _check(run, jobs, airflow)
    return jobs


def _follow(airflow: LocalAirflow, runs: list[Run]) -> Iterator[Run]:
    """Each of *runs* when it is over, in the order in which they end."""
    waiting = {run.run_id: run for run in runs}
    deadline = clock.monotonic() + _PATIENCE_SECONDS
    while waiting:
        if clock.monotonic() > deadline:
            msg = (
                f"not over after {_PATIENCE_SECONDS // 60} minutes: {', '.join(waiting)}; see their logs at "
                f"{airflow.config.url}"
            )
            raise DemoError(msg)
        clock.sleep(_POLL_SECONDS)
        for run_id, run in list(waiting.items()):
            now = airflow.dags.run(run.dag_id, run_id)
            if now.over:
                del waiting[run_id]
                yield now


def _jobs_of(config: Config, run: Run, days: Sequence[Day] = ()) -> list[JobRun]:
    """The job runs that a DAG run started, oldest first: a retry has one for each try."""
    with opened(config) as state:
        summaries = state.runs(job=run.dag_id)
    return [job_run(s, days) for s in reversed(summaries) if s["context"].get("run_id") == run.run_id]


def _check(run: Run, jobs: list[JobRun], airflow: LocalAirflow) -> None:
    if run.state == "success":
        return
    said = list(dict.fromkeys(problem for job in jobs for problem in job.problems)) or [
        f"task {task.task_id} {task.state}" for task in airflow.dags.tasks(run) if task.state == "failed"
    ]
    msg = "\n  ".join([f"{run.dag_id} {run.run_id} failed; its logs are at {airflow.config.url}:", *said])
    raise DemoError(msg)


def _told(jobs: list[JobRun]) -> str:
    sums = {
        name: sum(getattr(job, name) for job in jobs)
        for name in ("healed", "deleted", "marked", "pruned", "finished", "dropped")
    }
    if any(job.state != "done" for job in jobs):
        idle = "nothing done"
    else:
        idle = _WITHOUT_COUNTS.get(jobs[0].job if jobs else "", "nothing to do")
    done = ", ".join(f"{number:,} {name}" for name, number in sums.items() if number) or idle
    return f"{done} in {sum(job.seconds for job in jobs):.0f} s"
