"""A plan that was approved is done, or nothing is."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.errors import ApprovalError, UsageError
from lowtide.run.approval import Approved, Part, approved, check, digest, parts, read
from lowtide.run.summary import PLANNED, Counts, Summary, TableReport


def plan(**changes: Any) -> dict[str, Any]:
    """A dry run's summary: one table with work, one without."""
    report = TableReport("orders", Counts(healed=3, deleted=2, candidates=9, skipped=Counter(odd=1)), notes=["look"])
    found = Summary("orphan_cleanup", "r1", False, low_watermark=1049, tables=[report, TableReport("users")])
    for name, value in changes.items():
        setattr(found, name, value)
    return found.to_json()


def test_the_same_plan_is_done() -> None:
    """What was read, skipped or noted may differ: what would be written counts, and tables without work do not."""
    of_plan = approved(plan(), "orphan_cleanup")
    assert of_plan == Approved("r1", 1049, {"orders": Part({"healed": 3, "deleted": 2})})
    now = TableReport("orders", Counts(healed=3, deleted=2, candidates=70, cells_read=8))
    check(of_plan, [now.to_json(), TableReport("new").to_json()])


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        (
            [TableReport("orders", Counts(healed=3, deleted=1))],
            ["orders: planned healed 3, deleted 1", "approved healed 3, deleted 2"],
        ),
        (
            [TableReport("orders", Counts(healed=3, deleted=2)), TableReport("users", Counts(marked=1))],
            ["users: planned marked 1; approved nothing"],
        ),
        ([], ["orders: planned nothing; approved healed 3"]),
        (
            [TableReport("orders", notes=["table orders is paused until 6:00"])],
            ["orders: planned nothing; approved healed 3, deleted 2; table orders is paused until 6:00"],
        ),
        ([TableReport("orders", Counts(healed=3, deleted=2), mark={"mark": 49})], ["planned mark 49"]),
    ],
    ids=["other counts", "another table", "a table less", "a table that waits", "a mark"],
)  # fmt: skip
def test_another_plan_is_refused(tables: list[TableReport], words: list[str]) -> None:
    """The message says what is planned, what was approved, that nothing was done, and what to do."""
    with pytest.raises(ApprovalError) as refused:
        check(approved(plan(), "orphan_cleanup"), [t.to_json() for t in tables])
    said = str(refused.value)
    assert [w for w in [*words, "run r1", "nothing was done", "Make a new plan"] if w not in said] == []
    assert refused.value.exit_code == 2


def test_many_differences_are_counted() -> None:
    """A message stays readable."""
    tables = [TableReport(f"t{n}", Counts(deleted=1)).to_json() for n in range(9)]
    with pytest.raises(ApprovalError, match="and 5 more tables"):
        check(approved(plan(), "orphan_cleanup"), tables)


@pytest.mark.parametrize(
    ("changes", "job", "word"),
    [
        ({}, "history_gc", "of orphan_cleanup, not of history_gc"),
        ({"execute": True}, "orphan_cleanup", "that acted"),
        ({"problems": ["over budget"]}, "orphan_cleanup", "failed"),
    ],
)
def test_what_is_no_plan_cannot_be_approved(changes: dict[str, Any], job: str, word: str) -> None:
    """Another job's, a run that acted, one whose plan is not whole."""
    with pytest.raises(UsageError, match=word):
        approved(plan(**changes), job)


def test_a_file_that_is_no_summary_is_named(tmp_path: Path) -> None:
    """With what should have been given."""
    file = tmp_path / "plan.json"
    for content in (None, "[]", "{}", "no", json.dumps(plan() | {"tables": [1]})):
        if content is not None:
            file.write_text(content)
        with pytest.raises(UsageError, match=r"--approved: .*plan\.json.*--summary"):
            read(file, "orphan_cleanup")
    file.write_bytes(b"\xfc")
    with pytest.raises(UsageError, match=r"--approved: .*plan\.json.*UnicodeDecodeError.*byte.*--summary"):
        read(file, "orphan_cleanup")
    file.write_text(json.dumps(plan()))
    assert read(file, "orphan_cleanup").parts["orders"].counts["healed"] == 3


REPORTS = st.builds(
    lambda name, counts, mark: TableReport(name, Counts(**counts), mark=mark and {"mark": mark, "held_by": []}),
    st.sampled_from("abcd"),
    st.dictionaries(st.sampled_from([*PLANNED, "candidates", "cells_read"]), st.integers(0, 2)),
    st.none() | st.integers(0, 2),
)


@given(st.lists(REPORTS, unique_by=lambda r: r.table), st.lists(REPORTS, unique_by=lambda r: r.table))
def test_only_the_plan_itself_passes(first: list[TableReport], second: list[TableReport]) -> None:
    """A digest holds as well as the whole summary; what passes has the same counts in every table."""
    summary = plan(tables=first)
    whole, kept = approved(summary, "orphan_cleanup"), approved(digest(summary), "orphan_cleanup")
    assert whole == kept
    check(kept, summary["tables"])
    now = [t.to_json() for t in second]

    def written(tables: list[dict[str, Any]]) -> set[tuple[str, str, int]]:
        counts = {(t["table"], n, t["counts"][n]) for t in tables for n in PLANNED if t["counts"][n]}
        return counts | {(t["table"], "mark", t["mark"]["mark"]) for t in tables if t["mark"] and t["mark"]["mark"]}

    if written(now) == written(summary["tables"]):
        check(kept, now)
        assert parts(now) == dict(kept.parts)
    else:
        with pytest.raises(ApprovalError):
            check(kept, now)
