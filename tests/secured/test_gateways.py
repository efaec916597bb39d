"""Every kind of gateway that asks for a login: let in, refused in a sentence, and nothing to read for who listens."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import happybase
import pytest
from Hbase_thrift import IOError as HBaseError
from recorder import Recorder
from secured_kit import Gateway, made_certificate, of_kind, short_lived

from lowtide.check import servers
from lowtide.config import HBase
from lowtide.errors import GatewayError
from lowtide.lab.stack import Stack
from lowtide.store.gateway import check_and_put, connect, pool

pytestmark = pytest.mark.needs("kerberos")

#: A value that nobody else has, to be looked for in what was heard.
SECRET = b"account-4711-" + secrets.token_hex(8).encode()


@pytest.fixture
def table(gateway: Gateway) -> Iterator[str]:
    """A table with a family, made as lowtide."""
    name = f"t_{secrets.token_hex(4)}"
    with connect(gateway.settings()) as connection:
        connection.create_table(name, {"f": {}})
        yield name
        connection.delete_table(name, disable=True)


def refused(settings: Any) -> str:
    """The sentence with which a connection is refused."""
    with pytest.raises(GatewayError) as error, connect(settings, attempts=1):
        pass
    return str(error.value)


def test_a_keytab_lets_in(gateway: Gateway, table: str) -> None:
    """Small and large values go and come back, a checked put is checked, and a new connection logs in again."""
    large = secrets.token_bytes(1 << 20)
    for _ in range(2):
        with connect(gateway.settings()) as connection:
            connection.table(table).put(b"r", {b"f:large": large, b"f:small": SECRET})
            assert connection.table(table).row(b"r")[b"f:large"] == large
            assert [key for key, _ in connection.table(table).scan()] == [b"r"]
    with connect(gateway.settings()) as connection:
        assert check_and_put(connection, table, b"r", (b"f:small", SECRET), (b"f:small", b"2"))
        assert not check_and_put(connection, table, b"r", (b"f:small", SECRET), (b"f:small", b"3"))
        assert isinstance(connection, happybase.Connection), "for who has programs of his own"


def test_a_ticket_cache_lets_in(gateway: Gateway) -> None:
    """As whom it was made for; a principal of the settings must be that one."""
    with gateway.ticket(3600) as cache:
        settings = gateway.settings(principal="", keytab="", ticket_cache=str(cache))
        with connect(settings) as connection:
            assert b"OMID_COMMIT_TABLE" in connection.tables()
        assert "kinit" in refused(gateway.settings("alice", keytab="", ticket_cache=str(cache)))


def test_several_connections_at_once(gateway: Gateway, table: str) -> None:
    """A pool's connections log in each for itself, from several threads."""
    failed: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for n in range(5):
                with connections.connection() as connection:
                    connection.table(table).put(b"%d-%d" % (number, n), {b"f:a": b"v"})
        except BaseException as error:
            failed.append(error)

    with pool(gateway.settings(), 3) as connections:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with connections.connection() as connection:
            assert failed == []
            assert len(list(connection.table(table).scan())) == 20


def test_who_has_no_rights_is_refused_by_hbase(gateway: Gateway, table: str) -> None:
    """The gateway acts as who logged in to it: alice sees no table, and may not read or write."""
    with connect(gateway.settings("alice")) as connection:
        assert connection.tables() == []
        with pytest.raises(HBaseError, match="AccessDenied"):
            connection.table(table).put(b"r", {b"f:a": b"v"})
        with pytest.raises(HBaseError, match="AccessDenied"):
            connection.table(table).row(b"r")


def test_hbase_does_not_let_the_gateway_act_for_whom_it_may_not(gateway: Gateway) -> None:
    """It lets the oracle's user in, whom it may not act for. HBase refuses without a reason, and nothing comes."""
    said = refused(gateway.settings("omid", timeout="6s"))
    assert "timed out" in said
    log = (gateway.stack.logs / "thrift.log").read_text("utf-8")
    assert gateway.is_http or "Effective user: omid" in log, "the login itself went well"


def test_no_ticket(gateway: Gateway, tmp_path: Path) -> None:
    """What Kerberos says, and what to do."""
    said = refused(gateway.settings(principal="", keytab="", ticket_cache=str(tmp_path / "none")))
    assert f"by the ticket cache {tmp_path}/none: No credentials cache found" in said
    assert "run kinit" in said


