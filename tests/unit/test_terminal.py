"""What the commands print of texts that others wrote: as they are, whatever rich would make of them."""

from __future__ import annotations

import os
import sys
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import Result
from rich.console import Console
from typer.testing import CliRunner

from lowtide import cli
from lowtide.cli.app import app
from lowtide.cli.output import Output, answer
from lowtide.cli.runs import done_text, print_runs
from lowtide.history.mark import Hold
from lowtide.report.observation import Observation, RegionMark
from lowtide.report.terminal import regions
from lowtide.run.summary import Counts, Summary, TableReport
from lowtide.store.records import Bound
from lowtide.store.state import StateStore
from lowtide.terminal.console import asks, new_console, note
from tests.unit.test_health import a_run, blocker, healthy
from tests.unit.test_health_history import gc_run, store
from tests.unit.test_health_history import hold as a_hold
from tests.unit.test_health_terminal import ask
from tests.unit.test_history import Connection

TEXTS = pytest.mark.parametrize("text", ["me [/]", "[bold]", "see [/x]", ":bug:"])
NOW = datetime.now(UTC)


@pytest.fixture
def state(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The holds that there are, for the commands on them."""
    there: dict[str, Any] = {"holds": []}
    monkeypatch.setattr("lowtide.cli.history.opened", lambda _: nullcontext(StateStore(Connection(), "LOWTIDE_STATE")))
    monkeypatch.setattr(StateStore, "holds", lambda *_: there["holds"])
    return there


def held(**changes: Any) -> Hold:
    return replace(Hold("h1", "orders", 1000, "ann@desk", "month end", NOW, NOW + timedelta(hours=1)), **changes)


def say(tmp_path: Path, *arguments: str, answer: str = "") -> Result:
    file = tmp_path / "lowtide.yaml"
    file.write_text("")
    return CliRunner().invoke(app, [*arguments, "--config", str(file)], input=answer, env={"COLUMNS": "400"})


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1"])
def test_a_terminal_without_utf_8_is_told_what_it_can_show(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A character that it lacks is its number: the command does not end on it, and no sign becomes another."""
    there = TextIOWrapper(BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", there)
    monkeypatch.setattr("lowtide.cli.app.app", lambda: new_console().print("✓ all is well"))
    cli.main()
    there.flush()
    assert cast("BytesIO", there.buffer).getvalue() == b"\\u2713 all is well\n"


def test_a_pipe_in_the_place_of_a_file_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where a process that was started with a file is given a pipe later: what is said goes there."""
    ours, theirs = os.pipe()
    with (tmp_path / "log").open("w", encoding="utf-8") as there:
        there.write("before\n")
        there.flush()
        os.dup2(theirs, there.fileno())
        os.close(theirs)
        monkeypatch.setattr(sys, "stdout", there)
        monkeypatch.setattr("lowtide.cli.app.app", lambda: print("said", flush=True))
        cli.main()
    with os.fdopen(ours) as said:
        assert said.read() == "said\n"


def test_streams_that_were_closed_take_all_and_ask_nobody(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Such as `lowtide runs --output csv >&-`; a note does not go to stdout because stderr is closed."""
    for name in ("stdin", "stderr"):
        monkeypatch.setattr(sys, name, None)

    def command() -> None:
        note("beside the answer")
        answer(Output.CSV, list, ["table"], lambda: [{"table": "orders", "asks": asks()}], lambda: None)

    monkeypatch.setattr("lowtide.cli.app.app", command)
    cli.main()
    assert capfd.readouterr().out == "table\norders\n"
    monkeypatch.setattr(sys, "stdout", None)
    cli.main()
    assert capfd.readouterr().out == ""


def test_a_narrow_terminal_cuts_nothing_from_a_hold(
    state: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit goes on in the next line: table and id are what `hold release` must be given."""
    state["holds"] = [held(table="warehouse:order_items", id="20261123T054702-abcdef")]
    monkeypatch.setattr("lowtide.cli.history.console", Console(width=80, markup=False))
    lines = [line.split("│") for line in say(tmp_path, "hold", "list").output.splitlines() if "│" in line]
    table, id = ("".join(line[n].strip() for line in lines) for n in (1, 2))
    assert (table, id) == ("warehouse:order_items", "20261123T054702-abcdef")


@TEXTS
def test_holds_are_told_with_owner_and_reason_as_they_are(
    state: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """One that is listed, also beside an expired one, one that is taken, one that is let go."""
    mine = held(owner=text, reason=text, id=text)
    state["holds"] = [mine, held(expires=NOW - timedelta(hours=1))]
    listed = say(tmp_path, "hold", "list")
    assert (listed.exit_code, listed.output.count(text)) == (0, 3)
    assert "expired" in listed.output
    monkeypatch.setattr("lowtide.cli.history.take", lambda *_, **__: mine)
    assert text in say(tmp_path, "hold", "add", "orders", "--reason", text).output
    monkeypatch.setattr("lowtide.cli.history.release", lambda *_: mine)
    assert say(tmp_path, "hold", "release", "orders", text, answer="y\n").output.count(text) == 5


def test_a_hold_of_somebody_else_is_let_go_of_only_when_told_so(
    state: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question names owner, reason and life; one's own, expired ones and --yes raise no question."""
    monkeypatch.setattr("lowtide.run.summary.getpass.getuser", lambda: "ann")
    monkeypatch.setattr("lowtide.run.summary.socket.gethostname", lambda: "desk")
    released: list[str] = []
    monkeypatch.setattr("lowtide.cli.history.release", lambda *about: released.append(about[-1]) or held(id=about[-1]))
    over = NOW - timedelta(hours=1)
    state["holds"] = [held(id="mine"), held(id="his", owner="bob@farm"), held(id="old", owner="bob@farm", expires=over)]
    refused = say(tmp_path, "hold", "release", "orders", "his", answer="n\n")
    assert (refused.exit_code, released) == (1, [])
    assert "his is a hold of bob@farm (month end), until " in refused.output
    assert "you are ann@desk" in refused.output
    assert say(tmp_path, "hold", "release", "orders", "his").exit_code == 1  # nobody there to answer
    for words in (["mine"], ["old"], ["his", "--yes"]):
        assert say(tmp_path, "hold", "release", "orders", *words).exit_code == 0
    assert released == ["mine", "old", "his"]
    assert say(tmp_path, "hold", "release", "orders", "his", answer="y\n").exit_code == 0


@TEXTS
def test_runs_and_tables_are_told_with_their_texts_as_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    """A run's name and problem; a blocker's reason; on the console of the commands."""
    monkeypatch.setenv("COLUMNS", "400")
    (tmp_path / "none.yaml").write_text("")
    console = new_console()
    report = TableReport("orders", problems=[text])
    with console.capture() as said:
        print_runs(console, [Summary("orphan_cleanup", text, True, tables=[report]).to_json()])
    assert said.get().count(text) == 2
    held_by = healthy(bounds=(Bound(NOW, 0, (blocker("orders", text),)),))
    assert text in ask(monkeypatch, tmp_path / "none.yaml", held_by, "status", "--tables").output


@pytest.mark.parametrize(
    ("job", "counts", "bound", "said"),
    [
        ("sideline_restore", Counts(restored=1269), None, "1,269 restored"),
        ("history_gc", Counts(deleted=679, bytes_removed=100_250), 5000, "679 removed, 97.9 KiB"),
        ("history_gc", Counts(deleted=9, markers=2, bytes_removed=90), 5000, "9 removed, 2 delete markers, 90 B"),
        (
            "orphan_cleanup",
            Counts(healed=1, marked=2, deleted=3, failed=4),
            None,
            "1 healed, 2 invalidated, 3 removed, 4 failed",
        ),
        ("commit_table_pruning", Counts(pruned=12, cells_read=99), 5000, "12 pruned"),
        ("transaction_repair", Counts(finished=4, dropped=1), None, "4 finished, 1 dropped"),
        ("watermark_collection", Counts(), 5000, "prune bound 5,000"),
        ("watermark_collection", Counts(), 1_700_000_000_651_000_000, "prune bound 2023-11-14 22:13:20.651 UTC"),
        ("orphan_cleanup", Counts(), None, ""),
    ],
)
def test_a_run_is_told_with_what_it_did(job: str, counts: Counts, bound: int | None, said: str) -> None:
    """Every counter that says so, in words, with bytes; nothing where nothing was done."""
    run = Summary(job, "r", True, bound=bound, tables=[TableReport("orders", counts)]).to_json()
    assert done_text(run) == said
    del run["totals"]["markers"]  # as of a run of before there was such a counter
    assert done_text(run) in (said, said.replace("2 delete markers, ", ""))


@TEXTS
def test_status_tells_holds_and_problems_as_they_are(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str
) -> None:
    """In the table of holds, in what keeps a mark back, in the findings."""
    file = tmp_path / "lowtide.yaml"
    file.write_text("defaults: {mode: execute, history_mode: execute}\n")
    seen = store(
        holds=(a_hold(owner=text, reason=text),), runs=(a_run("orphan_cleanup", timedelta(), text), gc_run(timedelta()))
    )
    for command in ("status", "explain"):
        said = ask(monkeypatch, file, seen, command)
        assert text in said.output
        assert said.exit_code == 4


@TEXTS
def test_row_keys_are_told_as_they_are(text: str) -> None:
    """On a console of whoever prints the report."""
    out = StringIO()
    seen = SimpleNamespace(regions=[RegionMark("orders", text, 50)], low_watermark=100, bound=None)
    Console(file=out, width=200).print(regions(cast("Observation", seen)))
    assert text in out.getvalue()
