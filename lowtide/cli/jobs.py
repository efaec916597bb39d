"""``lowtide run`` and the commands that submit one job: ``restore``, ``journal replay``, ``survey``, ``verify``.

Of a job's options, :mod:`lowtide.run.options` knows all: the commands offer them, and what was given is understood as
the job's program will understand it, before a JVM starts.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from lowtide.cli import job_rows
from lowtide.cli.configuration import configured_to_act
from lowtide.cli.options import ConfigFile
from lowtide.cli.output import Output, OutputStyle, answer
from lowtide.config import Config
from lowtide.run import child, installation
from lowtide.run.arguments import arguments, understood, without_grace
from lowtide.run.jobs import INSPECTIONS, JOBS
from lowtide.run.options import Option, options_of
from lowtide.run.submit import command, environment
from lowtide.terminal.console import asks, for_children, note

#: Where the inspections write what they found, which is more than their summary.
_ANSWERS = dict.fromkeys(INSPECTIONS, "json")
_LOG_LEVEL = "spark.log.level"
_OUTPUT = Parameter("output", Parameter.KEYWORD_ONLY, default=Output.TABLE, annotation=OutputStyle)

#: How a row's key is given.
_AS_IN_THE_SHELL = r"as HBase's shell and lists of cells write it: \xNN is a byte"


def job_command(job: str) -> Callable[..., None]:
    """The command that submits *job*, with every option that the job takes; typer makes its help of the signature."""

    def submitted(*, output: Output, **given: Any) -> None:
        submit(job, list(words(job, given)), output)

    parameters = [*(_parameter(option) for option in options_of(job)), _OUTPUT]
    submitted.__doc__ = JOBS[job]
    submitted.__annotations__ = {p.name: p.annotation for p in parameters}
    submitted.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return submitted


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
    output: OutputStyle = Output.TABLE,
) -> None:
    """Put back what a run of orphan_cleanup or history_gc removed."""
    given = {"restore": run_id, "config": config, "table": table, "as_committed": as_committed, "execute": execute}
    submit("sideline_restore", list(words("sideline_restore", given)), output)


def journal_replay(
    config: ConfigFile = None,
    since_snapshot: Annotated[
        str | None, typer.Option(metavar="NAME", help="What was pruned since this HBase snapshot was made.")
    ] = None,
    since: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="What was pruned since then: ISO 8601 with zone.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Put back; without it, count only.")] = False,
    output: OutputStyle = Output.TABLE,
) -> None:
    """Put pruned entries back into the commit table, so that readers of a table that comes back from an HBase snapshot
    see all of it before it is cleaned.
    """
    given = {"config": config, "since_snapshot": since_snapshot, "start": since, "execute": execute}
    submit("journal_replay", list(words("journal_replay", given)), output)


def sideline_list(
    config: ConfigFile = None,
    table: Annotated[list[str] | None, typer.Option(help="Only this table; may be given several times.")] = None,
    output: OutputStyle = Output.TABLE,
) -> None:
    """The runs whose removed cells are kept: their tables, how many cells and bytes, until when. Starts Spark, which
    reads the folder wherever it lies.
    """
    submit("sideline", list(words("sideline", {"config": config, "table": table})), output)


def sideline_show(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="A run that `lowtide sideline list` names.")],
    config: ConfigFile = None,
    table: Annotated[list[str] | None, typer.Option(help="Only this table; may be given several times.")] = None,
    row: Annotated[str | None, typer.Option(help=f"Only this row, {_AS_IN_THE_SHELL}.")] = None,
    first: Annotated[int, typer.Option(min=1, help="At most so many cells.")] = 100,
    output: OutputStyle = Output.TABLE,
) -> None:
    """The cells that a run put aside before it removed them, each with the rule and what that went by. Values are not
    shown. Starts Spark.
    """
    given = {"config": config, "table": table, "show": run_id, "row": row, "first": first}
    submit("sideline", list(words("sideline", given)), output)


def why(
    table: Annotated[str, typer.Argument(metavar="TABLE")],
    row: Annotated[str, typer.Argument(metavar="ROW", help=f"The row's key, {_AS_IN_THE_SHELL}.")],
    config: ConfigFile = None,
    output: OutputStyle = Output.TABLE,
) -> None:
    """Of every cell of a row, there or gone: what it is, what becomes of it or became, by which rule, which proof and
    which run, and how it comes back.

    Decided as the jobs decide. Starts Spark, and where a cell lacks its proof looks for it in every transactional
    table, as they do. Writes nothing.
    """
    submit("why", list(words("why", {"config": config, "table": [table], "row": row})), output)


def words(job: str, given: Mapping[str, Any]) -> Iterator[str]:
    """The arguments of *job*, as its program takes them, for the values *given* by attribute: None, or no value, is not
    given; of a list each is.
    """
    for option in options_of(job):
        value = given.get(option.attribute)
        if value is True:
            yield option.name
        elif value is not None and value is not False:
            for each in value if isinstance(value, (list, tuple)) else (value,):
                yield f"{option.name}={each}"


def submit(job: str, argv: list[str], output: Output = Output.TABLE) -> None:
    """Run *job* on Spark, print what it did in the style *output*, and end with its exit code.

    As JSON it is the summary, or what an inspection found; as CSV the counts of each table, or an inspection's tables
    or violations. All that the driver prints goes to stderr then.

    Raises:
        UsageError: what the job's program would refuse.
    """
    options = arguments(job, argv)
    understood(job, options, options.run_id or "", datetime.now(UTC))
    config = configured_to_act(options.config, by_gateway=False)
    if without_grace(options) and asks():
        typer.confirm(
            "Prune without grace? A client that is suspended between its commit and the answer then takes itself for "
            "aborted, and rolls back what others have read.",
            abort=True,
        )
    for line in installation.find(os.environ).told():
        note(line)
    if output is Output.TABLE:
        terminal = for_children()
        program = command(quiet(config) if terminal else config, job, argv)
        raise typer.Exit(child.run(program, {**environment(config), **terminal}, stopping=partial(_stopping, job)))
    option = _ANSWERS.get(job, "summary")
    with TemporaryDirectory(prefix="lowtide-") as folder:
        named = getattr(options, option)
        file = named or Path(folder) / "answer.json"
        before = _written(file)
        program = command(config, job, argv if named else [*argv, f"--{option}={file}"])
        code = child.run(program, environment(config), stdout=sys.stderr, stopping=partial(_stopping, job))
        if _written(file) != before:  # where Spark does not start nothing is
            found = json.loads(file.read_text("utf-8"))
            columns, rows = job_rows.of(job, found)
            answer(output, lambda: found, columns, lambda: rows, lambda: None)
    raise typer.Exit(code)


def _stopping(job: str) -> None:
    note(
        f"{job} was told to stop, and is killed if it has not in {child.PATIENCE:.0f} s. What was done until then is "
        "safe, each step by itself; run it again, and it does the rest"
    )


def quiet(config: Config) -> Config:
    """*config* with which Spark tells of what is wrong alone, unless it says itself how much is to be told: hundreds of
    lines a run are for a log, not for a terminal on which a job says how far it is.
    """
    conf = {_LOG_LEVEL: "WARN", **config.spark.conf}
    return config.model_copy(update={"spark": config.spark.model_copy(update={"conf": conf})})


def _written(file: Path) -> tuple[int, int] | None:
    """What tells a file from the one that is written in its place; None: there is none."""
    try:
        about = file.stat()
    except FileNotFoundError:
        return None
    return about.st_ino, about.st_mtime_ns


def _parameter(option: Option) -> Parameter:
    text = f"{option.text[0].upper()}{option.text[1:]}."
    about: dict[str, Any] = {"help": text, "rich_help_panel": option.panel or None, "show_default": False}
    if not option.metavar:
        kind: Any = Annotated[bool, typer.Option(option.name, **about)]
        return Parameter(option.attribute, Parameter.KEYWORD_ONLY, default=False, annotation=kind)
    # As text: the program's own parser makes a value of it, and says what is wrong with it.
    value: Any = Path if option.parse is Path else str
    value = list[value] if option.several else value
    kind = Annotated[value | None, typer.Option(option.name, metavar=option.metavar, **about)]
    return Parameter(option.attribute, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
