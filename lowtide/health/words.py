"""Timestamps, spans and lists for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from lowtide.values.clock import Clock, WorldClock
from lowtide.values.formats import UNITS_PER_MILLI

#: Names told in one finding; of more, their number.
_NAMED = 5


def told(timestamp: int, clock: Clock) -> str:
    """*timestamp* for people: a world clock's as a time, a counter's as a number, with the time where one is known."""
    if not timestamp:
        return "0"
    moment = time_of(timestamp, clock)
    if isinstance(clock, WorldClock) and moment:
        return moment
    return f"{timestamp:,}" + (f" ({moment})" if moment else "")


def time_of(timestamp: int, clock: Clock) -> str:
    """When *timestamp* was, nothing where that is not known. A world clock's is the first millisecond that is not before it:
    history that is removed before a mark can be read at the time that is told of the mark."""
    if isinstance(clock, WorldClock):
        moment = clock.first_time(timestamp)
        return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC" if moment else ""
    about = clock.time(timestamp)
    return f"about {about:%Y-%m-%d %H:%M} UTC" if about else ""


def span(timestamps: int, clock: Clock) -> str:
    """A number of timestamps for people: a world clock's as a time span."""
    if isinstance(clock, WorldClock):
        return ago(timedelta(milliseconds=timestamps // UNITS_PER_MILLI))
    return f"{timestamps:,}"


def when(moment: datetime | None) -> str:
    """A moment to the minute; nothing for none."""
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else ""


def ago(gone: timedelta) -> str:
    """A span of time in its largest unit: ``3 days``, ``5 hours``, ``1 minute``."""
    seconds = max(0, int(gone.total_seconds()))
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            number = seconds // size
            return f"{number} {unit}{'' if number == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """Names, the first few of many."""
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
