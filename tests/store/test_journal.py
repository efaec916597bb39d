"""What pruning keeps in the journal, and when the journal lets go of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark.cleaning import pruning, watermarks
from lowtide_spark.frames.store import Store
from scene import Scene

from lowtide.config import Config
from lowtide.journal.life import FAMILY
from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore
from lowtide.values.formats import INVALID_VALUE, OWN_INVALID_VALUE, commit_key, encode_long

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]

JOURNAL = Config().state.journal_table
HOUR, DAY = 3_600_000, 86_400_000
#: The three columns of the journal and of the commit table, as HBase shows them.
ENTRY, MARK = b"C", b"IT"


@pytest.fixture(autouse=True)
def journal(connector: Store) -> None:
    """The journal is there, whether or not a test has pruned before."""
    connector.create_table(JOURNAL, FAMILY)


@pytest.fixture
def snapshots(omid: OmidClient) -> Iterator[Callable[[str], str]]:
    """Take HBase snapshots that go with the test."""
    taken: list[str] = []

    def take(table: str) -> str:
        name = f"kept-{table}-{len(taken)}"
        omid.snapshot(table, name)
        taken.append(name)
        return name

    yield take
    for name in set(taken) & set(omid.snapshots()):
        omid.delete_snapshot(name)


def prune(job: Job, *extra: str, **options: Any) -> Outcome:
    """Run commit_table_pruning without grace, acting unless ``dry`` is among the arguments."""
    how = () if "dry" in extra else ("--execute",)
    return job("commit_table_pruning", "--grace", "0s", *how, *(e for e in extra if e != "dry"), **options)


def shown(omid: OmidClient, table: str, *starts: int) -> dict[tuple[int, bytes], tuple[int, bytes]]:
    """Timestamp and value of what is visible of these transactions, by start timestamp and qualifier."""
    rows = {commit_key(start): start for start in starts}
    cells = [c for c in omid.raw(table) if c.row in rows]
    gone = {(c.row, c.qualifier): c.timestamp for c in cells if c.kind == "delete_column"}
    return {
        (rows[c.row], c.qualifier): (c.timestamp, c.value)
        for c in reversed(cells)
        if c.kind == "put" and c.timestamp > gone.get((c.row, c.qualifier), -1)
    }


@pytest.mark.usefixtures("no_snapshots")
def test_the_journal_is_kept_as_long_as_an_older_snapshot_of_a_table(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    connector: Store,
    configure: Callable[..., Path],
    snapshots: Callable[[str], str],
    recorded: Callable[..., int],
) -> None:
    """An entry below the bound goes once it is older than ``journal_keep`` and than a day before every HBase snapshot
    that could bring its cells back.

    An HBase snapshot of a table that was dropped since counts, one of a plain table, of the journal or of the commit
    table does not. A dry run removes nothing.
    """
    plain, table = scene.table(omid_enabled=False), scene.table()
    for harmless in (plain, JOURNAL, "OMID_COMMIT_TABLE"):
        snapshots(harmless)
    snapshot = snapshots(table)
    omid.drop(table)
    (edge,) = [s.created - DAY for s in connector.snapshots() if s.name == snapshot]
    starts = [omid.begin() for _ in range(5)]
    before, mark, at, beyond, young = starts
    for start, written in ((before, edge - 1), (at, edge), (beyond, edge + 2 * HOUR), (young, edge + DAY)):
        omid.put(JOURNAL, commit_key(start), b"j", ENTRY, written, encode_long(start + 50))
    omid.put(JOURNAL, commit_key(mark), b"j", MARK, edge - HOUR, INVALID_VALUE)
    recorded(scene.table())
    there = shown(omid, JOURNAL, *starts)
    assert len(there) == 5
    short = configure(state={"journal_keep": "1h"}, defaults={"full_pass_every": "1h"})
    assert prune(job, "dry", config=short).code == 0
    assert shown(omid, JOURNAL, *starts) == there
    assert prune(job, config=short).code == 0
    assert set(shown(omid, JOURNAL, *starts)) == {(start, ENTRY) for start in (at, beyond, young)}
    omid.delete_snapshot(snapshot)
    assert prune(job, config=short).code == 0
    assert set(shown(omid, JOURNAL, *starts)) == {(young, ENTRY)}


@pytest.mark.usefixtures("no_snapshots")
def test_the_journal_is_kept_as_long_as_a_snapshot_of_what_is_plain_by_now(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    connector: Store,
    configure: Callable[..., Path],
    snapshots: Callable[[str], str],
    recorded: Callable[..., int],
) -> None:
    """A table that was cleaned once was transactional when the HBase snapshot was made, whatever has its name now."""
    table = scene.table()
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    snapshot = snapshots(table)
    omid.drop(table)
    omid.create(table, ("a",), omid_enabled=False)
    (edge,) = [s.created - DAY for s in connector.snapshots() if s.name == snapshot]
    start = omid.begin()
    omid.put(JOURNAL, commit_key(start), b"j", ENTRY, edge + 2 * HOUR, encode_long(start + 50))
    recorded(scene.table())
    short = configure(state={"journal_keep": "1h"}, defaults={"full_pass_every": "1h"})
    assert prune(job, config=short).code == 0
    assert (start, ENTRY) in shown(omid, JOURNAL, start)
    omid.delete_snapshot(snapshot)
    assert prune(job, config=short).code == 0
    assert shown(omid, JOURNAL, start) == {}


@pytest.mark.usefixtures("no_snapshots")
def test_the_journal_is_kept_for_its_time(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    configure: Callable[..., Path],
    recorded: Callable[..., int],
) -> None:
    """Where no HBase snapshot is older, ``journal_keep`` is what an entry is kept, and nothing younger goes; unless it
    is configured, nothing does at all.

    What went is remembered as a horizon.
    """
    table = scene.table()
    before = state.journal().horizon
    starts = older, younger = omid.begin(), omid.begin()
    recorded(table)
    now = int(time.time() * 1000)
    for start, written in ((older, now - 30 * DAY - HOUR), (younger, now - 30 * DAY + HOUR)):
        omid.put(JOURNAL, commit_key(start), b"j", ENTRY, written, encode_long(start + 50))
    for settings in ({}, {"state": {"journal_keep": "31d"}}):
        assert prune(job, config=configure(**settings)).code == 0
        assert set(shown(omid, JOURNAL, *starts)) == {(older, ENTRY), (younger, ENTRY)}
        assert state.journal().horizon == before
    assert prune(job, config=configure(state={"journal_keep": "30d"})).code == 0
    assert set(shown(omid, JOURNAL, *starts)) == {(younger, ENTRY)}
    assert state.journal().horizon == older


@pytest.fixture
def short(configure: Callable[..., Path]) -> Path:
    """The journal keeps nothing that was there when a pruning began."""
    return configure(state={"journal_keep": "0s"}, defaults={"full_pass_every": "0s", "budget": {"share": 1.0}})


@pytest.mark.usefixtures("no_snapshots")
def test_the_journal_keeps_what_a_cell_needs_that_nobody_has_told_of(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, short: Path
) -> None:
    """A cell of before comes into a table whose records say that it is clean, as by an import without a word: its proof
    stays until it is healed, and goes then.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    assert job("orphan_cleanup", "--table", table, "--execute", config=short).code == 0
    assert prune(job, config=short).code == 0
    assert set(shown(omid, JOURNAL, start)) == {(start, ENTRY)}
    (data,) = (c for c in omid.raw(table) if c.row == b"healed" and c.kind == "put" and b"\xc2\x80" not in c.qualifier)
    omid.put(table, b"imported", data.family, data.qualifier, data.timestamp, data.value)
    before = state.journal().horizon
    outcome = prune(job, config=short)
    assert set(shown(omid, JOURNAL, start)) == {(start, ENTRY)}, "its proof is gone"
    assert state.journal().horizon == before
    assert outcome.code == 1
    assert f"no journal entry was removed: {table}, row {b'imported'.hex()}" in outcome.problems
    assert job("orphan_cleanup", "--table", table, "--full", "--execute", config=short).code == 0
    assert scene.healed(table, start, row=b"imported") == commit
    assert prune(job, config=short).code == 0
    assert shown(omid, JOURNAL, start) == {}


