"""The secured form of the embedded store, as far as it can be known without starting one: tests/secured does."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from lowtide.lab.stack import Stack, StackConfig, StackError, files, free_ports_config, load, machine, probes, secured

#: With which a gateway asks for a login.
ASKS = {
    "open": set(),
    "auth": {"hbase.thrift.security.qop"},
    "auth-int": {"hbase.thrift.security.qop"},
    "auth-conf": {"hbase.thrift.security.qop"},
    "http": {"hbase.thrift.spnego.principal"},
    "https": {"hbase.thrift.spnego.principal"},
}


def properties(file: Path) -> dict[str, str]:
    found = ElementTree.parse(file).getroot().iter("property")
    return {each.findtext("name", ""): each.findtext("value", "") for each in found}


@pytest.fixture(autouse=True)
def _without_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take Java a second to make."""
    monkeypatch.setattr(secured, "_make_certificate", lambda _: None)


@pytest.mark.parametrize("kind", ASKS)
def test_each_part_logs_in_as_itself(kind: str, tmp_path: Path) -> None:
    """Servers, gateway, oracle and clients have a configuration each; no client's key lies in the servers'."""
    config = free_ports_config(tmp_path, secured=True, gateway=kind)
    files.write(config)
    conf = config.home / "conf"
    assert properties(conf / "core-site.xml")["hadoop.security.authentication"] == "kerberos"
    servers = properties(conf / "hbase-site.xml")
    assert servers["hadoop.security.authorization"] == "true", "or everybody may act for anybody"
    assert "hbase.client.keytab.file" not in servers
    assert properties(conf / "client/hbase-site.xml")["hbase.client.keytab.principal"] == "lowtide@LOWTIDE.TEST"
    assert properties(conf / "tso/hbase-site.xml")["hbase.client.keytab.principal"] == "omid@LOWTIDE.TEST"
    gateway = properties(conf / "thrift/hbase-site.xml")
    asking = {"hbase.thrift.security.qop", "hbase.thrift.spnego.principal"} & set(gateway)
    assert asking == ASKS[kind]
    assert gateway["hbase.thrift.kerberos.principal"].startswith("lowtide@" if kind == "open" else "thrift/localhost@")
    assert (gateway.get("hbase.thrift.ssl.enabled") == "true") == (kind == "https")
    assert load(config.home) == config


def test_a_store_without_logins_knows_nothing_of_them(tmp_path: Path) -> None:
    """No file, no property, no part, no port more than before."""
    config = StackConfig(tmp_path)
    files.write(config)
    assert not {"core-site.xml", "client", "thrift", "tso"} & {each.name for each in (tmp_path / "conf").iterdir()}
    assert not (tmp_path / "secured").exists()
    assert not [
        name for name in properties(tmp_path / "conf/hbase-site.xml") if "kerberos" in name or "security" in name
    ]
    assert Stack(config).parts == ("hbase", "thrift", "tso")
    assert "kdc" not in config.ports


def test_the_key_distribution_centre_comes_first(tmp_path: Path) -> None:
    """All others hang on it, and it has a port of its own."""
    config = free_ports_config(tmp_path, secured=True)
    assert Stack(config).parts == ("kdc", "hbase", "thrift", "tso")
    assert len(set(config.ports.values())) == 4


def test_the_gateways_password_is_no_argument_and_this_users_alone(tmp_path: Path) -> None:
    """It stands in files that nobody else may open, and stays what it was."""
    config = free_ports_config(tmp_path, secured=True, gateway="https")
    files.write(config)
    conf = config.home / "conf" / "thrift"
    password = properties(conf / "hbase-site.xml")["hbase.thrift.ssl.keystore.password"]
    assert len(password) > 20
    assert conf.stat().st_mode & 0o77 == 0
    assert (secured.folder(config) / "gateway.password").stat().st_mode & 0o77 == 0
    files.write(config)
    assert properties(conf / "hbase-site.xml")["hbase.thrift.ssl.keystore.password"] == password


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"phoenix": True}, "leave --phoenix or --secured out"),
        ({"region_servers": 2}, "leave --region-servers or --secured out"),
        ({"gateway": "sasl"}, "gateway is 'sasl'; use one of open, auth, auth-int, auth-conf, http, https"),
        ({"kdc_port": 9090}, "not all different"),
    ],
)
def test_what_a_secured_store_cannot_be(options: dict[str, object], said: str, tmp_path: Path) -> None:
    """Refused in a sentence, before anything starts."""
    with pytest.raises(StackError, match=said):
        StackConfig(tmp_path, secured=True, **options)  # type: ignore[arg-type]


def test_missing_jars_are_named_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of the store's other parts."""
    monkeypatch.setattr(machine, "embedded_target", lambda: tmp_path / "embedded" / "target")
    with pytest.raises(StackError, match="make secured"):
        machine.key_centre_classpath()


def test_a_store_made_without_logins_stays_so(tmp_path: Path) -> None:
    """Its tables belong to nobody that a secured one knows; and the other way round."""
    plain = free_ports_config(tmp_path)
    files.write(plain)
    (tmp_path / "hbase").mkdir()
    with pytest.raises(StackError, match="was made without logins; leave out --secured"):
        Stack(free_ports_config(tmp_path, secured=True))._check_made()


def test_the_question_to_the_key_distribution_centre_is_whole() -> None:
    """Its lengths are those of its parts, each short enough for one byte: it is written by hand."""

    def walked(data: bytes) -> int:
        """How many values there are, one in another."""
        count = 0
        while data:
            tag, length = data[0], data[1]
            assert length < 128
            inside, data = data[2 : 2 + length], data[2 + length :]
            assert len(inside) == length
            count += 1 + (walked(inside) if tag & 0x20 else 0)
        return count

    assert walked(probes._AS_REQUEST) > 20
