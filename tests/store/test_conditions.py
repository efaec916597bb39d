"""What one can wait for, looked at on a real store."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from ledger_kit import made
from relay import Relay
from scene import Scene

from lowtide.config import load
from lowtide.errors import GatewayError, StoreError, UsageError
from lowtide.health import clocks
from lowtide.health.conditions import (
    CommitTableLarger,
    LowWatermarkPast,
    RegionWatermarkPast,
    TransactionIs,
    TransactionsSettled,
    TransactionsStuck,
    check,
)
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.ledger.model import Table
from lowtide.ledger.settled import Settled
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore
from lowtide.values.clock import WorldClock
from lowtide.values.formats import (
    ALLOTTED_QUALIFIER,
    ALLOTTED_ROW,
    LOW_WATERMARK_QUALIFIER,
    LOW_WATERMARK_ROW,
    encode_long,
)
from lowtide.values.skew import ALLOTTED_AHEAD

pytestmark = pytest.mark.usefixtures("swept")

FUTURE = "2100-01-01T00:00:00Z"


def test_the_commit_tables_size(omid: OmidClient, configure: Callable[..., Path]) -> None:
    """More rows than a number, and not more."""
    config = load(configure())
    omid.add_commit_entry(omid.begin(), omid.begin())
    assert check(CommitTableLarger(than=0), config).met
    assert not check(CommitTableLarger(than=100_000), config).met


def test_of_a_counter_no_time_is_waited_for(
    omid: OmidClient, scene: Scene, state: StateStore, configure: Callable[..., Path]
) -> None:
    """A sample pairs a time with the low watermark, and the oracle was further by then: a transaction that began before
    the sample and after its low watermark may still commit, when the low watermark has got to the sample's."""
    table, config = scene.table(), load(configure())
    state.create()
    watermark = omid.advance_watermark()
    began = omid.begin()
    sampled = datetime.now(UTC)
    state.add_sample(sampled, watermark)
    assert began > watermark, "it may still commit, and began before the sample"
    region = {"region": "r", "start": "", "stop": "", "watermark": watermark}
    state.put_watermarks(table, {"at": 0, "low_watermark": watermark, "regions": [region]})
    for condition in (
        LowWatermarkPast(past=sampled.isoformat()),
        RegionWatermarkPast(table=table, past=sampled.isoformat()),
    ):
        for clock in ("auto", "incremental", "world"):
            counting = config.model_copy(update={"omid": config.omid.model_copy(update={"clock": clock})})
            with pytest.raises(UsageError, match=f"{condition.kind}: .* a counter .* lowtide://store/marked"):
                check(condition, counting)


def test_of_the_worlds_clock_a_time_is_waited_for(
    scene: Scene, omid: OmidClient, state: StateStore, configure: Callable[..., Path]
) -> None:
    """From the millisecond on, by HBase's clock; with an oracle whose clock is off, never. A new store's low watermark
    is 0: nothing yet.
    """
    now = datetime.now(UTC).replace(microsecond=0)
    commits, stored, table = scene.table(("F", "LWF")), scene.table(("MAX_TIMESTAMP_CF",)), scene.table()
    config = load(configure(omid={"commit_table": commits, "timestamp_table": stored}))
    written = int(now.timestamp() * 1000)
    low, region = LowWatermarkPast(past=now.isoformat()), RegionWatermarkPast(table=table, past=now.isoformat())

    def set_up(watermark: int, ahead: timedelta = timedelta()) -> None:
        omid.put(commits, LOW_WATERMARK_ROW, b"LWF", LOW_WATERMARK_QUALIFIER, written, encode_long(watermark))
        until = encode_long(WorldClock().timestamp(now + ahead + ALLOTTED_AHEAD))
        omid.put(stored, ALLOTTED_ROW, b"MAX_TIMESTAMP_CF", ALLOTTED_QUALIFIER, written, until)
        state.create()
        told = {"region": "r", "start": "", "stop": "", "watermark": watermark}
        state.put_watermarks(table, {"at": 0, "low_watermark": watermark, "regions": [told]})

    millisecond, second = timedelta(milliseconds=1), timedelta(seconds=1)
    for watermark, ahead, met in (
        (0, 0, False),
        (WorldClock().timestamp(now - millisecond), 0, False),
        (WorldClock().timestamp(now), 0, True),
        (WorldClock().timestamp(now), -50, True),
        (WorldClock().timestamp(now + 49 * second), 50, False),
        (WorldClock().timestamp(now + 50 * second), 50, True),
    ):
        set_up(watermark, ahead * second)
        for condition in (low, region):
            assert check(condition, config).met is met, (condition.kind, watermark, ahead)
    for off in (3600, -3600, 86400, -86400):
        set_up(WorldClock().timestamp(now + timedelta(days=2)), off * second)
        for condition in (low, region):
            with pytest.raises(StoreError, match=f"the oracle's clock is {abs(off):,} s"):
                check(condition, config)


