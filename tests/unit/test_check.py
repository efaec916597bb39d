"""``lowtide check``: each hop's judgement, what is not looked at, and what the command prints."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lowtide.check import airflow, cluster, driver, machine, records, servers
from lowtide.check.hops import HOPS, OF_THE_STORE, Line, NotCheckedError, Result, exit_code, hops_for, not_walked, walk
from lowtide.cli.app import app
from lowtide.cli.check import sentence
from lowtide.config import DEFAULTS, Config, HBase, Omid, Spark, Thrift
from lowtide.errors import GatewayError, LowtideError, StoreError, UsageError
from lowtide.run import installation, sparks
from lowtide.store import oracle_probe, ports
from lowtide.store.permissions import Lack
from lowtide.store.rows import FORMAT
from lowtide.values.clock import from_millis, millis
from lowtide.values.skew import Allotted

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
WORLD = millis(NOW) * 1_000_000


def raised(kind: type[LowtideError], look: Callable[[], object]) -> tuple[str, str]:
    """The fact and the remedy of the error that *look* raises."""
    with pytest.raises(kind) as error:
        look()
    assert error.value.remedy, "no remedy"
    return error.value.fact, error.value.remedy


# The walk


def test_what_depends_on_a_broken_hop_is_not_looked_at() -> None:
    """It says which hop is the reason, and that hop alone is wrong; what does not depend on it is looked at."""

    def broken() -> str:
        raise GatewayError("it is down", "start it")

    looked: list[str] = []
    looks = {hop.name: (lambda name=hop.name: looked.append(name) or "fine") for hop in HOPS} | {"gateway": broken}
    lines = {line.hop: line for line in walk(looks)}
    assert [line.hop for line in lines.values()] == [hop.name for hop in HOPS]
    assert lines["gateway"] == Line("gateway", "Thrift gateway", Result.WRONG, "it is down", "start it")
    skipped = {name for name, line in lines.items() if line.result is Result.NOT_CHECKED}
    assert skipped == {
        "gateway-login",
        "format",
        "records",
        "commit-table",
        "oracle-store",
        "gateway-rights",
        "cluster",
        "clocks",
        "executors",
    }
    assert skipped.isdisjoint(looked)
    assert lines["format"].text == "Thrift gateway is wrong"
    assert lines["records"].text == "State format was not checked"
    assert exit_code(lines.values()) == 1


def test_what_is_known_of_before_counts() -> None:
    """The driver goes on where the command stopped."""
    known = [Line("zookeeper", "ZooKeeper", Result.WRONG, "down")]
    lines = list(walk({"hbase": lambda: "up", "sideline": lambda: "there"}, known))
    assert [(line.hop, line.result) for line in lines] == [("hbase", Result.NOT_CHECKED), ("sideline", Result.OK)]


def test_a_hop_that_is_not_wanted_makes_nothing_wrong() -> None:
    """Neither does what depends on it."""

    def unwanted() -> str:
        raise NotCheckedError("omid.oracle is empty")

    lines = list(walk({"oracle": unwanted, "oracle-store": lambda: "never"}))
    assert [sentence(line) for line in lines] == [
        "not checked, because omid.oracle is empty",
        "not checked, because Oracle was not checked",
    ]
    assert exit_code(lines) == 0


def test_an_error_of_any_kind_is_a_line() -> None:
    """One hop that breaks never hides the others."""

    def breaks() -> str:
        raise RuntimeError("out of order\nmore")

    first, second = walk({"java": breaks, "spark": lambda: "fine"})
    assert (first.result, first.text) == (Result.WRONG, "RuntimeError: out of order")
    assert first.remedy
    assert second.result is Result.OK


@pytest.mark.parametrize("gateway", [Result.OK, Result.WRONG, Result.NOT_CHECKED])
def test_hops_need_only_what_comes_before_them(gateway: Result) -> None:
    """Else something would be looked at whose ground nobody knows yet. Whichever way leads to the store, all are."""
    hops = hops_for([Line("gateway", "Thrift gateway", gateway, "")])
    names = [hop.name for hop in hops]
    assert all(names.index(need) < index for index, hop in enumerate(hops) for need in hop.needs)
    assert sorted(names) == sorted(hop.name for hop in HOPS)
    assert len(set(names)) == len(names)
    assert all(Line.from_json(json.loads(json.dumps(line.to_json()))) == line for line in not_walked(names, "x"))


@pytest.mark.parametrize("gateway", [Result.WRONG, Result.NOT_CHECKED])
def test_without_a_gateway_a_driver_looks_at_what_is_in_the_store(gateway: Result) -> None:
    """Past it, as jobs do; only what is about the gateway itself is not looked at. HBase is what they need then."""
    known = [Line("gateway", "Thrift gateway", gateway, "")]
    assert set(OF_THE_STORE) < set(driver.wanted(known))
    lines = {line.hop: line for line in walk(dict.fromkeys(driver.wanted(known), str), known)}
    assert {name for name, line in lines.items() if line.result is not Result.OK} == {"cluster"}
    without_hbase = [*known, Line("zookeeper", "ZooKeeper", Result.WRONG, "down")]
    found = {line.hop: line.text for line in walk(dict.fromkeys(driver.wanted(known), str), without_hbase)}
    assert found["format"] == found["commit-table"] == "HBase was not checked"
    broken_off = {line.hop for line in driver.completed([], "ended", "", known)}
    assert set(OF_THE_STORE) < broken_off, "what a driver did not come to has a line"


def test_with_a_gateway_the_driver_looks_at_its_own_hops_alone() -> None:
    """The command has looked at the others, and what it found wrong stays."""
    known = [Line("gateway", "Thrift gateway", Result.OK, ""), Line("format", "State format", Result.WRONG, "newer")]
    assert driver.wanted(known) == driver.DRIVER_HOPS
    nothing = [Line("configuration", "", Result.WRONG, ""), Line("gateway", "", Result.NOT_CHECKED, "")]
    assert driver.wanted(nothing) == driver.DRIVER_HOPS, "with a configuration that is wrong no store is meant"


# This machine


def test_the_configuration_line_says_what_counts() -> None:
    """File, variables, the cluster's own files, and the store that is meant."""
    hbase = HBase(zookeeper_quorum="zk1,zk2", zookeeper_port=2182, znode="/x", conf_dir="/etc/hbase/conf")
    text = machine.configuration(Config(hbase=hbase), "/etc/lowtide.yaml", {"LOWTIDE_HBASE__ZNODE": "/x"})
    for part in ("/etc/lowtide.yaml", "LOWTIDE_HBASE__ZNODE", "/etc/hbase/conf/hbase-site.xml", "zk1,zk2:2182/x"):
        assert part in text


