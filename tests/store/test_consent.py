"""Tables that say no, and pauses, on the real store: nothing is written, from the next step on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from conftest import Outcome
from ledger_kit import made
from lowtide_spark.cleaning import acting, pruning
from lowtide_spark.frames.store import Store
from lowtide_spark.history import collection
from lowtide_spark.ledger.dataframes import LedgerRows
from py4j.protocol import Py4JError
from scene import Scene
from typer.testing import CliRunner

from lowtide.cli.app import app
from lowtide.errors import StoreError
from lowtide.journal import life
from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore
from lowtide.tables.consent import ATTRIBUTE

pytestmark = [pytest.mark.usefixtures("swept"), pytest.mark.turns(2, group="consent")]
Job = Callable[..., Outcome]
ACTING = {"defaults": {"mode": "execute", "budget": {"share": 1.0}}}


@pytest.fixture
def lowtide(configure: Callable[..., Path]) -> Callable[..., str]:
    """A command, as it is typed; what it prints."""

    def typed(*arguments: str) -> str:
        said = CliRunner().invoke(app, [*arguments, "--config", str(configure())])
        assert said.exit_code == 0, (said.output, said.exception)
        return said.stdout

    return typed


@pytest.fixture(autouse=True)
def nothing_paused(state: StateStore) -> Iterator[None]:
    """A test leaves no pauses behind."""
    yield
    for pause in state.pauses():
        state.drop_pause(pause.id)


def pause(lowtide: Callable[..., str], *arguments: str, until: str = "1h") -> str:
    """Pause, and give the pause's id."""
    return lowtide("pause", "--until", until, "--reason", "a migration", *arguments).split(":")[0]


def clean(job: Job, *tables: str, **named: Any) -> Outcome:
    return job("orphan_cleanup", *(part for t in tables for part in ("--table", t)), "--execute", **named)


def half_done(scene: Scene, omid: OmidClient) -> tuple[str, int, int]:
    """A table with a cell to heal and one to delete: its name, and the two transactions."""
    table = scene.table()
    committed, _ = scene.crashed_after_commit(table, row=b"a")
    orphan = scene.orphan(table, row=b"z")
    omid.advance_watermark()
    return table, committed, orphan


def after_the_first_write(monkeypatch: pytest.MonkeyPatch, table: str, then: Callable[[], object]) -> None:
    """When a job has written to *table* once, something happens."""
    write, done = Store.write, []

    def watched(self: Store, mutations: Any, name: str, **named: Any) -> Any:
        written = write(self, mutations, name, **named)
        if name == table and not done:
            done.append(True)
            then()
        return written

    monkeypatch.setattr(Store, "write", watched)


# -- tables that say no


@pytest.mark.parametrize("value", [" OFF", "of"])
def test_a_table_that_says_no_is_not_written_to(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], value: str
) -> None:
    """Whatever its descriptor has but ``on`` is a no, to a run that a person started and to one that is configured; the
    others are cleaned. Who asked for it by name is told that it was not done.
    """
    table, _, orphan = half_done(scene, omid)
    other, _, others = half_done(scene, omid)
    before = omid.raw(table)
    omid.set(table, LOWTIDE=value)
    outcome = clean(job, table, other)
    assert (outcome.code, omid.raw(table) == before, scene.has(other, others, row=b"z")) == (1, True, False)
    assert f"{ATTRIBUTE} => '{value.strip()}'" in outcome.problems
    assert f"alter '{table}', METHOD => 'table_att_unset', NAME => 'LOWTIDE'" in outcome.problems
    configured = configure(tables={table: {"mode": "execute"}})
    outcome = job("orphan_cleanup", "--as-configured", config=configured)
    assert outcome.code == 0, outcome.problems
    assert "says no itself" in outcome.table(table)["notes"][0]
    assert omid.raw(table) == before
    omid.set(table, LOWTIDE=" On")
    assert clean(job, table).code == 0
    assert not scene.has(table, orphan, row=b"z")


