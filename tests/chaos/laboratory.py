"""The store, Spark and the jobs that a plan happens with."""

from __future__ import annotations

import csv
import json
import os
import time
from bisect import bisect
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import typer
import yaml
from job_kit import APART, JOBS, Outcome, settings_for
from lowtide_spark.frames.folders import safe
from lowtide_spark.run.job import run_job
from lowtide_spark.run.session import remember_classes
from py4j.protocol import Py4JError
from pyarrow import parquet
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from lowtide.cli import decisions
from lowtide.cli import ledger as ledger_of_people
from lowtide.cli.commit_table import commit_table_whole
from lowtide.cli.state import state_reset
from lowtide.config import Config, load
from lowtide.errors import LowtideError
from lowtide.history.holding import read_options, release, take
from lowtide.lab.stack import Stack
from lowtide.lab.stack.files import site
from lowtide.lab.workload import OmidClient, WorkloadError
from lowtide.lab.workload.client import COMMIT_TABLE
from lowtide.lab.workload.phoenix import drop_tables, make_tables
from lowtide.lab.workload.sql import PhoenixClient
from lowtide.store.gateway import table_state
from lowtide.store.state import opened
from lowtide.tables.consent import ATTRIBUTE, Pause
from lowtide.tables.inventory import FAMILY_FLAG
from lowtide.values.formats import ALLOTTED_FAMILY, ALLOTTED_QUALIFIER, ALLOTTED_ROW
from tests import warm
from tests.chaos import ledger_clients, lying
from tests.chaos.judge import CHECKPOINTS, Cell, Column, Key, Raw, varint
from tests.chaos.lying import HBaseRelay, LyingRelay
from tests.chaos.steps import ROWS, TABLES, Table

FAMILIES = ("a", "b")
#: Compactions come when a step asks for them, and no other time.
NO_COMPACTIONS = {"hbase.hstore.compaction.min": "1000", "hbase.hstore.compaction.max": "1000"}
TWO_AT_A_TIME = dict.fromkeys(NO_COMPACTIONS, "2")
STATE, JOURNAL = "CHAOS_STATE", "CHAOS_JOURNAL"
#: Before the names of the ledger's tables.
LEDGER = "chaos_"
#: The lists of files in a run's sideline of a table.
_LISTS = "_lowtide-list-*.json"
#: Longer than what runs put aside is kept, s.
_OLD = 40 * 86_400
#: How much grace it has where it has one, ms.
GRACE = 900_000
#: Bytes of it at the beginning of a row.
_VIEW_NUMBER = 8
TIMESTAMPS = "OMID_TIMESTAMP_TABLE"
#: What another oracle has in the same HBase: its commit table, and a table of its clients.
OTHERS = OTHER_COMMITS, OTHER_DATA = "OTHER_COMMITS", "other_data"
#: So many numbers are given out one by one; beyond more of them an oracle is set.
_FEW = 3000

