"""Scenes of history that goes: tables that are another's, or held, by then, and what is put back."""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.maker import Maker, Scene
from tests.chaos.nemeses import ANY, Kind, Nemesis
from tests.chaos.steps import (
    INTENDED,
    MARKED,
    MISTAKEN,
    ROWS,
    TABLES,
    WRITTEN,
    Act,
    Age,
    Alter,
    Change,
    Land,
    Look,
    Moment,
    Read,
    Resume,
    Say,
    Seam,
    Step,
    Table,
    Word,
)


def scenes(make: Maker) -> list[Scene]:
    """In some order, but for the last ones; somebody is mistaken in every other plan."""
    return [
        *make.shuffled(_history_of_another, _held_at_the_last_moment, _back_while_it_goes, _nothing_goes),
        _put_back_into_another,
        *make.variant((), (_deleted_meanwhile,)),
        _under_one_name,
    ]


def _history_of_another(make: Maker) -> list[Step]:
    """A table comes back, or another has its name, while a run that removes history is about to write to it, which it
    does to the first table first, or stands somewhere.
    """
    first = make.variant(True, False)
    table = Table.A if first else make.chance.choice(TABLES)
    back = Alter(make.next(), make.variant(Change.RESTORE, Change.RESTORE, Change.CLONE), table)
    return [
        Alter(make.next(), Change.SNAPSHOT, table),
        *_old(make),
        make.job("history_gc", make.at("connector", 1, back) if first else _somewhere(make, back)),
    ]


def _held_at_the_last_moment(make: Maker) -> list[Step]:
    """Somebody holds a table from where a reader reads when a run has decided what goes, or when it has said so."""
    said = [Say(make.next(), Word.KEEP, table) for table in TABLES]
    return [
        Look(make.next()),
        *_old(make),
        make.job("history_gc", make.at(make.variant(INTENDED, MARKED), 1, *said)),
        Read(make.next(), -1, as_of=True),
        *(Say(make.next(), Word.RELEASE, table) for table in TABLES),
    ]


def _back_while_it_goes(make: Maker) -> list[Step]:
    """What a run has removed is put back while another removes what was over it."""
    # Three runs after it can be restored from.
    restore = make.job("sideline_restore", pick=-3)
    return [
        *_old(make),
        make.job("history_gc"),
        *_old(make),
        make.job("history_gc", make.at("connector", make.variant(1, 2, 3), restore)),
    ]


def _nothing_goes(make: Maker) -> list[Step]:
    """The clock is off, and a table hides cells, when runs would remove some."""
    off = make.chance.choice((-1, 1)) * 86_400
    table = make.chance.choice(TABLES)
    return [
        *_old(make),
        Nemesis(make.next(), Kind.CLOCK, 1, off),
        make.job("history_gc"),
        Alter(make.next(), Change.HIDE, table, make.chance.randrange(1, ROWS)),
        make.job("history_gc"),
        Alter(make.next(), Change.SHOW, table),
    ]


def _put_back_into_another(make: Maker) -> list[Step]:
    """A table comes back while what went of it is put back: as it was before all of that, when it is about to be, and
    once more before that is tried again; or as it is, somewhere.
    """
    back, again = ([Alter(make.next(), Change.RESTORE, table) for table in TABLES] for _ in range(2))
    kept = [Alter(make.next(), Change.SNAPSHOT, table) for table in TABLES]
    older = make.variant(True, False)
    return [
        *(kept if older else []),
        make.clients(20),  # beside those of _old, for there to be tombstones that went over what the snapshots show
        *_old(make),
        make.job("history_gc"),
        *([] if older else kept),
        make.job("sideline_restore", make.at("connector", 1, *back) if older else _somewhere(make, *back), pick=-1),
        *([*again, make.job("sideline_restore", pick=-1)] if older else []),
    ]


def _deleted_meanwhile(make: Maker) -> list[Step]:
    """A person says of one that committed that it never did, since nothing tells; its cells are put aside, and what was
    deleted over them goes as well, before that person learns better.
    """
    back = make.job("sideline_restore", pick=-2)
    return [
        make.clients(12, (1,)),
        Land(make.next(), -1, guarded=False, taken=True),
        make.clients(24, deleting=True),
        make.watermark(),
        Say(make.next(), Word.MISTAKE, Table.A),
        Say(make.next(), Word.DECIDE, Table.A),
        make.cleanup(),
        make.job("watermark_collection"),
        make.job("history_gc"),
        replace(back, arguments=(*back.arguments, "--as-committed", MISTAKEN)),
        Look(make.next()),
        Read(make.next(), -1, as_of=False),
    ]


def _under_one_name(make: Maker) -> list[Step]:
    """A cleanup has another under its name while it puts aside, or after it died of that. What they put aside is
    old when it is put back, while another run sweeps; a third under that name then puts more there.
    """
    act = make.variant(Act.DIE, Act.PARK)
    written = Seam(make.next(), WRITTEN, 1, Moment.AFTER, act)
    restore = make.job("sideline_restore", make.at("connector", 1, make.job("watermark_collection")), pick=-1)
    return [
        make.clients(16, (1,)),
        make.watermark(),
        make.cleanup(written),
        replace(make.cleanup(), again=True),
        *(Resume(make.next(), -1) for _ in range(3)),  # others who stand still, too: nothing of theirs would be old
        Age(make.next()),
        restore,
        Age(make.next()),  # its folder was written to by who read it
        make.clients(8, (1,)),
        make.watermark(),
        replace(make.cleanup(), again=True),
    ]


def _old(make: Maker) -> list[Step]:
    """Cells have versions that nobody needs any more: of an oracle that counts, times are known by collections."""
    return [make.clients(20), make.watermark(), make.cleanup(), make.job("watermark_collection")]


def _somewhere(make: Maker, *steps: Step) -> Seam:
    """Before a run's first write of mutations, mostly, or before any change between what it decided and its end."""
    kind, nth = make.chance.choice((("connector", 1), ("connector", 1), (ANY, make.chance.randint(4, 14))))
    return make.at(kind, nth, *steps)
