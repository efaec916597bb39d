"""What the DAGs have in common: schedule, pool, retries, form fields, the assets that hand one on to the next.

An installation changes numbers in the section ``[lowtide]`` of airflow.cfg (or ``AIRFLOW__LOWTIDE__NAME``), see
docs/airflow.md.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import Asset, CronDataIntervalTimetable, Param
from airflow.sdk.configuration import conf

from lowtide.run.submit import POOL
from lowtide_airflow.deadline import deadline

#: One slot: whatever starts a run (the day, a backfill, a person), one job at a time works on the store.

#: A cleanup is over, and what it cleaned, if anything, is recorded.
CLEANED = Asset("lowtide_cleaned", uri="lowtide://store/cleaned")
#: Region watermarks and prune bound were computed from it.
MARKED = Asset("lowtide_marked", uri="lowtide://store/marked")
#: A repair of the ledger ended well; where its mode is dry-run it changed nothing, and the settled mark stayed.
SETTLED = Asset("lowtide_settled", uri="lowtide://ledger/settled")

#: How Airflow shows the mapped task of a batch of tables.
BATCH_LABEL = "{{ task.tables[0] }}{{ ' and %d more' % (task.tables | length - 1) if task.tables | length > 1 }}"

_SECTION = "lowtide"
#: Lengths of time, as in 1d12h.
_DURATION = r"^\s*(\d+(\.\d+)?\s*(ms|s|m|h|d|w)\s*)+$"
_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$"


def number(name: str, default: int) -> int:
    """A whole number of Airflow's section ``[lowtide]``."""
    return int(conf.getint(_SECTION, name, fallback=default))


def text(name: str) -> str:
    """A text of Airflow's section ``[lowtide]``; empty where it is not set."""
    return str(conf.get(_SECTION, name, fallback="") or "")


def daily() -> CronDataIntervalTimetable:
    """Every day at midnight UTC, for the day before: runs have the day [00:00, 24:00) as their data interval.

    ``schedule="@daily"`` would not do: Airflow 3 makes a timetable of it whose intervals are empty.
    """
    return CronDataIntervalTimetable("@daily", timezone="UTC")


def hourly() -> CronDataIntervalTimetable:
    """Every hour, for the hour before, as :func:`daily`."""
    return CronDataIntervalTimetable("@hourly", timezone="UTC")


def weekly() -> CronDataIntervalTimetable:
    """Every Sunday at midnight UTC, for the week before, as :func:`daily`."""
    return CronDataIntervalTimetable("@weekly", timezone="UTC")


def dag_arguments(doc: str, *tags: str) -> dict[str, Any]:
    """What all DAGs of Lowtide have in common."""
    return {
        "start_date": datetime(2020, 1, 1, tzinfo=UTC),
        # A run missed yesterday is no loss: today's starts at the region watermarks.
        "catchup": False,
        "max_active_runs": 1,
        "deadline": deadline(),
        "doc_md": doc,
        "tags": ["lowtide", *tags],
        "default_args": {
            "owner": "lowtide",
            "retries": number("retries", 2),
            "retry_delay": timedelta(seconds=number("retry_delay", 60)),
            "retry_exponential_backoff": True,
            "max_retry_delay": timedelta(hours=1),
            "execution_timeout": timedelta(minutes=10),
        },
    }


def job_arguments() -> dict[str, Any]:
    """What all tasks that start a job have in common."""
    return {"pool": POOL, "execution_timeout": timedelta(seconds=number("job_timeout", 12 * 3600))}


def share_param() -> Param:
    """The other half of the budget, which small tables meet first."""
    return Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        maximum=1,
        title="Share budget",
        description="The largest share of a table's examined cells that the run may remove, as in 0.2, before it stops "
        "and says so. Empty: as configured.",
        section="Limits",
    )


def execute_param(does: str) -> Param:
    """The choice between a dry run and the real one; *does* completes "Ticked, the run ..."."""
    return Param(
        False,
        type="boolean",
        title="Execute",
        description=f"Ticked, the run {does}. Not ticked, it is a dry run: it makes the same plan, shows its counts "
        "and changes nothing.",
        section="What to do",
    )


def approval_param() -> Param:
    """Whether a person sees the plan before it is done; an installation may ask for it in every run."""
    return Param(
        conf.getboolean(_SECTION, "approval", fallback=False),
        type="boolean",
        title="Ask for approval",
        description="Ticked, a run that is to act makes its plan first and waits, in the task approve, until a person "
        "approves it. Then that plan is done, or nothing.",
        section="What to do",
    )


def time_param(title: str, empty: str, what: str = "") -> Param:
    """One end of an interval; *empty* is what leaving it empty means, *what* the time stands for, where it is no end
    of an interval.
    """
    return Param(
        None,
        type=["null", "string"],
        format="date-time",
        # Airflow's form keeps to the format; what comes through its API is held to the pattern alone.
        pattern=_TIME,
        title=title,
        description=f"Empty: {empty}. "
        + (what or "Times are those at which transactions began; From belongs to the interval, To does not. ")
        + "A backfill takes it from its dates.",
        section="Interval",
    )


def duration_param(title: str, what: str, examples: list[str]) -> Param:
    """A limit that is a length of time, as :func:`lowtide.values.durations.parse_duration` takes it; *what* it is."""
    return Param(
        None,
        type=["null", "string"],
        pattern=_DURATION,
        examples=examples,
        title=title,
        description=what,
        section="Limits",
    )


def tables_param() -> Param:
    """The tables of a run; none: all."""
    return Param(
        [],
        type="array",
        items={"type": "string", "minLength": 1},
        title="Tables",
        description="One name a line. Empty: every table that may be transactional.",
        section="What to do",
    )


def budget_param() -> Param:
    """The most that a run may remove, where it is not to be the configured one."""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title="Row budget",
        description="The most rows that the run may remove from one table before it stops and says so. Empty: as "
        "configured.",
        section="Limits",
    )
