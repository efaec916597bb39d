"""Reading a table at a read point: what Omid's client shows, refused where history is gone, and holds for the time of
a read.
"""

from __future__ import annotations

import json
import os
import random
import re
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from conftest import Outcome
from connector_kit import Kit
from lowtide_spark.run.context import Run
from pyspark.sql import DataFrame, SparkSession
from scene import Scene
from typer.testing import CliRunner

from lowtide import paths
from lowtide.cli.app import app
from lowtide.config import CONFIG_VARIABLE, Config, load
from lowtide.errors import HistoryError
from lowtide.history.holding import read_options, release, take
from lowtide.history.mark import at_most
from lowtide.lab.stack import Stack
from lowtide.lab.workload import CRASH_POINTS, OmidClient, Shape, run
from lowtide.sources import site
from lowtide.store.gateway import connect
from lowtide.store.rows import FORMAT
from lowtide.store.state import StateStore
from lowtide.values.clock import WorldClock
from lowtide.values.formats import encode_long
from tests import seeds, warm
from tests.spark.histories import is_bare, random_history
from tests.spark.omid_reader import EndlessError, Key, is_shadow, read, shadow

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]
Read = Callable[..., DataFrame]


@pytest.fixture
def config(configure: Callable[..., Path]) -> Config:
    """A configuration that keeps no history by age."""
    return load(configure(defaults={"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}))


@pytest.fixture
def as_of(spark: SparkSession, config: Config) -> Read:
    """A table at a read point, through the data source."""

    def read(table: str, at: object, **options: str) -> DataFrame:
        reader = spark.read.format("lowtide").options(**config.hbase.client_properties()).options(**options)
        return reader.option("table", table).option("asOf", str(at)).load()

    return read


@pytest.fixture
def collected(job: Job, recorded: Callable[..., int], configure: Callable[..., Path]) -> Callable[[str], int]:
    """Remove a clean table's history; the mark."""

    def start(table: str) -> int:
        recorded(table)
        path = configure(defaults={"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}})
        outcome = job("history_gc", "--table", table, "--execute", config=path)
        assert outcome.code == 0, outcome.problems
        return int(outcome.table(table)["mark"]["applied"])

    return start


def cells(frame: DataFrame) -> dict[tuple[bytes, bytes, bytes], bytes]:
    """As the Omid client gives them."""
    return {(bytes(r.row), bytes(r.family), bytes(r.qualifier)): bytes(r.value) for r in frame.collect()}


@seeds.each("a workload as of snapshots", always=[3])
def test_shows_what_omids_client_shows(
    as_of: Read, stack: Stack, job: Job, omid: OmidClient, tmp_path: Path, collected: Callable[[str], int], seed: int
) -> None:
    """At every read point, before anything was cleaned (commit entries without shadow cells, orphans, deletes of all
    kinds) and after history was removed: the same cells, from the region servers and from files, and nothing is
    written. Before the mark: refused, by name.
    """
    # A torn transaction (crash point 10) shows in part, and in which part depends on what the client happens to read
    # together.
    points = tuple(point for point in CRASH_POINTS if point != 10)
    shape = Shape(tables=("orders",), rows=15, conflict_free=0.2, family_deletes=0.06, crash_points=points)
    try:
        result = run(
            stack, seed=seed, transactions=400, out=tmp_path / "history", shape=shape, omid=omid, kills=1, halts=1
        )
        stamps = result.model.read_timestamps(200, upto=omid.watermark() - 1)
        assert len(stamps) > 150
        before = omid.raw("orders")
        for snapshot in [*stamps[:: len(stamps) // 15], omid.watermark()]:
            assert cells(as_of("orders", snapshot)) == omid.read("orders", snapshot), snapshot
        assert cells(as_of("orders", "latest")) == omid.read("orders", omid.watermark())
        assert omid.raw("orders") == before
        for snapshot in [*stamps[:: len(stamps) // 5], omid.watermark()]:
            assert cells(as_of("orders", snapshot, read="snapshot")) == omid.read("orders", snapshot), snapshot
        cleaned = job("orphan_cleanup", "--table", "orders", "--full", "--execute")
        assert (cleaned.code, cleaned.totals["deleted"] > 0, cleaned.totals["healed"] > 0) == (0, True, True)
        pruned = job("commit_table_pruning", "--grace", "0s", "--execute")
        assert pruned.totals["pruned"] > 0
        mark = collected("orders")
        for snapshot in (mark, omid.watermark()):
            for way in ("rpc", "snapshot"):
                assert cells(as_of("orders", snapshot, read=way)) == omid.read("orders", snapshot)
        early = stamps[len(stamps) // 2]
        with pytest.raises(
            Exception, match=f"read point {early} of orders lies {mark - early} before .* mark {mark}.*history_max_age"
        ):
            as_of("orders", early).collect()
    finally:
        omid.drop("orders")


def test_the_embedded_stores_files_are_read_without_a_setting(
    spark: SparkSession, scene: Scene, stack: Stack, omid: OmidClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where no configuration names another store, its root folder is known: with the options that pages show, its HBase
    snapshots can be read.
    """
    table, snapshot = _two_regions(scene)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "store", lambda: stack.config.home)
    for name in (CONFIG_VARIABLE, *site.VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(
        "LOWTIDE_HBASE__ZOOKEEPER_PORT", str(stack.config.zookeeper_port)
    )  # tests have ports of their own
    reader = spark.read.format("lowtide").options(**read_options(load(), table)).option("table", table)
    frame = reader.option("read", "snapshot").option("asOf", str(snapshot)).load()
    assert cells(frame) == omid.read(table, snapshot) != {}


def _two_regions(scene: Scene, lasting: tuple[bytes, ...] = ()) -> tuple[str, int]:
    """A table of two regions, and a read point at which both rows show what is replaced after it; rows *lasting* are
    not.
    """
    table = scene.table(splits=(b"m",))
    for row in (b"a", b"z"):
        scene.committed(table, row=row, value=b"then")
    for row in lasting:
        scene.committed(table, row=row, value=b"always")
    snapshot = scene.omid.begin()
    for row in (b"a", b"z"):
        scene.committed(table, row=row, value=b"now")
    scene.omid.advance_watermark()
    return table, snapshot


def test_a_read_that_is_overtaken_fails(as_of: Read, scene: Scene, collected: Callable[[str], int]) -> None:
    """A scan opened before a run of history GC and finished after it ends in an error, never in fewer rows."""
    table, snapshot = _two_regions(scene)
    rows = as_of(table, snapshot).toLocalIterator()
    assert bytes(next(rows).value) == b"then"
    collected(table)
    with pytest.raises(Exception, match="overtaken this read"):
        list(rows)


def test_a_read_that_ends_early_is_overtaken_too(as_of: Read, scene: Scene, collected: Callable[[str], int]) -> None:
    """Where only the first rows are asked for, a read that was planned before a run and begun after it ends in an error
    as well: the first row that is left is another one."""
    table, snapshot = _two_regions(scene, lasting=(b"c", b"zz"))  # whichever region Spark reads first
    first = as_of(table, snapshot).limit(1)
    _plan(first)
    collected(table)
    with pytest.raises(Exception, match="overtaken this read"):
        first.collect()


def _plan(frame: DataFrame) -> None:
    """Have Spark cut it into tasks, as it does when it is first asked for rows."""
    jvm_frame: Any = frame._jdf
    jvm_frame.queryExecution().toRdd().getNumPartitions()


@pytest.mark.parametrize(
    ("way", "hold", "end"),
    [
        ("made anew", "true", "last"),
        ("made anew", "false", "early"),
        ("restored", "false", "last"),
        ("restored", "true", "early"),
    ],
)
def test_a_read_of_a_table_that_becomes_another_fails(
    as_of: Read, scene: Scene, state: StateStore, way: str, hold: str, end: str
) -> None:
    """Mark, hold and rows are found by the table's name: where that stands for another table by now, or for what it was
    once, the read ends in an error and not in the rows of that one, also where it had read some before and whatever it
    holds."""
    state.create()
    table, snapshot = _two_regions(scene)
    if way == "restored":
        name = f"of-{table}"
        scene.omid.snapshot(table, name)
    frame = as_of(table, snapshot, hold=hold) if end == "last" else as_of(table, snapshot, hold=hold).limit(1)
    if end == "last":
        rows = frame.toLocalIterator()
        assert bytes(next(rows).value) == b"then"
    else:
        _plan(frame)
    if way == "restored":
        scene.omid.restore(name)
        scene.omid.delete_snapshot(name)
    else:
        scene.omid.drop(table)
        scene.omid.create(table, ("a",), splits=(b"m",))
        for row in (b"a", b"z"):
            scene.cell(table, snapshot - 100, row=row, value=b"of another")
            scene.shadow(table, snapshot - 100, snapshot - 50, row=row)
    with pytest.raises(Exception, match=f"{table} was made anew, restored, or disabled and enabled since"):
        list(rows) if end == "last" else frame.collect()
    there = b"then" if way == "restored" else b"of another"
    assert [bytes(r.value) for r in as_of(table, snapshot).collect()] == [there] * 2


def test_files_of_a_table_that_was_made_anew_are_not_read(
    scene: Scene, spark: SparkSession, config: Config, read_snapshots: Callable[[str], list[str]]
) -> None:
    """The HBase snapshot too is made by the table's name, after the first look. No read can be stopped there from
    outside, so its two steps are taken one by one: the second fails if the table was made anew after the first, and
    leaves nothing behind."""
    jvm: Any = spark._jvm

    def called(name: str, method: str | None, *given: object) -> Any:
        kind = jvm.java.lang.Class.forName(f"lowtide.connector.{name}")
        members = kind.getDeclaredConstructors() if method is None else kind.getDeclaredMethods()
        member = next(m for m in members if method in (None, m.getName()))
        member.setAccessible(True)
        arguments = jvm.java.util.ArrayList()
        for each in given:
            arguments.add(each)
        return member.newInstance(arguments.toArray()) if method is None else member.invoke(None, arguments.toArray())

    table, snapshot = _two_regions(scene)
    read = {"table": table, "asOf": str(snapshot), "read": "snapshot"}
    options = called("Options", None, {**config.hbase.client_properties(), **read})
    as_of = called("AsOf", "of", options)
    called("TemporaryHBaseSnapshot", "take", options, as_of, jvm.java.lang.Object())
    _until(lambda: not read_snapshots(table))
    scene.omid.truncate(table)
    with pytest.raises(Exception, match=f"{table} was made anew, restored, or disabled and enabled since"):
        called("TemporaryHBaseSnapshot", "take", options, as_of, jvm.java.lang.Object())
    assert read_snapshots(table) == []


def test_a_read_goes_on_while_regions_split(as_of: Read, scene: Scene) -> None:
    """All regions are newer than the read then, and the table still the same."""
    table, snapshot = _two_regions(scene)
    rows = as_of(table, snapshot).toLocalIterator()
    assert bytes(next(rows).value) == b"then"
    scene.omid.flush(table)
    for row in (b"f", b"p"):
        scene.omid.split(table, row)
    assert [r.start for r in scene.omid.regions(table)] == [b"", b"f", b"m", b"p"]
    assert [bytes(r.value) for r in rows] == [b"then"]


def test_a_table_with_a_gap_between_its_regions_is_not_read(as_of: Read, scene: Scene, config: Config) -> None:
    """A region that hbase:meta does not list would be missing from the rows without a word: the table and the place are
    named.
    """
    table, snapshot = _two_regions(scene)
    with connect(config.hbase.thrift) as connection:
        meta = connection.table("hbase:meta")
        [(name, cells)] = meta.scan(row_prefix=f"{table},m,".encode())
        meta.delete(name)
        try:
            with pytest.raises(Exception, match=f"regions of table {table} leave a gap .* behind row m .* table's end"):
                as_of(table, snapshot).collect()
        finally:
            meta.put(name, cells)
    assert len(as_of(table, snapshot).collect()) == 2


def test_the_commit_table_is_read_before_the_data(
    as_of: Read, scene: Scene, omid: OmidClient, read_snapshots: Callable[[str], list[str]]
) -> None:
    """A transaction may complete at any moment: its shadow cells come, then its commit entry goes. One whose shadow
    cell is not among the data shows by its entry, because that was looked for before: of the live table, and where the
    entry goes before the HBase snapshot stands."""
    table = scene.table()
    start, commit = scene.crashed_after_commit(table, value=b"committed")
    snapshot = omid.begin()
    omid.advance_watermark()
    live = as_of(table, snapshot)
    _plan(live)
    for _ in range(5):
        shown = list[bytes]()
        frame = as_of(table, snapshot, read="snapshot")
        reader = threading.Thread(target=lambda frame=frame, shown=shown: shown.extend(_values(frame)))
        reader.start()
        try:
            while not read_snapshots(table):  # the folder comes first, a second before the HBase snapshot stands
                assert reader.is_alive()
            omid.delete_commit_entry(start)
            in_time = len(read_snapshots(table)) == 1
        finally:
            reader.join()
        assert shown == [b"committed"]
        if in_time:
            break
        # The HBase snapshot stood by then, so nothing was tried.
        del frame
        _until(lambda: not read_snapshots(table))
        omid.add_commit_entry(start, commit)
    assert in_time, "the entry went too late every time"
    assert cells(live) == {(b"r", b"a", b"q"): b"committed"}
    assert cells(as_of(table, snapshot)) == {}, "without its entry nothing says that it was committed"


def _values(frame: DataFrame) -> list[bytes]:
    return [bytes(r.value) for r in frame.collect()]


def test_every_read_point_before_the_mark_is_refused(
    as_of: Read, scene: Scene, collected: Callable[[str], int]
) -> None:
    """The mark itself is read, and what is after it; of what is before it not one read point, however near or far."""
    table, snapshot = _two_regions(scene)
    mark = collected(table)
    for at in (mark, mark + 1):
        assert {value for value in cells(as_of(table, at)).values()} == {b"now"}
    for at in (mark - 1, mark - 49, mark - 50, mark - 51, snapshot + 1, snapshot, snapshot - 50, 50, 1, 0):
        for options in ({}, {"read": "snapshot"}, {"hold": "true"}):
            with pytest.raises(Exception, match=f"The read point {at} of {table} lies {mark - at} before"):
                as_of(table, at, **options).collect()


def _another_store(scene: Scene, watermark: int) -> dict[str, str]:
    """Options of an empty commit table with a low watermark of its own, beside which nothing was ever pruned."""
    table = scene.table(families=("F", "LWF"))
    scene.omid.put(table, b"LOW_WATERMARK", b"LWF", b"LWC", 1, encode_long(watermark))
    return {"commitTable": table, "stateTable": scene.table(families=("s",)), "journalTable": f"{table}_pruned"}


@seeds.each("random rows as of snapshots", always=[7])
def test_family_tombstones_beside_puts_without_qualifier_are_read_as_the_client_reads_them(
    as_of: Read, scene: Scene, spark: SparkSession, stack: Stack, seed: int
) -> None:
    """What a family tombstone hides hangs on the puts without qualifier above it, and on who sees them: in random rows
    of every shape, at read points all along, the cells are those of the client's model."""
    source, rows = random.Random(seed), dict[bytes, dict[Key, bytes]]()
    while len(rows) < 200:
        row = random_history(source, lambda beat: 50 * beat, 30).cells
        shadows = {k.timestamp for k in row if is_shadow(k.qualifier)}
        # Of a torn transaction the client shows what it happens to read together.
        torn = any(k.timestamp in shadows and not is_shadow(k.qualifier) and shadow(k) not in row for k in row)
        if not torn and (
            len(rows) < 40 or any(is_bare(row, k.family) and not v and not k.qualifier for k, v in row.items())
        ):
            rows[b"%04d" % len(rows)] = row
    table, other = scene.table(families=("f", "g")), _another_store(scene, 5000)
    puts = [
        {"op": "put", "row": name, "family": k.family, "qualifier": k.qualifier, "timestamp": k.timestamp, "value": v}
        for name, row in rows.items()
        for k, v in row.items()
    ]
    assert {each["failed"] for each in Kit(spark, stack).write(table, puts)} == {0}
    compared = 0
    for snapshot in range(200, 3000, 350):
        shown, wanted = cells(as_of(table, snapshot, **other)), dict[tuple[bytes, bytes, bytes], bytes]()
        for name, row in rows.items():
            try:
                wanted |= {(name, *place): value for place, value in read(row, snapshot).items()}
                compared += 1
            except EndlessError:
                shown = {place: value for place, value in shown.items() if place[0] != name}
        assert shown == wanted, snapshot
        assert len(wanted) > 20, snapshot
    assert compared > 1000, "few of these rows can be read at all"


def test_rows_that_are_no_text_are_not_mixed_up(as_of: Read, scene: Scene, omid: OmidClient) -> None:
    """Omid's scanner takes rows whose keys are no UTF-8 for one another, and hides one's cells under another's family
    tombstone; its Get and this read do not.
    """
    table = scene.table()
    scene.committed(table, row=b"\x81")
    scene.committed(table, row=b"\x80", qualifier=b"", value=b"")
    snapshot = omid.advance_watermark()
    wanted = {(b"\x81", b"a", b"q"): b"v"}
    assert cells(as_of(table, snapshot)) == wanted
    assert omid.count(table, snapshot) == 0, (
        "Omid's scanner tells rows apart now: let the tests' client scan them again"
    )
    assert omid.read(table, snapshot) == wanted


def test_milliseconds_are_no_timestamps_of_an_oracle_on_the_worlds_clock(as_of: Read, scene: Scene) -> None:
    """They would be a read point of 1970, which shows nothing: refused, with the time that was meant."""
    table, other = scene.table(), _another_store(scene, 1_790_000_000_000_000_000)
    with pytest.raises(Exception, match=r"asOf = 1700000000000 is no timestamp of this oracle.*2023-11-14T22:13:20Z"):
        as_of(table, 1_700_000_000_000, **other).collect()
    assert as_of(table, 1_700_000_000_000_000_000, **other).collect() == []


def test_records_of_a_newer_lowtide_are_not_read(as_of: Read, scene: Scene) -> None:
    """A mark that is not understood would be a mark that is not seen; a format that this version writes is known to its
    connector.
    """
    table, other = scene.table(), _another_store(scene, 5000)
    for number in (FORMAT, FORMAT + 1):
        scene.omid.put(other["stateTable"], b"format", b"s", b"value", number, json.dumps({"format": number}).encode())
        if number == FORMAT:
            assert as_of(table, 5000, **other).collect() == []
    with pytest.raises(Exception, match=f"have format {FORMAT + 1}, written by a newer Lowtide"):
        as_of(table, 5000, **other).collect()


def test_where_omids_compactor_runs_nothing_is_read_at_a_read_point(
    as_of: Read, scene: Scene, omid: OmidClient, state: StateStore, config: Config
) -> None:
    """It keeps the version that began last below the low watermark, though a reader there sees the one before:
    refused by name, also where the compactor came while the read went on. So is a mark that cannot be understood."""
    table, snapshot = _two_regions(scene)
    rows = as_of(table, snapshot).toLocalIterator()
    assert bytes(next(rows).value) == b"then"
    omid.attach_omid_compactor(table)
    for go_on in (lambda: list(rows), as_of(table, snapshot).collect, as_of(table, "latest").collect):
        with pytest.raises(Exception, match="cannot be read with asOf: Omid's own compactor"):
            go_on()
    omid.detach_omid_compactor(table)
    assert len(as_of(table, snapshot).collect()) == 2
    state.create()
    with connect(config.hbase.thrift) as connection:
        records, row = connection.table(config.state.table), f"history/{table}".encode()
        records.put(row, {b"s:mark": b'{"mark": "soon"}'})
        try:
            with pytest.raises(Exception, match="cannot be understood"):
                as_of(table, snapshot).collect()
        finally:
            records.delete(row)


def test_what_omids_compactor_may_have_removed_is_refused_after_it_is_gone(
    as_of: Read,
    job: Job,
    scene: Scene,
    omid: OmidClient,
    config: Config,
    state: StateStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A table that was listed with it is refused until it is listed without; then its mark lies behind all that it may
    have removed. An oracle that counts has no timestamp for that: there the table stays refused, and cannot be held."""
    table, snapshot = _two_regions(scene)
    omid.attach_omid_compactor(table)
    assert job("watermark_collection", "--execute").code == 0
    omid.compact(table, major=True)
    omid.detach_omid_compactor(table)
    for _ in range(2):
        for asked in (snapshot, "latest"):
            with pytest.raises(Exception, match="was on it when Lowtide listed it last"):
                as_of(table, asked).collect()
        assert job("watermark_collection", "--execute").code == 0
    with pytest.raises(HistoryError, match="cannot be held"):
        take(config, table, snapshot, owner="test", reason="too late", lasting=timedelta(hours=1))
    # As if the clock were the world's: what was given out until now is known.
    omid.advance_watermark()
    now = omid.begin()
    monkeypatch.setattr(Run, "world_clock", True)
    monkeypatch.setattr(WorldClock, "timestamp", lambda *_: now)
    assert job("watermark_collection", "--execute").code == 0
    monkeypatch.undo()
    assert state.history(table).applied == at_most(now)
    with pytest.raises(Exception, match="before its ancient history mark"):
        as_of(table, snapshot).collect()
    _, commit = scene.committed(table, row=b"later", value=b"now")
    omid.advance_watermark()
    assert cells(as_of(table, commit + 1)) == omid.read(table, commit + 1)


def test_one_dataframe_has_one_read_point(
    as_of: Read,
    scene: Scene,
    omid: OmidClient,
    collected: Callable[[str], int],
    state: StateStore,
    read_snapshots: Callable[[str], list[str]],
) -> None:
    """Whatever is asked of it, again and again, comes from the read point of its first use, as long as it is
    referenced; and so it is held.
    """
    table, _ = _two_regions(scene)
    omid.drop("LOWTIDE_STATE")
    with pytest.raises(Exception, match="there is no table LOWTIDE_STATE to take the hold in"):
        as_of(table, "latest", hold="true").count()
    state.create()
    plain, held, files = (
        as_of(table, "latest"),
        as_of(table, "latest", hold="true"),
        as_of(table, "latest", read="snapshot"),
    )
    frames = (plain, held, files)
    assert [f.count() for f in frames] == [2, 2, 2]
    [hold] = state.holds(table)
    scene.committed(table, row=b"zz")
    omid.advance_watermark()
    warm.collect_garbage(SparkSession.getActiveSession())
    assert [f.selectExpr("count(*)").first()[0] for f in frames] == [2, 2, 2]
    assert held.join(held, "row").count() == 2
    assert as_of(table, "latest").count() == 3
    assert state.holds(table) == [hold]
    assert len(read_snapshots(table)) == 2  # the HBase snapshot and its folder
    assert collected(table) == at_most(hold.timestamp)
    del held, frames
    _until(lambda: not state.holds(table))
    scene.committed(table, row=b"b")
    scene.committed(table, row=b"b")
    assert collected(table) > hold.timestamp
    with pytest.raises(Exception, match="overtaken this read"):
        plain.count()
    assert files.count() == 2


def test_tables_without_transactions_are_refused(as_of: Read, scene: Scene, omid: OmidClient, config: Config) -> None:
    """Nothing of them was ever committed, so they would be shown as empty: a plain table, and the tables of the oracle
    and of Lowtide.
    """
    plain = scene.table(omid_enabled=False)
    omid.put(plain, b"r", b"a", b"q", 100, b"v")
    for table in (plain, config.omid.commit_table):
        with pytest.raises(Exception, match=f"Table {table} cannot be read with asOf: it bears no mark of Omid"):
            as_of(table, "latest").collect()


def test_a_family_that_does_not_keep_all_versions_is_refused(as_of: Read, scene: Scene) -> None:
    """HBase keeps from readers what a read point shows: the family is named with the statement that mends it, live and
    from files.
    """
    table = scene.table(("f", "g"), versions=3)
    scene.committed(table, family=b"f")
    at = scene.omid.advance_watermark()
    mended = re.escape(f"alter '{table}', {{NAME => 'f', VERSIONS => 2147483647}}")
    for options in ({}, {"read": "snapshot"}):
        with pytest.raises(Exception, match=f"its family f has VERSIONS => 3.*{mended}"):
            as_of(table, at, **options).collect()


@pytest.mark.parametrize(
    ("setting", "value", "mended"),
    [
        ("KEEP_DELETED_CELLS", "TRUE", "'FALSE'"),
        ("NEW_VERSION_BEHAVIOR", "true", "'false'"),
    ],
)
def test_a_family_whose_settings_hide_cells_is_refused(
    as_of: Read, scene: Scene, setting: str, value: str, mended: str
) -> None:
    """As for every job; with the statement that mends it done, it is read."""
    table = scene.table()
    scene.committed(table)
    at = scene.omid.advance_watermark()
    scene.omid.set(table, families={setting: value})
    with pytest.raises(Exception, match=f"its family a has {setting} => .*NAME => 'a', {setting} => {mended}"):
        as_of(table, at).collect()
    scene.omid.set(table, families={setting: mended.strip("'")})
    assert len(as_of(table, at).collect()) == 1


@pytest.mark.parametrize("overwritten", [False, True], ids=["written-once", "overwritten-since"])
def test_a_family_that_nothing_marks_is_refused_where_transactions_write_it(
    as_of: Read, scene: Scene, job: Job, overwritten: bool
) -> None:
    """Omid's client writes it like those that bear its flag. As long as it holds no transaction's cell, the others are
    read; then they are when they alone are asked for, also where what the read point would show of it is gone; and
    nothing, once a collection has seen its shadow cells.
    """
    table = scene.table(("b",), omid_enabled=False, versions=1)
    scene.omid.add_family(table, "a")
    scene.omid.put(table, b"r", b"b", b"q", scene.omid.begin(), b"plain")
    scene.committed(table)
    before = scene.omid.advance_watermark()
    assert [bytes(r.family) for r in as_of(table, before).collect()] == [b"a"]
    scene.committed(table, family=b"b")
    at = scene.omid.advance_watermark()
    if overwritten:
        scene.committed(table, family=b"b", value=b"later")
        scene.omid.flush(table)  # and HBase keeps that alone
        scene.omid.advance_watermark()
    refused = f"{table} cannot be read with asOf: its family b has VERSIONS => 1"
    with pytest.raises(Exception, match=refused):
        as_of(table, at).collect()
    assert len(as_of(table, at).where("family = X'61'").collect()) == 1
    assert job("watermark_collection", "--execute").code == 0
    with pytest.raises(Exception, match=f"{refused}.*2147483647}}"):
        as_of(table, before).collect()


def test_beside_an_oracle_in_low_latency_mode_nothing_is_read_at_a_read_point(
    as_of: Read, scene: Scene, config: Config
) -> None:
    """Its clients write their commit entries when they like, below the low watermark too: a second read could show
    more. The configuration hands it over.
    """
    table = scene.table()
    scene.committed(table)
    at = scene.omid.advance_watermark()
    slow = config.model_copy(update={"omid": config.omid.model_copy(update={"low_latency": True})})
    told = read_options(slow)
    with pytest.raises(Exception, match=f"Table {table} cannot be read with asOf: the oracle runs in low-latency mode"):
        as_of(table, at, lowLatency=told["lowLatency"]).collect()
    assert "lowLatency" not in read_options(config)
    assert len(as_of(table, at).collect()) == 1


@pytest.mark.turns(2)
@pytest.mark.parametrize("source", ["kept", "dropped"])
def test_a_clone_gives_no_more_than_its_source_had(
    as_of: Read,
    scene: Scene,
    job: Job,
    collected: Callable[[str], int],
    snapshot: Callable[[str], str],
    config: Config,
    configure: Callable[..., Path],
    source: str,
) -> None:
    """What history GC removed before the HBase snapshot was made is missing in the clone as well, under whatever name:
    an earlier read point is refused there, and a hold, before it is listed, when it is in doubt, when it is confirmed,
    and when that is forgotten. Later ones are read.
    """
    table, early = _two_regions(scene)
    mark = collected(table)
    assert job("watermark_collection", "--execute").code == 0
    copy = f"{table}copy"
    scene.omid.clone(snapshot(table), copy)
    scene.tables.append(copy)
    if source == "dropped":
        scene.omid.drop(table)

    def refused() -> None:
        said = f"{early} of {copy} lies {mark - early} before .*{mark}"
        with pytest.raises(Exception, match=said):
            as_of(copy, early).collect()
        with pytest.raises(HistoryError, match=said):
            take(config, copy, early, owner="test", reason="later", lasting=timedelta(hours=1))

    refused()
    assert job("watermark_collection", "--execute").code == 0
    refused()
    confirmed = CliRunner().invoke(app, ["confirm", copy, "--yes", "--config", str(configure())])
    assert confirmed.exit_code == 0, confirmed.output
    refused()
    for _ in range(2):
        assert job("watermark_collection", "--execute").code == 0
    refused()
    assert {bytes(r.value) for r in as_of(copy, mark).collect()} == {b"now"}


def test_a_clone_that_the_configuration_calls_transactional_gives_no_more_either(
    as_of: Read,
    scene: Scene,
    job: Job,
    collected: Callable[[str], int],
    snapshot: Callable[[str], str],
    configure: Callable[..., Path],
) -> None:
    """It bears no mark of Omid's, so that nobody asks whether its cells are older than it: it is given the greatest
    ancient history mark of any table when it counts as this oracle's for the first time.
    """
    table, early = _two_regions(scene)
    mark = collected(table)
    assert job("watermark_collection", "--execute").code == 0
    copy = f"{table}copy"
    scene.omid.clone(snapshot(table), copy)
    scene.tables.append(copy)
    scene.omid.set(copy, families={"OMID_ENABLED": "false"})
    assert job("watermark_collection", "--execute").code == 0
    said = configure(tables={copy: {"kind": "transactional"}})
    assert job("watermark_collection", "--execute", config=said).code == 0
    with pytest.raises(Exception, match=f"{early} of {copy} lies [0-9]+ before its ancient history mark"):
        as_of(copy, early).collect()
    assert {bytes(r.value) for r in as_of(copy, mark).collect()} == {b"now"}


def test_a_read_with_a_hold_is_not_overtaken(
    as_of: Read, scene: Scene, collected: Callable[[str], int], state: StateStore, config: Config
) -> None:
    """With hold = true the run keeps to the read point, also where only its rows are referenced; when the read is
    no longer referenced the hold is let go (Spark itself refers to what toLocalIterator reads until the driver
    ends)."""
    state.create()
    table, snapshot = _two_regions(scene)
    rows = as_of(table, snapshot, hold="true", holdOwner="the test").toLocalIterator()
    assert bytes(next(rows).value) == b"then"
    warm.collect_garbage(SparkSession.getActiveSession())
    [held] = state.holds(table)
    assert (held.timestamp, held.owner) == (snapshot, "the test")
    assert collected(table) == at_most(snapshot)
    assert [bytes(r.value) for r in rows] == [b"then"]
    release(config, table, held.id)
    frame = as_of(table, snapshot, hold="true")
    assert len(frame.collect()) == 2
    assert len(state.holds(table)) == 1
    del frame
    _until(lambda: not state.holds(table))
    assert collected(table) > snapshot
    with pytest.raises(Exception, match="was removed"):
        as_of(table, snapshot, hold="true").collect()
    assert state.holds(table) == []


def test_a_read_of_files_is_not_overtaken(
    as_of: Read,
    scene: Scene,
    omid: OmidClient,
    collected: Callable[[str], int],
    read_snapshots: Callable[[str], list[str]],
    lasting: Callable[[str], int],
) -> None:
    """With read = snapshot the rows come from an HBase snapshot of its own, so history GC and a major compaction take
    nothing from a read that has begun, also where only its rows are referenced; when they are not any more, HBase
    snapshot and folder go, of a killed driver after a day. The next read before the mark is refused, and makes
    nothing.
    """
    table, snapshot = _two_regions(scene)
    frame = as_of(table, snapshot, read="snapshot")
    assert len(frame.collect()) == 2
    assert len(read_snapshots(table)) == 2, "the HBase snapshot and its folder"
    del frame
    _until(lambda: not read_snapshots(table))

    rows = as_of(table, snapshot, read="snapshot").toLocalIterator()
    assert bytes(next(rows).value) == b"then"
    name, folder = read_snapshots(table)
    assert lasting(name) == timedelta(days=1).total_seconds()
    assert collected(table) > snapshot
    omid.compact(table, major=True)
    warm.collect_garbage(SparkSession.getActiveSession())
    assert [bytes(r.value) for r in rows] == [b"then"]
    with pytest.raises(Exception, match="was removed"):
        as_of(table, snapshot, read="snapshot").collect()
    assert read_snapshots(table) == [name, folder], "Spark refers to what toLocalIterator reads until the driver ends"


def test_files_are_not_read_where_the_mark_passed_while_the_snapshot_was_made(
    as_of: Read, scene: Scene, state: StateStore, config: Config, read_snapshots: Callable[[str], list[str]]
) -> None:
    """History may have gone between the first look at the mark and the HBase snapshot, so that is followed by another
    look.
    """
    table, snapshot = _two_regions(scene)
    state.create()
    refused: list[str] = []

    def read() -> None:
        try:
            as_of(table, snapshot, read="snapshot").collect()
        except Exception as error:  # of py4j or of Spark
            refused.append(str(error))

    reader = threading.Thread(target=read)
    with connect(config.hbase.thrift) as connection:
        records, row = connection.table(config.state.table), f"history/{table}".encode()
        reader.start()
        try:
            while not read_snapshots(table):  # the folder comes first, a second before the HBase snapshot stands
                assert reader.is_alive()
            records.put(row, {b"s:mark": json.dumps({"mark": scene.omid.watermark()}).encode()})
            reader.join()
        finally:
            reader.join()
            records.delete(row)
    assert len(refused) == 1
    assert "history GC has overtaken this read" in refused[0]
    assert read_snapshots(table) == []


def test_a_read_of_files_that_are_gone_fails(
    as_of: Read, scene: Scene, stack: Stack, read_snapshots: Callable[[str], list[str]]
) -> None:
    """A folder of references that somebody removes under a read makes it fail; it never shows less."""
    table, snapshot = _two_regions(scene)
    rows = as_of(table, snapshot, read="snapshot").toLocalIterator()
    assert bytes(next(rows).value) == b"then"
    (_, folder) = read_snapshots(table)
    references = [f for f in (_scratch(stack) / folder).glob("**/a/*") if not f.name.startswith(".")]
    assert len(references) == 2, "one file a region"
    for reference in references:
        reference.unlink()
    with pytest.raises(Exception, match="and had 1 in the HBase snapshot: its folder was removed"):
        list(rows)


@pytest.fixture
def read_snapshots(stack: Stack) -> Callable[[str], list[str]]:
    """HBase snapshots and folders that reads of a table made and that are still there."""
    places = _root(stack) / ".hbase-snapshot", _scratch(stack)

    def found(table: str) -> list[str]:
        return [each for place in places for each in _names(place) if each.startswith(f"lowtide-read-{table}-")]

    return found


@pytest.fixture
def lasting(spark: SparkSession, stack: Stack) -> Callable[[str], int]:
    """After how many seconds HBase drops the HBase snapshot by itself."""

    def seconds(name: str) -> int:
        jvm: Any = spark._jvm
        place = jvm.org.apache.hadoop.fs.Path((_root(stack) / ".hbase-snapshot" / name).as_uri())
        files = place.getFileSystem(jvm.org.apache.hadoop.conf.Configuration())
        described = jvm.org.apache.hadoop.hbase.snapshot.SnapshotDescriptionUtils.readSnapshotInfo(files, place)
        return int(described.getTtl())

    return seconds


def _root(stack: Stack) -> Path:
    return Path(urlsplit(stack.hbase_properties()["hbase.rootdir"]).path)


def _scratch(stack: Stack) -> Path:
    return _root(stack).with_name(f"{_root(stack).name}-lowtide-scratch")


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not done():
        assert time.monotonic() < deadline, "what the read took was never let go"
        warm.collect_garbage(SparkSession.getActiveSession())


def test_a_hold_of_python_keeps_what_the_connector_reads(
    as_of: Read, scene: Scene, collected: Callable[[str], int], config: Config
) -> None:
    """Holds are one thing, whoever takes them: one taken beforehand keeps the read point readable."""
    table, snapshot = _two_regions(scene)
    take(config, table, snapshot, owner="test", reason="later", lasting=timedelta(hours=1))
    assert collected(table) == at_most(snapshot)
    assert {v for v in cells(as_of(table, snapshot)).values()} == {b"then"}


@pytest.mark.parametrize(
    ("snapshot", "options", "text"),
    [
        (10**15, {}, "later than the low watermark"),
        ("yesterday", {}, "neither a timestamp of the oracle nor an ISO 8601 time"),
        ("2026-01-31T00:00:00", {}, "has no time zone; add one, as in 2026-01-31T00:00:00Z"),
        ("2999-01-31 00:00:00+00:00", {}, "is not over yet"),
        ("1970-01-02T00:00:00Z", {}, "before the first time sample"),
        (1000, {"view": "cells"}, "asOf and hold go with the view as_of"),
        (1000, {"read": "snapshot", "snapshot": "mine"}, "snapshot and restoreDir do not go with asOf"),
        (1000, {"read": "snapshot", "hold": "true"}, "hold = true does not go with read = snapshot"),
        (1000, {"traces": "true"}, "traces = true does not go with"),
        (1000, {"hold": "perhaps"}, "neither true nor false"),
        (1000, {"hold": "true", "holdOwner": " "}, "holdOwner =   names nobody"),
        ("latest", {"stateTable": "NOWHERE"}, "stateTable = NOWHERE: there is no such table"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    as_of: Read, scene: Scene, omid: OmidClient, snapshot: object, options: dict[str, str], text: str
) -> None:
    """Times to come, times without zone or before any sample, and options that do not go together are refused by
    name.
    """
    table = scene.table()
    omid.advance_watermark()
    with pytest.raises(Exception, match=text):
        as_of(table, snapshot, **options).collect()
