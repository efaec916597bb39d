"""What is to happen to the ledger: its clients' steps, and the arguments of its repairs. Pure, as :mod:`plan` is."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

#: Its users by nickname; the first is the issuer, and nobody has ever added the last.
ISSUER, NOBODY = "issuer", "nobody"
#: The last two have names that whoever reads CSV may take for another balance.
USERS = (ISSUER, "ann", 'bob","1000000', "cid\\")

REPAIR, BALANCES = "transaction_repair", "balances"
#: Stands in a run's arguments for the folder to which it writes all balances.
CSV = "{csv}"
#: What is run when the faults have ended.
LAST = ((REPAIR, "--full", "--grace", "0s", "--execute"), (BALANCES, "--csv", CSV))
#: The seams of a repair, by how often a plan stops at one: it writes what many transactions want at once.
KINDS = {"rows": 8, "read": 3, "gateway": 2}
#: It has many of each.
RATE = 0.2


class End(StrEnum):
    """What becomes of a client when it has taken its steps."""

    WAIT = "waits"
    DIE = "dies"
    LOSE = "loses an answer"
    """Its next write takes effect, and it never hears so: it says that it does not know, and leaves the transfer."""
    TWICE = "is asked again"
    """Its next write is carried out twice, as the gateway does where an answer was lost, and it hears the second."""
    WRITE = "waits after its next write"


class Forgery(StrEnum):
    """What another program does to the ledger's rows."""

    AMOUNT = "a record has another amount"
    OTHER = "what a recipient got another has"
    THIRD = "a user who has no part in a transaction has a record of it"
    MISSING = "a finished transaction lacks a record"
    LOST = "finished transactions are gone with their records"
    DECISION = "a finished transaction says that it was dropped"


@dataclass(frozen=True, slots=True)
class Transfers:
    """So many transfers that *seed* draws, from begin to end; *after* the issuer has paid everybody something. *aged*:
    an hour ago, by all clocks.
    """

    number: int
    seed: str
    transfers: int
    after: bool = False
    aged: bool = False


@dataclass(frozen=True, slots=True)
class Send:
    """A client is asked for a transfer that *seed* draws; :class:`Move` carries it out. *sure*: the issuer pays, by a
    clock that is right, or, if it is *slow*, a day behind.
    """

    number: int
    seed: str
    sure: bool = False
    slow: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """A client that was asked takes so many steps, each a read or a write."""

    number: int
    pick: int
    steps: int
    end: End


@dataclass(frozen=True, slots=True)
class Balance:
    """Somebody asks for a user's balance."""

    number: int
    pick: int


@dataclass(frozen=True, slots=True)
class Forge:
    """Another program writes to the ledger's tables: to a finished transaction, one that is *aged* if it says so.
    *stamped*: what it writes bears a time of then, as what is put back from a backup does.
    """

    number: int
    forgery: Forgery
    pick: int
    aged: bool = True
    stamped: bool = False


@dataclass(frozen=True, slots=True)
class Undo:
    """All of that is taken back."""

    number: int


@dataclass(frozen=True, slots=True)
class Mend:
    """A person has the records set right, by ``lowtide ledger mend``; nothing is taken back before."""

    number: int


@dataclass(frozen=True, slots=True)
class Lose:
    """Another program removes the index entry of the transaction that was claimed last and is not over."""

    number: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """A table of the ledger takes no writes, or takes them again."""

    number: int
    table: str
    on: bool


@dataclass(frozen=True, slots=True)
class Hush:
    """The owner of a table of the ledger says that nothing is to be written to it, or takes that back."""

    number: int
    table: str
    on: bool


@dataclass(frozen=True, slots=True)
class Loosen:
    """A table of the ledger loses what its servers have acknowledged, where one dies; or no longer."""

    number: int
    table: str
    on: bool


@dataclass(frozen=True, slots=True)
class BreakOff:
    """Somebody who asks for a balance is broken off while he waits, as by a signal; who asks next for another's, over
    the same connections, is told that.
    """

    number: int
    pick: int


