"""Settings from beside the configuration file: the cluster's own files, and environment variables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lowtide import paths
from lowtide.config import CONFIG_VARIABLE, Config, load
from lowtide.errors import UnnamedStoreError, UsageError
from lowtide.run import submit
from lowtide.sources import site

CLUSTER = {
    "hbase.zookeeper.quorum": "zk1,zk2,zk3",
    "hbase.zookeeper.property.clientPort": "2182",
    "zookeeper.znode.parent": "/hbase-secure",
    "hbase.security.authentication": "kerberos",
    "hbase.master.kerberos.principal": "hbase/_HOST@EXAMPLE.ORG",
    "hbase.regionserver.kerberos.principal": "hbase/_HOST@EXAMPLE.ORG",
    "hbase.rpc.protection": "privacy",
}


@pytest.fixture(autouse=True)
def _nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of its own, and nothing in the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(paths, "store", lambda: tmp_path / "no store")  # whatever there is in this checkout
    for name in (CONFIG_VARIABLE, *site.VARIABLES):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def cluster(tmp_path: Path) -> Callable[..., Path]:
    """Write a folder with the cluster's files, and return it."""

    def write(hbase: dict[str, str] = CLUSTER, core: dict[str, str] | None = None, name: str = "conf") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for file, properties in (("hbase-site.xml", hbase), ("core-site.xml", core)):
            if properties is not None:
                rows = "".join(
                    f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items()
                )
                (folder / file).write_text(f"<configuration>{rows}</configuration>")
        return folder

    return write


def given(text: str) -> Path:
    path = Path("given.yaml")
    path.write_text(text)
    return path


def address(config: Config) -> tuple[str, int, str]:
    return config.hbase.zookeeper_quorum, config.hbase.zookeeper_port, config.hbase.znode


def test_the_clusters_files_are_read_from_the_named_folder(cluster: Callable[..., Path]) -> None:
    """Quorum, port and znode become settings, principals and the like properties; nobody types them twice."""
    cluster()
    config = load(given("hbase: {conf_dir: conf}"))
    assert address(config) == ("zk1,zk2,zk3", 2182, "/hbase-secure")
    assert config.hbase.client_properties() == CLUSTER
    assert config.hbase.conf_dir == str(Path("conf").resolve())


def test_the_files_own_keys_win_one_by_one(cluster: Callable[..., Path]) -> None:
    """Beside a folder that was named, a key of the file outranks the cluster's, and the others stay."""
    cluster()
    config = load(given("hbase: {conf_dir: conf, znode: /x, properties: {hbase.rpc.protection: integrity}}"))
    assert address(config) == ("zk1,zk2,zk3", 2182, "/x")
    assert config.hbase.properties["hbase.rpc.protection"] == "integrity"
    assert config.hbase.properties["hbase.security.authentication"] == "kerberos"


