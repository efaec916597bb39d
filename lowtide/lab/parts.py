"""The parts of the store, and of Airflow, as the command line shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lowtide.lab.servers import Part

_STYLES = {"running": "green", "stopped": "dim", "killed": "red", "not answering": "yellow"}


def show(console: Console, parts: Sequence[Part], ports: Mapping[str, int] | None = None) -> bool:
    """Print which part is in which state, and on which of *ports* where it has one of those; whether all run."""
    table = Table("part", "state", *(["port"] if ports else []), "process")
    for part in parts:
        port = [str(ports.get(part.name, ""))] if ports else []
        table.add_row(
            part.name, Text(part.state, _STYLES[part.state]), *port, "" if part.pid is None else str(part.pid)
        )
    console.print(table)
    return all(part.state == "running" for part in parts)
