"""``lowtide ledger``: users, transfers and balances for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import typer

from lowtide.cli.configuration import configured, configured_to_act
from lowtide.cli.options import ConfigFile
from lowtide.cli.output import Output, OutputStyle, answer
from lowtide.ledger.client import init as make
from lowtide.ledger.client import ledger
from lowtide.ledger.model import State, user_id
from lowtide.terminal.console import new_console
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
    """Move an amount, in the smallest unit, from one user to another. Exit code 1 if the transfer was dropped."""
    with ledger(configured_to_act(config), size=1) as book:
        outcome = book.transfer(sender, recipient, amount)
    reason = [] if outcome.state is State.FINISHED else [f"reason: {outcome.reason}"]
    facts = {"id": outcome.id, "state": str(outcome.state), "reason": outcome.reason}
    said = "\n".join([f"{outcome.state}: {outcome.id}", *reason])
    _facts(output, facts, lambda: console.print(said, soft_wrap=True))
    if outcome.state is not State.FINISHED:
        raise typer.Exit(1)


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
