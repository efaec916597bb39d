"""A job's session is Spark's own: what asks for Spark Connect is outranked, or refused by name."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from lowtide.config import Config, Spark
from lowtide.errors import UsageError
from lowtide.run import classic, submit

#: As a job's program begins: its session, and then the JVM behind it.
PROGRAM = """
from pyspark import SparkContext
from pyspark.sql import SparkSession
SparkContext._ensure_initialized()
spark = SparkSession.builder.appName("x").getOrCreate()
print("reached", spark.sparkContext._jvm.org.apache.hadoop.fs.Path("/a/b").getName())
"""


def config(**conf: str) -> Config:
    return Config(spark=Spark(master="local[1]", driver_memory="512m", connector_class_path=["one.jar"], conf=conf))


@pytest.fixture
def defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of Spark's defaults, of this test's own; nothing else asks for anything."""
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    for name in classic.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "spark-defaults.conf"


def test_a_site_whose_programs_go_by_spark_connect_runs_jobs_all_the_same(defaults: Path, tmp_path: Path) -> None:
    """Its defaults say so for everybody's programs; a job's has the JVM that the connector lives in."""
    defaults.write_text(f"{classic.SETTING} connect\n")
    (tmp_path / "program.py").write_text(PROGRAM)
    command = submit.command(config(), "survey", [], tmp_path / "program.py")
    done = subprocess.run(
        command,
        env={**submit.environment(), "SPARK_LOCAL_IP": "127.0.0.1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "reached b" in done.stdout, f"{done.stdout[-2000:]}{done.stderr[-2000:]}"


@pytest.mark.parametrize(("name", "value"), [(classic.SETTING, "connect"), (classic.REMOTE, "sc://there:15002")])
def test_the_configuration_cannot_ask_for_it(defaults: Path, name: str, value: str) -> None:
    """The setting is named with its value, why not, and what to do; the classic one is no matter."""
    with pytest.raises(UsageError, match=rf"spark\.conf of .* has {name}={value}, and jobs need .*eave it"):
        submit.command(config(**{name: value}), "survey", [])
    assert submit.command(config(**{classic.SETTING: "Classic"}), "survey", [])


@pytest.mark.parametrize("name", classic.VARIABLES)
def test_the_environment_cannot_ask_for_it(defaults: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No setting outranks the variable, so it is named with its value."""
    monkeypatch.setenv(name, "sc://there")
    with pytest.raises(UsageError, match=rf"the environment has {name}=sc://there, and .*Unset it"):
        submit.command(config(), "survey", [])
    monkeypatch.setenv(name, "")
    assert submit.command(config(), "survey", [])


def test_sparks_defaults_cannot_name_a_server(defaults: Path) -> None:
    """The file is named; a line that is commented out is none."""
    defaults.write_text(f"# {classic.REMOTE} sc://there\n")
    assert submit.command(config(), "survey", [])
    defaults.write_text(f"{classic.REMOTE}=sc://there\n")
    with pytest.raises(
        UsageError, match=rf"{re.escape(os.fspath(defaults))} has {classic.REMOTE}=sc://there, and .*out"
    ):
        submit.command(config(), "survey", [])
