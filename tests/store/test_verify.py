"""The verifier on the real store: silent on a store that is right, and it finds each thing that was made wrong by
hand.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from hshell import obey, resolves, statements
from lowtide_spark.frames.store import Store
from recorded import record
from scene import Scene
from typer.testing import CliRunner

from lowtide.cli.app import app
from lowtide.config import Config
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient, Shape, run
from lowtide.store.state import StateStore
from lowtide.values.formats import CHECKPOINTS, INVALID_VALUE, commit_key, encode_long, shadow_qualifier
from tests import seeds

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]
STATE = Config().state.table
JOURNAL = Config().state.journal_table
COMMITS = Config().omid.commit_table
TRANSACTIONS = 150
#: Read points of any age may be given up.
AT_ONCE = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}


@pytest.fixture
def tables(omid: OmidClient) -> Iterator[None]:
    """The workload's tables, made anew for the test and dropped after it."""
    for table in Shape().tables:
        omid.drop(table)
    yield
    for table in Shape().tables:
        omid.drop(table)


def act(job: Job, name: str, *arguments: str, **options: Any) -> Outcome:
    """Run a job that has to end well."""
    done = job(name, "--execute", *arguments, **options)
    assert done.code == 0, done.problems
    return done


class Verifier:
    """Runs of ``verify`` over some tables. (Other tests' runs in the records have sidelines in folders that are
    gone.)
    """

    def __init__(self, job: Job, folder: Path, tables: list[str]) -> None:
        self.job, self.file = job, folder / "found.json"
        self.tables = [part for table in tables for part in ("--table", table)]

    def __call__(self, *arguments: str) -> tuple[Outcome, dict[str, Any]]:
        """The outcome, and what was found as JSON."""
        done = self.job("verify", *self.tables, "--json", str(self.file), *arguments)
        return done, json.loads(self.file.read_text())

    def silent_of(self, transaction: int) -> None:
        """Nothing is found of one any more."""
        _, found = self()
        assert transaction not in {v["transaction"] for v in found["violations"]}

    def silent(self, *arguments: str) -> dict[str, Any]:
        """Of a store that is right."""
        done, found = self(*arguments)
        assert (found["violations"], found["unseen"], done.code) == ([], [], 0), done.problems
        return found


def resolved(config: Path, remedy: str) -> None:
    """Decide as a remedy says."""
    (command,) = resolves(remedy)
    said = CliRunner().invoke(app, [*command, "--yes", "--config", str(config)])
    assert said.exit_code == 0, (said.output, said.exception)


