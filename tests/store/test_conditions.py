"""What one can wait for, looked at on a real store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from conftest import Outcome
from ledger_kit import made
from relay import Relay
from scene import Scene

from lowtide.conditions import (
    CommitTableLarger,
    LowWatermarkPast,
    RegionWatermarkPast,
    TransactionIs,
    TransactionsSettled,
    TransactionsStuck,
    look,
)
from lowtide.config import load
from lowtide.errors import GatewayError
from lowtide.stack import Stack
from lowtide.state import StateStore
from lowtide.workload import OmidClient

pytestmark = pytest.mark.usefixtures("swept")

PAST, FUTURE = "2026-01-01T00:00:00Z", "2100-01-01T00:00:00Z"


def test_the_store(
    job: Callable[..., Outcome], scene: Scene, omid: OmidClient, state: StateStore, configure: Callable[..., Path]
) -> None:
    """The commit table's size, the low watermark and a table's region watermark, before and after they are reached."""
    config = load(configure())
    table = scene.table()
    state.create()
    state.add_sample(datetime(2026, 1, 1, tzinfo=UTC), omid.begin())
    omid.advance_watermark()
    omid.add_commit_entry(omid.begin(), omid.begin())
    assert look(CommitTableLarger(than=0), config).met
    assert not look(CommitTableLarger(than=100_000), config).met
    assert look(LowWatermarkPast(past=PAST), config).met
    assert not look(LowWatermarkPast(past=FUTURE), config).met
    clean = RegionWatermarkPast(table=table, past=PAST)
    assert "nothing yet" in look(clean, config).text
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    assert job("watermark_collection", "--execute").code == 0
    assert look(clean, config).met
    assert not look(RegionWatermarkPast(table=table, past=FUTURE), config).met


def test_the_ledger(configure: Callable[..., Path], stack: Stack) -> None:
    """An open transaction is stuck, holds back what is settled, and is waited for; a gateway that breaks off is named."""
    books = made(configure, grace="0s")
    assert books.stopped(lambda book: book.transfer("issuer", "ann", 5), 4, "after")
    (entry,) = books.entries()
    at = datetime.fromtimestamp(entry.timestamp / 1000 + 0.001, UTC).isoformat()
    settled, stuck, ended = TransactionsSettled(past=at), TransactionsStuck(older_than="0s"), TransactionIs(entry.id)
    seen = [look(condition, books.config).met for condition in (settled, stuck, ended)]
    assert seen == [False, True, False]
    assert not look(TransactionsStuck(older_than="0s", more_than=1), books.config).met
    assert not look(TransactionsStuck(older_than="1h"), books.config).met
    with books.open() as book:
        book.repair(entry)
    seen = [look(condition, books.config).met for condition in (settled, stuck, ended)]
    assert seen == [True, False, True]
    assert not look(TransactionsSettled(past=FUTURE), books.config).met
    relay = Relay(stack.config.thrift_port)
    relay.close()
    thrift = books.config.hbase.thrift.model_copy(update={"port": relay.port})
    away = books.config.model_copy(update={"hbase": books.config.hbase.model_copy(update={"thrift": thrift})})
    with pytest.raises(GatewayError, match=f"127.0.0.1:{relay.port}"):
        look(settled, away)
