"""The deadline of a run: a DAG that has not ended well in time leaves a mark behind, and somebody should know why.

Airflow's scheduler watches the deadline; its triggerer calls :func:`late`, or what an installation names instead. DAG
files import this module: what reads the store is imported by the call.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

# Public names, which the types that come with Airflow have forgotten.
from airflow.sdk import AsyncCallback, DeadlineAlert, DeadlineReference  # type: ignore[attr-defined]
from airflow.sdk.configuration import conf

if TYPE_CHECKING:
    from lowtide.health import Health

log = logging.getLogger(__name__)

_SECTION = "lowtide"
_DAY = 24 * 3600


def deadline(store: str = "") -> DeadlineAlert | None:
    """The alert that every DAG of a *store* has, unless ``deadline`` in ``[lowtide]`` is 0.

    It counts from when the run was queued, not from its logical date, by which every run of a backfill would be late at
    once. A run that failed is late like one that still waits or works; one that ended well never is.
    """
    seconds = conf.getint(_SECTION, "deadline", fallback=_DAY)
    if not seconds:
        return None
    callback = conf.get(_SECTION, "deadline_callback", fallback="")
    kwargs = conf.getjson(_SECTION, "deadline_callback_kwargs", fallback={})
    if not callback and store:
        kwargs = {**kwargs, "store": store}
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(seconds=seconds),
        callback=AsyncCallback(callback or late, kwargs=kwargs),
        name="lowtide",
    )


async def late(context: Mapping[str, Any], store: str = "") -> str:
    """Log as an error which run is late and what the state of the store has to do with it, count it in Airflow's
    metrics, and return the text.

    Reads the store in a thread, and names the reason where that cannot be done. *context* is what Airflow passes:
    ``dag_run`` and ``deadline``; *store* is the name of the DAG's store.
    """
    from lowtide_airflow.metrics import Kind, Metric, emit
    from lowtide_airflow.view import Reader, judged

    run, by = context["dag_run"], context["deadline"]["deadline_time"]
    latest = await asyncio.to_thread(Reader(store))
    text = late_text(run["dag_id"], run["dag_run_id"], by, judged(latest))
    log.error("%s", text)
    emit([Metric(Kind.COUNTER, f"lowtide.{run['dag_id']}.late", 1)], f"the late {run['dag_id']}")
    return text


def late_text(dag: str, run: str, by: object, health: Health) -> str:
    """One sentence on the run, one on the store, and the commands that help where something is wrong."""
    commands = health.findings[0].commands if health.exit_code else ()
    sentences = f"{dag} has not ended well by {by}, its deadline: run {run}. {health.sentence}"
    return "\n    ".join((sentences, *commands))
