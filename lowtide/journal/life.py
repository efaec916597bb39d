"""The journal: what was pruned from the commit table, and what a person decided; the proof for cells that come back.

A row a transaction, with the commit table's key, family ``j``: ``C``, the commit timestamp, or ``IT``, an invalidation mark; ``by`` beside it, of the
same moment, says which person decided so. It is kept for ever unless ``state.journal_keep`` says otherwise; what was let go of is remembered as a
*horizon*. At or below it a transaction that
nothing proves may have committed, where its cell lies in a key range that was not under watch from before the proof went: one of a table that
came back from a snapshot, say.

The horizon, and how far was pruned, stand in a row of the journal about itself and in the state table, so that neither is lost with the other. The
journal says it first: one that says less than the state table remembers, or nothing, has lost rows.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from lowtide.cleaning.facts import Fact, cleaned_intervals
from lowtide.config import Config
from lowtide.errors import StoreError, UsageError
from lowtide.run.summary import myself
from lowtide.store.gateway import FAMILY_SETTINGS, check_and_put, kept_for, low_watermark, table_state
from lowtide.values.durations import duration_text
from lowtide.values.formats import (
    BUCKETS,
    CHECKPOINTS,
    COMMIT_QUALIFIER,
    INVALID_QUALIFIER,
    INVALID_VALUE,
    SHADOW_PREFIX,
    SHADOW_SUFFIX,
    commit_key,
    decode_commit,
    decode_long,
    encode_long,
)
from lowtide.values.keyranges import KeyRange

if TYPE_CHECKING:
    from lowtide.store.state import StateStore

FAMILY = "j"
#: Written with what a person decides; its value says who. What pruning writes has none.
DECIDED = b"by"
#: The journal's row about itself: no transaction's key, so that who looks for those passes it by.
OWN_ROW = b"journal"
_SAID = f"{FAMILY}:value".encode()


@dataclass(frozen=True, slots=True)
class Said:
    """What the journal's row about itself says, as JSON; neither number ever goes down."""

    #: The greatest start timestamp, inclusive, that the journal let go of; 0: none.
    horizon: int = 0
    #: The greatest start timestamp, inclusive, up to which was pruned into it.
    pruned: int = 0


@dataclass(frozen=True, slots=True)
class Journal:
    """What the state remembers of it: whether it was ever made, and what :class:`Said` has."""

    there: bool = False
    horizon: int = 0
    pruned: int = 0
    #: When its table was made, enabled or restored last, ms: its life in which it is known to be whole. 0: not looked at yet.
    stated: int = 0
    #: What makes it doubtful that it is whole; empty: nothing.
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The journal's table as it is."""

    listed: bool = False
    stated: int = 0
    #: How long it keeps a row; None: for ever.
    kept: timedelta | None = None
    said: Said | None = None


def look(connection: Any, name: str) -> Seen:
    """The journal's table as it is now.

    Raises:
        StoreError: it is disabled.
    """
    if name.encode() not in connection.tables():
        return Seen()
    enabled, stated = table_state(connection, name)
    if not enabled:
        msg = f"the journal {name} is disabled, and holds the only proofs of what was pruned. In HBase's shell: enable '{name}'; then: lowtide journal whole"
        raise StoreError(msg)
    raw = connection.table(name).row(OWN_ROW, [_SAID]).get(_SAID)
    return Seen(True, stated, kept_for(connection, name), Said(**json.loads(raw)) if raw else None)


def in_force(known: Journal, seen: Seen, name: str) -> Journal:
    """The journal as runs may go by it, by both that are asked.

    Args:
        known: as the state remembers it; read before *seen*, of which the journal says first what the state is told next.
        seen: its table.
        name: of that.

    Raises:
        StoreError: it is gone, it loses rows, or it may have lost some: those would be taken for never there.
    """
    if not seen.listed:
        if known.there:
            msg = (
                f"the journal {name} is gone: it was dropped, state.journal_table names another now, or HBase does not list it to the gateway's user. "
                "It holds the only proofs of what was pruned, so nothing is decided without it. Restore it, or correct the configuration; where it is "
                "lost for good: lowtide journal lost"
            )
            raise StoreError(msg)
        return known
    check_kept(seen, name)
    if lost := missing(known, seen):
        msg = (
            f"the journal {name} has lost proofs of what was pruned: {lost}. Nothing is decided without them. Restore the snapshot that has them, "
            "or correct state.journal_table; where they are lost for good: lowtide journal lost"
        )
        raise StoreError(msg)
    if why := doubt(known, seen):
        msg = (
            f"the journal {name} may have lost proofs of what was pruned: {why}. Nothing is decided by it before somebody says what is so. "
            "If it has all its rows: lowtide journal whole. If not, or if nobody knows: lowtide journal lost"
        )
        raise StoreError(msg)
    said = seen.said or Said()
    return Journal(True, max(known.horizon, said.horizon), max(known.pruned, said.pruned), seen.stated)


