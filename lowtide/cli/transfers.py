"""A transfer that a person or a script asks for: whoever does is to know afterwards whether to ask again."""

from __future__ import annotations

from typing import NoReturn

from lowtide.config import Config
from lowtide.errors import LedgerError
from lowtide.ledger.client import ledger
from lowtide.ledger.model import Entry, Table
from lowtide.ledger.steps import CheckAndPut, Outcome, Put, Write
from lowtide.ledger.store import Moment

#: What ``lowtide ledger transfer`` ends with where the transaction was dropped. Other errors have 1 and 2, and an
#: exception that nobody foresaw has 1 too: that must be no outcome.
DROPPED = 3
#: And where its outcome is not known.
UNKNOWN = 4


class UnknownOutcomeError(LedgerError):
    """A transfer was asked for, and may be paid now or later."""

    exit_code = UNKNOWN


class _Asked:
    """What a transfer has asked the store for: its index entry, and whether to claim a number for it."""

    def __init__(self) -> None:
        self.entry: Entry | None = None
        self.claiming = False

    def __call__(self, write: Write, moment: Moment) -> None:
        if moment is not Moment.BEFORE:
            return
        if isinstance(write, Put) and write.table is Table.OPEN:
            self.entry, self.claiming = Entry.parse(write.row), False
        elif isinstance(write, CheckAndPut) and write.column == "request":
            self.claiming = True


def transferred(config: Config, sender: str, recipient: str, amount: str) -> Outcome:
    """The outcome of the transfer, which is known once this returns.

    Raises:
        LowtideError: it was refused, or the store gave no answer, before it was claimed: nothing moves.
        UnknownOutcomeError: it was broken off later, whatever by, Ctrl-C too: with the transaction that may be its own.
    """
    asked, outcome = _Asked(), None
    try:
        with ledger(config, asked, size=1) as book:
            outcome = book.transfer(sender, recipient, amount)
    except BaseException as error:
        if outcome is None:
            _broken_off(error, asked, f"transfer of {amount} from {sender} to {recipient}")
    return outcome


def _broken_off(error: BaseException, asked: _Asked, what: str) -> NoReturn:
    if asked.entry is None:
        raise error  # nothing was written
    left = "it was left as it is, and a repair brings it to its end"
    said = str(error)
    if not isinstance(error, LedgerError):
        cause = type(error).__name__ + (f": {error}" if str(error) else "")
        said = f"{what} (request {asked.entry.nonce}): broken off ({cause}); {left}"
    if not asked.claiming:
        msg = f"{said}; it had claimed no number, so nothing was transferred"
        raise LedgerError(msg) from error
    msg = (
        f"{said}; it may be paid all the same: before you ask for it again, look at lowtide ledger show "
        f"{asked.entry.id}, which is this transfer if its request bears {asked.entry.nonce}"
    )
    raise UnknownOutcomeError(msg) from error
