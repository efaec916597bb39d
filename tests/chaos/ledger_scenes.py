"""Scenes of the ledger: what has to meet in an order that hardly comes by itself, each time a little different.

Each begins and ends with money that adds up. While something is forged nobody but repairs does anything: what a client
would decide by forged rows is no fault of the ledger's.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.chaos.ledger_plan import (
    BALANCES,
    REPAIR,
    BreakOff,
    End,
    Forge,
    Forgery,
    Hush,
    Loosen,
    Lose,
    Mend,
    Move,
    Refuse,
    Send,
    Undo,
)
from tests.chaos.nemeses import Kind, Nemesis

if TYPE_CHECKING:
    from tests.chaos.plan import Run, Seam, Step

    Scene = Callable[[], list[Step]]

#: Stands in a run's arguments for the configuration of a ledger that has a grace.
WITH_GRACE = "{grace}"
#: Where a repair writes the mark, and what it knows with it: that it found wrong money, that an entry was given back,
#: or, last, how far all is settled.
MARK = "_write"
#: Of the tables by which a transfer goes on: those that refuse what a repair does in its middle.
_REFUSING = ("transactions", "user_transactions")
#: All tables of money.
_BOOKS = (*_REFUSING, "open_transactions", "users")


@dataclass
class Scenes:
    """Draws them. *run* makes a run of a job, *at* a seam with steps, *dying* one behind which it is dead. *paced*: the
    arguments of a run that keeps to a rate, and what the seam is called where its first write waits for its turn.
    """

    chance: random.Random
    number: Callable[[], int]
    seed: int
    run: Callable[..., Run]
    at: Callable[..., Seam]
    dying: Callable[[str, int], Seam]
    paced: tuple[tuple[str, ...], str]

    def all(self) -> list[Scene]:
        """In some order; the one without which the others' runs would all look at everything comes first."""
        scenes: list[Scene] = [
            self._behind_the_mark,
            self._found_by_two,
            self._found_by_the_next,
            self._forged_meanwhile,
            self._lost,
            self._said_to_be_dropped,
            self._within_the_grace,
            self._refused,
            self._hushed,
            self._loose,
            self._mended,
        ]
        self.chance.shuffle(scenes)
        return [lambda: [self._repair(full=True)], *scenes]

    # -- money

    def _found_by_the_next(self) -> list[Step]:
        """What was written after a repair has counted the money the next one finds, dry or not, however old its
        transaction is.
        """
        first = self._repair(execute=self.chance.random() < 0.5)
        return [
            self._repair(self.at(MARK, 1, self._forge(Forgery.OTHER))),
            *self._shuffled(self._balances(), first),
            *self._undone(),
        ]

    def _found_by_two(self) -> list[Step]:
        """What a full check alone can find, while a repair that has found nothing is about to move the mark; then every
        run has to make one, until one is right. Something else comes, and is found, while that one is about to say so.
        """
        found, again = (self.at(MARK, 1, self._old(), self._repair(full=True)) for _ in range(2))
        return [
            self._repair(found),
            Undo(self.number()),
            self._repair(again, full=True),
            self._repair(execute=self.chance.random() < 0.5),
            *self._undone(),
        ]

    def _forged_meanwhile(self) -> list[Step]:
        """While a repair is at work, which has counted the money."""
        forgery = self.chance.choice((Forgery.THIRD, Forgery.AMOUNT))
        seam = self.at("rows", self.chance.randint(1, 3), self._forge(forgery, aged=self.chance.random() < 0.5))
        return [*self._dead(), *self._dead(), self._repair(seam), *self._undone()]

    def _lost(self) -> list[Step]:
        """Finished transactions of which a full check knew."""
        return [
            self._forge(Forgery.LOST),
            self._repair(full=True),
            *self._undone(),
        ]

    def _said_to_be_dropped(self) -> list[Step]:
        """A contradiction that moves no money."""
        return [self._forge(Forgery.DECISION), self._repair(full=True, execute=False), Undo(self.number())]

    def _mended(self) -> list[Step]:
        """Records are of another moment than their transactions, as when tables came back: they follow these."""
        forged = self._shuffled(*(self._forge(f) for f in (Forgery.MISSING, Forgery.AMOUNT, Forgery.THIRD)))
        return [*forged[: self.chance.randint(1, 2)], self._forge(Forgery.MISSING), Mend(self.number()), self._repair()]

    # -- what is open

    def _behind_the_mark(self) -> list[Step]:
        """A claim behind the mark, and one whose entry is lost: what a full check finds and dies of, while a repair
        that looked before goes on; then one that ends well.
        """
        dead = {full: self._repair(self.dying(MARK, 1), full=True) for full in (1, 2)}
        return [
            *self._dead(slow=True),
            self._repair(self.at("read", 1, dead[1])),
            *self._dead(),
            Lose(self.number()),
            self._repair(self.at(MARK, 1, dead[2])),
            *self._dead(slow=True),
            self._repair(full=True),
        ]

    def _within_the_grace(self) -> list[Step]:
        """A repair with a grace shorter than the ledger's, on a machine whose clock is fast, while two are about to
        claim, of whom one has a slow clock; and one when both are done, that nothing keeps the mark back for.
        """
        sent = [(Send(n := self.number(), f"{self.seed}.{n}", sure=True, slow=slow), self._write()) for slow in (0, 1)]
        shorter = ("--config", WITH_GRACE, "--grace", "0s")
        return [
            *(step for pair in sent for step in pair),
            Nemesis(self.number(), Kind.CLOCK, 0, self.chance.choice((20, 40))),
            self.run(REPAIR, *shorter, "--full", "--execute"),
            *(Move(self.number(), -1, 40, End.WAIT) for _ in sent),
            self.run(REPAIR, *shorter, "--execute"),
        ]

    def _refused(self) -> list[Step]:
        """HBase refuses what a repair writes from somewhere on."""
        table = self.chance.choice(_REFUSING)
        return [
            *self._dead(),
            self._repair(self.at("rows", self.chance.randint(1, 2), Refuse(self.number(), table, on=True))),
            Refuse(self.number(), table, on=False),
        ]

    def _hushed(self) -> list[Step]:
        """Owners say no while a repair that keeps to a rate has written nothing yet, as it waits for its turn."""
        words, turn = self.paced
        hushed, again = ([Hush(self.number(), table, on=on) for table in _REFUSING] for on in (True, False))
        arguments = ("--grace", "0s", *words, "--execute")
        return [*self._dead(), self.run(REPAIR, *arguments, seams=(self.at(turn, 1, *hushed),)), *again]

    def _loose(self) -> list[Step]:
        """A table of which HBase may take back what it acknowledged is no basis for anything; and who is broken off."""
        table = self.chance.choice(_BOOKS)
        asks = self._balances() if self.chance.random() < 0.5 else self._repair(full=True)
        return [
            BreakOff(self.number(), self.chance.randrange(100)),
            Loosen(self.number(), table, on=True),
            asks,
            Loosen(self.number(), table, on=False),
        ]

    # -- steps

    def _repair(self, *seams: Seam, full: bool = False, execute: bool = True) -> Run:
        words = ("--full",) * full + ("--execute",) * execute
        return self.run(REPAIR, "--grace", "0s", *words, seams=seams)

    def _balances(self) -> Run:
        return self.run(BALANCES)

    def _forge(self, forgery: Forgery, *, aged: bool = True, stamped: bool = False) -> Forge:
        return Forge(self.number(), forgery, self.chance.randrange(100), aged, stamped)

    def _old(self) -> Forge:
        return self._forge(self.chance.choice((Forgery.AMOUNT, Forgery.THIRD)), stamped=True)

    def _undone(self) -> list[Step]:
        return [Undo(self.number()), self._repair(full=True)]

    def _dead(self, *, slow: bool = False) -> list[Step]:
        """A client dies after its claim."""
        asked = self.number()
        send = Send(asked, f"{self.seed}.{asked}", sure=True, slow=slow)
        return [send, self._write(), self._write(), Move(self.number(), -1, self.chance.randint(0, 4), End.DIE)]

    def _write(self) -> Move:
        return Move(self.number(), -1, 0, End.WRITE)

    def _shuffled(self, *steps: Step) -> list[Step]:
        found = list(steps)
        self.chance.shuffle(found)
        return found
