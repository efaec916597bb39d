"""The lab's commands of ``lowtide``: ``stack``, ``airflow`` and ``demo``. ``lowtide.cli.app`` adds them."""

from __future__ import annotations

import typer

from lowtide.cli.panels import Panel
from lowtide.lab.airflow.cli import app as airflow_app
from lowtide.lab.demo.cli import demo
from lowtide.lab.stack.cli import app as stack_app


def add_to(app: typer.Typer) -> None:
    """Add the lab's commands to *app*. Their errors are LowtideErrors, as those of the others."""
    app.command(rich_help_panel=Panel.LAB)(demo)
    app.add_typer(stack_app, name="stack", rich_help_panel=Panel.LAB)
    app.add_typer(airflow_app, name="airflow", rich_help_panel=Panel.LAB)
