"""Random tests: new seeds in every run, the same in all of its processes, and those that failed are not forgotten."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest

from tests import seeds
from tests.seeds import Kept, chosen, drawn

ROOT = Path(__file__).resolve().parents[2]
DAY = date(2026, 1, 1)


def kept(number: int, seconds: float) -> Kept:
    return Kept("a test", number, DAY + timedelta(number), "what it found", seconds)


def test_seeds_differ_by_name_and_are_the_same_in_one_run(capsys: pytest.CaptureFixture[str]) -> None:
    """The line that a failing test shows names the seed and how the whole run is had again."""
    assert drawn("one") == drawn("one") != drawn("another")
    assert f"seed of one: {drawn('one')} (LOWTIDE_SEED={seeds.RUN})" in capsys.readouterr().out


def test_each_run_draws_anew_and_one_can_be_had_again() -> None:
    """Without the variable two runs have two numbers; with it, they have that."""
    program = "from tests import seeds; print(seeds.RUN, seeds.drawn('x') * 0)"
    without = {name: value for name, value in os.environ.items() if name != "LOWTIDE_SEED"}

    def number(environment: dict[str, str]) -> str:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
        )
        return done.stdout.split()[-2]

    assert number(without) != number(without)
    assert number({**without, "LOWTIDE_SEED": "77"}) == "77"


def test_the_newest_seeds_that_failed_fit_into_the_budget() -> None:
    """From the newest on, without gaps; all of them where everything is proved."""
    old = [kept(1, 1), kept(2, seeds.BUDGET), kept(3, 100), kept(4, seeds.BUDGET - 100)]
    assert [k.seed for k in chosen(old, everything=False)] == [4, 3]
    assert [k.seed for k in chosen(old, everything=True)] == [4, 3, 2, 1]


def test_every_kept_seed_belongs_to_a_test() -> None:
    """A seed under a name that no test has would never run again."""
    sources = "".join(file.read_text() for file in ROOT.glob("tests/*/test_*.py"))
    known = set(re.findall(r'seeds\.(?:each|of)\(\s*"([^"]+)"', sources))
    assert len(known) >= 5
    assert [k for k in seeds._read() if k.test not in known] == []
