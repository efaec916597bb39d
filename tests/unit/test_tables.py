"""Tables in the terminal: nothing that one wants to copy is cut."""

from __future__ import annotations

from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lowtide.terminal import console as consoles
from lowtide.terminal.console import VARIABLE, for_children, new_console
from lowtide.terminal.tables import _shares, new_table, print_table

#: What ids, tables, row keys and paths are made of.
WORDS = st.text("abcXYZ0189_.:-/T", min_size=1, max_size=60)
SENTENCES = st.lists(WORDS, max_size=8).map(" ".join)


def printed(width: int, rows: list[tuple[str, ...]], *, terminal: bool = True, whole: tuple[str, ...] = ()) -> str:
    out = StringIO()
    grid = new_table("Runs", "run", "table", "what", whole=whole)
    for row in rows:
        grid.add_row(*row)
    print_table(
        Console(file=out, width=width, force_terminal=terminal, color_system=None, markup=False, emoji=False), grid
    )
    return out.getvalue()


@given(st.integers(20, 200), st.lists(st.tuples(WORDS, WORDS, SENTENCES), max_size=4))
def test_every_word_is_printed_in_one_piece(width: int, rows: list[tuple[str, str, str]]) -> None:
    """However narrow the terminal is; and no line of a table is wider than the terminal."""
    said = printed(width, rows)
    found = said.replace("│", " ").replace("┃", " ").split()
    for row in rows:
        for word in " ".join(row).split():
            assert word in found
    assert "…" not in said
    if "│" in said:
        assert max(map(len, said.splitlines())) <= width


@given(st.lists(st.tuples(WORDS, WORDS, SENTENCES), min_size=1, max_size=4))
def test_a_pipe_has_a_line_a_row(rows: list[tuple[str, str, str]]) -> None:
    """What is not read on a terminal is searched by lines."""
    lines = [line for line in printed(80, rows, terminal=False).splitlines() if line.startswith("│")]
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert " ".join(line.replace("│", " ").split()) == " ".join(" ".join(row).split())


@given(st.integers(0, 500), st.lists(st.integers(0, 80), min_size=1, max_size=9))
def test_what_is_left_goes_to_the_modest_first(left: int, asked: list[int]) -> None:
    """Nobody gets more than was asked for, together no more than there is; who gets less gets no less than others."""
    given_ = _shares(left, asked)
    assert all(0 <= got <= wanted for got, wanted in zip(given_, asked, strict=True))
    assert sum(given_) <= left
    short = [got for got, wanted in zip(given_, asked, strict=True) if got < wanted]
    assert not short or min(short) >= max(given_) - 1
    assert sum(given_) == sum(asked) or left - sum(given_) < len(asked)


def test_a_column_is_kept_whole_where_that_is_asked_for() -> None:
    """Or the row is told line by line."""
    row = ("r1", "orders", "2026-11-25 14:53:17")
    assert "│ 2026-11-25   │" in printed(31, [row])
    narrow = printed(31, [row], whole=("what",))
    assert "what   2026-11-25 14:53:17\n" in narrow
    assert "│ 2026-11-25 14:53:17 │" in printed(38, [row], whole=("what",))


def test_a_row_told_line_by_line_leaves_out_what_is_empty() -> None:
    """And has the table's title above it."""
    assert printed(20, [("manual-20261125T145317.1Z", "orders", "")]).split("\n") == [
        "Runs",
        "run    manual-20261125T145317.1Z",
        "table  orders",
        "",
        "",
    ]


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    """And for those alone whose owner does not say NO_COLOR; of a terminal behind another process, too."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", VARIABLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for columns, no_color, coloured in (("", "", False), ("80", "", True), ("80", "1", False), ("wide", "", False)):
        monkeypatch.setenv(VARIABLE, columns)
        monkeypatch.setenv("NO_COLOR", no_color)
        console = new_console()
        with console.capture() as said:
            console.print("done", style="green")
        assert ("\x1b[32m" in said.get()) is coloured
    assert not new_console(stderr=True).is_terminal


def test_a_child_is_told_of_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its width, where there is one; a driver's own output is a pipe to its JVM."""
    monkeypatch.delenv(VARIABLE, raising=False)
    assert for_children() == {}
    monkeypatch.setattr(consoles, "new_console", lambda: Console(force_terminal=True, width=97))
    assert for_children() == {VARIABLE: "97"}
    monkeypatch.setenv(VARIABLE, "97")
    console = new_console()
    assert (console.is_terminal, console.width) == (True, 97)
