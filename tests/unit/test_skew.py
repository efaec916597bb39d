"""How far clocks are apart, and what is said of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.values.clock import WorldClock
from lowtide.values.skew import ALLOTTED_AHEAD, MARGIN, Allotted, machine_apart, oracle_ahead, oracle_apart, refusal

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)


def world(time: datetime) -> int:
    return WorldClock().timestamp(time)


def allotted(ahead: timedelta, written: datetime = NOW) -> Allotted:
    """As an oracle whose clock is ahead of HBase's by so much stores it."""
    return Allotted(world(written + ahead + ALLOTTED_AHEAD), written)


@pytest.mark.parametrize("off", [HOUR, -HOUR, DAY, -DAY, MARGIN + SECOND, -MARGIN - SECOND])
def test_clocks_that_differ_by_more_than_the_margin_are_named(off: timedelta) -> None:
    """By how much, and which way: this machine's, and the oracle's; and what is refused says what to do."""
    told = f"{abs(off).total_seconds():,.0f} s {'ahead of' if off > timedelta() else 'behind'}"
    machine = machine_apart(NOW + off, NOW)
    oracle = oracle_apart(oracle_ahead(allotted(off), NOW), 0, NOW)
    assert machine == f"the clock of this machine is {told} that of HBase's region server"
    assert (oracle or "").startswith(f"the oracle's clock is {told} that of HBase's region server")
    assert "Set the clocks, then run again" in refusal(machine)


@given(st.timedeltas(-MARGIN, MARGIN))
def test_a_skew_within_the_margin_is_none(off: timedelta) -> None:
    """Of this machine, of the oracle, and of a low watermark that was given a moment ago."""
    assert machine_apart(NOW + off, NOW) is None
    assert oracle_apart(oracle_ahead(allotted(off - off % timedelta(milliseconds=1))), world(NOW + off), NOW) is None


def test_an_oracle_that_rests_or_counts_is_in_order() -> None:
    """A maximum that was stored long ago tells of the clocks of then; a low watermark of a year ago is a quiet store's;
    a counter has no clock.
    """
    assert oracle_ahead(allotted(timedelta(), NOW - 30 * DAY), NOW) == timedelta()
    assert oracle_apart(None, world(NOW - 365 * DAY), NOW) is None
    assert oracle_ahead(Allotted(1_000_000, NOW), NOW) is None
    assert oracle_apart(None, 1_000_000, NOW) is None
    assert oracle_ahead(None, NOW) is None


@pytest.mark.parametrize(("watermark", "said"), [(world(NOW + HOUR), "3,600 s ahead"), (2**63 - 1, "ahead")])
def test_a_low_watermark_that_is_still_to_come_is_named(watermark: int, said: str) -> None:
    """Also where the oracle keeps its timestamps elsewhere; up to what it allots in advance that is no fault: it starts
    with it.
    """
    assert said in (oracle_apart(None, watermark, NOW) or "")
    assert oracle_apart(None, world(NOW + ALLOTTED_AHEAD + MARGIN), NOW) is None


def test_a_region_server_whose_clock_was_set_back_holds_nothing_up() -> None:
    """HBase dates a checked write no earlier than the cell that it replaces, so that the date lies in the future until
    the time is there.
    """
    stored = Allotted(world(NOW + ALLOTTED_AHEAD), NOW + DAY)
    assert oracle_ahead(stored, NOW) == timedelta()
    assert oracle_ahead(stored) == -DAY
