"""``python -m bench.fixed``: where the seconds of a job go that has next to nothing to do.

Three tables of a few cells, in a store of its own. Each round leaves an orphan and a crashed client's cell in each, and
then runs every job once, warm. Told of each phase: its seconds, how many Spark jobs and tasks it started and how long
one of them was running, how often Python called the JVM, and how often the driver called HBase for records. The rest of
a phase's seconds is Spark's planning, HBase's master, and Python.

Then a cleanup of tables of which few have something to do, against those few in a store without the others. And the
three jobs of a day with nothing to do in any of them, submitted one after the other as Airflow does, against one
``spark-submit`` of a program that only makes its session.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from lowtide_spark.cleaning.orphans import clean
from lowtide_spark.cleaning.pruning import prune
from lowtide_spark.cleaning.watermarks import collect
from lowtide_spark.history.collection import collect_history
from lowtide_spark.run.base import RunBase
from lowtide_spark.run.context import Run
from lowtide_spark.run.job import run_job
from lowtide_spark.survey import survey
from lowtide_spark.undo.restore import restore
from lowtide_spark.verification.verify import verify
from pyspark.sql import SparkSession
from rich.table import Table

from bench.__main__ import HOME, Ratio, _config, _print, _spark, _store, _work_seconds, anew, console
from lowtide.config import load
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.run import submit
from lowtide.values.formats import encode_long, shadow_qualifier

TABLES = ("tiny1", "tiny2", "tiny3")


@dataclass
class Numbers:
    """What is counted, at a moment or of a phase."""

    seconds: float = 0.0
    jobs: float = 0
    tasks: float = 0
    running: float = 0.0
    calls: float = 0
    records: float = 0


@dataclass
class Meter:
    """Counts what the phases of jobs cost, in the session of this process."""

    spark: SparkSession
    calls: int = 0
    records: int = 0
    #: What was counted when the phase began that is booked next.
    began: tuple[float, int, int, int, int] = (0.0, 0, 0, 0, 0)
    #: By job, of those that are measured; None: not wanted.
    profiles: dict[str, pstats.Stats] | None = None
    #: By job and phase, a round each.
    found: dict[tuple[str, str], list[Numbers]] = field(default_factory=lambda: defaultdict(list))

    def jobs_and_tasks(self) -> tuple[int, int]:
        """How many this session has started."""
        context = self.spark.sparkContext._jsc.sc()
        return context.dagScheduler().numTotalJobs(), int(context.taskScheduler().nextTaskId())

    def running(self, first: int, last: int) -> float:
        """The seconds in which one of these Spark jobs ran; they follow one another, or lie side by side."""
        store = self.spark.sparkContext._jsc.sc().statusStore()
        self.spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()
        spans = []
        for number in range(first, last):
            job = store.job(number)
            spans.append((job.submissionTime().get().getTime(), job.completionTime().get().getTime()))
        took, end = 0, 0
        for start, stop in sorted(spans):
            took += max(0, stop - max(start, end))
            end = max(end, stop)
        return took / 1000

    def _now(self) -> tuple[float, int, int, int, int]:
        calls, records = self.calls, self.records
        return time.monotonic(), *self.jobs_and_tasks(), calls, records

    def book(self, job: str, phase: str, began: tuple[float, int, int, int, int]) -> None:
        """Keep what was counted since *began*."""
        at, jobs, tasks, calls, records = self._now()
        then, *old = began
        running = self.running(old[0], jobs)
        numbers = Numbers(at - then, jobs - old[0], tasks - old[1], running, calls - old[2], records - old[3])
        self.found[job, phase].append(numbers)
        self.began = self._now()

    @contextmanager
    def profiled(self, job: str) -> Iterator[None]:
        """Keep which Python function took the block's time, where that is asked for."""
        if self.profiles is None:
            yield
            return
        with cProfile.Profile() as profile:
            yield
        if job in self.profiles:
            self.profiles[job].add(profile)
        else:
            self.profiles[job] = pstats.Stats(profile)

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Measure every phase of every job in the block."""
        client = self.spark.sparkContext._gateway._gateway_client
        send, phase = client.send_command, RunBase.phase

        def counted(command: str, *arguments: Any, **named: Any) -> Any:
            self.calls += 1
            self.records += command.startswith("c\nz:lowtide.connector.GatewayCalls\ncall\n")
            return send(command, *arguments, **named)

        def booked(run: RunBase, name: str) -> None:
            phase(run, name)
            self.book(run.summary.job, name, self.began)

        client.send_command, RunBase.phase = counted, booked
        try:
            yield
        finally:
            client.send_command, RunBase.phase = send, phase


@dataclass
class Scene:
    """The tables, and what a round leaves in them."""

    omid: OmidClient
    tables: Sequence[str]
    #: Whether nobody writes to them any more: what is in a server's memory takes 2 MiB of it for each family.
    idle: bool = False

    def make(self) -> None:
        """The tables, each with some complete transactions."""
        for table in self.tables:
            self.omid.create(table, ("f",))
            for number in range(4):
                self.complete(table, b"row%d" % number)
            if self.idle:
                self.omid.flush(table)

    def complete(self, table: str, row: bytes) -> None:
        """A transaction that ended well."""
        start, commit = self.omid.begin(), self.omid.begin()
        self.omid.put(table, row, b"f", b"q", start, b"value")
        self.omid.put(table, row, b"f", shadow_qualifier(b"q"), start, encode_long(commit))

    def leave(self) -> None:
        """In each table an orphan, and a cell whose client died when it had committed."""
        for table in self.tables:
            self.omid.put(table, b"orphan", b"f", b"q", self.omid.begin(), b"value")
            start, commit = self.omid.begin(), self.omid.begin()
            self.omid.put(table, b"crashed", b"f", b"q", start, b"value")
            self.omid.add_commit_entry(start, commit)
            self.complete(table, b"row0")
        self.omid.advance_watermark()


JOBS: dict[str, Callable[[Run], None]] = {
    "orphan_cleanup": clean,
    "watermark_collection": collect,
    "commit_table_pruning": prune,
    "history_gc": collect_history,
    "survey": survey,
    "verify": verify,
    "sideline_restore": restore,
}


def _tiny_config(stack: Stack) -> Path:
    """Tables so small are read live, and all of their history may go."""
    path = _config(stack)
    content = yaml.safe_load(path.read_text())
    content["defaults"] = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}
    path.write_text(yaml.safe_dump(content))
    return path


def _run(meter: Meter, job: str, config: Path, *arguments: str) -> dict[str, Any]:
    summary = HOME / "summary.json"
    argv = ["--config", str(config), "--summary", str(summary), *arguments]
    reading = job in ("survey", "verify")
    began = meter.began = meter._now()
    with meter.profiled(job):
        code = run_job(job, JOBS[job], argv, read_only=reading, blind=2 if job == "verify" else 1)
    meter.book(job, "whole", began)
    result: dict[str, Any] = json.loads(summary.read_text())
    if code:
        sys.exit(f"{job} failed: {result['problems']} {[t['problems'] for t in result['tables']]}")
    return result


def round_of_jobs(meter: Meter, config: Path, scene: Scene, number: int) -> None:
    """Every job once, with something to do in each table; and the cleanup again, with nothing to do."""
    scene.leave()
    run = f"fixed-{number}"
    _run(meter, "survey", config)
    _run(meter, "orphan_cleanup", config, "--execute", "--run-id", run)
    _run(meter, "watermark_collection", config, "--execute")
    _run(meter, "commit_table_pruning", config, "--execute", "--grace", "0s", "--yes")
    _run(meter, "history_gc", config, "--execute")
    _run(meter, "verify", config)
    _run(meter, "sideline_restore", config, "--restore", run, "--execute")
    _run(meter, "orphan_cleanup", config, "--execute")


def main() -> int:
    """Run all, print a table, keep the numbers in ``.lowtide/bench/fixed.json``."""
    parser = argparse.ArgumentParser(prog="bench.fixed", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="warm rounds counted")
    parser.add_argument("--warm", type=int, default=3, help="rounds before them")
    parser.add_argument("--busy", type=int, default=5, help="tables with work, among --idle others")
    parser.add_argument("--idle", type=int, default=195, help="tables without")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark's queries")
    parser.add_argument("--profile", action="store_true", help="also write fixed-JOB.prof, for Python's pstats")
    options = parser.parse_args()
    anew()
    with _store() as stack, OmidClient(stack) as omid, _spark() as spark:
        config = _tiny_config(stack)
        for setting in options.set:
            spark.conf.set(*setting.split("=", 1))
        scene, meter = Scene(omid, TABLES), Meter(spark)
        scene.make()
        for number in range(options.warm):
            round_of_jobs(meter, config, scene, number)
        meter.found.clear()
        meter.profiles = {} if options.profile else None
        with meter.measuring():
            for number in range(options.rounds):
                round_of_jobs(meter, config, scene, options.warm + number)
        for table in TABLES:
            omid.drop(table)
        idle = _idle(meter, omid, config, options)
        chain = _chain(config, options.rounds)
    for job, profile in (meter.profiles or {}).items():
        profile.dump_stats(HOME / f"fixed-{job}.prof")
    rows = _medians(meter)
    _print_rows(rows)
    _print([idle, chain])
    ratios = {name: {**each.__dict__, "ratio": each.value} for name, each in (("idle", idle), ("chain", chain))}
    (HOME / "fixed.json").write_text(json.dumps({"phases": rows, **ratios}, indent=2))
    return 0


def _idle(meter: Meter, omid: OmidClient, config: Path, options: argparse.Namespace) -> Ratio:
    """Cleanups of few tables with work among many that have none, against the few before there were the others."""
    ratio = Ratio(f"{options.busy + options.idle} tables, {options.busy} with work, against these alone", "<= 1.3")
    busy = Scene(omid, [f"busy{number}" for number in range(options.busy)])
    others = Scene(omid, [f"idle{number}" for number in range(options.idle)], idle=True)
    for scene, side in ((busy, ratio.theirs), (others, ratio.ours)):
        scene.make()
        for number in range(options.rounds + 1):  # the first reads what is new from 0
            busy.leave()
            summary = _run(meter, "orphan_cleanup", config, "--execute")
            console.print(f"  {scene.tables[0]}, round {number}: {_work_seconds(summary):.1f} s; {summary['phases']}")
            if number:
                side.append(_work_seconds(summary))
            else:  # as each day does: it lists the tables, and those on no list are looked into by every run
                _run(meter, "watermark_collection", config, "--execute")
    return ratio


def _chain(config: Path, rounds: int) -> Ratio:
    """A day's jobs with nothing to do, in drivers of their own, against an empty program in one."""
    ratio = Ratio("a day's three jobs, nothing to do, against an empty program of Spark's", "<= 1.5")
    empty = HOME / "empty.py"
    empty.write_text("from pyspark.sql import SparkSession\n\nSparkSession.builder.getOrCreate()\n")
    settings, arguments = load(config), ("--config", str(config), "--execute")
    day = ("orphan_cleanup", "watermark_collection", "commit_table_pruning")
    jobs = [submit.command(settings, job, arguments) for job in day]
    for number in range(rounds + 1):  # the first may have something left to do
        for commands, side in (
            ([submit.command(settings, "watermark_collection", (), program=empty)], ratio.theirs),
            (jobs, ratio.ours),
        ):
            began = time.monotonic()
            for command in commands:
                subprocess.run(command, env=submit.environment(settings), capture_output=True, check=True)
            if number:
                side.append(time.monotonic() - began)
    return ratio


def _medians(meter: Meter) -> list[dict[str, Any]]:
    return [
        {"job": job, "phase": phase}
        | {name: statistics.median(getattr(each, name) for each in found) for name in Numbers.__dataclass_fields__}
        for (job, phase), found in meter.found.items()
    ]


def _print_rows(rows: list[dict[str, Any]]) -> None:
    grid = Table(title="The fixed part (medians)", title_justify="left")
    for column in ("job", "phase", "seconds", "Spark jobs", "tasks", "running", "calls of the JVM", "of records"):
        grid.add_column(column, justify="left" if column in {"job", "phase"} else "right")
    for row in rows:
        grid.add_row(
            row["job"],
            row["phase"],
            f"{row['seconds']:.2f}",
            *(f"{row[name]:.0f}" for name in ("jobs", "tasks")),
            f"{row['running']:.2f}",
            *(f"{row[name]:.0f}" for name in ("calls", "records")),
        )
    console.print(grid)


if __name__ == "__main__":
    sys.exit(main())
