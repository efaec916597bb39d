"""``python -m bench.history``: history GC, its planner and reads at a read point, as ratios.

Same store, same sides and same rounds as ``python -m bench``.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from lowtide_spark.cleaning.orphans import clean
from lowtide_spark.cleaning.watermarks import collect
from lowtide_spark.frames.store import Source, Store
from lowtide_spark.history import superseded
from lowtide_spark.history.collection import collect_history
from lowtide_spark.run.job import run_job
from pyspark.sql import SparkSession

from bench.__main__ import HOME, Ratio, _config, _print, _spark, _store, _timed, _turns, anew, console
from bench.bare import COLUMNS, FAMILY, Bare
from lowtide.config import load
from lowtide.lab.workload import OmidClient

TABLE = "benchhistory"
#: A table that was written once: nothing lies between a reader and what it is shown.
ONCE = "benchonce"
#: How many times as fast as Omid's client a read is to be, with a million rows.
GOALS = {(ONCE, "snapshot"): 8, (ONCE, "rpc"): 4, (TABLE, "snapshot"): 5, (TABLE, "rpc"): 2}


def main() -> int:
    """Run all, print a table, keep the numbers in ``.lowtide/bench/history.json``."""
    parser = argparse.ArgumentParser(prog="bench.history")
    parser.add_argument("--rows", type=int, default=100_000, help="of the table; each has 5 columns with shadow cells")
    parser.add_argument("--versions", type=int, default=10, help="of each cell")
    parser.add_argument("--rounds", type=int, default=5, help="warm runs counted on each side")
    options = parser.parse_args()
    anew()
    with _store() as stack, OmidClient(stack) as omid, _spark() as spark:
        config = _eager(_config(stack))
        bare = Bare(stack)
        cells = bare.history(TABLE, options.rows, options.versions)
        once = options.rows * options.versions // 2
        cells += bare.history(ONCE, once, 1)
        console.print(f"{cells / 1e6:.1f} M cells loaded")
        watermark = omid.advance_watermark()
        connector = Store(spark, load(config))
        ratios = [_examined(connector, bare, watermark, options.rounds)]
        for table, rows in ((TABLE, options.rows), (ONCE, once)):
            ratios += _as_of(spark, connector, omid, watermark, table, rows, options.rounds)
        _job("orphan_cleanup", config)
        _job("watermark_collection", config)
        ratios += _removed(connector, config)
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
    """Cells a second of finding what was replaced before the mark, where little was, over a bare loop that only counts
    the same cells.

    The mark is that of a table whose history was removed yesterday: nearly all that is read stays.
    """
    ratio = Ratio(
        "history: cells/s of finding what goes, against a bare loop over the same HBase snapshot",
        ">= 0.7",
        unit="cells/s",
    )
    first = 10**17

    def find(source: Source) -> None:
        frame = connector._read("versions", TABLE, traces="true", **source.options())
        frame.where(superseded.wanted(first, first)).drop("replaced_ts").write.format("noop").mode("overwrite").save()

    assert mark > first
    with connector.snapshot(TABLE, "bench", sweep=True) as source:
        _turns(ratio, lambda: find(source), lambda n: bare.loop("snapshot", TABLE, n), rounds)
    return ratio


def _as_of(
    spark: SparkSession, connector: Store, omid: OmidClient, snapshot: int, table: str, rows: int, rounds: int
) -> list[Ratio]:
    """Reading at a read point through the data source, from files and from the region servers, and through Omid's own
    client: cells shown a second.

    Of a table with much history the data source reads all of it, while the client stops at the first version that it
    sees. From files: the HBase snapshot that the read makes is part of its time.
    """
    shown = rows * COLUMNS
    ratios = {
        way: Ratio(
            f"at a read point of {table}, read = {way}: cells/s against Omid's client",
            f">= {GOALS[table, way]}",
            unit="cells/s",
        )
        for way in ("snapshot", "rpc")
    }

    def read(way: str, where: str = "true") -> None:
        reader = spark.read.format("lowtide").options(**connector._options).option("table", table)
        frame = reader.option("asOf", str(snapshot)).option("read", way).load()
        frame = frame.where(where).select("row", "family", "qualifier", "value")
        frame.write.format("noop").mode("overwrite").save()

    for way in ratios:
        read(way)
    for number in range(rounds):
        theirs = shown / _timed(lambda: omid.count(table, snapshot))
        for way, ratio in ratios.items():
            ratio.theirs.append(theirs)
            ratio.ours.append(shown / _timed(partial(read, way)))
        speeds = ", ".join(f"{way} {ratio.ours[-1] / 1e6:.2f}" for way, ratio in ratios.items())
        console.print(f"  round {number + 1}: {speeds} M cells/s against {theirs / 1e6:.2f}")
    for way, ratio in ratios.items():
        nothing = _timed(partial(read, way, "row = X'00'"))
        ratio.note = f"{nothing:.2f} s of each read are its beginning and its end"
    return list(ratios.values())


def _removed(connector: Store, config: Path) -> list[Ratio]:
    """One real run with compactions that pay: markers a removed version, and bytes rewritten for each byte given back.

    The other side of the second is a plain major compaction of everything: the regions that did not pay are compacted
    afterwards.
    """
    done = _job("history_gc", config, "--table", TABLE, "--compact")
    report = next(t for t in done["tables"] if t["table"] == TABLE)
    markers = Ratio("history: mutations for each version removed", "< 0.3", unit="mutations")
    markers.ours.append(report["counts"]["markers"])
    markers.theirs.append(report["counts"]["deleted"])
    rewritten = Ratio(
        "history: bytes rewritten for each byte given back, the compactions that pay against all", "< 1", unit="bytes"
    )
    paid = {r["region"]: (r["bytes_before"], r["bytes_after"]) for r in report["by_region"] if "bytes_after" in r}
    others = {r.name: [FAMILY] for r in connector.regions(TABLE) if r.name not in paid}
    everything = {**paid, **connector.compact_regions(TABLE, others)}
    rewritten.ours.append(_rewritten(paid.values()))
    rewritten.theirs.append(_rewritten(everything.values()))
    rewritten.note = f"{len(paid)} of {len(everything)} regions compacted; {done['seconds']:.0f} s for the whole run"
    return [markers, rewritten]


def _rewritten(compacted: Iterable[tuple[int, int]]) -> float:
    """Bytes written for each byte given back."""
    pairs = list(compacted)
    return sum(after for _, after in pairs) / sum(before - after for before, after in pairs)


if __name__ == "__main__":
    sys.exit(main())
