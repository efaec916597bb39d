"""The ledger's rows: keys, columns, states, and what of them agrees with what. Pure.

Source: the transaction system's prototype (users, transactions, user_transactions in an append-only model). What is
added to its columns is there because HBase's gateway checks and puts one cell at a time: ``request`` claims a
transaction's number with all that it asks for, ``decision`` settles whether it runs. Both are written once, from
absent.

Every name, value and row here is text; the bytes in HBase are its UTF-8 (of a row that is none: :func:`key_text`).
Amounts are whole numbers of the smallest unit.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

from lowtide.errors import LedgerError, UsageError

Cells = Mapping[str, str]

#: An amount fits a signed 64-bit number; sums are exact at any size.
MAX_AMOUNT = 2**63 - 1
#: A sender's transactions are numbered from 1; the digits keep them in order.
_NUMBER_DIGITS = 12
MAX_NUMBER = 10**_NUMBER_DIGITS - 1
_MILLI_DIGITS = 15
MAX_MILLIS: int = 10**_MILLI_DIGITS - 1
_MAX_NICKNAME = 200
#: Requests and decisions that are not read twice: a repair meets each some twenty times, and works on this many
#: transactions side by side.
_KNOWN = 4096

_ID = re.compile(r"([0-9a-f]{40})-(\d{12})")
_USER = re.compile(r"[0-9a-f]{40}")
_AMOUNT = re.compile(r"-?[1-9]\d{0,18}")
_NONCE = re.compile(r"[0-9a-f]{16}")
_ENTRY = re.compile(r"(\d{15})/([0-9a-f]{40}-\d{12})/([0-9a-f]{16})")


class Table(StrEnum):
    """The ledger's tables; a configured prefix stands before each name."""

    USERS = "users"
    TRANSACTIONS = "transactions"
    #: The debit and the credit of each transaction, by user.
    RECORDS = "user_transactions"
    #: The transactions that have not ended, by time; and the settled mark.
    OPEN = "open_transactions"


#: The one column family of each table.
FAMILY = "l"

#: Row of the settled mark in the table of open transactions; it sorts after every entry.
SETTLED_ROW = "settled"

#: Row of the ledger's issuer in the same table, by nickname: who may go below zero is not for each node to say.
ISSUER_ROW = "issuer"


class State(StrEnum):
    """States of a transaction, in order; ``dropped`` is for what can never run."""

    INITIAL = "initial"
    IN_PROGRESS = "in progress"
    COMMITTED = "committed"
    FINISHED = "finished"
    DROPPED = "dropped"

    @property
    def over(self) -> bool:
        """Whether nothing can follow."""
        return self in (State.FINISHED, State.DROPPED)


class RecordState(StrEnum):
    """States of a user's record."""

    PENDING = "pending"
    FINISHED = "finished"


class ContradictionError(LedgerError):
    """Rows that no client of the ledger can have left. They are named and left alone, for a person to look at."""


def user_id(nickname: str) -> str:
    """The SHA-1 of the nickname, in hex.

    Raises:
        UsageError: no nickname, one of more than 200 characters, with blanks around it or with control characters.
    """
    if not nickname or nickname != nickname.strip() or len(nickname) > _MAX_NICKNAME or _unprintable(nickname):
        msg = f"a nickname has 1 to {_MAX_NICKNAME} printable characters and no blanks around it, found {nickname!r}"
        raise UsageError(msg)
    return hashlib.sha1(nickname.encode(), usedforsecurity=False).hexdigest()


def _unprintable(text: str) -> bool:
    return any(unicodedata.category(c).startswith("C") for c in text)


def check_amount(amount: object) -> int:
    """*amount*, a whole number from 1 to 2^63-1 (text is read as decimal digits).

    Raises:
        UsageError: anything else: zero, negative, a fraction, no number, too large.
    """
    number = int(amount) if isinstance(amount, str) and _AMOUNT.fullmatch(amount) else amount
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_AMOUNT:
        msg = f"an amount is a whole number of the smallest unit, from 1 to {MAX_AMOUNT}, found {amount!r}"
        raise UsageError(msg)
    return number


def transaction_id(sender: str, number: int) -> str:
    """Id and row of a sender's transaction: the sender first, so that they lie together, in order.

    Raises:
        LedgerError: the sender has used up all numbers.
    """
    if not 1 <= number <= MAX_NUMBER:
        msg = f"user {sender} has no transaction number {number}; numbers go from 1 to {MAX_NUMBER}"
        raise LedgerError(msg)
    return f"{sender}-{number:0{_NUMBER_DIGITS}d}"


def parse_transaction_id(text: str) -> tuple[str, int]:
    """Sender and number in a transaction's id.

    Raises:
        UsageError: *text* is none.
    """
    found = _ID.fullmatch(text)
    if not found or not int(found[2]):
        msg = f"a transaction's id is its sender's id, a dash and 12 digits, found {text!r}"
        raise UsageError(msg)
    return found[1], int(found[2])


