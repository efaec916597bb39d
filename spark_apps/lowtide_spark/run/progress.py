"""How far Spark is, printed while it works."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession


@contextmanager
def progress_printed(spark: SparkSession, what: str, every_seconds: float = 10) -> Iterator[None]:
    """Print how many of the running stages' tasks are done, every so often, while the body runs."""
    over = threading.Event()
    started = time.monotonic()

    def print_progress() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not over.wait(every_seconds):
            stages = [s for s in map(tracker.getStageInfo, tracker.getActiveStageIds()) if s is not None]
            done, tasks = sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
            if tasks:
                seconds = time.monotonic() - started
                print(f"{what}: {done} of {tasks} parts of this step read, {seconds:.0f} s so far", flush=True)

    printer = threading.Thread(target=print_progress, name="progress", daemon=True)
    printer.start()
    try:
        yield
    finally:
        over.set()
        printer.join()
