"""A table that is made anew, or restored, while a run goes on: nothing is done to what is there then, and nothing is
recorded of it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark.cleaning import acting, recording, suspects
from lowtide_spark.frames.store import Store
from lowtide_spark.history import mark, removal
from lowtide_spark.run.context import Run
from lowtide_spark.undo import as_committed, putting_back
from scene import Scene

from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore
from lowtide.values.formats import encode_long, shadow_qualifier

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]

YOUNG = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}


def remade(omid: OmidClient, table: str, splits: tuple[bytes, ...] = ()) -> None:
    """Another table of that name."""
    omid.drop(table)
    omid.create(table, ("a",), splits=splits)


def test_history_gc_removes_nothing_of_a_successor(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    configure: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What was planned for a table is not done to another of its name, which may lack what replaced a version; no mark
    is applied.

    Another table of the same run loses its history all the same.
    """
    eager = configure(defaults=YOUNG)
    table, other = scene.table(splits=(b"m",)), scene.table()
    versions = {t: [scene.committed(t, value=b"v%d" % n) for n in range(3)] for t in (table, other)}
    omid.advance_watermark()
    for job_name in ("orphan_cleanup", "watermark_collection"):
        assert job(job_name, "--execute", config=eager).code == 0
    check = Run.check_approved

    def meanwhile(run: Any) -> None:
        check(run)
        remade(omid, table, (b"m",))
        start, commit = versions[table][0]  # an import: the first version, and nothing that replaces it
        scene.cell(table, start)
        scene.shadow(table, start, commit)

    monkeypatch.setattr(Run, "check_approved", meanwhile)
    outcome = job("history_gc", "--table", table, "--table", other, "--execute", config=eager)
    monkeypatch.undo()
    _, commit = versions[table][0]
    assert {(c.kind, c.qualifier): c.value for c in omid.raw(table)} == {
        ("put", b"q"): b"v",
        ("put", shadow_qualifier(b"q")): encode_long(commit),
    }
    assert outcome.code == 1
    assert f"{table} was restored, made anew" in outcome.problems
    assert (state.history(table).applied, state.history(table).intended) == (0, 0)
    assert outcome.table(table)["counts"]["deleted"] == 0
    assert outcome.table(other)["counts"]["deleted"] == 2
    assert state.history(other).applied > 0


#: When it comes back, and whether the driver sees that, so that no mutation is sent.
MOMENTS = {
    "its mark is applied": (mark, "apply", True),
    "what goes is put aside": (removal, "put_aside", True),
    "its versions are deleted": (Store, "write", False),
}


