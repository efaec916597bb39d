"""What the gateway's answers mean."""

from __future__ import annotations

import pytest

from lowtide.errors import WatermarkError
from lowtide.gateway import parse_low_watermark


def test_low_watermark_is_eight_bytes() -> None:
    """The low watermark is a big-endian number of eight bytes."""
    assert parse_low_watermark(bytes.fromhex("17979cfe362a0000"), "T") == 1_700_000_000 * 10**9
    assert parse_low_watermark(bytes(8), "T") == 0


def test_missing_low_watermark_stops() -> None:
    """No row is not 0: it stops the run, with the table's name and the remedy."""
    with pytest.raises(WatermarkError, match=r"OMID has no low watermark.*start the oracle"):
        parse_low_watermark(None, "OMID")


@pytest.mark.parametrize("value", [b"", b"123", bytes(9)])
def test_malformed_low_watermark_stops(value: bytes) -> None:
    """Another length stops the run, with the table's name and the bytes' number."""
    with pytest.raises(WatermarkError, match=f"OMID is malformed.*found {len(value)}"):
        parse_low_watermark(value, "OMID")
