"""From an Airflow run to the arguments of a job (docs/jobs.md). Pure: no Airflow import, so every kind of run is a
plain test.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Any

from lowtide.errors import UsageError
from lowtide.run.jobs import INSPECTIONS
from lowtide.run.options import takes

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_NAME_LENGTH = 150
#: Run types of runs that nobody asked for, or for their dates alone. Any other is somebody's wish: the form, the API, a
#: task of a DAG of theirs (``operator_triggered``), an asset that they materialise; and what later versions add.
_UNASKED = ("scheduled", "backfill", "asset_triggered")
#: How the ids of runs begin that a schedule or a backfill made. What a backfill takes over keeps its id.
_BY_DATES = ("scheduled__", "backfill__")
#: What Airflow itself puts into the ``conf`` of a run that a task triggered: where OpenLineage is told of it.
_AIRFLOWS = ("openlineage",)
_AIRFLOWS_PREFIX = "airflow/"


@dataclass(frozen=True, slots=True)
class Run:
    """What Airflow knows of a run.

    *kind* is its run type: ``scheduled``, ``backfill``, ``asset_triggered``; any other counts as ``manual``. *interval*
    is its data interval [start, end); runs without a logical date have none, nor have manual ones unless somebody
    specified it. *params* are those that somebody gave: of a manual run the whole form, of any other only those in its
    ``conf``. *approval* is that of the form of any run: an installation may have set it for all.
    """

    dag_id: str
    run_id: str
    kind: str
    interval: tuple[datetime, datetime] | None
    params: Mapping[str, Any]
    approval: bool = False

    @classmethod
    def of(cls, context: Mapping[str, Any]) -> Run:
        """The run of a task's *context*; asks for nothing that runs without a logical date lack.

        Raises:
            UsageError: a backfill has taken over a run that was made by hand: its form and its interval are still that
                run's, and the backfill asked for neither.
        """
        dag_run = context["dag_run"]
        start, end = dag_run.data_interval_start, dag_run.data_interval_end
        kind = str(getattr(dag_run.run_type, "value", dag_run.run_type))
        kind = kind if kind in _UNASKED else "manual"
        if kind == "backfill" and (start == end or not dag_run.run_id.startswith(_BY_DATES)):
            fact = f"the run of this day, {dag_run.run_id}, was made by hand; nothing was done"
            raise UsageError(fact, "Delete it in Airflow, then backfill the day again")
        params = dict(context["params"])
        given = params if kind == "manual" else {name: params[name] for name in dag_run.conf or {} if name in params}
        interval = (start, end) if start and end else None
        if kind == "manual" and start == end == dag_run.logical_date:
            interval = None  # what lowtide_airflow.timetable gives where nobody specified one
        return cls(dag_run.dag_id, dag_run.run_id, kind, interval, given, bool(params.get("approval")))

    @property
    def dry(self) -> bool:
        """Whether somebody asked for a dry run; a run "as configured" is none, whatever the tables' modes are."""
        return "execute" in self.params and not self.params["execute"]


def check_conf(conf: Mapping[str, Any] | None, form: Collection[str], params: Mapping[str, Any]) -> None:
    """Refuse a key of a run's *conf* that its DAG's *form* does not have, Airflow's own apart. Airflow lets any pass,
    and the run would go by what the form says where nothing is given: all tables, for a misspelt ``tables``. And so it
    would where the *params* that it gives the run are not those of its conf.

    Raises:
        UsageError: names each such key, and the nearest that there is; or the setting by which conf does not count.
    """
    given = conf or {}
    if passed_over := [key for key in given if key in form and params.get(key) != given[key]]:
        fact = f"conf has {', '.join(passed_over)}, and Airflow goes by what the form says without it; nothing was done"
        remedy = "Let conf count: dag_run_conf_overrides_params = True in the section [core] of Airflow's configuration"
        raise UsageError(fact, remedy)
    unknown = [key for key in given if key not in (*form, *_AIRFLOWS) and not key.startswith(_AIRFLOWS_PREFIX)]
    if not unknown:
        return
    near = {key: get_close_matches(key, form, n=1) for key in unknown}
    found = [f"{key!r} ({near[key][0]} may be meant)" if near[key] else repr(key) for key in unknown]
    fact = f"conf has {', '.join(found)}, which this DAG's form does not have; nothing was done"
    raise UsageError(fact, f"Trigger a new run; its conf can have {', '.join(form)}")


