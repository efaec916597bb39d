"""What is read and written, in which order, to bring a transaction to its end. Pure: programs that yield what they want
of the store and are sent the answers, so that a test can stop, repeat or mix them between any two reads and writes.

A client and a repair run the same function, :func:`advance`, which names the next write from what was read. Why any
number of them, stopped and resumed at will, come to one outcome:

- A transaction's number is claimed by ``request``, put if absent. Everything else of it is a function of that one cell
  and of
  ``decision``, put if absent too. So two actors write the same values to the same cells, in whatever order.
- A state moves by check-and-put from the state before it, after the other columns of its row are there. A late step is
  refused, and its actor reads again. Where a store puts several cells by one check (*at once*), what has to be there
  before a state comes with it: no state before the first one; none but ``initial`` where nothing is decided; no record
  where there is no ``id`` of it.
- Number n is decided when number n-1 is, which whoever needs it brings about. The sender's earlier debits are known
  then, and finished credits only ever grow: what is decided to run can be paid, whatever happens at the same time.
- The index entry is put before the claim and removed after the end: while a claimed transaction has not ended, it has
  its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, TypeVar

from lowtide.errors import LedgerError, UsageError
from lowtide.ledger.model import (
    MAX_NUMBER,
    Cells,
    ContradictionError,
    Decision,
    Entry,
    Record,
    RecordState,
    Request,
    State,
    Table,
    Transaction,
    key_shown,
    parse_transaction,
    parse_transaction_id,
    record_row,
    transaction_id,
    user_id,
)

#: No transaction takes more steps, not even one that others move at the same time; more means that check-and-put does
#: not hold.
_MOST_STEPS = 100
#: How often a changing balance is read before that is an error.
_MOST_READS = 20
_NO_NAMES: Mapping[str, str] = {}
_NO_CELLS: Mapping[str, str] = {}
#: Records of a user that are read at once: some users have millions.
RECORDS_A_PAGE = 1000


@dataclass(frozen=True, slots=True)
class Read:
    """Rows by key. Answer: the cells of each, in the order asked for; {} for a row that is not there."""

    table: Table
    rows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows from *start* to before *stop*, or to the table's end where that is empty (reverse: from *start* down to
    after *stop*). Answer: pairs of row and cells.
    """

    table: Table
    start: str
    stop: str
    limit: int | None = None
    reverse: bool = False


@dataclass(frozen=True, slots=True)
class Put:
    """Cells of one row, all at once. No answer. Only cells whose value follows from the row's claim."""

    table: Table
    row: str
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class CheckAndPut:
    """One cell, if it still is *expected* (None: absent), and cells *along* with it, which no Thrift gateway can do.
    Answer: whether it was.
    """

    table: Table
    row: str
    column: str
    expected: str | None
    value: str
    along: Mapping[str, str] = field(default_factory=dict)

    @property
    def cells(self) -> dict[str, str]:
        """All that is put."""
        return {self.column: self.value, **self.along}


@dataclass(frozen=True, slots=True)
class Remove:
    """A whole row. No answer."""

    table: Table
    row: str


Write = Put | CheckAndPut | Remove
Operation = Read | Scan | Write

T = TypeVar("T")
Program = Generator[Operation, Any, T]


class Need(Enum):
    """What must be found out before the next write can be named."""

    #: Whether the transaction can run.
    DECISION = auto()
    #: What the two rows of its records hold.
    RECORDS = auto()


