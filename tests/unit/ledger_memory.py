"""The ledger's tables as dictionaries, for the rules that say what is read and written in which order; and what must
always hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from lowtide.ledger import steps
from lowtide.ledger.model import Entry, RecordState, Request, State, Table, parse_transaction, user_id
from lowtide.ledger.steps import CheckAndPut, Operation, Outcome, Program, Put, Read, Remove, Scan

ISSUER = user_id("issuer")


class Stopped(BaseException):
    """An actor's process ended here."""


@dataclass
class Memory:
    """Answers operations as HBase does: each of them is atomic."""

    rows: dict[Table, dict[str, dict[str, str]]] = field(default_factory=lambda: {table: {} for table in Table})

    def __call__(self, operation: Operation) -> Any:
        table = self.rows[operation.table]
        match operation:
            case Read(rows=wanted):
                assert "" not in wanted, "HBase takes no empty key"
                return [dict(table.get(row, {})) for row in wanted]
            case Scan(start=start, stop=stop, limit=limit, reverse=True):
                found = sorted((row for row in table if stop < row <= start), reverse=True)
                return [(row, dict(table[row])) for row in found[:limit]]
            case Scan(start=start, stop=stop, limit=limit):
                found = sorted(row for row in table if start <= row and (not stop or row < stop))
                return [(row, dict(table[row])) for row in found[:limit]]
            case Put(row=row, cells=cells):
                table.setdefault(row, {}).update(cells)
            case CheckAndPut(row=row, column=column, expected=expected):
                if table.get(row, {}).get(column) != expected:
                    return False
                table.setdefault(row, {}).update({name: str(value) for name, value in operation.cells.items()})
                return True
            case Remove(row=row):
                table.pop(row, None)
        return None

    def entries(self) -> list[Entry]:
        return [Entry.parse(row) for row in sorted(self.rows[Table.OPEN])]

    def repair_all(self, times: int = 2, at_once: bool = False) -> list[Outcome | None]:
        done = []
        for _ in range(times):
            done += [steps.run(steps.repair(entry, ISSUER, at_once), self) for entry in self.entries()]
        return done

    def balances(self) -> dict[str, int]:
        """By the definition of the model: records finished whose transaction is finished."""
        sums: dict[str, int] = defaultdict(int)
        for cells in self.rows[Table.RECORDS].values():
            transaction = self.rows[Table.TRANSACTIONS].get(cells["transaction_id"], {})
            if cells.get("state") == RecordState.FINISHED and transaction.get("state") == State.FINISHED:
                sums[cells["user_id"]] += int(cells["amount"])
        return sums

    def check(self) -> None:
        """What holds at every moment: no money made or lost, nobody but the issuer below zero, every row makes
        sense.
        """
        sums = self.balances()
        paid_in = 0
        for id, cells in self.rows[Table.TRANSACTIONS].items():
            transaction = parse_transaction(id, cells)
            if transaction.state is State.FINISHED:
                request = transaction.request
                paid_in += request.amount * ((request.sender == ISSUER) - (request.recipient == ISSUER))
        assert sum(amount for user, amount in sums.items() if user != ISSUER) == paid_in == -sums[ISSUER]
        assert all(amount >= 0 for user, amount in sums.items() if user != ISSUER)

    def check_over(self) -> None:
        """What holds when all is repaired: every claimed transaction is over, its records are as it says, no entry is
        left.
        """
        self.check()
        assert self.entries() == []
        due = {}
        for id, cells in self.rows[Table.TRANSACTIONS].items():
            transaction = parse_transaction(id, cells)
            assert transaction.state
            assert transaction.state.over
            if transaction.state is State.FINISHED:
                due |= {r.row: {**r.cells, "state": "finished"} for r in transaction.records}
        assert self.rows[Table.RECORDS] == due

    def nonces(self) -> Iterator[str]:
        return (Request.decode(cells["request"]).nonce for cells in self.rows[Table.TRANSACTIONS].values())


def opened(*nicknames: str, money: int = 0) -> Memory:
    """A ledger with these users, *money* paid in to each."""
    memory = Memory()
    for nickname in ("issuer", *nicknames):
        steps.run(steps.add_user(nickname), memory)
    for number, nickname in enumerate(nicknames if money else ()):
        steps.run(transfer(request("issuer", nickname, money, nonce=900_000 + number)), memory)
    return memory


def request(sender: str, recipient: str, amount: int, timestamp: int = 1_000, nonce: int = 1) -> Request:
    """A request between two nicknames."""
    return Request(user_id(sender), user_id(recipient), amount, timestamp, f"{nonce:016x}")


def transfer(asked: Request) -> Program[Outcome]:
    """A client's transfer; its clock shows the request's time all along."""
    return steps.transfer(asked, ISSUER, lambda: asked.timestamp)
