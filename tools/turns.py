"""Tests that take turns, as a plugin of pytest: ``@pytest.mark.turns(3)``.

With ``--by-turns``, as ``make test`` has it, such a test runs in one run of three; the run's number (see
:mod:`tests.seeds`) says whose turn it is. That number is drawn, so a test may wait for several runs. The cases of one
test are dealt out in their order, so that each run has its part of them; so are the tests of one group,
``@pytest.mark.turns(2, group="...")``. ``make prove`` runs all, and so does who does not give the option. A case of a
seed that is kept (``seed`` among its parameters) runs always.
"""

from __future__ import annotations

import zlib
from collections import Counter

import pytest

OPTION = "--by-turns"


def is_its_turn(test: str, case: int, of: int, number: int) -> bool:
    """Whether that case of *test*, counted from 0, has its turn in run *number*: of *of* numbers that follow each
    other, in one.
    """
    return (zlib.crc32(test.encode()) + case) % of == number % of


def pytest_addoption(parser: pytest.Parser) -> None:
    """Of the run, not of the installation."""
    parser.addoption(OPTION, action="store_true", help="tests that take turns run only when it is theirs")


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line(
        "markers", f"turns(n, group): with {OPTION}, runs in one run of n; a group is dealt out together"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out those whose turn it is not."""
    if not config.getoption(OPTION):
        return
    from tests import seeds

    cases, waiting, kept = Counter[str](), [], seeds.kept()
    for item in items:
        if (mark := item.get_closest_marker("turns")) and _seed(item) not in kept:
            test = mark.kwargs.get("group", item.nodeid.partition("[")[0])
            if not is_its_turn(test, cases[test], mark.args[0], seeds.RUN):
                waiting.append(item)
            cases[test] += 1
    if waiting:
        items[:] = [item for item in items if item not in waiting]
        config.hook.pytest_deselected(items=waiting)


def _seed(item: pytest.Item) -> object:
    """What it takes as ``seed``; None where it takes none."""
    called = getattr(item, "callspec", None)
    return called.params.get("seed") if called else None
