"""The whole: seeded workloads of crashing clients, cleaned and pruned, against the model through the real Omid
client.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from commits import ever_committed
from conftest import Outcome
from lowtide_spark.run.context import Run
from shown import check_snapshots, unproved

from lowtide.lab.stack import Stack
from lowtide.lab.workload import (
    CRASH_POINTS,
    LiveClients,
    Model,
    OmidClient,
    Result,
    Shape,
    Transaction,
    history,
    run,
    script,
)
from lowtide.values.formats import CHECKPOINTS, base
from tests import seeds
from tests.prove import PROVE

Job = Callable[..., Outcome]

TRANSACTIONS = 1000 if PROVE else 300
SNAPSHOTS = 50
#: Transactions on top of those that the low watermark has passed, and the read points among them that must be there to
#: be compared.
LATER, LATER_SNAPSHOTS = 120, 50
#: Rounds of jobs beside clients at work; in each job one client is killed.
ROUNDS = 5 if PROVE else 2


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


def clean_and_prune(job: Job) -> tuple[Outcome, Outcome]:
    """A full pass over every table, then pruning without grace."""
    cleaned = job("orphan_cleanup", "--full", "--execute")
    assert cleaned.code == 0, cleaned.problems
    pruned = job("commit_table_pruning", "--grace", "0s", "--execute")
    assert pruned.code == 0, pruned.problems
    return cleaned, pruned


@pytest.mark.turns(2)
@pytest.mark.parametrize("family_deletes", [True, False])
@seeds.each("end to end", always=range(1, 6))
@pytest.mark.usefixtures("tables")
def test_the_model_holds_after_the_jobs_and_after_omids_compactor(
    job: Job, stack: Stack, omid: OmidClient, tmp_path: Path, seed: int, family_deletes: bool
) -> None:
    """After cleanup and pruning every read point shows what the model says, nothing unproved is left at or below the
    low watermark, no commit-table row at or below the bound; a second run changes nothing; and after Omid's compactor
    ran minor and major, every read point above the low watermark still shows it (without family deletes, which it loses
    by itself).
    """
    shape = Shape() if family_deletes else Shape(row_deletes=0.0, family_deletes=0.0)
    result: Result = run(stack, seed=seed, transactions=TRANSACTIONS, out=tmp_path / "history", shape=shape, omid=omid)
    model, watermark = result.model, omid.watermark()
    assert model.tables == sorted(shape.tables)
    leftovers = sum(len(unproved(omid, t, watermark)) for t in model.tables)
    assert leftovers > 50
    cleaned, pruned = clean_and_prune(job)
    assert cleaned.totals["healed"] + cleaned.totals["deleted"] >= leftovers

    snapshots = model.read_timestamps(SNAPSHOTS, seed)
    assert len(snapshots) == SNAPSHOTS
    check_snapshots(omid, model, snapshots)
    assert [unproved(omid, t, watermark) for t in model.tables] == [[]] * len(model.tables)
    bound = pruned.summary["bound"]
    assert base(bound) >= base(watermark) - CHECKPOINTS
    assert [t for t in omid.commit_table() if t <= bound] == []

    before = {t: omid.raw(t) for t in model.tables}
    again, pruned_again = clean_and_prune(job)
    totals = again.totals
    assert (totals["healed"], totals["deleted"], totals["marked"], pruned_again.totals["pruned"]) == (0, 0, 0, 0)
    assert {t: omid.raw(t) for t in model.tables} == before

    if not family_deletes:
        # HBase's own compactions would leave Omid's compactor fewer than the three files that it begins with.
        with omid.no_compactions():
            model = with_later_transactions(omid, model, shape, seed, tmp_path)
            for table in model.tables:
                omid.attach_omid_compactor(table)
        watermark = omid.watermark()
        above = snapshots_that_omids_compactor_keeps(model, watermark)
        assert len(above) >= LATER_SNAPSHOTS, (watermark, above)
        check_snapshots(omid, model, above)
        for table in model.tables:
            cells = len(omid.raw(table))
            before_minor, after_minor = omid.compact(table, major=False)
            assert after_minor < before_minor, "HBase compacts three files of a store and more"
            check_snapshots(omid, model, above)
            omid.compact(table, major=True)
            assert len(omid.raw(table)) < cells, f"Omid's compactor removed nothing of {table}"
        check_snapshots(omid, model, above)
        assert omid.watermark() == watermark


def with_later_transactions(omid: OmidClient, model: Model, shape: Shape, seed: int, folder: Path) -> Model:
    """The model with transactions on top that the low watermark does not pass, crashed ones among them, in files of
    their own.

    The oracle moves its low watermark on when it forgets a written cell. Those of a client that wants no conflict
    checks it never remembers.
    """
    # A torn transaction (crash point 10) shows in part until it is healed, and these nobody heals; the others without
    # commit entry would be marked, or need the oracle.
    shape = replace(shape, conflict_free=1.0, overlaps=0.0, crash_points=(1, 4, 5, 6))
    groups = script.generate(shape, f"{seed}-later", LATER)
    for group in groups:
        for one in group["transactions"]:
            one["conflict_free"] = True  # those that crash too
    log = folder / "later.jsonl"
    half = len(groups) // 2
    for part in (groups[:half], groups[half:]):
        for table in shape.tables:
            omid.flush(table)
        omid.run(part, log, threads=1)
    for table in shape.tables:
        omid.flush(table)
    later = Model(history.read(log, omid.fate))
    counts = later.counts()
    assert all(counts[f"crash {point}"] for point in shape.crash_points), counts
    return Model([*model, *later])


def snapshots_that_omids_compactor_keeps(model: Model, watermark: int) -> list[int]:
    """All read timestamps above the low watermark, and above the commit of every transaction that began at or below it.

    Of the versions that began at or below the low watermark the compactor keeps the one that began last, whenever it
    was committed.
    """
    settled = max(t.commit or 0 for t in model if t.start <= watermark)
    return [t for t in model.read_timestamps(len(model)) if t > max(watermark, settled)]


class Doomed:
    """A client process at work beside the others until it is killed. What it had under way is settled when all is
    over.
    """

    def __init__(self, stack: Stack, shape: Shape, seed: str, log: Path) -> None:
        self.log, self.client, self.alive = log, OmidClient(stack), True
        self.client.live(script.generate(shape, seed, 200), log, threads=4, pause_ms=0)

    def kill(self) -> None:
        """SIGKILL, wherever its threads are."""
        self.client.kill()
        self.alive = False

    def at_work(self, seconds: float = 60) -> Doomed:
        """Once it has begun a hundred steps."""
        deadline = time.monotonic() + seconds
        while not self.log.exists() or self.log.read_bytes().count(b"\n") < 100:
            assert time.monotonic() < deadline, f"{self.log} grows too slowly"
            time.sleep(0.05)
        return self

    def settled(self, omid: OmidClient) -> list[Transaction]:
        """What it did. Its logs are read when the low watermark has passed all of it."""
        return history.read(self.log, omid.fate, ended="kill")


@pytest.mark.turns(2, group="the whole at length")
@seeds.each("clients at work beside the jobs", always=[7])
@pytest.mark.usefixtures("tables")
def test_clients_go_on_and_are_killed_meanwhile(
    job: Job, stack: Stack, omid: OmidClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """While clients commit, and leave transactions at every point of the protocol, rounds of jobs run; in each job
    another client is killed, between two phases of the job. Every abort is one of Omid's; after a last round every
    commit is readable and nothing unproved is left: every acknowledged one, and of the killed clients those that the
    commit table ever held, also where no client knew.
    """
    dice = random.Random(seed)
    shape = Shape(crashes=0.1, pauses=0.03)
    doomed: list[Doomed] = []
    booked = Run.phase
    killed_in: list[tuple[str, str]] = []
    phases: list[str] = []
    # Of a full pass that finds something there are six, of pruning five.
    fatal = 0

    def phase(run: Run, name: str) -> None:
        phases.append(name)
        if len(phases) == fatal and doomed[-1].alive:
            doomed[-1].kill()
            killed_in.append((run.summary.job, name))
        booked(run, name)

    monkeypatch.setattr(Run, "phase", phase)

    def beside_a_client_that_dies(name: str, *arguments: str) -> Outcome:
        nonlocal fatal
        number = len(doomed)
        doomed.append(Doomed(stack, shape, f"doomed{seed}.{number}", tmp_path / f"doomed{number}.events").at_work())
        phases.clear()
        fatal = dice.randint(1, 5)
        return job(name, *arguments)

    try:
        with LiveClients(stack, tmp_path / "live", seed=seed, clients=2, shape=shape) as clients:
            clients.await_commits(200)
            for _ in range(ROUNDS):
                clean_and_prune(beside_a_client_that_dies)
            counts = clients.stop()
    finally:
        for each in doomed:
            each.client.close()
    expected = {"committed", "conflict", "watermark", "read only", "rolled back", "abandoned"}
    assert {name for name, count in counts.items() if count} <= expected, counts
    assert counts["committed"] > 200
    assert [name for name, _ in killed_in] == ["orphan_cleanup", "commit_table_pruning"] * ROUNDS, killed_in

    watermark = omid.advance_watermark()
    of_the_killed = [t for each in doomed for t in each.settled(omid)]
    witnessed = ever_committed(omid)
    assert {t.start for t in clients.model.committed} <= witnessed
    assert {t.start for t in of_the_killed if t.commit} == {t.start for t in of_the_killed} & witnessed
    in_doubt = [t for t in of_the_killed if t.ended == "kill" and t.cells]
    assert len(in_doubt) > len(doomed), "nobody was killed at work"

    model = Model([*clients.model, *of_the_killed])
    assert all(model.counts()[f"crash {point}"] for point in CRASH_POINTS), model.counts()
    leftovers = sum(len(unproved(omid, t, watermark)) for t in model.tables)
    assert leftovers > 0
    clean_and_prune(job)
    assert [unproved(omid, t, watermark) for t in model.tables] == [[]] * len(model.tables)
    after_the_killed = [t.commit + 1 for t in in_doubt if t.commit]
    check_snapshots(omid, model, sorted({*model.read_timestamps(SNAPSHOTS, seed), *after_the_killed}))
