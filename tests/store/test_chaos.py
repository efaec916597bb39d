"""Chaos, one seed after another (``tests/chaos``): clients that crash, tables that change, and runs of jobs that die,
are parked and overtake each other meet in an order that a seed gives. By hand, ``make chaos TWICE=1`` asks whether a
plan that is carried out twice comes out the same.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import deadman
import pytest
from breaking.catalogue import CHAOS_LINES, CHAOS_OVER, CHAOS_SECONDS, CHAOS_SEEDS, CHAOS_TAKEN, number_of_today
from breaking.reach import Part
from deadman import Die, Effect, Moment
from lowtide_spark.frames.store import Store
from pyspark.sql import SparkSession
from scene import Scene

from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from tests import seeds
from tests.chaos import plan
from tests.chaos.director import Director, Report
from tests.chaos.laboratory import Laboratory
from tests.chaos.lines import Lines
from tests.chaos.lying import LyingRelay
from tests.chaos.nemeses import SHARED
from tests.chaos.steps import TABLES

#: Each commit has a seed of its own, the number of commits below it; it is the test's name that tells which.
COMMIT = number_of_today(Path(__file__).parent)
SEEDS = dict.fromkeys([COMMIT, *seeds.of("chaos", count=0, always=range(1, 21))])
asked = os.environ.get(CHAOS_SEEDS)
PARTS = [Part.of(text) for text in asked.split(",")] if asked else [Part(seed) for seed in SEEDS]
#: For so many seconds a plan may put things in order when another store has noticed.
_PATIENCE = 30
#: When no seed is to begin any more; of a test that runs for itself each does.
UNTIL = time.monotonic() + float(os.environ.get(CHAOS_SECONDS, "inf"))

Carried = Callable[[plan.Plan], Report]


@pytest.fixture
def carried_out(stack: Stack, omid: OmidClient, spark: SparkSession, tmp_path: Path) -> Iterator[Carried]:
    """Carry out a plan; what came of it. How to have it again by hand is printed where the test fails."""
    done: list[Report] = []
    relay = LyingRelay(stack.config.thrift_port)

    def carry_out(what: plan.Plan) -> Report:
        lab = Laboratory(stack, omid, spark, tmp_path / f"plan-{len(done)}", relay)
        all_of_it = what.numbers() == plan.made(what.seed, nemeses=SHARED).numbers()
        with _told_lines(f"{what.seed}" if all_of_it else f"{what.seed}-scenes") as entered:
            done.append(
                Director(lab, what, first=bool(asked), over=_another_has_noticed, entered=entered).carried_out()
            )
        keep = "" if all_of_it else f" KEEP={','.join(map(str, what.numbers()))}"
        print(
            done[-1], f"\nby hand: make chaos SEED={what.seed}{keep} NEMESES={','.join(k.name for k in sorted(SHARED))}"
        )
        return done[-1]

    if CHAOS_OVER in os.environ:
        threading.Thread(target=_break_off_what_hangs, daemon=True).start()
    yield carry_out
    relay.close()


@contextmanager
def _told_lines(name: str) -> Iterator[Callable[[int | None], None]]:
    """Which lines the scenes run that it is told of is written down, if that was asked for."""
    if not os.environ.get(CHAOS_LINES):
        yield lambda _: None
        return
    with Lines() as lines:
        yield lines.within
    (Path(os.environ[CHAOS_LINES]) / f"{name}.json").write_text(json.dumps(lines.found()))


def _another_has_noticed() -> bool:
    return CHAOS_OVER in os.environ and Path(os.environ[CHAOS_OVER]).exists()


def _break_off_what_hangs() -> None:
    """Once another store has noticed, whoever does not end waits for something that never comes."""
    while not _another_has_noticed():
        time.sleep(1)
    time.sleep(_PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)


def _is_free(part: Part) -> bool:
    """Whether no other process has taken it; none has afterwards."""
    with suppress(FileExistsError):
        if CHAOS_TAKEN in os.environ:
            (Path(os.environ[CHAOS_TAKEN]) / str(part)).touch(exist_ok=False)
        return True
    return False


def test_reads_are_told_to_who_asks(connector: Store, scene: Scene, omid: OmidClient) -> None:
    """A run can stand still, or die, between two of them; what it changes has the numbers that it has without."""
    table = scene.table()
    scene.committed(table)
    seen: list[tuple[int, str, Moment]] = []

    def watch(effect: Effect, moment: Moment) -> Die | None:
        seen.append((effect.number, effect.seam, moment))
        if len(seen) == 1:
            scene.cell(table, late, row=b"late")
        return None

    def rows() -> int:
        return connector.cells(table).count()

    late = omid.begin()
    assert deadman.run(rows, watch).result == 2
    assert seen == []
    found = deadman.run(rows, watch, reads=True)
    assert (found.result, found.effects) == (3, [])
    assert seen == [(0, "read", Moment.BEFORE), (0, "read", Moment.AFTER)]
    assert deadman.run(rows, lambda *_: Die(), reads=True).killed


def test_what_has_enough_ends_where_it_is(stack: Stack, omid: OmidClient, spark: SparkSession, tmp_path: Path) -> None:
    """The run that moves then dies before its next effect, no step comes after it, and its tables are dropped."""
    lab = Laboratory(stack, omid, spark, tmp_path / "plan", LyingRelay(stack.config.thrift_port))
    made = plan.made(1, nemeses=SHARED)
    director = Director(lab, made, over=lambda: director.counts["effects"] >= 5)
    report = director.carried_out()
    taken = sum(report.counts[kind.__name__] for kind in {type(step) for step in made.every()})
    assert report.counts["effects"] == 5
    assert 0 < taken < len(made.numbers())
    assert (report.left, report.wrong) == ([], [])
    assert not set(TABLES) & set(omid.tables())


@pytest.mark.parametrize("part", PARTS, ids=str)
def test_whatever_meets_nothing_is_wrong(carried_out: Carried, part: Part) -> None:
    """No write of any run, no record, no answer that a reader got, and nothing that is left when the faults have ended
    and the jobs have run again.
    """
    if time.monotonic() > UNTIL:
        pytest.skip(f"{os.environ[CHAOS_SECONDS]} s are over")
    if _another_has_noticed() or not _is_free(part):
        pytest.skip("another store has it")
    made = plan.made(part.seed, nemeses=SHARED)
    report = carried_out(made if part.scenes is None else made.with_scenes(part.scenes))
    assert report.wrong == []
    if _another_has_noticed():
        pytest.skip("it came to no end")
    # A judge with nothing before it finds nothing.
    assert report.counts["writes"] > 0
    assert report.counts["read points at the end"] > 0
    assert report.counts["transactions committed"] > 10
