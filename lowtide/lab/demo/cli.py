"""``lowtide demo``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lowtide.errors import LowtideError
from lowtide.lab.demo.settings import DemoSettings, end
from lowtide.lab.demo.story import tell_story
from lowtide.lab.stack.cli import HBaseLine
from lowtide.report.terminal import print_headline
from lowtide.terminal.console import new_console

console = new_console()
_DEFAULTS = DemoSettings()

Port = Annotated[int, typer.Option(min=1, max=65535, metavar="PORT")]


def demo(
    home: Annotated[
        Path, typer.Option(help="Folder of everything that the demo makes.", show_default=".lowtide/demo")
    ] = _DEFAULTS.home,
    seed: Annotated[int, typer.Option(help="Of the workload: the same seed makes the same script.")] = _DEFAULTS.seed,
    transactions: Annotated[int, typer.Option(min=70, help="Spread over the days.")] = _DEFAULTS.transactions,
    days: Annotated[int, typer.Option(min=1, max=30, help="Past days.")] = _DEFAULTS.days,
    snapshots: Annotated[int, typer.Option(min=1, help="Read points compared with the model.")] = _DEFAULTS.snapshots,
    zookeeper_port: Port = _DEFAULTS.zookeeper_port,
    thrift_port: Port = _DEFAULTS.thrift_port,
    tso_port: Port = _DEFAULTS.tso_port,
    airflow_port: Port = _DEFAULTS.airflow_port,
    hbase: Annotated[
        HBaseLine, typer.Option(metavar="LINE", help="The release of HBase (2.5: make hbase-2.5).")
    ] = HBaseLine.NEW,
    down: Annotated[bool, typer.Option("--down", help="End what the demo left running, and nothing else.")] = False,
) -> None:
    """Crash clients in a store of its own, clean it through Airflow, prove the result, write a report. Takes some
    minutes.

    Store and Airflow stay up afterwards, to look around in; the next demo starts with a new store.
    """
    settings = DemoSettings(
        home=home,
        zookeeper_port=zookeeper_port,
        thrift_port=thrift_port,
        tso_port=tso_port,
        airflow_port=airflow_port,
        seed=seed,
        days=days,
        transactions=transactions,
        snapshots=snapshots,
        hbase=hbase.value,
    )
    if down:
        end(settings, console.print)
        console.print(f"Nothing of the demo in {settings.home} runs any more.")
        return
    try:
        report = tell_story(settings, console)
    except (LowtideError, KeyboardInterrupt):
        said = f"\nStopped half-way. What was started still runs; end it with: {settings.end_command}"
        console.print(Text(said, "yellow"))
        raise
    console.print()
    print_headline(console, report)
    onward = Table.grid(padding=(0, 2))
    for what, command in (("The report", settings.shown(settings.page)), *report.commands):
        onward.add_row(Text(what, "bold"), command)
    console.print()
    console.print(onward)
    if report.faults:
        raise typer.Exit(1)
