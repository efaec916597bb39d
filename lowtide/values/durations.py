"""Durations and times as people write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from lowtide.errors import UsageError

_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
#: What is longer cannot be counted back from now.
LONGEST = timedelta(days=1000 * 365)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d|w)")


@dataclass(frozen=True, slots=True)
class Ages:
    """How long a table's history is kept: *keep*, None for ever; and *least*, below which none is removed whatever
    else allows it.
    """

    keep: timedelta | None
    least: timedelta


def parse_duration(value: object) -> timedelta:
    """``30s``, ``15m``, ``24h``, ``7d``, ``1w``, or several in a row (``1d12h``); a timedelta as it is.

    Raises:
        ValueError: anything else, numbers without a unit and negative ones included.
    """
    if isinstance(value, timedelta):
        return value
    text = str(value).strip()
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        msg = f"a duration such as 30s, 15m, 24h, 7d or 1d12h is expected, found {text!r}"
        raise ValueError(msg)
    try:
        span = sum((timedelta(**{_UNITS[unit]: float(number)}) for number, unit in parts), timedelta())
    except OverflowError:
        span = timedelta.max
    if span > LONGEST:
        msg = f"a duration of at most {LONGEST.days // 365} years is expected, found {text!r}"
        raise ValueError(msg)
    return span


def duration_text(span: timedelta) -> str:
    """*span*, which is not negative, as :func:`parse_duration` takes it: in the largest unit of which it is a whole
    number, or in seconds with a fraction (read again to the microsecond, up to a hundred years).
    """
    seconds = span // timedelta(seconds=1)
    if fraction := f"{span.microseconds:06}".rstrip("0"):
        return f"{seconds}.{fraction}s"
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"


def parse_time(text: str, what: str = "time") -> datetime:
    """An ISO 8601 time with zone, in UTC; `` UTC`` for the zone is what Lowtide prints.

    Raises:
        UsageError: no ISO 8601 time, one without zone, or one that UTC has no year for.
    """
    try:
        time = datetime.fromisoformat(re.sub(r" UTC$", "Z", text.strip()))
    except ValueError:
        msg = f"{what}: an ISO 8601 time such as 2026-01-31T00:00:00+00:00 is expected, found {text!r}"
        raise UsageError(msg) from None
    if time.tzinfo is None:
        msg = f"{what}: {text!r} has no time zone; add one, as in {time.replace(tzinfo=UTC).isoformat()}"
        raise UsageError(msg)
    try:
        return time.astimezone(UTC)
    except OverflowError:
        msg = f"{what}: a time of the years 1 to 9999 in UTC is expected, found {text!r}"
        raise UsageError(msg) from None
