"""Sets of start timestamps: while short a list that the connector filters by, else a table to join with."""

from __future__ import annotations

from contextlib import ExitStack

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.values.formats import CHECKPOINTS
from lowtide_spark.frames.local import few_rows

#: A list up to this long goes into the scan's filter; a longer one would cost more in Catalyst than the join does.
LONGEST_LIST = 10_000


class StartSet:
    """A set of start timestamps, computed once."""

    def __init__(self, frame: DataFrame) -> None:
        """*frame*: any DataFrame with a column ``start_ts``, which is null in no row."""
        found = frame.select("start_ts").distinct().persist()
        first = [r.start_ts for r in found.limit(LONGEST_LIST + 1).collect()]
        #: The set itself where it is short.
        self.list = first if len(first) <= LONGEST_LIST else None
        if self.list is None:
            self.frame = found
            ((low, high, size),) = found.agg(F.min("start_ts"), F.max("start_ts"), F.count("*")).collect()
        else:
            found.unpersist()
            self.frame = few_rows(frame.sparkSession, [(start,) for start in first], "start_ts bigint")
            low, high, size = min(first, default=0), max(first, default=0), len(first)
        self.size: int = size
        #: The timestamps [from, to) that the set's transactions may have written at.
        self.span = (low, high + CHECKPOINTS) if self.size else (0, 0)

    def __bool__(self) -> bool:
        return self.size > 0

    def restrict(self, frame: DataFrame) -> DataFrame:
        """The rows of *frame* whose ``start_ts`` is in the set."""
        if self.list is not None:
            return frame.where(self._listed())
        return frame.join(self.frame, "start_ts", "left_semi")

    def without(self, frame: DataFrame) -> DataFrame:
        """The rows of *frame* whose ``start_ts`` is not in the set, and not null."""
        if self.list is not None:
            return frame.where(F.col("start_ts").isNotNull() & ~self._listed())
        return frame.where(F.col("start_ts").isNotNull()).join(self.frame, "start_ts", "left_anti")

    def suspects(self, versions: DataFrame) -> DataFrame:
        """The rows of *versions* without commit timestamp, or with a ``start_ts`` in the set."""
        unproved = F.col("commit_ts").isNull()
        if self.list is not None:
            return versions.where(unproved | self._listed() if self.list else unproved)
        known = self.frame.withColumn("_known", F.lit(True))
        return versions.join(known, "start_ts", "left").where(unproved | F.col("_known")).drop("_known")

    def _listed(self) -> Column:
        # As text: a literal a call takes a second and more for a long list.
        return F.expr(f"start_ts in ({', '.join(f'{start}L' for start in self.list)})") if self.list else F.lit(False)

    def close(self) -> None:
        """Free the cache."""
        self.frame.unpersist()


def start_set(frame: DataFrame, held: ExitStack) -> StartSet:
    """The set of *frame*; its cache is freed when *held* is closed."""
    starts = StartSet(frame)
    held.callback(starts.close)
    return starts
