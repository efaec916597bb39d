"""DataFrames that are computed once, and put together."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame


def frozen(frame: DataFrame) -> DataFrame:
    """Computed once, for good.

    Decisions are made on what was read *in this order*. A cache would be read again where an executor was lost, from a
    store that has moved on; a local checkpoint fails the run instead.
    """
    return frame.localCheckpoint()


def union(frames: Sequence[DataFrame], like: DataFrame) -> DataFrame:
    """All rows of *frames*, which have the columns of *like*; without any, none."""
    return reduce(lambda a, b: a.unionByName(b), frames) if frames else like.limit(0)
