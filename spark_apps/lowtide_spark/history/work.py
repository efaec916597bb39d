"""One table of a run of history GC."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from lowtide.history.compaction import RegionFamily
from lowtide.history.mark import Limit
from lowtide.store.records import History
from lowtide_spark.frames.store import Life
from lowtide_spark.run.table_work import RegionWork

#: Regions that the summary tells of, those that lose most.
MOST_REGIONS = 1000


@dataclass
class HistoryWork(RegionWork):
    """One table of the run."""

    limits: list[Limit]
    mark: int
    #: The mark and the claims to it before anything was read.
    before: History
    cells: DataFrame | None = None
    plan: DataFrame | None = None
    #: Bytes that earlier runs removed and no major compaction has dropped yet.
    uncompacted: Counter[RegionFamily] = field(default_factory=Counter)
    #: What goes, by region: versions, shadow cells, bytes, and the markers that remove them.
    by_region: list[dict[str, Any]] = field(default_factory=list)
    #: Bytes read, and those of them that go.
    examined: dict[RegionFamily, int] = field(default_factory=dict)
    going: Counter[RegionFamily] = field(default_factory=Counter)

    @property
    def life(self) -> Life:
        """The table as it was before anything of it was read; in what came back in its place what replaced a version
        may be missing.
        """
        return Life.of(self.table, self.regions)

    def give_up(self, reason: str) -> None:
        """Do nothing more for this table."""
        super().give_up(reason)
        self.cells = None
        self.going.clear()

    def report_regions(self) -> None:
        """Put the regions of which most goes into the summary, which is one cell of the state table."""
        self.report.by_region = sorted(self.by_region, key=lambda r: -r["bytes"])[:MOST_REGIONS]
