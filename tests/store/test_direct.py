"""HBase past the gateway: the same answers as through it, and jobs that need none."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark.frames.store import Store
from scene import Scene

from lowtide.config import Config
from lowtide.lab.stack import free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.store.gateway import (
    FAMILY_SETTINGS,
    allotted,
    check_and_put,
    connect,
    failures,
    kept_for,
    low_watermark,
    table_state,
)
from lowtide.store.state import StateStore

Job = Callable[..., Outcome]
ROWS = (b"a", b"a\x00", b"b\xff\xfe", b"c")


@pytest.fixture
def direct(connector: Store) -> Iterator[Any]:
    """A connection past the gateway."""
    with connector.connections.connection() as connection:
        yield connection


@pytest.fixture
def gateway(connector: Store) -> Iterator[Any]:
    """A connection through it."""
    with connect(connector.config.hbase.thrift) as connection:
        yield connection


@pytest.fixture
def name(gateway: Any) -> Iterator[str]:
    """Of a table that goes after the test, if it was made."""
    table = f"direct_{uuid.uuid4().hex[:10]}"
    yield table
    if table.encode() in gateway.tables():
        gateway.delete_table(table, disable=True)


def answers(connection: Any, table: str, edge: int) -> list[Any]:
    """What all the reads that Lowtide knows show of a table, one after another."""
    handle = connection.table(table)
    return [
        sorted(connection.tables()),
        handle.families(),
        [handle.row(row) for row in (*ROWS, b"absent")],
        handle.row(ROWS[0], columns=[b"s:x", b"s:absent"], include_timestamp=True),
        handle.row(ROWS[0], columns=[b"s"], timestamp=edge, include_timestamp=True),
        sorted(handle.rows([ROWS[2], b"absent", ROWS[0]], include_timestamp=True)),
        handle.cells(ROWS[0], b"s:x", versions=5, include_timestamp=True),
        handle.cells(ROWS[0], b"s:x", versions=1, timestamp=edge, include_timestamp=True),
        handle.cells(b"absent", b"s:x"),
        list(handle.scan(include_timestamp=True)),
        list(handle.scan(row_prefix=b"a", limit=1)),
        list(handle.scan(row_start=b"a\x00", row_stop=b"c", columns=[b"s:x"], batch_size=1)),
        list(handle.scan(timestamp=edge)),
    ]


@pytest.mark.parametrize("through", ["gateway", "direct"])
def test_what_is_written_either_way_is_read_the_same_either_way(
    through: str, gateway: Any, direct: Any, name: str
) -> None:
    """Tables, rows, versions, scans, deletions, checks and counters: whoever writes, both read the same, to the byte
    and to the timestamp.
    """
    writer = {"gateway": gateway, "direct": direct}[through]
    writer.create_table(name, {"s": {**FAMILY_SETTINGS, "max_versions": 3}})
    table = writer.table(name)
    for number, row in enumerate(ROWS):
        table.put(row, {b"s:x": b"%d\x00\xff" % number, b"s:": b"no qualifier", b"s:gone": b"gone"})
    for version in (1_000, 2_000):
        table.put(ROWS[0], {b"s:x": b"old %d" % version}, timestamp=version)
    table.delete(ROWS[1])
    table.delete(ROWS[2], columns=[b"s:gone"])
    table.delete(ROWS[0], columns=[b"s:x"], timestamp=1_000)
    assert answers(direct, name, 1_500) == answers(gateway, name, 1_500)
    assert table.row(ROWS[1]) == {}
    assert table.row(ROWS[2]) == {b"s:x": b"2\x00\xff", b"s:": b"no qualifier"}
    assert table.cells(ROWS[0], b"s:x", versions=5, include_timestamp=True)[1:] == [(b"old 2000", 2_000)]

    checks = [
        (b"s:x", b"0\x00\xff", True),
        (b"s:x", b"another", False),
        (b"s:absent", None, True),
        (b"s:x", None, False),
    ]
    for number, (column, expected, holds) in enumerate(checks):
        put = (b"s:check%d" % number, b"held")
        assert check_and_put(writer, name, ROWS[0], (column, expected), put) is holds
        assert (put[0] in table.row(ROWS[0])) is holds
    if through == "direct":  # the gateway has no such call: the records are written one by one through it
        puts = [(b"s:all%d" % number, b"held") for number in range(4)]
        asked = [(ROWS[0], check[:2], put) for check, put in zip(checks, puts, strict=True)]
        assert writer.check_and_put_all(name, asked) == [holds for _, _, holds in checks]
        assert [b"s:all%d" % n in table.row(ROWS[0]) for n in range(4)] == [holds for _, _, holds in checks]
    assert [table.counter_inc(b"count", b"s:n", value) for value in (2, 3)] == [2, 5]
    assert answers(direct, name, 1_500) == answers(gateway, name, 1_500)
    assert len(answers(direct, name, 1_500)[9]) == 4, "the row that was deleted is not there, the counter is"


def test_errors_are_the_gateways(gateway: Any, direct: Any, name: str) -> None:
    """A table that is not there, one that is there already: what catches the gateway's errors catches these, and
    they name the table. How long a table keeps its cells is as it was asked for.
    """
    direct.create_table(name, {"s": {**FAMILY_SETTINGS, "time_to_live": 77}})
    assert direct.table(name).families() == gateway.table(name).families()
    assert kept_for(direct, name) == timedelta(seconds=77)
    for connection in (gateway, direct):
        with pytest.raises(failures()) as again:
            connection.create_table(name, {"s": FAMILY_SETTINGS})
        assert type(again.value).__name__ == "AlreadyExists"
        with pytest.raises(failures()) as missing:
            connection.table(f"{name}_not").row(b"r")
        assert type(missing.value).__name__ == "IOError"
        assert f"{name}_not" in str(missing.value)
        assert "TableNotFoundException" in str(missing.value)


def test_what_is_not_answered_is_refused_by_name(direct: Any, name: str) -> None:
    """A call that no job makes is refused, not half answered."""
    from Hbase_thrift import IllegalArgument

    direct.create_table(name, {"s": FAMILY_SETTINGS})
    for call in (lambda: direct.disable_table(name), lambda: list(direct.table(name).scan(reverse=True))):
        with pytest.raises(IllegalArgument, match=r"disableTable|reversed"):
            call()


def test_facts_of_the_store_are_the_same_either_way(
    gateway: Any, direct: Any, connector: Store, omid: OmidClient, scene: Scene
) -> None:
    """The low watermark, what the oracle has allotted to itself, a table's state: as jobs and as people read them."""
    config: Config = connector.config
    table = scene.table()
    omid.advance_watermark()
    for fact in (
        lambda c: low_watermark(c, config),
        lambda c: allotted(c, config),
        lambda c: table_state(c, table),
        lambda c: table_state(c, "not_there"),
    ):
        assert fact(direct) == fact(gateway)


def test_jobs_need_no_gateway(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, configure: Callable[..., Path], tmp_path: Path
) -> None:
    """With nothing at the gateway's address a cleanup, a collection, a pruning, history GC, a survey, the verifier and
    a restore do their work; what they recorded is there for those who come through a gateway.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    start, _ = scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    nowhere = free_ports_config(tmp_path).thrift_port
    config = configure(hbase={"thrift": {"port": nowhere}}, defaults={"budget": {"share": 1.0}})
    cleaned = job("orphan_cleanup", "--table", table, "--execute", config=config)
    assert cleaned.code == 0, cleaned.problems
    assert not scene.has(table, orphan)
    assert scene.healed(table, start, row=b"healed") is not None
    assert state.read(table).facts
    for name in ("watermark_collection", "commit_table_pruning", "history_gc"):
        assert job(name, "--execute", config=config).code == 0, name
    for name in ("survey", "verify"):
        assert job(name, "--table", table, config=config).code == 0, name
    restored = job("sideline_restore", "--restore", cleaned.summary["run"], "--execute", config=config)
    assert restored.code == 0, restored.problems
    assert scene.has(table, orphan)
    assert {r["run"] for r in state.runs()} >= {cleaned.summary["run"], restored.summary["run"]}
