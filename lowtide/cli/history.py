"""``lowtide hold`` and ``lowtide history``: what keeps history, and how far it reaches back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.text import Text

from lowtide.cli.by_hand import keep
from lowtide.cli.configuration import configured, configured_to_act
from lowtide.cli.options import ConfigFile, Yes, ask
from lowtide.cli.output import Output, OutputStyle, WithJson, answer
from lowtide.config import Config
from lowtide.errors import FormatError, GatewayError, UsageError
from lowtide.health import HistoryStatus, Reading, history_statuses
from lowtide.health.history import kept_back
from lowtide.health.reader import read
from lowtide.history.advice import advise, bucket, bytes_a_day
from lowtide.history.holding import clock_of, read_point_at, release, take
from lowtide.history.mark import Hold
from lowtide.run.summary import myself
from lowtide.store.state import opened
from lowtide.terminal.console import new_console
from lowtide.terminal.tables import new_table, print_table
from lowtide.values.durations import duration_text, parse_duration, parse_time
from lowtide.values.text import moment_text, time_text

hold_app = typer.Typer(no_args_is_help=True, help="Keep history that a reader needs.")
history_app = typer.Typer(no_args_is_help=True, help="How far tables can be read back.")

console = new_console()
#: Of the CSV; times are ms since 1970.
HOLD_COLUMNS = ("table", "id", "timestamp", "owner", "reason", "taken", "expires")
MARK_COLUMNS = ("table", "mode", "applied", "applied_at", "run", "kept_back_by")
ADVICE_COLUMNS = ("table", "age", "refused", "bytes")
TableName = Annotated[str, typer.Argument(metavar="TABLE")]


@hold_app.command("add")
def hold_add(
    table: TableName,
    reason: Annotated[str, typer.Option(help="For whoever asks why a mark stands still.")],
    config: ConfigFile = None,
    at: Annotated[
        str | None,
        typer.Option(help="The read point: an ISO 8601 time with zone, or the oracle's timestamp. Now, if left out."),
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Whom to ask; you, if left out.", show_default=False)] = None,
    lasting: Annotated[str, typer.Option("--for", help="How long, as in 2h; hold_max_age at most.")] = "1h",
    output: OutputStyle = Output.TABLE,
) -> None:
    """Hold a table's history from a read point on, until it is released or expires. Prints the hold's id."""
    loaded = configured_to_act(config)
    try:
        duration = parse_duration(lasting)
    except ValueError as error:
        msg = f"--for: {error}"
        raise UsageError(msg) from None
    held = take(
        loaded,
        table,
        None if at is None else read_point_of(loaded, at),
        owner=myself() if owner is None else owner,
        reason=reason,
        lasting=duration,
    )
    said = f"{held.id} holds {table} from {held.timestamp} on, until {held.expires:%Y-%m-%d %H:%M:%S} UTC"
    answer(output, held.to_json, HOLD_COLUMNS, lambda: [held.to_json()], lambda: console.print(said, soft_wrap=True))


@hold_app.command("list")
def hold_list(
    config: ConfigFile = None,
    table: Annotated[str | None, typer.Option(help="Only holds on this table.", show_default=False)] = None,
    output: OutputStyle = Output.TABLE,
) -> None:
    """The holds there are, and which of them have expired."""
    with opened(configured(config)) as state:
        found = state.holds(table)
    now = datetime.now(UTC)
    rows = [held.to_json() | {"counts": held.counts(now)} for held in found]
    answer(output, lambda: rows, (*HOLD_COLUMNS, "counts"), lambda: rows, lambda: _print_holds(found, now))


@hold_app.command("release")
def hold_release(
    table: TableName,
    identity: Annotated[str, typer.Argument(metavar="ID", help="As `lowtide hold list` shows it.")],
    config: ConfigFile = None,
    yes: Yes = False,
) -> None:
    """Let go of a hold: the next run of history_gc may move the mark on. Asks before it lets go of somebody else's."""
    loaded = configured_to_act(config)
    _ask_for(loaded, table, identity, yes=yes)
    held = release(loaded, table, identity)
    with opened(loaded) as state:
        keep(state, loaded, config, "hold release", f"released {held.id} of {held.owner} on {held.table}")
    console.print(f"{held.id} of {held.owner} on {held.table} is released.", soft_wrap=True)


@history_app.command("marks")
def history_marks(config: ConfigFile = None, output: OutputStyle = Output.TABLE) -> None:
    """The ancient history mark of every transactional table, since when, and what keeps it from moving on now, as in
    status.
    """
    loaded = configured(config)
    reading = read(loaded)
    if reading.newer:
        raise FormatError(f"the marks cannot be read: {reading.unreachable}", "Upgrade it on this machine")
    if reading.unreachable:
        fact = f"the marks cannot be read: {reading.unreachable}"
        raise GatewayError(fact, "start the Thrift gateway, or correct hbase.thrift")
    statuses = history_statuses(reading, loaded)
    runs = {h.table: str(h.about.get("run", "")) for h in reading.histories}
    rows = [s.to_json() | {"run": runs.get(s.table), "kept_back_by": kept_back(s)} for s in statuses]
    answer(output, lambda: rows, MARK_COLUMNS, lambda: rows, lambda: _print_marks(statuses, runs, reading))


