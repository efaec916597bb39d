"""Summaries of runs."""

from __future__ import annotations

from itertools import takewhile
from typing import Any

from lowtide.store.rows import MAX_MILLIS, VALUE, Rows, dump


class RunRows(Rows):
    """The rows ``run/``."""

    def add_run(self, summary: dict[str, Any]) -> None:
        """Keep a run's summary (it must have ``job``, ``run`` and ``started``, ms)."""
        row = f"run/{MAX_MILLIS - summary['started']:020d}/{summary['job']}/{summary['run']}".encode()
        self._table.put(row, {VALUE: dump(summary)})

    def runs(self, limit: int = 50, job: str | None = None) -> list[dict[str, Any]]:
        """Summaries, newest first, of one job or of all."""
        found: list[dict[str, Any]] = []
        for value in self._values(b"run/", limit if job is None else None):
            if job is None or value["job"] == job:
                found.append(value)
            if len(found) >= limit:
                break
        return found

    def runs_since(self, since: int) -> list[dict[str, Any]]:
        """Summaries of all runs that began at *since* (ms) or later, newest first. Nothing older is read."""
        return list(takewhile(lambda value: value["started"] >= since, self._values(b"run/", None)))