@dataclass(frozen=True, slots=True)
class Observed:
    """What an actor knows of a transaction: rows as it read them, with its own writes laid upon them.

    *debit*, *credit*: None where not read; {} also where there can be none, and each is put only if there is none.
    *closed*: its index entry is removed.
    """

    id: str
    row: Cells
    debit: Cells | None = None
    credit: Cells | None = None
    closed: bool = False

    def after(self, write: Write) -> Observed:
        """What is known once *write* was acknowledged."""
        if isinstance(write, Remove):
            return replace(self, closed=True)
        cells = dict(write.cells)
        if write.table is Table.TRANSACTIONS:
            # Before the state that came with the decision nobody writes records.
            decided: Any = {"debit": {}, "credit": {}} if "decision" in cells and "state" in cells else {}
            return replace(self, row={**self.row, **cells}, **decided)
        transaction = parse_transaction(self.id, self.row)
        if write.row == transaction.debit.row:
            return replace(self, debit={**(self.debit or {}), **cells} if self.debit is not None else None)
        return replace(self, credit={**(self.credit or {}), **cells} if self.credit is not None else None)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a transaction stands. *reason*: why it was dropped."""

    id: str
    state: State | None
    reason: str = ""


def advance(observed: Observed, at_once: bool = False) -> Write | Need | None:
    """The next write of a transaction, what must be read to name it, or None: it is over and its index entry removed.

    Args:
        at_once: the store puts several cells of a row by one check.

    Raises:
        ContradictionError: its rows are such as no client leaves them.
    """
    transaction = parse_transaction(observed.id, observed.row)
    if transaction.state is None:
        if transaction.complete or at_once:
            return _state(observed.id, None, State.INITIAL, {} if transaction.complete else transaction.cells)
        return Put(Table.TRANSACTIONS, observed.id, transaction.cells)
    if transaction.state is State.INITIAL:
        if transaction.decision is None:
            return Need.DECISION
        return _state(observed.id, State.INITIAL, State.IN_PROGRESS if transaction.decision.runs else State.DROPPED)
    if transaction.state is State.IN_PROGRESS:
        return _in_progress(transaction, observed, at_once)
    if transaction.state is State.COMMITTED:
        return _committed(transaction, observed)
    return None if observed.closed else Remove(Table.OPEN, transaction.entry.row)


def _in_progress(transaction: Transaction, observed: Observed, at_once: bool) -> Write | Need:
    if observed.debit is None or observed.credit is None:
        return Need.RECORDS
    for record, cells in ((transaction.debit, observed.debit), (transaction.credit, observed.credit)):
        state = record.state(cells)
        if state is RecordState.FINISHED:
            msg = f"record {record.row} is finished, its transaction only in progress"
            raise ContradictionError(msg)
        if state is None:
            if at_once and not cells:
                # By its id, which whoever puts any of it puts: another's half of it is read before it is written over.
                along = {**record.cells, "state": RecordState.PENDING.value}
                return CheckAndPut(Table.RECORDS, record.row, "id", None, along.pop("id"), along)
            if not record.complete(cells):
                return Put(Table.RECORDS, record.row, record.cells)
            return CheckAndPut(Table.RECORDS, record.row, "state", None, RecordState.PENDING)
    return _state(observed.id, State.IN_PROGRESS, State.COMMITTED)


def _committed(transaction: Transaction, observed: Observed) -> Write:
    """The records are there, so they are finished unread; where one refused, both have been read since, and say why."""
    for record, cells in ((transaction.debit, observed.debit), (transaction.credit, observed.credit)):
        state = RecordState.PENDING if cells is None else record.state(cells)
        if state is None:
            msg = f"record {record.row} is missing or has no state, and its transaction is committed"
            raise ContradictionError(msg)
        if state is RecordState.PENDING:
            return CheckAndPut(Table.RECORDS, record.row, "state", RecordState.PENDING, RecordState.FINISHED)
    return _state(observed.id, State.COMMITTED, State.FINISHED)


def _state(id: str, before: State | None, after: State, along: Mapping[str, str] = _NO_CELLS) -> CheckAndPut:
    return CheckAndPut(Table.TRANSACTIONS, id, "state", before, after, along)


# -- one transaction


def drive(observed: Observed, issuer: str, until_decided: bool = False, at_once: bool = False) -> Program[Transaction]:
    """Bring a claimed transaction to its end, or only to its decision; the transaction as it stands then.

    In state ``committed`` a record is known unread to be pending: *observed* may leave it out, and then it counts as
    finished once the check-and-put was acknowledged. *at_once*: see :func:`advance`.

    Raises:
        ContradictionError: its rows, or those of the sender's earlier transactions, are such as no client leaves them.
        LedgerError: it keeps changing without getting on.
    """
    for _ in range(_MOST_STEPS):
        if until_decided and observed.row.get("decision") is not None:
            return parse_transaction(observed.id, observed.row)
        step = advance(observed, at_once)
        if step is None:
            return parse_transaction(observed.id, observed.row)
        if step is Need.RECORDS:
            observed = yield from with_records(observed)
        elif step is Need.DECISION:
            decision = yield from decide(parse_transaction(observed.id, observed.row), issuer, at_once)
            # Undecided, it still is in the state that was read: only a decision moves it on. HBase stamps what it puts
            # by the cell that it checks, so by a server whose clock is behind the state may stay hidden beneath the one
            # before. Where it runs, the next check of the state says so; after a drop only its index entry would go.
            along = {"state": State.IN_PROGRESS.value} if at_once and decision.runs else {}
            observed = yield from _written(
                observed, CheckAndPut(Table.TRANSACTIONS, observed.id, "decision", None, decision.encode(), along)
            )
        else:
            observed = yield from _written(observed, step)
    msg = (
        f"transaction {observed.id} was tried {_MOST_STEPS} times and does not get on; look at it with: lowtide ledger "
        f"show {observed.id}"
    )
    raise LedgerError(msg)


def _written(observed: Observed, write: Write) -> Program[Observed]:
    """*observed* after *write*, or, where another was faster, all rows read anew."""
    held = yield write
    if isinstance(write, CheckAndPut) and not held:
        return (yield from with_records(observed))
    if write.table is Table.RECORDS and isinstance(write, CheckAndPut):
        observed = _known(observed, write)
    return observed.after(write)


def _known(observed: Observed, write: CheckAndPut) -> Observed:
    """An acknowledged check-and-put of an unread record tells that it was as its transaction says."""
    transaction = parse_transaction(observed.id, observed.row)
    if write.row == transaction.debit.row and observed.debit is None:
        return replace(observed, debit=transaction.debit.cells)
    if write.row == transaction.credit.row and observed.credit is None:
        return replace(observed, credit=transaction.credit.cells)
    return observed


def with_records(observed: Observed) -> Program[Observed]:
    """Transaction and records as they were at one moment.

    The records are read between two readings of the transaction that agree. Otherwise a record could seem to be behind
    its transaction, or ahead of it, only because it was read earlier or later.
    """
    row = observed.row
    while True:
        transaction = parse_transaction(observed.id, row)
        debit, credit = yield Read(Table.RECORDS, (transaction.debit.row, transaction.credit.row))
        before, (row,) = row, (yield Read(Table.TRANSACTIONS, (observed.id,)))
        if row == before:
            return replace(observed, row=row, debit=debit, credit=credit)


def repair(entry: Entry, issuer: str, at_once: bool = False) -> Program[Outcome | None]:
    """Bring the transaction of an index entry to its end; None: its number was never claimed for this entry, which is
    removed. *at_once*: see :func:`advance`.

    Raises:
        ContradictionError: see :func:`drive`; the entry stays.
    """
    (row,) = yield Read(Table.TRANSACTIONS, (entry.id,))
    if not row or ("request" in row and parse_transaction(entry.id, row).entry != entry):
        yield Remove(Table.OPEN, entry.row)
        return None
    return outcome((yield from drive(Observed(entry.id, row), issuer, at_once=at_once)))


def outcome(transaction: Transaction) -> Outcome:
    """How *transaction* stands."""
    return Outcome(transaction.id, transaction.state, transaction.decision.reason if transaction.decision else "")


# -- whether it can run


def decide(transaction: Transaction, issuer: str, at_once: bool = False) -> Program[Decision]:
    """Whether an undecided transaction can run. Decides the sender's earlier ones first, where nobody has."""
    request = transaction.request
    spent, credited = yield from _basis(transaction, issuer, at_once)
    unknown = yield from _unknown_users(request.sender, request.recipient)
    if unknown:
        return Decision(f"unknown user {', '.join(unknown)}", spent, credited)
    if request.sender != issuer and credited - spent < request.amount:
        credited = max(credited, (yield from _credits(request.sender)))
        if credited - spent < request.amount:
            return Decision(f"the balance is {credited - spent}, the amount {request.amount}", spent, credited)
    return Decision("", spent, credited)


