"""Networks that lie: relays before the gateway and before HBase's servers, which do so when they are told to.

The one before HBase's servers speaks SOCKS, so that a client reaches all of them through it: HBase's blocking client
does, where Hadoop's configuration says so (:data:`THROUGH_SOCKS`). It knows where one of HBase's calls ends and which
answer is which call's, so that it is the call that is meant, and no other beside it, whose answer is lost.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from relay import Relay, hang_up

#: By which HBase's client goes through a relay; the relay's address goes into :data:`SOCKS_SERVER`.
THROUGH_SOCKS = {"hbase.rpc.client.impl": "org.apache.hadoop.hbase.ipc.BlockingRpcClient"}
SOCKS_FACTORY = {"hadoop.rpc.socket.factory.class.default": "org.apache.hadoop.net.SocksSocketFactory"}
SOCKS_SERVER = "hadoop.socks.server"
#: HBase's calls by which rows are written. (Rows that are read together come by the first of them too.)
WRITES = frozenset({b"Multi", b"Mutate"})
#: How long a request that is delayed is on its way: shorter than anybody's patience.
DELAY_SECONDS = 1.0
_ANSWER_SECONDS = 10.0


class Lie(StrEnum):
    """What becomes of a request."""

    CUT = "the connection is cut before it"
    LOSE = "its answer is lost"
    DELAY = "it is delayed"
    SWALLOW = "it is swallowed"
    """Neither is it passed on nor is the connection cut: whoever sent it waits."""
    LATE = "it comes late"
    """The connection is cut before it; it is passed on all the same, when somebody asks for that."""


@dataclass(frozen=True)
class Message:
    """What one end sent at once: of HBase one call or one answer, of Thrift what came together."""

    data: bytes
    #: By which an answer is known; none where answers come in the order of requests.
    call: int | None = None
    method: bytes = b""


@dataclass
class Orders:
    """So many requests are lied about, from the next on that is of these methods (of none: of any). For all threads."""

    left: int = 0
    how: Lie = Lie.CUT
    methods: Collection[bytes] = frozenset()
    #: Whether it is now.
    on: bool = False
    #: How many were, by how.
    told: Counter[Lie] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def give(self, how: Lie, times: int, methods: Collection[bytes] = frozenset()) -> None:
        """Those of before are forgotten."""
        with self._lock:
            self.how, self.left, self.methods = how, times, methods

    def of(self, message: Message) -> Lie | None:
        """What becomes of a request; None: it is passed on."""
        with self._lock:
            if not self.on or not self.left or (self.methods and message.method not in self.methods):
                return None
            self.left -= 1
            self.told[self.how] += 1
            return self.how


@dataclass
class Late:
    """A request that waits, and the server that it is to come to; whether it was answered, or never will be."""

    there: socket.socket
    message: Message
    answered: threading.Event = field(default_factory=threading.Event)


@dataclass
class Passing:
    """What the two directions of a connection know of each other."""

    here: socket.socket
    there: socket.socket
    lost: set[int | None] = field(default_factory=set)
    late: Late | None = None


class LyingRelay(Relay):
    """A relay to a port that passes on whatever comes, as long as it has no other orders."""

    def __init__(self, port: int = 0) -> None:
        self.orders = Orders()
        #: Requests that are to come late.
        self.late: list[Late] = []
        super().__init__(port)

    def deliver(self) -> int:
        """Pass on what is late, and wait until it is answered; how much was."""
        late, self.late = self.late, []
        for each in late:
            with suppress(OSError):  # the server has ended meanwhile, and the connection with it
                each.there.sendall(each.message.data)
                each.answered.wait(_ANSWER_SECONDS)
            hang_up(each.there)
        return len(late)

    def close(self) -> None:
        """Stop listening; nothing comes late any more."""
        super().close()
        for each in self.late:
            hang_up(each.there)

    def _requests(self, here: socket.socket) -> Iterator[Message]:
        return _together(here)

    def _answers(self, there: socket.socket) -> Iterator[Message]:
        return _together(there)

    def _between(self, here: socket.socket, there: socket.socket) -> None:
        passing = Passing(here, there)
        threading.Thread(target=self._pass_requests, args=(passing,), daemon=True).start()
        threading.Thread(target=self._pass_answers, args=(passing,), daemon=True).start()

    def _pass_requests(self, passing: Passing) -> None:
        with suppress(OSError):
            for message in self._requests(passing.here):
                match self.orders.of(message):
                    case Lie.CUT:
                        break
                    case Lie.LATE:
                        passing.late = Late(passing.there, message)
                        self.late.append(passing.late)
                        hang_up(passing.here)
                        return
                    case Lie.SWALLOW:
                        continue
                    case Lie.LOSE:
                        passing.lost.add(message.call)
                    case Lie.DELAY:
                        time.sleep(DELAY_SECONDS)
                passing.there.sendall(message.data)
        hang_up(passing.there)
        hang_up(passing.here)

    def _pass_answers(self, passing: Passing) -> None:
        with suppress(OSError):
            for message in self._answers(passing.there):
                if passing.late is None and message.call not in passing.lost:
                    with suppress(OSError):  # nobody waits for it any more, and yet for one that comes late
                        passing.here.sendall(message.data)
                elif passing.late is None or message.call == passing.late.message.call:
                    break
        if passing.late is not None:
            passing.late.answered.set()
        hang_up(passing.there)
        hang_up(passing.here)


class HBaseRelay(LyingRelay):
    """A relay by SOCKS, version 5, to whichever of HBase's servers the client names."""

    def _reached(self, here: socket.socket) -> socket.socket:
        return socket.create_connection(socks_target(here))

    def _requests(self, here: socket.socket) -> Iterator[Message]:
        yield Message(exactly(here, 6))  # HBas, version, kind of login
        yield Message(frame(here))  # who it is
        while True:
            yield call(frame(here))

    def _answers(self, there: socket.socket) -> Iterator[Message]:
        while True:
            yield call(frame(there))


