"""The embedded store: real servers, started and stopped."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import happybase
import pytest
from conftest import booted
from typer.testing import CliRunner

from lowtide.lab.servers import Process, Servers, start_time
from lowtide.lab.stack import Stack, StackConfig, StackError, free_ports_config, load, machine
from lowtide.lab.stack.cli import app

LOOPBACK_IN_PROC = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with booted(free_ports_config(tmp_path_factory.mktemp("store"), hbase_heap="512m")) as store:
        yield store


def states(store: Stack) -> dict[str, str]:
    return {part.name: part.state for part in store.status()}


def pids(store: Stack) -> dict[str, int | None]:
    return {part.name: part.pid for part in store.status()}


def table(store: Stack, name: str) -> happybase.Table:
    connection = happybase.Connection("127.0.0.1", store.config.thrift_port)
    if name.encode() not in connection.tables():
        connection.create_table(name, {"f": {}})
    return connection.table(name)


def test_every_part_runs_and_answers(stack: Stack) -> None:
    """After ``up`` each part runs, the gateway lists Omid's two tables and the oracle's timestamps grow."""
    assert states(stack) == {"hbase": "running", "thrift": "running", "tso": "running"}
    tables = happybase.Connection("127.0.0.1", stack.config.thrift_port).tables()
    assert {b"OMID_COMMIT_TABLE", b"OMID_TIMESTAMP_TABLE"} <= set(tables)
    first, second = stack.timestamp(), stack.timestamp()
    assert first < second
    assert first % 50 == 0


@pytest.mark.skipif(not Path("/proc/net").is_dir(), reason="reads the sockets from /proc")
def test_everything_listens_on_the_loopback_interface_only(stack: Stack) -> None:
    """No part of the store can be reached from another machine, and none uses a port of HBase's defaults."""
    listening = [each for pid in pids(stack).values() if pid for each in listening_sockets(pid)]
    assert {port for _, port in listening} >= set(stack.config.ports.values())
    assert {address for address, _ in listening} <= LOOPBACK_IN_PROC
    assert not {16000, 16010, 16020, 16030, 2181, 9090, 9095, 24758} & {port for _, port in listening}


def listening_sockets(pid: int) -> list[tuple[str, int]]:
    """(address in hex, port) of each TCP socket on which process *pid* listens."""
    own = set()
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            own.add(os.readlink(handle))
        except FileNotFoundError:  # closed since it was listed
            continue
    found = []
    for family in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{family}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in own:
                address, port = fields[1].split(":")
                found.append((address, int(port, 16)))
    return found


def test_up_twice_is_harmless(stack: Stack) -> None:
    """``up`` on a running store starts nothing and says nothing."""
    before, said = pids(stack), []
    stack.up(said.append)
    assert pids(stack) == before
    assert said == []


def test_status_is_the_same_from_another_program(stack: Stack) -> None:
    """The command line finds the store's ports and processes by its folder alone."""
    result = CliRunner().invoke(app, ["status", "--home", str(stack.config.home)])
    assert result.exit_code == 0
    assert result.output.count("running") == 3
    for pid in pids(stack).values():
        assert str(pid) in result.output
    assert load(stack.config.home) == stack.config


@pytest.mark.parametrize("part", ["thrift", "tso"])
def test_a_killed_part_is_noticed_and_started_again(stack: Stack, part: str) -> None:
    """A part that died is ``killed`` for ``status``; ``up`` starts it and leaves the others alone."""
    before = pids(stack)
    stack.kill(part)
    assert states(stack)[part] == "killed"
    stack.up()
    assert set(states(stack).values()) == {"running"}
    after = pids(stack)
    assert {name for name in after if after[name] != before[name]} == {part}


def test_a_part_that_hangs_is_noticed_and_started_again(stack: Stack) -> None:
    """A stopped process holds its port and does not answer; ``up`` replaces it."""
    before = pids(stack)["thrift"]
    assert before
    os.kill(before, signal.SIGSTOP)
    assert states(stack)["thrift"] == "not answering"
    stack.up()
    assert states(stack)["thrift"] == "running"
    assert start_time(before) is None


