"""Scenes of Omid's own compactor."""

from __future__ import annotations

from tests.chaos.maker import Maker, Scene
from tests.chaos.scenes.late import hidden
from tests.chaos.steps import TABLES, WRITTEN, Alter, Change, Look, Read, Say, Step, Table, Word


def scenes(make: Maker) -> list[Scene]:
    """In this order."""
    return [_healed_before_a_compaction, _refused, hidden]


def _healed_before_a_compaction(make: Maker) -> list[Step]:
    """What was healed, by a reader or by a cleanup, lies in a newer file than what was there, and the newer files
    are compacted alone. Before that the table comes back as a reader had left it, and is cleaned in parts; or not.
    """
    back = make.variant(True, False)
    # The other has two regions, and in each fewer files to compact.
    table = make.of({Table.B: 3, Table.A: 1})
    return [
        make.clients(12, (4,)),
        *([make.watermark(), make.job("watermark_collection"), make.clients(12, (4,))] if back else []),
        Look(make.next()),
        make.clients(12, (4,)),
        Alter(make.next(), Change.FLUSH, table),
        Alter(make.next(), Change.COMPACT, table),
        Read(make.next(), -1, as_of=False, heals=True),
        *(_pruned_and_back(make, table) if back else make.pruned()),
        Alter(make.next(), Change.FLUSH, table),
        make.clients(3),
        Alter(make.next(), Change.COMPACTOR, table),
        Alter(make.next(), Change.NEWER, table),
        # What the reader wrote is in a file of its own then, between what there was and what a cleanup wrote.
        *([Alter(make.next(), Change.NEWER, table)] if back else []),
        Alter(make.next(), Change.COMPACT, table),
        Look(make.next()),
        Read(make.next(), -1, as_of=False),
    ]


def _pruned_and_back(make: Maker, table: Table) -> list[Step]:
    """What began before the first run ended is cleaned first, then what came later."""
    return [
        Alter(make.next(), Change.SNAPSHOT, table),
        make.watermark(),
        make.cleanup(),
        make.job("commit_table_pruning"),
        Alter(make.next(), Change.RESTORE, table),
        make.run("orphan_cleanup", "--to", "{time}", "--execute"),
        Say(make.next(), Word.DECIDE, table),  # what a reader had marked before it came back
        make.cleanup(),
    ]


def _refused(make: Maker) -> list[Step]:
    """HBase refuses what a cleanup writes from somewhere on."""
    frozen = [Alter(make.next(), Change.FREEZE, table) for table in TABLES]
    # When what goes is put aside that table has been healed, and nothing but the refusal tells that any of it stays.
    ends, kind, nth = make.variant(((0, 1), WRITTEN, 1), ((4, 5), "connector", 1), ((0, 1, 4), "connector", 3))
    return [
        make.clients(16, ends),
        make.watermark(),
        make.cleanup(make.at(kind, nth, *frozen)),
        *(Alter(make.next(), Change.THAW, table) for table in TABLES),
        make.cleanup(),
    ]
