"""What a job prints while it works, and at its end."""

from __future__ import annotations

import sys
import threading
import time
from io import StringIO
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowtide_spark.run import progress as shown
from lowtide_spark.run.printing import counts, report
from lowtide_spark.run.progress import Seen, bar, line, progress
from rich.console import Console

from lowtide.run.summary import WORDS, Counts, Summary, TableReport
from lowtide.terminal.console import VARIABLE
from lowtide.terminal.tables import print_table


def a_summary(*tables: TableReport, execute: bool = True) -> Summary:
    return Summary("orphan_cleanup", "manual-20261125T145317.123456Z", execute, tables=list(tables))


def of(table: str, skipped: dict[str, int] | None = None, **numbers: int) -> TableReport:
    found = Counts(**numbers)
    found.skipped.update(skipped or {})
    return TableReport(table, found)


def cells(summary: Summary) -> list[list[str]]:
    """The table of counts, its titles first."""
    out = StringIO()
    print_table(Console(file=out, markup=False), counts(summary))
    lines = [line for line in out.getvalue().splitlines() if line[:1] in "┃│"]
    return [[cell.strip() for cell in line.strip("┃│").replace("┃", "│").split("│")] for line in lines]


def test_counts_are_a_table_without_what_is_nothing_everywhere() -> None:
    """A line a table, numbers as people read them, and why cells were left alone."""
    found = a_summary(
        of("orders", {"too young": 2, "written by no oracle": 1200}, deleted=1234, bytes_removed=2048),
        of("users", healed=7),
    )
    assert cells(found) == [
        ["table", "healed", "removed", "bytes removed", "left alone"],
        ["orders", "0", "1,234", "2.0 KiB", "2 too young, 1,200 written by no oracle"],
        ["users", "7", "0", "0", ""],
    ]
    assert counts(found).title == "Done"
    assert counts(a_summary(of("orders"), execute=False)).title == "Would be done"


def test_where_nothing_was_found_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Of all such tables in one line, by their names."""
    report(a_summary(of("orders"), of("users", healed=1), of("stock")))
    said = capsys.readouterr().out
    assert "  nothing to do: orders, stock\n" in said
    assert "│ users │      1 │" in said
    report(a_summary(of("orders")))
    assert "│" not in capsys.readouterr().out


def test_of_thousands_of_tables_some_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal has an end; the summary has all of them."""
    found = a_summary(*(of(f"t{n}") for n in range(1000)))
    blocker = {"watermark": 100, "reason": "it was never cleaned", "remedy": "clean it"}
    found.blockers = [{"table": f"t{n}", **blocker} for n in range(1000)]
    report(found)
    said = capsys.readouterr().out
    assert said.count("held by") == 20
    assert "  and by 980 more, in the summary\n" in said
    assert "t18, t19 and 980 more\n" in said


@given(st.dictionaries(st.sampled_from([n for n in WORDS if n != "skipped"]), st.integers(1, 10**15), min_size=1))
def test_no_count_is_left_out(numbers: dict[str, int]) -> None:
    """Whatever was counted has its column."""
    titles = cells(a_summary(of("orders", **numbers)))[0]
    assert {WORDS[name] for name in numbers} <= set(titles)


def test_a_run_is_told_with_notes_and_problems(capsys: pytest.CaptureFixture[str]) -> None:
    """Its name in one piece, notes by their table, problems on stderr; no Python in it."""
    table = of("orders", deleted=3)
    table.notes.append("left for the next run: [/]")
    table.problems.append("region r1 did not answer")
    summary = a_summary(table, of("users"))
    summary.notes.append("the clock is a minute slow")
    report(summary)
    said = capsys.readouterr()
    assert "orphan_cleanup manual-20261125T145317.123456Z: executed" in said.out
    assert "note: the clock is a minute slow" in said.out
    assert "orders:\n  note: left for the next run: [/]\n" in said.out
    assert said.err == "problem: orders: region r1 did not answer\n"
    assert "{" not in said.out
    report(summary, problems_only=True)
    assert capsys.readouterr().out == ""


def stage(key: int, done: int, tasks: int) -> Any:
    return SimpleNamespace(stageId=key, numCompletedTasks=done, numTasks=tasks)


