"""Reading through the connector, from a live table and from HBase snapshots."""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest
from connector_kit import Cell, Kit, shown
from lowtide_spark.frames.store import Store
from pyspark.errors import IllegalArgumentException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lowtide.errors import TableError
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.values.formats import shadow_qualifier
from tests import seeds

SHADOW_SUFFIX = b"\xc2\x80"


pytestmark = pytest.mark.usefixtures("swept")


@pytest.fixture(scope="module")
def kit(spark: SparkSession, stack: Stack) -> Kit:
    return Kit(spark, stack)


def plan(frame: DataFrame) -> str:
    """The physical plan, as text."""
    return frame._jdf.queryExecution().executedPlan().toString()


def scanned(frame: DataFrame) -> int:
    """How many rows the connector's scan hands to Spark."""
    executed = frame._jdf.queryExecution().executedPlan()
    leaves = executed.collectLeaves()
    (scan,) = (leaves.apply(n) for n in range(leaves.size()) if "BatchScan" in leaves.apply(n).nodeName())
    rows = scan.metrics().apply("numOutputRows")
    before = rows.value()
    executed.executeCollect()
    return int(rows.value() - before)


@pytest.fixture(scope="module")
def mixed(kit: Kit) -> str:
    """A table with every kind of cell."""
    table = kit.table()
    cells = [
        Cell(b"r%02d" % row, qualifier, timestamp, commit, b"v%d" % timestamp)
        for row in range(20)
        for qualifier in (b"\0\0\0\1", b"a", b"ab", b"c1", b"c10", b"c2")
        for timestamp, commit in ((100, 150), (203, 260), (300, 400), (500, None))
    ]
    cells += [
        Cell(b"r05", b"", 350, 450, b""),  # family tombstone
        Cell(b"r06", b"a", 600, 650, b""),  # tombstone
        Cell(b"r07", b"a", 600, 650, b"__OMID_TOMBSTONE__"),
        Cell(b"r08", b"p", 700, 700),  # its own timestamp is a proof too
    ]
    kit.put(table, cells)
    place = {"op": "put", "family": b"f", "timestamp": 300}
    kit.write(
        table,
        [
            {**place, "row": b"r03", "qualifier": shadow_qualifier(b"gone"), "value": (350).to_bytes(8, "big")},
            {**place, "row": b"r03", "qualifier": shadow_qualifier(b"short"), "value": b"123"},
            {**place, "row": b"r03", "qualifier": shadow_qualifier(b"low"), "value": (299).to_bytes(8, "big")},
            {**place, "row": b"r04", "qualifier": b"old" + SHADOW_SUFFIX, "value": (350).to_bytes(8, "big")},
        ],
    )
    return table


@pytest.fixture(scope="module", params=["rpc", "snapshot"])
def source(request: pytest.FixtureRequest, kit: Kit, mixed: str) -> Iterator[dict[str, str]]:
    """Options for both ways of reading the table ``mixed``."""
    if request.param == "rpc":
        yield {"read": "rpc"}
    else:
        with kit.snapshot(mixed) as options:
            yield options


def test_every_cell_is_shown_once(kit: Kit, mixed: str, source: dict[str, str]) -> None:
    """Data rows, their shadow cells, dangling and unknown rows together are all cells of the table."""
    rows = kit.read(mixed, endRows="true", **source).collect()
    by_kind = {kind: [r for r in rows if r.kind == kind] for kind in {r.kind for r in rows}}
    cells = kit.read(mixed, view="cells", raw="true").count()
    data = [r for kind in ("put", "tombstone", "family_tombstone") for r in by_kind[kind]]
    with_shadow = sum(r.commit_ts is not None for r in data)
    assert len(data) + with_shadow + len(by_kind["shadow"]) + len(by_kind["unknown"]) == cells
    assert sum(r.cells_read for r in by_kind["end_of_range"]) == cells
    assert {kind: len(found) for kind, found in by_kind.items() if kind != "put"} == {
        "tombstone": 2,
        "family_tombstone": 1,
        "shadow": 1,
        "unknown": 3,
        "end_of_range": 1,
    }
    assert sorted((r.problem, bytes(r.qualifier)) for r in by_kind["unknown"]) == [
        ("shadow cell below its own timestamp", shadow_qualifier(b"low")),
        ("shadow cell of 3 bytes", shadow_qualifier(b"short")),
        ("shadow qualifier without prefix", b"old" + SHADOW_SUFFIX),
    ]
    (dangling,) = by_kind["shadow"]
    assert (bytes(dangling.qualifier), dangling.commit_ts, dangling.value) == (b"gone", 350, None)


