"""A pool of connections to a gateway, and what breaks off a call over one of them."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator

import happybase
import pytest
from Hbase_thrift import Hbase, TCell, TRowResult
from thriftpy2.protocol import TBinaryProtocolFactory
from thriftpy2.server import TThreadedServer
from thriftpy2.thrift import TProcessor
from thriftpy2.transport import TBufferedTransportFactory, TServerSocket

from lowtide.config import Thrift
from lowtide.errors import UsageError
from lowtide.lab.waiting import reached
from lowtide.store.connections import pool


class Gateway:
    """As much of one as tells a row by its own name, the row *late* when half a second is over."""

    def getRowsWithColumns(self, _: bytes, rows: list[bytes], *__: object) -> list[TRowResult]:  # noqa: N802
        """Thrift's."""
        if rows == [b"late"]:
            time.sleep(0.5)
        return [TRowResult(row=row, columns={b"f:q": TCell(row, 1)}) for row in rows]


@pytest.fixture
def port() -> Iterator[int]:
    """Where such a gateway listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        chosen = int(free.getsockname()[1])
    server = TThreadedServer(
        TProcessor(Hbase, Gateway()),
        TServerSocket("127.0.0.1", chosen),
        itrans_factory=TBufferedTransportFactory(),
        iprot_factory=TBinaryProtocolFactory(),
        daemon=True,
    )
    threading.Thread(target=server.serve, daemon=True).start()
    assert reached(lambda: _listens(chosen), 10, pause=0.01)
    yield chosen
    server.close()


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return not tried.connect_ex(("127.0.0.1", port))


class BrokenOff(BaseException):
    """As a time limit raises it in the midst of a call."""


def test_an_answer_that_nobody_waited_for_is_no_other_calls(port: int) -> None:
    """A call that a signal breaks off leaves its answer under way: the next call over that connection would take it
    for its own, and find that a transfer which was claimed is not there.
    """

    def broken_off(*_: object) -> None:
        raise BrokenOff

    before = signal.signal(signal.SIGUSR1, broken_off)
    connections = pool(Thrift(host="127.0.0.1", port=port), 1)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
    try:
        with pytest.raises(BrokenOff), connections.connection() as connection:
            connection.table("t").rows([b"late"])
    finally:
        signal.signal(signal.SIGUSR1, before)
    with connections.connection() as connection:
        assert connection.table("t").rows([b"next"]) == [(b"next", {b"f:q": b"next"})]


def test_what_a_program_refuses_costs_no_connection(port: int) -> None:
    """Its calls were answered: the next one goes over the same connection."""
    connections = pool(Thrift(host="127.0.0.1", port=port), 1)
    used = []

    def refused() -> None:
        with connections.connection() as connection:
            assert isinstance(connection, happybase.Connection)
            used.append(connection.client)
            raise UsageError("no")

    for _ in range(2):
        with pytest.raises(UsageError):
            refused()
    assert used[0] is used[1]
