"""``lowtide ledger``: users, transfers and balances for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import sleep
from typing import Any

import typer

from lowtide.cli.by_hand import check_same, keep
from lowtide.cli.configuration import configured, configured_to_act
from lowtide.cli.options import ConfigFile, Yes, ask
from lowtide.cli.output import Output, OutputStyle, answer, tell_in_any_case
from lowtide.cli.transfers import DROPPED, transferred
from lowtide.config import Config
from lowtide.ledger import mending
from lowtide.ledger.client import init as make
from lowtide.ledger.client import ledger
from lowtide.ledger.mending import Act, Fault, Survey
from lowtide.ledger.model import State, Table, user_id
from lowtide.ledger.settled import SKEW
from lowtide.ledger.store import node
from lowtide.store.state import opened
from lowtide.terminal.console import new_console, note
from lowtide.terminal.tables import new_table, print_table

app = typer.Typer(no_args_is_help=True, help="Users, transfers and balances.")
user_app = typer.Typer(no_args_is_help=True, help="Users.")
app.add_typer(user_app, name="user")

console = new_console()
#: Columns in the order of the model; what else a row holds comes after them.
_ORDER = (
    "id",
    "user_id",
    "transaction_id",
    "sender",
    "recipient",
    "amount",
    "state",
    "timestamp",
    "decision",
    "request",
)
#: Columns of what is set right: cells as they are found, and as they become.
_FAULT = ("action", "record", "why", "cells", "become")


@app.command()
def init(config: ConfigFile = None, output: OutputStyle = Output.TABLE) -> None:
    """Make the ledger's tables and its issuer; changes nothing where they are."""
    settings = configured_to_act(config)
    made = make(settings)

    def told() -> None:
        console.print(f"Made {', '.join(made)}." if made else "The ledger is there already.", soft_wrap=True)
        issuer = settings.ledger.issuer
        console.print(f"All money comes from {issuer}, the one user that may go below zero.", soft_wrap=True)

    _facts(output, {"made": made, "issuer": settings.ledger.issuer}, told)


@user_app.command("add")
def user_add(nickname: str, config: ConfigFile = None, output: OutputStyle = Output.TABLE) -> None:
    """Make a user."""
    with ledger(configured_to_act(config), size=1) as book:
        added = book.add_user(nickname)
    user = user_id(nickname)
    said = f"{nickname} {'has the id' if added else 'is there already, with the id'} {user}"
    facts = {"nickname": nickname, "id": user, "added": added}
    _facts(output, facts, lambda: console.print(said, soft_wrap=True))


@app.command()
def transfer(
    sender: str, recipient: str, amount: str, config: ConfigFile = None, output: OutputStyle = Output.TABLE
) -> None:
    """Move an amount, in the smallest unit, from one user to another.

    Exit code 0 if it is finished; 3 if it was dropped, and moves nothing; 1 or 2 if it was refused, or the store did
    not answer, before it was claimed: then it moves nothing either. 4, or an end by a signal: it is not known whether
    it is paid, or it may still be: look before asking for it again. What cannot be printed does not change the code.
    """
    outcome = transferred(configured_to_act(config), sender, recipient, amount)
    reason = [] if outcome.state is State.FINISHED else [f"reason: {outcome.reason}"]
    facts = {"id": outcome.id, "state": str(outcome.state), "reason": outcome.reason}
    said = [f"{outcome.state}: {outcome.id}", *reason]
    told = partial(_facts, output, facts, lambda: console.print("\n".join(said), soft_wrap=True))
    tell_in_any_case(told, "; ".join(said))
    if outcome.state is not State.FINISHED:
        raise typer.Exit(DROPPED)


@app.command()
def balance(nickname: str, config: ConfigFile = None, output: OutputStyle = Output.TABLE) -> None:
    """What a user has: finished records of finished transactions."""
    with ledger(configured(config), size=1) as book:
        found = book.balance(nickname)
    _facts(output, {"nickname": nickname, "balance": found}, lambda: console.print(found, soft_wrap=True))


@app.command()
def show(transaction: str, config: ConfigFile = None, output: OutputStyle = Output.TABLE) -> None:
    """A transaction and its two records, as they are stored."""
    with ledger(configured(config), size=1) as book:
        rows = book.show(transaction)
    names = sorted({n for cells in rows.values() for n in cells}, key=lambda n: (n not in _ORDER, _place(n)))
    lines = ({"row": title, **cells} for title, cells in rows.items())
    answer(output, lambda: rows, ("row", *names), lambda: lines, lambda: _print_rows(names, rows))


