"""Writing through the connector: guards, reports and what the driver asks of HBase."""

from __future__ import annotations

import json
import time
from threading import Thread
from typing import Any

import pytest
from connector_kit import Cell, Kit
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.values.formats import shadow_qualifier

R = b"r"


pytestmark = pytest.mark.usefixtures("swept")


@pytest.fixture(scope="module")
def kit(spark: SparkSession, stack: Stack) -> Kit:
    return Kit(spark, stack)


@pytest.fixture
def table(kit: Kit) -> str:
    return kit.table()


def mutation(
    op: str, timestamp: int | None = 100, row: bytes = R, qualifier: bytes = b"q", **more: Any
) -> dict[str, Any]:
    return {"op": op, "region": "g", "row": row, "family": b"f", "qualifier": qualifier, "timestamp": timestamp, **more}


def counts(report: list[dict[str, Any]]) -> dict[str, tuple[int, int, int]]:
    """Done, refused and failed by operation."""
    return {r["op"]: (r["done"], r["refused"], r["failed"]) for r in report}


def test_delete_version_leaves_the_others(kit: Kit, table: str) -> None:
    """Exactly one version goes; older and newer ones stay."""
    kit.put(table, [Cell(R, b"q", t) for t in (100, 150, 200)])
    assert counts(kit.write(table, [mutation("delete_version", 150)])) == {"delete_version": (1, 0, 0)}
    assert sorted(key[2] for key in kit.plain(table)) == [100, 200]


def test_delete_up_to_takes_the_older_ones(kit: Kit, table: str) -> None:
    """All versions up to and including the timestamp go, of that column alone."""
    kit.put(table, [Cell(R, q, t) for q in (b"p", b"q") for t in (100, 150, 200)])
    kit.write(table, [mutation("delete_up_to", 150)])
    assert sorted((key[1], key[2]) for key in kit.plain(table)) == [(b"p", 100), (b"p", 150), (b"p", 200), (b"q", 200)]


def test_delete_if_absent_heeds_the_guard_at_that_very_timestamp(kit: Kit, table: str) -> None:
    """A version goes if its shadow cell is not there; shadow cells of other versions do not protect it."""
    kit.put(table, [Cell(R, b"q", 100), Cell(R, b"q", 150, 170), Cell(R, b"q", 200)])
    guard = {"guard_family": b"f", "guard_qualifier": shadow_qualifier(b"q")}
    report = kit.write(table, [mutation("delete_if_absent", t, **guard) for t in (100, 150, 200)])
    assert counts(report) == {"delete_if_absent": (2, 1, 0)}
    assert [key[2] for key in kit.plain(table) if key[1] == b"q"] == [150]


def test_put_if_absent_with_and_without_a_guard(kit: Kit, table: str) -> None:
    """A put is refused where the guarded column, or the column itself, has a cell of any timestamp."""
    kit.put(table, [Cell(b"taken", b"c", 5), Cell(b"same", b"q", 5)])
    guard = {"guard_family": b"f", "guard_qualifier": b"c"}
    report = kit.write(
        table,
        [
            mutation("put_if_absent", 7, row=b"taken", value=b"x", **guard),
            mutation("put_if_absent", 7, row=b"free", value=b"x", **guard),
            mutation("put_if_absent", 7, row=b"same", value=b"x"),
            mutation("put_if_absent", 7, row=b"other", value=b"x"),
        ],
    )
    assert counts(report) == {"put_if_absent": (2, 2, 0)}
    assert {key[0] for key in kit.plain(table) if key[2] == 7} == {b"free", b"other"}


def test_heal_writes_copy_and_shadow_cell_only_where_the_version_is(kit: Kit, table: str) -> None:
    """A heal puts data and shadow cell again at the version; it brings nothing back that is gone."""
    kit.put(table, [Cell(b"a", b"q", 100, value=b"one"), Cell(b"b", b"q", 150, value=b"two"), Cell(b"e", b"q", 100)])
    kit.put(table, [Cell(b"d", b"", 100, value=b"")])
    kit.write(table, [mutation("delete_version", 100, row=b"e")])
    heal = [mutation("heal_if_present", 100, row=row, value=b"one", commit_ts=190) for row in (b"a", b"b", b"c", b"e")]
    heal.append(mutation("heal_if_present", 100, row=b"d", qualifier=b"", value=b"", commit_ts=190))
    report = kit.write(table, heal)
    assert counts(report) == {"heal_if_present": (2, 3, 0)}
    shadow = (190).to_bytes(8, "big")
    assert kit.plain(table) == {
        (b"a", b"q", 100): b"one",
        (b"a", shadow_qualifier(b"q"), 100): shadow,
        (b"b", b"q", 150): b"two",
        (b"d", b"", 100): b"",
        (b"d", shadow_qualifier(b""), 100): shadow,
    }


