"""Scenes of a journal that lets go of what is old, or that somebody empties."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.maker import Maker, Scene
from tests.chaos.oracle_steps import Event, Oracle
from tests.chaos.steps import (
    ASKED,
    COUNTED,
    MISTAKEN,
    ROWS,
    TABLES,
    Alter,
    Change,
    Look,
    Read,
    Say,
    Seam,
    Step,
    Table,
    Word,
)


def scenes(make: Maker) -> list[Scene]:
    """In some order."""
    return make.shuffled(_waiting_for_the_journal, _kept_for_a_snapshot, _let_go_of, lost)


def _waiting_for_the_journal(make: Maker) -> list[Step]:
    """A table that came back has not been cleaned since: what it needs stays, though its HBase snapshot is gone. It
    comes before the journal lets go of anything, and is disabled then; or under another name, while a run that would
    let go has counted already.
    """
    table = make.chance.choice(TABLES)
    while_it_runs = make.variant(True, False)
    gone = Alter(make.next(), Change.UNSNAP, table)
    copied = Alter(make.next(), Change.COPY, Table.C, 0 if table is Table.A else ROWS - 1)
    back = [Alter(make.next(), change, table) for change in (Change.RESTORE, Change.DISABLE)]
    return [
        *(make.all_end(3) if while_it_runs else []),
        make.clients(14, (4,)),
        Alter(make.next(), Change.SNAPSHOT, table),
        *make.pruned(),
        *([] if while_it_runs else [*back, gone]),
        make.job("commit_table_pruning", *([make.at(COUNTED, 1, copied, gone)] if while_it_runs else [])),
        Say(make.next(), Word.CONFIRM, Table.C) if while_it_runs else Alter(make.next(), Change.ENABLE, table),
        make.cleanup(),
        *([Alter(make.next(), Change.DROP, Table.C)] if while_it_runs else []),
    ]


def _kept_for_a_snapshot(make: Maker) -> list[Step]:
    """The journal has to keep what an HBase snapshot may need, of a table that is gone too, or whose name a plain
    one has by now, and it comes back; when the HBase snapshot is gone, a run that is not to act finds what may go.
    """
    table = make.chance.choice(TABLES)
    gone, plain = make.variant((True, True), (True, False), (False, False))
    return [
        *(make.all_end(3) if gone else []),
        *([Alter(make.next(), Change.MAKE, Table.C)] if gone else []),
        make.clients(14, (4,)),
        Alter(make.next(), Change.SNAPSHOT, Table.C if gone else table),
        *make.pruned(),
        *([Alter(make.next(), Change.DROP, Table.C)] if gone else []),
        *([Alter(make.next(), Change.PLAIN, Table.C)] if plain else []),
        make.job("commit_table_pruning"),
        *([Alter(make.next(), Change.DROP, Table.C)] if plain else []),
        *([] if gone else [Alter(make.next(), Change.RESTORE, table), make.cleanup()]),
        Alter(make.next(), Change.UNSNAP, Table.C if gone else table),
        make.job("commit_table_pruning", execute=False),
    ]


def _let_go_of(make: Maker) -> list[Step]:
    """What a backup has comes back after the journal has let go of what proved it: a reader as of a time before is
    refused, and a person decides, and may be mistaken.
    """
    mistaken = make.variant(True, False)
    tables = make.chance.choice(((Table.A,), TABLES))
    return [
        *make.all_end(3),
        make.clients(14, (4,)),
        Look(make.next()),
        *(Alter(make.next(), Change.SNAPSHOT, table) for table in TABLES),
        *make.pruned(),
        *(Alter(make.next(), Change.UNSNAP, table) for table in TABLES),
        make.job("commit_table_pruning"),
        *(Alter(make.next(), Change.TRUNCATE, table) for table in tables),
        *(Alter(make.next(), Change.LOAD, table) for table in tables),
        Read(make.next(), -1, as_of=True),
        make.cleanup(),
        *(_mistaken(make) if mistaken else []),
        Say(make.next(), Word.DECIDE, Table.A),
    ]


def lost(make: Maker) -> list[Step]:
    """A table comes back, and somebody empties the journal, before a cleanup or when it is at work; also where it has
    let go of nothing before.
    """
    table = make.chance.choice(TABLES)
    lose = Alter(make.next(), Change.LOSE, table)
    at_work = make.variant(False, True)
    return [
        *make.all_end(3),
        make.clients(14, (4,)),
        Alter(make.next(), Change.SNAPSHOT, table),
        *make.pruned(),
        *([] if at_work else [lose]),
        Alter(make.next(), Change.RESTORE, table),
        make.cleanup(*([make.at("read", make.chance.randint(2, 12), lose)] if at_work else [])),
        Say(make.next(), Word.ACCEPT, table),
        make.cleanup(),
        Say(make.next(), Word.DECIDE, Table.A),
        Alter(make.next(), Change.UNSNAP, table),
    ]


def _mistaken(make: Maker) -> list[Step]:
    """A person says of one that committed that it never did, and learns better when a cleanup has put its cells aside;
    readers are shown them again. The commit table comes back when that is looked into, and is said to be whole.
    """
    refused, back = (make.job("sideline_restore", *seams, pick=-1) for seams in ((_doubt(make),), ()))
    return [
        Say(make.next(), Word.MISTAKE, Table.A),
        Say(make.next(), Word.DECIDE, Table.A),
        make.cleanup(),
        Oracle(make.next(), Event.KEEP),
        *(replace(run, arguments=(*run.arguments, "--as-committed", MISTAKEN)) for run in (refused, back)),
        Look(make.next()),
        Read(make.next(), -1, as_of=False),
    ]


def _doubt(make: Maker) -> Seam:
    return make.at(ASKED, 1, *(Oracle(make.next(), event) for event in (Event.BACK, Event.WHOLE)))
