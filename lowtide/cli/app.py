"""The commands put together; what each does, and says of itself, is in the other modules of this package."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Annotated

import typer

from lowtide import __version__
from lowtide.cli import jobs
from lowtide.cli.check import check
from lowtide.cli.commit_table import commit_table_app
from lowtide.cli.decisions import confirm, forget, journal_app, resolve
from lowtide.cli.health import explain, status
from lowtide.cli.history import history_app, hold_app
from lowtide.cli.ledger import app as ledger_app
from lowtide.cli.output import WithJson
from lowtide.cli.panels import InPanels, Panel
from lowtide.cli.path import path
from lowtide.cli.pauses import pause, pauses, resume
from lowtide.cli.report import report
from lowtide.cli.runs import runs
from lowtide.cli.state import state_app
from lowtide.run.jobs import JOBS
from lowtide.terminal.console import new_console

app = typer.Typer(
    cls=InPanels, no_args_is_help=True, pretty_exceptions_enable=False, help="Maintenance for transactional HBase."
)
run_app = typer.Typer(no_args_is_help=True, help="Run a job on Spark, and end with its exit code.")
for job in JOBS:
    run_app.command(job)(jobs.job_command(job))
journal_app.command("replay")(jobs.journal_replay)
sideline_app = typer.Typer(no_args_is_help=True, help="What runs removed, and keep for a while.")
sideline_app.command("list")(jobs.sideline_list)
sideline_app.command("show")(jobs.sideline_show)

app.command(rich_help_panel=Panel.DAILY, cls=WithJson)(status)
app.command(rich_help_panel=Panel.DAILY, cls=WithJson)(explain)
app.add_typer(run_app, name="run", rich_help_panel=Panel.DAILY)
app.command(rich_help_panel=Panel.DAILY)(runs)
app.command(rich_help_panel=Panel.DAILY)(report)
app.command(rich_help_panel=Panel.DAILY)(pause)
app.command(rich_help_panel=Panel.DAILY)(resume)
app.command(rich_help_panel=Panel.DAILY)(pauses)
app.command(rich_help_panel=Panel.FIRST, cls=WithJson)(check)
app.command("survey", rich_help_panel=Panel.FIRST)(jobs.job_command("survey"))
app.command("verify", rich_help_panel=Panel.FIRST)(jobs.job_command("verify"))
app.command(rich_help_panel=Panel.FIRST)(path)
app.add_typer(hold_app, name="hold", rich_help_panel=Panel.HISTORY)
app.add_typer(history_app, name="history", rich_help_panel=Panel.HISTORY)
app.command(rich_help_panel=Panel.DAILY)(jobs.why)
app.add_typer(sideline_app, name="sideline", rich_help_panel=Panel.MENDING)
app.command(rich_help_panel=Panel.MENDING)(jobs.restore)
app.command(rich_help_panel=Panel.MENDING)(resolve)
app.command(rich_help_panel=Panel.MENDING)(confirm)
app.command(rich_help_panel=Panel.MENDING)(forget)
app.add_typer(journal_app, name="journal", rich_help_panel=Panel.MENDING)
app.add_typer(commit_table_app, name="commit-table", rich_help_panel=Panel.MENDING)
app.add_typer(state_app, name="state", rich_help_panel=Panel.MENDING)
app.add_typer(ledger_app, name="ledger", rich_help_panel=Panel.LEDGER)
# The lab's commands, where it is installed with what it needs; by its name, for nothing of production imports it.
if all(map(find_spec, ("lowtide.lab", "httpx", "psutil"))):
    import_module("lowtide.lab.cli").add_to(app)


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
