"""Phoenix's tables as clusters have them: in schemas, with and without namespace mapping; views of tenants and their
indexes; immutable rows in a single cell, which there are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Outcome, booted
from lowtide_spark.frames.inventory import take_inventory
from lowtide_spark.frames.store import Store

from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.lab.workload.sql import PhoenixClient, SqlError
from lowtide.tables.inventory import Kind
from lowtide.values.formats import SHADOW_PREFIX, SHADOW_SUFFIX, base, shadow_qualifier

Job = Callable[..., Outcome]

OMID = "TRANSACTIONAL=true, TRANSACTION_PROVIDER='OMID'"
TABLES = (
    "CREATE TABLE SHOP.ORDERS (TENANT VARCHAR NOT NULL, ID BIGINT NOT NULL, A VARCHAR "
    f"CONSTRAINT PK PRIMARY KEY (TENANT, ID)) MULTI_TENANT=true, {OMID}",
    "CREATE TABLE SHOP.USERS (ID BIGINT NOT NULL PRIMARY KEY, A VARCHAR, B VARCHAR) " + OMID,
    "CREATE INDEX USERS_BY_A ON SHOP.USERS (A) INCLUDE (B)",
)
#: Made by a tenant.
VIEWS = (
    "CREATE VIEW SHOP.MINE (K VARCHAR) AS SELECT * FROM SHOP.ORDERS",
    "CREATE INDEX MINE_BY_K ON SHOP.MINE (K) INCLUDE (A)",
)
#: What SQL calls each physical table; views are those of their table, and so they have no name there.
NAMES = {
    "ORDERS": ("SHOP.ORDERS",),
    "USERS": ("SHOP.USERS",),
    "USERS_BY_A": ("SHOP.USERS_BY_A",),
    "_IDX_ORDERS": ("SHOP.MINE_BY_K",),
}
#: Half of the rows are there whole: of the others' clients one dies before its commit, one after it.
KEYS = range(8)
BEFORE, AFTER = 1, 4
YOUNG = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}


@pytest.fixture(scope="module", params=[False, True], ids=["schemas", "namespaces"])
def mapped(request: pytest.FixtureRequest) -> bool:
    """Whether Phoenix's schemas are HBase's namespaces."""
    return bool(request.param)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, mapped: bool) -> Iterator[Stack]:
    """A store with Phoenix of one of the two kinds: it cannot change."""
    extra = {
        "hbase.thrift.server.socket.read.timeout": "900000",
        "phoenix.schema.isNamespaceMappingEnabled": str(mapped).lower(),
        "phoenix.schema.mapSystemTablesToNamespace": str(mapped).lower(),
    }
    home = tmp_path_factory.mktemp("phoenix")
    with booted(
        free_ports_config(home, phoenix=True, timestamps="world", conflict_map_size=64, extra_hbase=extra)
    ) as store:
        yield store


@pytest.fixture(scope="module")
def omid(stack: Stack) -> Iterator[OmidClient]:
    with OmidClient(stack) as client:
        yield client


def physical(name: str, mapped: bool) -> str:
    """What HBase calls a table of the schema."""
    if mapped:
        return f"SHOP:{name}"
    return f"_IDX_SHOP.{name.removeprefix('_IDX_')}" if name.startswith("_IDX_") else f"SHOP.{name}"


def unproved(omid: OmidClient, table: str, watermark: int) -> int:
    """Data cells at or below *watermark* that have no shadow cell: by brute force over the raw table."""
    cells = omid.raw(table)
    deleted = {c.key for c in cells if c.kind == "delete"}
    keys = {c.key for c in cells if c.kind == "put"} - deleted
    return sum(
        (key[0], key[1], shadow_qualifier(key[2]), key[3]) not in keys
        for key in keys
        if base(key[3]) <= watermark and not (key[2].startswith(SHADOW_PREFIX) and key[2].endswith(SHADOW_SUFFIX))
    )


def write(client: PhoenixClient, upsert: str, generation: str) -> set[int]:
    """A transaction a row, some of which their clients leave on the way; the rows that committed."""
    committed = set()
    for key in KEYS:
        client.execute(upsert, key, f"{generation}{key}", f"k{key}")
        point = {2: BEFORE, 5: AFTER}.get(key % 6)
        client.commit(point=point)
        if point != BEFORE:
            committed.add(key)
    return committed


@pytest.mark.turns(2)
@pytest.mark.timeout(900)
def test_sql_answers_the_same_after_the_jobs(
    stack: Stack, omid: OmidClient, job: Job, connector: Store, configure: Callable[..., Path], mapped: bool
) -> None:
    """Tables, indexes, a tenant's view and its index are found under HBase's names and told under SQL's. Nothing
    unproved is left in them, and every question has the answer that the committed transactions give, after cleanup,
    pruning, and after history is gone.
    """
    with PhoenixClient(stack) as phoenix, PhoenixClient(stack, log="tenant", tenant="acme") as acme:
        for statement in (*(["CREATE SCHEMA IF NOT EXISTS SHOP"] if mapped else []), *TABLES):
            phoenix.execute(statement)
        for statement in VIEWS:
            acme.execute(statement)
        users = "UPSERT INTO SHOP.USERS (ID, A, B) VALUES (?, ?, ?)"
        mine = "UPSERT INTO SHOP.MINE (ID, A, K) VALUES (?, ?, ?)"
        write(phoenix, users, "old")
        expected = write(phoenix, users, "new")
        write(acme, mine, "old")
        shown = write(acme, mine, "new")

        def check() -> None:
            for hint in ("", "/*+ NO_INDEX */ "):
                rows = phoenix.query(f"SELECT {hint}ID FROM SHOP.USERS WHERE A LIKE 'new%'")
                assert {key for (key,) in rows} == expected
                rows = acme.query(f"SELECT {hint}ID FROM SHOP.MINE WHERE K LIKE 'k%' AND A LIKE 'new%'")
                assert {key for (key,) in rows} == shown
            assert {row for (row,) in phoenix.query("SELECT DISTINCT TENANT FROM SHOP.ORDERS")} == {"acme"}
            for client in (phoenix, acme):
                client.commit()

        watermark = omid.advance_watermark()
        tables = {name: physical(name, mapped) for name in NAMES}
        entries = {entry.table: entry for entry in take_inventory(connector)}
        for name, table in tables.items():
            assert (entries[table].kind, entries[table].names) == (Kind.TRANSACTIONAL, NAMES[name])
            assert not entries[table].doubt
            assert unproved(omid, table, watermark) > 0, table
        cleaned = job("orphan_cleanup", "--full", "--execute")
        assert cleaned.code == 0, cleaned.problems
        assert {name: unproved(omid, table, watermark) for name, table in tables.items()} == dict.fromkeys(NAMES, 0)
        pruned = job("commit_table_pruning", "--grace", "0s", "--execute")
        assert (pruned.code, pruned.totals["pruned"] > 0) == (0, True), pruned.problems
        check()
        collected = job("history_gc", "--execute", config=configure(defaults=YOUNG))
        assert collected.code == 0, collected.problems
        assert collected.table(tables["USERS"])["counts"]["deleted"] > 0
        check()


def test_a_transactional_table_has_no_rows_in_a_single_cell(stack: Stack) -> None:
    """Phoenix refuses the storage that packs a row's columns into one cell, and encoded columns, so that no cell of
    theirs is to be cleaned.
    """
    with PhoenixClient(stack, log="single") as phoenix:
        for storage, refusal in (
            ("IMMUTABLE_STORAGE_SCHEME=SINGLE_CELL_ARRAY_WITH_OFFSETS", "Only ONE_CELL_PER_COLUMN storage scheme"),
            ("COLUMN_ENCODED_BYTES=2", "Column encoding is not supported"),
        ):
            with pytest.raises(SqlError, match=refusal):
                phoenix.execute(
                    f"CREATE IMMUTABLE TABLE E (ID BIGINT NOT NULL PRIMARY KEY, A VARCHAR) {storage}, {OMID}"
                )
