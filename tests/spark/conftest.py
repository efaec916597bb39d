"""One local Spark session for all tests of the column expressions; no store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from lowtide.run.pins import pinned
from tests import warm
from tests.spark.folder_kit import Runs, Summaries, runs_in

# Each example is a Spark job: few of them, each a whole batch of values. Nothing is left behind.
settings.register_profile(
    "spark", deadline=None, database=None, max_examples=2, suppress_health_check=list(HealthCheck)
)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on the loopback interface, without user interface, with its work folders in the tests' own."""
    home = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.sql.shuffle.partitions": "2",
        **pinned(pyspark.__version__),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
    }
    if running := warm.running_session(settings):
        yield running
        return
    session = warm.new_session(settings, "local[1]")
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def summaries() -> Summaries:
    """What the state table has of runs; none at first."""
    return Summaries()


@pytest.fixture
def runs(spark: SparkSession, tmp_path: Path, summaries: Summaries) -> Runs:
    """Runs by name, whose sidelines and lists lie in a folder of the test's."""
    return runs_in(tmp_path, spark, summaries)
