"""What a run cannot see or does not know: nothing is decided, removed or recorded by it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark.cleaning import orphans, pruning, suspects
from lowtide_spark.frames import inventory as listing
from lowtide_spark.frames.inventory import take_inventory
from lowtide_spark.frames.store import Store
from pyspark.sql import functions as F
from scene import Scene

from lowtide.cleaning.planning import WorkRange
from lowtide.errors import StoreError
from lowtide.lab.workload import OmidClient
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore
from lowtide.tables.inventory import FAMILY_FLAG, Entry, Kind
from lowtide.values.formats import commit_key, encode_long, shadow_qualifier
from lowtide.values.keyranges import KeyRange

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]

COMMITS = "OMID_COMMIT_TABLE"


def clean(job: Job, *tables: str, **options: Any) -> Outcome:
    """Run orphan_cleanup for these tables, acting."""
    return job("orphan_cleanup", *(part for t in tables for part in ("--table", t)), "--execute", **options)


def entries(connector: Store) -> dict[str, Entry]:
    """The inventory as a job takes it, by table."""
    return {e.table: e for e in take_inventory(connector)}


@pytest.fixture
def gateway(connector: Store) -> Iterator[Any]:
    """HBase's Thrift gateway: it disables and enables tables."""
    with connect(connector.config.hbase.thrift) as connection:
        yield connection


@pytest.fixture
def partly_marked(connector: Store, scene: Scene) -> str:
    """A table of two families of which only ``a`` bears Omid's flag."""
    table = scene.table(("a",))
    scene.omid.drop(table)
    hadoop: Any = connector.spark._jvm.org.apache.hadoop.hbase  # type: ignore[union-attr]
    settings = hadoop.HBaseConfiguration.create()
    for name, value in connector.config.hbase.client_properties().items():
        settings.set(name, value)
    made = hadoop.client.TableDescriptorBuilder.newBuilder(hadoop.TableName.valueOf(table))
    for family in ("a", "b"):
        described = hadoop.client.ColumnFamilyDescriptorBuilder.newBuilder(bytearray(family.encode()))
        described = described.setMaxVersions(2**31 - 1)
        if family == "a":
            described = described.setValue(FAMILY_FLAG, "true")
        made = made.setColumnFamily(described.build())
    connection = hadoop.client.ConnectionFactory.createConnection(settings)
    try:
        connection.getAdmin().createTable(made.build())
    finally:
        connection.close()
    return table


# -- keys of another generator


#: Rows as two of Omid's other key generators make them: they begin with zeros, or lie anywhere.
GENERATORS: dict[str, Callable[[int], bytes]] = {
    "Seq": encode_long,
    "FullRandom": lambda start: int(f"{start:064b}"[::-1], 2).to_bytes(8, "big"),
}


@pytest.mark.parametrize("generator", GENERATORS)
def test_keys_of_another_generator_stop_a_cleanup(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, generator: str
) -> None:
    """With keys that Omid's default generator did not make no commit can be looked up: nothing is cleaned, whichever
    region they lie in.
    """
    table = scene.table()
    start = scene.orphan(table)
    omid.advance_watermark()
    before = omid.raw(table)
    row = GENERATORS[generator](omid.begin())
    omid.put(COMMITS, row, b"F", b"C", start, b"\x32")
    try:
        outcome = clean(job, table)
    finally:
        omid.delete_version(COMMITS, row, b"F", b"C", start)
    assert (omid.raw(table), state.read(table).facts) == (before, ())
    assert outcome.code == 1
    assert "keys of another generator" in outcome.problems
    assert row.hex() in outcome.problems
    assert start not in omid.commit_table()


