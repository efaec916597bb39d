"""What a person decides: of many transactions at once, the file that a run writes and ``lowtide resolve`` reads; and
what the commands ask before they act.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from lowtide.cli import commit_table, decisions
from lowtide.cli import state as state_command
from lowtide.cli.app import app
from lowtide.errors import ConsentError, LowtideError, StoreError, UsageError, WatermarkError
from lowtide.journal import life
from lowtide.journal.decision_lines import Decision, Filled, lines, parse
from lowtide.journal.decisions import Decisions
from lowtide.store.oracle import OracleRows
from lowtide.store.records import Journal
from lowtide.values.formats import INVALID_QUALIFIER, INVALID_VALUE, commit_key
from tests.unit.test_journal import ENTRIES, JOURNAL, START, Tables


def test_a_file_that_a_run_wrote_decides_what_is_filled_in() -> None:
    """As it is written it decides nothing; each line that is filled in, its transaction. Comments and empty lines are
    nobody's.
    """
    written = "\n".join(lines("run", "orders", 2, [(5000, 3, "72"), (5050, 1, "73"), (5100, 2, "74")]))
    assert "run run found" in written
    assert parse(written) == Filled([], 3, 2)
    assert parse(f"{START} aborted") == Filled([Decision(START, None)]), "a file of one's own, or of an older Lowtide"
    joined = "\n".join(line for anew in (7, 2, 5) for line in lines("run", "orders", anew, []))
    assert parse(joined).anew == 2, "of files that were joined the oldest counts"
    filled = written.replace("5000 undecided", "5000 aborted").replace("5050 undecided", "5050 committed 5150")
    assert parse(filled + "\n\n5200 committed 5300 orders 7275\n5000 aborted\n") == Filled(
        [Decision(5000, None), Decision(5050, 5150), Decision(5200, 5300, ("orders", b"ru"))], 1, 2
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("5000 gone", "START aborted, or START committed TIMESTAMP .TABLE ROW. is expected, found '5000 gone'"),
        ("5000 committed", "is expected"),
        ("5000 committed 5100 orders", "is expected"),
        ("-50 aborted", "is expected"),
        ("5000 committed 5100 orders row", "hexadecimal"),
        ("anew some", "is expected"),
        ("4950 committed 5050", "line 2: transaction 4950 is decided twice"),
    ],
)
def test_a_line_that_is_no_decision_is_named(line: str, told: str) -> None:
    """And nothing of the file is taken."""
    with pytest.raises(UsageError, match=told):
        parse(f"4950 aborted\n{line}")


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["5000"],
        ["--aborted"],
        ["5000", "--aborted", "--committed", "5100"],
        ["5000", "5050", "--committed", "5100"],
        ["5000", "--aborted", "--from", "FILE"],
        ["5000", "--aborted", "--shown-in", "orders", "72"],
        ["5000", "--committed", "5100", "--shown-in", "orders", "row"],
        ["--from", "FILE"],
        ["--from", "missing"],
    ],
)
def test_what_is_no_decision_or_two_is_refused(given: list[str], tmp_path: Path) -> None:
    """One way to say what became of which transactions; before anything is looked at."""
    file = tmp_path / "decisions"
    file.write_text("5000 undecided\n")
    refused = CliRunner().invoke(app, ["resolve", *(str(file) if part == "FILE" else part for part in given)])
    assert isinstance(refused.exception, UsageError), refused.output


class World:
    """A store as the commands see it, how many connections to it are open, and what was done to it."""

    def __init__(self) -> None:
        self.connection = Tables(ENTRIES, JOURNAL)
        self.known, self.observed = Journal(True, stated=7), life.Observed(True, 7, None, life.OwnRow())
        self.there = self.recorded = True
        self.low_watermark, self.anew = 100, 0
        #: The commit table's: as runs remember it, and as it is.
        self.lives = [7, 7]
        self.paused: set[str] = set()
        self.open = 0
        self.done: list[str] = []

    @contextmanager
    def opened(self, _: object) -> Iterator[World]:
        self.open += 1
        yield self
        self.open -= 1

    def read(self, _: str) -> Any:
        return SimpleNamespace(epoch=SimpleNamespace(counter=int(self.recorded)))

    def has_table(self, _: str) -> bool:
        return self.there

    check_commit_table = OracleRows.check_commit_table
    check_low_watermark = OracleRows.check_low_watermark

    def exists(self) -> bool:
        return True

    def numbered_anew(self) -> int:
        return self.anew

    def commit_table_life(self) -> int:
        return self.lives[0]

    def settle_commit_table(self, stated: int) -> None:
        self.done.append(f"taken for whole: {stated}")

    def journal(self) -> Journal:
        return self.known

    def check_not_paused(self, *tables: str) -> None:
        if waits := self.paused & set(tables):
            raise ConsentError(f"nothing is written to {waits}")

    def bounds(self) -> list[Any]:
        return []

    def recorded_low_watermark(self) -> Any:
        return SimpleNamespace(low_watermark=100, back=None)

    def record_format(self) -> None:
        self.done.append("numbered")

    def create(self) -> None:
        """Nothing is lost by it."""

    def void(self, _: str) -> int:
        self.done.append("voided")
        return 1

    def confirm(self, _: str) -> None:
        self.done.append("confirmed")

    def reset(self, *, same_oracle: bool, skipped: object, pruned: int) -> None:
        assert (skipped, pruned) == (None, 0)
        self.done.append("reset" if not same_oracle else "reset, of the same oracle")

    def add_run(self, run: dict[str, Any]) -> None:
        self.done.append(run["job"])


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A journal that was disabled and enabled, a table, and records of it."""
    made = World()
    for module in (commit_table, decisions, state_command):
        monkeypatch.setattr(module, "opened", made.opened)
    monkeypatch.setattr(commit_table, "expiring_entries", lambda *_: {})
    for module in (commit_table, decisions):
        monkeypatch.setattr(module, "table_state", lambda *_: (True, made.lives[1]))
    for module in (decisions, state_command):
        monkeypatch.setattr(module, "low_watermark", lambda *_: made.low_watermark)
    monkeypatch.setattr(life, "observe", lambda *_: made.observed)
    monkeypatch.setattr(life, "hold", lambda *_: None)
    monkeypatch.setattr(life, "settle", lambda *_, **__: made.done.append("settled"))
    monkeypatch.setattr(Decisions, "record", lambda *_, **__: made.done.append("decided"))
    return made


