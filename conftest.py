"""For the tests of all folders."""

import os

import pytest

from tests import seeds

pytest_plugins = ["needs", "turns"]

os.environ.pop(
    "COLUMNS", None
)  # the terminal's that the tests are started from: what a console prints is not to depend on it


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """What Hypothesis draws follows from the run's number too, unless a seed is given to it."""
    if config.getoption("hypothesis_seed") is None:
        config.option.hypothesis_seed = str(seeds.RUN)
    if config.option.verbose < 0 and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Failures(config))


class _Failures:
    """Names a test that failed at once: of an hour of dots nobody else tells before the end which it was."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._config.get_terminal_writer().line(f"\nfailed: {report.nodeid}")


def pytest_report_header() -> str:
    """The number that brings back every random choice of the run."""
    return f"LOWTIDE_SEED={seeds.RUN}"
