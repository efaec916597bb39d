"""The command line, ``lowtide``."""

from __future__ import annotations

import sys

from lowtide.cli.app import app
from lowtide.errors import LowtideError
from lowtide.lab.stack import StackError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; an error meant for people is one message, not a traceback."""
    try:
        app()
    except (LowtideError, StackError) as error:
        print(f"lowtide: {error}", file=sys.stderr)
        sys.exit(getattr(error, "exit_code", 1))
