"""The job ``sideline``: which runs have one, and the cells in it. Values are not shown."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import functions as F
from rich.console import Console

from lowtide.asking.terminal import print_cells, print_sidelines
from lowtide.run.private import write_private
from lowtide.terminal.console import new_console
from lowtide.values.clock import from_millis
from lowtide.values.hbase_shell import unquoted
from lowtide.values.text import moment_text
from lowtide_spark.frames import missed
from lowtide_spark.frames.cell_list import shell_text
from lowtide_spark.frames.sideline import folders, kept, sideline
from lowtide_spark.run.context import Run


def look(run: Run) -> None:
    """List the runs, or with ``--show RUN`` the cells of one."""
    if run.options.show:
        _show(run, new_console())
    else:
        _list(run, new_console())


def _list(run: Run, terminal: Console) -> None:
    whole = kept(run, run.summary.notes)
    of_tables = run.options.table or whole.lost
    if lost := [each for table in of_tables for each in whole.lost.get(table, ()) if each.by]:
        run.summary.notes.append(missed.summed(lost))
    counts = {(r.run, r.table): r["count"] for r in whole.cells.groupBy("run", "table").count().collect()}
    jobs = recorded(run)
    found = []
    for folder in folders(run):
        at = from_millis(folder.written)
        for table, size in sorted(folder.tables.items()):
            if run.options.table and table not in run.options.table:
                continue
            found.append(
                {
                    "run": folder.run,
                    "job": jobs[folder.run]["job"] if folder.run in jobs else "",
                    "at": f"{at:%Y-%m-%d %H:%M}",
                    "table": table,
                    "cells": counts.get((folder.run, table), 0),
                    "bytes": size,
                    "until": f"{at + run.config.state.sideline_keep:%Y-%m-%d %H:%M}",
                    "lost": ["files"] if folder.run in {each.run for each in whole.lost.get(table, ())} else [],
                }
            )
    print_sidelines(terminal, found)
    _write(run, {"sideline": run.config.state.sideline, "runs": found})


def _show(run: Run, terminal: Console) -> None:
    aside = sideline(run, run.options.show)
    cells = aside.cells
    if run.options.table:
        cells = cells.where(F.col("table").isin(run.options.table))
    if run.options.row is not None:
        cells = cells.where(F.col("row") == F.lit(bytearray(unquoted(run.options.row))))
    total = cells.count()
    first = cells.orderBy("table", "row", "family", "qualifier", F.desc("timestamp")).limit(run.options.first)
    texts = (shell_text(F.col(name)).alias(name) for name in ("row", "family", "qualifier"))
    rows = first.select("table", *texts, "timestamp", "commit_ts", "kind", "rule", "evidence").collect()
    print_cells(terminal, [row.asDict() for row in rows], total)
    for table, files in sorted(aside.lost.items()):
        if files:
            run.summary.problems.append(f"{len(files)} files of {table} are missing or cut short, such as {files[0]}")
    run.summary.problems += [what for _, what in sorted(aside.elsewhere.items())]
    _write(run, {"run": run.options.show, "total": total, "cells": [row.asDict() for row in rows]})


def recorded(run: Run) -> dict[str, dict[str, Any]]:
    """The summaries of the runs that acted, by their names; of one that was tried again the last."""
    state = run.state()
    if not state.exists():
        return {}
    return {each["run"]: each for each in reversed(state.runs(limit=_MOST_RUNS)) if each["execute"]}


def kept_until(run: Run) -> dict[str, str]:
    """By run, until when its sideline is kept."""
    keep = run.config.state.sideline_keep
    return {each.run: moment_text(from_millis(each.written) + keep) for each in folders(run)}


def _write(run: Run, found: dict[str, Any]) -> None:
    if run.options.json is not None:
        write_private(run.options.json, json.dumps(found, indent=2) + "\n")


#: A year of hourly runs.
_MOST_RUNS = 10_000
