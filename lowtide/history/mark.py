"""The ancient history mark: before it a table's history is removed, and reads there are refused. Pure.

A mark is a timestamp of the oracle, inclusive, and always the last one of a base timestamp (``50 k + 49``), or 0 for
none. No transaction starts or commits at such a number. So both halves of its meaning are exact: a read point at or
after the mark shows what it always did, and what was replaced before the mark is seen at none of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from lowtide.errors import UsageError
from lowtide.values.clock import Clock, from_millis, millis
from lowtide.values.durations import Ages, duration_text
from lowtide.values.formats import base
from lowtide.values.skew import MARGIN
from lowtide.values.text import moment_text, plain

#: Clocks of machines differ: a hold counts for so long after its expiry, by the clock of the one who looks.
EXPIRY_MARGIN = MARGIN
#: How the ids of holds begin that restores take.
OF_RESTORE = "restore-"


@dataclass(frozen=True, slots=True)
class Hold:
    """A promise that *table*'s history from the read point *timestamp* on stays until *expires*; wall-clock times.
    *owner* and *reason* are as :func:`lowtide.values.text.plain` has them.
    """

    id: str
    table: str
    timestamp: int
    owner: str
    reason: str
    taken: datetime
    expires: datetime

    def __post_init__(self) -> None:
        for name in ("owner", "reason"):
            object.__setattr__(self, name, plain(getattr(self, name)))

    @property
    def of_restore(self) -> bool:
        """Whether a restore took it for itself: it keeps history GC off what comes back, and is not for a person to
        let go of.
        """
        return self.id.startswith(OF_RESTORE)

    @property
    def ended_by(self) -> str:
        """What lets go of it before it expires."""
        if self.of_restore:
            return (
                f"it ends with that restore; if that was killed, with the next one of {self.table}, or at "
                f"{moment_text(self.expires)}"
            )
        return f"lowtide hold release {self.table} {self.id}"

    def counts(self, now: datetime) -> bool:
        """Whether it still holds anything back at *now*."""
        return now < self.expires + EXPIRY_MARGIN

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; times in ms since 1970."""
        return asdict(self) | {"taken": millis(self.taken), "expires": millis(self.expires)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Hold:
        """The hold of :meth:`to_json`."""
        times = {name: from_millis(value[name]) for name in ("taken", "expires")}
        return cls(**{**value, **times})


class By(StrEnum):
    """What kind of thing limits the mark."""

    LOW_WATERMARK = "low watermark"
    BOUND = "prune bound"
    HOLD = "hold"
    #: A mere age: what holds the mark back on a good day.
    AGE = "age"
    #: A plan that was approved for that mark.
    PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Limit:
    """One thing that the mark may not pass: the highest mark it allows, what it is, since when, and what would move
    it.
    """

    timestamp: int
    what: str
    remedy: str
    by: By
    since: datetime | None = None
    #: Where it is one.
    hold: Hold | None = None


def at_most(timestamp: int) -> int:
    """The highest mark that is not above *timestamp*; 0 where there is none."""
    return max(0, base(timestamp + 1) - 1)


def limits(
    *,
    ages: Ages,
    now: datetime,
    as_of: datetime | None,
    clock: Clock,
    low_watermark: int,
    bound: int,
    bound_by: str,
    holds: Iterable[Hold],
) -> list[Limit]:
    """Everything that a table's mark may not pass.

    Args:
        ages: of the table.
        now: of this machine.
        as_of: the time for which the mark is computed, where it is not now: a backfill's interval end. Never after
            *now*.
        clock: of the oracle. It maps times to timestamps that are never later than the time warrants.
        low_watermark: inclusive. No transaction at or below it can still commit.
        bound: the prune bound, inclusive: at or below it every committed cell of every table has its own shadow cell.
        bound_by: what holds the bound, for people.
        holds: the table's.
    """
    found = [
        Limit(low_watermark, "the low watermark", "it moves as the oracle commits", By.LOW_WATERMARK),
        *(
            Limit(
                hold.timestamp,
                f"hold {hold.id} of {hold.owner}: {hold.reason}",
                hold.ended_by,
                By.HOLD,
                hold.taken,
                hold,
            )
            for hold in holds
            if hold.counts(now)
        ),
    ]
    if at_most(bound) < at_most(low_watermark):  # else all is clean, nothing blocks it, and no cleanup would move it on
        found.append(Limit(bound, f"the prune bound ({bound_by})", "lowtide run orphan_cleanup --execute", By.BOUND))
    if ages.keep is None:
        found.append(Limit(0, "history_max_age: forever", "set history_max_age for this table", By.AGE))
        return found
    aged = clock.timestamp(min(as_of or now, now) - ages.keep) - 1
    found.append(
        Limit(max(0, aged), f"history_max_age {duration_text(ages.keep)}", "set a shorter history_max_age", By.AGE)
    )
    # Live transactions read at their start, and nobody tracks them: no history younger than this goes, whatever else
    # allows it.
    least = clock.timestamp(now - ages.least) - 1
    found.append(
        Limit(max(0, least), f"min_history_age {duration_text(ages.least)}", "set a shorter min_history_age", By.AGE)
    )
    return found


def mark_of(found: Sequence[Limit]) -> tuple[int, list[Limit]]:
    """The mark that *found* allow, and those of them that allow no higher one."""
    mark = min(at_most(limit.timestamp) for limit in found)
    return mark, [limit for limit in found if at_most(limit.timestamp) == mark]


def check_hold(hold: Hold, now: datetime, longest: timedelta) -> None:
    """Refuse a hold that cannot be meant.

    Raises:
        UsageError: it has no owner, no reason, no sensible timestamp, or would last beyond *longest* after it was
            taken.
    """
    for name in ("owner", "reason", "table"):
        if not getattr(hold, name).strip():
            msg = (
                f"a hold needs {'an' if name == 'owner' else 'a'} {name}: whoever looks at a mark that stands still "
                "must know whom to ask"
            )
            raise UsageError(msg)
    if hold.timestamp < 0:
        msg = f"a hold's timestamp is the read point, 0 or more; found {hold.timestamp}"
        raise UsageError(msg)
    if hold.expires <= now:
        msg = (
            f"the hold would end at {hold.expires.isoformat(timespec='seconds')}, before it began; give it a time "
            "to live, as in --for 2h"
        )
        raise UsageError(msg)
    if hold.expires - hold.taken > longest:
        msg = (
            f"a hold on {hold.table} may last {duration_text(longest)} (hold_max_age), this one would last "
            f"{duration_text(hold.expires - hold.taken)}; take a shorter one, or raise hold_max_age in the "
            "configuration"
        )
        raise UsageError(msg)
