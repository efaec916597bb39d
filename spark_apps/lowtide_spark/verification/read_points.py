"""V6: what readers see as of some timestamps, written down or held against what was written."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.verification.findings import Verification
from lowtide.verification.read_points import AFTER_COMMITS, differences, read_points
from lowtide.verification.records import Records, history_mark
from lowtide_spark.run.context import Run
from lowtide_spark.verification.look import Look
from lowtide_spark.verification.rawcells import pairs
from lowtide_spark.verification.tables import Table, commits_and_marks, raw_cells, transactional


def compare(run: Run, found: Verification, tables: Sequence[Table], records: Records, look: Look) -> None:
    """Hold what read points show against what was written of them; and see what others show."""
    if not tables:
        found.unseen.append("there is no table to read")
        return
    earlier: dict[str, dict[str, Any]] = look.earlier.get("tables", {})
    names = {t.name for t in tables}
    found.unseen += [f"table {t} was read before and cannot be read now" for t in earlier if t not in names]
    again, fresh = {}, {}
    proofs_of = _commits(run, found, tables)
    for table in tables:
        cells, mark = raw_cells(run, table).where(transactional(table)), history_mark(records, table.name)
        compared = [int(p) for p in earlier.get(table.name, {})]
        readable = [p for p in compared if p > mark]
        if len(readable) < len(compared):
            found.notes.append(
                f"{table.name}: {len(compared) - len(readable)} read points lie at or below its history mark, {mark}, "
                "by now: left out"
            )
        drawn: list[int] = []
        if look.writes:
            seed = f"{run.request.run}/{table.name}"
            some = _some_commits(_committed(cells, proofs_of), mark, found.low_watermark, seed)
            drawn = read_points(mark, found.low_watermark, seed, some)
        if readable or drawn:
            shown = _show(cells, proofs_of, sorted({*readable, *drawn}))
            again[table.name] = {str(p): shown[str(p)] for p in readable}
            fresh[table.name] = {str(p): shown[str(p)] for p in drawn}
    proofs_of.unpersist()
    look.seen["tables"] = fresh
    found.violations += differences(earlier, again)
    if earlier and not any(again.values()):
        found.unseen.append("no read point of the file can be compared any more")


def _commits(run: Run, found: Verification, tables: Sequence[Table]) -> DataFrame:
    """``start_ts, tc`` of transactions with a cell that lacks its shadow cell.

    By entry, journal, or a shadow cell elsewhere; kept until it is let go of.
    """
    start = F.col("start_ts")
    lacks = F.col("data") & F.col("shadow").isNull()
    one = [
        pairs(raw_cells(run, t))
        .where(start <= found.low_watermark)
        .groupBy("start_ts")
        .agg(
            F.max(lacks & transactional(t)).alias("lacks"),
            F.max(F.when(F.col("shadow") > F.col("timestamp"), F.col("shadow"))).alias("high"),
        )
        for t in tables
    ]
    rows = reduce(DataFrame.unionByName, one).unionByName(commits_and_marks(run, found), allowMissingColumns=True)
    known = rows.groupBy("start_ts").agg(*(F.max(c).alias(c) for c in ("lacks", "high", "entry", "mark", "pruned")))
    entry = F.when(~F.coalesce("mark", F.lit(False)), F.col("entry"))
    tc = F.coalesce("high", "pruned", entry).alias("tc")
    return known.where("lacks").select("start_ts", tc).where("tc is not null").persist()


def _committed(cells: DataFrame, commits: DataFrame) -> DataFrame:
    """The data cells among raw *cells* that some commit timestamp ``tc`` is known of."""
    of_cells = pairs(cells).where("data").join(commits, "start_ts", "left")
    return of_cells.withColumn("tc", F.coalesce("shadow", "tc")).where("tc is not null")


def _some_commits(committed: DataFrame, mark: int, watermark: int, seed: str) -> list[int]:
    """Some commit timestamps in [mark, watermark) of *committed* cells, the same for the same seed."""
    draws = [F.min_by("tc", F.xxhash64("tc", F.lit(f"{seed}/{i}"))).alias(f"tc{i}") for i in range(AFTER_COMMITS)]
    between = (F.col("tc") >= mark) & (F.col("tc") < watermark)
    (drawn,) = committed.where(between).agg(*draws).collect()
    return [tc for tc in drawn if tc is not None]


def _show(cells: DataFrame, commits: DataFrame, points: Sequence[int]) -> dict[str, dict[str, Any]]:
    """How many cells each read point shows, and a hash of them that no order changes.

    As Omid's client reads: of a column the version that began last among those committed before the read point;
    nothing where that is a tombstone, or where a family tombstone that it sees was committed at or after the
    version's timestamp.
    """
    stamp, qualifier = F.col("timestamp"), F.col("qualifier")
    committed = _committed(cells, commits)
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
