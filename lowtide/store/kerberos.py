"""Logging in to a gateway by Kerberos: tickets, from a keytab or from a cache that something else renews.

``gssapi`` is imported when somebody logs in, not before: it is of the extra ``lowtide[kerberos]``.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lowtide.config import Thrift

_INSTALL = (
    "install lowtide[kerberos]: it compiles gssapi, for which it needs a C compiler and the headers of MIT's Kerberos "
    "(Debian: apt-get install gcc libkrb5-dev)"
)
#: What Kerberos's own words are about, as expressions, and what to do. The first that fits counts.
_REMEDIES = (
    ("client's entry in database has expired", "have the realm's administrator let the principal live on"),
    ("password has expired", "have the realm's administrator give the principal a new key, and the keytab made again"),
    ("expired", "renew the ticket (kinit), have something renew it, or set hbase.thrift.keytab and principal"),
    ("client ('.*' )?not found", "set hbase.thrift.principal to one that the realm knows"),
    (
        "not found in kerberos database",
        "set hbase.thrift.service to the gateway's own principal, such as thrift/gateway.example.org",
    ),
    ("isn't for us", "set hbase.thrift.service to the gateway's own principal, such as thrift/gateway.example.org"),
    ("key of", "set hbase.thrift.principal to the one whose key the file has"),
    ("preauth", "have the keytab made again: the principal's key is another one by now"),
    ("contact any kdc", "see that the realm's KDC in krb5.conf (KRB5_CONFIG) is the right one and runs"),
    ("cannot find kdc", "name the realm's KDC in krb5.conf (KRB5_CONFIG)"),
    ("default realm", "name the realm in krb5.conf (KRB5_CONFIG)"),
    ("skew", "set the clocks of this machine, the KDC and the gateway right"),
    ("integrity check", "have the gateway's keytab made again: the realm gives tickets for another key than it has"),
    ("client principal", "run kinit for hbase.thrift.principal, or leave that out"),
    ("credential", "run kinit, name the cache in hbase.thrift.ticket_cache, or set hbase.thrift.keytab and principal"),
)
#: How many caches in memory were given up, and when the last one was (s, monotonic), by :func:`_of`.
_FORGOTTEN: dict[str, tuple[int, float]] = {}
#: Fresh tickets that are refused too help nobody: so long no others are fetched (s). What is given up stays in this
#: process's memory, which nothing in ``gssapi`` clears.
_AGAIN = 60.0
#: What is said of tickets for a key that somebody else has by now: the KDC, the gateway, or another service.
_STALE = ("integrity check failed", "isn't for us", "key version")
_ELSE = "see docs/clusters.md, and krb5.conf (KRB5_CONFIG)"


class HandshakeError(ConnectionError):
    """Who is who was not settled: a ticket, a login, a certificate. It is a failure of the connection as others are;
    to try once more at once is of no use.

    Args:
        fact: what is so.
        remedy: what to do about it.
    """

    def __init__(self, fact: str, remedy: str) -> None:
        super().__init__(f"{fact}; {remedy}")
        self.fact = fact
        self.remedy = remedy

    def __reduce__(self) -> tuple[type[HandshakeError], tuple[str, str]]:
        return type(self), (self.fact, self.remedy)


class RefusedError(HandshakeError):
    """The gateway, or the KDC, does not take what was fetched before: with fresh tickets it may."""


def service_name(thrift: Thrift, service: str) -> tuple[str, bool]:
    """The gateway's principal, as ``hbase.thrift.service`` has it, else *service* on the gateway's host; and whether
    that is a whole principal, with its realm, or ``service@host``, whose realm Kerberos knows.
    """
    given = thrift.service.replace("_HOST", thrift.host)
    if "@" in given:
        return given, True
    first, _, host = given.partition("/")
    return f"{first or service}@{host or thrift.host}", False


def context(thrift: Thrift, service: str, *, spnego: bool = False, private: bool = False) -> Any:
    """A GSSAPI context that has begun nothing yet, for a login in which both sides show who they are.

    Its credential is fetched anew each time: what a keytab gives is kept in this process's memory until shortly before
    its end, and a ticket cache is read as it is now.

    Args:
        thrift: names the gateway, and who logs in.
        service: the first part of the gateway's principal, where the settings name none.
        spnego: whether the mechanism is negotiated, as over HTTP.
        private: whether what follows is to be encrypted in the context.

    Raises:
        HandshakeError: there is no ticket, or it has expired.
    """
    name, whole = service_name(thrift, service)
    if thrift.keytab and not os.access(thrift.keytab, os.R_OK):
        fact = f"hbase.thrift.keytab is {thrift.keytab}, which is not there for this user to read"
        raise HandshakeError(fact, "correct it, or have the file made readable for this user alone")
    gssapi = _gssapi()
    needs = gssapi.RequirementFlag
    # Else what one side sent in a layer could be sent again by who stands between (RFC 4752, 3.1).
    flags = needs.mutual_authentication | needs.integrity | needs.out_of_sequence_detection | needs.replay_detection
    if private:
        flags |= needs.confidentiality
    with told(thrift):
        kind = gssapi.NameType.kerberos_principal if whole else gssapi.NameType.hostbased_service
        mechanism = gssapi.OID.from_int_seq("1.3.6.1.5.5.2") if spnego else gssapi.MechType.kerberos
        return gssapi.SecurityContext(
            name=gssapi.Name(name, kind),
            creds=_credential(gssapi, thrift),
            flags=flags,
            mech=mechanism,
            usage="initiate",
        )


@contextmanager
def told(thrift: Thrift) -> Iterator[None]:
    """Turns what Kerberos says into an error with a remedy."""
    gssapi = _gssapi()
    try:
        yield
    except gssapi.exceptions.GSSError as error:
        said = _words(error)
        if thrift.keytab and "credentials cache" in said:  # Kerberos's words for what follows from it
            said = f"the file has no key of {thrift.principal} that can be used"
        raise judged(thrift, said) from error


def whom(thrift: Thrift) -> str:
    """As whom the gateway's calls act, as far as the settings and the ticket cache tell: what is asked to be kept is
    kept without it. A gateway that asks for no login acts as its own user, which it does not tell: empty.
    """
    if thrift.login != "kerberos":
        return ""
    principal = thrift.principal
    if not principal:
        with suppress(Exception):  # it has just served to log in; the name is only told
            principal = str(_gssapi().Credentials(usage="initiate", store=_store(thrift)).name)
    return f"{thrift.do_as} (by {principal})" if thrift.do_as else principal


def forget(thrift: Thrift) -> bool:
    """Have the next login of this process fetch its tickets anew: those in its memory may be for a key that the gateway
    has no more.

    Returns:
        Whether they are: not where there is no keytab to fetch them with, for what is in a cache of others is theirs to
        renew; nor within a minute of the last time.
    """
    number, last = _FORGOTTEN.get(_of(thrift), (0, 0.0))
    now = time.monotonic()
    if not thrift.keytab or (number and now - last < _AGAIN):
        return False
    _FORGOTTEN[_of(thrift)] = number + 1, now
    return True


def judged(thrift: Thrift, said: str) -> HandshakeError:
    """The error for what Kerberos *said* of a login to the gateway."""
    remedy = next((remedy for words, remedy in _REMEDIES if re.search(words, said.lower())), _ELSE)
    kind = RefusedError if any(words in said.lower() for words in _STALE) else HandshakeError
    return kind(f"no login to the gateway at {thrift.host}:{thrift.port}{_who(thrift)}: {said}", remedy)


def _who(thrift: Thrift) -> str:
    if thrift.keytab:
        return f" as {thrift.principal}, by the keytab {thrift.keytab}"
    as_whom = f" as {thrift.principal}" if thrift.principal else ""
    return f"{as_whom}, by the ticket cache {thrift.ticket_cache or os.environ.get('KRB5CCNAME') or '(the default)'}"


def _words(error: Any) -> str:
    """Kerberos's own words, without the interface's around them. Those of the mechanism say more, where it has any."""
    for code, is_major in ((error.min_code, False), (error.maj_code, True)):
        statuses = [each for each in error.get_all_statuses(code, is_major) if each and "Success" not in each]
        if statuses and "unknown error" not in statuses[0].lower():
            return "; ".join(statuses)
    return str(error)


def _credential(gssapi: Any, thrift: Thrift) -> Any:
    name = gssapi.Name(thrift.principal, gssapi.NameType.kerberos_principal) if thrift.principal else None
    return gssapi.Credentials(name=name, usage="initiate", store=_store(thrift))


def _store(thrift: Thrift) -> dict[str, str] | None:
    if thrift.keytab:
        number, _ = _FORGOTTEN.get(_of(thrift), (0, 0.0))
        return {"client_keytab": f"FILE:{thrift.keytab}", "ccache": f"MEMORY:lowtide-{_of(thrift)}-{number}"}
    return {"ccache": thrift.ticket_cache} if thrift.ticket_cache else None


def _of(thrift: Thrift) -> str:
    """A cache of its own for each key and principal: one cache holds one principal's tickets."""
    return hashlib.sha256(f"{thrift.keytab}\0{thrift.principal}".encode()).hexdigest()[:16]


def _gssapi() -> Any:
    try:
        import gssapi
    except ImportError as error:
        raise HandshakeError(
            f"hbase.thrift.login is kerberos, and gssapi cannot be imported ({error})", _INSTALL
        ) from error
    return gssapi
