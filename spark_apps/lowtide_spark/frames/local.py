"""Small DataFrames that no table is read for, made in the JVM.

``createDataFrame`` takes Python's rows through Python workers on the executors, even where there are none: nodes need
not have Python, or have another.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def no_rows(spark: SparkSession, schema: str) -> DataFrame:
    """The columns of *schema*, such as ``start_ts bigint, odd boolean``."""
    return spark.range(0).select(*(F.lit(None).cast(kind).alias(name) for name, kind in _columns(schema)))


def few_rows(spark: SparkSession, rows: Sequence[Sequence[int | str]], schema: str) -> DataFrame:
    """*rows*, whole numbers and texts, with the columns of *schema*; as many as fit into a query's text.

    Nothing is converted in silence: a value that is none of its column's ends the query.
    """
    names, kinds = zip(*_columns(schema), strict=True)
    # As one text: with a literal a value each of them would be a call of the JVM.
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    fields = ", ".join(f"{name}: {kind}" for name, kind in zip(names, kinds, strict=True))
    parsed = F.from_json(F.lit(text), f"array<struct<{fields}>>", {"mode": "FAILFAST"})
    return spark.range(0, 1, 1, 1).select(F.inline(parsed))


def _columns(schema: str) -> list[tuple[str, str]]:
    pairs = (column.split() for column in schema.split(","))
    return [(name, kind) for name, kind in pairs]
