"""What a restore puts back: of a transaction that was taken for aborted and had committed, and of history."""

from __future__ import annotations

from lowtide_spark.undo.judgement import _judged
from lowtide_spark.undo.live import KEY
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

LIVE = "row binary, family binary, qualifier binary, timestamp bigint, commit_ts bigint, kind string"
MARK = 1049


def judged(spark: SparkSession, doubt: str | None) -> dict[bytes, Row]:
    """Puts at 100 that committed at 150, and one that began after the mark, by row; some are hidden by what is there,
    one is bared.
    """
    live = [
        (b"under a put", b"f", b"q", 200, 250, "put"),
        (b"under a tombstone", b"f", b"q", 200, 250, "tombstone"),
        (b"under a family tombstone", b"f", b"", 50, 100, "family_tombstone"),
        (b"under another family", b"g", b"", 200, 250, "family_tombstone"),
        (b"under another column", b"f", b"other", 200, 250, "tombstone"),
        (b"under what came after the mark", b"f", b"q", 200, 1100, "put"),
        (b"under an orphan", b"f", b"q", 200, None, "put"),
        (b"over a put", b"f", b"q", 50, 100, "put"),
        (b"bared", b"f", b"q", 200, 250, "put"),
    ]
    starts = {row: 100 for row, *_ in live} | {b"alone": 100, b"young": 2000}
    cells = [(row, b"f", b"q", start, start + 50, "put", b"v", True, False) for row, start in starts.items()]
    missing = spark.createDataFrame(cells, f"{LIVE}, value binary, decided boolean, lone boolean")
    bared = missing.where(F.col("row") == bytearray(b"bared")).select(*KEY, F.lit("bared").alias("bared"))
    found = _judged(missing, spark.createDataFrame(live, LIVE), MARK, bared, doubt)
    return {bytes(r.row): r for r in found.collect()}


def test_what_committed_after_all_comes_back_to_be_seen(spark: SparkSession) -> None:
    """Where something that is there hides it at the mark, that is to be there when it is put. Bared of a tombstone it
    does not come back.
    """
    found = judged(spark, None)
    assert {row for row, r in found.items() if r.why} == {b"bared"}
    hidden = {row: (bytes(r.under.qualifier), r.under.timestamp) for row, r in found.items() if r.under and not r.why}
    assert hidden == {
        b"under a put": (b"q", 200),
        b"under a tombstone": (b"q", 200),
        b"under a family tombstone": (b"", 50),
    }


def test_where_a_tombstone_may_be_lost_nothing_of_before_the_mark_is_shown(spark: SparkSession) -> None:
    """What is hidden comes back all the same, and what began after the mark."""
    found = judged(spark, "files are missing")
    assert {row for row, r in found.items() if not r.why} == {
        b"under a put",
        b"under a tombstone",
        b"under a family tombstone",
        b"young",
    }
    assert {r.why for r in found.values()} == {None, "bared", "files are missing"}


def test_a_tombstone_that_would_hide_what_is_shown_stays_aside(spark: SparkSession) -> None:
    """In a table that came back since. Where what is there above it, or between, or over the family hides that anyway,
    or nobody reads it, it comes back; so does one of a transaction that committed after all, and in a table that did
    not come back every one.
    """
    low, high = (b"f", b"q", 50, 60, "put"), (b"f", b"q", 200, 250, "put")
    live = [
        (b"shown", *low),
        (b"shown, of a transaction that committed after all", *low),
        (b"shown beside a family", *low),
        (b"shown beside a family", b"g", b"", 80, 90, "family_tombstone"),
        (b"shown after a family", b"f", b"q", 50, 60, "put"),
        (b"shown after a family", b"f", b"", 30, 40, "family_tombstone"),
        (b"under another", *low),
        (b"under another", *high),
        (b"under a tombstone", *low),
        (b"under a tombstone", b"f", b"q", 70, 80, "tombstone"),
        (b"under a family", *low),
        (b"under a family", b"f", b"", 80, 90, "family_tombstone"),
        (b"an orphan", b"f", b"q", 50, None, "put"),
        (b"in another column", b"f", b"other", 50, 60, "put"),
    ]
    tombstones = [
        (row, b"f", b"q", 100, 150, "tombstone", b"", b"after all" in row, False)
        for row in sorted({row for row, *_ in live} | {b"nothing is there"})
    ]
    missing = spark.createDataFrame(tombstones, f"{LIVE}, value binary, decided boolean, lone boolean")
    there = spark.createDataFrame(live, LIVE)
    assert {r.why for r in _judged(missing, there, MARK).collect()} == {None}
    found = _judged(missing, there, MARK, came_back=True).collect()
    assert {bytes(r.row) for r in found if r.why} == {b"shown", b"shown beside a family", b"shown after a family"}
    (why,) = {r.why for r in found} - {None}
    assert "would hide what the table shows" in why