def test_progress_counts_every_stage_that_was_seen() -> None:
    """One that runs no more is done; what will come is not known."""
    seen = Seen()
    assert seen.look([]) == (0, 0)
    assert seen.look([stage(1, 2, 4)]) == (2, 4)
    assert seen.look([stage(1, 3, 4), stage(2, 0, 6)]) == (3, 10)
    assert seen.look([stage(2, 5, 6)]) == (9, 10)
    assert seen.look([]) == (10, 10)


@given(st.lists(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 9)), max_size=4, unique_by=lambda s: s[0])))
def test_progress_never_claims_more_than_there_is(looks: list[list[tuple[int, int]]]) -> None:
    """Whichever stages Spark happens to name."""
    seen = Seen()
    for running in looks:
        done, tasks = seen.look([stage(key, done, 9) for key, done in running])
        assert 0 <= done <= tasks


class Tracker:
    """Spark's, of a stage that goes on while one looks."""

    def __init__(self) -> None:
        self.looked = 0

    def getActiveStageIds(self) -> list[int]:  # noqa: N802
        self.looked += 1
        return [1]

    def getStageInfo(self, key: int) -> Any:  # noqa: N802
        return stage(key, min(self.looked, 4), 5)


def spark(tracker: Tracker) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def wait_for(tracker: Tracker, looks: int) -> None:
    for _ in range(200):
        if tracker.looked >= looks:
            return
        time.sleep(0.01)
    pytest.fail("nobody looks at Spark")


def test_without_a_terminal_lines_tell_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Now and then, without anything that moves; and nothing after the end."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(shown, "_LINE_SECONDS", 0.01)
    tracker = Tracker()
    with progress(spark(tracker), "orphan_cleanup"):
        wait_for(tracker, 3)
    said = capsys.readouterr().out
    assert "orphan_cleanup: 1 of 5 parts known so far are done, 0 s so far\n" in said
    assert "\x1b" not in said
    assert not [thread for thread in threading.enumerate() if thread.name == "progress"]
    assert line("verify", 1234, 5678, 61.4) == "verify: 1,234 of 5,678 parts known so far are done, 61 s so far"


def test_on_a_terminal_a_bar_tells_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also behind a JVM that passes on what the driver prints; what is printed meanwhile stands above it, whole."""
    monkeypatch.setenv(VARIABLE, "100")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(shown, "_BAR_SECONDS", 0.02)
    tracker = Tracker()
    with progress(spark(tracker), "orphan_cleanup"):
        wait_for(tracker, 20)
        print("orphan_cleanup: plan took 3 s", file=sys.stdout, flush=True)
    said = capsys.readouterr().out
    assert "orphan_cleanup: plan took 3 s\n" in said
    assert "4/5" in said
    assert "━" in said


@pytest.mark.parametrize("columns", ["", "80"])
def test_a_session_that_ends_meanwhile_is_for_the_run_to_tell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: str
) -> None:
    """Whoever shows how far it is says nothing of it, and leaves the terminal as it was."""
    monkeypatch.setenv(VARIABLE, columns)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(shown, "_LINE_SECONDS", 0.01)
    monkeypatch.setattr(shown, "_BAR_SECONDS", 0.01)
    asked = threading.Event()

    def gone() -> Any:
        asked.set()
        raise ConnectionRefusedError("the JVM is gone")

    with progress(cast("Any", SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=gone))), "verify"):
        assert asked.wait(5)
    said = capsys.readouterr()
    assert "gone" not in said.out + said.err
    assert said.out.count("\x1b[?25l") == said.out.count("\x1b[?25h")  # the cursor


def test_the_bar_estimates_what_is_left() -> None:
    """By the speed so far."""
    out = StringIO()
    now = [0.0]
    console = Console(file=out, force_terminal=True, width=100, color_system=None)
    moving = bar(console)
    moving.get_time = lambda: now[0]
    task = moving.add_task("orphan_cleanup", total=100)
    for done in range(0, 60, 10):
        now[0] += 10
        moving.update(task, completed=done)
    console.print(cast("Any", moving.get_renderable()))
    text = out.getvalue()
    assert "50/100" in text
    assert "left 0:00:50" in text
