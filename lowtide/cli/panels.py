"""The panels of ``lowtide --help``, in their order: what one needs every day first, the laboratory last."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

from typer.core import TyperGroup


class Panel(StrEnum):
    """A command names the one that it stands in: ``app.command(rich_help_panel=Panel.DAILY)``."""

    DAILY = "Every day"
    FIRST = "Before the first run, and after a change"
    HISTORY = "How far back tables can be read"
    MENDING = "When something went wrong"
    LEDGER = "The ledger"
    LAB = "The laboratory: not for production"


class InPanels(TyperGroup):
    """A group whose commands stand in the order of their panels, and in a panel as they were added."""

    def __init__(self, **about: Any) -> None:
        super().__init__(**about)
        _tidy(self)

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names, in that order."""
        order = list(Panel)

        def place(name: str) -> int:
            panel = getattr(self.commands[name], "rich_help_panel", None)
            return order.index(panel) if panel in order else len(order)

        return sorted(super().list_commands(ctx), key=place)


def _tidy(command: Any) -> None:
    """Hide what Typer would show of the code: where lines of a docstring end, and of a switch that it is a ``<bool>``,
    as if it took a value.
    """
    command.help = re.sub(r"(?<!\n)\n(?!\n)", " ", command.help or "")
    for param in command.params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
    for inner in getattr(command, "commands", {}).values():
        _tidy(inner)