def test_timestamps_of_a_version(kit: Kit, mixed: str, source: dict[str, str]) -> None:
    """A version shows its checkpoint's start, its commit, and the commit that hid it: a successor's or a
    tombstone's.
    """
    frame = kit.read(mixed, **source).where(
        (F.col("row") == bytearray(b"r05")) & F.col("qualifier").isin([bytearray(b"a"), bytearray(b"")])
    )
    rows = [(bytes(r.qualifier), r.timestamp, r.start_ts, r.commit_ts, r.replaced_ts, r.kind) for r in frame.collect()]
    assert rows == [
        (b"", 350, 350, 450, None, "family_tombstone"),
        (b"a", 500, 500, None, None, "put"),
        (b"a", 300, 300, 400, 450, "put"),
        (b"a", 203, 200, 260, 400, "put"),
        (b"a", 100, 100, 150, 260, "put"),
    ]


FILTERS = {
    "suspects": "commit_ts IS NULL OR start_ts IN (200, 600)",
    "no shadow cell": "commit_ts IS NULL",
    "shadow cell": "commit_ts IS NOT NULL",
    "starts": "start_ts IN (200, 350)",
    "timestamps": "timestamp IN (203, 300)",
    "range of starts": "start_ts >= 200 AND start_ts < 400 AND (commit_ts IS NULL OR start_ts IN (300))",
    "range of timestamps": "timestamp > 203 AND 500 >= timestamp",
    "start between multiples": "start_ts > 190 AND start_ts <= 340",
    "replaced": "replaced_ts <= 400",
    "proof above itself": "commit_ts > timestamp",
    "not": "NOT (commit_ts < 300 OR timestamp = 300)",
    "family": "family = X'66' AND commit_ts IS NULL",
    "no such family": "family = X'67'",
    "rows": "row >= X'723033' AND row < X'723036'",
    "a row": "row = X'723035'",
    "no row": "row = X''",
    "some rows and none": "row IN (X'', X'723035')",
    "some rows": "row IN (X'723035', X'723133', X'7A') AND start_ts = 300",
    "left to Spark": "kind = 'put' AND length(value) > 0 AND start_ts >= 300",
}


@pytest.mark.parametrize("condition", FILTERS.values(), ids=FILTERS.keys())
def test_filters_taken_over_give_what_spark_gives(kit: Kit, mixed: str, source: dict[str, str], condition: str) -> None:
    """A filter that the connector takes over shows the rows that Spark's own filter shows."""
    everything = kit.read(mixed, **source).localCheckpoint()
    taken = kit.read(mixed, **source).where(condition)
    known = everything.where("kind != 'unknown'")
    wanted = shown(known.where(condition))
    assert shown(taken.where("kind != 'unknown'")) == wanted
    assert 0 <= len(wanted) < known.count(), "a filter that lets everything pass is none"
    assert bool(wanted) == (condition not in (FILTERS["no such family"], FILTERS["no row"]))


def test_unknown_and_end_rows_pass_filters_on_timestamps(kit: Kit, mixed: str, source: dict[str, str]) -> None:
    """What jobs must not miss is shown whatever is asked of commit timestamps."""
    frame = kit.read(mixed, endRows="true", **source).where("start_ts >= 50 AND commit_ts IN (1, 2)")
    assert {r.kind for r in frame.collect()} == {"unknown", "end_of_range"}
    assert frame.count() == 4


