"""What is read and written to bring a transaction to its end, stopped, repeated and mixed between any two steps."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, product
from types import SimpleNamespace
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lowtide.config import Config
from lowtide.errors import LedgerError, UsageError
from lowtide.ledger import steps
from lowtide.ledger.client import Ledger
from lowtide.ledger.model import (
    ContradictionError,
    RecordState,
    State,
    Table,
    parse_transaction,
    transaction_id,
    user_id,
)
from lowtide.ledger.rehearsal import End, Rule, foreseen
from lowtide.ledger.steps import CheckAndPut, Outcome, Program, Put, Read, Remove, Scan
from tests.unit.ledger_memory import ISSUER, Memory, Stopped, opened, request, transfer

FIRST = transaction_id(user_id("ann"), 1)


def until(memory: Memory, program: Program[Any], writes: int, applied: bool) -> bool:
    """Run *program* up to its write number *writes*, that one *applied* or not; whether it was stopped there."""
    numbers = count(1)

    def store(operation: Any) -> Any:
        if isinstance(operation, Read | Scan) or next(numbers) < writes:
            return memory(operation)
        if applied:
            memory(operation)
        raise Stopped

    try:
        steps.run(program, store)
    except Stopped:
        return True
    return False


def writes_of(program: Program[Any], memory: Memory) -> list[Any]:
    """Every write of a whole run."""
    seen: list[Any] = []

    def store(operation: Any) -> Any:
        if not isinstance(operation, Read | Scan):
            seen.append(operation)
        return memory(operation)

    steps.run(program, store)
    return seen


def test_a_transfer_takes_the_models_steps_in_order() -> None:
    """Index entry, claim, columns, then state by state; every state cell by check-and-put after its row's other
    columns.
    """
    memory = opened("ann", "bob", money=10)
    found = writes_of(transfer(request("ann", "bob", 3)), memory)
    moves = [
        (w.table.value, w.column, w.expected, w.value)
        for w in found
        if isinstance(w, CheckAndPut) and w.column == "state"
    ]
    records = [("user_transactions", "state", None, "pending"), ("user_transactions", "state", "pending", "finished")]
    assert moves == [
        ("transactions", "state", None, "initial"),
        ("transactions", "state", "initial", "in progress"),
        *records[:1] * 2,
        ("transactions", "state", "in progress", "committed"),
        *records[1:] * 2,
        ("transactions", "state", "committed", "finished"),
    ]
    assert [type(w).__name__ for w in found[:3]] == ["Put", "CheckAndPut", "Put"]
    assert [(w.table, type(w).__name__) for w in (found[0], found[-1])] == [(Table.OPEN, "Put"), (Table.OPEN, "Remove")]
    state_seen = set()
    for write in found:
        if isinstance(write, Put):
            assert "state" not in write.cells
            assert write.row not in state_seen
        elif isinstance(write, CheckAndPut) and write.column == "state":
            state_seen.add(write.row)
    assert (memory.balances()[user_id("ann")], memory.balances()[user_id("bob")]) == (7, 13)
    memory.check_over()


@pytest.mark.parametrize("at_once", [False, True], ids=["cell by cell", "at once"])
@pytest.mark.parametrize("amount", [3, 11], ids=["runs", "is dropped"])
def test_stopped_at_any_write_a_repair_ends_it_once(amount: int, at_once: bool) -> None:
    """Client stopped at each write, before or after it; then a repair stopped at each of its writes, by a store that
    puts one cell by a check, or several; then a whole one.
    """

    def scene() -> Memory:
        """Ann has ten; a transfer of hers was claimed and left, so that the balance cannot be seen before the claim."""
        memory = opened("ann", "bob", money=10)
        until(memory, transfer(request("ann", "bob", 2, nonce=7)), 2, applied=True)
        return memory

    whole = len(writes_of(transfer(request("ann", "bob", amount)), scene()))
    assert whole > 8
    for stop in range(1, whole + 1):
        for applied in (False, True):
            memory = scene()
            assert until(memory, transfer(request("ann", "bob", amount)), stop, applied)
            claimed = f"{1:016x}" in memory.nonces()
            for again in count(1):
                stopped = False
                for entry in memory.entries():
                    for also in (False, True):
                        stopped |= until(memory, steps.repair(entry, ISSUER, at_once), again, also)
                        memory.check()
                if not stopped:
                    break
            memory.repair_all(at_once=at_once)
            memory.check_over()
            moved = 2 + (amount if claimed and amount == 3 else 0)
            assert memory.balances()[user_id("bob")] == 10 + moved
            second = memory.rows[Table.TRANSACTIONS].get(transaction_id(user_id("ann"), 2))
            assert bool(second) == claimed
            if second:
                assert second["state"] == (State.FINISHED if amount == 3 else State.DROPPED)


def resumed(program: Program[Any], answer: Any, memory: Memory) -> Any:
    """The rest of a program that waits for *answer*."""
    try:
        while True:
            answer = memory(program.send(answer))
    except StopIteration as end:
        return end.value


def test_a_late_client_changes_nothing() -> None:
    """Paused before each of its operations, overtaken by a repair, and then resumed: it sees the outcome and adds
    nothing to it.
    """
    overtaken = 0
    for stop in count(1):
        memory = opened("ann", "bob", money=10)
        program = transfer(request("ann", "bob", 3))
        answer: Any = None
        try:
            for _ in range(stop):
                waiting = program.send(answer)
                answer = memory(waiting)
        except StopIteration:
            break
        claimed = any(memory.entries()) and f"{1:016x}" in memory.nonces()
        if not claimed:
            continue
        memory.repair_all()
        before = {table: {row: dict(cells) for row, cells in rows.items()} for table, rows in memory.rows.items()}
        assert resumed(program, answer, memory) == Outcome(FIRST, State.FINISHED)
        assert memory.rows == before
        overtaken += 1
    assert stop > 15
    assert overtaken > 10


def test_what_can_be_seen_to_be_impossible_leaves_no_trace() -> None:
    """Unknown users and a balance that is too small are refused before anything is written."""
    memory = opened("ann", "bob", money=10)
    before = {table: dict(rows) for table, rows in memory.rows.items()}
    for asked, said in (
        (request("ann", "eve", 1), f"unknown user {user_id('eve')}.*user add"),
        (request("eve", "ann", 1), f"unknown user {user_id('eve')}"),
        (request("ann", "bob", 11), "balance is 10, the amount 11; nothing was transferred"),
    ):
        with pytest.raises(UsageError, match=said):
            steps.run(transfer(asked), memory)
    assert memory.rows == before


def test_errors_name_users_as_they_were_given() -> None:
    """Whoever typed a nickname cannot know its id."""
    memory = opened("ann", money=10)
    node: Any = SimpleNamespace(config=Config(), run=lambda program, _: steps.run(program(), memory))
    book = Ledger(node)
    for ask, said in (
        (lambda: book.balance("eve"), "unknown user eve; add it"),
        (lambda: book.transfer("ann", "eve", 1), "unknown user eve; add it"),
        (lambda: book.transfer("bob", "eve", 1), "unknown user bob, eve; add it"),
    ):
        with pytest.raises(UsageError, match=said):
            ask()


def test_parallel_transfers_cannot_overdraw() -> None:
    """Two that each could be paid alone: the second to be numbered is dropped, with the reason, and moves nothing."""
    memory = opened("ann", "bob", money=10)
    first, second = (transfer(request("ann", "bob", 8, nonce=n)) for n in (1, 2))
    until(memory, first, 2, applied=True)
    assert steps.run(second, memory) == Outcome(
        transaction_id(user_id("ann"), 2), State.DROPPED, "the balance is 2, the amount 8"
    )
    memory.repair_all()
    memory.check_over()
    assert memory.balances()[user_id("ann")] == 2


def test_credit_counts_when_its_transaction_is_finished() -> None:
    """Neither a pending record nor a finished one of an unfinished transaction can be spent."""
    memory = opened("ann", "bob")
    pay = transfer(request("issuer", "ann", 5))
    last = len(writes_of(transfer(request("issuer", "ann", 5)), opened("ann", "bob")))
    until(memory, pay, last - 1, applied=False)  # all but the state finished
    assert memory.rows[Table.RECORDS][f"{user_id('ann')}/{transaction_id(ISSUER, 1)}"]["state"] == RecordState.FINISHED
    with pytest.raises(UsageError, match="balance is 0"):
        steps.run(transfer(request("ann", "bob", 5)), memory)
    assert steps.run(steps.balance(user_id("ann")), memory) == 0
    memory.repair_all()
    assert steps.run(steps.balance(user_id("ann")), memory) == 5


def test_an_unknown_user_is_dropped_by_a_repair() -> None:
    """A claimed transaction whose recipient does not exist can never run."""
    memory = opened("ann", "bob", money=10)
    until(memory, transfer(request("ann", "bob", 1)), 2, applied=True)
    del memory.rows[Table.USERS][user_id("bob")]
    assert memory.repair_all() == [Outcome(FIRST, State.DROPPED, f"unknown user {user_id('bob')}")]


def test_an_entry_without_a_claim_is_removed() -> None:
    """Its client ended before it had a number, or lost the number to another."""
    memory = opened("ann", "bob", money=10)
    until(memory, transfer(request("ann", "bob", 1)), 1, applied=True)
    steps.run(transfer(request("ann", "bob", 1, nonce=2)), memory)
    assert memory.repair_all() == [None]
    memory.check_over()


def edits() -> list[Any]:
    """Rows that no client leaves: a name, how they come about, and what is said of them."""
    ann, bob = user_id("ann"), user_id("bob")
    row, debit, credit = (
        (Table.TRANSACTIONS, FIRST),
        (Table.RECORDS, f"{ann}/{FIRST}"),
        (Table.RECORDS, f"{bob}/{FIRST}"),
    )
    return [
        pytest.param(row, {"sender": None}, 6, "sender is missing", id="no sender"),
        pytest.param(row, {"sender": bob}, 6, "sender is .* its request says", id="another sender"),
        pytest.param(row, {"request": None}, 6, "request is missing", id="no request"),
        pytest.param(row, {"request": "{"}, 6, "request is malformed", id="request cut off"),
        pytest.param(row, {"amount": "0"}, 6, "amount is '0'", id="amount zero"),
        pytest.param(row, {"amount": "ten"}, 6, "amount is 'ten'", id="amount no number"),
        pytest.param(row, {"state": "paid"}, 6, "unknown state 'paid'", id="unknown state"),
        pytest.param(row, {"state": "committed"}, 4, "committed, and its decision is missing", id="state ahead"),
        pytest.param(row, {"state": "dropped"}, 6, "dropped, and its decision is to run", id="dropped though it runs"),
        pytest.param(row, {"state": None}, 6, "decided and has no state", id="state lost"),
        pytest.param(
            debit, {"amount": "-4"}, 8, "amount is '-4', its transaction says '-3'", id="debit of another amount"
        ),
        pytest.param(
            credit, {"amount": "-3"}, 10, "amount is '-3', its transaction says '3'", id="credit of the wrong sign"
        ),
        pytest.param(credit, {"state": "lost"}, 10, "unknown state 'lost'", id="unknown record state"),
        pytest.param(
            credit, {"state": "finished"}, 10, "finished, its transaction only in progress", id="record ahead"
        ),
        pytest.param(
            debit, None, 11, "missing or has no state, and its transaction is committed", id="committed, no record"
        ),
    ]


@pytest.mark.parametrize(("place", "cells", "stop", "said"), edits())
def test_contradictions_are_named_and_left_alone(
    place: tuple[Table, str], cells: dict[str, str | None] | None, stop: int, said: str
) -> None:
    """A repair says what is wrong and changes nothing, index entry included; another sender's transfers are not
    affected.
    """
    memory = opened("ann", "bob", money=10)
    assert until(memory, transfer(request("ann", "bob", 3)), stop, applied=True)
    table, row = place
    if cells is None:
        del memory.rows[table][row]
    for name, value in (cells or {}).items():
        if value is None:
            del memory.rows[table][row][name]
        else:
            memory.rows[table][row][name] = value
    before = {t: {r: dict(c) for r, c in rows.items()} for t, rows in memory.rows.items()}
    (entry,) = memory.entries()
    with pytest.raises(ContradictionError, match=said):
        steps.run(steps.repair(entry, ISSUER), memory)
    assert memory.rows == before


@pytest.mark.parametrize("at_once", [False, True], ids=["cell by cell", "at once"])
@pytest.mark.parametrize("cells", [{"amount": "99", "state": "pending"}, {"amount": "99"}], ids=["pending", "half"])
def test_a_record_of_another_transaction_is_not_written_over(cells: dict[str, str], at_once: bool) -> None:
    """The transactions came back from before one was claimed, its number was claimed anew, and the record of the first
    is still there: it is named and stays, also where a repair has not read it before it writes.
    """
    memory = opened("ann", "bob", money=10)
    until(memory, transfer(request("ann", "bob", 3)), 4, applied=True)
    (entry,) = memory.entries()
    record = parse_transaction(FIRST, memory.rows[Table.TRANSACTIONS][FIRST]).credit
    left = {**record.cells, **cells}
    memory.rows[Table.RECORDS][record.row] = dict(left)
    with pytest.raises(ContradictionError, match="amount is '99', its transaction says '3'"):
        steps.run(steps.repair(entry, ISSUER, at_once), memory)
    assert memory.rows[Table.RECORDS][record.row] == left
    assert memory.entries() == [entry]
    memory.check()


def test_at_once_a_drop_is_a_step_of_its_own() -> None:
    """HBase stamps a cell no earlier than the one that the check looked at. So a state that was put by a check of the
    decision may be hidden by the one before, where a server's clock is behind: the entry would go, and the transaction
    never be dropped. The last check before that is one of the state.
    """
    memory = opened("ann", "bob", money=10)
    until(memory, transfer(request("ann", "bob", 8, nonce=1)), 2, applied=True)
    until(memory, transfer(request("ann", "bob", 8, nonce=2)), 2, applied=True)
    entry = memory.entries()[1]
    found = [w for w in writes_of(steps.repair(entry, ISSUER, at_once=True), memory) if w.row in (entry.id, entry.row)]
    assert [(w.column, w.expected, w.along) for w in found[-3:-1]] == [("decision", None, {}), ("state", "initial", {})]
    assert found[-1] == Remove(Table.OPEN, entry.row)


def test_at_once_a_transfer_takes_a_third_fewer_calls() -> None:
    """Of one that was claimed alone: its columns come with its state, the decision with the next one, and each record
    whole and unread.
    """
    counts = []
    for at_once in (False, True):
        memory = opened("ann", "bob", money=10)
        until(memory, transfer(request("ann", "bob", 3)), 2, applied=True)
        (entry,), asked = memory.entries(), count()

        def store(operation: Any, memory: Memory = memory, asked: Iterator[int] = asked) -> Any:
            next(asked)
            return memory(operation)

        assert steps.run(steps.repair(entry, ISSUER, at_once), store) == Outcome(FIRST, State.FINISHED)
        memory.check_over()
        counts.append(next(asked))
    assert counts == [19, 13]


def test_a_record_is_compared_with_its_transaction_of_the_same_moment() -> None:
    """Another commits the transaction just after its records were read as missing: that is no contradiction."""
    memory = opened("ann", "bob", money=10)
    until(memory, transfer(request("ann", "bob", 3)), 6, applied=True)
    (entry,) = memory.entries()
    reads = count(1)

    def overtaken(operation: Any) -> Any:
        answer = memory(operation)
        if isinstance(operation, Read) and operation.table is Table.RECORDS and next(reads) == 1:
            until(memory, steps.repair(entry, ISSUER), 5, applied=True)
            assert memory.rows[Table.TRANSACTIONS][FIRST]["state"] == State.COMMITTED
        return answer

    assert steps.run(steps.repair(entry, ISSUER), overtaken) == Outcome(FIRST, State.FINISHED)


def paused_at(memory: Memory, program: Program[Any], column: str, row: str = "") -> CheckAndPut:
    """Run *program* until it is about to put a cell in *column* (of *row*); that write, to be sent later."""
    answer: Any = None
    while True:
        operation = program.send(answer)
        if isinstance(operation, CheckAndPut) and operation.column == column and row in ("", operation.row):
            return operation
        answer = memory(operation)


@pytest.mark.parametrize("at_once", [False, True], ids=["cell by cell", "at once"])
def test_who_decides_second_takes_the_first_decision(at_once: bool) -> None:
    """One repair finds no money and pauses; money comes, another decides and finishes; the first learns so."""
    memory = opened("ann", "bob", money=10)
    until(memory, transfer(request("ann", "bob", 10)), 2, applied=True)
    until(memory, transfer(request("ann", "bob", 4, nonce=2)), 2, applied=True)
    entry = next(e for e in memory.entries() if e.id == transaction_id(user_id("ann"), 2))
    slow = steps.repair(entry, ISSUER, at_once)
    write = paused_at(memory, slow, "decision", entry.id)
    steps.run(transfer(request("issuer", "ann", 4, nonce=3)), memory)
    memory.repair_all()
    assert "the balance is 0" in write.value
    assert resumed(slow, memory(write), memory) == Outcome(entry.id, State.FINISHED)
    memory.check_over()


def test_two_clients_never_share_a_number() -> None:
    """Both are about to claim the same; the second takes the next, and both transfers take place."""
    memory = opened("ann", "bob", money=10)
    slow = transfer(request("ann", "bob", 3))
    write = paused_at(memory, slow, "request")
    steps.run(transfer(request("ann", "bob", 4, nonce=2)), memory)
    outcome = resumed(slow, memory(write), memory)
    assert outcome == Outcome(transaction_id(user_id("ann"), 2), State.FINISHED)
    assert memory.balances()[user_id("bob")] == 17
    memory.check_over()


@pytest.mark.parametrize("amount", [3, 11], ids=["runs", "is dropped"])
def test_a_claim_that_held_and_was_told_refused_is_made_once(amount: int) -> None:
    """The gateway asks HBase again where an answer was lost: whatever check is told "refused" of what it wrote itself,
    there is one transfer.
    """
    memory = opened("ann", "bob", money=10)
    until(memory, transfer(request("ann", "bob", 1, nonce=7)), 2, applied=True)

    asked = count()

    def repeating(operation: Any) -> Any:
        assert next(asked) < 200, "it claims number after number"
        answer = memory(operation)
        return False if isinstance(operation, CheckAndPut) else answer

    outcome = steps.run(transfer(request("ann", "bob", amount)), repeating)
    state = State.FINISHED if amount == 3 else State.DROPPED
    assert (outcome.id, outcome.state) == (transaction_id(user_id("ann"), 2), state)
    assert list(memory.rows[Table.TRANSACTIONS])[2:] == [FIRST, outcome.id]
    memory.repair_all()
    memory.check_over()


def test_a_transfer_behind_a_contradiction_says_that_it_was_claimed() -> None:
    """Who is told of the contradiction alone would transfer again, and all of it would run when somebody mends it."""
    memory = opened("ann", "bob", money=10)
    until(memory, transfer(request("ann", "bob", 3)), 2, applied=True)
    memory.rows[Table.TRANSACTIONS][FIRST]["state"] = "nonsense"
    memory.rows[Table.TRANSACTIONS][FIRST].pop("decision", None)
    last = transaction_id(user_id("ann"), 2)
    memory.rows[Table.TRANSACTIONS][last] = {"request": request("ann", "bob", 1, nonce=5).encode()}
    third = transaction_id(user_id("ann"), 3)
    with pytest.raises(
        ContradictionError, match=f"nonsense.*this transfer is transaction {third}.*do not transfer again"
    ):
        steps.run(transfer(request("ann", "bob", 2, nonce=6)), memory)
    assert f"{6:016x}" in memory.nonces()


def test_a_hole_in_the_numbers_is_named() -> None:
    """Number 2 is not decided where number 1 is gone."""
    memory = opened("ann", "bob", money=10)
    for nonce in (1, 2):
        until(memory, transfer(request("ann", "bob", 3, nonce=nonce)), 2, applied=True)
    del memory.rows[Table.TRANSACTIONS][FIRST]
    with pytest.raises(ContradictionError, match=f"{FIRST} is missing, though .*-000000000002 exists"):
        steps.run(steps.repair(memory.entries()[1], ISSUER), memory)


def test_a_store_whose_check_never_holds_is_noticed() -> None:
    """A transaction that does not get on is given up, with a word on where to look, instead of tried for ever."""
    memory = opened("ann", "bob", money=10)

    def stubborn(operation: Any) -> Any:
        refused = isinstance(operation, CheckAndPut) and operation.column == "state"
        return False if refused else memory(operation)

    with pytest.raises(LedgerError, match=r"does not get on.*lowtide ledger show"):
        steps.run(transfer(request("ann", "bob", 3)), stubborn)


@pytest.mark.parametrize("page", [1, 2, 1000])
def test_a_balance_is_that_of_one_moment(monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    """Money that comes and goes between two readings, or two pages, is not counted half; one that never rests is an
    error.
    """
    monkeypatch.setattr(steps, "RECORDS_A_PAGE", page)
    memory = opened("ann", "bob", money=10)
    numbers = count(10)

    def lively(operation: Any) -> Any:
        answer = memory(operation)
        if isinstance(operation, Scan) and next(numbers) < 13:
            for sender, recipient in (("bob", "ann"), ("ann", "bob")):
                steps.run(transfer(request(sender, recipient, 10, nonce=next(numbers))), memory)
        return answer

    assert steps.run(steps.balance(user_id("ann")), lively) == 10

    def restless(operation: Any) -> Any:
        if isinstance(operation, Scan) and operation.start.endswith("/"):  # once a reading
            steps.run(transfer(request("issuer", "ann", 1, nonce=next(numbers))), memory)
        return memory(operation)

    with pytest.raises(LedgerError, match="changed at each of 20 readings"):
        steps.run(steps.balance(user_id("ann")), restless)


def test_a_transfer_is_stamped_when_its_index_entry_is_put() -> None:
    """However long it read before, and however often others took its number: the settled mark trusts that the claim
    follows the time at once.
    """
    memory = opened("ann", "bob", money=10)
    stamps: list[tuple[int, int]] = []
    ahead = transfer(request("ann", "bob", 1, nonce=2))
    clock = 0

    def store(operation: Any) -> Any:
        nonlocal clock
        clock += 3_600_000 if isinstance(operation, Read | Scan) else 0
        if isinstance(operation, Put) and operation.table is Table.OPEN:
            stamps.append((int(operation.row[:15]), clock))
            if len(stamps) == 1:
                steps.run(ahead, memory)  # another takes the number in between
        return memory(operation)

    outcome = steps.run(steps.transfer(request("ann", "bob", 3), ISSUER, lambda: clock), store)
    assert outcome == Outcome(transaction_id(user_id("ann"), 2), State.FINISHED)
    assert len(stamps) == 2
    assert [stamped for stamped, _ in stamps] == [put for _, put in stamps]
    assert stamps[0] < stamps[1]
    row = memory.rows[Table.TRANSACTIONS][outcome.id]
    assert int(row["timestamp"]) == stamps[1][0]
    memory.check_over()


@pytest.mark.parametrize("now", [-1, 0, 10**15 - 1, 10**15, 10**18])
def test_a_clock_that_no_request_can_bear_blocks_nobody(now: int) -> None:
    """The time becomes the nearest that the request's cell takes: what is claimed can be read, and ended by whoever
    comes.
    """
    memory = opened("ann", "bob", money=10)
    until(memory, steps.transfer(request("ann", "bob", 3), ISSUER, lambda: now), 2, applied=True)
    memory.repair_all()
    memory.check_over()
    assert memory.balances()[user_id("bob")] == 13


@pytest.mark.parametrize("transfers", [0, 1, 2, 3, 5, 6, 7])
def test_a_user_of_many_records_is_read_in_pages(monkeypatch: pytest.MonkeyPatch, transfers: int) -> None:
    """No answer holds more than a page, whatever there is; nothing is counted twice or left out at a page's edge."""
    monkeypatch.setattr(steps, "RECORDS_A_PAGE", 3)
    memory = opened("ann", "bob")
    for number in range(transfers):
        steps.run(transfer(request("issuer", "ann", 10 + number, nonce=number)), memory)
    pending = transfer(request("issuer", "ann", 99, nonce=99))
    until(memory, pending, 10, applied=True)
    largest = 0

    def store(operation: Any) -> Any:
        nonlocal largest
        answer = memory(operation)
        if isinstance(operation, Read | Scan):
            largest = max(largest, len(answer))
        return answer

    assert steps.run(steps.balance(user_id("ann")), store) == sum(range(10, 10 + transfers))
    assert largest <= 3


