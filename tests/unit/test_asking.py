"""What is answered of single cells, and how a row is asked for."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lowtide.asking.answer import Answer, marker, present, removed
from lowtide.asking.terminal import print_answer, print_cells, print_sidelines
from lowtide.errors import UsageError
from lowtide.values.hbase_shell import quoted, unquoted
from lowtide.values.keyranges import printable

W = 1049


def cell(**changes: Any) -> dict[str, Any]:
    there = {"family": b"f", "qualifier": b"q\x00", "timestamp": 151, "start_ts": 150, "commit_ts": None}
    return {**there, "replaced_ts": None, "kind": "put", "problem": None, **changes}


def decision(action: str, **changes: Any) -> dict[str, Any]:
    nothing = {"tc": None, "why": None, "rule": None, "evidence": None, "verdict": None}
    return {"action": action, **nothing, **changes}


@given(st.binary(max_size=40))
def test_a_row_is_asked_for_as_it_is_shown(row: bytes) -> None:
    """As lists and the terminal write it, or as a statement of HBase's shell does, quotation marks included."""
    shown = printable(row)
    if not (len(shown) > 1 and shown[0] == shown[-1] == '"'):
        assert unquoted(shown) == row
    assert unquoted(quoted(row)) == row


def test_a_row_may_be_plain_text() -> None:
    """In UTF-8; a backslash that begins nothing is refused, with what to write."""
    assert unquoted("für 1") == "für 1".encode()
    assert unquoted("a\\x5Cx41") == b"a\\x41"
    for wrong in ("a\\b", "\\x4", "\\"):
        with pytest.raises(UsageError, match=r"write a backslash as \\x5C"):
            unquoted(wrong)


@pytest.mark.parametrize(
    ("found", "cleanup", "history", "what", "becomes"),
    [
        (cell(commit_ts=200), None, None, "a cell, committed at 200, with its shadow cell", "it stays"),
        (
            cell(commit_ts=200, replaced_ts=300),
            None,
            {"action": "remove", "why": None, "rule": "replaced", "evidence": "e"},
            "hidden since 300",
            "the next history_gc puts it aside and removes it",
        ),
        (
            cell(commit_ts=200, kind="tombstone"),
            None,
            {"action": "keep", "why": "a tombstone over something that is there", "rule": None, "evidence": None},
            "a tombstone, committed at 200",
            "it stays",
        ),
        (cell(timestamp=1100, start_ts=1100), None, None, "above the low watermark 1049", "it stays"),
        (
            cell(),
            decision("delete", verdict="absent", rule="orphan", evidence="e"),
            None,
            "an orphan: a cell whose transaction never committed",
            "the next orphan_cleanup puts it aside and deletes it",
        ),
        (
            cell(),
            decision("delete", verdict="aborted", rule="orphan", evidence="e"),
            None,
            "never committed, and invalidated",
            "puts it aside and deletes it",
        ),
        (
            cell(),
            decision("heal", verdict="committed", tc=200, rule="heal", evidence="e"),
            None,
            "committed at 200, without its shadow cell",
            "the next orphan_cleanup writes it anew, with its shadow cell",
        ),
        (
            cell(),
            decision("stop", verdict="undecided", why="w"),
            None,
            "undecided: no shadow cell",
            "nothing is done to it, nor to its key range",
        ),
        (cell(), decision("skip", why="written by no oracle"), None, "a cell, written by no oracle", "it stays"),
        (
            cell(kind="shadow", commit_ts=200),
            None,
            None,
            "a shadow cell without its data cell, of a commit at 200",
            "it",
        ),
        (
            cell(kind="unknown", problem="shadow cell of 3 bytes"),
            decision("stop", why="w"),
            None,
            "of an unknown form: shadow cell of 3 bytes",
            "nothing is done to it",
        ),
    ],
)
def test_every_kind_of_cell_is_told(found: Any, cleanup: Any, history: Any, what: str, becomes: str) -> None:
    """What it is and what becomes of it; the rule and what it goes by are the job's own words."""
    line = present(found, W, cleanup, history, describe="mend it so" if cleanup else "")
    assert (what in line.what, becomes in line.becomes) == (True, True), line
    assert (line.family, line.qualifier, line.transaction) == ("f", "q\\x00", found["start_ts"])
    if cleanup and cleanup["action"] == "stop":
        assert line.evidence == "mend it so"
    if "next" in line.becomes:
        job = cleanup or history
        assert (line.rule, line.evidence) == (job["rule"], job["evidence"])


def test_what_waits_for_its_key_range_says_so() -> None:
    """Beside a cell that no rule decides nothing is done, whatever the rule of the cell itself."""
    line = present(cell(), W, decision("delete", verdict="absent", rule="orphan", evidence="e"), None, stopped=True)
    assert line.becomes == "once nothing stops its key range, orphan_cleanup puts it aside and deletes it"


def test_what_went_says_by_whom_and_how_it_comes_back() -> None:
    """Also where the run's record is gone, and of a sideline that an earlier version wrote."""
    gone = {**cell(), "run": "r1", "table": "t", "rule": "orphan", "evidence": "nothing proves it"}
    line = removed(gone, {"job": "orphan_cleanup", "started": 1_769_824_800_000}, "2026-03-02")
    assert line.becomes == (
        "put aside by orphan_cleanup run r1 on 2026-01-31 at 02:00 UTC; kept until 2026-03-02; "
        "`lowtide restore r1 --table t --execute` brings the run's cells of the table back"
    )
    assert (line.rule, line.evidence) == ("orphan", "nothing proves it")
    old = removed({**gone, "rule": None, "evidence": None, "commit_ts": 200}, None, "2026-03-02")
    assert (old.rule, old.evidence, "history_gc run r1;" in old.becomes) == ("replaced", "", True)
    assert "this column's versions" in marker({**cell(), "kind": "delete_column"}).what


@pytest.mark.parametrize("width", [80, 120])
def test_nothing_that_has_to_be_copied_is_cut(width: int) -> None:
    """Names and keys stand in one piece; what others wrote is printed as it is."""
    name = "scheduled__" + "2026-01-31T00-00-00-" * 5 + "0"
    key = "[bold]" + "x" * 200 + "\\x00"
    gone = {**cell(), "run": name, "table": "t", "rule": "orphan", "evidence": "e"}
    lines = (removed(gone, None, "2026-03-02"),)
    out = io.StringIO()
    console = Console(file=out, width=width, force_terminal=True, color_system=None, markup=False, emoji=False)
    print_answer(console, Answer("t", key, W, 0, ["[/] a note"], lines, lines, ["done"], {150: "never committed"}))
    one = {"run": name, "job": "orphan_cleanup", "at": "2026-01-31 02:00", "table": "t", "cells": 7, "bytes": 2048}
    print_sidelines(console, [{**one, "until": "2026-03-02 02:00", "lost": []}])
    shown = {"table": "t", "row": key, "family": "f", "qualifier": "q", "timestamp": 151, "commit_ts": None}
    print_cells(console, [{**shown, "kind": "put", "rule": "orphan", "evidence": None}], 7)
    text = out.getvalue()
    assert "…" not in text
    assert text.count(name) == 5
    assert text.count(key) == 2
