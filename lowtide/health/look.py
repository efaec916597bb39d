"""Reading what :mod:`lowtide.health` judges: the state table and the low watermark, through the Thrift gateway.

At most 20 reads (a row, or a batch of a scan), however many tables and regions there are; tests/store/test_health.py counts them.
"""

from __future__ import annotations

import socket
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from lowtide.config import Config
from lowtide.errors import FormatError, GatewayError, LedgerError, StoreError
from lowtide.health import LedgerSeen, Seen
from lowtide.ledger import settled, steps
from lowtide.ledger.model import Table
from lowtide.ledger.store import Tables
from lowtide.store.gateway import allotted, connect, low_watermark
from lowtide.store.state import StateStore
from lowtide.values.clock import EPOCH, millis, on_world_clock

#: How many prune bounds and runs are read, newest first.
BOUNDS = 60
RUNS = 60
#: How many stuck transactions are counted.
STUCK = 1000
_ORACLE_SECONDS = 1.0


def look(config: Config, attempts: int = 2) -> Seen:
    """The store as it is now. A gateway that does not answer, or an HBase behind it, is no error: the result says so."""
    now = datetime.now(UTC)
    try:
        with connect(config.hbase.thrift, attempts) as connection:
            return observe(connection, config, now)
    except GatewayError as error:
        return Seen(now, unreachable=str(error).partition("; ")[0])  # the remedy is the finding's
    except FormatError as error:
        return Seen(now, unreachable=str(error), newer=True)
    except Exception as error:  # the gateway's own errors, and connections that break half-way
        text, thrift = str(error).strip().splitlines(), config.hbase.thrift
        where = f"reading through the gateway at {thrift.host}:{thrift.port} failed"
        return Seen(now, unreachable=f"{where}: {type(error).__name__}: {text[0] if text else ''}")


def observe(connection: Any, config: Config, now: datetime) -> Seen:
    """What :func:`look` returns, read through *connection*."""
    listed = connection.tables()
    state = StateStore(connection, config.state.table, there=config.state.table.encode() in listed)
    current, problem = None, ""
    try:
        current = low_watermark(connection, config, listed)
    except StoreError as error:
        problem = str(error)
    recorded = state.low_watermark_seen()
    world = on_world_clock(config.omid.clock, max(current or 0, recorded.low_watermark if recorded else 0))
    runs = tuple(state.runs(RUNS))
    return Seen(
        at=now,
        low_watermark=current,
        low_watermark_problem=problem,
        oracle_problem=_unanswered(config.omid.oracle),
        allotted=allotted(connection, config, listed),
        recorded=(recorded.low_watermark, recorded.at) if recorded else None,
        went_back=recorded.back if recorded else None,
        listed=frozenset(name.decode() for name in listed),
        bounds=tuple(state.bounds(BOUNDS)),
        inventory=tuple(state.inventory()),
        watermarks=state.watermarks(),
        runs=runs,
        more_runs=len(runs) == RUNS,
        commit_counts=tuple(state.commit_counts()),
        clock_kind=config.omid.clock,
        samples=() if world else tuple(state.samples()),
        histories=tuple(state.histories()),
        holds=tuple(state.holds()),
        uncompacted=state.all_uncompacted(),
        ledger=_ledger(connection, config, now, listed),
    )


def _ledger(connection: Any, config: Config, now: datetime, listed: Collection[bytes]) -> LedgerSeen | None:
    tables = Tables(connection, config.ledger.prefix)
    if tables.name(Table.OPEN).encode() not in listed:
        return None
    try:
        mark, _ = steps.run(settled.read_settled(), tables)
        end = max(mark.mark, millis(now - config.ledger.grace))
        entries = steps.run(settled.open_entries(mark.mark, end, limit=STUCK), tables)
    except LedgerError as error:
        return LedgerSeen(problem=str(error))
    oldest = EPOCH + timedelta(milliseconds=entries[0].timestamp) if entries else None
    return LedgerSeen(mark, len(entries), len(entries) == STUCK, oldest)


def _unanswered(addresses: Sequence[str]) -> str:
    """Why the oracle counts as down; empty where one of its addresses answers, or none is configured."""
    for address in addresses:
        host, _, port = address.rpartition(":")
        try:
            socket.create_connection((host, int(port)), timeout=_ORACLE_SECONDS).close()
        except OSError:
            continue
        return ""
    return f"the oracle does not answer at {', '.join(addresses)}" if addresses else ""
