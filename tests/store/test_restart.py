"""A job killed at any moment and started again ends in the state of an undisturbed run; a restart repeats only what was
not recorded.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import deadman
import pytest
import wreck
from conftest import Outcome
from deadman import Cut, Moment
from lowtide_spark.frames.folders import safe
from lowtide_spark.frames.store import Store
from scene import Scene

from lowtide.config import load
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.run.submit import command, environment
from lowtide.store.state import StateStore
from lowtide.values.formats import parse_commit_key
from tests import seeds
from tests.prove import PROVE

Job = Callable[..., Outcome]
#: In ms, with some to spare.
DAY = 25 * 3600 * 1000


def leftovers(scene: Scene) -> str:
    """A table of two regions with orphans, a wrongly marked commit, crashed commits."""
    table = scene.table(splits=(b"m",))
    for row in (b"a", b"z"):
        scene.orphan(table, row=row)
        scene.crashed_after_commit(table, row=row, qualifier=b"c")
        start, commit = scene.committed(table, row=row, qualifier=b"sibling")
        scene.cell(table, start, row=row, qualifier=b"marked")
        assert commit
        scene.omid.invalidate(start)
    scene.omid.advance_watermark()
    return table


def shape(scene: Scene, table: str) -> list[tuple[bytes, bytes]]:
    """What is in a table, timestamps aside."""
    return sorted((row, qualifier) for row, _, qualifier, _ in scene.data(table))


@pytest.mark.turns(2, group="killed at any effect")
@seeds.each("orphan_cleanup killed at any effect")
def test_killed_at_any_effect_and_run_again(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    stack: Stack,
    connector: Store,
    configure: Callable[..., Path],
    tmp_path: Path,
    seed: int,
) -> None:
    """Whatever a dead cleanup left, the next one ends in the state of an undisturbed run, and sweeps what the dead one
    had made.

    At its death nothing was gone that is not in the sideline, and nothing was recorded that was not done.
    """
    config = configure(defaults={"read": "snapshot"})

    def cleanup(table: str, name: str) -> Outcome:
        return job("orphan_cleanup", "--table", table, "--execute", "--run-id", name, config=config)

    state.create()  # or the first run had effects more than those after it
    state.record_format()
    wreck.make_shared_folders(connector)
    assert cleanup(leftovers(scene), "before").code == 0  # nor does one before it count as failing
    reference = leftovers(scene)
    whole = deadman.run(lambda: cleanup(reference, "whole"))
    assert whole.result is not None
    assert whole.result.code == 0, whole.result.problems
    expected, made = shape(scene, reference), whole.named("master.snapshot")
    recorded = whole.named("facts.record_all")[0]
    made = [effect for effect in made if effect.name != "sweepScratchDirs"]
    assert [effect.name for effect in made] == ["scratchDir", "createSnapshot", "dropSnapshot", "dropScratchDir"]
    chance = random.Random(seed)
    # The first is the one that puts aside: before it nothing may be gone.
    always = [whole.named("sideline.put_aside")[0], recorded]
    for cut in deadman.cuts(whole.effects, chance, every=PROVE, always=always):
        table, name = leftovers(scene), f"cut-{cut.number}-{cut.moment}"
        before = scene.data(table)
        dead = deadman.run(lambda t=table, n=name: cleanup(t, n), cut)
        told = f"{cut}: {dead.effects[-1]}"
        assert dead.killed, told
        assert dead.steps() == whole.steps()[: cut.number], told
        gone = set(before) - set(scene.data(table))
        assert gone <= wreck.aside(tmp_path / "sideline", name, table), told
        facts = state.read(table).facts
        unrecorded = (cut.number, cut.moment is not Moment.BEFORE) <= (recorded.number, False)
        assert not facts if unrecorded else shape(scene, table) == expected, told
        scratch, snapshot, no_snapshot, no_scratch = (effect.number for effect in made)
        assert bool(wreck.snapshots(omid, table)) == (snapshot < cut.number <= no_snapshot), told
        assert bool(left := wreck.folders(stack, table)) == (scratch < cut.number <= no_scratch), told
        again = cleanup(table, name)
        assert again.code == 0, (told, again.problems)
        assert shape(scene, table) == expected, told
        assert len(state.read(table).facts) == 2, told
        assert (wreck.snapshots(omid, table), wreck.folders(stack, table)) == ([], left), "a day is not over: " + told
        omid.drop(table)


@pytest.fixture
def fresh_entries(scene: Scene, omid: OmidClient, recorded: Callable[..., int]) -> Callable[[], dict[int, int]]:
    """Make entries of complete transactions in a table that counts as clean: they may go. Start and commit
    timestamps.
    """
    table = scene.table()

    def made() -> dict[int, int]:
        entries = dict(scene.committed(table, row=b"r%d" % n) for n in range(8))
        recorded(table)
        for start, commit in entries.items():
            omid.add_commit_entry(start, commit)
        return entries

    return made


@pytest.mark.turns(2, group="killed at any effect")
@seeds.each("commit_table_pruning killed at any effect")
def test_a_pruning_killed_at_any_effect_and_run_again(
    job: Job,
    omid: OmidClient,
    connector: Store,
    configure: Callable[..., Path],
    fresh_entries: Callable[[], dict[int, int]],
    seed: int,
) -> None:
    """At its death what has left the commit table is in the journal, always; the next run ends the work."""
    journal = load(configure()).state.journal_table

    def pruning() -> Outcome:
        return job("commit_table_pruning", "--grace", "0s", "--execute")

    def gone(starts: Iterable[int]) -> set[int]:
        there = omid.commit_table()
        return {start for start in starts if start not in there}

    def journaled(starts: Collection[int]) -> set[int]:
        cells = connector.cells(journal).collect() if journal in omid.tables() else []
        return {start for cell in cells if (start := parse_commit_key(bytes(cell.row))) in starts}

    fresh_entries()
    assert pruning().code == 0  # or the first run had effects more than those after it
    starts = fresh_entries()
    whole = deadman.run(pruning)
    assert whole.result is not None
    assert (whole.result.code, gone(starts)) == (0, set(starts)), whole.result.problems
    aside, deleted = (effect for effect in whole.effects if effect.seam == "connector")
    for cut in deadman.cuts(whole.effects, random.Random(seed), every=PROVE, always=[aside, deleted]):
        starts = fresh_entries()
        dead = deadman.run(pruning, cut)
        told = f"{cut}: {dead.effects[-1]}"
        assert dead.killed, told
        left, kept = gone(starts), journaled(starts)
        assert left <= kept, told
        at_journal, at_delete = ((cut.number, cut.moment) == (e.number, Moment.PART) for e in (aside, deleted))
        assert 0 < len(kept) < 8 if at_journal else kept == (set(starts) if cut.number > aside.number else set()), told
        assert 0 < len(left) < 8 if at_delete else left == (set(starts) if cut.number > deleted.number else set()), told
        again = pruning()
        assert again.code == 0, (told, again.problems)
        assert gone(starts) == journaled(starts) == set(starts), told


@pytest.mark.turns(2, group="killed at any effect")
@seeds.each("watermark_collection killed at any effect")
def test_a_collection_killed_at_any_effect_and_run_again(
    job: Job, scene: Scene, recorded: Callable[..., int], state: StateStore, seed: int
) -> None:
    """At its death the bound is that of before or that of now, never more; the next run publishes it."""
    table = scene.table()

    def collection() -> Outcome:
        return job("watermark_collection", "--execute")

    recorded(table)
    assert collection().code == 0
    watermark = recorded(table)
    whole = deadman.run(collection)
    assert whole.result is not None
    assert (whole.result.code, whole.result.summary["bound"]) == (0, watermark), whole.result.problems
    for cut in deadman.cuts(whole.effects, random.Random(seed), every=PROVE):
        before, watermark = watermark, recorded(table)
        dead = deadman.run(collection, cut)
        told = f"{cut}: {dead.effects[-1]}"
        assert dead.killed, told
        assert max(bound.value for bound in state.bounds()) in (before, watermark), told
        again = collection()
        assert (again.code, again.summary["bound"]) == (0, watermark), (told, again.problems)
        assert max(bound.value for bound in state.bounds()) == watermark, told


@pytest.mark.turns(2, group="killed at any effect")
@seeds.each("journal_replay killed at any effect")
def test_a_replay_killed_at_any_effect_and_run_again(
    job: Job, omid: OmidClient, state: StateStore, fresh_entries: Callable[[], dict[int, int]], seed: int
) -> None:
    """At its death some of the entries are back, as they were; the next run brings the others, and those that are there
    stay.
    """
    began = state.server_time() - timedelta(seconds=1)

    def replay() -> Outcome:
        return job("journal_replay", "--from", f"{began:%Y-%m-%dT%H:%M:%S+00:00}", "--execute")

    def prune() -> None:
        assert job("commit_table_pruning", "--grace", "0s", "--execute").code == 0
        assert not set(entries) & set(omid.commit_table())

    entries = fresh_entries()
    prune()
    assert replay().code == 0  # or the first run had effects more than those after it, where one before it had failed
    prune()
    whole = deadman.run(replay)
    assert whole.result is not None
    assert whole.result.code == 0, whole.result.problems
    for cut in deadman.cuts(whole.effects, random.Random(seed), every=PROVE):
        prune()
        dead = deadman.run(replay, cut)
        told = f"{cut}: {dead.effects[-1]}"
        assert dead.killed, told
        assert replay().code == 0, told
        there = omid.commit_table()
        assert {start: there[start].commit for start in entries} == entries, told


def test_a_restart_leaves_out_what_its_run_has_recorded(job: Job, scene: Scene) -> None:
    """Under the same run id a restarted full pass reads only the key ranges that were not recorded."""
    table = leftovers(scene)
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    full = ("orphan_cleanup", "--table", table, "--execute", "--full", "--run-id")
    (recorded,) = deadman.run(lambda: job(*full, "count")).named("facts.record_all")
    dead = deadman.run(lambda: job(*full, "full"), Cut(recorded.number, Moment.PART))
    assert dead.applied == (1, 2)
    again = job("orphan_cleanup", "--table", table, "--execute", "--full", "--run-id", "full")
    assert (again.code, again.table(table)["regions"]) == (0, 1)


def test_a_run_id_that_is_used_again_does_what_was_not_done(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore
) -> None:
    """Of a second run under the same id only that is left out which the first has recorded less than a day ago, and a
    note says so: what came since is cleaned, and a day later all that was asked for is looked at again."""
    table = leftovers(scene)
    command = ("orphan_cleanup", "--table", table, "--execute", "--run-id", "the same")
    assert job(*command).code == 0
    # Of a client that was paused: below what is recorded, so that only a full pass finds it.
    paused = scene.omid.begin()
    omid.advance_watermark()
    assert job(*command).code == 0
    came = scene.orphan(table, row=b"came since")
    omid.advance_watermark()
    again = job(*command)
    assert (again.code, again.table(table)["regions"], scene.has(table, came, row=b"came since")) == (0, 2, False)

    scene.cell(table, paused)
    retried = job(*command, "--full")
    assert (retried.code, retried.table(table)["regions"], scene.has(table, paused)) == (0, 0, True)
    notes = [n for n in retried.table(table)["notes"] if "left out" in n]
    assert [("2 key ranges" in n, "the same" in n) for n in notes] == [(True, True)]

    known = state.begin(table, [])
    for fact in known.facts:
        state.record(known, replace(fact, recorded_at=fact.recorded_at - DAY, read_since=fact.read_since - DAY))
    later = job(*command, "--full")
    assert (later.code, later.table(table)["regions"], scene.has(table, paused)) == (0, 2, False)


def test_another_interval_under_the_same_run_id_is_read(job: Job, scene: Scene, omid: OmidClient) -> None:
    """A run id is no proof that its run has read what is asked for now: a full pass after a run that went on from its
    records.
    """
    table = leftovers(scene)
    paused = omid.begin()
    omid.advance_watermark()
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    omid.begin()
    omid.advance_watermark()
    command = ("orphan_cleanup", "--table", table, "--execute", "--run-id", "one name")
    assert job(*command).table(table)["regions"] == 2
    scene.cell(table, paused)
    full = job(*command, "--full")
    assert (full.code, full.table(table)["regions"], scene.has(table, paused)) == (0, 2, False)


@pytest.mark.turns(2, group="killed through spark-submit")
def test_a_submitted_job_that_is_killed_ends_well_the_second_time(
    job: Job, scene: Scene, configure: Callable[..., Path], state: StateStore
) -> None:
    """SIGKILL to the real spark-submit process, driver and all, when it has begun to act; the next run finishes the
    work.
    """
    table = leftovers(scene)
    config = configure()
    submit = command(
        load(config), "orphan_cleanup", ["--config", str(config), "--table", table, "--execute", "--run-id", "killed"]
    )
    before = scene.data(table)
    process = subprocess.Popen(
        submit,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        # It has decided, and acts: what it heals and deletes comes within a second or two.
        said: list[str] = []
        while "decide took" not in "".join(said[-1:]):
            said.append(line := process.stdout.readline())
            assert line, f"it ended before it had decided: {''.join(said)}"
        deadline = time.monotonic() + 60
        while scene.data(table) == before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert process.poll() is None, "it lived, and had begun to act"
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert scene.data(table) != before, "it had begun to act"
    assert all(run["run"] != "killed" for run in state.runs()), "it had not ended"
    again = job("orphan_cleanup", "--table", table, "--execute")
    assert again.code == 0, again.problems
    assert [q for _, q in shape(scene, table) if q == b"q"] == []


def test_the_sideline_folder_is_one_to_one() -> None:
    """Two runs whose ids differ by a character never share a folder."""
    names = ["a:b", "a_b", "a/b", "a=b", "a b", "a=3Ab"]
    assert len({safe(n) for n in names}) == len(names)
