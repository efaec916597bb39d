"""Chaos, one seed after another (``tests/chaos``): clients that crash, tables that change, and runs of jobs that die,
are parked and overtake each other meet in an order that a seed gives.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from breaking.catalogue import CHAOS_SEEDS, number_of_today
from pyspark.sql import SparkSession

from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from tests import seeds
from tests.chaos import plan
from tests.chaos.director import Director, Report
from tests.chaos.laboratory import Laboratory

#: Each commit has a seed of its own, the number of commits below it; it is the test's name that tells which.
COMMIT = number_of_today(Path(__file__).parent)
SEEDS = list(dict.fromkeys([COMMIT, *seeds.of("chaos", count=0, always=range(1, 21))]))
if asked := os.environ.get(CHAOS_SEEDS):
    SEEDS = list(range(1, 1 + int(asked)))

Carried = Callable[[plan.Plan], Report]


@pytest.fixture
def carried_out(stack: Stack, omid: OmidClient, spark: SparkSession, tmp_path: Path) -> Carried:
    """Carry out a plan; what came of it. How to have it again by hand is printed where the test fails."""
    done: list[Report] = []

    def carry_out(what: plan.Plan) -> Report:
        done.append(Director(Laboratory(stack, omid, spark, tmp_path / f"plan-{len(done)}"), what).carried_out())
        print(done[-1], f"\nby hand: make chaos SEED={what.seed}")
        return done[-1]

    return carry_out


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_meets_nothing_is_wrong(carried_out: Carried, seed: int) -> None:
    """No write of any run, no record, no answer that a reader got, and nothing that is left when the faults have ended
    and the jobs have run again.
    """
    report = carried_out(plan.made(seed))
    assert report.wrong == []
    # A judge with nothing before it finds nothing.
    assert report.counts["writes"] > 0
    assert report.counts["read points at the end"] > 0
    assert report.counts["transactions committed"] > 20


def test_a_plan_that_is_carried_out_again_comes_out_the_same(carried_out: Carried) -> None:
    """The same decisions in the same order, and the same cells, of a plan of few runs of which each draws."""
    what = plan.made(COMMIT + 1, jobs=2)
    first, second = carried_out(what), carried_out(what)
    assert first.trace == second.trace
    assert first.digest == second.digest
