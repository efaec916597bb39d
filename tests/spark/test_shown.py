"""What clients choose the length of, as people are told of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.cleaning import rules, undecided
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames import shown
from lowtide_spark.run import listing
from lowtide_spark.run.table_work import stop_unknown
from lowtide_spark.verification import remedies
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from lowtide.cleaning.facts import Incarnation
from lowtide.run.cell_lines import LONGEST
from lowtide.run.summary import Summary, TableReport
from lowtide.store.records import TableState
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.formats import commit_key
from lowtide.verification.findings import Verification

BIG = b"q" * 300_000
#: No sentence about a cell is longer.
FEW = 5_000


@pytest.fixture
def run() -> Any:
    """A run, as far as sentences ask for it."""
    config = SimpleNamespace(
        omid=SimpleNamespace(commit_table="OMID", low_latency=False), state=SimpleNamespace(journal_table="JOURNAL")
    )
    summary = Summary("orphan_cleanup", "r1", False)
    state = SimpleNamespace(numbered_anew=lambda: None)
    return SimpleNamespace(config=config, request=SimpleNamespace(run="r1"), summary=summary, state=lambda: state)


def work() -> CleanupWork:
    """A table of which nothing is planned yet."""
    entry = Entry("t", Kind.TRANSACTIONAL, True, frozenset("f"))
    return CleanupWork(TableReport("t"), entry, [], TableState("t", 1, Incarnation.unknown(), ()), [], [])


def stopped(spark: SparkSession, run: Any, row: bytes, qualifier: bytes) -> str:
    """What is told of a cell of unknown form."""
    why = f"unknown form; then in HBase's shell: {rules.OWN_CELL}"
    cells = spark.createDataFrame(
        [("r", why, bytearray(row), bytearray(b"f"), bytearray(qualifier), 51)],
        "region string, why string, row binary, family binary, qualifier binary, timestamp bigint",
    )
    here = work()
    describe = lambda one: undecided.describe(run, "t", one)  # noqa: E731
    stop_unknown(here, cells, ("why", *undecided.PLACE), F.struct(*undecided.PLACE), describe)
    [problem] = here.report.problems
    return problem


def test_bytes_are_told_to_their_first_and_how_many_there_are(spark: SparkSession) -> None:
    """What is short is whole; of what is long nothing is given that a statement could be made of."""
    frame = spark.createDataFrame([(bytearray(b"a" * n),) for n in (0, LONGEST, LONGEST + 1)], "key binary")
    key = F.col("key")
    found = frame.select(shown.in_hex(key).alias("text"), shown.whole(key).alias("whole")).collect()
    assert [r.text for r in found] == ["", "61" * LONGEST, "61" * LONGEST + f"... ({LONGEST + 1} bytes)"]
    assert [r.whole and bytes(r.whole) for r in found] == [b"", b"a" * LONGEST, None]


def test_a_cell_that_no_rule_decides_is_told_with_the_statement_that_mends_it(spark: SparkSession, run: Any) -> None:
    """Its keys are whole in it."""
    assert "such as row 726f77 at timestamp 51" in (told := stopped(spark, run, b"row", b"\x00q"))
    assert "delete 't', \"row\", \"f:\\x00q\", 51; flush 't'" in told


@pytest.mark.parametrize(("row", "qualifier"), [(b"row", BIG), (BIG[:30_000], b"q")])
def test_a_huge_key_makes_no_huge_problem_and_no_statement(
    spark: SparkSession, run: Any, row: bytes, qualifier: bytes
) -> None:
    """A client chooses it, up to megabytes: a part of it is told. A statement with a part would meet another cell."""
    told = stopped(spark, run, row, qualifier)
    assert len(told) < FEW
    assert "delete 't'" not in told
    assert "delete the cell at 51, whose key is too long to be told here" in told
    assert "scan 't', {TIMERANGE => [51, 52]} shows it whole" in told


def test_a_list_of_those_who_wait_has_the_beginning_of_a_huge_row(
    spark: SparkSession, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred thousand of them pass through the driver."""
    written: list[str] = []
    monkeypatch.setattr(undecided, "put_list", lambda _, __, text: written.append(text) or "file")
    rows = [(50, bytearray(BIG), rules.RESOLVE), (100, bytearray(b"r"), rules.RESOLVE)]
    undecided.listed(run, TableReport("t"), spark.createDataFrame(rows, "start_ts bigint, row binary, why string"))
    assert len(written[0]) < FEW
    assert "50 undecided  # 1 cells, such as in row 7171" in written[0]
    assert "(300,000 bytes)\n100 undecided  # 1 cells, such as in row 72\n" in written[0]


