"""Zombies (``tests/chaos/free``): a run is a process of its own, stops after its decision, and goes on when others have
been there. One case in every run of the suite, by the number of the commit; all of them where everything is proved. By
hand, with the oracle starting again too: ``make chaos MODE=zombies SEED=0 COUNT=21``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from breaking.catalogue import number_of_today
from pyspark.sql import SparkSession

from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from tests.chaos.free.wakening import ForProcesses, Wakening
from tests.chaos.free.zombies import CASES, Zombie, made
from tests.prove import PROVE

#: The store is that of other tests, whose oracle is not to be killed.
SEEDS = [number for number, (_, what) in enumerate(CASES) if "oracle" not in what]
TODAY = SEEDS if PROVE else [SEEDS[number_of_today(Path(__file__).parent) % len(SEEDS)]]


@pytest.mark.parametrize("seed", TODAY, ids=lambda seed: ", ".join(CASES[seed]))
def test_a_run_that_stood_still_does_nothing_that_is_no_longer_its_to_do(
    stack: Stack, omid: OmidClient, spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    """It writes to no table that another run took over, that came back or may not be written to, to nothing once the
    records were reset, and elsewhere what is right; it leaves nothing that three rounds of the jobs do not clean.
    """
    what = made(seed)
    director = Wakening(ForProcesses(stack, omid, spark, tmp_path / "plan"), what)
    report = director.carried_out()
    print("\n".join(report.trace), f"\n{director.told}\nby hand: make chaos MODE=zombies SEED={seed}")
    assert report.wrong == []
    assert report.counts["Zombie"] == 1
    [zombie] = [step for step in what.steps if isinstance(step, Zombie)]
    if not zombie.delay:  # else it may be through before its time comes
        assert report.counts["ended before it stood still"] == 0
    assert report.counts["zombies' writes judged"] == 2, "before it stood still, and after"
    assert report.counts["zombies that then wrote"] + report.counts["zombies that then wrote nothing"] == 1
