"""What a person decides of transactions that nothing proves: checked against what is there, and put into the
journal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lowtide.config import Config
from lowtide.errors import StoreError, UsageError
from lowtide.journal.life import DECIDED, FAMILY
from lowtide.run.summary import myself
from lowtide.store.gateway import FAMILY_SETTINGS, low_watermark
from lowtide.values.formats import (
    CHECKPOINTS,
    COMMIT_QUALIFIER,
    INVALID_QUALIFIER,
    INVALID_VALUE,
    OWN_INVALID_VALUE,
    SHADOW_PREFIX,
    SHADOW_SUFFIX,
    commit_key,
    decode_commit,
    decode_long,
    encode_long,
)

_MARKS = (INVALID_VALUE, OWN_INVALID_VALUE)


class Decisions:
    """What a person may decide, by what the store proves; the low watermark and the list of tables are those of when it
    was made.
    """

    def __init__(self, connection: Any, config: Config, anew: int = 0) -> None:
        """By a gateway's connection.

        Args:
            connection: of :func:`lowtide.store.gateway.connect`.
            config: names the tables.
            anew: wall-clock ms (:meth:`lowtide.store.state.StateStore.numbered_anew`). What the journal has from before
                it proves nothing to a cleanup.
        """
        self._connection = connection
        self._config = config
        self._anew = anew
        self._watermark = low_watermark(connection, config)
        self._tables = {name.decode() for name in connection.tables()}

    def check(self, start: int, commit: int | None, shown: tuple[str, bytes] | None = None) -> str:
        """Refuse to decide what cannot be meant, or what is proved. What a person decided may be decided anew.

        Args:
            start: timestamp of the transaction.
            commit: its commit timestamp; None: it never committed.
            shown: table and row of a shadow cell that names *commit*. It outranks every mark, and what the journal
                says: readers go by it.

        Returns:
            What this one outranks: the decision of somebody, or a mark of Omid's; empty: nothing.

        Raises:
            UsageError: *start* is no transaction's, *commit* no later, either above the low watermark, or *shown* no
                row of a table.
            StoreError: the commit table or the journal proves something of it already, or *shown* does not show it.
        """
        _check_numbers(start, commit, self._watermark)
        if shown is not None:
            self._check_shown(start, commit, shown)
        entry, pruned = self._entry(start), self._journaled(start)
        for record in (entry,) if shown else (entry, pruned):
            _check_silent(record, start, commit, shown=shown is not None)
        for record in (entry, pruned):
            if record.mark and not record.looked and commit is not None and not shown:
                who = f"a client or reader of Omid's, by its mark in {record.table}"
                return f"what {who}, said: that transaction {start} {became(None)}"
        if not pruned.by or pruned.commit == commit:
            return ""
        return f"what {pruned.by} decided: that transaction {start} {became(pruned.commit)}"

    def check_overruled(self, start: int, commit: int) -> None:
        """Refuse to say that a transaction which was taken for aborted committed then, where something says otherwise;
        its mark does not count.

        Args:
            start: timestamp of the transaction.
            commit: its commit timestamp.

        Raises:
            UsageError: *start* is no transaction's, or *commit* no later than it or above the low watermark.
            StoreError: the commit table has its entry, or the journal another commit timestamp.
        """
        _check_numbers(start, commit, self._watermark)
        omid = self._config.omid
        entry = f"{omid.commit_family}:".encode() + COMMIT_QUALIFIER
        if entry in self._connection.table(omid.commit_table).row(commit_key(start)):
            msg = (
                f"{omid.commit_table} has an entry of transaction {start}: restore its cells without this, and "
                "orphan_cleanup --full heals them by that"
            )
            raise StoreError(msg)
        record = self._journaled(start)
        if record.commit not in (None, commit):
            msg = f"{record.table} says that transaction {start} committed at {record.commit}, not at {commit}"
            raise StoreError(msg)

    def record(self, start: int, commit: int | None, *, overrule: bool = False) -> None:
        """Put what became of a transaction into the journal, and who says so; the journal is made where there is none.

        Whatever else its row holds goes: a mark beside the commit, what was decided before, what is from before the
        oracle was made anew or of an unknown form. While it is there the row decides nothing, or the same (a commit
        outranks a mark). Who calls it has asked whether the journal, and with *overrule* the commit table, may be
        written to.

        Args:
            start: timestamp of the transaction; checked by :meth:`check`.
            commit: its commit timestamp; None: it never committed.
            overrule: a mark in the commit table goes too: a shadow cell shows that it is wrong.

        Raises:
            StoreError: HBase took it, and the row does not show it.
        """
        name, omid = self._config.state.journal_table, self._config.omid
        if name not in self._tables:
            self._connection.create_table(name, {FAMILY: FAMILY_SETTINGS})
            self._tables.add(name)
        column, value = (
            (INVALID_QUALIFIER, INVALID_VALUE) if commit is None else (COMMIT_QUALIFIER, encode_long(commit))
        )
        prefix, table, row = f"{FAMILY}:".encode(), self._connection.table(name), commit_key(start)
        record = {prefix + column: value, prefix + DECIDED: myself().encode()}
        before = table.row(row, include_timestamp=True)
        table.put(row, record)
        for each in before.keys() - record.keys():
            table.delete(row, columns=[each], timestamp=before[each][1])
        said = self._journaled(start)
        if said.commit != commit or not said.by or not (said.commit or said.mark):
            msg = (
                f"{name} took what became of transaction {start}, and does not show it: the clock of its region server "
                "is behind that of the one that had the row before, or had the records when they were reset. Set the "
                "clocks of the region servers, wait two minutes, and say it again"
            )
            raise StoreError(msg)
        if overrule:
            table, mark = (
                self._connection.table(omid.commit_table),
                f"{omid.commit_family}:".encode() + INVALID_QUALIFIER,
            )
            for _, at in table.cells(row, mark, versions=1, include_timestamp=True):
                table.delete(row, columns=[mark], timestamp=at)

    def _entry(self, start: int) -> _Record:
        """What the commit table proves. A value that is no commit's later than its start's checkpoints (a table
        fence's, or a damaged one) proves nothing.
        """
        omid = self._config.omid
        row = self._connection.table(omid.commit_table).row(commit_key(start))
        entry, mark = (row.get(f"{omid.commit_family}:".encode() + c) for c in (COMMIT_QUALIFIER, INVALID_QUALIFIER))
        try:
            commit = None if entry is None else decode_commit(start, entry)
        except ValueError:
            commit = None
        return _Record(
            omid.commit_table,
            _possible(start, commit),
            mark in _MARKS,
            looked=mark != INVALID_VALUE,
        )

    def _journaled(self, start: int) -> _Record:
        """What the journal proves, of what was written since the oracle was made anew."""
        name, prefix = self._config.state.journal_table, f"{FAMILY}:".encode()
        if name not in self._tables:
            return _Record(name)
        row = self._connection.table(name).row(commit_key(start), include_timestamp=True)
        row = {column.removeprefix(prefix): cell for column, cell in row.items() if cell[1] >= self._anew}
        (value, put), (mark, marked) = (row.get(column, (b"", 0)) for column in (COMMIT_QUALIFIER, INVALID_QUALIFIER))
        who, decided = row.get(DECIDED, (b"", -1))
        # Put in one mutation. What pruning has written over it since is nobody's.
        by = who.decode() if decided == (put or marked) else ""
        commit = _possible(start, decode_long(value) if len(value) == 8 else None)
        return _Record(name, commit, mark in _MARKS, by, looked=bool(by) or mark != INVALID_VALUE)

    def _check_shown(self, start: int, commit: int | None, shown: tuple[str, bytes]) -> None:
        """Refuse a word that the shadow cells of this row do not bear out."""
        name, row = shown
        if commit is None or name not in self._tables:
            msg = f"a shadow cell shows a commit, in a row of a table that is there, and {name} is " + (
                "given for an abort" if commit is None else "none"
            )
            raise UsageError(msg)
        table, found = self._connection.table(name), set()
        for column in table.row(row):
            qualifier = column.partition(b":")[2]
            if qualifier.startswith(SHADOW_PREFIX) and qualifier.endswith(SHADOW_SUFFIX):
                cells = table.cells(row, column, versions=1, timestamp=start + CHECKPOINTS, include_timestamp=True)
                found |= {decode_long(value) for value, at in cells if at >= start and len(value) == 8}
                found -= {at for _, at in cells}  # index population's, which proves its own cell alone
        if found != {commit}:
            text = " and ".join(map(str, sorted(found))) or "none"
            msg = (
                f"row {row.hex()} of {name} does not show that transaction {start} committed at {commit}: commit "
                f"timestamps in its shadow cells there: {text}"
            )
            raise StoreError(msg)


def became(commit: int | None) -> str:
    """What became of a transaction, in words; None: it never committed."""
    return "never committed" if commit is None else f"committed at {commit}"


def _check_numbers(start: int, commit: int | None, watermark: int) -> None:
    """Refuse numbers that the oracle cannot have given, or not yet: a transaction above the low watermark may still
    commit.
    """
    if start <= 0 or start % CHECKPOINTS:
        msg = (
            f"{start} is no start timestamp: those are multiples of {CHECKPOINTS}. `orphan_cleanup` names those "
            "that nothing decides"
        )
        raise UsageError(msg)
    if commit is not None and commit < start + CHECKPOINTS:
        msg = (
            f"{commit} is no commit timestamp of it: a transaction that began at {start} commits at "
            f"{start + CHECKPOINTS} or later"
        )
        raise UsageError(msg)
    if commit is not None and commit % CHECKPOINTS:
        msg = f"{commit} is no commit timestamp: those are multiples of {CHECKPOINTS}, as the value of a shadow cell is"
        raise UsageError(msg)
    if start > watermark:
        msg = (
            f"transaction {start} began above the low watermark {watermark}: it may still commit, and is not for "
            "anybody to decide"
        )
        raise UsageError(msg)
    if commit is not None and commit > watermark:
        msg = (
            f"{commit} is above the low watermark {watermark}: what a cleanup found or removed had committed "
            "before that, or never"
        )
        raise UsageError(msg)


@dataclass(frozen=True, slots=True)
class _Record:
    """What one table says of a transaction: a commit timestamp that it can have, which outranks a mark in the journal;
    and who decided so, if a person. *looked*: whether whoever put the mark had looked for every proof.
    """

    table: str
    commit: int | None = None
    mark: bool = False
    by: str = ""
    looked: bool = True


def _possible(start: int, commit: int | None) -> int | None:
    return commit if commit is not None and commit >= start + CHECKPOINTS else None


def _check_silent(record: _Record, start: int, commit: int | None, *, shown: bool) -> None:
    """Refuse to contradict a proof, and to say again that it committed; that it never did may be said beside its mark,
    and that it did beside one of Omid's: its reader may have met a cell that came back without its proof. Of a commit
    that a shadow cell shows, refuse only where an entry names another one.
    """
    if record.by or (shown and record.commit in (None, commit)):
        return
    if record.commit is not None or (record.mark and record.looked and commit is not None):
        text = f"that it {became(record.commit)}"
        msg = (
            f"{record.table} holds a proof of transaction {start}, {text}: orphan_cleanup goes by it, and "
            "nothing is left to decide. Only a shadow cell "
            "that says otherwise outranks it: --shown-in TABLE ROW, as `lowtide verify` names them"
        )
        raise StoreError(msg)
