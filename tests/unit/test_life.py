"""A table that came back while a cleanup goes on: looked at after it was read, and before it is recorded."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.cleaning import acting, marks, plan, recording, turn
from lowtide_spark.frames.reading import Reading

from lowtide.cleaning.facts import Incarnation, Region
from lowtide.errors import StoreError
from lowtide.values.clock import from_millis
from lowtide.values.keyranges import KeyRange

BEFORE, SINCE = 70, 90
NOTHING: dict[str, None] = dict.fromkeys(("store_bytes", "compacted", "stated"))


def listed(stated: int) -> list[Region]:
    return [Region("r", KeyRange(b"", b""), 5, stated=stated)]


def work(*, given_up: bool = False) -> Any:
    """Of a table whose state was written at BEFORE when the run listed its regions."""
    taken = SimpleNamespace(incarnation=Incarnation.unknown().advance(listed(BEFORE)))
    made = SimpleNamespace(table="orders", state=taken, suspects=None if given_up else object(), ranges=[object()])
    made.mismarked, made.idle, made.problems = 0, False, []
    made.give_up = lambda why: (made.problems.append(why), setattr(made, "suspects", None))
    return made


def run(stated: int) -> Any:
    store = SimpleNamespace(regions_of=lambda _: lambda _: listed(stated), check_consent=lambda _: [])
    return SimpleNamespace(store=store)


def test_a_table_that_came_back_is_named_with_what_to_do() -> None:
    """The one that is there still goes on; one that was given up says no more."""
    stays, given_up, came = work(), work(given_up=True), work()
    turn.check_lives(run(BEFORE), [stays])
    turn.check_lives(run(SINCE), [given_up, came])
    assert (stays.problems, given_up.problems) == ([], [])
    assert re.search(r"orders was restored.*nothing is recorded. Run again", came.problems[0])


def test_nothing_is_marked_nor_done_to_a_table_that_came_back_while_it_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its error is kept, and its work ends, before the first mark; the other tables go on."""
    came, stays = work(), work()
    came.state = SimpleNamespace(incarnation=Incarnation.unknown().advance(listed(SINCE)))
    marked, acted = [], []
    monkeypatch.setattr(turn, "check", lambda *_: None)
    monkeypatch.setattr(marks, "put", lambda _, works, *__: marked.extend(w for w in works if w.suspects))
    monkeypatch.setattr(plan, "decide", lambda *_: None)
    monkeypatch.setattr(acting, "_act", lambda _, w: acted.append(w) if w.suspects else None)
    monkeypatch.setattr(marks, "wrong", lambda *_, **__: None)
    monkeypatch.setattr(acting, "start_set", lambda *_: None)
    monkeypatch.setattr(marks, "commit_table_report", lambda _: SimpleNamespace(counts=SimpleNamespace(unmarked=0)))
    acting.act_all(run(BEFORE), [came, stays], object(), object())
    assert (marked, acted) == ([stays], [stays])
    assert (len(came.problems), stays.problems) == (1, [])


def test_tables_that_cannot_be_recorded_together_are_recorded_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that fails keeps its error, and nothing else is lost by it."""
    fails, lost, done = work(), work(), work()
    fails.table, lost.table = "payments", "users"
    for each in (fails, lost, done):
        each.report = SimpleNamespace(regions_recorded=0)
    lost.state = SimpleNamespace(incarnation=lost.state.incarnation, table="users", epoch="7")

    def record_all(facts: list[Any]) -> set[str]:
        if any(state is fails.state for state, _ in facts):
            msg = "payments is down"
            raise StoreError(msg)
        return {"users"} if any(state is lost.state for state, _ in facts) else set()

    state = SimpleNamespace(server_time=lambda: from_millis(5), record_all=record_all)
    monkeypatch.setattr(recording, "_facts", lambda *_: [object(), object()])
    monkeypatch.setattr(recording, "_forget_covered", lambda *_: None)
    all_three = run(BEFORE)
    all_three.state = lambda: state
    recording.record_all(all_three, [fails, lost, done])
    assert (fails.problems, fails.report.regions_recorded) == (["payments is down"], 0)
    assert "another run has taken over table users" in lost.problems[0]
    assert (done.problems, lost.report.regions_recorded, done.report.regions_recorded) == ([], 0, 2)


def test_where_regions_cannot_be_listed_together_each_table_is_listed_by_itself() -> None:
    """Of one whose server hangs nothing is known; the others are there."""

    def listed(view: str, *tables: str) -> list[Any]:
        if "down" in tables:
            msg = "nobody answers for down"
            raise StoreError(msg)
        return [SimpleNamespace(table=tables[0], region=view, start="", stop="", created=5, **NOTHING)]

    store: Any = Reading.__new__(Reading)
    store._listed = listed
    regions_of = store.regions_of(["up", "down"])
    assert [region.created for region in regions_of("up")] == [5]
    with pytest.raises(StoreError, match="nobody answers for down"):
        regions_of("down")


def test_nothing_is_recorded_of_a_table_that_came_back_after_it_was_cleaned() -> None:
    """Its error says so; the records are not even opened."""
    since, came = run(SINCE), work()
    since.state = lambda: pytest.fail("it records")
    recording.record_all(since, [came])
    assert "orders was restored" in came.problems[0]
