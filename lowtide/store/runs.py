"""Summaries of runs, and of the last of each job: when it ran, and what it left undone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import takewhile
from typing import Any

from lowtide.store.records import Outcomes
from lowtide.store.rows import COLUMN, MAX_MILLIS, VALUE, Rows, dump
from lowtide.values.clock import from_millis

_OUTCOMES = b"outcomes"
_FAILING = COLUMN + b"failing/"
_LAST = COLUMN + b"last/"
_FIRST = COLUMN + b"first"
#: So many problems are kept of each.
_NAMED = 20


class RunRows(Rows):
    """The rows ``run/``; and the row ``outcomes``, of :class:`Outcomes`: a column ``failing/`` a job and table whose
    last run that acted left work undone, and one a job and task whose run as a whole did; two columns ``last/`` a job;
    ``first``.

    Records of before this was kept have no such row: of them the runs alone tell.
    """

    def add_run(self, summary: dict[str, Any]) -> None:
        """Keep a run's summary (it must have ``job``, ``run`` and ``started``, ms)."""
        row = f"run/{MAX_MILLIS - summary['started']:020d}/{summary['job']}/{summary['run']}".encode()
        self._table.put(row, {VALUE: dump(summary)})
        self._keep_outcome(summary)

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

    def outcomes(self) -> Outcomes:
        """The row ``outcomes``: one read."""
        known = self._outcomes()
        first = known.pop(_FIRST, None)
        ordered = sorted(known.items(), key=lambda kept: kept[1]["last"], reverse=True)
        failing, last = (tuple(v for column, v in ordered if column.startswith(of)) for of in (_FAILING, _LAST))
        return Outcomes(failing, last, from_millis(first["last"]) if first else None)

    def _outcomes(self) -> dict[bytes, dict[str, Any]]:
        return {column: json.loads(value) for column, value in self._table.row(_OUTCOMES).items()}

    def _keep_outcome(self, summary: Mapping[str, Any]) -> None:
        known = self._outcomes()
        kept, over = _failures(summary, known) if summary.get("execute") else ({}, [])
        last = _LAST + f"{summary['job']}/{'executed' if summary.get('execute') else 'planned'}".encode()
        if last not in known or known[last]["last"] <= summary["started"]:
            kept[last] = _short(summary) | {"totals": summary["totals"], "seconds": summary["seconds"]}
        if _FIRST not in known:
            kept[_FIRST] = {"last": summary["started"]}
        if kept:
            self._table.put(_OUTCOMES, {column: dump(value) for column, value in kept.items()})
        if over:
            self._table.delete(_OUTCOMES, columns=over)

    def _sweep_failing(self, before: int) -> None:
        """Drop what no run has confirmed since *before*, ms: of a table, say, that is gone."""
        known = self._outcomes().items()
        if over := [column for column, v in known if column.startswith(_FAILING) and v["last"] < before]:
            self._table.delete(_OUTCOMES, columns=over)


def _failures(
    summary: Mapping[str, Any], known: Mapping[bytes, Mapping[str, Any]]
) -> tuple[dict[bytes, dict[str, Any]], list[bytes]]:
    """The columns of what it left undone, and those that are over with it."""
    failed, over = {}, []
    for column, short, left in _left_undone(summary):
        before = known.get(column)
        if left:
            failed[column] = {**short, "started": before["started"] if before else short["started"]}
        elif before and before["last"] <= summary["started"]:
            over.append(column)
    if not summary["problems"]:
        over += _of_earlier_runs(summary, known)
    return failed, [column for column in over if column not in failed]


def _short(summary: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: summary[name] for name in ("job", "run", "started", "execute", "context", "state")}
    empty = {"seconds": 0, "totals": {}, "tables": [], "problems": []}
    return {**kept, **empty, "last": summary["started"], "figures": summary.get("figures", {})}


def _left_undone(summary: Mapping[str, Any]) -> Iterator[tuple[bytes, dict[str, Any], bool]]:
    """Of each table and of the run as a whole: its column, a summary in short, and whether it left work undone."""
    short = _short(summary)
    for t in summary["tables"]:
        if t.get("left_alone"):
            continue
        problems, failed = t["problems"][:_NAMED], t["counts"]["failed"]
        report = {"table": t["table"], "problems": problems, "counts": {"failed": failed}}
        yield _column(summary, t["table"]), {**short, "tables": [report]}, bool(problems or failed)
    problems = summary["problems"][:_NAMED]
    yield _column(summary, f"/{_task(summary)}"), {**short, "problems": problems}, bool(problems)


def _of_earlier_runs(summary: Mapping[str, Any], known: Mapping[bytes, Mapping[str, Any]]) -> Iterator[bytes]:
    """The columns of earlier runs of this job as a whole. One task of a DAG run that is done makes not up for another
    of the same.
    """
    of_runs = {column: value for column, value in known.items() if column.startswith(_column(summary, "/"))}
    for column, value in of_runs.items():
        if _dag_run(value) != _dag_run(summary) and value["last"] <= summary["started"]:
            yield column


def _column(summary: Mapping[str, Any], of: str) -> bytes:
    """No table's name has a slash."""
    return _FAILING + f"{summary['job']}/{of}".encode()


def _task(summary: Mapping[str, Any]) -> str:
    context = summary["context"]
    return f"{context['task_id']}/{context.get('map_index', '')}" if "task_id" in context else ""


def _dag_run(summary: Mapping[str, Any]) -> str:
    return str(summary["context"].get("run_id") or summary["run"])