def test_acknowledged_writes_survive_a_killed_hbase(stack: Stack) -> None:
    """What HBase acknowledged is in its log on disk: it is there after a kill without any clean-up."""
    before = stack.timestamp()
    table(stack, "survivor").put(b"row", {b"f:q": b"kept"})
    stack.kill("hbase")
    assert states(stack)["hbase"] == "killed"
    stack.up()
    assert table(stack, "survivor").row(b"row") == {b"f:q": b"kept"}
    assert stack.timestamp() > before


def test_data_survive_down_and_up_and_down_leaves_no_process(stack: Stack) -> None:
    """``down`` ends every process and keeps the data; the oracle goes on above its last timestamp."""
    table(stack, "kept").put(b"row", {b"f:q": b"value"})
    before, running = stack.timestamp(), pids(stack)
    stack.down()
    assert set(states(stack).values()) == {"stopped"}
    assert [pid for pid in running.values() if pid and start_time(pid)] == []
    with pytest.raises(StackError, match="lowtide stack up"):
        stack.timestamp()
    stack.up()
    assert table(stack, "kept").row(b"row") == {b"f:q": b"value"}
    assert stack.timestamp() > before


def test_the_clock_of_a_store_cannot_change(stack: Stack) -> None:
    """A store with world-clock data refuses to start as an incremental one, and is left as it was."""
    other = Stack(dataclasses.replace(stack.config, timestamps="incremental"))
    stack.kill("tso")
    with pytest.raises(StackError, match="made with world timestamps"):
        other.up()
    assert states(stack) == {"hbase": "running", "thrift": "running", "tso": "killed"}
    stack.up()
    assert set(states(stack).values()) == {"running"}


# --- without a running store --------------------------------------------------------------------------------------


def test_a_recycled_process_id_is_never_ended(tmp_path: Path) -> None:
    """A process that got the id of a dead part of ours is another's: ``down`` forgets the part and leaves it alone."""
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        store = Stack(free_ports_config(tmp_path))
        (tmp_path / "run").mkdir()
        Servers(tmp_path).record("hbase", Process(stranger.pid, "long ago"))
        assert states(store)["hbase"] == "killed"
        store.down()
        assert states(store)["hbase"] == "stopped"
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    """``up`` says at once which port of which part is taken, and starts nothing."""
    config = free_ports_config(tmp_path)
    with socket.create_server(("127.0.0.1", config.thrift_port)):
        with pytest.raises(StackError, match=f"port {config.thrift_port}, meant for thrift, is taken"):
            Stack(config).up()
        assert pids(Stack(config)) == {"hbase": None, "thrift": None, "tso": None}


def test_missing_jars_name_the_command_that_makes_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the build of ``embedded/`` the error names ``make setup``."""
    monkeypatch.setattr(machine, "embedded_target", lambda: tmp_path / "target")
    with pytest.raises(StackError, match="make setup"):
        Stack(free_ports_config(tmp_path / "store")).up()
    with pytest.raises(StackError, match=r"make hbase-2\.5"):
        Stack(free_ports_config(tmp_path / "store", hbase="2.5")).up()


def test_a_missing_or_wrong_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Java that is not there or too old is refused with what it said and what is needed."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(StackError, match=r"no Java at JAVA_HOME=.*install a JDK 17"):
        Stack(free_ports_config(tmp_path / "store")).up()
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_402\"' >&2\n")
    old.chmod(0o755)
    with pytest.raises(StackError, match=r"1\.8\.0_402.*needs Java 17"):
        Stack(free_ports_config(tmp_path / "store")).up()


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk with too little room is refused before anything is written."""
    monkeypatch.setattr(machine, "FREE_DISK", 2**60)
    with pytest.raises(StackError, match="GiB free, the store needs"):
        Stack(free_ports_config(tmp_path / "store")).up()
    assert pids(Stack(free_ports_config(tmp_path / "store"))) == {"hbase": None, "thrift": None, "tso": None}


def test_the_command_line_says_what_does_not_run(tmp_path: Path) -> None:
    """``status`` of a store that was never started shows three stopped parts and exits 1; ``down`` does nothing."""
    result = CliRunner().invoke(app, ["status", "--home", str(tmp_path / "none")])
    assert result.exit_code == 1
    assert result.output.count("stopped") == 3
    assert CliRunner().invoke(app, ["down", "--home", str(tmp_path / "none")]).exit_code == 0
    assert not (tmp_path / "none").exists()


