"""A ledger of a test's own: its tables, clients that are stopped at a write, and what the tables hold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from lowtide.config import Config, load
from lowtide.errors import LedgerError
from lowtide.ledger import Ledger, init, ledger
from lowtide.ledger.model import Entry, Table
from lowtide.ledger.steps import Scan, Write
from lowtide.ledger.store import Moment, Tables
from lowtide.store.gateway import connect

_numbers = count(1)


class Stopped(BaseException):
    """The process ended here."""


class Bomb:
    """Ends its actor at write number *at*: before it, after it, or after it with the answer lost. One that ended writes
    nothing more.
    """

    def __init__(self, at: int = 0, how: str = "before") -> None:
        self.at, self.how, self.writes, self.dead = at, how, 0, False

    def __call__(self, _: Write, moment: Moment) -> None:
        if self.dead:
            raise Stopped
        self.writes += moment is Moment.BEFORE
        if self.writes != self.at or (moment is Moment.BEFORE) != (self.how == "before"):
            return
        if self.how == "answer lost":
            raise ConnectionResetError("the answer was lost")
        self.dead = True
        raise Stopped


class Books:
    """A ledger of its own tables, and what they hold, read without the ledger's code for balances."""

    def __init__(self, file: Path, at_once: Path | None = None) -> None:
        self.file = file
        #: The same with no grace at all: for a repair beside which no client works.
        self.at_once = at_once or file
        self.config: Config = load(file)

    def open(self, hook: Callable[[Write, Moment], None] | None = None) -> Any:
        return ledger(self.config, hook, size=2)

    def rows(self, table: Table) -> dict[str, dict[str, str]]:
        with connect(self.config.hbase.thrift) as connection:
            return dict(Tables(connection, self.config.ledger.prefix)(Scan(table, "", "~")))

    def entries(self) -> list[Entry]:
        return [Entry.parse(row) for row in self.rows(Table.OPEN) if row[0].isdigit()]

    def everything(self) -> dict[Table, dict[str, dict[str, str]]]:
        return {table: self.rows(table) for table in Table}

    def content(self) -> dict[Table, dict[str, dict[str, str]]]:
        """Everything but the row of the settled mark, beside which a run writes that the money does not add up."""
        found = self.everything()
        found[Table.OPEN].pop("settled", None)
        return found

    def balances(self) -> dict[str, int]:
        transactions = self.rows(Table.TRANSACTIONS)
        sums: dict[str, int] = defaultdict(int)
        for cells in self.rows(Table.RECORDS).values():
            if cells.get("state") == transactions[cells["transaction_id"]].get("state") == "finished":
                sums[cells["user_id"]] += int(cells["amount"])
        return sums

    def stopped(self, book: Callable[[Ledger], Any], at: int, how: str) -> bool:
        """Whether *book* was stopped at that write."""
        bomb = Bomb(at, how)
        try:
            with self.open(bomb) as opened:
                book(opened)
        except Stopped:
            return True
        except LedgerError as error:
            return how == "answer lost" and "it was left as it is" in str(error)
        assert bomb.writes < at
        return False


def made(configure: Callable[..., Path], **settings: Any) -> Books:
    """A new ledger with the users ann and bob."""
    section = {"prefix": f"books{next(_numbers)}_", **settings}
    found = Books(configure(ledger=section), configure(ledger={**section, "grace": "0s", "allow_short_grace": True}))
    init(found.config)
    with found.open() as book:
        for nickname in ("ann", "bob"):
            book.add_user(nickname)
    return found
