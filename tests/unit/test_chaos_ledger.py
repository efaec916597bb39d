"""The ledger in a plan of chaos, without a store: its steps, and what its judge notices."""

from __future__ import annotations

import ast
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from breaking.catalogue import CHAOS_SEEDS

from lowtide.ledger import steps
from lowtide.ledger.model import ContradictionError, Entry, Request, Table, user_id
from tests.chaos import ledger_plan, plan, worlds
from tests.chaos.ledger_judge import Asked, LedgerJudge, Rows, user
from tests.chaos.ledger_meeting import InMemory
from tests.chaos.ledger_memory import Index, Memory
from tests.chaos.nemeses import Kind, Nemesis
from tests.chaos.scenes import ledger
from tests.chaos.steps import TURN, Run

ROOT = Path(__file__).resolve().parents[2]
ISSUER, ANN, BOB = (user(name) for name in ("issuer", "ann", "bob"))
NONCES = {f"{ISSUER}-1": "0" * 16, f"{ANN}-1": "1" * 16, f"{ANN}-2": "2" * 16}


# -- plans


def test_every_third_seed_has_a_ledger_and_every_one_that_is_about_it() -> None:
    """With all steps, all ends of clients, and repairs of each kind; the others have none of it."""
    made = [plan.made(seed) for seed in range(120)]
    of_the_ledger = ledger_plan.LedgerStep.__args__
    about = [worlds.of(seed) is worlds.World.LEDGER for seed in range(120)]
    assert [one.ledger for one in made] == [seed % 3 == 0 or about[seed] for seed in range(120)]
    for one in made:
        there = {type(step) for step in one.every() if isinstance(step, of_the_ledger)}
        assert bool(there) is one.ledger
    steps = [step for one in made for step in one.every()]
    assert {s.end for s in steps if isinstance(s, ledger_plan.Move)} == set(ledger_plan.End)
    repairs = [s for s in steps if isinstance(s, Run) and s.job == ledger_plan.REPAIR]
    assert {seam.kind for run in repairs for seam in run.seams} == {*ledger_plan.KINDS, ledger.MARK, TURN}
    assert {type(step) for step in steps} >= set(of_the_ledger)
    assert {s.forgery for s in steps if isinstance(s, ledger_plan.Forge)} == set(ledger_plan.Forgery)
    words = {word for run in repairs for word in run.arguments}
    assert words >= {"--full", "--list", "--from", "--grace", "0s", "1h", "--execute"}


def test_a_ledger_that_a_plan_is_not_about_has_a_scene_too() -> None:
    """One: a client is faster than a repair by a clock that is fast, and somebody is broken off."""
    for seed in (seed for seed in range(0, 60, 3) if worlds.of(seed) is not worlds.World.LEDGER):
        made = plan.made(seed, nemeses=[Kind.CLOCK])
        scene = [step for step in made.steps if made.scene_of(step) == len(made.scenes) - 1]
        (repair,) = (step for step in scene if isinstance(step, Run))
        assert [type(step) for seam in repair.seams for step in seam.steps if seam.kind == "rows"] == [ledger_plan.Move]
        assert {ledger_plan.BreakOff, Nemesis} <= {type(step) for step in scene}
        assert scene.index(repair) > [type(step) for step in scene].index(Nemesis)


def test_a_seed_is_one_transfer() -> None:
    """Between two users; to one whom nobody added, and by a clock that is off, now and then."""
    found = [ledger_plan.wanted(f"x.{number}") for number in range(500)]
    assert found == [ledger_plan.wanted(f"x.{number}") for number in range(500)]
    assert all(one.sender != one.recipient for one in found)
    assert len({one.nonce for one in found}) == 500
    assert any(one.recipient == ledger_plan.NOBODY for one in found)
    assert len({one.offset for one in found}) == 3


# -- the judge


