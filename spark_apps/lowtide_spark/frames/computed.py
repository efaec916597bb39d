"""DataFrames that are computed once, and put together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Row

#: So many rows one task goes through sooner than Spark starts several.
FEW = 10_000


def frozen(frame: DataFrame) -> DataFrame:
    """Computed once, for good.

    Decisions are made on what was read *in this order*. A cache would be read again where an executor was lost, from a
    store that has moved on; a local checkpoint fails the run instead.
    """
    return frame.localCheckpoint()


def frozen_with(frame: DataFrame, by: Sequence[str | Column], *figures: Column) -> tuple[DataFrame, list[Row]]:
    """*frame* as :func:`frozen` gives it, and what *figures* come to over all of it, a row for each group of *by*.

    In one Spark job, which goes through every row. Where an executor is lost before it ends, rows may be computed again
    that were counted already: *frame* must come of frozen ones, or what is kept be decided by, not the figures.
    """
    kept = frame.localCheckpoint(eager=False)
    counted = kept.groupBy(*by).agg(*figures).collect()
    if by and not counted:  # Spark runs no job over what it sees to be empty, and keeps nothing then
        return frame.limit(0), []
    return kept, counted


def few(frame: DataFrame, rows: int) -> DataFrame:
    """*frame*, which was computed once and has so many *rows*, in one part where they are few. What groups, joins or
    orders them needs nothing sent from task to task then, and each time that is sent is a Spark job of its own.
    """
    return frame.coalesce(1) if rows <= FEW else frame


def union(frames: Sequence[DataFrame], like: DataFrame) -> DataFrame:
    """All rows of *frames*, which have the columns of *like*; without any, none."""
    if not frames:
        return like.limit(0)
    some = list(frames)
    while len(some) > 1:  # of neighbours: at each union Spark goes through all that is in it so far
        some = [reduce(lambda a, b: a.unionByName(b), some[i : i + 2]) for i in range(0, len(some), 2)]
    return some[0]