@pytest.mark.usefixtures("no_snapshots")
def test_the_journal_keeps_what_a_table_needs_that_comes_back_while_a_pruning_goes_on(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    monkeypatch: pytest.MonkeyPatch,
    short: Path,
    snapshots: Callable[[str], str],
) -> None:
    """Under a name that was not there when it listed the tables; its HBase snapshot is gone when it lists those."""
    table, other = scene.table(), scene.table()
    start, _ = scene.crashed_after_commit(table, row=b"healed")
    kept = snapshots(table)
    omid.advance_watermark()
    assert job("orphan_cleanup", "--table", table, "--table", other, "--execute", config=short).code == 0
    assert prune(job, config=short).code == 0
    omid.drop(table)
    count, back = pruning._count, f"{table}back"

    def comes_back(*arguments: Any) -> None:
        if kept in omid.snapshots():
            omid.clone(kept, back)
            omid.delete_snapshot(kept)
        count(*arguments)

    monkeypatch.setattr(pruning, "_count", comes_back)
    try:
        outcome = prune(job, config=short)
        assert set(shown(omid, JOURNAL, start)) == {(start, ENTRY)}, "its proof is gone"
        assert outcome.code == 1
        assert f"no journal entry was removed: {back}, row" in outcome.problems
    finally:
        omid.drop(back)


