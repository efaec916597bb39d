"""``lowtide check``: every hop from the configuration to Airflow, a line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from lowtide.check import airflow, driver, machine, records, servers
from lowtide.check.hops import OF_THE_STORE, Line, Look, Result, exit_code, through_gateway, walk
from lowtide.check.records import store_looks
from lowtide.cli.options import ConfigFile
from lowtide.cli.output import Output, OutputStyle, answer
from lowtide.config import Config, load, source
from lowtide.errors import LowtideError, UsageError
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore
from lowtide.terminal.console import new_console
from lowtide.values.durations import parse_duration

_SIGNS = {Result.OK: ("✓", "green"), Result.WRONG: ("✗", "bold red"), Result.NOT_CHECKED: ("-", "dim")}

console = new_console()
#: Of the CSV.
COLUMNS = ("hop", "title", "result", "text", "remedy")


def check(
    config: ConfigFile = None,
    output: OutputStyle = Output.TABLE,
    wait: Annotated[str, typer.Option(help="How long Spark may take, its start included: 90s, 5m.")] = "5m",
) -> None:
    """Check every hop from the configuration to Airflow: ok, or what is wrong and the remedy. Exit code 1: something
    is.

    Writes a row of its own to the state table and a file of its own into the sideline, and removes both.
    """
    try:
        limit = parse_duration(wait)
    except ValueError as error:
        raise UsageError(f"--wait: {error}") from None
    found: list[Line] = []
    # On a terminal alone: what is printed elsewhere is read by programs.
    spinner: AbstractContextManager[object] = (
        nullcontext() if output is not Output.TABLE else console.status("Spark starts, which takes some 20 s")
    )
    for line in _lines(config, limit, spinner):
        found.append(line)
        if output is Output.TABLE:  # each as soon as it is known
            _print(line)
    rows = [line.to_json() for line in found]
    answer(output, lambda: {"ok": not exit_code(found), "hops": rows}, COLUMNS, lambda: rows, lambda: None)
    raise typer.Exit(exit_code(found))


def _lines(file: Path | None, limit: timedelta, waiting: AbstractContextManager[object]) -> Iterator[Line]:
    """All lines, each as soon as it is known; *waiting*: shown while Spark works."""
    loaded: Config | None = None
    problem: LowtideError | None = None
    try:
        loaded = load(file)
    except LowtideError as error:
        problem = error

    def configuration() -> str:
        if loaded is None:
            raise problem or UsageError("the configuration cannot be read")
        return machine.configuration(loaded, source(file))

    config = loaded or Config()  # with a configuration that is wrong nothing of it is looked at
    known: list[Line] = []
    for line in lines_here(config, configuration):
        known.append(line)
        yield line
    with waiting:
        further = driver.look(config, file, known, limit.total_seconds())
    known += further
    yield from further
    yield from walk(_airflow_looks(config), known)


def lines_here(config: Config, configuration: Look) -> Iterator[Line]:
    """The lines of this machine, of the servers, and of what the gateway tells, if it is well: else a driver looks."""
    first: dict[str, Look] = {
        "configuration": configuration,
        "python": machine.python,
        "java": machine.java,
        "spark": machine.spark,
        "connector": partial(machine.connector, config),
        "zookeeper": partial(servers.zookeeper, config.hbase),
        "gateway": lambda: servers.gateway(config.hbase.thrift, airflow.wants_gateway(config)),
        "gateway-login": partial(servers.gateway_login, config.hbase),
        "oracle": partial(servers.oracle, config.omid),
    }
    known: list[Line] = []
    for line in walk(first):
        known.append(line)
        yield line
    with ExitStack() as held:
        looks = _gateway_looks(config, held)
        yield from walk(
            looks if through_gateway(known) else {n: look for n, look in looks.items() if n not in OF_THE_STORE}, known
        )


def _gateway_looks(config: Config, held: ExitStack) -> dict[str, Look]:
    """What looks at the hops of the store through the gateway."""

    @cache
    def connection() -> Any:
        return held.enter_context(connect(config.hbase.thrift, attempts=1))

    def state() -> StateStore:
        return StateStore(connection(), config.state.table)

    return {
        **store_looks(config, connection, state),
        "gateway-rights": lambda: records.gateway_rights(connection(), config),
    }


def _airflow_looks(config: Config) -> dict[str, Look]:
    @cache
    def found() -> airflow.Installed:
        return airflow.ask(airflow.python())

    def judged(judge: Callable[[airflow.Installed], str]) -> Look:
        return lambda: judge(found())

    return {
        "airflow": judged(lambda it: f"{it.version}, {it.home}"),
        "airflow-pool": judged(airflow.judge_pool),
        "airflow-connections": judged(lambda it: airflow.judge_connections(it, config)),
        "airflow-settings": judged(airflow.judge_settings),
    }


def _print(line: Line) -> None:
    sign, style = _SIGNS[line.result]
    console.print(Text.assemble((f"{sign} {line.title}: ", style), sentence(line)), soft_wrap=True)


def sentence(line: Line) -> str:
    """What is said of a hop, in one line."""
    if line.result is Result.NOT_CHECKED:
        return f"not checked, because {line.text}"
    between = ". " if line.remedy[:1].isupper() else "; "
    return f"{line.text}{between}{line.remedy}" if line.remedy else line.text
