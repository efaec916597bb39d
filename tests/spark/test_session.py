"""What every supported line of Spark has to do alike: functions, small frames, and the settings of a job's session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.frames import jars
from lowtide_spark.frames.functions import substring, try_cast, valid_utf8
from lowtide_spark.frames.local import few_rows, no_rows
from lowtide_spark.run import session
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from lowtide.errors import UsageError
from lowtide.run import deploy
from lowtide.run.pins import pinned

ANSI = "spark.sql.ansi.enabled"
SCHEMA = "start_ts bigint, commit_ts bigint, name string, row binary, odd boolean"


@pytest.fixture
def settings(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Change a setting of the session until the end of the test."""
    changed: dict[str, str | None] = {}

    def change(name: str, value: str) -> None:
        changed.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in changed.items():
        if value is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, value)


@pytest.fixture
def one(spark: SparkSession) -> Callable[[Column], Any]:
    """The value of a column of no table."""
    return lambda column: spark.range(1).select(column.alias("v")).collect()[0].v


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_a_cast_that_may_fail_is_null_where_it_does(
    ansi: str, spark: SparkSession, settings: Callable[[str, str], None], one: Callable[[Column], Any]
) -> None:
    """With ANSI and without, for numbers of 63 bits and of 38 digits: neither the end of the job, nor a number that
    wrapped around.
    """
    settings(ANSI, ansi)
    digits = {"0": 0, str(2**63 - 1): 2**63 - 1, str(2**63): None, str(2**64 - 1): None, "": None, "5x": None}
    data = spark.createDataFrame([(text,) for text in digits], "t string")
    for kind, beyond in (("bigint", {}), ("decimal(38,0)", {str(2**63): 2**63, str(2**64 - 1): 2**64 - 1})):
        found = {r.t: r.n for r in data.select("t", try_cast(F.col("t"), kind).alias("n")).collect()}
        assert found == digits | beyond
    assert one(try_cast(F.lit(None).cast("string"), "bigint")) is None


def test_a_part_of_bytes_is_cut_out_by_columns(one: Callable[[Column], Any]) -> None:
    """Of bytes and of text, from places that differ from row to row; beyond the end nothing."""
    data = F.unhex(F.lit("00ff80"))
    assert bytes(one(substring(data, F.lit(1) + 1, F.lit(2)))) == b"\xff\x80"
    assert bytes(one(substring(data, F.lit(4), F.lit(1)))) == b""
    assert one(substring(F.lit("äöü"), F.lit(2), F.length(F.lit("x")))) == "ö"


@pytest.mark.parametrize("data", [b"5\xff", b"\x80", b"ok", b"", "äö".encode(), b"\xed\xa0\x80"])
def test_bytes_become_text_whatever_they_are(data: bytes, one: Callable[[Column], Any]) -> None:
    """Text stays what it is; of what is none the good bytes stay, and the text is none that anybody wrote."""
    found = one(valid_utf8(F.lit(bytearray(data))))
    try:
        assert found == data.decode()
    except UnicodeDecodeError:
        assert "\ufffd" in found
        assert found.replace("\ufffd", "") == data.decode(errors="ignore")


