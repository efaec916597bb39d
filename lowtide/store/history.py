"""Ancient history marks and the claims to them, holds, and what history GC keeps count of."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from lowtide.errors import FencedError
from lowtide.history.advice import bucket
from lowtide.history.compaction import Uncompacted
from lowtide.history.mark import Hold
from lowtide.store.records import Claim, History, Intent
from lowtide.store.rows import COLUMN, VALUE, Rows, dump
from lowtide.values.clock import from_millis, millis, now_millis
from lowtide.values.formats import decode_long

_MARK = COLUMN + b"mark"
_INTENDED = COLUMN + b"intended"
#: A run that announced a removal of history so long ago, and nothing since, is dead.
REMOVES_FOR = timedelta(days=1)
#: A mark that was announced so long ago and is not applied yet is a dead run's, or one's that plans anew for long. A
#: hold may take its claim: the run can then no longer apply the mark, whether it lives or not.
ANNOUNCED_FOR = timedelta(hours=1)


class HistoryRows(Rows):
    """The rows ``history/``: a table's mark, and who has claimed it."""

    def history(self, table: str) -> History:
        """The table's mark; 0 where none was ever applied."""
        cells = self._table.row(_history_row(table)) if self.exists() else {}
        return _parse_history(table, cells)

    def histories(self) -> list[History]:
        """The marks of all tables that have one, by name."""
        return [_parse_history(row[8:].decode(), cells) for row, cells in self._scan(b"history/")]

    def intend(self, table: str, mark: int, run: str, observed: History | None = None) -> Intent:
        """Say which mark a run is going to apply, before it reads the holds; it takes the place of any claim before it.

        Args:
            table: name.
            mark: to be applied.
            run: id.
            observed: the table's history as it was before the run read the table; what was read is worth nothing if
                somebody has claimed the mark since, to remove or to put back. None: whatever was claimed is overtaken.

        Raises:
            FencedError: there is a claim that came after *observed*.
        """
        row = _history_row(table)
        while True:
            known = self._table.row(row).get(_INTENDED) if observed is None else observed.claim
            token = _claim_value(known, mark, run, now_millis())
            if self._change(row, _INTENDED, known, token):
                return Intent(table, mark, token)
            if observed is not None:
                raise FencedError(_overtaken(table))

    def lower_intent(self, intent: Intent, mark: int, run: str) -> Intent:
        """Intend less than *intent* did: a hold came between, or nothing is applied after all.

        Raises:
            FencedError: another run has claimed the mark since.
        """
        return self._claim_again(intent, mark, run)

    def begin_removal(self, intent: Intent, run: str) -> Intent:
        """Say that *run* removes history from here on, after it applied its mark: no restore may begin until it ends.

        Raises:
            FencedError: another run, or a restore, has claimed the mark since.
        """
        return self._claim_again(intent, intent.mark, run, removing=True)

    def end_removal(self, intent: Intent, run: str) -> None:
        """Say that *run* removes nothing any more.

        Raises:
            FencedError: another run has claimed the mark since; it says so itself.
        """
        self._claim_again(intent, intent.mark, run)

    def overtake(self, observed: History, now: datetime, by: str) -> bool:
        """Take the claim of a run that announced a mark long ago and has not applied it, so that it never will; whether
        that was done.

        The mark may have been applied since *observed*: read it again. *now* is HBase's time: claims are dated by runs,
        whose machines agree with HBase, and a reader's may be days off.
        """
        if (
            observed.claim is None
            or observed.intended <= observed.applied
            or now < from_millis(observed.intent.get("at", 0)) + ANNOUNCED_FOR
        ):
            return False
        token = _claim_value(observed.claim, observed.applied, by, millis(now))
        return self._change(_history_row(observed.table), _INTENDED, observed.claim, token)

    def check_claim(self, intent: Intent) -> None:
        """Refuse to go on where another has claimed the mark since.

        Raises:
            FencedError: that is so.
        """
        if self.history(intent.table).claim != intent.token:
            raise FencedError(_overtaken(intent.table))

    def mark_claim(self, intent: Intent) -> Claim:
        """What stands as long as nobody has claimed the table's mark after *intent*."""
        return self._claim(_history_row(intent.table), _INTENDED, intent.token)

    def apply_mark(self, intent: Intent, about: Mapping[str, Any]) -> int:
        """Apply the intended mark; returns the mark that holds now: never less than the one before.

        Raises:
            FencedError: another run has claimed the mark since.
        """
        before = self.history(intent.table).applied
        if intent.mark <= before:
            self.check_claim(intent)  # it must be ours here too: the run is about to act
            return before
        row, mark = _history_row(intent.table), dump({**about, "mark": intent.mark, "at": now_millis()})
        if not self._check_and_put(row, (_INTENDED, intent.token), (_MARK, mark)):
            raise FencedError(_overtaken(intent.table))
        return intent.mark

    def raise_mark(self, table: str, mark: int, run: str) -> None:
        """Apply *mark*, if it is above the one that holds, whoever has a claim: what lies before it is gone already, by
        another's hand.
        """
        while self.history(table).applied < mark:
            with suppress(FencedError):
                self.apply_mark(self.intend(table, mark, run), {"run": run, "held_by": []})

    def _claim_again(self, intent: Intent, mark: int, run: str, *, removing: bool = False) -> Intent:
        token = _claim_value(intent.token, mark, run, now_millis(), removing=removing)
        if not self._change(_history_row(intent.table), _INTENDED, intent.token, token):
            raise FencedError(_overtaken(intent.table))
        return Intent(intent.table, mark, token)


