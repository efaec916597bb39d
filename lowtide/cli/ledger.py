"""``lowtide ledger``: users, transfers and balances for people."""

from __future__ import annotations

import typer
from rich.table import Table

from lowtide.cli.console import new_console
from lowtide.cli.options import ConfigFile
from lowtide.config import load
from lowtide.ledger.client import init as make
from lowtide.ledger.client import ledger
from lowtide.ledger.model import State, user_id

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
def init(config: ConfigFile = None) -> None:
    """Make the ledger's tables and its issuer; changes nothing where they are."""
    settings = load(config)
    made = make(settings)
    console.print(f"Made {', '.join(made)}." if made else "The ledger is there already.")
    console.print(f"All money comes from {settings.ledger.issuer}, the one user that may go below zero.")


@user_app.command("add")
def user_add(nickname: str, config: ConfigFile = None) -> None:
    """Make a user."""
    with ledger(load(config), size=1) as book:
        added = book.add_user(nickname)
    console.print(f"{nickname} {'has the id' if added else 'is there already, with the id'} {user_id(nickname)}")


@app.command()
def transfer(sender: str, recipient: str, amount: str, config: ConfigFile = None) -> None:
    """Move an amount, in the smallest unit, from one user to another. Exit code 1 if the transfer was dropped."""
    with ledger(load(config), size=1) as book:
        outcome = book.transfer(sender, recipient, amount)
    console.print(f"{outcome.state}: {outcome.id}", soft_wrap=True)
    if outcome.state is not State.FINISHED:
        console.print(f"reason: {outcome.reason}")
        raise typer.Exit(1)


@app.command()
def balance(nickname: str, config: ConfigFile = None) -> None:
    """What a user has: finished records of finished transactions."""
    with ledger(load(config), size=1) as book:
        console.print(book.balance(nickname))


@app.command()
def show(transaction: str, config: ConfigFile = None) -> None:
    """A transaction and its two records, as they are stored."""
    with ledger(load(config), size=1) as book:
        rows = book.show(transaction)
    grid = Table(box=None, pad_edge=False)
    names = sorted({n for cells in rows.values() for n in cells}, key=lambda n: (n not in _ORDER, _place(n)))
    for title in ("", *rows):
        grid.add_column(title, overflow="fold")
    for name in names:
        grid.add_row(name, *(cells.get(name, "-") for cells in rows.values()))
    console.print(grid)


def _place(name: str) -> tuple[int, str]:
    return (_ORDER.index(name) if name in _ORDER else len(_ORDER), name)
