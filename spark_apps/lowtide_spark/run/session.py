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
    remember_classes(spark)
    return spark


#: What PySpark asks its JVM for by name whenever a column is made.
CLASSES = ("functions", "PythonUtils", "PythonSQLUtils", "org.apache.spark.sql.functions")


def remember_classes(spark: SparkSession) -> None:
    """Look these classes up once; what is found stays with this process's JVM.

    A run asks for them thousands of times, and each look for a short name goes through all of Spark's jars in vain, for
    every package that it could be in.
    """
    for name in CLASSES:
        setattr(spark._jvm, name, getattr(spark._jvm, name))
