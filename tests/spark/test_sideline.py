"""What was put aside: that all of it is there, and that nothing else is swept away."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lowtide_spark.frames import sideline as module
from lowtide_spark.frames.sideline import (
    COLUMNS,
    folders,
    kept,
    put_aside,
    put_list,
    reserved,
    sideline,
    sweep,
)
from lowtide_spark.verification import sidelines as verified
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

from lowtide.errors import StoreError
from lowtide.verification.findings import Verification
from tests.spark.folder_kit import Runs, Summaries, make_old


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
        put_aside(runs(name), "orders", cells, 10)
    put_aside(runs("one"), "orders", cells, 10)
    assert sideline(runs("x"), "one").lost == {"orders": []}
    assert sideline(runs("x"), "one").cells.distinct().count() == 10
    assert sideline(runs("x"), "..").cells.count() == 10
    assert set(sideline(runs("x"), "a/b").cells.columns) == set(COLUMNS)


def test_a_driver_that_ends_costs_another_of_the_same_name_no_file(runs: Runs, cells: DataFrame) -> None:
    """As where two copies of Airflow's database start one run at a time, and one is stopped: what it had begun to write
    is cleared up while the other writes. That one has all that it put aside.
    """
    slow = "coalesce(reflect('java.lang.Thread', 'sleep', cast({} as bigint)), '') is not null"
    waiting = cells.where(slow.format("case when timestamp < 5 then 0 else 800 end"))
    failing = cells.where(f"if({slow.format(800)}, raise_error('it is ended'), true)")
    errors: list[StoreError] = []

    def end() -> None:
        try:
            put_aside(runs("one"), "orders", failing, 10)
        except StoreError as error:
            errors.append(error)

    ending = threading.Thread(target=end)
    ending.start()
    try:
        put_aside(runs("one"), "orders", waiting, 10)
    finally:
        ending.join()
    assert len(errors) == 1
    assert sideline(runs("x"), "one").lost == {"orders": []}
    assert sideline(runs("x"), "one").cells.count() == 10


def test_of_what_is_not_all_there_nothing_goes(runs: Runs, cells: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where fewer cells can be read than were planned to go, by whatever hand, the run ends before it removes one."""
    with pytest.raises(StoreError, match=r"holds 10 of the 11 cells that are to go; nothing was removed"):
        put_aside(runs("one"), "orders", cells, 11)
    read = module._read
    monkeypatch.setattr(module, "_read", lambda *given: read(*given).limit(5))
    with pytest.raises(StoreError, match=r"holds 5 of the 10 cells that are to go; nothing was removed"):
        put_aside(runs("two"), "orders", cells, 10)
    monkeypatch.undo()
    assert {name: sideline(runs("x"), name).cells.count() for name in ("one", "two")} == {"one": 0, "two": 0}


def test_files_that_are_missing_or_cut_short_are_named(runs: Runs, cells: DataFrame) -> None:
    """The others can still be read."""
    folder = Path(put_aside(runs("one"), "orders", cells, 10))
    gone, short = sorted(folder.glob("part-*"))
    gone.unlink()
    assert sideline(runs("x"), "one").lost == {"orders": [gone.name]}
    assert sideline(runs("x"), "one").cells.count() == 5
    short.write_bytes(short.read_bytes()[:-20])
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()
    assert sideline(runs("x"), "one").lost == {"orders": [gone.name, short.name]}
    assert sideline(runs("x"), "one").cells.count() == 0