def _basis(transaction: Transaction, issuer: str, at_once: bool) -> Program[tuple[int, int]]:
    """What the sender spent before, and credits known to be finished."""
    sender, before = transaction.request.sender, None
    undecided: list[Observed] = []
    for number in range(transaction.number - 1, 0, -1):
        id = transaction_id(sender, number)
        (row,) = yield Read(Table.TRANSACTIONS, (id,))
        if not row:
            msg = f"transaction {id} is missing, though {transaction.id} exists: numbers leave no gaps"
            raise ContradictionError(msg)
        earlier = parse_transaction(id, row)
        if earlier.decision:
            before = earlier
            break
        undecided.append(Observed(id, row))
    for observed in reversed(undecided):
        before = yield from drive(observed, issuer, until_decided=True, at_once=at_once)
    if before is None or before.decision is None:
        return 0, 0
    return before.spent, before.decision.credited


def _unknown_users(*users: str) -> Program[list[str]]:
    rows = yield Read(Table.USERS, users)
    return [user for user, cells in zip(users, rows, strict=True) if "nickname" not in cells]


def _credits(user: str) -> Program[int]:
    """The sum of the user's credits that are finished, record and transaction."""
    total, _ = yield from _finished(user)
    return total


def _finished(user: str) -> Program[tuple[int, int]]:
    """Finished credits and debits of *user*, page by page; of each page records first, their transactions after
    them.
    """
    credit = debit = 0
    start, stop = f"{user}/", f"{user}0"
    while True:
        rows = yield Scan(Table.RECORDS, start, stop, limit=RECORDS_A_PAGE)
        page = [
            (row.removeprefix(f"{user}/"), cells) for row, cells in rows if cells.get("state") == RecordState.FINISHED
        ]
        transactions = (yield Read(Table.TRANSACTIONS, tuple(id for id, _ in page))) if page else []
        for (id, cells), row in zip(page, transactions, strict=True):
            amount = _finished_amount(user, id, cells, row)
            credit, debit = credit + max(0, amount), debit + min(0, amount)
        if len(rows) < RECORDS_A_PAGE:
            return credit, debit
        start = rows[-1][0] + "\0"  # the next row there can be


