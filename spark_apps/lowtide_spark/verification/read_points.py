"""V6: what readers see as of some timestamps, written down or held against what was written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.verification.findings import Verification
from lowtide.verification.read_points import differences, read_points
from lowtide.verification.records import Records, history_mark
from lowtide_spark.run.context import Run
from lowtide_spark.verification.rawcells import pairs
from lowtide_spark.verification.tables import Table, commits_and_marks, raw_cells


def compare(run: Run, found: Verification, tables: Sequence[Table], records: Records) -> None:
    """V6: write what the read points show, or hold it against what was written."""
    if not tables:
        found.unseen.append("there is no table to read")
        return
    if run.options.after is not None:
        before = json.loads(run.options.after.read_text("utf-8"))["tables"]
        wanted = {table: [int(p) for p in points] for table, points in before.items()}
    else:
        wanted = {
            t.name: read_points(history_mark(records, t.name), found.low_watermark, f"{run.request.run}/{t.name}")
            for t in tables
        }
    shown = {}
    by_name = {t.name: t for t in tables}
    proofs_of = _commits(run, found, tables)
    for table, points in wanted.items():
        if table not in by_name:
            found.unseen.append(f"table {table} was read before and cannot be read now")
            continue
        mark = history_mark(records, table)
        readable = [p for p in points if p > mark]
        if len(readable) < len(points):
            found.notes.append(
                f"{table}: {len(points) - len(readable)} read points lie at or below its history mark, {mark}, by now: "
                "left out"
            )
        if readable:
            shown[table] = _show(raw_cells(run, by_name[table]), proofs_of, readable)
    proofs_of.unpersist()
    if run.options.before is not None:
        text = json.dumps({"run": run.request.run, "low_watermark": found.low_watermark, "tables": shown}, indent=2)
        run.options.before.write_text(text + "\n", "utf-8")
    if run.options.after is not None:
        found.violations += differences(before, shown)
        if wanted and not any(shown.values()):
            found.unseen.append("no read point of the file can be compared any more")


def _commits(run: Run, found: Verification, tables: Sequence[Table]) -> DataFrame:
    """``start_ts, tc`` of transactions with a cell that lacks its shadow cell.

    By entry, journal, or a shadow cell elsewhere; kept until it is let go of.
    """
    start = F.col("start_ts")
    cells = [pairs(raw_cells(run, t)).where(start <= found.low_watermark) for t in tables]
    lacks = F.col("data") & F.col("shadow").isNull()
    one = [
        c.groupBy("start_ts").agg(
            F.max(lacks).alias("lacks"),
            F.max(F.when(F.col("shadow") > F.col("timestamp"), F.col("shadow"))).alias("high"),
        )
        for c in cells
    ]
    rows = reduce(DataFrame.unionByName, one).unionByName(commits_and_marks(run), allowMissingColumns=True)
    known = rows.groupBy("start_ts").agg(*(F.max(c).alias(c) for c in ("lacks", "high", "entry", "mark", "pruned")))
    entry = F.when(~F.coalesce("mark", F.lit(False)), F.col("entry"))
    tc = F.coalesce("high", "pruned", entry).alias("tc")
    return known.where("lacks").select("start_ts", tc).where("tc is not null").persist()


def _show(cells: DataFrame, commits: DataFrame, points: Sequence[int]) -> dict[str, dict[str, Any]]:
    """How many cells each read point shows, and a hash of them that no order changes.

    As Omid's client reads: of a column the version that began last among those committed before the read point;
    nothing where that is a tombstone, or where a family tombstone that it sees was committed at or after the
    version's timestamp.
    """
    stamp, qualifier = F.col("timestamp"), F.col("qualifier")
    committed = (
        pairs(cells)
        .where("data")
        .join(commits, "start_ts", "left")
        .withColumn("tc", F.coalesce("shadow", "tc"))
        .where("tc is not null")
    )
    of_family = F.col("tombstone") & (F.length(qualifier) == 0)
    version = F.struct("timestamp", "tombstone", "hash")
    columns = committed.groupBy("row", "family", "qualifier").agg(
        *(
            F.max_by(version, F.when(~of_family & (F.col("tc") < p), stamp)).alias(f"v{i}")
            for i, p in enumerate(points)
        ),
        *(F.max_by("tc", F.when(of_family & (F.col("tc") < p), stamp)).alias(f"f{i}") for i, p in enumerate(points)),
    )
    hidden = columns.groupBy("row", "family").agg(*(F.max(f"f{i}").alias(f"h{i}") for i in range(len(points))))
    joined = columns.drop(*(f"f{i}" for i in range(len(points)))).join(hidden, ["row", "family"])
    figures = []
    for i in range(len(points)):
        shown_here = F.col(f"v{i}.timestamp").isNotNull() & ~F.col(f"v{i}.tombstone")
        shown_here &= F.coalesce(F.col(f"h{i}") < F.col(f"v{i}.timestamp"), F.lit(True))
        digest = F.xxhash64("row", "family", "qualifier", f"v{i}.timestamp", f"v{i}.hash")
        figures += [
            F.count_if(shown_here).alias(f"n{i}"),
            F.sum(F.when(shown_here, digest).cast("decimal(38,0)")).alias(f"d{i}"),
        ]
    (total,) = joined.agg(*figures).collect()
    return {str(p): {"cells": total[f"n{i}"], "hash": str(total[f"d{i}"] or 0)} for i, p in enumerate(points)}
