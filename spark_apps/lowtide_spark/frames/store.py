"""The store as Spark sees it: DataFrames through the connector, and the few things asked of HBase's master.

What other rooms use of it is listed here.
"""

from __future__ import annotations

from lowtide_spark.frames.connector import cause, explained, meaning, told
from lowtide_spark.frames.master import HBaseSnapshot, Master
from lowtide_spark.frames.reading import FOREVER, LIVE, Reading, Source, TableRead
from lowtide_spark.frames.writing import Life, Writing, Written, by_region

__all__ = [
    "FOREVER",
    "LIVE",
    "HBaseSnapshot",
    "Life",
    "Source",
    "Store",
    "TableRead",
    "Written",
    "by_region",
    "cause",
    "explained",
    "meaning",
    "told",
]


class Store(Reading, Writing, Master):
    """One HBase cluster, through one Spark session: what is read, what is written, its master, who objects."""
