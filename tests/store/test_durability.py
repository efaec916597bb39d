"""Tables whose servers may lose what they acknowledged to clients, and a server that is killed after Lowtide has worked
on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome, booted
from pyspark.sql import SparkSession
from scene import Scene

from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient

Job = Callable[..., Outcome]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A store of this module's own: it is killed."""
    with booted(free_ports_config(tmp_path_factory.mktemp("store"), hbase_heap="512m", conflict_map_size=64)) as store:
        yield store


def make(
    spark: SparkSession, stack: Stack, name: str, durability: str, *, family: bytes = b"a", flag: str = "false"
) -> None:
    """A table whose clients' writes are as durable as that, if there is none of that name."""
    hadoop: Any = spark._jvm.org.apache.hadoop  # type: ignore[union-attr]
    client = hadoop.hbase.client
    settings = hadoop.hbase.HBaseConfiguration.create()
    settings.set("hbase.zookeeper.quorum", "127.0.0.1")
    settings.set("hbase.zookeeper.property.clientPort", str(stack.config.zookeeper_port))
    described = client.ColumnFamilyDescriptorBuilder.newBuilder(family).setMaxVersions(2**31 - 1)
    table = (
        client.TableDescriptorBuilder.newBuilder(hadoop.hbase.TableName.valueOf(name))
        .setDurability(client.Durability.valueOf(durability))
        .setColumnFamily(described.setValue("OMID_ENABLED", flag).build())
    )
    connection = client.ConnectionFactory.createConnection(settings)
    try:
        if not connection.getAdmin().tableExists(hadoop.hbase.TableName.valueOf(name)):
            connection.getAdmin().createTable(table.build())
    finally:
        connection.close()


def live(omid: OmidClient, tables: tuple[str, str]) -> None:
    """The same transactions in both tables: some cells are in files when the server dies, some in its memory alone."""
    scene = Scene(omid, [])

    def both(write: Callable[[str], None]) -> None:
        for table in tables:
            write(table)

    def transaction(
        row: bytes, value: bytes, *, shadow: bool = True, entry: bool = False, commits: bool = True
    ) -> None:
        start, commit = omid.begin(), omid.begin()
        both(lambda table: scene.cell(table, start, row=row, value=value))
        if commits and shadow:
            both(lambda table: scene.shadow(table, start, commit, row=row))
        if entry:
            omid.add_commit_entry(start, commit)

    transaction(b"crashed", b"healed", shadow=False, entry=True)
    transaction(b"deleted", b"of old")
    transaction(b"replaced", b"of old")
    transaction(b"orphan", b"", commits=False)
    both(omid.flush)
    transaction(b"deleted", b"")
    transaction(b"replaced", b"of late")
    transaction(b"late", b"complete")
    transaction(b"crashed late", b"healed", shadow=False, entry=True)
    transaction(b"orphan late", b"never", commits=False)


@pytest.mark.turns(2)
@pytest.mark.parametrize("durability", ["ASYNC_WAL", "SKIP_WAL"])
def test_nothing_is_lost_or_shown_beyond_a_twin_that_nobody_cleaned(
    stack: Stack, job: Job, spark: SparkSession, configure: Callable[..., Path], durability: str
) -> None:
    """Beside the table stands a twin with the same cells, which Lowtide is told to leave alone. The server is killed
    after the cleanup and the removal of history were acknowledged. Each cell of the cleaned table then reads as before
    the kill, or as in its twin; what was healed is there; and so it stays when the commit entries are pruned by what
    was recorded before: Lowtide's own table has such a setting too here, which does not count for what the Thrift
    gateway writes.
    """
    table, twin = f"cleaned_{durability}", f"twin_{durability}"
    young = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}
    settings: dict[str, Any] = {
        "tables": {twin: {"kind": "plain"}, table: {"accept_durability": True}},
        "defaults": young,
    }
    make(spark, stack, "LOWTIDE_STATE", "SKIP_WAL", family=b"s")
    make(spark, stack, table, durability, flag="true")
    make(spark, stack, twin, durability)
    config = configure(**settings, hbase={"properties": _apart(stack, f"{durability} before")})
    with OmidClient(stack) as omid:
        live(omid, (table, twin))
        snapshot = omid.advance_watermark()
        for named in (
            ("orphan_cleanup", "--table", table),
            ("watermark_collection",),
            ("history_gc", "--table", table),
        ):
            outcome = job(*named, "--execute", config=config)
            assert outcome.code == 0, outcome.problems
            assert outcome.totals["deleted"] > 0 or named == ("watermark_collection",)
        before = omid.read(table, snapshot)
        assert omid.read(twin, snapshot) == before
        stack.kill("hbase")
    stack.up()
    config = configure(**settings, hbase={"properties": _apart(stack, f"{durability} after")})
    with OmidClient(stack) as omid:
        ours, twins = omid.read(table, snapshot), omid.read(twin, snapshot)
        assert durability != "SKIP_WAL" or (b"late", b"a", b"q") in before.keys() - twins.keys(), (
            "the kill took nothing"
        )
        for cell in before | ours | twins:
            assert ours.get(cell) in (before.get(cell), twins.get(cell)), cell
        assert ours[b"crashed", b"a", b"q"] == b"healed"
        assert job("watermark_collection", "--execute", config=config).code == 0
        pruned = job("commit_table_pruning", "--grace", "0s", "--execute", config=config)
        assert (pruned.code, pruned.totals["pruned"] >= 2) == (0, True), pruned.problems
        assert omid.read(table, snapshot) == ours
        for each in (table, twin):  # a twin would hold the other case's prune bound
            omid.drop(each)


def _apart(stack: Stack, name: str) -> dict[str, str]:
    """Properties that nobody else has, so that the connector opens a connection to what is there now."""
    return {
        "hbase.rootdir": stack.hbase_properties()["hbase.rootdir"],
        "hbase.client.retries.number": "5",
        "hbase.tests": name,
    }
