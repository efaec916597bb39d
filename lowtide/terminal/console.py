"""The terminal, for texts that others wrote."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from io import TextIOWrapper

from rich.console import Console

#: Tells a process whose output passes through another, as a driver's through its JVM, that it ends on a terminal, and
#: how many columns that has.
VARIABLE = "LOWTIDE_TERMINAL"


def prepare_streams() -> None:
    """Make it safe to print, and to ask, whatever this process was started with. A character that the terminal's
    encoding does not have is printed as its number; a stream that was closed is one that takes all, or has nothing.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - it stays open
        elif mode == "w" and isinstance(stream, TextIOWrapper):
            # No question mark: that is the sign of a health that is not known, and CSV would lose what it stands for.
            with suppress(OSError):  # another file was put in its place since it was opened, such as a pipe
                stream.reconfigure(errors="backslashreplace")


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