def _together(source: socket.socket) -> Iterator[Message]:
    while data := source.recv(1 << 16):
        yield Message(data)


# -- bytes


def exactly(source: socket.socket, number: int) -> bytes:
    """So many bytes; ConnectionResetError where there are not so many."""
    data = b""
    while len(data) < number:
        more = source.recv(min(number - len(data), 1 << 16))
        if not more:
            raise ConnectionResetError
        data += more
    return data


def frame(source: socket.socket) -> bytes:
    """A message of HBase's, with its length before it."""
    length = exactly(source, 4)
    return length + exactly(source, int.from_bytes(length, "big"))


def call(data: bytes) -> Message:
    """Number and method of one of HBase's calls, or the number of an answer: protobuf's ``RequestHeader`` and
    ``ResponseHeader`` have the number in field 1, and the first of them the method in field 3.
    """
    size, at = _varint(data, 4)
    end = at + size
    number, method = None, b""
    while at < end:
        tag, at = _varint(data, at)
        value, at = _varint(data, at)
        if tag & 7 == 2:  # bytes, behind their length
            if tag >> 3 == 3:
                method = data[at : at + value]
            at += value
        elif tag >> 3 == 1:
            number = value
    return Message(data, number, method)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def socks_target(here: socket.socket) -> tuple[str, int]:
    """Where a client of SOCKS 5 wants to go; it is told that it is there.

    Raises:
        ConnectionError: it asks for something else than to be connected.
    """
    _, methods = exactly(here, 2)
    exactly(here, methods)
    here.sendall(b"\x05\x00")  # no login
    version, command, _, kind = exactly(here, 4)
    if (version, command) != (5, 1):
        raise ConnectionError((version, command))
    readers: dict[int, Callable[[], Any]] = {
        1: lambda: socket.inet_ntop(socket.AF_INET, exactly(here, 4)),
        3: lambda: exactly(here, exactly(here, 1)[0]).decode(),
        4: lambda: socket.inet_ntop(socket.AF_INET6, exactly(here, 16)),
    }
    host = readers[kind]()
    port = int.from_bytes(exactly(here, 2), "big")
    here.sendall(b"\x05\x00\x00\x01" + bytes(6))
    return host, port
