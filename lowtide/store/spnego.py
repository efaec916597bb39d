"""A gateway over HTTP or HTTPS: each call is a request, with a login of its own (SPNEGO, RFC 4559) where it asks.

thriftpy2 has a transport for HTTP. It takes the page of a refusal for an answer of Thrift's, and sets the time-out of
every socket that any thread of the process makes meanwhile; so this is one of our own, over the standard library.
"""

from __future__ import annotations

import base64
import binascii
import http.client
import select
import ssl
from typing import TYPE_CHECKING, Any

from lowtide.store import kerberos
from lowtide.store.kerberos import HandshakeError, RefusedError
from lowtide.values.text import plain

if TYPE_CHECKING:
    from lowtide.config import Thrift

_TYPE = "application/x-thrift"
_NEGOTIATE = "Negotiate"
#: A page of a refusal says it in its first bytes.
_SHOWN = 200


class HttpTransport:
    """A transport of thriftpy2's: what was written goes as one POST when it is flushed, and the answer is read.

    A request is never sent twice: what it asks for may have been done. A connection that the gateway has closed since
    the last answer is opened anew before anything is sent.
    """

    def __init__(self, thrift: Thrift) -> None:
        self._thrift = thrift
        self._connection: http.client.HTTPConnection | None = None
        self._written = bytearray()
        self._answer = memoryview(b"")

    def is_open(self) -> bool:
        """Whether it was opened, and not closed since."""
        return self._connection is not None

    def open(self) -> None:
        """Connect, over TLS where the settings say https.

        Raises:
            HandshakeError: the certificate is not trusted, or there is no TLS.
            OSError: nobody is there, or does not answer in time.
        """
        thrift = self._thrift
        seconds = thrift.timeout.total_seconds()
        if thrift.transport == "http":
            connection = http.client.HTTPConnection(thrift.host, thrift.port, timeout=seconds)
        else:
            connection = http.client.HTTPSConnection(thrift.host, thrift.port, timeout=seconds, context=trust(thrift))
        try:
            connection.connect()
        except ssl.SSLError as error:
            raise judged_tls(thrift, error) from error
        self._connection = connection

    def close(self) -> None:
        """End the connection; what was written and not flushed is forgotten."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None
        self._written.clear()
        self._answer = memoryview(b"")

    def write(self, data: bytes) -> None:
        """Keep *data* for the next request."""
        self._written += data

    def read(self, size: int) -> bytes:
        """At most *size* bytes of the answer; none where there are no more, which thriftpy2 takes for the end of a
        connection.
        """
        found, self._answer = bytes(self._answer[:size]), self._answer[size:]
        return found

    def flush(self) -> None:
        """Send what was written, and wait for the whole answer.

        Raises:
            HandshakeError: the gateway refuses the login, or does not show who it is.
            OSError: there is no answer, or not in time.
        """
        body = bytes(self._written)
        self._written.clear()
        try:
            self._answer = memoryview(self._answered(body))
        except RefusedError:
            # Nothing was done for who was not let in, so here it may be sent again.
            if not kerberos.forget(self._thrift):
                raise
            self._answer = memoryview(self._answered(body))

    def _answered(self, body: bytes) -> bytes:
        """The answer to one request, with a login of its own."""
        if self._connection is None or self._gone():
            self.close()
            self.open()
        context = None
        headers = {"Content-Type": _TYPE, "Accept": _TYPE}
        if self._thrift.login == "kerberos":
            context = kerberos.context(self._thrift, "HTTP", spnego=True)
            with kerberos.told(self._thrift):
                token = context.step() or b""
            headers["Authorization"] = f"{_NEGOTIATE} {base64.b64encode(token).decode()}"
        if self._thrift.do_as:
            headers["doAs"] = self._thrift.do_as
        status, challenge, answer = self._asked(body, headers)
        check_status(self._thrift, status, answer)
        if context is not None:
            self._check_shown(context, challenge)
        return answer

    def _asked(self, body: bytes, headers: dict[str, str]) -> tuple[int, str, bytes]:
        assert self._connection is not None
        try:
            self._connection.request("POST", "/", body, headers)
            response = self._connection.getresponse()
            return response.status, response.headers.get("WWW-Authenticate", ""), response.read()
        except http.client.HTTPException as error:
            self.close()
            if isinstance(error, OSError):
                raise
            where = f"{self._thrift.host}:{self._thrift.port}"
            raise ConnectionError(f"what answers at {where} does not speak HTTP ({type(error).__name__})") from error
        except OSError:
            self.close()  # an answer that comes too late would be the next call's
            raise

    def _gone(self) -> bool:
        """Whether the gateway has closed the connection: between two calls it has nothing to say."""
        sock = self._connection.sock if self._connection else None
        if sock is None:
            return True
        looked = select.poll()  # a triggerer has more connections than select can tell apart
        looked.register(sock, select.POLLIN)
        return bool(looked.poll(0))

    def _check_shown(self, context: Any, challenge: str) -> None:
        """Both have to show who they are: without TLS nothing else does it for the gateway. Whatever is wrong here, the
        request was done, and is not sent again.
        """
        token = challenge.removeprefix(_NEGOTIATE).strip()
        try:
            with kerberos.told(self._thrift):
                if token:
                    context.step(base64.b64decode(token, validate=True))
                complete = context.complete  # gssapi may raise here what went wrong in the step
        except HandshakeError as error:
            raise _not_shown(self._thrift, error.fact) from error
        except binascii.Error as error:
            raise _not_shown(self._thrift, str(error)) from error
        if not complete:
            raise _not_shown(self._thrift, "it says nothing of itself")


def trust(thrift: Thrift) -> ssl.SSLContext:
    """Whom a client over HTTPS trusts: the settings' authority, and nobody else, or the system's.

    Raises:
        HandshakeError: there is no certificate in the file.
    """
    try:
        return ssl.create_default_context(cafile=thrift.ca_file or None)
    except (OSError, ssl.SSLError) as error:
        said = error.strerror or type(error).__name__
        fact = f"hbase.thrift.ca_file is {thrift.ca_file}, which has no certificates to read ({said})"
        raise HandshakeError(fact, "name a file with the authority's certificate as PEM") from error


def judged_tls(thrift: Thrift, error: ssl.SSLError) -> HandshakeError:
    """The error for a connection that did not come about over TLS."""
    where = f"the gateway at {thrift.host}:{thrift.port}"
    if not isinstance(error, ssl.SSLCertVerificationError):
        reason = (getattr(error, "reason", None) or type(error).__name__).replace("_", " ").lower()
        remedy = "set hbase.thrift.transport to http if it has no TLS (hbase.thrift.ssl.enabled)"
        return HandshakeError(f"{where} does not speak TLS as it should ({reason})", remedy)
    said = error.verify_message
    if error.verify_code in (62, 64):  # of another host, of another address
        remedy = "set hbase.thrift.host to the name in its certificate"
    elif error.verify_code == 10:
        remedy = "have the gateway given a new one"
    else:
        remedy = (
            "set hbase.thrift.ca_file to the certificate of who signed it, if it is the gateway's; else somebody "
            "stands between"
        )
    return HandshakeError(f"{where} shows a certificate that is not to be trusted ({said.rstrip('.')})", remedy)


def check_status(thrift: Thrift, status: int, answer: bytes) -> None:
    """Refuse an answer that is none of Thrift's.

    Raises:
        HandshakeError: the gateway refuses who asks.
        ConnectionError: it answers otherwise.
    """
    if status == http.client.OK:
        return
    where = f"the gateway at {thrift.host}:{thrift.port}"
    if status == http.client.UNAUTHORIZED and thrift.login == "none":
        raise HandshakeError(f"{where} asks for a login (HTTP 401)", "set hbase.thrift.login to kerberos")
    if status == http.client.UNAUTHORIZED:
        remedy = "see its log, and whether hbase.thrift.service is its principal (hbase.thrift.spnego.principal)"
        raise RefusedError(f"{where} does not take the login (HTTP 401)", remedy)
    if thrift.do_as and status in (http.client.FORBIDDEN, http.client.INTERNAL_SERVER_ERROR):
        remedy = (
            "have it do so (its hbase.thrift.support.proxyuser, and hadoop.proxyuser.USER.hosts with users or groups, "
            "for who logs in), or leave hbase.thrift.do_as out"
        )
        raise HandshakeError(f"{where} does not let us act as {thrift.do_as} (HTTP {status})", remedy)
    said = plain(answer[:_SHOWN].decode("utf-8", "replace").split("\n")[0].strip())
    raise ConnectionError(f"{where} answered with HTTP {status} ({said or 'no text'})")


def _not_shown(thrift: Thrift, said: str) -> HandshakeError:
    fact = f"what answers at {thrift.host}:{thrift.port} does not show that it is the gateway ({said})"
    remedy = "see whether it asks for logins (hbase.thrift.spnego.principal), and whether somebody stands between"
    return HandshakeError(fact, remedy)
