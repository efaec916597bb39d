"""A secured store, its gateway of each kind, and who logs in to it."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lowtide.config import Thrift
from lowtide.lab.stack import Stack, free_ports_config, machine, secured

#: Those that ask for a login.
ASKING = ("auth", "auth-int", "auth-conf", "http", "https")


@dataclasses.dataclass(frozen=True)
class Gateway:
    """The store with its gateway of one kind."""

    stack: Stack
    folder: Path

    @property
    def kind(self) -> str:
        return self.stack.config.gateway

    @property
    def is_http(self) -> bool:
        return self.kind in ("http", "https")

    def keytab(self, name: str) -> str:
        return str(secured.keytab(self.stack.config, name))

    def settings(self, name: str = "lowtide", **more: Any) -> Thrift:
        """What a client says in ``hbase.thrift`` that logs in as *name*, by its keytab; *more* over it."""
        transport = {"http": "http", "https": "https"}.get(self.kind, "buffered")
        known: dict[str, Any] = {
            "host": secured.HOST,
            "port": self.stack.config.thrift_port,
            "transport": transport,
            "timeout": "20s",
            "login": "kerberos",
            "principal": name,
            "keytab": self.keytab(name),
        }
        if not self.is_http:
            known["qop"] = self.kind
        if self.kind == "https":
            known["ca_file"] = str(secured.certificate(self.stack.config))
        return Thrift(**{**known, **more})

    @contextmanager
    def ticket(self, seconds: int, name: str = "lowtide") -> Iterator[Path]:
        """A cache with a ticket that lives so long, as ``kinit`` makes it."""
        import gssapi

        cache = self.folder / f"ticket-{name}-{seconds}"
        cache.unlink(missing_ok=True)
        with short_lived(self.stack, self.folder, seconds):
            who = gssapi.Name(name, gssapi.NameType.kerberos_principal)
            store = {"client_keytab": f"FILE:{self.keytab(name)}", "ccache": f"FILE:{cache}"}
            found = gssapi.Credentials(name=who, usage="initiate", store=store)
            assert found.lifetime <= seconds
        yield cache


@contextmanager
def short_lived(stack: Stack, folder: Path, seconds: int) -> Iterator[None]:
    """Tickets that this process fetches meanwhile live so long."""
    usual = os.environ["KRB5_CONFIG"]
    short = folder / f"krb5-{seconds}.conf"
    text = Path(usual).read_text("utf-8").replace("[libdefaults]", f"[libdefaults]\n  ticket_lifetime = {seconds}s")
    short.write_text(text, "utf-8")
    os.environ["KRB5_CONFIG"] = str(short)
    try:
        yield
    finally:
        os.environ["KRB5_CONFIG"] = usual


@contextmanager
def booted(folder: Path, **extra: str) -> Iterator[Stack]:
    """A secured store that runs for the block, whose gateway asks for a login by SASL and encrypts; this process finds
    its key distribution centre meanwhile. *extra*: what HBase's servers are told besides.
    """
    config = free_ports_config(folder, secured=True, hbase_heap="512m", timestamps="incremental", extra_hbase=extra)
    store = Stack(config)
    before = os.environ.get("KRB5_CONFIG")
    try:
        store.up()
        os.environ["KRB5_CONFIG"] = str(secured.krb5_conf(config))
        yield store
    finally:
        store.down()
        os.environ.pop("KRB5_CONFIG", None)
        if before:
            os.environ["KRB5_CONFIG"] = before


def of_kind(store: Stack, kind: str, folder: Path, **extra: str) -> Gateway:
    """The store with a gateway of *kind*, started anew if it is of another."""
    config = dataclasses.replace(store.config, gateway=kind, extra_hbase=extra)
    there = Stack(config)
    if extra:
        there.kill("thrift")
    there.up()
    return Gateway(there, folder)


def made_certificate(folder: Path) -> Path:
    """A key and a certificate for the gateway's name, which somebody else signed: PEM."""
    store = folder / "other.p12"
    secret = ("-storepass", "changeit", "-storetype", "PKCS12", "-keystore", str(store), "-alias", "other")
    name = ("-dname", f"CN={secured.HOST}", "-ext", f"SAN=DNS:{secured.HOST}")
    subprocess.run(
        [machine.keytool(), "-genkeypair", "-keyalg", "RSA", *name, *secret], check=True, capture_output=True
    )
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, pkcs12

    key, certificate, _ = pkcs12.load_key_and_certificates(store.read_bytes(), b"changeit")
    assert key is not None
    assert certificate is not None
    pem = folder / "other.pem"
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(text + certificate.public_bytes(Encoding.PEM))
    return pem