@dataclass
class Actor:
    """A client or a repair, between two operations."""

    program: Program[Any]
    nonce: str | None
    answer: Any = None


class Bank(RuleBasedStateMachine):
    """Clients and repairs, each stopped and resumed between any two of its reads and writes, killed, or robbed of an
    answer.
    """

    def __init__(self) -> None:
        super().__init__()
        self.memory = opened("ann", "bob", "cid", money=5)
        self.actors: list[Actor] = []
        self.told: dict[str, Outcome] = {}
        self.nonces = count(1)

    @rule(
        sender=st.sampled_from(["ann", "bob", "cid", "issuer"]),
        recipient=st.sampled_from(["ann", "bob", "cid", "issuer"]),
        amount=st.integers(1, 6),
    )
    def begin(self, sender: str, recipient: str, amount: int) -> None:
        """A client comes with a transfer."""
        if sender != recipient:
            asked = request(sender, recipient, amount, nonce=next(self.nonces))
            self.actors.append(Actor(transfer(asked), asked.nonce))

    @precondition(lambda self: self.memory.rows[Table.OPEN])
    @rule(which=st.integers(0, 9), at_once=st.booleans())
    def begin_repair(self, which: int, at_once: bool) -> None:
        """A repair takes one open entry, whose client may be alive, as long as its number is claimed: the job's, at
        once, or that of a client.
        """
        entries = self.memory.entries()
        entry = entries[which % len(entries)]
        if entry.nonce in set(self.memory.nonces()):
            self.actors.append(Actor(steps.repair(entry, ISSUER, at_once), None))

    @precondition(lambda self: self.actors)
    @rule(which=st.integers(0, 9), operations=st.integers(1, 12))
    def go_on(self, which: int, operations: int) -> None:
        """One of them does some operations."""
        actor = self.actors[which % len(self.actors)]
        for _ in range(operations):
            if not self.one(actor):
                return

    @precondition(lambda self: self.actors)
    @rule(which=st.integers(0, 9), applied=st.booleans())
    def kill(self, which: int, applied: bool) -> None:
        """One of them ends, its next operation done (and the answer lost) or not."""
        actor = self.actors[which % len(self.actors)]
        if not applied or self.one(actor):
            self.actors.remove(actor)

    @precondition(lambda self: self.actors)
    @rule(which=st.integers(0, 9))
    def lose_an_answer_on_the_way(self, which: int) -> None:
        """The gateway did not hear the answer and asked again: of a check that held it now hears that it was
        refused.
        """
        actor = self.actors[which % len(self.actors)]
        if self.one(actor) and actor.answer is True:
            actor.answer = False

    def one(self, actor: Actor) -> bool:
        try:
            operation = actor.program.send(actor.answer)
        except StopIteration as end:
            if actor.nonce:
                self.told[actor.nonce] = end.value
        except UsageError:
            assert actor.nonce not in set(self.memory.nonces())
        else:
            actor.answer = self.memory(operation)
            return True
        self.actors.remove(actor)
        return False

    @invariant()
    def money_is_conserved(self) -> None:
        """At every moment."""
        self.memory.check()

    def teardown(self) -> None:
        """All are killed; two repairs end everything; nothing is lost, doubled or other than its client was told."""
        self.memory.repair_all(times=1)
        self.memory.check_over()
        claimed = list(self.memory.nonces())
        assert len(set(claimed)) == len(claimed)
        assert set(self.told) <= set(claimed)
        for told in self.told.values():
            assert self.memory.rows[Table.TRANSACTIONS][told.id]["state"] == told.state


