"""What a person decides of many transactions at once: the file that a run writes and ``lowtide resolve`` reads, and
what the command takes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lowtide.cli.app import app
from lowtide.errors import UsageError
from lowtide.journal.decision_lines import Decision, lines, parse


def test_a_file_that_a_run_wrote_decides_what_is_filled_in() -> None:
    """As it is written it decides nothing; each line that is filled in, its transaction. Comments and empty lines are
    nobody's.
    """
    written = "\n".join(lines("run", "orders", [(5000, 3, "72"), (5050, 1, "73"), (5100, 2, "74")]))
    assert "run run found" in written
    assert parse(written) == ([], 3)
    filled = written.replace("5000 undecided", "5000 aborted").replace("5050 undecided", "5050 committed 5150")
    assert parse(filled + "\n\n5200 committed 5300 orders 7275\n5000 aborted\n") == (
        [Decision(5000, None), Decision(5050, 5150), Decision(5200, 5300, ("orders", b"ru"))],
        1,
    )


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("5000 gone", "START aborted, or START committed TIMESTAMP .TABLE ROW. is expected, found '5000 gone'"),
        ("5000 committed", "is expected"),
        ("5000 committed 5100 orders", "is expected"),
        ("-50 aborted", "is expected"),
        ("5000 committed 5100 orders row", "hexadecimal"),
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
