"""What the judge of a ledger in chaos asks of runs where another program has forged rows: each rule, broken once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tests.chaos.ledger_alarms import Alarms, Cells, Forged
from tests.chaos.ledger_judge import LedgerJudge, Rows, user

PLACE = ("user_transactions", "row")
WAS, NOW = {"amount": "1", "state": "finished"}, {"amount": "2", "state": "finished"}
ACTS, FULL = ("--execute",), ("--full", "--execute")
WRONG = "the money does not add up before the repair"
NOBODY: tuple[frozenset[str], ...] = (frozenset(), frozenset())


class Told:
    """Alarms, and what they find wrong; times are 1,000 unless a test says another."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.alarms = Alarms(lambda _, what: self.wrong.append(what))

    def forges(self, *, recent: bool = True, money: bool = True, at: int = 1000) -> None:
        self.alarms.forges(Forged("an amount", {PLACE: WAS}, {PLACE: NOW}, at, money, recent))

    def begins(self, name: str = "one", words: tuple[str, ...] = ACTS, finished: int = 5, **more: Any) -> None:
        self.alarms.begins(name, 1000, words, finished, more.get("grace", 0), more.get("behind", NOBODY))

    def writes(self, name: str, before: Mapping[str, Cells] = {}, now: Mapping[str, Cells] = {}) -> None:
        self.alarms.looked(name, [before, {}, {}], [now, {}, {}])

    def ends(self, name: str = "one", code: int = 0, problem: str = "", note: str = "", finished: int = 5) -> list[str]:
        self.alarms.ended("here", name, code, [problem], [note], finished)
        return self.wrong

    def marks(self, run: str = "one", was: Mapping[str, int] | None = None, **now: int) -> list[str]:
        self.alarms.marked("here", was or {}, {"run": run, **now}, 1000)
        return self.wrong


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_run_that_forgeries_concern_does_not_end_well(told: Told) -> None:
    """What was written since the last check any; what was not a full one, and every one once a full one has found it,
    until one is right that began later.
    """
    told.forges()
    told.begins()
    assert told.ends() == ["an amount, and it ended well"]
    told.wrong.clear()
    told.alarms.undone()
    told.forges(recent=False)
    told.begins()
    assert told.ends() == []
    told.begins(words=FULL)
    told.begins("two")
    assert told.ends(code=1, problem=WRONG) == []
    assert told.ends("two") == [], "it began before"
    told.begins()
    assert told.ends() == ["an amount, and it ended well"]
    told.wrong.clear()
    told.alarms.undone()
    told.begins(words=FULL)
    assert told.ends() == []
    told.forges(recent=False)
    told.begins()
    assert told.ends() == []


def test_a_dry_run_remembers_nothing(told: Told) -> None:
    """No later run is asked for what it has found."""
    told.forges(recent=False)
    told.begins(words=("--full",))
    told.ends(code=1, problem=WRONG)
    told.begins()
    assert told.ends() == []


def test_a_run_that_repairs_on_after_a_forgery_counts_again(told: Told) -> None:
    """Where it wrote nothing since, it may have counted before."""
    told.begins()
    told.forges()
    told.writes("one")
    assert told.ends() == []
    told.alarms.undone()
    told.begins()
    told.forges()
    told.writes("one", now={"t": {"state": "finished"}})
    assert told.ends() == ["an amount while it repaired, and it ended well"]


def test_balances_are_refused_where_they_are_wrong(told: Told) -> None:
    """Once one has begun since."""
    told.begins()
    told.forges()
    told.alarms.balanced("here", "one", 0)
    told.begins()
    told.alarms.balanced("here", "one", 1)
    assert told.wrong == []
    told.begins()
    told.alarms.balanced("here", "one", 0)
    assert told.wrong == ["an amount, and balances were told"]


def test_no_run_goes_by_what_a_server_may_take_back(told: Told) -> None:
    """Neither a repair nor balances, where the table was so when they began."""
    told.begins()
    told.alarms.loose.add("users")
    assert told.ends() == []
    told.begins()
    assert told.ends(code=1) == []
    told.begins()
    assert told.ends() == ["['users'] may lose what was acknowledged, and it ended well"]
    told.wrong.clear()
    for code in (1, 0):
        told.begins()
        told.alarms.balanced("here", "one", code)
    assert told.wrong == ["['users'] may lose what was acknowledged, and it ended well"]


def test_a_full_check_misses_finished_transactions(told: Told) -> None:
    """Fewer than the last one counted; what was mended is not gone by."""
    told.begins(words=FULL)
    told.ends()
    told.begins(finished=4)
    assert told.ends(finished=4) == []
    told.alarms.mended()
    told.begins(words=FULL, finished=4)
    assert told.ends(finished=4) == []
    told.alarms.forges(Forged("gone", {PLACE: WAS}, {PLACE: {}}, 1000, gone=True))
    told.begins(words=FULL, finished=4)
    assert told.ends(finished=4) == [], "as many have come since"
    told.begins(words=FULL, finished=3)
    assert told.ends(finished=3) == ["4 transactions were finished, 3 are, and it ended well"]


