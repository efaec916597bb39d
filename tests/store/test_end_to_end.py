"""The whole: seeded workloads of crashing clients, cleaned and pruned, against the model through the real Omid client."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Outcome

from lowtide.formats import CHECKPOINTS, SHADOW_PREFIX, SHADOW_SUFFIX, base, shadow_qualifier
from lowtide.stack import Stack
from lowtide.workload import LiveClients, Model, OmidClient, Result, Shape, run

Job = Callable[..., Outcome]

SEEDS = range(1, 1 + int(os.environ.get("LOWTIDE_SEEDS", "10")))
TRANSACTIONS = 1000
SNAPSHOTS = 50


@pytest.fixture
def tables(omid: OmidClient) -> Iterator[None]:
    """The workload's tables, made anew for the test and dropped after it."""
    drop(omid)
    yield
    drop(omid)


def drop(omid: OmidClient) -> None:
    """Drop every table of the workload."""
    for table in Shape().tables:
        omid.drop(table)


def check_snapshots(omid: OmidClient, model: Model, timestamps: list[int]) -> int:
    """Every table at every snapshot shows what the model says; the number of comparisons."""
    for timestamp in timestamps:
        for table in model.tables:
            assert omid.read(table, timestamp) == model.snapshot(table, timestamp), (table, timestamp)
    return len(timestamps) * len(model.tables)


def unproved(omid: OmidClient, table: str, watermark: int) -> list[tuple[bytes, bytes, bytes, int]]:
    """Data cells at or below *watermark* that have no shadow cell: by brute force over the raw table."""
    cells = omid.raw(table)
    deleted = {c.key for c in cells if c.kind == "delete"}
    there = {c.key for c in cells if c.kind == "put" and c.key not in deleted}
    return [
        key
        for key in sorted(there)
        if base(key[3]) <= watermark
        and not (key[2].startswith(SHADOW_PREFIX) and key[2].endswith(SHADOW_SUFFIX))
        and (key[0], key[1], shadow_qualifier(key[2]), key[3]) not in there
    ]


def clean_and_prune(job: Job) -> tuple[Outcome, Outcome]:
    """A full pass over every table, then pruning without grace."""
    cleaned = job("orphan_cleanup", "--full", "--execute")
    assert cleaned.code == 0, cleaned.problems
    pruned = job("commit_table_pruning", "--grace", "0s", "--execute")
    assert pruned.code == 0, pruned.problems
    return cleaned, pruned


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.usefixtures("tables")
def test_the_model_holds_after_the_jobs_and_after_omids_compactor(
    job: Job, stack: Stack, omid: OmidClient, tmp_path: Path, seed: int
) -> None:
    """After cleanup and pruning every snapshot reads as the model says, nothing unproved is left at or below the low
    watermark, no commit-table row at or below the bound; a second run changes nothing; and after Omid's compactor ran minor and
    major, every snapshot from the low watermark on still reads so (seeds without family deletes, which it loses by itself).
    """
    shape = Shape() if seed % 2 else Shape(row_deletes=0.0, family_deletes=0.0)
    result: Result = run(stack, seed=seed, transactions=TRANSACTIONS, out=tmp_path / "history", shape=shape, omid=omid)
    model, watermark = result.model, omid.watermark()
    leftovers = sum(len(unproved(omid, t, watermark)) for t in model.tables)
    assert leftovers > 50
    cleaned, pruned = clean_and_prune(job)
    assert cleaned.totals["healed"] + cleaned.totals["deleted"] >= leftovers

    check_snapshots(omid, model, model.read_timestamps(SNAPSHOTS, seed))
    assert [unproved(omid, t, watermark) for t in model.tables] == [[]] * len(model.tables)
    bound = pruned.summary["bound"]
    assert base(bound) >= base(watermark) - CHECKPOINTS
    assert [t for t in omid.commit_table() if t <= bound] == []

    before = {t: omid.raw(t) for t in model.tables}
    again, pruned_again = clean_and_prune(job)
    totals = again.totals
    assert (totals["healed"], totals["deleted"], totals["marked"], pruned_again.totals["pruned"]) == (0, 0, 0, 0)
    assert {t: omid.raw(t) for t in model.tables} == before

    if not seed % 2:
        for table in model.tables:
            omid.flush(table)
            omid.attach_omid_compactor(table)
            omid.compact(table, major=False)
            omid.compact(table, major=True)
        latest = omid.begin()
        visible = [t for t in model.read_timestamps(SNAPSHOTS, seed) if t > omid.watermark()]
        check_snapshots(omid, model, [*visible, latest])


@pytest.mark.usefixtures("tables")
def test_live_clients_go_on_meanwhile(job: Job, stack: Stack, omid: OmidClient, tmp_path: Path) -> None:
    """While clients commit, three rounds of jobs run: every acknowledged commit stays readable, every abort is one of Omid's."""
    with LiveClients(stack, tmp_path / "live", seed=7, clients=2) as clients:
        clients.await_commits(200)
        for _ in range(3):
            clean_and_prune(job)
        counts = clients.stop()
    expected = {"committed", "conflict", "watermark", "read only", "rolled back"}
    assert {name for name, count in counts.items() if count} <= expected, counts
    assert counts["committed"] > 200
    check_snapshots(omid, clients.model, clients.model.read_timestamps(SNAPSHOTS, 7))