def test_another_ones_key(gateway: Gateway) -> None:
    """A keytab that has no key of the principal is named with it."""
    said = refused(gateway.settings("lowtide", keytab=gateway.keytab("alice")))
    assert "has no key of lowtide" in said


def test_a_ticket_that_expires_while_something_waits(gateway: Gateway) -> None:
    """A look that worked is refused in a sentence when its ticket is over, and works again when it was renewed."""
    with gateway.ticket(8) as cache:
        settings = gateway.settings(principal="", keytab="", ticket_cache=str(cache))
        with connect(settings, attempts=1):
            pass
        time.sleep(10)
        said = refused(settings)
        assert "Ticket expired" in said
        assert "renew the ticket" in said
    with gateway.ticket(3600) as renewed:
        renewed.rename(cache)
    with connect(settings, attempts=1) as connection:
        assert connection.tables()


def test_a_keytab_outlives_its_tickets(gateway: Gateway) -> None:
    """What was fetched with it is fetched anew: between two looks, and over HTTP between two calls."""
    with short_lived(gateway.stack, gateway.folder, 8):
        # A principal as nobody else here writes it, or the cache in memory would have a longer ticket already.
        settings = gateway.settings(principal="lowtide@LOWTIDE.TEST")
        with connect(settings, attempts=1) as connection:
            time.sleep(10)
            assert connection.tables()
        with connect(settings, attempts=1) as connection:
            assert connection.tables()


def test_another_service(gateway: Gateway) -> None:
    """A ticket for another service is of no use to the gateway, and it says so; one that the realm has not is named."""
    other = "thrift" if gateway.is_http else "HTTP"
    assert "hbase.thrift.service" in refused(gateway.settings(service=f"{other}/_HOST"))
    assert "Server nobody/localhost" in refused(gateway.settings(service="nobody/_HOST"))
    assert "not found in Kerberos database; set hbase.thrift.service" in refused(gateway.settings(host="127.0.0.1"))


def test_another_layer(gateway: Gateway) -> None:
    """Only the layer of the settings is taken, whichever is stricter."""
    if gateway.is_http:
        pytest.skip("HTTP has no layers of SASL")
    for qop in {"auth", "auth-int", "auth-conf"} - {gateway.kind}:
        said = refused(gateway.settings(qop=qop))
        assert f"offers {gateway.kind}, not {qop}" in said
        assert f"hbase.thrift.qop to {gateway.kind}" in said


def test_one_that_says_nothing_is_timed_out(gateway: Gateway) -> None:
    """Within the time of the settings."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        said = refused(gateway.settings(port=silent.getsockname()[1], timeout="2s"))
    assert "timed out" in said
    assert time.monotonic() - began < 10


def test_who_listens_reads_no_value(gateway: Gateway, table: str) -> None:
    """With auth-conf and over HTTPS; with auth, auth-int and over HTTP it is there to read: so this can fail."""
    recorder = Recorder(gateway.stack.config.thrift_port)
    try:
        with connect(gateway.settings(port=recorder.port)) as connection:
            connection.table(table).put(b"r", {b"f:a": SECRET})
            assert connection.table(table).row(b"r")[b"f:a"] == SECRET
        assert len(recorder.heard) > 1000
        assert (SECRET in recorder.heard) == (gateway.kind not in ("auth-conf", "https"))
    finally:
        recorder.close()


def test_a_certificate_that_nobody_trusts(gateway: Gateway) -> None:
    """The system's authorities have not signed it: refused, with the setting that names another."""
    if gateway.kind != "https":
        pytest.skip("no certificate there")
    said = refused(gateway.settings(ca_file=""))
    assert "shows a certificate that is not to be trusted (self-signed certificate)" in said
    assert "hbase.thrift.ca_file" in said


def test_a_man_in_the_middle_is_refused(gateway: Gateway, tmp_path: Path) -> None:
    """Another certificate for the gateway's own name: nothing is told to who shows it. Who is trusted hears it all."""
    if gateway.kind != "https":
        pytest.skip("no certificate there")
    certificate = made_certificate(tmp_path)
    middle = Recorder(gateway.stack.config.thrift_port, certificate)
    try:
        said = refused(gateway.settings(port=middle.port))
        assert "not to be trusted" in said
        assert "somebody stands between" in said
        assert middle.heard == b""
        with connect(gateway.settings(port=middle.port, ca_file=str(certificate))) as connection:
            connection.tables()
        assert b"Negotiate" in middle.heard
    finally:
        middle.close()


