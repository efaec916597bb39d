"""The help of every command: looked at whenever it changes."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from lowtide.run.jobs import JOBS

ROOT = Path(__file__).resolve().parents[2]
MADE = runpy.run_path(str(ROOT / "tools" / "help-texts"))


@pytest.mark.parametrize("width", MADE["WIDTHS"])
def test_help_is_as_it_was_looked_at(width: int) -> None:
    """At the width of a terminal; who changes it renews the file, and looks at what changed."""
    file = MADE["FOLDER"] / f"{width}.txt"
    assert MADE["text"](width) == file.read_text("utf-8"), "run tools/help-texts and look at the difference"


@pytest.mark.parametrize("width", MADE["WIDTHS"])
def test_help_is_cut_nowhere(width: int) -> None:
    """No line is wider than the terminal, and nothing ends in dots; every command says what it does."""
    text = (MADE["FOLDER"] / f"{width}.txt").read_text("utf-8")
    assert max(map(len, text.splitlines())) <= width
    assert "…" not in text
    pages = text.split("\n\n\n")
    assert all(re.search(r"^ [A-Z].*", page.partition("Usage:")[2], re.MULTILINE) for page in pages)
    assert {f"lowtide run {job}" for job in JOBS} <= {
        " ".join(page.partition("Usage: ")[2].split("[")[0].split()) for page in pages
    }


def test_the_help_of_a_job_needs_no_spark() -> None:
    """Neither it nor the check of a job's options loads pyspark, let alone starts a JVM."""
    program = (
        "import sys; sys.argv = ['lowtide', 'run', 'orphan_cleanup', *sys.argv[1:]]\n"
        "from lowtide.cli import main\n"
        "try:\n    main()\nfinally:\n    print('pyspark' in sys.modules)"
    )
    for argument, code in (("--help", 0), ("--excute", 2)):
        done = subprocess.run([sys.executable, "-c", program, argument], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (code, "False")
