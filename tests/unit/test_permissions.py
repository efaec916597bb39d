"""What HBase says of a right that is missing, told to people."""

from __future__ import annotations

import pytest

from lowtide.config import Config
from lowtide.store.gateway import no_answer
from lowtide.store.permissions import Lack, denial, judged, unreadable, unwritable
from lowtide.tables.inventory import Descriptor

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


def lack(table: str, right: str = "READ", **more: object) -> Lack:
    """As the connector tells of it, in JSON."""
    return Lack.from_json({"user": "ann", "table": table, "right": right, **more})


def test_tables_that_may_not_be_read_as_a_whole_are_named_with_the_grant() -> None:
    """Some of them and how many more; the families, where they were tried; what is missing of WRITE forbids no read."""
    assert unreadable([]) == unreadable([lack("orders", "WRITE")]) == ("", "")
    fact, remedy = unreadable([lack("orders"), lack("stock", "WRITE"), *(lack(f"t{n}") for n in range(6))])
    assert (
        "let ann read every family: the right READ is missing on orders, t0, t1, t2, t3 and 2 more as a whole;" in fact
    )
    assert "grant 'ann', 'RW', 'orders', and on each of the others" in remedy
    fact, remedy = unreadable([lack("orders", families=["f", "g"])])
    assert "on orders as a whole (of orders it refused f, g);" in fact
    assert "and on each" not in remedy


def test_what_is_not_known_to_be_readable_is_not_judged_by() -> None:
    """A region that does not answer is no missing right: no grant would help."""
    fact, remedy = unreadable([lack("orders", unknown="region moved"), lack("stock", unknown="call timed out")])
    assert "not known whether ann may read all families of orders, stock (region moved)" in fact
    assert "grant" not in remedy
    fact, _ = unreadable([lack("stock", unknown="call timed out"), lack("orders")])
    assert "missing on orders as a whole" in fact, "what is known to be missing comes first"


def test_a_table_that_may_be_written_in_part_is_named_with_the_grant() -> None:
    """Before anything is written to it."""
    assert unwritable([lack("orders")]) == ("", "")
    fact, remedy = unwritable([lack("stock"), lack("orders", "WRITE")])
    assert "let ann write every family: the right WRITE is missing on orders as a whole; nothing is done" in fact
    assert "grant 'ann', 'RW', 'orders', never on families" in remedy


def test_every_table_that_jobs_read_is_asked_about() -> None:
    """Marked or not: one without a mark is searched for shadow cells. Own tables are asked about before."""
    config = Config.model_validate(
        {
            "tables": {"logs": {"kind": "plain"}, "told": {"kind": "transactional"}},
            "omid": {"foreign": ["other*"], "tables": ["*"]},
        }
    )
    names = ["orders", "told", "logs", "others", *sorted(config.own_tables)]
    listed = [Descriptor(name, True, {}, (), {"f": {}, "g": {}}) for name in names]
    off = Descriptor("off", False, {}, (), {"f": {}})
    found = judged(config, [*listed, off])
    assert {table: sorted(families) for table, families in found.items()} == {"orders": ["f", "g"], "told": ["f", "g"]}