def test_filters_leave_nothing_to_spark(kit: Kit, mixed: str) -> None:
    """The plan of the cleanup's question has no filter of Spark's, reads only its columns and asks for no values."""
    frame = kit.read(mixed).where("start_ts >= 50 AND (commit_ts IS NULL OR start_ts IN (200, 600))")
    text = plan(frame.select("row", "timestamp"))
    assert "Filter (" not in text
    assert "value" not in text
    assert "timestamps [50, " in text


def test_order_within_a_partition(kit: Kit, mixed: str, source: dict[str, str]) -> None:
    """Rows come in row order, columns in qualifier order, versions newest first."""
    rows = kit.read(mixed, **source).where("kind NOT IN ('shadow', 'unknown')").collect()
    keys = [(bytes(r.row), bytes(r.family), bytes(r.qualifier), -r.timestamp) for r in rows]
    assert len(keys) == 20 * 6 * 4 + 4
    assert keys == sorted(keys)


@pytest.mark.parametrize("limit", [1, 3, 20])
def test_wide_rows_in_chunks_give_the_same(kit: Kit, mixed: str, source: dict[str, str], limit: int) -> None:
    """With a buffer of a few cells every row is a wide one, and nothing is missed or shown twice."""
    assert shown(kit.read(mixed, pairingLimit=limit, **source)) == shown(kit.read(mixed, **source))


@seeds.each("many columns")
def test_a_row_of_many_columns(kit: Kit, seed: int) -> None:
    """A row wider than the buffer and than one answer of the server is paired in chunks, from both sources."""
    table = kit.table()
    rng = random.Random(seed)
    cells = [
        Cell(b"wide", b"c%d" % column, 1000, None if rng.random() < 0.01 else 1050, b"x" * 200)
        for column in range(30_000)
    ]
    kit.put(table, cells)
    orphans = sorted(cell.qualifier for cell in cells if cell.commit is None)
    with kit.snapshot(table) as snapshot:
        for options in ({"read": "rpc"}, snapshot):
            frame = kit.read(table, pairingLimit=5000, **options)
            suspects = frame.where("commit_ts IS NULL").select("qualifier").collect()
            assert sorted(bytes(r.qualifier) for r in suspects) == orphans
            assert frame.where("kind = 'put'").count() == len(cells)


@pytest.fixture(scope="module")
def large(kit: Kit) -> str:
    """A table of one region with 20,000 rows in several files; one cell in 100 has no shadow cell."""
    table = kit.table()
    for part in range(2):
        kit.put(
            table,
            [
                Cell(b"user%08d" % (2 * i + part), b"q", 1000 + 50 * part, None if i % 100 == 0 else 1200, b"x" * 100)
                for i in range(10_000)
            ],
        )
        kit.admin.flush(kit.options, table)
    return table


def test_large_regions_are_read_in_pieces(kit: Kit, large: str) -> None:
    """A region above ``splitBytes`` is read by several partitions that share its id, cover it and are about even."""
    whole = shown(kit.read(large))
    with kit.snapshot(large) as snapshot:
        for options in ({"read": "rpc", "splitBytes": 1 << 19}, {**snapshot, "splitBytes": 1 << 19}):
            frame = kit.read(large, endRows="true", **options)
            ends = frame.where("kind = 'end_of_range'").select("region", "cells_read").collect()
            assert len(ends) >= 4
            assert len({end.region for end in ends}) == 1
            assert sum(end.cells_read for end in ends) == 39_800
            assert max(end.cells_read for end in ends) < 3 * 39_800 / len(ends)
            assert shown(frame.where("kind != 'end_of_range'")) == whole


