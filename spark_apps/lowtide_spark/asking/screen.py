"""Where answers are printed."""

from __future__ import annotations

from rich.console import Console


def console() -> Console:
    """As wide as the terminal; where there is none, wide enough for a log. Texts are printed as they are."""
    terminal = Console(markup=False, emoji=False)
    return terminal if terminal.is_terminal else Console(markup=False, emoji=False, width=140)
