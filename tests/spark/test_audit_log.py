"""Where the entries of the audit log lie."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from lowtide_spark.frames import audit_log
from lowtide_spark.frames.audit_log import FOLDER
from lowtide_spark.frames.sideline import folders, kept, sweep

from lowtide.errors import StoreError
from lowtide.run.summary import Summary
from tests.spark.folder_kit import Runs, make_old


def entries(folder: Path) -> list[dict[str, object]]:
    """All of them, as they came."""
    return [json.loads(file.read_text()) for file in sorted((folder / FOLDER).glob("*/*.jsonl"))]


def test_each_entry_is_a_file_that_stays(runs: Runs, tmp_path: Path) -> None:
    """Of a run that is tried again, too; whatever its name; and no sweep takes them, nor takes them for sidelines."""
    for name in ("one", "one", "a/../b"):
        summary = Summary("orphan_cleanup", name, execute=True)
        audit_log.began(runs(name), summary, ["--execute"])
        audit_log.ended(runs(name), summary, 0)
    make_old(tmp_path / FOLDER)
    assert sweep(runs("x")) == []
    assert [(e["run"], e["event"]) for e in entries(tmp_path)] == [
        (name, event) for name in ("one", "one", "a/../b") for event in ("began", "ended")
    ]
    assert kept(runs("x")).cells.count() == 0
    assert folders(runs("x")) == []


def test_whoever_may_put_aside_may_enter_and_nobody_may_take_away(runs: Runs, tmp_path: Path) -> None:
    """The folder is as open as that of the sidelines, and only its owner removes an entry."""
    tmp_path.chmod(0o770)
    audit_log.began(runs("one"), Summary("orphan_cleanup", "one", execute=True), [])
    [month] = (tmp_path / FOLDER).iterdir()
    assert {stat.S_IMODE(folder.stat().st_mode) for folder in (tmp_path / FOLDER, month)} == {0o1770}
    (tmp_path / FOLDER).chmod(0o755)  # as a run leaves it that is killed while it makes it
    audit_log.began(runs("two"), Summary("orphan_cleanup", "two", execute=True), [])
    assert stat.S_IMODE((tmp_path / FOLDER).stat().st_mode) == 0o1770


def test_a_log_that_takes_no_entry_says_so(runs: Runs, tmp_path: Path) -> None:
    """Before anything is done; and where it was full at the end, that the summary tells the rest."""
    (tmp_path / FOLDER).write_text("a file where the folder ought to be")
    summary = Summary("orphan_cleanup", "one", execute=True)
    with pytest.raises(StoreError, match=r"takes no entry: .*; nothing was done") as refused:
        audit_log.began(runs("one"), summary, [])
    assert "(state.sideline)" in str(refused.value)
    with pytest.raises(StoreError, match="does not say how this run ended"):
        audit_log.ended(runs("one"), summary, 0)
