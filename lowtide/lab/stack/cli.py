"""``lowtide stack``: the embedded store from the command line."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from lowtide.cli.output import Output, OutputStyle
from lowtide.lab.parts import show
from lowtide.lab.stack.config import MOST_REGION_SERVERS, load
from lowtide.lab.stack.stack import Stack
from lowtide.paths import store
from lowtide.terminal.console import new_console

app = typer.Typer(no_args_is_help=True, help="An HBase store with Omid on this machine: start it, look at it, stop it.")

console = new_console()


class Clock(StrEnum):
    """The oracle's clocks."""

    WORLD = "world"
    INCREMENTAL = "incremental"


class Gateway(StrEnum):
    """What the gateway of a secured store asks of its clients."""

    OPEN = "open"
    AUTH = "auth"
    INTEGRITY = "auth-int"
    PRIVACY = "auth-conf"
    HTTP = "http"
    HTTPS = "https"


class HBaseLine(StrEnum):
    """Lines of HBase's releases."""

    OLD = "2.5"
    NEW = "2.6"


Home = Annotated[
    Path,
    typer.Option(help="Folder of data, logs and process ids.", show_default=".lowtide/store", default_factory=store),
]
Port = Annotated[int | None, typer.Option(metavar="PORT", help="As at the last start unless given.")]


@app.command()
def up(
    home: Home,
    timestamps: Annotated[
        Clock | None,
        typer.Option(metavar="CLOCK", help="The oracle's clock, world or incremental; fixed once there are data."),
    ] = None,
    zookeeper_port: Port = None,
    thrift_port: Port = None,
    tso_port: Port = None,
    conflict_map_size: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="Written cells that the oracle remembers.", show_default="1000"),
    ] = None,
    region_servers: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            max=MOST_REGION_SERVERS,
            help="ZooKeeper, the master and so many region servers, a process each. 0: HBase is one process.",
            show_default="0",
        ),
    ] = None,
    hbase: Annotated[
        HBaseLine | None,
        typer.Option(
            metavar="LINE",
            help="The release of HBase (2.5: make hbase-2.5); not older once there are data.",
            show_default="2.6",
        ),
    ] = None,
    phoenix: Annotated[
        bool | None, typer.Option("--phoenix/--no-phoenix", help="With Apache Phoenix (its jars: make phoenix).")
    ] = None,
    secured: Annotated[
        bool | None,
        typer.Option(
            "--secured/--no-secured", help="With logins by Kerberos and checked permissions (its jars: make secured)."
        ),
    ] = None,
    gateway: Annotated[
        Gateway | None,
        typer.Option(
            metavar="KIND",
            help="What a secured store's gateway asks for: nothing (open), a login by SASL (auth, auth-int, "
            "auth-conf), or by SPNEGO (http, https).",
            show_default="auth-conf",
        ),
    ] = None,
    kdc_port: Port = None,
) -> None:
    """Start the store, or what of it does not run, and wait until it answers."""
    given: dict[str, Any] = {
        "timestamps": timestamps.value if timestamps else None,
        "zookeeper_port": zookeeper_port,
        "thrift_port": thrift_port,
        "tso_port": tso_port,
        "conflict_map_size": conflict_map_size,
        "region_servers": region_servers,
        "hbase": hbase.value if hbase else None,
        "phoenix": phoenix,
        "secured": secured,
        "gateway": gateway.value if gateway else None,
        "kdc_port": kdc_port,
    }
    config = dataclasses.replace(load(home), **{name: value for name, value in given.items() if value is not None})
    stack = Stack(config)
    with console.status("looking"):
        stack.up(console.print)
    show(console, stack.status(), stack.config.ports)


@app.command()
def status(home: Home, output: OutputStyle = Output.TABLE) -> None:
    """Say what runs. Exit code 1 unless every part does."""
    stack = Stack(load(home))
    if not show(console, stack.status(), stack.config.ports, output=output):
        raise typer.Exit(1)


@app.command()
def down(home: Home) -> None:
    """Stop the store; its data stay."""
    stack = Stack(load(home))
    stack.down(console.print)
    show(console, stack.status(), stack.config.ports)
