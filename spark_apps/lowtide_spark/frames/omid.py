"""Omid's commit table, and Lowtide's journal of what was pruned from it, as column expressions.

Rows of the commit table are nine bytes: a bucket (the timestamp's low four bits), then the start timestamp, big-endian.
``F:C`` holds a varint of commit minus start timestamp, ``F:IT`` an invalidation mark. See Omid's ``HBaseCommitTable``.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide.journal.life import DECIDED, OWN_ROW
from lowtide.values.formats import (
    BUCKETS,
    CHECKPOINTS,
    COMMIT_QUALIFIER,
    INVALID_QUALIFIER,
    INVALID_VALUE,
    LOW_WATERMARK_ROW,
    OWN_INVALID_VALUE,
    SHADOW_PREFIX,
    SHADOW_SUFFIX,
    encode_long,
)
from lowtide.values.keyranges import KeyRange
from lowtide_spark.frames.functions import substring, try_cast
from lowtide_spark.frames.kinds import PUT
from lowtide_spark.frames.shown import in_hex
from lowtide_spark.frames.store import FOREVER

#: What :func:`journal` gives.
JOURNALED = "start_ts bigint, commit_ts bigint, odd boolean, decided boolean, own boolean"


def commit_ranges(from_ts: int, to_ts: int) -> list[WorkRange]:
    """The sixteen key ranges of the commit table that hold the start timestamps [from_ts, to_ts)."""
    return [
        WorkRange(
            f"bucket-{bucket}",
            KeyRange(bytes([bucket]) + encode_long(from_ts), bytes([bucket]) + encode_long(to_ts)),
            0,
            FOREVER,
        )
        for bucket in range(BUCKETS)
    ]


def commit_key(start_ts: Column) -> Column:
    """The commit table's row for a start timestamp."""
    return F.unhex(F.concat(F.lpad(F.hex(start_ts.bitwiseAND(15)), 2, "0"), F.lpad(F.hex(start_ts), 16, "0")))


def base_of(timestamp: Column) -> Column:
    """The start timestamp that a timestamp, perhaps a checkpoint's, belongs to."""
    return timestamp - timestamp % CHECKPOINTS


def long_of(data: Column) -> Column:
    """The non-negative number in eight big-endian bytes; null beyond 63 bits."""
    return try_cast(F.conv(F.hex(data), 16, 10), "bigint")


def bytes_of(number: Column) -> Column:
    """Eight big-endian bytes of a non-negative number."""
    return F.unhex(F.lpad(F.hex(number), 16, "0"))


def _byte(data: Column, index: Column) -> Column:
    return F.conv(F.hex(substring(data, index + 1, F.lit(1))), 16, 10).cast("bigint")


def varint_of(data: Column) -> Column:
    """The number in a varint that fills *data*; null where the bytes are none of at most nine bytes."""
    length = F.length(data)
    number = F.aggregate(
        F.sequence(F.lit(0), length - 1),
        F.lit(0).cast("bigint"),
        lambda total, i: total + _byte(data, i).bitwiseAND(127) * F.pow(F.lit(2), 7 * i).cast("bigint"),
    )
    ends_once = F.aggregate(
        F.sequence(F.lit(0), length - 1),
        F.lit(True),
        lambda right, i: right & ((_byte(data, i) >= 128) == (i < length - 1)),
    )
    return F.when(length.between(1, 9) & ends_once, number)


def bytes_of_varint(number: Column) -> Column:
    """A non-negative number as a varint, as Omid's client writes it (``CodedOutputStream.writeInt64NoTag``)."""
    bytes_ = [
        F.when(
            F.lit(i == 0) | (F.shiftrightunsigned(number, 7 * i) > 0),
            F.lpad(
                F.hex(
                    F.shiftrightunsigned(number, 7 * i).bitwiseAND(127)
                    + F.when(F.shiftrightunsigned(number, 7 * i + 7) > 0, 128).otherwise(0)
                ),
                2,
                "0",
            ),
        ).otherwise("")
        for i in range(9)
    ]
    return F.unhex(F.concat(*bytes_))


