"""What a report can show and no reading of a store's state has: the commit table row by row, and the regions of
tables before any job.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lowtide.config import Config
from lowtide.report.observation import CommitRows, Day, RegionMark, by_day
from lowtide.values.formats import COMMIT_QUALIFIER, COMMIT_ROWS, INVALID_QUALIFIER, parse_commit_key
from lowtide.values.keyranges import KeyRange

_BATCH = 1000


def commit_rows(connection: Any, config: Config, days: Sequence[Day]) -> tuple[CommitRows, ...]:
    """The commit table's entries and marks, counted by day: goes through the whole table.

    A row with both counts as a mark, which is how readers take it.
    """
    entries: list[int] = []
    marks: list[int] = []
    family = config.omid.commit_family.encode()
    commit, invalid = (family + b":" + name for name in (COMMIT_QUALIFIER, INVALID_QUALIFIER))
    table = connection.table(config.omid.commit_table)
    first, after_last = COMMIT_ROWS
    for row, cells in table.scan(row_start=first, row_stop=after_last, batch_size=_BATCH):
        start = parse_commit_key(row)
        if start is not None and invalid in cells:
            marks.append(start)
        elif start is not None and commit in cells:
            entries.append(start)
    return by_day(entries, marks, days)


def uncleaned_regions(connection: Any, tables: Iterable[str]) -> tuple[RegionMark, ...]:
    """The regions of *tables* as listed now, each with watermark 0, for a store that nothing has cleaned yet."""
    return tuple(
        RegionMark(table, str(KeyRange(*keys)), 0)
        for table in sorted(tables)
        # The gateway lists a region's replicas, too: they have its keys.
        for keys in sorted({(bytes(r["start_key"]), bytes(r["end_key"])) for r in connection.table(table).regions()})
    )
