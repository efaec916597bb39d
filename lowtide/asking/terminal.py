"""Answers for people, in a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from lowtide.asking.answer import Answer, Line
from lowtide.terminal.tables import new_table, print_table
from lowtide.values.text import number_and_time, size_text


def print_answer(console: Console, answer: Answer) -> None:
    """All that is known of a row."""
    console.print(f'{answer.table}, row "{answer.row}"', soft_wrap=True)
    for note in answer.notes:
        console.print(f"note: {note}", soft_wrap=True)
    if answer.cells:
        print_table(console, _table("What is there", answer.cells))
    if answer.removed:
        print_table(console, _table("What went, and is kept", answer.removed))
    for sentence in answer.done:
        console.print(sentence, soft_wrap=True)
    if answer.transactions:
        grid = _grid("Its transactions", "transaction", "what became of it, and by what")
        for start, text in answer.transactions.items():
            grid.add_row(number_and_time(start), text)
        print_table(console, grid)
    console.print(f"low watermark {number_and_time(answer.low_watermark)}", soft_wrap=True)


def print_sidelines(console: Console, sidelines: Sequence[Mapping[str, Any]]) -> None:
    """The runs whose sidelines are kept, a line for each of their tables."""
    if not sidelines:
        console.print("no run has a sideline: none removed anything, or state.sideline_keep is over")
        return
    titles = ("run", "job", "table", "cells", "size", "removed (UTC)", "kept until (UTC)", "lacks")
    grid = new_table("Sidelines", *titles, numbers=("cells", "size"), whole=titles[3:7])
    for each in sidelines:
        grid.add_row(
            each["run"],
            each["job"],
            each["table"],
            f"{each['cells']:,}",
            size_text(each["bytes"]),
            each["at"],
            each["until"],
            ", ".join(each["lost"]),
        )
    print_table(console, grid)


def print_cells(console: Console, cells: Sequence[Mapping[str, Any]], total: int) -> None:
    """Cells that a run put aside; how many there are in all."""
    grid = _grid(
        f"{len(cells):,} of {total:,} cells", "table", "row", "cell", "at", "what", "rule, and what it goes by"
    )
    for each in cells:
        committed = "no commit" if each["commit_ts"] is None else f"committed at {each['commit_ts']}"
        grid.add_row(
            each["table"],
            each["row"],
            f"{each['family']}:{each['qualifier']}",
            str(each["timestamp"]),
            f"{each['kind'].replace('_', ' ')}, {committed}",
            ": ".join(filter(None, (each["rule"], each["evidence"]))),
        )
    print_table(console, grid)


def _table(title: str, lines: Sequence[Line]) -> Table:
    grid = _grid(title, "cell", "at", "what it is", "what becomes of it, and why")
    for line in lines:
        why = ": ".join(filter(None, (line.rule, line.evidence)))
        becomes = "\n".join(filter(None, (line.becomes, why)))
        grid.add_row(f"{line.family}:{line.qualifier}", str(line.timestamp), line.what, becomes)
    return grid


def _grid(title: str, *columns: str) -> Table:
    grid = new_table(title, *columns)
    grid.show_lines = True  # a cell has several lines
    return grid
