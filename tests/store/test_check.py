"""``lowtide check`` against a real HBase, gateway, oracle and Spark: each hop broken in turn, and what is left behind.

What needs no store to be broken is in tests/unit/test_check.py.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from guarded import acting_as, grant, guarded_store, settings_of
from lowtide_airflow.tables import sizes
from lowtide_spark import check as program
from lowtide_spark.check import Driver
from lowtide_spark.frames.owner import FOLDER
from pyspark.sql import SparkSession
from scene import Scene
from typer.testing import CliRunner

from lowtide import __version__
from lowtide.check import servers
from lowtide.check.driver import wanted
from lowtide.check.hops import HOPS, Line, Result, exit_code, walk
from lowtide.check.records import NOBODYS_ROW
from lowtide.cli.app import app
from lowtide.cli.check import lines_here
from lowtide.config import Config, Thrift, load
from lowtide.health.reader import read
from lowtide.lab.stack import Stack
from lowtide.lab.waiting import reached
from lowtide.lab.workload import OmidClient
from lowtide.store.gateway import connect
from lowtide.store.rows import FORMAT, VALUE, dump
from lowtide.store.state import StateStore, opened
from lowtide.values.formats import LOW_WATERMARK_QUALIFIER, LOW_WATERMARK_ROW, encode_long

pytestmark = pytest.mark.usefixtures("swept")

Lines = dict[str, Line]
Look = Callable[..., Lines]
#: Lowtide's own table in these tests: other tests' records are not disturbed.
STATE = "CHECKED_STATE"
#: Of a driver that lives for seconds.
SHORT = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


@pytest.fixture
def look(spark: SparkSession) -> Look:
    """The lines of a configuration: of what the command looks at itself, and of the driver, which is up already."""

    def lines(file: Path | Config, *names: str) -> Lines:
        config = load(file) if isinstance(file, Path) else file
        here = lines_here(config, lambda: "it is in order")
        known = [line for line in here if line.hop not in ("java", "spark", "connector")]
        driver = Driver(spark, config).looks()
        asked = {name: driver[name] for name in names or wanted(known)}
        return {line.hop: line for line in [*known, *walk(asked, known)]}

    return lines


@pytest.fixture
def no_airflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None is set up."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    monkeypatch.delenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", raising=False)


@pytest.fixture
def own_state(stack: Stack) -> Iterator[StateStore]:
    """A state table of these tests."""
    with connect(Thrift(port=stack.config.thrift_port)) as connection:
        state = StateStore(connection, STATE)
        state.create()
        yield state
        connection.delete_table(STATE, disable=True)


def wrong(line: Line, *words: str) -> None:
    """The hop is wrong, and its line has all of these words, and a remedy."""
    assert line.result is Result.WRONG, line
    assert line.remedy, line
    for word in words:
        assert word in f"{line.text} {line.remedy}"


def rows(stack: Stack, table: str) -> dict[bytes, dict[bytes, bytes]]:
    """What a table shows through the gateway; nothing where there is none."""
    with connect(Thrift(port=stack.config.thrift_port)) as connection:
        there = table.encode() in connection.tables()
        return dict(connection.table(table).scan()) if there else {}


def test_all_is_well_and_nothing_is_left(
    stack: Stack,
    configure: Callable[..., Path],
    scene: Scene,
    own_state: StateStore,
    omid: OmidClient,
    no_airflow: None,
) -> None:
    """The command, with a driver of its own: every hop is ok, but for an Airflow that is not there; exit code 0. State
    table, commit table, data and sideline are as they were.
    """
    table = scene.table()
    scene.committed(table)
    own_state.record_format()
    file = configure(state={"table": STATE}, spark={"conf": SHORT})
    before = rows(stack, STATE), omid.commit_table(), omid.raw(table)
    done = CliRunner().invoke(app, ["check", "--config", str(file), "--json"])
    found = json.loads(done.stdout)
    results = {hop["hop"]: hop["result"] for hop in found["hops"]}
    assert results == {hop.name: "not checked" if "airflow" in hop.name else "ok" for hop in HOPS}, found
    assert (done.exit_code, found["ok"]) == (0, True)
    lines = {hop["hop"]: hop["text"] for hop in found["hops"]}
    assert str(file) in lines["configuration"]
    assert f"127.0.0.1:{stack.config.zookeeper_port}/hbase" in lines["configuration"]
    assert re.match(r"2\.6\.\S+, master 127\.0\.0\.1:\d+, 1 region server; ", lines["hbase"])
    assert (rows(stack, STATE), omid.commit_table(), omid.raw(table)) == before
    assert not Path(load(file).state.sideline).exists()


def test_before_the_first_run_no_table_is_made(stack: Stack, look: Look, configure: Callable[..., Path]) -> None:
    """Without a state table the gateway is compared by what hbase:meta tells, and clocks by the master's."""
    lines = look(configure(state={"table": "NEVER_MADE", "journal_table": "NEVER_MADE_EITHER"}))
    assert {line.result for line in lines.values()} == {Result.OK}, lines
    assert "not there yet" in lines["format"].text
    with connect(Thrift(port=stack.config.thrift_port)) as connection:
        assert not {b"NEVER_MADE", b"NEVER_MADE_EITHER"} & set(connection.tables())


