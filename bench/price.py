"""``python -m bench.price``: what the gate before pruning costs, of the pruning and of the whole cleanup with it.

Same store as ``python -m bench``. The gate books its time as a phase of its own, so that one run gives both sides: with
it, and without its seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from lowtide_spark.cleaning.orphans import clean
from lowtide_spark.cleaning.pruning import prune
from lowtide_spark.cleaning.watermarks import collect
from lowtide_spark.frames import omid as omid_rows
from lowtide_spark.frames.store import Store
from lowtide_spark.run.context import Run
from lowtide_spark.run.job import run_job
from pyspark.sql import functions as F

from bench.__main__ import HOME, TABLE, Ratio, _config, _print, _spark, _store, _work_seconds, anew, console
from bench.bare import Bare
from lowtide.config import load
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.values.formats import COMMIT_QUALIFIER

#: Of so many of the day's transactions one left its entry.
LEFT = 20


def main() -> int:
    """Run all, print a table, keep the numbers in ``.lowtide/bench/price.json``."""
    parser = argparse.ArgumentParser(prog="bench.price")
    parser.add_argument(
        "--rows", type=int, default=2_000_000, help="of the table; each has 5 columns with shadow cells"
    )
    parser.add_argument("--rounds", type=int, default=5, help="warm runs counted")
    options = parser.parse_args()
    anew()
    ratios: list[Ratio] = []
    journal = Ratio("bytes of a journal row against one of the commit table", "printed", unit="B")
    with _store() as stack, OmidClient(stack) as omid, _spark() as spark:
        config = _config(stack)
        bare = Bare(stack)
        cells = bare.load(TABLE, options.rows)
        edge, day = omid.begin(), options.rows // 50
        bare.day(TABLE, options.rows, day, edge)
        console.print(f"{cells / 1e6:.1f} M cells loaded, and a day of {day * 10 / 1e6:.2f} M")
        omid.advance_watermark()
        connector = Store(spark, load(config))
        _job("orphan_cleanup", clean, config, "--full", "--budget-share", "1")
        for note in ("the day in its own store files", "after a major compaction"):
            whole = Ratio(f"cleanup and pruning with the gate against without, {note}", "printed")
            pruning = Ratio(f"the pruning alone, {note}", "printed")
            for number in range(options.rounds + 1):  # the first warms up
                _leave_entries(connector, omid, edge, day)
                cleaned = _work_seconds(_job("orphan_cleanup", clean, config, "--full", "--budget-share", "1"))
                _job("watermark_collection", collect, config)
                pruned = _job("commit_table_pruning", prune, config, "--grace", "0s")
                seconds, gate = _work_seconds(pruned), pruned["phases"]["gate"]
                console.print(f"  pruned {pruned['totals']['pruned']} in {seconds:.1f} s, of them the gate {gate:.1f}")
                if number:
                    pruning.ours.append(seconds), pruning.theirs.append(seconds - gate)
                    whole.ours.append(cleaned + seconds), whole.theirs.append(cleaned + seconds - gate)
            ratios += [whole, pruning]
            if not journal.theirs:
                _leave_entries(connector, omid, edge, day)
                sides = (
                    (journal.ours, connector.config.state.journal_table),
                    (journal.theirs, connector.config.omid.commit_table),
                )
                for side, table in sides:
                    side.append(_bytes(stack, omid, table) / (day // LEFT))
            if note.startswith("the day"):
                omid.compact(TABLE, major=True)
    _print([*ratios, journal])
    (HOME / "price.json").write_text(
        json.dumps([{**r.__dict__, "ratio": r.value} for r in [*ratios, journal]], indent=2)
    )
    return 0


def _bytes(stack: Stack, omid: OmidClient, table: str) -> int:
    """What a table takes on disk, compacted."""
    omid.flush(table)
    omid.compact(table, major=True)
    root = Path(urlparse(stack.hbase_properties()["hbase.rootdir"]).path)
    regions = (root / "data" / "default" / table).glob("[!.]*/[!.]*/[!.]*")
    return sum(file.stat().st_size for file in regions if file.is_file() and file.parent.name != "recovered.edits")


def _leave_entries(connector: Store, omid: OmidClient, edge: int, day: int) -> None:
    """Commit entries of some of the day's transactions, as clients leave them that lost the oracle; each began 100
    after the one before.
    """
    table = connector.config.omid.commit_table
    omid.flush(table)  # and the compaction takes the delete markers of the round before, behind which nothing shows
    omid.compact(table, major=True)
    start = F.col("id") * 100 * LEFT + edge
    connector.write(
        connector.spark.range(day // LEFT)
        .withColumn("timestamp", start)
        .select(
            F.lit("put").alias("op"),
            F.lit("entries").alias("region"),
            omid_rows.commit_key(F.col("timestamp")).alias("row"),
            F.lit(connector.config.omid.commit_family.encode()).alias("family"),
            F.lit(COMMIT_QUALIFIER).alias("qualifier"),
            "timestamp",
            F.lit(bytes([50])).alias("value"),
        ),
        table,
    )


def _job(name: str, body: Callable[[Run], None], config: Path, *arguments: str) -> dict[str, Any]:
    summary = HOME / "summary.json"
    code = run_job(name, body, ["--config", str(config), "--execute", "--summary", str(summary), *arguments])
    result: dict[str, Any] = json.loads(summary.read_text())
    if code:
        sys.exit(f"{name} failed: {result['problems']} {[t['problems'] for t in result['tables']]}")
    return result


if __name__ == "__main__":
    sys.exit(main())
