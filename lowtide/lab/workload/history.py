"""From the clients' event logs to a history: what each transaction did and what became of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lowtide.lab.workload.model import Cell, Transaction, cell_from_json

#: Given the start timestamp and the cells of a transaction whose client is dead: its commit timestamp, or None.
Fate = Callable[[int, list[Cell]], int | None]


@dataclass
class _Record:
    start: int
    id: str = ""
    cells: list[Cell] = field(default_factory=list)
    died_at: int | None = None
    end: dict[str, Any] | None = None


def read(log: Path, fate: Fate, ended: str | None = None) -> list[Transaction]:
    """The transactions of one client process.

    Those without an end are in doubt; *fate* settles them, so call it when the process is gone and the low watermark
    has passed them. *ended* says how the process went, if not in peace.
    """
    return [_settled(record, fate, ended) for record in _records(log)]


def _records(log: Path) -> Iterable[_Record]:
    records: dict[int, _Record] = {}
    lines = log.read_text("utf-8").split("\n") if log.exists() else []
    # A killed process may have left half a line, which announces nothing that was done.
    for line in lines[:-1]:
        event = json.loads(line)
        record = records.setdefault(event["start"], _Record(event["start"]))
        match event["event"]:
            case "begin":
                record.id = event["id"]
            case "cells":
                record.cells.extend(map(cell_from_json, event["cells"]))
            case "die":
                record.died_at = event["crash"]
            case "end":
                record.end = event
    return records.values()


def _settled(record: _Record, fate: Fate, ended: str | None) -> Transaction:
    cells = tuple(record.cells)
    if record.end:
        return Transaction(
            start=record.start,
            commit=record.end.get("commit"),
            outcome=record.end["outcome"],
            crash=record.end.get("crash"),
            ended=None,
            id=record.id,
            reason=record.end.get("reason", ""),
            cells=cells,
        )
    commit = fate(record.start, record.cells) if record.cells else None
    return Transaction(
        start=record.start,
        commit=commit,
        outcome="abandoned" if commit is None else "committed",
        crash=record.died_at,
        ended="halt" if record.died_at is not None else ended,
        id=record.id,
        reason="",
        cells=cells,
    )