def test_what_is_pruned_is_in_the_journal_as_its_readers_saw_it(job: Job, scene: Scene, omid: OmidClient) -> None:
    """An entry is journaled with its commit timestamp; a mark, also one beside an entry, as not committed, and whose
    it is; a row of an unknown form stays.
    """
    table = scene.table()
    starts = entry, mark, own, both, odd, fence = [omid.begin() for _ in range(6)]
    commit = omid.begin()
    omid.advance_watermark()
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    try:
        for start in (entry, both, odd):
            omid.add_commit_entry(start, commit)
        omid.add_commit_entry(fence, fence)
        assert omid.invalidate(mark)
        omid.put("OMID_COMMIT_TABLE", commit_key(own), b"F", MARK, own, OWN_INVALID_VALUE)
        omid.put("OMID_COMMIT_TABLE", commit_key(both), b"F", MARK, both, INVALID_VALUE)
        omid.put("OMID_COMMIT_TABLE", commit_key(odd), b"F", b"X", odd, b"?")
        outcome = prune(job)
        assert outcome.code == 1
        assert commit_key(odd).hex() in outcome.problems
        assert set(shown(omid, "OMID_COMMIT_TABLE", *starts)) == {(odd, ENTRY), (odd, b"X")}
        journaled = {place: value for place, (_, value) in shown(omid, JOURNAL, *starts).items()}
        assert journaled == {
            (entry, ENTRY): encode_long(commit),
            (mark, MARK): INVALID_VALUE,
            (own, MARK): OWN_INVALID_VALUE,
            (both, MARK): INVALID_VALUE,
            (fence, ENTRY): encode_long(fence),
        }
    finally:
        omid.delete_commit_entry(odd)


@pytest.mark.parametrize("name", ["commit_table_pruning", "watermark_collection"])
def test_a_table_that_comes_after_the_listing_keeps_its_entries(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The low watermark is read before tables are listed: of a table that is made and written in between nothing is
    below the bound.

    Not even where every listed table is cleaned beyond its cells before the run goes on.
    """
    table = scene.table()
    omid.advance_watermark()
    module = pruning if name == "commit_table_pruning" else watermarks
    take_inventory = module.take_inventory
    late: list[tuple[str, int]] = []

    def and_then_a_table(store: Store) -> Any:
        found = take_inventory(store)
        fresh = scene.table()
        late.append((fresh, scene.crashed_after_commit(fresh)[0]))
        omid.advance_watermark()
        assert job("orphan_cleanup", "--table", table, "--execute").code == 0
        return found

    monkeypatch.setattr(module, "take_inventory", and_then_a_table)
    outcome = job(name, *(("--grace", "0s") if name == "commit_table_pruning" else ()), "--execute")
    [(_, start)] = late
    assert outcome.code == 0, outcome.problems
    assert 0 < outcome.summary["bound"] < start
    assert not omid.commit_table()[start].invalid
