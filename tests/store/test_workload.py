"""The crashing workload on a real store: what it leaves, and the model against Omid's own reader."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from conftest import booted

from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import (
    CRASH_POINTS,
    CommitEntry,
    LiveClients,
    Model,
    OmidClient,
    RawCell,
    Result,
    Shape,
    Transaction,
    WorkloadError,
    history,
    make_tables,
    run,
    script,
)
from lowtide.values.formats import shadow_qualifier

SEED = 11
TRANSACTIONS = 400


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with booted(free_ports_config(tmp_path_factory.mktemp("store"), hbase_heap="512m")) as store:
        yield store


@pytest.fixture(scope="module")
def omid(stack: Stack) -> Iterator[OmidClient]:
    with OmidClient(stack) as client:
        yield client


@pytest.fixture(scope="module")
def workload(stack: Stack, omid: OmidClient, tmp_path_factory: pytest.TempPathFactory) -> Result:
    out = tmp_path_factory.mktemp("workload") / "history.jsonl"
    result = run(stack, SEED, TRANSACTIONS, out, slices=3, omid=omid)
    assert Model.load(out).transactions == result.model.transactions
    return result


def assert_snapshots_equal(omid: OmidClient, model: Model, timestamps: list[int]) -> None:
    """Omid's reader and the model agree at each timestamp, in every column that is not torn."""
    for table in model.tables:
        torn = model.torn_columns(table)
        for timestamp in timestamps:
            read, expected = omid.read(table, timestamp), model.shown_at(table, timestamp)
            different = {
                column: (read.get(column), expected.get(column))
                for column in (read.keys() | expected.keys()) - torn
                if read.get(column) != expected.get(column)
            }
            assert different == {}, f"{table} at {timestamp}: (Omid, model) {different}"


# --- a whole workload -------------------------------------------------------------------------------------------------


def test_every_read_point_equals_the_model_before_any_cleaning(omid: OmidClient, workload: Result) -> None:
    """At 60 read timestamps Omid's reader shows, in each of three tables, exactly what the history implies."""
    timestamps = workload.model.read_timestamps(60)
    assert len(timestamps) == 60
    sizes = [len(workload.model.shown_at("orders", timestamp)) for timestamp in timestamps]
    assert sizes[-1] > 50
    assert len(set(sizes)) > 10
    assert_snapshots_equal(omid, workload.model, timestamps)


def test_conflict_free_writers_too(stack: Stack, omid: OmidClient, tmp_path: Path) -> None:
    """Where commits overtake each other (no conflict checks) the model still equals Omid's reader."""
    shape = Shape(tables=("free1", "free2"), rows=6, conflict_free=1.0, overlaps=0.9, crashes=0.1, reads=0.0)
    result = run(stack, 5, 150, tmp_path / "history.jsonl", shape=shape, kills=0, halts=0, omid=omid)
    versions = sorted(
        (cell.table, cell.column, each.start, each.commit) for each in result.model.committed for cell in each.cells
    )
    overtaken = [
        1 for (*one, _, before), (*other, _, after) in itertools.pairwise(versions) if one == other and before > after
    ]
    assert overtaken
    assert_snapshots_equal(omid, result.model, result.model.read_timestamps(40))


def test_every_outcome_occurs_and_the_watermark_passes_all(workload: Result) -> None:
    """All crash points, real kills and halts, conflicts and rollbacks; every transaction is at or below the
    watermark.
    """
    counts = workload.model.counts()
    expected = {"committed", "conflict", "rolled back", "read only", "abandoned", *(f"crash {n}" for n in CRASH_POINTS)}
    assert {name for name in expected if not counts[name]} == set()
    assert counts["ended by halt"] == 2
    assert counts["ended by kill"] >= 1
    assert all(each.start <= workload.watermark for each in workload.model)


def test_slices_follow_one_another(workload: Result) -> None:
    """Each boundary lies above all commits of its slice and below all transactions of the next."""
    assert len(workload.boundaries) == 3
    assert workload.boundaries == sorted(workload.boundaries)
    number = {
        each["id"]: position
        for position, each in enumerate(script.scripts(script.generate(Shape(), SEED, TRANSACTIONS)))
    }
    slices = [
        {number[each.id] for each in workload.model if each.id in number and low < each.start < high}
        for low, high in zip([0, *workload.boundaries], workload.boundaries, strict=False)
    ]
    assert all(slices)
    assert max(slices[0]) < min(slices[1])
    assert max(slices[1]) < min(slices[2])


