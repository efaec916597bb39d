"""Who stands between a client and a server: hears all, and may show a certificate of its own."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from pathlib import Path

from tests.chaos.lying import socks_target


class Recorder:
    """Listens on a free port of the loopback interface, passes everything on to *port*, and keeps what it heard.

    Without a port it speaks SOCKS, and passes on to whomever the client names. With a *certificate* (PEM, with its key)
    it answers TLS itself, and speaks TLS to the gateway, whoever that is.
    """

    def __init__(self, port: int | None = None, certificate: Path | None = None) -> None:
        self._to = port
        self._certificate = certificate
        self._heard = bytearray()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def heard(self) -> bytes:
        """All that went either way."""
        return bytes(self._heard)

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._one, args=(here,), daemon=True).start()

    def _one(self, here: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self._certificate:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(self._certificate)
                here = context.wrap_socket(here, server_side=True)
            there = socket.create_connection(socks_target(here) if self._to is None else ("127.0.0.1", self._to))
            if self._certificate:
                believing = ssl.create_default_context()
                believing.check_hostname, believing.verify_mode = False, ssl.CERT_NONE
                there = believing.wrap_socket(there)
            for source, target in ((here, there), (there, here)):
                threading.Thread(target=self._pump, args=(source, target), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                self._heard += data
                target.sendall(data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)