def test_ranges_with_their_own_times(kit: Kit, large: str) -> None:
    """Each range keeps to its rows and its timestamps and answers with its end, also where it is empty."""
    ranges = [
        {"id": "early", "start": b"user00000000".hex(), "stop": b"user00000100".hex(), "from": 0, "to": 1050},
        {"id": "late", "start": b"user00000100".hex(), "stop": b"user00000200".hex(), "from": 1050, "to": 2**63 - 1},
        {"id": "empty", "start": b"v".hex(), "stop": "", "from": 0, "to": 2000},
        {"id": "timeless", "start": "", "stop": "", "from": 70, "to": 70},
    ]
    with kit.snapshot(large) as snapshot:
        for options in ({"read": "rpc"}, snapshot):
            frame = kit.read(large, ranges=json.dumps(ranges), endRows="true", **options)
            counts = {
                (r.region, r.kind): (r.n, r.low, r.high)
                for r in frame.groupBy("region", "kind")
                .agg(F.count("*").alias("n"), F.min("timestamp").alias("low"), F.max("timestamp").alias("high"))
                .collect()
            }
            assert counts == {
                ("early", "put"): (50, 1000, 1000),
                ("late", "put"): (50, 1050, 1050),
                **{(name, "end_of_range"): (1, None, None) for name in ("early", "late", "empty", "timeless")},
            }


def test_time_ranges_leave_files_out(kit: Kit, large: str) -> None:
    """A time range that a file has nothing for is read without it, in both ways of reading."""
    with kit.snapshot(large) as snapshot:
        for options in ({"read": "rpc"}, snapshot):
            frame = kit.read(large, endRows="true", **options)
            read = {
                condition: frame.where(condition).agg(F.sum("cells_read")).first()[0]
                for condition in ("timestamp >= 0", "timestamp >= 1050", "timestamp >= 2000")
            }
            assert read == {"timestamp >= 0": 39_800, "timestamp >= 1050": 19_900, "timestamp >= 2000": 0}


@pytest.mark.turns(2, group="splits and throttles")
def test_splits_change_nothing(kit: Kit, omid: OmidClient) -> None:
    """After a split the daughters' half files, and ranges across their border, are read as before."""
    table = kit.table()
    kit.put(table, [Cell(b"user%04d" % i, b"q", 1000, None if i % 10 == 0 else 1100) for i in range(1000)])
    kit.admin.flush(kit.options, table)
    before = shown(kit.read(table).drop("region"))
    omid.split(table, b"user0300")
    ranges = json.dumps([{"id": "all", "start": "", "stop": ""}])
    with kit.snapshot(table) as snapshot:
        for options in ({"read": "rpc"}, {"read": "rpc", "splitBytes": 1}, snapshot, {**snapshot, "splitBytes": 1}):
            assert shown(kit.read(table, **options).drop("region")) == before
            whole = kit.read(table, ranges=ranges, **options)
            assert shown(whole.drop("region")) == before
            assert whole.rdd.getNumPartitions() >= 2
            assert {r.region for r in whole.select("region").distinct().collect()} == {"all"}


@pytest.mark.parametrize("encoding", ["FAST_DIFF", "PREFIX", "ROW_INDEX_V1"])
def test_encoded_blocks(kit: Kit, encoding: str) -> None:
    """Cells of tables with encoded data blocks, which lie in memory in other ways, are paired alike."""
    table = kit.table(encoding=encoding)
    cells = [
        Cell(b"r%03d" % row, qualifier, timestamp, None if row % 10 == 0 else timestamp + 50, b"x" * (row % 30))
        for row in range(300)
        for qualifier in (b"a", b"c1", b"c10")
        for timestamp in (100, 151, 200)
    ]
    kit.put(table, cells)
    with kit.snapshot(table) as snapshot:
        for options in ({"read": "rpc"}, snapshot):
            rows = kit.read(table, **options).select("row", "qualifier", "timestamp", "commit_ts", "value").collect()
            assert sorted(
                (bytes(r.row), bytes(r.qualifier), r.timestamp, r.commit_ts or 0, bytes(r.value)) for r in rows
            ) == sorted((c.row, c.qualifier, c.timestamp, c.commit or 0, c.value) for c in cells)


