"""Clocks that are off: of the machine that runs a job, of HBase, of the oracle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import clocks
import pytest
from conftest import Outcome
from lowtide_spark.run import job as program
from lowtide_spark.run.context import Run
from scene import Scene

from lowtide.lab.workload import OmidClient
from lowtide.run.summary import Summary
from lowtide.store.records import Bound
from lowtide.store.state import StateStore
from lowtide.values.clock import WorldClock, millis
from lowtide.values.formats import ALLOTTED_QUALIFIER, ALLOTTED_ROW, encode_long
from lowtide.values.skew import ALLOTTED_AHEAD

pytestmark = pytest.mark.usefixtures("swept")

Job = Callable[..., Outcome]
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
OFF = [HOUR, -HOUR, DAY, -DAY]
JOURNAL = "LOWTIDE_JOURNAL"
#: Every job that acts, with what it must be told.
ACTING = {
    "commit_table_pruning": ("--grace", "30m"),
    "orphan_cleanup": ("--full",),
    "watermark_collection": (),
    "history_gc": (),
    "sideline_restore": ("--restore", "nobody"),
    "transaction_repair": (),
    "journal_replay": ("--from", "2026-01-01T00:00:00+00:00"),
}
#: Those that go by the oracle's timestamps.
BY_TIMESTAMPS = ("orphan_cleanup", "watermark_collection", "commit_table_pruning", "history_gc")


@pytest.fixture
def driver_off(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[timedelta], None]]:
    """Let the clock of the machine that runs jobs be off by so much from here on."""

    yield lambda off: clocks.set_off(off, monkeypatch.setattr)
    monkeypatch.undo()


@pytest.fixture
def world_oracle(scene: Scene, omid: OmidClient, configure: Callable[..., Path]) -> Callable[[timedelta], Path]:
    """A configuration whose oracle has the world's clock, ahead of HBase's by so much, as it stores its timestamps in
    HBase.
    """

    def configured(ahead: timedelta) -> Path:
        table = scene.table(("MAX_TIMESTAMP_CF",), omid_enabled=False, versions=1)
        written = datetime.now(UTC)
        until = WorldClock().timestamp(written + ahead + ALLOTTED_AHEAD)
        at = int(written.timestamp() * 1000)
        omid.put(table, ALLOTTED_ROW, b"MAX_TIMESTAMP_CF", ALLOTTED_QUALIFIER, at, encode_long(until))
        return configure(omid={"timestamp_table": table}, defaults={"history_max_age": "0s", "min_history_age": "0s"})

    return configured


@pytest.fixture
def doomed(job: Job, scene: Scene, omid: OmidClient, state: StateStore) -> tuple[str, int, int]:
    """A table with what each job would act on: an orphan, a replaced version, and an entry that the bound has passed
    ten minutes ago.
    """
    table = scene.table()
    start, _ = scene.crashed_after_commit(table)
    for value in (b"old", b"new"):
        scene.committed(table, row=b"versions", value=value)
    omid.advance_watermark()
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    orphan = scene.orphan(table, row=b"orphan")
    watermark = omid.advance_watermark()
    for bound in state.bounds():  # of other tests, which may be older
        state._table.delete(b"bound/%020d" % (10**15 - int(bound.at.timestamp() * 1000)))
    state.add_bound(Bound(datetime.now(UTC) - 10 * 60 * SECOND, watermark))
    return table, start, orphan


def test_a_machine_whose_clock_is_off_does_nothing(
    job: Job,
    omid: OmidClient,
    state: StateStore,
    driver_off: Callable[[timedelta], None],
    configure: Callable[..., Path],
    doomed: tuple[str, int, int],
) -> None:
    """No job that acts, whatever it is for: all are refused by name before they touch anything. A dry run says it and
    plans.

    It is all the same to these tests, and to the jobs, which of the two clocks is off, the machine's or that of HBase.
    """
    table, start, _ = doomed
    there = JOURNAL in omid.tables()
    before = omid.raw(table), omid.raw(JOURNAL) if there else None
    recorded, bounds = state.read(table), state.bounds()
    none_kept = configure(defaults={"history_max_age": "0s", "min_history_age": "0s"})
    for off, (name, arguments) in itertools.product(OFF, ACTING.items()):
        driver_off(off)
        outcome = job(name, *arguments, "--execute", config=none_kept)
        assert start in omid.commit_table(), f"{name} pruned"
        assert (omid.raw(table), omid.raw(JOURNAL) if there else None) == before, name
        assert (state.read(table), state.bounds()) == (recorded, bounds), name
        assert outcome.code == 1, name
        assert f"the clock of this machine is {abs(off).total_seconds():,.0f} s" in outcome.problems
    dry = job("commit_table_pruning", "--grace", "30m")
    assert (dry.code, dry.totals["pruned"]) == (0, 0), "planned by HBase's clock"
    assert "a run that acts is refused" in dry.summary["notes"][0]


@pytest.mark.parametrize("job_name", ["orphan_cleanup", "balances"])
def test_a_summary_has_its_place_by_hbases_clock(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch, job_name: str
) -> None:
    """A dry run, or one that only reads, on a machine whose clock is a year ahead is not the newest run for a year."""
    state.create()  # such a run is kept where there are records only
    table = scene.table()
    omid.advance_watermark()
    ahead = millis(datetime.now(UTC) + 365 * DAY)
    with monkeypatch.context() as patched:
        patched.setattr(program, "Summary", lambda *given, **named: Summary(*given, started=ahead, **named))
        off = job(job_name, *(("--table", table) if job_name == "orphan_cleanup" else ()))
    right = job("orphan_cleanup", "--table", table)
    newest = state.runs(limit=2)
    assert newest[0]["run"] == right.summary["run"], "the newest run is one of the past"
    assert newest[1]["run"] == off.summary["run"]
    assert abs(newest[1]["started"] - millis(datetime.now(UTC))) < HOUR // SECOND * 1000


def test_a_skew_within_the_margin_refuses_nothing_and_dates_nothing(
    job: Job,
    omid: OmidClient,
    state: StateStore,
    driver_off: Callable[[timedelta], None],
    doomed: tuple[str, int, int],
) -> None:
    """Records bear HBase's time, and the grace goes by it."""
    table, start, _ = doomed
    began = datetime.now(UTC) - 5 * SECOND
    for off, name, arguments in (
        (-50 * SECOND, "orphan_cleanup", ("--table", table, "--full")),
        (-50 * SECOND, "watermark_collection", ()),
        (50 * SECOND, "commit_table_pruning", ("--grace", "620s")),
        (50 * SECOND, "history_gc", ("--table", table)),
        (-50 * SECOND, "commit_table_pruning", ("--grace", "595s")),
    ):
        driver_off(off)
        outcome = job(name, *arguments, "--execute")
        assert outcome.code == 0, outcome.problems
        if name == "commit_table_pruning":
            assert (start in omid.commit_table()) is (arguments[1] == "620s"), "the bound was passed ten minutes ago"
    now = datetime.now(UTC) + 5 * SECOND
    assert began < state.bounds(1)[0].at < now
    assert began < state.samples()[-1][0] < now
    assert all(began.timestamp() * 1000 < f.full_pass_at < now.timestamp() * 1000 for f in state.read(table).facts)


