"""Raw cells read by the verifier's own code: what HBase hides, which cell has its shadow cell, what proves a commit."""

from __future__ import annotations

from typing import Any

from lowtide_spark.verification import rawcells
from pyspark.sql import DataFrame, Row, SparkSession

from lowtide.values.formats import INVALID_VALUE, commit_key, encode_long, shadow_qualifier
from tests.varints import encode_varint

CELLS = "region string, row binary, family binary, qualifier binary, timestamp bigint, value binary, kind string"


def frame(spark: SparkSession, *cells: tuple[Any, ...]) -> DataFrame:
    """Cells: row, family, qualifier, timestamp, value, kind."""
    return spark.createDataFrame(
        [("r1", *(bytearray(p) if isinstance(p, bytes) else p for p in cell)) for cell in cells], CELLS
    )


def put(row: bytes, timestamp: int, value: bytes = b"v", qualifier: bytes = b"q", family: bytes = b"f") -> Any:
    return row, family, qualifier, timestamp, value, "put"


def marker(row: bytes, timestamp: int, kind: str, qualifier: bytes = b"q", family: bytes = b"f") -> Any:
    return row, family, qualifier, timestamp, b"", kind


def test_delete_markers_hide_what_hbase_hides(spark: SparkSession) -> None:
    """One version, a column up to a time, a family up to a time, a family at a time; in their own row and family
    only.
    """
    cells = [put(bytes([n]), at) for n in range(5) for at in (100, 150, 200)]
    hiding = [
        marker(b"\x00", 150, "delete"),
        marker(b"\x01", 150, "delete_column"),
        marker(b"\x02", 150, "delete_family", b""),
        marker(b"\x03", 150, "delete_family_version", b""),
        marker(b"\x04", 900, "delete_family", b"", b"g"),
        marker(b"\x04", 900, "delete_column", b"p"),
    ]
    left = rawcells.visible(frame(spark, *cells, *hiding)).collect()
    shown = {n: sorted(r.timestamp for r in left if bytes(r.row) == bytes([n])) for n in range(5)}
    assert shown == {0: [100, 200], 1: [200], 2: [200], 3: [100, 200], 4: [100, 150, 200]}


def test_cells_are_paired_with_their_shadow_cells(spark: SparkSession) -> None:
    """By row, family, qualifier and timestamp alike, and not by less; a checkpoint belongs to its transaction."""
    shadow = shadow_qualifier(b"q")
    rows = rawcells.pairs(
        frame(
            spark,
            put(b"a", 100),
            put(b"a", 100, encode_long(150), shadow),
            put(b"b", 101),
            put(b"b", 100, encode_long(150), shadow),
            put(b"c", 100, b""),
            put(b"c", 100, b"odd", shadow),
            put(b"d", 100, b"", b""),
            put(b"d", 100, encode_long(150), shadow_qualifier(b"")),
            put(b"e", 100),
            put(b"e", 100, encode_long(150), shadow, b"g"),
        )
    ).collect()
    found = {(bytes(r.row), bytes(r.family), bytes(r.qualifier), r.timestamp): r for r in rows}

    def told(row: Row) -> tuple[Any, ...]:
        return row.start_ts, row.data, row.tombstone, row.shadow, row.odd

    assert {key: told(row) for key, row in found.items()} == {
        (b"a", b"f", b"q", 100): (100, True, False, 150, False),
        (b"b", b"f", b"q", 101): (100, True, False, None, False),
        (b"b", b"f", b"q", 100): (100, False, None, 150, False),
        (b"c", b"f", b"q", 100): (100, True, True, None, True),
        (b"d", b"f", b"", 100): (100, True, True, 150, False),
        (b"e", b"f", b"q", 100): (100, True, False, None, False),
        (b"e", b"g", b"q", 100): (100, False, None, 150, False),
    }


def test_proofs_of_commit_table_and_journal(spark: SparkSession) -> None:
    """Entries of any length, marks, fences that prove nothing, the journal's commits and marks; the low watermark's row
    is none.
    """
    deltas = (50, 5_000, 86_400 * 10**9)
    starts = (50, 1000, 1_700_000_000_000_000_000)
    commit = [put(commit_key(t), t, encode_varint(d), b"C", b"F") for t, d in zip(starts, deltas, strict=True)]
    commit += [
        put(commit_key(2000), 2000, INVALID_VALUE, b"IT", b"F"),
        put(commit_key(3000), 3000, encode_varint(0), b"C", b"F"),
        put(b"LOW_WATERMARK", 9, encode_long(77), b"LWC", b"LWF"),
    ]
    journal = [
        put(commit_key(4000), 1, encode_long(4050), b"C", b"j"),
        put(commit_key(5000), 1, INVALID_VALUE, b"IT", b"j"),
    ]
    rows = rawcells.proofs(frame(spark, *commit), frame(spark, *journal), "F").collect()
    assert {r.start_ts: (r.entry, bool(r.mark), r.pruned, bool(r.pruned_mark)) for r in rows} == {
        **{t: (t + d, False, None, False) for t, d in zip(starts, deltas, strict=True)},
        2000: (None, True, None, False),
        3000: (None, False, None, False),
        4000: (None, False, 4050, False),
        5000: (None, False, None, True),
    }
    gone = rawcells.deleted_entries(frame(spark, *commit, marker(commit_key(1000), 1000, "delete_column", b"C", b"F")))
    assert [r.start_ts for r in gone.collect()] == [1000]
