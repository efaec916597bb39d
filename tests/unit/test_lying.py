"""The relays that lie, between a client and a server of Thrift's kind and of HBase's."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from lowtide.lab.waiting import reached
from tests.chaos.lying import WRITES, HBaseRelay, Lie, LyingRelay, Message, call, exactly, frame


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def request(number: int, method: bytes) -> bytes:
    """As HBase's client has it: field 1, the number; field 3, the method; a parameter behind the header."""
    header = b"\x08" + _varint(number) + b"\x1a" + bytes([len(method)]) + method + b"\x20\x01"
    return sized(bytes([len(header)]) + header + b"\x03abc")


def answer(number: int) -> bytes:
    header = b"\x08" + _varint(number)
    return sized(bytes([len(header)]) + header + b"\x02ok")


def _varint(value: int) -> bytes:
    low, high = value & 127, value >> 7
    return bytes([low | 128]) + _varint(high) if high else bytes([low])


class Server:
    """Answers every client by *serve*, and keeps what it got."""

    def __init__(self, serve: Callable[[socket.socket, list[bytes]], None]) -> None:
        self.got: list[bytes] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._serve = serve
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(client,), daemon=True).start()

    def _answer(self, client: socket.socket) -> None:
        try:
            self._serve(client, self.got)
        except OSError:
            client.close()

    def close(self) -> None:
        self._listener.close()


def echo(client: socket.socket, got: list[bytes]) -> None:
    while data := client.recv(100):
        got.append(data)
        client.sendall(data.upper())


def hbase(client: socket.socket, got: list[bytes]) -> None:
    exactly(client, 6)
    frame(client)
    while True:
        asked = frame(client)
        got.append(asked)
        number = call(asked).call
        assert number is not None
        client.sendall(answer(number))


@pytest.fixture
def gateway() -> Iterator[tuple[Server, LyingRelay]]:
    server = Server(echo)
    relay = LyingRelay(server.port)
    relay.orders.on = True
    yield server, relay
    relay.close()
    server.close()


@pytest.fixture
def servers() -> Iterator[tuple[Server, HBaseRelay]]:
    server = Server(hbase)
    relay = HBaseRelay()
    relay.orders.on = True
    yield server, relay
    relay.close()
    server.close()


def client(relay: LyingRelay) -> socket.socket:
    return socket.create_connection(("127.0.0.1", relay.port), 0.5)


def through(relay: HBaseRelay, server: Server) -> socket.socket:
    """A client of HBase that the relay has led to the server."""
    made = client(relay)
    made.sendall(b"\x05\x01\x00")
    assert exactly(made, 2) == b"\x05\x00"
    made.sendall(b"\x05\x01\x00\x03\x09127.0.0.1" + server.port.to_bytes(2, "big"))
    assert exactly(made, 10)[:2] == b"\x05\x00"
    made.sendall(b"HBas\x00\x50" + sized(b"who"))
    return made


def said(end: socket.socket) -> bytes | str:
    """What comes; or how it ends."""
    try:
        return end.recv(100) or "cut"
    except TimeoutError:
        return "nothing"
    except ConnectionError:
        return "cut"


def test_a_relay_without_orders_passes_on(gateway: tuple[Server, LyingRelay]) -> None:
    """And one that has some and is off does too."""
    server, relay = gateway
    end = client(relay)
    end.sendall(b"one")
    assert said(end) == b"ONE"
    relay.orders.give(Lie.CUT, 1)
    relay.orders.on = False
    end.sendall(b"two")
    assert (said(end), server.got) == (b"TWO", [b"one", b"two"])


@pytest.mark.parametrize(
    ("how", "got", "heard"),
    [(Lie.CUT, [], "cut"), (Lie.LOSE, [b"one"], "cut"), (Lie.SWALLOW, [], "nothing"), (Lie.LATE, [], "cut")],
)
def test_what_a_lie_is(gateway: tuple[Server, LyingRelay], how: Lie, got: list[bytes], heard: str) -> None:
    """What the server got, and what the client heard; the next connection is well, and it is counted."""
    server, relay = gateway
    relay.orders.give(how, 1)
    end = client(relay)
    end.sendall(b"one")
    assert (said(end), server.got) == (heard, got)
    again = client(relay)
    again.sendall(b"one")
    assert said(again) == b"ONE"
    assert dict(relay.orders.told) == {how: 1}


def test_what_is_delayed_comes(gateway: tuple[Server, LyingRelay], monkeypatch: pytest.MonkeyPatch) -> None:
    """Later than a client that waits less, and once."""
    server, relay = gateway
    relay.orders.give(Lie.DELAY, 1)
    end = client(relay)
    end.sendall(b"one")
    assert said(end) == "nothing"
    end.settimeout(5)
    assert (said(end), server.got) == (b"ONE", [b"one"])


def test_calls_of_hbases_are_told_apart() -> None:
    """Number and method of a call, however large the number is; an answer has no method."""
    for number in (0, 1, 127, 128, 70_000):
        asked, answered = request(number, b"Multi"), answer(number)
        assert call(asked) == Message(asked, number, b"Multi")
        assert call(answered) == Message(answered, number, b"")


def test_of_hbases_calls_the_one_that_is_meant_loses_its_answer(servers: tuple[Server, HBaseRelay]) -> None:
    """Those before it on the same connection have theirs; the server got all of them."""
    server, relay = servers
    relay.orders.give(Lie.LOSE, 1, WRITES)
    end = through(relay, server)
    end.sendall(request(1, b"Scan") + request(2, b"Mutate") + request(3, b"Scan"))
    heard = b""
    while isinstance(more := said(end), bytes):
        heard += more
    assert (heard, more) == (answer(1), "cut")
    assert reached(lambda: [call(one).call for one in server.got][:2] == [1, 2], 5, pause=0.01)


def test_a_request_of_hbases_comes_late_when_it_is_asked_for(servers: tuple[Server, HBaseRelay]) -> None:
    """Its client is cut off before; the server gets it then, and not before, whole and once."""
    server, relay = servers
    relay.orders.give(Lie.LATE, 1, WRITES)
    end = through(relay, server)
    asked = request(7, b"Multi")
    end.sendall(request(6, b"Get") + asked)
    assert said(end) in (answer(6), "cut")
    assert reached(lambda: len(relay.late) == 1, 5, pause=0.01)
    assert asked not in server.got
    assert relay.deliver() == 1
    assert server.got.count(asked) == 1
    assert (relay.deliver(), relay.late) == (0, [])


def test_who_asks_socks_for_something_else_is_cut_off(servers: tuple[Server, HBaseRelay]) -> None:
    """Nothing but connections is given; the relay goes on for others."""
    server, relay = servers
    end = client(relay)
    end.sendall(b"\x05\x01\x00")
    exactly(end, 2)
    end.sendall(b"\x05\x02\x00\x01\x7f\x00\x00\x01\x00\x50")
    assert said(end) == "cut"
    well = through(relay, server)
    well.sendall(request(1, b"Get"))
    assert said(well) == answer(1)