def test_heal_finds_its_cell_in_a_wide_row_of_several_families(kit: Kit, omid: OmidClient) -> None:
    """The guard looks at its family and column alone."""
    table = kit.table("f") + "x"
    omid.create(table, ("e", "f", "g"), omid_enabled=False)
    kit.put(table, [Cell(R, b"q%03d" % i, 100, family=f) for i in range(300) for f in (b"e", b"f", b"g") if i != 7])
    kit.put(table, [Cell(R, b"q007", 100, family=b"e"), Cell(R, b"q007", 150, family=b"f")])
    heal = [mutation("heal_if_present", t, qualifier=b"q007", value=b"v", commit_ts=200) for t in (100, 150)]
    assert counts(kit.write(table, heal)) == {"heal_if_present": (1, 1, 0)}


def test_a_put_under_what_hides_it_needs_that_very_version(kit: Kit, table: str) -> None:
    """Data and shadow cell come only where the named version is, in the same step; one of another timestamp does not
    count.
    """
    kit.put(table, [Cell(b"a", b"", 200, 250, b""), Cell(b"b", b"", 150, 170, b""), Cell(b"c", b"q", 200, 250)])
    under = {"value": b"v", "commit_ts": 150, "guard_family": b"f", "guard_timestamp": 200}
    puts = [
        mutation("put_committed_if_present", 100, row=row, guard_qualifier=b"", **under) for row in (b"a", b"b", b"d")
    ]
    puts.append(mutation("put_committed_if_present", 100, row=b"c", guard_qualifier=b"q", **under))
    assert counts(kit.write(table, puts)) == {"put_committed_if_present": (2, 2, 0)}
    shadow = (150).to_bytes(8, "big")
    there = {key: value for key, value in kit.plain(table).items() if key[2] == 100}
    assert there == {
        place: value
        for row in (b"a", b"c")
        for place, value in (((row, b"q", 100), b"v"), ((row, shadow_qualifier(b"q"), 100), shadow))
    }


def test_healed_cells_are_seen_as_they_are(kit: Kit, table: str) -> None:
    """Refused is a cell without its shadow cell, and one with another commit timestamp in it; one that is gone needs
    none.
    """
    kit.put(table, [Cell(b"healed", b"q", 100, 150), Cell(b"bare", b"q", 100), Cell(b"other", b"q", 100, 170)])
    kit.put(table, [Cell(b"bare", b"q", 200, 150)])
    look = [mutation("see_healed", 100, row=row, commit_ts=150) for row in (b"healed", b"bare", b"other", b"gone")]
    before = kit.plain(table)
    assert counts(kit.write(table, look)) == {"see_healed": (2, 2, 0)}
    assert kit.plain(table) == before


def test_nothing_is_written_for_a_run_that_no_longer_holds_its_claim(kit: Kit, table: str) -> None:
    """Every batch is sent only while the cells of the records have the values that the run wrote there."""
    records = kit.table("s")
    kit.put(records, [Cell(b"table/orders", b"epoch", 100, value=b"7", family=b"s")])

    def holding(value: str) -> str:
        claim = {"table": records, "row": b"table/orders".hex(), "family": "s", "qualifier": "epoch"}
        return json.dumps([{**claim, "value": value.encode().hex()}])

    assert counts(kit.write(table, [mutation("put", value=b"v")], holding=holding("7"))) == {"put": (1, 0, 0)}
    puts = [mutation("put", 200, value=b"late"), mutation("put_if_absent", 200, row=b"s", value=b"late")]
    (guarded, plain) = sorted(kit.write(table, puts, holding=holding("6")), key=lambda r: r["op"], reverse=True)
    for report in (guarded, plain):
        assert (report["done"], report["failed"]) == (0, 1)
        assert (
            f"another run, or a restore, has taken over (row table/orders of {records} has changed)"
            in report["failure"]
        )
    assert set(kit.plain(table)) == {(R, b"q", 100)}


