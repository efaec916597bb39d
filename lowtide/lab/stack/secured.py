"""What makes an embedded store a secured one: who logs in as whom, and the files and properties that follow.

Every part is logged in by Kerberos: HBase's servers as ``hbase``, the oracle as ``omid``, the gateway as ``thrift`` (or
``HTTP``). For clients there are ``lowtide``, whom HBase grants everything (RWCA, globally), and ``alice``, who has no
rights; nobody else has a key. HBase checks permissions and who acts for whom, and its protocol is encrypted. ZooKeeper
asks for no login.

Keys are made anew with each start of the key distribution centre, so a ticket of before is of no use after it.
"""

from __future__ import annotations

import secrets
import socket
import subprocess
from enum import StrEnum
from pathlib import Path

from lowtide.lab.stack import machine
from lowtide.lab.stack.config import LOOPBACK, StackConfig, StackError

REALM = "LOWTIDE.TEST"
#: Part of the servers' principals: clients of the gateway name it so.
HOST = "localhost"
CLIENTS = ("lowtide", "alice")
#: For the laboratory's cluster (lowtide/lab/cluster), where it takes its keys from here: its servers, and its pages.
HDFS, YARN, WEB = f"hdfs/{HOST}", f"yarn/{HOST}", f"HTTP/{HOST}"
PRINCIPALS = (f"hbase/{HOST}", f"thrift/{HOST}", WEB, "omid", HDFS, YARN, *CLIENTS)

#: Hadoop's own switch: HBase's client and servers log in by this file alone.
CORE = {"hadoop.security.authentication": "kerberos"}

_ACCESS = "org.apache.hadoop.hbase.security.access.AccessController"
_TOKENS = "org.apache.hadoop.hbase.security.token.TokenProvider"
_ALIAS = "gateway"


class Role(StrEnum):
    """Who logs in as somebody else than HBase's servers, and has a folder of configuration for it."""

    CLIENT = "client"
    THRIFT = "thrift"
    TSO = "tso"


def folder(config: StackConfig) -> Path:
    """Of the key distribution centre, keys and certificates."""
    return config.home / "secured"


def krb5_conf(config: StackConfig) -> Path:
    """Where clients find the key distribution centre: ``KRB5_CONFIG`` for programs of MIT's Kerberos, Python's among
    them, ``java.security.krb5.conf`` for Java.
    """
    return folder(config) / "krb5.conf"


def keytab(config: StackConfig, principal: str) -> Path:
    """The key of one of ``PRINCIPALS``; there while the store runs."""
    return folder(config) / "keytabs" / f"{principal.replace('/', '-')}.keytab"


def certificate(config: StackConfig) -> Path:
    """Of the gateway over HTTPS, as PEM: what a client is to trust."""
    return folder(config) / "gateway.pem"


def java_options(config: StackConfig) -> list[str]:
    """What every Java program needs that logs in, as server or client."""
    return [f"-Djava.security.krb5.conf={krb5_conf(config)}"]


def gateway_options(config: StackConfig) -> list[str]:
    """And the gateway besides: it takes the host of its SASL name from the machine's, whatever its principal says."""
    return [f"-Djdk.net.hosts.file={_hosts(config)}"]


def client_properties() -> dict[str, str]:
    """What HBase's clients are told; with :data:`CORE` and a login they come in."""
    server = f"hbase/{HOST}@{REALM}"
    return {
        **CORE,
        "hbase.security.authentication": "kerberos",
        "hbase.master.kerberos.principal": server,
        "hbase.regionserver.kerberos.principal": server,
        "hbase.rpc.protection": "privacy",
    }


def server_properties(config: StackConfig) -> dict[str, str]:
    """What HBase's servers are told besides. Without ``hadoop.security.authorization`` everybody who is logged in could
    act for anybody.
    """
    key = str(keytab(config, f"hbase/{HOST}"))
    return {
        "hbase.security.authorization": "true",
        "hadoop.security.authorization": "true",
        "hbase.master.keytab.file": key,
        "hbase.regionserver.keytab.file": key,
        "hbase.superuser": "hbase",
        "hbase.coprocessor.master.classes": _ACCESS,
        "hbase.coprocessor.regionserver.classes": _ACCESS,
        "hbase.coprocessor.region.classes": f"{_TOKENS},{_ACCESS}",
        # A gateway that asks for a login acts in HBase as who has logged in to it.
        "hadoop.proxyuser.thrift.hosts": LOOPBACK,
        "hadoop.proxyuser.thrift.users": ",".join(CLIENTS),
        # Of our own (Grants.java): whom HBase's master grants everything when it is up.
        "lowtide.store.granted": "lowtide,omid",
    }


