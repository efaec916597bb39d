"""happybase's connections, of every kind of gateway, and its pool of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from queue import LifoQueue
from typing import TYPE_CHECKING, Any

from lowtide.errors import LowtideError
from lowtide.store import kerberos
from lowtide.store.kerberos import HandshakeError, RefusedError

if TYPE_CHECKING:
    from lowtide.config import Thrift


def connection(thrift: Thrift, *, autoconnect: bool = True) -> Any:
    """A connection of happybase's to the gateway, as the settings say that it speaks.

    Raises:
        HandshakeError: there is no login, or the gateway is not to be trusted.
        OSError, TException: it does not answer.
    """
    import happybase

    arguments = {
        "host": thrift.host,
        "port": thrift.port,
        "timeout": int(thrift.timeout.total_seconds() * 1000),
        "protocol": thrift.protocol,
        "autoconnect": autoconnect,
    }
    if thrift.is_http or thrift.login != "none":
        return _asking_type()(thrift, **arguments)
    return happybase.Connection(transport=thrift.transport, **arguments)


def pool(thrift: Thrift, size: int) -> Any:
    """A pool of *size* such connections. Errors as of :func:`connection`: the first is opened at once."""
    return _pool_type()(thrift, size)


def renew(connection: Any) -> None:
    """As happybase's pool does with a connection of which nobody knows what is still under way on it."""
    connection.close()
    connection._refresh_thrift_client()


@cache
def _asking_type() -> Any:
    """happybase is imported here, as in :mod:`lowtide.store.gateway`; and what others do without."""
    import happybase
    from Hbase_thrift import Hbase
    from thriftpy2.thrift import TClient
    from thriftpy2.transport import TBufferedTransport, TSaslClientTransport, TSocket

    from lowtide.store.sasl import Login
    from lowtide.store.spnego import HttpTransport

    class AskingConnection(happybase.Connection):  # type: ignore[misc]  # happybase has no types
        """A connection to a gateway over HTTP, or one that asks for a login."""

        def __init__(self, thrift: Thrift, **arguments: Any) -> None:
            self._thrift = thrift
            super().__init__(**arguments)

        def _refresh_thrift_client(self) -> None:
            """Of happybase: for a new connection, and for one after a failure, whose old end is of no use any more."""
            old: Any = getattr(self, "transport", None)
            if old is not None:
                old.close()
            self.transport: Any
            if self._thrift.is_http:
                self.transport = TBufferedTransport(HttpTransport(self._thrift))
            else:
                socket = TSocket(host=self.host, port=self.port, socket_timeout=self.timeout)
                self.transport = TSaslClientTransport(lambda: Login(self._thrift), "GSSAPI", socket)
            self.client = TClient(Hbase, self._protocol_class(self.transport, decode_response=False))

        def open(self) -> None:
            try:
                _opened(self, super().open, self._thrift)
            except RefusedError:
                if not kerberos.forget(self._thrift):
                    raise
                self._refresh_thrift_client()
                _opened(self, super().open, self._thrift)

    return AskingConnection


def _opened(connection: Any, plainly: Callable[[], None], thrift: Thrift) -> None:
    """Open a connection, as happybase does *plainly*; where that fails, nothing of it stays open."""
    from thriftpy2.transport import TTransportException

    try:
        plainly()
    except (HandshakeError, OSError):
        connection.transport.close()
        raise
    except TTransportException as error:
        connection.transport.close()
        if refusal := judged_login(thrift, str(error)):
            raise refusal from error
        raise


def judged_login(thrift: Thrift, said: str) -> RefusedError | None:
    """The error for a login by SASL that the gateway refused, by thriftpy2's text; None: it is about something else."""
    _, refused, words = said.partition("Bad status: ")
    if not refused:
        return None
    reason = words.partition("b'")[2].partition("'")[0] or words
    remedy = (
        "see its log, and whether hbase.thrift.service is its principal (of hbase.thrift.kerberos.principal the first "
        "part, and the host's own name)"
    )
    return RefusedError(f"the gateway at {thrift.host}:{thrift.port} does not take the login ({reason})", remedy)


@cache
def _pool_type() -> Any:
    import happybase
    from thriftpy2.thrift import TException

    # What a call ends in that was answered, and those after which happybase renews the connection.
    ended = LowtideError, TException, OSError, GeneratorExit

    class Pool(happybase.ConnectionPool):  # type: ignore[misc]  # happybase has no types
        """happybase's pool makes connections of its one kind."""

        def __init__(self, thrift: Thrift, size: int) -> None:
            self._lock = threading.Lock()
            self._queue: LifoQueue[Any] = LifoQueue(maxsize=size)
            self._thread_connections = threading.local()
            for _ in range(size):
                self._queue.put(connection(thrift, autoconnect=False))
            with self.connection():  # a mistake in the settings shows at once
                pass

        @contextmanager
        def connection(self, timeout: float | None = None) -> Iterator[Any]:
            """As happybase gives it. Where something from outside breaks the block off, as a signal or a time limit
            does, an answer may be under way, and would be taken for the next call's: that goes over another one.
            """
            with super().connection(timeout) as taken:
                try:
                    yield taken
                except BaseException as error:
                    if not isinstance(error, ended):
                        renew(taken)
                    raise

    return Pool