def test_of_what_is_something_else_nothing_goes(runs: Runs, cells: DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many cells are there, and not the same ones: a disk that loses what it says it has, or another's file."""
    others = put_aside(runs("other"), "orders", cells.withColumn("value", cells["row"]), 10)
    read = module._read
    monkeypatch.setattr(module, "_read", lambda run, _: read(run, [others]))
    with pytest.raises(StoreError, match=r"holds other cells than those that are to go; nothing was removed"):
        put_aside(runs("one"), "orders", cells, 10)
    monkeypatch.undo()
    assert sideline(runs("x"), "one").cells.count() == 0, "what is wrong there is no restore's to read"
    put_aside(runs("one"), "orders", cells, 10)
    assert sideline(runs("x"), "one").cells.select("value").distinct().collect() == [(b"value",)]


def test_what_cells_come_to_is_the_same_with_every_spark(spark: SparkSession) -> None:
    """A later one reads the lists that an earlier one wrote."""
    row = ("t", "r", b"", b"\xff", None, 2**62, None, "put", "ü".encode(), "orphan", None)
    frame = spark.createDataFrame([row, row], module.SCHEMA)
    assert str(frame.agg(*module._sums()).first()["sum"]) == "6532793866876450558"


def test_what_is_put_aside_outlasts_a_power_cut(
    runs: Runs, cells: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When it is told to be there, the disk has been asked to keep each file and each folder on the way to it, after
    the last of them was written.
    """
    synced: dict[str, int] = {}
    sync = os.fsync

    def kept_now(number: int) -> None:
        sync(number)
        synced[os.readlink(f"/proc/self/fd/{number}")] = len(list(tmp_path.rglob("*")))

    monkeypatch.setattr(os, "fsync", kept_now)
    folder = Path(put_aside(runs("one"), "orders", cells, 10))
    there = [*folder.iterdir(), folder, folder.parent, tmp_path]
    assert {str(path) for path in there} <= set(synced)
    assert {synced[str(path)] for path in there} == {len(list(tmp_path.rglob("*")))}
    # And the files before they have their names: half of one would be in the way of all that read there.
    assert {Path(path).name for path in synced if Path(path).parent.name.startswith("_")} >= {
        path.name for path in folder.glob("part-*")
    }


def test_what_a_first_try_put_aside_is_missed_after_a_second(runs: Runs, cells: DataFrame) -> None:
    """Each has a list of its own: what was lost between the two is not taken for never having been there."""
    folder = Path(put_aside(runs("one"), "orders", cells, 10))
    gone, short = sorted(folder.glob("part-*"))
    gone.unlink()
    short.write_bytes(short.read_bytes()[:-20])
    put_aside(runs("one"), "orders", cells.where("timestamp < 3"), 3)
    assert sideline(runs("x"), "one").lost == {"orders": sorted([gone.name, short.name])}
    assert sideline(runs("x"), "one").cells.count() == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "cannot be read"),
        ('{"files": ["a"]}', "cannot be read"),
        ('{"format": 2, "files": {}}', "its format is 2, and this Lowtide knows 1"),
    ],
)
def test_a_list_that_cannot_be_gone_by_costs_the_other_runs_nothing(
    runs: Runs, cells: DataFrame, text: str, why: str
) -> None:
    """It is named as what its run lacks, by the verifier too; what lies beside it, and is no file of Spark's, is passed
    over.
    """
    put_aside(runs("one"), "orders", cells, 10)
    folder = Path(put_aside(runs("two"), "orders", cells, 10))
    (folder / "part-0.parquet.gz").write_text("packed by somebody")
    (listed,) = folder.glob("_lowtide*.json")
    listed.write_text(text)
    (folder / f".{listed.name}.crc").unlink()
    found = kept(runs("x"))
    assert found.cells.count() == 20
    lost = [each for of_table in found.lost.values() for each in of_table]
    assert [each.run for each in lost] == ["two"]
    assert (f"{listed.name} (" in lost[0].what, why in lost[0].what) == (True, True)
    wrong = verified._look(runs("x"), str(folder)).wrong
    assert listed.name in wrong
    assert ("cannot be read" in wrong) == ("cannot be read" in why)


def test_a_list_of_an_older_lowtide_is_gone_by(runs: Runs, cells: DataFrame) -> None:
    """It has no sum, and one name for all tries."""
    folder = Path(put_aside(runs("one"), "orders", cells, 10))
    (listed,) = folder.glob("_lowtide*.json")
    said = json.loads(listed.read_text())
    (folder / "_lowtide.json").write_text(json.dumps({"table": "orders", "files": said["files"]}))
    listed.unlink()
    min(folder.glob("part-*")).unlink()
    assert len(sideline(runs("x"), "one").lost["orders"]) == 1
    assert "missing or cut short" in verified._look(runs("x"), str(folder)).wrong


def test_the_verifier_reads_every_value(runs: Runs, cells: DataFrame) -> None:
    """A file that holds as many cells, and not those that were put aside, is named; the others are right."""
    folder = Path(put_aside(runs("one"), "orders", cells, 10))
    others = Path(put_aside(runs("other"), "orders", cells.withColumn("value", cells["row"]), 10))
    for path in (folder, others):
        assert verified._content_wrong(runs("x"), str(path), 10, verified._look(runs("x"), str(path)), {}) == ("", 0)
    (listed,) = folder.glob("_lowtide*.json")
    said = json.loads(listed.read_text())
    for mine, other in zip(sorted(folder.glob("part-*")), sorted(others.glob("part-*")), strict=True):
        mine.write_bytes(other.read_bytes())
        said["files"][mine.name] = mine.stat().st_size
    listed.write_text(json.dumps(said))
    for checksum in folder.glob(".*.crc"):
        checksum.unlink()
    files = verified._look(runs("x"), str(folder))
    assert files.wrong == ""
    assert "holds other cells than were put aside" in verified._content_wrong(runs("x"), str(folder), 10, files, {})[0]


def test_all_that_is_kept_is_read_with_the_names_of_its_runs(runs: Runs, cells: DataFrame, tmp_path: Path) -> None:
    """As they were given, whatever a folder's name allows; a run of which files are missing is named beside what is
    left of it, and nothing else is read.
    """
    names = {"one", "a/b", "x y=", "..", "manual__2026-07-28T00:00:00+00:00", "für alle"}
    assert kept(runs("x")).cells.count() == 0
    folders = {name: Path(put_aside(runs(name), "orders", cells, 10)) for name in sorted(names)}
    put_aside(runs("one"), "users", cells, 10)
    (tmp_path / "warehouse" / "orders").mkdir(parents=True)
    (tmp_path / "warehouse" / "orders" / "data").write_text("not ours")
    min(folders["für alle"].glob("part-*")).unlink()
    found = kept(runs("x"))
    assert {table: [each.run for each in lost] for table, lost in found.lost.items()} == {"orders": ["für alle"]}
    counts = {(r.run, r.table): r["count"] for r in found.cells.groupBy("run", "table").count().collect()}
    assert counts == {**{(name, "orders"): 10 for name in names}, ("one", "users"): 10, ("für alle", "orders"): 5}
    for table in ("orders", "users"):
        alone = kept(runs("x"), table=table)
        assert alone.lost == {of: lost for of, lost in found.lost.items() if of == table}
        of_table = {(r.run, r.table): r["count"] for r in alone.cells.groupBy("run", "table").count().collect()}
        assert of_table == {key: number for key, number in counts.items() if key[1] == table}


def test_what_lies_on_another_machines_disk_is_missed(
    runs: Runs, summaries: Summaries, cells: DataFrame, tmp_path: Path
) -> None:
    """By the summaries: a run whose folder is not here, a table of one, and cells of a run of which a second try was on
    another machine. Not what a run only planned, what is here, what is older than sidelines are kept, and what a person
    has given up.
    """
    for name in ("whole", "part", "retried", "twice"):
        put_aside(runs(name), "orders", cells, 10)
    summaries.add("whole", {"orders": 10})
    summaries.add("part", {"orders": 10, "users": 2})
    summaries.add("retried", {"orders": 10})
    summaries.add("retried", {"orders": 4}, by={"host": "worker-2"})
    summaries.add("twice", {"orders": 6})
    summaries.add("twice", {"orders": 4})
    summaries.add("away", {"orders": 3}, folder="/w/away")
    summaries.add("old", {"orders": 3}, started=1)
    summaries.add("planned", {"orders": 3}, tables=[])
    found = kept(runs("x")).lost
    assert {table: [each.run for each in lost] for table, lost in found.items()} == {
        "users": ["part"],
        "orders": ["away", "retried"],
    }, "what is not here is not missed"
    assert all(kept(runs("x"), table=table).lost == {table: found[table]} for table in ("users", "orders"))
    away, retried = (each.what for each in found["orders"])
    assert away.startswith("run away removed 3 cells of orders, and of those 0 are in the sideline")
    assert away.endswith("on worker-1, in /w/away/orders")
    assert "removed 14 cells of orders, and of those 10 are" in retried
    assert retried.endswith("on worker-2, in /aside/orders; or on worker-1, in /aside/orders")
    assert found["orders"][0].may_hold("orphan_cleanup", 100)
    assert not found["orders"][0].may_hold("orphan_cleanup", 101)
    assert not found["orders"][0].may_hold("history_gc", 1)
    assert sideline(runs("x"), "whole").elsewhere == {}
    assert sideline(runs("x"), "retried").elsewhere == {"orders": retried}
    assert set(sideline(runs("x"), "part").elsewhere) == {"users"}
    for name in ("away", "part", "retried"):
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / "_lowtide-given-up").touch()
    assert kept(runs("x")).lost == {}
    assert set(sideline(runs("x"), "away").elsewhere) == {"orders"}, "it is not here all the same"


def test_why_a_run_has_no_sideline_here_is_said_by_its_summary(runs: Runs, summaries: Summaries) -> None:
    """Where it lies, that it was cleared by its age, that it removed nothing, or that nobody knows the run."""
    summaries.add("away", {"orders": 3}, folder="/w/away")
    summaries.add("old", {"orders": 3}, started=1)
    summaries.add("idle", {})
    for name, said in (
        ("away", "It put them aside on worker-1, in /w/away/orders. Run this where that folder is"),
        ("old", "it was cleared after state.sideline_keep (30 days)"),
        ("idle", "it removed nothing"),
        ("nobody", "no run of this name that acted has a summary"),
    ):
        with pytest.raises(StoreError, match=re.escape(said)) as told:
            sideline(runs("x"), name)
        assert f"run {name} has no sideline under " in str(told.value)


def test_a_damaged_file_is_not_passed_over(runs: Runs, cells: DataFrame) -> None:
    """One that has its length and cannot be read fails what reads it: less would come back than went, and nobody were
    told.
    """
    folder = Path(put_aside(runs("one"), "orders", cells, 10))
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
        put_aside(runs(name), "orders", cells, 10)
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


def test_what_is_written_today_is_young_whatever_the_folders_time_is(
    runs: Runs, cells: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's folder bears the time at which its first table came into it, on some object stores that of 1970: what
    counts is its newest file. Where a file has no time either, nothing goes.
    """
    put_aside(runs("nightly"), "orders", cells, 10)
    put_aside(runs("timeless"), "orders", cells, 10)
    for folder in (tmp_path / "nightly", tmp_path / "nightly" / "orders"):
        os.utime(folder, (0, 0))
    make_old(tmp_path / "timeless")
    for file in (tmp_path / "timeless").rglob("*"):
        os.utime(file, (0, 0))
    assert sweep(runs("x")) == []
    assert {folder.run for folder in folders(runs("x"))} == {"nightly", "timeless"}
    make_old(tmp_path / "nightly")
    assert sweep(runs("x")) == []
    assert not (tmp_path / "nightly").exists()


def test_what_a_killed_run_has_put_aside_is_swept_too(runs: Runs, cells: DataFrame, tmp_path: Path) -> None:
    """Its files are there, the list of them is not: they are people's data all the same."""
    folder = Path(put_aside(runs("killed"), "orders", cells, 10))
    (listed,) = folder.glob("_lowtide*.json")
    listed.unlink()
    make_old(tmp_path / "killed")
    sweep(runs("x"))
    assert not (tmp_path / "killed").exists()


def test_a_sideline_that_a_restore_reads_is_not_swept(runs: Runs, cells: DataFrame, tmp_path: Path) -> None:
    """Though it is old; afterwards it goes. One that is not there is not made by that."""
    put_aside(runs("old"), "orders", cells, 10)
    make_old(tmp_path / "old")
    with reserved(runs("restore"), "old"):
        sweep(runs("x"))
        assert sideline(runs("restore"), "old").cells.count() == 10
    sweep(runs("x"))
    assert not (tmp_path / "old").exists()
    with reserved(runs("restore"), "never"):
        pass
    assert not (tmp_path / "never").exists()


def test_nobody_else_looks_into_a_sideline(
    runs: Runs, cells: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was removed are people's data: the run's folder is its user's alone, also one that was there, and before
    the first file is in it; what it lies in is left as it is.
    """
    tmp_path.chmod(0o755)
    (tmp_path / "one").mkdir(mode=0o755)
    modes = []
    parquet = type(cells.write).parquet

    def looked(writer: Any, folder: str) -> None:
        modes.append(stat.S_IMODE((tmp_path / "one").stat().st_mode))
        parquet(writer, folder)

    monkeypatch.setattr(type(cells.write), "parquet", looked)
    put_aside(runs("one"), "orders", cells, 10)
    put_list(runs("two"), "orders", "1 undecided")
    assert modes == [0o700]
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("one", "two")} == {0o700}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755


@pytest.mark.parametrize("put", [put_aside, put_list])
def test_a_sideline_that_cannot_be_made_private_takes_nothing(
    runs: Runs, cells: DataFrame, tmp_path: Path, put: Callable[..., str]
) -> None:
    """It says so before anything goes."""
    (tmp_path / "one").write_text("a file where the folder ought to be")
    with pytest.raises(StoreError, match=r"cannot be made for this user alone: .*; nothing was removed"):
        put(runs("one"), "orders", *((cells, 10) if put is put_aside else ("1 undecided",)))


def test_executors_that_may_not_write_there_are_told_apart(runs: Runs, cells: DataFrame, tmp_path: Path) -> None:
    """As where they are another user's: nothing is removed, and the remedy says what they and the driver must share."""
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "orders").write_text("a file where their folder ought to be")
    with pytest.raises(StoreError, match=r"cannot be written, so nothing .* is removed: .*driver and executors"):
        put_aside(runs("one"), "orders", cells, 10)


@pytest.fixture
def anothers(runs: Runs, cells: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An old sideline of this user's, and one that this user may not look into."""
    for name in ("mine", "another"):
        put_aside(runs(name), "orders", cells, 10)
        make_old(tmp_path / name)

    class Guarded:
        def __init__(self, files: Any) -> None:
            self._files = files

        def __getattr__(self, name: str) -> Any:
            return getattr(self._files, name)

        def listStatus(self, path: Any) -> Any:  # noqa: N802 - Hadoop's
            if path.getName() in ("another", "gone"):
                shutil.rmtree(tmp_path / "gone", ignore_errors=True)
                raise Py4JError("AccessControlException: Permission denied")
            return self._files.listStatus(path)

    def guarded(run: Any, folder: str) -> tuple[Any, Any]:
        path, files = at(run, folder)
        return path, Guarded(files)

    at = module.at
    monkeypatch.setattr(module, "at", guarded)
    return tmp_path / "another"


def test_anothers_sideline_is_not_passed_over(runs: Runs, anothers: Path) -> None:
    """What is in it could be what a restore has to know of: who cannot read it is told whose it is. A look says so, and
    shows the others.
    """
    with pytest.raises(StoreError, match=rf"{anothers} belongs to .* and cannot be read: .*Permission denied"):
        kept(runs("x"))
    closed: list[str] = []
    assert kept(runs("x"), closed).cells.count() == 10
    [said] = closed
    assert f"{anothers} belongs to " in said
    assert [folder.run for folder in folders(runs("x"))] == ["mine"]


def test_anothers_sideline_is_another_s_to_remove(runs: Runs, anothers: Path) -> None:
    """The sweep names it, and goes on; one that another run has just removed is no other's."""
    (anothers.parent / "gone").mkdir()
    assert sweep(runs("x")) == [f"file:{anothers}"]
    assert anothers.exists()
    assert not (anothers.parent / "mine").exists()
    (anothers.parent / "gone").mkdir()
    closed: list[str] = []
    kept(runs("x"), closed)
    assert len(closed) == 1


def test_what_the_verifier_may_not_read_it_names(
    runs: Runs, cells: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not seen, which is no violation; a sideline that is not there is."""
    put_aside(runs("another"), "orders", cells, 10)
    found = Verification("v")
    assert not verified._is_closed(runs("x"), "another", found)
    assert not verified._is_closed(runs("x"), "never", found)
    assert found.unseen == []

    class Closed:
        def exists(self, _: Any) -> bool:
            return True

        def listStatus(self, _: Any) -> Any:  # noqa: N802 - Hadoop's
            raise Py4JError("AccessControlException: Permission denied")

    monkeypatch.setattr(verified, "_at", lambda *_: (None, Closed()))
    assert verified._is_closed(runs("x"), "another", found)
    [said] = found.unseen
    assert said.startswith("the sideline of run another cannot be read (")
    assert "verify as the user who ran it" in said
