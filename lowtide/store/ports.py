"""Whether somebody listens at an address, as far as a connection to its port tells: nothing is sent."""

from __future__ import annotations

import socket
from collections.abc import Sequence


def nobody_answers(addresses: Sequence[str], seconds: float) -> bool:
    """Whether none of *addresses* (host:port) takes a connection, each within *seconds*. With no address: no."""
    for address in addresses:
        try:
            socket.create_connection(parts(address), timeout=seconds).close()
        except OSError:
            continue
        return False
    return bool(addresses)


def parts(address: str) -> tuple[str, int]:
    """Host and port of ``host:port``, as a socket takes them: an address with colons stands in brackets, without which
    it is one.
    """
    host, _, port = address.rpartition(":")
    return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), int(port)
