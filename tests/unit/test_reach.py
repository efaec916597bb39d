"""Which plans of chaos can meet what a mutation breaks (``tools/breaking/reach.py``, ``tests/chaos/lines.py``)."""

from __future__ import annotations

import inspect
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from breaking.catalogue import Mutation
from breaking.reach import Part, Reach, changed

from lowtide.values.keyranges import KeyRange
from tests.chaos import plan
from tests.chaos.lines import BETWEEN, Lines
from tests.chaos.nemeses import SHARED
from tests.chaos.steps import numbers_in

WHOLE = """\
LIMIT = 1


def kept(cells, at=LIMIT):
    if at > 1:
        cells = [
            cell
            for cell in cells
        ]
    return cells
"""
FILE, RANGES = "lowtide/kept.py", "lowtide/values/keyranges.py"


def mutation(old: str, new: str, file: str = FILE) -> Mutation:
    return Mutation("x", "a rule", file, old, new, ("tests/unit/test_x.py::test_x",), "assert x")


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("            for cell in cells\n", "            for cell in cells if cell\n", {6, 7, 8, 9}),
        ("    if at > 1:\n", "    if at > 2:\n", {5}),
        ("    return cells\n", "    return cells[:1]\n", {10}),
        ("    return cells\n", "", {10}),
        ("    return cells\n", "    at += 1\n    return cells\n", {10}),
        ("LIMIT = 1\n", "LIMIT = 2\n", set()),
        ("at=LIMIT", "at=2", set()),
    ],
)
def test_a_change_is_met_where_its_statement_is_run(old: str, new: str, lines: set[int]) -> None:
    """All lines of it, or the head of a compound one; none where it is run when the module is loaded."""
    assert changed(WHOLE, WHOLE.replace(old, new)) == lines


def test_what_comes_between_the_statements_of_a_function_is_met_by_whoever_runs_it() -> None:
    """Before a comment, say: its head was run when it was made."""
    whole = "def kept(cells):\n    cells = cells[1:]\n    # why\n    return cells\n"
    assert changed(whole, whole.replace("    # why", "    cells.sort()\n    # why")) == {2, 3, 4}


@pytest.mark.parametrize("part", [Part(7), Part(7, ()), Part(7, (2,)), Part(17, (0, 3, 11))])
def test_a_part_of_a_plan_can_be_written(part: Part) -> None:
    """And read again."""
    assert Part.of(str(part)) == part


@pytest.fixture
def reach(tmp_path: Path) -> Reach:
    """The first seed runs the branch in some of its scenes when they are all there is, the second between them, the
    third not at all.
    """
    runs = {
        "1": {BETWEEN: {FILE: [5, 10]}, "0": {FILE: [5, 6, 10]}, "2": {FILE: [5]}, "11": {FILE: [5]}},
        "1-scenes": {BETWEEN: {FILE: [6]}, "0": {FILE: [5, 10]}, "2": {FILE: [5, 6, 7, 10]}, "11": {FILE: [6]}},
        "2": {BETWEEN: {FILE: [5, 6, 7, 10]}, "0": {FILE: [5, 10]}},
        "2-scenes": {BETWEEN: {FILE: [6]}, "0": {FILE: [5, 10]}},
        "3": {BETWEEN: {"lowtide/other.py": [6]}, "0": {FILE: [5, 10]}},
        "3-scenes": {"0": {FILE: [5, 10]}},
    }
    for name, run in runs.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(run))
    return Reach(tmp_path)


def test_of_each_plan_those_scenes_are_played_that_run_what_is_broken(reach: Reach) -> None:
    """Then all of each plan, also of one that runs it in no scene; those that do not run it are left out."""
    told = reach.parts(mutation("        cells = [\n", "        cells = cells and [\n"), WHOLE, [3, 2, 1])
    assert told == [Part(1, (2, 11)), Part(2), Part(1)]


@pytest.mark.parametrize(
    "one", [mutation("LIMIT = 1", "LIMIT = 2"), mutation("LIMIT = 1", "LIMIT = 2", "connector/src/main/java/X.java")]
)
def test_all_scenes_are_played_where_nobody_knows(reach: Reach, one: Mutation) -> None:
    """Of the connector, and of what is run when a module is loaded; all of a plan that was not looked at."""
    assert reach.parts(one, WHOLE, [2, 1]) == [Part(2, (0,)), Part(1, (0, 2, 11)), Part(2), Part(1)]
    assert reach.parts(mutation("at > 1", "at > 2"), WHOLE, [4]) == [Part(4)]


def test_lines_are_told_by_scene_of_all_threads() -> None:
    """Those of Lowtide's own code; not those of the tests."""
    one, at, back = KeyRange(b"", b"b"), threading.Semaphore(0), threading.Semaphore(0)

    def run() -> None:
        one.overlaps(one)
        back.release()
        at.acquire()
        one.contains(one)

    with Lines() as lines:
        lines.within(3)
        thread = threading.Thread(target=run)
        thread.start()
        back.acquire()
        lines.within(None)
        at.release()
        thread.join()
    assert lines.found() == {"3": {RANGES: [_body(KeyRange.overlaps)]}, BETWEEN: {RANGES: [_body(KeyRange.contains)]}}


def _body(method: Callable[..., object]) -> int:
    """The number of its last line."""
    lines, first = inspect.getsourcelines(method)
    return first + len(lines) - 1


@pytest.mark.parametrize("seed", range(16))
def test_a_plan_can_be_played_with_some_of_its_scenes(seed: int) -> None:
    """What comes before all of them stays, and nothing that comes by chance later, nor what was drawn into any of it; a
    step is of one scene, or none.
    """
    whole = plan.made(seed, nemeses=SHARED, parks=3)
    drawn = {number for number in whole.numbers() if number >= whole.drawn_from}
    assert drawn
    numbers = [step.number for step in whole.steps if step.number not in drawn]
    of_scenes = frozenset().union(*whole.scenes)
    assert whole.scenes
    assert of_scenes < set(numbers)
    begin = numbers[: min(numbers.index(number) for number in of_scenes)]
    kept = whole.with_scenes([0, 2])
    assert [s.number for s in kept.steps] == [n for n in numbers if n in {*begin, *whole.scenes[0], *whole.scenes[2]}]
    assert [whole.scene_of(step) for step in kept.steps[: len(begin)]] == [None] * len(begin)
    assert [s.number for s in whole.with_scenes([]).steps] == begin
    within = {number for step in whole.steps if step.number in whole.scenes[0] for number in numbers_in(step)}
    assert within - drawn <= set(kept.numbers()) <= set(whole.numbers()) - drawn
