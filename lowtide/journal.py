"""The journal: what was pruned from the commit table, and what a person decided; the proof for cells that come back.

A row a transaction, with the commit table's key, family ``j``: ``C``, the commit timestamp, or ``IT``, an invalidation mark. It is kept for ever
unless ``state.journal_keep`` says otherwise; what was let go of is remembered as a *horizon* in the state table. At or below it a transaction that
nothing proves may have committed, where its cell lies in a key range that was not under watch from before the proof went: one of a table that
came back from a snapshot, say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lowtide.cleaned import Fact, cleaned_intervals
from lowtide.config import Config
from lowtide.errors import StoreError, UsageError
from lowtide.formats import (
    CHECKPOINTS,
    COMMIT_QUALIFIER,
    INVALID_QUALIFIER,
    INVALID_VALUE,
    commit_key,
    encode_long,
)
from lowtide.gateway import low_watermark
from lowtide.keyranges import KeyRange

FAMILY = "j"


@dataclass(frozen=True, slots=True)
class Journal:
    """What the state remembers of it: whether it was ever made, and the greatest start timestamp, inclusive, that it let go of; 0: none."""

    there: bool = False
    horizon: int = 0


def check_there(journal: Journal, name: str, *, listed: bool) -> None:
    """Refuse to take a journal that is missing for an empty one.

    Args:
        journal: as remembered.
        name: of its table.
        listed: whether HBase has that table.

    Raises:
        StoreError: it was there, and is not any more.
    """
    if journal.there and not listed:
        msg = (
            f"the journal {name} is gone: it was dropped, state.journal_table names another now, or HBase does not list it to the gateway's user. "
            "It holds the only proofs of what was pruned, so nothing is decided without it. Restore it, or correct the configuration; where it is "
            "lost for good: lowtide journal lost"
        )
        raise StoreError(msg)


def unwatched(keys: KeyRange, facts: Sequence[Fact], horizon: int) -> bool:
    """Whether cells at or below the *horizon* may have come into *keys* since the journal let go of their proofs.

    Args:
        keys: the range.
        facts: valid ones of the time before the run.
        horizon: inclusive; 0: the journal has let go of nothing.
    """
    return horizon > 0 and not cleaned_intervals(keys, facts).covers(0, horizon + 1)


def check_decision(connection: Any, config: Config, start: int, commit: int | None, anew: int = 0) -> None:
    """Refuse to decide what cannot be meant, or what is decided.

    Args:
        connection: of :func:`lowtide.gateway.connect`.
        config: names the tables.
        start: timestamp of the transaction.
        commit: its commit timestamp; None: it never committed.
        anew: wall-clock ms (:meth:`lowtide.state.StateStore.numbered_anew`). What the journal has from before it proves nothing to a cleanup.

    Raises:
        UsageError: *start* is no transaction's, or *commit* no later.
        StoreError: the commit table or the journal says something of it already.
    """
    _check_numbers(start, commit)
    omid, names = config.omid, connection.tables()
    for table, family, since in (
        (omid.commit_table, omid.commit_family, 0),
        (config.state.journal_table, FAMILY, anew),
    ):
        if table.encode() in names:
            cells = connection.table(table).row(commit_key(start), include_timestamp=True)
            row = {column: value for column, (value, written) in cells.items() if written >= since}
            _check_silent(row, table, family, start, commit)


def _check_numbers(start: int, commit: int | None) -> None:
    if start <= 0 or start % CHECKPOINTS:
        msg = f"{start} is no start timestamp: those are multiples of {CHECKPOINTS}. `orphan_cleanup` names those that nothing decides"
        raise UsageError(msg)
    if commit is not None and commit < start + CHECKPOINTS:
        msg = f"{commit} is no commit timestamp of it: a transaction that began at {start} commits at {start + CHECKPOINTS} or later"
        raise UsageError(msg)


def check_overruled(connection: Any, config: Config, start: int, commit: int) -> None:
    """Refuse to say that a transaction which was taken for aborted committed then, where something says otherwise; its mark does not count.

    Args:
        connection: of :func:`lowtide.gateway.connect`.
        config: names the tables.
        start: timestamp of the transaction.
        commit: its commit timestamp.

    Raises:
        UsageError: *start* is no transaction's, or *commit* no later than it or above the low watermark.
        StoreError: the commit table has its entry, or the journal another commit timestamp.
    """
    _check_numbers(start, commit)
    if commit > (watermark := low_watermark(connection, config)):
        msg = f"{commit} is above the low watermark {watermark}: whatever a cleanup removed had committed before that, or never"
        raise UsageError(msg)
    omid = config.omid
    if f"{omid.commit_family}:".encode() + COMMIT_QUALIFIER in connection.table(omid.commit_table).row(
        commit_key(start)
    ):
        msg = f"{omid.commit_table} has an entry of transaction {start}: restore its cells without this, and orphan_cleanup --full heals them by that"
        raise StoreError(msg)
    found = _journaled(connection, config, start).get(f"{FAMILY}:".encode() + COMMIT_QUALIFIER)
    if found not in (None, encode_long(commit)):
        msg = f"{config.state.journal_table} says that transaction {start} committed at {int.from_bytes(found, 'big')}, not at {commit}"
        raise StoreError(msg)


def _journaled(connection: Any, config: Config, start: int) -> Mapping[bytes, bytes]:
    name = config.state.journal_table
    return connection.table(name).row(commit_key(start)) if name.encode() in connection.tables() else {}


def _check_silent(row: Mapping[bytes, bytes], table: str, family: str, start: int, commit: int | None) -> None:
    entry, mark = (row.get(f"{family}:".encode() + column) for column in (COMMIT_QUALIFIER, INVALID_QUALIFIER))
    if entry is not None or (mark is not None and commit is not None):
        said = "that it never committed" if mark is not None else "when it committed"
        msg = f"{table} holds a proof of transaction {start}, {said}: orphan_cleanup goes by it, and nothing is left to decide"
        raise StoreError(msg)


def decide(connection: Any, config: Config, start: int, commit: int | None, anew: int = 0) -> None:
    """Put what became of a transaction into the journal; arguments as for :func:`check_decision`. The journal is made where there is none.

    A mark beside the commit goes; until then the commit outranks it. So does what the journal has from before *anew*: while it is there the row
    decides nothing.
    """
    name = config.state.journal_table
    if name.encode() not in connection.tables():
        connection.create_table(
            name, {FAMILY: {"max_versions": 1, "bloom_filter_type": "ROW", "block_cache_enabled": True}}
        )
    column, value = (INVALID_QUALIFIER, INVALID_VALUE) if commit is None else (COMMIT_QUALIFIER, encode_long(commit))
    table, row = connection.table(name), commit_key(start)
    table.put(row, {FAMILY.encode() + b":" + column: value})
    if commit is not None:
        table.delete(row, columns=[FAMILY.encode() + b":" + INVALID_QUALIFIER])
    elif anew:
        table.delete(row, columns=[FAMILY.encode() + b":" + COMMIT_QUALIFIER], timestamp=anew - 1)
