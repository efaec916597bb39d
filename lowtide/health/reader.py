"""Reading a store once, for all that show its state: ``status``, ``explain``, the report, the page in Airflow.

All is small reads through the Thrift gateway: the state table, the low watermark, the index of the ledger; and one
connection to the oracle. At most 23 reads (a row, or a batch of a scan), however many tables and regions there are;
tests/store/test_health.py counts them.

Two read the store for themselves, since they do not show it: ``survey`` is a job of Spark that reads every cell, and
what goes to Airflow's metrics is a job's own summary.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any

from lowtide.config import Config
from lowtide.errors import FormatError, GatewayError, LedgerError, StoreError
from lowtide.health.reading import LedgerReading, Reading
from lowtide.ledger import settled, steps
from lowtide.ledger.model import Table
from lowtide.ledger.store import Tables
from lowtide.store import oracle_probe
from lowtide.store.gateway import allotted, connect, described, failures, low_watermark, tables_there, text_of
from lowtide.store.permissions import denial
from lowtide.store.records import Outcomes
from lowtide.store.state import StateStore
from lowtide.values.clock import from_millis, millis, on_world_clock

#: How many prune bounds and runs are read, newest first, where nobody asks for more.
BOUNDS = 60
RUNS = 60
#: How many stuck transactions are counted.
STUCK = 1000
_ORACLE_SECONDS = 1.0


def read(config: Config, attempts: int = 2) -> Reading:
    """The store as it is now. A gateway that does not answer, or an HBase behind it, is no error: the result has the
    reason.
    """
    now = datetime.now(UTC)
    try:
        with connect(config.hbase.thrift, attempts) as connection:
            return read_through(connection, config, now)
    except (GatewayError, FormatError) as error:  # the remedy is the finding's
        return Reading(now, unreachable=error.fact, newer=isinstance(error, FormatError))
    except Exception as error:  # the gateway's own errors, and connections that break half-way
        thrift = config.hbase.thrift
        where = f"reading through the gateway at {thrift.host}:{thrift.port} failed"
        return Reading(now, unreachable=f"{where}: {denial(text_of(error)) or described(error)}")


def read_through(connection: Any, config: Config, now: datetime, runs: int = RUNS) -> Reading:
    """What :func:`read` returns, read through *connection*, with the last *runs*.

    Raises:
        FormatError: a newer Lowtide wrote the records.
    """
    listed = tables_there(connection)
    state = StateStore(connection, config.state.table, there=config.state.table.encode() in listed)
    current, problem = None, ""
    try:
        current = low_watermark(connection, config, listed)
    except failures(StoreError) as error:
        problem = str(error) if isinstance(error, StoreError) else denial(text_of(error))
        if not problem:
            raise
    recorded = state.recorded_low_watermark()
    world = on_world_clock(config.omid.clock, max(current or 0, recorded.low_watermark if recorded else 0))
    last = tuple(state.runs(runs)) if runs else ()
    return Reading(
        at=now,
        state_format=state.format_read,
        low_watermark=current,
        low_watermark_problem=problem,
        oracle_problem=oracle_probe.unreachable(config.omid.oracle, _ORACLE_SECONDS),
        allotted=allotted(connection, config, listed),
        recorded=(recorded.low_watermark, recorded.at) if recorded else None,
        went_back=recorded.back if recorded else None,
        listed=frozenset(name.decode() for name in listed),
        bounds=tuple(state.bounds(BOUNDS)),
        inventory=tuple(state.inventory()),
        watermarks=state.watermarks(),
        runs=last,
        more_runs=len(last) == runs,
        outcomes=state.outcomes() if state.seen else Outcomes(),
        commit_counts=tuple(state.commit_counts()),
        clock_kind=config.omid.clock,
        samples=() if world else tuple(state.samples()),
        histories=tuple(state.histories()),
        holds=tuple(state.holds()),
        pauses=tuple(state.pauses()),
        uncompacted=state.all_uncompacted(),
        ledger=_ledger(connection, config, now, listed),
    )


def _ledger(connection: Any, config: Config, now: datetime, listed: Collection[bytes]) -> LedgerReading | None:
    tables = Tables(connection, config.ledger.prefix)
    if tables.name(Table.OPEN).encode() not in listed:
        return None
    try:
        mark, _ = steps.run(settled.read_settled(), tables)
        end = max(mark.mark, millis(now - config.ledger.grace))
        entries = steps.run(settled.open_entries(mark.mark, end, limit=STUCK), tables)
    except (LedgerError, FormatError) as error:  # of the mark alone: the records are read all the same
        return LedgerReading(problem=str(error))
    except failures() as error:
        if not (denied := denial(text_of(error))):
            raise
        return LedgerReading(problem=denied)
    oldest = from_millis(entries[0].timestamp) if entries else None
    return LedgerReading(mark, len(entries), len(entries) == STUCK, oldest)
