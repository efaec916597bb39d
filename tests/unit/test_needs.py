"""Tests that need what a machine may lack are left out by name, with the remedy, in the last lines of a run."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
TESTS = """
import pytest

@pytest.fixture(scope="module")
def store():
    raise RuntimeError("booted for nothing")

def test_without():
    pass

@pytest.mark.needs("browser")
@pytest.mark.parametrize("width", [1, 2])
def test_with(width):
    assert width == 0

@pytest.mark.needs("browser")
def test_with_a_store(store):
    pass
"""
REMEDY = "needs a browser: install Chromium or Chrome (Debian: apt-get install chromium)"


def run(folder: Path, *options: str, browser: bool = False, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the tests above on a machine that has, or has not, something that is called chromium."""
    (folder / "test_some.py").write_text(TESTS)
    (folder / "bin").mkdir()
    if browser:
        (folder / "bin" / "chromium").touch(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LOWTIDE_", "PYTEST_", "CI"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "needs", "--strict-markers", "--rootdir=.", *options],
        cwd=folder,
        env={
            **kept,
            **environment,
            "PATH": str(folder / "bin"),
            "PYTHONPATH": str(TOOLS),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "1")])
def test_the_last_lines_name_what_was_left_out(tmp_path: Path, options: tuple[str, ...]) -> None:
    """And the run passes; also where other processes run the tests. No fixture was set up for them."""
    done = run(tmp_path, *options, "--junitxml=junit.xml")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-4:] == [
        f"left out: 3 tests: {REMEDY}",
        "  test_some.py::test_with[1]",
        "  test_some.py::test_with[2]",
        "  test_some.py::test_with_a_store",
    ]
    skipped = ET.parse(tmp_path / "junit.xml").iter("skipped")
    assert [each.get("message") for each in skipped] == [f"left out: {REMEDY}"] * 3


def test_with_the_switch_nothing_is_left_out(tmp_path: Path) -> None:
    """The same tests fail, each with the remedy."""
    done = run(tmp_path, LOWTIDE_LEAVE_NOTHING_OUT="1")
    assert done.returncode == 1
    assert "1 passed, 3 errors" in done.stdout
    assert done.stdout.count("LOWTIDE_LEAVE_NOTHING_OUT=1: install Chromium or Chrome") == 3
    assert "left out: " not in done.stdout


def test_what_is_there_is_used(tmp_path: Path) -> None:
    """With a browser the tests run, and nothing is said of any left out."""
    done = run(tmp_path, browser=True)
    assert "2 failed, 1 passed, 1 error" in done.stdout
    assert "left out: " not in done.stdout
