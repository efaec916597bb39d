"""A plugin of pytest: notes what became of each test, and of one that failed the assertion, in the file that the
environment names.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

FILE = "LOWTIDE_NOTED"
_LONGEST = 20_000


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """One line for each test that passed or was left out, and for each error."""
    report = yield
    if report.failed and call.excinfo is not None:
        for failure in _each(call.excinfo, item.config.rootpath / "tests"):
            note({"test": item.nodeid, "phase": call.when, **failure})
    elif report.skipped or call.when == "call":
        note({"test": item.nodeid, "phase": report.outcome})
    return report


def note(what: dict[str, Any]) -> None:
    """Write one line."""
    with Path(os.environ[FILE]).open("a") as file:
        file.write(json.dumps(what) + "\n")


def _each(caught: pytest.ExceptionInfo[BaseException], tests: Path) -> Iterator[dict[str, Any]]:
    """The error, or where several were raised at once each of them."""
    if isinstance(caught.value, BaseExceptionGroup):
        for error in caught.value.exceptions:
            yield from _each(pytest.ExceptionInfo.from_exception(error), tests)
        return
    entries = list(caught.traceback)
    ours = [entry for entry in entries if tests in Path(str(entry.path)).parents]
    # An assertion of a test's, not one of the code's: its line tells what was looked at. Of any other error only its
    # text does.
    asserted = caught.errisinstance(pytest.fail.Exception) or caught.errisinstance(AssertionError)
    asserted = asserted and bool(ours) and (ours[-1] is entries[-1] or "_pytest" in Path(str(entries[-1].path)).parts)
    yield {
        "kind": caught.typename,
        "statement": str(ours[-1].statement) if asserted else "",
        "text": str(caught.value)[:_LONGEST],
        "line": f"{ours[-1].path.name}:{ours[-1].lineno + 1}" if ours else "",
    }
