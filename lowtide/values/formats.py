"""Omid's bytes, as far as Lowtide writes or reads them outside Spark.

Sources: Omid's ``CellUtils`` (shadow cells), ``KeyGeneratorImplementations.BucketKeyGenerator`` and
``HBaseCommitTable`` (commit table). Timestamps are Omid's: non-negative 63-bit integers, multiples of 50; the 49
numbers after a start timestamp are its checkpoints.
"""

from __future__ import annotations

#: A start timestamp and its checkpoints share ``timestamp - timestamp % CHECKPOINTS``.
CHECKPOINTS = 50
#: Rows of the commit table, and of the journal, begin with the start timestamp's low four bits.
BUCKETS = 16
#: The rows of the commit table that are transactions': from the first, before the second.
COMMIT_ROWS = (b"\x00", bytes([BUCKETS]))

SHADOW_PREFIX = b"\x00\xc2\x80"
SHADOW_SUFFIX = b"\xc2\x80"

#: Row of the commit table that holds the low watermark, and its qualifier.
LOW_WATERMARK_ROW = b"LOW_WATERMARK"
LOW_WATERMARK_QUALIFIER = b"LWC"
#: Row of the oracle's timestamp table that holds the highest timestamp it has allotted to itself, and its column (the
#: family is Omid's default).
ALLOTTED_ROW = b"MAX_TIMESTAMP_R"
ALLOTTED_FAMILY = b"MAX_TIMESTAMP_CF"
ALLOTTED_QUALIFIER = b"MAX_TIMESTAMP_Q"
#: Qualifiers of a commit entry and of an invalidation mark.
COMMIT_QUALIFIER = b"C"
INVALID_QUALIFIER = b"IT"
INVALID_VALUE = b"\x00\x00\x00\x01"
#: Of the marks that Lowtide puts. Omid looks whether there is a mark, never at its value (``HBaseCommitTable``); this
#: one says that whoever put it had looked for every proof, as Omid's readers and its compactor do not. They write
#: theirs over it.
OWN_INVALID_VALUE = b"\x00\x00\x00\x02"

#: World-clock oracles count 1,000,000 a millisecond; no incremental counter gets here, no plain put's milliseconds
#: either.
WORLD_CLOCK_MIN = 10**17
UNITS_PER_MILLI = 1_000_000


def base(timestamp: int) -> int:
    """The start timestamp that *timestamp*, perhaps a checkpoint, belongs to."""
    return timestamp - timestamp % CHECKPOINTS


def after(watermark: int) -> int:
    """The open end ``to`` of the interval [from, to) that reaches an inclusive *watermark*."""
    return base(watermark) + CHECKPOINTS


def shadow_qualifier(qualifier: bytes) -> bytes:
    """The qualifier of the shadow cell that stands beside a data cell's *qualifier* (empty for a family tombstone)."""
    return SHADOW_PREFIX + qualifier + SHADOW_SUFFIX


def encode_long(number: int) -> bytes:
    """Eight bytes, big-endian, signed."""
    return number.to_bytes(8, "big", signed=True)


def decode_long(data: bytes) -> int:
    """The number in eight big-endian bytes.

    Raises:
        ValueError: *data* has another length.
    """
    if len(data) != 8:
        msg = f"8 bytes expected, found {len(data)}: {data.hex()}"
        raise ValueError(msg)
    return int.from_bytes(data, "big", signed=True)


def commit_key(start_ts: int) -> bytes:
    """The commit table's row for *start_ts*: one bucket byte, then the timestamp (``BucketKeyGenerator``)."""
    return bytes([start_ts & 0x0F]) + encode_long(start_ts)


def parse_commit_key(row: bytes) -> int | None:
    """The start timestamp of a commit-table row, or None for a row of another kind (the low watermark's)."""
    if len(row) != 9 or row[0] != row[8] & 0x0F:
        return None
    return decode_long(row[1:])


def decode_varint(data: bytes) -> int:
    """The number in a protobuf varint that fills *data* exactly.

    Raises:
        ValueError: the bytes are no single varint of at most 63 bits, which are nine bytes.
    """
    number = 0
    for index, byte in enumerate(data[:9]):
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            if index + 1 != len(data):
                break
            return number
    msg = f"not a commit entry's value: {data.hex() or 'empty'}"
    raise ValueError(msg)


def decode_commit(start_ts: int, data: bytes) -> int:
    """The commit timestamp that a commit entry's value names: a varint of how much later than the start it is.

    Raises:
        ValueError: *data* is no such value, or names a timestamp of more than 63 bits.
    """
    commit = start_ts + decode_varint(data)
    if commit >= 2**63:
        msg = f"not a commit entry's value: {data.hex()} after start timestamp {start_ts} is beyond 63 bits"
        raise ValueError(msg)
    return commit