@dataclass(frozen=True, slots=True, order=True)
class Entry:
    """An entry in the index of open transactions: from before a transaction's number is claimed until after its end.

    Its row is unique to one claim: *timestamp* and *nonce* are those of the claim's request.
    """

    timestamp: int
    id: str
    nonce: str

    @property
    def row(self) -> str:
        """By time first."""
        return f"{entry_bound(self.timestamp)}/{self.id}/{self.nonce}"

    @property
    def cells(self) -> dict[str, str]:
        """What stands in the row; the row says it all, but HBase has no row without a cell."""
        return {"transaction": self.id}

    @classmethod
    def parse(cls, row: str) -> Entry:
        """The entry of *row*.

        Raises:
            ContradictionError: it is none.
        """
        found = _ENTRY.fullmatch(row)
        if not found:
            msg = f"the row {row!r} of {Table.OPEN} is no entry of an open transaction; remove it if nobody knows it"
            raise ContradictionError(msg)
        return cls(int(found[1]), found[2], found[3])


def key_bytes(row: str) -> bytes:
    """A row as it stands in HBase; the way back from :func:`key_text`, byte by byte."""
    return row.encode(errors="surrogateescape")


def key_text(row: bytes) -> str:
    """A row as text, also one that is no UTF-8, which no client has written: whoever scans on from it must do so from
    these very bytes, and a key that was only made printable may lie before rows that were read already.
    """
    return row.decode(errors="surrogateescape")


def key_shown(row: str) -> str:
    """A row for people: what of it is no UTF-8 as ``\\xff``."""
    return key_bytes(row).decode(errors="backslashreplace")


def entry_bound(millis: int) -> str:
    """The row before all entries of *millis* and later."""
    return f"{_in_range(millis):0{_MILLI_DIGITS}d}"


def _in_range(millis: int) -> int:
    return min(max(millis, 0), MAX_MILLIS)


