"""Frames that are computed once."""

from __future__ import annotations

import pytest
from lowtide_spark.frames.computed import frozen, frozen_with, union
from lowtide_spark.frames.local import few_rows, no_rows
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


@pytest.fixture
def read(spark: SparkSession) -> DataFrame:
    """What is other at each reading, as a store that has moved on is."""
    return spark.range(0, 20, 1, 3).withColumn("read", F.expr("reflect('java.util.UUID', 'randomUUID')"))


def shown(frame: DataFrame) -> set[str]:
    return {row.read for row in frame.collect()}


def test_what_is_frozen_is_read_once(read: DataFrame) -> None:
    """Whoever looks at it sees the same, and an executor that is lost cannot have it read again."""
    assert shown(read) != shown(read)
    kept, _ = frozen_with(read, (), F.count("*").alias("rows"))
    for once in (kept, frozen(read)):
        assert shown(once) == shown(once)
        assert once._jdf.queryExecution().logical().rdd().isCheckpointed()


def test_its_figures_are_of_the_rows_that_are_kept(read: DataFrame) -> None:
    """By groups, or over all; behind a shuffle too."""
    kept, [all_of_it] = frozen_with(read, (), F.count("*").alias("rows"), F.min("read").alias("least"))
    assert (all_of_it.rows, all_of_it.least) == (20, min(shown(kept)))
    grouped = read.groupBy((F.col("id") % 4).alias("quarter")).agg(F.first("read").alias("read"))
    kept, counted = frozen_with(grouped, ("quarter",), F.max("read").alias("read"))
    assert {row.read for row in counted} == shown(kept) == shown(kept)
    assert {row.quarter for row in counted} == {0, 1, 2, 3}


def test_of_nothing_nothing_is_kept_that_could_be_read_again(read: DataFrame) -> None:
    """Spark runs no job over an empty frame that it groups: what is handed back is empty for good."""
    grouped = read.where("id < 0").groupBy("id").agg(F.first("read").alias("read"))
    kept, counted = frozen_with(grouped, ("id",), F.count("*").alias("rows"))
    assert counted == []
    assert kept.collect() == []
    assert kept.columns == grouped.columns


def test_a_union_has_all_rows_of_all_frames(spark: SparkSession) -> None:
    """Of one, of an odd number, of none; doubles stay."""
    frames = [few_rows(spark, [(number,), (7,)], "start_ts bigint") for number in range(5)]
    like = no_rows(spark, "start_ts bigint")
    for number in (0, 1, 2, 5):
        found = sorted(row.start_ts for row in union(frames[:number], like=like).collect())
        assert found == sorted([*range(number), *[7] * number])