def check_kept(seen: Seen, name: str) -> None:
    """Refuse a journal that loses rows by itself.

    Raises:
        StoreError: its family has a TTL.
    """
    if seen.kept is not None:
        msg = (
            f"the journal {name} keeps a row for {duration_text(seen.kept)} only (TTL), and holds the only proofs of what was pruned. In HBase's shell: "
            f"alter '{name}', {{NAME => '{FAMILY}', TTL => 'FOREVER'}}; then: lowtide journal lost, or, if none of its rows was as old as that yet: "
            "lowtide journal whole"
        )
        raise StoreError(msg)


def missing(known: Journal, seen: Seen) -> str:
    """By what it is certain that a journal which is there has lost rows; empty where it is not."""
    if not known.stated:
        return ""  # of before it had a row about itself, or the state was lost
    if seen.said is None:
        return (
            "its row about itself is gone, as where it was truncated, dropped and made again, or restored from long ago"
        )
    if seen.said.pruned < known.pruned:
        return f"it was pruned up to {known.pruned}, and it says {seen.said.pruned}, as where it was restored from a snapshot of before"
    return ""


def doubt(known: Journal, seen: Seen) -> str:
    """Why a journal that is there may have lost rows; empty where nothing speaks for that."""
    if known.stated not in (0, seen.stated):
        return "it was disabled and enabled, restored, or made anew"
    return known.doubt


def checked(connection: Any, state: StateStore, name: str, *, acting: bool) -> Journal:
    """The journal in force, see :func:`in_force`. A run that acts makes both sides say so; nothing is written where they do.

    Raises:
        StoreError: it is not to be gone by, or its row about itself cannot be written.
    """
    known = state.journal()
    seen = look(connection, name)
    if acting and seen.kept is not None:
        state.doubt_journal(f"it kept a row for {duration_text(seen.kept)} only (TTL)")
    found = in_force(known, seen, name)
    if acting and found.there:
        hold(connection, state, name, found)
    return found


def hold(connection: Any, state: StateStore, name: str, journal: Journal) -> None:
    """Have the journal and the state say at least what *journal* has, in this order; before anything is pruned into it, or goes from it.

    Raises:
        StoreError: the journal takes no row.
    """
    table = connection.table(name)
    try:
        while True:
            raw = table.row(OWN_ROW, [_SAID]).get(_SAID)
            known = Said(**json.loads(raw)) if raw else Said()
            said = Said(max(known.horizon, journal.horizon), max(known.pruned, journal.pruned))
            if (raw and said == known) or check_and_put(
                connection,
                name,
                OWN_ROW,
                (_SAID, raw),
                (_SAID, json.dumps(asdict(said), separators=(",", ":")).encode()),
            ):
                break
    except Exception as error:  # Thrift's
        msg = f"the journal {name} takes no row ({type(error).__name__}: {error}); without it nothing is pruned. Let the gateway's user write to it"
        raise StoreError(msg) from error
    state.remember_journal(journal.horizon, journal.pruned, journal.stated)


def settle(connection: Any, state: StateStore, name: str, *, lost_up_to: int = 0) -> None:
    """Take the journal as it is, by a person's word: it is whole, or let go of what it had up to *lost_up_to*. One that is not there is done without."""
    seen = look(connection, name)
    known = state.journal()
    if seen.listed:
        said = seen.said or Said()
        horizon = max(known.horizon, said.horizon, lost_up_to)
        hold(connection, state, name, replace(known, horizon=horizon, pruned=max(known.pruned, said.pruned)))
    state.settle_journal(there=seen.listed, horizon=lost_up_to, stated=seen.stated)


def unwatched(keys: KeyRange, facts: Sequence[Fact], horizon: int) -> bool:
    """Whether cells at or below the *horizon* may have come into *keys* since the journal let go of their proofs.

    Args:
        keys: the range.
        facts: valid ones of the time before the run.
        horizon: inclusive; 0: the journal has let go of nothing.
    """
    return horizon > 0 and not cleaned_intervals(keys, facts).covers(0, horizon + 1)


def reaches(connection: Any, name: str, start: int) -> bool:
    """Whether the journal *name*, which is there, has a transaction that began at *start* or later. A few small reads, however much it holds."""
    scan = connection.table(name).scan
    ranges = ((bytes([bucket]) + encode_long(start), bytes([bucket + 1])) for bucket in range(BUCKETS))
    return any(True for first, stop in ranges for _ in scan(row_start=first, row_stop=stop, limit=1))


