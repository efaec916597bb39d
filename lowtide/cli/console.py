"""The terminal, for texts that others wrote."""

from __future__ import annotations

from rich.console import Console


def new_console() -> Console:
    """A console that prints every text as it is; what is to have a style is a ``Text``.

    Owners, reasons, problems and keys come from outside: as rich's markup, one ``[/]`` in them would end the command.
    """
    return Console(markup=False, emoji=False)
