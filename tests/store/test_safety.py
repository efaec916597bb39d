"""The first eleven safety rules on the real store: each test fails when its rule is broken (docs/safety.md)."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import deadman
import pytest
from conftest import Outcome
from hshell import obey, statements
from lowtide_spark.cleaning import acting, marks, orphans, plan, pruning, recording, watermarks
from lowtide_spark.frames.store import Store
from pyspark.sql import functions as F
from scene import Scene
from typer.testing import CliRunner

from lowtide.cli.app import app
from lowtide.errors import FencedError, WatermarkError
from lowtide.lab.workload import OmidClient
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore
from lowtide.values.formats import after, commit_key, encode_long, shadow_qualifier

Job = Callable[..., Outcome]


def clean(job: Job, *tables: str, **options: Any) -> Outcome:
    """Run orphan_cleanup for these tables, acting."""
    extra = options.pop("extra", ())
    named = [part for table in tables for part in ("--table", table)]
    return job("orphan_cleanup", *named, "--execute", *extra, **options)


def decided(config: Path, start: int, commit: int | None) -> None:
    """Say what became of a transaction, as runs ask for it."""
    word = ["--aborted"] if commit is None else ["--committed", str(commit)]
    said = CliRunner().invoke(app, ["resolve", str(start), *word, "--yes", "--config", str(config)])
    assert said.exit_code == 0, (said.output, said.exception)


@pytest.fixture
def gateway(connector: Store) -> Iterator[Any]:
    """HBase's Thrift gateway."""
    with connect(connector.config.hbase.thrift) as connection:
        yield connection


# -- rule 1


def test_only_transactions_at_or_below_the_low_watermark_are_touched(job: Job, scene: Scene, omid: OmidClient) -> None:
    """An orphan below the low watermark goes; a cell of a transaction above it stays, whatever the commit table
    says.
    """
    table = scene.table()
    old = scene.orphan(table)
    watermark = omid.advance_watermark()
    young = scene.orphan(table)
    assert old <= watermark < young
    assert clean(job, table).code == 0
    assert not scene.has(table, old)
    assert scene.has(table, young)
    assert young not in omid.commit_table()