def without_gateway(file: Path, *, named: bool) -> Config:
    """That configuration, where nothing is at the gateway's address; *named*: which the file gives."""
    config = load(file)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    given = {"port"} if named else set()
    nowhere = Thrift.model_construct(_fields_set=given, **{**dict(config.hbase.thrift), "port": port})
    return config.model_copy(update={"hbase": config.hbase.model_copy(update={"thrift": nowhere})})


def test_without_a_gateway_all_that_jobs_need_is_looked_at(
    look: Look, configure: Callable[..., Path], own_state: StateStore, no_airflow: None
) -> None:
    """Where nobody counts on one it is not wrong: nothing is, and only what is about the gateway itself is not looked
    at, whether there is a state table yet or not. Records and clocks are judged all the same.
    """
    own_state.record_format()
    for table in (STATE, "NEVER_MADE"):
        lines = look(without_gateway(configure(state={"table": table}), named=False))
        not_looked_at = {name for name, line in lines.items() if line.result is Result.NOT_CHECKED}
        assert not_looked_at == {"gateway", "gateway-login", "gateway-rights", "cluster"}, lines
        assert exit_code(lines.values()) == 0, lines
        assert "jobs need none, sensors, the page" in lines["gateway"].text
        assert lines["gateway-rights"].text == "Thrift gateway was not checked"
    own_state.connection.table(STATE).put(b"format", {VALUE: dump({"format": FORMAT + 1, "lowtide": "9.0"})})
    before = dict(own_state.connection.table(STATE).scan())
    lines = look(without_gateway(configure(state={"table": STATE}), named=False))
    wrong(lines["format"], f"format {FORMAT + 1}")
    assert lines["clocks"].text == "State format is wrong"
    assert dict(own_state.connection.table(STATE).scan()) == before


def test_a_gateway_that_somebody_counts_on_is_wrong_and_hides_nothing(
    stack: Stack, look: Look, configure: Callable[..., Path], own_state: StateStore, no_airflow: None, tmp_path: Path
) -> None:
    """The file names it, or there is an Airflow here, whose sensors look through it; or what answers there is none.
    The store is looked at past it.
    """

    def judged(config: Config) -> Line:
        lines = look(config)
        results = {name: line.result for name, line in lines.items()}
        assert [name for name, result in results.items() if result is Result.WRONG] == ["gateway"], lines
        assert all(results[name] is Result.OK for name in ("format", "records", "commit-table", "clocks", "executors"))
        return lines["gateway"]

    file = configure(state={"table": STATE})
    wrong(judged(without_gateway(file, named=True)), "is not there", "hbase.thrift names", "jobs need none")
    zookeepers = {"thrift": {"port": stack.config.zookeeper_port, "timeout": "5s"}}
    wrong(judged(load(configure(state={"table": STATE}, hbase=zookeepers))), "does not answer as a gateway")
    (tmp_path / "airflow").mkdir()
    (tmp_path / "airflow" / "airflow.cfg").touch()
    wrong(judged(without_gateway(file, named=False)), "is not there", "Airflow")


