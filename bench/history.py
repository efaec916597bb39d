"""``python -m bench.history``: history GC, its planner and reads as of a snapshot, as ratios.

Same store, same sides and same rounds as ``python -m bench``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml
from lowtide_spark import ancient
from lowtide_spark.history import collect_history
from lowtide_spark.job import run_job
from lowtide_spark.orphans import clean
from lowtide_spark.store import Source, Store
from lowtide_spark.watermarks import collect
from pyspark.sql import SparkSession

from bench.__main__ import HOME, Ratio, _config, _print, _spark, _store, _timed, _turns, console
from bench.bare import COLUMNS, Bare
from lowtide.config import load
from lowtide.workload import OmidClient

TABLE = "benchhistory"


def main() -> int:
    """Run all, print a table, keep the numbers in ``.lowtide/bench/history.json``."""
    parser = argparse.ArgumentParser(prog="bench.history")
    parser.add_argument("--rows", type=int, default=100_000, help="of the table; each has 5 columns with shadow cells")
    parser.add_argument("--versions", type=int, default=10, help="of each cell")
    parser.add_argument("--rounds", type=int, default=5, help="warm runs counted on each side")
    options = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(parents=True)
    with _store() as stack, OmidClient(stack) as omid, _spark() as spark:
        config = _eager(_config(stack))
        bare = Bare(stack)
        cells = bare.history(TABLE, options.rows, options.versions)
        console.print(f"{cells / 1e6:.1f} M cells loaded")
        watermark = omid.advance_watermark()
        connector = Store(spark, load(config))
        ratios = [_examined(connector, bare, watermark, options.rounds)]
        ratios += [_as_of(spark, connector, omid, watermark, options)]
        _job("orphan_cleanup", config)
        _job("watermark_collection", config)
        ratios += _removed(config)
    _print(ratios)
    (HOME / "history.json").write_text(json.dumps([{**r.__dict__, "ratio": r.value} for r in ratios], indent=2))
    return 0


def _eager(path: Path) -> Path:
    content: dict[str, Any] = yaml.safe_load(path.read_text())
    content["defaults"] |= {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}
    path.write_text(yaml.safe_dump(content))
    return path


def _job(name: str, config: Path, *arguments: str) -> dict[str, Any]:
    body = {"orphan_cleanup": clean, "watermark_collection": collect, "history_gc": collect_history}[name]
    summary = HOME / "summary.json"
    if run_job(name, body, ["--config", str(config), "--execute", "--summary", str(summary), *arguments]):
        sys.exit(f"{name} failed")
    result: dict[str, Any] = json.loads(summary.read_text())
    return result


def _examined(connector: Store, bare: Bare, mark: int, rounds: int) -> Ratio:
    """Cells a second of finding what was replaced before the mark, where little was, over a bare loop that only counts the same cells.

    The mark is that of a table whose history was removed yesterday: nearly all that is read stays.
    """
    ratio = Ratio(
        "history: cells/s of finding what goes, against a bare loop over the same snapshot", ">= 0.7", unit="cells/s"
    )
    first = 10**17

    def find(source: Source) -> None:
        frame = connector._read("versions", TABLE, traces="true", **source.options())
        frame.where(ancient.wanted(first, first)).drop("replaced_ts").write.format("noop").mode("overwrite").save()

    assert mark > first
    with connector.snapshot(TABLE, "bench", sweep=True) as source:
        _turns(ratio, lambda: find(source), lambda n: bare.loop("snapshot", TABLE, n), rounds)
    return ratio


def _as_of(
    spark: SparkSession, connector: Store, omid: OmidClient, snapshot: int, options: argparse.Namespace
) -> Ratio:
    """Reading a snapshot through the data source and through Omid's own client, in cells shown a second."""
    ratio = Ratio("as of a snapshot: cells/s against Omid's client", ">= 5", unit="cells/s")
    shown = options.rows * COLUMNS

    def read() -> None:
        reader = spark.read.format("lowtide").options(**connector._options).option("table", TABLE)
        frame = reader.option("asOf", str(snapshot)).load()
        frame.select("row", "family", "qualifier", "value").write.format("noop").mode("overwrite").save()

    read()
    for number in range(options.rounds):
        ratio.theirs.append(shown / _timed(lambda: omid.count(TABLE, snapshot)))
        ratio.ours.append(shown / _timed(read))
        console.print(
            f"  round {number + 1}: {ratio.ours[-1] / 1e6:.2f} M cells/s against {ratio.theirs[-1] / 1e6:.2f}"
        )
    return ratio


def _removed(config: Path) -> list[Ratio]:
    """One real run with compactions that pay: markers a removed version, and bytes rewritten for each byte given back."""
    done = _job("history_gc", config, "--table", TABLE, "--compact")
    report = next(t for t in done["tables"] if t["table"] == TABLE)
    markers = Ratio("history: mutations for each version removed", "< 0.3", unit="mutations")
    markers.ours.append(report["counts"]["markers"])
    markers.theirs.append(report["counts"]["deleted"])
    rewritten = Ratio(
        "history: bytes rewritten for each byte given back, by the compactions that pay", "printed", unit="bytes"
    )
    regions = [r for r in report["by_region"] if "bytes_after" in r]
    rewritten.ours.append(sum(r["bytes_after"] for r in regions))
    rewritten.theirs.append(sum(r["bytes_before"] - r["bytes_after"] for r in regions) or 1)
    rewritten.note = f"{len(regions)} regions compacted; {done['seconds']:.0f} s for the whole run"
    return [markers, rewritten]


if __name__ == "__main__":
    sys.exit(main())