def needs_approval(run: Run) -> bool:
    """Whether a person must see the plan first: never of a dry run, which is nothing but a plan."""
    return run.approval and bool(how(run))


def how(run: Run, job: str = "") -> list[str]:
    """``--execute``, nothing (a dry run, or a *job* that only reads), or ``--as-configured`` where nobody chose."""
    if job in INSPECTIONS:
        return []
    if "execute" not in run.params:
        return ["--as-configured"]
    return ["--execute"] if run.params["execute"] else []


def interval(run: Run, job: str) -> list[str]:
    """``--from`` and ``--to``, as far as *job* takes them.

    A scheduled run goes from each region's watermark to the end of its interval; a backfilled run has its own; a manual
    run what its form says and, where that is empty, what somebody specified as its data interval; a run that an asset
    started has neither: up to the low watermark.

    Raises:
        UsageError: From or To was given with a backfill, which takes both from its dates.
    """
    asked = {name: run.params[name] for name in ("from", "to") if run.params.get(name)}
    if run.kind == "backfill" and asked:
        msg = f"a backfill takes its interval from its dates; leave {' and '.join(asked)} empty (found {asked})"
        raise UsageError(msg)
    if run.interval and (run.kind in ("backfill", "manual") or (run.kind == "scheduled" and not asked)):
        start, end = (moment.isoformat() for moment in run.interval)
        asked = ({} if run.kind == "scheduled" else {"from": start}) | {"to": end} | asked
    return [part for name, time in asked.items() if takes(job, f"--{name}") for part in (f"--{name}", str(time))]


def options(run: Run, job: str) -> list[str]:
    """What else the form can hold, as far as *job* takes it."""
    switches = [f"--{name}" for name in ("full", "compact") if run.params.get(name)]
    given = {
        f"--{name.replace('_', '-')}": run.params.get(name)
        for name in ("budget_rows", "grace", "budget_share", "sample", "rate", "write_rate")
    }
    return [
        *(switch for switch in switches if takes(job, switch)),
        *(
            part
            for name, value in given.items()
            if value is not None and takes(job, name)
            for part in (name, str(value))
        ),
    ]


def listing(run: Run, job: str, plans: bool) -> list[str]:
    """``--list`` where a person looks at a plan (*plans*: before they approve it; or because they asked for a dry run):
    it is the cells that they want to see.
    """
    return ["--list"] if (plans or run.dry) and takes(job, "--list") else []


def tables(run: Run, job: str, names: Sequence[str]) -> list[str]:
    """``--table`` for each of *names*; ``--discovered`` unless a person chose them; what *job* has a use for."""
    names = names or run.params.get("tables") or []
    if not names or not takes(job, "--table"):
        return []
    chosen = run.params.get("tables") or not takes(job, "--discovered")
    return [*(part for name in names for part in ("--table", name)), *([] if chosen else ["--discovered"])]


def run_name(run: Run, task_id: str, map_index: int, cleared: int) -> str:
    """The name of a job's run: the same for each try of a task, another after the task was cleared.

    A job leaves out what a run of the same name has recorded, which is right for a retry; whoever clears a task wants
    it all done again. Made of letters, digits and ``._-`` (it becomes part of row keys and paths), and unique by a hash
    of the exact names.

    Args:
        run: the DAG run.
        task_id: of the task.
        map_index: of the mapped task; -1 where it is not mapped.
        cleared: tries that are over because of a clearing; 0 for a task never cleared.
    """
    parts = [run.dag_id, run.run_id, task_id, str(map_index), str(cleared)]
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:8]
    readable = _UNSAFE.sub("-", f"{run.dag_id}.{run.run_id}")[:_NAME_LENGTH].rstrip("-.")
    place = f".{map_index}" if map_index >= 0 else ""
    again = f".after-try-{cleared}" if cleared else ""
    return f"{readable}{place}{again}-{digest}"