def _finished_amount(user: str, id: str, cells: Cells, row: Cells) -> int:
    if not row:
        raise ContradictionError(lone(user, id))
    transaction = parse_transaction(id, row)
    if transaction.state is not State.FINISHED:
        return 0
    record = side(transaction, user)
    record.state(cells)
    return record.amount


def lone(user: str, id: str) -> str:
    """What is wrong with a record whose transaction is not there."""
    row = key_shown(record_row(user, id))
    return f"record {row} has no transaction; where tables came back from a backup: lowtide ledger mend"


def side(transaction: Transaction, user: str) -> Record:
    """The record of *user* in a transaction.

    Raises:
        ContradictionError: the user has no part in it.
    """
    for record in transaction.records:
        if record.user == user:
            return record
    msg = f"record {user}/{transaction.id} is of neither the transaction's sender nor its recipient"
    raise ContradictionError(msg)


# -- what people and programs ask for


def transfer(
    request: Request, issuer: str, now: Callable[[], int], names: Mapping[str, str] = _NO_NAMES
) -> Program[Outcome]:
    """Check, claim the sender's next number, and bring the transaction to its end.

    What can be seen to be impossible before the claim is refused and leaves no trace. What turns out so after it is
    dropped.

    Args:
        request: what is asked for; stamped anew whenever its index entry is put, so that no wait before that (for a
            connection, for millions of records to be read, for numbers that others claim) lies between its time and its
            claim: the settled mark goes by that time.
        issuer: who may go below zero.
        now: the clock that stamps, ms.
        names: by which errors call users, by id; one without a name they call by its id.

    Raises:
        UsageError: a user is unknown, or the balance too small; nothing was written.
        ContradictionError: an earlier transaction of the sender contradicts itself; says whether this one was claimed.
    """
    unknown = yield from _unknown_users(request.sender, request.recipient)
    if unknown:
        raise UsageError(_unknown(unknown, names))
    last = yield from _last(request.sender)
    if request.sender != issuer:
        yield from _check_balance(request, last)
    number = last.number if last else 0
    while True:
        number += 1
        id = transaction_id(request.sender, number)
        request = request.stamped(now())
        entry = Entry(request.timestamp, id, request.nonce)
        yield Put(Table.OPEN, entry.row, entry.cells)
        row: Cells = {"request": request.encode()}
        if (yield CheckAndPut(Table.TRANSACTIONS, id, "request", None, request.encode())):
            break
        # The gateway's own client asks again where an answer was lost, and then says "refused" of a claim that held.
        (row,) = yield Read(Table.TRANSACTIONS, (id,))
        if row.get("request") == request.encode():
            break
        yield Remove(Table.OPEN, entry.row)
    try:
        return outcome((yield from drive(Observed(id, row), issuer)))
    except ContradictionError as error:
        msg = f"{error}; this transfer is transaction {id} and goes on when that is mended: do not transfer again"
        raise ContradictionError(msg) from error


def _last(sender: str) -> Program[Transaction | None]:
    """The sender's transaction with the highest number."""
    found = yield Scan(Table.TRANSACTIONS, transaction_id(sender, MAX_NUMBER), f"{sender}-", limit=1, reverse=True)
    return parse_transaction(*found[0]) if found else None