def test_rights_are_asked_for_by_writes_that_are_never_done(
    look: Look, configure: Callable[..., Path], scene: Scene, own_state: StateStore, connector: Any
) -> None:
    """In no table that was asked for is there a cell of it, nor a trace of one."""
    table = scene.table()
    scene.committed(table)
    lines = look(configure(state={"table": STATE}), "driver", "hbase", "listing", "rights")
    assert "HBase checks no permissions" in lines["rights"].text
    assert lines["gateway-rights"].result is Result.OK
    for name in (table, Config().omid.commit_table, STATE):
        raw = connector.cells(name, raw=True).select("row").distinct().collect()
        assert NOBODYS_ROW not in {bytes(r.row) for r in raw}, f"a check wrote to {name}"


def test_an_hbase_that_does_not_answer(look: Look, configure: Callable[..., Path]) -> None:
    """ZooKeeper does, and knows no master under the znode: within a minute, with the key to correct."""
    began = datetime.now(UTC)
    lines = look(configure(hbase={"znode": "/nosuch"}))
    wrong(lines["hbase"], "master does not answer", "hbase.znode")
    assert lines["listing"].text == "HBase is wrong"
    assert lines["sideline"].result is Result.OK, "it needs no HBase"
    assert datetime.now(UTC) - began < timedelta(minutes=2)


@contextmanager
def server(stack: Stack, main_class: str, *options: str, user: str = "") -> Iterator[int]:
    """Another gateway to *stack*, started with these options, acting as *user*."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    command = stack.java_command(
        main_class,
        *("--bind", "127.0.0.1", "--port", str(port), "--infoport", "-1", *options, "start"),
        log=f"gateway-{port}",
        options=stack.config.java_options,
    )
    environment = {**os.environ, **({"HADOOP_USER_NAME": user} if user else {})}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        assert reached(lambda: not servers._refusal("127.0.0.1", port), 120, pause=0.2)
        yield port
    finally:
        process.kill()
        process.wait()


def test_gateways_of_another_kind(stack: Stack, configure: Callable[..., Path]) -> None:
    """One that speaks the compact protocol and one of version 2, each known for what it is."""
    one, two = "org.apache.hadoop.hbase.thrift.ThriftServer", "org.apache.hadoop.hbase.thrift2.ThriftServer"
    with server(stack, one, "-c") as compact, server(stack, two) as second:
        for port, words in {
            compact: ("buffered and compact", "hbase.thrift: {transport: buffered, protocol: compact}"),
            second: ("is of version 2", "not thrift2"),
        }.items():
            config = load(configure(hbase={"thrift": {"port": port, "timeout": "5s"}}))
            [line] = walk({"gateway": lambda config=config: servers.gateway(config.hbase.thrift)})
            wrong(line, f"127.0.0.1:{port}", *words)
        as_told = Thrift(port=compact, protocol="compact")
        assert "(buffered, compact)" in servers.gateway(as_told)


@pytest.fixture
def other_commits(stack: Stack) -> Iterator[str]:
    """Another store's commit table, whose oracle is far ahead of this one's."""
    name = "CHECKED_COMMITS"
    with connect(Thrift(port=stack.config.thrift_port)) as connection:
        connection.create_table(name, {"F": {}, "LWF": {}})
        connection.table(name).put(LOW_WATERMARK_ROW, {b"LWF:" + LOW_WATERMARK_QUALIFIER: encode_long(1 << 60)})
        yield name
        connection.delete_table(name, disable=True)


def test_the_oracle_of_another_store(look: Look, configure: Callable[..., Path], other_commits: str) -> None:
    """It gives timestamps that this store's oracle has long passed."""
    lines = look(configure(omid={"commit_table": other_commits}), "driver")
    wrong(lines["oracle-store"], "it is another store's", "omid.oracle")
    assert lines["oracle"].result is Result.OK


