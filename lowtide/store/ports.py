"""Whether somebody listens at an address, as far as a connection to its port tells: nothing is sent."""

from __future__ import annotations

import socket
from collections.abc import Sequence


def nobody_answers(addresses: Sequence[str], seconds: float) -> bool:
    """Whether none of *addresses* (host:port) takes a connection, each within *seconds*. With no address: no."""
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=seconds).close()
        except OSError:
            continue
        return False
    return bool(addresses)
