"""The command line, ``lowtide``."""

from __future__ import annotations

import sys
from typing import NoReturn

from lowtide.errors import LowtideError
from lowtide.terminal.console import prepare_streams

#: What to do where the store stopped answering in the middle of a command.
_THEN = (
    "see that HBase and the Thrift gateway (hbase.thrift) run, and with `lowtide status` how things are; then give the "
    "command again"
)


def main() -> None:
    """Run the command line; an error meant for people is one message, not a traceback."""
    prepare_streams()
    # Here: who takes one module of this package, as the lab does, is not to load every command with it.
    from lowtide.cli.app import app

    try:
        app()
    except LowtideError as error:
        _end(error)
    except Exception as error:
        from lowtide.store.gateway import is_failure, no_answer

        if not is_failure(error):
            raise
        _end(no_answer("the command broke off", error, _THEN))


def _end(error: LowtideError) -> NoReturn:
    print(f"lowtide: {error}", file=sys.stderr)
    sys.exit(error.exit_code)
