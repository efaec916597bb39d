"""Lowtide's own tables and the oracle's, through the gateway or past it, and what the gateway's user may do."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

from lowtide import __version__
from lowtide.check.hops import Look
from lowtide.check.servers import oracle_and_store
from lowtide.config import Config
from lowtide.errors import GatewayError
from lowtide.journal import life
from lowtide.store.gateway import (
    allotted,
    check_and_put,
    check_entries_kept,
    described,
    expiring_entries,
    failures,
    low_watermark,
    no_answer,
    without_bloom_or_cache,
)
from lowtide.store.rows import FORMAT
from lowtide.store.state import StateStore

#: A row that nobody has: no key of the commit table's has its length, nor its first byte.
NOBODYS_ROW = b"lowtide-check-never-there"


def store_looks(config: Config, connection: Callable[[], Any], state: Callable[[], StateStore]) -> dict[str, Look]:
    """What looks at the hops of the store (:data:`lowtide.check.hops.OF_THE_STORE`), whichever way leads there.

    Args:
        config: names the tables and the oracle.
        connection: gives happybase's connection, through the gateway or past it.
        state: gives the state table over it.
    """
    return {
        "format": lambda: state_format(state(), config.state.table),
        "records": lambda: own_tables(connection(), config, state()),
        "commit-table": lambda: commit_table(connection(), config),
        "oracle-store": lambda: oracle_and_store(config.omid.oracle, lambda: oracle_marks(connection(), config)),
    }


def state_format(state: StateStore, table: str) -> str:
    """The format of the records; raises :class:`lowtide.errors.FormatError` where a newer Lowtide wrote them."""
    if not state.exists():
        return f"{table} is not there yet: the first run that acts makes it"
    return judge_format(table, state.written_format())


def judge_format(table: str, found: int) -> str:
    """What to know of records of format *found*, which is no newer one."""
    if found < FORMAT:
        return f"{table} has format {found}, which Lowtide {__version__} reads; the next run that acts writes {FORMAT}"
    return f"{table} has format {found}, as Lowtide {__version__} writes it"


def own_tables(connection: Any, config: Config, state: StateStore) -> str:
    """Whether state and journal keep what they are given, and are there as far as they were made.

    Raises:
        StoreError: one loses rows, or is gone.
    """
    there = connection.tables()
    notes = []
    if state.exists():
        state.check_kept()
        life.checked(connection, state, config.state.journal_table, acting=False)
    for name in (config.state.table, config.state.journal_table):
        if name.encode() not in there:
            notes.append(f"{name} is not there yet")
        elif slow := without_bloom_or_cache(connection, name):
            notes.append(
                f"{name} ({', '.join(slow)}) has no bloom filter or no block cache: the next run that acts mends it"
            )
        else:
            notes.append(f"{name} is in order")
    return "; ".join(notes)


def commit_table(connection: Any, config: Config) -> str:
    """The low watermark that the oracle has stored.

    Raises:
        StoreError: there is none, or the table loses it, or entries, by itself.
    """
    check_entries_kept(expiring_entries(connection, config), config)
    return f"{config.omid.commit_table} has the low watermark {low_watermark(connection, config)}"


def oracle_marks(connection: Any, config: Config) -> tuple[int, int | None]:
    """The low watermark, and the highest timestamp that the oracle has allotted to itself, as HBase has them."""
    known = allotted(connection, config)
    return low_watermark(connection, config), known.timestamp if known else None


def gateway_rights(connection: Any, config: Config) -> str:
    """Whether the gateway's user may read and write the commit table, by HBase's own answer to a write that can never
    be done: it is checked against a value that no cell has.

    Raises:
        GatewayError: HBase refuses it.
    """
    table = config.omid.commit_table
    column = f"{config.omid.commit_family}:lowtide-check".encode()
    nobodys_value = secrets.token_bytes(16)
    try:
        check_and_put(connection, table, NOBODYS_ROW, (column, nobodys_value), (column, nobodys_value))
    except failures() as error:
        if "AccessDenied" not in str(error):
            raise no_answer(
                f"a write to {table} that can never be done", error, "see HBase's log, check again"
            ) from error
        fact = f"the gateway's user may not write to {table} ({described(error)})"
        grant = "grant 'USER', 'RWCA', where USER is the one that the gateway logs in as"
        raise GatewayError(fact, f"as an administrator, in HBase's shell: {grant}") from error
    return f"it may read and write {table}"
