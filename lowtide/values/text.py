"""Sizes, spans of time, moments and timestamps, as people read them: one function each, the same in the terminal, in
pages and in messages. Pure.

humanize was weighed: it says "an hour", "a month" for 40 days, "90 Bytes", and knows no oracle. Put right, it is no
shorter than this.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from lowtide.values.clock import Clock, WorldClock, is_world
from lowtide.values.formats import UNITS_PER_MILLI

_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def size_text(count: int) -> str:
    """Bytes in the largest unit that leaves a number of at least 1: ``90 B``, ``97.9 KiB``."""
    number, unit = float(count), 0
    while number >= 1024 and unit < len(_BYTES) - 1:
        number, unit = number / 1024, unit + 1
    return f"{number:.1f} {_BYTES[unit]}" if unit else f"{count} B"


def age_text(age: timedelta) -> str:
    """How long ago something was, in its largest unit, rounded down: ``3 days``, ``5 hours``, ``1 minute``."""
    seconds = max(0, int(age.total_seconds()))
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            number = seconds // size
            return f"{number} {unit}{'' if number == 1 else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def took_text(seconds: float) -> str:
    """How long something takes, in its two largest units: ``16 s``, ``3 min 20 s``, ``12 h 5 min``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def moment_text(moment: datetime | None) -> str:
    """A moment to the minute; nothing for none."""
    return f"{moment:%Y-%m-%d %H:%M} UTC" if moment else ""


def timestamp_text(timestamp: int, clock: Clock) -> str:
    """*timestamp* of the oracle: a world clock's as a time, a counter's as a number, with the time where one is
    known.
    """
    if not timestamp:
        return "0"
    moment = time_text(timestamp, clock)
    if isinstance(clock, WorldClock) and moment:
        return moment
    return f"{timestamp:,}" + (f" ({moment})" if moment else "")


def time_text(timestamp: int, clock: Clock) -> str:
    """When *timestamp* was, nothing where that is not known.

    A world clock's is the first millisecond that is not before it: history that is removed before a mark can be read at
    the time that is shown for the mark.
    """
    if isinstance(clock, WorldClock):
        moment = clock.first_time(timestamp)
        return f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03} UTC" if moment else ""
    about = clock.time(timestamp)
    return f"about {moment_text(about)}" if about else ""


def distance_text(timestamps: int, clock: Clock) -> str:
    """How far two timestamps are apart: a world clock's as a span of time, a counter's as a number."""
    if isinstance(clock, WorldClock):
        return age_text(timedelta(milliseconds=timestamps // UNITS_PER_MILLI))
    return f"{timestamps:,}"


def number_and_time(timestamp: int) -> str:
    """*timestamp* as a number, for commands that take it, and its time where it can only be a world clock's: rounded
    up, so that it can be read at.
    """
    time = WorldClock().first_time(timestamp) if is_world(timestamp) else None
    return f"{timestamp} ({time.isoformat(sep=' ', timespec='milliseconds')})" if time else str(timestamp)


def names_text(names: Sequence[str], limit: int = 5) -> str:
    """At most *limit* names, of more their number too."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def plain(text: str, longest: int = 200) -> str:
    r"""Somebody else's *text* in one line of at most *longest* characters, of which none moves a terminal's cursor or
    turns the line around: such are written as ``\x1b``. What is plain already stays as it is.
    """
    shown = "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in text)
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def cut(text: str, longest: int) -> str:
    """At most *longest* characters of *text*; of more, how many there are: ``abc... (5,000 characters)``."""
    return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"