def test_the_history_holds_what_the_script_asked_for(workload: Result) -> None:
    """Each committed transaction's puts are those of the same seed's script, in its order."""
    asked = {
        each["id"]: [step["value"].encode() for step in each["steps"] if step["do"] == "put"]
        for each in script.scripts(script.generate(Shape(), SEED, TRANSACTIONS))
    }
    compared = 0
    for each in workload.model.committed:
        if each.id in asked:
            written = [cell.value for cell in each.cells if cell.kind == "put"]
            # A buffered transaction sends one table after the other.
            assert Counter(written) == Counter(asked[each.id])
            compared += 1
    assert compared > 200


# --- what each crash point leaves -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Remains:
    """What one crashed transaction left in the store."""

    transaction: Transaction
    cells: int
    shadows: int
    wrong_shadows: int
    entry: CommitEntry | None


@pytest.fixture(scope="module")
def remains(omid: OmidClient, tmp_path_factory: pytest.TempPathFactory) -> dict[int, Remains]:
    shape = Shape(tables=("crash1", "crash2"), rows=50, steps=(4, 6))
    make_tables(omid, shape)
    path = tmp_path_factory.mktemp("crashes") / "log.jsonl"
    omid.run(script.crash_each(shape, 2), path, threads=1)
    stored = {table: present(omid.raw(table)) for table in shape.tables}
    entries = omid.commit_table()
    return {
        each.crash: left_by(each, stored, entries.get(each.start))
        for each in history.read(path, omid.fate)
        if each.crash is not None
    }


def present(cells: list[RawCell]) -> dict[tuple[bytes, bytes, bytes, int], bytes]:
    """The puts that no delete marker of exactly their version hides."""
    deleted = {cell.key for cell in cells if cell.kind == "delete"}
    return {cell.key: cell.value for cell in cells if cell.kind == "put" and cell.key not in deleted}


def left_by(
    transaction: Transaction,
    stored: dict[str, dict[tuple[bytes, bytes, bytes, int], bytes]],
    entry: CommitEntry | None,
) -> Remains:
    cells, shadows = 0, []
    for cell in set(transaction.cells):
        there, timestamp = stored[cell.table], transaction.start + cell.checkpoint
        cells += (cell.row, cell.family, cell.qualifier, timestamp) in there
        shadow = there.get((cell.row, cell.family, shadow_qualifier(cell.qualifier), timestamp))
        if shadow is not None:
            shadows.append(int.from_bytes(shadow, "big"))
    wrong = sum(value != transaction.commit for value in shadows)
    return Remains(transaction, cells, len(shadows), wrong, entry)


#: crash point: (cells, shadow cells, commit entry, invalidation mark, committed).
EXPECTED = {
    0: ("none", "none", False, False, False),
    1: ("all", "none", False, False, False),
    2: ("some", "none", False, False, False),
    4: ("all", "none", True, False, True),
    5: ("all", "some", True, False, True),
    6: ("all", "all", True, False, True),
    7: ("all", "all", True, False, True),
    8: ("none", "none", False, True, False),
    9: ("all", "none", False, True, False),
    10: ("all", "some", False, False, True),
}


@pytest.mark.parametrize("point", CRASH_POINTS)
def test_a_crash_point_leaves_what_the_protocol_says(remains: dict[int, Remains], point: int) -> None:
    """Cells, shadow cells, commit entry and invalidation mark of a transaction that stopped at the point."""
    left = remains[point]
    written = len(set(left.transaction.cells))
    assert written >= (0 if point == 0 else 2)
    assert (
        share(left.cells, written),
        share(left.shadows, written),
        left.entry is not None and left.entry.commit is not None,
        left.entry is not None and left.entry.invalid,
        left.transaction.commit is not None,
    ) == EXPECTED[point]
    assert left.wrong_shadows == 0
    if left.entry and left.entry.commit:
        assert left.entry.commit == left.transaction.commit


def share(count: int, of: int) -> str:
    return "none" if count == 0 else "all" if count == of else "some"


@pytest.mark.parametrize("point", [1, 2, 4, 5, 6, 9, 10])
def test_the_fate_of_a_crashed_transaction_is_read_from_the_store(
    omid: OmidClient, remains: dict[int, Remains], point: int
) -> None:
    """Its own shadow cells and the commit table say what the client knew when it died."""
    transaction = remains[point].transaction
    assert omid.fate(transaction.start, transaction.cells) == transaction.commit


def test_a_torn_transaction_is_seen_in_part(omid: OmidClient, remains: dict[int, Remains]) -> None:
    """At crash point 10 Omid's reader shows some of the committed cells and not the others."""
    torn = remains[10].transaction
    assert torn.commit is not None
    assert torn.torn
    seen = {
        cell: omid.read(cell.table, torn.commit + 1).get((cell.row, cell.family, cell.qualifier)) == cell.value
        for cell in torn.cells
    }
    assert set(seen.values()) == {True, False}