@pytest.mark.parametrize("variable", site.VARIABLES)
def test_the_folder_is_found_by_the_variables_of_hadoop(
    cluster: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """HBase's or Hadoop's, where the configuration says nothing of where the store is."""
    monkeypatch.setenv(variable, str(cluster()))
    assert address(load(given("grace: 8d"))) == ("zk1,zk2,zk3", 2182, "/hbase-secure")


@pytest.mark.parametrize("own", ["zookeeper_port: 2999", "znode: /other"])
def test_an_address_is_never_put_together_from_two_clusters(
    cluster: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, own: str
) -> None:
    """Where the file gives any part of an address, a folder that the environment happens to lead to is not read; a part
    that is the address of nothing names no store.
    """
    monkeypatch.setenv("HBASE_CONF_DIR", str(cluster()))
    config = load(given("hbase: {zookeeper_quorum: other}"))
    assert (address(config), config.hbase.properties) == (("other", 2181, "/hbase"), {})
    with pytest.raises(
        UnnamedStoreError, match=r"HBASE_CONF_DIR is set .* the store on this machine \(127\.0\.0\.1:2181\)"
    ):
        load(given(f"hbase: {{{own}}}"))
    monkeypatch.delenv("HBASE_CONF_DIR")
    expected = Config.model_validate({"hbase": dict([own.split(": ")])})
    assert address(load(given(f"hbase: {{{own}}}"))) == address(expected)


@pytest.mark.parametrize("variable", site.VARIABLES)
def test_a_file_that_names_no_store_means_none_on_a_machine_that_is_set_up_for_a_cluster(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    """Where that cluster's own files are not found: the file's name and the remedy are told, to jobs as to commands."""
    monkeypatch.setenv(variable, "/etc/hadoop")
    said = rf"does not say where the store is, and {variable} is set \(/etc/hadoop\): .* say hbase.zookeeper_quorum"
    for text in ("grace: 8d", "hbase: {conf_dir: null}", "hbase: {thrift: {host: gateway}}"):
        with pytest.raises(UnnamedStoreError, match=said):
            load(given(text))
    assert address(load(given("grace: 8d"), store_named=True))[0] == "127.0.0.1"
    monkeypatch.setenv("LOWTIDE_HBASE__ZOOKEEPER_QUORUM", "127.0.0.1")
    assert address(load(given("grace: 8d")))[0] == "127.0.0.1"


NAMED = ("zookeeper_quorum: zk1", "conf_dir: conf", "properties: {hbase.masters: m1}")


@pytest.mark.parametrize("named", NAMED)
def test_of_several_stores_each_file_says_where_its_own_is(
    cluster: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """And nothing else does: not the defaults, nor the folder that the environment leads every store to."""
    gateway = "thrift: {host: gateway}"
    folder = cluster()
    load(given(f"hbase: {{{named}, {gateway}}}"), one_of_several=True)
    for there in (None, folder):
        if there:
            monkeypatch.setenv("HBASE_CONF_DIR", str(there))
        for text in (f"hbase: {{{gateway}}}", f"hbase: {{znode: /x, {gateway}}}", "grace: 8d"):
            with pytest.raises(UnnamedStoreError, match="does not say where its store is, and it is one of several"):
                load(given(text), one_of_several=True)
            with pytest.raises(UnnamedStoreError):
                load(given(text), one_of_several=True, store_named=True)


@pytest.mark.parametrize("named", [*NAMED, "properties: {hbase.zookeeper.quorum: 'zk1,127.0.0.1'}"])
def test_a_gateway_that_nobody_named_is_not_taken_for_that_of_a_store_elsewhere(
    cluster: Callable[..., Path], named: str
) -> None:
    """On this machine another store's may answer; one that a file, or an Airflow connection, names is taken."""
    cluster()
    if "masters" in named:
        named = "properties: {hbase.masters: 'm1:16000', hbase.client.registry.impl: a.RpcConnectionRegistry}"
    config = load(given(f"hbase: {{{named}, thrift: {{port: 9091}}}}"))
    with pytest.raises(UnnamedStoreError, match=r"\(127\.0\.0\.1:9091\) may be another store's; say hbase.thrift.host"):
        config.hbase.check_gateway()
    with pytest.raises(UnnamedStoreError):
        load(given(f"hbase: {{{named}}}"), one_of_several=True)
    load(given(f"hbase: {{{named}}}"), one_of_several=True, store_named=True)
    load(given(f"hbase: {{{named}, thrift: {{host: 127.0.0.1}}}}"), one_of_several=True).hbase.check_gateway()


@pytest.mark.parametrize("here", ["127.0.0.1", "localhost:2181, 127.0.1.1", "'[::1]'"])
def test_the_gateway_of_a_store_on_this_machine_is_looked_for_here(here: str) -> None:
    """Nobody has to name it."""
    load(given(f"hbase: {{zookeeper_quorum: {here if here[0] == chr(39) else repr(here)}}}")).hbase.check_gateway()
    load(given("grace: 8d")).hbase.check_gateway()


@pytest.mark.parametrize("several", [False, True])
def test_an_address_in_hbases_words_is_not_mixed_with_another_clusters(
    cluster: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, several: bool
) -> None:
    """Two clusters may share an ensemble: the port and the znode of the one are not the other's."""
    monkeypatch.setenv("HBASE_CONF_DIR", str(cluster()))
    ours = "properties: {hbase.zookeeper.quorum: zk}, thrift: {host: gateway}"
    config = load(given(f"hbase: {{{ours}}}"), one_of_several=several)
    assert address(config) == ("127.0.0.1", 2181, "/hbase")
    assert config.hbase.address == "zk:2181/hbase"


def test_servers_that_stand_for_zookeeper_say_where_the_store_is(
    cluster: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that HBase's client asks first; a gateway that nobody named is not looked for here then, nor where they
    are not told.
    """
    monkeypatch.setenv("HBASE_CONF_DIR", str(cluster()))
    registry = "hbase.client.registry.impl: a.RpcConnectionRegistry"
    hidden = load(given(f"hbase: {{properties: {{{registry}, hbase.client.bootstrap.servers: 'rs1:16020'}}}}"))
    with pytest.raises(UnnamedStoreError, match="the store is at rs1:16020, and no Thrift gateway"):
        hidden.hbase.check_gateway()
    monkeypatch.delenv("HBASE_CONF_DIR")
    with pytest.raises(UnnamedStoreError, match="servers that nobody names"):
        load(given(f"hbase: {{properties: {{{registry}}}}}")).hbase.check_gateway()


def test_the_defaults_never_mean_a_cluster() -> None:
    """Without a configuration file the store of this machine is meant, where nothing speaks of another."""
    assert address(load()) == ("127.0.0.1", 2181, "/hbase")


@pytest.mark.parametrize("variable", site.VARIABLES)
@pytest.mark.parametrize("there", [True, False])
def test_a_machine_that_is_set_up_for_a_cluster_has_no_default_store(
    cluster: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, variable: str, there: bool
) -> None:
    """Without a configuration file neither the cluster's store is meant nor this machine's, until one is named; also
    where the folder has no file of HBase's.
    """
    monkeypatch.setenv(variable, str(cluster() if there else "/etc/hadoop"))
    with pytest.raises(UnnamedStoreError, match=rf"{variable} is set .* may not be what is meant; give --config FILE"):
        load()
    assert load(store_named=True) == Config(state={"sideline": str(Path(".lowtide/sideline").resolve())})
    monkeypatch.setenv("LOWTIDE_SEED", "1")  # no setting, and no address
    monkeypatch.setenv("LOWTIDE_OMID__CLOCK", "world")
    monkeypatch.setenv("LOWTIDE_HBASE__ZNODE", "/hbase-secure")  # of whichever store: it is the address of none
    with pytest.raises(UnnamedStoreError):
        load()
    monkeypatch.setenv("LOWTIDE_HBASE__ZOOKEEPER_QUORUM", "127.0.0.1")
    assert address(load()) == ("127.0.0.1", 2181, "/hbase-secure")


def test_a_cluster_can_be_named_by_a_variable(cluster: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a configuration file."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster()))
    monkeypatch.setenv("LOWTIDE_HBASE__CONF_DIR", "conf")
    assert address(load()) == ("zk1,zk2,zk3", 2182, "/hbase-secure")


def test_the_embedded_stores_root_folder_is_known(
    cluster: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of the store that the defaults mean, and where there is no configuration file: of any other it has to be asked
    for.
    """
    servers = {
        "hbase.zookeeper.quorum": "127.0.0.1",
        "hbase.zookeeper.property.clientPort": "2181",
        "zookeeper.znode.parent": "/hbase",
        "hbase.rootdir": "file:/store/hbase",
        "hbase.tmp.dir": "/store/tmp",
    }
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setattr(paths, "store", lambda: home)
    assert load().hbase.properties == {}
    cluster(servers, name="home/conf")
    assert load().hbase.properties == {"hbase.rootdir": "file:/store/hbase"}
    assert load(given("grace: 8d")).hbase.properties == {}
    monkeypatch.setenv("LOWTIDE_HBASE__PROPERTIES", '{"hbase.rootdir": "file:/mine"}')
    assert load().hbase.properties == {"hbase.rootdir": "file:/mine"}
    monkeypatch.delenv("LOWTIDE_HBASE__PROPERTIES")
    monkeypatch.setenv("LOWTIDE_HBASE__ZOOKEEPER_PORT", "2182")
    assert load().hbase.properties == {}


def test_only_what_a_client_needs_is_taken(cluster: Callable[..., Path]) -> None:
    """What servers are told, the root folder and passwords of other things than TLS stay where they are."""
    servers = {
        "hbase.rootdir": "hdfs://ns/hbase",
        "hbase.regionserver.handler.count": "30",
        "hbase.zookeeper.property.dataDir": "/var/zk",
        "hbase.ssl.keystore.password": "secret",
        "hbase.client.some.password": "secret",
        "hbase.coprocessor.region.classes": "some.Class",
        "dfs.replication": "2",
    }
    cluster({**CLUSTER, **servers}, {"fs.s3a.secret.key": "secret", "hbase.client.retries.number": "7"})
    properties = load(given("hbase: {conf_dir: conf}")).hbase.client_properties()
    assert properties == {**CLUSTER, "hbase.client.retries.number": "7"}


def test_a_store_of_tls_is_taken_with_its_password(cluster: Callable[..., Path]) -> None:
    """Without it no client can read the file whose place is taken."""
    of_tls = {
        f"hbase.rpc.tls.{store}.{what}": f"{store} {what}"
        for store in ("truststore", "keystore")
        for what in ("location", "type", "password")
    }
    cluster({**CLUSTER, **of_tls})
    assert load(given("hbase: {conf_dir: conf}")).hbase.client_properties() == {**CLUSTER, **of_tls}


def test_a_password_is_not_told_where_it_cannot_be_made_out(cluster: Callable[..., Path]) -> None:
    """A part of it stands beside the reference that stands for nothing."""
    cluster({**CLUSTER, "hbase.rpc.tls.truststore.password": "hunter2${nosuch}"})
    with pytest.raises(UsageError, match=r"truststore\.password in .*conf has a reference") as refused:
        load(given("hbase: {conf_dir: conf}"))
    assert "hunter2" not in str(refused.value)


def test_references_are_replaced(cluster: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """By other properties and by the environment, as Hadoop does; one that stands for nothing is refused by name."""
    monkeypatch.setenv("REALM", "EXAMPLE.ORG")
    cluster(
        {"zk": "a,b", "hbase.zookeeper.quorum": "${zk}", "hbase.master.kerberos.principal": "hbase/_HOST@${env.REALM}"}
    )
    hbase = load(given("hbase: {conf_dir: conf}")).hbase
    assert hbase.zookeeper_quorum == "a,b"
    assert hbase.properties == {"hbase.master.kerberos.principal": "hbase/_HOST@EXAMPLE.ORG"}
    cluster({"hbase.rpc.protection": "${nosuch}"}, name="broken")
    with pytest.raises(UsageError, match=r"hbase\.rpc\.protection in .*broken is \$\{nosuch\}.*write it out"):
        load(given("hbase: {conf_dir: broken}"))


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<configuration><property>", "cannot be read as Hadoop's XML"),
        (
            '<configuration xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="o.xml"/></configuration>',
            "includes another file",
        ),
        (None, "there is no hbase-site.xml"),
    ],
)
def test_files_that_cannot_be_used_are_named(tmp_path: Path, text: str | None, what: str) -> None:
    """A folder that was named and is of no use stops everything: else another store would be meant."""
    folder = tmp_path / "conf"
    folder.mkdir()
    if text is not None:
        (folder / "hbase-site.xml").write_text(text)
    with pytest.raises(UsageError, match=what) as error:
        load(given("hbase: {conf_dir: conf}"))
    assert str(folder) in str(error.value)
    assert "conf_dir" in str(error.value) or "leave the key out" in str(error.value)


def test_spark_finds_the_clusters_core_site(cluster: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A job's environment has the folder as HADOOP_CONF_DIR, unless that is set already."""
    folder = cluster(core={"hadoop.security.authentication": "kerberos"})
    config = load(given("hbase: {conf_dir: conf}"))
    assert submit.environment(config)["HADOOP_CONF_DIR"] == str(folder)
    monkeypatch.setenv("HADOOP_CONF_DIR", "/etc/other")
    assert submit.environment(config)["HADOOP_CONF_DIR"] == "/etc/other"
    monkeypatch.delenv("HADOOP_CONF_DIR")
    (folder / "core-site.xml").unlink()
    assert "HADOOP_CONF_DIR" not in submit.environment(config)


def test_a_variable_outranks_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a section within a section too; what it does not name stays as the file has it."""
    monkeypatch.setenv("LOWTIDE_HBASE__ZOOKEEPER_QUORUM", "zk9")
    monkeypatch.setenv("LOWTIDE_HBASE__THRIFT__PORT", "9999")
    monkeypatch.setenv("LOWTIDE_OMID__ORACLE", json.dumps(["a:1", "b:2"]))
    monkeypatch.setenv("LOWTIDE_SPARK__CONF", json.dumps({"x.y": "2"}))
    monkeypatch.setenv("LOWTIDE_DEFAULTS__BUDGET__SHARE", "0.25")
    text = "hbase: {zookeeper_quorum: zk1, thrift: {host: gateway, port: 1}}\nspark: {conf: {a.b: '1', x.y: '1'}}"
    config = load(given(text))
    assert (config.hbase.zookeeper_quorum, config.hbase.thrift.host, config.hbase.thrift.port) == (
        "zk9",
        "gateway",
        9999,
    )
    assert config.omid.oracle == ["a:1", "b:2"]
    assert config.spark.conf == {"a.b": "1", "x.y": "2"}
    assert config.defaults.budget.share == 0.25
    assert load().hbase.thrift.port == 9999


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("LOWTIDE_HBASE__ZOOKEPER_QUORUM", "LOWTIDE_HBASE__ZOOKEEPER_QUORUM may be meant"),
        ("LOWTIDE_HBSE__ZNODE", "LOWTIDE_HBASE__ZNODE may be meant"),
        ("LOWTIDE_HBASE__THRIFT", "may be meant"),
        ("LOWTIDE_TABLES__ORDERS__MODE", "tables is set in the file alone"),
        ("LOWTIDE_X__Y", "docs/configuration.md"),
        ("LOWTIDE_HBASE_THRIFT_HOST", "LOWTIDE_HBASE__THRIFT__HOST is meant, with two underscores; unset it"),
        ("LOWTIDE_HBASE_ZOOKEEPER_QUORUM", "LOWTIDE_HBASE__ZOOKEEPER_QUORUM is meant"),
        ("lowtide_spark_master", "LOWTIDE_SPARK__MASTER is meant"),
        ("LOWTIDE_GRACE", "grace is set in the file alone"),
        ("LOWTIDE_TABLES", "tables is set in the file alone"),
        ("LOWTIDE_STORE", "store is set in the file alone"),
        ("LOWTIDE_DEFAULTS", "a section is set key by key, LOWTIDE_DEFAULTS__KEY"),
    ],
)
def test_a_variable_that_names_no_setting_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, remedy: str) -> None:
    """A misspelt one would else leave the file's value in force without a word."""
    monkeypatch.setenv(name, "x")
    with pytest.raises(UsageError, match=rf"variable {name} names no setting") as error:
        load(given(""))
    assert remedy in str(error.value)


def test_a_variables_bad_value_is_named_by_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not as if the file had it; a list that is no JSON too."""
    monkeypatch.setenv("LOWTIDE_HBASE__ZOOKEEPER_PORT", "many")
    with pytest.raises(
        UsageError, match=r"hbase\.zookeeper_port \(environment variable LOWTIDE_HBASE__ZOOKEEPER_PORT\)"
    ):
        load(given(""))
    monkeypatch.delenv("LOWTIDE_HBASE__ZOOKEEPER_PORT")
    monkeypatch.setenv("LOWTIDE_OMID__ORACLE", '["nowhere"]')
    with pytest.raises(UsageError, match=r"omid\.oracle\.0 \(environment variable LOWTIDE_OMID__ORACLE\)"):
        load(given(""))
    monkeypatch.setenv("LOWTIDE_OMID__ORACLE", "tso1:24758")
    with pytest.raises(UsageError, match=r"LOWTIDE_OMID__ORACLE.*JSON"):
        load(given(""))
    monkeypatch.delenv("LOWTIDE_OMID__ORACLE")
    monkeypatch.setenv("LOWTIDE_SPARK__CONF", '{"a": 1}')
    with pytest.raises(UsageError, match=r"spark\.conf\.a \(environment variable LOWTIDE_SPARK__CONF\)"):
        load(given(""))
    with pytest.raises(UsageError) as error:
        load(given("spark: {conf: {b: 2}}"))
    assert "  spark.conf.b: " in str(error.value), "that is the file's"


def test_other_variables_of_the_prefix_are_none_of_these(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has no double underscore and is no setting's name without them; and what Kubernetes tells of a service that
    happens to be called like a section.
    """
    monkeypatch.setenv("LOWTIDE_SEED", "7")
    monkeypatch.setenv("LOWTIDE_HBASE_THRIFT_PORT", "tcp://10.0.0.1:9090")
    monkeypatch.setenv("LOWTIDE_HBASE_THRIFT_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("LOWTIDE_HBASE_THRIFT_PORT_9090_TCP_ADDR", "10.0.0.1")
    assert load(given("grace: 8d")).grace.days == 8
