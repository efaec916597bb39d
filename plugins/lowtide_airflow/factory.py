"""The DAGs of a store, made in one call from a DAG file of yours.

::

    from airflow.providers.smtp.notifications.smtp import SmtpNotifier
    from lowtide_airflow.factory import lowtide_dags

    failed = SmtpNotifier(to="dba@example.org", subject="{{ ti.dag_id }}: {{ ti.task_id }} failed")

    lowtide_dags("orders-prod", schedule={"orphan_cleanup": "0 3 * * *"}, callbacks={"on_failure_callback": failed})
    lowtide_dags("orders-test", dags=["orphan_cleanup", "watermark_collection"], default_args={"owner": "test"})

Airflow finds them in the file, as it finds every DAG that is made there with ``with``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lowtide_airflow.required.spark  # noqa: F401 - before Airflow's names, which a wrong one may lack

# isort: split
import pendulum
from airflow.exceptions import AirflowTimetableInvalid
from airflow.sdk.bases.notifier import BaseNotifier

from lowtide.check.airflow import SPARK
from lowtide.config import CONFIG_VARIABLE
from lowtide.errors import UsageError
from lowtide_airflow import stores
from lowtide_airflow.dags import MAKERS
from lowtide_airflow.settings import asks_for_approval
from lowtide_airflow.stores import Assets
from lowtide_airflow.timetable import JobTimetable
from lowtide_airflow.wiring import APPROVED, SCHEDULES, Wiring

if TYPE_CHECKING:
    from airflow.sdk import DAG

__all__ = [
    "has_ledger",
    "lowtide_assets",
    "lowtide_dags",
]

_LEDGER = "transaction_repair"
_RUN_CALLBACKS = ("on_failure_callback", "on_success_callback")
_CALLBACKS = ("on_execute_callback", "on_retry_callback", "on_skipped_callback", *_RUN_CALLBACKS)
#: What default_args may not say, for what keeps jobs apart and in their order would no longer hold, and why.
_OURS = {
    "pool": "give pool= of lowtide_dags",
    "pool_slots": "the pool has one slot, and a task that wants more never starts",
    "trigger_rule": "whether a job runs after what came before it is part of each DAG",
    "outlets": "what a DAG hands on is part of it",
    "params": "a run acts where its form says so, and nowhere else",
    "defaults": "an approval is a person's answer, and lateness is none",
}
#: Says that a schedule was not given: None is one.
_AS_EACH: Any = object()


def lowtide_dags(
    store: str | None = None,
    *,
    dags: Collection[str] | None = None,
    schedule: str | Mapping[str, str | None] | None = _AS_EACH,
    timezone: str = "UTC",
    pool: str | None = None,
    default_args: Mapping[str, Any] | None = None,
    callbacks: Mapping[str, Any] | None = None,
    run_callbacks: Mapping[str, Any] | None = None,
    approval: bool | None = None,
    approvers: Collection[str | Mapping[str, str]] = (),
    notifiers: BaseNotifier | Collection[BaseNotifier] = (),
    tags: Collection[str] = (),
    spark_conn_id: str = SPARK,
) -> dict[str, DAG]:
    """Make the DAGs of one store, and give them back by what they do (``orphan_cleanup``, ...).

    A store has DAGs, assets and a pool of its own: ``orders-prod.orphan_cleanup``, ``orders-prod.lowtide_cleaned``,
    ``orders-prod.lowtide``. What happens to one store starts, stops or holds up nothing of another. Nothing is read
    from a store here; of its configuration only whether it has a ledger, and that only where *dags* is not given.

    Args:
        store: one of ``stores`` of the section ``[lowtide]`` of airflow.cfg, which names its configuration. None: the
            store of ``LOWTIDE_CONFIG``, whose DAGs, assets and pool bear no prefix.
        dags: which. None: all, ``transaction_repair`` only where the configuration has a ledger.
        schedule: a cron expression or preset for all of them, or one for each named; None: never by itself. Those that
            are not named keep theirs. A run has the time from one tick to the next as its interval.
        timezone: of the schedules, such as Europe/Berlin.
        pool: instead of the store's own, which Airflow's API server makes when it starts; one that is named here must
            be made with one slot by whoever names it.
        default_args: of all tasks, over Lowtide's own; not pool, trigger rule and outlets.
        callbacks: of every task, under Airflow's names (``on_failure_callback``, ...): a function, a notifier, or
            several. A failure is told when it happens, after the retries, once for each task.
        run_callbacks: of every DAG: ``on_failure_callback`` and ``on_success_callback``, once a run, at its end.
        approval: whether every run that acts needs an approval, scheduled ones too, and no form can do without; else
            who fills one in may ask for it. None: as the installation says.
        approvers: who alone may answer an approval: their ids in Airflow's auth manager, or ``{"id", "name"}``. Empty:
            whoever may edit the DAG's runs.
        notifiers: called when a run waits for an approval.
        tags: of all of them, besides Lowtide's own.
        spark_conn_id: the connection that says where Spark is.

    Raises:
        UsageError: something here cannot be meant: names it, what was found, and what to write instead.
    """
    found = stores.store(store)
    _check_alone(found)
    made = _chosen(dags, found)
    wiring = Wiring(
        store=found,
        schedules=_schedules(schedule, made, timezone),
        timezone=timezone,
        pool=found.pool if pool is None else _text("pool", pool),
        default_args=_default_args(default_args or {}),
        callbacks=_callbacks("callbacks", callbacks or {}, _CALLBACKS),
        run_callbacks=_callbacks("run_callbacks", run_callbacks or {}, _RUN_CALLBACKS),
        approvers=[_user(each) for each in _several("approvers", approvers)],
        notifiers=_notifiers(notifiers),
        approval=asks_for_approval() if approval is None else approval,
        tags=[_text("tags", each) for each in _several("tags", tags)],
        spark=_text("spark_conn_id", spark_conn_id),
    )
    twice = sorted(set(wiring.default_args) & set(wiring.callbacks))
    if twice:
        raise UsageError(f"{', '.join(twice)} stands in callbacks and in default_args", "say it in one of them")
    if not set(made) & set(APPROVED):
        asked = {"approval": approval, "approvers": wiring.approvers, "notifiers": wiring.notifiers}
        if given := [name for name, value in asked.items() if value]:
            fact = f"{' and '.join(given)} given for {', '.join(made)}, where nobody is asked for an approval"
            raise UsageError(fact, f"leave it out, or make {' or '.join(APPROVED)} with it")
    return {name: MAKERS[name](wiring) for name in made}


def lowtide_assets(store: str | None = None) -> Assets:
    """What the DAGs of a store tell, to schedule DAGs of yours on: ``cleaned`` after each cleanup that acted,
    ``marked`` after each collection that published, ``settled`` after each repair of the ledger that ended well.

    Raises:
        UsageError: there is no such store.
    """
    return stores.store(store).assets


def has_ledger(store: str | None = None) -> bool:
    """Whether the configuration of a store speaks of a ledger. Reads its file.

    Raises:
        UsageError: there is no such store, or its configuration is missing or wrong.
    """
    return stores.store(store).load().has_ledger


def _chosen(dags: Collection[str] | None, store: stores.Store) -> list[str]:
    if dags is None:
        return [name for name in MAKERS if name != _LEDGER or store.load().has_ledger]
    asked = _several("dags", dags)
    _known("dags", asked, MAKERS)
    if not asked:
        raise UsageError("dags is empty", f"name some of {', '.join(MAKERS)}, or leave it out for all")
    return [name for name in MAKERS if name in asked]


def _check_alone(store: stores.Store) -> None:
    """Refuse DAGs without a prefix of a store that has a name: two pools would let two jobs work on it at once."""
    if store.name:
        return
    file = os.environ.get(CONFIG_VARIABLE)
    if not file:
        if "" not in stores.served():
            fact = f"[lowtide] stores names {', '.join(stores.served())}, and nothing says which one has no name"
            raise UsageError(fact, f"give its name, set {CONFIG_VARIABLE}, or take these DAGs out")
        return
    named = stores.named()
    if names := [each.name for each in named.values() if each.file and each.file.resolve() == Path(file).resolve()]:
        fact = f"the configuration of {CONFIG_VARIABLE}, {file}, is that of the store {names[0]} under [lowtide] stores"
        raise UsageError(fact, f"make its DAGs by lowtide_dags({names[0]!r}) alone, or take it from there")


def _schedules(given: Any, made: Sequence[str], timezone: str) -> dict[str, str | None]:
    try:
        pendulum.timezone(timezone)
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"timezone is {timezone!r}", "give a name such as Europe/Berlin or UTC") from error
    if given is _AS_EACH:
        given = {}
    if given is None or isinstance(given, str):
        given = dict.fromkeys(made, given)
    if not isinstance(given, Mapping):
        raise UsageError(f"schedule is {given!r}", "give a cron expression, None, or a mapping from DAGs to these")
    _known("schedule", given, made)
    for name, expression in given.items():
        if expression is not None and not _is_cron(expression, timezone):
            fact = f"the schedule of {name} is {expression!r}"
            raise UsageError(fact, "give a cron expression such as '0 3 * * *', a preset such as @daily, or None")
    return {**SCHEDULES, **given}


def _is_cron(expression: object, timezone: str) -> bool:
    if not isinstance(expression, str):
        return False
    try:
        JobTimetable(expression, timezone=timezone).validate()
    except (AirflowTimetableInvalid, ValueError):
        return False
    return True


def _default_args(given: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise UsageError(f"default_args is {given!r}", "give a mapping, such as {'owner': 'dba'}")
    for name, why in _OURS.items():
        if name in given:
            raise UsageError(f"default_args has {name}={given[name]!r}", why)
    if settings := [name for name in given.get("env_vars") or () if str(name).upper().startswith("LOWTIDE_")]:
        fact = f"default_args has the variables {', '.join(map(repr, settings))} for the jobs alone"
        raise UsageError(fact, "say it in the store's configuration, which table choice and sensors read too")
    return given


def _callbacks(what: str, given: Mapping[str, Any], known: Sequence[str]) -> dict[str, list[Callable[..., Any]]]:
    if not isinstance(given, Mapping):
        fact = f"{what} is {given!r}"
        raise UsageError(fact, "give a mapping from Airflow's names to functions, such as on_failure_callback")
    _known(what, given, known)
    found = {
        name: list(each) if isinstance(each, Sequence) and not isinstance(each, str) else [each]
        for name, each in given.items()
    }
    for name, several in found.items():
        for each in several:
            if not callable(each):
                raise UsageError(f"{what} has {each!r} as {name}", "give a function or a notifier, or a list of them")
    return found


def _notifiers(given: BaseNotifier | Collection[BaseNotifier]) -> list[BaseNotifier]:
    several = [given] if isinstance(given, BaseNotifier) else _several("notifiers", given)
    for each in several:
        if not isinstance(each, BaseNotifier):
            raise UsageError(f"notifiers has {each!r}", "give notifiers of Airflow (airflow.sdk.BaseNotifier)")
    return several


def _user(given: object) -> dict[str, str]:
    if isinstance(given, str) and given:
        return {"id": given, "name": given}
    if isinstance(given, Mapping) and set(given) == {"id", "name"} and all(isinstance(v, str) for v in given.values()):
        return dict(given)
    raise UsageError(f"approvers has {given!r}", "give ids of users, or {'id': ..., 'name': ...}, as strings")


def _several(what: str, given: Any) -> list[Any]:
    if isinstance(given, str | Mapping) or not isinstance(given, Collection):
        raise UsageError(f"{what} is {given!r}", f"give a list, such as [{given!r}]")
    return list(given)


def _text(what: str, given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise UsageError(f"{what} has {given!r}", "give text that is not empty")
    return given


def _known(what: str, given: Collection[Any], known: Collection[str]) -> None:
    unknown = [each for each in given if each not in known]
    if unknown:
        raise UsageError(f"{what} names {', '.join(map(repr, unknown))}", f"known here are {', '.join(known)}")
