"""A relay before the gateway, whose connections a test can cut as a gateway does with those that idle."""

from __future__ import annotations

import contextlib
import socket
import threading


class Relay:
    """Listens on a free port of the loopback interface and passes everything on to another."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Close every connection that there is; how many."""
        cut, self._open = self._open, []
        for end in cut:
            hang_up(end)
        return len(cut) // 2

    def close(self) -> None:
        """Stop listening."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends the waiting accept, which a close alone does not
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._begin, args=(here,), daemon=True).start()

    def _begin(self, here: socket.socket) -> None:
        try:
            there = self._reached(here)
        except OSError:  # nobody listens there
            hang_up(here)
            return
        self._open += [here, there]
        self._between(here, there)

    def _reached(self, _: socket.socket) -> socket.socket:
        """The other end of a connection that somebody has opened."""
        return socket.create_connection(("127.0.0.1", self._to))

    def _between(self, here: socket.socket, there: socket.socket) -> None:
        for source, target in ((here, there), (there, here)):
            threading.Thread(target=_pump, args=(source, target), daemon=True).start()


def hang_up(end: socket.socket) -> None:
    """Close it, for whoever waits on it too."""
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_RDWR)
