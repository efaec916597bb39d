"""The page's tables about single jobs, each with a heading and a sentence. No Airflow import."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from lowtide.config import Config
from lowtide.health import Reading, history_statuses, ledger_status, removals, repairs
from lowtide.health.history import Removal, hold_text, kept_back, mark_text
from lowtide.health.ledger import status_rows
from lowtide.values.text import age_text, moment_text, size_text

#: Rows of a table about runs.
_RUNS = 30


@dataclass(frozen=True, slots=True)
class Section:
    """A further part of the page: a table with a heading and a sentence."""

    title: str
    text: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int, ...], ...]

    def to_json(self) -> dict[str, Any]:
        """A plain mapping."""
        rows = [list(r) for r in self.rows]
        return {"title": self.title, "text": self.text, "columns": list(self.columns), "rows": rows}


def history(reading: Reading, config: Config) -> Section | None:
    """How far each table's history is removed, those that history_gc never worked on too."""
    rows = tuple(
        (
            h.table,
            h.mode.value,
            mark_text(h, reading.clock),
            f"{age_text(reading.at - h.applied_at)} ago" if h.applied_at else "",
            kept_back(h),
            _gone(h.removed),
            _gone(h.reclaimable),
            size_text(h.uncompacted) if h.uncompacted else "",
        )
        for h in history_statuses(reading, config)
    )
    text = (
        "What was replaced before its ancient history mark is removed from a table, and read points before the mark "
        "are refused. What could go is what the last dry run counted, where it is newer than the last run that acted. "
        "What is not compacted is removed, and on disk until HBase compacts; history_gc --compact asks for the "
        "compactions that pay."
    )
    columns = ("table", "history_mode", "mark", "applied", "kept back by", "last removed", "could go", "not compacted")
    return Section("History", text, columns, rows) if rows else None


def _gone(removal: Removal | None) -> str:
    return f"{size_text(removal.size)} in {removal.versions:,} cells" if removal else ""


def holds(reading: Reading, _: Config) -> Section | None:
    """The holds there are."""
    text = "Promises that history from a read point on stays. To let one go: lowtide hold release TABLE ID."
    columns = ("table", "id", "from", "owner", "reason", "taken", "expires")
    rows = tuple(hold_text(hold, reading) for hold in reading.holds)
    return Section("Holds on history", text, columns, rows) if rows else None


def removed(reading: Reading, _: Config) -> Section | None:
    """What the runs removed, newest first."""
    rows = tuple(
        (
            moment_text(r.started),
            r.table,
            "removed" if r.execute else "could go (dry run)",
            r.versions,
            r.markers,
            size_text(r.size),
        )
        for r in removals(reading)[:_RUNS]
    )
    text = "HBase gives the bytes back when it compacts. One delete marker stands for any number of cells of a column."
    columns = ("started", "table", "what became of it", "cells", "delete markers", "bytes")
    return Section("History removed, by run", text, columns, rows) if rows else None


def ledger(reading: Reading, _: Config) -> Section | None:
    """How the ledger stands."""
    status = ledger_status(reading)
    text = "Transfers between users: which are over, which are stuck, and whether the money adds up."
    return (
        Section("Ledger", text, ("what", "how it stands"), tuple(status_rows(status, reading.at))) if status else None
    )


def repaired(reading: Reading, _: Config) -> Section | None:
    """What the repairs did, newest first."""
    rows = tuple(
        (
            moment_text(r.started),
            "acted" if r.execute else "dry run",
            r.finished,
            r.dropped,
            "" if r.checked is None else r.checked,
            "" if r.wrong is None else r.wrong,
            r.state,
        )
        for r in repairs(reading)[:_RUNS]
    )
    text = (
        "Finished and dropped are transactions that clients had left half-way; money is checked for what was "
        "written since the last check."
    )
    columns = ("started", "kind", "finished", "dropped", "money checked", "wrong", "result")
    return Section("Ledger repairs", text, columns, rows) if rows else None


#: In the order of the page; None leaves a part out. Jobs that keep more in the state table add theirs here.
SECTIONS: tuple[Callable[[Reading, Config], Section | None], ...] = (history, holds, removed, ledger, repaired)