def say(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, argv: list[str], meanwhile: Callable[[World], None]
) -> Result:
    """Give a command; while it waits for the answer, *meanwhile* happens."""

    def answer(question: str, abort: bool) -> None:
        assert abort
        assert question
        assert (world.open, world.done) == (0, [])
        meanwhile(world)

    monkeypatch.setattr("typer.confirm", answer)
    (tmp_path / "lowtide.yaml").write_text("")
    return CliRunner().invoke(app, [*argv, "--config", str(tmp_path / "lowtide.yaml")])


def lives_on(world: World) -> None:
    """The journal's table and the commit table, disabled and enabled since."""
    world.observed = replace(world.observed, stated=world.observed.stated + 1)
    world.lives[1] += 1


def decided(world: World) -> None:
    """By somebody else."""
    world.connection.table(JOURNAL).put(
        commit_key(START), {b"j:" + INVALID_QUALIFIER: INVALID_VALUE, b"j:" + life.DECIDED: b"bob@farm"}
    )


@pytest.mark.parametrize(("options", "horizon"), [([], 50), (["--promoted"], 100)], ids=["lost", "promoted"])
def test_up_to_where_absence_is_no_proof_when_the_journal_is_lost(
    options: list[str], horizon: int, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Up to where was pruned; at a cluster that is promoted up to the low watermark: there clients' own deletes of
    their commit entries may have come before their shadow cells.
    """
    world.known = replace(world.known, pruned=50)
    settled: list[int] = []
    monkeypatch.setattr(life, "settle", lambda *_, lost_up_to: settled.append(lost_up_to))
    done = say(world, monkeypatch, tmp_path, ["journal", "lost", *options], lambda _: None)
    assert (done.exit_code, settled) == (0, [horizon]), done.output
    assert f"Horizon: {horizon}." in done.output


@pytest.mark.parametrize(
    ("argv", "done"),
    [
        (["forget", "orders"], ["numbered", "voided", "forget"]),
        (["resolve", str(START), "--aborted"], ["numbered", "decided", "resolve"]),
        (["confirm", "orders"], ["numbered", "confirmed", "confirm"]),
        (["journal", "lost"], ["numbered", "settled", "journal lost"]),
        (["journal", "whole"], ["numbered", "settled", "journal whole"]),
        (["commit-table", "whole"], ["numbered", "taken for whole: 8", "commit-table whole"]),
        (["state", "reset"], ["reset", "state reset"]),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_no_connection_waits_for_an_answer(
    argv: list[str], done: list[str], world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The gateway closes one that idles for a minute: it is asked with none open, and then done; first of all the
    records get the number by which an older Lowtide, that would not see what was done, refuses them.
    """
    if argv[-1] == "whole":
        lives_on(world)
    told = say(world, monkeypatch, tmp_path, argv, lambda _: None)
    assert (told.exit_code, world.done) == (0, done), told.exception
    assert world.open == 0


@pytest.mark.parametrize(
    ("argv", "meanwhile", "error"),
    [
        (["forget", "orders"], lambda world: setattr(world, "recorded", False), UsageError),
        (["resolve", str(START), "--aborted"], lambda world: setattr(world, "observed", life.Observed()), StoreError),
        (["resolve", str(START), "--committed", str(START + 100)], decided, StoreError),
        (["confirm", "orders"], lambda world: setattr(world, "there", False), UsageError),
        (["journal", "lost"], lambda world: setattr(world, "observed", life.Observed()), StoreError),
        (["journal", "whole"], lives_on, StoreError),
        (["commit-table", "whole"], lives_on, StoreError),
        (["state", "reset"], lambda world: setattr(world, "low_watermark", 50), WatermarkError),
    ],
    ids=lambda part: " ".join(part[:2]) if isinstance(part, list) else "",
)
def test_what_changed_before_the_answer_came_is_not_acted_on(
    argv: list[str],
    meanwhile: Callable[[World], None],
    error: type[LowtideError],
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Records that are gone, a decision of somebody else, a table that was dropped, another life of the journal's: the
    answer was given to another question.
    """
    if argv[-1] == "whole":
        lives_on(world)
    refused = say(world, monkeypatch, tmp_path, argv, meanwhile)
    assert (type(refused.exception), world.done) == (error, [])


def test_a_commit_table_that_nothing_speaks_against_is_not_asked_about(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor is one that no run has seen yet; one that is gone, or disabled, is named."""
    argv = ["commit-table", "whole"]
    for life_known in (7, 0):
        world.lives[0] = life_known
        told = say(world, monkeypatch, tmp_path, argv, lambda _: None)
        assert (told.exit_code, world.done) == (0, [])
        assert "Nothing speaks against OMID_COMMIT_TABLE" in told.output
    monkeypatch.setattr(commit_table, "table_state", lambda *_: (False, 8))
    assert "is disabled" in str(say(world, monkeypatch, tmp_path, argv, lambda _: None).exception)
    world.there = False
    assert "there is no commit table" in str(say(world, monkeypatch, tmp_path, argv, lambda _: None).exception)


@pytest.mark.parametrize("late", [False, True], ids=["before", "while it is asked"])
@pytest.mark.parametrize(
    ("argv", "table"),
    [
        (["resolve", str(START), "--aborted"], JOURNAL),
        (["resolve", str(START), "--committed", str(START + 100), "--shown-in", "orders", "72"], ENTRIES),
        (["journal", "lost"], JOURNAL),
        (["journal", "whole"], JOURNAL),
    ],
    ids=["resolve", "resolve in the commit table", "journal lost", "journal whole"],
)
def test_what_is_paused_is_not_written_to_by_hand_either(
    argv: list[str], table: str, late: bool, world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The journal, and the commit table where a mark of it would go: it is refused before it is asked, and when the
    pause came since.
    """
    monkeypatch.setattr(Decisions, "check", lambda *_: "")
    if argv == ["journal", "whole"]:
        lives_on(world)
    if not late:
        world.paused.add(table)
    refused = say(world, monkeypatch, tmp_path, argv, lambda world: world.paused.add(table))
    assert (type(refused.exception), world.done) == (ConsentError, [])


def came_back(world: World) -> None:
    """The commit table, from an HBase snapshot."""
    world.lives[1] += 1


def went_back(world: World) -> None:
    """The oracle's low watermark, behind the one that a run has recorded."""
    world.low_watermark = 99


def was_reset(world: World) -> None:
    """The records, after the oracle was made anew."""
    world.anew += 1


@pytest.mark.parametrize("late", [False, True], ids=["before", "while it is asked"])
@pytest.mark.parametrize(
    ("happens", "error", "told"),
    [
        (came_back, StoreError, "lowtide commit-table whole"),
        (went_back, WatermarkError, "the low watermark has gone back from 100 to 99"),
        (was_reset, UsageError, "the oracle was made anew since the run that wrote the file"),
    ],
)
def test_nothing_is_decided_of_numbers_that_may_be_other_transactions(
    happens: Callable[[World], None],
    error: type[LowtideError],
    told: str,
    late: bool,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """As no run goes by a commit table of another life, or a low watermark that went back, no decision does; and none
    that stands in a file of before the oracle was made anew.
    """
    world.anew = 2
    file = tmp_path / "undecided"
    file.write_text("\n".join(lines("run", "orders", 2, [(START, 1, "72")])).replace("undecided  #", "aborted  #"))
    if not late:
        happens(world)
    refused = say(world, monkeypatch, tmp_path, ["resolve", "--from", str(file)], happens)
    assert (type(refused.exception), world.done) == (error, [])
    assert re.search(told, str(refused.exception))