def test_what_was_on_its_way_is_not_sent_to_a_table_that_came_back(kit: Kit, omid: OmidClient, table: str) -> None:
    """A region that is closed is waited for, and the table is looked at each time: what was meant for it does not reach
    what was restored meanwhile. One that opens again as it was gets it.
    """
    kit.put(table, [Cell(R, b"q", 100)])
    before = kit.plain(table)
    omid.snapshot(table, f"of-{table}")
    holding = json.dumps([{"table": table, "stated": kit.admin.stated(kit.options, table)}])
    patient = {"holding": holding, "hbase.client.retries.number": "10"}
    reports: list[Any] = []

    def late(timestamp: int) -> None:
        rows = [
            mutation("put", timestamp, value=b"late"),
            mutation("put_if_absent", timestamp, row=b"s", value=b"late"),
        ]
        reports.append(kit.write(table, rows, **patient))

    try:
        for comes_back in (False, True):
            with kit.closed(table) as opened:
                thread = Thread(target=late, args=[200 + comes_back])
                thread.start()
                time.sleep(2)
                assert not reports[comes_back:], "it is waited for"
                if comes_back:
                    omid.restore(f"of-{table}")
                else:
                    opened()
                thread.join(60)
    finally:
        omid.delete_snapshot(f"of-{table}")
    assert kit.plain(table) == before, "what was meant for another table was written"
    assert counts(reports[0]) == {"put": (1, 0, 0), "put_if_absent": (1, 0, 0)}
    for report in reports[1]:
        assert (report["done"], report["failed"]) == (0, 1)
        assert f"{table} was restored, made anew, or disabled and enabled while the run went on" in report["failure"]


def test_mutations_are_safe_to_repeat(kit: Kit, table: str) -> None:
    """Written twice, everything ends as written once; guarded deletes find nothing and still succeed."""
    kit.put(table, [Cell(R, b"q", t, value=b"v") for t in (100, 150)])
    plan = [
        mutation("heal_if_present", 150, value=b"v", commit_ts=180),
        mutation("delete_if_absent", 100, guard_family=b"f", guard_qualifier=shadow_qualifier(b"q")),
        mutation("put", 60, qualifier=b"p", value=b"p"),
    ]
    kit.write(table, plan)
    once = kit.plain(table)
    assert counts(kit.write(table, plan)) == {
        "heal_if_present": (1, 0, 0),
        "delete_if_absent": (1, 0, 0),
        "put": (1, 0, 0),
    }
    assert kit.plain(table) == once


def test_large_writes_are_counted_by_region_and_operation(kit: Kit, table: str) -> None:
    """Many batches over several tasks are all applied, and counted once each with their bytes."""
    puts = kit.spark.range(0, 25_000, numPartitions=4).select(
        F.lit("put").alias("op"),
        F.concat(F.lit("g"), (F.col("id") % 2).cast("string")).alias("region"),
        F.format_string("r%05d", F.col("id") % 5000).cast("binary").alias("row"),
        F.lit(b"f").alias("family"),
        F.concat(F.lit("q"), F.floor(F.col("id") / 5000).cast("string")).cast("binary").alias("qualifier"),
        F.lit(100).cast("bigint").alias("timestamp"),
        F.lit(b"value").alias("value"),
    )
    report = kit.write(table, puts)
    assert {(r["region"], r["op"]): (r["done"], r["failed"]) for r in report} == {
        ("g0", "put"): (12_500, 0),
        ("g1", "put"): (12_500, 0),
    }
    # A KeyValue: two lengths, row with length, family with length, qualifier, timestamp, type, value.
    assert sum(r["bytes"] for r in report) == 25_000 * (8 + 2 + 6 + 1 + 1 + 2 + 8 + 1 + 5)
    assert kit.read(table, view="cells").count() == 25_000


def test_columns_come_in_any_order_and_may_be_missing(kit: Kit, table: str) -> None:
    """Columns go by their names; what an operation needs and lacks makes that mutation fail, not the others."""
    frame = kit.spark.createDataFrame(
        [
            (b"1", b"q", 100, b"f", "put", b"r1"),
            (None, b"q", 100, b"f", "put", b"r2"),
            (b"3", b"q", None, b"f", "delete_version", b"r3"),
        ],
        "value binary, qualifier binary, timestamp bigint, family binary, op string, row binary",
    )
    report = {r["op"]: r for r in kit.write(table, frame)}
    assert (report["put"]["region"], report["put"]["done"], report["put"]["failed"]) == (None, 1, 1)
    assert report["put"]["failure"] == "put without value at row r2"
    assert report["delete_version"]["failure"] == "delete_version without timestamp at row r3"
    assert set(kit.plain(table)) == {(b"r1", b"q", 100)}


