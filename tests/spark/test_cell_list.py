"""Lists of cells: what is written, how bytes are spelled, who may look, and what is swept away."""

from __future__ import annotations

import gzip
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from lowtide_spark.cleaning.listing import with_evidence
from lowtide_spark.frames import cell_list
from lowtide_spark.frames.cell_list import FIELDS, FOLDER, shell_text, sweep, write
from lowtide_spark.frames.sideline import kept, put_aside
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lowtide.cleaning.evidence import IN_WORDS, Proof
from lowtide.errors import StoreError
from lowtide.values.keyranges import printable
from tests.spark.folder_kit import Runs, make_old

#: One that this user may give to a folder: root any.
OTHER_GROUP = 1 if os.geteuid() == 0 else (os.getgroups() or [os.getegid()])[-1]
HOSTILE = [
    b"",
    b"plain",
    bytes(range(256)),
    b"</code><script>alert(1)</script>",
    b"a|b`c\n\\d",
    "für".encode(),
    b"\xff\x00",
    b"x\n",
]


@pytest.fixture
def cells(spark: SparkSession) -> DataFrame:
    """A cell of each hostile row."""
    return spark.createDataFrame(
        [
            ("delete", bytearray(row), bytearray(b"f"), bytearray(b"\x00q"), 51, "put", 50, "orphan", "e")
            for row in HOSTILE
        ],
        "action string, row binary, family binary, qualifier binary, timestamp bigint, kind string, start_ts bigint, "
        "rule string, evidence string",
    )


def listed(folder: str) -> list[dict[str, Any]]:
    """The lines of a list."""
    files = sorted(Path(folder).glob("part-*.json.gz"))
    return [json.loads(text) for file in files for text in gzip.open(file, "rt").read().splitlines()]


def test_bytes_are_spelled_as_the_shell_does(spark: SparkSession) -> None:
    """The same in expressions as in Python, whatever the bytes are."""
    frame = spark.createDataFrame([(bytearray(row),) for row in HOSTILE], "row binary")
    found = {bytes(r.row): r.text for r in frame.withColumn("text", shell_text(F.col("row"))).collect()}
    assert found == {row: printable(row) for row in HOSTILE}


def test_a_list_names_every_cell_and_no_value(runs: Runs, cells: DataFrame) -> None:
    """One line a cell, with all fields; a dry run's second try replaces the first, an acting run's goes on with it."""
    folder = write(runs("one"), "ns:t", cells, anew=True)
    lines = listed(folder)
    assert {line["row"] for line in lines} == {printable(row) for row in HOSTILE}
    assert {(tuple(line), line["table"], line["qualifier"], line["transaction"]) for line in lines} == {
        (FIELDS, "ns:t", "\\x00q", 50)
    }
    assert len(listed(write(runs("one"), "ns:t", cells, anew=True))) == len(HOSTILE)
    assert len(listed(write(runs("one"), "ns:t", cells, anew=False))) == 2 * len(HOSTILE)


def test_nobody_else_looks_into_a_list(runs: Runs, cells: DataFrame) -> None:
    """Row keys may be people's data."""
    folder = Path(write(runs("one"), "t", cells, anew=True))
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("rights", [0o755, 0o770, 0o777])
@pytest.mark.parametrize("there", [False, True], ids=["new", "made before"])
def test_lists_can_be_written_by_whoever_may_put_aside(
    runs: Runs, cells: DataFrame, tmp_path: Path, rights: int, there: bool
) -> None:
    """Whoever made their folder first: it is as open as the folder of the sidelines and no wider, and nobody takes away
    what is another's.
    """
    tmp_path.chmod(rights)
    os.chown(tmp_path, -1, OTHER_GROUP)
    if there:
        (tmp_path / FOLDER).mkdir(0o755)
    folder = Path(write(runs("one"), "t", cells, anew=True))
    shared = folder.parent.parent.stat()
    assert stat.S_IMODE(shared.st_mode) == 0o1000 | rights
    assert shared.st_gid == OTHER_GROUP
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700


def test_what_another_keeps_to_themselves_is_passed_over(
    runs: Runs, cells: DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their lists are not read, and end no question of somebody else's."""
    for name in ("mine", "another's"):
        write(runs(name), "t", cells, anew=True)

    class Guarded:
        """A file system in which a folder is another's."""

        def __init__(self, files: Any) -> None:
            self._files = files

        def __getattr__(self, name: str) -> Any:
            return getattr(self._files, name)

        def listStatus(self, path: Any) -> Any:  # noqa: N802 - Hadoop's
            if "another" in path.getName():
                raise Py4JError("Permission denied")
            return self._files.listStatus(path)

    def guarded(run: Any, folder: str) -> tuple[Any, Any]:
        path, files = at(run, folder)
        return path, Guarded(files)

    at = cell_list.at
    monkeypatch.setattr(cell_list, "at", guarded)
    found = cell_list.kept(runs("x"))
    assert found is not None
    assert {r.run for r in found.select("run").distinct().collect()} == {"mine"}


def test_a_list_that_cannot_be_written_says_where_and_what_to_do(runs: Runs, cells: DataFrame, tmp_path: Path) -> None:
    """Nothing is done then, so it must not pass in silence."""
    (tmp_path / FOLDER).write_text("a file where the folder ought to be")
    with pytest.raises(StoreError, match=r"cannot be written to .*~lists/one/t: .*or leave --list out"):
        write(runs("one"), "t", cells, anew=True)


def test_lists_are_swept_and_are_no_sidelines(runs: Runs, cells: DataFrame, tmp_path: Path) -> None:
    """Old ones go, a run's own stays; a restore reads none of them, whatever a run is called."""
    for name in ("old", "young", "own", FOLDER):
        write(runs(name), "t", cells, anew=True)
    for name in ("old", "own"):
        make_old(tmp_path / FOLDER / name)
    put_aside(
        runs(FOLDER),
        "t",
        cells.selectExpr("*", "'r' as region", "cast(null as bigint) as commit_ts", "row as value"),
        len(HOSTILE),
    )
    found = kept(runs("x"))
    assert found.cells.count() == len(HOSTILE)
    assert {r.run for r in found.cells.select("run").distinct().collect()} == {FOLDER}
    sweep(runs("own"))
    assert {p.name for p in (tmp_path / FOLDER).iterdir()} == {"young", "own", "=7Elists"}


def test_the_words_of_a_proof_have_its_number(spark: SparkSession) -> None:
    """Each proof of a plan is told, with the commit timestamp where it is one of a commit."""
    frame = spark.createDataFrame([(proof.value, 150) for proof in Proof], "proof string, tc bigint")
    found = {r.proof: r.evidence for r in with_evidence(frame).collect()}
    assert found == {proof.value: words.replace("%d", "150") for proof, words in IN_WORDS.items()}
