"""The facts that Python, Spark and Java share, as ``contract/vectors.json`` has them: the column expressions'
reading.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lowtide_spark.frames import omid
from lowtide_spark.frames.omid import shadow_of
from lowtide_spark.verification import rawcells
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lowtide.values.clock import first_timestamp

VECTORS = json.loads((Path(__file__).resolve().parents[2] / "contract/vectors.json").read_text())
CELLS = "region string, row binary, family binary, qualifier binary, timestamp bigint, value binary, kind string"


def data(text: str) -> bytearray:
    return bytearray.fromhex(text)


def values(spark: SparkSession, schema: str, rows: list[tuple[Any, ...]], *columns: Column) -> list[tuple[Any, ...]]:
    """The columns of these rows, in their order; bytes as hex."""
    numbered = spark.createDataFrame([(i, *row) for i, row in enumerate(rows)], f"i int, {schema}")
    named = [column.alias(f"_{i}") for i, column in enumerate(columns)]
    found = numbered.select("i", *named).orderBy("i").collect()
    return [tuple(v.hex() if isinstance(v, bytes | bytearray) else v for v in row[1:]) for row in found]


def test_starts(spark: SparkSession) -> None:
    """A timestamp belongs to the transaction that began at the multiple of 50 at or below it."""
    rows = [(v["timestamp"],) for v in VECTORS["starts"]]
    found = values(spark, "t bigint", rows, rawcells.start_of(F.col("t")))
    assert found == [(v["start"],) for v in VECTORS["starts"]]


def test_shadow_qualifiers(spark: SparkSession) -> None:
    """Shadow qualifiers are made as Omid makes them."""
    names = [v["qualifier"] * v.get("times", 1) for v in VECTORS["shadow qualifiers"]]
    made = values(spark, "q binary", [(data(name),) for name in names], shadow_of(F.col("q")))
    for v, name, (shadow,) in zip(VECTORS["shadow qualifiers"], names, made, strict=True):
        assert shadow == (v["shadow"] + name + v["after"] if "times" in v else v["shadow"])


def test_tombstones(spark: SparkSession) -> None:
    """What a cell's value makes of it, as the verifier sees it."""
    rows = [
        ("r", data("72"), data("66"), data(v["qualifier"]), 50 + 50 * i, data(v["value"]), "put")
        for i, v in enumerate(VECTORS["tombstones"])
    ]
    found = {r.timestamp: r.tombstone for r in rawcells.pairs(spark.createDataFrame(rows, CELLS)).collect()}
    assert [found[50 + 50 * i] for i in range(len(rows))] == [v["kind"] != "put" for v in VECTORS["tombstones"]]


def test_longs(spark: SparkSession) -> None:
    """Numbers of eight bytes, made and read."""
    vectors = VECTORS["longs"]
    rows = [(v["number"], data(v["bytes"])) for v in vectors]
    n, b = F.col("n"), F.col("b")
    found = values(spark, "n bigint, b binary", rows, omid.bytes_of(n), omid.long_of(b), rawcells.number(b))
    assert found == [(v["bytes"], v["number"], v["number"]) for v in vectors]


def test_varints(spark: SparkSession) -> None:
    """Numbers of as many bytes as they need, for the jobs and for the verifier; what is none is null."""
    vectors = VECTORS["varints"]
    rows = [(v["number"], data(v["bytes"])) for v in vectors]
    n, b = F.col("n"), F.col("b")
    columns = (omid.varint_of(b), rawcells._varint(b), F.when(n.isNotNull(), omid.bytes_of_varint(n)))
    found = values(spark, "n bigint, b binary", rows, *columns)
    assert found == [(v["number"], v["number"], None if v["number"] is None else v["bytes"]) for v in vectors]


def commit_rows(spark: SparkSession, rows: list[tuple[str, str, str]]) -> dict[str, Any]:
    """What is made of cells of the commit table, by their rows."""
    cells = [("r", data(row), data("46"), data(q), 1, data(value), "put") for row, q, value in rows]
    return {bytes(r.row).hex(): r for r in omid.entries(spark.createDataFrame(cells, CELLS), "F").collect()}


def test_commit_keys(spark: SparkSession) -> None:
    """The commit table's rows, made and read; another row than those and the low watermark's is a problem."""
    vectors = VECTORS["commit keys"]
    made = values(spark, "s bigint", [(v["start"],) for v in vectors], omid.commit_key(F.col("s")))
    low_watermark = VECTORS["cells"]["low watermark row"]
    found = commit_rows(spark, [(v["row"], VECTORS["cells"]["commit"], "32") for v in vectors])
    for v, (key,) in zip(vectors, made, strict=True):
        if v["start"] is not None:
            assert key == v["row"]
        if v["row"] != low_watermark:
            assert found[v["row"]].start_ts == v["start"]
            assert v["start"] is not None or "is no transaction's" in found[v["row"]].problem
    assert low_watermark not in found


@pytest.mark.parametrize("v", VECTORS["commit entries"])
def test_commit_entries(spark: SparkSession, v: dict[str, Any]) -> None:
    """What a commit entry says: a commit timestamp, or a fence, or nothing, with a problem."""
    [found] = commit_rows(spark, [(omid_key(v["start"]), VECTORS["cells"]["commit"], v["value"])]).values()
    assert found.commit_ts == v["commit"]
    assert (found.problem is not None) is (v["commit"] is None)
    assert found.fence is (v["commit"] == v["start"])


def omid_key(start: int) -> str:
    """The key of the vectors' own."""
    return next(v["row"] for v in VECTORS["commit keys"] if v["start"] == start)


def test_the_least_timestamp_of_an_oracle() -> None:
    """Below it no cell is a transaction's: on the world's clock, and where it counts."""
    assert first_timestamp(True) == VECTORS["world clock"]["least"]
    assert first_timestamp(False) == 50


@pytest.mark.parametrize("v", VECTORS["journal rows"], ids=lambda v: json.dumps(v)[:70])
def test_journal_rows(spark: SparkSession, v: dict[str, Any]) -> None:
    """What a row of the journal says of its transaction."""
    cells = [
        ("r", data(omid_key(v["start"])), data(VECTORS["cells"]["journal family"]), data(q), at, data(value), "put")
        for q, value, at in v["cells"]
    ]
    [found] = omid.journal(spark.createDataFrame(cells, CELLS), v["since"]).collect()
    assert found.start_ts == v["start"]
    assert found.odd is (v["says"] is None)
    assert v["says"] is None or found.commit_ts == (None if v["says"] == "aborted" else v["says"])


def test_the_journals_own_row_is_no_transaction(spark: SparkSession) -> None:
    """It is passed by."""
    cells = VECTORS["cells"]
    own = (
        "r",
        data(cells["journal's own row"]),
        data(cells["journal family"]),
        bytearray(b"value"),
        1,
        data("00"),
        "put",
    )
    assert omid.journal(spark.createDataFrame([own], CELLS)).collect() == []