@dataclass(frozen=True, slots=True)
class Request:
    """What a transfer asks for. The cell ``request`` holds all of it, so that whoever finds it can write the other
    columns.

    *timestamp*: wall-clock ms of the client, at which it put the index entry and was about to claim. *nonce*: 16 hex
      digits that tell two claims apart.
    """

    sender: str
    recipient: str
    amount: int
    timestamp: int
    nonce: str

    def stamped(self, now: int) -> Request:
        """The same, asked for at *now* (ms). A time that a request cannot bear becomes the nearest that it can: nobody
        could end it otherwise.
        """
        return replace(self, timestamp=_in_range(now))

    def encode(self) -> str:
        """The cell's value."""
        return _dump({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    @lru_cache(_KNOWN)
    def decode(cls, text: str) -> Request:
        """The request in a cell.

        Raises:
            ValueError: the value is malformed, or asks for what no client may ask for; says which part.
        """
        value = json.loads(text)
        if not isinstance(value, dict) or set(value) != set(cls.__slots__):
            msg = f"its parts must be {', '.join(cls.__slots__)}"
            raise ValueError(msg)
        request = cls(**value)
        faults = {
            "sender": not _is(_USER, request.sender),
            "recipient": not _is(_USER, request.recipient) or request.sender == request.recipient,
            "amount": not _is_whole(request.amount, 1, MAX_AMOUNT),
            "timestamp": not _is_whole(request.timestamp, 0, MAX_MILLIS),
            "nonce": not _is(_NONCE, request.nonce),
        }
        for name, faulty in faults.items():
            if faulty:
                msg = f"{name} is {value[name]!r}"
                raise ValueError(msg)
        return request


def _is(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and bool(pattern.fullmatch(value))


def _is_whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a transaction runs, and what that was based on. Final, as it is put once, from absent.

    Args:
        reason: why it never runs; empty: it runs.
        spent: the sender's earlier debits that run, in all: those of every smaller number, none missing.
        credited: finished credits of the sender that were seen; there may be more, there can never be fewer.
    """

    reason: str
    spent: int
    credited: int

    @property
    def runs(self) -> bool:
        """Whether the money moves."""
        return not self.reason

    def encode(self) -> str:
        """The cell's value."""
        return _dump({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    @lru_cache(_KNOWN)
    def decode(cls, text: str) -> Decision:
        """The decision in a cell.

        Raises:
            ValueError: the value is malformed.
        """
        value = json.loads(text)
        if not isinstance(value, dict) or set(value) != set(cls.__slots__):
            msg = f"its parts must be {', '.join(cls.__slots__)}"
            raise ValueError(msg)
        found = cls(**value)
        if (
            not isinstance(found.reason, str)
            or not _is_whole(found.spent, 0, 2**127)
            or not _is_whole(found.credited, 0, 2**127)
        ):
            msg = "reason must be text, spent and credited whole numbers"
            raise ValueError(msg)
        return found


@dataclass(frozen=True, slots=True)
class Record:
    """One side of a transaction: what a user pays (negative) or gets. Row, id and columns follow from the
    transaction.
    """

    user: str
    transaction: str
    amount: int
    timestamp: int

    @property
    def row(self) -> str:
        """The user first, so that a user's records lie together. There is one record a user and transaction, whoever
        writes it.
        """
        return record_row(self.user, self.transaction)

    @property
    def cells(self) -> dict[str, str]:
        """All columns but the state."""
        return {
            "id": self.row,
            "user_id": self.user,
            "transaction_id": self.transaction,
            "amount": str(self.amount),
            "timestamp": str(self.timestamp),
        }

    def state(self, cells: Cells) -> RecordState | None:
        """The state in *cells*, which were read from this record's row; None: it has none yet.

        Raises:
            ContradictionError: a column disagrees with the transaction, or the state is unknown.
        """
        for name, due in self.cells.items():
            found = cells.get(name)
            if found != due and (found is not None or "state" in cells):
                msg = f"record {self.row}: {name} is {_shown(found)}, its transaction says {due!r}"
                raise ContradictionError(msg)
        text = cells.get("state")
        if text is None:
            return None
        if text not in tuple(RecordState):
            msg = f"record {self.row}: unknown state {text!r}"
            raise ContradictionError(msg)
        return RecordState(text)

    def complete(self, cells: Cells) -> bool:
        """Whether all columns but the state are there."""
        return all(name in cells for name in self.cells)


def record_row(user: str, transaction: str) -> str:
    """Row of a user's record of a transaction."""
    return f"{user}/{transaction}"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction as its row tells. *state* is None between the claim of its number and ``initial``."""

    id: str
    number: int
    request: Request
    complete: bool
    state: State | None
    decision: Decision | None

    @property
    def entry(self) -> Entry:
        """Its entry in the index of open transactions."""
        return Entry(self.request.timestamp, self.id, self.request.nonce)

    @property
    def debit(self) -> Record:
        """What the sender pays."""
        return Record(self.request.sender, self.id, -self.request.amount, self.request.timestamp)

    @property
    def credit(self) -> Record:
        """What the recipient gets."""
        return Record(self.request.recipient, self.id, self.request.amount, self.request.timestamp)

    @property
    def records(self) -> tuple[Record, Record]:
        """Both."""
        return self.debit, self.credit

    @property
    def spent(self) -> int:
        """The sender's debits that run, up to and with this one. Only of a decided transaction."""
        if self.decision is None:
            msg = f"transaction {self.id} is not decided"
            raise ValueError(msg)
        return self.decision.spent + (self.request.amount if self.decision.runs else 0)

    @property
    def cells(self) -> dict[str, str]:
        """All columns that follow from the request."""
        return transaction_cells(self.id, self.request)


def transaction_cells(id: str, request: Request) -> dict[str, str]:
    """The columns of a transaction but ``request``, ``decision`` and ``state``."""
    return {
        "id": id,
        "sender": request.sender,
        "recipient": request.recipient,
        "amount": str(request.amount),
        "timestamp": str(request.timestamp),
    }


def parse_transaction(id: str, cells: Cells) -> Transaction:
    """The transaction in the row *id*.

    Raises:
        ContradictionError: a column is missing or disagrees, a state or decision is unknown, or the two are out of
            order; names it.
    """
    try:
        sender, number = parse_transaction_id(id)
    except UsageError as error:
        raise ContradictionError(f"row {id!r} of {Table.TRANSACTIONS}: {error}") from None
    request = _part(id, cells, "request", Request)
    if request is None:
        raise _wrong(id, "request is missing")
    if request.sender != sender:
        raise _wrong(id, f"its request is of sender {request.sender}")
    state = _state(id, cells)
    due = transaction_cells(id, request)
    for name, value in due.items():
        found = cells.get(name)
        if found != value and (found is not None or state is not None):
            raise _wrong(id, f"{name} is {_shown(found)}, its request says {value!r}")
    decision = _part(id, cells, "decision", Decision)
    _check_order(id, state, decision)
    return Transaction(id, number, request, all(name in cells for name in due), state, decision)


def _state(id: str, cells: Cells) -> State | None:
    text = cells.get("state")
    if text is not None and text not in tuple(State):
        raise _wrong(id, f"unknown state {text!r}; known are {', '.join(State)}")
    return None if text is None else State(text)


def _check_order(id: str, state: State | None, decision: Decision | None) -> None:
    if state is None and decision is not None:
        raise _wrong(id, "it is decided and has no state")
    if state in (State.IN_PROGRESS, State.COMMITTED, State.FINISHED) and not (decision and decision.runs):
        raise _wrong(id, f"it is {state}, and its decision is {_verdict(decision)}")
    if state is State.DROPPED and not (decision and not decision.runs):
        raise _wrong(id, f"it is dropped, and its decision is {_verdict(decision)}")


def _verdict(decision: Decision | None) -> str:
    if decision is None:
        return "missing"
    return "to run" if decision.runs else "to drop it"


def _part(id: str, cells: Cells, name: str, kind: Any) -> Any:
    if name not in cells:
        return None
    try:
        return kind.decode(cells[name])
    except (ValueError, TypeError) as error:
        raise _wrong(id, f"{name} is malformed: {error}") from None


def _wrong(id: str, what: str) -> ContradictionError:
    return ContradictionError(f"transaction {id}: {what}")


def _shown(value: str | None) -> str:
    return "missing" if value is None else repr(value)


def _dump(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
