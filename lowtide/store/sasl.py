"""A login by SASL with Kerberos (GSSAPI, RFC 4752), as thriftpy2's transport asks for it."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from lowtide.store import kerberos

if TYPE_CHECKING:
    from lowtide.config import Thrift

#: The layers of protection, as SASL numbers them.
LAYERS = {"auth": 1, "auth-int": 2, "auth-conf": 4}
#: The largest message that we take; what three bytes can say.
_LARGEST = 0xFFFFFF


class Login:
    """One login, and what is done afterwards to the bytes of that connection.

    The layer is the one of the settings or there is no connection: one that the gateway likes better is never taken
    instead.
    """

    def __init__(self, thrift: Thrift) -> None:
        self._thrift = thrift
        self._context = kerberos.context(thrift, "thrift", private=thrift.qop == "auth-conf")
        #: Whether both have shown who they are, and agreed on the layer.
        self._settled = False

    def getError(self) -> str:  # noqa: N802 - thriftpy2's name
        """Nothing: what fails here raises."""
        return ""

    def start(self, mechanism: str) -> tuple[bool, str, bytes]:
        """The first token."""
        with kerberos.told(self._thrift):
            return True, mechanism, self._context.step() or b""

    def step(self, challenge: bytes) -> tuple[bool, bytes]:
        """The answer to a challenge: tokens until both have shown who they are, then the choice of the layer."""
        with kerberos.told(self._thrift):
            if not self._context.complete:
                return True, self._context.step(challenge) or b""
            offered = self._context.unwrap(challenge).message
        check_layer(self._thrift, offered)
        size = 0 if self._thrift.qop == "auth" else _LARGEST
        # Nobody to act for: SASL's own field for that must be the one who logged in.
        chosen = struct.pack(">I", LAYERS[self._thrift.qop] << 24 | size)
        with kerberos.told(self._thrift):
            answer = self._context.wrap(chosen, False).message
        self._settled = True
        return True, answer

    def encode(self, data: bytes) -> tuple[bool, bytes]:
        """What is sent for *data*. Of the same length, it tells thriftpy2 that nothing is done to it.

        Raises:
            HandshakeError: what answers has ended the login before it showed who it is, which thriftpy2 takes for its
                success.
        """
        if not self._settled:
            fact = f"what answers at {self._thrift.host}:{self._thrift.port} does not show that it is the gateway"
            raise kerberos.HandshakeError(fact, "see whether somebody stands between")
        if self._thrift.qop == "auth":
            return True, data
        with kerberos.told(self._thrift):
            wrapped = self._context.wrap(data, self._private).message
        return True, struct.pack(">I", len(wrapped)) + wrapped

    def decode(self, data: bytes) -> tuple[bool, bytes]:
        """What was received in *data*, behind its length."""
        with kerberos.told(self._thrift):
            found = self._context.unwrap(data[4:])
        if self._private and not found.encrypted:
            where = f"the gateway at {self._thrift.host}:{self._thrift.port}"
            fact = f"{where} answered in the clear, where auth-conf is agreed"
            raise kerberos.HandshakeError(fact, "see whether somebody stands between")
        return True, found.message

    @property
    def _private(self) -> bool:
        return self._thrift.qop == "auth-conf"


def check_layer(thrift: Thrift, offered: bytes) -> None:
    """Refuse a gateway that does not offer the layer of the settings.

    Args:
        thrift: the settings.
        offered: a byte of layers, and three of the largest message that the gateway takes.

    Raises:
        HandshakeError: names what it offers.
    """
    if len(offered) == 4 and offered[0] & LAYERS[thrift.qop]:
        return
    names = [name for name, layer in LAYERS.items() if offered and offered[0] & layer]
    found = " or ".join(names) or "no layer"
    raise kerberos.HandshakeError(
        f"the gateway at {thrift.host}:{thrift.port} offers {found}, not {thrift.qop}",
        f"set its hbase.thrift.security.qop to {thrift.qop}" + (f", or hbase.thrift.qop to {found}" if names else ""),
    )