class HoldRows(Rows):
    """The rows ``hold/`` and ``reads/``."""

    def holds(self, table: str | None = None) -> list[Hold]:
        """The holds on *table*, or on all tables, expired ones included; by table and age."""
        prefix = b"hold/" + (f"{table}/".encode() if table is not None else b"")
        return [Hold.from_json(json.loads(cells[VALUE])) for _, cells in self._scan(prefix) if cells.get(VALUE)]

    def add_hold(self, hold: Hold) -> None:
        """Write a hold. It counts once the mark was seen not to have passed it: see ``lowtide.history.holding``."""
        self._table.put(_hold_row(hold), {VALUE: dump(hold.to_json())})

    def change_hold(self, old: Hold, new: Hold) -> bool:
        """Put *new* in the place of *old*, if that is still there as it was."""
        stored = self._stored_hold(old)
        return stored is not None and self._change(_hold_row(old), VALUE, stored, dump(new.to_json()))

    def drop_hold(self, hold: Hold) -> bool:
        """Let go of a hold, if it is still there as it was: one that was renewed meanwhile stays."""
        row, stored = _hold_row(hold), self._stored_hold(hold)
        if stored is None or not self._change(row, VALUE, stored, b""):
            return False
        self._table.delete(row)
        return True

    def _stored_hold(self, hold: Hold) -> bytes | None:
        """The value that is *hold*, which need not be written as we would: texts of others are read as they can be
        told. None: there is none.
        """
        stored = self._table.row(_hold_row(hold)).get(VALUE)
        same = bool(stored) and Hold.from_json(json.loads(stored)).to_json() == hold.to_json()
        return stored if same else None

    def reads(self) -> dict[str, dict[int, int]]:
        """By table: how many read points were read, by the bucket of their age."""
        return {
            row[6:].decode(): {int(column[6:]): decode_long(value) for column, value in cells.items()}
            for row, cells in self._scan(b"reads/")
        }

    def count_read(self, table: str, age: timedelta) -> None:
        """Count a read point that was *age* old when it was no longer needed."""
        self._table.counter_inc(f"reads/{table}".encode(), b"s:age/%d" % bucket(age))


class UncompactedRows(Rows):
    """The rows ``uncompacted/``."""

    def uncompacted(self, table: str) -> dict[str, Uncompacted]:
        """What history GC removed from *table* and no major compaction had dropped when it was recorded, by region. An
        estimate.
        """
        cells = self._table.row(_uncompacted_row(table)) if self.exists() else {}
        return {
            column.removeprefix(COLUMN).decode(): Uncompacted(**json.loads(value)) for column, value in cells.items()
        }

    def all_uncompacted(self) -> dict[str, int]:
        """The bytes of that, by table."""
        return {
            row[12:].decode(): sum(sum(json.loads(value)["removed"].values()) for value in cells.values())
            for row, cells in self._scan(b"uncompacted/")
        }

    def put_uncompacted(self, table: str, value: Mapping[str, Uncompacted]) -> None:
        """Record *value* and nothing else of *table*."""
        row = _uncompacted_row(table)
        gone = [column for column in self._table.row(row) if column.removeprefix(COLUMN).decode() not in value]
        if gone:
            self._table.delete(row, columns=gone)
        if value:
            self._table.put(row, {COLUMN + region.encode(): dump(asdict(one)) for region, one in value.items()})


def _history_row(table: str) -> bytes:
    return b"history/" + table.encode()


def _uncompacted_row(table: str) -> bytes:
    return b"uncompacted/" + table.encode()


def _parse_history(table: str, cells: Mapping[bytes, bytes]) -> History:
    applied, intended = (json.loads(cells[c]) if cells.get(c) else {} for c in (_MARK, _INTENDED))
    return History(table, applied.get("mark", 0), intended.get("mark", 0), applied, intended, cells.get(_INTENDED))


def _claim_value(known: bytes | None, mark: int, run: str, at: int, *, removing: bool = False) -> bytes:
    """A claim in the place of *known*, made *at* (ms). Which other runs remove it goes on telling: to be overtaken does
    not end a write under way.
    """
    others = json.loads(known).get("removing", {}) if known else {}
    lasting = REMOVES_FOR // timedelta(milliseconds=1)
    young = {r: since for r, since in others.items() if r != run and at - since < lasting}
    runs = {**young, **({run: at} if removing else {})}
    value = {"mark": mark, "run": run, "at": at, "claim": secrets.token_hex(8)}
    return dump({**value, "removing": runs} if runs else value)


def _overtaken(table: str) -> str:
    return (
        f"another run of history_gc has taken over table {table}, or a restore or a hold has; this one does nothing "
        "more to it. Let the newer run finish, then run again"
    )


def _hold_row(hold: Hold) -> bytes:
    return f"hold/{hold.table}/{hold.id}".encode()
