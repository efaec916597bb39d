"""The journal: what was pruned from the commit table, and what a person decided; the proof for cells that come back.

A row a transaction, with the commit table's key, family ``j``: ``C``, the commit timestamp, or ``IT``, an invalidation
mark; ``by`` beside it, of the same moment, says which person decided so. It is kept for ever unless
``state.journal_keep`` says otherwise; what was let go of is remembered as a *horizon*. At or below it a transaction
that nothing proves may have committed, where its cell lies in a key range that was not under watch from before the
proof went: one of a table that came back from an HBase snapshot, say.

The horizon, and how far was pruned, stand in a row of the journal about itself and in the state table, so that neither
is lost with the other. The journal says it first: one that says less than the state table remembers, or nothing, has
lost rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import timedelta
from typing import Any

from lowtide.cleaning.facts import Fact, cleaned_intervals
from lowtide.errors import FormatError, StoreError
from lowtide.store.gateway import check_and_put, has_table, kept_for, table_state
from lowtide.store.records import Journal
from lowtide.store.state import StateStore
from lowtide.values.durations import duration_text
from lowtide.values.formats import (
    BUCKETS,
    encode_long,
)
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange

FAMILY = "j"
#: Written with what a person decides; its value says who. What pruning writes has none.
DECIDED = b"by"
#: The journal's row about itself: no transaction's key, so that who looks for those passes it by.
OWN_ROW = b"journal"
_OWN_VALUE = f"{FAMILY}:value".encode()


@dataclass(frozen=True, slots=True)
class OwnRow:
    """What the journal's row about itself says, as JSON; neither number ever goes down."""

    #: The greatest start timestamp, inclusive, that the journal let go of; 0: none.
    horizon: int = 0
    #: The greatest start timestamp, inclusive, up to which was pruned into it.
    pruned: int = 0


@dataclass(frozen=True, slots=True)
class Observed:
    """The journal's table as it is."""

    listed: bool = False
    stated: int = 0
    #: How long it keeps a row; None: for ever.
    kept: timedelta | None = None
    own_row: OwnRow | None = None


def observe(connection: Any, name: str) -> Observed:
    """The journal's table as it is now.

    Raises:
        StoreError: it is disabled.
        IOError: HBase's, with the right on it that is missing.
    """
    if not has_table(connection, name):
        return Observed()
    enabled, stated = table_state(connection, name)
    if not enabled:
        msg = (
            f"the journal {name} is disabled, and holds the only proofs of what was pruned. In HBase's shell: "
            f"enable '{name}'; then: lowtide journal whole"
        )
        raise StoreError(msg)
    raw = connection.table(name).row(OWN_ROW, [_OWN_VALUE]).get(_OWN_VALUE)
    return Observed(True, stated, kept_for(connection, name), _own_row(json.loads(raw), name) if raw else None)


def _own_row(value: dict[str, Any], name: str) -> OwnRow:
    if unknown := value.keys() - {each.name for each in fields(OwnRow)}:
        fact = f"the journal {name} says of itself {', '.join(sorted(unknown))}, so a newer Lowtide wrote there"
        raise FormatError(fact, "Upgrade this one; nothing was done")
    return OwnRow(**value)


def in_force(known: Journal, observed: Observed, name: str) -> Journal:
    """The journal as runs may go by it, by both that are asked.

    Args:
        known: as the state remembers it; read before *observed*: the journal is written first, then the state.
        observed: its table.
        name: of that.

    Raises:
        StoreError: it is gone, it loses rows, or it may have lost some: those would be taken for never there.
    """
    if not observed.listed:
        if known.there:
            msg = (
                f"the journal {name} is gone: it was dropped, state.journal_table names another now, or HBase does "
                "not list it to the gateway's user. It holds the only proofs of what was pruned, so nothing is "
                "decided without it. Restore it, or correct the configuration; where it is lost for good: lowtide "
                "journal lost"
            )
            raise StoreError(msg)
        return known
    check_kept(observed, name)
    if lost := missing(known, observed):
        msg = (
            f"the journal {name} has lost proofs of what was pruned: {lost}. Nothing is decided without them. "
            "Restore the HBase snapshot that has them, "
            "or correct state.journal_table; where they are lost for good: lowtide journal lost"
        )
        raise StoreError(msg)
    if why := doubt(known, observed):
        msg = (
            f"the journal {name} may have lost proofs of what was pruned: {why}. Nothing is decided by it "
            "before somebody says what is so. "
            "If it has all its rows: lowtide journal whole. If not, or if nobody knows: lowtide journal lost"
        )
        raise StoreError(msg)
    own_row = observed.own_row or OwnRow()
    return Journal(True, max(known.horizon, own_row.horizon), max(known.pruned, own_row.pruned), observed.stated)


