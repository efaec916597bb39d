"""``lowtide report``: the page of any store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from lowtide.cli.screen import screen
from lowtide.config import load
from lowtide.report.observation import Report
from lowtide.report.observe import clock_of, commit_rows, job_run, last_days, observe
from lowtide.report.page import render
from lowtide.report.terminal import print_report
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore

console = screen()


def report(
    out: Annotated[Path, typer.Option(help="The HTML file to write.")] = Path("lowtide-report.html"),
    config: Annotated[Path | None, typer.Option(help="The configuration file.", show_default=False)] = None,
    days: Annotated[int, typer.Option(min=1, help="How many past days to tell apart.")] = 7,
    runs: Annotated[int, typer.Option(min=0, help="How many runs to show, newest first.")] = 30,
    commit_table: Annotated[
        bool, typer.Option("--commit-table", help="Count the commit table's rows: reads all of it through the gateway.")
    ] = False,
) -> None:
    """Write an HTML page about the store as it is now: region watermarks, prune bound, what was done. Reads only."""
    settings = load(config)
    now = datetime.now(UTC)
    with connect(settings.hbase.thrift) as connection:
        state = StateStore(connection, settings.state.table)
        seen = observe(connection, settings)
        told = last_days(clock_of(settings, state, seen.low_watermark), now.date(), days)
        if commit_table:
            seen = replace(seen, commit_table=commit_rows(connection, settings, told))
        done = tuple(job_run(summary, told) for summary in state.runs(runs)) if runs else ()
    found = Report("The store as it is now", now, seen, days=told, runs=done)
    out.write_text(render(found), "utf-8")
    print_report(console, found)
    console.print(f"The page: {out}")
