"""Which age of history suits a table, from the read points that were read. Pure.

Reads are counted by age in buckets that double: bucket *n* holds ages from 2^(n-1) up to 2^n minutes, bucket 0 those
below a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from lowtide.values.durations import duration_text

MINUTE = timedelta(minutes=1)
#: The last bucket holds all that is older.
BUCKETS = 24


def bucket(age: timedelta) -> int:
    """The bucket of a read point that was *age* old when it was read."""
    minutes = max(0, int(age / MINUTE))
    return min(minutes.bit_length(), BUCKETS - 1)


def upper(number: int) -> timedelta:
    """The age that a bucket's read points are below."""
    return MINUTE * (1 << number)


@dataclass(frozen=True, slots=True)
class Advice:
    """An age to keep, the share of the counted reads that it refuses, and the bytes that it keeps more (or less) than
    the configured one.

    None bytes: not known.
    """

    age: timedelta
    refused: float
    bytes: int | None

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; the age as the configuration takes it."""
        return {"age": duration_text(self.age), "refused": self.refused, "bytes": self.bytes}


def advise(
    reads: Mapping[int, int], a_day: float | None, least: timedelta, configured: timedelta | None, served: float = 0.999
) -> tuple[Advice | None, list[Advice]]:
    """The shortest age that serves the share *served* of the reads, and what each other age would do.

    Args:
        reads: how many read points were read, by :func:`bucket`; refused ones count.
        a_day: bytes of history that become ancient in a day (:func:`bytes_a_day`); None: not known.
        least: ``min_history_age``: nothing shorter is advised.
        configured: the age that history is kept for now; None: for ever.
        served: share of the reads.

    Returns:
        the advice (None without any read), and one line for each age that some read's bucket ends with.
    """
    total = sum(reads.values())
    if not total:
        return None, []
    ages = sorted({max(_whole(upper(n)), least) for n in reads if reads[n]})
    lines = []
    for age in ages:
        refused = sum(count for n, count in reads.items() if upper(n) > age) / total
        more = None if configured is None or a_day is None else int((age - configured) / timedelta(days=1) * a_day)
        lines.append(Advice(age, refused, more))
    return next((line for line in lines if line.refused <= 1 - served), lines[-1]), lines


def _whole(age: timedelta) -> timedelta:
    """*age* in whole hours or days, rounded up, where it has more than two of them: as people write ages."""
    for unit in (timedelta(days=1), timedelta(hours=1)):
        if age > 2 * unit:
            return -(-age // unit) * unit
    return age


def bytes_a_day(table: str, runs: Iterable[Mapping[str, Any]]) -> float | None:
    """How much history of *table* becomes ancient in a day, from the summaries of the runs of history_gc that
    removed it; None if less than two did.
    """
    removed = [
        (run["started"], report["counts"].get("bytes_removed", 0))
        for run in runs
        for report in run["tables"]
        if run["job"] == "history_gc" and report["table"] == table and report.get("execute")
    ]
    if len(removed) < 2:
        return None
    first, last = min(removed)[0], max(removed)[0]
    # What the first run found had gathered before it.
    total = sum(int(size) for started, size in removed if started > first)
    return float(total / max((last - first) / 86_400_000, 1 / 24))
