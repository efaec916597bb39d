"""The report as tables in the terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lowtide.report.observation import Bank, JobRun, Observation, Report
from lowtide.run.summary import REPORTED
from lowtide.terminal.tables import print_table

_BLOCKS = " ▏▎▍▌▋▊▉█"


def print_report(console: Console, report: Report) -> None:
    """What the page has numbers for, short: the regions, then the headline."""
    if report.after.regions:
        print_table(console, regions(report.after))
    for blocker in () if report.after.level else report.after.blockers:
        console.print(Text(f"The prune bound is held by {blocker}", "yellow"), soft_wrap=True)
    print_headline(console, report)


def print_headline(console: Console, report: Report) -> None:
    """Before and after in numbers, the result of the check, and everything that is not as it should be."""
    print_table(console, before_and_after(report.before, report.after))
    if report.check:
        console.print(Text(f"{report.check.sentence}.", "bold red" if report.check.differences else "bold green"))
    if report.bank:
        console.print(Text(f"{report.bank.sentence}.", "bold red" if report.bank.faults else "bold green"))
    for fault in report.faults:
        console.print(Text(f"Not as it should be: {fault}", "bold red"), soft_wrap=True)


def leftovers(store: Observation) -> Table:
    """What a dry run found, by table, with bars."""
    grid = _grid("table", "orphans", "", "unproven", "", "cells read")
    most = max((max(t.orphans, t.unproven) for t in store.leftovers), default=0)
    for t in store.leftovers:
        bars = _bar(t.orphans, most, "dark_orange"), _bar(t.unproven, most, "steel_blue1")
        grid.add_row(t.table, f"{t.orphans:,}", bars[0], f"{t.unproven:,}", bars[1], f"{t.cells_read:,}")
    return grid


def commit_table(store: Observation, before: Observation | None = None) -> Table:
    """The commit table by day; beside what it was, where that is known."""
    was = ("entries before", "marks before") if before else ()
    grid = _grid(
        "transactions begun", *was, "entries" + (" now" if before else ""), "marks" + (" now" if before else "")
    )
    for index, row in enumerate(store.commit_table or ()):
        old = before.commit_table[index] if before and before.commit_table else None
        numbers = [*((old.entries, old.marks) if old else ()), row.entries, row.marks]
        grid.add_row(f"{row.day:%a %d %b}" if row.day else "later", *(f"{n:,}" for n in numbers))
    return grid


def regions(store: Observation) -> Table:
    """Watermarks region by region against the low watermark."""
    grid = _grid("table", "rows", "watermark", "", "behind")
    for mark in store.regions:
        share = _bar(mark.watermark, store.low_watermark, "green")
        behind = max(0, store.low_watermark - mark.watermark)
        grid.add_row(mark.table, Text(mark.keys), f"{mark.watermark:,}", share, f"{behind:,}")
    bound = "none yet" if store.bound is None else f"{store.bound:,}"
    grid.caption = f"low watermark {store.low_watermark:,}, prune bound {bound}"
    grid.caption_justify = "left"
    return grid


def runs(done: Iterable[JobRun]) -> Table:
    """Runs, one a line; counts that are 0 in all of them are left out."""
    shown = list(done)
    counts = [name for name in REPORTED if any(getattr(r, name) for r in shown)]
    grid = _grid("job", "for", "seconds", *counts, "result")
    for run in shown:
        numbers = [f"{getattr(run, name):,}" for name in counts]
        result = Text(run.state, "green" if run.state == "done" else "red")
        grid.add_row(run.job, f"{run.day:%a %d %b}" if run.day else "all", f"{run.seconds:.1f}", *numbers, result)
    return grid


def before_and_after(before: Observation | None, after: Observation) -> Table:
    """The headline numbers."""
    grid = _grid("", *(("before",) if before else ()), "now")
    moments = [m for m in (before, after) if m]
    rows: list[tuple[str, Sequence[int | None]]] = []
    if after.leftovers:
        rows.append(("orphaned cells", [m.orphans for m in moments]))
        rows.append(("unproven cells", [m.unproven for m in moments]))
    if after.commit_table is not None:
        rows.append(("commit entries", [m.entries for m in moments]))
        rows.append(("invalidation marks", [m.marks for m in moments]))
    rows.append(("prune bound", [m.bound for m in moments]))
    rows.append(("low watermark", [m.low_watermark for m in moments]))
    for name, values in rows:
        grid.add_row(name, *("none" if v is None else f"{v:,}" for v in values))
    return grid


def transfers(bank: Bank) -> Table:
    """The bank's transfers by state, before and after the repair."""
    grid = _grid("transfers", "before", "now")
    before, after = dict(bank.before), dict(bank.after)
    for state in dict.fromkeys([*before, *after]):
        grid.add_row(state, f"{before.get(state, 0):,}", f"{after.get(state, 0):,}")
    return grid


def _grid(*columns: str) -> Table:
    grid = Table(header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    words = {"", "table", "rows", "job", "for", "transactions begun", "transfers", "result"}
    for column in columns:
        grid.add_column(column, justify="left" if column in words else "right", no_wrap=True)
    return grid


def _bar(value: int, most: int, style: str, width: int = 12) -> Text:
    """A bar of eighths of a character; what is not 0 stays visible."""
    eighths = max(round(8 * width * value / most), 1) if value and most else 0
    full, rest = divmod(min(eighths, 8 * width), 8)
    return Text(("█" * full + (_BLOCKS[rest] if rest else "")).ljust(width), style)