def check_decision(
    connection: Any,
    config: Config,
    start: int,
    commit: int | None,
    anew: int = 0,
    shown: tuple[str, bytes] | None = None,
) -> str:
    """Refuse to decide what cannot be meant, or what is proved. What a person decided may be decided anew.

    Args:
        connection: of :func:`lowtide.store.gateway.connect`.
        config: names the tables.
        start: timestamp of the transaction.
        commit: its commit timestamp; None: it never committed.
        anew: wall-clock ms (:meth:`lowtide.store.state.StateStore.numbered_anew`). What the journal has from before it proves nothing to a cleanup.
        shown: table and row of a shadow cell that names *commit*. It outranks every mark, and what the journal says: readers go by it.

    Returns:
        Which decision of whom this one replaces; empty: none.

    Raises:
        UsageError: *start* is no transaction's, *commit* no later, either above the low watermark, or *shown* no row of a table.
        StoreError: the commit table or the journal proves something of it already, or *shown* does not show it.
    """
    _check_numbers(start, commit, low_watermark(connection, config))
    if shown is not None:
        _check_shown(connection, start, commit, shown)
    entry, pruned = _entry(connection, config, start), _journaled(connection, config, start, anew)
    for said in (entry,) if shown else (entry, pruned):
        _check_silent(said, start, commit, shown=shown is not None)
    if not pruned.by or pruned.commit == commit:
        return ""
    return f"what {pruned.by} decided: that transaction {start} {became(pruned.commit)}"


def became(commit: int | None) -> str:
    """What became of a transaction, in words; None: it never committed."""
    return "never committed" if commit is None else f"committed at {commit}"


def _check_numbers(start: int, commit: int | None, watermark: int) -> None:
    """Refuse numbers that the oracle cannot have given, or not yet: a transaction above the low watermark may still commit."""
    if start <= 0 or start % CHECKPOINTS:
        msg = f"{start} is no start timestamp: those are multiples of {CHECKPOINTS}. `orphan_cleanup` names those that nothing decides"
        raise UsageError(msg)
    if commit is not None and commit < start + CHECKPOINTS:
        msg = f"{commit} is no commit timestamp of it: a transaction that began at {start} commits at {start + CHECKPOINTS} or later"
        raise UsageError(msg)
    if commit is not None and commit % CHECKPOINTS:
        msg = f"{commit} is no commit timestamp: those are multiples of {CHECKPOINTS}, as the value of a shadow cell is"
        raise UsageError(msg)
    if start > watermark:
        msg = f"transaction {start} began above the low watermark {watermark}: it may still commit, and is not for anybody to decide"
        raise UsageError(msg)
    if commit is not None and commit > watermark:
        msg = f"{commit} is above the low watermark {watermark}: what a cleanup found or removed had committed before that, or never"
        raise UsageError(msg)


def _check_shown(connection: Any, start: int, commit: int | None, shown: tuple[str, bytes]) -> None:
    """Refuse a word that the shadow cells of this row do not bear out."""
    name, row = shown
    if commit is None or name.encode() not in connection.tables():
        msg = f"a shadow cell shows a commit, in a row of a table that is there, and {name} is " + (
            "given for an abort" if commit is None else "none"
        )
        raise UsageError(msg)
    table, found = connection.table(name), set()
    for column in table.row(row):
        qualifier = column.partition(b":")[2]
        if qualifier.startswith(SHADOW_PREFIX) and qualifier.endswith(SHADOW_SUFFIX):
            cells = table.cells(row, column, versions=1, timestamp=start + CHECKPOINTS, include_timestamp=True)
            found |= {decode_long(value) for value, at in cells if at >= start and len(value) == 8}
            found -= {at for _, at in cells}  # index population's, which proves its own cell alone
    if found != {commit}:
        told = " and ".join(map(str, sorted(found))) or "none"
        msg = f"row {row.hex()} of {name} does not show that transaction {start} committed at {commit}: commit timestamps in its shadow cells there: {told}"
        raise StoreError(msg)


@dataclass(frozen=True, slots=True)
class _Said:
    """What one table says of a transaction: a commit timestamp that it can have, which outranks a mark in the journal; and who decided so, if a person."""

    table: str
    commit: int | None = None
    mark: bool = False
    by: str = ""


def _entry(connection: Any, config: Config, start: int) -> _Said:
    """What the commit table proves. A value that is no commit's later than its start's checkpoints (a table fence's, or a damaged one) proves nothing."""
    omid = config.omid
    entry, mark = (
        connection.table(omid.commit_table).row(commit_key(start)).get(f"{omid.commit_family}:".encode() + column)
        for column in (COMMIT_QUALIFIER, INVALID_QUALIFIER)
    )
    try:
        commit = None if entry is None else decode_commit(start, entry)
    except ValueError:
        commit = None
    return _Said(omid.commit_table, _possible(start, commit), mark == INVALID_VALUE)


