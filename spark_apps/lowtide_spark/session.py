"""The Spark session of a job."""

from __future__ import annotations

from pyspark.sql import SparkSession


def session(name: str) -> SparkSession:
    """The session that ``spark-submit`` prepared: master, memory and class path are its business, not the program's."""
    spark = (
        SparkSession.builder.appName(name)
        .config("spark.sql.session.timeZone", "UTC")
        # A plan is small beside the table it comes from: without this, every join would end in 200 near-empty tasks.
        .config("spark.sql.shuffle.partitions", "16")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("WARN")
    return spark