def test_the_judge_knows_nothing_of_lowtide() -> None:
    """It imports the standard library alone, in both of its parts."""
    modules: set[str] = set()
    for name in ("ledger_judge.py", "ledger_alarms.py"):
        tree = ast.parse((ROOT / "tests" / "chaos" / name).read_text())
        modules |= {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules - {"tests.chaos.ledger_alarms"} == {
        "__future__",
        "hashlib",
        "json",
        "collections",
        "collections.abc",
        "dataclasses",
        "functools",
        "time",
        "typing",
    }


def test_a_user_has_the_id_that_the_ledger_gives_him() -> None:
    """Computed apart."""
    assert user("ann") == user_id("ann")


class Ledger(Memory):
    """The real programs of the ledger over rows in memory, judged after each write."""

    def __init__(self) -> None:
        super().__init__([ISSUER, ANN, BOB])
        self.judge = LedgerJudge(ISSUER, frozenset([ISSUER, ANN, BOB]))
        self.clock = 1000

    def rows(self) -> Rows:
        of = {name: {row: dict(cells) for row, cells in table.items()} for name, table in self.tables.items()}
        return Rows(of[Table.TRANSACTIONS], of[Table.RECORDS], of[Table.OPEN])

    def look(self) -> list[str]:
        self.judge.look("here", self.rows())
        return self.judge.wrong

    def asked(self, sender: str, recipient: str, amount: int, nonce: str) -> Any:
        self.judge.asks(nonce, Asked(sender, recipient, amount))
        return steps.transfer(Request(sender, recipient, amount, 0, nonce), ISSUER, self._now)

    def _now(self) -> int:
        self.clock += 1
        return self.clock

    def moved(self, sender: str, recipient: str, amount: int, nonce: str) -> str:
        """A transfer from begin to end, of which the client is told."""
        outcome = steps.run(self.asked(sender, recipient, amount, nonce), self)
        self.judge.is_told("here", nonce, outcome.id, str(outcome.state))
        return str(outcome.id)

    def until(self, program: Any, writes: int) -> None:
        """So many writes of a program."""
        answer = None
        while writes:
            operation = program.send(answer)
            answer = self(operation)
            writes -= not isinstance(operation, steps.Read | steps.Scan)

    def __call__(self, operation: Any) -> Any:
        answer = super().__call__(operation)
        if not isinstance(operation, steps.Read | steps.Scan):
            self.look()
        return answer


@pytest.fixture
def paid() -> Ledger:
    """Ann got 100 of the issuer, and paid 30 to Bob."""
    made = Ledger()
    made.moved(ISSUER, ANN, 100, "0" * 16)
    made.moved(ANN, BOB, 30, "1" * 16)
    return made


def test_what_is_right_is_not_wrong(paid: Ledger) -> None:
    """Transfers, one that is refused, some whose clients die and that a repair ends, one that is dropped."""
    with pytest.raises(Exception, match="the sender's balance is 70"):
        steps.run(paid.asked(ANN, BOB, 71, "a" * 16), paid)
    paid.judge.is_refused("here", "a" * 16)
    for writes in range(1, 16):
        paid.until(paid.asked(ANN, BOB, 1, f"{writes:016x}".replace("0", "b")), writes)
    # Two that can each be paid, and not both: the second was not yet dropped when it was asked.
    first, second = paid.asked(ANN, BOB, 40, "d" * 16), paid.asked(ANN, BOB, 41, "e" * 16)
    for program in (first, second, first):
        paid.until(program, 2)
    for _ in range(2):
        for row in sorted(paid.tables["open_transactions"]):
            steps.run(steps.repair(Entry.parse(row), ISSUER), paid)
    paid.judge.at_the_end(paid.rows())
    paid.judge.is_told_balance("here", BOB, paid.rows().balances()[BOB])
    paid.judge.is_told_total("here", 100)
    assert paid.judge.wrong == []
    states = [row["state"] for row in paid.tables["transactions"].values()]
    assert (states.count("dropped"), paid.judge.counts["decisions"]) == (1, len(states))


Break = Callable[[Ledger], object]


def _row(made: Ledger, id: str = f"{ANN}-000000000001") -> dict[str, str]:
    return made.tables["transactions"][id]


def _record(made: Ledger, of: str, id: str = f"{ANN}-000000000001") -> dict[str, str]:
    return made.tables["user_transactions"][f"{of}/{id}"]


def _again(made: Ledger, **changes: Any) -> None:
    """Ann's transfer once more, as her next, with what its request and decision say changed."""
    new, old = f"{ANN}-000000000002", _row(made)
    request = {**json.loads(old["request"]), "nonce": "2" * 16, "amount": 1, **changes}
    decision = {"reason": "", "spent": 30, "credited": 100}
    made.tables["transactions"][new] = {
        "request": json.dumps(request),
        "decision": json.dumps({**decision, **({"reason": "no"} if changes.get("state") == "dropped" else {})}),
        "amount": str(request["amount"]),
        "sender": ANN,
        "recipient": BOB,
        "state": changes.get("state", "in progress"),
    }
    if new not in json.dumps(list(made.tables["open_transactions"])):
        made.tables["open_transactions"][f"{request['timestamp']:015d}/{new}/{request['nonce']}"] = {}


def _asked_again(made: Ledger, amount: int = 1, **changes: Any) -> None:
    made.judge.asks("2" * 16, Asked(ANN, BOB, amount))
    _again(made, amount=amount, **changes)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (lambda made: _row(made).update(amount="3"), "amount of"),
        (lambda made: _row(made).update(decision=json.dumps({"reason": "no"})), "decision of"),
        (lambda made: _row(made).update(state="committed"), "was finished and is committed"),
        (lambda made: made.tables["transactions"].pop(f"{ANN}-000000000001"), "was told that"),
        (lambda made: _again(made), "that nobody asked for"),
        (lambda made: _asked_again(made, 71), "pays 71 of 100 with 30 spent"),
        (lambda made: _asked_again(made, 70, state="dropped"), "is not to pay 70 of 100 with 30 spent"),
        (
            lambda made: (_asked_again(made), made.tables[Table.OPEN].clear()),
            f"{ANN}-000000000002 was claimed, and there was never an entry",
        ),
        (lambda made: _record(made, BOB).update(amount="31"), "and has moved"),
        (lambda made: _record(made, ANN).update(state="pending"), "and has moved"),
        (
            lambda made: made.tables["user_transactions"].update(
                {f"{ISSUER}/{ANN}-000000000001": {**_record(made, BOB), "user_id": ISSUER}}
            ),
            "and has moved",
        ),
        (
            lambda made: made.tables["user_transactions"].update({f"{BOB}/{ANN}-000000000009": _record(made, BOB)}),
            "and its transaction is None",
        ),
        (lambda made: _record(made, ANN).update(amount="-131"), f"{ANN} has -31"),
    ],
)
def test_a_wrong_write_is_noticed(paid: Ledger, broken: Break, said: str) -> None:
    """Each rule by one write that breaks it, and says so."""
    assert paid.look() == []
    broken(paid)
    assert any(said in line and line.endswith("(8)") for line in paid.look()), paid.judge.wrong


