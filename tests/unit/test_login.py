"""Gateways that ask for a login, or speak HTTP: what settings can be meant, and what is said where it does not work.

With real gateways and a real Kerberos it is tried in tests/secured.
"""

from __future__ import annotations

import pickle
import socket
import socketserver
import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from lowtide.check import servers
from lowtide.check.hops import HOPS
from lowtide.config import Config, HBase, Thrift, load
from lowtide.errors import GatewayError, UsageError
from lowtide.store import connections, gateway, kerberos, sasl, spnego
from lowtide.store.gateway import connect, is_failure
from lowtide.store.kerberos import HandshakeError

KEYTAB = {"login": "kerberos", "principal": "lowtide@EXAMPLE.ORG", "keytab": "/etc/lowtide.keytab"}
FLAGS = (
    "mutual_authentication",
    "integrity",
    "out_of_sequence_detection",
    "replay_detection",
    "confidentiality",
)


@pytest.mark.parametrize(
    ("thrift", "named"),
    [
        ({"transport": "http", "protocol": "compact"}, "protocol: over HTTP it is always binary"),
        ({"transport": "framed", "login": "kerberos"}, "login: no gateway that is framed asks for a login"),
        ({"ca_file": "/ca.pem", "transport": "http"}, "ca_file: it counts with transport: https alone"),
        ({"ca_file": "ca.pem", "transport": "https"}, "ca_file: the whole path is expected, .* found 'ca.pem'"),
        ({"do_as": "a", "login": "kerberos"}, "do_as: it counts with transport: http or https alone"),
        ({"do_as": "a", "transport": "https"}, "do_as: it counts with login: kerberos alone"),
        ({**KEYTAB, "ticket_cache": "/t"}, "keytab: give it or ticket_cache, not both"),
        ({"login": "kerberos", "keytab": "/k"}, "keytab: give principal beside it"),
        ({"login": "kerberos", "keytab": "k", "principal": "p"}, "keytab: the whole path is expected"),
        ({"login": "kerberos", "ticket_cache": "t"}, "ticket_cache: the whole path is expected"),
        ({"principal": "lowtide"}, "principal: it counts with login: kerberos alone"),
        ({"ticket_cache": "/t"}, "ticket_cache: it counts with login: kerberos alone"),
        ({"service": "thrift/h"}, "service: it counts with login: kerberos alone"),
        ({"login": "kerberos", "transport": "http", "do_as": "a\r\nX: y"}, "do_as: a name without spaces is expected"),
        ({"login": "gssapi"}, "login: "),
        ({"login": "kerberos", "qop": "privacy"}, "qop: .*'auth', 'auth-int' or 'auth-conf' .found 'privacy'"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(thrift: dict[str, Any], named: str, tmp_path: Any) -> None:
    """Each in a line that names the key and what to do: none is silently left without effect."""
    file = tmp_path / "given.yaml"
    file.write_text(repr({"hbase": {"thrift": thrift}}))
    with pytest.raises(UsageError, match=rf"hbase\.thrift\.{named}"):
        load(file)


@pytest.mark.parametrize(
    "thrift",
    [
        {"login": "kerberos"},
        KEYTAB,
        {**KEYTAB, "transport": "https", "ca_file": "/ca.pem", "do_as": "orders", "service": "HTTP/_HOST"},
        {"login": "kerberos", "ticket_cache": "KCM:", "protocol": "compact"},
        {"transport": "http"},
    ],
)
def test_settings_of_every_kind_of_gateway(thrift: dict[str, Any]) -> None:
    """They are taken as they are given, also where a connection of Airflow's gives each of them anew."""
    found = Thrift(**thrift)
    assert {key: getattr(found, key) for key in thrift} == thrift
    assert Thrift.model_validate(found.model_dump()) == found


def test_the_layer_is_the_strictest_unless_said_otherwise() -> None:
    """Who sets a login and no more gets encryption."""
    assert Thrift(login="kerberos").qop == "auth-conf"


@pytest.mark.parametrize(
    ("service", "name"),
    [
        ("", ("thrift@gw", False)),
        ("hbase/_HOST", ("hbase@gw", False)),
        ("thrift/other", ("thrift@other", False)),
        ("thrift/_HOST@EXAMPLE.ORG", ("thrift/gw@EXAMPLE.ORG", True)),
    ],
)
def test_the_gateways_principal(service: str, name: tuple[str, bool]) -> None:
    """On the gateway's host unless the settings say more; with a realm it is taken whole."""
    assert kerberos.service_name(Thrift(host="gw", login="kerberos", service=service), "thrift") == name


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("Ticket expired", "renew the ticket"),
        ("Server thrift/gw@EXAMPLE.ORG not found in Kerberos database", "hbase.thrift.service"),
        ("Client 'lowtide@EXAMPLE.ORG' not found in Kerberos database", "hbase.thrift.principal"),
        ("Client not found in Kerberos database", "hbase.thrift.principal"),
        ("Client's entry in database has expired", "let the principal live on"),
        ("Password has expired", "a new key"),
        ("The ticket isn't for us", "hbase.thrift.service"),
        ("Cannot contact any KDC for realm 'EXAMPLE.ORG'", "KRB5_CONFIG"),
        ("Clock skew too great", "clocks"),
        ("No Kerberos credentials available (default cache: FILE:/tmp/krb5cc_0)", "kinit"),
        ("the file has no key of lowtide that can be used", "hbase.thrift.principal"),
        ("Decrypt integrity check failed", "keytab made again"),
        ("something new", "docs/clusters.md"),
    ],
)
def test_what_kerberos_says_gets_a_remedy(said: str, remedy: str) -> None:
    """Kerberos's own words stand in the sentence, with who wanted to log in, and where."""
    error = kerberos.judged(Thrift(**KEYTAB), said)
    assert said in error.fact
    assert "as lowtide@EXAMPLE.ORG, by the keytab /etc/lowtide.keytab" in error.fact
    assert remedy in error.remedy


def test_fresh_tickets_are_fetched_once_a_minute_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the gateway refuses those too, a process that goes on asking would fill its memory with caches."""
    now = [1000.0]
    monkeypatch.setattr(kerberos, "_FORGOTTEN", {})
    monkeypatch.setattr(kerberos.time, "monotonic", lambda: now[0])
    thrift, other = Thrift(**KEYTAB), Thrift(**{**KEYTAB, "principal": "other@EXAMPLE.ORG"})
    before = kerberos._store(thrift)
    assert kerberos.forget(thrift)
    fresh = kerberos._store(thrift)
    assert fresh != before
    assert not kerberos.forget(thrift), "they are fresh"
    assert kerberos._store(thrift) == fresh
    assert kerberos.forget(other), "another's are not"
    now[0] += 61
    assert kerberos.forget(thrift)
    assert not kerberos.forget(Thrift(login="kerberos")), "a cache of others is theirs to renew"


def test_a_refusal_is_a_failure_of_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who goes on after a lost connection goes on after it; it travels between processes, and is not tried again."""
    error = HandshakeError("no", "do this")
    assert is_failure(error)
    assert isinstance(error, gateway.failures())
    again = pickle.loads(pickle.dumps(error))
    assert (again.fact, again.remedy, str(again)) == ("no", "do this", "no; do this")
    asked: list[int] = []

    def refuse(thrift: Thrift) -> None:
        asked.append(thrift.port)
        raise error

    monkeypatch.setattr(connections, "connection", refuse)
    with pytest.raises(GatewayError) as refused, connect(Config().hbase.thrift):
        pass
    assert (refused.value.fact, refused.value.remedy) == ("no", "do this")
    assert len(asked) == 1, "a refused login is not sent again: accounts are locked for that"


def test_without_gssapi_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what it needs of the machine."""
    monkeypatch.setitem(sys.modules, "gssapi", None)
    said = r"gssapi cannot be imported.*lowtide\[kerberos\].*libkrb5-dev"
    with (
        _serving([b""]) as (port, _),
        pytest.raises(GatewayError, match=said),
        connect(Thrift(login="kerberos", transport="http", port=port), attempts=1),
    ):
        pass


def test_a_keytab_that_is_not_there_is_named() -> None:
    """Before Kerberos is asked, whose words for it are about something else."""
    with pytest.raises(HandshakeError, match=r"hbase\.thrift\.keytab is /etc/lowtide\.keytab, which is not there"):
        kerberos.context(Thrift(**KEYTAB), "thrift")


@pytest.mark.parametrize(
    ("qop", "offered", "said"),
    [
        ("auth-conf", b"\x01\0\0\0", "offers auth, not auth-conf"),
        ("auth-conf", b"\x03\0\0\0", "offers auth or auth-int, not auth-conf"),
        ("auth", b"\x04\0\0\0", "offers auth-conf, not auth"),
        ("auth", b"\0\0\0\0", "offers no layer, not auth"),
        ("auth", b"", "offers no layer"),
    ],
)
def test_no_other_layer_than_the_settings_is_taken(qop: Any, offered: bytes, said: str) -> None:
    """A gateway that offers less protection, or none, or more, is refused."""
    with pytest.raises(HandshakeError, match=said):
        sasl.check_layer(Thrift(login="kerberos", qop=qop), offered)


def test_the_layer_of_the_settings_is_taken() -> None:
    """Also among others."""
    for offered in (b"\x04\0\0\0", b"\x07\0\xff\xff"):
        sasl.check_layer(Thrift(login="kerberos", qop="auth-conf"), offered)


def test_a_login_that_the_gateway_refuses() -> None:
    """By SASL it is known by thriftpy2's text; other errors of thriftpy2's are told as they are."""
    refused = connections.judged_login(
        Thrift(), "TTransportException(message=\"Bad status: 3 (b'GSS initiate failed')\")"
    )
    assert refused is not None
    assert "does not take the login (GSS initiate failed)" in refused.fact
    assert "hbase.thrift.service" in refused.remedy
    assert connections.judged_login(Thrift(), "TSocket read 0 bytes") is None


@pytest.mark.parametrize(
    ("thrift", "status", "kind", "said"),
    [
        ({}, 401, HandshakeError, "asks for a login .HTTP 401.; set hbase.thrift.login to kerberos"),
        ({"login": "kerberos"}, 401, HandshakeError, "does not take the login"),
        ({"login": "kerberos", "do_as": "orders"}, 500, HandshakeError, "does not let us act as orders"),
        ({"login": "kerberos", "do_as": "orders"}, 503, ConnectionError, "answered with HTTP 503"),
        ({}, 404, ConnectionError, "answered with HTTP 404 .<b>gone</b>."),
    ],
)
def test_an_answer_of_http_that_is_none_of_thrifts(thrift: Any, status: int, kind: type, said: str) -> None:
    """Its status and first line are told; what is about who asks is an error of its own."""
    with pytest.raises(kind, match=said):
        spnego.check_status(Thrift(transport="http", **thrift), status, b"<b>gone</b>\nmore")


def test_what_a_gateway_answers_moves_no_terminal() -> None:
    """It is told as plain text, of whoever answers there."""
    with pytest.raises(ConnectionError, match=r"HTTP 502 \(\\x1b\[2Jgone\)"):
        spnego.check_status(Thrift(transport="http"), 502, b"\x1b[2Jgone\nmore")


def test_a_certificate_that_is_not_trusted() -> None:
    """Each reason has its remedy: another authority, another name, past its time, no TLS at all."""

    def told(code: int, message: str) -> HandshakeError:
        error = ssl.SSLCertVerificationError(1, message)
        error.verify_code, error.verify_message = code, message
        return spnego.judged_tls(Thrift(transport="https"), error)

    assert "hbase.thrift.ca_file" in told(18, "self-signed certificate").remedy
    assert "somebody stands between" in told(20, "unable to get local issuer certificate").remedy
    assert "hbase.thrift.host" in told(62, "Hostname mismatch").remedy
    assert "a new one" in told(10, "certificate has expired").remedy
    assert "transport to http" in spnego.judged_tls(Thrift(transport="https"), ssl.SSLError(1, "?")).remedy


@contextmanager
def _serving(answers: list[bytes]) -> Iterator[tuple[int, list[bytes]]]:
    """A port that gives each request the next of *answers*, closing the connection after it; and what was sent."""
    sent: list[bytes] = []

    class One(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            sent.append(self.request.recv(65536))
            if answers:
                self.request.sendall(answers.pop(0))

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), One) as server:
        server.daemon_threads = True  # a connection that is left open fails no test by holding it up
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server.server_address[1], sent
        finally:
            server.shutdown()


def _answer(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


def _transport(port: int, **settings: Any) -> spnego.HttpTransport:
    made = spnego.HttpTransport(Thrift(transport="http", port=port, timeout="2s", **settings))
    made.open()
    return made


@pytest.fixture
def gssapi(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not the real one, which a machine may lack: what is decided here is ours."""
    exceptions = SimpleNamespace(GSSError=type("GSSError", (Exception,), {}))
    monkeypatch.setitem(sys.modules, "gssapi", SimpleNamespace(exceptions=exceptions))


def test_over_http_the_gateway_shows_who_it_is(gssapi: None) -> None:
    """One that says nothing of itself, or something else than a token, is not believed: its answer is not read."""
    transport = spnego.HttpTransport(Thrift(transport="http", login="kerberos"))
    for challenge in ("", "Negotiate", "Negotiate ?!", "Basic"):
        with pytest.raises(HandshakeError, match="does not show that it is the gateway"):
            transport._check_shown(SimpleNamespace(complete=False, step=lambda _: None), challenge)
    transport._check_shown(SimpleNamespace(complete=True, step=lambda _: None), "Negotiate YWJj")


def test_an_answer_in_the_clear_is_refused_where_encryption_is_agreed(
    gssapi: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message that is only protected against change does not do for one that is to be secret."""
    message = SimpleNamespace(message=b"answer", encrypted=False)
    monkeypatch.setattr(kerberos, "context", lambda *_, **__: SimpleNamespace(unwrap=lambda _: message))
    assert sasl.Login(Thrift(login="kerberos", qop="auth-int")).decode(b"\0\0\0\6......") == (True, b"answer")
    with pytest.raises(HandshakeError, match="answered in the clear, where auth-conf is agreed"):
        sasl.Login(Thrift(login="kerberos")).decode(b"\0\0\0\6......")


def test_who_ends_a_login_before_he_shows_who_he_is_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """thriftpy2 takes the word of whoever answers for the end of the login."""
    monkeypatch.setattr(kerberos, "context", lambda *_, **__: SimpleNamespace())
    for qop in ("auth", "auth-int", "auth-conf"):
        with pytest.raises(HandshakeError, match="does not show that it is the gateway"):
            sasl.Login(Thrift(login="kerberos", qop=qop)).encode(b"question")


def test_a_login_asks_for_all_that_a_layer_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both show who they are, and nobody between can change, leave out or repeat what they say (RFC 4752, 3.1)."""
    asked = set[str]()
    bits = {name: 1 << n for n, name in enumerate(FLAGS)}

    def made(*, flags: int, **_: object) -> None:
        asked.update(name for name, bit in bits.items() if flags & bit)

    package = SimpleNamespace(
        RequirementFlag=SimpleNamespace(**bits),
        NameType=SimpleNamespace(kerberos_principal=1, hostbased_service=2),
        MechType=SimpleNamespace(kerberos=1),
        Name=lambda *_: None,
        Credentials=lambda **_: None,
        SecurityContext=made,
        exceptions=SimpleNamespace(GSSError=OSError),
    )
    monkeypatch.setattr(kerberos, "_gssapi", lambda: package)
    kerberos.context(Thrift(login="kerberos"), "thrift", private=True)
    assert asked == {*FLAGS}
    asked.clear()
    kerberos.context(Thrift(login="kerberos"), "thrift")
    assert {*FLAGS} - asked == {"confidentiality"}


def test_what_was_written_goes_as_one_request() -> None:
    """With its length; the answer is read in pieces, and one that is too short is an error, never waited for."""
    with _serving([_answer(b"answer")]) as (port, sent):
        transport = _transport(port)
        transport.write(b"ques")
        transport.write(b"tion")
        transport.flush()
        assert (transport.read(2), transport.read(9)) == (b"an", b"swer")
        assert transport.read(1) == b"", "as at the end of a connection"
        transport.close()
        assert not transport.is_open()
    assert len(sent) == 1
    assert sent[0].startswith(b"POST / HTTP/1.1\r\n")
    assert b"Content-Length: 8" in sent[0]


def test_no_request_is_sent_twice() -> None:
    """What it asks for may have been done before the connection was lost: a second checked put would tell otherwise."""
    with _serving([b""]) as (port, sent):
        transport = _transport(port)
        transport.write(b"q")
        with pytest.raises(ConnectionError):
            transport.flush()
    assert len(sent) == 1


def test_a_connection_that_was_closed_meanwhile_is_opened_anew() -> None:
    """Before anything is sent over it, so that the request is the first."""
    with _serving([_answer(b"1"), _answer(b"2")]) as (port, sent):
        transport = _transport(port)
        for expected in (b"1", b"2"):
            transport.write(b"q")
            transport.flush()
            assert transport.read(1) == expected
            assert transport._connection is not None
            transport._connection.sock.settimeout(2)
            assert transport._connection.sock.recv(1, socket.MSG_PEEK) == b"", "the gateway has closed it"
        transport.close()
    assert len(sent) == 2


def test_what_does_not_speak_http_is_told() -> None:
    """And a gateway that says nothing in time is timed out, and its connection given up: a late answer is nobody's."""
    with _serving([b"SSH-2.0-x\r\n"]) as (port, _):
        transport = _transport(port)
        with pytest.raises(ConnectionError, match="does not speak HTTP"):
            transport.flush()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        transport = spnego.HttpTransport(Thrift(transport="http", port=silent.getsockname()[1], timeout="100ms"))
        with pytest.raises(TimeoutError):
            transport.flush()
        assert not transport.is_open()


def test_a_file_without_certificates_is_named() -> None:
    """Where it is missing, and where it holds something else."""
    for file in ("/nowhere/ca.pem", __file__):
        with pytest.raises(HandshakeError, match=rf"hbase\.thrift\.ca_file is {file}"):
            spnego.trust(Thrift(transport="https", ca_file=file))


def test_an_open_gateway_is_named_where_hbase_asks_for_logins() -> None:
    """On a network it lets anybody be its user, which is wrong; on loopback this machine's users, which is said."""
    with pytest.raises(GatewayError, match=r"gw:9090 lets anybody be its user.*hbase\.thrift\.login"):
        servers.judge_open_gateway(Thrift(host="gw"), hbase_asks=True, loopback=False)
    assert "every user of this machine" in servers.judge_open_gateway(Thrift(), hbase_asks=True, loopback=True)
    assert "as HBase does not" in servers.judge_open_gateway(Thrift(host="gw"), hbase_asks=False, loopback=False)
    secured = HBase(properties={"hbase.security.authentication": "kerberos"})
    assert "every user of this machine" in servers.gateway_login(secured)
    assert "as HBase does not" in servers.gateway_login(HBase())


def test_a_gateway_over_http_that_lets_anybody_be_anybody_is_named() -> None:
    """One that answers without a login, and one that takes any name to act as."""
    thrift = Thrift(transport="https", **KEYTAB)
    with pytest.raises(GatewayError, match="lets anybody be its user: it answers without a login"):
        servers.judge_http_gateway(thrift, without_login=True, as_anybody=False)
    with pytest.raises(GatewayError, match=r"be anybody: it took doAs.*hadoop\.proxyuser"):
        servers.judge_http_gateway(thrift, without_login=False, as_anybody=True)
    fine = servers.judge_http_gateway(thrift, without_login=False, as_anybody=False)
    assert "readable" not in fine
    clear = thrift.model_copy(update={"transport": "http"})
    assert "readable" in servers.judge_http_gateway(clear, without_login=False, as_anybody=False)


def test_the_login_is_looked_at_where_the_gateway_is_well() -> None:
    """Right behind it."""
    names = [hop.name for hop in HOPS]
    assert names.index("gateway-login") == names.index("gateway") + 1


def test_a_gateway_that_asks_is_known_for_one() -> None:
    """By what it says to a login that is none; the remedy names the settings."""
    with _serving([b"", b"\x04\0\0\0\x01?"]) as (port, _):
        said = str(servers.judge_gateway(Thrift(port=port), "?", servers._kinds(Thrift(port=port))))
    assert "speaks SASL (hbase.thrift.security.qop)" in said
    assert "set hbase.thrift.login to kerberos" in said