def test_a_client_that_halts_leaves_the_same_as_one_that_walks_away(
    stack: Stack, omid: OmidClient, tmp_path: Path
) -> None:
    """A process that really ends at a crash point is settled from the store to the outcome of that point."""
    shape = Shape(tables=("halt1",), rows=50, crash_points=(5,))
    make_tables(omid, shape)
    with OmidClient(stack) as doomed:
        doomed.start_run(script.crash_each(shape, 9, halt=True), tmp_path / "log.jsonl", threads=1)
        doomed.wait(30)
        with pytest.raises(WorkloadError, match=r"is gone|ended with 137"):
            doomed.watermark()
    omid.advance_watermark()
    (transaction,) = history.read(tmp_path / "log.jsonl", omid.fate, ended="kill")
    assert (transaction.ended, transaction.crash, transaction.outcome) == ("halt", 5, "committed")
    left = left_by(transaction, {"halt1": present(omid.raw("halt1"))}, omid.commit_table()[transaction.start])
    assert (share(left.shadows, left.cells), left.wrong_shadows) == ("some", 0)
    assert left.entry
    assert left.entry.commit == transaction.commit


# --- the reader and its tool box --------------------------------------------------------------------------------------


def test_reading_leaves_the_store_as_it_is_unless_asked_to_heal(stack: Stack, omid: OmidClient, tmp_path: Path) -> None:
    """Omid's reader writes the missing shadow cells only with ``heal``; both readings show the same."""
    shape = Shape(tables=("heal1",), rows=50, crash_points=(4,))
    make_tables(omid, shape)
    omid.run(script.crash_each(shape, 4), tmp_path / "log.jsonl", threads=1)
    before, timestamp = omid.raw("heal1"), stack.timestamp()
    seen = omid.read("heal1", timestamp)
    assert seen
    assert omid.raw("heal1") == before
    assert omid.read("heal1", timestamp, heal=True) == seen
    healed = {cell.key for cell in omid.raw("heal1")} - {cell.key for cell in before}
    assert healed
    assert {key[2][:3] for key in healed} == {b"\x00\xc2\x80"}


def test_omids_compactor_runs_when_attached(omid: OmidClient, tmp_path: Path) -> None:
    """A major compaction removes an orphan below the watermark and marks it; without the compactor it stays."""
    shape = Shape(tables=("compact1",), rows=50, crash_points=(1,), family_deletes=0, row_deletes=0, deletes=0)
    make_tables(omid, shape, omid_enabled=False)
    omid.run(script.crash_each(shape, 6), tmp_path / "log.jsonl", threads=1)
    (orphan,) = history.read(tmp_path / "log.jsonl", omid.fate)
    assert omid.advance_watermark() >= orphan.start
    omid.flush("compact1")
    omid.compact("compact1", major=True)
    assert len(omid.raw("compact1")) == len(set(orphan.cells))
    omid.attach_omid_compactor("compact1")
    omid.compact("compact1", major=True)
    assert omid.raw("compact1") == []
    assert omid.commit_table()[orphan.start] == CommitEntry(orphan.start, None, True)
    omid.detach_omid_compactor("compact1")


def test_the_watermark_is_moved_without_a_trace(stack: Stack, omid: OmidClient) -> None:
    """After the call the watermark is above a transaction begun before, and the commit table as it was."""
    start, entries = stack.timestamp(), omid.commit_table()
    watermark = omid.advance_watermark()
    assert start < watermark == omid.watermark()
    assert omid.commit_table() == entries


def test_commit_entries_and_marks_exclude_each_other(omid: OmidClient) -> None:
    """A mark is refused where an entry is; a deleted row makes room for it."""
    omid.add_commit_entry(50, 150)
    assert omid.commit_table()[50] == CommitEntry(50, 150, False)
    assert not omid.invalidate(50)
    omid.delete_commit_entry(50)
    assert 50 not in omid.commit_table()


def test_cells_are_put_and_deleted_exactly(omid: OmidClient) -> None:
    """Raw writes have the bytes and the timestamp given; a deleted version leaves the others."""
    omid.create("raw1", ["f"])
    any_bytes = bytes(range(256))
    for timestamp in (10, 20, 30):
        omid.put("raw1", any_bytes, b"f", b"q", timestamp, any_bytes)
    omid.delete_version("raw1", any_bytes, b"f", b"q", 20)
    assert [(cell.timestamp, cell.kind) for cell in omid.raw("raw1")] == [
        (30, "put"),
        (20, "delete"),
        (20, "put"),
        (10, "put"),
    ]
    assert {cell.value for cell in omid.raw("raw1") if cell.kind == "put"} == {any_bytes}


