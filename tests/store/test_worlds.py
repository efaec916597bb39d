"""What kinds of tables there are beside those that can be judged: each is left alone by name until what it says is
done, and cleaned right then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark.frames.inventory import take_inventory
from lowtide_spark.frames.store import Store
from scene import Scene

from lowtide.lab.workload import OmidClient
from lowtide.store.gateway import connect
from lowtide.tables.inventory import Kind

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]

ALL = {"VERSIONS": str(2**31 - 1)}


def prune(job: Job) -> Outcome:
    """Prune all that the bound has passed."""
    return job("commit_table_pruning", "--grace", "0s", "--execute")


def test_what_a_family_hides_is_neither_lost_nor_taken_for_clean(job: Job, scene: Scene, omid: OmidClient) -> None:
    """With VERSIONS => 1 a committed cell without shadow cell lies hidden under a newer one: its entry stays until the
    statement that the run names has shown it, and then it is healed like any other."""
    table, other = scene.table(versions=1), scene.table()
    start, commit = scene.crashed_after_commit(table, value=b"before")
    omid.flush(table)  # or HBase dropped it itself, when it writes both to one file
    snapshot = omid.begin()
    scene.committed(table, value=b"after")
    entry, _ = scene.crashed_after_commit(other)
    omid.advance_watermark()
    whole = job("orphan_cleanup", "--execute")
    assert prune(job).code == 0, "the gate finds nothing, for the bound holds"
    assert {start, entry} <= set(omid.commit_table()), "the proof of a cell that was never seen is gone"
    mended = f"alter '{table}', {{NAME => 'a', VERSIONS => 2147483647}}"
    assert whole.code == 0, "the other table is done"
    assert any(mended in note for note in whole.table(table)["notes"])
    assert scene.healed(other, entry)
    named = job("orphan_cleanup", "--table", table, "--execute")
    assert (named.code, mended in named.problems) == (1, True)
    collected = job("watermark_collection", "--execute")
    [blocker] = [b for b in collected.summary["blockers"] if b["table"] == table and b["region"] is None]
    assert mended in blocker["reason"]
    omid.set(table, families=ALL)
    assert job("orphan_cleanup", "--execute").code == 0
    assert scene.healed(table, start) == commit
    assert prune(job).code == 0
    assert not {start, entry} & set(omid.commit_table())
    assert omid.read(table, snapshot) == {(b"r", b"a", b"q"): b"before"}


#: What a table is given, and what its doubt must name.
HELD_BACK: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "versions": ({"families": {"VERSIONS": "3"}}, ("VERSIONS => 3", "VERSIONS => 2147483647")),
    "ttl": ({"families": {"TTL": "86400"}}, ("TTL => 86400", "TTL => 'FOREVER'")),
    "deleted": ({"families": {"KEEP_DELETED_CELLS": "TRUE"}}, ("KEEP_DELETED_CELLS => TRUE", "=> 'FALSE'")),
    "new": ({"families": {"NEW_VERSION_BEHAVIOR": "true"}}, ("NEW_VERSION_BEHAVIOR => true", "=> 'false'")),
    "async": ({"DURABILITY": "ASYNC_WAL"}, ("DURABILITY => ASYNC_WAL", "DURABILITY => 'SYNC_WAL'")),
    "skip": ({"DURABILITY": "SKIP_WAL"}, ("DURABILITY => SKIP_WAL", "accept_durability: true")),
}


def test_settings_that_keep_something_back_are_seen_as_hbase_has_them(
    job: Job, scene: Scene, omid: OmidClient, connector: Store
) -> None:
    """Each is named with what mends it, and gone with that: until then nothing in such a table is touched, and nothing
    pruned; then all are cleaned right. A durability may be accepted for the table. The tables that Omid, the workload
    and Phoenix make are as they should be."""
    tables = {name: scene.table() for name in (*HELD_BACK, "right")}
    crashed = {name: scene.crashed_after_commit(table) for name, table in tables.items()}
    starts = {start for start, _ in crashed.values()}
    plain = scene.table(omid_enabled=False, versions=1)
    for name, (settings, _) in HELD_BACK.items():
        omid.set(tables[name], **settings)
    found = {e.table: e for e in take_inventory(connector)}
    for name, (_, words) in HELD_BACK.items():
        assert not found[tables[name]].workable
        assert [word for word in words if word not in found[tables[name]].doubt] == [], name
    assert [found[table].doubt for table in (tables["right"], plain)] == ["", ""]
    accepted = {tables[name]: {"accept_durability": True} for name in ("async", "skip", "ttl")}
    config = connector.config.model_copy(update={"tables": accepted})
    again = {e.table: e for e in take_inventory(Store(connector.spark, config))}
    assert {name for name, table in tables.items() if again[table].workable} == {"async", "skip", "right"}
    omid.advance_watermark()
    before = {name: omid.raw(tables[name]) for name in HELD_BACK}
    assert job("orphan_cleanup", "--execute").code == 0, "the one that is right"
    prune(job)
    assert {name: omid.raw(tables[name]) for name in HELD_BACK} == before
    assert starts <= set(omid.commit_table())
    for name, (settings, _) in HELD_BACK.items():
        if "families" in settings:
            omid.set(
                tables[name],
                families={**ALL, "TTL": "2147483647", "KEEP_DELETED_CELLS": "FALSE", "NEW_VERSION_BEHAVIOR": "false"},
            )
        else:
            omid.set(tables[name], DURABILITY="SYNC_WAL")
    assert [e.table for e in take_inventory(connector) if e.doubt] == []
    assert job("orphan_cleanup", "--execute").code == 0
    assert {name: scene.healed(tables[name], start) for name, (start, _) in crashed.items()} == {
        name: commit for name, (_, commit) in crashed.items()
    }
    assert prune(job).code == 0
    assert not starts & set(omid.commit_table())


def test_a_mark_that_is_taken_off_leaves_the_proofs_in_place(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    configure: Callable[..., Path],
    connector: Store,
    recorded: Callable[..., int],
) -> None:
    """What the last collection recorded as transactional, and bears no mark now, is left alone with both ways out,
    however often it is looked at; with its mark again it is cleaned."""
    table, flagged = scene.table(), {"OMID_ENABLED": "true"}
    start, commit = scene.crashed_after_commit(table)
    recorded(scene.table())  # clean, so that it holds nothing back
    assert job("watermark_collection", "--execute").code == 0
    omid.set(table, families={"OMID_ENABLED": "false"})
    for _ in range(2):
        collected = job("watermark_collection", "--execute")
        assert collected.summary["bound"] < start, "its cells have no proof but their entry"
        [blocker] = [b for b in collected.summary["blockers"] if b["table"] == table]
        assert "'OMID_ENABLED' => 'true'" in blocker["reason"]
    [entry] = [e for e in take_inventory(connector) if e.table == table]
    assert (entry.kind, entry.workable) == (Kind.UNMARKED, False)
    plain = configure(tables={table: {"kind": "plain"}})
    assert job("watermark_collection", config=plain).code == 0, "the other way out"
    omid.set(table, families=flagged)
    assert job("orphan_cleanup", "--execute", config=configure()).code == 0
    assert scene.healed(table, start) == commit


@pytest.fixture
def labels(connector: Store) -> Iterator[None]:
    """The table that HBase makes where its servers keep visibility labels, as hbase:meta has it."""
    with connect(connector.config.hbase.thrift) as connection:
        meta = connection.table("hbase:meta")
        meta.put(b"hbase:labels", {b"table:state": meta.row(b"OMID_COMMIT_TABLE")[b"table:state"]})
        try:
            yield
        finally:
            meta.delete(b"hbase:labels")


@pytest.mark.usefixtures("labels")
def test_where_cells_may_bear_labels_nothing_is_judged(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """Labels do not travel to clients, so that a heal would lose them: every job refuses, with the word that says there
    are none; then it goes on.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    omid.advance_watermark()
    before = omid.raw(table), omid.commit_table()
    for command in (
        ("orphan_cleanup", "--execute"),
        ("commit_table_pruning", "--grace", "0s", "--execute"),
        ("history_gc",),
    ):
        refused = job(*command)
        assert (omid.raw(table), omid.commit_table()) == before
        assert refused.code == 2
        for word in ("hbase:labels", "hbase: {unlabelled: true}"):
            assert word in refused.problems
    assert job("orphan_cleanup", "--execute", config=configure(hbase={"unlabelled": True})).code == 0
    assert scene.healed(table, start) == commit
