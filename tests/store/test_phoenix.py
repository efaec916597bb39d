"""Apache Phoenix: its transactional tables are found, cleaned and pruned, and SQL answers as it must."""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from breaking.catalogue import number_of_today
from commits import ever_committed
from conftest import Outcome, booted
from listed import keys, listed, texts
from lowtide_airflow.tables import sizes
from lowtide_spark.frames.inventory import take_inventory
from lowtide_spark.frames.store import Store
from pyspark.sql import SparkSession
from scene import Scene
from shown import unproved

from lowtide.config import load
from lowtide.health import Cause, assess
from lowtide.health.conditions import LowWatermarkPast, check
from lowtide.health.reader import read
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.lab.workload.phoenix import DDL, PHYSICAL, PhoenixWorkload, drop_tables, make_tables
from lowtide.lab.workload.sql import PhoenixClient, SqlError
from lowtide.store.gateway import allotted, connect
from lowtide.tables.inventory import Kind
from lowtide.values.formats import base
from lowtide.values.skew import oracle_ahead
from tests import seeds
from tests.chaos import plan
from tests.chaos.director import Director
from tests.chaos.laboratory import Laboratory
from tests.prove import PROVE

Job = Callable[..., Outcome]

TRANSACTIONS = int(os.environ.get("LOWTIDE_PHOENIX_TRANSACTIONS", "100"))
#: Seconds between two transactions of a client at work: the jobs need some of the machine too.
PACE = 0.2 if PROVE else 1.0
#: Clients at work beside the jobs that are killed.
KILLS = 2


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A store of its own, with Phoenix. Phoenix takes timestamps for nanoseconds: the oracle's clock is the world's."""
    home = tmp_path_factory.mktemp("phoenix")
    patient = {"hbase.thrift.server.socket.read.timeout": "900000"}
    with booted(
        free_ports_config(home, phoenix=True, timestamps="world", conflict_map_size=64, extra_hbase=patient)
    ) as store:
        yield store


@pytest.fixture(scope="module")
def omid(stack: Stack) -> Iterator[OmidClient]:
    with OmidClient(stack) as client:
        yield client


@pytest.fixture
def phoenix(stack: Stack) -> Iterator[PhoenixClient]:
    """A client of Phoenix, on a store without the workload's tables."""
    with PhoenixClient(stack) as client:
        drop_tables(client)
        for table in ("PX_X", "PX_P"):
            client.execute(f"DROP TABLE IF EXISTS {table} CASCADE")
        yield client


#: Transactions of a client at work, which only asks once it has made them: every answer is of whole tables, and these
#: would grow for as long as the jobs take.
MOST = 300
#: History may go as soon as it is history.
YOUNG = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}


def clean_and_prune(job: Job) -> int:
    """A full pass over every table that is found, then pruning without grace; the prune bound."""
    cleaned = job("orphan_cleanup", "--full", "--execute")
    assert cleaned.code == 0, cleaned.problems
    pruned = job("commit_table_pruning", "--grace", "0s", "--execute")
    assert pruned.code == 0, pruned.problems
    return int(pruned.summary["bound"])


