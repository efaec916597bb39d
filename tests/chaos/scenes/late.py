"""Scenes of entries that land late, and of runs that are overtaken, told no, or do not see all."""

from __future__ import annotations

from tests.chaos.maker import Maker, Scene
from tests.chaos.nemeses import Kind, Nemesis
from tests.chaos.steps import (
    AT_A_RATE,
    LOOKS_AGAIN,
    ROWS,
    TABLES,
    Act,
    Alter,
    Change,
    Moment,
    Resume,
    Say,
    Seam,
    Step,
    Table,
    Word,
)
from tests.chaos.worlds import World


def scenes(make: Maker) -> list[Scene]:
    """In some order."""
    return make.shuffled(landing_late, hidden, _overtaken, _unjournaled, _bare, _paused_while_it_waits, _loose)


def landing_late(make: Maker) -> list[Step]:
    """Entries land before a cleanup, between what it decides and its first write, or both; where one may, the client
    takes it away again. Others have committed above the low watermark, and have no shadow cells yet.
    """
    taken = make.world is World.LATE
    before = [make.land(-1, taken=taken), *(make.land() for _ in range(make.chance.randint(0, 1)))]
    between = [make.land(-1, taken=taken), make.land(-1, taken=False), make.land()]
    return [
        make.clients(14, (1,)),
        make.watermark(),
        *before,
        make.clients(6, (4,)),
        make.cleanup(make.at("connector", 1, *between)),
        Say(make.next(), Word.DECIDE, Table.A),
    ]


def hidden(make: Maker) -> list[Step]:
    """A cleanup meets a table that hides cells; one on a machine whose clock is off would do what is left then. Of
    another a server loses what it has healed, where a compaction takes nothing else.
    """
    table = make.chance.choice(TABLES)
    lost = [Alter(make.next(), Change.UNHEAL, each) for each in TABLES] if make.world is World.LATE else []
    return [
        make.clients(12, (1, 4)),
        make.watermark(),
        Alter(make.next(), Change.HIDE, table, make.chance.randrange(1, ROWS)),
        make.cleanup(*([make.at(LOOKS_AGAIN, 1, *lost)] if lost else [])),
        Alter(make.next(), Change.SHOW, table),
        Nemesis(make.next(), Kind.CLOCK, 1, make.chance.choice((-1, 1)) * 86_400),
        make.cleanup(),
    ]


def _overtaken(make: Maker) -> list[Step]:
    """A cleanup stands still before it writes; another takes its tables over, and dies; the first goes on."""
    ends, nth = make.variant(((0, 1, 4), 1), ((4, 5), 1), ((0, 1, 4), 2))
    parked = make.parking("connector", nth)
    dies = Seam(make.next(), "connector", 1, Moment.BEFORE, Act.DIE)
    return [
        make.clients(16, ends),
        make.watermark(),
        make.cleanup(parked),
        make.cleanup(dies),
        Resume(make.next(), -1),
    ]


def _unjournaled(make: Maker) -> list[Step]:
    """The journal refuses what a pruning writes: all of it, or from where it has begun to act."""
    deaf = Alter(make.next(), Change.DEAFEN, Table.A)
    begun = make.variant(True, False)
    return [
        make.clients(12, (4,)),
        make.watermark(),
        make.cleanup(),
        make.job("watermark_collection"),
        *([] if begun else [deaf]),
        make.job("commit_table_pruning", *([make.at("connector", 1, deaf)] if begun else [])),
        Alter(make.next(), Change.HEAR, Table.A),
        make.job("commit_table_pruning"),
    ]


def _bare(make: Maker) -> list[Step]:
    """A table has shadow cells, cells without, and no mark, and is disabled until others know how far they are. Or it
    has a cell without, and nothing else tells that it bore a mark when it was listed.
    """
    table = make.chance.choice(TABLES)
    away = make.variant(True, False)
    alone = [make.job("watermark_collection"), Alter(make.next(), Change.ALONE, table, make.chance.randrange(1, ROWS))]
    return [
        make.clients(14, (4,)),
        *([] if away else alone),
        make.watermark(),
        Alter(make.next(), Change.BARE, table),
        *([Alter(make.next(), Change.DISABLE, table)] if away else []),
        make.cleanup(),
        make.job("watermark_collection"),
        *([Alter(make.next(), Change.ENABLE, table)] if away else []),
        make.job("commit_table_pruning"),
        Alter(make.next(), Change.MARK, table),
    ]


def _loose(make: Maker) -> list[Step]:
    """A table's servers may lose what they acknowledged, which its owner accepts: there is something to do, and then
    nothing is read any more.
    """
    return [
        make.clients(16, (1, 4)),
        Alter(make.next(), Change.LOOSE, Table.B),
        make.watermark(),
        make.cleanup(),
        make.watermark(),
        make.cleanup(),
        Alter(make.next(), Change.FIRM, Table.B),
    ]


def _paused_while_it_waits(make: Maker) -> list[Step]:
    """Somebody pauses the tables while a cleanup that keeps to a rate has written nothing to them yet, as it waits
    for its turn.
    """
    pauses = [Say(make.next(), Word.PAUSE, table) for table in TABLES]
    return [
        make.clients(16, make.variant((4, 5), (0, 4))),
        make.watermark(),
        make.run("orphan_cleanup", *AT_A_RATE, "--execute", seams=(make.in_turn(*pauses),)),
        *(Say(make.next(), Word.RESUME, table) for table in TABLES),
    ]
