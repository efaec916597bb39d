"""``lowtide pause``, ``resume`` and ``pauses``: nothing is written for a while."""

from __future__ import annotations

import secrets
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from lowtide.cli.console import new_console
from lowtide.cli.options import ConfigFile, Yes, ask
from lowtide.config import load, source
from lowtide.errors import TableError, UsageError
from lowtide.run.summary import by_hand, myself
from lowtide.store.state import StateStore, opened
from lowtide.tables.consent import Pause, check_pause
from lowtide.values.durations import parse_duration, parse_time

console = new_console()


def pause(
    until: Annotated[
        str, typer.Option(help="When it ends by itself: an ISO 8601 time with zone, or a span such as 2h or 3d.")
    ],
    reason: Annotated[str, typer.Option(help="For whoever finds the jobs waiting.")],
    config: ConfigFile = None,
    table: Annotated[str | None, typer.Option(help="Only this table; all, if left out.", show_default=False)] = None,
    owner: Annotated[str | None, typer.Option(help="Whom to ask; you, if left out.", show_default=False)] = None,
) -> None:
    """Have no job write to the store, or to one table, until a time. Prints the pause's id.

    Jobs that act stop before their next step, executors before their next batch; what is under way until then is
    finished. Dry runs go on. Meanwhile the prune bound stays where it is.
    """
    loaded = load(config)
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
        state.add_pause(made, now)
        state.add_run(by_hand("pause", made.sentence, source(config)).to_json())
    console.print(
        f"{made.id}: {made.sentence}. It ends by itself, or by: {made.ended_by}", soft_wrap=True, highlight=False
    )


def resume(
    identity: Annotated[str, typer.Argument(metavar="ID", help="As `lowtide pauses` shows it.")],
    config: ConfigFile = None,
    yes: Yes = False,
) -> None:
    """End a pause before its time. Asks before it ends somebody else's."""
    loaded = load(config)
    with opened(loaded) as state:
        found = [p for p in state.pauses() if p.id == identity]
    for each in found:
        if each.owner != myself():
            ask(f"{identity} is a pause of {each.owner} ({each.reason}); you are {myself()}. End it?", yes=yes)
    with opened(loaded) as state:
        ended = state.drop_pause(identity)
        state.add_run(by_hand("resume", f"ended a pause: {ended.sentence}", source(config)).to_json())
    console.print(f"{ended.id} of {ended.owner} is ended.", soft_wrap=True, highlight=False)


def pauses(config: ConfigFile = None) -> None:
    """The pauses there are, and which of them are over."""
    loaded = load(config)
    with opened(loaded) as state:
        found = state.pauses()
        now = state.server_time() if found else None
    if now is None:
        console.print("Nothing is paused.")
        return
    grid = Table(title="Pauses", title_justify="left")
    for column in ("id", "what", "owner", "reason", "since (UTC)", "until (UTC)"):
        grid.add_column(column, overflow="fold")
    for each in found:
        over = () if each.lasts(now) else ((" over", "red"),)
        until = Text.assemble(f"{each.until:%Y-%m-%d %H:%M:%S}", *over)
        what = each.table or "the store"
        grid.add_row(each.id, what, each.owner, each.reason, f"{each.since:%Y-%m-%d %H:%M:%S}", until)
    console.print(grid)


def _check_table(state: StateStore, table: str | None) -> None:
    """A misspelt name would pause nothing, in silence."""
    if table is not None and not state.has_table(table):
        msg = f"unknown table {table}: it is not in HBase; `lowtide status` lists those that are known"
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