def test_the_configuration_line_says_what_does_not_count(tmp_path: Path) -> None:
    """The defaults, and a cluster's files that the machine has and that are not meant."""
    (tmp_path / "hbase-site.xml").touch()
    text = machine.configuration(Config(), DEFAULTS, {"HADOOP_CONF_DIR": str(tmp_path)})
    assert "there is no lowtide.yaml here" in text
    assert f"{tmp_path}/hbase-site.xml does not count: hbase.conf_dir would name it" in text
    assert "127.0.0.1:2181/hbase" in text


def test_the_configuration_line_names_what_a_command_line_would_show() -> None:
    """Settings of Spark that are called like secrets, and never what they hold; others are not mentioned."""
    conf = {"spark.hadoop.fs.s3a.secret.key": "hush", "spark.ssl.keyStorePassword": "hush", "spark.executor.cores": "2"}
    text = machine.configuration(Config(spark=Spark(conf=conf)), DEFAULTS, {})
    assert "spark.conf has spark.hadoop.fs.s3a.secret.key, spark.ssl.keyStorePassword: " in text
    assert "hush" not in text
    assert "cores" not in text


def test_an_older_python_is_named_with_the_version_that_is_needed() -> None:
    """And this one is fine."""
    assert sys.executable in machine.python()
    fact, remedy = raised(UsageError, lambda: machine.python((3, 9)))
    assert "3.9" in fact
    assert "3.11" in remedy


@pytest.mark.parametrize(
    ("banner", "fact"),
    [
        ('openjdk version "11.0.22" 2024-01-16', "is Java 11"),
        ('java version "1.8.0_402"', "is Java 8"),
        ("no such option", "says 'no such option' of its version"),
        ("", "says 'nothing'"),
    ],
)
def test_a_java_that_does_not_do_is_named_with_the_remedy(banner: str, fact: str) -> None:
    """Spark and the connector need 17."""
    found, remedy = raised(UsageError, lambda: machine.judge_java("/usr/bin/java", banner, "install 17"))
    assert found.startswith("/usr/bin/java")
    assert fact in found
    assert remedy == "install 17"


