"""``python -m bench.foreground``: what clients at work feel of a job beside them, with and without a rate.

Clients of Omid read and write the very table that the jobs work on, each one transaction after the other; the time of
each is kept. HBase, the oracle and the clients have one core, the jobs' Spark another, so that what is felt is what
HBase does for a job, and not that a job takes a core. Before each run the clients are alone for some seconds: a run's
percentiles are told as ratios to those, and their medians over the rounds. A cleanup that reads from 0 is told apart:
while it finds and decides, and while it acts.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from lowtide_spark.cleaning.orphans import clean
from lowtide_spark.cleaning.pruning import prune
from lowtide_spark.cleaning.watermarks import collect
from lowtide_spark.frames.store import Store
from lowtide_spark.history.collection import collect_history
from lowtide_spark.run.job import run_job
from lowtide_spark.verification.verify import verify
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.table import Table

from bench.__main__ import HOME, TABLE, _config, _spark, anew, console
from bench.bare import FAMILY, Bare
from lowtide.config import load
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient

SOURCE = Path(__file__).parent / "java" / "Foreground.java"
#: In the order in which a store is kept; each with its arguments.
JOBS: dict[str, tuple[Any, Sequence[str]]] = {
    "orphan_cleanup": (clean, ("--table", TABLE, "--full", "--execute")),
    "watermark_collection": (collect, ("--execute",)),
    "commit_table_pruning": (prune, ("--execute", "--grace", "0s")),
    "history_gc": (collect_history, ("--table", TABLE, "--execute")),
    "verify": (verify, ("--table", TABLE)),
}
#: 20 million cells in ten minutes.
READS = 33_000
WRITES = 2_000
#: Phases in which a run finds out what there is to do; in all others but its start it acts.
FINDING = ("plan", "find", "decide")
FIGURES = ("p50", "p99", "p99.9", "throughput")


@dataclass(frozen=True)
class Felt:
    """Transactions that began in a span of time."""

    times: Sequence[float]
    seconds: float

    def figure(self, name: str) -> float:
        """A percentile in ms, or transactions a second."""
        if name == "throughput":
            return len(self.times) / self.seconds
        return self.times[min(len(self.times) - 1, int(len(self.times) * float(name.removeprefix("p")) / 100))]


def main() -> int:
    """Run all, print a table, keep the numbers in ``.lowtide/bench/foreground.json``."""
    parser = argparse.ArgumentParser(prog="bench.foreground")
    parser.add_argument("--rows", type=int, default=60_000, help="of the table; each has 5 columns with shadow cells")
    parser.add_argument("--rounds", type=int, default=3, help="runs counted of each job, with and without a rate")
    parser.add_argument("--clients", type=int, default=4, help="threads, each with a transaction under way")
    parser.add_argument("--idle", type=float, default=8.0, help="seconds that the clients are alone before each run")
    parser.add_argument("--orphans", type=int, default=5_000, help="cells that a cleanup finds to delete")
    parser.add_argument("--rate", type=int, default=READS, help="cells a second")
    parser.add_argument("--write-rate", type=int, default=WRITES, help="mutations a second")
    parser.add_argument("--jobs", nargs="+", default=list(JOBS), choices=list(JOBS))
    options = parser.parse_args()
    anew()
    ours, theirs = _cores()
    os.sched_setaffinity(0, theirs)  # what is started from here on has it too
    stack = Stack(
        free_ports_config(
            HOME.absolute() / "store", timestamps="world", conflict_map_size=1024, hbase_heap="3g", java_options=()
        )
    )
    found: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    try:
        stack.up(console.print)
        with OmidClient(stack) as omid:
            cells = Bare(stack).load(TABLE, options.rows)
            console.print(f"{cells / 1e6:.2f} M cells loaded; clients and HBase on core {theirs}, Spark on core {ours}")
            os.sched_setaffinity(0, ours)
            with _spark() as spark:
                _measure(stack, omid, spark, theirs, options, found)
    finally:
        stack.down()
    _print(found)
    content = [{"job": j, "rate": r, "phase": p, **figures} for (j, r, p), figures in found.items()]
    (HOME / "foreground.json").write_text(json.dumps(content, indent=2))
    return 0


def _cores() -> tuple[set[int], set[int]]:
    """A core for Spark, and another for HBase and its clients."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit(f"this needs two cores, and may use {cores}: run it where there are more")
    return {cores[1]}, {cores[0]}


def _measure(
    stack: Stack,
    omid: OmidClient,
    spark: SparkSession,
    cores: set[int],
    options: argparse.Namespace,
    found: dict[tuple[str, str, str], dict[str, list[float]]],
) -> None:
    config = _eager(_config(stack))
    store = Store(spark, load(config))
    rates = {"none": (), "rate": ("--rate", str(options.rate), "--write-rate", str(options.write_rate))}
    for number in range(options.rounds + 1):  # the first warms up, without a rate
        for job in options.jobs:
            for rate, given in rates.items():
                if number == 0 and given:
                    continue
                if job == "orphan_cleanup":
                    _leave_orphans(store, omid, options)
                log = HOME / "transactions.txt"
                log.unlink(missing_ok=True)
                with _clients(stack, cores, log, options):
                    _warm(log, options.clients)
                    time.sleep(options.idle)
                    alone_until = time.time()
                    summary = _run(job, config, given if job != "verify" else given[:2])
                    ended = time.time()
                if number == 0:
                    continue
                lines = [line.split() for line in log.read_text().splitlines()]
                alone = _felt(lines, alone_until - options.idle, alone_until)
                for phase, begin, end in _phases(job, summary, ended):
                    of = found[job, rate, phase]
                    felt = _felt(lines, begin, end)
                    for name in FIGURES:
                        of[name].append(felt.figure(name) / alone.figure(name))
                        of[f"{name} alone"].append(alone.figure(name))
                    of["seconds"].append(end - begin)
                    last = ", ".join(f"{name} {of[name][-1]:.2f}" for name in FIGURES)
                    console.print(
                        f"  round {number}, {job}, {rate}, {phase}: {end - begin:.1f} s, "
                        f"{summary['pace'].get('waited', '')}; {last}; "
                        f"alone {alone.figure('throughput'):.0f}/s, p99 {alone.figure('p99'):.1f} ms"
                    )