def test_an_older_hbase_is_not_started_on_a_newer_ones_data(tmp_path: Path) -> None:
    """An HBase does not read what a newer one wrote; Phoenix's jars are for the newest only."""
    from lowtide.lab.stack import files

    newer = free_ports_config(tmp_path)
    files.write(newer)
    (tmp_path / "hbase").mkdir()
    with pytest.raises(StackError, match=r"written by HBase 2\.6, which is newer than 2\.5.*--hbase 2\.6"):
        Stack(dataclasses.replace(newer, hbase="2.5")).up()
    with pytest.raises(StackError, match="leave --phoenix out"):
        dataclasses.replace(newer, hbase="2.5", phoenix=True)
    with pytest.raises(StackError, match=r"hbase is '2\.4'; use one of 2\.5, 2\.6"):
        StackConfig(home=tmp_path, hbase="2.4")  # type: ignore[arg-type]


def test_configurations_that_cannot_be_meant_are_refused(tmp_path: Path) -> None:
    """Equal ports, an unknown clock and an empty conflict map are refused with the value."""
    with pytest.raises(StackError, match="no port can be thrift 0, tso 70000; give one from 1 to 65535"):
        StackConfig(home=tmp_path, thrift_port=0, tso_port=70000)
    with pytest.raises(StackError, match="not all different"):
        StackConfig(home=tmp_path, thrift_port=7000, tso_port=7000)
    with pytest.raises(StackError, match="'lunar'"):
        StackConfig(home=tmp_path, timestamps="lunar")  # type: ignore[arg-type]
    with pytest.raises(StackError, match="conflict_map_size is 0"):
        StackConfig(home=tmp_path, conflict_map_size=0)


def test_a_saved_configuration_is_read_back(tmp_path: Path) -> None:
    """What a store was started with is found again by its folder, extra jars and properties included."""
    config = free_ports_config(
        tmp_path, extra_hbase={"a.b": "c"}, extra_classpath=(tmp_path / "x.jar",), java_options=("-Da=b",)
    )
    from lowtide.lab.stack import files

    files.write(config)
    assert load(tmp_path) == config
    assert "<name>a.b</name><value>c</value>" in (tmp_path / "conf" / "hbase-site.xml").read_text()
    assert json.loads((tmp_path / "conf" / "stack.json").read_text())["tso_port"] == config.tso_port


def test_region_servers_of_their_own_are_asked_for_by_number(tmp_path: Path) -> None:
    """By default HBase is one process. With region servers ZooKeeper comes first, and the master last of HBase's, so
    that it is the first of them to end.
    """
    from lowtide.lab.stack import files

    together, apart = free_ports_config(tmp_path / "a"), free_ports_config(tmp_path / "b", region_servers=2)
    assert Stack(together).parts == ("hbase", "thrift", "tso")
    assert Stack(apart).parts == ("zookeeper", "regionserver1", "regionserver2", "master", "thrift", "tso")
    assert apart.ports == {"zookeeper": apart.zookeeper_port, "thrift": apart.thrift_port, "tso": apart.tso_port}
    assert files.server_properties(together)["hbase.cluster.distributed"] == "false"
    assert files.server_properties(apart)["hbase.cluster.distributed"] == "true"
    files.write(apart)
    assert load(apart.home) == apart
    assert (
        f"clientPort={apart.zookeeper_port}\nclientPortAddress=127.0.0.1\n" in (apart.home / "conf/zoo.cfg").read_text()
    )
    with pytest.raises(StackError, match="region_servers is 10; it is 1 to 9, or 0 for HBase in one process"):
        free_ports_config(tmp_path, region_servers=10)


def test_a_store_of_before_there_were_region_servers_apart_stays_in_one_process(tmp_path: Path) -> None:
    """The file of such a store says ``region_servers: 1`` of the one inside HBase's process."""
    from lowtide.lab.stack import files

    files.write(free_ports_config(tmp_path))
    saved = tmp_path / "conf" / "stack.json"
    before = json.loads(saved.read_text())
    del before["region_server_processes"]
    saved.write_text(json.dumps({**before, "region_servers": 1}))
    assert load(tmp_path).region_servers == 0