def check_kept(observed: Observed, name: str) -> None:
    """Refuse a journal that loses rows by itself.

    Raises:
        StoreError: its family has a TTL.
    """
    if observed.kept is not None:
        msg = (
            f"the journal {name} keeps a row for {duration_text(observed.kept)} only (TTL), and holds the only proofs "
            f"of what was pruned. In HBase's shell: alter '{name}', {{NAME => '{FAMILY}', TTL => 'FOREVER'}}; then: "
            "lowtide journal lost, or, if none of its rows was as old as that yet: lowtide journal whole"
        )
        raise StoreError(msg)


def missing(known: Journal, observed: Observed) -> str:
    """By what it is certain that a journal which is there has lost rows; empty where it is not."""
    if not known.stated:
        return ""  # of before it had a row about itself, or the state was lost
    if observed.own_row is None:
        return (
            "its row about itself is gone, as where it was truncated, dropped and made again, or restored from long ago"
        )
    if observed.own_row.pruned < known.pruned:
        return (
            f"it was pruned up to {known.pruned}, and it says {observed.own_row.pruned}, as where it was "
            "restored from an HBase snapshot of before"
        )
    return ""


def doubt(known: Journal, observed: Observed) -> str:
    """Why a journal that is there may have lost rows; empty where nothing speaks for that."""
    if known.stated not in (0, observed.stated):
        return "it was disabled and enabled, restored, or made anew"
    return known.doubt


def checked(connection: Any, state: StateStore, name: str, *, acting: bool) -> Journal:
    """The journal in force, see :func:`in_force`. A run that acts makes both sides say so; nothing is written where
    they do. Who calls it so has asked whether the journal may be written to.

    Raises:
        StoreError: it is not to be gone by, or its row about itself cannot be written.
    """
    known = state.journal()
    observed = observe(connection, name)
    if acting and observed.kept is not None:
        state.doubt_journal(f"it kept a row for {duration_text(observed.kept)} only (TTL)")
    found = in_force(known, observed, name)
    if acting and found.there:
        hold(connection, state, name, found)
    return found


def hold(connection: Any, state: StateStore, name: str, journal: Journal) -> None:
    """Have the journal and the state say at least what *journal* has, in this order; before anything is pruned into it,
    or goes from it. Who calls it has asked whether the journal may be written to.

    Raises:
        StoreError: the journal takes no row.
    """
    table = connection.table(name)
    try:
        while True:
            raw = table.row(OWN_ROW, [_OWN_VALUE]).get(_OWN_VALUE)
            known = OwnRow(**json.loads(raw)) if raw else OwnRow()
            own_row = OwnRow(max(known.horizon, journal.horizon), max(known.pruned, journal.pruned))
            if (raw and own_row == known) or check_and_put(
                connection,
                name,
                OWN_ROW,
                (_OWN_VALUE, raw),
                (_OWN_VALUE, json.dumps(asdict(own_row), separators=(",", ":")).encode()),
            ):
                break
    except Exception as error:  # Thrift's
        msg = (
            f"the journal {name} takes no row ({type(error).__name__}: {error}); without it nothing is pruned. Let "
            "the gateway's user write to it"
        )
        raise StoreError(msg) from error
    state.remember_journal(journal.horizon, journal.pruned, journal.stated)


def settle(connection: Any, state: StateStore, name: str, *, lost_up_to: int = 0) -> None:
    """Take the journal as it is, by a person's word: it is whole, or let go of what it had up to *lost_up_to*. One that
    is not there is done without. Who calls it has asked whether the journal may be written to.
    """
    observed = observe(connection, name)
    known = state.journal()
    if observed.listed:
        own_row = observed.own_row or OwnRow()
        horizon = max(known.horizon, own_row.horizon, lost_up_to)
        hold(connection, state, name, replace(known, horizon=horizon, pruned=max(known.pruned, own_row.pruned)))
    state.settle_journal(there=observed.listed, horizon=lost_up_to, stated=observed.stated)


def unwatched(keys: KeyRange, facts: Sequence[Fact], times: Intervals) -> bool:
    """Whether cells of these *times* may have come into *keys* since their proofs went.

    Args:
        keys: the range.
        facts: valid ones of the time before the run.
        times: up to the horizon, of which the journal has let go; or those that were cleaned before the table came as
            it is now (:func:`lowtide.cleaning.facts.cleaned_before`).
    """
    known = cleaned_intervals(keys, facts) if times else Intervals()
    return not all(known.covers(start, end) for start, end in times)


def reaches(connection: Any, name: str, start: int) -> bool:
    """Whether the journal *name*, which is there, has a transaction that began at *start* or later. A few small reads,
    however much it holds.
    """
    scan = connection.table(name).scan
    ranges = ((bytes([bucket]) + encode_long(start), bytes([bucket + 1])) for bucket in range(BUCKETS))
    return any(True for first, stop in ranges for _ in scan(row_start=first, row_stop=stop, limit=1))
