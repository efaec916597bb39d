"""The survey as tables in the terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lowtide.survey.estimate import Estimate
from lowtide.survey.findings import CommitTableFindings, Severity, Survey, TableFindings
from lowtide.survey.sentences import estimated_size, plan, watermark
from lowtide.terminal.tables import print_table
from lowtide.values.text import age_text, size_text

_STYLES = {Severity.DANGER: "bold red", Severity.CAUTION: "yellow", Severity.NOTE: "dim"}


def print_survey(console: Console, survey: Survey) -> None:
    """All of it: tables, commit table, what Lowtide would do, what to know."""
    console.print(Text(watermark(survey)), soft_wrap=True)
    if survey.tables:
        print_table(console, _tables(survey))
    for table in survey.tables:
        for problem in table.problems:
            console.print(Text(f"{table.table}: {problem}", "bold red"), soft_wrap=True)
    if survey.commit_table:
        print_table(console, _commit_table(survey.commit_table))
        console.print(Text(_commit_table_size(survey.commit_table)), soft_wrap=True)
    for sentence in plan(survey):
        console.print(Text(sentence), soft_wrap=True)
    for notice in survey.notices:
        where = f"{notice.table}: " if notice.table else ""
        remedy = f" Remedy: {notice.remedy}." if notice.remedy else ""
        said = Text(f"{notice.severity.value}: {where}{notice.what}.{remedy}", _STYLES[notice.severity])
        console.print(said, soft_wrap=True)
    for problem in survey.problems:
        console.print(Text(f"not read: {problem}", "bold red"), soft_wrap=True)


def _tables(survey: Survey) -> Table:
    grid = _grid("table", "regions", "cells", "orphans", "bytes", "to heal", "bytes to write", "left alone")
    for t in survey.tables:
        others = ", ".join(f"{number:,} {why}" for why, number in t.others.items())
        numbers = [t.cells, t.orphans, t.orphan_bytes, t.heals, t.heal_bytes]
        cells = (
            [str(n) if i in (0, 1, 3) else estimated_size(n) for i, n in enumerate(numbers)]
            if t.regions_read
            else [""] * 5
        )
        grid.add_row(Text(t.title), _regions(t), *cells, Text(others))
    if len(survey.tables) > 1:
        sums: list[Estimate] = [survey.orphans, survey.heals]
        grid.add_row("all", "", "", str(sums[0]), "", str(sums[1]), "", "", style="bold")
    return grid


def _regions(table: TableFindings) -> str:
    return f"{table.regions:,}" if table.is_exact else f"{table.regions_read:,} of {table.regions:,}"


def _commit_table(found: CommitTableFindings) -> Table:
    grid = _grid("commit table: age", "entries", "marks", "other rows")
    for row in found.rows:
        grid.add_row(row.age, f"{row.entries:,}", f"{row.marks:,}", f"{row.others:,}")
    return grid


def _commit_table_size(found: CommitTableFindings) -> str:
    growth = "growth is not known yet"
    if found.per_day is not None:
        growth = f"{found.per_day:,.1f} rows a day stay (of the last {age_text(found.window)})"
    rows = f"{found.settled:,} rows at or below the low watermark"
    return f"The commit table has {size_text(found.bytes)}; {rows}; {growth}."


def _grid(*columns: str) -> Table:
    grid = Table(header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        left = column in {"table", "left alone"} or column.startswith("commit table")
        grid.add_column(column, justify="left" if left else "right")
    return grid
