"""Summaries of runs, and what the last run of each job that acted left undone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from lowtide.store.rows import COLUMN, MAX_MILLIS, VALUE, Rows, dump

_FAILING = b"failing"
#: So many problems are kept of each.
_NAMED = 20


class RunRows(Rows):
    """The rows ``run/``; and the row ``failing``: a column a job and table whose last run that acted left work undone,
    and one a job and task whose run as a whole did. It says so however many other runs came after.

    Records of before this was kept have no such row: of them the runs alone tell.
    """

    def add_run(self, summary: dict[str, Any]) -> None:
        """Keep a run's summary (it must have ``job``, ``run`` and ``started``, ms)."""
        row = f"run/{MAX_MILLIS - summary['started']:020d}/{summary['job']}/{summary['run']}".encode()
        self._table.put(row, {VALUE: dump(summary)})
        if summary.get("execute"):
            self._keep_failures(summary)

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

    def failing(self) -> list[dict[str, Any]]:
        """What the last runs left undone, newest first: summaries in short, each of one table, or of a run as a whole.
        ``started`` is that of the first of the runs that failed one after the other, ``last`` of the last of them.
        """
        return sorted(self._failing().values(), key=lambda value: value["last"], reverse=True)

    def _failing(self) -> dict[bytes, dict[str, Any]]:
        return {column: json.loads(value) for column, value in self._table.row(_FAILING).items()}

    def _keep_failures(self, summary: Mapping[str, Any]) -> None:
        known = self._failing()
        failed, over = {}, []
        for column, short, left in _outcomes(summary):
            before = known.get(column)
            if left:
                failed[column] = dump({**short, "started": before["started"] if before else short["started"]})
            elif before and before["last"] <= summary["started"]:
                over.append(column)
        if not summary["problems"]:
            over += _of_earlier_runs(summary, known)
        if failed:
            self._table.put(_FAILING, failed)
        if over:
            self._table.delete(_FAILING, columns=over)

    def _sweep_failing(self, before: int) -> None:
        """Drop what no run has confirmed since *before*, ms: of a table, say, that is gone."""
        if over := [column for column, value in self._failing().items() if value["last"] < before]:
            self._table.delete(_FAILING, columns=over)


def _outcomes(summary: Mapping[str, Any]) -> Iterator[tuple[bytes, dict[str, Any], bool]]:
    """Of each table and of the run as a whole: its column, a summary in short, and whether it left work undone."""
    kept = {name: summary[name] for name in ("job", "run", "started", "execute", "context", "state")}
    short = {**kept, "last": summary["started"], "seconds": 0, "totals": {}, "figures": summary.get("figures", {})}
    for t in summary["tables"]:
        problems, failed = t["problems"][:_NAMED], t["counts"]["failed"]
        report = {"table": t["table"], "problems": problems, "counts": {"failed": failed}}
        yield _column(summary, t["table"]), {**short, "problems": [], "tables": [report]}, bool(problems or failed)
    problems = summary["problems"][:_NAMED]
    yield _column(summary, f"/{_task(summary)}"), {**short, "problems": problems, "tables": []}, bool(problems)


def _of_earlier_runs(summary: Mapping[str, Any], known: Mapping[bytes, Mapping[str, Any]]) -> Iterator[bytes]:
    """The columns of earlier runs of this job as a whole. One task of a DAG run that is done makes not up for another
    of the same.
    """
    for column, value in known.items():
        other = _dag_run(value) != _dag_run(summary)
        if column.startswith(_column(summary, "/")) and other and value["last"] <= summary["started"]:
            yield column


def _column(summary: Mapping[str, Any], of: str) -> bytes:
    """No table's name has a slash."""
    return COLUMN + f"{summary['job']}/{of}".encode()


def _task(summary: Mapping[str, Any]) -> str:
    context = summary["context"]
    return f"{context['task_id']}/{context.get('map_index', '')}" if "task_id" in context else ""


def _dag_run(summary: Mapping[str, Any]) -> str:
    return str(summary["context"].get("run_id") or summary["run"])
