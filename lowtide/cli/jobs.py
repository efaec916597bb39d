"""``lowtide run`` and the commands that submit one job: ``restore``, ``journal replay``, ``survey``, ``verify``."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from lowtide.cli.options import ConfigFile
from lowtide.config import load
from lowtide.run import installation
from lowtide.run.submit import command, environment, last_value, without_grace

#: How a row's key is given.
_AS_IN_THE_SHELL = r"as HBase's shell and lists of cells write it: \xNN is a byte"


def run(
    context: typer.Context, job: Annotated[str, typer.Argument(help="orphan_cleanup, watermark_collection, ...")]
) -> None:
    """Submit a job to Spark; further arguments go to it as they are (see docs/jobs.md). Ends with the job's exit code.

    A job's own options: lowtide run history_gc -- --help
    """
    if without_grace(job, context.args) and _on_a_terminal():
        typer.confirm(
            "Prune without grace? A client that is suspended between its commit and the answer then takes itself for "
            "aborted, and rolls back what others have read.",
            abort=True,
        )
    _submit(job, context.args)


def restore(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run whose removed cells are put back.")],
    config: ConfigFile = None,
    table: Annotated[list[str] | None, typer.Option(help="Only this table; may be given several times.")] = None,
    as_committed: Annotated[
        list[str] | None,
        typer.Option(
            metavar="START=COMMIT",
            help="This transaction committed after all, at that timestamp: its cells come back as committed, and the "
            "journal says so.",
        ),
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Put back; without it, count only.")] = False,
) -> None:
    """Put back what a run of orphan_cleanup or history_gc removed."""
    arguments = ["--restore", run_id, *(["--execute"] if execute else [])]
    for decision in as_committed or ():
        arguments += ["--as-committed", decision]
    _submit("sideline_restore", [*arguments, *_options({"--config": config}, table)])


def journal_replay(
    config: ConfigFile = None,
    since_snapshot: Annotated[
        str | None, typer.Option(metavar="NAME", help="What was pruned since this HBase snapshot was made.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="What was pruned since then: ISO 8601 with zone.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Put back; without it, count only.")] = False,
) -> None:
    """Put pruned entries back into the commit table, so that readers of a table that comes back from an HBase snapshot
    see all of it before it is cleaned.
    """
    given = _options({"--config": config, "--since-snapshot": since_snapshot, "--from": since}, None)
    _submit("journal_replay", [*given, *(["--execute"] if execute else [])])


def survey(
    config: ConfigFile = None,
    table: Annotated[list[str] | None, typer.Option(help="Only this table; may be given several times.")] = None,
    sample: Annotated[
        float | None, typer.Option(help="Read only this share of each table's regions, such as 0.1, and estimate.")
    ] = None,
    rate: Annotated[str | None, typer.Option(help="Read at most so many bytes a second, such as 20MB.")] = None,
    snapshot: Annotated[
        bool, typer.Option("--snapshot", help="Read HBase snapshots, made for it and dropped, not the live tables.")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="Write the findings there, as JSON.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page there.")] = None,
) -> None:
    """Say what a cleanup would find and do, and what to know before. Reads only: nothing is written to the store."""
    given = {"--config": config, "--sample": sample, "--rate": rate, "--json": json, "--html": html}
    _submit("survey", [*_options(given, table), *(["--snapshot"] if snapshot else [])])


def verify(
    config: ConfigFile = None,
    table: Annotated[list[str] | None, typer.Option(help="Only this table; may be given several times.")] = None,
    sample: Annotated[
        float | None, typer.Option(help="Read only this share of each table's regions, such as 0.1.")
    ] = None,
    rate: Annotated[str | None, typer.Option(help="Read at most so many bytes a second, such as 20MB.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write what was found there, as JSON.")] = None,
    before: Annotated[Path | None, typer.Option(help="Write there what random read points show.")] = None,
    after: Annotated[Path | None, typer.Option(help="Compare with what --before wrote there.")] = None,
) -> None:
    """Verify, by code of its own, that the store keeps its invariants. Reads only; exit 1: one is broken, 2:
    something could not be read.
    """
    given = {
        "--config": config,
        "--sample": sample,
        "--rate": rate,
        "--json": json,
        "--before": before,
        "--after": after,
    }
    _submit("verify", _options(given, table))


def sideline_list(
    config: ConfigFile = None,
    table: Annotated[list[str] | None, typer.Option(help="Only this table; may be given several times.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the same there, as JSON.")] = None,
) -> None:
    """The runs whose removed cells are kept: their tables, how many cells and bytes, until when. Starts Spark, which
    reads the folder wherever it lies.
    """
    _submit("sideline", _options({"--config": config, "--json": json}, table))


def sideline_show(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A run that `lowtide sideline list` names.")],
    config: ConfigFile = None,
    table: Annotated[list[str] | None, typer.Option(help="Only this table; may be given several times.")] = None,
    row: Annotated[str | None, typer.Option(help=f"Only this row, {_AS_IN_THE_SHELL}.")] = None,
    first: Annotated[int, typer.Option(min=1, help="At most so many cells.")] = 100,
    json: Annotated[Path | None, typer.Option(help="Write the same there, as JSON.")] = None,
) -> None:
    """The cells that a run put aside before it removed them, each with the rule and what that went by. Values are not
    shown. Starts Spark.
    """
    given = {"--config": config, "--show": run_id, "--first": first, "--json": json}
    _submit("sideline", [*_options(given, table), *_row(row)])


def why(
    table: Annotated[str, typer.Argument(metavar="TABLE")],
    row: Annotated[str, typer.Argument(metavar="ROW", help=f"The row's key, {_AS_IN_THE_SHELL}.")],
    config: ConfigFile = None,
    json: Annotated[Path | None, typer.Option(help="Write the same there, as JSON.")] = None,
) -> None:
    """Of every cell of a row, there or gone: what it is, what becomes of it or became, by which rule, which proof and
    which run, and how it comes back.

    Decided as the jobs decide. Starts Spark, and where a cell lacks its proof looks for it in every transactional
    table, as they do. Writes nothing.
    """
    _submit("why", [*_options({"--config": config, "--json": json}, [table]), *_row(row)])


def _row(row: str | None) -> list[str]:
    return [] if row is None else [f"--row={row}"]  # in one word: a key may begin like an option


def _on_a_terminal() -> bool:
    return sys.stdin.isatty()


def _options(given: Mapping[str, object], tables: Sequence[str] | None) -> list[str]:
    """The options of a job that were given, and its tables."""
    named = [(name, str(value)) for name, value in given.items() if value is not None]
    return [part for pair in (*named, *(("--table", table) for table in tables or ())) for part in pair]


def _submit(job: str, arguments: list[str]) -> None:
    file = last_value(arguments, "--config")
    config = load(Path(file) if file else None)  # one that is missing is for the job to say
    program = command(config, job, arguments)
    for line in installation.find(os.environ).told():
        typer.echo(line, err=True)
    done = subprocess.run(program, env=environment(config), check=False)
    raise typer.Exit(done.returncode)
