"""The parts of the store, and of Airflow, as the command line shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.text import Text

from lowtide.cli.output import Output, answer
from lowtide.lab.servers import Part
from lowtide.terminal.tables import new_table, print_table

_STYLES = {"running": "green", "stopped": "dim", "killed": "red", "not answering": "yellow"}


def show(
    console: Console,
    parts: Sequence[Part],
    ports: Mapping[str, int] | None = None,
    output: Output = Output.TABLE,
) -> bool:
    """Print which part is in which state, and on which of *ports* where it has one of those; whether all run."""
    rows = [{**asdict(part), "port": (ports or {}).get(part.name)} for part in parts]
    answer(output, lambda: rows, ("name", "state", "port", "pid"), lambda: rows, lambda: _print(console, parts, ports))
    return all(part.state == "running" for part in parts)


def _print(console: Console, parts: Sequence[Part], ports: Mapping[str, int] | None) -> None:
    table = new_table("", "part", "state", *(["port"] if ports else []), "process")
    for part in parts:
        port = [str(ports.get(part.name, ""))] if ports else []
        table.add_row(
            part.name, Text(part.state, _STYLES[part.state]), *port, "" if part.pid is None else str(part.pid)
        )
    print_table(console, table)