@pytest.mark.parametrize("hadoop", ["", "3.3.4", "3.4.2", "3.3.6.7.3.1.0-197"])
def test_a_java_that_hadoops_login_ends_in_is_named(hadoop: str) -> None:
    """From 23 on, unless this Spark has a client that does without; 22 is fine with any."""
    found, _ = raised(UsageError, lambda: machine.judge_java("/j", 'openjdk version "23.0.1"', "install 17", hadoop))
    assert f"/j is Java 23, and the login of Hadoop {hadoop}" in found
    assert machine.judge_java("/j", 'openjdk version "22.0.2"', "install 17", hadoop) == "22.0.2, /j"
    for client in ("3.5.0", "3.10.1"):
        assert machine.judge_java("/j", 'openjdk version "25"', "install 17", client) == "25, /j"


def test_the_hadoop_client_of_a_spark_is_told_by_its_jars(tmp_path: Path) -> None:
    """And not guessed where there are none."""
    assert installation.hadoop_in(tmp_path) == ""
    (tmp_path / "jars").mkdir()
    for name in ("hadoop-client-runtime-3.4.1.jar", "hadoop-client-api-3.4.1.jar"):
        (tmp_path / "jars" / name).touch()
    assert installation.hadoop_in(tmp_path) == "3.4.1"


def test_two_sparks_in_one_folder_are_named_with_the_command() -> None:
    """As pip puts them there with both extras, each of its own version."""
    for good in (
        {},
        {"pyspark": "4.2.0"},
        {"pyspark-client": "4.2.0"},
        {"pyspark": "4.2.0", "pyspark-client": "4.2.0"},
    ):
        machine.check_packages(good)
    fact, remedy = raised(UsageError, lambda: machine.check_packages({"pyspark": "4.2.0", "pyspark-client": "4.3.0"}))
    assert "pyspark 4.2.0 and pyspark-client 4.3.0" in fact
    assert remedy.endswith("-m pip install --force-reinstall --no-deps pyspark==4.2.0 pyspark-client==4.2.0")
    assert set(machine.package_versions()) == {"pyspark", "pyspark-client"}


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    """Spark's script would go by it, whatever is on the path; without it the path counts."""
    fact, remedy = raised(UsageError, lambda: machine.java({"JAVA_HOME": str(tmp_path)}))
    assert f"JAVA_HOME={tmp_path}" in fact
    assert "JAVA_HOME" in remedy
    assert "on the path" in raised(UsageError, lambda: machine.java({"PATH": str(tmp_path)}))[0]
    program = tmp_path / "bin" / "java"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'openjdk version \"21.0.2\" 2024' >&2\n")
    program.chmod(0o755)
    assert machine.java({"JAVA_HOME": str(tmp_path)}) == f"21.0.2, {program}"


def a_spark(home: Path, version: str) -> Path:
    (home / "jars").mkdir(parents=True)
    (home / "jars" / f"spark-core_2.13-{version}.jar").touch()
    (home / "bin").mkdir()
    (home / "bin" / "spark-class").touch()
    return home


def test_a_spark_home_of_another_line_is_refused_by_name(tmp_path: Path) -> None:
    """pip's spark-submit obeys it without a word, and the job would end in a traceback."""
    home = a_spark(tmp_path / "old", "2.4.8")
    fact, remedy = raised(UsageError, lambda: machine.spark({"SPARK_HOME": str(home)}))
    assert f"SPARK_HOME ({home}) has Spark 2.4.8" in fact
    assert "unset it" in remedy
    line = sparks.name(sparks.NEWEST)
    fitting = a_spark(tmp_path / "new", f"{line}.3")
    assert machine.spark({"SPARK_HOME": str(fitting)}).startswith(f"{line}.3, SPARK_HOME ({fitting}), by ")
    newer = a_spark(tmp_path / "newer", "9.0.0")
    assert "is newer than those that Lowtide was tried with" in machine.spark({"SPARK_HOME": str(newer)})


def test_a_spark_home_without_spark_is_named(tmp_path: Path) -> None:
    """As is this Python's own pyspark, where nothing else is said."""
    fact, _ = raised(UsageError, lambda: machine.spark({"SPARK_HOME": str(tmp_path)}))
    assert f"SPARK_HOME is {tmp_path}, where no Spark lies" in fact


@pytest.mark.parametrize(
    ("files", "fact"),
    [
        (["/x/hbase-shaded-mapreduce-2.6.4.jar"], "there is no connector in it"),
        (["/x/lowtide-connector.jar"], "has none"),
        (
            ["/x/lowtide-connector.jar", "/x/hbase-shaded-mapreduce-2.5.1.jar", "/y/hbase-shaded-mapreduce-2.6.4.jar"],
            "has 2 of them (2.5.1, 2.6.4)",
        ),
    ],
)
def test_a_class_path_without_a_pair_is_named(files: list[str], fact: str) -> None:
    """A connector and one HBase client: two would come from two class loaders."""
    key, names = "spark.connector_class_path", [Path(file).name for file in files]
    found, remedy = raised(UsageError, lambda: machine.judge_connector(key, ["/x/*"], names))
    assert "/x/*" in found
    assert fact in found
    assert "lowtide path connector" in remedy


