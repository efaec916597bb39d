"""What was put aside: that all of it is there, and that nothing else is swept away."""

from __future__ import annotations

from pathlib import Path

import pytest
from lowtide_spark.frames.sideline import COLUMNS, kept, put_aside, sideline, sweep
from pyspark.sql import DataFrame, SparkSession

from tests.spark.folder_kit import Runs, make_old


@pytest.fixture
def cells(spark: SparkSession) -> DataFrame:
    """Ten cells, in two files."""
    return spark.range(0, 10, 1, 2).selectExpr(
        "'r' as region",
        *(f"cast('{name}' as binary) as {name}" for name in ("row", "family", "qualifier", "value")),
        "id as timestamp",
        "id as commit_ts",
        "'put' as kind",
        "'orphan' as rule",
        "'nothing proves it' as evidence",
    )


def test_what_is_put_aside_comes_back(runs: Runs, cells: DataFrame) -> None:
    """All of it, also where the run was tried twice, and of one run alone, whatever it is called."""
    for name in ("one", "..", "a/b", "a=b"):
        put_aside(runs(name), "orders", cells)
    put_aside(runs("one"), "orders", cells)
    assert sideline(runs("x"), "one").lost == {"orders": []}
    assert sideline(runs("x"), "one").cells.distinct().count() == 10
    assert sideline(runs("x"), "..").cells.count() == 10
    assert set(sideline(runs("x"), "a/b").cells.columns) == set(COLUMNS)


def test_files_that_are_missing_or_cut_short_are_named(runs: Runs, cells: DataFrame) -> None:
    """The others can still be read."""
    folder = Path(put_aside(runs("one"), "orders", cells))
    gone, short = sorted(folder.glob("part-*"))
    gone.unlink()
    assert sideline(runs("x"), "one").lost == {"orders": [gone.name]}
    assert sideline(runs("x"), "one").cells.count() == 5
    short.write_bytes(short.read_bytes()[:-20])
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()
    assert sideline(runs("x"), "one").lost == {"orders": [gone.name, short.name]}
    assert sideline(runs("x"), "one").cells.count() == 0


def test_all_that_is_kept_is_read_with_the_names_of_its_runs(runs: Runs, cells: DataFrame, tmp_path: Path) -> None:
    """As they were given, whatever a folder's name allows; a run of which files are missing is named beside what is
    left of it, and nothing else is read.
    """
    names = {"one", "a/b", "x y=", "..", "manual__2026-07-28T00:00:00+00:00", "für alle"}
    assert kept(runs("x")).cells.count() == 0
    folders = {name: Path(put_aside(runs(name), "orders", cells)) for name in sorted(names)}
    put_aside(runs("one"), "users", cells)
    (tmp_path / "warehouse" / "orders").mkdir(parents=True)
    (tmp_path / "warehouse" / "orders" / "data").write_text("not ours")
    min(folders["für alle"].glob("part-*")).unlink()
    found = kept(runs("x"))
    assert found.lost == {"orders": ["für alle"]}
    counts = {(r.run, r.table): r["count"] for r in found.cells.groupBy("run", "table").count().collect()}
    assert counts == {**{(name, "orders"): 10 for name in names}, ("one", "users"): 10, ("für alle", "orders"): 5}


def test_a_damaged_file_is_not_passed_over(runs: Runs, cells: DataFrame) -> None:
    """One that has its length and cannot be read fails what reads it: less would come back than went, and nobody were
    told.
    """
    folder = Path(put_aside(runs("one"), "orders", cells))
    damaged = min(folder.glob("part-*"))
    damaged.write_bytes(bytes(damaged.stat().st_size))
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()
    assert sideline(runs("x"), "one").lost == {"orders": []}
    with pytest.raises(Exception, match="Parquet"):
        sideline(runs("x"), "one").cells.count()


def test_only_old_sidelines_are_swept(runs: Runs, cells: DataFrame, tmp_path: Path) -> None:
    """Not a young one, not the run's own, and nothing that is no sideline, however old."""
    for name in ("old", "young", "own"):
        put_aside(runs(name), "orders", cells)
    foreign, file = tmp_path / "warehouse", tmp_path / "notes.txt"
    (foreign / "orders").mkdir(parents=True)
    (foreign / "orders" / "data").write_text("not ours")
    (foreign / "readme").write_text("a file beside folders")
    (tmp_path / "empty").mkdir()
    file.write_text("nor this")
    for old in (tmp_path / "old", tmp_path / "own", tmp_path / "empty", foreign, file):
        make_old(old)
    sweep(runs("own"))
    left = {p.name for p in tmp_path.iterdir() if not p.name.startswith(".")}
    assert left == {"young", "own", "warehouse", "empty", "notes.txt"}
    assert (foreign / "orders" / "data").read_text() == "not ours"