LedgerStep: TypeAlias = (
    Transfers | Send | Move | Balance | Forge | Undo | Mend | Lose | Refuse | Hush | Loosen | BreakOff
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A transfer that somebody wants. *offset*: by how much the client's clock is off, ms."""

    sender: str
    recipient: str
    amount: int
    nonce: str
    offset: int


def surely(seed: str, *, slow: bool) -> Wanted:
    """A transfer of a seed that can be paid."""
    chance = random.Random(f"ledger/sure/{seed}")
    nonce = f"{chance.getrandbits(64):016x}"
    return Wanted(ISSUER, chance.choice(USERS[1:]), chance.randint(1, 40), nonce, -86_400_000 if slow else 0)


def wanted(seed: str) -> Wanted:
    """The transfer of a seed: of amounts of which the users have about so many, and of clocks that are off by a day in
    some. Mostly the issuer does not pay: else nobody would ever be refused.
    """
    chance = random.Random(f"ledger/{seed}")
    sender = chance.choices(USERS, [1, 2, 2, 2])[0]
    recipient = chance.choice([user for user in USERS if user != sender])
    if chance.random() < 0.03:
        recipient = NOBODY
    offset = chance.choices((0, -86_400_000, 86_400_000), [18, 1, 1])[0]
    return Wanted(sender, recipient, chance.randint(1, 40), f"{chance.getrandbits(64):016x}", offset)


def paid(seed: str) -> list[Wanted]:
    """What the issuer pays everybody, so that there is money."""
    chance = random.Random(f"ledger/paid/{seed}")
    return [Wanted(ISSUER, user, 40, f"{chance.getrandbits(64):016x}", 0) for user in USERS[1:]]


def step(chance: random.Random, number: int, seed: int) -> LedgerStep:
    """One step of the ledger's clients."""
    kinds: dict[str, int] = {"transfers": 2, "send": 4, "move": 8, "balance": 1}
    match chance.choices(list(kinds), list(kinds.values()))[0]:
        case "transfers":
            return Transfers(number, f"{seed}.{number}", chance.randint(1, 4))
        case "send":
            return Send(number, f"{seed}.{number}")
        case "move":
            ends = {End.WAIT: 5, End.DIE: 2, End.LOSE: 1, End.TWICE: 2}
            (end,) = chance.choices(list(ends), list(ends.values()))
            return Move(number, chance.randrange(100), chance.choice((1, 2, 3, 5, 8, 13, 40)), end)
        case _:
            return Balance(number, chance.randrange(100))


def begun(chance: random.Random, number: Callable[[], int], seed: int, *, aged: bool = False) -> Iterator[LedgerStep]:
    """What there is before anything else: some transfers that went well, and some clients half-way through theirs."""
    first = number()
    yield Transfers(first, f"{seed}.{first}", 3, after=True, aged=aged)
    for _ in range(chance.randint(2, 6)):
        asked = number()
        yield Send(asked, f"{seed}.{asked}")
        yield Move(number(), -1, chance.randint(4, 24), chance.choice((End.WAIT, End.DIE)))


def arguments(chance: random.Random) -> Iterator[str]:
    """Of a repair. The grace is none, or so long that nothing is old: what lies between would depend on who is fast."""
    yield from ("--grace", "0s" if chance.random() < 0.85 else "1h")
    if chance.random() < 0.3:
        yield "--full"
    if chance.random() < 0.15:
        yield "--list"
    if chance.random() < 0.15:
        yield from ("--from", "2020-01-01T00:00:00Z")


WORDS: dict[type, Callable[[Any], str]] = {
    Transfers: lambda step: (
        f"{step.transfers} transfers by {step.seed}{', after the issuer has paid' * step.after}"
        f"{', an hour ago' * step.aged}"
    ),
    Send: lambda step: (
        f"a client is asked for the transfer of {step.seed}{', by the issuer' * step.sure}"
        f"{', whose clock is slow' * step.slow}"
    ),
    Move: lambda step: f"the client {step.pick} takes {step.steps} steps and {step.end}",
    Balance: lambda step: f"user {step.pick}'s balance is asked for",
    Forge: lambda step: (
        f"{step.forgery}, of {'one of an hour ago' if step.aged else 'any'}, {step.pick}"
        f"{', with a time of then' * step.stamped}"
    ),
    Undo: lambda _: "what was forged is taken back",
    Mend: lambda _: "a person has the ledger mended",
    Lose: lambda _: "the index entry that was put last is lost",
    Refuse: lambda step: f"{step.table} takes {'no writes' if step.on else 'writes again'}",
    Hush: lambda step: f"{step.table} is {'not' if step.on else 'again'} to be written to",
    Loosen: lambda step: f"{step.table} {'may lose' if step.on else 'keeps'} what its servers have acknowledged",
    BreakOff: lambda step: f"who asks for user {step.pick}'s balance is broken off, and others ask",
}
