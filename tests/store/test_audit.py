"""Who did what is written down before it is done; what people have in their tables is nowhere but in the sideline."""

from __future__ import annotations

import getpass
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deadman
import pytest
from conftest import Outcome
from lowtide_spark.frames.audit_log import FOLDER
from scene import Scene

from lowtide.config import Config
from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]
#: By which all history may go at once.
NO_AGE = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}
#: As cells hold it, and nothing else does.
SECRET = b"4929-1234-5678-9010"


def entries(folder: Path) -> list[dict[str, Any]]:
    """What the audit log has, as it came."""
    return [json.loads(file.read_text()) for file in sorted((folder / "sideline" / FOLDER).glob("*/*.jsonl"))]


def test_what_acts_is_entered_and_nothing_else(job: Job, scene: Scene, omid: OmidClient, tmp_path: Path) -> None:
    """Who, as whom, with what; then what it came to, also of the run that puts back. A dry run leaves no entry."""
    table = scene.table()
    orphan = scene.orphan(table)
    omid.advance_watermark()
    named, one, two = ("--table", table), f"one-{table}", f"two-{table}"
    assert job("orphan_cleanup", *named).code == 0
    assert entries(tmp_path) == []
    done = job("orphan_cleanup", *named, "--execute", "--run-id", one, "--context", "approved_by=Ann")
    assert done.code == 0, done.problems
    began, ended = entries(tmp_path)
    assert (began["event"], began["run"], began["job"]) == ("began", one, "orphan_cleanup")
    assert [*named, "--execute"] == [x for x in began["arguments"] if x in (*named, "--execute")]
    assert began["by"]["user"] == began["by"]["principal"] == getpass.getuser(), "as whom HBase knows it"
    assert began["context"] == {"approved_by": "Ann"}
    assert (ended["event"], ended["exit"], ended["problems"]) == ("ended", 0, 0)
    [of_table] = [each for each in ended["tables"] if each["table"] == table]
    assert (of_table["execute"], of_table["counts"]["deleted"]) == (True, 1)
    assert not scene.has(table, orphan)
    back = job("sideline_restore", "--restore", one, "--execute", "--run-id", two)
    assert back.code == 0, back.problems
    assert [(e["run"], e["event"]) for e in entries(tmp_path)[2:]] == [(two, "began"), (two, "ended")]
    assert entries(tmp_path)[-1]["tables"][0]["counts"]["restored"] == 1


def test_a_run_that_is_killed_has_begun(job: Job, scene: Scene, omid: OmidClient, tmp_path: Path) -> None:
    """Its first entry is there before anything of it takes effect, and tells whose the traces are that it left."""
    table = scene.table()
    scene.orphan(table)
    omid.advance_watermark()

    def cleanup() -> Outcome:
        return job("orphan_cleanup", "--table", table, "--execute", "--run-id", "dead")

    def dies(effect: deadman.Effect, moment: deadman.Moment) -> deadman.Die | None:
        first_of_the_store = effect.seam != "files" and moment is deadman.Moment.BEFORE
        return deadman.Die() if first_of_the_store else None

    assert deadman.run(cleanup, dies).killed
    assert [(e["run"], e["event"]) for e in entries(tmp_path)] == [("dead", "began")]


def test_a_run_that_cannot_be_entered_changes_nothing(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, tmp_path: Path
) -> None:
    """It is refused, in a sentence that says where it was to be entered."""
    state.create()
    table = scene.table()
    scene.orphan(table)
    omid.advance_watermark()
    (tmp_path / "sideline").mkdir()
    (tmp_path / "sideline" / FOLDER).write_text("a file where the folder ought to be")
    before = (omid.raw(table), omid.commit_table(), omid.raw(Config().state.table))
    refused = job("commit_table_pruning", "--grace", "0s", "--execute")
    assert refused.code != 0
    assert f"the audit log in {tmp_path}/sideline/{FOLDER} takes no entry" in refused.problems
    cleanup = job("orphan_cleanup", "--table", table, "--execute")
    assert "nothing was done" in cleanup.problems
    assert (omid.raw(table), omid.commit_table()) == before[:2]
    runs = {cell for cell in omid.raw(Config().state.table) if cell not in before[2]}
    assert {cell.row.partition(b"/")[0] for cell in runs} <= {b"run", b"outcomes", b"now"}, "that they failed, and when"


def test_no_value_of_a_cell_is_anywhere_but_aside(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    tmp_path: Path,
    configure: Callable[..., Path],
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Neither printed, nor in a summary, a list, the records, the audit log: of what is removed and of what is healed;
    and what is aside only its user may open.
    """
    table = scene.table()
    scene.orphan(table, value=SECRET)
    late, _ = scene.crashed_after_commit(table, row=b"late", value=SECRET)
    for _ in range(3):
        scene.committed(table, row=b"old", value=SECRET)
    omid.advance_watermark()
    named, one, two = ("--table", table), f"one-{table}", f"two-{table}"
    assert job("orphan_cleanup", *named, "--list").code == 0
    done = job("orphan_cleanup", *named, "--execute", "--list", "--run-id", one)
    assert (done.code, done.totals["deleted"], done.totals["healed"]) == (0, 1, 1), done.problems
    for looks in (
        ("why", *named, "--row", "r"),
        ("sideline", "--show", one),
        ("verify", *named),
        ("survey", *named),
        ("sideline_restore", "--restore", one),
    ):
        job(*looks)
    assert job("watermark_collection", "--execute").code == 0
    removed = job("history_gc", *named, "--list", "--execute", "--run-id", two, config=configure(defaults=NO_AGE))
    assert removed.totals["deleted"] > 0, removed.problems
    aside = [tmp_path / "sideline" / run for run in (one, two)]
    assert [folder.stat().st_mode & 0o777 for folder in aside] == [0o700, 0o700]
    told = "".join(capfd.readouterr()).encode()
    files = [file for file in tmp_path.rglob("*") if file.is_file() and not {*aside} & {*file.parents}]
    lists = [gzip.decompress(file.read_bytes()) for file in files if file.suffix == ".gz"]
    assert any(b"late" in text for text in lists), "rows are listed"
    records = repr([omid.raw(name) for name in omid.tables() if name.startswith("LOWTIDE")]).encode()
    assert b"orphan_cleanup" in told
    assert b"orphan_cleanup" in records
    for place in (told, records, *lists, *(file.read_bytes() for file in files)):
        assert SECRET not in place
    assert late
