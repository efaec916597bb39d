"""A ledger whose tables came back from different times, in memory: what contradicts itself, and how that is mended."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from functools import cache
from typing import Any

import pytest

from lowtide.errors import LowtideError
from lowtide.ledger import mending, steps
from lowtide.ledger.mending import Act, Survey
from lowtide.ledger.model import (
    SETTLED_ROW,
    ContradictionError,
    State,
    Table,
    parse_transaction,
    transaction_id,
    user_id,
)
from lowtide.ledger.settled import Settled
from lowtide.ledger.steps import CheckAndPut, Operation, Put, Read, Remove
from tests.unit.ledger_memory import ISSUER, Memory, opened, request, transfer
from tests.unit.test_ledger_steps import until

ANN, BOB, CID = (user_id(name) for name in ("ann", "bob", "cid"))
Rows = dict[Table, dict[str, dict[str, str]]]


class Kept(Memory):
    """Keeps what there was after every write."""

    def __init__(self, memory: Memory) -> None:
        super().__init__(memory.rows)
        self.moments: list[Rows] = [deepcopy(self.rows)]

    def __call__(self, operation: Operation) -> Any:
        answer = super().__call__(operation)
        if isinstance(operation, Put | CheckAndPut | Remove):
            self.moments.append(deepcopy(self.rows))
        return answer


@cache
def history() -> tuple[Rows, ...]:
    """Moments of a ledger at work: transfers that end, are dropped, and are left open; repaired at the end."""
    memory = Kept(opened("ann", "bob", "cid", money=10))
    for nonce, (sender, recipient, amount) in enumerate(
        [("ann", "bob", 4), ("bob", "cid", 13), ("cid", "issuer", 2), ("ann", "cid", 3)]
    ):
        steps.run(transfer(request(sender, recipient, amount, nonce=nonce + 1)), memory)
    until(memory, transfer(request("bob", "ann", 1, nonce=50)), 6, applied=True)
    until(memory, transfer(request("cid", "ann", 15, nonce=51)), 3, applied=True)
    memory.repair_all()
    memory.check_over()
    return tuple(memory.moments)


def came_back(transactions: int, records: int) -> Memory:
    """The ledger, its records of one moment and all else of another."""
    rows = deepcopy(history()[transactions])
    rows[Table.RECORDS] = deepcopy(history()[records][Table.RECORDS])
    return Memory(rows)


def mended(memory: Memory) -> Survey:
    """Set right as the command does it; what was found."""
    found = steps.run(mending.survey(ISSUER), memory)
    for fault in found.faults:
        steps.run(mending.mend(fault.id, fault.user), memory)
    steps.run(mending.begin_anew(), memory)
    return found


def due_records(memory: Memory) -> list[str]:
    """The records that finished transactions have."""
    transactions = [parse_transaction(id, cells) for id, cells in memory.rows[Table.TRANSACTIONS].items()]
    return [record.row for t in transactions if t.state is State.FINISHED for record in t.records]


def checked_whole(memory: Memory) -> None:
    """What a full check does: every open transaction has its entry, and is brought to its end."""
    for id, cells in memory.rows[Table.TRANSACTIONS].items():
        transaction = parse_transaction(id, cells)
        if not (transaction.state and transaction.state.over):
            memory(Put(Table.OPEN, transaction.entry.row, transaction.entry.cells))
    memory.repair_all()


@pytest.mark.parametrize("share", range(4))
def test_tables_of_any_two_moments_are_set_right(share: int) -> None:
    """Records of before their transactions, or after; also where clients have gone on with it and claimed numbers anew.
    Afterwards nothing contradicts itself, all is repaired, nothing is made or lost, and every call answers.
    """
    moments = range(0, len(history()), 3)
    faults: set[tuple[Act, str]] = set()
    for transactions in list(moments)[share::4]:
        for records in moments:
            for clients in (False, True):
                memory = came_back(transactions, records)
                if clients:
                    for nonce, pair in enumerate([("ann", "cid", 1), ("bob", "ann", 1), ("cid", "bob", 1)]):
                        with suppress(LowtideError):
                            steps.run(transfer(request(*pair, timestamp=2_000, nonce=100 + nonce)), memory)
                found = mended(memory)
                assert found.left == []
                if transactions == records:
                    assert (found.faults, found.balanced) == ([], True)
                faults |= {(fault.act, fault.why.split(",")[0].split(":")[0][:12]) for fault in found.faults}
                due = [row for row in due_records(memory) if memory.rows[Table.RECORDS].get(row, {}) == {}]
                assert due == [], "a finished transaction has both of its records"
                again = steps.run(mending.survey(ISSUER), memory)
                assert (again.faults, again.balanced) == ([], True)
                checked_whole(memory)
                memory.check_over()
                for user in (ANN, BOB, CID):
                    steps.run(steps.balance(user), memory)
                steps.run(transfer(request("issuer", "ann", 5, timestamp=3_000, nonce=200)), memory)
                steps.run(transfer(request("ann", "bob", 5, timestamp=3_000, nonce=201)), memory)
                memory.check_over()
    assert {act for act, _ in faults} == set(Act)
    assert {"it has no tr", "it is missin", "it is pendin"} <= {why for _, why in faults}


def test_users_whose_record_has_no_transaction_are_locked_out_until_it_is_mended() -> None:
    """The transfer fell between the snapshot of the transactions and that of the records: no balance, and no transfer
    that needs to know the sender's credits.
    """
    memory = opened("ann", "bob", money=10)
    before = deepcopy(memory.rows[Table.TRANSACTIONS])
    lost = steps.run(transfer(request("ann", "bob", 4, nonce=1)), memory).id
    memory.rows[Table.TRANSACTIONS] = before
    for user in (ANN, BOB):
        with pytest.raises(ContradictionError, match="has no transaction"):
            steps.run(steps.balance(user), memory)
    found = mended(memory)
    assert [(f.act, f.row, f.why) for f in found.faults] == [
        (Act.REMOVE, f"{user}/{lost}", "it has no transaction") for user in sorted((ANN, BOB))
    ]
    assert all(fault.cells["state"] == "finished" for fault in found.faults), "what goes is told whole"
    assert [steps.run(steps.balance(user), memory) for user in (ANN, BOB)] == [10, 10]
    assert steps.run(transfer(request("ann", "bob", 10, nonce=2)), memory).id == lost


def test_what_others_do_meanwhile_is_judged_again() -> None:
    """Between looking at a record and taking hold of it a client has claimed its number: what is there then is his."""
    memory = opened("ann", "bob", money=10)
    id = transaction_id(ANN, 1)
    memory.rows[Table.RECORDS][f"{BOB}/{id}"] = {"id": f"{BOB}/{id}", "amount": "4", "state": "finished"}
    program, answer, other = mending.mend(id, BOB), None, False
    while True:
        try:
            operation = program.send(answer)
        except StopIteration:
            break
        if isinstance(operation, CheckAndPut) and not other:
            other = True
            del memory.rows[Table.RECORDS][f"{BOB}/{id}"]
            steps.run(transfer(request("ann", "bob", 4, nonce=2)), memory)
        answer = memory(operation)
    assert other
    memory.check_over()
    assert memory.balances()[BOB] == 14


def test_who_meets_a_record_that_is_being_mended_stops() -> None:
    """From when it is taken hold of nobody else writes to it, so that what goes is what was judged; the next mending
    goes on where one was killed.
    """
    memory = opened("ann", "bob", money=10)
    paid = steps.run(transfer(request("ann", "bob", 4, nonce=1)), memory).id
    del memory.rows[Table.TRANSACTIONS][paid]
    program = mending.mend(paid, ANN)
    answer: Any = None
    while not isinstance(operation := program.send(answer), Remove):
        answer = memory(operation)
    with pytest.raises(ContradictionError, match="being mended"):
        steps.run(transfer(request("ann", "bob", 4, timestamp=1_000, nonce=3)), memory)
    mended(memory)
    checked_whole(memory)
    memory.check_over()


def test_what_a_transaction_itself_contradicts_is_left() -> None:
    """It is named, with its records, for a person to look at; so is a number that is missing."""
    memory = opened("ann", "bob", money=10)
    first, second, third = (steps.run(transfer(request("ann", "bob", 1, nonce=n)), memory).id for n in (1, 2, 3))
    memory.rows[Table.TRANSACTIONS][third]["state"] = "paid"
    del memory.rows[Table.TRANSACTIONS][second]
    found = mended(memory)
    assert [fault.row for fault in found.faults] == [f"{user}/{second}" for user in sorted((ANN, BOB))]
    [left] = found.left
    assert left.startswith(f"transaction {third}: unknown state 'paid'")
    memory.rows[Table.TRANSACTIONS][third]["state"] = "finished"
    gap = steps.run(mending.survey(ISSUER), memory).left
    assert gap == [f"transaction {third} is the next of its sender after number 1: a gap"]
    assert memory(Read(Table.TRANSACTIONS, (first,)))


def test_a_record_whose_row_names_no_transaction_is_left() -> None:
    """No key of a transaction follows from it, and an empty one is none: the others are set right all the same."""
    memory = came_back(len(history()) - 1, 0)
    for row in ("ann", "ann/"):
        memory.rows[Table.RECORDS][row] = {"state": "finished"}
    found = mended(memory)
    assert found.faults
    assert [why.split(" is none")[0] for why in found.left] == ["record ann", "record ann/"]
    assert {"ann", "ann/"} <= memory.rows[Table.RECORDS].keys()


def test_the_settled_mark_begins_anew() -> None:
    """It may be of another time than the transactions; the next repair makes the full check, and counts anew."""
    memory = opened("ann")
    steps.run(mending.begin_anew(), memory)
    assert SETTLED_ROW not in memory.rows[Table.OPEN]
    memory.rows[Table.OPEN][SETTLED_ROW] = {"mark": Settled(5, "r", 6, 7, 8, finished=9).encode()}
    steps.run(mending.begin_anew(), memory)
    assert Settled.decode(memory.rows[Table.OPEN][SETTLED_ROW]["mark"]) == Settled()