def test_the_pair_is_named() -> None:
    """The connector's jar, and which HBase its client is of."""
    pair = ["lowtide-connector.jar", "hbase-shaded-mapreduce-2.6.4-hadoop3.jar"]
    assert "with HBase's client 2.6.4-hadoop3" in machine.judge_connector("", ["/x/*", "/x/lib/*"], pair)


# Servers


@contextmanager
def listening(answer: bytes = b"") -> Iterator[int]:
    """The port of something that takes connections, and says *answer* to whatever it is told, then hangs up."""

    def serve(server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, suppress(OSError):
                connection.recv(64)
                connection.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        with suppress(OSError):
            server.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def closed() -> int:
    """A port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_addresses_of_a_quorum() -> None:
    """A host may have a port of its own."""
    assert HBase(zookeeper_quorum="a, b:2999,,c").zookeeper_addresses == ["a:2181", "b:2999", "c:2181"]


def test_a_zookeeper_that_is_not_there_is_named_with_its_address(closed: int) -> None:
    """Down as a whole it is wrong; where one of several answers, the others are named."""
    fact, remedy = raised(GatewayError, lambda: servers.zookeeper(HBase(zookeeper_port=closed)))
    assert f"127.0.0.1:{closed}" in fact
    assert "hbase.zookeeper_quorum" in remedy
    with listening() as port:
        assert servers.zookeeper(HBase(zookeeper_port=port)) == f"127.0.0.1:{port}: takes connections"
        some = servers.zookeeper(HBase(zookeeper_quorum=f"127.0.0.1:{port},127.0.0.1:{closed}"))
    assert some.startswith("1 of 2 take connections")
    assert f"127.0.0.1:{closed}" in some


def test_clusters_that_hide_their_zookeeper() -> None:
    """HBase's clients ask none there, so nobody asks whether it answers, and what needs HBase is looked at."""
    properties = {"hbase.client.registry.impl": "org.apache.hadoop.hbase.client.RpcConnectionRegistry"}
    looks = {"zookeeper": lambda: servers.zookeeper(HBase(zookeeper_port=1, properties=properties)), "hbase": str}
    first, second = walk(looks)
    assert "RpcConnectionRegistry" in first.text
    assert [first.result, second.result] == [Result.OK, Result.OK]


def test_a_gateway_that_is_not_there_is_named(closed: int) -> None:
    """With its address, why, and the key that names it, where somebody counts on it; else it is not checked."""
    fact, remedy = raised(GatewayError, lambda: servers.gateway(Thrift(port=closed), "Airflow looks through it"))
    assert f"127.0.0.1:{closed} is not there" in fact
    assert "Airflow looks through it" in fact
    assert "hbase.thrift" in remedy
    with pytest.raises(NotCheckedError, match=rf"nothing answers at 127\.0\.0\.1:{closed} .*jobs need none, sensors"):
        servers.gateway(Thrift(port=closed))


def test_who_counts_on_a_gateway(tmp_path: Path) -> None:
    """A configuration that says where it is, and an Airflow that is set up here: sensors and page look through it."""
    home = tmp_path / "airflow"
    environment = {"AIRFLOW_HOME": str(home), "PATH": str(tmp_path)}
    assert airflow.wants_gateway(Config(), environment) == ""
    assert airflow.wants_gateway(Config(hbase=HBase(thrift=Thrift(timeout=timedelta(seconds=9)))), environment) == ""
    for thrift in (Thrift(host="gw"), Thrift(port=9091)):
        assert "hbase.thrift" in airflow.wants_gateway(Config(hbase=HBase(thrift=thrift)), environment)
    home.mkdir()
    (home / "airflow.cfg").touch()
    assert "Airflow" in airflow.wants_gateway(Config(), environment)


def test_a_gateway_over_http_is_known_for_one() -> None:
    """Asked otherwise, it is told with the setting that it needs."""
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        fact, remedy = raised(GatewayError, lambda: servers.gateway(Thrift(port=port)))
    assert "speaks HTTP" in fact
    assert remedy == "set hbase.thrift.transport to http"


def test_what_answers_no_call_may_ask_for_a_login() -> None:
    """A port that takes connections and hangs up is no gateway of ours."""
    with listening() as port:
        fact, remedy = raised(GatewayError, lambda: servers.gateway(Thrift(port=port)))
    assert "does not answer as a gateway" in fact
    assert "hbase.thrift.security.qop" in remedy


def test_an_oracle_that_is_not_there_is_named(closed: int) -> None:
    """With its address, and the two ports that are often mistaken; one that is not configured is not checked."""
    fact, remedy = raised(GatewayError, lambda: servers.oracle(Omid(oracle=[f"127.0.0.1:{closed}"])))
    assert f"127.0.0.1:{closed}" in fact
    assert "omid.oracle" in remedy
    assert "54758" in remedy
    with pytest.raises(NotCheckedError, match=r"omid\.oracle is empty"):
        servers.oracle(Omid(oracle=[]))


def test_what_is_no_oracle_is_told_from_one() -> None:
    """A port of another server takes connections too."""
    with listening(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        look = lambda: servers.oracle_and_store([f"127.0.0.1:{port}"], lambda: (0, None))  # noqa: E731
        fact, remedy = raised(GatewayError, look)
    assert f"127.0.0.1:{port} gives no timestamp" in fact
    assert "omid.oracle" in remedy


def test_the_next_address_of_an_oracle_is_asked_where_the_first_gives_none() -> None:
    """Of an oracle with a standby one takes connections, perhaps, and gives nothing."""
    answer = bytes([0, 0, 0, 0, 0, 0, 0, 5, 0x0A, 3, 0x08, 0x80 | 50, 1])
    with listening() as standby, listening(answer) as port:
        found = oracle_probe.timestamp([f"127.0.0.1:{standby}", f"127.0.0.1:{port}"], 2)
    assert found == (f"127.0.0.1:{port}", 50 + 128)


@pytest.mark.parametrize(("given", "allotted"), [(100, 900), (901, 900), (1500, 900)])
def test_the_oracle_of_another_store_is_known_by_its_timestamp(given: int, allotted: int) -> None:
    """Below the low watermark, or above all that the store's own oracle may give."""
    fact, remedy = raised(GatewayError, lambda: servers.judge_oracle("tso:1", 500, given, allotted))
    assert "tso:1" in fact
    assert "another store's" in fact
    assert "omid.oracle" in remedy


def test_the_oracle_of_the_store() -> None:
    """Between the two, ends included; without the upper one above the lower."""
    assert "between the store's low watermark 500" in servers.judge_oracle("tso:1", 500, 900, 900)
    assert "above the store's low watermark 500" in servers.judge_oracle("tso:1", 500, 500, None)


# Records


def test_records_of_an_older_format_are_told() -> None:
    """They are read; the next run that acts writes them anew."""
    assert f"the next run that acts writes {FORMAT}" in records.judge_format("S", FORMAT - 1)
    assert f"format {FORMAT}" in records.judge_format("S", FORMAT)


# HBase

FOUND = cluster.Cluster("id", "m:16000", "2.6.4", ("a:16020", "b:16020"), (), millis(NOW), "lowtide", True, ())


def test_an_hbase_without_region_servers_is_wrong() -> None:
    """A master alone answers, and serves nothing."""
    fact, remedy = raised(GatewayError, lambda: cluster.judge_hbase(replace(FOUND, servers=()), "2.6.4"))
    assert "m:16000" in fact
    assert "region servers" in remedy


def test_versions_and_dead_servers_are_told() -> None:
    """Of a version that was not tried it is said so."""
    assert cluster.judge_hbase(FOUND, "2.6.4") == "2.6.4, master m:16000, 2 region servers; asked by a client 2.6.4"
    text = cluster.judge_hbase(replace(FOUND, version="2.4.18", dead=("c:1",)), "2.6.4")
    assert "2.4.18" in text
    assert "this version was not tried" in text
    assert "dead: c:1" in text


def test_ways_to_two_clusters_are_both_named() -> None:
    """The gateway's address and ZooKeeper's."""
    hbase = HBase(thrift=Thrift(host="gw", port=9), zookeeper_quorum="zk")
    fact, remedy = raised(UsageError, lambda: cluster.judge_same(hbase, b"token", None))
    assert "gw:9" in fact
    assert "zk:2181/hbase" in fact
    assert remedy == "correct one of them"
    assert "gw:9" in cluster.judge_same(hbase, b"token", b"token")


@pytest.mark.parametrize(
    ("here", "allotted", "watermark", "named"),
    [
        (NOW + timedelta(minutes=5), None, 0, "the clock of this machine is 300 s ahead of"),
        (NOW, Allotted(WORLD + 400 * 10**9, NOW), 0, "the oracle's clock is 390 s ahead of"),
        (NOW, None, WORLD + 400 * 10**9, "low watermark"),
    ],
)
def test_clocks_that_differ_are_named(here: datetime, allotted: Allotted | None, watermark: int, named: str) -> None:
    """This machine's, or the oracle's by what it has allotted to itself or by its low watermark."""
    fact, remedy = raised(StoreError, lambda: cluster.judge_clocks(here, NOW, allotted, watermark))
    assert named in fact
    assert "set the clocks" in remedy


def test_clocks_that_agree() -> None:
    """Seconds are told, and an oracle that counts has none."""
    text = cluster.judge_clocks(NOW, NOW + timedelta(seconds=2), Allotted(WORLD + 10 * 10**9, NOW), WORLD)
    assert text == "HBase's is +2 s from this machine's; the oracle's is +0 s"
    assert "the oracle has none" in cluster.judge_clocks(NOW, NOW, Allotted(5000, NOW), 50)
    assert cluster.masters_time(FOUND) == from_millis(FOUND.heard)
    assert "no region server" in raised(StoreError, lambda: cluster.masters_time(replace(FOUND, heard=0)))[0]


@pytest.mark.parametrize(
    ("found", "refused", "named"),
    [
        (FOUND, {"orders": "AccessDeniedException"}, "lowtide may not write to orders (AccessDeniedException)"),
        (
            FOUND,
            dict.fromkeys("bc", "AccessDenied") | {"a": "closed"},
            "may not write to b, nor to 1 more (AccessDenied)",
        ),
        (replace(FOUND, lacks=("CREATE",)), {}, "lowtide lacks CREATE globally, and LOWTIDE_JOURNAL has to be made"),
    ],
)
def test_rights_that_are_missing_are_named_with_the_grant(
    found: cluster.Cluster, refused: Mapping[str, str], named: str
) -> None:
    """Table or action, user, and the statement for HBase's shell."""
    fact, remedy = raised(StoreError, lambda: cluster.judge_rights(found, refused, (), 3, ["LOWTIDE_JOURNAL"]))
    assert named in fact
    assert "grant 'lowtide', 'RWCA'" in remedy


@pytest.mark.parametrize("right", ["READ", "WRITE"])
def test_rights_on_a_part_of_a_table_are_named_with_the_grant(right: str) -> None:
    """A write that is never done asks for one family of it."""
    lacks = [Lack("lowtide", "orders", right)]
    fact, _ = raised(StoreError, lambda: cluster.judge_rights(FOUND, {}, lacks, 3))
    assert f"the right {right} is missing on orders as a whole" in fact


def test_a_region_that_does_not_answer_is_no_missing_right() -> None:
    """No grant would help."""
    refused = dict.fromkeys("ab", "NotServingRegionException")
    fact, remedy = raised(StoreError, lambda: cluster.judge_rights(FOUND, refused, (), 3))
    assert fact == "HBase does not answer for a and for 1 more: NotServingRegionException"
    assert "grant" not in remedy


def test_rights_as_far_as_hbase_tells() -> None:
    """It may check none, or not answer of two of them."""
    assert "has READ, WRITE, CREATE, ADMIN globally" in cluster.judge_rights(FOUND, {}, (), 3)
    some = cluster.judge_rights(replace(FOUND, lacks=("CREATE", "ADMIN")), {}, (), 3)
    assert "lowtide may read and write 3 tables; without CREATE, ADMIN globally it needs a grant on each table" in some
    assert "globally" not in cluster.judge_rights(replace(FOUND, checks=False), {}, (), 3, ["LOWTIDE_STATE"])
    assert "HBase checks no permissions" in cluster.judge_rights(replace(FOUND, checks=False), {}, (), 3)
    assert "HBase does not tell" in cluster.judge_rights(replace(FOUND, lacks=None), {}, (), 3)


def test_a_sideline_that_loses_rows_is_named() -> None:
    """Executors that write each on its own disk leave less than they wrote."""
    fact, remedy = raised(StoreError, lambda: cluster.judge_sideline("file:///x", 12, 6, 4))
    assert "file:///x" in fact
    assert "12" in fact
    assert "hdfs://" in remedy
    assert "file:///x" in cluster.judge_sideline("file:///x", 12, 12, 4)


def test_executors_that_read_nothing_are_wrong() -> None:
    """Where the driver finds the row."""
    assert "OMID" in raised(StoreError, lambda: cluster.judge_executors(0, "OMID"))[0]
    assert "OMID" in cluster.judge_executors(1, "OMID")


# The driver


def test_spark_is_not_started_where_it_cannot_be() -> None:
    """Its hops name the one that is wrong."""
    known = [Line("java", "Java", Result.WRONG, "there is no Java")]
    lines = driver.look(Config(), None, known, 1)
    assert [line.hop for line in lines] == list(driver.DRIVER_HOPS)
    assert {line.result for line in lines} == {Result.NOT_CHECKED}
    assert lines[0].text == "Java is wrong"


def test_a_driver_that_breaks_off_is_told_at_the_hop_it_came_to() -> None:
    """What it had found stays, the next hop has its last words, the others are not checked."""
    found = [Line("driver", "Spark driver and executors", Result.OK, "Spark")]
    output = "INFO x\njava.lang.OutOfMemoryError: heap\n\tat some.Class\nINFO shutdown hook\n"
    lines = driver.completed(found, "ended with exit code 1", output)
    assert [line.result for line in lines[:3]] == [Result.OK, Result.WRONG, Result.NOT_CHECKED]
    assert lines[1].hop == "hbase"
    assert "ended with exit code 1" in lines[1].text
    assert "OutOfMemoryError" in lines[1].text
    assert lines[1].remedy
    assert driver.completed(lines, "", "") == lines


def test_a_driver_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """Within the time given; nothing of it is left."""
    child = tmp_path / "child"
    script = f"sleep 600 & echo $! > {child}; wait"
    began = time.monotonic()
    end = driver._ended(["/bin/sh", "-c", script], {"PATH": "/usr/bin:/bin"}, tmp_path / "output", 1)
    assert "did not end within 1 s" in end
    assert time.monotonic() - began < 30
    pid = child.read_text().strip()
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False).stdout
    assert state.strip()[:1] in ("", "Z")


# Airflow

INSTALLED = airflow.Installed("3.3.2", "/home/airflow", {"lowtide": 1}, {}, ())


def test_without_an_airflow_nothing_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is installed and not set up is left so: to ask it would set it up."""
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    with pytest.raises(NotCheckedError, match="there is no Airflow here"):
        airflow.python({"PATH": str(tmp_path)})
    program = tmp_path / "bin" / "airflow"
    program.parent.mkdir()
    program.touch()
    with pytest.raises(NotCheckedError, match="not set up"):
        airflow.python({"AIRFLOW_HOME": str(tmp_path)})
    (tmp_path / "airflow.cfg").touch()
    assert airflow.python({"AIRFLOW_HOME": str(tmp_path)}) == tmp_path / "bin" / "python"


@pytest.mark.parametrize("long", [False, True])
def test_an_airflow_behind_a_link_is_asked_by_its_own_python(long: bool, tmp_path: Path) -> None:
    """As pipx puts one into ~/.local/bin, and many into /usr/local/bin, where another Python lies: the program names
    its own, also in the second line; where it names none, that is beside where the link leads.
    """
    home, links = tmp_path / "an environment" / "bin", tmp_path / "links"
    for folder in (home, links):
        folder.mkdir(parents=True)
        (folder / "python").symlink_to(sys.executable)
    (home / "python3.11").symlink_to(sys.executable)
    (links / "airflow").symlink_to(home / "airflow")
    (home / "airflow").write_text("#!/usr/bin/env python3\n")
    assert airflow.interpreter(links / "airflow") == home / "python"
    plain = tmp_path / "python3"
    plain.symlink_to(sys.executable)
    named = home / "python3.11" if long else plain
    (home / "airflow").write_text(
        f'#!/bin/sh\n\'\'\'exec\' "{named}" "$0" "$@"\n' if long else f"#!{named}\nimport sys\n"
    )
    assert airflow.interpreter(links / "airflow") == named


@pytest.mark.parametrize(
    ("script", "kind", "fact", "remedy"),
    [
        ("sleep 30", GatewayError, "did not answer within 1 s", "airflow db check"),
        ("echo broken >&2; exit 1", UsageError, "broken", "airflow db"),
        (
            "echo \"python: No module named 'lowtide_airflow'\" >&2; exit 1",
            UsageError,
            "has Airflow and no Lowtide",
            "install Lowtide's wheel",
        ),
    ],
)
def test_an_airflow_that_cannot_be_asked(
    tmp_path: Path, script: str, kind: type[LowtideError], fact: str, remedy: str
) -> None:
    """A slow one, one that breaks, one without Lowtide: each has its sentence."""
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nexec /bin/sh -c '{script}'\n" if "'" not in script else f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    found = raised(kind, lambda: airflow.ask(program, 1 if "sleep" in script else 20))
    assert fact in found[0]
    assert remedy in found[1]


@pytest.mark.parametrize(("pool", "fact"), [(None, "there is no pool"), (4, "has 4 slots")])
@pytest.mark.parametrize("name", ["lowtide", "orders.lowtide"])
def test_a_pool_that_is_missing_or_too_large(pool: int | None, fact: str, name: str) -> None:
    """With the command that makes it right."""
    found = raised(UsageError, lambda: airflow.judge_pool(replace(INSTALLED, pools={"lowtide": 1} | {name: pool})))
    assert fact in found[0]
    assert f"airflow pools set {name} 1" in found[1]
    assert airflow.judge_pool(INSTALLED) == "lowtide has one slot"


@pytest.mark.parametrize(
    ("connections", "fact"),
    [
        ({"spark_lowtide": {"type": "http", "host": "h", "port": None, "mode": "client"}}, "is of type http"),
        ({"spark_lowtide": {"type": "spark", "host": "yarn", "port": None, "mode": "cluster"}}, "deploy mode cluster"),
        ({"hbase_default": {"type": "hbase", "host": "other", "port": 9090, "mode": ""}}, "leads to other:9090"),
        ({"hbase_default": {"type": "hive", "host": "other", "port": 9090, "mode": ""}}, "is of type hive"),
    ],
)
def test_connections_that_mislead(connections: dict[str, Any], fact: str) -> None:
    """Another kind, a mode whose summary is lost, another store than the jobs'."""
    found, _ = raised(
        UsageError, lambda: airflow.judge_connections(replace(INSTALLED, connections=connections), Config())
    )
    assert fact in found


def test_connections_may_be_left_out() -> None:
    """Then the configuration counts, and the line says so."""
    text = airflow.judge_connections(INSTALLED, Config())
    assert "spark.master of the configuration, local[2]" in text
    assert "no hbase_default" in text


def test_settings_of_airflow_that_cannot_be_used() -> None:
    """They are told, with the page that lists them."""
    found = raised(
        UsageError, lambda: airflow.judge_settings(replace(INSTALLED, settings=("[lowtide] retries is 'x'",)))
    )
    assert "retries" in found[0]
    assert "docs/airflow.md" in found[1]


# The command


def test_a_configuration_that_cannot_be_read_is_the_only_thing_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the store is looked at by a configuration that is not meant; JSON has the same lines; exit code 1."""
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path))
    monkeypatch.delenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", raising=False)
    file = tmp_path / "lowtide.yaml"
    file.write_text("hbase: {zookeper_quorum: x}")
    done = CliRunner().invoke(app, ["check", "--config", str(file), "--json"])
    assert done.exit_code == 1
    found = json.loads(done.stdout)
    assert found["ok"] is False
    assert [hop["hop"] for hop in found["hops"]] == [hop.name for hop in HOPS]
    lines = {hop["hop"]: hop for hop in found["hops"]}
    assert "hbase.zookeper_quorum: unknown key" in lines["configuration"]["text"]
    assert all(lines[hop.name]["result"] == "not checked" for hop in HOPS if "configuration" in hop.needs)
    text = CliRunner().invoke(app, ["check", "--config", str(file)], env={"COLUMNS": "400"})
    assert text.exit_code == 1
    assert re.search(r"- HBase: not checked, because ", text.stdout)


def test_a_waiting_time_that_is_none_is_refused() -> None:
    """By the option's name."""
    done = CliRunner().invoke(app, ["check", "--wait", "soon"])
    assert isinstance(done.exception, UsageError)
    assert "--wait" in str(done.exception)


@pytest.mark.parametrize(
    ("address", "found"),
    [("zk1:2181", ("zk1", 2181)), ("[::1]:2181", ("::1", 2181)), ("[fe80::1%eth0]:2999", ("fe80::1%eth0", 2999))],
)
def test_an_address_of_the_sixth_version_loses_its_brackets(address: str, found: tuple[str, int]) -> None:
    """A quorum has it in brackets, and no socket takes them."""
    assert ports.parts(address) == found
    quorum, _, port = address.rpartition(":")
    hbase = HBase(zookeeper_quorum=quorum, zookeeper_port=int(port))
    assert [ports.parts(each) for each in hbase.zookeeper_addresses] == [found]


@pytest.mark.parametrize(
    ("addresses", "loopback"),
    [(("127.0.0.1",), True), (("::1", "127.0.0.1"), True), (("::1", "192.0.2.1"), False), (("fe80::1%eth0",), False)],
)
def test_a_gateway_on_this_machine_alone_is_known_by_all_of_its_addresses(
    addresses: tuple[str, ...], loopback: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it has none of the fourth version."""
    found = [(socket.AF_INET6, socket.SOCK_STREAM, 0, "", (each, 0)) for each in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_: found)
    assert servers._is_loopback("gateway") is loopback
