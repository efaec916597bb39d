"""The fields of the DAGs' forms, and the numbers that an installation changes: in the section ``[lowtide]`` of
airflow.cfg (or ``AIRFLOW__LOWTIDE__NAME``), see docs/airflow.md.

Airflow's form calls a field required, with an asterisk and an error where it is emptied, unless ``null`` is among its
types. So it is among all of them: an empty field means what its description says.
"""

from __future__ import annotations

from typing import Any

from airflow.sdk import Param
from airflow.sdk.configuration import conf

from lowtide.errors import UsageError

#: How Airflow shows the mapped task of a batch of tables.
BATCH_LABEL = "{{ task.tables[0] }}{{ ' and %d more' % (task.tables | length - 1) if task.tables | length > 1 }}"

_SECTION = "lowtide"
#: Lengths of time, as in 1d12h.
_DURATION = r"^\s*(\d+(\.\d+)?\s*(ms|s|m|h|d|w)\s*)+$"
_TIME = r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$"


def number(name: str, default: int, *, least: int | None = None) -> int:
    """A whole number of Airflow's section ``[lowtide]``.

    Raises:
        UsageError: it is below *least*.
    """
    found = int(conf.getint(_SECTION, name, fallback=default))
    if least is not None and found < least:
        raise UsageError(f"[lowtide] {name} is {found}", f"give {least} or more, or leave it out for {default}")
    return found


def text(name: str) -> str:
    """A text of Airflow's section ``[lowtide]``; empty where it is not set."""
    return str(conf.get(_SECTION, name, fallback="") or "")


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


def asks_for_approval() -> bool:
    """Whether every run that acts needs an approval where a store's DAGs do not say otherwise."""
    return bool(conf.getboolean(_SECTION, "approval", fallback=False))


def switch_param(title: str, what: str, *, always: bool = False) -> Param:
    """A choice of what to do; *what* being ticked means. *always*: it is ticked, and a run without is refused."""
    fixed: dict[str, Any] = {"const": True} if always else {}
    told = f"Ticked, {what}" + (" It is asked for here, and cannot be left out." if always else "")
    return Param(always, type=["null", "boolean"], title=title, description=told, section="What to do", **fixed)


def execute_param(does: str) -> Param:
    """The choice between a dry run and the real one; *does* completes "Ticked, the run ..."."""
    return switch_param(
        "Execute",
        f"the run {does}. Not ticked, it is a dry run: it makes the same plan, shows its counts and changes nothing. "
        "Airflow sends a backfill's form only with 'Override parameters on existing runs' ticked: without that, what "
        "is said here does not count, and each table does as it is configured to.",
    )


def approval_param(always: bool) -> Param:
    """Whether a person sees the plan before it is done. An installation may ask for it of every run (*always*), whoever
    triggers it: who may fill in a form need not be who may approve.
    """
    return switch_param(
        "Ask for approval",
        "a run that is to act makes its plan first and waits, in the task approve, until a person approves it. Then "
        "that plan is done, or nothing.",
        always=always,
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
        + "A backfill takes it from its dates, and a run by hand from a data interval that is specified manually.",
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
        type=["null", "array"],
        items={"type": "string", "minLength": 1},
        title="Tables",
        description="One name a line. Empty: every table that may be transactional.",
        section="What to do",
    )


def rate_param() -> Param:
    """The most that a run reads in a second, where it is not to be the configured rate."""
    return _per_second("Rate", "cells", "reads")


def rate_params() -> dict[str, Param]:
    """The same, of a run that may write, with the most that it writes."""
    return {"rate": rate_param(), "write_rate": _per_second("Write rate", "mutations", "writes")}


def _per_second(title: str, unit: str, does: str) -> Param:
    both = "A run that acts takes both rates, or none. " if does == "writes" else ""
    return Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title=title,
        description=f"The most {unit} that the run {does} in a second, all its tasks together. {both}Empty: as "
        "configured.",
        section="Limits",
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
