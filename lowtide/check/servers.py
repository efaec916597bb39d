"""What listens: ZooKeeper, the Thrift gateway and of which kind it is, the oracle."""

from __future__ import annotations

import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from itertools import product

from lowtide.check.hops import NotCheckedError
from lowtide.config import REGISTRY, SECURITY, HBase, Omid, Thrift
from lowtide.errors import GatewayError
from lowtide.store import oracle_probe, ports
from lowtide.store.gateway import connect, described, text_of
from lowtide.store.kerberos import HandshakeError

#: How long one server may take to answer.
SECONDS = 5.0
#: Whom nobody has heard of.
NOBODY = "lowtide-check-nobody"
# SASL as Thrift has it: START with the mechanism, OK with a token that is none; the answer is BAD or ERROR.
_SASL_LOGIN = b"\x01\0\0\0\x06GSSAPI\x02\0\0\0\x01?"
_SASL_REFUSED = (b"\x03", b"\x04")
_CORRECT_ORACLE = "correct omid.oracle (Omid's own port is 24758, that of Phoenix's oracle 54758)"


def zookeeper(hbase: HBase) -> str:
    """Whether ZooKeeper takes connections at the addresses that HBase's client gets."""
    if hbase.hides_zookeeper:
        return f"HBase's clients ask none: {REGISTRY} is {hbase.client_properties()[REGISTRY]}"
    found = [ports.parts(address) for address in hbase.zookeeper_addresses]
    return judge_zookeeper({address: _refusal(*address) for address in found})


def judge_zookeeper(refusals: dict[tuple[str, int], str]) -> str:
    """Whether a client gets through; *refusals*: by address why it takes no connection, empty where it does."""
    silent = {f"{host}:{port}": why for (host, port), why in refusals.items() if why}
    count = f"{len(refusals) - len(silent)} of {len(refusals)}"
    if len(silent) == len(refusals):
        what = ", ".join(f"{address} ({why})" for address, why in silent.items()) or "an empty quorum"
        fact = f"no ZooKeeper takes a connection at {what}"
        raise GatewayError(fact, "start it, or correct hbase.zookeeper_quorum and hbase.zookeeper_port")
    if silent:
        return f"{count} take connections; not {', '.join(f'{a} ({why})' for a, why in silent.items())}"
    return f"{', '.join(f'{host}:{port}' for host, port in refusals)}: takes connections"


def _refusal(host: str, port: int) -> str:
    try:
        socket.create_connection((host, port), SECONDS).close()
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""


def gateway(thrift: Thrift, wanted: str = "") -> str:
    """Whether the gateway answers, as the configuration says that it speaks; where not, what it is instead.

    Args:
        thrift: where it is, and how it speaks.
        wanted: who counts on there being one, in a clause; empty: nobody does, as far as is known.

    Raises:
        GatewayError: it does not answer, or is of another kind; the remedy says what to set.
        NotCheckedError: there is none, and nobody counts on one.
    """
    patient = thrift.model_copy(update={"timeout": max(thrift.timeout, timedelta(seconds=SECONDS))})
    answer = _attempt(patient)
    if isinstance(answer, Exception):
        if isinstance(answer, HandshakeError):
            raise GatewayError(answer.fact, answer.remedy) from answer
        if why := _refusal(thrift.host, thrift.port):
            raise judge_absent_gateway(thrift, why, wanted)
        raise judge_gateway(thrift, described(answer), _kinds(thrift)) from answer
    login = "" if thrift.login == "none" else f", as {thrift.do_as or 'logged in'}"
    return f"{_address(thrift)} answers ({thrift.transport}, {thrift.protocol}{login}), {answer} tables"


def judge_absent_gateway(thrift: Thrift, why: str, wanted: str) -> GatewayError | NotCheckedError:
    """What to say of a gateway that is not there; *why*: no connection is taken."""
    users = "jobs need none, sensors, the page and looks from the terminal (lowtide status) do"
    if not wanted:
        return NotCheckedError(f"nothing answers at {_address(thrift)} ({why}); {users}")
    fact = f"the gateway at {_address(thrift)} is not there: {why}; {wanted}"
    return GatewayError(fact, f"start it (hbase thrift start), or correct hbase.thrift; {users}")


def judge_gateway(thrift: Thrift, said: str, kinds: Iterator[tuple[str, str]]) -> GatewayError:
    """What is wrong with a gateway that does not answer.

    Args:
        thrift: how it was asked.
        said: the error.
        kinds: what it turned out to be, each with the remedy; the first one counts.
    """
    found = next(kinds, None)
    if found is None:
        fact = f"something takes connections at {_address(thrift)} and does not answer as a gateway ({said})"
        remedy = (
            "see in its log whether HBase answers it, and whether it asks for a login (hbase.thrift.security.qop): "
            "docs/clusters.md"
        )
        return GatewayError(fact, remedy)
    return GatewayError(f"the gateway at {_address(thrift)} {found[0]}", found[1])


