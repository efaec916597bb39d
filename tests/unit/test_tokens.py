"""What Spark is told so that executors are let in by tokens: of the configuration, and where it is of use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lowtide.config import Config
from lowtide.errors import UsageError
from lowtide.run import submit, tokens

REALM = {
    "hbase.security.authentication": "kerberos",
    "hbase.regionserver.kerberos.principal": "hbase/_HOST@EXAMPLE.ORG",
}
KEYTAB = {"hbase.client.keytab.file": "/etc/lowtide.keytab", "hbase.client.keytab.principal": "lowtide@EXAMPLE.ORG"}
SPARKS = {"spark.kerberos.keytab": "/etc/other.keytab", "spark.kerberos.principal": "other@EXAMPLE.ORG"}
SIDELINE = "hdfs://nameservice1/lowtide/sideline"


def config(
    properties: Mapping[str, str] = REALM, conf: Mapping[str, str] = {}, master: str = "yarn", sideline: str = SIDELINE
) -> Config:
    return Config.model_validate(
        {
            "hbase": {"zookeeper_quorum": "zk1,zk2", "properties": properties},
            "spark": {"master": master, "conf": conf, "connector_class_path": ["c.jar"]},
            "state": {"sideline": sideline},
        }
    )


def kerberos(**asked: Any) -> dict[str, str]:
    """What ``spark-submit`` is told of logins."""
    conf = submit.job_conf(config(**asked))
    return {name: value for name, value in conf.items() if name.startswith("spark.kerberos.")}


def test_the_keytab_of_hbases_client_is_sparks_too() -> None:
    """With it Spark fetches tokens again before they end, those of the sideline's file system among them."""
    found = kerberos(properties=REALM | KEYTAB)
    assert found == {
        "spark.kerberos.keytab": "/etc/lowtide.keytab",
        "spark.kerberos.principal": "lowtide@EXAMPLE.ORG",
        "spark.kerberos.access.hadoopFileSystems": "hdfs://nameservice1",
    }


def test_without_a_keytab_tokens_are_renewed_by_the_ticket_cache() -> None:
    """By itself Spark would fetch them once, however often the cache is renewed."""
    assert kerberos()["spark.kerberos.renewal.credentials"] == "ccache"


def test_what_somebody_sets_wins() -> None:
    """His login; his way to renew. To the file systems that he names the sideline's is added, once."""
    systems = "spark.kerberos.access.hadoopFileSystems"
    found = kerberos(properties=REALM | KEYTAB, conf={**SPARKS, systems: "hdfs://other"})
    assert found == {**SPARKS, systems: "hdfs://other,hdfs://nameservice1"}
    assert kerberos(conf={"spark.kerberos.renewal.credentials": "keytab", systems: "hdfs://nameservice1"}) == {
        "spark.kerberos.renewal.credentials": "keytab",
        systems: "hdfs://nameservice1",
    }


@pytest.mark.parametrize(
    "asked",
    [{"master": "local[2]"}, {"master": "spark://here:7077"}, {"properties": {}}],
    ids=["one machine", "a master without tokens", "no logins"],
)
def test_elsewhere_nothing_is_made_up(asked: dict[str, Any]) -> None:
    """Neither on the command line nor in the driver."""
    assert kerberos(**asked) == {}
    assert tokens.in_driver(config(**asked), asked.get("master", "yarn"), {}) == {}


@pytest.mark.parametrize("sideline", ["s3a://bucket/sideline", "file:///mnt/sideline", "hdfs:///lowtide/sideline"])
def test_a_sideline_that_has_no_tokens_or_lies_where_spark_itself_does_is_not_named(sideline: str) -> None:
    """An object store's login is another; of its own file system Spark fetches tokens anyway."""
    assert "spark.kerberos.access.hadoopFileSystems" not in kerberos(sideline=sideline)


@pytest.mark.parametrize("name", list(SPARKS))
def test_half_a_login_is_refused(name: str) -> None:
    """In a sentence that names what is there and what is not."""
    with pytest.raises(UsageError) as refused:
        kerberos(conf={name: SPARKS[name]})
    assert f"{name}={SPARKS[name]}" in str(refused.value)
    assert f"no {({*SPARKS} - {name}).pop()}" in str(refused.value)


def test_the_driver_tells_spark_where_hbase_is() -> None:
    """As the configuration has it, and on no command line: a trust store's password may be among it. Not the keytab of
    HBase's client, who would log in with it for the whole JVM; nor what is set already.
    """
    secret = {"hbase.rpc.tls.truststore.password": "changeit"}
    known = config(properties=REALM | KEYTAB | secret)
    assert not [name for name in submit.job_conf(known) if name.startswith("spark.hadoop.")]
    found = tokens.in_driver(known, "yarn", {"spark.hadoop.zookeeper.znode.parent": "/other"})
    assert found == {
        f"spark.hadoop.{name}": value
        for name, value in {
            "hbase.zookeeper.quorum": "zk1,zk2",
            "hbase.zookeeper.property.clientPort": "2181",
            **REALM,
            **secret,
        }.items()
    }


BOTH = "HBASE_AUTH_TOKEN,HDFS_DELEGATION_TOKEN"
HBASES, FILES = "spark.security.credentials.hbase.enabled", "spark.security.credentials.hadoopfs.enabled"


