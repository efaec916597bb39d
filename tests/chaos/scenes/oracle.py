"""Scenes of oracles: what becomes of the one and of its commit table, and what another leaves beside it.

All that its clients were at is over when an oracle is made anew, and the tables lose what they have; Lowtide's records
and its journal are of before until somebody resets them.
"""

from __future__ import annotations

from dataclasses import replace

from tests.chaos.maker import Maker, Scene
from tests.chaos.oracle_steps import Event, Oracle
from tests.chaos.steps import ACTS, LOOKS_AGAIN, TABLES, Alter, Change, Resume, Run, Say, Seam, Step, Table, Word

#: Where a cleanup of empty tables has done all that there was to do: it looks whether an entry came meanwhile.
_UNRECORDED = "read", 6


def scenes(make: Maker) -> list[Scene]:
    """In some order; in every other plan others meet the oracle that is made anew."""
    return make.shuffled(
        _numbers_come_twice,
        *make.variant((_before_it_prunes, _before_it_marks), (_before_it_puts_back, _not_yet_recorded)),
        _entries_come_back,
        make.variant(_beside_another, _taken_for_ours),
    )


# -- an oracle that is made anew


def _numbers_come_twice(make: Maker) -> list[Step]:
    """What the journal has of one life of the oracle has the numbers of orphans of the next. Runs see in between
    that it was made anew, and a person takes the commit table for whole all the same; or the records were lost, and
    there are more of its clients. Somebody asks for the orphans of the life before.
    """
    lost = make.variant(False, True)
    back = make.job("sideline_restore", pick=-1)
    doubted = [_cleanup(make), _now(make, Event.PASS), _now(make, Event.WHOLE), _cleanup(make)]
    return [
        *make.all_end(4),
        _now(make, Event.NOTE),
        make.clients(24, (4, 4, 1)),
        *make.pruned(),
        *([_now(make, Event.LOSE)] if lost else []),
        _now(make, Event.ANEW),
        *(_now(make, Event.AGAIN) for _ in range(3)),
        *([make.clients(20, (1,))] if lost else []),
        *([] if lost else doubted),
        *_reset(make),
        replace(back, arguments=tuple("{before}" if word == "{run}" else word for word in back.arguments)),
        _cleanup(make),
        make.job("journal_replay"),
        Say(make.next(), Word.DECIDE, Table.A),
    ]


def _not_yet_recorded(make: Maker) -> list[Step]:
    """The oracle is made anew when a cleanup has read tables that are empty, and has yet to say so."""
    return [
        *make.all_end(4),
        *_emptied(make),
        make.watermark(),
        _cleanup(make, make.at(*_UNRECORDED, _now(make, Event.ANEW))),
        make.clients(12, (0, 4)),
        *_reset(make),
        _cleanup(make),
    ]


def _before_it_prunes(make: Maker) -> list[Step]:
    """What goes is in the journal already."""
    return _stood_still(make, "commit_table_pruning", 2, make.pruned()[:-1])


def _before_it_marks(make: Maker) -> list[Step]:
    """Orphans are to be marked."""
    return _stood_still(make, "orphan_cleanup", 1, [make.watermark()], (0, 1, 4))


def _before_it_puts_back(make: Maker) -> list[Step]:
    """Entries are to come back from the journal."""
    return _stood_still(make, "journal_replay", 1, make.pruned())


def _stood_still(make: Maker, job: str, nth: int, before: list[Step], crashing: tuple[int, ...] = (4,)) -> list[Step]:
    """A run is about to write, and the oracle is made anew before it goes on, with transactions of its next life
    under the numbers that the run has read; the records are reset before, or after.
    """
    early = job != "orphan_cleanup" and make.chance.random() < 0.3  # else it would be overtaken
    return [
        *make.all_end(4),
        _now(make, Event.NOTE),
        make.clients(20, crashing),
        *before,
        make.job(job, make.parking("connector", nth)),
        _now(make, Event.ANEW),
        make.clients(30, (4,)),
        *(_reset(make) if early else [_now(make, Event.PASS)]),
        Resume(make.next(), -1),
        *([] if early else _reset(make)),
        _cleanup(make),
    ]


# -- the commit table


def _entries_come_back(make: Maker) -> list[Step]:
    """The commit table comes back from before some transactions committed, when a cleanup is about to heal; until a
    person has seen to it that it is whole no job goes by it. Another comes when a cleanup is yet to record.
    """
    return [
        _cleanup(make),
        _now(make, Event.KEEP),
        make.clients(16, (4,)),
        make.watermark(),
        _cleanup(make, make.at(ACTS, 1, _now(make, Event.BACK))),
        *_some(make, _cleanup(make), make.job("watermark_collection"), make.job("commit_table_pruning")),
        _now(make, Event.WHOLE),
        _now(make, Event.KEEP),
        _cleanup(make, make.at(LOOKS_AGAIN, 1, _now(make, Event.BACK))),
        _now(make, Event.WHOLE),
    ]


# -- another oracle


def _beside_another(make: Maker) -> list[Step]:
    """Another oracle's tables are there: nobody says so, or names only its commit table, or all of them."""
    return [
        _now(make, Event.OTHER),
        _cleanup(make),
        _now(make, Event.COMMITS),
        _cleanup(make),
        _now(make, Event.NAMED),
        _cleanup(make),
        _now(make, Event.GONE),
    ]


def _taken_for_ours(make: Maker) -> list[Step]:
    """A table of another oracle's comes after the records began anew, of this one: nobody has confirmed it."""
    return [
        make.job("watermark_collection"),
        Say(make.next(), Word.RESET, Table.A),
        _now(make, Event.IMPORT),
        _cleanup(make),
        _now(make, Event.GONE),
    ]


# -- steps


def _now(make: Maker, event: Event) -> Oracle:
    return Oracle(make.next(), event)


def _reset(make: Maker) -> list[Step]:
    """Not before the oracle has passed what it gave: Lowtide refuses it."""
    return [_now(make, Event.PASS), _now(make, Event.RESET)]


def _cleanup(make: Maker, *seams: Seam) -> Run:
    return make.job("orphan_cleanup", *seams)


def _some(make: Maker, *steps: Step) -> list[Step]:
    """One or more of them, the first among them."""
    others = [step for step in steps[1:] if make.chance.random() < 0.4]
    return [steps[0], *others]


def _emptied(make: Maker) -> list[Step]:
    return [Alter(make.next(), Change.TRUNCATE, table) for table in TABLES]
