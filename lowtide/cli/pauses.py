"""``lowtide pause``, ``resume`` and ``pauses``: nothing is written for a while."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from lowtide.cli.by_hand import keep
from lowtide.cli.configuration import configured, configured_to_act
from lowtide.cli.options import ConfigFile, Yes, ask
from lowtide.cli.output import Output, OutputStyle, answer
from lowtide.errors import NAMES_OF_TABLES, TableError, UsageError
from lowtide.run.summary import myself
from lowtide.store.state import StateStore, opened
from lowtide.tables.consent import Pause, check_pause
from lowtide.terminal.console import new_console
from lowtide.terminal.tables import new_table, print_table
from lowtide.values.durations import parse_duration, parse_time

console = new_console()
#: Of the CSV; times are ms since 1970.
COLUMNS = ("id", "table", "owner", "reason", "since", "until")


def pause(
    until: Annotated[
        str, typer.Option(help="When it ends by itself: an ISO 8601 time with zone, or a span such as 2h or 3d.")
    ],
    reason: Annotated[str, typer.Option(help="For whoever finds the jobs waiting.")],
    config: ConfigFile = None,
    table: Annotated[str | None, typer.Option(help="Only this table; all, if left out.", show_default=False)] = None,
    owner: Annotated[str | None, typer.Option(help="Whom to ask; you, if left out.", show_default=False)] = None,
    output: OutputStyle = Output.TABLE,
) -> None:
    """Have no job write to the store, or to one table, until a time. Prints the pause's id.

    Jobs that act stop before their next step, executors before their next batch; what is under way until then is
    finished. Dry runs go on. Meanwhile the prune bound stays where it is.
    """
    loaded = configured_to_act(config)
    with opened(loaded) as state:
        _check_table(state, table)
        state.create()
        now = state.server_time()  # by which its end is judged
        made = Pause(
            f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}",
            table,
            myself() if owner is None else owner,
            reason,
            now,
            now + parse_duration(until) if _is_span(until) else parse_time(until, "--until"),
        )
        check_pause(made)
        state.record_format()  # an older Lowtide, which knows no pauses, does nothing from here on
        state.add_pause(made, now)
        keep(state, loaded, config, "pause", made.sentence)
    said = f"{made.id}: {made.sentence}. It ends by itself, or by: {made.ended_by}"
    answer(output, made.to_json, COLUMNS, lambda: [made.to_json()], lambda: console.print(said, soft_wrap=True))


def resume(
    identity: Annotated[str, typer.Argument(metavar="ID", help="As `lowtide pauses` shows it.")],
    config: ConfigFile = None,
    yes: Yes = False,
) -> None:
    """End a pause before its time. Asks before it ends somebody else's."""
    loaded = configured_to_act(config)
    with opened(loaded) as state:
        found = [p for p in state.pauses() if p.id == identity]
    for each in found:
        if each.owner != myself():
            ask(f"{identity} is a pause of {each.owner} ({each.reason}); you are {myself()}. End it?", yes=yes)
    with opened(loaded) as state:
        ended = state.drop_pause(identity)
        keep(state, loaded, config, "resume", f"ended a pause: {ended.sentence}")
    console.print(f"{ended.id} of {ended.owner} is ended.", soft_wrap=True)


def pauses(config: ConfigFile = None, output: OutputStyle = Output.TABLE) -> None:
    """The pauses there are, and which of them are over."""
    with opened(configured(config)) as state:
        found = state.pauses()
        now = state.server_time() if found else datetime.now(UTC)
    rows = [each.to_json() | {"lasts": each.lasts(now)} for each in found]
    answer(output, lambda: rows, (*COLUMNS, "lasts"), lambda: rows, lambda: _print(found, now))


def _print(pauses: Sequence[Pause], now: datetime) -> None:
    if not pauses:
        console.print("Nothing is paused.")
        return
    titles = ("id", "what", "owner", "reason", "since (UTC)", "until (UTC)")
    grid = new_table("Pauses", *titles, whole=("id", "what", *titles[4:]))
    for each in pauses:
        over = () if each.lasts(now) else ((" over", "red"),)
        until = Text.assemble(f"{each.until:%Y-%m-%d %H:%M}", *over)
        grid.add_row(each.id, each.table or "the store", each.owner, each.reason, f"{each.since:%Y-%m-%d %H:%M}", until)
    print_table(console, grid)


def _check_table(state: StateStore, table: str | None) -> None:
    """A misspelt name would pause nothing, in silence."""
    if table is not None and not state.has_table(table):
        msg = f"unknown table {table}: it is not in HBase; {NAMES_OF_TABLES}"
        raise TableError(msg)


def _is_span(text: str) -> bool:
    """Whether *text* is a span of time.

    Raises:
        UsageError: it begins like one, and is none.
    """
    try:
        parse_duration(text)
    except ValueError as error:
        if text[:4].isdigit():  # a time begins with its year
            return False
        msg = f"--until: {error}; or an ISO 8601 time with zone such as 2026-01-31T06:00:00+00:00"
        raise UsageError(msg) from None
    return True