def _check_balance(request: Request, last: Transaction | None) -> Program[None]:
    """Refuse what cannot be paid, as far as the sender's decided transactions tell."""
    if last is not None and last.decision is None:
        return  # its own decision waits for those before it
    spent = last.spent if last else 0
    if last and last.decision and last.decision.credited - spent >= request.amount:
        return
    left = (yield from _credits(request.sender)) - spent
    if left < request.amount:
        msg = f"the sender's balance is {left}, the amount {request.amount}; nothing was transferred"
        raise UsageError(msg)


def _unknown(users: Sequence[str], names: Mapping[str, str]) -> str:
    called = ", ".join(names.get(user, user) for user in users)
    return f"unknown user {called}; add it with: lowtide ledger user add NICKNAME"


def balance(user: str, names: Mapping[str, str] = _NO_NAMES) -> Program[int]:
    """The sum of a user's records that are finished and whose transaction is, as it was at one moment.

    Nothing that counts ever stops counting. So two readings that agree are the state between them. *names*: as in
    :func:`transfer`.

    Raises:
        UsageError: the user is unknown.
        LedgerError: it changed at every reading.
    """
    if unknown := (yield from _unknown_users(user)):
        raise UsageError(_unknown(unknown, names))
    before = yield from _finished(user)
    for _ in range(_MOST_READS):
        now = yield from _finished(user)
        if now == before:
            return sum(now)
        before = now
    msg = (
        f"the balance of user {names.get(user, user)} changed at each of {_MOST_READS} readings; ask again when less "
        "is going on"
    )
    raise LedgerError(msg)


def audit(id: str, user: str | None = None) -> Program[Transaction]:
    """Check that a transaction's rows agree: finished, both records are finished; dropped, there are none; records are
    never ahead.

    Args:
        id: of the transaction.
        user: whose record brought it up; must have a part in it.

    Raises:
        ContradictionError: they do not, or there is no such transaction.
    """
    (row,) = yield Read(Table.TRANSACTIONS, (id,))
    if not row:
        raise ContradictionError(lone(user, id) if user else f"transaction {id} is gone")
    observed = yield from with_records(Observed(id, row))
    transaction = parse_transaction(id, observed.row)
    if user:
        side(transaction, user)
    for record, cells in zip(transaction.records, (observed.debit or {}, observed.credit or {}), strict=True):
        _audit_record(transaction, record, cells)
    return transaction


def _audit_record(transaction: Transaction, record: Record, cells: Cells) -> None:
    state = record.state(cells)
    actual = f"is {state}" if state else "exists" if cells else "is missing"
    ahead = state is RecordState.FINISHED and transaction.state not in (State.COMMITTED, State.FINISHED)
    behind = state is not RecordState.FINISHED and transaction.state is State.FINISHED
    if ahead or behind or (cells and transaction.state is State.DROPPED):
        msg = f"record {record.row} {actual}, and its transaction is {transaction.state or 'only claimed'}"
        raise ContradictionError(msg)


def show(id: str) -> Program[dict[str, Cells]]:
    """The rows of a transaction, as they are: ``transaction`` and, where it tells whose they are, ``debit`` and
    ``credit``.

    Raises:
        UsageError: no id, or no such transaction.
    """
    parse_transaction_id(id)
    (row,) = yield Read(Table.TRANSACTIONS, (id,))
    if not row:
        msg = f"there is no transaction {id}"
        raise UsageError(msg)
    try:
        transaction = parse_transaction(id, row)
    except ContradictionError:
        return {"transaction": row}
    debit, credit = yield Read(Table.RECORDS, (transaction.debit.row, transaction.credit.row))
    return {"transaction": row, "debit": debit, "credit": credit}


def add_user(nickname: str) -> Program[bool]:
    """Make a user; whether it was not there before. Its id follows from the nickname.

    Raises:
        UsageError: the nickname is none.
    """
    id = user_id(nickname)
    yield Put(Table.USERS, id, {"id": id})
    return bool((yield CheckAndPut(Table.USERS, id, "nickname", None, nickname)))


def run(program: Program[T], store: Any) -> T:
    """Run *program*; *store* is called with each operation and gives the answer."""
    answer: Any = None
    try:
        while True:
            answer = store(program.send(answer))
    except StopIteration as end:
        value: T = end.value
        return value
