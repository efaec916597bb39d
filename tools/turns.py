"""Tests that take turns, as a plugin of pytest: with ``--by-turns N``, a test runs in one run of N.

The number of commits below this one says whose turn it is, as it does for the share of broken rules: those that
follow each other take all in turn, and one commit the same wherever it is run. ``LOWTIDE_TURN`` in the environment is
another number. The tests of a file are dealt out in their order, so that each run has its part of them. Of those with
``@pytest.mark.turns(n)``, the cases of each are dealt out by themselves, and where n is more than N, into n parts; so
are the tests of one group, ``@pytest.mark.turns(n, group="...")``. With ``--whole-files`` as well a file's tests run
together, in one run of N, but for what a mark leaves out: some go on from what the ones before have done. Those with
``@pytest.mark.always`` run in each run, and so does a case of a seed that is kept (``seed`` among its parameters).
``make test`` asks for a part of what boots stores (``turns`` of each phase of ``tools/suite``), ``make whole`` leaves
out what marks say alone; ``make prove`` runs all, and so does who does not give the option.
"""

from __future__ import annotations

import os
import zlib
from collections import Counter
from pathlib import Path

import pytest
from breaking.catalogue import number_of_today

OPTION = "--by-turns"
#: In the environment: the number, in place of the commit's.
VARIABLE = "LOWTIDE_TURN"
WHOLE_FILES = "--whole-files"


def is_its_turn(test: str, case: int, of: int, number: int) -> bool:
    """Whether that case of *test*, counted from 0, has its turn in run *number*: of *of* numbers that follow each
    other, in one.
    """
    return (zlib.crc32(test.encode()) + case) % of == number % of


def pytest_addoption(parser: pytest.Parser) -> None:
    """Of the run, not of the installation."""
    parser.addoption(OPTION, type=int, metavar="N", help="a test runs in one run of N; 1: only marked ones take turns")

    parser.addoption(WHOLE_FILES, action="store_true", help=f"with {OPTION}: the tests of a file run together")


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line(
        "markers", f"turns(n, group): with {OPTION}, runs in one run of n at least; a group is dealt out together"
    )
    config.addinivalue_line("markers", f"always: runs whatever {OPTION} says")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out those whose turn it is not."""
    least = config.getoption(OPTION)
    if least is None:
        return
    from tests import seeds

    number = int(os.environ.get(VARIABLE) or number_of_today(Path(__file__).parent))
    cases, waiting, kept = Counter[str](), [], seeds.kept()
    for item in items:
        if item.get_closest_marker("always") or _seed(item) in kept:
            continue
        dealt, of = _dealt(item)
        file, together = item.nodeid.partition("::")[0], config.getoption(WHOLE_FILES)
        mine = is_its_turn(dealt, cases[dealt], of if together else max(of, least), number)
        if not mine or (together and not is_its_turn(file, 0, least, number)):
            waiting.append(item)
        cases[dealt] += 1
    if waiting:
        items[:] = [item for item in items if item not in waiting]
        config.hook.pytest_deselected(items=waiting)


def _dealt(item: pytest.Item) -> tuple[str, int]:
    """With what it is dealt out, and into how many parts at least."""
    mark = item.get_closest_marker("turns")
    if mark is None:
        return item.nodeid.partition("::")[0], 1
    return mark.kwargs.get("group", item.nodeid.partition("[")[0]), mark.args[0]


def _seed(item: pytest.Item) -> object:
    """What it takes as ``seed``; None where it takes none."""
    called = getattr(item, "callspec", None)
    return called.params.get("seed") if called else None