def test_the_low_watermark_is_read_before_anything_else(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the low watermark moves while the run plans, the run still keeps to the one it read first."""
    table = scene.table()
    scene.orphan(table)
    first = omid.advance_watermark()
    later: list[int] = []

    def slow_inventory(store: Store) -> Any:
        later.append(scene.orphan(table, row=b"later"))
        assert omid.advance_watermark() >= later[0]
        return take_inventory(store)

    take_inventory = orphans.take_inventory
    monkeypatch.setattr(orphans, "take_inventory", slow_inventory)
    outcome = clean(job, table)
    assert scene.has(table, later[0], row=b"later")
    assert outcome.summary["low_watermark"] == first


@pytest.mark.parametrize(
    ("module", "asked"),
    [(watermarks, ["watermark_collection"]), (pruning, ["commit_table_pruning", "--grace", "0s"])],
    ids=["collect", "prune"],
)
def test_the_bound_is_of_a_low_watermark_that_was_read_before_the_tables(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch, module: Any, asked: list[str]
) -> None:
    """A table that comes while tables are listed may hold committed cells at or below a low watermark that is read
    afterwards.
    """
    table = scene.table()
    first = omid.advance_watermark()

    def slow_inventory(store: Store) -> Any:
        found = take_inventory(store)
        scene.crashed_after_commit(scene.table())
        omid.advance_watermark()
        assert clean(job, table).code == 0, "so that this table does not hold the bound"
        return found

    take_inventory = module.take_inventory
    monkeypatch.setattr(module, "take_inventory", slow_inventory)
    outcome = job(*asked)
    assert outcome.summary["bound"] <= first
    assert outcome.summary["low_watermark"] == first


def test_a_low_watermark_that_went_back_stops_the_run(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, configure: Callable[..., Path]
) -> None:
    """After an oracle lost its timestamps no recorded watermark is trusted: the run is refused and nothing is touched;
    also when the oracle has passed the recorded one again, for what it gave out until then was below it."""
    table = scene.table()
    orphan = scene.orphan(table)
    watermark = omid.advance_watermark()
    state.create()
    state.record_low_watermark(watermark + 100)
    try:
        outcome = clean(job, table)
        assert scene.has(table, orphan), "no watermark is trusted"
        assert outcome.code == 1
        assert "gone back" in outcome.problems
        reset = ["state", "reset", "--yes", "--config", str(configure())]
        refused = CliRunner().invoke(app, reset)
        assert isinstance(refused.exception, WatermarkError), "numbers of before would be given again"
        assert "let it begin at" in str(refused.exception)
        while omid.advance_watermark() < watermark + 100:
            pass
        outcome = clean(job, table)
        assert scene.has(table, orphan), "the oracle has come that far again"
        assert f"gone back from {watermark + 100} to {watermark}" in outcome.problems
        assert CliRunner().invoke(app, reset).exit_code == 0
    except BaseException:
        state.reset()
        raise
    assert clean(job, table).code == 0
    assert not scene.has(table, orphan)


def test_records_that_are_reset_while_the_run_decides_stop_it(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that are reset between reading and acting, as after an oracle was made anew: nothing is put, deleted or
    recorded.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    omid.advance_watermark()
    decide_all = plan.decide_all

    def slow_plan(*arguments: Any) -> None:
        decide_all(*arguments)
        state.reset()

    monkeypatch.setattr(plan, "decide_all", slow_plan)
    outcome = clean(job, table)
    _nothing_was_done(outcome, scene, table, orphan, state)


def test_records_that_are_reset_while_a_pruning_decides_stop_it(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    recorded: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where another run has recorded a low watermark since that is higher than the one that this run began
    with.
    """
    table = scene.table()
    start = omid.begin()
    omid.add_commit_entry(start, omid.begin())
    recorded(table)
    doomed = pruning._doomed

    def slow(*arguments: Any) -> Any:
        state.reset()
        state.record_low_watermark(omid.advance_watermark())
        return doomed(*arguments)

    monkeypatch.setattr(pruning, "_doomed", slow)
    outcome = job("commit_table_pruning", "--grace", "0s", "--execute")
    assert start in omid.commit_table()
    assert outcome.code == 1
    assert "made anew" in outcome.problems
    monkeypatch.undo()
    recorded(table)
    assert job("commit_table_pruning", "--grace", "0s", "--execute").code == 0
    assert start not in omid.commit_table(), "nothing else kept it"


def test_an_oracle_that_is_made_anew_while_the_run_decides_stops_it(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The records are as they were, and the low watermark that the oracle stores is a lower one than the run began
    with: the same.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    watermark = omid.advance_watermark()
    decide_all = plan.decide_all
    place = _above_the_oracles(watermark)

    def slow_plan(*arguments: Any) -> None:
        decide_all(*arguments)
        omid.put("OMID_COMMIT_TABLE", *place, encode_long(watermark - 50))

    monkeypatch.setattr(plan, "decide_all", slow_plan)
    try:
        outcome = clean(job, table)
    finally:
        omid.delete_version("OMID_COMMIT_TABLE", *place)
        state.reset()
    assert omid.watermark() >= watermark
    _nothing_was_done(outcome, scene, table, orphan, state)


def test_an_oracle_that_is_made_anew_while_the_run_acts_has_nothing_recorded(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the run did was right when it looked last; what it would say of the table's ranges is of another oracle's
    numbers by now.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    watermark = omid.advance_watermark()
    check_healed = acting.check_healed
    place = _above_the_oracles(watermark)

    def slow_check(*arguments: Any) -> None:
        check_healed(*arguments)
        omid.put("OMID_COMMIT_TABLE", *place, encode_long(watermark - 50))

    monkeypatch.setattr(acting, "check_healed", slow_check)
    try:
        outcome = clean(job, table)
        recorded = state.read(table).facts
    finally:
        omid.delete_version("OMID_COMMIT_TABLE", *place)
        state.reset()
    assert recorded == ()
    assert not scene.has(table, orphan)
    assert outcome.code == 1
    assert "made anew" in outcome.problems


def _above_the_oracles(watermark: int) -> tuple[bytes, bytes, bytes, int]:
    """A cell over the low watermark that the oracle has stored, which shows again when this one is gone. Each time it
    is another: what was deleted once stays under its delete marker.
    """
    return b"LOW_WATERMARK", b"LWF", b"LWC", (1 << 61) + watermark


def _nothing_was_done(outcome: Outcome, scene: Scene, table: str, orphan: int, state: StateStore) -> None:
    assert scene.has(table, orphan), "nothing is deleted"
    assert orphan not in scene.omid.commit_table(), "no mark is put"
    assert state.read(table).facts == (), "nothing is recorded"
    assert outcome.code == 1
    assert "made anew" in outcome.problems


# -- rule 2


def test_a_commit_entry_proves_the_commit(job: Job, scene: Scene, omid: OmidClient) -> None:
    """A cell without shadow cell whose transaction has a commit entry is healed with the entry's commit timestamp."""
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    omid.advance_watermark()
    assert clean(job, table).code == 0
    assert scene.healed(table, start) == commit


def test_of_tables_that_are_decided_together_each_has_its_own_cells(job: Job, scene: Scene, omid: OmidClient) -> None:
    """Small tables are read and decided in one query: what is planned for a cell of one is done there, nowhere else."""
    one, other = scene.table(), scene.table()
    orphan, (healed, commit) = scene.orphan(one, row=b"one"), scene.crashed_after_commit(other, row=b"other")
    gone = scene.orphan(other, row=b"gone")
    omid.advance_watermark()
    outcome = job("orphan_cleanup", "--table", one, "--table", other, "--execute")
    assert {cell.row for cell in omid.raw(one)} == {b"one"}, "nothing was written for a row of another table"
    assert {cell.row for cell in omid.raw(other)} == {b"other", b"gone"}
    assert (outcome.code, outcome.problems) == (0, "")
    assert (outcome.totals["healed"], outcome.totals["deleted"]) == (1, 2)
    assert not scene.has(one, orphan, row=b"one")
    assert not scene.has(other, gone, row=b"gone")
    assert scene.healed(other, healed, row=b"other") == commit


@pytest.mark.turns(2)
@pytest.mark.parametrize("marked", [False, True], ids=["nothing", "a wrong mark"])
def test_a_shadow_cell_in_another_table_proves_the_commit(
    job: Job, scene: Scene, omid: OmidClient, marked: bool
) -> None:
    """With no commit entry left, a shadow cell of the transaction in a table that the run was not given proves it; a
    mark found wrong goes.
    """
    table, other = scene.table(), scene.table(("x",))
    start, commit = scene.committed(other, family=b"x")
    scene.cell(table, start)
    if marked:
        assert omid.invalidate(start)
    omid.advance_watermark()
    outcome = clean(job, table)
    assert scene.healed(table, start) == commit
    assert outcome.code == 0
    assert start not in omid.commit_table()
    assert outcome.totals["unmarked"] == int(marked)


def test_a_shadow_cell_without_data_proves_the_commit(job: Job, scene: Scene, omid: OmidClient) -> None:
    """A dangling shadow cell, which a family delete leaves, is a proof as good as any."""
    table = scene.table(("a", "b"))
    start, commit = omid.begin(), omid.begin()
    scene.cell(table, start)
    scene.shadow(table, start, commit, family=b"b", qualifier=b"deleted")
    omid.advance_watermark()
    assert clean(job, table).code == 0
    assert scene.healed(table, start) == commit


def test_a_shadow_cell_with_its_own_timestamp_proves_its_own_cell_only(
    job: Job, scene: Scene, omid: OmidClient
) -> None:
    """Index population writes such shadow cells: their cells stay as they are, another cell of that timestamp goes."""
    table = scene.table()
    start = omid.begin()
    scene.cell(table, start, qualifier=b"index")
    scene.shadow(table, start, start, qualifier=b"index")
    scene.cell(table, start, qualifier=b"other")
    omid.advance_watermark()
    assert clean(job, table).code == 0
    assert scene.has(table, start, qualifier=b"index")
    assert scene.healed(table, start, qualifier=b"index") == start
    assert not scene.has(table, start, qualifier=b"other")


def test_a_deleted_orphan_leaves_a_mark_behind(job: Job, scene: Scene, omid: OmidClient) -> None:
    """Before an orphan is deleted its transaction is invalidated, so that no late commit entry can count."""
    table = scene.table()
    start = scene.orphan(table)
    omid.advance_watermark()
    outcome = clean(job, table)
    assert outcome.totals["marked"] == 1
    assert outcome.table("OMID_COMMIT_TABLE")["execute"], "marks that were put are not only planned"
    assert omid.commit_table()[start].invalid
    omid.add_commit_entry(start, omid.begin())  # a deposed oracle's put, late
    assert omid.commit_table()[start].invalid


def test_an_entry_that_comes_while_the_run_decides_is_seen(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit entry that lands after the first look, before the mark, makes the cell committed: it is healed.

    The range is not recorded, since cells of that transaction with shadow cells were not rewritten; the next run does
    both.
    """
    table = scene.table()
    start = scene.orphan(table)
    omid.advance_watermark()
    commit = start + 50
    mark = marks.put

    def late_entry(*arguments: Any) -> Any:
        omid.add_commit_entry(start, commit)
        return mark(*arguments)

    monkeypatch.setattr(marks, "put", late_entry)
    outcome = clean(job, table)
    assert scene.healed(table, start) == commit
    assert "run again" in outcome.problems
    assert not omid.commit_table()[start].invalid
    assert state.read(table).facts == ()
    monkeypatch.undo()
    assert clean(job, table).code == 0
    assert len(state.read(table).facts) == 1


def test_a_row_behind_a_delete_marker_leaves_its_cells_undecided(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore
) -> None:
    """Where a mark could not be read back, because a completed transaction's row was deleted, the cell stays and the
    range is not recorded.
    """
    table = scene.table()
    start, _ = scene.crashed_after_commit(table)
    omid.delete_commit_entry(start)  # what post-commit does although a shadow cell failed
    omid.advance_watermark()
    dry = job("orphan_cleanup", "--table", table)
    outcome = clean(job, table)
    assert scene.has(table, start)
    assert state.read(table).facts == ()
    assert (dry.code, outcome.code) == (1, 1)
    assert "delete marker" in outcome.problems


@pytest.mark.turns(2, group="proofs at length")
def test_the_journal_outlives_the_commit_entry(job: Job, scene: Scene, omid: OmidClient) -> None:
    """A restored HBase snapshot brings back a cell without shadow cell after its entry was pruned: the journal proves
    its commit.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    omid.advance_watermark()
    omid.snapshot(table, f"{table}-before")
    assert clean(job, table).code == 0
    assert job("commit_table_pruning", "--grace", "0s", "--execute").code == 0
    assert start not in omid.commit_table()
    omid.compact("OMID_COMMIT_TABLE", major=True)  # no delete marker is left either that would tell of the entry
    omid.restore(f"{table}-before")
    assert scene.healed(table, start) is None
    try:
        outcome = clean(job, table, extra=("--full",))
        assert scene.healed(table, start) == commit
        assert outcome.code == 0
    finally:
        omid.delete_snapshot(f"{table}-before")


# -- rule 3


def test_a_healed_cell_survives_omids_compactor(job: Job, scene: Scene, omid: OmidClient) -> None:
    """The heal writes data and shadow cell together: minor compaction of the newer files, then a major one, keep
    both.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    scene.flush_a_large_file(table)
    _survives(job, scene, omid, table, start, commit)


def test_a_shadow_cell_that_a_reader_wrote_is_rewritten_with_its_data(job: Job, scene: Scene, omid: OmidClient) -> None:
    """A transaction that still has an entry may have been healed by a reader, shadow cell alone: all its cells are
    rewritten.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    scene.flush_a_large_file(table)
    scene.shadow(table, start, commit)  # in a newer file than its data
    omid.flush(table)
    _survives(job, scene, omid, table, start, commit)


def _survives(job: Job, scene: Scene, omid: OmidClient, table: str, start: int, commit: int) -> None:
    read_at = omid.begin()
    omid.advance_watermark()
    assert clean(job, table).code == 0
    assert job("commit_table_pruning", "--grace", "0s", "--execute").code == 0
    assert start not in omid.commit_table()
    scene.compacted_by_omid(table)
    assert omid.read(table, read_at).get((b"r", b"a", b"q")) == b"v"
    assert scene.healed(table, start) == commit


def test_a_late_heal_brings_nothing_back(connector: Store, scene: Scene, omid: OmidClient) -> None:
    """A heal whose cell has been removed meanwhile is refused: neither data nor shadow cell appears."""
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    row = {"op": "heal_if_present", "region": "r", "row": b"r", "family": b"a", "qualifier": b"q"}
    mutations = connector.spark.createDataFrame(
        [{**row, "timestamp": start, "value": b"v", "commit_ts": commit}],
        "op string, region string, row binary, family binary, qualifier binary, timestamp bigint, value "
        "binary, commit_ts bigint",
    )
    omid.delete_version(table, b"r", b"a", b"q", start)
    omid.flush(table)
    omid.compact(table, major=True)
    (written,) = connector.write(mutations, table)
    assert (written.done, written.refused) == (0, 1)
    assert omid.raw(table) == []


# -- rule 4


def test_a_delete_takes_one_version_and_leaves_older_ones(job: Job, scene: Scene, omid: OmidClient) -> None:
    """An orphan between committed versions of its column goes alone."""
    table = scene.table()
    older, _ = scene.committed(table, value=b"older")
    orphan = scene.orphan(table)
    newer, _ = scene.committed(table, value=b"newer")
    omid.advance_watermark()
    outcome = clean(job, table)
    assert [scene.has(table, t) for t in (older, orphan, newer)] == [True, False, True]
    assert outcome.code == 0, outcome.problems


def test_a_cell_that_is_committed_before_the_delete_stays(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shadow cell that appears after the decision makes the guard refuse; the mark goes and the range is not
    recorded.
    """
    table = scene.table()
    start = scene.orphan(table)
    omid.advance_watermark()
    put_aside = acting.put_aside

    def race(*arguments: Any) -> str:
        scene.shadow(table, start, start + 50)
        return put_aside(*arguments)

    monkeypatch.setattr(acting, "put_aside", race)
    outcome = clean(job, table)
    assert scene.has(table, start), "it is committed"
    assert start not in omid.commit_table()
    assert outcome.code == 1
    assert "run again" in outcome.problems
    monkeypatch.undo()
    assert clean(job, table).code == 0
    assert scene.has(table, start)


# -- rule 5


def test_a_range_is_recorded_only_after_all_its_actions(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutation that fails leaves its key range unrecorded, the other range recorded, the run red; the next run mends
    it.
    """
    table = scene.table(splits=(b"m",))
    orphan = scene.orphan(table, row=b"a")
    scene.crashed_after_commit(table, row=b"z")
    omid.advance_watermark()
    write = Store.write

    def failing(self: Store, mutations: Any, name: str, **named: Any) -> Any:
        """Turn the delete of row ``a`` into a put to a family that is not there, which HBase refuses with an error."""
        if name == table:
            is_a = F.col("row") == bytearray(b"a")
            mutations = mutations.withColumn("op", F.when(is_a, F.lit("put")).otherwise(F.col("op")))
            mutations = mutations.withColumn("family", F.when(is_a, F.lit(b"gone")).otherwise(F.col("family")))
        return write(self, mutations, name, **named)

    monkeypatch.setattr(Store, "write", failing)
    outcome = clean(job, table)
    assert outcome.code == 1
    assert outcome.totals["failed"] == 1
    assert [f.keys.start for f in state.read(table).facts] == [b"m"]
    monkeypatch.undo()
    assert clean(job, table).code == 0
    assert len(state.read(table).facts) == 2
    assert not scene.has(table, orphan, row=b"a")


@pytest.mark.parametrize(("durability", "flushed"), [("SKIP_WAL", [True, True]), ("SYNC_WAL", [])])
def test_what_a_server_may_lose_is_in_files_before_a_cleanup_goes_by_it(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], durability: str, flushed: list[bool]
) -> None:
    """What proved a commit outlives what is done for it: the table is flushed before it is read, and again before the
    first write, unless its log is synced.
    """
    table = scene.table(attributes={"DURABILITY": durability})
    scene.orphan(table)
    omid.advance_watermark()
    config = configure(tables={table: {"accept_durability": True}})
    life = deadman.run(lambda: clean(job, table, config=config))
    assert life.result is not None
    assert life.result.code == 0, life.result.problems
    flushes = [effect.number for effect in life.effects if effect.name == "flush"]
    wrote = [effect.number for effect in life.effects if effect.seam == "connector" and effect.on == table]
    assert [number < wrote[0] for number in flushes] == flushed


def test_a_delete_that_a_server_may_lose_is_in_files_before_its_range_is_recorded(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """Nobody sees a cell under a delete marker, so that nothing of the table is read at all; with the marker lost the
    cell would be back, below the watermark.
    """
    table = scene.table(attributes={"DURABILITY": "SKIP_WAL"})
    orphan = scene.orphan(table)
    omid.flush(table)
    omid.delete_version(table, b"r", b"a", b"q", orphan)  # as a client rolls back
    omid.advance_watermark()
    config = configure(tables={table: {"accept_durability": True}})
    life = deadman.run(lambda: clean(job, table, config=config))
    assert life.result is not None
    assert life.result.code == 0, life.result.problems
    assert life.result.totals["cells_read"] == 0
    flushes = [effect.number for effect in life.effects if effect.name == "flush"]
    recorded = [effect.number for effect in life.named("facts.record_all")]
    assert [number < recorded[0] for number in flushes] == [True, True]


def test_a_healed_cell_is_read_again_before_its_range_is_recorded(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heal that was acknowledged and is lost before the end of the run leaves its key range unrecorded; a healed cell
    that is gone does not.
    """
    table = scene.table(splits=(b"h", b"p"))
    cells = {row: scene.crashed_after_commit(table, row=row) for row in (b"a", b"k", b"z")}
    omid.advance_watermark()
    write = Store.write

    def losing(self: Store, mutations: Any, name: str, **named: Any) -> Any:
        """As if the server of row ``a`` had died after its answer; row ``k`` another run has removed with its shadow
        cell.
        """
        written = write(self, mutations, name, **named)
        if name == table and {w.op for w in written} == {"heal_if_present"}:
            for row in (b"a", b"k"):
                omid.delete_version(table, row, b"a", shadow_qualifier(b"q"), cells[row][0])
            omid.delete_version(table, b"k", b"a", b"q", cells[b"k"][0])
        return written

    monkeypatch.setattr(Store, "write", losing)
    outcome = clean(job, table)
    assert [f.keys.start for f in state.read(table).facts] == [b"h", b"p"]
    assert (outcome.code, outcome.totals["healed"]) == (1, 3)
    assert "1 healed cells have no shadow cell when they are read again" in outcome.problems


@pytest.mark.turns(2)
@pytest.mark.parametrize("again", ["dropped", "truncated"])
def test_a_table_made_anew_starts_from_nothing(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, again: str
) -> None:
    """What was recorded of a table does not speak of its successor of the same name: it is read from 0, and the bound
    waits for it.
    """
    table = scene.table(splits=(b"m",))
    watermark = omid.advance_watermark()
    assert clean(job, table).code == 0
    if again == "dropped":
        omid.drop(table)
        omid.create(table, ("a",), splits=(b"m",))
    else:
        omid.truncate(table)
    collected = job("watermark_collection", "--execute")
    assert collected.summary["bound"] == 0
    assert any(b["table"] == table for b in collected.summary["blockers"])
    assert clean(job, table).table(table)["intervals"][0][0] == 0
    assert job("watermark_collection", "--execute").summary["bound"] >= watermark


# -- rule 6


def test_the_bound_waits_for_every_table(job: Job, scene: Scene, omid: OmidClient) -> None:
    """One transactional table that was never cleaned holds the bound at 0, named with its remedy; cleaned, it lets
    go.
    """
    table, late = scene.table(), scene.table()
    start, _ = scene.crashed_after_commit(table)
    scene.cell(late, start)
    omid.advance_watermark()
    assert clean(job, table).code == 0
    held = job("commit_table_pruning", "--grace", "0s", "--execute")
    assert held.summary["bound"] == 0
    assert {b["table"] for b in held.summary["blockers"]} == {late}
    assert start in omid.commit_table()
    assert clean(job, late).code == 0
    assert job("commit_table_pruning", "--grace", "0s", "--execute").code == 0
    assert start not in omid.commit_table()


def test_a_table_with_shadow_cells_and_no_mark_holds_the_bound(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """Shadow cells in a table without any mark of Omid keep the bound at 0 until the configuration says what the table
    is.
    """
    table = scene.table(omid_enabled=False)
    scene.committed(table)
    omid.advance_watermark()
    refused = clean(job, table)
    assert refused.code == 1
    assert "kind: transactional" in refused.problems
    collected = job("watermark_collection", "--execute")
    assert collected.summary["bound"] == 0
    assert [b["table"] for b in collected.summary["blockers"]] == [table]
    plain = configure(tables={table: {"kind": "plain"}})
    assert table not in str(job("watermark_collection", config=plain).summary["blockers"])
    named = configure(tables={table: {"kind": "transactional"}})
    assert clean(job, table, config=named).code == 0
    assert job("watermark_collection", config=named).summary["bound"] > 0


def test_nothing_is_pruned_within_the_grace(job: Job, scene: Scene, omid: OmidClient) -> None:
    """An entry below the bound stays until the bound has passed it for the grace, by our own log."""
    table = scene.table()
    start, _ = scene.crashed_after_commit(table)
    omid.advance_watermark()
    assert clean(job, table).code == 0
    assert job("watermark_collection", "--execute").code == 0
    assert job("commit_table_pruning", "--grace", "1h", "--execute").totals["pruned"] == 0
    assert start in omid.commit_table()
    assert job("commit_table_pruning", "--grace", "1ms", "--execute").code == 0
    assert start not in omid.commit_table()


def test_marks_of_a_low_latency_oracle_stay(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """A low-latency client may write its entry at any time later: its invalidation mark is never pruned."""
    table = scene.table()
    start = scene.orphan(table)
    omid.advance_watermark()
    low_latency = configure(omid={"low_latency": True})
    assert clean(job, table, config=low_latency).code == 0
    outcome = job("commit_table_pruning", "--grace", "0s", "--execute", config=low_latency)
    assert start in omid.commit_table()
    assert omid.commit_table()[start].invalid
    assert outcome.totals["skipped"]["a low-latency oracle's marks"] >= 1


# -- rule 8


@pytest.mark.turns(2)
@pytest.mark.parametrize(
    "form", ["short shadow cell", "short shadow cell alone", "shadow cell below its timestamp", "old shadow qualifier"]
)
def test_an_unknown_form_stops_its_range_only(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    configure: Callable[..., Path],
    gateway: Any,
    form: str,
) -> None:
    """A cell that no rule names is counted and left alone; its key range is neither acted on nor recorded, the others
    are. Done as the run says, all is green.
    """
    table = scene.table(splits=(b"m",))
    odd = omid.begin()
    if form != "short shadow cell alone":
        scene.cell(table, odd, row=b"a")
    qualifier, value = {
        "short shadow cell": (shadow_qualifier(b"q"), b"\x00\x01"),
        "short shadow cell alone": (shadow_qualifier(b"q"), b"\x00\x01"),
        "shadow cell below its timestamp": (shadow_qualifier(b"q"), encode_long(1)),
        "old shadow qualifier": (b"q\xc2\x80", encode_long(odd + 50)),
    }[form]
    omid.put(table, b"a", b"a", qualifier, odd, value)
    same_range = scene.orphan(table, row=b"b")
    other_range = scene.orphan(table, row=b"x")
    omid.advance_watermark()
    before = omid.raw(table)
    outcome = clean(job, table)
    assert scene.has(table, same_range, row=b"b")
    assert [c for c in omid.raw(table) if c.row < b"m"] == [c for c in before if c.row < b"m"]
    assert not scene.has(table, other_range, row=b"x")
    assert [f.keys.start for f in state.read(table).facts] == [b"m"]
    assert outcome.code == 1
    assert "unknown form" in outcome.problems

    # What it says to do, where the application says that the transaction committed.
    assert f"lowtide resolve {odd} --aborted, or --committed" in outcome.problems
    decided(configure(), odd, odd + 50)
    obey(omid, gateway, *statements(outcome.problems))
    mended = clean(job, table, extra=("--full",))
    assert (mended.code, mended.problems) == (0, "")
    if form != "short shadow cell alone":
        assert scene.healed(table, odd, row=b"a") == odd + 50
    assert not scene.has(table, same_range, row=b"b")


@pytest.mark.parametrize("committed", [False, True])
def test_an_unknown_commit_table_value_is_left_alone(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], gateway: Any, committed: bool
) -> None:
    """A commit-table row of an unknown form is named and stays; its transaction's cells stay undecided, until somebody
    does as the run says.
    """
    table = scene.table()
    start = scene.orphan(table)
    row = bytes([start & 15]) + encode_long(start)
    omid.put("OMID_COMMIT_TABLE", row, b"F", b"C", start, b"\xff")
    omid.advance_watermark()
    try:
        outcome = clean(job, table)
        assert outcome.code == 1
        assert row.hex() in outcome.problems
        assert scene.has(table, start)
        pruned = job("commit_table_pruning", "--grace", "0s", "--execute")
        assert any(c.row == row for c in omid.raw("OMID_COMMIT_TABLE"))
        assert pruned.summary["bound"] == 0
        assert f"lowtide resolve {start} --aborted, or --committed" in outcome.problems
        (statement,) = set(statements(outcome.problems))
        decided(configure(), start, start + 50 if committed else None)
        obey(omid, gateway, statement)
        outcome = clean(job, table, extra=("--full",))
        assert (outcome.code, outcome.problems) == (0, "")
        assert scene.healed(table, start) == (start + 50 if committed else None)
        assert scene.has(table, start) == committed
    finally:
        omid.delete_commit_entry(start)


def test_an_empty_commit_entry_that_comes_while_the_run_decides_stops_it(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HBase's guards take a cell with an empty value for absent, so the mark is put; the look after it sees the entry,
    and the cell stays.
    """
    table = scene.table()
    start = scene.orphan(table)
    omid.advance_watermark()
    mark = marks.put

    def late_entry(*arguments: Any) -> Any:
        omid.put("OMID_COMMIT_TABLE", bytes([start & 15]) + encode_long(start), b"F", b"C", start, b"")
        return mark(*arguments)

    monkeypatch.setattr(marks, "put", late_entry)
    try:
        outcome = clean(job, table)
        assert scene.has(table, start)
        assert "its commit-table row is of an unknown form" in outcome.problems
        assert state.read(table).facts == ()
    finally:
        omid.delete_commit_entry(start)


# -- rule 9


def test_a_run_that_was_overtaken_records_nothing(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, connector: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second run takes the table's epoch; the first may finish its guarded actions, and cannot move state."""
    table = scene.table()
    scene.orphan(table)
    omid.advance_watermark()
    record = recording.record_all

    def overtaken(*arguments: Any) -> None:
        state.begin(table, connector.regions(table))
        record(*arguments)

    monkeypatch.setattr(recording, "record_all", overtaken)
    outcome = clean(job, table)
    assert state.read(table).facts == ()
    assert outcome.code == 1
    assert "taken over" in outcome.problems


def test_a_run_that_was_overtaken_before_it_acts_changes_nothing(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, connector: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run takes the table while this one decides: neither mark nor heal nor delete is its to do any more."""
    table = scene.table()
    orphan = scene.orphan(table)
    scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    before = omid.raw(table)
    decide_all = plan.decide_all

    def overtaken(*arguments: Any) -> None:
        decide_all(*arguments)
        state.begin(table, connector.regions(table))

    monkeypatch.setattr(plan, "decide_all", overtaken)
    outcome = clean(job, table)
    assert omid.raw(table) == before
    assert orphan not in omid.commit_table()
    assert outcome.code == 1
    assert "taken over" in outcome.problems


@pytest.mark.parametrize(
    ("module", "sends"),
    [(marks, "mark_rows"), (acting, "_heal_rows"), (acting, "_delete_rows")],
    ids=["mark", "heal", "delete"],
)
def test_what_a_run_has_yet_to_send_is_not_sent_once_another_has_taken_the_table(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    connector: Store,
    monkeypatch: pytest.MonkeyPatch,
    module: Any,
    sends: str,
) -> None:
    """It looked whose turn it is, and then another came: executors look again before each batch, of marks, heals and
    deletes.
    """
    table = scene.table()
    scene.orphan(table)
    scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    rows_of, then = getattr(module, sends), []

    def overtaken(*arguments: Any) -> Any:
        state.begin(table, connector.regions(table))
        then.append((omid.raw(table), omid.commit_table()))
        return rows_of(*arguments)

    monkeypatch.setattr(module, sends, overtaken)
    outcome = clean(job, table)
    assert [(omid.raw(table), omid.commit_table())] == then
    assert outcome.code == 1
    assert "has taken over" in outcome.problems


@pytest.mark.parametrize("sends", ["mark_rows", "unmark_rows"], ids=["put", "taken back"])
def test_marks_do_not_wait_for_tables_that_they_have_nothing_to_do_with(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    connector: Store,
    monkeypatch: pytest.MonkeyPatch,
    sends: str,
) -> None:
    """Another run takes a table in which this one has found nothing: a mark is put for what goes from another table,
    and a wrong one is taken back. No later run would look for that: the cells have their shadow cells then.
    """
    table, idle = scene.table(), scene.table()
    orphan = scene.orphan(table)
    marked, _ = scene.committed(table, row=b"marked", qualifier=b"sibling")
    scene.cell(table, marked, row=b"marked")
    assert omid.invalidate(marked)
    omid.advance_watermark()
    rows_of = getattr(marks, sends)

    def overtaken(*arguments: Any) -> Any:
        state.begin(idle, connector.regions(idle))
        return rows_of(*arguments)

    monkeypatch.setattr(marks, sends, overtaken)
    outcome = job("orphan_cleanup", "--table", table, "--table", idle, "--execute")
    assert outcome.code == 1
    assert outcome.table(table)["problems"] == []
    assert "taken over" in str(outcome.table(idle)["problems"])
    assert marked not in omid.commit_table(), "the wrong mark stays for good"
    assert (scene.has(table, orphan), omid.commit_table()[orphan].invalid) == (False, True)


def test_an_epoch_of_a_lost_state_table_is_not_the_next_ones(scene: Scene, connector: Store) -> None:
    """The same number again, by another run: a late one that still holds the first is refused."""
    table, lost = scene.table(), "LOST_STATE"
    regions = connector.regions(table)
    with connect(connector.config.hbase.thrift) as connection:
        store = StateStore(connection, lost)
        store.create()
        scene.tables.append(lost)
        late = store.begin(table, regions)
        scene.omid.drop(lost)
        again = StateStore(connection, lost)
        again.create()
        assert again.begin(table, regions).epoch.counter == late.epoch.counter
        for write in (lambda: store.check_epoch(late), lambda: store.forget(late, regions[0].keys)):
            with pytest.raises(FencedError, match=table):
                write()


def test_the_journal_of_before_the_oracle_was_made_anew_decides_nothing(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, connector: Store, configure: Callable[..., Path]
) -> None:
    """A transaction of before had the number that a crashed one has now: its row in the journal neither heals nor
    condemns what that one left, nor does a replay put it back. What a person decides counts, either way."""
    table = scene.table()
    start, aborted = scene.orphan(table), scene.orphan(table, row=b"aborted")
    connector.create_table("LOWTIDE_JOURNAL", "j")
    state.create()
    before_reset = state.server_time()
    at = int(before_reset.timestamp() * 1000)
    for each in (start, aborted):
        omid.put("LOWTIDE_JOURNAL", commit_key(each), b"j", b"C", at - 1, encode_long(each + 50))
    state.reset()
    omid.advance_watermark()
    before = omid.raw(table)
    outcome = clean(job, table)
    assert omid.raw(table) == before
    assert outcome.code == 1
    assert "older than the oracle" in outcome.problems
    assert "lowtide resolve" in outcome.problems
    replayed = job(
        "journal_replay", "--from", f"{before_reset - timedelta(seconds=1):%Y-%m-%dT%H:%M:%S+00:00}", "--execute"
    )
    assert not {start, aborted} & set(omid.commit_table())
    assert (replayed.code, replayed.totals["skipped"]["of before the oracle was made anew"] >= 2) == (0, True)
    decided(configure(), start, start + 50)
    decided(configure(), aborted, None)
    assert clean(job, table).code == 0
    assert scene.healed(table, start) == start + 50
    assert not scene.has(table, aborted, row=b"aborted")


@pytest.mark.parametrize("lost", [False, True], ids=["recorded", "and-the-records-are-lost"])
def test_what_was_taken_for_aborted_before_the_oracle_was_made_anew_does_not_come_back_as_it_was(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, lost: bool
) -> None:
    """Another transaction has had its number since, and its entry is there: readers would be shown the cell by that. As
    committed it comes back. Where nothing is recorded of the run, its files tell when it was.
    """
    table = scene.table()
    start, kept = scene.orphan(table), scene.committed(table, row=b"other")
    omid.advance_watermark()
    removed = job("orphan_cleanup", "--table", table, "--execute")
    assert (removed.code, removed.totals["deleted"]) == (0, 1), removed.problems
    if lost:
        omid.drop("LOWTIDE_STATE")
    state.reset()
    restore = ("sideline_restore", "--restore", removed.summary["run"])
    before = omid.raw(table)
    for acts in (("--execute",), ()):
        outcome = job(*restore, *acts)
        assert omid.raw(table) == before, "an orphan of before stands under a number of now"
        assert outcome.code == 1
        assert "1 cells are not put back: they were taken for aborted before the oracle" in outcome.problems
    assert omid.read(table, omid.begin()).keys() == {(b"other", b"a", b"q")}, kept
    commit = omid.begin()
    omid.advance_watermark()
    again = job(*restore, "--as-committed", f"{start}={commit}", "--execute")
    assert (again.code, scene.healed(table, start)) == (0, commit), again.problems


def test_the_journal_stays_a_proof_where_only_the_commit_table_came_back(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, connector: Store, configure: Callable[..., Path]
) -> None:
    """The oracle gave no number twice: after a reset that says so everything is read from 0, and what was pruned before
    is healed by the journal.
    """
    table = scene.table()
    start = scene.orphan(table)
    connector.create_table("LOWTIDE_JOURNAL", "j")
    state.create()
    at = int(state.server_time().timestamp() * 1000)
    omid.put("LOWTIDE_JOURNAL", commit_key(start), b"j", b"C", at, encode_long(start + 50))
    reset = CliRunner().invoke(app, ["state", "reset", "--same-oracle", "--yes", "--config", str(configure())])
    assert reset.exit_code == 0, reset.output
    omid.advance_watermark()
    outcome = clean(job, table)
    assert scene.healed(table, start) == start + 50
    assert outcome.code == 0, outcome.problems


def test_an_old_epoch_is_refused(scene: Scene, omid: OmidClient, state: StateStore, connector: Store) -> None:
    """A state write under an epoch that is no longer the newest raises and changes nothing."""
    table = scene.table()
    state.create()
    regions = connector.regions(table)
    old = state.begin(table, regions)
    state.begin(table, regions)
    with pytest.raises(FencedError, match=table):
        state.forget(old, regions[0].keys)


# -- rule 10


def test_a_dry_run_changes_nothing_and_names_the_same_counts(job: Job, scene: Scene, omid: OmidClient) -> None:
    """Without --execute neither data nor commit table nor records change; the counts are those of the run that acts."""
    table = scene.table()
    scene.orphan(table)
    scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    before = omid.raw(table), omid.commit_table()
    dry = job("orphan_cleanup", "--table", table)
    assert (omid.raw(table), omid.commit_table()) == before
    assert dry.code == 0, dry.problems
    acted = clean(job, table)
    names = ("candidates", "healed", "deleted", "marked", "unmarked", "failed", "skipped")
    assert [dry.totals[n] for n in names] == [acted.totals[n] for n in names]
    assert dry.totals["healed"] == dry.totals["deleted"] == 1


def test_a_plan_out_of_proportion_is_refused_before_it_acts(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """A plan over the budget touches nothing, marks included, and names the way on."""
    table = scene.table()
    orphan = scene.orphan(table)
    omid.advance_watermark()
    tight = configure(defaults={"budget": {"always": 0, "share": 0.01}})
    outcome = clean(job, table, config=tight)
    assert scene.has(table, orphan)
    assert orphan not in omid.commit_table()
    assert outcome.code == 1
    assert "--budget-share" in outcome.problems


def test_what_goes_can_be_put_back(job: Job, scene: Scene, omid: OmidClient) -> None:
    """The sideline holds removed cells with their values; restore brings them back although delete markers lie on
    them.
    """
    table = scene.table()
    orphans_before = {scene.orphan(table, row=b"r%d" % n, value=b"v%d" % n): n for n in range(5)}
    omid.advance_watermark()
    outcome = clean(job, table)
    assert outcome.totals["deleted"] == 5
    assert scene.data(table) == {}
    restored = job("sideline_restore", "--restore", outcome.summary["run"], "--execute")
    assert (restored.code, restored.totals["restored"]) == (0, 5)
    assert scene.data(table) == {(b"r%d" % n, b"a", b"q", t): b"v%d" % n for t, n in orphans_before.items()}


@pytest.mark.turns(2, group="proofs at length")
def test_what_was_taken_for_aborted_comes_back_as_committed(job: Job, scene: Scene, omid: OmidClient) -> None:
    """Of a transaction that a person knows to have committed: its cells are read again at once, in every table of the
    run, its mark is gone, and no cleanup takes them again. Another transaction's come back as they were. A commit
    timestamp that cannot be is refused, and changes nothing.
    """
    tables = [scene.table(), scene.table()]
    wronged, orphan = scene.orphan(tables[0], row=b"a", value=b"lost"), scene.orphan(tables[0], row=b"b")
    scene.cell(tables[1], wronged, row=b"c", value=b"too")
    commit = omid.begin()
    omid.advance_watermark()
    snapshot = omid.begin()
    removed = job("orphan_cleanup", *(f"--table={table}" for table in tables), "--execute")
    assert removed.totals["deleted"] == 3
    back = ("--restore", removed.summary["run"], "--execute", "--as-committed")
    for wrong, told in (
        (f"{commit}={commit + 50}", "removed nothing of transaction"),
        (f"{wronged}={50 * 2**56}", "above the low watermark"),
    ):
        refused = job("sideline_restore", *back, wrong)
        assert (refused.code, told in refused.problems) == (2, True), refused.problems
    assert scene.data(tables[0]) == {}
    assert omid.commit_table()[wronged].invalid
    restored = job("sideline_restore", *back, f"{wronged}={commit}")
    assert (restored.code, restored.totals["restored"]) == (0, 3), restored.problems
    assert omid.read(tables[0], snapshot) == {(b"a", b"a", b"q"): b"lost"}, "readers see it at once"
    assert omid.read(tables[1], snapshot) == {(b"c", b"a", b"q"): b"too"}
    assert scene.has(tables[0], orphan, row=b"b")
    assert wronged not in omid.commit_table()
    again = job("orphan_cleanup", *(f"--table={table}" for table in tables), "--full", "--execute")
    assert (again.code, again.totals["deleted"]) == (0, 1), again.problems
    assert omid.read(tables[0], snapshot) == {(b"a", b"a", b"q"): b"lost"}


def test_no_commit_is_decided_of_numbers_that_an_oracle_made_anew_may_give_again(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore
) -> None:
    """A low watermark that went back stops a restore that would call a transaction committed: the journal says nothing
    of it, its mark stays, no cell comes back.
    """
    table = scene.table()
    wronged, commit = scene.orphan(table), omid.begin()
    watermark = omid.advance_watermark()
    removed = clean(job, table)
    assert removed.totals["deleted"] == 1
    back = ("--restore", removed.summary["run"], "--execute", "--as-committed", f"{wronged}={commit}")
    state.record_low_watermark(watermark + 10**6)
    try:
        refused = job("sideline_restore", *back)
    finally:
        state.reset()
    assert scene.data(table) == {}, "nothing comes back"
    assert omid.commit_table()[wronged].invalid
    assert (refused.code, "gone back" in refused.problems) == (1, True), refused.problems
    assert job("sideline_restore", *back).code == 0, "nothing else was in its way"


def lost_its_proofs(scene: Scene, omid: OmidClient, tables: Sequence[str]) -> tuple[int, int, int]:
    """A transaction with a cell in each of these tables, each with the table's name, and no proof left: its start and
    commit timestamps, and a read point after it.
    """
    wronged = omid.begin()
    for table in tables:
        scene.cell(table, wronged, value=table.encode())
    commit = omid.begin()
    omid.advance_watermark()
    return wronged, commit, omid.begin()


@pytest.mark.turns(2, group="proofs at length")
def test_what_else_was_removed_of_a_transaction_is_named_until_it_is_back(
    job: Job, scene: Scene, omid: OmidClient
) -> None:
    """The journal says for every table that it committed. A restore of one run, or of one table of it, tells of the
    others, with the command that brings each back; it ends red until all are, and readers see the whole transaction
    then.
    """
    tables = [scene.table() for _ in range(3)]
    wronged, commit, snapshot = lost_its_proofs(scene, omid, tables)
    runs = {
        f"scheduled__2026-07-28T00:00:00+00:00-{n}-{tables[0]}": part for n, part in enumerate((tables[:2], tables[2:]))
    }
    for name, part in runs.items():
        assert clean(job, *part, extra=("--run-id", name)).totals["deleted"] == len(part)
    first, second = runs
    wanted = ("--as-committed", f"{wronged}={commit}", "--execute")
    outcome = job("sideline_restore", "--restore", first, "--table", tables[0], *wanted)
    told = [line.partition("lowtide restore ")[2] for line in outcome.problems.splitlines()]
    assert sorted(told) == sorted(
        " ".join([name, "--table", table, *wanted]) for name, table in ((first, tables[1]), (second, tables[2]))
    ), "half of a transaction is shown without a word"
    assert outcome.code == 1
    for at, command in enumerate(told):
        name, *rest = command.split()
        outcome = job("sideline_restore", "--restore", name, *rest)
        assert (outcome.code, outcome.totals["restored"]) == (1 - at, 1), outcome.problems
    assert {t: omid.read(t, snapshot) for t in tables} == {t: {(b"r", b"a", b"q"): t.encode()} for t in tables}
    again = clean(job, *tables, extra=("--full",))
    assert (again.code, again.totals["deleted"]) == (0, 0), again.problems


def test_what_was_not_removed_of_a_transaction_is_named_until_it_is_healed(
    job: Job, scene: Scene, omid: OmidClient
) -> None:
    """A restore of what one table lost tells of the cells in another, which no cleanup had come to: it ends red, with
    the command by which readers see the whole transaction.
    """
    tables = [scene.table(), scene.table()]
    wronged, commit, snapshot = lost_its_proofs(scene, omid, tables)
    removed = clean(job, tables[0])
    assert removed.totals["deleted"] == 1
    wanted = ("--as-committed", f"{wronged}={commit}", "--execute")
    outcome = job("sideline_restore", "--restore", removed.summary["run"], *wanted)
    assert outcome.totals["restored"] == 1, outcome.problems
    command = f"lowtide run orphan_cleanup --table {tables[1]} --full --execute"
    assert (outcome.code, command in outcome.problems) == (1, True), "half of a transaction is shown without a word"
    assert f"1 cells of transaction {wronged} stand in {tables[1]} without their shadow cells" in outcome.problems
    healed = clean(job, tables[1], extra=("--full",))
    assert (healed.code, healed.totals["healed"]) == (0, 1), healed.problems
    assert {t: omid.read(t, snapshot) for t in tables} == {t: {(b"r", b"a", b"q"): t.encode()} for t in tables}


def test_nothing_comes_back_as_committed_while_its_other_cells_may_lie_on_another_machine(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], tmp_path: Path
) -> None:
    """Two workers, each with a sideline on its own disk: the run that removed a part of the transaction is named, with
    its machine and folder, nothing is decided and no cell comes back, also where only that run was there. Once a person
    has given that folder up, or brought it, what is here comes back; what is known to lack is named as ever.
    """
    tables = [scene.table(), scene.table()]
    wronged, commit, snapshot = lost_its_proofs(scene, omid, tables)
    disks = [tmp_path / "worker-0", tmp_path / "worker-1"]
    workers = [configure(state={"sideline": str(disk)}) for disk in disks]
    first, second = (f"run-{n}-{tables[0]}" for n in range(2))
    for name, table, worker in zip((first, second), tables, workers, strict=True):
        removed = job("orphan_cleanup", "--table", table, "--execute", "--run-id", name, config=worker)
        assert removed.totals["deleted"] == 1, removed.problems
    wanted = ("--as-committed", f"{wronged}={commit}", "--execute")
    there = job("sideline_restore", "--restore", first, "--execute", config=workers[1])
    assert f"{first} has no sideline under {disks[1]}: run {first} removed 1 cells of {tables[0]}" in there.problems
    assert f"on {socket.gethostname()}, in {disks[0] / first / tables[0]}" in there.problems
    refused = job("sideline_restore", "--restore", second, *wanted, config=workers[1])
    assert scene.data(tables[1]) == {}, "a part of a transaction is shown"
    assert omid.commit_table()[wronged].invalid, "it was decided"
    assert refused.code == 1
    assert f"run {first} removed 1 cells of {tables[0]}, and of those 0 are in the sideline" in refused.problems
    shutil.copytree(disks[0] / first, disks[1] / first)
    restored = job("sideline_restore", "--restore", second, *wanted, config=workers[1])
    assert (restored.code, f"lowtide restore {first} --table {tables[0]}" in restored.problems) == (1, True)
    shutil.rmtree(disks[1] / first)
    refused = job("sideline_restore", "--restore", second, *wanted, config=workers[1])
    given_up = next(word for word in refused.problems.split() if word.endswith("_lowtide-given-up"))
    Path(given_up).parent.mkdir()
    Path(given_up).touch()
    again = job("sideline_restore", "--restore", second, *wanted, config=workers[1])
    assert "are there already" in again.problems, "what is here is looked at again"
    rest = job("sideline_restore", "--restore", first, *wanted, config=workers[0])
    assert rest.code == 1, "of the second the first worker's disk has nothing"
    shutil.copytree(disks[1] / second, disks[0] / second)
    rest = job("sideline_restore", "--restore", first, *wanted, config=workers[0])
    assert (rest.code, rest.totals["restored"]) == (0, 1), rest.problems
    assert {t: omid.read(t, snapshot) for t in tables} == {t: {(b"r", b"a", b"q"): t.encode()} for t in tables}


# -- rule 11


def test_a_full_pass_finds_what_a_paused_client_landed(job: Job, scene: Scene, omid: OmidClient) -> None:
    """A write below a recorded watermark is not seen by the next increment; a full pass removes it."""
    table = scene.table()
    start = omid.begin()
    omid.advance_watermark()
    assert clean(job, table).code == 0
    scene.cell(table, start)
    omid.advance_watermark()
    assert clean(job, table).totals["deleted"] == 0
    assert scene.has(table, start)
    assert clean(job, table, extra=("--full",)).totals["deleted"] == 1
    assert not scene.has(table, start)


def test_the_full_pass_comes_by_itself(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """When the last pass from 0 is older than full_pass_every, a run without --from reads from 0."""
    table = scene.table()
    omid.advance_watermark()
    assert clean(job, table).code == 0
    watermark = omid.advance_watermark()
    weekly = clean(job, table)
    assert weekly.table(table)["intervals"][0][0] > 0
    omid.advance_watermark()
    eager = clean(job, table, config=configure(defaults={"full_pass_every": "0s"}))
    assert eager.table(table)["intervals"][0][0] == 0
    assert eager.table(table)["intervals"][0][1] >= after(watermark)
