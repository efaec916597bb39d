"""Programs that run side by side, over tables in memory: who gets which answer, and what one's failure does to the
others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

from lowtide.config import Config
from lowtide.errors import GatewayError, LedgerError, UsageError
from lowtide.ledger import mending, steps
from lowtide.ledger.model import ContradictionError, Entry, Table, transaction_id, user_id
from lowtide.ledger.steps import CheckAndPut, Outcome, Program, Read, Remove, Scan, State, Write
from lowtide.ledger.store import Hook, Moment, Node, Tables
from tests.unit.ledger_memory import ISSUER, Memory, opened, request, transfer
from tests.unit.test_ledger_steps import until


class MemoryNode(Node):
    """Answers from memory; writes to *broken* rows are never answered, nor is "every read"."""

    def __init__(self, memory: Memory, broken: Sequence[str] = (), hook: Hook | None = None) -> None:
        super().__init__(Config(), None, size=3, hook=hook)
        self.memory, self.broken, self.lock = memory, set(broken), Lock()
        self.calls: list[int] = []

    def _answer(self, operation: Any) -> Any:
        if (isinstance(operation, Read) and "every read" in self.broken) or getattr(
            operation, "row", ""
        ) in self.broken:
            return ConnectionResetError("no answer")
        with self.lock:
            return self.memory(operation)

    def answers(self, operations: Sequence[Any]) -> list[Any]:
        assert all(isinstance(operation, Scan) for operation in operations)
        return [self._answer(operation) for operation in operations]

    def at_once(self, operations: Sequence[Any]) -> list[Any]:
        assert operations
        assert not any(isinstance(operation, Scan) for operation in operations)
        self.calls.append(sum(len(o.rows) if isinstance(o, Read) else 1 for o in operations))
        return [self._answer(operation) for operation in operations]


def repair_all(node: MemoryNode, entries: Sequence[Entry], window: int = 500) -> dict[str, Any]:
    def program(entry: Entry) -> Program[Outcome | None]:
        return steps.repair(entry, ISSUER, at_once=True)

    def name(entry: Entry) -> str:
        return f"repair of {entry.id}"

    return {entry.id: found for entry, found in node.run_many(entries, program, name, node.at_once, window)}


def left_open(transfers: int) -> Memory:
    """Ann has ten; as many transfers of one each are stopped before they are decided."""
    memory = opened("ann", "bob", money=10)
    for number in range(transfers):
        until(memory, transfer(request("ann", "bob", 1, nonce=number + 1)), 2 + number % 3, applied=True)
    return memory


@pytest.mark.parametrize("window", [1, 2, 500])
def test_every_item_comes_back_with_its_own_result(window: int) -> None:
    """Transfers of one sender, all at once: decided in order, what the money does not reach is dropped; few calls for
    many rows.
    """
    memory = left_open(14)
    entries = memory.entries()
    node = MemoryNode(memory)
    found = repair_all(node, entries, window)
    assert set(found) == {entry.id for entry in entries}
    assert all(
        found[id] == steps.outcome(steps.parse_transaction(id, memory.rows[Table.TRANSACTIONS][id])) for id in found
    )
    assert {outcome.state for outcome in found.values()} <= {State.FINISHED, State.DROPPED}
    memory.check_over()
    assert memory.balances()[user_id("ann")] == 0
    assert max(node.calls) > 5


def test_programs_that_ask_for_nothing_do_not_end_the_others() -> None:
    """However many end before their first question: the next ones are begun."""
    memory = left_open(3)
    entries = memory.entries()

    def program(item: Entry | int) -> Program[Outcome | int | None]:
        return (yield from steps.repair(item, ISSUER, at_once=True)) if isinstance(item, Entry) else item

    node = MemoryNode(memory)
    found = dict(node.run_many([*range(10), *entries, *range(10, 20)], program, str, node.at_once, window=4))
    assert {item: result for item, result in found.items() if isinstance(item, int)} == {n: n for n in range(20)}
    assert {found[entry].state for entry in entries} == {State.FINISHED}
    memory.check_over()


def test_one_that_fails_does_not_stop_the_others() -> None:
    """What has no answer is left as it is, and said; of a contradiction likewise; whoever needs neither goes on."""
    memory = opened("ann", "bob", "cid", "dan", money=10)
    for number, name in enumerate(("ann", "bob", "cid", "dan")):
        until(memory, transfer(request(name, "issuer", 1, nonce=number + 1)), 6, applied=True)
    ann, bob, cid, dan = (transaction_id(user_id(name), 1) for name in ("ann", "bob", "cid", "dan"))
    memory.rows[Table.TRANSACTIONS][cid]["state"] = "paid"
    before = {table: dict(rows) for table, rows in memory.rows.items()}
    found = repair_all(MemoryNode(memory, ["every read"]), memory.entries())
    assert {type(error) for error in found.values()} == {GatewayError}
    assert "nothing was written" in str(found[ann])
    assert memory.rows == before
    found = repair_all(MemoryNode(memory, [f"{ISSUER}/{bob}"]), memory.entries())
    assert isinstance(found[cid], steps.ContradictionError)
    assert isinstance(found[bob], LedgerError)
    assert f"repair of {bob}: no answer from the store (ConnectionResetError: no answer); it was left as it is" in str(
        found[bob]
    )
    assert found[ann].state is found[dan].state is State.FINISHED
    assert {entry.id for entry in memory.entries()} == {bob, cid}


@pytest.mark.parametrize("moment", Moment)
def test_a_call_that_is_cut_off_anywhere_is_repaired_by_the_next(moment: Moment) -> None:
    """Asked at once, each of the writes of a call is one that can be stopped: before it, or after it with its answer
    lost.
    """
    cut = allowed = 0

    def hook(_: Write, at: Moment) -> None:
        nonlocal cut
        if at is moment:
            cut += 1
            if cut % 7 > allowed:
                raise ConnectionResetError("stopped")

    memory = left_open(14)
    claimed = len(memory.entries())
    while memory.entries():
        found = repair_all(MemoryNode(memory, hook=hook), memory.entries())
        memory.check()
        failed = [error for error in found.values() if isinstance(error, Exception)]
        assert all("left as it is" in str(error) for error in failed)
        assert len(failed) >= len(memory.entries())
        allowed += 1
    memory.check_over()
    assert allowed > 2
    assert len(memory.rows[Table.TRANSACTIONS]) >= claimed


def test_a_check_that_was_repeated_and_so_refused_ends_as_one_that_held() -> None:
    """HBase's client asks again where an answer was lost; whoever is told "refused" of what he wrote himself reads, and
    goes on.
    """

    class Repeating(MemoryNode):
        def _answer(self, operation: Any) -> Any:
            answer = super()._answer(operation)
            return False if isinstance(operation, CheckAndPut) else answer

    memory = left_open(14)
    found = repair_all(Repeating(memory), memory.entries())
    memory.check_over()
    assert {outcome.state for outcome in found.values()} == {State.FINISHED, State.DROPPED}
    assert memory.balances()[user_id("ann")] == 0


def test_an_operation_without_an_answer_does_not_cost_the_others_theirs() -> None:
    """Those after it are asked on a connection that the pool gives anew, each once and in order; a write is never asked
    twice.
    """
    asked: list[str] = []
    given: list[int] = []

    class Pool:
        @contextmanager
        def connection(self) -> Iterator[None]:
            given.append(len(asked))
            yield None

    class Single(Node):
        def _tables(self, _: Any) -> Any:
            return self.ask

        def ask(self, operation: Any) -> str:
            asked.append(operation.row)
            if operation.row == "broken":
                raise ConnectionResetError("no answer")
            return f"done {operation.row}"

    rows = ["a", "broken", "b", "c", "broken"]
    found = Single(Config(), Pool(), size=1).answers([Remove(Table.OPEN, row) for row in rows])
    assert asked == rows
    assert [str(answer) for answer in found] == ["done a", "no answer", "done b", "done c", "no answer"]
    assert given == [0, 2]


class Bytes:
    """The gateway's tables over those in memory, by bytes: HBase knows no text."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        #: Rows that no client wrote, by table.
        self.foreign: dict[Table, dict[bytes, dict[bytes, bytes]]] = {table: {} for table in Table}

    def table(self, name: str) -> Any:
        return SimpleNamespace(scan=partial(self._scan, Table(name)), rows=partial(self._rows, Table(name)))

    def _all(self, table: Table) -> list[tuple[bytes, dict[bytes, bytes]]]:
        ours = {
            row.encode(): {f"l:{name}".encode(): value.encode() for name, value in cells.items()}
            for row, cells in self.memory.rows[table].items()
        }
        return sorted((ours | self.foreign[table]).items())

    def _rows(self, table: Table, rows: Sequence[bytes]) -> list[tuple[bytes, dict[bytes, bytes]]]:
        return [(row, cells) for row, cells in self._all(table) if row in rows]

    def _scan(self, table: Table, row_start: bytes, row_stop: bytes, limit: int | None, reverse: bool, **_: int) -> Any:
        if reverse:
            return [each for each in reversed(self._all(table)) if row_stop < each[0] <= row_start][:limit]
        return [each for each in self._all(table) if row_start <= each[0] and (not row_stop or each[0] < row_stop)][
            :limit
        ]