def test_a_dry_run_of_a_table_that_says_no_shows_what_would_be_done(job: Job, scene: Scene, omid: OmidClient) -> None:
    """To look is no writing."""
    table, _, _ = half_done(scene, omid)
    omid.set(table, LOWTIDE="off")
    outcome = job("orphan_cleanup", "--table", table)
    assert (outcome.code, outcome.totals["healed"], outcome.totals["deleted"]) == (0, 1, 1)


def test_a_no_in_the_middle_of_a_run_is_obeyed_before_the_next_step(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The heals are done when the owner says no: the deletes are not, nothing is recorded, and other tables are
    cleaned.
    """
    table, committed, orphan = half_done(scene, omid)
    other, _, others = half_done(scene, omid)
    after_the_first_write(monkeypatch, table, lambda: omid.set(table, LOWTIDE="off"))
    outcome = clean(job, table, other)
    assert outcome.code == 1
    assert f"nothing (more) is written to {table}: table {table} says no itself" in outcome.problems
    assert scene.healed(table, committed, row=b"a")
    assert scene.has(table, orphan, row=b"z")
    assert (state.read(table).facts, scene.has(other, others, row=b"z")) == ((), False)
    assert len(state.read(other).facts) == 1


def test_a_no_after_the_planning_keeps_even_the_first_write_off(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the plan and the first write a table may have come to say no."""
    table, _, _ = half_done(scene, omid)
    before, put = omid.raw(table), acting.marks.put

    def late(*arguments: Any) -> Any:
        omid.set(table, LOWTIDE="off")
        return put(*arguments)

    monkeypatch.setattr(acting.marks, "put", late)
    outcome = clean(job, table)
    assert (outcome.code, omid.raw(table) == before) == (1, True)


@pytest.mark.parametrize("who", ["the table's owner", "whoever pauses the commit table"])
def test_what_was_only_planned_is_not_told_as_done(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    lowtide: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    who: str,
) -> None:
    """A no that comes between the plan and the first mark leaves no number of cells removed."""
    table, _, _ = half_done(scene, omid)
    before, act = omid.raw(table), acting.act_all

    def late(*arguments: Any) -> None:
        if who == "the table's owner":
            omid.set(table, LOWTIDE="off")
        else:
            pause(lowtide, "--table", "OMID_COMMIT_TABLE")
        act(*arguments)

    monkeypatch.setattr(acting, "act_all", late)
    outcome = clean(job, table)
    assert (outcome.code, omid.raw(table) == before) == (1, True)
    assert (outcome.totals["healed"], outcome.totals["deleted"]) == (0, 0)


def test_a_table_that_says_no_holds_the_bound_and_is_named(job: Job, scene: Scene, omid: OmidClient) -> None:
    """It is still one of the tables that the prune bound is the least of, and the collection says who holds it."""
    table, _, _ = half_done(scene, omid)
    assert clean(job, table).code == 0
    omid.set(table, LOWTIDE="off")
    scene.orphan(table)
    omid.advance_watermark()
    outcome = job("watermark_collection", "--execute")
    assert outcome.summary["bound"] < outcome.summary["low_watermark"]
    mine = next(b for b in outcome.summary["blockers"] if b["table"] == table)
    assert "says no itself" in mine["reason"]
    assert "table_att_unset" in mine["remedy"]


def test_no_restore_writes_to_a_table_that_says_no(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would compact the table and put cells into it: nothing of that is done, not even a hold is taken; and what a
    no in the middle kept back is not told as restored.
    """
    table, _, orphan = half_done(scene, omid)
    run = clean(job, table).summary["run"]
    omid.set(table, LOWTIDE="off")
    before = omid.raw(table)
    outcome = job("sideline_restore", "--restore", run, "--execute")
    assert (outcome.code, omid.raw(table) == before) == (1, True)
    assert "says no itself" in outcome.problems
    decided = job("sideline_restore", "--restore", run, "--as-committed", f"{orphan}={orphan + 50}", "--execute")
    assert decided.code == 1
    assert orphan in omid.commit_table(), "nothing is decided of what cannot be shown whole"
    omid.set(table, LOWTIDE="on")
    compact = Store.major_compact

    def and_then_no(self: Store, *arguments: Any) -> None:
        compact(self, *arguments)
        omid.set(table, LOWTIDE="off")

    with monkeypatch.context() as patched:
        patched.setattr(Store, "major_compact", and_then_no)
        outcome = job("sideline_restore", "--restore", run, "--execute")
    assert (outcome.code, outcome.totals["restored"], scene.has(table, orphan, row=b"z")) == (1, 0, False)
    omid.set(table, LOWTIDE="on")
    assert job("sideline_restore", "--restore", run, "--execute").code == 0
    assert scene.has(table, orphan, row=b"z")


def test_history_gc_does_not_even_compact_a_table_that_says_no(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planned before, it removes nothing, and the mark that readers are held to stays; when the no comes after the
    removal the table is not compacted.
    """
    young = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}
    eager = configure(defaults={**young, "compaction": {"share": 0.01}})
    table = scene.table()
    older, _ = scene.committed(table, value=b"older")
    scene.committed(table, value=b"newer")
    omid.flush(table)
    omid.advance_watermark()
    assert job("orphan_cleanup", "--execute").code == 0
    assert job("watermark_collection", "--execute").code == 0
    omid.set(table, LOWTIDE="off")
    outcome = job("history_gc", "--table", table, "--execute", "--compact", config=eager)
    assert (outcome.code, scene.has(table, older)) == (1, True)
    omid.set(table, LOWTIDE="on")
    after_the_first_write(monkeypatch, table, lambda: omid.set(table, LOWTIDE="off"))
    outcome = job("history_gc", "--table", table, "--execute", "--compact", config=eager)
    assert outcome.code == 1, outcome.summary
    assert "says no itself" in outcome.problems
    assert not scene.has(table, older)
    assert any(c.kind.startswith("delete") for c in omid.raw(table)), "a major compaction drops what deletes"


def test_the_history_mark_of_a_table_that_says_no_stays(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    configure: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the no comes after the plan, readers are not refused what will not be removed."""
    eager = configure(defaults={"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}})
    table = scene.table()
    older, _ = scene.committed(table, value=b"older")
    scene.committed(table, value=b"newer")
    omid.advance_watermark()
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    assert job("watermark_collection", "--execute").code == 0
    applied, act = state.history(table).applied, collection.removal.act

    def late(*arguments: Any) -> None:
        omid.set(table, LOWTIDE="off")
        act(*arguments)

    monkeypatch.setattr(collection.removal, "act", late)
    outcome = job("history_gc", "--table", table, "--execute", config=eager)
    assert (outcome.code, scene.has(table, older)) == (1, True)
    assert state.history(table).applied == applied


# -- pauses


@pytest.mark.parametrize("scope", ["the store", "the table", "the commit table"])
def test_a_paused_cleanup_waits_and_the_next_one_goes_on(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    lowtide: Callable[..., str],
    configure: Callable[..., Path],
    state: StateStore,
    scope: str,
) -> None:
    """A scheduled run under a pause is green, does nothing and says why; one that a person started is red. After the
    pause all is done.
    """
    table, _, orphan = half_done(scene, omid)
    named = {"the store": [], "the table": ["--table", table], "the commit table": ["--table", "OMID_COMMIT_TABLE"]}
    before, marks = omid.raw(table), omid.commit_table()
    identity = pause(lowtide, *named[scope])
    outcome = job("orphan_cleanup", "--as-configured", config=configure(**ACTING))
    assert (outcome.code, omid.raw(table) == before, omid.commit_table() == marks) == (0, True, True)
    assert "a migration" in outcome.table(table)["notes"][0]
    assert identity in outcome.table(table)["notes"][0]
    outcome = clean(job, table)
    assert (outcome.code, omid.raw(table) == before, state.read(table).facts) == (1, True, ())
    assert identity in lowtide("pauses")
    lowtide("resume", identity)
    assert clean(job, table).code == 0
    assert not scene.has(table, orphan, row=b"z")


def test_a_pause_ends_by_itself(job: Job, scene: Scene, omid: OmidClient, lowtide: Callable[..., str]) -> None:
    """By HBase's clock, without anybody's doing."""
    table, _, orphan = half_done(scene, omid)
    pause(lowtide, until="2s")
    time.sleep(2.5)
    assert clean(job, table).code == 0
    assert not scene.has(table, orphan, row=b"z")
    assert "over" in lowtide("pauses")


def test_a_pause_of_one_table_stops_no_other(
    job: Job, scene: Scene, omid: OmidClient, lowtide: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not in planning, and not in a write that is under way."""
    table, _, orphan = half_done(scene, omid)
    other = scene.table()
    check = Store.check_consent

    def and_then_paused(self: Store, *tables: str) -> Any:
        claims = check(self, *tables)
        pause(lowtide, "--table", other)
        return claims

    monkeypatch.setattr(Store, "check_consent", and_then_paused)
    assert clean(job, table).code == 0
    assert not scene.has(table, orphan, row=b"z")


@pytest.mark.parametrize("whole", [True, False], ids=["of the store", "of the table"])
def test_a_pause_in_the_middle_of_a_run_is_obeyed_before_the_next_step(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    lowtide: Callable[..., str],
    state: StateStore,
    monkeypatch: pytest.MonkeyPatch,
    whole: bool,
) -> None:
    """The heals are done when it comes: the deletes are not, and nothing is recorded of the table."""
    table, committed, orphan = half_done(scene, omid)
    after_the_first_write(monkeypatch, table, lambda: pause(lowtide, *([] if whole else ["--table", table])))
    outcome = clean(job, table)
    assert outcome.code == 1
    assert "is paused until" in outcome.problems
    assert scene.healed(table, committed, row=b"a")
    assert scene.has(table, orphan, row=b"z")
    assert state.read(table).facts == ()


def test_executors_obey_a_pause_before_their_next_batch(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    lowtide: Callable[..., str],
    state: StateStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A pause that comes when a write has been permitted, and before it is begun, keeps its batches back."""
    table, _, orphan = half_done(scene, omid)
    before, send = omid.raw(table), Store._send

    def permitted_and_then_paused(self: Store, mutations: Any, name: str, *others: Any) -> Any:
        if name == table and not state.pauses():
            pause(lowtide)
        return send(self, mutations, name, *others)

    monkeypatch.setattr(Store, "_send", permitted_and_then_paused)
    outcome = clean(job, table)
    assert (outcome.code, omid.raw(table) == before, outcome.totals["failed"]) == (1, True, 1)
    assert "not tried: a pause of the store began; `lowtide pauses` shows it" in outcome.problems
    assert scene.has(table, orphan, row=b"z")


def test_pruning_waits_and_says_for_what(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    lowtide: Callable[..., str],
    configure: Callable[..., Path],
    state: StateStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Under a pause nothing leaves the commit table; one that comes after the journal was written keeps the entries;
    after it they go.
    """
    _, committed, _ = half_done(scene, omid)
    configured = configure(**ACTING)
    assert job("orphan_cleanup", "--as-configured", config=configured).code == 0
    assert job("watermark_collection", "--execute").code == 0
    identity = pause(lowtide)
    outcome = job("commit_table_pruning", "--as-configured", "--grace", "0s", config=configured)
    assert (outcome.code, committed in omid.commit_table()) == (0, True)
    assert "a migration" in outcome.summary["notes"][-1]
    assert job("commit_table_pruning", "--execute", "--grace", "0s", config=configured).code == 1
    lowtide("resume", identity)
    after_the_first_write(monkeypatch, "LOWTIDE_JOURNAL", lambda: pause(lowtide))
    outcome = job("commit_table_pruning", "--execute", "--grace", "0s", config=configured)
    assert (outcome.code, committed in omid.commit_table()) == (1, True)
    assert "is paused until" in outcome.problems
    monkeypatch.undo()
    lowtide("resume", state.pauses()[0].id)
    assert job("commit_table_pruning", "--execute", "--grace", "0s", config=configured).code == 0
    assert committed not in omid.commit_table()


def test_a_journal_that_waits_says_nothing_new_of_itself(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    lowtide: Callable[..., str],
    configure: Callable[..., Path],
    state: StateStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Paused after the planning, it does not even hear how far is to be pruned; a cleanup reads it, and leaves to the
    next run that it is to say what the records say.
    """
    _, committed, _ = half_done(scene, omid)
    configured = configure(**ACTING)
    assert job("orphan_cleanup", "--execute").code == 0
    assert job("watermark_collection", "--execute").code == 0
    assert job("commit_table_pruning", "--execute", "--grace", "0s").code == 0
    again, _ = scene.crashed_after_commit(scene.table())
    omid.advance_watermark()
    assert job("orphan_cleanup", "--execute").code == 0
    assert job("watermark_collection", "--execute").code == 0

    def own_row() -> Any:
        return life.observe(state.connection, "LOWTIDE_JOURNAL").own_row

    said, prune = own_row(), pruning._journal_and_delete

    def late(*arguments: Any) -> None:
        pause(lowtide, "--table", "LOWTIDE_JOURNAL")
        prune(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(pruning, "_journal_and_delete", late)
        outcome = job("commit_table_pruning", "--execute", "--grace", "0s", config=configured)
    assert (outcome.code, again in omid.commit_table()) == (1, True)
    assert "is paused until" in outcome.problems
    assert own_row() == said

    state.remember_journal(horizon=said.horizon + 1)
    assert job("orphan_cleanup", "--execute").code == 0
    assert own_row() == said, "a cleanup only reads it"
    lowtide("resume", state.pauses()[0].id)
    assert job("orphan_cleanup", "--execute").code == 0
    assert own_row().horizon == said.horizon + 1
    assert committed not in omid.commit_table()


def test_a_paused_collection_publishes_nothing(
    job: Job, scene: Scene, state: StateStore, lowtide: Callable[..., str]
) -> None:
    """No bound is logged, so that none grows older meanwhile; but what tables there are, so that one that comes is
    known to have come.
    """
    scene.table()
    assert job("watermark_collection", "--execute").code == 0
    bounds = state.bounds()
    pause(lowtide)
    came = scene.table()
    assert job("watermark_collection", "--execute").code == 1
    assert state.bounds() == bounds
    assert came in {entry.table for entry in state.inventory()}


def test_a_pause_in_the_middle_of_a_repair_leaves_transactions_as_they_are(
    job: Job, configure: Callable[..., Path], lowtide: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was asked for is done, then nothing more is; the next repair brings them to their end."""
    books = made(configure)
    for at in (2, 3):
        assert books.stopped(lambda book: book.transfer("issuer", "ann", 10), at, "before")
    calls, ask = [], LedgerRows.__call__

    def asked(self: LedgerRows, operations: Any) -> Any:
        answers = ask(self, operations)
        if not calls:
            calls.append(pause(lowtide))
        return answers

    monkeypatch.setattr(LedgerRows, "__call__", asked)
    outcome = job("transaction_repair", "--grace", "0s", "--execute", config=books.at_once)
    assert len(books.entries()) == 2, "it went on"
    assert outcome.code == 1
    assert "is paused until" in outcome.problems
    monkeypatch.undo()
    assert job("transaction_repair", "--grace", "0s", "--execute", config=books.at_once).code == 1, "paused still"
    lowtide("resume", calls[0])
    outcome = job("transaction_repair", "--grace", "0s", "--execute", config=books.at_once)
    assert outcome.code == 0, outcome.problems
    assert books.entries() == []


def test_where_it_cannot_be_told_nothing_is_written(
    connector: Store, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HBase's master may be away just when a table's descriptor is asked for."""
    table = scene.table()
    silent = SimpleNamespace(attribute=Mock(side_effect=Py4JError("the master does not answer")))
    monkeypatch.setattr(Store, "_admin", lambda _: silent)
    with pytest.raises(StoreError, match=f"cannot tell whether {table} may be written to: the master does not answer"):
        connector.write(connector.cells(table), table)
    assert omid.raw(table) == []