class Fast(datetime):
    """The clock of a worker that is 50 seconds ahead."""

    @classmethod
    def now(cls, _: object = None) -> datetime:  # type: ignore[override]
        return datetime.now(UTC) + timedelta(seconds=50)


def test_the_ledger(
    configure: Callable[..., Path], state: StateStore, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An open transaction is stuck, holds back what is settled, and is waited for; a gateway that breaks off is named,
    and so are clocks that differ.
    """
    books = made(configure, grace="0s", allow_short_grace=True)
    state.create()  # as the first run that acts does
    assert books.stopped(lambda book: book.transfer("issuer", "ann", 5), 4, "after")
    (entry,) = books.entries()
    at = datetime.fromtimestamp(entry.timestamp / 1000 + 0.001, UTC).isoformat()
    settled, stuck, ended = TransactionsSettled(past=at), TransactionsStuck(older_than="0s"), TransactionIs(entry.id)
    seen = [check(condition, books.config).met for condition in (settled, stuck, ended)]
    assert seen == [False, True, False]
    assert not check(TransactionsStuck(older_than="0s", more_than=1), books.config).met
    assert not check(TransactionsStuck(older_than="1h"), books.config).met
    with books.open() as book:
        book.repair(entry)
    unknown = check(settled, books.config)
    assert not unknown.met, "an index that was emptied looks the same"
    assert "no full check" in unknown.text
    with connect(books.config.hbase.thrift) as connection:  # as the first run that acts does
        mark = Settled(full_at=entry.timestamp).encode().encode()
        connection.table(f"{books.config.ledger.prefix}{Table.OPEN}").put(b"settled", {b"l:mark": mark})
    seen = [check(condition, books.config).met for condition in (settled, stuck, ended)]
    assert seen == [True, False, True]
    assert not check(TransactionsSettled(past=FUTURE), books.config).met
    for off in (3600, -3600, 86400, -86400):
        with monkeypatch.context() as patched:
            patched.setattr(StateStore, "server_time", lambda _, off=off: datetime.now(UTC) + timedelta(seconds=off))
            for condition in (settled, stuck):
                with pytest.raises(StoreError, match=f"the clock of this machine is {abs(off):,} s"):
                    check(condition, books.config)
    # What began less than the grace ago by HBase's clock is not settled, whatever a worker's says.
    patient = books.config.model_copy(
        update={"ledger": books.config.ledger.model_copy(update={"grace": timedelta(seconds=40)})}
    )
    with monkeypatch.context() as patched:
        patched.setattr(clocks, "datetime", Fast)
        assert not check(TransactionsSettled(past=datetime.now(UTC).isoformat()), patient).met
    relay = Relay(stack.config.thrift_port)
    relay.close()
    thrift = books.config.hbase.thrift.model_copy(update={"port": relay.port})
    away = books.config.model_copy(update={"hbase": books.config.hbase.model_copy(update={"thrift": thrift})})
    with pytest.raises(GatewayError, match=f"127.0.0.1:{relay.port}"):
        check(settled, away)
