"""What Omid writes into commit entries, and Lowtide only reads: protobuf's varints."""

from __future__ import annotations


def encode_varint(number: int) -> bytes:
    """A protobuf varint of a non-negative *number*."""
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
