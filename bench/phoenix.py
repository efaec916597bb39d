"""``python -m bench.phoenix``: what becomes of Phoenix's transactional tables as shipped, with Omid's compactor, and
with Lowtide.

The same seeded workload is run four times through the real Phoenix client, its clients stopped at each point of the
commit and killed in it. Then every table is flushed and major-compacted: as shipped, with Omid's own compactor
attached, or after Lowtide's jobs through
``spark-submit``, without and with history GC. What is left is counted over the raw tables, and every answer of SQL
compared with the model.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml
from rich.console import Console
from rich.table import Table

from lowtide.config import load
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.lab.workload.phoenix import DDL, PhoenixWorkload, drop_tables
from lowtide.lab.workload.sql import PhoenixClient
from lowtide.run.submit import command, environment
from lowtide.values.formats import SHADOW_PREFIX, SHADOW_SUFFIX, base, shadow_qualifier

HOME = Path(".lowtide/bench-phoenix")
WAYS = ("as shipped", "with Omid's compactor", "with Lowtide", "and its history GC")
#: What Lowtide runs; the last only where history goes too.
JOBS = (("orphan_cleanup", "--full"), ("commit_table_pruning", "--grace", "0s"), ("history_gc",))
console = Console(width=120)


@dataclass
class Result:
    """One way: before and after, counted over the raw tables; *wrong* are answers of SQL that are not the model's."""

    way: str
    transactions: int
    unproved_before: int
    unproved_after: int
    rows_before: int
    rows_after: int
    answers: int
    wrong: int
    rows_lost: int
    examples: list[str]


def main() -> int:
    """Run all ways and print the comparison."""
    parser = argparse.ArgumentParser(prog="python -m bench.phoenix", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--transactions", type=int, default=300)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--json", type=Path, default=HOME / "results.json")
    options = parser.parse_args()
    shutil.rmtree(HOME, ignore_errors=True)
    stack = Stack(
        free_ports_config(HOME / "store", phoenix=True, timestamps="world", conflict_map_size=64, java_options=())
    )
    results = []
    try:
        stack.up(console.print)
        with OmidClient(stack) as omid:
            for way in WAYS:
                console.print(f"{way}: {options.transactions} transactions, {options.kills} kills, seed {options.seed}")
                results.append(_run(stack, omid, way, options))
    finally:
        stack.down()
    options.json.write_text(json.dumps([asdict(r) for r in results], indent=2) + "\n")
    _print(results)
    return int(results[-1].wrong > 0 or results[-1].unproved_after > 0)


def _run(stack: Stack, omid: OmidClient, way: str, options: argparse.Namespace) -> Result:
    client = PhoenixClient(stack)
    drop_tables(client)
    for statement in DDL:
        client.execute(statement)
    work = PhoenixWorkload(stack, client, random.Random(options.seed))
    try:
        work.run(options.transactions, options.kills)
        physical = [t for t in omid.tables() if t.startswith(("PX_", "_IDX_PX_"))]
        watermark = omid.advance_watermark()
        before = _unproved(omid, physical, watermark), _settled(omid, watermark)
        if way in WAYS[2:]:
            _lowtide(stack, JOBS if way == WAYS[3] else JOBS[:2])
        for table in physical:
            if way == WAYS[1]:
                omid.attach_omid_compactor(table)
            omid.flush(table)
            omid.compact(table, major=True)
        after = _unproved(omid, physical, watermark), _settled(omid, watermark)
        wrong = work.differences(collected=True)
        lost = sum(max(0, len(rows) - work.count(table)) for table, rows in work.tables.items())
        answers = work.answers
    finally:
        work.client.close()
    return Result(
        way, options.transactions, before[0], after[0], before[1], after[1], answers, len(wrong), lost, wrong[:3]
    )


def _unproved(omid: OmidClient, tables: list[str], watermark: int) -> int:
    """Data cells at or below *watermark* without shadow cell."""
    number = 0
    for table in tables:
        cells = omid.raw(table)
        deleted = {c.key for c in cells if c.kind == "delete"}
        there = {c.key for c in cells if c.kind == "put" and c.key not in deleted}
        number += sum(
            base(ts) <= watermark
            and not (q.startswith(SHADOW_PREFIX) and q.endswith(SHADOW_SUFFIX))
            and (row, family, shadow_qualifier(q), ts) not in there
            for row, family, q, ts in there
        )
    return number


def _settled(omid: OmidClient, watermark: int) -> int:
    """Rows of the commit table at or below *watermark*."""
    return sum(start <= watermark for start in omid.commit_table())


def _lowtide(stack: Stack, jobs: Sequence[tuple[str, ...]]) -> None:
    """The jobs as ``lowtide run`` submits them."""
    path = HOME / "lowtide.yaml"
    content = {
        "hbase": {
            "zookeeper_quorum": "127.0.0.1",
            "zookeeper_port": stack.config.zookeeper_port,
            "thrift": {"port": stack.config.thrift_port},
        },
        "omid": {"oracle": [f"127.0.0.1:{stack.config.tso_port}"]},
        "defaults": {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}},
    }
    path.write_text(yaml.safe_dump(content))
    for job, *arguments in jobs:
        given = ["--config", str(path), *arguments, "--execute"]
        subprocess.run(command(load(path), job, given), env=environment(), check=True, stderr=subprocess.DEVNULL)


def _print(results: list[Result]) -> None:
    grid = Table("", *(r.way for r in results))
    rows = {
        "cells without proof, before": "unproved_before",
        "and after": "unproved_after",
        "rows of the commit table, before": "rows_before",
        "and after ": "rows_after",
        "answers of SQL": "answers",
        "of these wrong": "wrong",
        "rows lost": "rows_lost",
    }
    for text, name in rows.items():
        grid.add_row(text, *(f"{getattr(r, name):,}" for r in results))
    console.print(grid)


if __name__ == "__main__":
    sys.exit(main())