#: By which the data source refuses a read point; any other error is a fault of its own.
REFUSED = (
    "cannot be read with asOf: ",
    "before its ancient history mark",
    "the greatest ancient history mark of any table",
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
    #: Before the gateway, and before HBase's servers. Without them nobody lies.
    gateway: LyingRelay | None = None
    servers: HBaseRelay | None = None
    #: A client of Apache Phoenix; without one the store has none.
    phoenix: PhoenixClient | None = None
    #: Timestamps of the plan are above the first; an oracle that was started again goes on from the next, above all
    #: that it may have given out.
    origins: list[int] = field(default_factory=list)
    #: From where on they come a second time where the oracle is made anew; from the first on where it is lower.
    noted: int = 0

    @property
    def origin(self) -> int:
        """Timestamps of the plan are above it."""
        return self.origins[0]

    @property
    def log(self) -> Path:
        """What the clients do."""
        return self.folder / "clients.jsonl"

    @property
    def file(self) -> Path:
        """The configuration."""
        return self.folder / "lowtide.yaml"

    @property
    def with_grace(self) -> Path:
        """The same on a machine on which the ledger has a grace."""
        return self.folder / "lowtide-with-grace.yaml"

    @property
    def config(self) -> Config:
        """The configuration, loaded."""
        return load(self.file)

    @property
    def sideline(self) -> Path:
        """Where runs put aside what they remove."""
        return self.folder / "sideline"

    @property
    def sideline_away(self) -> Path:
        """Where that is while it is away."""
        return self.folder / "sideline-away"

    def begin(
        self,
        *,
        ledger: bool = False,
        relayed: bool = False,
        patient: bool = False,
        phoenix: bool = False,
        sweeps: bool = False,
        low_latency: bool = False,
        loose: Sequence[str] = (),
    ) -> None:
        """A store without transactional tables but those of the plan, which are empty, and without records of them.

        With *ledger* the configuration has one. Runs go through the relay before the gateway, if there is one, and
        where they are *relayed* through that before HBase's servers. With *patient* HBase's client has as many tries as
        Lowtide gives it where nothing is configured: enough for a server that died to be missed. With *phoenix* the
        tables of its clients are there too. Where it *sweeps* the journal lets go of what it had
        when a run began. Of *low_latency* the configuration tells, and that the owners of the tables that are *loose*
        accept what their servers lose.
        """
        self.folder.mkdir(parents=True)
        content = self._settings(ledger=ledger, relayed=relayed, patient=patient, sweeps=sweeps)
        content["omid"]["low_latency"] = low_latency
        content["tables"] = {str(table): {"accept_durability": True} for table in loose}
        self.file.write_text(yaml.safe_dump(content))
        if ledger:
            graceful = {**content["ledger"], "grace": f"{GRACE // 1000}s"}
            self.with_grace.write_text(yaml.safe_dump({**content, "ledger": graceful}))
        self._leave_to_others()
        for snapshot in self.omid.snapshots():
            self.omid.delete_snapshot(snapshot)
        others = Config().state
        kept = {COMMIT_TABLE, TIMESTAMPS, others.table, others.journal_table}
        if self.phoenix is not None:
            drop_tables(self.phoenix)
        for table in set(self.omid.tables()) - kept:
            if not table.startswith("SYSTEM."):  # Phoenix's own
                self.omid.drop(table)
        for table in TABLES:
            self.make(table)
        if phoenix:
            assert self.phoenix is not None, "the store has no Phoenix"
            make_tables(self.phoenix)
        with opened(self.config) as state:
            state.create()
            state.record_format()
        self.omid.advance_watermark()
        self.origins.append(self.omid.begin())
        with opened(self.config) as state:
            # As a collection does: no history is collected of an oracle that counts without any.
            state.add_sample(state.server_time(), self.origins[-1])

    def _settings(self, *, ledger: bool, relayed: bool, patient: bool, sweeps: bool) -> dict[str, Any]:
        content = settings_for(
            self.stack,
            self.folder,
            **({"ledger": {"prefix": LEDGER, "grace": "0s", "allow_short_grace": True}} if ledger else {}),
            state={"table": STATE, "journal_table": JOURNAL, **({"journal_keep": "0s"} if sweeps else {})},
            defaults={
                "history_max_age": "0s",
                "min_history_age": "0s",
                "budget": {"share": 1.0},
                # Nothing that only a pass from 0 finds may find its entry gone from the journal.
                **({"full_pass_every": "0s"} if sweeps else {}),
            },
        )
        hbase = content["hbase"]
        if self.gateway is not None:
            hbase["thrift"] = {"port": self.gateway.port, "timeout": "3s"}
        if relayed:
            hbase["properties"] |= {**lying.THROUGH_SOCKS, "hbase.rpc.timeout": "8000"}
        if patient:
            del hbase["properties"]["hbase.client.retries.number"]
        return content

    def new_oracle(self) -> None:
        """The oracle was started again: wait for the client, which looks for it once a second.

        Raises:
            WorkloadError: it does not find it.
        """
        until = time.monotonic() + 60
        while True:
            try:
                self.origins.append(self.omid.begin())
                return
            except WorkloadError:
                if time.monotonic() > until:
                    raise

    def note_timestamp(self) -> None:
        """This is what the oracle counts from, should it be made anew."""
        self.noted = self.omid.begin()

    def make_oracle_anew(self) -> None:
        """It begins with numbers of the plan once more, and with an empty commit table."""
        given = max(self.omid.begin(), self._given())
        self._given_file.write_text(str(given))  # until it has passed them no other plan may begin, whoever ends this
        self._oracle_from(max(self.noted, self.origin), emptied=True)

    def pass_all(self) -> None:
        """The oracle passes all numbers that it ever gave."""
        given = self._given()
        if given - self.omid.begin() > _FEW * CHECKPOINTS:
            self._oracle_from(given)
        while self.omid.begin() <= given:
            pass

    def _oracle_from(self, number: int, *, emptied: bool = False) -> None:
        """Start it again above a number."""
        self.stack.kill("tso")
        if emptied:
            self.new_commit_table()
            self.omid.truncate(COMMIT_TABLE)
        at = time.time_ns() // 10**6
        row = ALLOTTED_ROW, ALLOTTED_FAMILY, ALLOTTED_QUALIFIER
        self.omid.put(TIMESTAMPS, *row, at, number.to_bytes(8, "big"))
        self.stack.up()
        self.new_oracle()

    @property
    def _given_file(self) -> Path:
        return self.stack.config.home / "chaos-given"

    def _given(self) -> int:
        """The highest number of the lives of the oracle that are over, if it has not passed it for good."""
        return int(self._given_file.read_text()) if self._given_file.exists() else 0

    def new_commit_table(self) -> None:
        """The commit table is another than the others on this store have seen, or is about to be."""
        self._entries_file.touch()

    @property
    def _entries_file(self) -> Path:
        return self.stack.config.home / "chaos-entries"

    def _leave_to_others(self) -> None:
        """Whoever comes after this plan, or after one that broke off, gets numbers that nobody had, and need not wonder
        about the commit table.
        """
        if self._given_file.exists():
            self.pass_all()
            self.omid.advance_watermark()
            self._given_file.unlink()
        if self._entries_file.exists():
            with opened(load(self.file).model_copy(update={"state": Config().state})) as state:
                if state.exists() and state.commit_table_life():
                    state.settle_commit_table(table_state(state.connection, COMMIT_TABLE)[1])
            self._entries_file.unlink()

    def reset_anew(self) -> None:
        """A person has the records begin anew, after the oracle was made anew."""
        state_reset(self.file, same_oracle=False, yes=True)

    def commit_table_whole(self) -> None:
        """A person says that the commit table has all its entries."""
        commit_table_whole(self.file, yes=True)

    def name_oracles(self, ours: Sequence[str], theirs: Sequence[str]) -> None:
        """The configuration says of these tables whose they are."""
        for file in (self.file, *([self.with_grace] if self.with_grace.exists() else [])):
            content = yaml.safe_load(file.read_text())
            content["omid"] |= {"tables": [str(table) for table in ours], "foreign": [*APART, *theirs]}
            file.write_text(yaml.safe_dump(content))

    def ledger(self) -> AbstractContextManager[ledger_clients.Line]:
        """The ledger that the configuration has, with the users of a plan, for a block; past the relay, which lies to
        runs alone.
        """
        config = self.config
        thrift = config.hbase.thrift.model_copy(update={"port": self.stack.config.thrift_port})
        hbase = config.hbase.model_copy(update={"thrift": thrift})
        return ledger_clients.opened(config.model_copy(update={"hbase": hbase}))

    def settle(self, within: float = 150) -> None:
        """Wait until no task of Spark's is at work: one that failed has siblings, which may wait two minutes.

        Raises:
            RuntimeError: some still are after so many seconds; what they write would be judged as somebody else's.
        """
        tracker = self.spark.sparkContext._jsc.sc().statusTracker()  # type: ignore[union-attr]
        until = time.monotonic() + within
        while running := sum(each.numRunningTasks() for each in tracker.getExecutorInfos()):
            if time.monotonic() > until:
                msg = f"{running} tasks of Spark's are still at work {within:.0f} s after their run had failed or ended"
                raise RuntimeError(msg)
            time.sleep(0.05)

    def end(self) -> None:
        """Drop them, and leave an oracle as it was, to others."""
        self._leave_to_others()
        for snapshot in self.omid.snapshots():
            self.omid.delete_snapshot(snapshot)
        for table in (*Table, STATE, JOURNAL, *OTHERS, *ledger_clients.tables(self.config)):
            self.omid.drop(table)
        if self.phoenix is not None:
            drop_tables(self.phoenix)

    def make(self, table: Table) -> None:
        """One of the plan's tables, of two regions or of one."""
        splits = (row(ROWS // 2),) if table is Table.A else ()
        self.omid.create(table, FAMILIES, splits=splits, attributes=NO_COMPACTIONS)

    def mark(self, table: str, family: str, *, on: bool) -> None:
        """Give a family Omid's mark, or take it off."""
        hadoop: Any = self.spark._jvm.org.apache.hadoop.hbase  # type: ignore[union-attr]
        settings = hadoop.HBaseConfiguration.create()
        for name, value in self.config.hbase.client_properties().items():
            settings.set(name, value)
        connection = hadoop.client.ConnectionFactory.createConnection(settings)
        try:
            admin, name = connection.getAdmin(), hadoop.TableName.valueOf(table)
            known = admin.getDescriptor(name).getColumnFamily(bytearray(family.encode()))
            changed = hadoop.client.ColumnFamilyDescriptorBuilder.newBuilder(known)
            admin.modifyColumnFamily(name, changed.setValue(FAMILY_FLAG, str(on).lower()).build())
        finally:
            connection.close()

    def job(self, name: str, run: str, *arguments: str) -> Outcome:
        """A run of a job, in this process."""
        argv = ["--config", str(self.file), "--summary", str(self.summary(run)), "--run-id", run, *arguments]
        return Outcome(run_job(name, JOBS[name], argv), json.loads(self.summary(run).read_text()))

    def summary(self, run: str) -> Path:
        """A run's summary."""
        return self.folder / f"{run}.json"

    def table_of_balances(self, run: str) -> Path:
        """Where a run writes all balances, if it is told to."""
        return self.folder / f"{run}-balances"

    def balances(self, run: str) -> list[list[str]]:
        """What whoever reads CSV finds there, names of the columns first."""
        (file,) = self.table_of_balances(run).glob("*.csv")
        with file.open(newline="") as text:
            return [*csv.reader(text)]

    def raw(self, table: str) -> Raw:
        """All cells of a table; of the commit table and the journal, those of the plan's transactions and what is no
        transaction's, as the low watermark.
        """
        found: dict[tuple[Any, ...], Cell] = {}
        for cell in self.omid.raw(table):
            found.setdefault(cell[:5], Cell(*cell))  # of two at one time HBase shows, and has first, the later
        cells = found.values()
        if table not in (COMMIT_TABLE, JOURNAL):
            return frozenset(cells)
        origin = self.origin
        return frozenset(c for c in cells if len(c.row) != 9 or int.from_bytes(c.row[1:], "big") >= origin)

    def journal(self) -> Raw:
        """The journal's cells; none where there is none."""
        return self.raw(JOURNAL) if JOURNAL in self.omid.tables() else frozenset()

    def aside(self, run: str, table: str) -> set[Key]:
        """What the run's sideline has of the table, in files that a list beside them names as long as they are: of any
        other nobody would know that it was cut short, or has gone.
        """
        root = self.sideline_away if self.sideline_away.exists() else self.sideline
        return listed_aside(root / safe(run) / safe(table))

    def put_aside(self) -> set[tuple[str, str]]:
        """The files of cells that are in sidelines: the run's folder, and the rest of the path."""
        root = self.sideline_away if self.sideline_away.exists() else self.sideline
        files = (file.relative_to(root) for file in root.glob("run-*/*/[!._]*.parquet"))
        return {(file.parts[0], "/".join(file.parts[1:])) for file in files}

    def make_sidelines_old(self) -> None:
        """All that runs have put aside, and its folders, have times of long ago."""
        then = time.time() - _OLD
        for folder in self.sideline.glob("run-*"):
            for path in (*folder.rglob("*"), folder):
                os.utime(path, (then, then))

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

    def hold(self, table: str, point: int | None = None) -> tuple[str, int]:
        """Hold a table's history from a read point on, or the low watermark; the hold's id and its read point."""
        held = take(self.config, table, point, owner="chaos", reason="by the plan", lasting=timedelta(hours=6))
        return held.id, held.timestamp

    def release(self, table: str, name: str) -> None:
        """Let go of a hold."""
        release(self.config, table, name)

    def forget(self, table: str) -> None:
        """A person says that what was cleaned of a table counts no more."""
        decisions.forget(table, self.file, yes=True)

    def reset(self) -> None:
        """A person has the records begin anew, of the same oracle."""
        with opened(self.config) as state:
            state.reset(same_oracle=True)

    def confirm(self, table: str) -> None:
        """A person says that a table's transactions were this oracle's."""
        decisions.confirm(table, self.file, yes=True)

    def journal_lost(self) -> None:
        """A person has everything go on without what the journal has lost."""
        decisions.journal_lost(self.file, yes=True)

    def resolve(self, start: int, commit: int | None) -> None:
        """A person says what became of a transaction."""
        decisions.resolve([start], self.file, aborted=commit is None, committed=commit, yes=True)

    def resolve_aborted(self, starts: Sequence[int]) -> None:
        """A person says that none of these committed: of all at once, or where that is refused, as of one that has its
        mark, of each.
        """
        for some in (starts, *([each] for each in starts)):
            try:
                decisions.resolve(list(some), self.file, aborted=True, yes=True)
            except LowtideError:
                continue
            if some is starts:
                return

    def mend_ledger(self) -> str:
        """A person has the ledger's records set right; what goes against it. The servers of a plan have one clock: what
        waits until all have passed waits for nothing.
        """
        try:
            with patch.object(ledger_of_people, "sleep"):
                ledger_of_people.mend(self.file, yes=True)
        except (LowtideError, typer.Exit) as error:
            return f"{type(error).__name__}: {error}"
        return ""

    def from_origin(self, cells: Raw, known: Collection[int] = (), table: str = COMMIT_TABLE) -> list[tuple[Any, ...]]:
        """Cells of a *table* with timestamps counted from the plan's beginning, so that they are those of another
        time's. Where the oracle's clock is the world's, from the last of those that are *known*, which are numbered, up
        to its checkpoints: whoever else comes after it comes at some time.
        Of an index of views the rows are without the number that Phoenix has given it, the next one each time.
        """
        of_views = _VIEW_NUMBER if table.startswith("_IDX_") else 0
        origins = sorted({*self.origins, *known})

        def counted(timestamp: int) -> tuple[int, int]:
            nth = max(bisect(origins, timestamp) - 1, 0)
            since = timestamp - origins[nth]
            return nth, min(since, CHECKPOINTS) if known else since

        def moved(cell: Cell) -> tuple[Any, ...]:
            own: Any = cell.row[of_views:]
            value: Any = cell.value
            if table == COMMIT_TABLE and len(own) == 9:
                start = int.from_bytes(own[1:], "big")
                own = counted(start)
                if cell.qualifier == b"C":  # how far the commit is from the start
                    value = counted(start + varint(value))
            elif len(value) == 8 and cell.qualifier.startswith(b"\x00\xc2\x80"):
                value = counted(int.from_bytes(value, "big"))
            return own, cell.family, cell.qualifier, counted(cell.timestamp), cell.kind, value

        return sorted((moved(cell) for cell in cells if cell.row != b"LOW_WATERMARK"), key=repr)


def listed_aside(folder: Path) -> set[Key]:
    """The keys of the cells in the files of a run's sideline of a table that are listed there."""
    lengths: dict[str, int] = {}
    for file in folder.glob(_LISTS):
        with suppress(ValueError, KeyError, TypeError):  # one that nobody can read names nothing
            lengths |= json.loads(file.read_text())["files"]
    whole = [file for name in lengths if (file := folder / name).exists() and file.stat().st_size == lengths[name]]
    cells = (cell for file in whole for cell in parquet.read_table(file).to_pylist())
    return {(cell["row"], cell["family"], cell["qualifier"] or b"", cell["timestamp"]) for cell in cells}


def row(number: int) -> str:
    """The key of a row of the plan's tables, as the clients' scripts have it."""
    return f"r{number:0{len(str(ROWS))}d}"


@contextmanager
def opened_laboratory(folder: Path, servers: int = 0, *, phoenix: bool = False) -> Iterator[Laboratory]:
    """A store of its own, of one process or of so many region servers, with or without Phoenix, a Spark driver, and
    relays before the gateway and HBase's servers, for the block.
    """
    config = warm.store_config(folder / "store")
    if phoenix:  # which takes timestamps for nanoseconds
        config = replace(config, phoenix=True, timestamps="world")
    if servers:
        sooner = {**config.extra_hbase, "zookeeper.session.timeout": "10000"}  # a dead one is missed soon
        config = replace(config, region_servers=servers, hbase_heap="512m", extra_hbase=sooner)
    stack = Stack(config)
    at_gateway, at_servers = LyingRelay(config.thrift_port), HBaseRelay()
    session = _session_through(at_servers, folder)
    try:
        session.sparkContext.setLogLevel("ERROR")
        remember_classes(session)
        stack.up()
        with OmidClient(stack) as omid, PhoenixClient(stack) if phoenix else nullcontext() as sql:
            yield Laboratory(stack, omid, session, folder / "plan", at_gateway, at_servers, sql)
    finally:
        session.stop()
        stack.down()
        for relay in (at_gateway, at_servers):
            relay.close()


def _session_through(relay: HBaseRelay, folder: Path) -> SparkSession:
    """A session whose driver finds the relay in Hadoop's configuration; only HBase's blocking client looks for it. A
    task that fails is tried once more.
    """
    conf = folder / "hadoop"
    conf.mkdir(parents=True)
    properties = {**lying.SOCKS_FACTORY, lying.SOCKS_SERVER: f"127.0.0.1:{relay.port}"}
    (conf / "core-site.xml").write_text(site(properties))
    before = os.environ.get("HADOOP_CONF_DIR")
    os.environ["HADOOP_CONF_DIR"] = str(conf)
    try:
        return warm.new_session(warm.spark_settings(folder / "spark"), master="local[2,2]")
    finally:
        if before is None:
            del os.environ["HADOOP_CONF_DIR"]
        else:
            os.environ["HADOOP_CONF_DIR"] = before
