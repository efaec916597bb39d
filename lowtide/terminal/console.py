"""The terminal, for texts that others wrote."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from rich.console import Console

#: Tells a process whose output passes through another, as a driver's through its JVM, that it ends on a terminal, and
#: how many columns that has.
VARIABLE = "LOWTIDE_TERMINAL"


def new_console(*, stderr: bool = False) -> Console:
    """A console that prints every text as it is; what is to have a style is a ``Text``. Colours are for terminals
    alone, and not for those whose owner says NO_COLOR.

    Owners, reasons, problems and keys come from outside: as rich's markup, one ``[/]`` in them would end the command.
    """
    columns = os.environ.get(VARIABLE, "")
    if columns.isdecimal() and not stderr:
        return Console(markup=False, emoji=False, highlight=False, force_terminal=True, width=int(columns))
    return Console(markup=False, emoji=False, stderr=stderr)


def for_children() -> Mapping[str, str]:
    """What a process that writes to this one's output must know in its environment."""
    console = new_console()
    return {VARIABLE: str(console.width)} if console.is_terminal else {}


def asks() -> bool:
    """Whether somebody is there to answer a question."""
    return sys.stdin.isatty()


def note(text: str) -> None:
    """Say something beside what a command answers: on stderr, so that programs which read the answer do without."""
    print(f"lowtide: {text}", file=sys.stderr, flush=True)
