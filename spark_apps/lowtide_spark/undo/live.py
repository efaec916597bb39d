"""What a table holds now of the cells that are to come back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide_spark.frames.computed import few, frozen_with
from lowtide_spark.frames.kinds import CELL_KINDS, SHADOW
from lowtide_spark.frames.omid import base_of
from lowtide_spark.frames.startset import StartSet
from lowtide_spark.frames.store import FOREVER
from lowtide_spark.run.context import Run

PLACE = ("row", "family", "qualifier", "timestamp")
#: A cell of the sideline; *lone*: a shadow cell without its data cell.
KEY = (*PLACE, "lone")


class Comparison(NamedTuple):
    """What a table holds (:data:`PLACE`, ``commit_ts, kind``), and the cells that it lacks; both computed once. And how
    many it lacks.
    """

    there: DataFrame
    missing: DataFrame
    lacking: int


def compare(run: Run, table: str, families: Sequence[str], cells: DataFrame, *, committed: bool = True) -> Comparison:
    """*cells* (:data:`KEY`, ``commit_ts``) beside what *table* holds now in their rows and families. *committed* may be
    false where none of them has a ``commit_ts``: their own versions are all that is read then.
    """
    there = _read(run, table, families, cells, committed)
    return Comparison(there, *_missing(cells, there))


def absent(run: Run, table: str, cells: DataFrame) -> DataFrame:
    """Those of *cells*, which are committed, that *table* does not show as such.

    Reads no more than the time span of their transactions.
    """
    starts = StartSet(cells.select(base_of(F.col("timestamp")).alias("start_ts")))
    families = sorted(bytes(r.family).decode() for r in cells.select("family").distinct().collect())
    ranges = [WorkRange(r.name, r.keys, *starts.span) for r in run.store.regions(table)]
    there = starts.restrict(run.store.versions(table, ranges, families))
    found, _ = _missing(cells.withColumn("lone", F.lit(False)), there)
    starts.close()
    return found


def _read(run: Run, table: str, families: Sequence[str], cells: DataFrame, committed: bool) -> DataFrame:
    regions = [WorkRange(r.name, r.keys, 0, FOREVER) for r in run.store.regions(table)]
    data = run.store.versions(table, regions, families).where(F.col("kind").isin(*CELL_KINDS, SHADOW))
    starts = StartSet(cells.withColumn("start_ts", base_of(F.col("timestamp"))))
    found = starts.restrict(data)
    if committed:  # orphans hide nothing and are hidden by nothing: their own versions are all that matters
        rows = cells.where(F.col("commit_ts").isNotNull()).select("row", "family").distinct()
        found = data.join(rows, ["row", "family"], "left_semi").unionByName(found)
    there = found.select(*PLACE, "commit_ts", "kind").dropDuplicates([*PLACE])
    # How many they are decides nothing but in how many parts they are gone through.
    kept, [counted] = frozen_with(there, (), F.count("*").alias("cells"))
    starts.close()
    return few(kept, counted.cells)


def _missing(cells: DataFrame, there: DataFrame) -> tuple[DataFrame, int]:
    """Those of *cells* that are not *there*: the data cell, or the shadow cell that belongs to it, or both. And how
    many they are.
    """
    known = there.select(
        *PLACE, (F.col("kind") != SHADOW).alias("_data"), F.col("commit_ts").isNotNull().alias("_proof")
    )
    has_data = F.col("lone") | F.coalesce("_data", F.lit(False))
    has_proof = F.col("commit_ts").isNull() | F.coalesce("_proof", F.lit(False))
    found = cells.join(known, [*PLACE], "left").where(~(has_data & has_proof)).drop("_data", "_proof")
    missing, [counted] = frozen_with(found, (), F.count("*").alias("cells"))
    return few(missing, counted.cells), counted.cells