TestBank = Bank.TestCase
TestBank.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)


def rows_of(memory: Memory) -> Any:
    return copy.deepcopy(memory.rows)


def test_what_a_repair_would_do_is_foreseen_by_its_own_steps_and_not_written() -> None:
    """Of a transfer that was stopped at any write: finished, dropped with the reason, or no transaction at all; what is
    over is only removed from the index. Nothing of the ledger has changed when it is known.
    """
    seen = set()
    for amount, stop, applied in product((3, 11), range(1, 25), (False, True)):
        memory = opened("ann", "bob", money=10)
        # Claimed and left, so that the balance cannot be seen before the claim.
        until(memory, transfer(request("ann", "bob", 2, nonce=7)), 2, applied=True)
        until(memory, transfer(request("ann", "bob", amount)), stop, applied)
        for entry in memory.entries():
            before = rows_of(memory)
            found = steps.run(foreseen(entry, ISSUER), memory)
            assert memory.rows == before
            alone = Memory(rows_of(memory))
            done = steps.run(steps.repair(entry, ISSUER), alone)
            ended = {None: End.REMOVE, State.FINISHED: End.FINISH, State.DROPPED: End.DROP}
            assert found.end is ended[done and done.state]  # type: ignore[index]
            assert (done.reason if done else "") in found.evidence
            assert (found.entry, found.rule is Rule.UNCLAIMED) == (entry, done is None)
            seen.add((found.end, found.rule, found.found))
    assert seen >= {
        (End.REMOVE, Rule.UNCLAIMED, "never claimed"),
        (End.FINISH, Rule.UNDECIDED, "claimed"),
        (End.FINISH, Rule.UNDECIDED, "initial"),
        (End.FINISH, Rule.DECIDED, "in progress"),
        (End.FINISH, Rule.COMMITTED, "committed"),
        (End.FINISH, Rule.OVER, "finished"),
        (End.DROP, Rule.UNDECIDED, "initial"),
        (End.DROP, Rule.DECIDED, "initial"),
        (End.DROP, Rule.OVER, "dropped"),
    }


def test_what_is_foreseen_names_amount_and_users() -> None:
    """And what it goes by."""
    memory = opened("ann", "bob", money=10)
    until(memory, transfer(request("ann", "bob", 2)), 4, applied=True)
    del memory.rows[Table.USERS][user_id("bob")]
    (entry,) = memory.entries()
    (ann, bob), found = map(user_id, ("ann", "bob")), steps.run(foreseen(entry, ISSUER), memory)
    assert found.evidence == f"2 from {ann} to {bob}: nobody has decided; as things are: unknown user {bob}"
    assert (found.end, found.rule) == (End.DROP, Rule.UNDECIDED)


def test_what_contradicts_itself_is_named_before_it_is_touched() -> None:
    """As the repair would."""
    memory = opened("ann", "bob", money=10)
    until(memory, transfer(request("ann", "bob", 2)), 9, applied=True)
    (entry,) = memory.entries()
    memory.rows[Table.TRANSACTIONS][entry.id]["amount"] = "3"
    before = rows_of(memory)
    for program in (foreseen(entry, ISSUER), steps.repair(entry, ISSUER)):
        with pytest.raises(ContradictionError, match="amount"):
            steps.run(program, memory)
    assert memory.rows == before