@seeds.each("verified")
@pytest.mark.usefixtures("tables")
def test_the_verifier_is_silent_on_a_right_store_and_finds_what_is_made_wrong(
    job: Job,
    stack: Stack,
    omid: OmidClient,
    scene: Scene,
    state: StateStore,
    configure: Callable[..., Path],
    tmp_path: Path,
    seed: int,
) -> None:
    """Before and after each job on what a workload of crashing clients left; then with a healed cell taken back, a
    pruned entry that a cell still needs, a watermark moved up by hand, a sideline file cut short, marked transactions
    with shadow cells, one of which the journal says something else; and silent again when its remedies were
    followed."""
    state.create()
    for cell in omid.raw(STATE):  # other tests' runs on tables of these names have put aside elsewhere
        if cell.row.startswith(b"run/") and cell.kind == "put":
            omid.delete_version(STATE, cell.row, cell.family, cell.qualifier, cell.timestamp)
    model = run(stack, seed=seed, transactions=TRANSACTIONS, out=tmp_path / "history", omid=omid).model
    table = scene.table()
    healed, _ = scene.crashed_after_commit(table, row=b"healed")
    needed, needed_tc = scene.crashed_after_commit(table, row=b"needed")
    complete, _ = scene.committed(table, row=b"complete")
    slept, _ = scene.committed(table, row=b"slept")
    torn, torn_tc = scene.committed(table, row=b"torn")
    orphan = scene.orphan(table, row=b"orphan")
    omid.advance_watermark()
    verify, points = Verifier(job, tmp_path, [*model.tables, table]), tmp_path / "points.json"

    verify.silent("--before", str(points))
    cleaned = act(job, "orphan_cleanup", "--full", "--run-id", f"verified-{table}")
    assert cleaned.totals["healed"] > 2
    (summary,) = (r for r in state.runs() if r["run"] == f"verified-{table}")
    state.add_run({**summary, "low_watermark": orphan - CHECKPOINTS})
    _, early = verify()
    assert ("V5", table, orphan) in {(v["invariant"], v["table"], v["transaction"]) for v in early["violations"]}
    state.add_run(summary)
    # What is recorded is a claim before anybody publishes it.
    shadow = (table, b"healed", b"a", shadow_qualifier(b"q"), healed)
    value = scene.data(table)[shadow[1:]]
    omid.delete_version(*shadow)
    _, early = verify()
    assert {(v["invariant"], v["transaction"]) for v in early["violations"]} == {("V4", healed)}
    omid.flush(table)
    omid.compact(table, major=True)  # a put at the timestamp of a delete marker is hidden as long as that is there
    omid.put(*shadow, value)
    act(job, "watermark_collection")
    assert act(job, "commit_table_pruning", "--grace", "0s").totals["pruned"] > 2
    later = tmp_path / "later.json"
    found = verify.silent("--after", str(points), "--before", str(later))
    assert found["tables"][table]["cells"] == 5
    assert all(found["tables"][t]["cells"] for t in model.tables)
    read = json.loads(points.read_text())["tables"]
    assert all(any(p["cells"] for p in read[t].values()) for t in model.tables)
    act(job, "history_gc", config=configure(defaults=AT_ONCE))
    verify.silent()

    # Now each thing by hand.
    where = ("a", shadow_qualifier(b"q"))
    shadows = {
        row: scene.data(table)[row, b"a", where[1], start] for row, start in ((b"healed", healed), (b"needed", needed))
    }
    for row, start in ((b"healed", healed), (b"needed", needed)):
        omid.delete_version(table, row, b"a", where[1], start)
    kept = next(c for c in omid.raw(JOURNAL) if c.row == commit_key(needed) and c.kind == "put")
    omid.delete_version(JOURNAL, kept.row, kept.family, kept.qualifier, kept.timestamp)
    mark = state.watermarks()[table]
    moved = {**mark, "regions": [{**r, "watermark": r["watermark"] + 1000} for r in mark["regions"]]}
    state.put_watermarks(table, moved)
    part = next((tmp_path / "sideline" / f"verified-{table}" / table).glob("*.parquet"))
    whole = part.read_bytes()
    part.write_bytes(whole[:-10])
    omid.invalidate(complete)
    # Clients that slept for longer than the grace put marks; the one of this transaction was pruned since.
    omid.put(JOURNAL, commit_key(slept), b"j", b"IT", kept.timestamp, INVALID_VALUE)
    omid.put(JOURNAL, commit_key(torn), b"j", b"C", kept.timestamp, encode_long(torn_tc + 50))
    omid.put(JOURNAL, commit_key(orphan), b"j", b"C", kept.timestamp, encode_long(orphan + 50))

    done, wrong = verify("--after", str(later))
    assert done.code == 1
    told = {(v["invariant"], v["table"], v["row"], v["transaction"]) for v in wrong["violations"]}
    assert ("V1", table, b"healed".hex(), healed) in told
    assert ("V2", table, b"needed".hex(), needed) in told
    assert ("V2", "", "", needed) in told, "its proof is gone"
    assert ("V2", "", "", orphan) in told, "it had been aborted"
    assert ("V3", table, b"complete".hex(), complete) in told
    assert ("V3", table, b"slept".hex(), slept) in told
    assert ("V3", table, b"torn".hex(), torn) in told
    assert ("V4", table, "", None) in told
    assert ("V5", table, "", None) in told
    assert {(v["table"], v["transaction"]) for v in wrong["violations"]} <= {
        (table, None),
        *((table, start) for start in (healed, needed, complete, slept, torn, orphan)),
        *(("", start) for start in (needed, orphan)),
    }
    assert ("V6", table, "", None) in told
    assert part.name in done.problems
    assert "this is reported until 20" in done.problems, "a sideline that is lost makes nothing red for ever"
    remedies = {v["transaction"]: v["remedy"] for v in wrong["violations"] if v["invariant"] == "V3"}

    state.put_watermarks(table, mark)
    part.write_bytes(whole)
    omid.delete_version(JOURNAL, commit_key(orphan), b"j", b"C", kept.timestamp)
    for wrong_mark in (complete, slept):
        resolved(configure(), remedies[wrong_mark])
    put, to_journal = remedies[torn].split(f"{JOURNAL} says")
    obey(omid, None, *statements(put))
    assert scene.healed(table, torn, row=b"torn") == torn_tc + 50
    verify.silent_of(torn)
    omid.put(table, b"torn", b"a", where[1], torn, encode_long(torn_tc))  # and the other way
    resolved(configure(), to_journal)
    omid.put(JOURNAL, kept.row, kept.family, kept.qualifier, kept.timestamp + 1, encode_long(needed_tc))
    omid.flush(table)
    omid.compact(table, major=True)  # a put at the timestamp of a delete marker is hidden as long as that is there
    for (row, value), start in zip(shadows.items(), (healed, needed), strict=True):
        omid.put(table, row, b"a", where[1], start, value)
    verify.silent()


