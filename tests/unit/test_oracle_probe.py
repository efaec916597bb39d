"""When the oracle counts as up: one of its addresses takes a connection."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from lowtide.store.oracle_probe import unreachable


@pytest.fixture
def up() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def down() -> str:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_one_address_that_answers_is_enough(up: str, down: str) -> None:
    """Of an oracle with a standby one address takes no connection."""
    assert unreachable([up], 1) == unreachable([down, up], 1) == ""


def test_none_that_answers_is_named_with_all_that_were_asked(down: str) -> None:
    """And nothing is asked where nothing is configured."""
    assert unreachable([down, "127.0.0.1:1"], 1) == f"the oracle does not answer at {down}, 127.0.0.1:1"
    assert unreachable([], 1) == ""
