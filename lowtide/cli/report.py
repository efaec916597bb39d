"""``lowtide report``: the page of any store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from lowtide.cli.configuration import configured
from lowtide.cli.options import ConfigFile
from lowtide.health.reader import read_through
from lowtide.report.contents import job_run, last_days, observation
from lowtide.report.observation import Report
from lowtide.report.page import render
from lowtide.report.scans import commit_rows
from lowtide.report.terminal import print_report
from lowtide.run.writable import check_writable
from lowtide.store.gateway import connect
from lowtide.terminal.console import new_console

console = new_console()


def report(
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("lowtide-report.html"),
    config: ConfigFile = None,
    days: Annotated[int, typer.Option(min=1, help="How many past days to show.")] = 7,
    runs: Annotated[int, typer.Option(min=0, help="How many runs to show, newest first.")] = 30,
    commit_table: Annotated[
        bool, typer.Option("--commit-table", help="Count the commit table's rows: reads all of it through the gateway.")
    ] = False,
) -> None:
    """Write an HTML page about the store as it is now: region watermarks, prune bound, what was done. Reads only."""
    check_writable("--out", out)
    settings = configured(config)
    now = datetime.now(UTC)
    with connect(settings.hbase.thrift) as connection:
        reading = read_through(connection, settings, now, runs)
        store = observation(reading)
        past = last_days(reading.clock, now.date(), days)
        if commit_table:
            store = replace(store, commit_table=commit_rows(connection, settings, past))
    done = tuple(job_run(summary, past) for summary in reading.runs)
    found = Report("The store as it is now", now, store, days=past, runs=done)
    print_report(console, found)
    out.write_text(render(found), "utf-8")
    console.print(f"The page: {out}", soft_wrap=True)