def test_a_key_of_another_generator_among_others_is_seen(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the interval every row is looked at, not only the first of each region; in a dry run and in a survey
    too.
    """
    monkeypatch.setattr(suspects, "KEY_SAMPLE", 1)
    table = scene.table()
    start = scene.orphan(table)
    assert omid.invalidate(start)
    omid.advance_watermark()
    row = commit_key(start)[:1] + encode_long(start + 1)  # behind the mark's, in the same region
    assert commit_key(start) < row != commit_key(start + 1)
    omid.put(COMMITS, row, b"F", b"C", start, b"\x32")
    try:
        for name in ("orphan_cleanup", "survey"):
            outcome = job(name, "--table", table)
            assert outcome.code == 1, name
            assert row.hex() in outcome.problems, name
        assert "keys of another generator" in clean(job, table).problems
        assert scene.has(table, start)
    finally:
        omid.delete_version(COMMITS, row, b"F", b"C", start)


# -- tables that cannot be searched


def test_a_disabled_table_leaves_undecided_what_it_could_prove(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, gateway: Any
) -> None:
    """While a transactional table is disabled, a cell without any proof elsewhere is neither marked nor deleted nor its
    range recorded.

    What an entry proves is healed and recorded all the same; the bound stays; once the table is enabled its shadow cell
    proves the commit.
    """
    table, other = scene.table(splits=(b"m",)), scene.table(("x",))
    start, commit = scene.committed(other, family=b"x")
    scene.cell(table, start, row=b"a")
    entry, entry_commit = scene.crashed_after_commit(table, row=b"z")
    omid.advance_watermark()
    gateway.disable_table(other)
    try:
        outcome = clean(job, table)
        assert scene.has(table, start, row=b"a")
        assert outcome.code == 1
        assert "a transactional table cannot be searched for its shadow cells" in outcome.problems
        assert (outcome.totals["deleted"], outcome.totals["marked"]) == (0, 0)
        assert start not in omid.commit_table()
        assert [f.keys.start for f in state.read(table).facts] == [b"m"]
        assert scene.healed(table, entry, row=b"z") == entry_commit
        pruned = job("commit_table_pruning", "--grace", "0s", "--execute")
        assert pruned.summary["bound"] == 0
        blockers = {(b["table"], b["reason"]) for b in pruned.summary["blockers"]}
        assert blockers >= {(table, "never cleaned"), (other, "the table is disabled")}
        assert omid.commit_table()[entry].commit == entry_commit
    finally:
        gateway.enable_table(other)
    assert clean(job, table).code == 0
    assert scene.healed(table, start, row=b"a") == commit
    assert start not in omid.commit_table()


def test_a_disabled_table_without_mark_makes_blind_too(job: Job, scene: Scene, omid: OmidClient, gateway: Any) -> None:
    """It cannot be sampled, so it may hold the shadow cell, as it does here."""
    table, other = scene.table(), scene.table(omid_enabled=False)
    start, _ = scene.committed(other)
    scene.cell(table, start)
    omid.advance_watermark()
    gateway.disable_table(other)
    try:
        outcome = clean(job, table)
    finally:
        gateway.enable_table(other)
    assert scene.has(table, start)
    assert outcome.code == 1
    assert "cannot be searched" in outcome.problems
    assert start not in omid.commit_table()


def test_a_table_that_is_disabled_after_the_listing_stops_the_run(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, gateway: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that was to be searched for proofs and cannot be: nothing is decided, in no table."""
    table, other = scene.table(), scene.table()
    start, _ = scene.committed(other)
    scene.cell(table, start)
    omid.advance_watermark()
    take = orphans.take_inventory

    def and_disable(store: Store) -> Any:
        found = take(store)
        gateway.disable_table(other)
        return found

    monkeypatch.setattr(orphans, "take_inventory", and_disable)
    try:
        outcome = clean(job, table)
        assert scene.has(table, start)
        assert outcome.code == 1
        assert f"Table {other} is disabled" in outcome.problems
        assert start not in omid.commit_table()
        assert state.read(table).facts == ()
    finally:
        gateway.enable_table(other)


def test_a_shadow_cell_of_unknown_form_elsewhere_leaves_its_transaction_undecided(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore
) -> None:
    """Where another table holds a shadow cell of the transaction that no rule can read, its cells stay and their range
    is not recorded.
    """
    table, other = scene.table(splits=(b"m",)), scene.table()
    start, beside = omid.begin(), scene.orphan(table, row=b"z")
    scene.cell(table, start, row=b"a")
    omid.put(other, b"r", b"a", shadow_qualifier(b"q"), start, b"\x00\x01")
    omid.advance_watermark()
    outcome = clean(job, table)
    assert scene.has(table, start, row=b"a")
    assert outcome.code == 1
    assert "a shadow cell of it is of an unknown form" in outcome.problems
    assert start not in omid.commit_table()
    assert not scene.has(table, beside, row=b"z")
    assert [f.keys.start for f in state.read(table).facts] == [b"m"]


# -- reads that end early


@pytest.mark.parametrize("name", ["orphan_cleanup", "history_gc"])
def test_a_range_that_is_not_read_to_its_end_ends_the_work_on_its_table(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    configure: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
    connector: Store,
    name: str,
) -> None:
    """Where the end of one of the ranges is missing in what was read, nothing of the table is removed or recorded;
    other tables are cleaned.
    """
    eager = configure(defaults={"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}})
    table, other = scene.table(splits=(b"g", b"s")), scene.table()
    tables = (table, other)
    if name == "history_gc":
        for one in tables:
            for value in (b"old", b"new"):
                scene.committed(one, row=b"z", value=value)
    else:
        gone = {one: scene.orphan(one, row=b"z") for one in tables}
        scene.orphan(table, row=b"m")  # what is not read is not clean
    omid.advance_watermark()
    if name == "history_gc":
        for cleaning in ("orphan_cleanup", "watermark_collection"):
            assert job(cleaning, "--execute", config=eager).code == 0
    before, facts = omid.raw(table), state.read(table).facts
    second = sorted(connector.regions(table), key=lambda region: region.keys.start)[1].name
    versions, versions_of = Store.versions, Store.versions_of

    def ends_early(self: Store, *arguments: Any, **named: Any) -> Any:
        """A reader that stops in the second region of the table: neither its cells nor its end come."""
        return versions(self, *arguments, **named).where(F.col("region") != second)

    def end_early(self: Store, reads: Any) -> Any:
        return [frame.where(F.col("region") != second) for frame in versions_of(self, reads)]

    monkeypatch.setattr(Store, "versions", ends_early)
    monkeypatch.setattr(Store, "versions_of", end_early)
    named = (part for one in tables for part in ("--table", one))
    outcome = job(name, *named, "--execute", config=eager)
    monkeypatch.undo()
    assert state.read(table).facts == facts
    assert omid.raw(table) == before
    assert outcome.code == 1
    assert f"of {table} were to be read, 2 were read to their end" in outcome.problems
    assert state.history(table).applied == 0
    assert outcome.table(table)["counts"]["deleted"] == 0
    assert outcome.table(other)["counts"]["deleted"] > 0
    if name == "orphan_cleanup":
        assert gone[table] not in omid.commit_table()
        assert omid.commit_table()[gone[other]].invalid
        assert len(state.read(other).facts) == 1


def test_every_part_of_a_range_tells_its_end(connector: Store, scene: Scene, omid: OmidClient) -> None:
    """A range over several regions has one end a region and family, each with what was read there; one without any row
    ends too.
    """
    table = scene.table(("a", "b"), splits=(b"g", b"s"))
    for row in (b"a", b"h", b"i", b"t"):
        scene.committed(table, row=row)
    omid.put(table, b"h", b"b", b"plain", omid.begin(), b"v")
    ranges = [
        WorkRange("across", KeyRange(b"b", b"t"), 0, 2**62),
        WorkRange("none", KeyRange(b"x", b"y"), 0, 2**62),
        WorkRange("no time", KeyRange(b"", b""), 5, 5),
    ]
    ends = connector.versions(table, ranges, ["a", "b"]).where("kind = 'end_of_range'").collect()
    found = sorted((r.region, bytes(r.family).decode(), r.cells_read) for r in ends)
    assert found == [
        *(("across", "a", n) for n in (0, 0, 4)),
        *(("across", "b", n) for n in (0, 0, 1)),
        *(("no time", f, 0) for f in "aaabbb"),
        ("none", "a", 0),
        ("none", "b", 0),
    ]


# -- the inventory


def test_a_family_without_mark_beside_a_marked_one(
    job: Job, scene: Scene, omid: OmidClient, connector: Store, partly_marked: str
) -> None:
    """Its shadow cells prove commits, and nothing of it is touched; the table is named, and holds the bound until the
    configuration speaks.
    """
    table = partly_marked
    assert entries(connector)[table].unmarked == frozenset()
    start, commit = scene.committed(table, family=b"b")
    scene.cell(table, start)
    orphan = scene.orphan(table, family=b"b")
    gone = scene.orphan(table)
    omid.advance_watermark()
    entry = entries(connector)[table]
    assert (entry.kind, entry.families, entry.unmarked) == (Kind.TRANSACTIONAL, {"a"}, {"b"})
    outcome = clean(job, table)
    assert outcome.code == 0, outcome.problems
    assert "['b'] hold shadow cells but bear no mark" in str(outcome.table(table)["notes"])
    assert scene.healed(table, start) == commit
    assert (scene.has(table, gone), scene.has(table, orphan, family=b"b")) == (False, True)
    collected = job("watermark_collection")
    assert collected.summary["bound"] == 0
    assert any("families b" in b["reason"] for b in collected.summary["blockers"] if b["table"] == table)


def test_every_region_is_sampled_for_shadow_cells(
    connector: Store, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a table without mark the beginning of each region is looked at, in batches of tables; a shadow cell that no
    rule can read counts.
    """
    monkeypatch.setattr(listing, "TOGETHER", 2)
    tables = {name: scene.table(omid_enabled=False, splits=(b"m",)) for name in ("none", "last", "lone", "odd", "old")}
    start, commit = omid.begin(), omid.begin()
    for table in tables.values():
        scene.cell(table, start, row=b"a")
    scene.cell(tables["last"], start, row=b"z")
    scene.shadow(tables["last"], start, commit, row=b"z")
    scene.shadow(tables["lone"], start, commit, row=b"z")
    omid.put(tables["odd"], b"z", b"a", shadow_qualifier(b"q"), start, b"?")
    omid.put(tables["old"], b"z", b"a", b"q\xc2\x80", start, encode_long(commit))
    found = entries(connector)
    assert {name: found[table].kind for name, table in tables.items()} == {
        "none": Kind.PLAIN,
        **dict.fromkeys(("last", "lone", "odd", "old"), Kind.UNMARKED),
    }
    assert all(found[tables[name]].unmarked == {"a"} for name in ("last", "lone", "odd", "old"))


@pytest.mark.parametrize("name", ["orphan_cleanup", "commit_table_pruning"])
def test_a_table_that_goes_between_listing_and_reading_stops_the_run(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A table that was listed and cannot be sampled any more could have been anything: nothing is done, and the run is
    red.
    """
    table, going = scene.table(), scene.table(omid_enabled=False)
    start = scene.orphan(table)
    omid.advance_watermark()
    descriptors = Store.descriptors

    def and_drop(self: Store) -> Any:
        found = descriptors(self)
        omid.drop(going)
        return found

    monkeypatch.setattr(Store, "descriptors", and_drop)
    outcome = job(name, "--execute")
    assert outcome.code == 1
    assert going in outcome.problems
    assert scene.has(table, start)
    assert start not in omid.commit_table()


def test_a_table_that_goes_after_the_listing_holds_the_bound(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transactional table whose regions cannot be listed any more blocks at 0, by name, and no entry is pruned."""
    table, going = scene.table(), scene.table()
    start, _ = scene.crashed_after_commit(table)
    omid.advance_watermark()
    assert clean(job, table, going).code == 0
    take = pruning.take_inventory

    def and_drop(store: Store) -> Any:
        found = take(store)
        omid.drop(going)
        return found

    monkeypatch.setattr(pruning, "take_inventory", and_drop)
    outcome = job("commit_table_pruning", "--grace", "0s", "--execute")
    monkeypatch.undo()
    assert (outcome.code, outcome.summary["bound"]) == (1, 0)
    assert [b["table"] for b in outcome.summary["blockers"]] == [going]
    assert not omid.commit_table()[start].invalid


# -- regions


@pytest.mark.parametrize("lost", ["", "73"], ids=["first", "last"])
def test_a_region_at_an_end_that_is_not_listed_is_missed(
    connector: Store, monkeypatch: pytest.MonkeyPatch, scene: Scene, lost: str
) -> None:
    """At the table's beginning and end too a hole in the listing is an error that names the table."""
    table = scene.table(splits=(b"g", b"s"))
    listed = Store._listed
    monkeypatch.setattr(Store, "_listed", lambda *a: [r for r in listed(*a) if r.start != lost])
    with pytest.raises(StoreError, match=f"{table} do not cover it from end to end"):
        connector.regions(table)
