"""HBase's own protocol over TLS, whose servers take nothing else."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import pytest
from job_site import Site
from scene import staged
from secured_kit import Gateway, booted

from lowtide.lab.stack import machine
from lowtide.lab.workload import OmidClient

pytestmark = pytest.mark.needs("kerberos")

PASSWORD = "not-a-secret-here"


def keytool(*arguments: str) -> None:
    """A key store of that password."""
    secret = ("-storepass", PASSWORD, "-storetype", "PKCS12")
    subprocess.run([machine.keytool(), *arguments, *secret], check=True, capture_output=True)


def made_stores(folder: Path) -> dict[str, str]:
    """A key, and a store that trusts its certificate: what servers are told of both, and clients of the second."""
    key, trust, certificate = folder / "key.p12", folder / "trust.p12", folder / "certificate.pem"
    names = f"SAN=DNS:localhost,DNS:{socket.gethostname()},IP:127.0.0.1"
    keytool(
        "-genkeypair", "-keyalg", "RSA", "-alias", "hbase", "-dname", "CN=hbase", "-ext", names, "-keystore", str(key)
    )
    keytool("-exportcert", "-rfc", "-alias", "hbase", "-file", str(certificate), "-keystore", str(key))
    keytool("-importcert", "-noprompt", "-alias", "hbase", "-file", str(certificate), "-keystore", str(trust))
    told = {"hbase.client.netty.tls.enabled": "true"}
    for what, store in (("keystore", key), ("truststore", trust)):
        of_store = {"location": str(store), "type": "PKCS12", "password": PASSWORD}
        told |= {f"hbase.rpc.tls.{what}.{name}": value for name, value in of_store.items()}
    return told


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    """A secured store whose servers take TLS alone; the certificate is theirs, clients need none."""
    servers = {
        "hbase.server.netty.tls.enabled": "true",
        "hbase.server.netty.tls.supportplaintext": "false",
        "hbase.server.netty.tls.client.auth.mode": "NONE",
    }
    with booted(tmp_path / "store", **servers, **made_stores(tmp_path)) as store:
        yield Gateway(store, tmp_path)


def test_jobs_speak_tls_to_hbase_and_say_what_is_wrong_with_it(gateway: Gateway, tmp_path: Path) -> None:
    """With a store that trusts the servers' certificate a run reads, puts aside, deletes and restores. One that trusts
    another, one with another password, and a client that speaks none, change nothing and are told in one sentence.
    """
    # Nor are clients told of the servers' key.
    trust = dict.fromkeys(name for name in gateway.stack.config.extra_hbase if "keystore" in name or "server" in name)
    stranger = tmp_path / "stranger.p12"
    other, certificate = tmp_path / "other.p12", tmp_path / "other.pem"
    keytool("-genkeypair", "-keyalg", "RSA", "-alias", "other", "-dname", "CN=other", "-keystore", str(other))
    keytool("-exportcert", "-rfc", "-alias", "other", "-file", str(certificate), "-keystore", str(other))
    keytool("-importcert", "-noprompt", "-alias", "other", "-file", str(certificate), "-keystore", str(stranger))
    with OmidClient(gateway.stack) as omid:
        for scene in staged(omid):
            table = scene.table()
            orphan = scene.orphan(table)
            omid.advance_watermark()
            before = omid.raw(table)
            for wrong, told in (
                ({"hbase.client.netty.tls.enabled": "false"}, "where it takes TLS alone"),
                ({"hbase.rpc.tls.truststore.location": str(stranger)}, "show a certificate that this client does not"),
                ({"hbase.rpc.tls.truststore.password": "another"}, "or has another password"),
                ({"hbase.rpc.tls.truststore.location": str(tmp_path / "nowhere.p12")}, "it is not there"),
            ):
                site = Site(gateway, Path(mkdtemp(dir=tmp_path)), {**trust, **wrong})
                done = site.run("orphan_cleanup", "--execute", config=site.configuration())
                assert omid.raw(table) == before
                assert (done.code, told in done.problems) == (1, True), done.problems
            site = Site(gateway, tmp_path, trust)
            config = site.configuration()
            done = site.run("orphan_cleanup", "--execute", "--run-id", "one", config=config)
            assert (done.code, done.totals["deleted"]) == (0, 1), done.problems
            assert not scene.has(table, orphan)
            done = site.run("sideline_restore", "--restore", "one", "--execute", config=config)
            assert (done.code, done.totals["restored"]) == (0, 1), done.problems
            assert scene.has(table, orphan)
