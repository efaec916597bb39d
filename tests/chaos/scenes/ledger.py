"""Scenes of the ledger: what has to meet in an order that hardly comes by itself.

Each begins and ends with money that adds up. While something is forged nobody but repairs does anything: what a client
would decide by forged rows is no fault of the ledger's.
"""

from __future__ import annotations

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
from tests.chaos.maker import Maker, Scene
from tests.chaos.nemeses import Kind, Nemesis
from tests.chaos.steps import AT_A_RATE, Run, Seam, Step

#: Stands in a run's arguments for the configuration of a ledger that has a grace.
WITH_GRACE = "{grace}"
#: Where a repair writes the mark, and what it knows with it: that it found wrong money, that an entry was given back,
#: or, last, how far all is settled.
MARK = "_write"
#: Of the tables by which a transfer goes on: those that refuse what a repair does in its middle.
_REFUSING = ("transactions", "user_transactions")
#: All tables of money.
_BOOKS = (*_REFUSING, "open_transactions", "users")


def scenes(make: Maker) -> list[Scene]:
    """In some order; the one without which the others' runs would all look at everything comes first."""
    return [
        _all_is_looked_at,
        *make.shuffled(
            _behind_the_mark,
            _found_by_two,
            _found_by_the_next,
            _forged_meanwhile,
            _lost,
            _said_to_be_dropped,
            _within_the_grace,
            _refused,
            _hushed,
            _loose,
            _mended,
        ),
    ]


def overtaken(make: Maker) -> list[Step]:
    """A client decides what a repair, on a machine whose clock is fast, has read as undecided and is about to decide;
    all that its sender was asked for before is decided. And somebody who asks for a balance is broken off.
    """
    return [
        _asked(make),
        Move(make.next(), -1, 100, End.WAIT),
        _asked(make),
        *(_write(make) for _ in range(4)),
        BreakOff(make.next(), make.chance.randrange(100)),
        Nemesis(make.next(), Kind.CLOCK, 0, make.chance.choice((20, 40))),
        _repair(make, make.at("rows", 1, _write(make))),
        Move(make.next(), -1, 40, End.WAIT),
    ]


def _all_is_looked_at(make: Maker) -> list[Step]:
    return [_repair(make, full=True)]


# -- money


def _found_by_the_next(make: Maker) -> list[Step]:
    """What was written after a repair has counted the money the next one finds, dry or not, however old its
    transaction is.
    """
    first = _repair(make, execute=make.chance.random() < 0.5)
    return [
        _repair(make, make.at(MARK, 1, _forge(make, Forgery.OTHER))),
        *make.shuffled(_balances(make), first),
        *_undone(make),
    ]


def _found_by_two(make: Maker) -> list[Step]:
    """What a full check alone can find, while a repair that has found nothing is about to move the mark; then every
    run has to make one, until one is right. Something else comes, and is found, while that one is about to say so.
    """
    both = make.shuffled(Forgery.AMOUNT, Forgery.THIRD)
    found, again = (make.at(MARK, 1, _forge(make, one, stamped=True), _repair(make, full=True)) for one in both)
    return [
        _repair(make, found),
        Undo(make.next()),
        _repair(make, again, full=True),
        *make.shuffled(_repair(make), _repair(make, execute=False)),
        *_undone(make),
    ]


def _forged_meanwhile(make: Maker) -> list[Step]:
    """While a repair is at work, which has counted the money."""
    forgery = make.chance.choice((Forgery.THIRD, Forgery.AMOUNT))
    seam = make.at("rows", make.chance.randint(1, 3), _forge(make, forgery, aged=make.chance.random() < 0.5))
    return [*_dead(make), *_dead(make), _repair(make, seam), *_undone(make)]


def _lost(make: Maker) -> list[Step]:
    """Finished transactions of which a full check knew."""
    return [
        _forge(make, Forgery.LOST),
        _repair(make, full=True),
        *_undone(make),
    ]


def _said_to_be_dropped(make: Maker) -> list[Step]:
    """A contradiction that moves no money."""
    return [_forge(make, Forgery.DECISION), _repair(make, full=True, execute=False), Undo(make.next())]


