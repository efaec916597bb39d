"""Durations and times as people write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lowtide.errors import UsageError
from lowtide.values.durations import LONGEST, duration_text, parse_duration, parse_time


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("250ms", timedelta(milliseconds=250)),
        ("0s", timedelta()),
        ("15m", timedelta(minutes=15)),
        ("24 h", timedelta(days=1)),
        ("1.5h", timedelta(minutes=90)),
        ("7d", timedelta(days=7)),
        ("1w", timedelta(days=7)),
        ("1d12h", timedelta(hours=36)),
        (" 1d 30m ", timedelta(days=1, minutes=30)),
        (timedelta(hours=2), timedelta(hours=2)),
    ],
)
def test_durations(text: object, expected: timedelta) -> None:
    """Numbers with units add up; a timedelta stays as it is."""
    assert parse_duration(text) == expected


@given(st.integers(0, 99), st.integers(0, 23), st.integers(0, 59))
def test_durations_add_up(days: int, hours: int, minutes: int) -> None:
    """Several parts in a row are their sum."""
    assert parse_duration(f"{days}d{hours}h{minutes}m") == timedelta(days=days, hours=hours, minutes=minutes)


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(), "0s"),
        (timedelta(milliseconds=250), "0.25s"),
        (timedelta(seconds=90), "90s"),
        (timedelta(hours=36), "36h"),
        (timedelta(days=7), "7d"),
        (timedelta(seconds=1_000_001), "1000001s"),
    ],
)
def test_a_duration_is_written_in_its_largest_unit(span: timedelta, text: str) -> None:
    """As a whole number of it, without an exponent; a fraction is one of seconds."""
    assert duration_text(span) == text


@given(
    st.timedeltas(timedelta(), timedelta(days=36500))
    | st.integers(0, LONGEST.days * 86400).map(lambda seconds: timedelta(seconds=seconds))
)
@example(timedelta(seconds=1_000_001))
def test_a_duration_that_was_written_is_read_as_the_same(span: timedelta) -> None:
    """Whole seconds however many there are; a hundred years to the microsecond."""
    assert parse_duration(duration_text(span)) == span


@pytest.mark.parametrize(
    "text", ["", "24", 24, "h", "-1h", "1h-", "1e3s", "1y", "an hour", "1h 5", None, "99999999999d"]
)
def test_what_is_no_duration_is_refused(text: object) -> None:
    """Numbers without a unit, signs, other units, rests and numbers beyond all measure are refused, and the text is
    shown.
    """
    with pytest.raises(ValueError, match="found '"):
        parse_duration(text)


def test_times_become_utc() -> None:
    """Any zone is understood, as the letter Z and as Lowtide prints it too, and turned into UTC."""
    expected = datetime(2026, 1, 31, 2, tzinfo=UTC)
    for text in ("2026-01-31T02:00:00Z", "2026-01-31 02:00:00 UTC", " 2026-01-31T03:00:00+01:00 "):
        assert parse_time(text) == expected
        assert parse_time(text).tzinfo is UTC


@pytest.mark.parametrize("text", ["2026-01-31T02:00:00", "2026-01-31", " 2026-01-31 02:00", "20260131", "2026-W05-6"])
def test_naive_times_are_refused(text: str) -> None:
    """A time without zone is refused, with its name and the way to write it, which is then taken."""
    with pytest.raises(UsageError, match=r"--from: .* has no time zone; add one, as in (\S+)$") as error:
        parse_time(text, "--from")
    meant = str(error.value).rsplit(" ", 1)[1]
    assert parse_time(meant) == datetime.fromisoformat(text.strip()).replace(tzinfo=UTC)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-01:00"])
def test_a_time_of_no_year_in_utc_is_refused(text: str) -> None:
    """Though it is ISO 8601."""
    with pytest.raises(UsageError, match=r"--to: a time of the years 1 to 9999 in UTC is expected, found '") as error:
        parse_time(text, "--to")
    assert text in str(error.value)


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_refused(text: str) -> None:
    """Anything but ISO 8601 is refused, with its name, the value and an example."""
    with pytest.raises(UsageError, match=f"--to: an ISO 8601 time such as .* found {text!r}"):
        parse_time(text, "--to")