def test_the_oracles_clock_is_read_from_what_it_stores(
    job: Job, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """Here all run on one machine, so it is HBase's; nothing is refused, and a time is waited for until the low
    watermark is there.
    """
    omid.advance_watermark()
    config = load(configure())
    with connect(config.hbase.thrift) as connection:
        known = allotted(connection, config)
    ahead = oracle_ahead(known)
    assert ahead is not None
    assert timedelta(seconds=-30) < ahead < timedelta(seconds=1), "behind by what the write took"
    outcome = job("watermark_collection", "--execute")
    assert (outcome.code, outcome.summary["notes"]) == (0, [])
    now = datetime.now(UTC)
    assert check(LowWatermarkPast(past=(now - timedelta(days=1)).isoformat()), config).met
    assert not check(LowWatermarkPast(past=(now + timedelta(hours=1)).isoformat()), config).met


@pytest.mark.turns(2, group="Phoenix at length")
@pytest.mark.timeout(1800)
@seeds.each("Phoenix", always=[1, 2])
def test_sql_answers_as_the_model_says_after_the_jobs(
    job: Job, stack: Stack, omid: OmidClient, phoenix: PhoenixClient, configure: Callable[..., Path], seed: int
) -> None:
    """After transactions of every kind, with clients stopped at each point of the commit and killed in it, the jobs
    find every physical table by themselves, leave nothing unproved in tables, indexes and view indexes and no row of
    the commit table at or below the bound; every scan, index, count and point read equals the model: then, after major
    compactions, after history GC, and after major compactions again."""
    for statement in DDL:
        phoenix.execute(statement)
    work = PhoenixWorkload(stack, phoenix, random.Random(seed))
    try:
        work.run(TRANSACTIONS, KILLS)
        watermark = omid.advance_watermark()
        left = {table: len(unproved(omid, table, watermark)) for table in PHYSICAL}
        for _ in range(5):  # chance may leave a table without anything to do
            if all(left[t] for t in PHYSICAL if not t.startswith("PX_M")):
                break
            for _ in range(20):
                work.one()
            watermark = omid.advance_watermark()
            left = {table: len(unproved(omid, table, watermark)) for table in PHYSICAL}
        assert all(left[t] for t in PHYSICAL if not t.startswith("PX_M")), left

        planned, scene = job("orphan_cleanup", "--full", "--list"), Scene(omid, [])
        there = {table: scene.data(table).keys() for table in PHYSICAL}
        bound = clean_and_prune(job)
        for table in PHYSICAL:
            gone = there[table] - scene.data(table).keys()
            assert keys(listed(planned, table), "delete") == texts(gone), "which the dry run had named"
        assert {table: unproved(omid, table, watermark) for table in PHYSICAL} == {table: [] for table in PHYSICAL}
        assert base(bound) >= base(watermark) - 50
        assert [t for t in omid.commit_table() if t <= bound] == []
        assert work.differences() == []

        _compact(omid)
        assert work.differences() == []
        collected = job("history_gc", "--execute", config=configure(defaults=YOUNG))
        assert collected.code == 0, collected.problems
        gone = {t["table"]: t["counts"]["deleted"] for t in collected.summary["tables"]}
        assert all(gone[t] for t in ("PX_A", "PX_A_COVERED", "PX_A_LATE", "PX_S", "PX_B", "_IDX_PX_B")), gone
        assert gone["PX_M"] == 0, "an immutable row is written once"
        # The view's index shows family tombstones as rows of NULLs; those go in the run after that of what they hid.
        assert job("history_gc", "--execute", config=configure(defaults=YOUNG)).code == 0
        assert work.differences(collected=True) == []
        _compact(omid)
        assert work.differences(collected=True) == []
        assert min(work.counts.stopped, work.counts.rolled_back, work.counts.killed) > 0, work.counts
    finally:
        work.client.close()


@pytest.mark.turns(2, group="Phoenix at length")
def test_whatever_meets_them_nothing_is_wrong(
    stack: Stack, omid: OmidClient, spark: SparkSession, phoenix: PhoenixClient, tmp_path: Path
) -> None:
    """A small plan of chaos, the commit's own, with clients of Phoenix among those of Omid; by hand with faults too:
    ``make chaos PHOENIX=1``. Every transaction that committed is known for what it is, and SQL is asked.
    """
    what = plan.made(number_of_today(Path(__file__).parent), jobs=2, phoenix=True)
    report = Director(Laboratory(stack, omid, spark, tmp_path / "plan", phoenix=phoenix), what).carried_out()
    print(report, f"\nby hand: make chaos PHOENIX=1 SEED={what.seed} RUNS=2 NEMESES=none")
    assert report.wrong == []
    assert min(report.counts[name] for name in ("transactions of SQL that committed", "looks at SQL")) > 0


def _compact(omid: OmidClient) -> None:
    for table in PHYSICAL:
        omid.flush(table)
        omid.compact(table, major=True)


class Apart(PhoenixClient):
    """A client whose tables are its own: under another prefix than ``PX_``."""

    def __init__(self, stack: Stack, prefix: str) -> None:
        self.prefix = prefix
        super().__init__(stack, log=f"phoenix-{prefix}")

    def again(self) -> Apart:
        return Apart(self.stack, self.prefix)

    def execute(self, sql: str, *values: Any, session: str = "main") -> int:
        return super().execute(sql.replace("PX_", self.prefix), *values, session=session)

    def query(self, sql: str, *values: Any, session: str = "main") -> list[tuple[Any, ...]]:
        return super().query(sql.replace("PX_", self.prefix), *values, session=session)


class Worker(threading.Thread):
    """A client at work until told to stop: transactions, and every now and then all questions to its tables."""

    def __init__(self, stack: Stack, prefix: str, seed: int, stopping: float = 0) -> None:
        super().__init__(daemon=True)
        client = Apart(stack, prefix)
        make_tables(client)
        self.work = PhoenixWorkload(stack, client, random.Random(seed), stopping=stopping)
        self.over = threading.Event()
        self.wrong: list[str] = []
        self.aborted = 0

    @property
    def client(self) -> PhoenixClient:
        return self.work.client

    def run(self) -> None:
        try:
            while not self.over.is_set():
                self.go_on()
        except Exception as error:  # kept for the test's thread
            self.wrong.append(repr(error))

    def go_on(self) -> None:
        """Some transactions and all questions."""
        for _ in range(10):
            if self.work.number < MOST:
                self._one()
            self.over.wait(PACE)
        self.wrong += self.work.differences()

    def _one(self) -> None:
        try:
            self.work.one()
        except SqlError as error:
            # Omid aborts who began before its low watermark: ERROR 523, Transaction aborted due to conflict.
            if "conflict" not in str(error):
                raise
            self.client.rollback()
            self.aborted += 1

    def finish(self) -> None:
        """Stop and wait; nobody may hang."""
        self.over.set()
        self.join(timeout=300)
        assert not self.is_alive()

    def leave(self) -> None:
        """Drop its tables and go."""
        drop_tables(self.client)
        self.client.close()


class Dying(Worker):
    """A client that stops at points of its commits, and is killed in one again and again. It asks nothing meanwhile:
    until its tables are cleaned, Phoenix answers wrongly from them, with jobs or without."""

    def __init__(self, stack: Stack, prefix: str, seed: int) -> None:
        super().__init__(stack, prefix, seed, stopping=0.5)
        self.kills: list[float] = []

    def go_on(self) -> None:
        for _ in range(3):
            if self.work.number < MOST:
                self._one()
        if len(self.kills) < 4:  # each new client costs seconds of the machine
            self.work.killed()
            self.kills.append(time.monotonic())
        self.over.wait(3)


@pytest.mark.turns(2, group="Phoenix at length")
@pytest.mark.timeout(1800)
@seeds.each("Phoenix beside the jobs", always=[0])
def test_clients_at_work_see_nothing_of_the_jobs(
    job: Job, stack: Stack, omid: OmidClient, configure: Callable[..., Path], seed: int
) -> None:
    """A client works through Phoenix (two, where everything is proved) while every job cleans what another leaves at
    each point of its commits, and where it is killed meanwhile: every answer is the model's, nothing hangs, and only
    what Omid itself aborts is aborted. Afterwards, and after a last round of jobs, nothing is left of any of them, and
    what the killed one committed, by the commit table, is all there.
    """
    # A transaction of these clients is over within seconds; the questions take longest.
    patient = configure(defaults={**YOUNG, "history_max_age": "40s", "min_history_age": "40s"})
    workers = [Worker(stack, prefix, seed + n) for n, prefix in enumerate(("PY_", "PZ_") if PROVE else ("PY_",))]
    dead = Dying(stack, "PW_", seed + 2)
    try:
        everyone = (*workers, dead)
        for worker in everyone:  # there is history before the first cleanup
            for _ in range(30):
                worker.work.one()
        assert dead.work.counts.stopped > 0
        for worker in everyone:
            worker.start()
        began = time.monotonic()
        for name, *arguments in (
            ("orphan_cleanup", "--full"),
            ("watermark_collection",),
            ("commit_table_pruning", "--grace", "0s"),
            ("history_gc",),
        ):
            done = job(name, *arguments, "--execute", config=patient)
            assert done.code == 0, (name, done.problems)
        assert done.totals["deleted"] > 0
        ended = time.monotonic()
        for worker in everyone:
            worker.finish()
        assert [w.wrong for w in everyone] == [[] for _ in everyone]
        assert sum(began < at < ended for at in dead.kills) >= 2, "nobody was killed during the jobs"
        assert all(w.work.counts.committed > 10 for w in workers)
        assert all(w.aborted < w.work.counts.committed for w in workers)
        watermark = omid.advance_watermark()
        witnessed = ever_committed(omid)
        assert {start for start, counts in dead.work.deaths.items() if counts} == set(dead.work.deaths) & witnessed
        clean_and_prune(job)
        tables = [t for t in omid.tables() if t.startswith(("PW_", "PY_", "PZ_", "_IDX_P"))]
        assert len(tables) >= len(everyone) * len(PHYSICAL)
        assert {table: unproved(omid, table, watermark) for table in tables} == {table: [] for table in tables}
        assert [w.work.differences() for w in everyone] == [[] for _ in everyone]
    finally:
        for worker in (*workers, dead):
            worker.over.set()
        for worker in (*workers, dead):
            if worker.ident:
                worker.join(timeout=300)
            worker.leave()


#: Statements that read a table, and find nothing there.
READS = {
    "a delete": "DELETE FROM PX_A WHERE ID = -1",
    "UPSERT SELECT": "UPSERT INTO PX_A (ID, A, B) SELECT ID + 1000, A, B FROM PX_A WHERE ID = -1",
    "a query": "SELECT ID FROM PX_A WHERE ID = -1",
}


def test_phoenix_alone_writes_rows_again_otherwise_than_sql_says(phoenix: PhoenixClient) -> None:
    """Without any job, where a transaction deletes a row and writes it again, columns that are not named keep their
    old values; and where another statement read the table in between, the row is lost, and still shown by an index.
    What names all columns, and what is done in two transactions, is right. Where this fails Phoenix has been mended,
    and the drafts of the workload need leave nothing out any more."""
    for statement in (s for s in DDL if "PX_A " in s):
        phoenix.execute(statement)
    in_part, whole, apart, *read = keys = range(3 + len(READS))
    for key in keys:
        phoenix.execute("UPSERT INTO PX_A (ID, A, B, C) VALUES (?, 'a', 'b', 'c')", key)
    phoenix.commit()
    for key in (in_part, whole, apart):
        phoenix.execute("DELETE FROM PX_A WHERE ID BETWEEN ? AND ?", key, key)
        if key == apart:
            phoenix.commit()
        if key == whole:
            phoenix.execute("UPSERT INTO PX_A (ID, A, B, C) VALUES (?, 'x', 'y', 'z')", key)
        else:
            phoenix.execute("UPSERT INTO PX_A (ID, A) VALUES (?, 'x')", key)
        phoenix.commit()
    for key, statement in zip(read, READS.values(), strict=True):
        phoenix.execute("DELETE FROM PX_A WHERE ID BETWEEN ? AND ?", key, key)
        if statement.startswith("SELECT"):
            assert phoenix.query(statement) == []
        else:
            assert phoenix.execute(statement) == 0
        phoenix.execute("UPSERT INTO PX_A (ID, A, B, C) VALUES (?, 'x', 'y', 'z')", key)
        phoenix.commit()
    shown = phoenix.query("SELECT /*+ NO_INDEX */ ID, A, B, C FROM PX_A ORDER BY ID")
    through_index = phoenix.query("SELECT /*+ INDEX(PX_A PX_A_COVERED) */ ID, A, B, C FROM PX_A ORDER BY ID")
    phoenix.commit()
    assert shown == [(in_part, "x", "b", "c"), (whole, "x", "y", "z"), (apart, "x", None, None)]
    assert through_index == [*shown, *((key, "x", "y", "z") for key in read)]


def test_one_transaction_spans_a_table_its_indexes_and_what_views_show(
    job: Job, omid: OmidClient, phoenix: PhoenixClient
) -> None:
    """The entry of a transaction over a table and two indexes stays until the third of them is clean, that of a dropped
    table no longer than that; a row that never was committed, and that a view index showed all the same, is gone after
    the cleanup."""
    make_tables(phoenix)
    phoenix.execute("UPSERT INTO PX_V (ID, A, K) VALUES (1, 'never', 77)")
    assert phoenix.commit(point=1)
    phoenix.execute("UPSERT INTO PX_A (ID, A, B) VALUES (1, 'a', 'b')")
    start = phoenix.start()
    assert phoenix.commit(point=4)
    phoenix.execute("CREATE TABLE PX_X (ID BIGINT NOT NULL PRIMARY KEY, A VARCHAR) TRANSACTIONAL=true")
    phoenix.execute("UPSERT INTO PX_X (ID, A) VALUES (1, 'a')")
    dropped = phoenix.start()
    assert phoenix.commit(point=4)
    phoenix.execute("DROP TABLE PX_X")
    watermark = omid.advance_watermark()
    dirty = "SELECT K FROM PX_V WHERE K = 77"
    assert phoenix.query(dirty) == [(77,)], "Phoenix reads uncommitted rows through view indexes"
    phoenix.commit()

    late = "PX_A_LATE"
    others = [part for table in PHYSICAL if table != late for part in ("--table", table)]
    assert job("orphan_cleanup", *others, "--execute").code == 0
    held = job("commit_table_pruning", "--grace", "0s", "--execute")
    assert held.code == 0
    assert {b["table"] for b in held.summary["blockers"]} == {late}
    assert {start, dropped} <= set(omid.commit_table())
    assert unproved(omid, late, watermark)

    assert job("orphan_cleanup", "--table", late, "--execute").code == 0
    assert job("commit_table_pruning", "--grace", "0s", "--execute").code == 0
    assert not {start, dropped} & set(omid.commit_table())
    for hint in ("NO_INDEX", "INDEX(PX_A PX_A_COVERED)", f"INDEX(PX_A {late})"):
        assert phoenix.query(f"SELECT /*+ {hint} */ ID, A, B FROM PX_A") == [(1, "a", "b")]
    assert phoenix.query(dirty) == phoenix.query("SELECT /*+ NO_INDEX */ K FROM PX_V") == []


def test_what_went_from_a_table_of_phoenix_comes_back(
    job: Job, omid: OmidClient, phoenix: PhoenixClient, configure: Callable[..., Path]
) -> None:
    """What a cleanup removed and what history GC removed; SQL answers as before. Phoenix keeps delete markers in its
    compactions, as a restore says, until the table's configuration has that off.
    """
    for statement in (s for s in DDL if "PX_A " in s):
        phoenix.execute(statement)
    for value in ("old", "new"):
        phoenix.execute("UPSERT INTO PX_A (ID, A) VALUES (1, ?)", value)
        phoenix.commit()
    phoenix.execute("UPSERT INTO PX_A (ID, A) VALUES (2, 'never')")
    assert phoenix.commit(point=1)
    omid.advance_watermark()
    young, scene = configure(defaults=YOUNG), Scene(omid, [])
    jobs = {"orphan_cleanup": "cleaned", "history_gc": "collected"}
    before = {}
    for name, run in jobs.items():
        before[run] = scene.data("PX_A")
        done = job(name, "--execute", "--run-id", run, config=young)
        assert (done.code, done.totals["deleted"] > 0) == (0, True), done.problems
        assert scene.data("PX_A") != before[run]
    hidden = job("sideline_restore", "--restore", "collected", "--execute")
    assert hidden.code == 1
    assert "alter 'PX_A_COVERED', CONFIGURATION => {'phoenix.table.ttl.enabled' => 'false'" in hidden.problems
    for table in ("PX_A", "PX_A_COVERED"):
        omid.set(table, **{"phoenix.table.ttl.enabled": "false"})
    assert phoenix.query("SELECT ID, A FROM PX_A") == [(1, "new")]
    for run in reversed(jobs.values()):
        back = job("sideline_restore", "--restore", run, "--execute")
        assert back.code == 0, back.problems
        assert scene.data("PX_A") == before[run]
    assert phoenix.query("SELECT ID, A FROM PX_A") == [(1, "new")]


def test_phoenixs_tables_are_found_and_named_and_what_is_wrong_is_told(
    job: Job, omid: OmidClient, phoenix: PhoenixClient, connector: Store, tmp_path: Path
) -> None:
    """Tables, indexes and the table of view indexes are transactional and bear SQL's names, Phoenix's own tables are
    plain. Too few versions are told with the DDL that mends it; an index that is being built is left alone and holds
    the bound, one that is made of old rows did not come from elsewhere; without the catalog what bears a mark is found
    all the same."""
    for statement in DDL:
        phoenix.execute(statement)
    phoenix.execute("CREATE TABLE PX_X (ID BIGINT NOT NULL PRIMARY KEY, A VARCHAR) TRANSACTIONAL=true, VERSIONS=3")
    entries = {e.table: e for e in take_inventory(connector)}
    wanted = {t for t in PHYSICAL if t != "PX_A_LATE"} | {"PX_X"}
    assert {t for t, e in entries.items() if e.kind is Kind.TRANSACTIONAL} == wanted
    assert {e.kind for t, e in entries.items() if t not in wanted} == {Kind.PLAIN}
    # What the DAGs clean when nobody names tables; Phoenix's own are looked at too, until an inventory has called them
    # plain.
    assert wanted <= set(sizes(connector.config, []))
    assert entries["_IDX_PX_B"].names == ("PX_V_BY_K",)
    assert all(e.names == (t,) for t, e in entries.items() if t in wanted - {"_IDX_PX_B"})

    found = tmp_path / "survey.json"

    def versions_notices(code: int) -> list[str]:
        assert job("survey", "--json", str(found), "--table", "PX_X").code == code
        notices = json.loads(found.read_text())["notices"]
        return [n["remedy"] for n in notices if "versions" in n["what"] and n["table"] == "PX_X"]

    (remedy,) = versions_notices(1)  # the table is left alone until it is mended
    assert remedy.startswith("ALTER TABLE PX_X")
    phoenix.execute(remedy)
    assert versions_notices(0) == []

    phoenix.execute("CREATE INDEX PX_X_ASYNC ON PX_X (A) ASYNC")
    refused = job("orphan_cleanup", "--table", "PX_X_ASYNC")
    assert refused.code == 1
    assert "PX_X_ASYNC is being built" in refused.problems
    phoenix.execute("UPSERT INTO PX_X (ID, A) VALUES (1, 'a')")
    phoenix.commit()
    omid.advance_watermark()
    assert job("watermark_collection", "--execute").code == 0
    health = assess(read(connector.config), connector.config)
    (building,) = (f for f in health.findings if f.cause is Cause.INDEX_UNFINISHED)
    assert (building.tables, "PX_X_ASYNC is being built" in building.why) == (("PX_X_ASYNC",), True)
    phoenix.execute("CREATE INDEX PX_X_LATE ON PX_X (A)")
    assert omid.raw("PX_X_LATE"), "Phoenix has filled it with cells of its own transaction"
    assert {e.table: e for e in take_inventory(connector)}["PX_X_LATE"].doubt == ""
    for index in ("PX_X_ASYNC", "PX_X_LATE"):
        phoenix.execute(f"DROP INDEX {index} ON PX_X")

    phoenix.execute("CREATE TABLE PX_P (ID BIGINT NOT NULL PRIMARY KEY, A VARCHAR)")
    assert {e.table: e for e in take_inventory(connector)}["PX_P"].kind is Kind.PLAIN
    with connect(connector.config.hbase.thrift) as connection:
        connection.disable_table("SYSTEM.CATALOG")
        try:
            blind = {e.table: e for e in take_inventory(connector)}
            blockers = job("watermark_collection").summary["blockers"]
        finally:
            connection.enable_table("SYSTEM.CATALOG")
    assert {t for t, e in blind.items() if e.kind is Kind.TRANSACTIONAL} == wanted
    assert {t for t, e in blind.items() if e.kind is Kind.UNMARKED} == {"PX_P", "SYSTEM.CATALOG"}
    assert any(b["table"] == "PX_P" and "catalog cannot be read" in b["reason"] for b in blockers)
