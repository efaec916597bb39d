"""Whether the oracle is up, as far as a connection to its port tells; and, where that does not do, by a timestamp.

For jobs and for people, from any machine: a connection alone uses nothing of Omid's protocol. Which store's oracle it
is only a timestamp shows, which ``lowtide check`` asks for; no transaction begins by that.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
from collections.abc import Sequence

from lowtide.store.ports import nobody_answers, parts

# Omid's Request messages (protobuf): field 3, a handshake without capabilities; field 1, a timestamp request.
_HANDSHAKE = bytes([0x1A, 2, 0x0A, 0])
_TIMESTAMP = bytes([0x0A, 0])
#: What Omid answers is some bytes long; a number beyond this is no length, but another protocol's text.
_LONGEST = 1 << 16


class AsksForTLSError(OSError):
    """The oracle speaks TLS alone."""


def unreachable(addresses: Sequence[str], seconds: float) -> str:
    """Why the oracle counts as down; empty where one of its addresses takes a connection, or none is configured.

    Args:
        addresses: of ``omid.oracle``, host:port, whose form the configuration has checked.
        seconds: how long each may take to answer.
    """
    return f"the oracle does not answer at {', '.join(addresses)}" if nobody_answers(addresses, seconds) else ""


def timestamp(addresses: Sequence[str], seconds: float) -> tuple[str, int]:
    """A fresh start timestamp, and the first address that gives one.

    Raises:
        AsksForTLSError: none does, and the last takes TLS alone.
        OSError: none does: none takes a connection, or what listens there is no oracle.
    """
    problem: OSError = OSError("no address")
    for address in addresses:
        try:
            with _connected(address, seconds) as connection:
                return address, ask_timestamp(connection)
        except OSError as error:  # of an oracle with a standby another address may do
            problem = error
            if _takes_tls(address, seconds):
                problem = AsksForTLSError(f"the oracle at {address} asks for TLS")
    raise problem


def ask_timestamp(connection: socket.socket) -> int:
    """A fresh start timestamp over an open *connection*.

    Raises:
        OSError: the answer is no oracle's.
    """
    _framed(connection, _HANDSHAKE)
    answer = _framed(connection, _TIMESTAMP)
    # Response field 1, a message whose field 1 is the timestamp as a varint.
    if answer[:1] != b"\x0a" or answer[2:3] != b"\x08":
        raise OSError(f"the oracle answered {answer[:16].hex()}, which is no timestamp")
    return sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(answer[3:]))


def _connected(address: str, seconds: float) -> socket.socket:
    return socket.create_connection(parts(address), timeout=seconds)


def _takes_tls(address: str, seconds: float) -> bool:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # nothing is said over it
    with contextlib.suppress(OSError), _connected(address, seconds) as plain, context.wrap_socket(plain):
        return True
    return False


def _framed(connection: socket.socket, message: bytes) -> bytes:
    connection.sendall(struct.pack(">I", len(message)) + message)
    (length,) = struct.unpack(">I", exactly(connection, 4))
    if length > _LONGEST:
        raise OSError(f"it answers in another protocol, with {length.to_bytes(4, 'big')!r}")
    return exactly(connection, length)


def exactly(connection: socket.socket, count: int) -> bytes:
    """The next *count* bytes.

    Raises:
        OSError: the connection ends before.
    """
    parts = b""
    while len(parts) < count:
        part = connection.recv(count - len(parts))
        if not part:
            raise OSError("the server closed the connection")
        parts += part
    return parts