@pytest.mark.turns(3)
@pytest.mark.parametrize("moment", MOMENTS)
def test_history_gc_removes_nothing_of_what_came_back(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    configure: Callable[..., Path],
    snapshot: Callable[..., str],
    recorded: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    """An HBase snapshot of before a version was replaced is restored while the run is at work: the version that was
    about to go is what readers are shown, and stays so at every read point.

    The run is red and names the table; run again it is green, and so is everything after it.
    """
    eager = configure(defaults=YOUNG)
    table = scene.table(splits=(b"m",))
    _, first = scene.committed(table, value=b"first")
    before = snapshot(table)
    _, second = scene.committed(table, value=b"second")
    scene.committed(table, row=b"z", value=b"")
    points = (first, first + 50, second + 50, omid.begin())
    recorded(table)
    owner, name, seen = MOMENTS[moment]
    effect = getattr(owner, name)
    shown: dict[int, Any] = {}

    def after_a_restore(*arguments: Any, **named: Any) -> Any:
        if not shown:
            omid.restore(before)
            shown.update((point, omid.read(table, point)) for point in points)
        return effect(*arguments, **named)

    monkeypatch.setattr(owner, name, after_a_restore)
    outcome = job("history_gc", "--table", table, "--execute", config=eager)
    monkeypatch.undo()
    assert {point: omid.read(table, point) for point in points} == shown, "what readers are shown is deleted"
    assert set(map(str, shown.values())) == {"{}", str({(b"r", b"a", b"q"): b"first"})}
    assert outcome.code == 1
    assert f"{table} was restored, made anew, or disabled and enabled while the run went on" in outcome.problems
    assert (outcome.totals["deleted"], outcome.totals["failed"] == 0) == (0, seen)
    assert job("history_gc", "--table", table, "--execute", config=eager).code == 0
    scene.committed(table, value=b"third")
    at = omid.begin()
    omid.advance_watermark()
    for name in ("orphan_cleanup", "watermark_collection", "history_gc"):
        later = job(name, *(("--table", table) if name != "watermark_collection" else ()), "--execute", config=eager)
        assert later.code == 0, later.problems
    assert (later.totals["deleted"], omid.read(table, at)) == (1, {(b"r", b"a", b"q"): b"third"})


@pytest.mark.turns(2)
@pytest.mark.parametrize("moment", ["its tombstones are put", "its cells are put"])
def test_a_restore_hides_nothing_of_what_came_back(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    configure: Callable[..., Path],
    snapshot: Callable[..., str],
    recorded: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    """A tombstone that a restore brings back would hide what an older HBase snapshot, restored meanwhile, shows:
    nothing is put, and the restore is red.

    Run again on the table as it was, it brings all of it back.
    """
    eager = configure(defaults=YOUNG)
    table = scene.table()
    scene.committed(table, value=b"first")
    before = snapshot(table)
    scene.committed(table, value=b"")
    scene.committed(table, value=b"third")
    recorded(table)
    removed = job("history_gc", "--table", table, "--execute", config=eager)
    assert (removed.code, removed.totals["deleted"]) == (0, 2), removed.problems
    at, after = omid.begin(), snapshot(table, "-after")
    owner, name = {"its tombstones are put": (putting_back, "_put"), "its cells are put": (Store, "write")}[moment]
    effect = getattr(owner, name)
    done: list[Any] = []

    def after_another(*arguments: Any, **named: Any) -> Any:
        if not done:
            done.append(omid.restore(before))
        return effect(*arguments, **named)

    monkeypatch.setattr(owner, name, after_another)
    restored = job("sideline_restore", "--restore", removed.summary["run"], "--execute", config=eager)
    monkeypatch.undo()
    assert omid.read(table, at) == {(b"r", b"a", b"q"): b"first"}, "what readers are shown is hidden"
    assert restored.code == 1
    assert f"{table} was restored, made anew, or disabled and enabled while the run went on" in restored.problems
    omid.restore(after)
    again = job("sideline_restore", "--restore", removed.summary["run"], "--execute", config=eager)
    assert (again.code, again.totals["restored"]) == (0, 2), again.problems
    assert omid.read(table, at) == {(b"r", b"a", b"q"): b"third"}


def test_a_cleanup_deletes_nothing_of_what_came_back(
    job: Job, scene: Scene, omid: OmidClient, snapshot: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is an orphan by all that there is may be proved by a shadow cell of the HBase snapshot that comes back
    before it is deleted: it stays, and the next run heals it.
    """
    table = scene.table()
    start, commit = omid.begin(), omid.begin()
    for row in (b"a", b"b"):
        scene.cell(table, start, row=row)
    bare = snapshot(table)
    scene.shadow(table, start, commit, row=b"b")
    half = snapshot(table, "-half")
    scene.shadow(table, start, commit, row=b"a")
    whole = omid.read(table, commit + 1)
    omid.restore(bare)
    omid.advance_watermark()
    write = Store.write
    done: list[Any] = []

    def after_a_restore(self: Store, mutations: Any, name: str, **named: Any) -> Any:
        if name == table and not done:
            done.append(omid.restore(half))
        return write(self, mutations, name, **named)

    monkeypatch.setattr(Store, "write", after_a_restore)
    outcome = job("orphan_cleanup", "--table", table, "--execute")
    monkeypatch.undo()
    assert scene.has(table, start, row=b"a"), "a committed cell is deleted"
    assert outcome.code == 1
    assert f"{table} was restored, made anew" in outcome.problems
    again = job("orphan_cleanup", "--table", table, "--execute")
    assert again.code == 0, again.problems
    assert (omid.read(table, commit + 1), start in omid.commit_table()) == (whole, False)


def _oracle_made_anew_before(monkeypatch: Any, omid: OmidClient, table: str, commits: str) -> list[str]:
    """An oracle is made anew, as its commit table shows it, before the first write to *table*: that, once it was."""
    write = Store.write
    done: list[str] = []

    def written(self: Store, mutations: Any, name: str, **named: Any) -> Any:
        if name == table and not done:
            omid.disable(commits)
            omid.enable(commits)
            done.append(name)
        return write(self, mutations, name, **named)

    monkeypatch.setattr(Store, "write", written)
    return done


def test_a_pruning_takes_nothing_of_a_commit_table_that_came_back(
    job: Job, omid: OmidClient, scene: Scene, state: StateStore, connector: Store, recorded: Any, monkeypatch: Any
) -> None:
    """A run that stood still before it deletes, while an oracle was made anew: the commit table is emptied, and another
    transaction gets the number of one that was to be pruned. Its entry, the only proof of it, stays.
    """
    commits = connector.config.omid.commit_table
    start = omid.begin()
    omid.add_commit_entry(start, omid.begin())
    recorded(scene.table())
    done = _oracle_made_anew_before(monkeypatch, omid, commits, commits)
    outcome = job("commit_table_pruning", "--grace", "0s", "--execute")
    monkeypatch.undo()
    state.settle_commit_table(connector.life(commits).stated)
    assert start in omid.commit_table()
    assert (outcome.code, outcome.totals["pruned"], done) == (1, 0, [commits])
    assert f"{commits} was restored, made anew, or disabled and enabled" in outcome.problems
    assert job("commit_table_pruning", "--grace", "0s", "--execute").code == 0
    assert start not in omid.commit_table()


@pytest.mark.parametrize("name", ["orphan_cleanup", "journal_replay"])
def test_nothing_is_put_into_a_commit_table_that_came_back(
    job: Job, omid: OmidClient, scene: Scene, state: StateStore, connector: Store, monkeypatch: Any, name: str
) -> None:
    """A run that stood still before it writes to it, while an oracle was made anew: neither a mark nor an entry of what
    had a number before comes to another transaction that has it now. Run again, it does what there is to do.
    """
    commits, table = connector.config.omid.commit_table, scene.table()
    start = scene.orphan(table)
    if name == "journal_replay":
        omid.add_commit_entry(start, start + 50)
    omid.advance_watermark()
    if name == "journal_replay":
        for command in (("orphan_cleanup", "--table", table), ("commit_table_pruning", "--grace", "0s")):
            assert job(*command, "--execute").code == 0
    since = f"{state.server_time() - timedelta(minutes=5):%Y-%m-%dT%H:%M:%S+00:00}"
    command = (name, *(("--table", table) if name == "orphan_cleanup" else ("--from", since)), "--execute")
    done = _oracle_made_anew_before(monkeypatch, omid, commits, commits)
    outcome = job(*command)
    monkeypatch.undo()
    state.settle_commit_table(connector.life(commits).stated)
    assert start not in omid.commit_table(), "it is another transaction's by now"
    assert (outcome.code, done) == (1, [commits]), outcome.problems
    assert f"{commits} was restored, made anew, or disabled and enabled" in outcome.problems
    again = job(*command)
    assert (again.code, start in omid.commit_table()) == (0, True), again.problems


def test_nothing_is_healed_by_a_commit_table_that_came_back(
    job: Job, omid: OmidClient, scene: Scene, state: StateStore, connector: Store, monkeypatch: Any
) -> None:
    """A cleanup that stood still before it writes to a table, while an oracle was made anew: a cell may be another
    transaction's of the same number by now. Run again, it heals.
    """
    commits, table = connector.config.omid.commit_table, scene.table()
    start, commit = scene.crashed_after_commit(table)
    omid.advance_watermark()
    done = _oracle_made_anew_before(monkeypatch, omid, table, commits)
    outcome = job("orphan_cleanup", "--table", table, "--execute")
    monkeypatch.undo()
    state.settle_commit_table(connector.life(commits).stated)
    assert scene.healed(table, start) is None, "it is another transaction's cell by now"
    assert (outcome.code, done) == (1, [table]), outcome.problems
    assert f"{commits} was restored, made anew, or disabled and enabled" in outcome.problems
    again = job("orphan_cleanup", "--table", table, "--execute")
    assert (again.code, scene.healed(table, start)) == (0, commit), again.problems


@pytest.mark.parametrize("said", [False, True], ids=["nobody-spoke", "said-to-be-whole"])
def test_no_restore_decides_of_what_a_commit_table_had_that_came_back(
    job: Job, omid: OmidClient, scene: Scene, state: StateStore, connector: Store, monkeypatch: Any, said: bool
) -> None:
    """It searches all tables and sidelines before it decides, which takes its time: an oracle may be made anew
    meanwhile. What somebody says of the commit table then is said of it as it is, not as the run read it. Run again, it
    does what it was asked for.
    """
    commits, table = connector.config.omid.commit_table, scene.table()
    start, commit = scene.orphan(table), omid.begin()
    omid.advance_watermark()
    removed = job("orphan_cleanup", "--table", table, "--execute")
    assert (removed.code, removed.totals["deleted"]) == (0, 1), removed.problems
    search = as_committed._check_sidelines

    def while_an_oracle_is_made_anew(*arguments: Any) -> None:
        search(*arguments)
        omid.disable(commits)
        omid.enable(commits)
        if said:
            state.settle_commit_table(connector.life(commits).stated)

    command = ("sideline_restore", "--restore", removed.summary["run"], "--as-committed", f"{start}={commit}")
    monkeypatch.setattr(as_committed, "_check_sidelines", while_an_oracle_is_made_anew)
    outcome = job(*command, "--execute")
    monkeypatch.undo()
    state.settle_commit_table(connector.life(commits).stated)
    assert scene.data(table) == {}, "nothing comes back by the word of before"
    assert (outcome.code, omid.commit_table()[start].invalid) == (1, True), outcome.problems
    again = job(*command, "--execute")
    assert (again.code, start in omid.commit_table(), scene.healed(table, start)) == (0, False, commit), again.problems


@pytest.mark.parametrize("moment", ["it is read", "its cells are deleted", "it is looked at last", "it is recorded"])
def test_a_cleanup_records_nothing_of_a_successor(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A table remade after it was listed and before something of it is recorded counts as never cleaned: the bound
    waits for it.

    What lies in the successor is as it was, or healed.
    """
    table = scene.table()
    scene.orphan(table, row=b"orphan")
    scene.crashed_after_commit(table, row=b"healed")
    late = omid.begin()
    omid.add_commit_entry(late, late + 50)
    omid.advance_watermark()
    owner, name = {
        "it is read": (suspects, "plan_ranges"),
        "its cells are deleted": (acting, "put_aside"),
        "it is looked at last": (recording, "record_all"),
        "it is recorded": (recording, "cleaned_intervals"),
    }[moment]
    effect = getattr(owner, name)
    done: list[Any] = []

    def after_another(*arguments: Any) -> Any:
        if not done:
            remade(omid, table)
            scene.cell(table, late, row=b"late")
            done.append(omid.raw(table))
        return effect(*arguments)

    monkeypatch.setattr(owner, name, after_another)
    outcome = job("orphan_cleanup", "--table", table, "--execute")
    monkeypatch.undo()
    (before,) = done
    if moment == "it is read":
        # It was read, so its committed cell may have been healed: that holds for whatever table it lies in.
        assert scene.has(table, late, row=b"late")
    else:
        left = [c for c in omid.raw(table) if c.kind == "put"]
        assert left == [c for c in before if c.kind == "put"]
    collected = job("watermark_collection", "--execute")
    assert collected.summary["bound"] == 0
    assert {b["table"] for b in collected.summary["blockers"]} == {table}, outcome.problems
