"""Interval sets against Python's own sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.values.intervals import Intervals

pairs = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda p: (p[0], p[0] + p[1])), max_size=6)


def members(intervals: Intervals | list[tuple[int, int]]) -> set[int]:
    return {n for a, b in intervals for n in range(a, b)}


@given(pairs)
def test_normal_form(given_pairs: list[tuple[int, int]]) -> None:
    """Whatever the order and overlap of the pairs, the set is the same, held as sorted pairs that neither touch nor are
    empty.
    """
    made = Intervals.of(given_pairs)
    assert members(made) == members(given_pairs)
    assert made == Intervals.of(reversed(given_pairs))
    flat = [edge for pair in made for edge in pair]
    assert flat == sorted(set(flat))
    assert bool(made) == bool(members(made))


@given(pairs, pairs)
def test_union_and_intersection(left: list[tuple[int, int]], right: list[tuple[int, int]]) -> None:
    """``|`` and ``&`` do what sets do."""
    a, b = Intervals.of(left), Intervals.of(right)
    assert members(a | b) == members(a) | members(b)
    assert members(a & b) == members(a) & members(b)
    assert a & b == Intervals.of(a & b)


@given(pairs, st.integers(0, 40), st.integers(0, 40))
def test_covers(given_pairs: list[tuple[int, int]], start: int, end: int) -> None:
    """``covers`` asks for every number of [start, end); nothing is asked of an empty interval."""
    made = Intervals.of(given_pairs)
    assert made.covers(start, end) == (set(range(start, end)) <= members(made))


@given(pairs, st.integers(0, 40))
def test_prefix_end(given_pairs: list[tuple[int, int]], start: int) -> None:
    """``prefix_end`` is the first number from *start* on that is not in the set."""
    expected = start
    while expected in members(Intervals.of(given_pairs)):
        expected += 1
    assert Intervals.of(given_pairs).prefix_end(start) == expected


def test_backward_pair_is_refused() -> None:
    """A pair that ends before it starts is an error that names it."""
    with pytest.raises(ValueError, match=r"\[5, 3\)"):
        Intervals.of([(5, 3)])