@app.command()
def mend(config: ConfigFile = None, yes: Yes = False, output: OutputStyle = Output.TABLE) -> None:
    """Set right what contradicts itself after tables came back from backups of different times.

    Stop everybody who writes to the ledger first. Records that no transaction can have go, those that one must have are
    written; each is shown whole before anything is done. JSON and CSV are the list alone, unless --yes is given. Exit
    code 1 while something contradicts itself. Where records were removed it waits two minutes before it ends, until no
    server's clock is behind that.
    """
    settings = configured_to_act(config)
    found = _surveyed(settings)
    lines = [_fault_line(fault) for fault in found.faults]
    facts = {"records": lines, "left": found.left, "total": found.total, "paid in": found.paid_in}
    answer(output, lambda: facts, _FAULT, lambda: lines, lambda: _print_survey(found, lines))
    if lines and (yes or output is Output.TABLE):
        removed = sum(fault.act is Act.REMOVE for fault in found.faults)
        what = f"{removed} records removed, {len(lines) - removed} written as their transactions say"
        ask(f"Is nobody writing to the ledger, and shall these be set right: {what}?", yes=yes)
        found = _mended(settings, found, config, what)
        note(f"{what}. Then: lowtide run transaction_repair --full --execute")
    if found.faults or found.left or not found.balanced:
        raise typer.Exit(1)


def _mended(settings: Config, found: Survey, config: Path | None, what: str) -> Survey:
    """Set right what was *found*, if it still is so; what is found afterwards."""
    tables = [f"{settings.ledger.prefix}{table}" for table in Table]
    check_same(found.faults, _surveyed(settings).faults, "what contradicts itself in the ledger")
    with opened(settings) as state, node(settings, size=1) as books:
        state.check_not_paused(*tables)
        # First: until the money was counted again, nobody goes by it.
        books.run(mending.begin_anew, "the settled mark")
        for fault in found.faults:
            books.run(partial(mending.mend, fault.id, fault.user), f"record {fault.row}")
        state.create()
        keep(state, settings, config, "ledger mend", what)
    _let_clocks_pass(found.faults)  # longer than the gateway keeps a connection on which nothing is said
    return _surveyed(settings)


def _let_clocks_pass(faults: Sequence[Fault]) -> None:
    """Wait until every server's clock has passed when records were removed, if any were.

    What a server puts whose clock is behind the one that removed lies beneath what was removed: acknowledged, and
    hidden. A client that claims the number anew would have its records there.
    """
    if any(fault.act is Act.REMOVE for fault in faults):
        seconds = SKEW / 1000
        note(f"Waiting {seconds:.0f} s, by which the clocks of HBase's servers may be apart. Let nobody write yet.")
        sleep(seconds)


def _surveyed(settings: Config) -> Survey:
    issuer = user_id(settings.ledger.issuer)
    with node(settings, size=1) as books:
        return books.run(partial(mending.survey, issuer), "the ledger")


def _fault_line(fault: Fault) -> dict[str, Any]:
    return dict(zip(_FAULT, (str(fault.act), fault.row, fault.why, fault.cells, fault.due), strict=True))


def _print_survey(found: Survey, lines: Sequence[Mapping[str, Any]]) -> None:
    grid = new_table("Records that contradict their transactions", *_FAULT)
    for line in lines:
        grid.add_row(*(json.dumps(cell) if isinstance(cell, Mapping) else cell for cell in line.values()))
    if lines:
        print_table(console, grid)
    else:
        console.print("No record contradicts its transaction.", soft_wrap=True)
    for why in found.left:
        console.print(f"Left for a person to look at: {why}", soft_wrap=True)
    console.print(f"By their records all users have {found.total}; {found.paid_in} was paid in.", soft_wrap=True)


def _print_rows(names: Sequence[str], rows: Mapping[str, Mapping[str, str]]) -> None:
    grid = new_table("", "row", *names)
    for title, cells in rows.items():
        grid.add_row(title, *(cells.get(name, "") for name in names))
    print_table(console, grid)


def _facts(output: Output, facts: Mapping[str, object], told: Callable[[], None]) -> None:
    """Answer with what is one row."""
    answer(output, lambda: facts, tuple(facts), lambda: [facts], told)


def _place(name: str) -> tuple[int, str]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)