def test_what_can_be_paid_is_decided_in_order(paid: Ledger) -> None:
    """A decision while an earlier number has none; a number that leaves a gap; one request, claimed twice."""
    _asked_again(paid)
    del _row(paid, f"{ANN}-000000000002")["decision"], _row(paid, f"{ANN}-000000000002")["state"]
    assert paid.look() == []
    third = {**_row(paid, f"{ANN}-000000000002"), "decision": json.dumps({"reason": ""})}
    paid.tables["transactions"][f"{ANN}-000000000004"] = third
    told = " ".join(paid.look())
    assert "are not" in told
    assert "is not the next number" in told
    assert "was claimed 2 times" in told


def test_an_entry_that_goes_before_its_transaction_is_over_is_noticed(paid: Ledger) -> None:
    """One that was not there when the number was claimed is not: a repair without grace took it away."""
    paid.until(paid.asked(ANN, BOB, 1, "a" * 16), 4)
    (entry,) = paid.tables["open_transactions"]
    cells = paid.tables["open_transactions"].pop(entry)
    assert any("its entry is gone" in line for line in paid.look())
    paid.judge.wrong.clear()
    late = paid.asked(ANN, BOB, 1, "b" * 16)
    paid.tables["open_transactions"][entry] = cells
    paid.until(late, 1)
    for row in set(paid.tables["open_transactions"]) - {entry}:
        del paid.tables["open_transactions"][row]
    assert paid.look() == []
    paid.until(paid.asked(ANN, BOB, 1, "c" * 16), 1)
    assert paid.judge.wrong == []


