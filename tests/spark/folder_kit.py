"""Runs of tests as the folders beside the store know them (:mod:`lowtide_spark.frames.folders`), and old folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyspark.sql import SparkSession

#: How long these runs' folders are kept.
KEEP = timedelta(days=30)
#: Gives a run by its name.
Runs = Callable[[str], Any]


def runs_in(folder: Path, spark: SparkSession) -> Runs:
    """Runs by name, whose sidelines and lists lie in *folder*."""
    state = SimpleNamespace(sideline=str(folder), sideline_keep=KEEP)

    def run(name: str) -> Any:
        request = SimpleNamespace(run=name, now=datetime.now(UTC))
        return SimpleNamespace(request=request, store=SimpleNamespace(spark=spark), config=SimpleNamespace(state=state))

    return run


def make_old(folder: Path) -> None:
    """Older than folders are kept, with all that lies in it."""
    at = (datetime.now(UTC) - KEEP - timedelta(hours=1)).timestamp()
    for each in (folder, *folder.rglob("*")):
        os.utime(each, (at, at))
