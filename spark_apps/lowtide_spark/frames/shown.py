"""Keys and values as people are told of them: the first bytes, and how many there are.

Clients choose them, up to megabytes each. They are cut before they leave the executors: a driver's heap, a row of the
state table and a message of Airflow's are small. Nobody decides or acts by what is cut.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from lowtide.run.cell_lines import LONGEST


def in_hex(data: Column) -> Column:
    """Bytes in hexadecimal, lower case; of a long one the first: ``6162... (5,000 bytes)``."""
    text = in_whole_hex(head(data))
    return F.when(is_short(data), text).otherwise(
        F.concat(text, F.lit("... ("), F.format_number(F.length(data), 0), F.lit(" bytes)"))
    )


def in_whole_hex(data: Column) -> Column:
    """All bytes in hexadecimal, lower case.

    Not by ``lower``: the first use of that has Spark 4 look at each character that there is, which takes each driver
    and each executor seconds of its start.
    """
    return F.translate(F.hex(data), "ABCDEF", "abcdef")


def head(data: Column) -> Column:
    """The first bytes, of which a key that is not long has no more."""
    return F.substring(data, 1, LONGEST)


def whole(data: Column) -> Column:
    """Bytes that a statement may be made of; null where they are more than are told."""
    return F.when(is_short(data), data)


def is_short(data: Column) -> Column:
    """Whether all of them are told."""
    return F.length(data) <= LONGEST