def test_what_went_as_an_aborts_of_a_transaction_that_committed_is_found(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], tmp_path: Path
) -> None:
    """Cells that a run removed as orphans are named when their transaction turns out to be committed, by an entry, by
    the journal, or by a shadow cell of another table's, and when nothing calls it aborted any more; not those that are
    there again. A shadow cell of a form that nobody knows is named where the records say that all is clean. Its
    remedies are followed, and it is silent.
    """
    table, other = scene.table(), scene.table()
    starts = {row: scene.orphan(table, row=row) for row in (b"entry", b"journal", b"shadow", b"unmarked", b"right")}
    odd, _ = scene.committed(table, row=b"odd")
    commit = omid.begin()
    omid.advance_watermark()
    name, verify = f"aborted-{table}", Verifier(job, tmp_path, [table, other])
    assert act(job, "orphan_cleanup", "--table", table, "--full", "--run-id", name).totals["deleted"] == 5
    act(job, "commit_table_pruning", "--grace", "0s")  # with nothing to prune: the journal is made
    verify.silent()

    for row in (b"entry", b"journal", b"unmarked"):  # a shadow cell outranks the mark
        omid.delete_version(COMMITS, commit_key(starts[row]), b"F", b"IT", starts[row])
    omid.flush(COMMITS)
    omid.compact(COMMITS, major=True)
    omid.add_commit_entry(starts[b"entry"], commit)
    now = int(time.time() * 1000)  # older than an oracle that was made anew it would prove nothing
    omid.put(JOURNAL, commit_key(starts[b"journal"]), b"j", b"C", now, encode_long(commit))
    scene.shadow(other, starts[b"shadow"], commit)
    omid.put(table, b"odd", b"a", shadow_qualifier(b"q"), odd, b"short")
    omid.put(JOURNAL, commit_key(odd), b"j", b"C", now, encode_long(commit))

    done, found = verify()
    assert done.code == 1
    wrong = {v["transaction"]: v for v in found["violations"] if v["invariant"] == "V5"}
    assert {v["row"] for v in wrong.values()} == {r.hex() for r in (b"entry", b"journal", b"shadow", b"unmarked")}
    assert {v["table"] for v in wrong.values()} == {table}
    forms = [v for v in found["violations"] if "of a form" in v["what"]]
    assert [(v["invariant"], v["row"], v["transaction"]) for v in forms] == [("V4", b"odd".hex(), odd)]

    for row in (b"entry", b"journal", b"shadow"):
        assert f"which committed at {commit}" in wrong[starts[row]]["what"]
        remedy = wrong[starts[row]]["remedy"]
        assert f"lowtide restore {name} --table {table} --execute" in remedy
        assert f"lowtide run orphan_cleanup --table {table} --full --execute" in remedy
    decide = wrong[starts[b"unmarked"]]["remedy"].partition("if not: lowtide ")[2].split()
    said = CliRunner().invoke(app, [*decide, "--yes", "--config", str(configure())])
    assert said.exit_code == 0, (said.output, said.exception)
    verify.silent_of(starts[b"unmarked"])
    act(job, "sideline_restore", "--restore", name, "--table", table)
    assert "V5" not in {v["invariant"] for v in verify()[1]["violations"]}, "they are there"
    omid.put(table, b"odd", b"a", shadow_qualifier(b"q"), odd, encode_long(commit))
    act(job, "orphan_cleanup", "--table", table, "--full")
    assert {scene.healed(table, starts[row], row=row) for row in (b"entry", b"journal", b"shadow")} == {commit}
    verify.silent()


