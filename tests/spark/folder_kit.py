"""Runs of tests as the folders beside the store know them (:mod:`lowtide_spark.frames.folders`), and old folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import SparkSession

from lowtide.values.clock import millis

#: How long these runs' folders are kept.
KEEP = timedelta(days=30)
#: The note of a table by which its run says where its cells lie.
KEPT_IN = "what goes is kept in {folder}; `lowtide restore {run}` puts it back"
#: Gives a run by its name.
Runs = Callable[[str], Any]


class Summaries(list[dict[str, Any]]):
    """What the state table has of runs, the newest first."""

    def runs_since(self, since: int) -> list[dict[str, Any]]:
        """Those that began then or later."""
        return [each for each in self if each["started"] >= since]

    def add(self, run: str, removed: dict[str, int], folder: str = "/aside", **changes: Any) -> None:
        """Add that *run* removed so many cells of tables, a minute ago, and put them into its *folder*."""
        tables = [
            {
                "table": name,
                "execute": True,
                "counts": {"deleted": number},
                "notes": ["of another kind", KEPT_IN.format(folder=f"{folder}/{name}", run=run)],
            }
            for name, number in removed.items()
        ]
        started = millis(datetime.now(UTC) - timedelta(minutes=1))
        summary = {"job": "orphan_cleanup", "run": run, "execute": True, "started": started, "low_watermark": 100}
        self.insert(0, {**summary, "by": {"host": "worker-1"}, "tables": tables, **changes})


def runs_in(folder: Path, spark: SparkSession, summaries: Summaries | None = None) -> Runs:
    """Runs by name, whose sidelines and lists lie in *folder*, with these *summaries*."""
    state = SimpleNamespace(sideline=str(folder), sideline_keep=KEEP)
    records = Summaries() if summaries is None else summaries

    def run(name: str) -> Any:
        request = SimpleNamespace(run=name, now=datetime.now(UTC))
        store = SimpleNamespace(spark=spark, state=lambda: records)
        return SimpleNamespace(request=request, store=store, config=SimpleNamespace(state=state))

    return run


def make_old(folder: Path) -> None:
    """Older than folders are kept, with all that lies in it."""
    at = (datetime.now(UTC) - KEEP - timedelta(hours=1)).timestamp()
    for each in (folder, *folder.rglob("*")):
        os.utime(each, (at, at))
