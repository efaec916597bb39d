"""Sets of start timestamps, short and long."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lowtide_spark.frames import startset
from lowtide_spark.frames.startset import StartSet
from pyspark.sql import DataFrame, SparkSession

#: id, start_ts, commit_ts: with and without shadow cell, in and out of the set, and an end-of-range row.
VERSIONS = [(1, 50, 100), (2, 50, None), (3, 100, 150), (4, 100, None), (5, 200, 250), (6, None, None)]


def starts(spark: SparkSession, *values: int) -> DataFrame:
    return spark.createDataFrame([(v,) for v in values], "start_ts bigint")


@pytest.fixture(scope="module")
def versions(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(VERSIONS, "id int, start_ts bigint, commit_ts bigint")


@pytest.fixture(params=["list", "join"])
def some(request: pytest.FixtureRequest, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[StartSet]:
    """The set {50, 200}, small enough for the scan's filter or too large for it."""
    monkeypatch.setattr(startset, "LONGEST_LIST", 2 if request.param == "list" else 1)
    made = StartSet(starts(spark, 50, 200, 50))
    assert (made.list is None) == (request.param == "join")
    yield made
    made.close()


def ids(frame: DataFrame) -> list[int]:
    return sorted(r.id for r in frame.collect())


def test_suspects(some: StartSet, versions: DataFrame) -> None:
    """Suspects are the versions without shadow cell and those of the set's transactions; end-of-range rows stay, none
    twice.
    """
    assert ids(some.suspects(versions)) == [1, 2, 4, 5, 6]
    assert set(some.suspects(versions).columns) == set(versions.columns)


def test_restrict(some: StartSet, versions: DataFrame) -> None:
    """Only rows of the set's transactions stay."""
    assert ids(some.restrict(versions)) == [1, 2, 5]


def test_without(some: StartSet, versions: DataFrame) -> None:
    """Only rows of other transactions stay; a row of none does not."""
    assert ids(some.without(versions)) == [3, 4]


def test_span_reaches_the_last_checkpoint(some: StartSet) -> None:
    """The span goes from the first start to the last checkpoint of the last transaction; doubles count once."""
    assert some.span == (50, 250)
    assert some.size == 2
    assert some


def test_empty_set(spark: SparkSession, versions: DataFrame) -> None:
    """An empty set is false, restricts to nothing, and its suspects are the versions without shadow cell."""
    none = StartSet(starts(spark))
    assert not none
    assert none.span == (0, 0)
    assert ids(none.restrict(versions)) == []
    assert ids(none.suspects(versions)) == [2, 4, 6]
    none.close()