def entries(cells: DataFrame, family: str) -> DataFrame:
    """Cells of the commit table as one row a transaction.

    Returns:
        ``start_ts`` (null where the row's key is none of a transaction), ``commit_ts`` (of ``C``, null without),
        ``invalid`` (whether there is a mark), ``own_mark`` (whether one that Lowtide put), ``fence`` (an entry that
        commits at its own start: a table fence, no transaction's proof), ``problem`` (text where a value or qualifier
        is none that Omid or Lowtide writes, else null), ``row``, ``newest`` (the greatest HBase timestamp of its
        cells), ``entered`` and ``marked`` (that of ``C``, and of the mark).
    """
    row, qualifier, value = F.col("row"), F.col("qualifier"), F.col("value")
    start = long_of(F.substring(row, 2, 8))
    is_key = F.coalesce((F.length(row) == 9) & (_byte(row, F.lit(0)) == start.bitwiseAND(15)), F.lit(False))
    is_commit = (F.col("family") == F.lit(family.encode())) & (qualifier == COMMIT_QUALIFIER)
    is_mark = (F.col("family") == F.lit(family.encode())) & (qualifier == INVALID_QUALIFIER)
    delta = F.when(is_commit, varint_of(value))
    problem = (
        F.when(~is_key, F.concat(F.lit("row key "), in_hex(row), F.lit(" is no transaction's")))
        .when(is_commit & F.try_add(start, delta).isNull(), F.concat(F.lit("commit entry with value "), in_hex(value)))
        .when(
            is_mark & ~value.isin(bytearray(INVALID_VALUE), bytearray(OWN_INVALID_VALUE)),
            F.concat(F.lit("invalidation mark with value "), in_hex(value)),
        )
        .when(
            ~is_commit & ~is_mark,
            F.concat(F.lit("unknown column "), in_hex(F.col("family")), F.lit(":"), in_hex(qualifier)),
        )
    )
    decoded = cells.where((F.col("kind") == PUT) & (row != LOW_WATERMARK_ROW)).select(
        row,
        F.when(is_key, start).alias("start_ts"),
        F.try_add(start, delta).alias("commit_ts"),
        is_mark.alias("invalid"),
        (is_mark & (value == OWN_INVALID_VALUE)).alias("own_mark"),
        problem.alias("problem"),
        "timestamp",
        F.when(is_commit, F.col("timestamp")).alias("entered"),
        F.when(is_mark, F.col("timestamp")).alias("marked"),
    )
    return (
        decoded.groupBy("row", "start_ts")
        .agg(
            F.max("commit_ts").alias("commit_ts"),
            F.max("invalid").alias("invalid"),
            F.max("own_mark").alias("own_mark"),
            F.max("problem").alias("problem"),
            F.max("timestamp").alias("newest"),
            F.max("entered").alias("entered"),
            F.max("marked").alias("marked"),
        )
        .withColumn("fence", F.coalesce(F.col("commit_ts") == F.col("start_ts"), F.lit(False)))
        .withColumn("problem", F.coalesce("problem", _odd_start()))
    )


def tally(cells: DataFrame, family: str) -> DataFrame:
    """One row: how many commit ``entries`` and invalidation ``marks`` are among the cells of the commit table.

    Whatever their rows and values.
    """
    ours = (F.col("kind") == PUT) & (F.col("family") == F.lit(family.encode()))
    return cells.agg(
        F.count_if(ours & (F.col("qualifier") == COMMIT_QUALIFIER)).alias("entries"),
        F.count_if(ours & (F.col("qualifier") == INVALID_QUALIFIER)).alias("marks"),
    )


def _odd_start() -> Column:
    start = F.col("start_ts")
    return F.when(start % CHECKPOINTS != 0, F.concat(F.lit("start timestamp "), start, F.lit(" is no multiple of 50")))


def pruned_rows(cells: DataFrame) -> DataFrame:
    """Cells of the journal's table without those of its row about itself."""
    return cells.where(F.col("row") != OWN_ROW)


def journal(cells: DataFrame, since: int = 0) -> DataFrame:
    """The journal as one row a pruned transaction.

    Args:
        cells: of the journal's table.
        since: wall-clock ms. What was written before it is of transactions whose numbers the oracle may have given
            again: it names either.

    Returns:
        ``start_ts, commit_ts`` (null: only a mark was pruned), ``odd`` (whether a key, qualifier or value is none
        that pruning or a decision writes, or is older than *since*: what was pruned is then not known), ``decided``
        (whether a person said so), ``own`` (whether a mark that Lowtide put).
    """
    row, qualifier, value = F.col("row"), F.col("qualifier"), F.col("value")
    start = long_of(F.substring(row, 2, 8))
    is_key = (F.length(row) == 9) & (_byte(row, F.lit(0)) == start.bitwiseAND(15))
    commit = F.when((qualifier == COMMIT_QUALIFIER) & (F.length(value) == 8), long_of(value))
    is_own = (qualifier == INVALID_QUALIFIER) & (value == OWN_INVALID_VALUE)
    is_mark = is_own | ((qualifier == INVALID_QUALIFIER) & (value == INVALID_VALUE))
    return (
        pruned_rows(cells)
        .where(F.col("kind") == PUT)
        .select(
            start.alias("start_ts"),
            commit.alias("commit_ts"),
            F.coalesce(is_key & (commit.isNotNull() | is_mark), F.lit(False)).alias("said"),
            F.coalesce(is_key & (qualifier == DECIDED), F.lit(False)).alias("by"),
            F.coalesce(is_key & is_own, F.lit(False)).alias("own"),
            ((F.col("timestamp") < since) & (qualifier != DECIDED)).alias("old"),
        )
        .groupBy("start_ts")
        .agg(
            F.max("commit_ts").alias("commit_ts"),
            (F.max("old") | F.max(~F.col("said") & ~F.col("by")) | ~F.max("said")).alias("odd"),
            F.max("by").alias("decided"),
            F.max("own").alias("own"),
        )
    )


def key_value_bytes() -> Column:
    """The size of a cell, by its columns ``row, family, qualifier, value``, as HBase's ``KeyValue`` has it.

    Twenty bytes of lengths, timestamp and type stand beside its parts.
    """
    return _bytes_of_key() + F.coalesce(F.length("value"), F.lit(0))


def shadow_bytes() -> Column:
    """The size of the shadow cell beside it, or of that which is alone with the qualifier of its data."""
    return _bytes_of_key() + F.lit(len(SHADOW_PREFIX) + len(SHADOW_SUFFIX) + 8)


def _bytes_of_key() -> Column:
    return F.lit(20) + F.length("row") + F.length("family") + F.length("qualifier")


def shadow_of(qualifier: Column) -> Column:
    """The qualifier of the shadow cell beside a data cell's."""
    return F.concat(F.lit(SHADOW_PREFIX), qualifier, F.lit(SHADOW_SUFFIX))