def test_what_fails_is_counted_and_the_rest_goes_on(kit: Kit, table: str) -> None:
    """Mutations of a family that is not there fail with HBase's words, and with them what goes to the same row, as one
    mutation; other rows are written."""
    rows = [mutation("put", row=b"r%02d" % i, value=b"v") for i in range(10)]
    rows += [{**mutation("delete_version", row=b"r%02d" % i), "family": b"nope"} for i in range(8, 13)]
    rows += [mutation("whatever", row=b"x")]
    report = {r["op"]: r for r in kit.write(table, kit.frame(rows).coalesce(1))}
    assert (report["put"]["done"], report["put"]["failed"]) == (8, 2)
    assert (report["delete_version"]["done"], report["delete_version"]["failed"]) == (0, 5)
    assert "NoSuchColumnFamily" in report["delete_version"]["failure"]
    assert report["whatever"]["failure"] == "unknown op whatever"
    assert {row for row, _, _ in kit.plain(table)} == {b"r%02d" % i for i in range(8)}


def test_writes_that_cannot_start_are_refused(kit: Kit, table: str) -> None:
    """A wrong column, type or table is told before anything is written."""
    frame = kit.frame([mutation("put", value=b"v")])
    with pytest.raises(IllegalArgumentException, match="Unknown column: colour"):
        kit.write(table, frame.withColumn("colour", F.lit(1)))
    with pytest.raises(IllegalArgumentException, match=r"Column timestamp is STRING\. Cast it to BIGINT"):
        kit.write(table, frame.withColumn("timestamp", F.lit("x")))
    with pytest.raises(IllegalArgumentException, match="Column op is missing"):
        kit.write(table, frame.drop("op"))
    with pytest.raises(IllegalArgumentException, match="Unknown table: nowhere"):
        kit.write("nowhere", frame)
    assert kit.plain(table) == {}


def test_a_report_is_taken_once(kit: Kit, table: str) -> None:
    """The report of an empty write is an empty list; a report that was taken, or never made, is an error."""
    assert kit.write(table, []) == []
    with pytest.raises(IllegalArgumentException, match="no report of a write with writeId = other"):
        kit.admin.takeReport("other")


def test_major_compaction_drops_markers_and_waits(kit: Kit, table: str) -> None:
    """After it returns, markers and what they hid are gone from the files, for the table as for one family."""
    for family in (None, "f"):
        kit.put(table, [Cell(R, b"q", 100), Cell(R, b"q", 150)])
        kit.write(table, [mutation("delete_version", 100)])
        kit.admin.majorCompact(kit.options, table, family, 60_000)
        raw = kit.read(table, view="cells", raw="true").collect()
        assert [(r.timestamp, r.kind) for r in raw] == [(150, "put")]
    with pytest.raises(IllegalArgumentException, match="has no family zz"):
        kit.admin.majorCompact(kit.options, table, "zz", 60_000)


def test_admin_errors_name_the_table(kit: Kit, table: str) -> None:
    """HBase snapshots of what is not there, or under a name that is taken, are refused with words that help."""
    with pytest.raises(IllegalArgumentException, match="Unknown table: nowhere"):
        kit.admin.createSnapshot(kit.options, "nowhere", "s")
    kit.admin.createSnapshot(kit.options, table, f"{table}_s")
    try:
        with pytest.raises(IllegalArgumentException, match=f"HBase snapshot {table}_s of table {table} exists already"):
            kit.admin.createSnapshot(kit.options, table, f"{table}_s")
    finally:
        kit.admin.dropSnapshot(kit.options, f"{table}_s")
    kit.admin.dropSnapshot(kit.options, f"{table}_s")  # nothing to drop, nothing said
    with pytest.raises(IllegalArgumentException, match="is no scratch folder"):
        kit.admin.dropScratchDir(kit.options, kit.options["hbase.rootdir"])
    kit.admin.createTable(kit.options, table, "other", 1)  # it is there: nothing happens
    assert {r.family for r in kit.read(None, view="tables").where(F.col("table") == table).collect()} == {"f"}
