"""Scenes of torn transactions: a sibling's shadow cell is the only proof, and that is where it is hard to see."""

from __future__ import annotations

from functools import partial

from tests.chaos.maker import Maker, Scene
from tests.chaos.oracle_steps import Event, Oracle
from tests.chaos.scenes.late import landing_late
from tests.chaos.steps import READS, ROWS, SEARCHES, TABLES, Alter, Change, Compact, Say, Step, Table, Word


def scenes(make: Maker) -> list[Scene]:
    """In some order. After the last there is a table that nobody has confirmed."""
    found = make.shuffled(Change.DISABLE, Change.UNMARK, Change.GARBLE)
    unseen = [partial(_unseen, change=change) for change in (*found, Change.RENAME)]
    return [landing_late, _away_while_it_is_searched, *unseen]


def _away_while_it_is_searched(make: Maker) -> list[Step]:
    """The table with the only proof is empty when a cleanup of the other searches it, and back right after that."""
    away, back = (Alter(make.next(), change, Table.A) for change in (Change.TRUNCATE, Change.RESTORE))
    return [
        *make.all_end(4),
        make.clients(20, (10,)),
        make.watermark(),
        Compact(make.next()),
        Alter(make.next(), Change.SNAPSHOT, Table.A),
        make.run(
            *("orphan_cleanup", "--table", Table.B, "--execute"),
            seams=(make.at(READS, 1, away), make.after(SEARCHES, 1, back)),
        ),
        Alter(make.next(), Change.RESTORE, Table.A),
        make.cleanup(),
        Say(make.next(), Word.DECIDE, Table.A),
    ]


def _unseen(make: Maker, change: Change) -> list[Step]:
    """The only proof is where a cleanup does not see it, or cannot read it, be it that its table is disabled when that
    is listed already. Where a table is under another name, one of another oracle's has come as well, and both are to be
    confirmed.
    """
    # A client proves its cells table by table, so that the half that is proved is in the first, mostly.
    table = make.variant(Table.A, Table.A, Table.A, Table.B)
    renamed = change is Change.RENAME
    clients = make.clients(26, (10, 1)) if renamed else make.clients(20, (10,))
    steps: list[Step] = [clients, make.watermark(), Compact(make.next())]
    if renamed:
        steps += make.all_end(6)  # or somebody would write to what is not there
        steps += [make.job("watermark_collection")]  # by which a table that comes later is told from others
    if change is Change.GARBLE:
        steps += [Alter(make.next(), change, table, key) for key in make.chance.sample(range(1, ROWS), 2)]
    elif change is not Change.DISABLE or make.variant(True, False):
        steps += [Alter(make.next(), change, table, make.chance.randrange(1, ROWS))]
    else:
        [other] = set(TABLES) - {table}
        disabled = make.at(READS, 1, Alter(make.next(), change, table))
        steps += [make.run("orphan_cleanup", "--table", other, "--execute", seams=(disabled,))]
    theirs = [Oracle(make.next(), event) for event in (Event.IMPORT, Event.GONE) if renamed]
    steps += [*theirs[:1], make.cleanup(full=make.chance.random() < 0.3), *theirs[1:]]
    if change is Change.UNMARK:
        steps += [Alter(make.next(), Change.MARK, table)]
    return steps