@pytest.mark.parametrize(
    ("behind", "note", "said"),
    [
        ((frozenset("x"), frozenset()), "1 open transactions lie below the settled mark", "lay below the settled mark"),
        ((frozenset(), frozenset("x")), "1 open transactions had no index entry", "had no index entry"),
    ],
)
def test_a_full_check_says_what_it_could_not_know_of(
    told: Told, behind: tuple[frozenset[str], ...], note: str, said: str
) -> None:
    """Unless somebody else may have brought it to its end before."""
    told.begins(words=FULL, behind=behind)
    told.writes("another")
    told.ends()
    told.begins(words=FULL, behind=behind)
    assert told.ends(note=note) == []
    told.begins(words=FULL, behind=behind)
    assert said in told.ends()[0]


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (lambda told: told.marks(mark=900, at=1000, checked_at=990), ""),
        (lambda told: told.marks(at=1200), "tells of a time to come"),
        (lambda told: (told.begins("two", grace=500), told.marks("two", mark=900)), "within the grace"),
        (lambda told: (told.forges(at=900), told.marks(checked_at=950)), "is checked"),
        (lambda told: (told.forges(at=900), told.marks(checked_at=850)), ""),
        (lambda told: (told.forges(), told.begins("two"), told.marks("two", mark=900)), "settled mark moved on"),
        (lambda told: (told.forges(money=False), told.begins("two"), told.marks("two", mark=900)), ""),
    ],
)
def test_a_mark_that_says_too_much_is_noticed(told: Told, happens: Callable[[Told], object], said: str) -> None:
    """A time to come, within its run's grace, that what was forged meanwhile is checked, and over what was forged."""
    told.begins()
    happens(told)
    assert [said in line for line in told.wrong] == [True] * bool(said)


def test_no_run_that_began_before_moves_a_mark_over_an_alarm(told: Told) -> None:
    """Nor does it take the alarm away; a full check that began later may."""
    told.begins(words=FULL)
    told.begins("two", FULL)
    told.writes("two")
    told.ends("two", code=1, problem=WRONG)
    over = "the settled mark moved on though another run had found wrong money"
    assert told.marks(mark=900) == [over]
    assert told.marks(was={"wrong_at": 500, "mark": 900}, mark=900) == [over] * 2
    told.wrong.clear()
    told.begins("three", FULL)
    assert told.marks("three", was={"wrong_at": 500}, mark=900) == []


def test_no_entry_of_who_is_about_to_claim_goes_within_the_grace(told: Told) -> None:
    """Without a grace it may, and where the number is claimed."""
    (one, two), nobody = (f"{0:015d}/{id}/nonce" for id in ("a", "b")), dict[str, Cells]()
    told.alarms.entries("here", "", [], nobody, [one, two], 1000)
    told.begins(grace=0)
    told.alarms.entries("here", "one", [one, two], nobody, [one], 1010)
    told.begins(grace=500)
    told.alarms.entries("here", "one", [one], {"a": {"request": "x"}}, [], 1010)
    assert told.wrong == []
    told.alarms.entries("here", "one", [one], nobody, [], 1010)
    assert told.wrong == [f"the entry {one} is gone, and its client was about to claim"]
    told.alarms.entries("here", "one", [], nobody, [one], 1010)
    assert told.alarms.restored(one)
    assert not told.alarms.restored(two)


def test_what_was_forged_is_charged_to_nobody() -> None:
    """The judge goes by what would be there; when it is taken back, by what is."""
    issuer, ann = user("issuer"), user("ann")
    id, debit = f"{issuer}-000000000001", {"user_id": issuer, "transaction_id": "", "amount": "-3", "state": "finished"}
    debit["transaction_id"] = id
    credit = {**debit, "user_id": ann, "amount": "3"}
    transaction = {"sender": issuer, "recipient": ann, "amount": "3", "state": "finished", "decision": '{"reason": ""}'}
    records: dict[str, Cells] = {f"{issuer}/{id}": debit, f"{ann}/{id}": credit}
    judge = LedgerJudge(issuer, frozenset([issuer, ann]))
    judge._rows = judge._all = Rows({id: transaction}, records)  # without the steps by which it came
    place = ("user_transactions", f"{ann}/{id}")
    forged = {**credit, "amount": "4"}
    for now in (forged, {}):
        judge.alarms.forges(Forged("an amount", {place: credit}, {place: now}, 0))
        judge.look("here", Rows({id: transaction}, {**records, place[1]: now} if now else {f"{issuer}/{id}": debit}))
        judge.alarms.undone()
        judge.look("here", Rows({id: transaction}, records))
    assert judge.wrong == []
    judge.look("here", Rows({id: transaction}, {**records, place[1]: forged}))
    assert "has moved" in judge.wrong[0]


def test_a_full_check_leaves_no_open_claim_without_an_entry() -> None:
    """One that ended well, of a claim that was there when it began."""
    issuer, ann = user("issuer"), user("ann")
    id = f"{issuer}-000000000001"
    request = f'{{"amount":3,"nonce":"{"0" * 16}","recipient":"{ann}","sender":"{issuer}","timestamp":5}}'
    judge = LedgerJudge(issuer, frozenset([issuer, ann]))
    entry = f"{5:015d}/{id}/{'0' * 16}"
    judge.look("here", Rows({}, {}, {entry: {}}))
    judge.look("here", Rows({id: {"request": request}}, {}, {entry: {}}))
    judge.wrong.clear()
    judge.loses(id)
    judge.look("here", Rows({id: {"request": request}}))
    judge.begins("one", FULL)
    judge.repaired("here", "one", 0, [], ["1 open transactions had no index entry"])
    assert judge.wrong == [f"here: {id} is open, a full check ended well, and there is no entry (8)"]
