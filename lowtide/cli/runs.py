"""``lowtide runs``: the last runs, and what each did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from lowtide.cli.configuration import configured
from lowtide.cli.options import ConfigFile
from lowtide.cli.output import Output, OutputStyle, answer
from lowtide.run.summary import BY_HAND, DONE, WORDS, ran_by
from lowtide.store.state import opened
from lowtide.terminal.console import new_console
from lowtide.terminal.tables import new_table, print_table
from lowtide.values.clock import SampledClock, WorldClock, from_millis, is_world
from lowtide.values.text import size_text, timestamp_text

console = new_console()

#: Of the CSV: a run, and its counters.
COLUMNS = ("run", "job", "started", "execute", "state", "seconds", *DONE, "by", "problems")


def runs(
    config: ConfigFile = None,
    job: Annotated[str | None, typer.Option(help="Only runs of this job.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20,
    output: OutputStyle = Output.TABLE,
) -> None:
    """The last runs and what they did."""
    with opened(configured(config)) as state:
        found = state.runs(limit, job)
    answer(output, lambda: found, COLUMNS, lambda: map(row, found), lambda: print_runs(console, found))


def print_runs(console: Console, runs: Sequence[dict[str, Any]]) -> None:
    """One run after the other."""
    if not runs:
        console.print("No run was kept yet.")
        return
    titles = ("run", "job", "started (UTC)", "kind", "seconds", "done, or would be", "by", "result")
    grid = new_table("Runs", *titles, numbers=["seconds"], whole=["started (UTC)", "kind"])
    for r in runs:
        problems = problems_of(r)
        grid.add_row(
            r["run"],
            r["job"],
            _started(r),
            "executed" if r["execute"] else "dry run",
            f"{r['seconds']:.1f}",
            done_text(r),
            ran_by(r),
            Text("done", "green")
            if r["state"] == "done"
            else Text.assemble((f"{len(problems)} problem(s)", "red"), f": {problems[0] if problems else ''}"),
        )
    print_table(console, grid)


def row(run: Mapping[str, Any]) -> dict[str, Any]:
    """A run as a line of CSV: its counts over all tables, and a list of its problems."""
    about = {"started": from_millis(run["started"]).isoformat(), "by": ran_by(run), "problems": problems_of(run)}
    return {**dict.fromkeys(DONE, 0), **run, **run["totals"], **about}


def problems_of(run: Mapping[str, Any]) -> list[str]:
    """All of a run's problems, those of tables too."""
    return [*run["problems"], *(problem for table in run["tables"] for problem in table["problems"])]


def _started(run: Mapping[str, Any]) -> str:
    return f"{from_millis(run['started']):%Y-%m-%d %H:%M:%S}"


def done_text(run: Mapping[str, Any]) -> str:
    """What a run did, in words: every counter of its summary that is not 0, and of a collection the bound."""
    if run["run"].startswith(BY_HAND):
        return "; ".join(run["notes"])
    totals = run["totals"]  # of a run of an earlier version it may lack counters
    told = [name for name in DONE if totals.get(name)]
    words = [f"{totals[name]:,} {WORDS[name]}" for name in told if name != "bytes_removed"]
    if "bytes_removed" in told:
        words.append(size_text(totals["bytes_removed"]))
    if run["job"] == "watermark_collection" and run["bound"] is not None:
        words.append(
            f"prune bound {timestamp_text(run['bound'], WorldClock() if is_world(run['bound']) else SampledClock(()))}"
        )
    return ", ".join(words)