@pytest.mark.parametrize(("to", "wrong"), [(0, False), (1003, False), (1004, True)])
def test_a_settled_mark_that_passes_an_open_transaction_is_noticed(paid: Ledger, to: int, wrong: bool) -> None:
    """One that was listed when its run began; up to there it may go, by a run that somebody began."""
    paid.until(paid.asked(ANN, BOB, 1, "a" * 16), 4)
    paid.judge.begins("one")
    assert paid.clock == 1003
    paid.tables["open_transactions"]["settled"] = {"mark": json.dumps({"mark": to, "run": "one"})}
    assert [" over " in line for line in paid.look()] == [True] * wrong
    paid.judge.wrong.clear()
    paid.tables["open_transactions"]["settled"] = {"mark": json.dumps({"mark": 10**6, "run": "two"})}
    assert "which nobody began" in paid.look()[0]


def test_what_a_client_was_told_is_held_against_the_store(paid: Ledger) -> None:
    """Done, and it is not; half-way; refused, and there it is; refused, and there was enough; a wrong balance."""
    id = f"{ANN}-000000000001"
    for told in (
        lambda judge: judge.is_told("here", "1" * 16, id, "dropped"),
        lambda judge: judge.is_told("here", "9" * 16, id, "finished"),
        lambda judge: judge.is_told("here", "1" * 16, id, "committed"),
        lambda judge: judge.is_refused("here", "1" * 16),
        lambda judge: judge.is_told_balance("here", ANN, 71),
        lambda judge: judge.is_told_total("here", 101),
    ):
        before = len(paid.judge.wrong)
        told_before = dict(paid.judge.told)
        told(paid.judge)
        assert len(paid.judge.wrong) > before
        paid.judge.told, paid.judge.refused = told_before, set()
    paid.judge.wrong.clear()
    paid.judge.asks("f" * 16, Asked(ANN, BOB, 70))
    paid.judge.is_refused("here", "f" * 16)
    assert "70 were there all the time" in paid.judge.wrong[0]


def test_a_refusal_of_what_was_too_little_for_a_moment_is_right(paid: Ledger) -> None:
    """The least that was left at any time since it was asked counts."""
    paid.judge.asks("f" * 16, Asked(ANN, BOB, 70))
    paid.moved(ANN, BOB, 1, "d" * 16)
    paid.moved(ISSUER, ANN, 100, "c" * 16)
    paid.judge.is_refused("here", "f" * 16)
    paid.judge.asks("e" * 16, Asked(ANN, user("nobody"), 1))
    paid.judge.is_refused("here", "e" * 16)
    assert paid.judge.wrong == []


def test_what_is_left_at_the_end_is_noticed(paid: Ledger) -> None:
    """A transfer that is not over, an entry, and balances that are not what was decided."""
    program = paid.asked(ANN, BOB, 1, "a" * 16)
    paid.until(program, 4)
    paid.judge.at_the_end(paid.rows())
    told = " ".join(paid.judge.wrong)
    assert f"{ANN}-000000000002 is initial" in told
    assert "the entry 0" in told
    paid.judge.wrong.clear()
    paid.until(program, 2)  # it is decided, and has not moved
    paid.judge.at_the_end(paid.rows())
    assert any("the decisions come to" in line for line in paid.judge.wrong)