def test_acting_as_somebody_else(gateway: Gateway) -> None:
    """Over HTTP lowtide may act as alice, who has no rights; alice may act as nobody, which is said with the remedy."""
    if not gateway.is_http:
        pytest.skip("only over HTTP")
    with connect(gateway.settings(do_as="alice")) as connection:
        assert connection.tables() == []
    said = refused(gateway.settings("alice", do_as="lowtide"))
    assert "does not let us act as lowtide (HTTP 500)" in said
    assert "hadoop.proxyuser" in said


def test_the_check_finds_it_well(gateway: Gateway) -> None:
    """The gateway answers, and asks who speaks to it."""
    settings = gateway.settings()
    assert "answers" in servers.gateway(settings)
    said = servers.gateway_login(HBase(thrift=settings))
    assert "asks" in said
    assert ("readable on the network" in said) == (gateway.kind == "http")


def test_a_connection_of_airflow_logs_in(gateway: Gateway, tmp_path: Path) -> None:
    """The button *Test*, in a process of Airflow's: it logs in by the connection's fields, or says why it cannot."""
    fields = gateway.settings().model_dump(exclude_defaults=True, exclude={"host", "port"})
    fields["timeout"] = "20s"
    look = "from lowtide_airflow.hook import HBaseHook; print(*HBaseHook('secured').test_connection(), sep=': ')"
    for extra, said in ((fields, "True: HBase has "), (fields | {"principal": "nobody"}, "False: no login to the ")):
        about = {"conn_type": "hbase", "host": "localhost", "port": gateway.settings().port, "extra": extra}
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW_", "LOWTIDE_"))},
            "AIRFLOW_HOME": str(tmp_path),
            "AIRFLOW_CONN_SECURED": json.dumps(about),
        }
        done = subprocess.run(
            [sys.executable, "-c", look], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert said in done.stdout, done.stdout + done.stderr


def test_the_check_names_what_it_is_instead(gateway: Gateway) -> None:
    """Asked without a login, and as another kind, by settings that were right for another gateway."""
    plain = {"login": "none", "principal": "", "keytab": "", "qop": "auth-conf", "ca_file": "", "timeout": "5s"}
    with pytest.raises(GatewayError) as error:
        servers.gateway(gateway.settings(**plain, transport="buffered"))
    expected = {"http": "transport to http", "https": "transport to https"}.get(gateway.kind, "login to kerberos")
    assert f"set hbase.thrift.{expected}" in str(error.value)


@pytest.mark.parametrize("kind", ["http"])
def test_the_check_names_a_gateway_that_lets_anybody_be_anybody(store: Stack, tmp_path: Path, kind: str) -> None:
    """One whose proxy users are everybody's: it took a name that nobody has heard of."""
    wide = of_kind(store, kind, tmp_path, **{"hadoop.proxyuser.lowtide.users": "*"})
    try:
        with pytest.raises(GatewayError, match=r"be anybody: it took doAs: lowtide-check-nobody.*hadoop\.proxyuser"):
            servers.gateway_login(HBase(thrift=wide.settings()))
    finally:
        wide.stack.kill("thrift")


def test_the_check_names_an_open_gateway(store: Stack, tmp_path: Path) -> None:
    """It acts as lowtide for whoever comes: on loopback that is said, elsewhere it is wrong."""
    there = of_kind(store, "open", tmp_path)
    plain = there.settings(login="none", principal="", keytab="", qop="auth-conf")
    with connect(plain) as connection:
        assert b"OMID_COMMIT_TABLE" in connection.tables()
    secured = HBase(thrift=plain, properties={"hbase.security.authentication": "kerberos"})
    assert "every user of this machine" in servers.gateway_login(secured)
    with pytest.raises(GatewayError) as error:
        servers.gateway(there.settings(qop="auth-conf", timeout="5s"))
    assert "asks for no login" in str(error.value)
    assert "login: none" in str(error.value)
