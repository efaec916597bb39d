"""The ancient history mark: what it may pass, how it is aligned, what holds it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.errors import StoreError, UsageError
from lowtide.history.mark import EXPIRY_MARGIN, By, Hold, Limit, at_most, check_hold, limits, mark_of
from lowtide.values.clock import SampledClock, WorldClock
from lowtide.values.durations import Ages

NOW = datetime(2026, 1, 31, tzinfo=UTC)
WORLD = WorldClock()
WEEK = Ages(timedelta(days=7), timedelta(hours=1))
HIGH = WORLD.timestamp(NOW)


def hold(**changes: object) -> Hold:
    taken = NOW - timedelta(hours=1)
    return replace(Hold("h1", "t", HIGH - 1000, "me", "a long scan", taken, NOW + timedelta(hours=1)), **changes)  # type: ignore[arg-type]


def found(**changes: object) -> list[Limit]:
    given_ = {
        "ages": WEEK,
        "now": NOW,
        "as_of": None,
        "clock": WORLD,
        "low_watermark": HIGH,
        "bound": HIGH,
        "bound_by": "a region",
        "holds": [],
    }
    return limits(**(given_ | changes))  # type: ignore[arg-type]


@given(st.integers(0, 2**62))
def test_a_mark_is_the_last_number_of_a_base_timestamp(timestamp: int) -> None:
    """It is the highest of the form 50 k + 49 that is not above what allows it; no start or commit equals it; 0 is
    none.
    """
    mark = at_most(timestamp)
    assert mark <= timestamp
    assert mark == 0 or (mark % 50 == 49 and timestamp - mark < 50)
    assert (mark == 0) == (timestamp < 49)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=6))
def test_the_mark_is_the_least_of_what_its_limits_allow(stamps: list[int]) -> None:
    """Every limit allows the mark, one allows no higher one, and exactly those are named."""
    all_limits = [Limit(t, str(i), "", By.BOUND) for i, t in enumerate(stamps)]
    mark, holding = mark_of(all_limits)
    assert all(mark <= max(t, 0) for t in stamps)
    assert mark == at_most(min(stamps))
    assert {h.timestamp for h in holding} == {t for t in stamps if at_most(t) == mark}


def test_history_stays_for_the_configured_age() -> None:
    """On a good day the mark is now minus the age: a read point of exactly then is still readable, one before is
    not.
    """
    mark, holding = mark_of(found())
    week_ago = WORLD.timestamp(NOW - timedelta(days=7))
    assert mark == week_ago - 1
    assert [h.what for h in holding] == ["history_max_age 7d"]
    assert all(h.by is By.AGE for h in holding)


@pytest.mark.parametrize(
    ("changes", "mark", "what"),
    [
        ({"low_watermark": 10_049}, 10_049, "the low watermark"),
        ({"low_watermark": 10_050}, 10_049, "the low watermark"),
        ({"bound": 5_049}, 5_049, "the prune bound (a region)"),
        ({"bound": 0}, 0, "the prune bound (a region)"),
        ({"holds": [hold(timestamp=7_050)]}, 7_049, "hold h1 of me: a long scan"),
        ({"holds": [hold(timestamp=7_050), hold(id="h2", timestamp=7_000)]}, 6_999, "hold h2 of me: a long scan"),
        ({"ages": Ages(None, timedelta(0))}, 0, "history_max_age: forever"),
        (
            {"ages": Ages(timedelta(0), timedelta(hours=2))},
            WORLD.timestamp(NOW - timedelta(hours=2)) - 1,
            "min_history_age 2h",
        ),
        (
            {"ages": Ages(timedelta(minutes=15), timedelta(minutes=15)), "as_of": NOW - timedelta(days=3)},
            WORLD.timestamp(NOW - timedelta(days=3, minutes=15)) - 1,
            "history_max_age 15m",
        ),
    ],
)
def test_what_keeps_the_mark_back(changes: dict[str, object], mark: int, what: str) -> None:
    """The low watermark, the prune bound, holds, the ages and the interval's end each keep it back, and are named."""
    value, holding = mark_of(found(**changes))
    assert (value, holding[0].what) == (mark, what)


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_bound_is_named_only_where_it_keeps_the_mark_below_the_low_watermark(bound: int, low: int) -> None:
    """Where they allow the same mark nothing blocks the bound, and there is nothing to clean; the mark is the least all
    the same.
    """
    mark, holding = mark_of(found(bound=bound, low_watermark=low))
    assert mark == min(at_most(bound), at_most(low))
    assert [limit.by for limit in holding] == [By.BOUND if at_most(bound) < at_most(low) else By.LOW_WATERMARK]


def test_an_expired_hold_holds_nothing() -> None:
    """It counts for a margin beyond its expiry, because machines' clocks differ, and not after."""
    ends = NOW - EXPIRY_MARGIN
    assert mark_of(found(holds=[hold(timestamp=50, expires=ends)]))[0] > 10**17
    assert mark_of(found(holds=[hold(timestamp=50, expires=ends + timedelta(seconds=1))]))[0] == 49


def test_an_interval_in_the_future_is_not_believed() -> None:
    """A mark as of later than now is the mark as of now."""
    assert mark_of(found(as_of=NOW + timedelta(days=300))) == mark_of(found())


def test_a_counter_without_samples_tells_no_age() -> None:
    """An oracle that counts gives no ages before times were sampled: refused, not guessed."""
    with pytest.raises(StoreError, match="no time sample"):
        found(clock=SampledClock([]))
    sampled = SampledClock([(NOW - timedelta(days=8), 5000), (NOW, 9000)])
    assert mark_of(found(clock=sampled, low_watermark=9000, bound=9000))[0] == 4999
    before = SampledClock([(NOW, 9000)])
    assert mark_of(found(clock=before, low_watermark=9000, bound=9000))[0] == 0


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"owner": " "}, "needs an owner"),
        ({"reason": ""}, "needs a reason"),
        ({"timestamp": -1}, "found -1"),
        ({"expires": NOW}, "before it began"),
        ({"expires": NOW + timedelta(days=8)}, r"may last 7d \(hold_max_age\), this one would last 193h"),
    ],
)
def test_holds_that_cannot_be_meant_are_refused(changes: dict[str, object], text: str) -> None:
    """No owner, no reason, no read point, no life, or too long a life: each is named."""
    with pytest.raises(UsageError, match=text):
        check_hold(hold(**changes), NOW, timedelta(days=7))
    check_hold(hold(), NOW, timedelta(days=7))


def test_a_hold_comes_back_from_its_record() -> None:
    """What is written of a hold is all of it, times to the millisecond."""
    assert Hold.from_json(hold().to_json()) == hold()