def test_samples_stop_early(kit: Kit, large: str) -> None:
    """``rowsPerRange`` stops a partition after that many rows that passed, and still shows its end."""
    frame = kit.read(large, rowsPerRange="7", endRows="true").where("commit_ts IS NULL")
    rows = frame.collect()
    assert [r.kind for r in rows] == ["put"] * 7 + ["end_of_range"]
    assert rows[-1].cells_read < 5000


def test_grouping_by_region_needs_no_shuffle(kit: Kit, large: str) -> None:
    """Partitions report their region, so grouping by region and row moves no data, also with several pieces a
    region.
    """
    frame = kit.read(large, splitBytes=1 << 20).groupBy("region", "row").count()
    kit.spark.conf.set("spark.sql.sources.v2.bucketing.enabled", "true")
    try:
        assert "Exchange" not in plan(frame)
        assert frame.count() == 20_000
    finally:
        kit.spark.conf.unset("spark.sql.sources.v2.bucketing.enabled")


def test_a_join_hands_its_keys_to_the_scan(kit: Kit, mixed: str) -> None:
    """Joined with a small table of starts, the scan shows only versions of those; the result is the join's."""
    starts = kit.spark.createDataFrame([(200,), (600,)], "wanted bigint").where("wanted > 0")
    frame = kit.read(mixed).join(F.broadcast(starts), F.col("start_ts") == F.col("wanted"))
    assert Counter(r.kind for r in frame.collect()) == {"put": 120, "tombstone": 2}
    assert scanned(frame) == 122 + 3, "and the three of unknown form, which are always shown"
    assert scanned(kit.read(mixed).where("kind != 'x'")) == 480 + 4 + 4


@pytest.mark.timeout(300)
def test_a_raw_read_of_younger_cells_gets_past_a_deleted_version_without_qualifier(kit: Kit, omid: OmidClient) -> None:
    """Omid deletes families by a put without qualifier, which a rollback or a cleanup deletes. HBase would seek the put
    below the range from its marker, and spin for good where that lies in a file. Reads of all versions
    do not begin at the marker.
    """
    table = kit.table()
    cell = {"row": b"r", "family": b"f", "qualifier": b"", "timestamp": 100}
    kit.write(table, [{**cell, "op": "put", "value": b""}])
    kit.write(table, [{**cell, "op": "put", "qualifier": b"q", "timestamp": t, "value": b"v"} for t in (100, 200, 300)])
    omid.flush(table)
    kit.write(
        table, [{**cell, "op": "delete_version"}, {**cell, "op": "delete_version", "qualifier": b"q", "timestamp": 300}]
    )
    young = F.col("timestamp") >= 150
    for raw, found in (("true", [(200, "put"), (300, "delete"), (300, "put")]), ("false", [(200, "put")])):
        options = {"raw": raw, "allVersions": str(raw == "false").lower()}
        read = kit.read(table, view="cells", **options).where(young).select("timestamp", "kind")
        assert sorted(tuple(row) for row in read.collect()) == found, options


