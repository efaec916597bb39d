"""The commands, one function each; what they print comes from the modules they call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from lowtide import __version__, paths
from lowtide.cli.console import new_console
from lowtide.cli.health import explain, status
from lowtide.cli.history import history_app, hold_app
from lowtide.cli.ledger import app as ledger_app
from lowtide.cli.options import ConfigFile
from lowtide.cli.report import report
from lowtide.cli.runs import runs
from lowtide.cli.undoing import confirm, forget, journal_app, resolve
from lowtide.config import Config, load, source
from lowtide.errors import WatermarkError
from lowtide.run.submit import command, environment, without_grace
from lowtide.run.summary import by_hand
from lowtide.store import reset
from lowtide.store.gateway import connect, low_watermark
from lowtide.store.state import StateStore


class Place(StrEnum):
    """What ``lowtide path`` knows."""

    DAGS = "dags"
    SPARK_APPS = "spark_apps"
    CONNECTOR = "connector"


app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help="Maintenance for transactional HBase.")
# The lab's commands, where it is installed with what it needs; by its name, for nothing of production imports it.
if all(map(find_spec, ("lowtide.lab", "httpx", "psutil"))):
    import_module("lowtide.lab.cli").add_to(app)
app.add_typer(ledger_app, name="ledger")
state_app = typer.Typer(no_args_is_help=True, help="Lowtide's own records.")
app.add_typer(state_app, name="state")
app.add_typer(hold_app, name="hold")
app.add_typer(history_app, name="history")
app.command()(report)
app.command()(status)
app.command()(explain)
app.command()(runs)
app.add_typer(journal_app, name="journal")
app.command()(confirm)
app.command()(forget)
app.command()(resolve)

console = new_console()


def _version(wanted: bool) -> None:
    if wanted:
        console.print(f"lowtide {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Maintenance for transactional HBase."""


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
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


@app.command()
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


@journal_app.command("replay")
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


@app.command()
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


@app.command()
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


def _on_a_terminal() -> bool:
    return sys.stdin.isatty()


def _options(given: Mapping[str, object], tables: Sequence[str] | None) -> list[str]:
    """The options of a job that were given, and its tables."""
    named = [(name, str(value)) for name, value in given.items() if value is not None]
    return [part for pair in (*named, *(("--table", table) for table in tables or ())) for part in pair]


def _submit(job: str, arguments: list[str]) -> None:
    named = (
        arguments[arguments.index("--config") + 1 : arguments.index("--config") + 2] if "--config" in arguments else []
    )
    config = load(Path(named[0]) if named else None)
    done = subprocess.run(command(config, job, arguments), env=environment(), check=False)
    raise typer.Exit(done.returncode)


@app.command()
def path(what: Annotated[Place, typer.Argument(help="Which folder.")]) -> None:
    """Print the folder of the DAG files (for Airflow), of the Spark programs, or of the connector's jars."""
    typer.echo({Place.DAGS: paths.dags, Place.SPARK_APPS: paths.spark_apps, Place.CONNECTOR: paths.connector}[what]())


@state_app.command("reset")
def state_reset(
    config: ConfigFile = None,
    same_oracle: Annotated[
        bool,
        typer.Option(
            "--same-oracle",
            help="It lost no timestamps, only the commit table came back from a backup: the journal stays a proof.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Forget all recorded ranges, bounds and time samples, after the oracle was made anew; all is then cleaned again
    from 0.

    What was journaled before decides nothing any more, except with --same-oracle. Refused, with what is to be done,
    while the low watermark is below one that was recorded.
    """
    loaded = load(config)
    with _state(loaded) as state:
        _check_reset(loaded, state)
    if not yes:
        typer.confirm(f"Forget every recorded watermark in {loaded.state.table}?", abort=True)
    with _state(loaded) as state:
        state.reset(same_oracle=same_oracle)
        if state.exists():
            oracle = ", of the same oracle" if same_oracle else ""
            note = f"forgot what was recorded of all tables{oracle}"
            state.add_run(by_hand("state reset", note, source(config)).to_json())
    console.print("Forgotten. The next orphan_cleanup reads from 0.")


def _check_reset(config: Config, state: StateStore) -> None:
    """Refuse to reset while the oracle gives numbers that it has given before."""
    recorded = state.recorded_low_watermark()
    if recorded is None:
        return
    with connect(config.hbase.thrift) as connection:
        current = low_watermark(connection, config)
    own = (config.state.table, config.state.journal_table)
    if why := reset.refusal(recorded.low_watermark, current, config.omid.timestamp_table, own):
        raise WatermarkError(why)


@contextmanager
def _state(config: Config) -> Iterator[StateStore]:
    with connect(config.hbase.thrift) as connection:
        yield StateStore(connection, config.state.table)
