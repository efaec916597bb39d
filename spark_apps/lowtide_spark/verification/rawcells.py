"""Raw cells of HBase, as whoever trusts none of our own reading sees them: what hides what, and which shadow is whose.

Made for the verifier and the gate before pruning. It shares no code with the view ``versions``, by which cleanup
decides: an error there must not hide itself here.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.window import WindowSpec

from lowtide.values.formats import CHECKPOINTS, COMMIT_QUALIFIER, INVALID_QUALIFIER, SHADOW_PREFIX, SHADOW_SUFFIX
from lowtide_spark.frames.functions import substring, try_cast

_FAMILY = ("region", "row", "family")
_COLUMN = (*_FAMILY, "qualifier")
#: In a row of the journal the column that says who decided.
_DECIDED = b"by"
_LEGACY_TOMBSTONE = b"__OMID_TOMBSTONE__"


def number(data: Column) -> Column:
    """The non-negative number in eight big-endian bytes; null where they are none."""
    return F.when(F.length(data) == 8, try_cast(F.conv(F.hex(data), 16, 10), "bigint"))


def visible(cells: DataFrame) -> DataFrame:
    """The puts of a raw read that no delete marker hides.

    The read must have the markers: no upper bound on timestamps but its own.
    """

    def latest(kind: str, window: WindowSpec) -> Column:
        return F.coalesce(F.max(F.when(F.col("kind") == kind, F.col("timestamp"))).over(window), F.lit(-1))

    # The narrowest grouping first: the order that it sorts into serves the others too.
    exact = Window.partitionBy(*_COLUMN, "timestamp")
    column, family = Window.partitionBy(*_COLUMN), Window.partitionBy(*_FAMILY)
    one_version = F.collect_set(F.when(F.col("kind") == "delete_family_version", F.col("timestamp")))
    return (
        cells.withColumn("_gone", F.max(F.col("kind") == "delete").over(exact))
        .withColumn("_column", latest("delete_column", column))
        .withColumn("_family", latest("delete_family", family))
        .withColumn("_versions", one_version.over(family))
        .where(
            (F.col("kind") == "put")
            & ~F.col("_gone")
            & (F.col("timestamp") > F.greatest("_column", "_family"))
            & ~F.array_contains("_versions", F.col("timestamp"))
        )
        .drop("_gone", "_column", "_family", "_versions")
    )


def pairs(cells: DataFrame) -> DataFrame:
    """Data cells and shadow cells of a raw read, one row a place and timestamp.

    Returns:
        ``region, row, family, qualifier`` (the data cell's), ``timestamp, start_ts, data`` (whether the data cell is
        there), ``hash`` (of its value), ``tombstone`` (whether its value deletes), ``shadow`` (the shadow cell's
        commit timestamp), ``odd`` (whether there is a shadow cell that names none).
    """
    name, value = F.col("qualifier"), F.col("value")
    length = F.length(name)
    is_shadow = (
        (length >= len(SHADOW_PREFIX) + len(SHADOW_SUFFIX))
        & (F.substring(name, 1, len(SHADOW_PREFIX)) == SHADOW_PREFIX)
        & (F.substring(name, -len(SHADOW_SUFFIX), len(SHADOW_SUFFIX)) == SHADOW_SUFFIX)
    )
    around = len(SHADOW_PREFIX) + len(SHADOW_SUFFIX)
    of_data = substring(name, F.lit(len(SHADOW_PREFIX) + 1), length - around)
    parts = visible(cells).select(
        *_FAMILY,
        F.when(is_shadow, of_data).otherwise(name).alias("qualifier"),
        "timestamp",
        (~is_shadow).alias("data"),
        F.when(~is_shadow, F.xxhash64(value)).alias("hash"),
        F.when(~is_shadow, (F.length(value) == 0) | (value == _LEGACY_TOMBSTONE)).alias("tombstone"),
        F.when(is_shadow, number(value)).alias("shadow"),
        (is_shadow & number(value).isNull()).alias("odd"),
    )
    most = ("data", "hash", "tombstone", "shadow", "odd")
    return (
        parts.groupBy(*_COLUMN, "timestamp")
        .agg(*(F.max(column).alias(column) for column in most))
        .withColumn("start_ts", start_of(F.col("timestamp")))
    )


def start_of(timestamp: Column) -> Column:
    """The start timestamp that a timestamp, perhaps a checkpoint's, belongs to."""
    return timestamp - timestamp % CHECKPOINTS


def _varint(data: Column) -> Column:
    """The number in a protobuf varint that fills *data*, of at most nine bytes; null where it is none."""
    total, whole = F.lit(0).cast("bigint"), F.length(data).between(1, 9)
    for index in range(9):
        byte = F.conv(F.hex(F.substring(data, index + 1, 1)), 16, 10).cast("bigint")
        there = F.length(data) > index
        total += F.when(there, byte.bitwiseAND(127) * F.lit(1 << 7 * index)).otherwise(0)
        whole &= ~there | ((byte >= 128) == (F.length(data) > index + 1))
    return F.when(whole, total)


def proofs(commit: DataFrame, journal: DataFrame, family: str) -> DataFrame:
    """What the commit table and the journal say of transactions, each put by itself.

    Args:
        commit: the commit table's cells.
        journal: the journal's cells.
        family: of commit entries.

    Returns:
        ``start_ts, entry`` (commit timestamp of an entry that is no table fence), ``mark`` (whether there is a mark),
        ``pruned`` (commit timestamp in the journal), ``pruned_mark``; ``at`` (HBase's timestamp, of the commit
        table's alone); of the journal's alone ``journaled`` (the same, wall-clock ms), ``decided`` (whether a person
        did).
    """
    start = number(F.substring("row", 2, 8))
    parts = []
    at = F.col("timestamp").alias("at")
    by = (F.col("timestamp").alias("journaled"), (F.col("qualifier") == F.lit(_DECIDED)).alias("decided"))
    for cells, commit_ts, names, more in (
        (
            commit.where(F.col("family") == F.lit(family.encode())),
            start + _varint(F.col("value")),
            ("entry", "mark"),
            (at,),
        ),
        (journal, number(F.col("value")), ("pruned", "pruned_mark"), by),
    ):
        committed = (F.col("qualifier") == F.lit(COMMIT_QUALIFIER)) & (commit_ts > start)
        parts.append(
            cells.where((F.length("row") == 9) & (F.col("kind") == "put")).select(
                start_of(start).alias("start_ts"),
                F.when(committed, commit_ts).alias(names[0]),
                (F.col("qualifier") == F.lit(INVALID_QUALIFIER)).alias(names[1]),
                *more,
            )
        )
    return parts[0].unionByName(parts[1], allowMissingColumns=True)


def deleted_entries(commit: DataFrame) -> DataFrame:
    """``start_ts`` of transactions in whose rows a raw read of the commit table meets a delete marker."""
    marked = commit.where((F.length("row") == 9) & (F.col("kind") != "put"))
    return marked.select(start_of(number(F.substring("row", 2, 8))).alias("start_ts")).distinct()
