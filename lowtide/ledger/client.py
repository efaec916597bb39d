"""The ledger for programs: users, transfers, balances, repair of one transaction."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lowtide.errors import UsageError
from lowtide.ledger import steps
from lowtide.ledger.model import ISSUER_ROW, Cells, Entry, Request, Table, check_amount, parse_transaction, user_id
from lowtide.ledger.steps import CheckAndPut, Outcome
from lowtide.ledger.store import Hook, Node, Tables, node
from lowtide.store.gateway import connect
from lowtide.values.clock import now_millis

if TYPE_CHECKING:
    from lowtide.config import Config


class Ledger:
    """Users by nickname, transactions by id. Thread-safe; each call takes one connection of the node's pool.

    Every method raises :class:`~lowtide.errors.UsageError` for what cannot be meant (nothing was written),
    :class:`~lowtide.errors.GatewayError` where the store gave no answer before anything was written, and
    :class:`~lowtide.errors.LedgerError` where it gave none later, or where rows contradict each other.
    """

    def __init__(self, node: Node, now: Callable[[], int] = now_millis) -> None:
        self._node = node
        self._now = now
        self.issuer = user_id(node.config.ledger.issuer)

    def add_user(self, nickname: str) -> bool:
        """Make a user; False if it is there already."""
        return self._node.run(lambda: steps.add_user(nickname), f"adding user {nickname}")

    def transfer(self, sender: str, recipient: str, amount: int | str) -> Outcome:
        """Move *amount* from *sender* to *recipient*, both by nickname.

        Returns:
            The transaction: ``finished``, or ``dropped`` with the reason.

        Raises:
            UsageError: an unknown user, a bad amount, sender and recipient the same, a balance that is too small.
                Nothing was written.
            GatewayError: no answer from the store. Nothing was written.
            LedgerError: no answer from the store half-way. The transaction is left as it is and a repair brings it to
                its end. To transfer again now might be to transfer twice: look at the sender's last transactions first.
        """
        request = Request(user_id(sender), user_id(recipient), check_amount(amount), self._now(), secrets.token_hex(8))
        if request.sender == request.recipient:
            msg = f"sender and recipient are the same, {sender}; name two users"
            raise UsageError(msg)
        what = f"transfer of {request.amount} from {sender} to {recipient} (request {request.nonce})"
        names = {request.sender: sender, request.recipient: recipient}
        return self._node.run(lambda: steps.transfer(request, self.issuer, self._now, names), what)

    def balance(self, nickname: str) -> int:
        """The sum of the user's finished records whose transactions are finished, at one moment; below zero only for
        the issuer.
        """
        user = user_id(nickname)
        return self._node.run(lambda: steps.balance(user, {user: nickname}), f"balance of {nickname}")

    def show(self, transaction: str) -> dict[str, Cells]:
        """A transaction's rows as they are, ``transaction``, ``debit``, ``credit``."""
        return self._node.run(lambda: steps.show(transaction), f"transaction {transaction}")

    def repair(self, entry: Entry) -> Outcome | None:
        """Bring the transaction of an index entry to its end, whatever became of its client; None: the entry led
        nowhere.

        Must not be called for a young entry: its client may be about to claim the number.
        """
        return self._node.run(lambda: steps.repair(entry, self.issuer), f"repair of {entry.id}")

    def entry(self, transaction: str) -> Entry:
        """The index entry that belongs to a transaction, there or not."""
        return parse_transaction(transaction, self.show(transaction)["transaction"]).entry


def init(config: Config) -> list[str]:
    """Make the tables that are not there, and the issuer; what is there stays. The names of the tables made.

    Raises:
        StoreError: one of them loses rows (TTL).
        UsageError: they were made with another issuer, or its name can be no nickname.
    """
    user_id(config.ledger.issuer)  # refuses what can be no nickname, before it is written down
    with connect(config.hbase.thrift) as connection:
        tables = Tables(connection, config.ledger.prefix)
        made = tables.create()
        tables(CheckAndPut(Table.OPEN, ISSUER_ROW, "nickname", None, config.ledger.issuer))
        tables.check(config.ledger.issuer)
        steps.run(steps.add_user(config.ledger.issuer), tables)
    return made


@contextmanager
def ledger(config: Config, hook: Hook | None = None, size: int | None = None) -> Iterator[Ledger]:
    """The ledger, with a pool of connections of its own, which are closed at the end of the block.

    Args:
        config: of the store.
        hook: called around every write: for tests, and for who must know what was asked for.
        size: how many connections; None: as configured (``ledger.pool``).

    Raises:
        GatewayError: the gateway does not answer.
        TableError: the ledger was never made.
        StoreError: one of its tables loses rows (TTL), or has lost the issuer's row.
    """
    with node(config, hook, size) as found:
        yield Ledger(found)
