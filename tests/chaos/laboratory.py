"""The store, Spark and the jobs that a plan happens with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import wreck
import yaml
from job_kit import JOBS, Outcome, settings_for
from lowtide_spark.run.job import run_job
from lowtide_spark.run.session import remember_classes
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lowtide.config import Config, load
from lowtide.history.holding import read_options, release, take
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.lab.workload.client import COMMIT_TABLE
from lowtide.store.state import opened
from lowtide.tables.consent import ATTRIBUTE, Pause
from tests import warm
from tests.chaos.judge import Cell, Column, Key, Raw
from tests.chaos.plan import ROWS, Table

FAMILIES = ("a", "b")
#: Compactions come when a step asks for them, and no other time.
_NO_COMPACTIONS = {"hbase.hstore.compaction.min": "1000"}
STATE, JOURNAL = "CHAOS_STATE", "CHAOS_JOURNAL"
TIMESTAMPS = "OMID_TIMESTAMP_TABLE"

#: By which the data source refuses a read point; any other error is a fault of its own.
REFUSED = (
    "cannot be read with asOf: ",
    "before its ancient history mark",
    ", later than the low watermark ",
    "history GC has overtaken this read",
    "enabled since the read began",
)


@dataclass
class Laboratory:
    """What one plan happens with, from :meth:`begin` on: tables of its own, records and a journal of its own."""

    stack: Stack
    omid: OmidClient
    spark: SparkSession
    folder: Path
    #: Timestamps of the plan are above it.
    origin: int = 0

    @property
    def log(self) -> Path:
        """What the clients do."""
        return self.folder / "clients.jsonl"

    @property
    def file(self) -> Path:
        """The configuration."""
        return self.folder / "lowtide.yaml"

    @property
    def config(self) -> Config:
        """The configuration, loaded."""
        return load(self.file)

    def begin(self) -> None:
        """A store without transactional tables but those of the plan, which are empty, and without records of them."""
        self.folder.mkdir(parents=True)
        content = settings_for(
            self.stack,
            self.folder,
            state={"table": STATE, "journal_table": JOURNAL},
            defaults={"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}},
        )
        self.file.write_text(yaml.safe_dump(content))
        for snapshot in self.omid.snapshots():
            self.omid.delete_snapshot(snapshot)
        others = Config().state
        kept = {COMMIT_TABLE, TIMESTAMPS, others.table, others.journal_table}
        for table in set(self.omid.tables()) - kept:
            self.omid.drop(table)
        for table in Table:
            self.make(table)
        with opened(self.config) as state:
            state.create()
            state.record_format()
        self.omid.advance_watermark()
        self.origin = self.omid.begin()

    def end(self) -> None:
        """Drop them."""
        for snapshot in self.omid.snapshots():
            self.omid.delete_snapshot(snapshot)
        for table in (*Table, STATE, JOURNAL):
            self.omid.drop(table)

    def make(self, table: Table) -> None:
        """One of the plan's tables, of two regions or of one."""
        splits = (row(ROWS // 2),) if table is Table.A else ()
        self.omid.create(table, FAMILIES, splits=splits, attributes=_NO_COMPACTIONS)

    def job(self, name: str, run: str, *arguments: str) -> Outcome:
        """A run of a job, in this process."""
        summary = self.folder / f"{run}.json"
        argv = ["--config", str(self.file), "--summary", str(summary), "--run-id", run, *arguments]
        return Outcome(run_job(name, JOBS[name], argv), json.loads(summary.read_text()))

    def raw(self, table: str) -> Raw:
        """All cells of a table; of the commit table, those of the plan's transactions and the low watermark."""
        found: dict[tuple[Any, ...], Cell] = {}
        for cell in self.omid.raw(table):
            found.setdefault(cell[:5], Cell(*cell))  # of two at one time HBase shows, and has first, the later
        cells = found.values()
        if table != COMMIT_TABLE:
            return frozenset(cells)
        origin = self.origin
        return frozenset(c for c in cells if len(c.row) != 9 or int.from_bytes(c.row[1:], "big") >= origin)

    def journal(self) -> Raw:
        """The journal's cells; none where there is none."""
        return self.raw(JOURNAL) if JOURNAL in self.omid.tables() else frozenset()

    def aside(self, run: str, table: str) -> set[Key]:
        """What the run's sideline has of the table."""
        return wreck.aside(self.folder / "sideline", run, table)

    def as_of(self, table: str, point: int) -> dict[Column, bytes] | None:
        """The table at a read point through the data source; None: it refuses."""
        reader = self.spark.read.format("lowtide").options(**read_options(self.config, table))
        try:
            rows = reader.option("table", table).option("asOf", str(point)).load().collect()
        except (PySparkException, Py4JError) as error:
            if not any(words in str(error) for words in REFUSED):
                raise
            return None
        return {(bytes(r.row), bytes(r.family), bytes(r.qualifier)): bytes(r.value) for r in rows}

    def pause(self, table: str | None, name: str) -> None:
        """Nothing is to be written to a table, for a day."""
        with opened(self.config) as state:
            now = state.server_time()
            state.add_pause(Pause(name, table, "chaos", "by the plan", now, now + timedelta(days=1)), now)

    def resume(self, name: str) -> None:
        """It may be again."""
        with opened(self.config) as state:
            state.drop_pause(name)

    def veto(self, table: str, *, on: bool) -> None:
        """The table's owner says no, or yes again."""
        self.omid.set(table, **{ATTRIBUTE: "on" if on else "off"})

    def hold(self, table: str) -> tuple[str, int]:
        """Hold a table's history from the low watermark on; the hold's id and its read point."""
        held = take(self.config, table, owner="chaos", reason="by the plan", lasting=timedelta(hours=6))
        return held.id, held.timestamp

    def release(self, table: str, name: str) -> None:
        """Let go of a hold."""
        release(self.config, table, name)

    def from_origin(self, cells: Raw) -> list[tuple[Any, ...]]:
        """Cells with timestamps counted from the plan's beginning, so that they are those of another time's."""

        def moved(cell: Cell) -> tuple[Any, ...]:
            own, value = cell.row, cell.value
            if len(own) == 9:  # a row of the commit table
                own = int.from_bytes(own[1:], "big") - self.origin
            elif len(value) == 8 and cell.qualifier.startswith(b"\x00\xc2\x80"):
                value = int.from_bytes(value, "big") - self.origin
            return own, cell.family, cell.qualifier, cell.timestamp - self.origin, cell.kind, value

        return sorted((moved(cell) for cell in cells if cell.row != b"LOW_WATERMARK"), key=repr)


def row(number: int) -> str:
    """The key of a row of the plan's tables, as the clients' scripts have it."""
    return f"r{number:0{len(str(ROWS))}d}"


@contextmanager
def opened_laboratory(folder: Path, servers: int = 0) -> Iterator[Laboratory]:
    """A store of its own, of one process or of so many region servers, and a Spark driver, for the block."""
    config = warm.store_config(folder / "store")
    if servers:
        config = type(config)(**{**vars(config), "region_servers": servers})
    stack = Stack(config)
    session = warm.new_session(warm.spark_settings(folder / "spark"))
    try:
        session.sparkContext.setLogLevel("ERROR")
        remember_classes(session)
        stack.up()
        with OmidClient(stack) as omid:
            yield Laboratory(stack, omid, session, folder / "plan")
    finally:
        session.stop()
        stack.down()
