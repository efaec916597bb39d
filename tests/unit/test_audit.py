"""What the audit log says of a run."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone

from lowtide.run import audit
from lowtide.run.summary import Counts, Summary, TableReport, here

AT = datetime(2026, 7, 28, 3, 0, 0, 5, timezone(timedelta(hours=2)))


def summary() -> Summary:
    """A run of two tables, one of which has a problem that names a row."""
    tables = [
        TableReport("orders", Counts(deleted=3, skipped={"too young": 2}), execute=True, mark={"mark": 70}),
        TableReport("users", problems=["the row customer-17 cannot be read"]),
    ]
    return Summary(
        "history_gc",
        "r1",
        execute=True,
        by=here("lowtide.yaml", "lowtide@EXAMPLE.ORG"),
        context={"dag_id": "history_gc", "approved_by": "Ann"},
        tables=tables,
        low_watermark=100,
        problems=["a problem of the run"],
    )


def test_an_entry_is_a_line() -> None:
    """Of JSON, whatever is in it: who, as whom, from where, with what, and by whose approval."""
    line = audit.began(summary(), ["--table", "a\nb", "--execute"], AT)
    assert line.count("\n") == 1
    entry = json.loads(line)
    assert entry["at"] == "2026-07-28T01:00:00.000005+00:00"
    assert (entry["event"], entry["run"], entry["job"]) == ("began", "r1", "history_gc")
    assert entry["arguments"] == ["--table", "a\nb", "--execute"]
    assert entry["by"]["principal"] == "lowtide@EXAMPLE.ORG"
    assert entry["context"]["approved_by"] == "Ann"


def test_the_end_has_the_numbers_and_no_names_of_rows() -> None:
    """It is kept for longer than people's data may be: problems are counted, for in their words a row may be named."""
    line = audit.ended(summary(), 1, AT)
    assert "customer-17" not in line
    entry = json.loads(line)
    assert (entry["event"], entry["exit"], entry["problems"], entry["low_watermark"]) == ("ended", 1, 2, 100)
    orders, users = entry["tables"]
    assert orders == {
        "table": "orders",
        "execute": True,
        "counts": {"deleted": 3, "skipped": {"too young": 2}},
        "mark": 70,
        "problems": 0,
    }
    assert (users["execute"], users["counts"], users["problems"]) == (False, {}, 1)


def test_files_sort_as_their_entries_came() -> None:
    """By UTC, whatever clock was given."""
    names = [audit.name(audit.BEGAN, "r1", AT + timedelta(microseconds=each)) for each in range(0, 10**6, 99_999)]
    assert names == sorted(names)
    assert names[0] == "20260728T010000.000005Z-began-r1.jsonl"
    assert audit.name(audit.ENDED, "r1", AT.astimezone(UTC)) == "20260728T010000.000005Z-ended-r1.jsonl"
