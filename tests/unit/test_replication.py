"""Whether Lowtide's records go where HBase replicates the cells that they are of."""

from __future__ import annotations

import pytest

from lowtide.tables.inventory import Descriptor
from lowtide.tables.replication import left_behind

ASKED = {"COMMITS": ["F"], "orders": ["a", "b"]}
RECORDS = ("JOURNAL", "STATE")


def told(**scopes: str) -> tuple[str, str]:
    """Of a store whose families have these scopes, by table and family; what is not named has none."""
    families = {
        "COMMITS": ("F", "LWF"),
        "orders": ("a", "b", "plain"),
        "others": ("c",),
        "JOURNAL": ("j",),
        "STATE": "s",
    }
    described = [
        Descriptor(
            table,
            True,
            {},
            (),
            {f: {"REPLICATION_SCOPE": scopes[f"{table}_{f}"]} if f"{table}_{f}" in scopes else {} for f in of_table},
        )
        for table, of_table in families.items()
    ]
    return left_behind(described, ASKED, RECORDS)


@pytest.mark.parametrize(
    "scopes",
    [
        {},
        {"orders_a": "0"},
        {"orders_plain": "1", "others_c": "1"},
        {"orders_a": "1", "COMMITS_F": "1", "JOURNAL_j": "1", "STATE_s": "1"},
        {"JOURNAL_j": "1"},
    ],
    ids=["nothing", "zero", "of no transactions", "all", "the journal alone"],
)
def test_no_proof_is_left_behind(scopes: dict[str, str]) -> None:
    """Nothing of transactions is replicated, or the records are too."""
    assert told(**scopes) == ("", "")


@pytest.mark.parametrize(
    ("scopes", "going", "staying"),
    [
        ({"orders_b": "1"}, "orders", ["JOURNAL", "STATE"]),
        ({"COMMITS_F": "1", "JOURNAL_j": "1"}, "COMMITS", ["STATE"]),
        ({"COMMITS_F": "1", "orders_a": "1", "STATE_s": "1"}, "COMMITS, orders", ["JOURNAL"]),
    ],
)
def test_what_is_left_behind_is_named_with_the_statements(
    scopes: dict[str, str], going: str, staying: list[str]
) -> None:
    """One family is enough, of the commit table or of a transactional one; what stays is named, and how it goes too."""
    fact, remedy = told(**scopes)
    assert f"HBase replicates {going} to another cluster (REPLICATION_SCOPE), and not {' and '.join(staying)}: " in fact
    assert [f"alter '{table}', {{NAME => '" in remedy for table in RECORDS] == [t in staying for t in RECORDS]


def test_records_that_are_not_there_leave_nothing_behind() -> None:
    """Before the first run nothing was pruned, and there is nothing to alter."""
    orders = Descriptor("orders", True, {}, (), {"a": {"REPLICATION_SCOPE": "1"}})
    assert left_behind([orders], ASKED, RECORDS) == ("", "")
