"""How far the clocks are apart that graces, ages and waiting go by: this machine's, HBase's, the oracle's. Pure.

Dates of records are HBase's, by the region server of the state table. So the machine that runs a job, and the one of
the Thrift gateway, which dates nothing, may be off; but a machine that is off by more than :data:`MARGIN` is the only
sign there is of a *region server* that is.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from lowtide.values.clock import WorldClock, is_world

#: Clocks may be apart by this much, and everything is still right. HBase's master refuses region servers that are off
#: by half a minute.
MARGIN = timedelta(minutes=1)
#: An oracle on the world's clock stores, every seven seconds and when it starts, its time and this much more (Omid's
#: WorldClockOracleImpl).
ALLOTTED_AHEAD = timedelta(seconds=10)


@dataclass(frozen=True, slots=True)
class Allotted:
    """The highest timestamp that the oracle may give out before it stores another, and when HBase wrote that, by its
    own clock.
    """

    timestamp: int
    written: datetime


def oracle_ahead(allotted: Allotted | None, now: datetime | None = None) -> timedelta | None:
    """How far the oracle's clock was ahead of HBase's when it stored its maximum last; negative: behind. None: nothing
    tells.

    Too low by what that write took.

    Args:
        allotted: of the oracle; None where it stores its timestamps elsewhere than in HBase.
        now: HBase's time, where it is known. A checked write is dated no earlier than the cell that it replaces: where
            HBase's clock was set back the date lies in the future, and now is as good.
    """
    until = WorldClock().time(allotted.timestamp) if allotted is not None and is_world(allotted.timestamp) else None
    if allotted is None or until is None:
        return None
    stepped = now is not None and allotted.written > now + MARGIN
    return until - ALLOTTED_AHEAD - (now if stepped and now else allotted.written)


def machine_apart(here: datetime, server: datetime) -> str | None:
    """How this machine's clock and HBase's differ, where that is more than the margin."""
    if abs(here - server) <= MARGIN:
        return None
    return f"the clock of this machine is {_apart(here - server)} that of HBase's region server"


def oracle_apart(ahead: timedelta | None, low_watermark: int, now: datetime) -> str | None:
    """How the oracle's clock and HBase's differ, where that is more than the margin. An oracle that counts has no
    clock.

    Args:
        ahead: of :func:`oracle_ahead`.
        low_watermark: as the oracle stored it: its clock has got as far. That it is behind is what it is on a quiet
            day.
        now: HBase's time.
    """
    if ahead is not None and abs(ahead) > MARGIN:
        return (
            f"the oracle's clock is {_apart(ahead)} that of HBase's region server, by the timestamps that it has "
            "allotted to itself"
        )
    given = WorldClock().time(low_watermark) if is_world(low_watermark) else now
    if given is None or given - ALLOTTED_AHEAD > now + MARGIN:
        how = "no time that a calendar knows, and" if given is None else f"{(given - now).total_seconds():,.0f} s"
        return f"the oracle's low watermark {low_watermark} is {how} ahead of the clock of HBase's region server"
    return None


def refusal(apart: str) -> str:
    """What to say instead of doing anything where clocks are *apart*."""
    return (
        f"{apart}, and one of the two is wrong: graces, ages, intervals and the life of holds go by them, so nothing "
        "is done. Set the clocks, then run again"
    )


def _apart(difference: timedelta) -> str:
    seconds = abs(difference).total_seconds()
    return f"{seconds:,.0f} s {'ahead of' if difference > timedelta() else 'behind'}"
