"""Tests with an Airflow that schedules do not begin shortly before midnight UTC: a daily run would come amid them, and
clean what they call today's.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

#: Longer than the tests of one installation take.
LATE = timedelta(minutes=10)


def wait_for_a_new_day() -> None:
    """Where one is about to begin."""
    now = datetime.now(UTC)
    if (soon := now + LATE).date() > now.date():
        midnight = soon.replace(hour=0, minute=0, second=0, microsecond=0)
        time.sleep((midnight - now).total_seconds() + 1)
