"""A disk that is full, for the files of Spark's driver alone: who fills it has a driver of its own."""

from __future__ import annotations

import resource

from pyspark.sql import SparkSession

#: Whether there can be one here: on Linux.
POSSIBLE = hasattr(resource, "prlimit")
#: Of a file on a full disk there is so much.
BEGINNING = 16


def driver(spark: SparkSession) -> int:
    """The id of the driver's process. It has what it writes Parquet with: that is unpacked into a file when it is first
    used, and one that could not is not tried again as long as the process lives.
    """
    spark._jvm.org.xerial.snappy.Snappy.getNativeLibraryVersion()  # type: ignore[union-attr]
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]


def set_full(process: int, *, full: bool) -> None:
    """Let the files that a process of one's own writes end after some bytes, with an error, as they do on a full disk;
    or go on. The disk has room for everybody else. Nothing happens where there can be none.
    """
    limit = BEGINNING if full else resource.RLIM_INFINITY
    if POSSIBLE:
        resource.prlimit(process, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