def test_a_repair_that_calls_the_money_wrong_is_noticed(paid: Ledger) -> None:
    """Nobody has forged any. What else it says is not the ledger's."""
    paid.judge.ended("here", iter(["the gateway says no"]))
    assert paid.judge.wrong == []
    paid.judge.ended("here", iter(["the money does not add up before the repair"]))
    assert len(paid.judge.wrong) == 1


def test_fewer_that_are_finished_than_a_full_check_counted_are_a_loss(paid: Ledger) -> None:
    """Which the next one says; one that says so where nothing is gone is wrong. What comes back is counted anew."""
    paid.judge.ends_full("here", 2, refused=False)
    paid.judge.ends_full("here", 1, refused=True)
    assert paid.judge.wrong == []
    paid.judge.ends_full("here", 2, refused=True)
    paid.judge.ends_full("here", 1, refused=False)
    assert ["some were said to be gone" in paid.judge.wrong[0], "nobody said so" in paid.judge.wrong[1]] == [True] * 2
    paid.judge.wrong.clear()
    paid.judge.ends_full("here", 5, refused=False)
    paid.judge.is_given(paid.rows(), came_back=True)
    paid.judge.ends_full("here", 1, refused=False)
    assert paid.judge.wrong == []


def test_what_was_forged_is_left_alone(paid: Ledger) -> None:
    """Whoever writes over it, pays by it, or takes the entry away, is noticed; a drop needs no record."""
    paid.until(paid.asked(ANN, BOB, 1, "a" * 16), 7)
    id, before = f"{ANN}-000000000002", paid.rows()
    row = f"{ANN}/{id}"
    (entry,) = before.open
    paid.judge.is_left("here", id, row, before, before)
    dropped = replace(before, transactions={**before.transactions, id: {"state": "dropped"}}, open={})
    paid.judge.is_left("here", id, row, before, dropped)
    assert paid.judge.wrong == []
    for now, said in (
        (replace(before, records={**before.records, row: {"amount": "9"}}), "and others made"),
        (replace(before, transactions={**before.transactions, id: {"state": "committed"}}), "and it is committed"),
        (replace(before, open={}), "its entry is gone"),
    ):
        paid.judge.is_left("here", id, row, before, now)
        assert said in paid.judge.wrong.pop()
        assert paid.judge.wrong == []
    assert entry[:15].isdigit()


def test_a_mark_that_a_run_left_in_a_time_to_come_is_noticed(paid: Ledger) -> None:
    """As far as servers' clocks may be apart it may be; and a mark of another version's is not judged."""
    paid.judge.clock = lambda: 1_000_000
    for mark, wrong in ((1_120_000, False), (1_120_001, True)):
        paid.tables["open_transactions"]["settled"] = {"mark": json.dumps({"mark": mark, "run": "fast"})}
        paid.judge.is_given(paid.rows())
        paid.judge.is_marked("here")
        assert bool(paid.judge.wrong) is wrong


@pytest.mark.parametrize(("grace", "off", "wrong"), [(10**6, False, True), (10**6, True, False), (1, False, False)])
def test_who_claims_in_time_does_so_above_the_mark(paid: Ledger, grace: int, off: bool, wrong: bool) -> None:
    """By a clock that is right, and within the grace of the entry: those that wait for the mark wait for him."""
    paid.judge.clock, paid.judge.grace = (lambda: paid.clock), grace
    paid.judge.begins("one")
    paid.tables["open_transactions"]["settled"] = {"mark": json.dumps({"mark": 10**6, "run": "one"})}
    paid.judge.is_given(paid.rows())
    if off:
        paid.judge.off.add("a" * 16)
    paid.until(paid.asked(ANN, BOB, 1, "a" * 16), 2)
    assert [" was claimed in time, " in line for line in paid.judge.wrong] == [True] * wrong


