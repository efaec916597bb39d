"""What is waited for, and when a watcher tells of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from lowtide.config import Config
from lowtide.errors import FormatError, StoreError, UsageError
from lowtide.health.conditions import (
    CONDITIONS,
    CommitTableLarger,
    Condition,
    LowWatermarkPast,
    RegionWatermarkPast,
    TransactionIs,
    TransactionsSettled,
    TransactionsStuck,
    from_json,
    pauses,
)
from lowtide.ledger.model import SETTLED_ROW, ContradictionError, Entry, State, Table, transaction_id, user_id
from lowtide.ledger.settled import SKEW, Settled, next_mark, trusted
from lowtide.values.clock import EPOCH, millis
from tests.unit.ledger_memory import opened
from tests.unit.unlisted import NOT_FOUND, Unlisted

TIME = "2026-01-31T00:00:00+00:00"
AT = millis(EPOCH.fromisoformat(TIME))
ID = transaction_id("a" * 40, 7)

ALL: list[Condition] = [
    TransactionsSettled(past=TIME),
    TransactionsSettled(every="1h"),
    TransactionsStuck(older_than="30m", more_than=5),
    TransactionIs(transaction=ID, state="committed"),
    LowWatermarkPast(past=TIME),
    RegionWatermarkPast(past=TIME, table="orders"),
    CommitTableLarger(than=1000),
]


@pytest.mark.parametrize("condition", ALL, ids=lambda c: c.kind)
def test_a_condition_survives_json(condition: Condition) -> None:
    """A trigger is stored and made again in another process."""
    assert from_json(condition.to_json()) == condition
    assert {type(c) for c in ALL} == set(CONDITIONS.values())


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"kind": "transactions gone"}, "unknown condition 'transactions gone'; there are transactions settled"),
        ({}, "unknown condition None"),
        ({"kind": "transactions settled"}, "one of past .* and every"),
        ({"kind": "transactions settled", "past": TIME, "every": "1h"}, "one of past .* and every"),
        ({"kind": "transactions settled", "past": "2026-01-31"}, "no time zone"),
        ({"kind": "transactions settled", "past": "soon"}, "ISO 8601"),
        ({"kind": "low watermark past", "every": "0s"}, "above 0, found '0s'"),
        ({"kind": "low watermark past", "every": "hourly"}, "found 'hourly'"),
        ({"kind": "transactions stuck", "older_than": "-1h"}, "found '-1h'"),
        ({"kind": "transactions stuck", "more_than": -1}, "more_than is a count"),
        ({"kind": "commit table larger", "than": "5"}, "than is a count from 0 on, found '5'"),
        ({"kind": "commit table larger", "then": 5}, "then"),
        ({"kind": "transaction is", "transaction": "47"}, "a dash and 12 digits"),
        ({"kind": "transaction is", "transaction": ID, "state": "paid"}, "a state is one of initial"),
        ({"kind": "region watermark past", "past": TIME}, "name of a table is missing"),
    ],
)
def test_what_cannot_be_meant_is_refused(value: dict[str, Any], said: str) -> None:
    """When it is made, not when it is first looked at."""
    with pytest.raises(UsageError, match=said):
        from_json(value)


@pytest.mark.parametrize(("reached", "met"), [(None, False), (AT - 1, False), (AT, True), (AT + 1, True)])
def test_a_time_is_reached(reached: int | None, met: bool) -> None:
    """From the very millisecond on; nothing yet is not reached. The text has both times."""
    result = TransactionsSettled(past=TIME).judge(reached)
    assert result.met is met
    assert "waiting for 2026-01-31T00:00:00" in result.text


def test_a_watcher_tells_of_every_period_once() -> None:
    """Not of a mark that went back and comes again; after a pause of the last period only."""
    condition, cursor, events = TransactionsSettled(every="1h"), None, []
    hour = 3_600_000
    for reached in (None, AT, AT + 1, AT + hour - 1, AT + hour, AT - hour, AT + hour + 5, AT + 5 * hour + 1):
        result = condition.judge(reached)
        cursor, event = condition.news(cursor, result)
        if event:
            events.append(result.level)
    assert events == [AT, AT + hour, AT + 5 * hour]


def test_a_watcher_tells_when_a_count_is_passed_and_again_after_it_fell() -> None:
    """Once each time, also where it was passed at the first look."""
    condition, cursor, events = TransactionsStuck(more_than=2), None, []
    for number, found in enumerate((3, 3, 2, 2, 3, 0, 3)):
        cursor, event = condition.news(cursor, condition.judge(found))
        if event:
            events.append(number)
    assert events == [0, 4, 6]
    assert condition.judge(0).text == "0 entries of the index of open transactions are older than 15m"
    assert "more than 2 entries" in condition.judge(3).text
    assert "may have claimed nothing, or be over" in condition.judge(3).text
    assert CommitTableLarger(than=2).judge(3).met
    assert not CommitTableLarger(than=2).judge(2).met


@pytest.mark.parametrize("wanted", list(State))
@pytest.mark.parametrize("found", [None, *State])
def test_a_transactions_state(wanted: State, found: State | None) -> None:
    """Met from the wanted state on; dropped only by itself; never where it ended otherwise."""
    result = TransactionIs(transaction=ID, state=wanted.value).judge(found)
    order = [None, State.INITIAL, State.IN_PROGRESS, State.COMMITTED, State.FINISHED]
    if State.DROPPED in (wanted, found):
        assert result.met == (wanted is found)
        assert result.never == (wanted is not found and found in (State.DROPPED, State.FINISHED))
    else:
        assert result.met == (order.index(found) >= order.index(wanted))
        assert not result.never


@given(st.integers(0, 100), st.integers(0, 100), st.none() | st.integers(0, 100))
def test_the_settled_mark_goes_back_only_to_an_open_transaction(mark: int, horizon: int, oldest: int | None) -> None:
    """It goes as far as it can: to an open one that was found, else to the grace, unless it was further already."""
    after = next_mark(mark, horizon, oldest)
    assert after in {mark, horizon, oldest}
    assert after <= max(mark, horizon)
    assert oldest is None or after <= oldest
    assert after >= max(mark, horizon) or after == oldest


def test_the_mark_is_read_as_it_was_written() -> None:
    """And is 0 where none was."""
    mark = Settled(5, "run", 1, 2, 3, 4, 5)
    assert Settled.decode(mark.encode()) == mark
    assert Settled.decode(None).mark == 0
    with pytest.raises(Exception, match=r"malformed.*remove row 'settled'"):
        Settled.decode("[")


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "{}x",
        '{"mark":"5"}',
        '{"mark":null}',
        '{"mark":true}',
        '{"run":5}',
        '{"mark":-1}',
        '{"at":253402300800000}',
    ],
)
def test_a_mark_that_is_none_is_named(text: str) -> None:
    """What nobody can compare with a time does not get so far."""
    with pytest.raises(ContradictionError, match=r"malformed.*remove row 'settled'"):
        Settled.decode(text)


def test_a_mark_of_a_newer_version_is_not_to_be_removed() -> None:
    """Its new parts may be alarms; what is damaged says what goes with it."""
    newer = Settled(5, "run").encode().replace("{", '{"audited_at":7,', 1)
    with pytest.raises(FormatError, match=r"has audited_at: a newer Lowtide wrote it\. Upgrade") as refused:
        Settled.decode(newer)
    assert "remove" not in str(refused.value)
    with pytest.raises(ContradictionError, match=r"\(finished\).*\(wrong_at\)"):
        Settled.decode('{"mark":-1,"wrong_at":5}')


_TIMES = st.integers(0, 2 * AT)


@given(_TIMES, _TIMES, _TIMES, _TIMES)
def test_a_mark_of_a_time_to_come_is_not_trusted(mark: int, at: int, checked_at: int, full_at: int) -> None:
    """Whichever part tells of it: nothing is settled then, no money is checked, and the full check is due. Servers
    may be apart by the margin.
    """
    stored = Settled(mark, "run", at, checked_at, full_at, 3, 4)
    found = trusted(stored, AT)
    if max(mark, at, checked_at, full_at) > AT + SKEW:
        assert found == Settled(0, "run", 0, 0, 0, 3, 4)
    else:
        assert found is stored
    assert max(found.mark, found.at, found.checked_at, found.full_at) <= AT + SKEW
    assert trusted(found, AT) is found


@pytest.mark.parametrize("ahead", [0, 3_600_000])
def test_a_sensor_goes_by_no_index_behind_which_no_full_check_stands(
    monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    """One that was emptied has neither entry nor mark, and one whose mark tells of a time to come has none that can be
    believed: nothing is settled until a full check began. The next repair that acts makes it.
    """
    memory, config = opened("ann"), Config()
    now = AT
    stored = memory.rows[Table.OPEN]
    if ahead:
        stored[SETTLED_ROW] = {"mark": Settled(now + ahead, "fast", now, now, now).encode()}
    monkeypatch.setattr("lowtide.health.conditions._ledger", lambda *_: memory)
    monkeypatch.setattr("lowtide.health.conditions.hbase_time", lambda *_: now)
    grace = config.ledger.grace // timedelta(milliseconds=1)
    waiting = TransactionsSettled(past=(EPOCH + timedelta(milliseconds=now - grace - 5)).isoformat())
    for condition in (waiting, TransactionsSettled(every="1h")):
        found = condition.check(config, None)
        assert not found.met
        assert condition.news(None, found) in ((False, False), (0, False))
        assert "lowtide run transaction_repair --execute" in found.text
    stored[SETTLED_ROW] = {"mark": Settled(0, "r", now, now, now).encode()}
    young = TransactionsSettled(past=TIME)
    assert not young.check(config, None).met
    assert waiting.check(config, None).met
    old = Entry(now - 2 * grace, transaction_id(user_id("ann"), 1), "0" * 16)
    memory.rows[Table.OPEN][old.row] = dict(old.cells)
    assert not waiting.check(config, None).met
    assert TransactionsStuck(older_than="15m").check(config, None).met


def test_a_check_makes_no_table() -> None:
    """It needs the state table for HBase's time; where no run has acted yet it says so, with what makes it."""
    ledger_only = Unlisted(NOT_FOUND, ("ledger_open",))
    for condition in (TransactionsSettled(past=TIME), TransactionsStuck()):
        with pytest.raises(StoreError, match=r"no run has acted .* `lowtide run transaction_repair --execute`"):
            condition.check(Config(), ledger_only)


@given(st.integers(0, 5000))
def test_pauses_grow_and_sum_up_to_the_patience(seconds: int) -> None:
    """Doubling up to half a minute; none without patience."""
    found = list(pauses(timedelta(seconds=seconds)))
    assert sum(found) == pytest.approx(seconds)
    growing = [1, 2, 4, 8, 16, *[30] * len(found)][: len(found)]
    assert found[:-1] == growing[:-1]
    assert all(0 < pause <= most for pause, most in zip(found, growing, strict=True))
