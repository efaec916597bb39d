"""Lines of a list of cells, and the words of a decision."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from lowtide.cleaning.evidence import IN_WORDS, Proof
from lowtide.run.cell_lines import line, shortened
from lowtide.run.summary import Summary

CELL = {
    "action": "delete",
    "table": "ns:t",
    "row": "r\\x00",
    "family": "a",
    "qualifier": "q",
    "timestamp": 151,
    "kind": "put",
    "transaction": 150,
    "rule": "orphan",
    "evidence": "nothing proves it",
}


def test_a_line_names_the_cell_the_rule_and_what_it_goes_by() -> None:
    """With the kind where it is no plain cell."""
    assert line(CELL) == 'delete ns:t "r\\x00" a:q at 151: orphan: nothing proves it'
    assert "at 151 (family tombstone): orphan" in line({**CELL, "kind": "family_tombstone"})


def test_long_keys_are_cut_in_a_summary_and_say_so() -> None:
    """A key may have megabytes, and a summary goes into a message of Airflow's. Of one that came cut its true size is
    told.
    """
    cut = shortened({**CELL, "row": "x" * 5000, "evidence": "e" * 300}, {"row": 9_000_000})
    assert cut["row"] == f"{'x' * 200}... (9,000,000 bytes)"
    assert cut["evidence"] == f"{'e' * 200}... (300 characters)"
    assert {**cut, "row": CELL["row"], "evidence": CELL["evidence"]} == CELL == shortened(CELL, {"row": 2})


def test_the_records_keep_where_the_list_is_and_no_cell_of_it() -> None:
    """Many may read the state table, and keys are people's data; the run's own summary has the first of them."""
    summary = Summary("orphan_cleanup", "r1", False)
    assert summary.to_json()["listing"] == summary.to_keep()["listing"] == {}
    summary.listing.folder = "/aside/~lists/r1"
    summary.listing.cells["t"] += 7
    summary.listing.first.append(CELL)
    assert summary.to_json()["listing"] == {"folder": "/aside/~lists/r1", "cells": {"t": 7}, "first": [CELL]}
    assert summary.to_keep()["listing"] == {"folder": "/aside/~lists/r1", "cells": {"t": 7}}
    assert {**summary.to_json(), "listing": None} == {**summary.to_keep(), "listing": None}
    json.dumps(summary.to_json())


def test_what_names_cells_is_for_nobody_else(tmp_path: Path) -> None:
    """A summary with single cells can be read by its user alone, also where a killed run left a part of one; any other
    has the usual rights.
    """
    summary, file, part = (
        Summary("orphan_cleanup", "r1", False),
        tmp_path / "summary.json",
        tmp_path / "summary.json.part",
    )
    summary.write(file)
    usual = file.stat().st_mode
    summary.listing.folder = "/aside/~lists/r1"
    summary.listing.first.append(CELL)
    part.write_text("cut off")
    summary.write(file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 != stat.S_IMODE(usual)
    assert json.loads(file.read_text())["listing"]["first"] == [CELL]


def test_every_proof_has_its_words() -> None:
    """Those of a commit name its timestamp."""
    assert set(IN_WORDS) == set(Proof)
    commits = {Proof.OWN_SHADOW, Proof.SHADOW, Proof.JOURNAL, Proof.ENTRY}
    assert {proof for proof, words in IN_WORDS.items() if "%d" in words} == commits