def test_a_foreign_row_among_records_makes_no_credit_count_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page ends with a key that is no UTF-8: the next begins after it, and not where its printed form lies, which is
    before every sender from a to f. The survey names the row and counts each record once.
    """
    for module, name in ((steps, "RECORDS_A_PAGE"), (mending, "_PAGE")):
        monkeypatch.setattr(module, name, 3)
    names = {user_id(f"payer {number}")[0]: f"payer {number}" for number in range(100)}
    payers = names["1"], names["c"]
    memory = opened("ann", "bob", *payers)
    for number, payer in enumerate(payers):
        steps.run(transfer(request("issuer", payer, 10, nonce=2 * number + 1)), memory)
        steps.run(transfer(request(payer, "ann", 10, nonce=2 * number + 2)), memory)
    gateway = Bytes(memory)
    ann = user_id("ann")
    foreign = f"{ann}/".encode() + b"\xff"
    gateway.foreign[Table.RECORDS] = {foreign: {b"l:q": b"1"}, b"\xfe": {b"l:q": b"1"}}
    tables = Tables(gateway, "")
    assert steps.run(steps.balance(ann), tables) == 20
    with pytest.raises(UsageError, match="balance is 20, the amount 30"):
        steps.run(transfer(request("ann", "bob", 30, nonce=50)), tables)
    found = steps.run(mending.survey(ISSUER), tables)
    assert (found.total, found.paid_in, found.faults) == (20, 20, [])
    assert [why.split(" is none")[0] for why in found.left] == [f"record {ann}/\\xff", "record \\xfe"]
    gateway.foreign[Table.RECORDS][foreign] = {b"l:state": b"finished"}
    with pytest.raises(ContradictionError, match=rf"record {ann}/\\xff has no transaction"):
        steps.run(steps.balance(ann), tables)
