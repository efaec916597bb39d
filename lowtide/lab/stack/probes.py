"""Does a server answer? Each probe asks one cheap, real question, with a time limit and no client library."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from lowtide.lab.stack.config import LOOPBACK
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


def zookeeper_answers(port: int) -> bool:
    """ZooKeeper, which may live in HBase's process, says that it is well."""

    def ask(connection: socket.socket) -> bool:
        connection.sendall(b"ruok")
        return connection.recv(4) == b"imok"

    return _asked(port, ask)


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
