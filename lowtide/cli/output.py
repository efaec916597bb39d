"""``--output``: what a command answers, as a table for people, or as JSON or CSV for programs.

JSON and CSV stand on stdout alone; what else is to be said goes to stderr (:func:`lowtide.terminal.console.note`).
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any

import typer
from typer.core import TyperCommand


class Output(StrEnum):
    """What ``--output`` can be."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


OutputStyle = Annotated[
    Output,
    typer.Option(
        "--output",
        metavar="|".join(Output),
        help="A table for people; JSON or CSV for programs, alone on stdout.",
    ),
]


class WithJson(TyperCommand):
    """A command that takes ``--json`` for ``--output json``, as it did before there was ``--output``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the one as the other."""
        return super().parse_args(ctx, ["--output=json" if word == "--json" else word for word in args])


def answer(
    output: Output,
    value: Callable[[], Any],
    columns: Sequence[str],
    rows: Callable[[], Iterable[Mapping[str, Any]]],
    table: Callable[[], None],
) -> None:
    """Print the answer in the style that was asked for.

    Args:
        output: that style.
        value: all of it, for JSON.
        columns: of the CSV, which has them in its first line also where there are no rows.
        rows: those of the CSV; what they hold beside *columns* is left out, and what is no text nor number is JSON.
        table: prints it for people.
    """
    if output is Output.JSON:
        typer.echo(json.dumps(value(), indent=2))
    elif output is Output.CSV:
        writer = csv.DictWriter(sys.stdout, columns, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: _flat(cell) for name, cell in row.items()} for row in rows())
    else:
        table()


def tell_in_any_case(tell: Callable[[], None], text: str) -> None:
    """Call *tell*, which prints to stdout what has come of something that cannot be undone; where that fails (a pipe
    that was closed, a disk that is full, Ctrl-C), *text* says it on stderr. It raises nothing, and nothing is left in
    stdout that could fail at the program's end.
    """
    try:
        tell()
        sys.stdout.flush()
    except BaseException as error:  # rich ends the program by SystemExit where a pipe is closed
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        cause = "" if isinstance(error, SystemExit) else f" ({type(error).__name__}: {error})"
        with suppress(OSError, ValueError):
            print(f"lowtide: {text}. That could not be printed on stdout{cause}", file=sys.stderr, flush=True)


def _flat(cell: Any) -> Any:
    return json.dumps(cell) if isinstance(cell, (bool, dict, list, tuple)) else cell