def test_a_state_may_be_hidden_where_a_clock_is_behind(paid: Ledger) -> None:
    """Beneath the one before, beside records that are pending; not where all clocks are right."""
    paid.until(paid.asked(ANN, BOB, 1, "a" * 16), 7)
    _row(paid, f"{ANN}-000000000002")["state"] = "initial"
    rows = paid.rows()
    for hides in (True, False):
        paid.judge.is_given(rows)
        paid.judge.hides = hides
        assert any("its transaction is initial" in line for line in paid.look()) is not hides


def test_a_balance_is_one_that_was_there_while_it_was_asked_for(paid: Ledger) -> None:
    """Any of them; not one of before."""
    paid.judge.asks_balance("x", ANN)
    paid.judge.asks_balance("y", ANN)
    paid.moved(ANN, BOB, 1, "a" * 16)
    paid.judge.is_told_a_balance("here", "x", 70)
    assert paid.judge.wrong == []
    paid.moved(ANN, BOB, 1, "b" * 16)
    paid.judge.is_told_a_balance("here", "y", 71)
    assert "was one of [68, 69, 70], and 71 was told" in paid.judge.wrong[0]


def test_nothing_is_written_by_a_run_to_a_table_whose_owner_says_no(paid: Ledger) -> None:
    """Clients write what they like."""
    paid.judge.silent.add("transactions")
    before = paid.rows()
    paid.moved(ANN, BOB, 1, "a" * 16)
    paid.judge.look("here", paid.rows())
    assert paid.judge.wrong == []
    paid.judge.is_given(before)
    paid.judge._all = before
    paid.judge.look("here", paid.rows(), "run")
    assert paid.judge.wrong[0] == "here: transactions was written to, and its owner has said no (8)"
    assert not any("user_transactions was written to" in wrong for wrong in paid.judge.wrong)


def test_a_table_of_balances_says_of_each_user_by_his_name_what_he_has(paid: Ledger) -> None:
    """Whoever reads CSV finds neither another name nor another balance in it."""
    names = ("issuer", "ann", "bob")
    has = paid.rows().balances()
    due = [["user", "nickname", "balance"], *sorted([user(name), name, str(has[user(name)])] for name in names)]
    paid.judge.is_told_all("here", names, due)
    assert paid.judge.wrong == []
    for row, wrong in enumerate((["x"], *([user(name), name, "999"] for name in names))):
        paid.judge.is_told_all("here", names, [wrong if at == row else each for at, each in enumerate(due)])
    paid.judge.is_told_all("here", names, due[:-1])
    assert len(paid.judge.wrong) == 5
    assert "'999'" in paid.judge.wrong[1]
    assert "too few rows" in paid.judge.wrong[-1]


def test_who_asks_for_a_balance_has_no_error(paid: Ledger) -> None:
    """Where everything is there."""
    paid.judge.is_told_nothing("here", ANN, "KeyError")
    assert paid.judge.wrong == [f"here: who asked for the balance of {ANN} had KeyError (8)"]


def test_what_clients_were_told_is_undone_where_tables_come_back(paid: Ledger) -> None:
    """They are of a time before; what they say of themselves is judged as ever."""
    id = f"{ANN}-000000000001"
    del paid.tables["transactions"][id]
    paid.judge.is_given(paid.rows(), came_back=True)
    assert any(f"the record {ANN}/{id} is there" in line for line in paid.look())
    paid.judge.wrong.clear()
    for of in (ANN, BOB):
        del paid.tables["user_transactions"][f"{of}/{id}"]
    assert paid.look() == []


# -- clients and repairs, in memory


@pytest.mark.parametrize("seed", range(20))
def test_whatever_meets_in_memory_nothing_is_wrong(seed: int) -> None:
    """The real clients and the real program of a repair, in any order, and whatever else is done to a ledger; there is
    something to judge.
    """
    judge = InMemory(seed).carried_out()
    assert judge.wrong == []
    assert judge.counts["decisions"] > 3
    assert judge.counts["balances told"] >= len(ledger_plan.USERS)