def test_what_was_there_before_all_was_claimed_to_be_clean_is_found(
    job: Job, scene: Scene, omid: OmidClient, connector: Store, state: StateStore, tmp_path: Path
) -> None:
    """An orphan that a look before has seen, and that lies there where the records say since that all is clean, is
    named; one that a client landed after that look is not. When the cleanup has been there it is silent, also if the
    orphan is put back.
    """
    table = scene.table()
    orphan, late = scene.orphan(table, row=b"there"), omid.begin()
    omid.advance_watermark()
    points, verify = tmp_path / "points.json", Verifier(job, tmp_path, [table])
    verify.silent("--before", str(points))
    scene.cell(table, late, row=b"late")
    verify.silent("--after", str(points))
    state.create()
    record(connector, state, table, omid.advance_watermark())
    done, found = verify("--after", str(points))
    assert [(v["invariant"], v["row"], v["transaction"]) for v in found["violations"]] == [
        ("V4", b"there".hex(), orphan)
    ]
    assert f"lowtide run orphan_cleanup --table {table} --full --execute" in done.problems
    cleaned = act(job, "orphan_cleanup", "--table", table, "--full")
    verify.silent("--after", str(points))
    act(job, "sideline_restore", "--restore", cleaned.summary["run"])
    assert scene.has(table, orphan, row=b"there")
    verify.silent("--after", str(points))


def test_what_is_no_look_of_before_is_refused(job: Job, scene: Scene, tmp_path: Path) -> None:
    """By its name, before anything is read."""
    file = tmp_path / "points.json"
    for text in (None, "no JSON", "[]", "{}"):
        if text is not None:
            file.write_text(text)
        refused = job("verify", "--table", scene.table(), "--after", str(file))
        assert (refused.code, f"--after {file}: it cannot be read" in refused.problems) == (2, True), refused.problems


def test_an_entry_that_a_cell_still_needs_is_not_pruned(
    job: Job, scene: Scene, omid: OmidClient, connector: Store, recorded: Callable[..., int]
) -> None:
    """The gate reads the tables themselves: a healed cell that was taken back since keeps every entry of the run, by
    name; after the full pass that is asked for they go. A deletion that hides the cell, at whatever timestamp, is no
    reason."""
    table = scene.table()
    start, commit = scene.committed(table, row=b"lost")
    hidden, hidden_tc = scene.committed(table, row=b"hidden")
    other, other_tc = scene.committed(table, row=b"right")
    recorded(table)
    act(job, "watermark_collection")
    for begun, done in ((start, commit), (hidden, hidden_tc), (other, other_tc)):
        omid.add_commit_entry(begun, done)
    omid.delete_version(table, b"lost", b"a", shadow_qualifier(b"q"), start)
    omid.delete_version(table, b"hidden", b"a", shadow_qualifier(b"q"), hidden)
    marker = (b"hidden", b"a", b"q", omid.begin())
    omid.flush(table)  # the marker comes into a file of its own, with no timestamp of those that are read
    connector.write(
        connector.spark.createDataFrame(
            [("delete_up_to", "by hand", *map(bytearray, marker[:3]), marker[3])],
            "op string, region string, row binary, family binary, qualifier binary, timestamp bigint",
        ),
        table,
    )
    omid.flush(table)
    assert not scene.has(table, hidden, row=b"hidden")
    stopped = job("commit_table_pruning", "--grace", "0s", "--execute")
    assert {start, hidden, other} <= set(omid.commit_table())
    assert (stopped.code, stopped.totals["pruned"]) == (1, 0)
    assert f"nothing was pruned: {table}, row {b'lost'.hex()}" in stopped.problems
    assert b"hidden".hex() not in stopped.problems
    assert f"transaction {start}" in stopped.problems
    assert f"lowtide run orphan_cleanup --table {table} --full --execute" in stopped.problems

    omid.flush(table)
    omid.compact(table, major=True)
    act(job, "orphan_cleanup", "--table", table, "--full")
    assert scene.healed(table, start, row=b"lost") == commit
    assert act(job, "commit_table_pruning", "--grace", "0s").totals["pruned"] >= 3
    assert not {start, hidden, other} & set(omid.commit_table())
