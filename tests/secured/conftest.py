"""One secured store for all tests here, whose gateway is of each kind in turn."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from secured_kit import ASKING, Gateway, of_kind

from lowtide.lab.stack import Stack, free_ports_config, secured


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A secured store, whose gateway asks for a login by SASL and encrypts."""
    config = free_ports_config(
        tmp_path_factory.mktemp("store"), secured=True, hbase_heap="512m", timestamps="incremental"
    )
    store = Stack(config)
    before = os.environ.get("KRB5_CONFIG")
    try:
        store.up()
        os.environ["KRB5_CONFIG"] = str(secured.krb5_conf(config))
        yield store
    finally:
        store.down()
        os.environ.pop("KRB5_CONFIG", None)
        if before:
            os.environ["KRB5_CONFIG"] = before


@pytest.fixture(scope="session", params=ASKING)
def gateway(request: pytest.FixtureRequest, store: Stack, tmp_path_factory: pytest.TempPathFactory) -> Gateway:
    """Each kind of gateway that asks, in turn."""
    return of_kind(store, request.param, tmp_path_factory.mktemp("tickets"))
