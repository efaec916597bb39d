"""What a repair would make of a transaction, found out by its own steps, whose writes go nowhere. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from lowtide.ledger import steps
from lowtide.ledger.model import Cells, Entry, State, Table, Transaction, parse_transaction
from lowtide.ledger.steps import CheckAndPut, Operation, Outcome, Program, Read, Remove, Scan, T, Write


class End(StrEnum):
    """What becomes of an entry of the index of open transactions."""

    FINISH = "finish"
    DROP = "drop"
    #: The entry alone goes: it claimed nothing.
    REMOVE = "remove"


class Rule(StrEnum):
    """What that goes by; docs/jobs.md has a sentence on each."""

    OVER = "over"
    COMMITTED = "committed"
    DECIDED = "decided"
    UNDECIDED = "undecided"
    UNCLAIMED = "unclaimed"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What a repair would make of *entry*.

    *found* is the state that its transaction is in. *evidence* is what *end* goes by, in words without a full stop.
    """

    entry: Entry
    found: str
    end: End
    rule: Rule
    evidence: str


def foreseen(entry: Entry, issuer: str) -> Program[Foreseen]:
    """What a repair would make of *entry*, as things are: what becomes of the sender's balance meanwhile, by other
    transactions of the same repair for one, is not known. Reads alone.

    Raises:
        ContradictionError: as :func:`lowtide.ledger.steps.repair`.
    """
    (row,) = yield Read(Table.TRANSACTIONS, (entry.id,))
    outcome = yield from rehearsed(steps.repair(entry, issuer))
    if outcome is None:
        return Foreseen(entry, "never claimed", End.REMOVE, Rule.UNCLAIMED, "no transaction was claimed by it")
    transaction = parse_transaction(entry.id, row)
    end = End.FINISH if outcome.state is State.FINISHED else End.DROP
    rule, words = _why(transaction, outcome)
    request = transaction.request
    evidence = f"{request.amount} from {request.sender} to {request.recipient}: {words}"
    return Foreseen(entry, str(transaction.state or "claimed"), end, rule, evidence)


def _why(transaction: Transaction, outcome: Outcome) -> tuple[Rule, str]:
    state, reason = transaction.state, outcome.reason or "it can be paid"
    if state is not None and state.over:
        because = f" ({outcome.reason})" if outcome.reason else ""
        return Rule.OVER, f"it is {state}{because}, and its entry in the index was left"
    if state is State.COMMITTED:
        return Rule.COMMITTED, "it is committed, so that both of its records are there"
    if transaction.decision is not None:
        return Rule.DECIDED, f"that was decided: {reason}"
    return Rule.UNDECIDED, f"nobody has decided; as things are: {reason}"


def rehearsed(program: Program[T]) -> Program[T]:
    """*program*, whose writes are kept from the store and laid upon what it reads: reads alone.

    For programs that scan only what they have not written, as a repair does.
    """
    rows = _Imagined()
    answer: Any = None
    while True:
        try:
            operation = program.send(answer)
        except StopIteration as end:
            value: T = end.value
            return value
        answer = yield from rows.answer(operation)


class _Imagined:
    """The store as it would be after writes that were kept from it."""

    def __init__(self) -> None:
        #: What was written of a row; None: it was removed.
        self._laid: dict[tuple[Table, str], Cells | None] = {}

    def answer(self, operation: Operation) -> Program[Any]:
        """What the store would answer."""
        if isinstance(operation, Scan):
            assert not any(table is operation.table for table, _ in self._laid), "scanned after it was written"
            return (yield operation)
        if isinstance(operation, Read):
            found = yield operation
            return [self._shown(operation.table, *each) for each in zip(operation.rows, found, strict=True)]
        if isinstance(operation, CheckAndPut):
            (there,) = yield Read(operation.table, (operation.row,))
            if self._shown(operation.table, operation.row, there).get(operation.column) != operation.expected:
                return False
        self._lay(operation)
        return True if isinstance(operation, CheckAndPut) else None

    def _shown(self, table: Table, row: str, cells: Cells) -> Cells:
        laid = self._laid.get((table, row), {})
        return {} if laid is None else {**cells, **laid}

    def _lay(self, write: Write) -> None:
        place = (write.table, write.row)
        if isinstance(write, Remove):
            self._laid[place] = None
        else:
            self._laid[place] = {**(self._laid.get(place) or {}), **write.cells}