def _journaled(connection: Any, config: Config, start: int, since: int = 0) -> _Said:
    """What the journal proves, of what was written at *since* or later."""
    name, prefix = config.state.journal_table, f"{FAMILY}:".encode()
    if name.encode() not in connection.tables():
        return _Said(name)
    row = connection.table(name).row(commit_key(start), include_timestamp=True)
    row = {column.removeprefix(prefix): cell for column, cell in row.items() if cell[1] >= since}
    (value, put), (mark, marked) = (row.get(column, (b"", 0)) for column in (COMMIT_QUALIFIER, INVALID_QUALIFIER))
    who, decided = row.get(DECIDED, (b"", -1))
    # Put in one mutation. What pruning has written over it since is nobody's.
    by = who.decode() if decided == (put or marked) else ""
    return _Said(name, _possible(start, decode_long(value) if len(value) == 8 else None), mark == INVALID_VALUE, by)


def _possible(start: int, commit: int | None) -> int | None:
    return commit if commit is not None and commit >= start + CHECKPOINTS else None


def _check_silent(said: _Said, start: int, commit: int | None, *, shown: bool) -> None:
    """Refuse to contradict a proof, or to say it again; of a commit that a shadow cell shows, only an entry that names another one."""
    if said.by or (shown and said.commit in (None, commit)):
        return
    if said.commit is not None or (said.mark and commit is not None):
        told = f"that it {became(said.commit)}"
        msg = (
            f"{said.table} holds a proof of transaction {start}, {told}: orphan_cleanup goes by it, and nothing is left to decide. Only a shadow cell "
            "that says otherwise outranks it: --shown-in TABLE ROW, as `lowtide verify` names them"
        )
        raise StoreError(msg)


def check_overruled(connection: Any, config: Config, start: int, commit: int, anew: int = 0) -> None:
    """Refuse to say that a transaction which was taken for aborted committed then, where something says otherwise; its mark does not count.

    Args:
        connection: of :func:`lowtide.store.gateway.connect`.
        config: names the tables.
        start: timestamp of the transaction.
        commit: its commit timestamp.
        anew: as for :func:`check_decision`.

    Raises:
        UsageError: *start* is no transaction's, or *commit* no later than it or above the low watermark.
        StoreError: the commit table has its entry, or the journal another commit timestamp.
    """
    _check_numbers(start, commit, low_watermark(connection, config))
    omid = config.omid
    if f"{omid.commit_family}:".encode() + COMMIT_QUALIFIER in connection.table(omid.commit_table).row(
        commit_key(start)
    ):
        msg = f"{omid.commit_table} has an entry of transaction {start}: restore its cells without this, and orphan_cleanup --full heals them by that"
        raise StoreError(msg)
    said = _journaled(connection, config, start, anew)
    if said.commit not in (None, commit):
        msg = f"{said.table} says that transaction {start} committed at {said.commit}, not at {commit}"
        raise StoreError(msg)


def decide(connection: Any, config: Config, start: int, commit: int | None, *, overrule: bool = False) -> None:
    """Put what became of a transaction into the journal, and who says so; the journal is made where there is none.

    Whatever else its row holds goes: a mark beside the commit, what was decided before, what is from before the oracle was made anew or of an unknown
    form. While it is there the row decides nothing, or the same (a commit outranks a mark).

    Args:
        connection: of :func:`lowtide.store.gateway.connect`.
        config: names the tables.
        start: timestamp of the transaction; checked by :func:`check_decision`.
        commit: its commit timestamp; None: it never committed.
        overrule: a mark in the commit table goes too: a shadow cell shows that it is wrong.
    """
    name = config.state.journal_table
    if name.encode() not in connection.tables():
        connection.create_table(name, {FAMILY: FAMILY_SETTINGS})
    column, value = (INVALID_QUALIFIER, INVALID_VALUE) if commit is None else (COMMIT_QUALIFIER, encode_long(commit))
    prefix, table, row = f"{FAMILY}:".encode(), connection.table(name), commit_key(start)
    said = {prefix + column: value, prefix + DECIDED: myself().encode()}
    before = table.row(row, include_timestamp=True)
    table.put(row, said)
    for each in before.keys() - said.keys():
        table.delete(row, columns=[each], timestamp=before[each][1])
    if overrule:
        table, mark = (
            connection.table(config.omid.commit_table),
            f"{config.omid.commit_family}:".encode() + INVALID_QUALIFIER,
        )
        for _, at in table.cells(row, mark, versions=1, include_timestamp=True):
            table.delete(row, columns=[mark], timestamp=at)
