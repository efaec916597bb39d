"""Scenes of tables that come back: as they were, under another name, at the last moment."""

from __future__ import annotations

from tests.chaos.maker import Maker, Scene
from tests.chaos.scenes.swept import lost
from tests.chaos.steps import (
    COUNTED,
    RECORD,
    ROWS,
    TABLES,
    TIMED,
    Alter,
    Change,
    Compact,
    Land,
    Look,
    Read,
    Say,
    Step,
    Table,
    Turn,
    Word,
)


def scenes(make: Maker) -> list[Scene]:
    """In some order, but for the first two: no collection is to have told the bound before the first, and nothing is to
    hold it in the second. After the last nothing is proved by the journal any more.
    """
    return [_under_a_new_name, _unlisted, *make.shuffled(_as_it_was, _back_at_the_last_moment, _replayed), lost]


def _under_a_new_name(make: Maker) -> list[Step]:
    """What an HBase snapshot has comes back, under the name of a table that was cleaned less far, and the tables
    themselves are gone. Where readers mark what they find no proof of, it goes once more, and their marks are pruned
    before it is back.
    """
    away = make.of({Change.TRUNCATE: 1, Change.ANEW: 1})
    source = make.chance.choice((0, ROWS - 1))
    met = make.variant(True, False)
    return [
        *make.all_end(3),
        Alter(make.next(), Change.MAKE, Table.C),
        make.clients(6),
        make.watermark(),
        make.run("orphan_cleanup", "--table", Table.C, "--execute"),
        Alter(make.next(), Change.DROP, Table.C),
        *_snapshots(make),
        make.cleanup(),
        make.job("commit_table_pruning"),
        *(Alter(make.next(), away, table) for table in TABLES),
        *_copied(make, source),
        *([*_met_and_gone(make), *_copied(make, source)] if met else []),
        Compact(make.next()),
        make.cleanup(),
        Say(make.next(), Word.DECIDE, Table.A),
        make.cleanup(),  # what is undecided in a range keeps all that is in it
        Alter(make.next(), Change.DROP, Table.C),
    ]


def _copied(make: Maker, source: int) -> list[Step]:
    return [Alter(make.next(), Change.COPY, Table.C, source), Say(make.next(), Word.CONFIRM, Table.C)]


def _met_and_gone(make: Maker) -> list[Step]:
    """Nothing hides the marks, and nothing holds them back: no other table has cells of theirs."""
    return [
        Compact(make.next()),
        Say(make.next(), Word.MEET, Table.C),
        Alter(make.next(), Change.DROP, Table.C),
        make.cleanup(),
        make.job("commit_table_pruning"),
    ]


def _unlisted(make: Maker) -> list[Step]:
    """A table comes, and is written to, when a pruning has listed those that there are, and looks into a plain one; all
    of those are cleaned beyond that before it goes on.
    """
    meanwhile = [Alter(make.next(), Change.MAKE, Table.B), make.clients(12, (4,)), make.watermark()]
    cleaned = make.run("orphan_cleanup", "--table", Table.A, "--execute")
    return [
        *make.all_end(4),
        Alter(make.next(), Change.DROP, Table.C),
        Alter(make.next(), Change.PLAIN, Table.C),
        Alter(make.next(), Change.DROP, Table.B),
        make.watermark(),
        make.job("commit_table_pruning", make.at("read", 1, *meanwhile, cleaned)),
        Alter(make.next(), Change.MAKE, Table.B),
        Alter(make.next(), Change.DROP, Table.C),
    ]


def _as_it_was(make: Maker) -> list[Step]:
    """Tables come back as they were when somebody was under way, who has committed since; readers meet what is
    there, what was cleaned of a table is forgotten, and an early part of it is cleaned first, or the records are reset.
    """
    back = make.of({Change.RESTORE: 2, Change.CLONE: 1})
    in_parts = make.variant(True, False)
    met, forgotten = make.chance.sample(TABLES, 2)
    return [
        *([make.job("watermark_collection")] if in_parts else []),
        *_snapshots(make),
        make.cleanup(),
        *(Alter(make.next(), back, table) for table in TABLES),
        Compact(make.next()),
        Say(make.next(), Word.MEET, met),
        *([] if in_parts else [Say(make.next(), Word.RESET, met)]),
        Say(make.next(), Word.FORGET, forgotten),
        *([make.early_part()] if in_parts else []),
        make.cleanup(),
        Say(make.next(), Word.DECIDE, Table.A),
    ]


def _back_at_the_last_moment(make: Maker) -> list[Step]:
    """A table comes back when a cleanup is about to record it; another when a pruning knows how far all are."""
    tables = make.chance.sample(TABLES, 2)
    back = make.of({Change.RESTORE: 1, Change.CLONE: 1})
    first, second = (Alter(make.next(), back, table) for table in tables)
    return [
        Alter(make.next(), Change.MAKE, Table.C),
        make.clients(20, (4,)),
        *(Alter(make.next(), Change.SNAPSHOT, table) for table in tables),
        make.watermark(),
        make.cleanup(make.at(*make.variant((TIMED, 5), (RECORD, 1)), first)),
        make.cleanup(),
        make.job("watermark_collection"),
        make.job("commit_table_pruning", make.at(COUNTED, 1, second)),
    ]


def _replayed(make: Maker) -> list[Step]:
    """A table comes back, and its commit entries from the journal, which has the marks of others, though an entry
    landed beside them; readers need no cleanup then. Or a cleanup finds what it needs there.
    """
    table = make.chance.choice(TABLES)
    replayed = make.variant(False, True)
    return [
        make.clients(16, (1, 4)),
        Alter(make.next(), Change.SNAPSHOT, table),
        make.watermark(),
        make.cleanup(),
        *(Land(make.next(), make.chance.randrange(100), guarded=False) for _ in range(2)),
        make.job("watermark_collection"),
        make.job("commit_table_pruning"),
        Alter(make.next(), Change.RESTORE, table),
        make.job("journal_replay") if replayed else make.cleanup(),
        Look(make.next()),
        Read(make.next(), -1, as_of=False),
        *([make.cleanup()] if replayed else []),
    ]


def _snapshots(make: Maker) -> list[Step]:
    """Some are under way when HBase snapshots are taken, and end well afterwards."""
    steps: list[Step] = []
    for _ in range(5):
        steps += [make.open(calm=True), Turn(make.next(), -1, make.chance.randint(0, 2))]
    steps += [Alter(make.next(), Change.SNAPSHOT, table) for table in TABLES]
    return [*steps, *make.all_end(7), make.watermark()]