def test_an_oracle_whose_clock_is_off_stops_what_goes_by_its_timestamps(
    job: Job,
    omid: OmidClient,
    world_oracle: Callable[[timedelta], Path],
    doomed: tuple[str, int, int],
) -> None:
    """An hour behind, a history of no age would be an hour old. As it stored its timestamps last; within the margin
    nothing is refused.
    """
    table, start, _ = doomed
    before = omid.raw(table)
    for off in OFF:
        file = world_oracle(off)
        told = (
            f"the oracle's clock is {abs(off).total_seconds():,.0f} s {'ahead of' if off > timedelta() else 'behind'}"
        )
        for name in BY_TIMESTAMPS:
            outcome = job(name, *ACTING[name], "--execute", config=file)
            assert omid.raw(table) == before, name
            assert start in omid.commit_table(), name
            assert outcome.code == 1, name
            assert told in outcome.problems
    dry = job("watermark_collection", config=file)
    assert dry.code == 0
    assert told in dry.summary["notes"][0]
    for near in (50 * SECOND, -50 * SECOND):
        assert job("watermark_collection", "--execute", config=world_oracle(near)).code == 0


def test_a_low_watermark_that_is_still_to_come_is_not_believed(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor remembered: every right one after it would be refused as one that went back."""
    table = scene.table()
    orphan = scene.orphan(table)
    omid.advance_watermark()
    assert job("watermark_collection", "--execute").code == 0
    known = state.recorded_low_watermark().low_watermark
    far = WorldClock().timestamp(datetime.now(UTC) + HOUR)
    monkeypatch.setattr(Run, "_stored_low_watermark", lambda _: far)
    outcome = job("orphan_cleanup", "--table", table, "--execute")
    monkeypatch.undo()
    assert state.recorded_low_watermark().low_watermark == known
    assert scene.has(table, orphan)
    assert outcome.code == 1
    assert "ahead of the clock of HBase's region server" in outcome.problems
