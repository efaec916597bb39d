"""Wall-clock times and the oracle's timestamps."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.errors import StoreError
from lowtide.values.clock import EPOCH, SampledClock, WorldClock, clock_contradiction, is_world, millis
from lowtide.values.formats import CHECKPOINTS

moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
samples = st.lists(st.tuples(moments, st.integers(0, 10**6)), min_size=1, max_size=8)


@given(moments, moments)
def test_world_clock_is_monotone(a: datetime, b: datetime) -> None:
    """A later time never has an earlier timestamp, and every timestamp is a base timestamp."""
    clock = WorldClock()
    first, second = sorted((a, b))
    assert clock.timestamp(first) <= clock.timestamp(second)
    assert clock.timestamp(first) % CHECKPOINTS == 0


@given(moments)
def test_world_clock_is_exact_to_the_millisecond(time: datetime) -> None:
    """Time to timestamp and back loses what is below a millisecond, never rounds up."""
    back = WorldClock().time(WorldClock().timestamp(time))
    assert back is not None
    assert timedelta() <= time - back < timedelta(milliseconds=1)


def test_world_clock_knows_omids_scale() -> None:
    """A millisecond counts a million; zones do not matter."""
    noon = datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert WorldClock().timestamp(noon) == 1_700_000_000 * 10**9
    assert WorldClock().timestamp(noon.astimezone(timezone(timedelta(hours=5)))) == 1_700_000_000 * 10**9


@given(samples, moments, moments)
def test_sampled_clock_is_monotone_and_never_late(given_samples: list, a: datetime, b: datetime) -> None:
    """It grows with time and is the highest sample at or before that time, rounded down to a base; 0 before the
    first.
    """
    clock = SampledClock(given_samples)
    first, second = sorted((a, b))
    assert clock.timestamp(first) <= clock.timestamp(second)
    reached = max((stamp for at, stamp in given_samples if at <= a), default=0)
    assert clock.timestamp(a) == reached - reached % CHECKPOINTS


@given(samples, st.integers(0, 10**6))
def test_sampled_clock_tells_times(given_samples: list, timestamp: int) -> None:
    """The time of a timestamp is that of the last sample up to which none is above it, None before the first; later
    timestamps have no earlier time.
    """
    clock = SampledClock(given_samples)
    time = clock.time(timestamp)
    reached = [one for one in given_samples if all(s <= timestamp for at, s in given_samples if (at, s) <= one)]
    assert time == max((at for at, _ in reached), default=None)
    later = clock.time(timestamp + 1000)
    assert time is None or (later is not None and later >= time)


def test_sampled_clock_without_samples_says_what_to_do() -> None:
    """Without a sample a time means nothing: refused, with the job to run."""
    with pytest.raises(StoreError, match="watermark_collection"):
        SampledClock([]).timestamp(EPOCH)
    assert SampledClock([]).time(50) is None


@pytest.mark.parametrize("timestamp", [2**63 * 10**6, 99999999999999999999999, -(10**30)])
def test_a_timestamp_beyond_all_calendars_has_no_time(timestamp: int) -> None:
    """No oracle gave it, but it can stand in a record: it is nothing to fail for. A counter knows what it had reached
    by its last sample.
    """
    assert WorldClock().time(timestamp) is None
    sampled = SampledClock([(EPOCH, 50)])
    assert sampled.time(timestamp) == (EPOCH if timestamp > 0 else None)


def test_consecutive_days_join_up() -> None:
    """The end of one day and the start of the next are one timestamp, on both clocks: backfilled days leave no gap."""
    midnight = datetime(2026, 1, 31, tzinfo=UTC)
    sampled = SampledClock(
        [(midnight - timedelta(hours=3), 1000), (midnight, 2030), (midnight + timedelta(hours=1), 3000)]
    )
    assert sampled.timestamp(midnight) == 2000
    assert sampled.timestamp(midnight - timedelta(seconds=1)) == 1000
    assert WorldClock().timestamp(midnight) % CHECKPOINTS == 0


def test_millis_round_down() -> None:
    """Fractions of a millisecond are dropped towards the past, also before 1970."""
    assert millis(EPOCH + timedelta(microseconds=1999)) == 1
    assert millis(EPOCH - timedelta(microseconds=1)) == -1


@pytest.mark.parametrize(
    ("timestamp", "world"), [(0, False), (1_769_824_800_000, False), (10**17 - 1, False), (10**17, True)]
)
def test_world_timestamps_are_recognised(timestamp: int, world: bool) -> None:
    """Only a world clock gets to 10^17; a counter does not, and neither do plain milliseconds."""
    assert is_world(timestamp) is world


@pytest.mark.parametrize(
    ("kind", "watermark", "words"),
    [
        ("incremental", 10**17, ["incremental", "100000000000000000", "Say world"]),
        ("world", 10**17 - 1, ["world", "99999999999999999", "Say incremental"]),
        ("world", 0, []),
        ("incremental", 10**17 - 1, []),
        ("world", 10**17, []),
        ("auto", 50, []),
        ("auto", 10**18, []),
    ],
)
def test_a_clock_that_the_low_watermark_contradicts_is_named(kind: str, watermark: int, words: list[str]) -> None:
    """Both sides, and the word that is right; an oracle that never gave a timestamp contradicts nothing."""
    told = clock_contradiction(kind, watermark)
    assert bool(told) is bool(words)
    assert all(word in told for word in words)
