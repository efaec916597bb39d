"""When the DAGs run by themselves, and which interval a run has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.timetables.base import DataInterval
from airflow.timetables.interval import CronDataIntervalTimetable

if TYPE_CHECKING:
    from pendulum import DateTime


class JobTimetable(CronDataIntervalTimetable):
    """By a cron expression; a run has the time from one tick to the next as its data interval [start, end), and begins
    at its end.

    ``schedule="@daily"`` would not do: Airflow 3 makes a timetable of it whose intervals are empty. Nor would Airflow's
    own timetable with intervals: for a run by hand without an interval it infers the last whole one, and nobody can
    tell that from the same interval specified by hand. Here such a run's interval is empty, at its logical date.

    Airflow's scheduler finds this class through the plugin (:mod:`lowtide_airflow.plugin`).
    """

    def infer_manual_data_interval(self, *, run_after: DateTime) -> DataInterval:
        """Nobody specified one."""
        return DataInterval.exact(run_after)