def test_a_server_that_is_no_oracle(stack: Stack, look: Look, configure: Callable[..., Path]) -> None:
    """The gateway's port takes connections too."""
    lines = look(configure(omid={"oracle": [f"127.0.0.1:{stack.config.thrift_port}"]}), "driver")
    wrong(lines["oracle-store"], str(stack.config.thrift_port), "gives no timestamp")


def test_a_commit_table_that_is_not_there(look: Look, configure: Callable[..., Path]) -> None:
    """Its name is a setting; what needs it is not looked at."""
    lines = look(configure(omid={"commit_table": "NOSUCH"}), "driver", "hbase", "executors")
    wrong(lines["commit-table"], "there is no commit table NOSUCH", "omid.commit_table")
    assert lines["executors"].text == "Commit table is wrong"


def test_records_of_a_newer_lowtide(look: Look, configure: Callable[..., Path], own_state: StateStore) -> None:
    """They are named, and nothing is written beside them."""
    own_state.connection.table(STATE).put(b"format", {VALUE: dump({"format": FORMAT + 1, "lowtide": "9.0"})})
    before = dict(own_state.connection.table(STATE).scan())
    lines = look(configure(state={"table": STATE}), "driver", "hbase", "cluster")
    wrong(lines["format"], f"format {FORMAT + 1}", "written by Lowtide 9.0", "Upgrade")
    assert lines["cluster"].text == "State format is wrong"
    assert dict(own_state.connection.table(STATE).scan()) == before


def test_records_of_an_older_lowtide(look: Look, configure: Callable[..., Path], own_state: StateStore) -> None:
    """They are read."""
    lines = look(configure(state={"table": STATE}), "driver")
    assert lines["format"].result is Result.OK
    told = f"has format 1, which Lowtide {__version__} reads; the next run that acts writes {FORMAT}"
    assert told in lines["format"].text


def test_a_state_table_that_loses_what_it_is_given(stack: Stack, look: Look, configure: Callable[..., Path]) -> None:
    """With the statement that mends it."""
    name = "CHECKED_TTL"
    with connect(Thrift(port=stack.config.thrift_port)) as connection:
        connection.create_table(name, {"s": {"time_to_live": 3600}})
        try:
            lines = look(configure(state={"table": name}), "driver")
        finally:
            connection.delete_table(name, disable=True)
    line = lines["records"]
    assert line.result is Result.WRONG
    assert f"alter '{name}'" in f"{line.text}{line.remedy}"


def test_a_journal_that_is_gone(look: Look, configure: Callable[..., Path], own_state: StateStore) -> None:
    """The records remember it."""
    own_state.remember_journal(0, 100, 1)
    lines = look(configure(state={"table": STATE, "journal_table": "CHECKED_JOURNAL"}), "driver")
    assert lines["records"].result is Result.WRONG
    assert "the journal CHECKED_JOURNAL is gone" in lines["records"].text


