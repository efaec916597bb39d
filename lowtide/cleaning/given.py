"""Which numbers the oracle can have given: what bears another was written without a transaction. Pure.

In a table of which all families count, one may be written plainly all the same, with the time in milliseconds that
HBase's clients take. Beside a world clock such a number is too small. A counter begins below it and comes to it, by
itself or because it was set beyond what it had given: from then on every such cell is at or below the low watermark
and has no proof, as an orphan has. So numbers that may be of either kind are told apart from those that are not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from lowtide.tables.inventory import FAMILY_FLAG
from lowtide.values.clock import first_timestamp, millis

#: In September 2001: nobody wrote cells of before.
FIRST_MILLIS = 10**12
#: A client's clock may be ahead by so much.
AHEAD = timedelta(days=1)

#: Why an unproved cell of a :class:`Doubt` is left alone.
SKIPPED = "of a number that the oracle skipped when it was made anew"
MILLIS = "of a number that may be the time of a plain cell"


class Doubt(NamedTuple):
    """Numbers in [start, stop) that a plain cell may have. One that nothing proves is left alone."""

    start: int
    stop: int
    why: str


@dataclass(frozen=True, slots=True)
class Given:
    """What is known of the numbers of an oracle.

    Args:
        first: the least that it can have given (:func:`lowtide.values.clock.first_timestamp`).
        doubts: from there on, those that others write too; the first that holds says why.
    """

    first: int
    doubts: tuple[Doubt, ...] = ()


def left(why: str, cells: int, such_as: int, table: str) -> str:
    """What to know of so many *cells* of *table* that were left alone for a :class:`Doubt`'s *why*, and what to do.

    Args:
        why: the doubt's.
        cells: how many.
        such_as: the start timestamp that one would have.
        table: theirs.
    """
    flag = f"alter '{table}', {{NAME => 'FAMILY', METADATA => {{'{FAMILY_FLAG}' => 'true'}}}}"
    return (
        f"{cells:,} cells that nothing proves are left alone, such as {such_as}: each is {why}. If clients write a "
        f"family without transactions, flag the others and no more than them, in HBase's shell: {flag}; and say no "
        f"kind of the table in the configuration. If a transaction wrote them that never committed: lowtide resolve "
        f"{such_as} --aborted"
    )


def given(world_clock: bool, skipped: Iterable[tuple[int, int]], now: datetime) -> Given:
    """What is known of the oracle's numbers at the time *now*.

    Args:
        world_clock: whether it counts a world clock's nanoseconds, which no plain cell comes to.
        skipped: spans [from, to) of numbers that a counter skipped (:func:`lowtide.cleaning.renumbered.skipped`).
        now: HBase's time.
    """
    first = first_timestamp(world_clock)
    if world_clock:
        return Given(first)
    plain = Doubt(FIRST_MILLIS, millis(now + AHEAD), MILLIS)
    return Given(first, (*(Doubt(start, stop, SKIPPED) for start, stop in skipped), plain))