def _print_marks(statuses: Sequence[HistoryStatus], runs: Mapping[str, str], reading: Reading) -> None:
    if not statuses:
        console.print(
            "No transactional table is known yet; run: lowtide run watermark_collection --execute", soft_wrap=True
        )
        return
    titles = ("table", "mark", "time of the mark", "applied (UTC)", "by run", "kept back now by")
    grid = new_table("Ancient history marks", *titles, numbers=["mark"], whole=titles[2:4])
    for s in statuses:
        mark = (str(s.applied), time_text(s.applied, reading.clock)) if s.applied else ("never", "")
        applied = f"{s.applied_at:%Y-%m-%d %H:%M:%S}" if s.applied_at else ""
        grid.add_row(s.table, *mark, applied, runs.get(s.table, ""), kept_back(s))
    print_table(console, grid)


@history_app.command("advise", cls=WithJson)
def history_advise(
    config: ConfigFile = None,
    served: Annotated[
        float, typer.Option(min=0, max=1, help="The share of the reads that must not be refused.")
    ] = 0.999,
    table: Annotated[str | None, typer.Option(help="Only this table.", show_default=False)] = None,
    output: OutputStyle = Output.TABLE,
) -> None:
    """Propose an age for each table, from the ages of the read points that were read with asOf, and of holds.

    A read is counted when it begins, refused ones too; a hold while it is there, and when it is let go. They are not
    counted where the oracle's timestamps are a counter, but for the holds that there are.
    """
    loaded = configured(config)
    with opened(loaded) as state:
        reads, runs, holds = state.reads(), state.runs(1000, "history_gc"), state.holds()
        now, clock = datetime.now(UTC), clock_of(loaded, state.connection)
    for held in holds:
        read_at = clock.time(held.timestamp) if held.timestamp else None  # a restore holds all there is
        if read_at is not None:
            counted = reads.setdefault(held.table, {})
            number = bucket(now - read_at)
            counted[number] = counted.get(number, 0) + 1
    advised = {
        name: _advice(loaded, name, counted, bytes_a_day(name, runs), served)
        for name, counted in sorted(reads.items())
        if table in (None, name)
    }
    rows = [{"table": name, **line} for name, advice in advised.items() for line in advice["ages"]]
    answer(output, lambda: advised, ADVICE_COLUMNS, lambda: rows, lambda: _print_advised(advised, table))


def _print_advised(advised: Mapping[str, dict[str, Any]], table: str | None) -> None:
    if not advised:
        console.print(
            f"No read point{f' of {table}' if table else ''} was read yet, so there is nothing to go by: reads with "
            "asOf are counted by their age, where the oracle's clock is the world's.",
            soft_wrap=True,
        )
    else:
        for name, advice in advised.items():
            _print_advice(name, advice)


def _advice(config: Config, table: str, counted: dict[int, int], a_day: float | None, served: float) -> dict[str, Any]:
    settings = config.table(table)
    age = None if settings.history_max_age == "forever" else settings.history_max_age
    best, lines = advise(counted, a_day, settings.min_history_age, age, served)
    return {
        "history_max_age": duration_text(age) if age else "forever",
        "reads": sum(counted.values()),
        "advised": best.to_json()["age"] if best else None,
        "ages": [line.to_json() for line in lines],
    }


def _print_advice(table: str, advice: dict[str, Any]) -> None:
    console.print(
        f"{table}: history_max_age is {advice['history_max_age']}; advised {advice['advised']}, by {advice['reads']:,} "
        "reads",
        soft_wrap=True,
    )
    titles = ("age", "reads it refuses", "bytes it keeps more")
    grid = new_table("", *titles, numbers=titles)
    for line in advice["ages"]:
        more = "not known" if line["bytes"] is None else f"{line['bytes']:+,}"
        grid.add_row(line["age"], f"{line['refused']:.2%}", more)
    print_table(console, grid)


def read_point_of(config: Config, text: str) -> int:
    """The oracle's timestamp in *text*, or the one at that time: never later than the time.

    Raises:
        UsageError: it is neither a number nor a time with zone.
    """
    if text.strip().isdecimal():
        return int(text)
    return read_point_at(config, parse_time(text, "--at"))


def _ask_for(config: Config, table: str, identity: str, *, yes: bool) -> None:
    """Whoever reads with a hold fails without it: the owner should know. Of one that is not there the release
    complains.
    """
    with opened(config) as state:
        found = [h for h in state.holds(table) if h.id == identity]
    for held in found:
        if held.owner != myself() and held.counts(datetime.now(UTC)):
            question = (
                f"{identity} is a hold of {held.owner} ({held.reason}), until {moment_text(held.expires)}; you "
                f"are {myself()}. Release it?"
            )
            ask(question, yes=yes)


def _print_holds(holds: list[Hold], now: datetime) -> None:
    if not holds:
        console.print("No history is held.", soft_wrap=True)
        return
    titles = ("table", "id", "from", "owner", "reason", "taken (UTC)", "expires (UTC)")
    grid = new_table("Holds", *titles, numbers=["from"], whole=titles[5:])
    for held in holds:
        over = () if held.counts(now) else ((" expired", "red"),)
        expires = Text.assemble(f"{held.expires:%Y-%m-%d %H:%M:%S}", *over)
        taken = f"{held.taken:%Y-%m-%d %H:%M:%S}"
        grid.add_row(held.table, held.id, str(held.timestamp), held.owner, held.reason, taken, expires)
    print_table(console, grid)
