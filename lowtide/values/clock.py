"""From wall-clock times to the oracle's timestamps and back.

Omid has two clocks. The *world* clock counts 1,000,000 a millisecond since 1970. The *incremental* one is a counter
without relation to time; for it ``watermark_collection`` keeps samples (time, timestamp), each saying that at that time
the oracle had reached at least that timestamp. Times are aware datetimes; timestamps are base start timestamps.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from lowtide.errors import StoreError
from lowtide.values.formats import CHECKPOINTS, UNITS_PER_MILLI, WORLD_CLOCK_MIN, base

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock(Protocol):
    """What both clocks can do."""

    def timestamp(self, time: datetime) -> int:
        """The base timestamp that ends an interval at *time*: monotone in *time*, and never later than *time*
        warrants.
        """

    def time(self, timestamp: int) -> datetime | None:
        """The time at which the oracle gave *timestamp*, as well as it is known; None before the first sample, and
        where no calendar reaches.
        """


@dataclass(frozen=True, slots=True)
class WorldClock:
    """``WORLD_TIME``: milliseconds since 1970 times 1,000,000."""

    def timestamp(self, time: datetime) -> int:
        """Exact to the millisecond, rounded down to a base timestamp."""
        return base(millis(time) * UNITS_PER_MILLI)

    def time(self, timestamp: int) -> datetime | None:
        """Exact to the millisecond, rounded down."""
        try:
            return from_millis(timestamp // UNITS_PER_MILLI)
        except OverflowError:  # no oracle gave it, but anybody may have written it into a hold
            return None

    def first_time(self, timestamp: int) -> datetime | None:
        """The first millisecond that is not before *timestamp*: the time that is shown of a mark can be read at."""
        return self.time(timestamp + UNITS_PER_MILLI - 1)


class SampledClock:
    """``INCREMENTAL``: a step function through recorded samples."""

    def __init__(self, samples: Iterable[tuple[datetime, int]]) -> None:
        ordered = sorted(samples)
        self._times = [t for t, _ in ordered]
        self._stamps: list[int] = []
        for _, stamp in ordered:  # a sample below an earlier one adds nothing: the oracle had been further
            self._stamps.append(max(stamp, self._stamps[-1] if self._stamps else 0))

    def timestamp(self, time: datetime) -> int:
        """The timestamp of the last sample at or before *time*; 0 before the first.

        Raises:
            StoreError: there is no sample at all.
        """
        if not self._times:
            msg = (
                "the oracle's timestamps are a counter and no time sample is recorded yet, so times mean nothing; "
                "run watermark_collection regularly, or leave --from and --to out"
            )
            raise StoreError(msg)
        index = bisect_right(self._times, time)
        return base(self._stamps[index - 1]) if index else 0

    def time(self, timestamp: int) -> datetime | None:
        """The time of the last sample at or below *timestamp*."""
        index = bisect_right(self._stamps, timestamp)
        return self._times[index - 1] if index else None


def oracle_clock(kind: str, watermark: int, samples: Callable[[], Iterable[tuple[datetime, int]]]) -> Clock:
    """The oracle's clock, by ``omid.clock`` and its low watermark; *samples* are read where it counts."""
    return WorldClock() if on_world_clock(kind, watermark) else SampledClock(samples())


def on_world_clock(kind: str, watermark: int) -> bool:
    """Whether the oracle's clock is the world's, by ``omid.clock`` and its low watermark."""
    return kind == "world" or (kind == "auto" and is_world(watermark))


def clock_contradiction(kind: str, watermark: int) -> str:
    """Why ``omid.clock`` cannot be what the oracle has, by its low watermark; empty where nothing speaks against it.

    Taken for a counter, the world's clock makes every plain cell's milliseconds an orphan's timestamp.
    """
    if kind == "incremental" and is_world(watermark):
        observed, meant = "which counts a world clock's nanoseconds", "world"
    elif kind == "world" and 0 < watermark < WORLD_CLOCK_MIN:
        observed, meant = f"which is a counter's: a world clock's is {WORLD_CLOCK_MIN} or more", "incremental"
    else:
        return ""
    return (
        f"omid.clock is {kind} in the configuration, and the oracle's low watermark is {watermark}, {observed}. Say "
        f"{meant}, or auto"
    )


def seconds_since(timestamp: int, now: int) -> float | None:
    """How many seconds before *now* (ms since 1970) an oracle on the world's clock gave *timestamp*; None for 0, which
    no oracle gives, and where no calendar reaches.
    """
    moment = WorldClock().time(timestamp) if timestamp else None
    return None if moment is None else (now - millis(moment)) / 1000


def millis(time: datetime) -> int:
    """Milliseconds since 1970 of an aware *time*, rounded down."""
    return (time - EPOCH) // timedelta(milliseconds=1)


def from_millis(value: int) -> datetime:
    """The aware time, in UTC, that :func:`millis` gives *value* for."""
    return EPOCH + timedelta(milliseconds=value)


def now_millis() -> int:
    """Milliseconds since 1970 by this machine's clock."""
    return time.time_ns() // 1_000_000


def is_world(timestamp: int) -> bool:
    """Whether *timestamp* can only come from a world-clock oracle."""
    return timestamp >= WORLD_CLOCK_MIN


def first_timestamp(world_clock: bool) -> int:
    """Below it no cell can be the oracle's: a world clock is far beyond it, a counter begins with the first base."""
    return WORLD_CLOCK_MIN if world_clock else CHECKPOINTS
