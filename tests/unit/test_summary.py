"""The summary of a run."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields
from pathlib import Path

import pytest

from lowtide.report.observation import JobRun
from lowtide.run.summary import (
    DONE,
    LONGEST,
    LOOKED_AT,
    ON_PAGE,
    PLANNED,
    REPORTED,
    WORDS,
    Counts,
    Summary,
    TableReport,
)


def two_tables() -> Summary:
    first = TableReport("a", Counts(candidates=3, healed=2, skipped=Counter({"x": 1})), [(0, 100)], 2, 2, "rpc")
    second = TableReport("b", Counts(candidates=4, deleted=4, skipped=Counter({"x": 2, "y": 5})))
    return Summary("orphan_cleanup", "r1", True, low_watermark=99, tables=[first, second], context={"try": "1"})


def test_totals_are_the_sum_of_the_tables() -> None:
    """Each counter is added up by itself, reasons for skipping by reason."""
    totals = two_tables().totals
    assert (totals.candidates, totals.healed, totals.deleted) == (7, 2, 4)
    assert totals.skipped == {"x": 3, "y": 5}
    assert Summary("j", "r", False).totals == Counts()


def test_every_counter_has_its_place() -> None:
    """One that is new is told, and sent as a metric, or is said to be none of what was done; and no list names one that
    there is not.
    """
    counters = {field.name for field in fields(Counts)}
    assert sorted([*DONE, *LOOKED_AT]) == sorted(counters)
    assert tuple(WORDS) == (*DONE, *LOOKED_AT)
    assert {*PLANNED, *REPORTED} <= {*DONE}
    assert {*REPORTED} <= {field.name for field in fields(JobRun)}
    assert {*ON_PAGE} <= counters


def test_json_holds_what_the_page_reads() -> None:
    """The JSON has the fields of docs/jobs.md, lists for intervals, and survives a round trip."""
    value = json.loads(json.dumps(two_tables().to_json()))
    assert (value["job"], value["run"], value["execute"], value["state"]) == ("orphan_cleanup", "r1", True, "done")
    assert value["tables"][0]["intervals"] == [[0, 100]]
    assert value["tables"][1]["counts"]["skipped"] == {"x": 2, "y": 5}
    assert value["totals"]["candidates"] == 7
    assert {"started", "seconds", "phases", "low_watermark", "bound", "blockers", "problems", "context"} <= set(value)


def test_no_sentence_of_a_summary_is_of_a_size_that_others_choose() -> None:
    """HBase refuses a cell of 10 MB, and Airflow keeps a part of it: what is longer is cut, and says so. The run itself
    has it whole.
    """
    summary = two_tables()
    for texts in (summary.problems, summary.notes, summary.tables[0].problems, summary.tables[0].notes):
        texts += ["row " + "61" * 1_000_000, "short"]
    told = summary.to_json()
    for each in (told, told["tables"][0]):
        for texts in (each["problems"], each["notes"]):
            assert texts == [("row " + "61" * LONGEST)[:LONGEST] + "... (2,000,004 characters)", "short"]
    assert len(summary.tables[0].problems[0]) == 2_000_004


@pytest.mark.parametrize("what", ["run", "table", "failed"])
def test_one_problem_makes_the_run_red(what: str) -> None:
    """A problem of the run, one of a table, or a failed mutation: each alone makes the state ``failed``."""
    summary = two_tables()
    assert not summary.failed
    if what == "run":
        summary.problems.append("p")
    elif what == "table":
        summary.tables[1].problems.append("p")
    else:
        summary.tables[0].counts.failed = 1
    assert summary.failed
    assert summary.to_json()["state"] == "failed"


def test_skipped_cells_and_notes_are_no_failure() -> None:
    """What was left alone for a named reason does not make a run red."""
    summary = two_tables()
    summary.tables[0].notes.append("n")
    assert not summary.failed


def test_file_is_written_whole(tmp_path: Path) -> None:
    """The file replaces an older one at once and leaves no part beside it."""
    path = tmp_path / "summary.json"
    path.write_text("old")
    two_tables().write(path)
    assert json.loads(path.read_text())["run"] == "r1"
    assert [p.name for p in tmp_path.iterdir()] == ["summary.json"]
