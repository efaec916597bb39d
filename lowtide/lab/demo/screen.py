"""What the demo shows while it works: numbered steps with a running clock, and one line for each thing done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from lowtide.terminal.tables import print_table

Tell = Callable[[str], None]


class Screen:
    """Steps on a console; on one that is no terminal, plain lines instead of anything that moves."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._began = time.monotonic()
        #: Seconds by step.
        self.took: dict[str, float] = {}

    @property
    def seconds(self) -> float:
        """Since the demo began."""
        return time.monotonic() - self._began

    @contextmanager
    def step(self, title: str) -> Iterator[Tell]:
        """A step; what is told to the function it gives stands below its title until the next word, and then above."""
        began = time.monotonic()
        self._console.print(Text.assemble("\n", (f"{len(self.took) + 1}", "bold cyan"), "  ", (title, "bold")))
        moving = _Moving(began)
        with Live(moving, console=self._console, refresh_per_second=8, transient=True):

            def tell(text: str) -> None:
                moving.text = text
                self._console.print(Text(f"   {text}", "dim"))

            yield tell
        self.took[title] = time.monotonic() - began
        self._console.print(Text.assemble("   ", ("done", "green"), f" in {self.took[title]:.0f} s"))

    def show(self, what: RenderableType) -> None:
        """Print something below the step."""
        if isinstance(what, Table):
            print_table(self._console, what)
        else:
            self._console.print(_indented(what))

    def say(self, text: str, style: str = "") -> None:
        """Print a sentence below the step."""
        self.show(Text(text, style))


class _Moving:
    """A spinner, the last word, and the seconds so far."""

    def __init__(self, began: float) -> None:
        self.text = ""
        self._began = began
        self._spinner = Spinner("dots", style="cyan")

    def __rich__(self) -> RenderableType:
        row = Table.grid(padding=(0, 1))
        row.add_row("  ", self._spinner, Text(self.text), Text(f"{time.monotonic() - self._began:.0f} s", "dim"))
        return row


def _indented(what: RenderableType) -> RenderableType:
    return Padding(what, (0, 0, 0, 3))