def test_plain_tables(kit: Kit) -> None:
    """The view ``cells`` shows the latest version of each column; raw, every version and every delete marker."""
    table = kit.table()
    cell = {"op": "put", "row": b"r", "family": b"f", "qualifier": b"q", "value": b"1"}
    kit.write(table, [{**cell, "timestamp": t, "value": str(t).encode()} for t in (10, 20, 30)])
    kit.write(table, [{**cell, "qualifier": b"p", "timestamp": 5}, {**cell, "row": b"s", "timestamp": 7}])
    kit.write(table, [{**cell, "op": "delete_version", "timestamp": 30}])
    kit.write(table, [{**cell, "op": "delete_up_to", "timestamp": 10}])

    def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
        return shown(frame.select("row", "qualifier", "timestamp", "value", "kind"))

    raw = kit.read(table, view="cells", raw="true")
    assert rows(raw.where(F.col("qualifier") == bytearray(b"q")).where(F.col("row") == bytearray(b"r"))) == sorted(
        [
            (b"r", b"q", 30, b"", "delete"),
            (b"r", b"q", 30, b"30", "put"),
            (b"r", b"q", 20, b"20", "put"),
            (b"r", b"q", 10, b"", "delete_column"),
            (b"r", b"q", 10, b"10", "put"),
        ],
        key=repr,
    )
    assert rows(raw.where("timestamp < 8")) == rows(raw.where("kind != 'x'").localCheckpoint().where("timestamp < 8"))
    plain = kit.read(table, view="cells")
    latest = [(b"r", b"p", 5, b"1", "put"), (b"r", b"q", 20, b"20", "put"), (b"s", b"q", 7, b"1", "put")]
    assert rows(plain) == sorted(latest, key=repr)
    with kit.snapshot(table) as snapshot:
        assert rows(kit.read(table, view="cells", **snapshot)) == rows(plain)
    assert rows(plain.where("timestamp < 20")) == sorted(
        [(b"r", b"p", 5, b"1", "put"), (b"s", b"q", 7, b"1", "put")], key=repr
    ), "an upper bound shows no version that is not the latest"
    assert len(rows(plain.where("qualifier IN (X'70')"))) == 1
    assert len(rows(plain.where("row IN (X'73', X'74') AND qualifier = X'71'"))) == 1


def test_the_catalog(kit: Kit, mixed: str) -> None:
    """Tables, regions and HBase snapshots are DataFrames too."""
    tables = {r.table: r for r in kit.read(None, view="tables").collect()}
    assert tables[mixed].enabled
    assert tables[mixed].family == "f"
    assert tables[mixed].family_attributes["VERSIONS"] == str(2**31 - 1)
    assert tables["OMID_COMMIT_TABLE"].coprocessors == []
    assert not any(name.startswith("hbase:") for name in tables)
    regions = kit.read("OMID_COMMIT_TABLE", view="regions").orderBy("start").collect()
    assert len(regions) > 1
    assert bytes(regions[0].start) == b""
    assert bytes(regions[-1].stop) == b""
    assert all(bytes(one.stop) == bytes(other.start) for one, other in itertools.pairwise(regions))
    assert all(r.created > 1_500_000_000_000 and r.server for r in regions)
    with kit.snapshot(mixed) as options:
        (snapshot,) = kit.read(None, view="snapshots").where(F.col("snapshot") == options["snapshot"]).collect()
        assert snapshot.table == mixed
        assert snapshot.created > 1_500_000_000_000


def test_the_driver_is_told_the_catalog_without_a_query(kit: Kit, mixed: str, connector: Store) -> None:
    """The same rows, column for column, bytes in hex; an unknown table by its name."""

    def texts(rows: Iterable[dict[str, Any]]) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True, default=lambda value: bytes(value).hex()) for row in rows)

    with kit.snapshot(mixed):
        for view, table in (("tables", None), ("regions", "OMID_COMMIT_TABLE"), ("snapshots", None)):
            told = [vars(row) for row in connector._listed(view, *([table] if table else []))]
            assert texts(told) == texts(row.asDict() for row in kit.read(table, view=view).collect()), view
            assert told
    with pytest.raises(TableError, match="unknown table nowhere"):
        connector.regions("nowhere")