def test_a_machine_whose_clock_is_off(
    look: Look, configure: Callable[..., Path], own_state: StateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what HBase stamps on a row; before there is a table for it by the master's clock."""

    class Clock(datetime):
        @classmethod
        def now(cls, _: object = None) -> datetime:  # type: ignore[override]
            return datetime.now(UTC) + timedelta(hours=1)

    monkeypatch.setattr(program, "datetime", Clock)
    for table in (STATE, "NEVER_MADE"):
        lines = look(configure(state={"table": table}), "driver", "hbase", "cluster", "clocks")
        wrong(lines["clocks"], "the clock of this machine is 3,6", "s ahead of", "set the clocks")


@pytest.mark.parametrize("place", ["file", "elsewhere"])
def test_a_sideline_that_takes_nothing(look: Look, configure: Callable[..., Path], tmp_path: Path, place: str) -> None:
    """A folder that cannot be made, a file system that nobody knows."""
    (tmp_path / "file").touch()
    sideline = str(tmp_path / "file" / "sideline") if place == "file" else "nosuch://host/sideline"
    lines = look(configure(state={"sideline": sideline}), "driver", "sideline")
    wrong(lines["sideline"], sideline, "share")


def test_a_sideline_of_another_store(look: Look, configure: Callable[..., Path], tmp_path: Path) -> None:
    """The line names whose it is, and the two ways out."""
    claims = tmp_path / "sideline" / FOLDER
    claims.mkdir(parents=True)
    (claims / "a-1~ns=3ASTATE").touch()
    lines = look(configure(), "driver", "sideline")
    wrong(lines["sideline"], "with the records ns:STATE in HBase a-1", "of its own", f"remove file:{claims}/a-1~ns=3A")


@pytest.mark.turns(2, group="executors of their own")
def test_executors_without_the_connector(
    configure: Callable[..., Path], tmp_path: Path, no_airflow: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM of their own that lacks the jars: the driver's hops are well, and the key to set is named."""
    spark = {
        "master": "local-cluster[1,1,1024]",
        "conf": {**SHORT, "spark.executor.extraClassPath": "/nowhere/*", "spark.executor.memory": "1g"},
    }
    done = CliRunner().invoke(app, ["check", "--config", str(configure(spark=spark)), "--json"])
    lines = {hop["hop"]: Line.from_json(hop) for hop in json.loads(done.stdout)["hops"]}
    wrong(lines["executors"], "spark.executor.extraClassPath")
    assert {lines[name].result for name in ("driver", "hbase", "listing", "rights", "sideline")} == {Result.OK}, lines
    assert done.exit_code == 1


# A second store, which asks who one is.


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A store whose HBase checks permissions; who started it may do everything, whoever else has a name may not."""
    with guarded_store(tmp_path_factory.mktemp("guarded")) as store:
        yield store


@pytest.fixture
def guarded_config(guarded: Stack, configure: Callable[..., Path]) -> Callable[..., Path]:
    """A configuration of that store, of a user."""
    return lambda user, **thrift: configure(**settings_of(guarded, user, **thrift))


def test_a_user_to_whom_tables_are_not_listed(
    spark: SparkSession, look: Look, guarded: Stack, guarded_config: Callable[..., Path]
) -> None:
    """HBase leaves them out without a word; the line names user and grant."""
    with acting_as(spark, "alice"):
        lines = look(guarded_config("alice"), "driver", "hbase", "listing", "rights")
    assert lines["listing"].result is Result.WRONG
    for word in ("does not list to the user alice", "OMID_COMMIT_TABLE", "grant 'alice', 'A', '"):
        assert word in lines["listing"].text
    assert lines["rights"].text == "Listing of tables is wrong"


def test_a_user_who_may_list_and_not_write(
    spark: SparkSession, look: Look, guarded: Stack, guarded_config: Callable[..., Path]
) -> None:
    """By HBase's own answer to writes that are never done; with all rights but two it is HBase's word for these."""
    grant(spark, guarded, "bob", ["CREATE", "ADMIN"])
    with acting_as(spark, "bob"):
        lines = look(guarded_config("bob"), "driver", "hbase", "listing", "rights")
    assert lines["listing"].result is Result.OK
    wrong(lines["rights"], "bob may not write to OMID_COMMIT_TABLE", "AccessDenied", "grant 'bob', 'RWCA'")


def test_a_user_who_may_write_and_not_create(
    spark: SparkSession, look: Look, guarded: Stack, guarded_config: Callable[..., Path]
) -> None:
    """What no write asks for HBase tells when it is asked. It is needed until Lowtide's own tables are there; with all
    of it all is well.
    """
    grant(spark, guarded, "carol", ["READ", "WRITE", "ADMIN"])
    with acting_as(spark, "carol"):
        lines = look(guarded_config("carol"), "driver", "hbase", "listing", "rights")
    wrong(lines["rights"], "carol lacks CREATE globally, and LOWTIDE_", "grant 'carol', 'RWCA'")
    grant(spark, guarded, "dan", ["READ", "WRITE", "ADMIN", "CREATE"])
    with acting_as(spark, "dan"):
        lines = look(guarded_config("dan"), "driver", "hbase", "listing", "rights")
    assert "has READ, WRITE, CREATE, ADMIN globally" in lines["rights"].text


def test_a_user_who_may_read_a_part(
    spark: SparkSession, look: Look, guarded: Stack, guarded_config: Callable[..., Path]
) -> None:
    """Of a table, a family: HBase would show just that. It answers for whole tables when it is asked."""
    grant(spark, guarded, "fay", ["WRITE", "ADMIN", "CREATE"])
    grant(spark, guarded, "fay", ["READ"], ["OMID_COMMIT_TABLE"], family=b"F")
    with acting_as(spark, "fay"):
        lines = look(guarded_config("fay"), "driver", "hbase", "listing", "rights")
    wrong(lines["rights"], "the right READ is missing on", "OMID_COMMIT_TABLE", "as a whole", "grant 'fay', 'RW', '")


def test_a_gateway_that_may_not_write(
    spark: SparkSession, look: Look, guarded: Stack, guarded_config: Callable[..., Path]
) -> None:
    """It acts in HBase as the user that it was started as, whoever asks it."""
    grant(spark, guarded, "eve", ["READ", "CREATE", "ADMIN"])
    with server(guarded, "org.apache.hadoop.hbase.thrift.ThriftServer", user="eve") as port:
        lines = look(guarded_config("root", port=port), "driver")
    wrong(lines["gateway-rights"], "may not write to OMID_COMMIT_TABLE", "AccessDenied", "grant")


def test_a_table_that_the_gateway_may_not_see_is_there(
    spark: SparkSession, guarded: Stack, guarded_config: Callable[..., Path]
) -> None:
    """What gus's gateway is not shown is not taken for dropped, nor his records for none: the page names the right that
    he lacks, and what is recorded of other tables he may have without any on them.
    """
    known = load(guarded_config("root"))
    with OmidClient(guarded) as omid, opened(known) as state:
        omid.create("not_for_gus", ("a",))
        state.create()
    with server(guarded, "org.apache.hadoop.hbase.thrift.ThriftServer", user="gus") as port:
        config = load(guarded_config("root", port=port))
        assert "grant 'gus', 'R', 'LOWTIDE_STATE'" in read(config).unreachable
        grant(spark, guarded, "gus", ["READ", "WRITE"], ["LOWTIDE_STATE", "OMID_COMMIT_TABLE"])
        reading = read(config)
        assert (reading.unreachable, "not_for_gus" in reading.listed) == ("", True)
        assert "not_for_gus" in sizes(config, [])


def test_a_commit_table_that_may_lose_what_clients_were_told(
    look: Look, configure: Callable[..., Path], omid: OmidClient
) -> None:
    """With the statement that mends it; nothing that comes after it is looked at."""
    omid.set("OMID_COMMIT_TABLE", DURABILITY="SKIP_WAL")
    try:
        lines = look(configure(), "driver", "hbase", "listing", "rights")
    finally:
        omid.set("OMID_COMMIT_TABLE", DURABILITY="USE_DEFAULT")
    way = "alter 'OMID_COMMIT_TABLE', DURABILITY => 'SYNC_WAL'"
    wrong(lines["listing"], "OMID_COMMIT_TABLE has DURABILITY => SKIP_WAL", way)
    assert lines["rights"].text == "Listing of tables is wrong"


def test_a_gateway_of_another_store(
    look: Look, configure: Callable[..., Path], guarded: Stack, own_state: StateStore
) -> None:
    """Before there is a state table by when tables were made, then by a row that is read past the gateway: both
    addresses are named.
    """
    port = guarded.config.thrift_port
    for table in ("NEVER_MADE", STATE):
        with connect(Thrift(port=port)) as connection:
            if table == STATE:
                StateStore(connection, STATE).create()
        lines = look(configure(hbase={"thrift": {"port": port}}, state={"table": table}), "driver", "hbase", "cluster")
        wrong(lines["cluster"], "different HBase clusters", str(port), "correct one of them")
        with connect(Thrift(port=port)) as connection:
            assert table == "NEVER_MADE" or list(connection.table(table).scan()) == []
