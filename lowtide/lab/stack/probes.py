"""Does a server answer? Each probe asks one cheap, real question, with a time limit and no client library."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable

from lowtide.lab.stack.config import LOOPBACK, StackConfig
from lowtide.store.oracle_probe import ask_timestamp, exactly

_SECONDS = 3.0

# Thrift 1, binary protocol: version and type "call", the method's name, a sequence number, no arguments.
_THRIFT_CALL = 0x80010001
_THRIFT_REPLY = 0x80010002
_GET_TABLE_NAMES = b"getTableNames"

# HBase's RPC (protobuf): a preamble, version 0 and simple authentication; ConnectionHeader: field 1, the user, field 2,
# the service; then a call. RequestHeader, behind its length: field 1, the call's number, field 3, the method, field 4,
# that a parameter follows, whose length is 0. The answer begins with ResponseHeader: field 1, the call's number.
_HBASE_PREAMBLE = b"HBas\x00\x50"
_HBASE_CONNECTION = b"\x0a\x09\x0a\x07lowtide\x12\x11ClientMetaService"
_HBASE_CLUSTER_ID = b"\x12\x08\x01\x1a\x0cGetClusterId\x20\x01\x00"
_HBASE_ANSWERED = b"\x02\x08\x01"


# SASL as Thrift has it: START with the mechanism, OK with a ticket that is none; the answer is BAD or ERROR.
_SASL_LOGIN = ((1, b"GSSAPI"), (2, b"?"))
_SASL_REFUSED = (3, 4)


def _der(tag: int, *content: bytes) -> bytes:
    body = b"".join(content)
    return bytes([tag, len(body)]) + body


def _name(*parts: bytes) -> bytes:
    strings = (_der(0x1B, part) for part in parts)
    return _der(0x30, _der(0xA0, _der(0x02, b"\x01")), _der(0xA1, _der(0x30, *strings)))


# Kerberos's AS-REQ (RFC 4120, 5.4.1), for the ticket of a principal that nobody has made: version 5, type 10; options,
# client, realm, server, until, nonce, encryption. The answer is a KRB-ERROR, whose tag is that of application 30.
_AS_REQUEST = _der(
    0x6A,
    _der(
        0x30,
        _der(0xA1, _der(0x02, b"\x05")),
        _der(0xA2, _der(0x02, b"\x0a")),
        _der(
            0xA4,
            _der(
                0x30,
                _der(0xA0, _der(0x03, bytes(5))),
                _der(0xA1, _name(b"x")),
                _der(0xA2, _der(0x1B, b"LOWTIDE.TEST")),
                _der(0xA3, _name(b"krbtgt", b"LOWTIDE.TEST")),
                _der(0xA5, _der(0x18, b"20370101000000Z")),
                _der(0xA7, _der(0x02, b"\x01")),
                _der(0xA8, _der(0x30, _der(0x02, b"\x11"))),
            ),
        ),
    ),
)
_KRB_ERROR = b"\x7e"


def zookeeper_answers(port: int) -> bool:
    """ZooKeeper, which may live in HBase's process, says that it is well."""

    def ask(connection: socket.socket) -> bool:
        connection.sendall(b"ruok")
        return connection.recv(4) == b"imok"

    return _asked(port, ask)


def key_centre_answers(port: int) -> bool:
    """The key distribution centre answers a request for the ticket of nobody: with an error of Kerberos's."""

    def ask(connection: socket.socket) -> bool:
        connection.sendall(_sized(_AS_REQUEST))
        return exactly(connection, 5)[4:] == _KRB_ERROR

    return _asked(port, ask)


def gateway_answers(config: StackConfig) -> bool:
    """The gateway answers, in the kind that *config* has it. One that asks for a login says so: what is behind it
    nobody learns without one.
    """
    if not config.secured or config.gateway == "open":
        return thrift_answers(config.thrift_port)
    if config.gateway in ("http", "https"):
        return _asks_over_http(config.thrift_port, tls=config.gateway == "https")
    return _asks_by_sasl(config.thrift_port)


def _asks_by_sasl(port: int) -> bool:
    def ask(connection: socket.socket) -> bool:
        connection.sendall(b"".join(struct.pack(">B", status) + _sized(said) for status, said in _SASL_LOGIN))
        return exactly(connection, 1)[0] in _SASL_REFUSED

    return _asked(port, ask)


def _asks_over_http(port: int, *, tls: bool) -> bool:
    def ask(connection: socket.socket) -> bool:
        connection.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return exactly(connection, 12).endswith(b" 401")

    def ask_in_tls(connection: socket.socket) -> bool:
        context = ssl.create_default_context()
        # Nothing is told to it, and it is not believed anything.
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with context.wrap_socket(connection) as wrapped:
            return ask(wrapped)

    return _asked(port, ask_in_tls if tls else ask)


def thrift_answers(port: int) -> bool:
    """The gateway lists the tables, for which it asks HBase's master."""

    def ask(connection: socket.socket) -> bool:
        name = struct.pack(">I", len(_GET_TABLE_NAMES)) + _GET_TABLE_NAMES
        connection.sendall(struct.pack(">I", _THRIFT_CALL) + name + struct.pack(">IB", 1, 0))
        if struct.unpack(">I", exactly(connection, 4))[0] != _THRIFT_REPLY:
            return False
        exactly(connection, len(name) + 4)
        # The result struct: field 0 is the list of names, field 1 an exception.
        _kind, field = struct.unpack(">Bh", exactly(connection, 3))
        return bool(field == 0)

    return _asked(port, ask)


def server_answers(port: int) -> bool:
    """A master or a region server of HBase tells the id of the cluster that it belongs to."""

    def ask(connection: socket.socket) -> bool:
        connection.sendall(_HBASE_PREAMBLE + _sized(_HBASE_CONNECTION) + _sized(_HBASE_CLUSTER_ID))
        answer = exactly(connection, struct.unpack(">I", exactly(connection, 4))[0])
        # Other than this a header tells an exception. Behind it, with its length, is the answer: empty without an id.
        return answer.startswith(_HBASE_ANSWERED) and len(answer) > len(_HBASE_ANSWERED) + 1

    return _asked(port, ask)


def oracle_answers(port: int) -> bool:
    """Omid's oracle gives out a start timestamp."""
    return _asked(port, lambda connection: ask_timestamp(connection) > 0)


def timestamp(port: int) -> int:
    """A fresh start timestamp from the oracle. Raises OSError when it does not answer."""
    with socket.create_connection((LOOPBACK, port), _SECONDS) as connection:
        return ask_timestamp(connection)


def _sized(message: bytes) -> bytes:
    return struct.pack(">I", len(message)) + message


def _asked(port: int, ask: Callable[[socket.socket], bool]) -> bool:
    try:
        with socket.create_connection((LOOPBACK, port), _SECONDS) as connection:
            return ask(connection)
    except OSError:
        return False
