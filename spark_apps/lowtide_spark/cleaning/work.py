"""One table of a cleanup: what is to be read, what was found, what was planned and done."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame

from lowtide.cleaning.facts import Fact
from lowtide.cleaning.planning import WorkRange
from lowtide.store.records import TableState
from lowtide.values.intervals import Intervals
from lowtide_spark.frames.startset import StartSet
from lowtide_spark.frames.store import LIVE, Source
from lowtide_spark.run.table_work import RegionWork, failures_kept

#: Tables are decided so many at a time: a query costs some tenths of a second, however few its rows are.
TOGETHER = 50
#: And read so many: most have nothing in question, and then nothing more is done to them.
READ_TOGETHER = 500
#: While they have no more suspects than these together, and no more bytes were read of them: whatever is done to one of
#: them goes through the rows of all.
FEW_SUSPECTS, FEW_BYTES = 10_000, 64 << 20
#: Tables of no more bytes in store files are read with others.
SMALL = 1 << 30


@dataclass
class CleanupWork(RegionWork):
    """One table of the run. Its regions are the key ranges that are read: those that are stopped are neither acted on
    nor recorded.
    """

    STOPPED: ClassVar[str] = "range {region}: {reason}; it is not recorded as cleaned"

    state: TableState
    facts: list[Fact]
    ranges: list[WorkRange]
    #: For which start timestamps it was cleaned before it came as it is now: ``lowtide.cleaning.facts.cleaned_before``.
    before: Intervals = field(default_factory=Intervals)
    source: Source = LIVE
    suspects: DataFrame | None = None
    plan: DataFrame | None = None
    #: The plan with the cells of ranges that are stopped.
    decided: DataFrame | None = None
    #: What no rule decides, by what the look found: of a range that is stopped nothing is marked, which a later plan
    #: takes for the reason.
    waits: DataFrame | None = None
    #: Cells that the plan has for each action and region, of all regions.
    planned: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Of them all, those that go and whose transaction has no mark yet, and those that are healed and whose transaction
    #: has one.
    lacking: int = 0
    mismarked: int = 0
    #: Of its cells those without proof are suspects, and those of these transactions. None: it is not read.
    filter: StartSet | None = None
    #: Whether its plan is being carried out: from then on its counts are of what was done.
    begun: bool = False
    #: Cells whose heal was sent.
    healed: DataFrame | None = None

    @property
    def idle(self) -> bool:
        """Whether nothing in it is in question: then nothing is done to it, and what was read of it is recorded."""
        return not self.report.counts.candidates

    @property
    def weight(self) -> int:
        """For :func:`together`, once the table is read."""
        counts = self.report.counts
        return max(counts.candidates, counts.bytes_read * FEW_SUSPECTS // FEW_BYTES)

    @property
    def weight_before(self) -> int:
        """For :func:`together`, before the table is read: how many suspects it has is not known then, but each is
        looked for by the whole filter; and of a large one the read takes long, which another's failure is not to cost.
        """
        asked = self.filter.size if self.filter is not None else 0
        return asked if sum(region.store_bytes for region in self.regions) <= SMALL else FEW_SUSPECTS + 1

    def give_up(self, reason: str) -> None:
        """Do nothing more for this table."""
        super().give_up(reason)
        self.suspects = self.filter = None


def together(
    works: Sequence[CleanupWork],
    do: Callable[[Sequence[CleanupWork]], None],
    weight: Callable[[CleanupWork], int],
    most: int | None = None,
) -> None:
    """*do* something to tables, some at a time. Where that fails it is done to each half of them, down to a table by
    itself; one that fails then keeps its error, its work ends, and it hides no other.

    Args:
        works: the tables, in this order.
        do: to a few of them, which a failure leaves as they were.
        weight: of a table; those that are done together weigh no more than :data:`FEW_SUSPECTS`.
        most: so many at a time; None: :data:`TOGETHER`.
    """
    for group in _groups(works, weight, most or TOGETHER):
        _done(group, do)


def _done(group: Sequence[CleanupWork], do: Callable[[Sequence[CleanupWork]], None]) -> None:
    if len(group) == 1:
        with failures_kept(group[0]):
            do(group)
        return
    try:
        do(group)
    except Exception:
        traceback.print_exc()
        middle = len(group) // 2
        for half in (group[:middle], group[middle:]):
            _done(half, do)


def _groups(
    works: Sequence[CleanupWork], weight: Callable[[CleanupWork], int], most: int
) -> Iterator[list[CleanupWork]]:
    group: list[CleanupWork] = []
    weighs = 0
    for work in works:
        more = weight(work)
        if group and (len(group) == most or weighs + more > FEW_SUSPECTS):
            yield group
            group, weighs = [], 0
        group.append(work)
        weighs += more
    if group:
        yield group