def test_cells_are_loaded_in_bulk(omid: OmidClient) -> None:
    """Past the log, into every region that they belong to, beside what is there; what a marker hides stays hidden."""
    omid.create("bulk", splits=["m"])
    omid.put("bulk", b"a", b"a", b"q", 50, b"there")
    omid.put("bulk", b"a", b"a", b"q", 100, b"gone")
    omid.delete_version("bulk", b"a", b"a", b"q", 100)
    cells = [
        (b"a", b"a", b"q", 100, b"gone"),
        (b"z", b"b", b"\x00\xc2\x80q\xc2\x80", 150, b"\x00\xff"),
        (b"a", b"a", b"", 150, b""),
    ]
    omid.bulk_load("bulk", cells)
    found = {(*cell[:4], cell.kind, cell.value) for cell in omid.raw("bulk")}
    assert found == {
        (b"a", b"a", b"q", 50, "put", b"there"),
        (b"a", b"a", b"q", 100, "put", b"gone"),
        (b"a", b"a", b"q", 100, "delete", b""),
        *((*cell[:4], "put", cell[4]) for cell in cells[1:]),
    }
    omid.drop("bulk")


def test_regions_are_split_moved_and_merged(omid: OmidClient) -> None:
    """Each returns when it is done, and no cell is lost on the way."""
    omid.create("regions1", ["f"], splits=["m"])
    for row in (b"a", b"h", b"z"):
        omid.put("regions1", row, b"f", b"q", 50, b"v")
    omid.flush("regions1")
    cells = omid.raw("regions1")
    omid.split("regions1", b"h")
    assert [region.start for region in omid.regions("regions1")] == [b"", b"h", b"m"]
    omid.move("regions1", b"h")
    assert omid.raw("regions1") == cells
    omid.compact("regions1", major=True)
    omid.merge("regions1", b"a")
    assert [region.start for region in omid.regions("regions1")] == [b"", b"m"]
    assert omid.raw("regions1") == cells


def test_tables_are_snapshotted_cloned_restored_truncated_and_dropped(omid: OmidClient) -> None:
    """The usual life of a table, and an error that names what is wrong."""
    omid.create("life1", ["f"])
    omid.put("life1", b"r", b"f", b"q", 50, b"v")
    cells = omid.raw("life1")
    omid.snapshot("life1", "life-snapshot")
    omid.clone("life-snapshot", "life2")
    assert omid.raw("life2") == cells
    omid.truncate("life1")
    assert omid.raw("life1") == []
    omid.restore("life-snapshot")
    assert omid.raw("life1") == cells
    omid.delete_snapshot("life-snapshot")
    assert "life-snapshot" not in omid.snapshots()
    omid.drop("life2")
    assert "life2" not in omid.tables()
    with pytest.raises(WorkloadError, match="life2"):
        omid.raw("life2")


# --- live clients -----------------------------------------------------------------------------------------------------


def test_live_clients_commit_while_the_watermark_moves(stack: Stack, omid: OmidClient, tmp_path: Path) -> None:
    """Commits, conflicts and refusals by the watermark are told apart and in the history, which Omid's reader
    confirms.
    """
    shape = Shape(tables=("live1", "live2"), rows=20, crashes=0.0, pauses=0.2)
    with LiveClients(stack, tmp_path / "live.jsonl", clients=3, shape=shape) as live:
        for _ in range(5):
            live.await_commits(15)
            omid.advance_watermark()
        counts = live.stop()
    assert counts["committed"] >= 75
    assert counts["watermark"] >= 1
    assert counts["failed"] == counts["in doubt"] == 0
    outcomes = Counter(each.outcome for each in live.model)
    assert {name: count for name, count in counts.items() if count} == outcomes
    assert_snapshots_equal(omid, live.model, [*live.model.read_timestamps(10), stack.timestamp()])


def test_killed_live_clients_are_settled(stack: Stack, omid: OmidClient, tmp_path: Path) -> None:
    """After SIGKILL the history still says exactly what Omid's reader shows."""
    shape = Shape(tables=("live3",), rows=20, crashes=0.0)
    live = LiveClients(stack, tmp_path / "live.jsonl", clients=4, shape=shape)
    with live:
        live.await_commits(40)
        model = live.kill(omid)
    assert model.counts()["ended by kill"] >= 1
    assert_snapshots_equal(omid, model, [*model.read_timestamps(10), stack.timestamp()])
