"""The Spark session of a job."""

from __future__ import annotations

from pyspark.sql import SparkSession


def session(name: str) -> SparkSession:
    """The session that ``spark-submit`` prepared: master, memory and class path are its business, not the program's."""
    spark = (
        SparkSession.builder.appName(name)
        .config("spark.sql.session.timeZone", "UTC")  # no setting of an installation's: intervals are compared in it
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("WARN")
    return spark
