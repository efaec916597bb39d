"""HBase's own protocol over TLS, whose servers take nothing else."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
#: What a certificate says of whose it is: each side compares it with the other's host.
OF_THIS_HOST = f"SAN=DNS:localhost,DNS:{socket.gethostname()},IP:127.0.0.1"


def keytool(*arguments: str) -> None:
    """A key store of that password."""
    secret = ("-storepass", PASSWORD, "-storetype", "PKCS12")
    subprocess.run([machine.keytool(), *arguments, *secret], check=True, capture_output=True)


def made_key(folder: Path, name: str, *extensions: str) -> Path:
    """A store with a key of that name's, who signed its certificate himself."""
    store = folder / f"{name}.p12"
    keytool(
        "-genkeypair", "-keyalg", "RSA", "-alias", name, "-dname", f"CN={name}", *extensions, "-keystore", str(store)
    )
    return store


def trust(store: Path, key: Path) -> Path:
    """Put the certificate of that key into *store*."""
    name, certificate = key.stem, key.with_suffix(".pem")
    keytool("-exportcert", "-rfc", "-alias", name, "-file", str(certificate), "-keystore", str(key))
    keytool("-importcert", "-noprompt", "-alias", name, "-file", str(certificate), "-keystore", str(store))
    return store


def of_store(what: str, store: Path) -> dict[str, str]:
    """What a server or a client is told of it."""
    told = {"location": str(store), "type": "PKCS12", "password": PASSWORD}
    return {f"hbase.rpc.tls.{what}.{name}": value for name, value in told.items()}


@contextmanager
def asking_for(mode: str, folder: Path, *clients: Path) -> Iterator[Gateway]:
    """A secured store whose servers take TLS alone, and of clients want a certificate as *mode* says: theirs, or one of
    *clients*. Its own clients have the servers' key.
    """
    key = made_key(folder, "hbase", "-ext", OF_THIS_HOST)
    trusted = trust(folder / "trust.p12", key)
    for client in clients:
        trust(trusted, client)
    told = {
        "hbase.client.netty.tls.enabled": "true",
        "hbase.server.netty.tls.enabled": "true",
        "hbase.server.netty.tls.supportplaintext": "false",
        "hbase.server.netty.tls.client.auth.mode": mode,
    }
    with booted(folder / "store", **told, **of_store("keystore", key), **of_store("truststore", trusted)) as store:
        yield Gateway(store, folder)


def without_key(gateway: Gateway) -> dict[str, str | None]:
    """What clients are not told: of the servers' key."""
    return dict.fromkeys(name for name in gateway.stack.config.extra_hbase if "keystore" in name or "server" in name)


def refused(gateway: Gateway, folder: Path, settings: Mapping[str, str | None], told: str) -> None:
    """A cleanup by these settings is red, by one sentence that has these words in it."""
    site = Site(gateway, Path(mkdtemp(dir=folder)), settings)
    done = site.run("orphan_cleanup", "--execute", config=site.configuration())
    assert (done.code, told in done.problems) == (1, True), done.problems


def test_jobs_speak_tls_to_hbase_and_say_what_is_wrong_with_it(tmp_path: Path) -> None:
    """With a store that trusts the servers' certificate a run reads, puts aside, deletes and restores. One that trusts
    another, one with another password, and a client that speaks none, change nothing and are told in one sentence.
    """
    stranger = trust(tmp_path / "stranger.p12", made_key(tmp_path, "other"))
    with asking_for("NONE", tmp_path) as gateway, OmidClient(gateway.stack) as omid:
        mine = without_key(gateway)
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
                refused(gateway, tmp_path, {**mine, **wrong}, told)
                assert omid.raw(table) == before
            site = Site(gateway, tmp_path, mine)
            config = site.configuration()
            done = site.run("orphan_cleanup", "--execute", "--run-id", "one", config=config)
            assert (done.code, done.totals["deleted"]) == (0, 1), done.problems
            assert not scene.has(table, orphan)
            done = site.run("sideline_restore", "--restore", "one", "--execute", config=config)
            assert (done.code, done.totals["restored"]) == (0, 1), done.problems
            assert scene.has(table, orphan)


def test_jobs_show_the_certificate_that_hbase_asks_for(tmp_path: Path) -> None:
    """Where servers let nobody in without one they trust, a run with a key of its own reads and deletes. Without a key,
    with one that nobody trusts, that bears no name of its host, or that it has no password for, it changes nothing and
    is told so in one sentence.
    """
    mine, stranger = (made_key(tmp_path, name, "-ext", OF_THIS_HOST) for name in ("mine", "stranger"))
    nameless = made_key(tmp_path, "nameless")
    with asking_for("NEED", tmp_path, mine, nameless) as gateway, OmidClient(gateway.stack) as omid:
        bare = without_key(gateway)
        for scene in staged(omid):
            table = scene.table()
            orphan = scene.orphan(table)
            omid.advance_watermark()
            before = omid.raw(table)
            asked = "ask for a certificate of the client"
            for settings, told in (
                (bare, asked),
                ({**bare, **of_store("keystore", stranger)}, asked),
                ({**bare, **of_store("keystore", nameless)}, "bears no name or address of the client's host"),
                ({**bare, **of_store("keystore", mine), "hbase.rpc.tls.keystore.password": "x"}, "another password"),
            ):
                refused(gateway, tmp_path, settings, told)
                assert omid.raw(table) == before
            site = Site(gateway, tmp_path, {**bare, **of_store("keystore", mine)})
            done = site.run("orphan_cleanup", "--execute", config=site.configuration())
            assert (done.code, done.totals["deleted"]) == (0, 1), done.problems
            assert not scene.has(table, orphan)
