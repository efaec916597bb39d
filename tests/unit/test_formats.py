"""Omid's bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.values import formats
from tests.varints import encode_varint

# start, commit, key, value of C, value of the shadow cell; made with Omid's own classes.
GOLDEN = [
    (50, 100, "020000000000000032", "32", "0000000000000064"),
    (1000, 1050, "0800000000000003e8", "32", "000000000000041a"),
    (1_700_000_000 * 10**9, 1_700_000_005 * 10**9, "0017979cfe362a0000", "80e497d012", "17979cff602ff200"),
    (1_700_000_000 * 10**9, 1_700_086_400 * 10**9, "0017979cfe362a0000", "8080bc8ac9d213", "1797eb92c7790000"),
]
timestamps = st.integers(0, 2**63 - 1)


@pytest.mark.parametrize(("start", "commit", "key", "delta", "shadow"), GOLDEN)
def test_golden_vectors(start: int, commit: int, key: str, delta: str, shadow: str) -> None:
    """Key, commit entry and shadow cell are the bytes that Omid's own classes make, and are read back."""
    assert formats.commit_key(start).hex() == key
    assert formats.parse_commit_key(bytes.fromhex(key)) == start
    assert encode_varint(commit - start).hex() == delta
    assert formats.decode_varint(bytes.fromhex(delta)) == commit - start
    assert formats.encode_long(commit).hex() == shadow
    assert formats.decode_long(bytes.fromhex(shadow)) == commit


@pytest.mark.parametrize(("qualifier", "shadow"), [(b"q", "00c28071c280"), (b"", "00c280c280")])
def test_shadow_qualifiers(qualifier: bytes, shadow: str) -> None:
    """A shadow qualifier wraps the data qualifier in Omid's prefix and suffix, also the empty one of a family
    tombstone.
    """
    assert formats.shadow_qualifier(qualifier).hex() == shadow


@given(timestamps)
def test_numbers_come_back(number: int) -> None:
    """Every timestamp survives each encoding."""
    assert formats.decode_varint(encode_varint(number)) == number
    assert formats.decode_long(formats.encode_long(number)) == number
    assert formats.parse_commit_key(formats.commit_key(number)) == number


@given(st.integers(0, 2**62), st.integers(0, formats.CHECKPOINTS - 1))
def test_checkpoints_belong_to_their_start(n: int, checkpoint: int) -> None:
    """A start timestamp and its 49 checkpoints have one base; the next number has another."""
    start = formats.base(n)
    assert start % formats.CHECKPOINTS == 0
    assert formats.base(start + checkpoint) == start
    assert formats.base(start + formats.CHECKPOINTS) == start + formats.CHECKPOINTS


@given(st.integers(0, 2**62))
def test_interval_reaches_the_watermark(watermark: int) -> None:
    """The interval up to a watermark holds exactly the base timestamps at or below it."""
    end = formats.after(watermark)
    last = end - formats.CHECKPOINTS
    assert end % formats.CHECKPOINTS == 0
    assert last <= watermark < end


@given(st.binary(max_size=12))
def test_only_transactions_keys_are_parsed(row: bytes) -> None:
    """A row is a transaction's exactly if writing its start timestamp gives the row again."""
    start = formats.parse_commit_key(row)
    assert start is None or formats.commit_key(start) == row
    if len(row) != 9 or row[0] != row[8] & 0x0F:
        assert start is None


def test_watermark_row_is_no_transaction() -> None:
    """The row of the low watermark is never taken for a transaction."""
    assert formats.parse_commit_key(formats.LOW_WATERMARK_ROW) is None


@pytest.mark.parametrize(
    "data", ["", "80", "3200", "8032ff", "ff" * 9 + "01", "80" * 10 + "01", "ffffffffffffffffffff"]
)
def test_malformed_varints_are_refused(data: str) -> None:
    """Nothing, an open end, trailing bytes and more than 63 bits are no varint, and the message shows the bytes."""
    with pytest.raises(ValueError, match=data or "empty"):
        formats.decode_varint(bytes.fromhex(data))


@pytest.mark.parametrize("length", [0, 7, 9])
def test_long_has_eight_bytes(length: int) -> None:
    """A number of another length than eight bytes is refused, with the length."""
    with pytest.raises(ValueError, match=f"found {length}"):
        formats.decode_long(b"\x01" * length)
