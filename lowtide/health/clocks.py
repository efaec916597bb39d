"""The times that conditions go by: HBase's, and that of the oracle's timestamps; refused where the clocks differ."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from lowtide.config import Config
from lowtide.errors import StoreError, UsageError
from lowtide.store.gateway import allotted
from lowtide.store.state import StateStore
from lowtide.values.clock import WorldClock, is_world, millis
from lowtide.values.skew import machine_apart, oracle_ahead, oracle_apart, refusal


def hbase_time(config: Config, connection: Any) -> int:
    """HBase's time, ms: the age of a record goes by it, whatever this machine's clock shows.

    HBase tells it by what it stamps: a row of the state table is put, read and deleted again.

    Raises:
        StoreError: there is no state table; or this machine's clock differs, so that one of the two is wrong.
    """
    state = StateStore(connection, config.state.table)
    if not state.exists():
        msg = (
            f"there is no table {config.state.table} to ask HBase for its time by: no run has acted on this store yet. "
            "Run `lowtide run transaction_repair --execute` once, which makes it, or correct state.table"
        )
        raise StoreError(msg)
    here, server = datetime.now(UTC), state.server_time()
    if apart := machine_apart(here, server):
        raise StoreError(refusal(apart))
    return millis(server)


def time_reached(timestamp: int, watermark: int, config: Config, connection: Any, kind: str) -> int | None:
    """The time, ms, such that all that began before it is at or below *timestamp*; None: nothing yet.

    A counter's timestamps have no such time: a sample of one, a time and a low watermark, means that the oracle was
    there or beyond, so whoever waited for it would go on too early. The highest timestamp that it has allotted to
    itself is never too low, but may be days away.

    Raises:
        UsageError: the oracle counts.
        StoreError: its clock is not that of HBase.
    """
    known = allotted(connection, config)
    highest = max(watermark, known.timestamp if known else 0)
    if config.omid.clock == "incremental" or (highest and not is_world(highest)):
        msg = (
            f"{kind}: the timestamps of this oracle are a counter (it is at {highest}), which have no times. Schedule "
            "on the asset lowtide://store/marked, which watermark_collection updates, or give the oracle the world's "
            "clock (timestampType: WORLD_TIME)"
        )
        raise UsageError(msg)
    ahead = oracle_ahead(known)
    if known and (apart := oracle_apart(ahead, 0, known.written)):
        raise StoreError(refusal(apart))
    at = WorldClock().time(timestamp) if timestamp else None
    # Where the oracle's clock is a little ahead it gave the timestamp earlier than the timestamp shows.
    return None if at is None else millis(at) - max(0, millis_of(ahead or timedelta()))


def millis_of(duration: timedelta) -> int:
    """Whole milliseconds."""
    return duration // timedelta(milliseconds=1)