def _kinds(thrift: Thrift) -> Iterator[tuple[str, str]]:
    """What it may be instead. TLS is tried last: a gateway without it takes its greeting for a call of some hundred
    megabytes, and may make room for it.
    """
    said = thrift.transport if thrift.is_http else thrift.login
    if said != "http" and _asked(thrift, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/"):
        yield (
            "speaks HTTP (hbase.regionserver.thrift.http), and was not asked so",
            "set hbase.thrift.transport to http",
        )
    elif said != "kerberos" and _asked(thrift, _SASL_LOGIN)[:1] in _SASL_REFUSED:
        yield (
            "speaks SASL (hbase.thrift.security.qop), and was not asked so",
            "set hbase.thrift.login to kerberos, and hbase.thrift.qop as the gateway has it",
        )
    else:
        yield from _plain_kinds(thrift)
        if said != "https" and _speaks_tls(thrift):
            yield (
                "speaks HTTP over TLS (hbase.thrift.ssl.enabled), and was not asked so",
                "set hbase.thrift.transport to https",
            )


def _plain_kinds(thrift: Thrift) -> Iterator[tuple[str, str]]:
    short = thrift.model_copy(update={"timeout": timedelta(seconds=SECONDS), "login": "none", "do_as": ""})
    for transport, protocol in product(("buffered", "framed"), ("binary", "compact")):
        answer = _attempt(short.model_copy(update={"transport": transport, "protocol": protocol}))
        if not isinstance(answer, Exception):
            fact = f"is {transport} and {protocol}, and was asked as {thrift.transport} and {thrift.protocol}"
            remedy = f"set hbase.thrift: {{transport: {transport}, protocol: {protocol}}}"
            if thrift.login != "none":
                fact += ", with a login; it asks for no login"
                remedy = f"set hbase.thrift: {{transport: {transport}, protocol: {protocol}, login: none}}"
            yield fact, remedy
        elif "method name" in text_of(answer):
            yield (
                "is of version 2: it knows no getTableNames",
                "start version 1 (hbase thrift start, not thrift2), or correct hbase.thrift.port",
            )


def _speaks_tls(thrift: Thrift) -> bool:
    context = ssl.create_default_context()
    # Only whether there is TLS is asked; whom to trust is for those who tell it something.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((thrift.host, thrift.port), SECONDS) as connection:
            connection.settimeout(SECONDS)
            context.wrap_socket(connection).close()
    except OSError:
        return False
    return True


def gateway_login(hbase: HBase) -> str:
    """Whether the gateway asks who it is that speaks to it, and believes only what is shown.

    Raises:
        GatewayError: it takes everybody for somebody with rights: without a login, on a network, where HBase asks for
            one; or by letting whoever logs in act as anybody.
    """
    thrift = hbase.thrift
    if thrift.login == "none":
        asks = hbase.client_properties().get(SECURITY, "simple") == "kerberos"
        return judge_open_gateway(thrift, hbase_asks=asks, loopback=_is_loopback(thrift.host))
    if not thrift.is_http:
        return f"it asks everybody for a login by Kerberos (SASL, {thrift.qop})"
    as_nobody = thrift.model_copy(update={"do_as": NOBODY})
    without = thrift.model_copy(update={"login": "none", "do_as": "", "keytab": "", "ticket_cache": "", "service": ""})
    return judge_http_gateway(
        thrift,
        without_login=not isinstance(_attempt(without), Exception),
        # A gateway refuses a name at once; where it takes one that HBase refuses, no answer comes at all.
        as_anybody=isinstance(_attempt(as_nobody), int | TimeoutError),
    )


def judge_open_gateway(thrift: Thrift, *, hbase_asks: bool, loopback: bool) -> str:
    """What to say of a gateway that asks for no login.

    Args:
        thrift: where it is.
        hbase_asks: whether HBase itself asks for logins.
        loopback: whether it was reached at this machine's own address.
    """
    if not hbase_asks:
        return "it asks for none, as HBase does not"
    where = _address(thrift)
    if loopback:
        return f"it asks for none: whoever reaches {where}, every user of this machine, acts with its user's rights"
    fact = f"the gateway at {where} lets anybody be its user: it asks for no login, where HBase does"
    remedy = (
        "have it listen on loopback alone, beside its clients, or ask (hbase.thrift.security.qop, or over HTTP "
        "hbase.thrift.spnego.principal), and set hbase.thrift.login: docs/clusters.md"
    )
    raise GatewayError(fact, remedy)


def judge_http_gateway(thrift: Thrift, *, without_login: bool, as_anybody: bool) -> str:
    """What to say of a gateway over HTTP to which a login went.

    Args:
        thrift: where it is.
        without_login: whether it answers who does not log in.
        as_anybody: whether it let the one who logged in act as a user whom nobody has heard of.
    """
    where = f"the gateway at {_address(thrift)}"
    if without_login:
        fact = f"{where} lets anybody be its user: it answers without a login"
        raise GatewayError(fact, "set hbase.thrift.spnego.principal and hbase.thrift.spnego.keytab.file of it")
    if as_anybody:
        fact = f"{where} lets whoever logs in as we do be anybody: it took doAs: {NOBODY}"
        remedy = (
            "narrow hadoop.proxyuser.USER.users, groups and hosts in its configuration to whom that user is to act as"
        )
        raise GatewayError(fact, remedy)
    clear = "" if thrift.transport == "https" else "; what it is asked and answers is readable on the network"
    return f"it asks for a login by Kerberos with each request (SPNEGO), and takes no name that we make up{clear}"


def _is_loopback(host: str) -> bool:
    """Whether all addresses of that name are this machine's own, of whichever version."""
    try:
        found = {str(address[0]) for *_, address in socket.getaddrinfo(host, None)}
        return bool(found) and all(ipaddress.ip_address(each.partition("%")[0]).is_loopback for each in found)
    except (OSError, ValueError):
        return False


def _attempt(thrift: Thrift) -> int | Exception:
    """How many tables the gateway lists, asked so; or the error."""
    try:
        with connect(thrift, attempts=1) as connection:
            return len(connection.tables())
    except GatewayError as error:
        cause = error.__cause__
        return cause if isinstance(cause, Exception) else error
    except Exception as error:  # of a server that speaks otherwise anything may come
        return error


def _asked(thrift: Thrift, question: bytes) -> bytes:
    try:
        with socket.create_connection((thrift.host, thrift.port), SECONDS) as connection:
            connection.settimeout(SECONDS)
            connection.sendall(question)
            return connection.recv(16)
    except OSError:
        return b""


def _address(thrift: Thrift) -> str:
    return f"{thrift.host}:{thrift.port}"


def oracle(omid: Omid) -> str:
    """Whether the oracle takes connections."""
    if not omid.oracle:
        raise NotCheckedError("omid.oracle is empty")
    if problem := oracle_probe.unreachable(omid.oracle, SECONDS):
        raise GatewayError(problem, f"start it, or {_CORRECT_ORACLE}")
    return f"{', '.join(omid.oracle)}: takes connections"


def oracle_and_store(addresses: Sequence[str], read: Callable[[], tuple[int, int | None]]) -> str:
    """Whether the oracle is this store's, by a timestamp that it gives: no transaction begins with it.

    Args:
        addresses: of ``omid.oracle``.
        read: the low watermark that the store has, and the highest timestamp that its oracle has allotted to itself;
            None where HBase does not have that.

    Raises:
        GatewayError: it cannot be this store's, or what listens is no oracle.
        NotCheckedError: it gives no timestamp to who does not speak TLS.
    """
    watermark, _ = read()
    try:
        address, given = oracle_probe.timestamp(addresses, SECONDS)
    except oracle_probe.AsksForTLSError as error:
        raise NotCheckedError(f"{error}, so that it gave no timestamp") from error
    except OSError as error:
        fact = f"what listens at {', '.join(addresses)} gives no timestamp as Omid's oracle does ({error})"
        raise GatewayError(fact, _CORRECT_ORACLE) from error
    # Read after it: an oracle stores its maximum before it gives a timestamp up to it.
    return judge_oracle(address, watermark, given, read()[1])


def judge_oracle(address: str, watermark: int, given: int, allotted: int | None) -> str:
    """Whether *given*, a timestamp of the oracle at *address*, can be of the oracle of a store.

    Two oracles on the world's clock, both at work, look alike. So do two counters that are about as far.

    Args:
        address: of the oracle.
        watermark: the low watermark in the store, read before.
        given: the timestamp.
        allotted: what the store's oracle has allotted to itself, read after; None: not known.
    """
    remedy = (
        "correct omid.oracle, or omid.commit_table and omid.timestamp_table; two clusters must not share one oracle's"
    )
    if given < watermark:
        fact = (
            f"the oracle at {address} gave {given}, below the store's low watermark {watermark}: it is another store's"
        )
        raise GatewayError(fact, f"{remedy}. If it was made anew, see low-watermark-back in docs/operating.md")
    if allotted is not None and given > allotted:
        fact = (
            f"the oracle at {address} gave {given}, above all that the store's own oracle has allotted to itself "
            f"({allotted}): it is another store's"
        )
        raise GatewayError(fact, remedy)
    bound = "" if allotted is None else f" and the highest allotted, {allotted}"
    return f"{address} gave {given}, {'between' if bound else 'above'} the store's low watermark {watermark}{bound}"
