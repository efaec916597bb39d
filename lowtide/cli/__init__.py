"""The command line, ``lowtide``."""

from __future__ import annotations

import sys

from lowtide.errors import LowtideError


def main() -> None:
    """Run the command line; an error meant for people is one message, not a traceback."""
    # Here: who takes one module of this package, as the lab does, is not to load every command with it.
    from lowtide.cli.app import app

    try:
        app()
    except LowtideError as error:
        print(f"lowtide: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
