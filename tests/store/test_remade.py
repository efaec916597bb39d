"""A table that is dropped and made anew while a run goes on: nothing of the successor is removed, and nothing is recorded of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark import history, orphans
from scene import Scene

from lowtide.formats import encode_long, shadow_qualifier
from lowtide.state import StateStore
from lowtide.workload import OmidClient

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
    """What was planned for a table is not done to another of its name, which may lack what replaced a version; no mark is applied.

    Another table of the same run loses its history all the same.
    """
    eager = configure(defaults=YOUNG)
    table, other = scene.table(splits=(b"m",)), scene.table()
    versions = {t: [scene.committed(t, value=b"v%d" % n) for n in range(3)] for t in (table, other)}
    omid.advance_watermark()
    for job_name in ("orphan_cleanup", "watermark_collection"):
        assert job(job_name, "--execute", config=eager).code == 0
    check = history.Run.check_approved

    def meanwhile(run: Any) -> None:
        check(run)
        remade(omid, table, (b"m",))
        start, commit = versions[table][0]  # an import: the first version, and nothing that replaces it
        scene.cell(table, start)
        scene.shadow(table, start, commit)

    monkeypatch.setattr(history.Run, "check_approved", meanwhile)
    outcome = job("history_gc", "--table", table, "--table", other, "--execute", config=eager)
    monkeypatch.undo()
    _, commit = versions[table][0]
    assert {(c.kind, c.qualifier): c.value for c in omid.raw(table)} == {
        ("put", b"q"): b"v",
        ("put", shadow_qualifier(b"q")): encode_long(commit),
    }
    assert outcome.code == 1
    assert f"all regions of {table} were replaced" in outcome.problems
    assert (state.history(table).applied, state.history(table).intended) == (0, 0)
    assert outcome.table(table)["counts"]["deleted"] == 0
    assert outcome.table(other)["counts"]["deleted"] == 2
    assert state.history(other).applied > 0


@pytest.mark.parametrize("moment", ["it is read", "its cells are deleted", "it is looked at last", "it is recorded"])
def test_a_cleanup_records_nothing_of_a_successor(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """A table remade after it was listed and before something of it is recorded counts as never cleaned: the bound waits for it.

    What lies in the successor is as it was, or healed.
    """
    table = scene.table()
    scene.orphan(table, row=b"orphan")
    scene.crashed_after_commit(table, row=b"healed")
    late = omid.begin()
    omid.add_commit_entry(late, late + 50)
    omid.advance_watermark()
    owner, name = {
        "it is read": (orphans, "plan_ranges"),
        "its cells are deleted": (orphans, "put_aside"),
        "it is looked at last": (orphans, "_record"),
        "it is recorded": (orphans, "cleaned_intervals"),
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
