"""One real store, one Spark session, and the jobs run in this process, for all store tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import yaml
from job_kit import JOBS, Outcome, settings_for
from lowtide_spark.frames.store import Store
from lowtide_spark.run.job import run_job
from lowtide_spark.run.session import remember_classes
from pyspark.sql import SparkSession
from recorded import record_as_cleaned
from scene import Scene, staged

from lowtide.config import Config, load
from lowtide.lab.stack import Stack, StackConfig
from lowtide.lab.workload import OmidClient
from lowtide.run.jobs import INSPECTIONS
from lowtide.store.state import StateStore, opened
from tests import warm


@contextmanager
def booted(config: StackConfig) -> Iterator[Stack]:
    """A store that runs for the block: for a module that needs one of its own."""
    store = Stack(config)
    try:
        store.up()
        yield store
    finally:
        store.down()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A running store on free ports, with an incremental oracle whose low watermark moves quickly."""
    if running := warm.running_store():
        yield running
        return
    with booted(warm.store_config(tmp_path_factory.mktemp("store"))) as store:
        yield store


@pytest.fixture(scope="session")
def omid(stack: Stack) -> Iterator[OmidClient]:
    """The real Omid client and HBase's administration, for all that tests do to the store."""
    with warm.running_client(stack) or OmidClient(stack) as client:
        yield client


@pytest.fixture(scope="module")
def swept(omid: OmidClient) -> Iterator[None]:
    """A module leaves the store without its tables: one it forgot would hold another's prune bound."""
    there = set(omid.tables())
    yield
    settings = Config()
    kept = {settings.state.table, settings.state.journal_table}
    for table in set(omid.tables()) - there - kept:
        omid.drop(table)


@pytest.fixture
def no_snapshots(omid: OmidClient) -> None:
    """A store without HBase snapshots: a read of another test may still keep its own."""
    for name in omid.snapshots():
        omid.delete_snapshot(name)


@pytest.fixture
def snapshot(omid: OmidClient) -> Iterator[Callable[..., str]]:
    """Take an HBase snapshot that goes with the test; of one table several bear names that end differently."""
    taken: list[str] = []

    def take(table: str, end: str = "") -> str:
        taken.append(f"of-{table}{end}")
        omid.snapshot(table, taken[-1])
        return taken[-1]

    yield take
    for name in set(taken) & set(omid.snapshots()):
        omid.delete_snapshot(name)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One session for all tests: a start costs seconds."""
    settings = warm.spark_settings(tmp_path_factory.mktemp("spark"))
    running = warm.running_session(settings)
    session = running or warm.new_session(settings)
    remember_classes(session)
    if running:
        yield session
        return
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.fixture
def configure(stack: Stack, tmp_path: Path) -> Callable[..., Path]:
    """Write a configuration file for the store, with sections changed, and return its path: a file of its own each
    time, so that one that a test keeps stays what it is.
    """
    numbers = count(1)

    def write(**sections: Any) -> Path:
        path = tmp_path / f"lowtide-{next(numbers)}.yaml"
        path.write_text(yaml.safe_dump(settings_for(stack, tmp_path, **sections)))
        return path

    return write


@pytest.fixture
def job(spark: SparkSession, configure: Callable[..., Path], tmp_path: Path) -> Callable[..., Outcome]:
    """Run a job in this process, on the session that is there; ``config=`` names another configuration file."""

    def run(name: str, *arguments: str, config: Path | None = None) -> Outcome:
        summary = tmp_path / "summary.json"
        summary.unlink(missing_ok=True)
        argv = ["--config", str(config or configure()), "--summary", str(summary), *arguments]
        code = run_job(name, JOBS[name], argv, read_only=name in INSPECTIONS, blind=2 if name == "verify" else 1)
        return Outcome(code, json.loads(summary.read_text()))

    return run


@pytest.fixture
def connector(spark: SparkSession, configure: Callable[..., Path]) -> Store:
    """The store as the jobs see it."""
    return Store(spark, load(configure()))


@pytest.fixture
def state(stack: Stack, configure: Callable[..., Path]) -> Iterator[StateStore]:
    """Lowtide's records."""
    config = load(configure())
    with opened(config) as state:
        yield state


@pytest.fixture
def recorded(omid: OmidClient, connector: Store, state: StateStore) -> Callable[..., int]:
    """Record of tables of complete transactions that they are cleaned up to now, as a run would that has nothing to do;
    the low watermark.
    """
    return lambda *tables: record_as_cleaned(omid, connector, state, tables)


@pytest.fixture
def scene(omid: OmidClient) -> Iterator[Scene]:
    """Tables of this test, and ways to put cells into them."""
    yield from staged(omid)
