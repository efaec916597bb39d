"""The runs of the jobs: what failed, and what does not run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product, takewhile
from typing import Any

from lowtide.config import Config, Mode
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.ledger import wrong_money
from lowtide.health.reading import Reading
from lowtide.run.jobs import JOBS
from lowtide.values.clock import from_millis
from lowtide.values.text import age_text

#: The jobs that must run again and again, in their order, and what each is for.
RECURRING = {
    "orphan_cleanup": "cleans",
    "watermark_collection": "moves the prune bound",
    "commit_table_pruning": "prunes the commit table",
}
#: Jobs that a person asks for and sees the answer of; what they leave undone no later run makes good, so it would be an
#: alarm for ever.
ASKED_FOR = ("sideline_restore", "journal_replay")


@dataclass(frozen=True, slots=True)
class LastRun:
    """The newest run of a job, or the newest of its dry runs: where a DAG run has it in several tasks, all of them."""

    job: str
    execute: bool
    started: datetime
    ended: datetime
    #: Whether none of it left work undone.
    done: bool
    #: Its summaries, newest first.
    summaries: tuple[Mapping[str, Any], ...]


def last_runs(reading: Reading) -> list[LastRun]:
    """Of each job, those of :data:`lowtide.run.submit.JOBS` alone, the newest run that acted and the newest dry run.
    Where they are not among the runs that were read, they are known in short: without their tables.
    """
    found = []
    for job, execute in product(JOBS, (True, False)):
        runs = _of(job, reading.runs, execute) or _of(job, reading.outcomes.last, execute)
        if runs:
            newest = as_dag_runs(runs)[0]
            started = min(r["started"] for r in newest)
            ended = max(r["started"] + round(r["seconds"] * 1000) for r in newest)
            # Of a DAG run of many tasks not all may have been read.
            failing = _of(job, reading.outcomes.failing, execute)
            others = (r for r in failing if _dag_run(r) == _dag_run(newest[0]))
            done = all(r["state"] == "done" for r in (*newest, *others))
            found.append(LastRun(job, execute, from_millis(started), from_millis(ended), done, tuple(newest)))
    return found


def _of(job: str, runs: Iterable[Mapping[str, Any]], execute: bool) -> list[Mapping[str, Any]]:
    return [r for r in runs if r["job"] == job and r["execute"] is execute]


def as_dag_runs(runs: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """*runs* of one job, newest first, the tasks of one DAG run together: one that is done does not make up for
    another. Of a task that was tried again its last try alone counts.
    """
    groups: dict[str, dict[object, Mapping[str, Any]]] = {}
    for r in runs:
        context = r["context"]
        task = (context["task_id"], context.get("map_index")) if "task_id" in context else r["run"]
        groups.setdefault(_dag_run(r), {}).setdefault(task, r)
    return [list(group.values()) for group in groups.values()]


def _dag_run(run: Mapping[str, Any]) -> str:
    return str(run["context"].get("run_id") or run["run"])


def failures(reading: Reading, config: Config) -> Iterator[Finding]:
    """What the last runs that acted left undone, job by job."""
    acted = [  # wrong money is a finding of its own
        # What is kept apart comes last: a run that was read is newer, or the same, and says whether that is over.
        r
        for r in (*reading.runs, *reading.outcomes.failing)
        if r["execute"] and r["job"] not in ASKED_FOR and not wrong_money(r)
    ]
    for job in dict.fromkeys(r["job"] for r in acted):
        runs = [r for r in acted if r["job"] == job]
        yield from _failed_tables(job, runs, reading, config)
        yield from _failed_as_a_whole(job, runs)


def _failed_tables(job: str, runs: Sequence[Mapping[str, Any]], reading: Reading, config: Config) -> Iterator[Finding]:
    for table in sorted({t["table"] for r in runs for t in r["tables"]}):
        if reading.listed and table not in reading.listed:
            continue  # dropped since
        reports = [(r, t) for r in runs for t in r["tables"] if t["table"] == table and not t.get("left_alone")]
        failing = list(takewhile(lambda pair: pair[1]["problems"] or pair[1]["counts"]["failed"], reports))
        if failing:
            newest = failing[0][1]
            problems = list(newest["problems"]) or [f"{newest['counts']['failed']} mutations failed"]
            again = f"lowtide run {job}{_for_table(job, table, config)} --execute"
            yield _failed(job, table, problems, from_millis(failing[-1][0]["started"]), again)


def _failed_as_a_whole(job: str, runs: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    failing = list(takewhile(lambda group: any(r["problems"] for r in group), as_dag_runs(runs)))
    if failing:
        problems = [p for r in failing[0] for p in r["problems"]]
        yield _failed(job, None, problems, from_millis(failing[-1][-1]["started"]), f"lowtide run {job} --execute")


def _failed(job: str, table: str | None, problems: Sequence[str], since: datetime, again: str) -> Finding:
    of = f" of table {table}" if table else ""
    more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
    return Finding(
        Cause.FAILED,
        Severity.ALARM,
        f"The last {job}{of} left work undone",
        f"{problems[0].strip().rstrip('.')}{more}",
        "Do what the problem says, then run it again",
        (f"lowtide runs --job {job}", again),
        since,
        (table,) if table else (),
    )


def _for_table(job: str, table: str, config: Config) -> str:
    """The option, where *job* takes that table by name: the commit table, in which a cleanup puts marks, is never its
    own to clean.
    """
    named = job in ("orphan_cleanup", "history_gc") and table not in config.own_tables
    return f" --table {table}" if named else ""


def overdue(reading: Reading, config: Config) -> Iterator[Finding]:
    """Jobs that have not acted for ``health.overdue_after``."""
    if not reading.runs:
        return  # a store that nothing was done to yet: there is no bound either
    last = {(run.job, run.execute): run for run in last_runs(reading)}
    first = min(from_millis(reading.runs[-1]["started"]), reading.outcomes.first or reading.at)
    # A job that is configured to plan only does its duty by planning; that it does no more is a finding of its own.
    planning = {"commit_table_pruning"} if config.table(config.omid.commit_table).mode is Mode.DRY_RUN else set()
    for job, does in RECURRING.items():
        acted, planned = last.get((job, True)), last.get((job, False))
        duties = [run.started for run in (acted, planned if job in planning else None) if run]
        # Of a job of which nothing is known only this is: it did not run since the first run that is known.
        since = max(duties, default=first)
        if reading.at - since >= config.health.overdue_after:
            gone = age_text(reading.at - since)
            if duties:
                why = f"{job} has not acted for {gone}"
            elif reading.more_runs:
                why = f"{job} has not acted for at least {gone}"
            else:
                why = f"{job} has never acted; the first run of any job was {gone} ago"
            only_plans = _only_plans(job, planned, reading, config)
            yield Finding(
                Cause.OVERDUE,
                Severity.WARNING,
                f"Nothing {does}",
                f"{why}; it only plans" if only_plans else why,
                *(_let_act(job) if only_plans else _run_now(job)),
                since,
            )


def _only_plans(job: str, planned: LastRun | None, reading: Reading, config: Config) -> bool:
    """Whether what is amiss is the mode: runs begin by themselves, and are dry runs without a pause's doing. A
    collection publishes whatever the modes are.
    """
    if planned is None or job == "watermark_collection" or any(p.lasts(reading.at) for p in reading.pauses):
        return False
    by_airflow = "dag_id" in planned.summaries[0]["context"]
    return by_airflow and reading.at - planned.started < config.health.overdue_after


def _run_now(job: str) -> tuple[str, tuple[str, ...]]:
    remedy = (
        f"Run it now; if Airflow should have, see that its DAG is not paused (airflow dags unpause {job}) and that its "
        "runs start"
    )
    return remedy, (f"lowtide run {job} --execute",)


def _let_act(job: str) -> tuple[str, tuple[str, ...]]:
    """Of a job that runs, and only plans: its DAG is not what is amiss."""
    if job == "orphan_cleanup":
        remedy = "Look at what it plans, let one table be cleaned, then set mode: execute for it in the configuration"
        return remedy, (f"lowtide runs --job {job}", f"lowtide run {job} --table <table> --execute")
    remedy = "Look at what it plans, then let it act: by hand, or with mode: execute in the configuration"
    return remedy, (f"lowtide runs --job {job}", f"lowtide run {job} --execute")
