"""The settled mark in the hands of a repair, while others are at work: on a ledger in memory."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import islice
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.ledger import repair, settled_mark
from lowtide_spark.ledger.books import Books, audited

from lowtide.ledger import steps
from lowtide.ledger.model import SETTLED_ROW, ContradictionError, Entry, Table, transaction_id, user_id
from lowtide.ledger.settled import Settled, money_figure
from lowtide.ledger.steps import Program, Read
from lowtide.values.clock import millis
from tests.unit.ledger_memory import ISSUER, Memory, opened, request, transfer
from tests.unit.test_ledger_store import MemoryNode

NOW = datetime(2026, 1, 31, tzinfo=UTC)
GRACE = 900_000


def _books(memory: Memory) -> Any:
    """Those of a repair that began at :data:`NOW`, an hour ago."""
    problems: list[str] = []
    state = SimpleNamespace(server_time=lambda: NOW + timedelta(hours=1))
    run = SimpleNamespace(
        store=SimpleNamespace(check_consent=lambda _: None),
        summary=SimpleNamespace(run="r", figures={}),
        phase=lambda _: None,
    )
    return SimpleNamespace(
        run=run,
        now=millis(NOW),
        stored=Settled.decode(memory.rows[Table.OPEN].get(SETTLED_ROW, {}).get("mark")),
        problem=problems.append,
        problems=problems,
        time=lambda: millis(state.server_time()),
        node=SimpleNamespace(run=lambda program, _: steps.run(program(), memory)),
        frames=SimpleNamespace(name=str),
        report=SimpleNamespace(notes=[]),
    )


def _answering(memory: Memory) -> Any:
    """Those that run programs, many at once."""
    node = MemoryNode(memory)
    counts = SimpleNamespace(candidates=0, failed=0, skipped=Counter())
    report: Any = SimpleNamespace(problems=[], counts=counts)
    return Books(Any, node, Any, node.at_once, report, ISSUER, 0, Settled())  # type: ignore[arg-type]


def _marked(memory: Memory) -> Settled:
    return Settled.decode(memory.rows[Table.OPEN][SETTLED_ROW]["mark"])


def test_what_was_written_while_a_repair_went_on_is_counted_by_the_next() -> None:
    """Its money check is over before it moves the mark: only what was written before it began counts as checked."""
    memory = opened("ann")
    settled_mark.settle(_books(memory), 0, millis(NOW) - GRACE, full=False)
    assert _marked(memory).checked_at == millis(NOW)


def test_a_repair_does_not_move_the_mark_over_what_another_found_behind_it() -> None:
    """The other moved the mark back to an open transaction, after this one had read where the index begins for it."""
    memory, began = opened("ann"), millis(NOW) - 2 * GRACE
    behind = Entry(began - GRACE, transaction_id(user_id("ann"), 1), "0" * 16)
    memory.rows[Table.OPEN] |= {
        behind.row: dict(behind.cells),
        SETTLED_ROW: {"mark": Settled(behind.timestamp, "other").encode()},
    }
    settled_mark.settle(_books(memory), began, millis(NOW) - GRACE, full=False)
    assert _marked(memory).mark == behind.timestamp


def test_a_check_of_many_that_are_right_finds_nothing_wrong() -> None:
    """After a repair of more transactions than were ever expected each is checked by itself, and none is wrong
    money; of wrong ones so many are told as a driver holds.
    """
    memory = opened("ann", "bob", money=10)
    paid = steps.run(transfer(request("ann", "bob", 1)), memory).id
    books = _answering(memory)

    def keys(id: str) -> Any:
        rows = (SimpleNamespace(key=id, user=None) for _ in range(100_001))
        return SimpleNamespace(
            toLocalIterator=lambda: rows, limit=lambda n: SimpleNamespace(toLocalIterator=lambda: islice(rows, n))
        )

    assert books.audit(keys(paid), _glance) == []
    assert len(books.audit(keys("none"), _glance)) in range(100_001, 110_000)


@pytest.mark.parametrize(
    ("id", "user", "said"),
    [
        ("", "garbage", "record garbage/: a transaction's id is"),
        ("x", None, "row x of transactions: a transaction's id"),
    ],
)
def test_what_names_no_transaction_is_told_with_its_row(id: str, user: str | None, said: str) -> None:
    """The id alone, which may be empty, leads nobody to it."""
    with pytest.raises(ContradictionError, match=said):
        steps.run(audited(id, user), opened("ann"))


def _glance(id: str, _: str | None) -> Program[None]:
    """A check that asks once."""
    (row,) = yield Read(Table.TRANSACTIONS, (id,))
    if not row:
        msg = "it is gone"
        raise ContradictionError(msg)


def test_a_full_check_remembers_how_many_are_finished() -> None:
    """The next one refuses fewer; another run's greater count, of meanwhile, stays, and the day's runs count none."""
    memory = opened("ann")
    for counted, full, kept in ((7, True, 7), (9, True, 9), (8, True, 9), (20, False, 9)):
        books = _books(memory)
        books.run.summary.figures[money_figure("before")[0]] = counted
        settled_mark.settle(books, 0, millis(NOW) - GRACE, full=full)
        assert _marked(memory).finished == kept


def test_no_run_moves_the_mark_over_wrong_money_that_another_found() -> None:
    """One that did not count all, or began before the other found it, may have counted before it went wrong; a full
    check that began later clears it.
    """
    memory = opened("ann")
    horizon = millis(NOW) - GRACE
    early = _books(memory)
    settled_mark.doubt(_books(memory))
    doubted = _marked(memory)
    assert (doubted.wrong_at, doubted.mark) == (millis(NOW), 0)
    later = _books(memory)
    for books, full in ((early, True), (early, False), (later, False)):
        books.run.summary.figures[money_figure("before")[0]] = 1
        settled_mark.settle(books, 0, horizon, full=full)
        assert _marked(memory) == doubted
        assert "the settled mark stays where it is" in books.problems[-1]
    settled_mark.settle(later, 0, horizon, full=True)
    assert (_marked(memory).wrong_at, _marked(memory).mark) == (0, horizon)


def test_a_full_check_between_two_that_found_wrong_money_clears_neither() -> None:
    """It began when the first was known: of what the second found it has counted nothing."""
    memory = opened("ann")
    settled_mark.doubt(_books(memory))
    between, second = _books(memory), _books(memory)
    second.now += 60_000
    settled_mark.doubt(second)
    doubted = _marked(memory)
    between.run.summary.figures[money_figure("before")[0]] = 1
    settled_mark.settle(between, 0, millis(NOW) - GRACE, full=True)
    assert _marked(memory) == doubted, "what was found last is not looked for yet"


def test_an_entry_of_a_slow_clock_is_as_young_as_hbase_wrote_it() -> None:
    """Its client is about to claim it, whatever time the client's own clock has put into it."""
    slow = Entry(millis(NOW) - 9 * GRACE, transaction_id(user_id("ann"), 1), "0" * 16)
    index = SimpleNamespace(toLocalIterator=lambda: iter([SimpleNamespace(key=slow.row, written=millis(NOW))]))
    books = _answering(opened("ann"))
    assert list(repair._entries(books, index, millis(NOW) - GRACE)) == [], "its client is about to claim"
    assert books.report.counts.skipped.total() == 1
