"""The ledger's keys, columns and states."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from lowtide.errors import LedgerError, UsageError
from lowtide.ledger.model import (
    MAX_AMOUNT,
    MAX_NUMBER,
    ContradictionError,
    Decision,
    Entry,
    Request,
    check_amount,
    entry_bound,
    parse_transaction_id,
    record_row,
    transaction_id,
    user_id,
)

USERS = st.text("0123456789abcdef", min_size=40, max_size=40)
NUMBERS = st.integers(1, MAX_NUMBER)
TIMES = st.integers(0, 10**15 - 1)


def test_a_users_id_is_the_sha1_of_the_nickname() -> None:
    """In hex, of its UTF-8."""
    assert user_id("abc") == "a9993e364706816aba3e25717850c26c9cd0d89d"


@pytest.mark.parametrize("nickname", ["", " ", " ann", "ann\n", "a\x00b", "x" * 201])
def test_a_bad_nickname_is_refused(nickname: str) -> None:
    """Empty, blanks around it, control characters, too long."""
    with pytest.raises(UsageError, match="printable characters"):
        user_id(nickname)


@pytest.mark.parametrize(("amount", "number"), [(1, 1), ("1", 1), (str(MAX_AMOUNT), MAX_AMOUNT)])
def test_amounts_are_whole_numbers(amount: object, number: int) -> None:
    """As a number or in digits, up to 2^63-1."""
    assert check_amount(amount) == number


@pytest.mark.parametrize(
    "amount", [0, -1, "0", "-5", "1.5", 1.5, "1e3", "ten", "", "٣", "01", " 1", None, True, MAX_AMOUNT + 1, "9" * 30]
)
def test_a_bad_amount_is_refused(amount: object) -> None:
    """Zero, negative, a fraction, no number, too large: named, with what is expected."""
    with pytest.raises(UsageError, match="whole number of the smallest unit, from 1 to 9223372036854775807, found"):
        check_amount(amount)


@given(USERS, st.lists(NUMBERS, min_size=2, max_size=2))
def test_transactions_lie_by_sender_in_the_order_of_their_numbers(sender: str, numbers: list[int]) -> None:
    """Ids sort as the numbers do, and tell sender and number."""
    one, other = (transaction_id(sender, n) for n in numbers)
    assert (one < other) == (numbers[0] < numbers[1])
    assert parse_transaction_id(one) == (sender, numbers[0])
    assert f"{sender}-" < one <= transaction_id(sender, MAX_NUMBER)
    assert f"{sender}/" < record_row(sender, one) < f"{sender}0"


@pytest.mark.parametrize("number", [0, -1, MAX_NUMBER + 1])
def test_numbers_end(number: int) -> None:
    """A number that would not sort is refused."""
    with pytest.raises(LedgerError, match="numbers go from 1"):
        transaction_id("0" * 40, number)


@pytest.mark.parametrize("text", ["", "47", "0" * 40, "0" * 40 + "-000000000000", "G" * 40 + "-000000000001"])
def test_what_is_no_id_is_refused(text: str) -> None:
    """With the form that an id has."""
    with pytest.raises(UsageError, match="a dash and 12 digits"):
        parse_transaction_id(text)


@given(TIMES, TIMES, USERS, NUMBERS)
def test_entries_lie_by_time(one: int, other: int, sender: str, number: int) -> None:
    """An entry's row tells all of it, lies at or after the bound of its time, and before that of any later one."""
    entry = Entry(one, transaction_id(sender, number), "0123456789abcdef")
    assert Entry.parse(entry.row) == entry
    assert (entry.row >= entry_bound(other)) == (one >= other)
    assert entry.row < "settled"


@pytest.mark.parametrize("row", ["", "settled", "1/2/3", "0" * 15 + "/" + "0" * 40 + "-000000000001"])
def test_what_is_no_entry_is_named(row: str) -> None:
    """A row of another form is not taken for an open transaction."""
    with pytest.raises(ContradictionError, match="is no entry"):
        Entry.parse(row)


@given(USERS, USERS, st.integers(1, MAX_AMOUNT), TIMES)
def test_a_request_is_read_as_it_was_written(sender: str, recipient: str, amount: int, timestamp: int) -> None:
    """Also at the limits."""
    request = Request(sender, recipient, amount, timestamp, "0123456789abcdef")
    if sender != recipient:
        assert Request.decode(request.encode()) == request


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("amount", "0"),
        ("amount", "-1"),
        ("amount", "1.0"),
        ("amount", "true"),
        ("amount", '"5"'),
        ("amount", str(MAX_AMOUNT + 1)),
        ("recipient", '"' + "a" * 40 + '"'),
        ("recipient", "null"),
        ("sender", '"ann"'),
        ("timestamp", "-1"),
        ("nonce", '"x"'),
    ],
)
def test_a_malformed_request_is_not_read(part: str, value: str) -> None:
    """No sign, fraction, overflow or transfer to oneself gets past the claim."""
    request = Request("a" * 40, "b" * 40, 5, 1000, "0123456789abcdef")
    known = {"amount": "5", "recipient": f'"{"b" * 40}"', "sender": f'"{"a" * 40}"', "timestamp": "1000"}
    known["nonce"] = '"0123456789abcdef"'
    text = request.encode().replace(f'"{part}":{known[part]}', f'"{part}":{value}')
    assert text != request.encode()
    with pytest.raises(ValueError, match=part):
        Request.decode(text)


@given(st.text(), st.integers(0, 2**100), st.integers(0, 2**100))
def test_a_decision_is_read_as_it_was_written(reason: str, spent: int, credited: int) -> None:
    """Sums may be larger than any amount."""
    decision = Decision(reason, spent, credited)
    assert Decision.decode(decision.encode()) == decision
    assert decision.runs == (reason == "")
