"""Sizes, spans of time and names as people read them (timestamps: test_health.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.values.text import moment_text, names_text, number_and_time, plain, size_text, took_text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (90, "90 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (100_250, "97.9 KiB"), (3 << 60, "3072.0 PiB")],
)
def test_a_size_has_the_largest_unit_that_leaves_at_least_one(count: int, text: str) -> None:
    """Bytes are exact; beyond pebibytes the number grows."""
    assert size_text(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.4, "0 s"),
        (16.4, "16 s"),
        (59.6, "1 min 0 s"),
        (200, "3 min 20 s"),
        (3600, "1 h 0 min"),
        (43_529, "12 h 5 min"),
    ],
)
def test_what_took_long_is_told_in_two_units(seconds: float, text: str) -> None:
    """Rounded to the second before it is divided."""
    assert took_text(seconds) == text


def test_a_counters_number_stays_a_number() -> None:
    """A world clock's has its time beside it, rounded up to the millisecond: it can be given back to a command."""
    assert number_and_time(1049) == "1049"
    assert number_and_time(1_700_000_000_651_000_001) == "1700000000651000001 (2023-11-14 22:13:20.652+00:00)"


@given(st.lists(st.text("abc", min_size=1), min_size=1, max_size=2000))
def test_of_many_names_some_are_listed_and_all_are_counted(names: list[str]) -> None:
    """Five at most; what is left is a number."""
    listed, _, more = names_text(names).partition(" and ")
    left = int(more.removesuffix(" more").replace(",", "")) if more else 0
    assert len(listed.split(", ")) + left == len(names)
    assert left == max(0, len(names) - 5)


def test_no_moment_is_no_text() -> None:
    """A column of a table stays empty."""
    assert moment_text(None) == ""


@given(st.text(st.characters(codec=None)))
def test_a_text_of_others_is_one_plain_line(text: str) -> None:
    """Nothing in it moves a terminal's cursor, and made plain once more it is the same."""
    shown = plain(text)
    assert shown.isprintable()
    assert len(shown) <= 200
    assert plain(shown) == shown


def test_what_is_plain_is_told_as_it_is() -> None:
    """Letters of every language too; what is not is written out, and what is long ends in dots."""
    assert plain("für später") == "für später"
    assert plain("\x1b[2Jgone\nmore\u202e\udc80") == r"\x1b[2Jgone\nmore\u202e\udc80"
    assert plain("x" * 201) == "x" * 197 + "..."
