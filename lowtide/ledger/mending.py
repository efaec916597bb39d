"""What of a ledger contradicts itself whose tables are of different times, and what sets it right. Pure: programs, as
:mod:`lowtide.ledger.steps` has them.

Tables that came back from HBase snapshots are each of their own moment. Which of them is right follows from how
clients write: all of a transaction is a function of its ``request`` and its ``decision``, both of which stand in its
own row. So the transactions are right, and the records follow: one that its transaction cannot have goes, whole, and
one that it must have is written as every actor would have written it.

A record is taken hold of first: its state becomes one that no rule knows, by check-and-put from what was read. From
then on whoever meets it stops.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from lowtide.errors import LedgerError
from lowtide.ledger import settled, steps
from lowtide.ledger.model import (
    Cells,
    ContradictionError,
    RecordState,
    State,
    Table,
    Transaction,
    key_shown,
    parse_transaction,
    record_row,
)
from lowtide.ledger.settled import Settled
from lowtide.ledger.steps import CheckAndPut, Observed, Program, Put, Read, Remove, Scan

#: The state of a record that is being set right.
_HELD = "being mended"
_MOST_TRIES = 10
#: To the table's end: a key that is no text of clients may lie anywhere.
_END = ""
_PAGE = steps.RECORDS_A_PAGE
#: The states that records may have beside their transaction's; beside any other there is none.
_BESIDE: dict[State | None, tuple[RecordState | None, ...]] = {
    State.IN_PROGRESS: (None, RecordState.PENDING),
    State.COMMITTED: (RecordState.PENDING, RecordState.FINISHED),
    State.FINISHED: (RecordState.FINISHED,),
}


class Act(StrEnum):
    """What becomes of a record."""

    REMOVE = "remove"
    WRITE = "write"


@dataclass(frozen=True, slots=True)
class Fault:
    """A record that its transaction cannot have, or lacks.

    *cells* are those of its row as it was found, all there is of it; *due* what they become, {} for nothing.
    """

    id: str
    user: str
    act: Act
    why: str
    cells: Cells
    due: Cells

    @property
    def row(self) -> str:
        """Of the record."""
        return record_row(self.user, self.id)


@dataclass(slots=True)
class Survey:
    """What was found in all of a ledger.

    *left*: what contradicts itself and is for a person to look at. *total*: what all users but the issuer have, by the
    records that are right; *paid_in*: what they should have, by the transactions.
    """

    faults: list[Fault] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    total: int = 0
    paid_in: int = 0

    @property
    def balanced(self) -> bool:
        """Whether the money adds up."""
        return self.total == self.paid_in


def judge(id: str, transaction: Transaction | None, user: str, cells: Cells) -> Fault | None:
    """What is wrong with a record; None: nothing.

    Args:
        id: of the transaction in its row.
        transaction: as it was at the same moment; None: there is none.
        user: in its row.
        cells: of its row; {} where there is none.
    """
    record = next((r for r in transaction.records if r.user == user), None) if transaction else None
    allowed = _BESIDE.get(transaction.state) if transaction else None
    if transaction is None or record is None or allowed is None:
        why = (
            "it has no transaction"
            if transaction is None
            else "its user has no part in its transaction"
            if record is None
            else f"its transaction is {transaction.state or 'only claimed'}"
        )
        return Fault(id, user, Act.REMOVE, why, cells, {}) if cells else None
    try:
        state = record.state(cells)
        why = f"it {f'is {state}' if state else 'is missing'}, and its transaction is {transaction.state}"
        if state in allowed:
            return None
    except ContradictionError as error:
        why = str(error)
    due = RecordState.PENDING if transaction.state is State.IN_PROGRESS else RecordState.FINISHED
    return Fault(id, user, Act.WRITE, why, cells, {**record.cells, "state": due.value})


def examine(id: str, user: str | None = None) -> Program[list[Fault]]:
    """What is wrong with the records of a transaction, as they and it were at one moment.

    Args:
        id: of the transaction, there or not.
        user: whose record brought it up.

    Raises:
        ContradictionError: the transaction itself is such as no client leaves it.
    """
    (row,) = yield Read(Table.TRANSACTIONS, (id,))
    known: dict[str, Cells] = {}
    transaction = None
    if row:
        observed = yield from steps.with_records(Observed(id, row))
        transaction = parse_transaction(id, observed.row)
        known = {transaction.debit.user: observed.debit or {}, transaction.credit.user: observed.credit or {}}
    if user is not None and user not in known:
        (known[user],) = yield Read(Table.RECORDS, (record_row(user, id),))
    judged = (judge(id, transaction, each, cells) for each, cells in known.items())
    return [fault for fault in judged if fault]


def mend(id: str, user: str) -> Program[None]:
    """Set right what :func:`examine` finds, until it finds nothing.

    Raises:
        ContradictionError: as there.
        LedgerError: others keep changing it.
    """
    for _ in range(_MOST_TRIES):
        faults = yield from examine(id, user)
        if not faults:
            return
        for fault in faults:
            yield from _set_right(fault)
    msg = (
        f"record {record_row(user, id)} was set right {_MOST_TRIES} times and changes: stop the ledger's clients. "
        "Where none is there, a server's clock is behind the one that wrote it: wait two minutes, and mend again"
    )
    raise LedgerError(msg)


def _set_right(fault: Fault) -> Program[None]:
    if not (yield CheckAndPut(Table.RECORDS, fault.row, "state", fault.cells.get("state"), _HELD)):
        return  # another was faster: it is judged again
    if fault.act is Act.REMOVE:
        yield Remove(Table.RECORDS, fault.row)
        return
    # Over what is there: a deletion would hide what HBase is given in the same millisecond.
    yield Put(Table.RECORDS, fault.row, {name: value for name, value in fault.due.items() if name != "state"})
    yield CheckAndPut(Table.RECORDS, fault.row, "state", _HELD, fault.due["state"])


def survey(issuer: str) -> Program[Survey]:
    """Read all transactions and all records, page by page; what seems wrong is read again, at one moment."""
    found = Survey()
    suspects: dict[tuple[str, str], None] = {}
    yield from _transactions(found, suspects, issuer)
    yield from _records(found, suspects, issuer)
    faults: dict[str, Fault] = {}
    for id, user in suspects:
        try:
            faults |= {fault.row: fault for fault in (yield from examine(id, user))}
        except ContradictionError as error:
            _leave(found, str(error))
    found.faults = [faults[row] for row in sorted(faults)]
    return found


def _transactions(found: Survey, suspects: dict[tuple[str, str], None], issuer: str) -> Program[None]:
    """All transactions: their own contradictions, what was paid in, and records that are not as they must be."""
    before = ("", 0)
    start = ""
    while True:
        rows = yield Scan(Table.TRANSACTIONS, start, _END, limit=_PAGE)
        page = list(_parsed(found, rows))
        for transaction in page:
            sender = transaction.request.sender
            due = before[1] + 1 if before[0] == sender else 1
            if transaction.number != due:
                _leave(found, f"transaction {transaction.id} is the next of its sender after number {due - 1}: a gap")
            before = sender, transaction.number
            if transaction.state is State.FINISHED:
                found.paid_in += transaction.request.amount * (
                    (sender == issuer) - (transaction.request.recipient == issuer)
                )
        decided = [(t, record) for t in page if t.state in _BESIDE for record in t.records]
        cells = (yield Read(Table.RECORDS, tuple(record.row for _, record in decided))) if decided else []
        for (transaction, record), there in zip(decided, cells, strict=True):
            if judge(transaction.id, transaction, record.user, there):
                suspects[transaction.id, record.user] = None
        if len(rows) < _PAGE:
            return
        start = rows[-1][0] + "\0"


def _records(found: Survey, suspects: dict[tuple[str, str], None], issuer: str) -> Program[None]:
    """All records: those that their transaction cannot have, and what the others come to."""
    start = ""
    while True:
        rows = yield Scan(Table.RECORDS, start, _END, limit=_PAGE)
        keys = list(_named(found, rows))
        ids = tuple(dict.fromkeys(id for _, id, _ in keys))
        of = dict(zip(ids, (yield Read(Table.TRANSACTIONS, ids)) if ids else (), strict=True))
        parsed = {t.id: t for t in _parsed(found, of.items())}
        for user, id, cells in keys:
            transaction = parsed.get(id)
            if of[id] and transaction is None:
                continue  # of a transaction that is left
            if judge(id, transaction, user, cells):
                suspects[id, user] = None
            elif transaction and transaction.state is State.FINISHED and user != issuer:
                found.total += steps.side(transaction, user).amount
        if len(rows) < _PAGE:
            return
        start = rows[-1][0] + "\0"


def _named(found: Survey, rows: Iterable[tuple[str, Cells]]) -> Iterator[tuple[str, str, Cells]]:
    """User, transaction and cells of records. A row that names no transaction is left, as HBase takes no empty key; so
    is one that is no text, which no client wrote.
    """
    for row, cells in rows:
        user, _, id = row.partition("/")
        if id and key_shown(row) == row:
            yield user, id, cells
        else:
            why = "its row is no text" if id else "its row names no transaction, as USER/TRANSACTION does"
            _leave(found, f"record {key_shown(row)} is none: {why}; remove it")


def _parsed(found: Survey, rows: Iterable[tuple[str, Cells]]) -> Iterator[Transaction]:
    """Those that are there and no contradiction; others are left."""
    for id, cells in rows:
        if not cells:
            continue
        try:
            yield parse_transaction(id, cells)
        except ContradictionError as error:
            _leave(found, str(error))


def _leave(found: Survey, why: str) -> None:
    if why not in found.left:
        found.left.append(why)


def begin_anew() -> Program[None]:
    """Take the settled mark back to where nothing is known: it may be of another time than the transactions. The next
    repair makes the full check.
    """
    while True:
        _, text = yield from settled.read_settled()
        if text is None or (yield from settled.write_settled(text, Settled())):
            return
