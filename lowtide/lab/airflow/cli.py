"""``lowtide airflow``: the local Airflow from the command line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

from lowtide.cli.output import Output, OutputStyle
from lowtide.lab.airflow.config import load
from lowtide.lab.airflow.server import LocalAirflow
from lowtide.lab.parts import show
from lowtide.paths import data
from lowtide.terminal.console import new_console

app = typer.Typer(no_args_is_help=True, help="An Airflow on this machine with the DAGs: start it, look at it, stop it.")

console = new_console()


def default_home() -> Path:
    """``.lowtide/airflow`` in this checkout, or in the current folder."""
    return data() / "airflow"


Home = Annotated[
    Path,
    typer.Option(
        help="Folder of database, logs and process ids.", show_default=".lowtide/airflow", default_factory=default_home
    ),
]


@app.command()
def up(
    home: Home,
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Of the page and the API; as at the last start unless given.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Lowtide's configuration, for the DAGs; as at the last start unless given.")
    ] = None,
) -> None:
    """Start Airflow, or what of it does not run, and wait until its DAGs are loaded."""
    given: dict[str, Any] = {"port": port, "lowtide_config": config}
    given = {name: value for name, value in given.items() if value is not None}
    airflow = LocalAirflow(dataclasses.replace(load(home), **given))
    with console.status("looking"):
        airflow.up(console.print)
    show(console, airflow.status())
    console.print(f"{airflow.config.url}  user {airflow.user}, password {airflow.password}", soft_wrap=True)


@app.command()
def status(home: Home, output: OutputStyle = Output.TABLE) -> None:
    """Say what runs. Exit code 1 unless every part does."""
    if not show(console, LocalAirflow(load(home)).status(), output=output):
        raise typer.Exit(1)


@app.command()
def down(home: Home) -> None:
    """Stop Airflow and the tasks that run; its data stay."""
    airflow = LocalAirflow(load(home))
    airflow.down(console.print)
    show(console, airflow.status())
