"""Settings that would protect a table, under a name that HBase does not have."""

from __future__ import annotations

from typing import Any

import pytest

from lowtide.config import Config
from lowtide.errors import UsageError
from lowtide.run import misnamed

THERE = ["orders", "users"]
EAGER = {"mode": "execute", "history_mode": "execute"}


def given(own: dict[str, Any], name: str = "ordres", **sections: Any) -> Config:
    return Config.model_validate({"defaults": EAGER, "tables": {name: own}, **sections})


@pytest.mark.parametrize(
    ("job", "own"),
    [
        ("orphan_cleanup", {"mode": "dry-run"}),
        ("orphan_cleanup", {"budget": {"rows": 5}}),
        ("orphan_cleanup", {"budget": {"share": 0.1}}),
        ("orphan_cleanup", {"budget": {"always": 0}}),
        ("orphan_cleanup", {"rate": {"reads": 10, "writes": 10}}),
        ("commit_table_pruning", {"mode": "dry-run"}),
        ("commit_table_pruning", {"kind": "transactional"}),
        ("watermark_collection", {"kind": "transactional"}),
        ("transaction_repair", {"mode": "dry-run"}),
        ("history_gc", {"history_mode": "dry-run"}),
        ("history_gc", {"history_max_age": "forever"}),
        ("history_gc", {"history_max_age": "8d"}),
        ("history_gc", {"min_history_age": "2h"}),
        ("history_gc", {"budget": {"rows": 5}}),
    ],
)
def test_what_protects_a_table_that_is_not_there_is_refused(job: str, own: dict[str, Any]) -> None:
    """With the setting, the table that may be meant, and what to do; under its right name it is what it is."""
    (key,) = own
    with pytest.raises(
        UsageError, match=rf"tables\.ordres\.{key} \(orders may be meant\), and HBase has no such table"
    ):
        misnamed.check(given(own), job, THERE)
    misnamed.check(given(own, "orders"), job, THERE)


@pytest.mark.parametrize(
    ("job", "own"),
    [
        ("orphan_cleanup", {"mode": "execute", "kind": "plain", "budget": {"rows": 10**9}}),
        ("orphan_cleanup", {"history_mode": "dry-run", "history_max_age": "forever", "read": "rpc"}),
        ("watermark_collection", {"mode": "dry-run"}),
        ("history_gc", {"mode": "dry-run", "history_mode": "execute", "history_max_age": "1d"}),
    ],
)
def test_a_table_that_is_gone_stops_no_job_otherwise(job: str, own: dict[str, Any]) -> None:
    """Where its settings allow as much as the defaults, or are another job's, they cost nothing."""
    misnamed.check(given(own), job, THERE)
    with pytest.raises(UsageError):
        misnamed.check(given({**own, "kind": "transactional"}), job, THERE)


def test_a_name_that_is_like_no_other_stops_no_job_but_the_one_that_removes_history() -> None:
    """It may be of a table that was dropped, or is yet to be made: a note says so."""
    gone = given({"mode": "dry-run", "history_mode": "dry-run"}, "archive_2019")
    assert misnamed.check(gone, "orphan_cleanup", THERE) == (
        "the configuration has tables.archive_2019.mode, and HBase has no such table"
    )
    assert misnamed.check(gone, "watermark_collection", THERE) == ""
    with pytest.raises(UsageError, match=r"has tables\.archive_2019\.history_mode, and HBase has no such table"):
        misnamed.check(gone, "history_gc", THERE)


@pytest.mark.parametrize("name", ["OMID_COMMIT_TABLE", "LOWTIDE_STATE", "ledger_transactions", "theirs_1"])
def test_tables_beside_the_inventory_may_have_settings(name: str) -> None:
    """Omid's, Lowtide's own, the ledger's before it is made, another oracle's."""
    misnamed.check(given({"mode": "dry-run"}, name, omid={"foreign": ["theirs_*"]}), "orphan_cleanup", THERE)


def test_forever_is_the_longest_age() -> None:
    """None protects more than a default that removes nothing."""
    keeping = {"defaults": {"history_max_age": "forever", **EAGER}}
    misnamed.check(given({"history_max_age": "8d"}, **keeping), "history_gc", THERE)
