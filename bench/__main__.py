"""``make bench``: the connector and the cleanup job against bare Java loops and Omid's own compaction.

Medians of warm runs; the first of each side is thrown away. Sides take turns, so that a machine that slows down slows
both.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from lowtide_spark.cleaning.orphans import clean
from lowtide_spark.frames import omid as omid_rows
from lowtide_spark.frames.store import LIVE, Source, Store
from lowtide_spark.run.job import run_job
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from bench.bare import Bare
from lowtide.config import Config, load
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.run.submit import job_conf
from lowtide.values.formats import INVALID_QUALIFIER

HOME = Path(".lowtide/bench")
TABLE = "bench"
SMALL = "benchsmall"
console = Console(width=110)


@dataclass
class Ratio:
    """One comparison: ours over theirs."""

    name: str
    goal: str
    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    unit: str = "s"
    note: str = ""

    @property
    def value(self) -> float:
        """Median over median."""
        return statistics.median(self.ours) / statistics.median(self.theirs)


def main() -> int:
    """Run all, print a table, keep the numbers in ``.lowtide/bench/ratios.json``."""
    parser = argparse.ArgumentParser(prog="bench")
    parser.add_argument(
        "--rows", type=int, default=2_000_000, help="of the large table; each has 5 columns with shadow cells"
    )
    parser.add_argument("--rounds", type=int, default=5, help="warm runs counted on each side")
    options = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    ratios: list[Ratio] = []
    with _store() as stack, OmidClient(stack) as omid, _spark() as spark:
        config = _config(stack)
        bare = Bare(stack)
        cells = bare.load(TABLE, options.rows)
        console.print(f"{cells / 1e6:.1f} M cells loaded")
        omid.advance_watermark()
        connector = Store(spark, load(config))
        for way in ("snapshot", "rpc"):
            ratios.append(_suspects(connector, bare, way, options.rounds))
            console.print(f"finding suspects over {way}: {ratios[-1].value:.2f}")
        ratios += _increment(bare, omid, config, options)
        ratios += _whole_job(stack, omid, bare, config, cells, options)
    _print(ratios)
    (HOME / "ratios.json").write_text(json.dumps([{**r.__dict__, "ratio": r.value} for r in ratios], indent=2))
    return 0


@contextmanager
def _store() -> Iterator[Stack]:
    stack = Stack(
        free_ports_config(
            HOME.absolute() / "store", timestamps="world", conflict_map_size=64, hbase_heap="3g", java_options=()
        )
    )
    stack.up(console.print)
    try:
        yield stack
    finally:
        stack.down()


@contextmanager
def _spark() -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[2]").appName("bench").config("spark.driver.memory", "4g")
    # Of each of a run's Spark jobs it is asked how long it ran: of thousands of tables there are thousands.
    builder = builder.config("spark.ui.retainedJobs", "100000")
    for name, value in job_conf(Config()).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


def _config(stack: Stack) -> Path:
    path = HOME / "lowtide.yaml"
    content: dict[str, Any] = {
        "hbase": {
            "zookeeper_quorum": "127.0.0.1",
            "zookeeper_port": stack.config.zookeeper_port,
            "thrift": {"port": stack.config.thrift_port},
            "properties": {"hbase.rootdir": stack.hbase_properties()["hbase.rootdir"]},
        },
        "omid": {"oracle": [f"127.0.0.1:{stack.config.tso_port}"]},
        "defaults": {"kind": "transactional", "read": "snapshot"},
        "ledger": {"grace": "0s", "allow_short_grace": True},  # what is repaired was loaded, by no client that lives
    }
    path.write_text(yaml.safe_dump(content))
    return path


def anew() -> None:
    """A place for a store of its own: nothing of another's is left, nor its sideline, which belongs to that one."""
    for name in ("store", ".lowtide"):
        shutil.rmtree(HOME / name, ignore_errors=True)
    HOME.mkdir(parents=True, exist_ok=True)


