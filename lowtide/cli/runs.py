"""``lowtide runs``: the last runs, and what each did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lowtide.cli.console import new_console
from lowtide.cli.options import ConfigFile
from lowtide.config import load
from lowtide.run.summary import BY_HAND, ran_by
from lowtide.store.state import opened
from lowtide.values.clock import SampledClock, WorldClock, from_millis, is_world
from lowtide.values.text import size_text, timestamp_text

console = new_console()

#: The counters of a summary for what was done (:data:`lowtide.run.summary.DONE`) in words; bytes are their own.
WORDS = {
    "healed": "healed",
    "marked": "invalidated",
    "unmarked": "invalidations taken back",
    "deleted": "removed",
    "markers": "delete markers",
    "pruned": "pruned",
    "restored": "restored",
    "finished": "finished",
    "dropped": "dropped",
    "failed": "failed",
}


def runs(
    config: ConfigFile = None,
    job: Annotated[str | None, typer.Option(help="Only runs of this job.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 20,
) -> None:
    """The last runs and what they did."""
    loaded = load(config)
    with opened(loaded) as state:
        found = state.runs(limit, job)
    print_runs(console, found)


def print_runs(console: Console, runs: Sequence[dict[str, Any]]) -> None:
    """One line a run."""
    grid = Table(title="Runs", title_justify="left")
    for column in ("started (UTC)", "job", "run", "", "seconds", "what was done, or would be", "by", "result"):
        grid.add_column(column, justify="right" if column == "seconds" else "left", overflow="fold")
    for r in runs:
        problems = [*r["problems"], *(p for t in r["tables"] for p in t["problems"])]
        grid.add_row(
            f"{from_millis(r['started']):%Y-%m-%d %H:%M:%S}",
            r["job"],
            r["run"],
            "executed" if r["execute"] else "dry run",
            f"{r['seconds']:.1f}",
            done_text(r),
            ran_by(r),
            Text("done", "green")
            if r["state"] == "done"
            else Text.assemble((f"{len(problems)} problem(s)", "red"), f": {problems[0] if problems else ''}"),
        )
    console.print(grid)


def done_text(run: Mapping[str, Any]) -> str:
    """What a run did, in words: every counter of its summary that is not 0, and of a collection the bound."""
    if run["run"].startswith(BY_HAND):
        return "; ".join(run["notes"])
    totals = run["totals"]  # of a run of an earlier version it may lack counters
    words = [f"{totals[name]:,} {word}" for name, word in WORDS.items() if totals.get(name)]
    if totals.get("bytes_removed"):
        words.append(size_text(totals["bytes_removed"]))
    if run["job"] == "watermark_collection" and run["bound"] is not None:
        words.append(
            f"prune bound {timestamp_text(run['bound'], WorldClock() if is_world(run['bound']) else SampledClock(()))}"
        )
    return ", ".join(words)
