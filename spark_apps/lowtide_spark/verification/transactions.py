"""V1 to V5: of each transaction its cells, the commit table, the journal, and what was put aside of it, held against
one another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.verification.findings import Verification
from lowtide_spark.frames.shown import in_whole_hex
from lowtide_spark.run.context import Run
from lowtide_spark.verification import aborted, leftovers, remedies
from lowtide_spark.verification.look import Look
from lowtide_spark.verification.rawcells import deleted_entries, pairs
from lowtide_spark.verification.sidelines import Aside
from lowtide_spark.verification.tables import Table, commits_and_marks, raw_cells, transactional, with_claims


def check(run: Run, found: Verification, tables: Sequence[Table], aside: Aside, look: Look) -> None:
    """V1 to V4, and what V5 says of transactions: one read of every table, one grouping by start timestamp."""
    if not tables:
        return
    start, shadow, stamp = F.col("start_ts"), F.col("shadow"), F.col("timestamp")
    parts = []
    for table in tables:
        mine = transactional(table)
        lacking = F.col("data") & shadow.isNull() & mine
        cells = with_claims(run, table, pairs(raw_cells(run, table)).where(start <= found.low_watermark))
        place = F.struct(
            F.lit(table.name).alias("table"),
            in_whole_hex(F.col("row")).alias("row"),
            "family",
            "qualifier",
            "timestamp",
        )
        claimed = lacking & (start <= F.greatest(F.col("watermark"), F.lit(found.bound)))
        parts.append(
            cells.groupBy("start_ts").agg(
                F.lit(table.name).alias("table"),
                F.count_if(mine).alias("cells"),
                # A shadow cell that names its own timestamp is index population's, and proves its own cell only.
                F.min(F.when(shadow > stamp, shadow)).alias("low"),
                F.max(F.when(shadow > stamp, shadow)).alias("high"),
                F.count_if(lacking).alias("lacking"),
                F.count_if(lacking & (start <= found.bound)).alias("below_bound"),
                F.count_if(lacking & (start <= F.col("watermark"))).alias("below_mark"),
                F.count_if(F.col("odd") & mine & (start <= F.col("watermark"))).alias("odd"),
                F.min(F.when(claimed, place)).alias("lacks"),
                F.min(F.when(lacking, place)).alias("any"),
                F.min(F.when(F.col("odd"), place)).alias("unknown"),
                F.min(F.when(shadow > stamp, F.struct(shadow, place.alias("place")))).alias("least"),
                F.max(F.when(shadow > stamp, F.struct(shadow, place.alias("place")))).alias("most"),
            )
        )
    of_cells = reduce(DataFrame.unionByName, parts)
    gone = deleted_entries(run.store.cells(run.config.omid.commit_table, raw=True))
    proofs = (
        commits_and_marks(run, found)
        .where(start <= found.low_watermark)
        .unionByName(gone.withColumn("deleted", F.lit(True)), allowMissingColumns=True)
    )
    rows = of_cells.unionByName(proofs, allowMissingColumns=True)
    removed = aborted.removed(run, found, tables, aside)
    if removed is not None:
        starts = removed.select("start_ts", F.lit(True).alias("removed"))
        rows = rows.unionByName(starts.distinct(), allowMissingColumns=True)
    else:
        rows = rows.withColumn("removed", F.lit(False))
    known = _by_transaction(rows).withColumn("proved", _proved()).withColumn("marked", _marked())
    kept = known.withColumn("wrong", _wrong(run, found)).where("wrong is not null or cells > 0 or removed")
    known_of = (
        "lacks",
        "any",
        "unknown",
        "least",
        "most",
        "entry",
        "pruned",
        "at",
        "below_bound",
        "below_mark",
        "lacking",
        "odd",
    )
    counted = kept.select("start_ts", "wrong", *known_of, "by_table", "removed", "proved", "mark", "marked").persist()
    try:
        _count_cells(found, tables, counted)
        remedies.name(run, found, counted)
        if removed is not None:
            aborted.name(run, found, aside, removed, counted)
        leftovers.compare(run, found, tables, counted, look)
    finally:
        counted.unpersist()


def _by_transaction(rows: DataFrame) -> DataFrame:
    """One row a transaction, of what its cells, the commit table and the journal say."""
    named = F.when(F.col("cells").isNotNull(), F.struct("table", "cells"))
    return rows.groupBy("start_ts").agg(
        F.sum("cells").alias("cells"),
        F.collect_list(named).alias("by_table"),
        *(F.sum(name).alias(name) for name in ("lacking", "below_bound", "below_mark", "odd")),
        *(F.min(name).alias(name) for name in ("low", "lacks", "any", "unknown", "least")),
        *(
            F.max(name).alias(name)
            for name in ("high", "most", "entry", "at", "mark", "pruned", "pruned_mark", "deleted", "removed")
        ),
    )


def _entry() -> Column:
    return F.when(~F.coalesce("mark", F.lit(False)), F.col("entry"))  # a mark outranks an entry


def _proved() -> Column:
    """The commit timestamp that entry, journal or a shadow cell of another cell's gives; null: none does."""
    return F.coalesce(_entry(), "pruned", "low")


def _marked() -> Column:
    return F.coalesce(F.col("mark") | F.col("pruned_mark"), F.col("mark"), F.col("pruned_mark"), F.lit(False))


def _wrong(run: Run, found: Verification) -> Column:
    """Which invariants a transaction breaks, and how; null: none."""
    stamps = (F.col("low"), F.col("high"), _entry(), F.col("pruned"))
    proved, marked = F.col("proved"), F.col("marked")
    nothing = proved.isNull() & ~marked & (F.coalesce("below_bound", F.lit(0)) > 0)
    # A reader of an oracle in low-latency mode that dies may leave its mark beside a commit.
    race = F.lit("note mark") if run.config.omid.low_latency else F.lit("V3 mark")
    one = (
        F.when(_entry().isNotNull() & (F.col("below_bound") > 0), F.lit("V1")),
        # Readers do not know the journal: what is in it alone they do not see without a shadow cell.
        F.when(_entry().isNull() & F.col("pruned").isNotNull() & (F.col("lacking") > 0), F.lit("V1 pruned")),
        F.when(proved.isNotNull() & (F.col("below_mark") > 0), F.lit("V4")),
        F.when(F.col("odd") > 0, F.lit("V4 form")),
        F.when(nothing & F.col("deleted") & (F.col("start_ts") > found.horizon), F.lit("V2")),
        F.when(nothing & (F.col("start_ts") <= found.horizon), F.lit("note horizon")),
        F.when(
            nothing & ~F.coalesce("deleted", F.lit(False)) & (F.col("start_ts") > found.horizon), F.lit("note orphan")
        ),
        F.when((F.col("low").isNotNull() | F.col("unknown").isNotNull()) & marked, race),
        F.when(F.least(*stamps) != F.greatest(*stamps), F.lit("V3 commits")),
    )
    wrong = F.filter(F.array(*one), lambda each: each.isNotNull())
    return F.when(F.size(wrong) > 0, wrong)


def _count_cells(found: Verification, tables: Sequence[Table], known: DataFrame) -> None:
    each = known.select(F.explode("by_table").alias("t")).groupBy("t.table").agg(F.sum("t.cells").alias("cells"))
    cells = {r.table: r.cells for r in each.collect()}
    for table in tables:
        found.tables[table.name] = {"cells": cells.get(table.name, 0), "ranges": len(table.ranges), "of": table.of}
