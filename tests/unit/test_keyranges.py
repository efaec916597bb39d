"""Key ranges against a brute-force model: all keys of up to three letters."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.values.keyranges import KeyRange, printable

KEYS = sorted(bytes(k) for n in range(4) for k in itertools.product((0, 1, 255), repeat=n))
keys = st.sampled_from(KEYS)
#: Well-formed ranges: to the end of the table, or to a key above the start.
ranges = st.tuples(keys, keys).map(lambda p: KeyRange(min(p), max(p)) if p[0] != p[1] else KeyRange(p[0], b""))


def rows(keys: KeyRange) -> set[bytes]:
    return {k for k in KEYS if k >= keys.start and (not keys.stop or k < keys.stop)}


@given(ranges, ranges)
def test_overlaps_and_contains(a: KeyRange, b: KeyRange) -> None:
    """Two ranges overlap if they share a row; one contains the other if it has all its rows."""
    assert a.overlaps(b) == bool(rows(a) & rows(b))
    assert a.contains(b) == (rows(b) <= rows(a) and (bool(b.stop) or not a.stop))


@given(ranges, st.lists(keys, max_size=6))
def test_cut(whole: KeyRange, edges: list[bytes]) -> None:
    """Pieces follow each other without gap, make up the whole, and no edge lies inside one."""
    pieces = whole.cut(edges)
    assert pieces[0].start == whole.start
    assert pieces[-1].stop == whole.stop
    assert all(a.stop == b.start for a, b in itertools.pairwise(pieces))
    assert sum(len(rows(p)) for p in pieces) == len(rows(whole))
    assert all(rows(p) for p in pieces)
    for edge in edges:
        assert not any(p.start < edge and (not p.stop or edge < p.stop) and edge in rows(p) for p in pieces)


def test_whole_table_contains_all() -> None:
    """The range without start and stop contains every range; only an open range contains an open one."""
    whole = KeyRange(b"", b"")
    assert whole.contains(KeyRange(b"a", b""))
    assert whole.contains(whole)
    assert not KeyRange(b"", b"z").contains(KeyRange(b"a", b""))


@pytest.mark.parametrize(
    ("key", "text"), [(b"abc", "abc"), (b"a\x00\xff", r"a\x00\xFF"), (b"a\\b", r"a\x5Cb"), (b"", "")]
)
def test_printable(key: bytes, text: str) -> None:
    """Keys are shown as HBase's shell shows them, the backslash escaped so that no two keys look alike."""
    assert printable(key) == text


def test_text_of_open_ends() -> None:
    """Open ends are shown as infinities."""
    assert str(KeyRange(b"", b"m")) == "[-∞, m)"
    assert str(KeyRange(b"m", b"")) == "[m, ∞)"
