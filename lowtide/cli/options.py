"""Options that many commands have: each is explained once. And the question that ``--yes`` answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The configuration file.", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def ask(question: str, *, yes: bool) -> None:
    """Ask, unless *yes*; any other answer ends the command.

    No connection may be open meanwhile: the gateway closes one that idles, and a person takes the time it takes. What
    was read for the question may have changed until the answer comes, so who acts on it reads again.
    """
    if not yes:
        typer.confirm(question, abort=True)
