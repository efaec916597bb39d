"""How far Spark is, shown while it works: on a terminal as a bar with an estimate, elsewhere as a line now and then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from lowtide.terminal.console import new_console

if TYPE_CHECKING:
    from pyspark import SparkStageInfo

_LINE_SECONDS = 10.0
_BAR_SECONDS = 0.5


class Seen:
    """The stages that were seen so far: how many of their tasks are done. Of what will follow nothing is known."""

    def __init__(self) -> None:
        self._stages: dict[int, tuple[int, int]] = {}

    def look(self, running: Iterable[SparkStageInfo]) -> tuple[int, int]:
        """Tasks done, and tasks, with the stages that are *running* now; one that is not any more is done."""
        now = {stage.stageId: (stage.numCompletedTasks, stage.numTasks) for stage in running}
        over = {key: (tasks, tasks) for key, (_, tasks) in self._stages.items()}
        self._stages = {**over, **now}
        return sum(done for done, _ in self._stages.values()), sum(tasks for _, tasks in self._stages.values())


@contextmanager
def progress(spark: SparkSession, what: str) -> Iterator[None]:
    """Show how many parts of the work are done, while the body runs. The estimate is of the parts that are known."""
    console = new_console()
    over = threading.Event()

    def show() -> None:
        with suppress(Exception):  # of a session that ends meanwhile: of that the run itself tells
            (_bar if console.is_terminal else _lines)(spark, what, over, console)

    shower = threading.Thread(target=show, name="progress", daemon=True)
    shower.start()
    try:
        yield
    finally:
        over.set()
        shower.join()


def _lines(spark: SparkSession, what: str, over: threading.Event, console: Console) -> None:
    began = time.monotonic()
    look = _looking(spark)
    while not over.wait(_LINE_SECONDS):
        done, tasks = look()
        if done < tasks:
            console.print(line(what, done, tasks, time.monotonic() - began), soft_wrap=True)


def line(what: str, done: int, tasks: int, seconds: float) -> str:
    """How far *what* is, for a log."""
    return f"{what}: {done:,} of {tasks:,} parts known so far are done, {seconds:.0f} s so far"


def _bar(spark: SparkSession, what: str, over: threading.Event, console: Console) -> None:
    look = _looking(spark)
    # Transient: what was done is told by the table at the end.
    with bar(console) as shown:
        task = shown.add_task(what, total=None)
        while not over.wait(_BAR_SECONDS):
            done, tasks = look()
            shown.update(task, completed=done, total=tasks or None)


def bar(console: Console) -> Progress:
    """An empty bar, with the time so far and what is left of it."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True)


def _looking(spark: SparkSession) -> Callable[[], tuple[int, int]]:
    seen = Seen()

    def look() -> tuple[int, int]:
        tracker = spark.sparkContext.statusTracker()
        found = ((key, tracker.getStageInfo(key)) for key in tracker.getActiveStageIds())
        return seen.look(info for _, info in found if info is not None)

    return look
