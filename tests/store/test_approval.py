"""A run that is held to an approved plan does that plan, no more, or nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark.history import mark
from scene import Scene

from lowtide.config import load
from lowtide.history.holding import release, take
from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]


@pytest.fixture
def keep(tmp_path: Path) -> Callable[[Outcome], str]:
    """Put a plan into a file."""

    def write(outcome: Outcome) -> str:
        assert outcome.code == 0, outcome.problems
        file = tmp_path / f"plan-{outcome.summary['run']}.json"
        file.write_text(json.dumps(outcome.summary))
        return str(file)

    return write


def test_a_cleanup_does_the_approved_plan_or_nothing(
    job: Job, scene: Scene, omid: OmidClient, keep: Callable[[Outcome], str]
) -> None:
    """It works no further than the plan did, though the low watermark moved on; a plan that is another by now is
    refused whole.
    """
    table = scene.table()
    first = scene.orphan(table)
    healed, _ = scene.crashed_after_commit(table, row=b"s")
    omid.advance_watermark()
    named = ("orphan_cleanup", "--table", table)
    plan = keep(dry := job(*named))
    later = scene.orphan(table, row=b"t")
    omid.advance_watermark()
    done = job(*named, "--execute", "--approved", plan)
    assert done.code == 0, done.problems
    assert (done.totals["deleted"], done.totals["healed"]) == (dry.totals["deleted"], dry.totals["healed"]) == (1, 1)
    assert not scene.has(table, first)
    assert scene.healed(table, healed, row=b"s")
    assert scene.has(table, later, row=b"t")
    assert done.table(table)["intervals"] == dry.table(table)["intervals"]

    other = scene.table()
    unasked = scene.orphan(other)  # before the plan: no run that is held to it works beyond its low watermark
    omid.advance_watermark()
    plan = keep(job(*named))
    marks = set(omid.commit_table())
    scene.shadow(table, later, omid.begin(), row=b"t")
    refused = job(*named, "--execute", "--approved", plan)
    assert refused.code == 2
    assert f"{table}: planned nothing; approved deleted 1" in refused.problems
    assert "nothing was done" in refused.problems
    assert (scene.has(table, later, row=b"t"), set(omid.commit_table())) == (True, marks)
    assert refused.table(table)["regions_recorded"] == 0
    assert job(*named, "--execute").code == 0

    # A table that the plan had not, and arguments that cannot be meant.
    for arguments, said in (
        (("orphan_cleanup", "--table", other, "--execute"), f"{other}: planned deleted 1; approved nothing"),
        (named, "give --execute with it"),
        (("history_gc", "--table", table, "--execute"), "is of orphan_cleanup, not of history_gc"),
    ):
        refused = job(*arguments, "--approved", plan)
        assert (refused.code, said in refused.problems) == (2, True), refused.problems
    assert scene.has(other, unasked)


@pytest.mark.parametrize("job_name", ["orphan_cleanup", "history_gc"])
@pytest.mark.parametrize("all_tables", [True, False], ids=["every table", "one of two"])
def test_an_approved_run_that_may_not_write_is_red(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    keep: Callable[[Outcome], str],
    configure: Callable[..., Path],
    recorded: Callable[..., int],
    job_name: str,
    all_tables: bool,
) -> None:
    """A person approved, and its tables say no since: that nothing was done is told as a failure with the reason, not
    as a note of a run in which all is well, also where the run is a scheduled one.
    """
    young = {"history_max_age": "0s", "min_history_age": "0s", "mode": "execute", "history_mode": "execute"}
    config = configure(defaults={**young, "budget": {"share": 1.0}})
    tables = scene.table(), scene.table()
    for table in tables:
        for _ in range(3):
            scene.committed(table)
    recorded(*tables)
    if job_name == "orphan_cleanup":
        for table in tables:
            scene.orphan(table, row=b"o")
        omid.advance_watermark()
    named = (job_name, *(part for t in tables for part in ("--table", t)), "--discovered")
    plan = keep(dry := job(*named, config=config))
    assert all(dry.table(table)["counts"]["deleted"] for table in tables)
    vetoed = tables if all_tables else tables[:1]
    for table in vetoed:
        omid.set(table, LOWTIDE="off")
    before = {table: scene.data(table) for table in tables}
    refused = job(*named, "--as-configured", "--approved", plan, config=config)
    assert refused.code == 2, refused.summary
    for table in vetoed:
        assert re.search(
            rf"{table}: planned nothing; approved .*deleted .*; .*{table} says no itself", refused.problems
        )
    assert "nothing was done. Make a new plan" in refused.problems
    assert {table: scene.data(table) for table in tables} == before
    unasked = job(*named, "--as-configured", config=config)
    assert unasked.code == 0, "a scheduled run that nobody approved only waits"


def test_history_goes_to_the_approved_mark_or_not_at_all(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    keep: Callable[[Outcome], str],
    configure: Callable[..., Path],
    state: StateStore,
    recorded: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What became history since stays; a hold that came since, or even while the run goes on, stops it."""
    table = scene.table()
    young = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}
    path = configure(defaults=young)
    eager = path.rename(path.with_name("eager.yaml"))

    def more() -> int:
        for _ in range(3):
            start, _ = scene.committed(table)
        recorded(table)
        return start

    def gc(*arguments: str) -> Outcome:
        return job("history_gc", "--table", table, *arguments, config=eager)

    more()
    plan = keep(dry := gc())
    assert dry.totals["deleted"] > 0
    more()
    held = take(load(eager), table, 50, owner="ann", reason="month end", lasting=timedelta(hours=1))
    before = scene.data(table)
    refused = gc("--execute", "--approved", plan)
    assert (refused.code, "approved mark" in refused.problems) == (2, True), refused.problems
    assert (scene.data(table), state.history(table).applied) == (before, 0)
    release(load(eager), table, held.id)

    def hold_comes(run: Any, work: Any) -> Any:
        take(load(eager), table, 50, owner="ann", reason="month end", lasting=timedelta(hours=1))
        return apply_mark(run, work)

    apply_mark = mark.apply
    with monkeypatch.context() as patched:
        patched.setattr(mark, "apply", hold_comes)
        refused = gc("--execute", "--approved", plan)
    assert (refused.code, "cannot be done" in refused.problems) == (1, True), refused.problems
    assert (scene.data(table), state.history(table).applied) == (before, 0)
    for left in state.holds(table):
        release(load(eager), table, left.id)

    done = gc("--execute", "--approved", plan)
    assert done.code == 0, done.problems
    assert done.totals["deleted"] == dry.totals["deleted"]
    assert state.history(table).applied == dry.table(table)["mark"]["mark"]
    assert done.summary["blockers"] == []
    assert gc("--execute").totals["deleted"] > 0
