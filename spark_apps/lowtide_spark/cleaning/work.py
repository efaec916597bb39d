"""One table of a cleanup: what is to be read, what was found, what was planned and done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import ClassVar

from pyspark.sql import DataFrame

from lowtide.cleaning.facts import Fact
from lowtide.cleaning.planning import WorkRange
from lowtide.store.records import TableState
from lowtide_spark.frames.store import LIVE, Source
from lowtide_spark.run.table_work import RegionWork


@dataclass
class CleanupWork(RegionWork):
    """One table of the run. Its regions are the key ranges that are read: those that are stopped are neither acted on
    nor recorded.
    """

    STOPPED: ClassVar[str] = "range {region}: {reason}; it is not recorded as cleaned"

    state: TableState
    facts: list[Fact]
    ranges: list[WorkRange]
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
    #: Whether its plan is being carried out: from then on its counts are of what was done.
    begun: bool = False
    #: Cells whose heal was sent.
    healed: DataFrame | None = None

    def give_up(self, reason: str) -> None:
        """Do nothing more for this table."""
        super().give_up(reason)
        self.suspects = None