def test_regions_of_several_tables_are_listed_at_once(
    mixed: str, connector: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each as it is by itself; one that is not there costs the others nothing, and is named when it is asked for."""
    alone = {table: connector.regions(table) for table in (mixed, "OMID_COMMIT_TABLE")}
    regions_of = connector.regions_of([mixed, "nowhere", "OMID_COMMIT_TABLE"])
    with pytest.raises(TableError, match="unknown table nowhere"):
        regions_of("nowhere")
    monkeypatch.setattr(connector, "_listed", lambda *_: pytest.fail("it was listed again"))
    assert {table: regions_of(table) for table in alone} == alone


def test_tables_that_are_read_together_show_what_each_shows(kit: Kit, mixed: str, large: str, omid: OmidClient) -> None:
    """Of each its families and ranges, its regions to their ends, and nothing of another; large ones in pieces."""
    split, empty = kit.table(), kit.table("g")
    kit.put(split, [Cell(b"user%04d" % i, b"q", 1000, 1100) for i in range(100)])
    kit.admin.flush(kit.options, split)
    omid.split(split, b"user0030")
    ranges = [{"id": "some", "start": b"r03".hex(), "stop": b"r07".hex(), "from": 150, "to": 400}]
    asked: list[dict[str, Any]] = [
        {"table": mixed, "families": ["f"], "ranges": ranges},
        {"table": split},
        {"table": empty, "families": ["g", "not there"]},
        {"table": large, "families": ["f"]},
    ]
    options = {"endRows": "true", "splitBytes": str(1 << 19)}
    together = kit.read(None, tables=json.dumps(asked), **options)
    alone = [kit.read(mixed, ranges=json.dumps(ranges), **options)]
    alone += [kit.read(table, **options) for table in (split, empty, large)]
    values = shown(together)
    assert values == sorted((row for frame in alone for row in shown(frame)), key=repr)
    assert together.rdd.getNumPartitions() > 3, "the large one is shared out"
    small = kit.read(None, tables=json.dumps(asked[:3]), endRows="true")
    assert small.rdd.getNumPartitions() == 1, "small ones are read by one task"
    each = [kit.read(mixed, ranges=json.dumps(ranges), endRows="true")]
    each += [kit.read(table, endRows="true") for table in (split, empty)]
    assert shown(small) == sorted((row for frame in each for row in shown(frame)), key=repr)
    counts = {r.table: r.n for r in together.groupBy("table").agg(F.count("*").alias("n")).collect()}
    assert counts == {r.table: r["count"] for frame in alone for r in frame.groupBy("table").count().collect()}
    some = together.where("timestamp >= 200 and kind != 'end_of_range' and commit_ts is null")
    assert shown(some) == [row for row in values if row[4] is not None and row[4] >= 200 and row[6] is None]


def test_of_tables_that_are_read_together_one_that_cannot_be_read_is_named(
    kit: Kit, mixed: str, omid: OmidClient
) -> None:
    """A table that is disabled, or not there, fails the read with its name: nobody takes it for an empty one."""
    disabled = kit.table()
    omid.disable(disabled)
    for name, why in (("nowhere", "Unknown table: nowhere"), (disabled, f"Table {disabled} is disabled")):
        with pytest.raises(IllegalArgumentException, match=why):
            kit.read(None, tables=json.dumps([{"table": mixed}, {"table": name}])).count()


def test_snapshots_leave_nothing_behind(kit: Kit, mixed: str, stack: Stack) -> None:
    """After the scratch folder was dropped there is no trace of the read on the file system, and no HBase snapshot."""
    with kit.snapshot(mixed) as options:
        folder = Path(urlparse(options["restoreDir"]).path)
        frame = kit.read(mixed, **options)
        assert frame.count() > 0
        assert frame.count() == kit.read(mixed).count()
        assert len(list(folder.iterdir())) == 1, "restored once, read twice"
        threads = kit.region_threads()
        for _ in range(3):
            kit.read(mixed, **options).count()
        assert kit.region_threads() <= threads, "regions are closed with all they started"
    assert not folder.exists()
    assert kit.read(None, view="snapshots").where(F.col("snapshot") == options["snapshot"]).count() == 0


def test_large_values_are_read_from_an_hbase_snapshot(kit: Kit, omid: OmidClient) -> None:
    """Values that lie in a table's MOB files are read from its HBase snapshots too, also when the table is gone;
    HBase's own folder of them gets nothing new. One whose file is lost fails the read.
    """
    table = kit.table()
    omid.set(table, families={"IS_MOB": "true", "MOB_THRESHOLD": "100"})
    cells = [
        Cell(b"r%02d" % row, qualifier, start, start + 1, bytes([row]) * length)
        for row in range(20)
        for qualifier, length in ((b"large", 1000), (b"small", 100), (b"tombstone", 0))
        for start in (10, 20)
    ]
    expected = sorted((c.row, c.qualifier, c.timestamp, c.commit, c.value) for c in cells)
    home = Path(urlparse(kit.options["hbase.rootdir"]).path)

    def read(**options: str) -> list[tuple[Any, ...]]:
        return shown(kit.read(table, **options).select("row", "qualifier", "timestamp", "commit_ts", "value"))

    def large(folder: str) -> list[Path]:
        return [p for p in (home / folder).rglob("*") if p.is_file() and table in p.parts and p.suffix != ".crc"]

    kit.put(table, cells[: len(cells) // 2])
    omid.flush(table)
    kit.put(table, cells[len(cells) // 2 :])
    assert read() == expected
    with kit.snapshot(table) as options:
        files = large("mobdir")
        assert len(files) == 2, "the test is of nothing else"
        assert read(**options) == expected
        assert shown(kit.read(table, splitBytes="1000", **options)) == shown(kit.read(table))
        assert large("mobdir") == files
        omid.drop(table)
        assert read(**options) == expected
        gone = [file for file in large("archive") if file.name in {each.name for each in files}]
        assert len(gone) == 2
        gone[0].unlink()
        with pytest.raises(Exception, match=gone[0].name):
            read(**options)


def test_errors_name_the_thing_and_the_remedy(kit: Kit, mixed: str) -> None:
    """What cannot be read is refused with its name and what to do."""
    with pytest.raises(IllegalArgumentException, match="Unknown table: nowhere"):
        kit.read("nowhere")
    with pytest.raises(IllegalArgumentException, match="Unknown option: tabel = x"):
        kit.read(mixed, tabel="x")
    with pytest.raises(IllegalArgumentException, match="Option table is missing"):
        kit.read(None)
    with pytest.raises(IllegalArgumentException, match=r"Unknown HBase snapshot: never.*createSnapshot"):
        kit.read(mixed, read="snapshot", snapshot="never", restoreDir="file:///nowhere").count()
    with kit.snapshot(mixed) as options:
        inside = kit.options["hbase.rootdir"] + "/restored"
        with pytest.raises(IllegalArgumentException, match=r"restoreDir.*lies in HBase's root"):
            kit.read(mixed, **{**options, "restoreDir": inside}).count()
        with pytest.raises(IllegalArgumentException, match=f"is of table {mixed}, not of OMID_COMMIT_TABLE"):
            kit.read("OMID_COMMIT_TABLE", **options).count()
        without_root = {k: v for k, v in kit.options.items() if k != "hbase.rootdir"}
        reader = kit.spark.read.format("lowtide").options(**without_root).options(table=mixed, **options)
        with pytest.raises(IllegalArgumentException, match=r"Option hbase\.rootdir is missing"):
            reader.load().count()


def test_a_sample_is_of_rows_however_wide(kit: Kit) -> None:
    """So many rows of each region, all their cells; of rows that are very wide no more than a hundred cells a row on
    the average.
    """
    table = kit.table()
    widths = {b"a": 150, b"b": 10, b"c": 10, b"d": 500}
    kit.put(table, [Cell(row, b"q%03d" % n, 100) for row, width in widths.items() for n in range(width)])

    def sampled(rows: int) -> dict[bytes, int]:
        found = kit.read(table, view="versions", rowsPerRange=str(rows)).groupBy("row").count()
        return {bytes(r.row): r["count"] for r in found.collect()}

    assert sampled(2) == {b"a": 150, b"b": 10}
    assert sampled(1) == {b"a": 100}
    assert sampled(4) == {b"a": 150, b"b": 10, b"c": 10, b"d": 230}
    assert sampled(5) == {b"a": 150, b"b": 10, b"c": 10, b"d": 330}
    assert sampled(0) == widths
