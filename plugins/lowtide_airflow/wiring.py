"""How the DAGs of one store are wired into Airflow: schedule, pool, retries, who is called. What
:func:`lowtide_airflow.factory.lowtide_dags` was told, in the words of DAGs and tasks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG, Asset, AssetOrTimeSchedule, Param

from lowtide_airflow.deadline import deadline
from lowtide_airflow.settings import approval_param, number
from lowtide_airflow.stores import Store
from lowtide_airflow.timetable import JobTimetable

if TYPE_CHECKING:
    from airflow.sdk.bases.notifier import BaseNotifier

#: Of each DAG, when it runs unless somebody says otherwise; its names are all DAGs there are.
SCHEDULES: Mapping[str, str | None] = {
    "orphan_cleanup": "@daily",
    # So that a stuck cleanup shows, also where no asset starts the collection.
    "watermark_collection": "@daily",
    "commit_table_pruning": "@daily",
    "history_gc": "@daily",
    "transaction_repair": "@hourly",
    "verification": "@weekly",
}
#: Those in which a person can be asked for an approval.
APPROVED = ("orphan_cleanup", "history_gc")

_WORDS = {
    "@hourly": "every hour",
    "@daily": "every day at midnight {zone}",
    "@weekly": "every Sunday at midnight {zone}",
    "@monthly": "on the first of every month at midnight {zone}",
}


@dataclass(frozen=True)
class Wiring:
    """What the DAGs of one store have in common, and what differs from another store's; checked before.

    ``schedules`` has every DAG, ``default_args`` lie over Lowtide's own; ``callbacks`` are those of tasks,
    ``run_callbacks`` those of DAGs, under Airflow's names.
    """

    store: Store
    schedules: Mapping[str, str | None]
    timezone: str
    pool: str
    default_args: Mapping[str, Any]
    callbacks: Mapping[str, Any]
    run_callbacks: Mapping[str, Any]
    approvers: Sequence[Mapping[str, str]]
    notifiers: Sequence[BaseNotifier]
    approval: bool
    tags: Sequence[str]
    spark: str

    def dag(self, name: str, doc: str, *tags: str, params: Mapping[str, Param], assets: Sequence[Asset] = ()) -> DAG:
        """The DAG *name* of the store, to be entered: by its schedule and, where there are *assets*, after each of
        their events.

        *doc* may hold ``{when}`` and ``{pool}``.
        """
        about = doc.format(when=self._when(name), pool=self.pool)
        return DAG(
            self.store.id(name),
            schedule=self._schedule(name, list(assets)),
            start_date=datetime(2020, 1, 1, tzinfo=UTC),
            # A run missed yesterday is no loss: today's starts at the region watermarks.
            catchup=False,
            max_active_runs=1,
            deadline=deadline(self.store.name),
            doc_md=about if not self.store.name else f"{about}\nStore: `{self.store.name}`.\n",
            tags=["lowtide", *tags, *([self.store.name] if self.store.name else []), *self.tags],
            params=dict(params),
            default_args={
                "owner": "lowtide",
                "retries": number("retries", 2),
                "retry_delay": timedelta(seconds=number("retry_delay", 60)),
                "retry_exponential_backoff": True,
                "max_retry_delay": timedelta(hours=1),
                "execution_timeout": timedelta(minutes=10),
                **self.default_args,
                **self.callbacks,
            },
            **self.run_callbacks,
        )

    def job(self) -> dict[str, Any]:
        """What all tasks that start a job have in common."""
        return {
            "store": self.store.name,
            "pool": self.pool,
            "conn_id": self.spark,
            "only_form": True,
            "execution_timeout": timedelta(seconds=number("job_timeout", 12 * 3600)),
        }

    def approval_param(self) -> Param:
        """The form's field *Ask for approval*."""
        return approval_param(self.approval)

    def _schedule(self, name: str, assets: list[Asset]) -> Any:
        expression = self.schedules[name]
        if expression is None:
            return assets or None
        timetable = JobTimetable(expression, timezone=self.timezone)
        # Its types know of the timetables of Airflow's SDK alone; it takes those of its core.
        return AssetOrTimeSchedule(timetable=timetable, assets=assets) if assets else timetable  # type: ignore[arg-type]

    def _when(self, name: str) -> str:
        expression = self.schedules[name]
        if expression is None:
            return "only when somebody, or an event, starts it"
        default = "by the cron expression `{expression}`, {zone}"
        return _WORDS.get(expression, default).format(expression=expression, zone=self.timezone)
