"""Functions of columns that Spark 3.5 lacks, or has in another form; in all others the supported lines agree."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext
from pyspark.sql import Column
from pyspark.sql import functions as F


def try_cast(column: Column, kind: str) -> Column:
    """*column* as *kind*; null where a value is none, with ANSI or without. A plain cast may end the job there."""
    # Asked of the class: an object of 3.5 takes every name that it does not know for a field of a structure.
    if hasattr(Column, "try_cast"):
        return column.try_cast(kind)
    return _try_cast_of_3_5(column, kind)


def _try_cast_of_3_5(column: Any, kind: str) -> Column:
    """Spark 3.5 has it in SQL alone, which takes no column; so the expression is made as its parser makes it."""
    context: Any = SparkContext._active_spark_context  # there is one where there is a column; py4j knows no types
    sql, no_zone = context._jvm.org.apache.spark.sql, context._jvm.scala.Option.empty()
    expressions = sql.catalyst.expressions
    cast = expressions.Cast(column._jc.expr(), sql.types.DataType.fromDDL(kind), no_zone, expressions.EvalMode.TRY())
    return Column(sql.Column(cast))


def substring(data: Column, first: Column, length: Column) -> Column:
    """*length* bytes or characters of *data*; the first of all has the number 1."""
    return data.substr(first, length)  # that of functions takes no columns in 3.5


def valid_utf8(data: Column) -> Column:
    """Bytes as text; what is no UTF-8 becomes replacement characters, and ends no job."""
    if hasattr(F, "make_valid_utf8"):
        return F.make_valid_utf8(data.cast("string"))
    return F.decode(data, "UTF-8")  # of 3.5 it replaces; later it ends the job