def _eager(path: Path) -> Path:
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    content["defaults"] |= {
        "history_max_age": "0s",
        "min_history_age": "0s",
        "read": "rpc",
        "budget": {"share": 1.0},
    }
    path.write_text(yaml.safe_dump(content))
    return path


def _leave_orphans(store: Store, omid: OmidClient, options: argparse.Namespace) -> None:
    """Cells of a transaction that never committed, spread over the table."""
    start, every = omid.begin(), max(1, options.rows // options.orphans)
    rows = store.spark.range(min(options.orphans, options.rows))
    store.write(
        rows.select(
            F.lit("put").alias("op"),
            F.lit("orphans").alias("region"),
            F.concat(F.lit("user"), F.lpad((F.col("id") * every).cast("string"), 12, "0")).cast("binary").alias("row"),
            F.lit(FAMILY.encode()).alias("family"),
            F.lit(b"orphan").alias("qualifier"),
            F.lit(start).alias("timestamp"),
            F.lit(b"v").alias("value"),
        ),
        TABLE,
    )
    omid.advance_watermark()


@contextmanager
def _clients(stack: Stack, cores: set[int], log: Path, options: argparse.Namespace) -> Iterator[None]:
    arguments = (stack.oracle, TABLE, str(options.rows), str(options.clients), str(log))
    command = stack.java_command(str(SOURCE), *arguments, heap="512m", log="foreground")
    with (stack.logs / "foreground.out").open("ab") as errors:
        clients = subprocess.Popen(
            ["taskset", "-c", ",".join(map(str, cores)), *command], stdin=subprocess.PIPE, stdout=errors, stderr=errors
        )
        try:
            yield
        finally:
            assert clients.stdin is not None
            clients.stdin.close()
            if clients.wait(60):
                sys.exit(f"the clients ended badly: {stack.logs / 'foreground.out'}")


def _warm(log: Path, clients: int) -> None:
    """Wait until the clients' Java has started, and each has had some transactions."""
    deadline = time.monotonic() + 60
    while not log.exists() or log.read_text().count("\n") < 50 * clients:
        if time.monotonic() > deadline:
            sys.exit(f"the clients have hardly begun after a minute: {log}")
        time.sleep(0.2)


def _run(job: str, config: Path, given: Sequence[str]) -> dict[str, Any]:
    body, arguments = JOBS[job]
    file = HOME / "summary.json"
    argv = ["--config", str(config), "--summary", str(file), *arguments, *given]
    code = run_job(job, body, argv, read_only=job == "verify")
    summary: dict[str, Any] = json.loads(file.read_text())
    if code:
        console.print(f"{job} ended with {code}: {summary['problems']} {[t['problems'] for t in summary['tables']]}")
    return summary


def _phases(job: str, summary: dict[str, Any], ended: float) -> Iterator[tuple[str, float, float]]:
    """What is told apart of a run, and when it began and ended (s since 1970)."""
    begin = summary["started"] / 1000
    if job == "orphan_cleanup":
        found = begin + sum(summary["phases"].get(name, 0.0) for name in ("start", *FINDING))
        yield "find", begin, found
        yield "act", found, ended
    else:
        yield "all", begin, ended


def _felt(lines: Sequence[Sequence[str]], begin: float, end: float) -> Felt:
    times = sorted(float(line[2]) / 1e6 for line in lines if begin <= float(line[1]) / 1000 < end)
    if not times:
        sys.exit(f"no transaction began within {end - begin:.1f} s")
    return Felt(times, end - begin)


def _print(found: dict[tuple[str, str, str], dict[str, list[float]]]) -> None:
    grid = Table(title="What clients felt, over the same without a job (medians)", title_justify="left")
    for column in ("job", "phase", "rate", *FIGURES, "seconds", "p99 alone, ms"):
        grid.add_column(column, justify="left" if column in {"job", "phase", "rate"} else "right")
    for (job, rate, phase), figures in sorted(
        found.items(), key=lambda item: (list(JOBS).index(item[0][0]), item[0][2])
    ):
        numbers = [statistics.median(figures[name]) for name in FIGURES]
        seconds, alone = statistics.median(figures["seconds"]), statistics.median(figures["p99 alone"])
        grid.add_row(job, phase, rate, *(f"{n:.2f}" for n in numbers), f"{seconds:.1f}", f"{alone:.1f}")
    console.print(grid)


if __name__ == "__main__":
    sys.exit(main())
