"""The repair of the ledger as its job drives it, a step at a time: the index is read, what is old enough is brought to
its end, the settled mark moves. What Spark does in the job, reading tables whole, is done here row by row; the rules
of the mark are Lowtide's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from lowtide.errors import StoreError
from lowtide.ledger import settled, steps
from lowtide.ledger.model import ContradictionError, Entry, RecordState, State, Table, entry_bound, parse_transaction
from lowtide.ledger.settled import SKEW, Settled
from lowtide.ledger.steps import Program, Put, Read, Scan
from tests.chaos.ledger_memory import Index

#: The ledger's own, ms, and how often the full check is made, as they are unless somebody configures them.
GRACE, FULL_EVERY = 15 * 60_000, 24 * 3_600_000
_END = ":"  # after every entry


@dataclass
class Job:
    """A run, its options, and the problems that it tells of.

    *grace*: its own, ms, which may be shorter than the ledger's. *now*: when it began, by HBase's clock.
    """

    name: str
    issuer: str
    now: int
    grace: int = GRACE
    full: bool = False
    problems: list[str] = field(default_factory=list)

    def steps(self) -> Program[None]:
        """All of it.

        Raises:
            StoreError: the money does not add up, or finished transactions are gone; nothing was repaired.
        """
        stored, _ = yield from settled.read_settled()
        mark = settled.trusted(stored, self.now)
        if mark != stored:
            yield from self._move(lambda m: settled.trusted(self._back(m, 0), self.now) if m == stored else m)
        self.full = bool(self.full or mark.wrong_at or self.now - mark.full_at >= FULL_EVERY)
        horizon = self.now - self.grace
        ripe = min(horizon, self.now - GRACE)
        restored: list[Entry] = []
        counted = 0
        if self.full:
            transactions = yield Scan(Table.TRANSACTIONS, "", "")
            counted = sum(cells.get("state") == State.FINISHED for _, cells in transactions)
            yield from self._check_money(settled.lost(stored, counted, Table.OPEN), transactions)
            restored = yield from self._check_everything(transactions, mark.mark)
        start = 0 if self.full else mark.mark
        yield from self._repair_open(start, horizon, ripe, restored)
        yield from self._settle(start, ripe, stored, counted)

    def _check_money(self, gone: str, transactions: list[tuple[str, Any]]) -> Program[None]:
        """Whoever is finished has moved the amount."""
        records = dict((yield Scan(Table.RECORDS, "", "")))
        finished = {row[41:] for row, cells in records.items() if cells.get("state") == RecordState.FINISHED}
        problems = len(self.problems)
        for id, cells in transactions:
            # What is in order at first sight is not read again.
            sides = (f"{cells.get('sender')}/{id}", f"{cells.get('recipient')}/{id}")
            if cells.get("state") == State.FINISHED and not (id in finished and all(r in records for r in sides)):
                yield from self._or_told(steps.audit(id))
        if gone or len(self.problems) > problems:
            yield from self._move(lambda m: replace(m, wrong_at=self.now))
            raise StoreError(gone or f"the money does not add up: {self.problems[-1]}")

    def _check_everything(self, transactions: list[tuple[str, Any]], mark: int) -> Program[list[Entry]]:
        """Rows that contradict each other are told; open transactions that the index does not know are given back."""
        records = yield Scan(Table.RECORDS, "", "")
        index = dict((yield Index("", _END)))
        over = {id for id, cells in transactions if cells.get("state") == State.FINISHED}
        for id, user in [*((id, None) for id, _ in transactions), *((r[41:], r[:40]) for r, _ in records)]:
            if id not in over:
                yield from self._or_told(steps.audit(id, user))
        lost: list[Entry] = []
        for id, cells in transactions:
            if cells.get("state") in (State.FINISHED, State.DROPPED):
                continue
            entry = yield from self._or_told(_open_entry(id))
            if entry and entry.row not in index:
                lost.append(entry)
        passed: list[Entry] = []
        for row, _ in (yield Index("", entry_bound(mark))):
            entry = Entry.parse(row)
            if (yield from self._or_told(_open_entry(entry.id))) == entry:
                passed.append(entry)
        for entry in lost:
            yield Put(Table.OPEN, entry.row, entry.cells)
        if passed or lost:
            oldest = min([*passed, *lost]).timestamp
            yield from self._move(lambda m: replace(self._back(m, oldest), run=self.name, at=self.now))
        return lost

    def _repair_open(self, start: int, horizon: int, ripe: int, restored: list[Entry]) -> Program[None]:
        index = yield Index(entry_bound(start), _END)
        found = [(entry, written) for row, written in index if (entry := Entry.parse(row)) and written < horizon]
        chosen = [each for each in found if each[0].timestamp < horizon or each[0].timestamp > each[1] + SKEW]
        for entry, written in [*chosen, *((entry, 0) for entry in restored)]:
            if written >= ripe and not (yield Read(Table.TRANSACTIONS, (entry.id,)))[0]:
                continue  # its client may be about to claim
            yield from self._or_told(steps.repair(entry, self.issuer, at_once=True))

    def _settle(self, start: int, horizon: int, stored: Settled, counted: int) -> Program[None]:
        while True:
            mark, text = yield from settled.read_settled()
            if mark.wrong_at and (mark.wrong_at != stored.wrong_at or not self.full):
                return
            begin, end = min(start, mark.mark), max(horizon, mark.mark)
            found = yield from settled.open_entries(begin, end, limit=1)
            to = settled.next_mark(mark.mark, horizon, found[0].timestamp if found else None)
            after = replace(self._back(mark, to), mark=to, run=self.name, at=self.now, checked_at=self.now)
            if self.full:
                after = replace(after, full_at=self.now, finished=max(mark.finished, counted), wrong_at=0)
            if (yield from settled.write_settled(text, after)):
                return

    def _back(self, mark: Settled, to: int) -> Settled:
        if to >= mark.mark:
            return mark
        return replace(mark, mark=to, moved_back_from=mark.mark, moved_back_at=self.now)

    def _move(self, change: Callable[[Settled], Settled]) -> Program[None]:
        while True:
            mark, text = yield from settled.read_settled()
            if (yield from settled.write_settled(text, change(mark))):
                return

    def _or_told(self, program: Program[Any]) -> Program[Any]:
        """What *program* comes to; None, and a problem, where it contradicts itself."""
        try:
            return (yield from program)
        except ContradictionError as error:
            self.problems.append(f"contradiction: {error}")
            return None


def _open_entry(id: str) -> Program[Entry | None]:
    """The entry that a transaction should have; None: it is over, or not there."""
    (row,) = yield Read(Table.TRANSACTIONS, (id,))
    if not row:
        return None
    transaction = parse_transaction(id, row)
    return None if transaction.state and transaction.state.over else transaction.entry