def _mended(make: Maker) -> list[Step]:
    """Records are of another moment than their transactions, as when tables came back: they follow these."""
    forged = make.shuffled(*(_forge(make, f) for f in (Forgery.MISSING, Forgery.AMOUNT, Forgery.THIRD)))
    return [*forged[: make.chance.randint(1, 2)], _forge(make, Forgery.MISSING), Mend(make.next()), _repair(make)]


# -- what is open


def _behind_the_mark(make: Maker) -> list[Step]:
    """A claim behind the mark, and one whose entry is lost: what a full check finds and dies of, while a repair
    that looked before goes on; then one that ends well.
    """
    dead = {full: _repair(make, make.dying(MARK, 1), full=True) for full in (1, 2)}
    return [
        *_dead(make, slow=True),
        _repair(make, make.at("read", 1, dead[1])),
        *_dead(make),
        Lose(make.next()),
        _repair(make, make.at(MARK, 1, dead[2])),
        *_dead(make, slow=True),
        _repair(make, full=True),
    ]


def _within_the_grace(make: Maker) -> list[Step]:
    """A repair with a grace shorter than the ledger's, on a machine whose clock is fast, while two are about to
    claim, of whom one has a slow clock; and one when both are done, that nothing keeps the mark back for.
    """
    sent = [(_asked(make, slow=slow), _write(make)) for slow in (False, True)]
    shorter = ("--config", WITH_GRACE, "--grace", "0s")
    return [
        *(step for pair in sent for step in pair),
        Nemesis(make.next(), Kind.CLOCK, 0, make.chance.choice((20, 40))),
        make.run(REPAIR, *shorter, "--full", "--execute"),
        *(Move(make.next(), -1, 40, End.WAIT) for _ in sent),
        make.run(REPAIR, *shorter, "--execute"),
    ]


def _refused(make: Maker) -> list[Step]:
    """HBase refuses what a repair writes from somewhere on."""
    table = make.chance.choice(_REFUSING)
    return [
        *_dead(make),
        _repair(make, make.at("rows", make.chance.randint(1, 2), Refuse(make.next(), table, on=True))),
        Refuse(make.next(), table, on=False),
    ]


def _hushed(make: Maker) -> list[Step]:
    """Owners say no while a repair that keeps to a rate has written nothing yet, as it waits for its turn."""
    hushed, again = ([Hush(make.next(), table, on=on) for table in _REFUSING] for on in (True, False))
    arguments = ("--grace", "0s", *AT_A_RATE, "--execute")
    return [*_dead(make), make.run(REPAIR, *arguments, seams=(make.in_turn(*hushed),)), *again]


def _loose(make: Maker) -> list[Step]:
    """A table of which HBase may take back what it acknowledged is no basis for anything; and who is broken off."""
    table = make.chance.choice(_BOOKS)
    asks = _balances(make) if make.chance.random() < 0.5 else _repair(make, full=True)
    return [
        BreakOff(make.next(), make.chance.randrange(100)),
        Loosen(make.next(), table, on=True),
        asks,
        Loosen(make.next(), table, on=False),
    ]


# -- steps


def _repair(make: Maker, *seams: Seam, full: bool = False, execute: bool = True) -> Run:
    words = ("--full",) * full + ("--execute",) * execute
    return make.run(REPAIR, "--grace", "0s", *words, seams=seams)


def _balances(make: Maker) -> Run:
    return make.run(BALANCES)


def _forge(make: Maker, forgery: Forgery, *, aged: bool = True, stamped: bool = False) -> Forge:
    return Forge(make.next(), forgery, make.chance.randrange(100), aged, stamped)


def _undone(make: Maker) -> list[Step]:
    return [Undo(make.next()), _repair(make, full=True)]


def _dead(make: Maker, *, slow: bool = False) -> list[Step]:
    """A client dies after its claim."""
    return [
        _asked(make, slow=slow),
        _write(make),
        _write(make),
        Move(make.next(), -1, make.chance.randint(0, 4), End.DIE),
    ]


def _asked(make: Maker, *, slow: bool = False) -> Send:
    """The issuer pays, which can be paid."""
    number = make.next()
    return Send(number, f"{make.seed}.{number}", sure=True, slow=slow)


def _write(make: Maker) -> Move:
    return Move(make.next(), -1, 0, End.WRITE)
