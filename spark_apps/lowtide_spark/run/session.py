"""The Spark session of a job: of a supported Spark, with the settings that results depend on."""

from __future__ import annotations

import os
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from lowtide.config import SECURITY, Config
from lowtide.errors import UsageError
from lowtide.run import deploy, sparks, tokens
from lowtide.run.pins import LEGACY, pinned
from lowtide_spark.frames import jars
from lowtide_spark.frames.remembered import Remembered


def session(name: str, config: Config, *, connector: bool = True) -> SparkSession:
    """The session that ``spark-submit`` prepared: master, memory and class path are its business, not the program's.

    Args:
        name: of the application.
        config: by which executors are let in to HBase (:mod:`lowtide.run.tokens`).
        connector: whether driver and executors must have this version's connector; ``lowtide check`` tells by itself
            where they have not.

    Raises:
        UsageError: its Spark is not supported, or not that of the package ``pyspark`` or of the executors; driver or
            executors lack the connector, or have another version's; or a setting is not what jobs run with, and stays
            so.
    """
    check_version(pyspark.__version__, pyspark.__version__)  # before a cluster is asked for anything
    SparkContext._ensure_initialized()  # the JVM of spark-submit, whose settings these are
    conf = SparkConf()
    master = conf.get("spark.master") or ""
    if connector:
        check_connector()
    check_login(config, master)
    told = tokens.in_driver(config, master, dict(conf.getAll()))
    spark = SparkSession.builder.appName(name).config(map={**told}).getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    check_version(spark.version, pyspark.__version__)
    pin(spark)
    check_executors(spark, connector=connector)
    if connector:
        check_tokens(spark, config)
    remember_classes(spark)
    return spark


def check_place() -> None:
    """Refuse to be a driver in the cluster, where somebody found a way past what :mod:`lowtide.run.deploy` refuses.

    Asked before there is a session, or a configuration: in a container without one that for this machine would count.

    Raises:
        UsageError: says why, and what to do.
    """
    SparkContext._ensure_initialized()  # the JVM of spark-submit, which has the settings; nothing is asked of a cluster
    deploy.check_driver(dict(SparkConf().getAll()))


def check_connector() -> None:
    """Refuse a driver whose connector is not the one that this version goes with (:mod:`lowtide_spark.frames.jars`).

    Raises:
        UsageError: says which it is, and what to do.
    """
    jars.check_driver(SparkContext._jvm, SparkConf().get("spark.driver.extraClassPath") or "")


def check_login(config: Config, master: str) -> None:
    """Refuse a driver without a login where executors are let in by tokens: nobody would give it any, and YARN's client
    asks for many minutes before it says so.

    Raises:
        UsageError: says what there is not, and what to do.
    """
    if not tokens.needs_login(config, master):
        return
    check_connector()
    jvm: Any = SparkContext._jvm
    if why := tokens.stranger(jvm.lowtide.connector.Logins, os.environ):
        raise UsageError(*why)


def check_version(spark: str, package: str) -> None:
    """Refuse a Spark that is not supported, and one whose Python is of another line: calls would go astray.

    Raises:
        UsageError: names both, and what to do.
    """
    if why := sparks.refusal(spark, "this driver"):
        raise UsageError(why, "Let SPARK_HOME name another, or unset it")
    if sparks.line_of(spark) != sparks.line_of(package):
        msg = f"this driver is Spark {spark}, and its Python package pyspark is {package}"
        raise UsageError(msg, "Take both from one installation: PYTHONPATH may hold another's, or SPARK_HOME name it")


def pin(spark: SparkSession) -> None:
    """Run with :func:`~lowtide.run.pins.pinned` and none of Spark's legacy settings, whatever the installation has.

    What of it is set aside is told.

    Raises:
        UsageError: one cannot be set.
    """
    wanted = pinned(spark.version)
    installed = {name: value for name, value in spark.sparkContext.getConf().getAll() if name.startswith("spark.sql.")}
    for name, value in installed.items():
        if name.startswith(LEGACY):
            spark.conf.unset(name)
            print(f"{name}={value} is set aside: jobs run without", flush=True)
        elif wanted.get(name, value).casefold() != value.casefold():
            print(f"{name}={value} is set aside: jobs run with {wanted[name]}", flush=True)
    for name, value in wanted.items():
        spark.conf.set(name, value)
    stays = {name: found for name in wanted if (found := spark.conf.get(name)) != wanted[name]}
    if stays:
        msg = "; ".join(f"{name} is {found}, and jobs run with {wanted[name]} only" for name, found in stays.items())
        raise UsageError(msg, "Find what sets it in this Spark: a plug-in or an extension")


def check_executors(spark: SparkSession, *, connector: bool = True) -> None:
    """Refuse executors that lack the *connector*, have another version's, or are of another Spark than the driver's,
    where they are programs of their own: what they make of a plan is not what was tried. Of those that are up one task
    each is asked, so one that comes later may be missed.

    Raises:
        UsageError: names what they are or lack, and what to do.
    """
    if (spark.sparkContext.master or "").startswith("local["):
        return
    tasks = max(1, spark.sparkContext.defaultParallelism)
    # Evaluated where the task is; SQL's version() is a constant of the driver.
    version = F.reflect(F.lit("org.apache.spark.package"), F.lit("SPARK_VERSION")).alias("version")
    number = jars.asked_of_executors() if connector else F.lit("")
    asked = spark.range(0, tasks, 1, tasks).select(version, number.alias("connector")).collect()
    others = {row.version for row in asked} - {spark.version}
    if others:
        msg = f"this driver is Spark {spark.version}, and executors are Spark {', '.join(sorted(others))}"
        raise UsageError(msg, "Give both the same: spark.yarn.archive, the workers' installation, or the image")
    if connector:
        found = spark.sparkContext.getConf().get("spark.executor.extraClassPath", "nothing")
        jars.check_executors({row.connector for row in asked}, found)


def check_tokens(spark: SparkSession, config: Config) -> None:
    """Refuse executors that HBase would not let in, where it asks for logins: each of their reads would be tried again
    for minutes, before it is told.

    Raises:
        UsageError: says why, and what to do.
    """
    master = spark.sparkContext.master or ""
    if master.startswith("local[") or config.hbase.client_properties().get(SECURITY) != "kerberos":
        return
    tasks = max(1, spark.sparkContext.defaultParallelism)
    held = F.reflect(F.lit("lowtide.connector.Logins"), F.lit("held")).alias("held")
    rows = spark.range(0, tasks, 1, tasks).select(held).collect()
    fact, remedy = tokens.lacking(
        [row.held for row in rows], config, master, dict(spark.sparkContext.getConf().getAll())
    )
    if fact:
        raise UsageError(fact, remedy)


#: What PySpark asks its JVM for by name whenever a column is made.
CLASSES = ("functions", "PythonUtils", "PythonSQLUtils", "org.apache.spark.sql.functions")


def remember_classes(spark: SparkSession) -> None:
    """Look these classes up once, and each of their functions; what is found stays with this process's JVM.

    A run asks for them thousands of times, and each look for a short name goes through all of Spark's jars in vain, for
    every package that it could be in.
    """
    for name in CLASSES:
        found = getattr(spark._jvm, name)
        setattr(spark._jvm, name, found if isinstance(found, Remembered) else Remembered(found))