def test_the_first_of_a_list_are_told_by_the_beginning_of_their_keys(
    spark: SparkSession, run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """In their order; the list itself has them whole."""
    rows = [
        ("delete", bytearray(row), bytearray(b"f"), bytearray(name), 51, "put", 50, "orphan", "e")
        for row, name in ((b"b", BIG), (b"a\x00", b"q"))
    ]
    cells = spark.createDataFrame(
        rows,
        "action string, row binary, family binary, qualifier binary, timestamp bigint, kind string, start_ts bigint, "
        "rule string, evidence string",
    )
    listing._show(run, "t", cells, 10)
    first, second = run.summary.listing.first
    assert (first["row"], first["qualifier"], first["transaction"]) == ("a\\x00", "q", 50)
    assert (second["row"], second["qualifier"]) == ("b", "q" * LONGEST + "... (300,000 bytes)")
    assert len(capsys.readouterr().out) < FEW


def test_a_row_of_the_commit_table_is_told_by_the_beginning_of_its_key(spark: SparkSession) -> None:
    """Where it is a transaction's, with what mends it."""
    rows = [(None, "row key is no transaction's", 60, bytearray(BIG)), (50, "odd", 60, bytearray(commit_key(50)))]
    rows.append((100, None, 110, bytearray(commit_key(100))))
    entries = spark.createDataFrame(rows, "start_ts bigint, problem string, newest bigint, row binary")
    long, short = undecided.odd_entries("OMID", entries)
    assert len(long) < FEW
    assert long.endswith("(300,000 bytes)); left alone")
    assert f"(row {commit_key(50).hex()}); left alone. Say what became of transaction 50" in short
    assert "deleteall 'OMID', \"\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x002\", '', 99" in short


def violations(spark: SparkSession, run: Any, kind: str, row: bytes, qualifier: bytes, *, unknown: bool = False) -> str:
    """What the verifier says of a transaction with a shadow cell there, or with one of an unknown form."""
    place = Row(table="t", row=row.hex(), family=bytearray(b"f"), qualifier=bytearray(qualifier), timestamp=51)
    other = Row(table="t", row="72", family=bytearray(b"f"), qualifier=bytearray(b"q"), timestamp=51)
    cells = (None, None, None, None, place) if unknown else ((70, place), (90, other), None, None, None)
    one = (50, [kind], *cells, None, None, None, 0, 0, 0, 0)
    where = "struct<table: string, row: string, family: binary, qualifier: binary, timestamp: bigint>"
    stamp = f"struct<shadow: bigint, place: {where}>"
    known: DataFrame = spark.createDataFrame(
        [one],
        f"start_ts bigint, wrong array<string>, least {stamp}, most {stamp}, lacks {where}, any {where}, "
        f"unknown {where}, entry bigint, pruned bigint, at bigint, lacking bigint, below_mark bigint, "
        "below_bound bigint, odd bigint",
    )
    found = Verification("r1")
    remedies.name(run, found, known)
    return str(found.violations[0])


def test_the_verifier_tells_what_mends_a_transaction(spark: SparkSession, run: Any) -> None:
    """With the row that shows its commit, and the statements, whole."""
    assert "run lowtide resolve 50 --committed 70 --shown-in t 726f77, then" in violations(
        spark, run, "V3 mark", b"row", b"q"
    )
    odd = violations(spark, run, "V3 mark", b"row", b"q", unknown=True)
    assert "run lowtide resolve 50 --committed TIMESTAMP --shown-in t 726f77, then" in odd
    told = violations(spark, run, "V3 commits", b"row", b"q")
    assert 'row 726f77 of t says 70; where 90 is right: put \'t\', "row", "f:' in told


@pytest.mark.parametrize("kind", ["V3 mark", "V3 commits"])
def test_the_verifier_makes_no_command_of_a_part_of_a_key(spark: SparkSession, run: Any, kind: str) -> None:
    """Of a huge one it says what shows it whole."""
    told = violations(spark, run, kind, BIG[:30_000], b"q")
    assert len(told) < FEW
    assert "put 't', \"qq" not in told
    assert "whose key is too long to be told here; in HBase's shell scan 't', {TIMERANGE => [51, 52]}" in told