def test_hundreds_of_plans_in_memory() -> None:
    """Those of sixty seeds; where chaos is asked for, as many as twenty seconds have room for. Everything that may
    happen does in one of them.
    """
    asked = os.environ.get(CHAOS_SEEDS)
    until = time.monotonic() + 20
    counts: Counter[str] = Counter()
    for seed in range(600 if asked else 60):
        if asked and time.monotonic() > until:
            break
        judge = InMemory(seed).carried_out()
        assert judge.wrong == [], f"seed {seed}"
        counts.update(judge.counts)
    happenings = ("forged", "came back", "settled marks", "balances told while others went on", "lost")
    assert [what for what in happenings if not counts[what]] == []


def test_an_error_that_nobody_caused_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that is told of a contradiction, where nobody has forged anything; it says at which step."""

    def contradicts(*_: Any) -> Any:
        raise ContradictionError("rows that no client has left")
        yield

    monkeypatch.setattr(steps, "decide", contradicts)
    wrong = InMemory(1).carried_out().wrong
    assert re.match(r"step \d+: ended in an error of its own: .*rows that no client has left", wrong[0])


def test_the_same_seed_is_the_same_plan() -> None:
    """By clocks of its own."""
    first, second = InMemory(3), InMemory(3)
    assert (first.carried_out().counts, first.memory.tables) == (second.carried_out().counts, second.memory.tables)


# -- the memory


def test_a_put_by_a_clock_that_is_behind_is_hidden() -> None:
    """Beneath a later cell, and beneath the removal of its row; a check puts no earlier than the cell that it saw."""
    memory = Memory([])
    of = Table.TRANSACTIONS

    def row() -> Any:
        (found,) = memory(steps.Read(of, ("r",)))
        return found

    memory(steps.Put(of, "r", {"a": "1"}))
    memory.behind[of] = 1000
    memory(steps.Put(of, "r", {"a": "2", "b": "2"}))
    assert row() == {"a": "1", "b": "2"}
    assert memory(steps.CheckAndPut(of, "r", "b", "2", "3", {"a": "3"}))
    assert row() == {"a": "1", "b": "3"}, "what comes along is not what was looked at"
    assert memory(steps.CheckAndPut(of, "r", "a", "1", "4"))
    assert not memory(steps.CheckAndPut(of, "r", "a", "1", "5"))
    memory(steps.Remove(of, "r"))
    assert row() == {"a": "4"}, "it has a later stamp"
    memory.behind[of] = 0
    memory(steps.Remove(of, "r"))
    assert row() == {}
    memory.behind[of] = 1000
    memory(steps.Put(of, "r", {"a": "6"}))
    assert memory(steps.CheckAndPut(of, "r", "a", None, "6"))
    assert row() == {}
    memory.now += 2000
    memory(steps.Put(of, "r", {"a": "7"}))
    assert row() == {"a": "7"}


def test_a_table_that_comes_back_is_what_it_was() -> None:
    """With its stamps, and with what was removed from it."""
    memory = Memory([])
    memory(steps.Put(Table.OPEN, "r", {"a": "1"}))
    kept = memory.copy(Table.OPEN)
    memory(steps.Put(Table.OPEN, "r", {"a": "2"}))
    memory(steps.Remove(Table.OPEN, "r"))
    memory.restore(Table.OPEN, kept)
    assert memory(steps.Scan(Table.OPEN, "", "")) == [("r", {"a": "1"})]
    ((row, written),) = memory(Index("", "~"))
    assert (row, written <= memory.now) == ("r", True)
    memory.lose(Table.OPEN, ["r"])
    memory.behind[Table.OPEN] = 1000
    memory(steps.Put(Table.OPEN, "r", {"a": "3"}))
    assert memory(steps.Scan(Table.OPEN, "", "", reverse=True)) == []
    assert memory(steps.Scan(Table.OPEN, "s", "", reverse=True)) == [("r", {"a": "3"})]