@pytest.mark.parametrize(
    ("held", "master", "conf", "words"),
    [
        ([BOTH, "HDFS_DELEGATION_TOKEN"], "yarn", {}, "given none by HBase. The driver's log"),
        ([""], "yarn", {HBASES: "false"}, f"{HBASES}=false has Spark fetch none. Take that off"),
        ([""], "k8s://https://there", {HBASES: "true"}, "given none by HBase"),
        (["NONE"], "spark://there:7077", {}, "spark://there:7077 is a master that passes none on. Have hbase.client"),
        (["HBASE_AUTH_TOKEN"], "yarn", {FILES: "False"}, f"no token for state.sideline, {SIDELINE}, and"),
    ],
)
def test_executors_that_would_not_be_let_in_are_told_of(
    held: list[str], master: str, conf: dict[str, str], words: str
) -> None:
    """One sentence says which token is not there, why, and what to do."""
    told = str(UsageError(*tokens.lacking(held, config(), master, conf)))
    assert words in told
    assert "\n" not in told


@pytest.mark.parametrize(
    ("held", "properties", "conf"),
    [
        ([BOTH, BOTH], REALM, {}),
        (["Kerberos"], REALM, {}),
        ([""], REALM | KEYTAB, {}),
        ([""], {}, {HBASES: "false", FILES: "false"}),
    ],
    ids=["tokens", "tickets", "a keytab on every node", "no logins"],
)
def test_who_is_let_in_is_left_alone(held: list[str], properties: dict[str, str], conf: dict[str, str]) -> None:
    """By a token or a ticket, by a keytab that HBase's client logs in with, and where nobody asks."""
    assert tokens.lacking(held, config(properties), "yarn", conf) == ("", "")


class Driver:
    """A driver's login."""

    def __init__(self, known: bool, who: str) -> None:
        self._known, self._who = known, who

    def security(self) -> bool:
        return self._known

    def ticket(self) -> str:
        return self._who


def test_a_driver_without_a_login_is_told_where_it_was_looked_for() -> None:
    """The cache by its name; or the file of Hadoop's that does not say there are logins at all."""
    cache = {"KRB5CCNAME": "/tmp/krb5cc_1000"}
    assert tokens.stranger(Driver(True, "lowtide@EXAMPLE.ORG"), cache) is None
    assert "/tmp/krb5cc_1000" in str(tokens.stranger(Driver(True, ""), cache))
    assert "KRB5CCNAME is not set" in str(tokens.stranger(Driver(True, ""), {}))
    for name in ("/tmp/krb5cc_1000", "FILE:/tmp/krb5cc_1000"):
        assert "files alone" not in str(tokens.stranger(Driver(True, ""), {"KRB5CCNAME": name}))
    assert "core-site.xml" in str(tokens.stranger(Driver(False, ""), cache))


@pytest.mark.parametrize("cache", ["KCM:", "KEYRING:persistent:1000", ""])
def test_a_ticket_that_java_cannot_read_is_told_of(cache: str) -> None:
    """klist shows it, and Java knows no cache but a file; unset, the system may have another kind."""
    told = str(tokens.stranger(Driver(True, ""), {"KRB5CCNAME": cache} if cache else {}))
    assert "Java reads caches that are files alone; kinit -c FILE:/PATH, and set KRB5CCNAME to it" in told


@pytest.mark.parametrize(
    ("said", "asks"),
    [("kerberos", True), ("Kerberos ", True), ("simple", False), ("${nosuch}", False), (None, False)],
)
def test_hdfs_and_yarn_may_ask_for_logins_where_hbase_does_not(
    said: str | None, asks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the core-site.xml says that Spark finds: then the login, its renewal and the sideline's file system are
    arranged; nothing of HBase's is.
    """
    if said:
        text = f"<property><name>hadoop.security.authentication</name><value>{said}</value></property>"
        (tmp_path / "core-site.xml").write_text(f"<configuration>{text}</configuration>")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))
    files = {"spark.kerberos.access.hadoopFileSystems": "hdfs://nameservice1"}
    assert kerberos(properties={}) == ({**files, "spark.kerberos.renewal.credentials": "ccache"} if asks else {})
    assert tokens.needs_login(config({}), "yarn") is asks
    assert not tokens.needs_login(config({}), "local[2]")
    assert tokens.in_driver(config({}), "yarn", {}) == {}


def test_the_core_site_beside_hbases_file_counts_where_no_other_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is there that Spark is led then."""
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    text = "<property><name>hadoop.security.authentication</name><value>kerberos</value></property>"
    (tmp_path / "core-site.xml").write_text(f"<configuration>{text}</configuration>")
    known = config({})
    assert not tokens.needs_login(known, "yarn")
    assert not tokens.needs_login(known, "k8s://https://10.0.0.1")
    there = known.model_copy(update={"hbase": known.hbase.model_copy(update={"conf_dir": str(tmp_path)})})
    assert tokens.needs_login(there, "yarn")
    kubernetes = "k8s://https://10.0.0.1"
    assert tokens.needs_login(there, kubernetes), "the sideline is on HDFS"
    elsewhere = there.model_copy(update={"state": there.state.model_copy(update={"sideline": "s3a://aside/lowtide"})})
    assert (tokens.needs_login(elsewhere, kubernetes), tokens.needs_login(elsewhere, "yarn")) == (False, True)