def _timed(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _suspects(connector: Store, bare: Bare, way: str, rounds: int) -> Ratio:
    """Cells a second of finding the suspects, over a bare loop that only counts the same cells with as many threads."""
    ratio = Ratio(
        f"suspects over {way}, cells/s against a bare loop", ">= 0.8" if way == "snapshot" else ">= 0.9", unit="cells/s"
    )

    def find(source: Source) -> None:
        frame = connector._read("versions", TABLE, endRows="true", **source.options())  # as the job reads
        frame.where(F.col("commit_ts").isNull()).select("row", "timestamp").write.format("noop").mode(
            "overwrite"
        ).save()

    if way == "snapshot":
        with connector.snapshot(TABLE, "bench", sweep=True) as source:
            _turns(ratio, lambda: find(source), lambda n: bare.loop(way, TABLE, n), rounds)
    else:
        _turns(ratio, lambda: find(LIVE), lambda n: bare.loop(way, TABLE, n), rounds)
    return ratio


def _turns(
    ratio: Ratio, ours: Callable[[], object], theirs: Callable[[int], tuple[int, list[float]]], rounds: int
) -> None:
    """Warm both up, then take turns; the bare loop's process warms itself up each time."""
    ours()
    for number in range(rounds):
        cells, seconds = theirs(2)
        ratio.theirs.append(cells / seconds[-1])
        ratio.ours.append(cells / _timed(ours))
        console.print(
            f"  round {number + 1}: {ratio.ours[-1] / 1e6:.2f} M cells/s against {ratio.theirs[-1] / 1e6:.2f}"
        )


def _clean(config: Path, table: str, *arguments: str) -> dict[str, Any]:
    summary = HOME / "summary.json"
    code = run_job(
        "orphan_cleanup", clean, ["--config", str(config), "--table", table, "--summary", str(summary), *arguments]
    )
    result: dict[str, Any] = json.loads(summary.read_text())
    if code:
        sys.exit(f"the job failed: {result['problems']} {[t['problems'] for t in result['tables']]}")
    return result


def _work_seconds(summary: dict[str, Any]) -> float:
    """The whole job, Spark's start aside."""
    return float(sum(seconds for phase, seconds in summary["phases"].items() if phase != "start"))


def _increment(bare: Bare, omid: OmidClient, config: Path, options: argparse.Namespace) -> list[Ratio]:
    """A day's increment in a table of a tenth of the history and in the whole one; again after a major compaction."""
    bare.load(SMALL, options.rows // 10)
    edge = omid.begin()
    day = options.rows // 50
    for table, rows in ((TABLE, options.rows), (SMALL, options.rows // 10)):
        bare.day(table, rows, day, edge)
    omid.advance_watermark()
    found = []
    for note in ("the day in its own store files", "after a major compaction"):
        ratio = Ratio(f"a day's increment, ten times the history, {note}", "<= 1.3" if "own" in note else "printed")
        for _ in range(options.rounds + 1):
            for table, side in ((TABLE, ratio.ours), (SMALL, ratio.theirs)):
                side.append(_timed(lambda table=table: _day(config, table, edge)))  # type: ignore[misc]
        ratio.ours.pop(0), ratio.theirs.pop(0)
        found.append(ratio)
        console.print(f"{ratio.name}: {ratio.value:.2f}")
        if note.startswith("the day"):
            for table in (TABLE, SMALL):
                omid.compact(table, major=True)
    return found


def _day(config: Path, table: str, edge: int) -> None:
    """The cells of the day, found as the job finds them: the dry run's reading, from the day's first timestamp on."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    connector = Store(spark, load(config))
    frame = connector._read("versions", table).where((F.col("commit_ts").isNull()) & (F.col("timestamp") >= edge))
    frame.select("row", "timestamp").write.format("noop").mode("overwrite").save()


def _whole_job(
    stack: Stack, omid: OmidClient, bare: Bare, config: Path, cells: int, options: argparse.Namespace
) -> list[Ratio]:
    """The whole cleanup job against Omid's own major compaction and a bare scan, and its act phase against a bare
    writer; each round on a fresh clone of the same table.
    """
    took = Ratio("whole cleanup job against Omid's major compaction", "<= 0.25")
    scanned = Ratio("the same against a bare loop over the same files, once", "<= 3")
    acted = Ratio("its act phase against the same mutations by a bare Java writer, guarded alike", "<= 2")
    wrote = Ratio("bytes written against the compaction", "<= 0.01", unit="bytes")
    fixed: list[float] = []
    phases: dict[str, list[float]] = defaultdict(list)
    omid.snapshot(TABLE, "bench-copy")
    for table in (TABLE, SMALL):  # the job would search them too for shadow cells, and the compaction does not
        omid.drop(table)
    for number in range(options.rounds + 1):  # the first warms up: classes, plans, file cache
        ours = f"benchours{number}"  # one that had a name before came back
        _unmark_all(omid, config)  # else only the first round would pay for its marks
        omid.clone("bench-copy", ours)
        _, scan = bare.loop("snapshot", ours, 2)
        done = _clean(config, ours, "--full", "--execute", "--budget-share", "1")
        idle = _work_seconds(_clean(config, ours, "--execute"))
        omid.drop(ours)
        _unmark_all(omid, config)
        omid.clone("bench-copy", f"benchbare{number}")
        mutations, writing = bare.act(f"benchbare{number}", TABLE, options.rows, load(config))
        omid.drop(f"benchbare{number}")
        assert mutations == done["totals"]["marked"] + done["totals"]["deleted"]
        omid.clone("bench-copy", "benchtheirs")
        omid.attach_omid_compactor("benchtheirs")
        compaction = _timed(lambda: omid.compact("benchtheirs", major=True))
        size = _bytes(stack, "benchtheirs")
        omid.drop("benchtheirs")
        console.print(
            f"  whole job {_work_seconds(done):.1f} s against {compaction:.1f}, a bare scan of {scan[-1]:.1f} and "
            f"a bare writer's {writing:.1f}; {done['phases']}, {done['totals']}"
        )
        if number:
            took.ours.append(_work_seconds(done)), took.theirs.append(compaction)
            scanned.ours.append(_work_seconds(done)), scanned.theirs.append(scan[-1])
            acted.ours.append(done["phases"]["act"]), acted.theirs.append(writing)
            wrote.ours.append(done["totals"]["bytes_written"]), wrote.theirs.append(size)
            fixed.append(idle)
            for name, seconds in done["phases"].items():
                phases[name].append(seconds)
    omid.delete_snapshot("bench-copy")
    start, whole = statistics.median(fixed), statistics.median(took.ours)
    took.note = f"fixed cost {start:.1f} s; {cells / max(whole - start, 0.1) / 1e6:.2f} M cells/s beyond it"
    kept = {
        "a cleanup": {name: statistics.median(seconds) for name, seconds in phases.items()},
        "a bare scan": {"scan": statistics.median(scanned.theirs)},
        "a bare writer": {"write": statistics.median(acted.theirs)},
        "Omid's compaction": {"compact": statistics.median(took.theirs)},
    }
    (HOME / "seconds.json").write_text(json.dumps(kept, indent=2))  # for bench.picture
    return [took, scanned, acted, wrote]


def _unmark_all(omid: OmidClient, config: Path) -> None:
    """Empty the commit table of the marks of the round before; it holds nothing else here."""
    spark = SparkSession.getActiveSession()
    assert spark is not None
    settings = load(config)
    connector, table = Store(spark, settings), settings.omid.commit_table
    cells = connector.cells(table, omid_rows.commit_ranges(0, 1 << 62))
    marks = cells.where(F.col("qualifier") == bytearray(INVALID_QUALIFIER))
    place = ("row", "family", "qualifier", "timestamp")
    connector.write(marks.select(F.lit("delete_version").alias("op"), F.lit("marks").alias("region"), *place), table)
    omid.flush(table)  # and the compaction takes the delete markers, behind which a new mark could not be read
    omid.compact(table, major=True)


def _bytes(stack: Stack, table: str) -> int:
    """What the compaction wrote: the table's own files, which the clone's links are not."""
    root = Path(stack.hbase_properties()["hbase.rootdir"].removeprefix("file://"))
    files = [p for p in (root / "data/default" / table).rglob("f/*") if p.is_file() and "=" not in p.name]
    return sum(p.stat().st_size for p in files)


def _print(ratios: list[Ratio]) -> None:
    grid = Table(title="Ratios, ours over theirs (medians)", title_justify="left")
    for column in ("what", "goal", "ratio", "ours", "theirs", "unit"):
        grid.add_column(column, justify="left" if column in {"what", "unit"} else "right")
    for r in ratios:
        grid.add_row(
            r.name,
            r.goal,
            f"{r.value:.3f}",
            f"{statistics.median(r.ours):,.1f}",
            f"{statistics.median(r.theirs):,.1f}",
            r.unit,
        )
    console.print(grid)
    for r in ratios:
        if r.note:
            console.print(f"{r.name}: {r.note}")


if __name__ == "__main__":
    sys.exit(main())
