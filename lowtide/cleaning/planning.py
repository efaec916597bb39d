"""Which key ranges a run reads, and from when to when. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lowtide.cleaning.facts import Fact, Region, cleaned_intervals, last_full_pass, read_by
from lowtide.errors import UsageError
from lowtide.values.clock import Clock, from_millis, millis
from lowtide.values.formats import after
from lowtide.values.keyranges import KeyRange
from lowtide.values.skew import MARGIN


@dataclass(frozen=True, slots=True)
class WorkRange:
    """A region's rows, to be read for the start timestamps [from_ts, to_ts)."""

    region: str
    keys: KeyRange
    from_ts: int
    to_ts: int


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller asked for. Times are aware; None: not given."""

    run: str
    #: By this machine's clock; from where the run goes by HBase's, by that.
    now: datetime
    start: datetime | None = None
    #: As it was given: by the clock of whoever gave it, who may be ahead. What is worked on ends at :attr:`until`.
    end: datetime | None = None
    full: bool = False

    @property
    def until(self) -> datetime | None:
        """Where the interval ends: nothing of the future is in it, whatever was asked for. None: no end was given."""
        return None if self.end is None else min(self.end, self.now)

    def check(self) -> None:
        """Refuse an interval that cannot be meant. Whoever gave it, such as Airflow's scheduler, may go by a clock that
        is as far ahead as clocks may be apart.

        Raises:
            UsageError: it lies in the future by more than that, or ends at or before its start.
        """
        for name, time in (("--from", self.start), ("--to", self.end)):
            if time is not None and time > self.now + MARGIN:
                fact = (
                    f"{name} {time.isoformat()} is in the future: the clock of this machine says "
                    f"{self.now.isoformat(timespec='seconds')}"
                )
                remedy = (
                    "Give a time that has passed; or, where whoever gave this one (Airflow's scheduler, for a run of "
                    "its) goes by another clock, set the clock that is wrong, of that machine or of this one"
                )
                raise UsageError(fact, remedy)
        if self.start is not None and self.end is not None and self.end <= self.start:
            msg = f"the interval ends at {self.end.isoformat()}, not after its start {self.start.isoformat()}"
            raise UsageError(msg)


def plan_ranges(
    request: Request,
    regions: Sequence[Region],
    facts: Sequence[Fact],
    clock: Clock,
    low_watermark: int,
    full_pass_every: timedelta,
) -> list[WorkRange]:
    """What to read of one table: at most one range a region, none where nothing is left to do.

    The end is the interval's, never beyond the low watermark. The start is the interval's where one was given; else the
    region's watermark, or 0 where a full pass is asked for or due. What of them this very run has
    recorded already is left out afterwards, by :func:`without_read`.

    Args:
        request: already checked.
        regions: of the table, as listed after the low watermark was read.
        facts: valid ones only (:func:`lowtide.cleaning.facts.valid`).
        clock: of the oracle.
        low_watermark: inclusive.
        full_pass_every: how old the last pass from 0 may be.
    """
    to_ts = after(low_watermark)
    if request.until is not None:
        to_ts = min(to_ts, clock.timestamp(request.until))
    asked_from = None if request.start is None else max(0, clock.timestamp(request.start))
    starts = ((region, _start(request, region, facts, asked_from, full_pass_every)) for region in regions)
    return [WorkRange(region.name, region.keys, from_ts, to_ts) for region, from_ts in starts if from_ts < to_ts]


def without_read(
    request: Request, ranges: Sequence[WorkRange], facts: Sequence[Fact]
) -> tuple[list[WorkRange], str | None]:
    """*ranges* without what a run of this id has read and recorded less than :data:`~lowtide.cleaning.facts.RESTART`
    ago, and a sentence that says what is left out.

    A range begins where that ends, so that a full pass that is started again, with a low watermark that has moved on,
    reads what it lacks. Only what was read from the range's very start on counts: an id that is used again for another
    interval leaves nothing out.
    """
    left, out, since = [], 0, request.now
    for planned in ranges:
        done, at = read_by(request.run, planned.keys, facts, millis(request.now))
        end = done.prefix_end(planned.from_ts)
        if end > planned.from_ts:
            out, since = out + 1, min(since, from_millis(at))
        if end < planned.to_ts:
            left.append(replace(planned, from_ts=end))
    if not out:
        return left, None
    also = f", {out - (len(ranges) - len(left))} of them in part" if out > len(ranges) - len(left) else ""
    return left, (
        f"{out} key range{'' if out == 1 else 's'} left out{also}: read and recorded by the run of this id, "
        f"{request.run}, since "
        f"{since.isoformat(timespec='seconds')}. To read them again, give another --run-id, or none"
    )


def first_unrecorded(ranges: Sequence[WorkRange], facts: Sequence[Fact]) -> int:
    """The least start timestamp in *ranges* of which no valid fact tells: what lies below it was cleaned in the table's
    present life.
    """
    return min((cleaned_intervals(r.keys, facts).prefix_end(r.from_ts) for r in ranges), default=0)


def _start(
    request: Request, region: Region, facts: Sequence[Fact], asked_from: int | None, full_pass_every: timedelta
) -> int:
    if request.full:
        return 0
    if asked_from is not None:
        return asked_from
    since_full = timedelta(milliseconds=millis(request.now) - last_full_pass(region.keys, facts))
    # One that is yet to come was recorded while the clocks were wrong: nobody knows when it was.
    if since_full >= full_pass_every or since_full < -MARGIN:
        return 0
    return cleaned_intervals(region.keys, facts).prefix_end(0)
