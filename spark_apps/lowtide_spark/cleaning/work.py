"""One table of a cleanup: what is to be read, what was found, what was planned and done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from pyspark.sql import DataFrame

from lowtide.cleaning.facts import Fact, Region
from lowtide.cleaning.planning import WorkRange
from lowtide.run.summary import TableReport
from lowtide.store.records import TableState
from lowtide.tables.inventory import Entry
from lowtide_spark.frames.store import LIVE, Source


@dataclass
class Work:
    """One table of the run."""

    entry: Entry
    report: TableReport
    execute: bool
    regions: list[Region]
    state: TableState
    facts: list[Fact]
    ranges: list[WorkRange]
    source: Source = LIVE
    suspects: DataFrame | None = None
    plan: DataFrame | None = None
    #: The plan with the cells of ranges that are stopped.
    decided: DataFrame | None = None
    #: What no rule decides, by what the look found: of a range that is stopped nothing is marked, which a later plan takes for the reason.
    waits: DataFrame | None = None
    #: Cells that the plan has for each action and region, of all regions.
    planned: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Cells whose heal was sent.
    healed: DataFrame | None = None
    #: Ranges that are not to be recorded, with the reason.
    stopped: dict[str, str] = field(default_factory=dict)

    @property
    def families(self) -> list[str]:
        return sorted(self.entry.families)

    @property
    def alive(self) -> bool:
        """Whether there is still something to do and nothing that forbids it."""
        return bool(self.ranges) and self.suspects is not None

    def stop(self, regions: Iterable[str], reason: str) -> None:
        """Neither act on nor record these ranges any more."""
        for region in regions:
            if region not in self.stopped:
                self.stopped[region] = reason
                self.report.problems.append(f"range {region}: {reason}; it is not recorded as cleaned")

    def give_up(self, reason: str) -> None:
        """Do nothing more for this table."""
        self.report.problems.append(reason)
        self.suspects = None
