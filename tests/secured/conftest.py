"""One secured store for all tests here, whose gateway is of each kind in turn."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from secured_kit import ASKING, Gateway, booted, of_kind

from lowtide.lab.stack import Stack


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A secured store, whose gateway asks for a login by SASL and encrypts."""
    with booted(tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture(scope="session", params=ASKING)
def gateway(request: pytest.FixtureRequest, store: Stack, tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    """Each kind of gateway that asks, in turn."""
    return of_kind(store, request.param, tmp_path_factory.mktemp("tickets"))
