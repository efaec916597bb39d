"""How far each table is clean."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lowtide.config import Config, Mode
from lowtide.health.bound import region_cause
from lowtide.health.findings import Cause
from lowtide.health.reading import Reading
from lowtide.values.clock import from_millis


@dataclass(frozen=True, slots=True)
class TableStatus:
    """How far one table is clean. *lowest* is the least watermark of its regions, *behind* how far below the low
    watermark that is.

    Regions whose watermark is 0 are *at_zero*. Those of which something was recorded that no longer counts are not
    *never_cleaned*.
    """

    table: str
    mode: Mode
    regions: int
    at_zero: int
    never_cleaned: int
    lowest: int
    behind: int
    collected: datetime


def table_statuses(reading: Reading, config: Config) -> list[TableStatus]:
    """Every table that was collected last, by name."""
    found = []
    void = {
        b["table"]
        for b in (reading.bound.blockers if reading.bound else ())
        if b["region"] is not None and region_cause(b) is Cause.VOID
    }
    for table, value in sorted(reading.watermarks.items()):
        marks = [r["watermark"] for r in value["regions"]]
        lowest = min(marks, default=0)
        current = max(reading.low_watermark or 0, value["low_watermark"])
        collected = from_millis(value["at"])
        mode = config.table(table).mode
        behind = max(0, current - lowest)
        zero = marks.count(0)
        never = 0 if table in void else zero
        found.append(TableStatus(table, mode, len(marks), zero, never, lowest, behind, collected))
    return found
