"""A job killed at any moment and started again ends in the state of an undisturbed run; a restart repeats only what was not recorded."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark import orphans, sideline
from lowtide_spark.store import Store
from scene import Scene

from lowtide.config import load
from lowtide.state import StateStore
from lowtide.submit import command
from lowtide.workload import OmidClient

Job = Callable[..., Outcome]
#: In ms, with some to spare.
DAY = 25 * 3600 * 1000


class Killed(BaseException):
    """Ends a run where it stands: no handler of errors catches it."""


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


EFFECTS = (
    (Store, "write"),
    (orphans, "put_aside"),
    (orphans, "_record"),
    (StateStore, "record"),
)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_every_effect_and_run_again(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """Every effect of the run, found by counting them in an undisturbed one, is cut before or after it; the next run ends alike."""
    reference = leftovers(scene)
    effects = Countdown(monkeypatch, moment)
    assert job("orphan_cleanup", "--table", reference, "--execute").code == 0
    expected, count = shape(scene, reference), effects.seen
    assert count >= 7
    for number in range(1, count + 1):
        table = leftovers(scene)
        effects.kill_at(number)
        with pytest.raises(Killed):
            job("orphan_cleanup", "--table", table, "--execute", "--run-id", f"cut-{number}")
        effects.kill_at(0)
        again = job("orphan_cleanup", "--table", table, "--execute", "--run-id", f"cut-{number}")
        assert again.code == 0, (number, again.problems)
        assert shape(scene, table) == expected, number
        assert len(state.read(table).facts) == 2
        omid.drop(table)


class Countdown:
    """Counts effects and kills the run at one of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
        self.seen, self._kill_at, self._moment = 0, 0, moment
        for owner, name in EFFECTS:
            monkeypatch.setattr(owner, name, self._wrapped(getattr(owner, name)))

    def kill_at(self, number: int) -> None:
        """Kill at the *number*-th effect from now on; 0: at none."""
        self.seen, self._kill_at = 0, number

    def _wrapped(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **named: Any) -> Any:
            self.seen += 1
            cut = self.seen == self._kill_at
            if cut and self._moment == "before":
                raise Killed
            result = effect(*arguments, **named)
            if cut:
                raise Killed
            return result

        return counted


def test_a_restart_leaves_out_what_its_run_has_recorded(
    job: Job, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the same run id a restarted full pass reads only the key ranges that were not recorded."""
    table = leftovers(scene)
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    effects = Countdown(monkeypatch, "after")
    assert job("orphan_cleanup", "--table", table, "--execute", "--full", "--run-id", "count").code == 0
    effects.kill_at(effects.seen - 1)  # the last two effects are the state writes of the two ranges
    with pytest.raises(Killed):
        job("orphan_cleanup", "--table", table, "--execute", "--full", "--run-id", "full")
    effects.kill_at(0)
    again = job("orphan_cleanup", "--table", table, "--execute", "--full", "--run-id", "full")
    assert (again.code, again.table(table)["regions"]) == (0, 1)


def test_a_run_id_that_is_used_again_does_what_was_not_done(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore
) -> None:
    """Of a second run under the same id only that is left out which the first has recorded less than a day ago, and a note says so: what came
    since is cleaned, and a day later all that was asked for is looked at again."""
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
    [note] = [n for n in retried.table(table)["notes"] if "left out" in n]
    assert "2 key ranges" in note
    assert "the same" in note

    known = state.begin(table, [])
    for fact in known.facts:
        state.record(known, replace(fact, recorded_at=fact.recorded_at - DAY, read_since=fact.read_since - DAY))
    later = job(*command, "--full")
    assert (later.code, later.table(table)["regions"], scene.has(table, paused)) == (0, 2, False)


def test_another_interval_under_the_same_run_id_is_read(job: Job, scene: Scene, omid: OmidClient) -> None:
    """A run id is no proof that its run has read what is asked for now: a full pass after a run that went on from its records."""
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


def test_a_submitted_job_that_is_killed_ends_well_the_second_time(
    job: Job, scene: Scene, configure: Callable[..., Path], omid: OmidClient
) -> None:
    """SIGKILL to the real spark-submit process while it acts; the next run finishes the work."""
    table = leftovers(scene)
    config = configure()
    submit = command(load(config), "orphan_cleanup", ["--config", str(config), "--table", table, "--execute"])
    process = subprocess.Popen(submit, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if "decide took" in line:
                break
        time.sleep(0.5)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    again = job("orphan_cleanup", "--table", table, "--execute")
    assert again.code == 0, again.problems
    assert [q for _, q in shape(scene, table) if q == b"q"] == []


def test_the_sideline_folder_is_one_to_one() -> None:
    """Two runs whose ids differ by a character never share a folder."""
    names = ["a:b", "a_b", "a/b", "a=b", "a b", "a=3Ab"]
    assert len({sideline._safe(n) for n in names}) == len(names)
