"""What the collection keeps."""

from __future__ import annotations

from datetime import timedelta

from lowtide_spark.cleaning.watermarks import KEEP_RECORDS, records_kept

DAY = timedelta(days=1)


def test_runs_are_kept_as_long_as_their_sidelines_and_bounds_for_every_grace() -> None:
    """A missing sideline is told by its run's summary, which no default may take away before it."""
    assert records_kept(7 * DAY, 30 * DAY) == KEEP_RECORDS
    assert records_kept(7 * DAY, 180 * DAY) == 181 * DAY
    assert records_kept(60 * DAY, 30 * DAY) == 120 * DAY
