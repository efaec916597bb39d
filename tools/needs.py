"""What some tests need besides Python, Java and Maven, as a plugin of pytest: ``@pytest.mark.needs("browser")``.

Where it is not there the test is left out, and the last lines of the run name it with the remedy. With
``LOWTIDE_LEAVE_NOTHING_OUT=1`` in the environment it fails instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

_KEY_CENTRE = Path(__file__).resolve().parents[1] / "embedded" / "secured" / "target" / "lib"
SWITCH = "LOWTIDE_LEAVE_NOTHING_OUT"
#: How the reason of each test that was left out begins, in JUnit's files too.
LEFT_OUT = "left out: "


@dataclass(frozen=True)
class Need:
    """Something a machine may lack."""

    what: str
    #: One line: what to install, and how.
    remedy: str
    is_there: Callable[[], bool]


def _browser() -> bool:
    from browser import program  # its libraries are for those who have use for them

    return program() is not None


def _prometheus() -> bool:
    from prometheus import is_there

    return is_there()


def _kerberos() -> bool:
    return find_spec("gssapi") is not None and any(_KEY_CENTRE.glob("kerb-simplekdc-*.jar"))


NEEDS = {
    "browser": Need("a browser", "install Chromium or Chrome (Debian: apt-get install chromium)", _browser),
    "prometheus": Need(
        "Prometheus",
        "make prometheus (on Debian), or put promtool and prometheus on the path (prometheus.io/download)",
        _prometheus,
    ),
    "kerberos": Need("Kerberos", "make secured (on Debian after apt-get install gcc libkrb5-dev)", _kerberos),
}


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line("markers", f"needs(name): left out where the machine lacks it: {', '.join(NEEDS)}")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture: a store that boots for nothing takes half a minute."""
    for name in (name for mark in item.iter_markers("needs") for name in mark.args):
        need = NEEDS[name]
        if need.is_there():
            continue
        if os.environ.get(SWITCH) == "1":
            pytest.fail(f"needs {need.what}, and {SWITCH}=1: {need.remedy}", pytrace=False)
        pytest.skip(f"{LEFT_OUT}needs {need.what}: {need.remedy}")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    """Outside the terminal's own, so that these are the last lines; where tests run in other processes, only here they
    are all known.
    """
    yield
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if terminal is None:
        return
    left_out: dict[str, list[str]] = {}
    for report in terminal.getreports("skipped"):
        reason = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
        if reason.startswith(LEFT_OUT):
            left_out.setdefault(reason.removeprefix(LEFT_OUT), []).append(report.nodeid)
    for reason, tests in left_out.items():
        terminal.write_line(f"{LEFT_OUT}{len(tests)} test{'s' * (len(tests) != 1)}: {reason}", yellow=True)
        for test in tests:
            terminal.write_line(f"  {test}")
