"""The suite's end, as text."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from needs import LEFT_OUT
from rich.console import Console
from rich.table import Table

from suite.results import Case

_console = Console(width=120, highlight=False)
_FILES, _TESTS = 25, 15
#: Of a failed phase without failed tests, so many lines from the end of its log: break-rules names there what was not
#: noticed.
_LAST = 12


def print_durations(cases: Sequence[Case]) -> None:
    """The files and the tests that took longest. Files share the machine: their seconds add up to more than the suite
    took.
    """
    if not cases:
        return
    files: dict[tuple[str, str], list[float]] = defaultdict(list)
    for case in cases:
        files[case.phase, case.file].append(case.seconds)
    table = Table("phase", "file", "tests", "seconds", title="Longest files", title_justify="left", box=None)
    for (phase, file), seconds in sorted(files.items(), key=lambda item: -sum(item[1]))[:_FILES]:
        table.add_row(phase, file, str(len(seconds)), f"{sum(seconds):.0f}")
    _console.print(table)
    table = Table("phase", "test", "seconds", title="Longest tests", title_justify="left", box=None)
    for case in sorted(cases, key=lambda case: -case.seconds)[:_TESTS]:
        table.add_row(case.phase, f"{case.file}::{case.name}", f"{case.seconds:.0f}")
    _console.print(table)


def print_phases(phases: Sequence[tuple[str, float, float, int]]) -> None:
    """Name, seconds, processor seconds and exit code of each phase."""
    table = Table("phase", "minutes", "processor minutes", "", title="Phases", title_justify="left", box=None)
    for name, seconds, processor, code in phases:
        table.add_row(name, f"{seconds / 60:.1f}", f"{processor / 60:.1f}", "FAILED" if code else "passed")
    _console.print(table)


def print_left_out(cases: Sequence[Case]) -> None:
    """The tests that this machine cannot run, with what would let them."""
    absent = [case for case in cases if case.left_out]
    if absent:
        print(f"left out: {len(absent)} tests")
    for case in absent:
        print(f"  {case.file}::{case.name}: {case.why.removeprefix(LEFT_OUT)}")


def print_failed(phase: str, log: Path, cases: Sequence[Case]) -> None:
    """What failed in a phase, in a few lines: where only the end of a long output is kept, this is what is left of
    it.
    """
    failed = [case for case in cases if case.outcome == "failed"]
    print(f"{phase} failed")
    for case in failed:
        print(f"  {case.file}::{case.name}: {case.why.strip().partition(chr(10))[0][:300]}")
    for line in [] if failed else log.read_text(errors="replace").splitlines()[-_LAST:]:
        print(f"  {line[:300]}")
