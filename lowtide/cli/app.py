"""The commands put together; what each does, and says of itself, is in the other modules of this package."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

import typer

from lowtide import __version__
from lowtide.cli import jobs
from lowtide.cli.check import check
from lowtide.cli.console import new_console
from lowtide.cli.decisions import confirm, forget, journal_app, resolve
from lowtide.cli.health import explain, status
from lowtide.cli.history import history_app, hold_app
from lowtide.cli.ledger import app as ledger_app
from lowtide.cli.path import path
from lowtide.cli.report import report
from lowtide.cli.runs import runs
from lowtide.cli.state import state_app

sideline_app = typer.Typer(no_args_is_help=True, help="What runs removed, and keep for a while.")
app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Maintenance for transactional HBase.")
# The lab's commands, where it is installed with what it needs; by its name, for nothing of production imports it.
if all(map(find_spec, ("lowtide.lab", "httpx", "psutil"))):
    import_module("lowtide.lab.cli").add_to(app)
app.add_typer(ledger_app, name="ledger")
app.add_typer(state_app, name="state")
app.add_typer(hold_app, name="hold")
app.add_typer(history_app, name="history")
app.command()(check)
app.command()(report)
app.command()(status)
app.command()(explain)
app.command()(runs)
app.add_typer(journal_app, name="journal")
app.command()(confirm)
app.command()(forget)
app.command()(resolve)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(jobs.run)
app.command()(jobs.restore)
app.add_typer(sideline_app, name="sideline")
sideline_app.command("list")(jobs.sideline_list)
sideline_app.command("show")(jobs.sideline_show)
app.command()(jobs.why)
journal_app.command("replay")(jobs.journal_replay)
app.command()(jobs.survey)
app.command()(jobs.verify)
app.command()(path)


def _version(wanted: bool) -> None:
    if wanted:
        new_console().print(f"lowtide {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Maintenance for transactional HBase."""
