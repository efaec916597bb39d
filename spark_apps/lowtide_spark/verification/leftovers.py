"""V4, before and after: where all is claimed to be clean since, a cell that nothing proved is gone.

By itself a cell that nothing proves may lie below a watermark: a paused client may have landed it late. One that was
there before that was claimed did not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.verification.findings import NAMED, Verification, Violation
from lowtide_spark.frames.local import few_rows
from lowtide_spark.frames.shown import in_whole_hex, is_short
from lowtide_spark.run.context import Run
from lowtide_spark.verification.look import Look
from lowtide_spark.verification.rawcells import pairs
from lowtide_spark.verification.tables import Table, raw_cells, with_claims

_KEPT = 1000


def compare(run: Run, found: Verification, tables: Sequence[Table], known: DataFrame, look: Look) -> None:
    """Name those that were seen before and are there; see some that nothing proves and nothing claims to be gone.

    Args:
        run: the run.
        found: takes violations.
        tables: as they are read.
        known: of transactions ``start_ts, proved`` (commit timestamp, or null), ``below_mark`` (cells without shadow
            cell at or below what is claimed), ``any`` (one that has none), ``removed`` (whether a run has removed
            cells of it: they may have been put back).
        look: what was seen, and is.
    """
    nothing = known.where("proved is null and any is not null and not coalesce(removed, false)")
    _name(run, found, tables, nothing.where("below_mark > 0"), look.earlier.get("unproved", []))
    if look.writes:
        # They are compared whole, and pass through the driver: one with a long key is left out, not cut.
        can = is_short(F.unhex("any.row")) & is_short(F.col("any.qualifier"))
        drawn = (
            nothing.where(F.col("below_mark") == 0)
            .where(can)
            .orderBy(F.xxhash64("start_ts", F.lit(run.request.run)))
            .limit(_KEPT)
        )
        look.seen["unproved"] = [
            [r.table, r.row, bytes(r.family).hex(), bytes(r.qualifier).hex(), r.timestamp]
            for r in drawn.select("any.*").collect()
        ]


def _name(run: Run, found: Verification, tables: Sequence[Table], known: DataFrame, earlier: list[list[Any]]) -> None:
    if not earlier or known.isEmpty():
        return
    schema = "table string, row string, family string, qualifier string, timestamp bigint"
    seen = few_rows(run.store.spark, [tuple(cell) for cell in earlier], schema)
    place = ["table", "row", "family", "qualifier", "timestamp"]
    starts = known.select("start_ts")
    parts = []
    for table in tables:
        cells = pairs(raw_cells(run, table)).where("data and shadow is null").join(F.broadcast(starts), "start_ts")
        parts.append(
            with_claims(run, table, cells)
            .where("start_ts <= watermark")
            .select(
                F.lit(table.name).alias("table"),
                in_whole_hex(F.col("row")).alias("row"),
                in_whole_hex(F.col("family")).alias("family"),
                in_whole_hex(F.col("qualifier")).alias("qualifier"),
                "timestamp",
                "start_ts",
            )
        )
    there = reduce(DataFrame.unionByName, parts).join(F.broadcast(seen), place).orderBy("start_ts").collect()
    for r in there[:NAMED]:
        found.violations.append(
            Violation(
                "V4",
                r.table,
                "a cell that nothing proves lay there above what was claimed to be clean; that is claimed now, and "
                "the cell is there",
                f"Prune nothing; run lowtide run orphan_cleanup --table {r.table} --full --execute, then verify again",
                row=r.row,
                transaction=r.start_ts,
            )
        )
    if (more := len(there) - NAMED) > 0:
        found.violations.append(Violation("V4", "", f"{more:,} more cells of this kind", "", more))
