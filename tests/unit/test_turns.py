"""Tests that take turns: each has one in every round of runs, and none waits where everything is asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from turns import is_its_turn

from tests import seeds

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import pytest

@pytest.mark.turns(3)
@pytest.mark.parametrize("number", range(9))
def test_by_turns(number):
    pass

@pytest.mark.turns(2, group="two")
def test_one():
    pass

@pytest.mark.turns(2, group="two")
def test_other():
    pass

@pytest.mark.turns(2)
@pytest.mark.parametrize("seed", [KEPT, 0, 1])
def test_of_seeds(seed):
    pass

@pytest.mark.always
def test_always():
    pass
"""
UNMARKED = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_without(number):
    pass

def test_too():
    pass

def test_third():
    pass
"""


def ran(folder: Path, number: int, *options: str, tests: str = TESTS) -> set[str]:
    """Those of *tests* that ran in the run of that number."""
    (folder / "test_some.py").write_text(tests.replace("KEPT", str(min(seeds.kept()))))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-p", "turns", "--strict-markers", "--rootdir=.", *options],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith(("LOWTIDE_", "PYTEST_"))},
            "LOWTIDE_TURN": str(number),
            "PYTHONPATH": os.pathsep.join([str(ROOT / "tools"), str(ROOT)]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return {line.split("::")[1].split()[0] for line in done.stdout.splitlines() if "PASSED" in line}


def test_three_runs_that_follow_each_other_run_each_once(tmp_path: Path) -> None:
    """None is left out for ever, none runs twice; what is marked so, or takes a seed that is kept, runs always. A group
    is dealt out like the cases of a test.
    """
    runs = [ran(tmp_path, number, "--by-turns=1") for number in (7, 8, 9)]
    always = {"test_always", f"test_of_seeds[{min(seeds.kept())}]"}
    assert set.intersection(*runs) == always
    taking = [{test for test in run if test.startswith("test_by_turns")} for run in runs]
    assert [len(run) for run in taking] == [3, 3, 3]
    assert set.union(*taking) == {f"test_by_turns[{number}]" for number in range(9)}
    for alike in ({"test_one", "test_other"}, {"test_of_seeds[0]", "test_of_seeds[1]"}):
        assert [len(run & alike) for run in runs] == [1, 1, 1]
        assert runs[0] & alike == runs[2] & alike != runs[1] & alike
    assert ran(tmp_path, 7) == set.union(*runs)


def test_what_has_no_mark_takes_the_turns_that_the_option_names(tmp_path: Path) -> None:
    """The tests of a file are dealt out in their order; a mark of fewer turns counts as so many."""
    runs = [ran(tmp_path, number, "--by-turns=3", tests=UNMARKED) for number in (4, 5, 6)]
    assert [len(run) for run in runs] == [2, 2, 2]
    assert set.union(*runs) == ran(tmp_path, 4, "--by-turns=1", tests=UNMARKED) == ran(tmp_path, 4, tests=UNMARKED)
    marked = [ran(tmp_path, number, "--by-turns=4") for number in range(4)]
    assert sum("test_one" in run for run in marked) == 1
    assert all("test_always" in run for run in marked)


def test_the_tests_of_a_file_can_have_their_turn_together(tmp_path: Path) -> None:
    """In one run of so many all of them, in the others none but what runs always."""
    tests = f"{UNMARKED}\n@pytest.mark.always\ndef test_always():\n    pass\n"
    runs = [ran(tmp_path, number, "--by-turns=3", "--whole-files", tests=tests) for number in (4, 5, 6)]
    assert sorted(len(run) for run in runs) == [1, 1, 7]


@pytest.mark.parametrize("of", [2, 3, 4])
def test_whose_turn_it_is_follows_from_name_and_number(of: int) -> None:
    """The same in every process."""
    test = "tests/store/test_x.py::test_a"
    turns = [number for number in range(of) if is_its_turn(test, 1, of, number)]
    assert len(turns) == 1
    assert is_its_turn(test, 1, of, turns[0] + 10 * of)