def properties_of(config: StackConfig, role: Role) -> dict[str, str]:
    """What a role's own file says besides what the servers' says."""
    match role:
        case Role.CLIENT:
            return _logged_in(config, "lowtide")
        case Role.TSO:
            return _logged_in(config, "omid")
        case Role.THRIFT:
            return _gateway(config)


def write(config: StackConfig) -> None:
    """Write what clients find the key distribution centre by, and the gateway's names and certificate."""
    folder(config).mkdir(parents=True, exist_ok=True)
    krb5_conf(config).write_text(_krb5(config), "utf-8")
    _hosts(config).write_text(f"{LOOPBACK} {HOST} {socket.gethostname()}\n", "utf-8")
    if config.gateway == "https" and not certificate(config).exists():
        _make_certificate(config)


def key_centre_command(config: StackConfig) -> list[str]:
    """The command of the key distribution centre."""
    return machine.java_command(
        [machine.key_centre_classpath()],
        "lowtide.store.KeyCentre",
        *(str(folder(config)), str(config.kdc_port), REALM, *PRINCIPALS),
        heap="64m",
        options=config.java_options,
    )


def _logged_in(config: StackConfig, principal: str) -> dict[str, str]:
    return {
        "hbase.client.keytab.principal": f"{principal}@{REALM}",
        "hbase.client.keytab.file": str(keytab(config, principal)),
    }


def _gateway(config: StackConfig) -> dict[str, str]:
    if config.gateway == "open":
        return _of_gateway(config, "lowtide")
    asking = _of_gateway(config, f"thrift/{HOST}")
    if config.gateway not in ("http", "https"):
        return {**asking, "hbase.thrift.security.qop": config.gateway}
    over_http = {
        **asking,
        "hbase.regionserver.thrift.http": "true",
        "hbase.thrift.spnego.principal": f"{WEB}@{REALM}",
        "hbase.thrift.spnego.keytab.file": str(keytab(config, WEB)),
        # Whom lowtide may speak for.
        "hbase.thrift.support.proxyuser": "true",
        "hadoop.proxyuser.lowtide.hosts": LOOPBACK,
        "hadoop.proxyuser.lowtide.users": "alice",
    }
    if config.gateway == "http":
        return over_http
    return {
        **over_http,
        "hbase.thrift.ssl.enabled": "true",
        "hbase.thrift.ssl.keystore.store": str(_keystore(config)),
        "hbase.thrift.ssl.keystore.type": "pkcs12",
        "hbase.thrift.ssl.keystore.password": _password(config),
    }


def _of_gateway(config: StackConfig, principal: str) -> dict[str, str]:
    return {
        "hbase.thrift.kerberos.principal": f"{principal}@{REALM}",
        "hbase.thrift.keytab.file": str(keytab(config, principal)),
    }


def _krb5(config: StackConfig) -> str:
    return f"""\
[libdefaults]
  default_realm = {REALM}
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
[realms]
  {REALM} = {{
    kdc = {LOOPBACK}:{config.kdc_port}
  }}
"""


def _hosts(config: StackConfig) -> Path:
    return folder(config) / "hosts"


def _keystore(config: StackConfig) -> Path:
    return folder(config) / "gateway.p12"


def _password(config: StackConfig) -> str:
    """Of the gateway's key: made once, for this owner alone."""
    file = folder(config) / "gateway.password"
    if not file.exists():
        folder(config).mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(secrets.token_urlsafe(24), "utf-8")
    return file.read_text("utf-8")


def _make_certificate(config: StackConfig) -> None:
    """The gateway's key, and a certificate that it signed itself. The password stands in no command line."""
    _password(config)
    store = ("-keystore", str(_keystore(config)), "-storetype", "PKCS12", "-alias", _ALIAS)
    secret = ("-storepass:file", str(folder(config) / "gateway.password"))
    names = ("-dname", f"CN={HOST}", "-ext", f"SAN=DNS:{HOST},IP:{LOOPBACK}", "-ext", "BC=ca:true")
    _keystore(config).unlink(missing_ok=True)
    _run_keytool("-genkeypair", "-keyalg", "RSA", "-keysize", "2048", "-validity", "3650", *names, *store, *secret)
    _keystore(config).chmod(0o600)
    _run_keytool("-exportcert", "-rfc", "-file", str(certificate(config)), *store, *secret)


def _run_keytool(*arguments: str) -> None:
    done = subprocess.run([machine.keytool(), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise StackError(f"keytool made no certificate; it said: {(done.stdout + done.stderr).strip()}")
