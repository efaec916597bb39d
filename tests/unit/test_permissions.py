"""What HBase says of a right that is missing, told to people."""

from __future__ import annotations

import pytest

from lowtide.store.gateway import no_answer
from lowtide.store.permissions import denial

#: As HBase's servers write it, through the gateway and past it.
SAID = "org.apache.hadoop.hbase.security.AccessDeniedException: Insufficient permissions "


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (
            "for user 'ann' (table=orders, action=READ)\\n\\tat org.apache.hadoop.hbase.X(user=root)",
            ("ann", "READ is missing on orders", "grant 'ann', 'R', 'orders'"),
        ),
        (
            "(user=ann@EXAMPLE.ORG, scope=shop:orders, family=f:q, params=[table=shop:orders,family=f:q],action=WRITE)",
            ("ann@EXAMPLE.ORG", "WRITE is missing on shop:orders", "grant 'ann', 'W', 'shop:orders'"),
        ),
        (
            "(user=ann, scope=GLOBAL, params=[namespace=default,table=default:x,family=m], action=CREATE)\n\tat x",
            ("ann", "CREATE is missing globally", "grant 'ann', 'C'; "),
        ),
        (
            "somehow\n\tat x(user=root)",
            ("this user", "the right for it is missing globally", "grant 'this user', 'RWCA'"),
        ),
    ],
)
def test_a_right_that_is_missing_is_named_with_its_grant(said: str, told: tuple[str, ...]) -> None:
    """Who, which right, where, and what an administrator types; nothing of Java's trace."""
    text = denial(SAID + said)
    for words in told:
        assert words in text
    assert "AccessController" not in text
    assert "root" not in text


def test_other_words_are_left_to_others() -> None:
    """A server that does not answer has said nothing of rights."""
    assert denial(ConnectionError("refused")) == ""


def test_an_answer_is_not_called_none() -> None:
    """HBase has answered, and what is to be done is a grant."""
    text = str(no_answer("the records", ConnectionError(SAID + "for user 'ann' (table=T, action=READ)"), "start HBase"))
    assert text.startswith("the records: HBase does not let ann do this")
    assert "no answer" not in text
    assert "start HBase" not in text
    assert "no answer from the store" in str(no_answer("the records", ConnectionError("refused"), "start HBase"))