@pytest.mark.parametrize("python", ["", "/nonexistent/python3"])
def test_small_frames_need_no_python(python: str, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and types are as given, numbers to the last of 63 bits; and no worker is started for them."""
    if python:
        monkeypatch.setattr(spark.sparkContext, "pythonExec", python)
        with pytest.raises(Exception, match=python):
            spark.createDataFrame([(1,)], "n bigint").collect()
    empty = no_rows(spark, SCHEMA)
    assert [f"{name} {kind}" for name, kind in empty.dtypes] == SCHEMA.split(", ")
    assert empty.collect() == []
    rows = [(50, 2**63 - 1, 'a "b"\n'), (0, -(2**63), "")]
    frame = few_rows(spark, rows, "start_ts bigint, commit_ts bigint, name string")
    assert [tuple(r) for r in frame.collect()] == rows
    assert [tuple(r) for r in frame.unionByName(empty.select(*frame.columns)).collect()] == rows
    assert few_rows(spark, [], "n bigint").collect() == []
    assert frame.join(F.broadcast(few_rows(spark, [(50, 1)], "start_ts bigint, x bigint")), "start_ts").count() == 1


@pytest.mark.parametrize("value", [2**63, "5"])
def test_a_small_frame_takes_no_value_of_another_type(value: Any, spark: SparkSession) -> None:
    """Instead of a null, which in a list of decisions would be no decision."""
    with pytest.raises(Exception, match=r"(?i)malformed|parse"):
        few_rows(spark, [(value,)], "start_ts bigint").collect()


def test_a_sum_that_overflows_ends_the_job(spark: SparkSession) -> None:
    """As Spark 4 has it by default, and 3.5 has not."""
    with pytest.raises(Exception, match=r"(?i)overflow"):
        spark.range(1).select(F.lit(2**63 - 1) + F.col("id") + F.lit(1)).collect()


def test_what_results_depend_on_is_set_whatever_the_installation_has(
    spark: SparkSession, settings: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Its own settings are set aside, by name: those that jobs rely on, and all that bring an older Spark back."""
    installed = {ANSI: "false", "spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.legacy.sizeOfNull": "false"}
    for name, value in installed.items():
        settings(name, value)
    conf = SimpleNamespace(getAll=lambda: list(installed.items()))
    monkeypatch.setattr(spark.sparkContext, "getConf", lambda: conf)
    session.pin(spark)
    assert {name: spark.conf.get(name) for name in pinned(spark.version)} == pinned(spark.version)
    assert spark.conf.get("spark.sql.legacy.sizeOfNull") == "true", "as Spark has it"
    told = capsys.readouterr().out
    assert all(f"{name}={value} is set aside" in told for name, value in installed.items())


def test_a_setting_that_stays_what_it_was_stops_the_job() -> None:
    """It is named, with what it is and what it has to be."""
    kept = {**pinned("4.2.0"), "spark.sql.session.timeZone": "Europe/Berlin"}
    conf = SimpleNamespace(get=kept.get, set=lambda *_: None)
    installed = SimpleNamespace(getConf=lambda: SimpleNamespace(getAll=list))
    stubborn: Any = SimpleNamespace(version="4.2.0", conf=conf, sparkContext=installed)
    with pytest.raises(UsageError, match=r"timeZone is Europe/Berlin.*UTC"):
        session.pin(stubborn)


def test_executors_of_another_spark_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each task tells the version that it runs with; on one machine there is no other, and nobody is asked."""
    stand_in(monkeypatch, spark)
    asked = elsewhere(spark)
    session.check_executors(asked)
    asked.version = "3.5.1"
    with pytest.raises(UsageError, match=rf"driver is Spark 3\.5\.1, and executors are Spark {spark.version}"):
        session.check_executors(asked)
    asked.sparkContext.master = "local[2]"
    session.check_executors(asked)


def test_executors_with_another_connector_are_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one sentence, before a job reads anything: both numbers, where they look for it, and the remedy."""
    stand_in(monkeypatch, spark)
    asked = elsewhere(spark)
    monkeypatch.setattr(jars, "CONTRACT", 2)
    told = (
        rf"jar of executors has contract {spark.version}, and this Lowtide goes with contract 2.*far/\*.*path connector"
    )
    with pytest.raises(UsageError, match=told) as refused:
        session.check_executors(asked)
    assert refused.value.exit_code == 2
    asked.sparkContext.master = "local[2]"
    session.check_executors(asked)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ("", r"lack the connector \(ClassNotFoundException: lowtide\.connector\.LowtideSource\).*far/\*.*at its root"),
        ("older", r"of executors is of an older Lowtide.*goes with contract \d+.*far/\*.*Replace them.*path connector"),
    ],
)
def test_executors_without_the_connector_or_with_an_older_one_are_refused(answer: str, told: str) -> None:
    """If it is one of many. What real ones answer is in test_refusals.py of the stores' tests."""
    good = str(jars.CONTRACT)
    jars.check_executors({good}, "far/*")
    with pytest.raises(UsageError, match=told):
        jars.check_executors({good, answer}, "far/*")


def stand_in(monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """A class of Spark's for the connector's, which this driver need not have: of its number, and of whatever it is."""
    monkeypatch.setattr(jars, "NUMBERED", "org.apache.spark.package")
    monkeypatch.setattr(jars, "NUMBER", "SPARK_VERSION")
    monkeypatch.setattr(jars, "CONTRACT", spark.version)


def test_a_driver_without_the_connector_is_told_so(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Instead of Python's own words for a class that its JVM has not, with where it looks and the remedy."""
    here: Any = spark._jvm
    without = SimpleNamespace(lowtide=SimpleNamespace(connector=here.nowhere.at.all))
    with pytest.raises(UsageError, match=r"this driver lacks the connector.*is /site/\*\. Leave that out") as refused:
        jars.check_driver(without, "/site/*")
    assert refused.value.exit_code == 2
    # py4j knows a class from a package by asking the JVM.
    numbered = SimpleNamespace(Contract=here.nowhere.Contract, LowtideSource=here.java.lang.String)
    with pytest.raises(
        UsageError, match=r"jar of this driver is of an older Lowtide.*goes with contract \d+.*in its place"
    ):
        jars.check_driver(SimpleNamespace(lowtide=SimpleNamespace(connector=numbered)), "")


def elsewhere(spark: SparkSession) -> Any:
    """The session as one whose executors are programs of their own."""
    conf = {"spark.executor.extraClassPath": "far/*"}
    context = SimpleNamespace(master="yarn", defaultParallelism=2, getConf=lambda: conf)
    return SimpleNamespace(range=spark.range, version=spark.version, sparkContext=context)


def test_a_driver_in_the_cluster_knows_it(spark: SparkSession) -> None:
    """From what its JVM was started with, before it has a session of its own."""
    session.check_place()
    properties: Any = spark._jvm.System  # type: ignore[union-attr]
    properties.setProperty(deploy.SETTING, "cluster")
    try:
        with pytest.raises(UsageError, match=r"this driver runs in the cluster.*exit code would be lost"):
            session.check_place()
    finally:
        properties.clearProperty(deploy.SETTING)
