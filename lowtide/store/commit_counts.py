"""Counts of the commit table: what runs count for people."""

from __future__ import annotations

import json

from lowtide.cleaning.commit_count import CommitCount
from lowtide.store.rows import COLUMN, Rows, dump
from lowtide.values.clock import from_millis, millis

_COMMITS = b"commits"
_COUNT = COLUMN + b"count/"
#: Counts of the commit table that are kept: some months, read at once.
_COUNTS = 200


class CommitCountRows(Rows):
    """The row ``commits``."""

    def add_commit_count(self, count: CommitCount) -> None:
        """Keep a count of the commit table; the oldest of many go."""
        value = {"entries": count.entries, "marks": count.marks}
        self._table.put(_COMMITS, {_COUNT + b"%020d" % millis(count.at): dump(value)})
        kept = sorted(self._table.row(_COMMITS))
        if len(kept) > _COUNTS:
            self._table.delete(_COMMITS, columns=kept[:-_COUNTS])

    def commit_counts(self) -> list[CommitCount]:
        """The counts of the commit table that are kept, oldest first; one row is read for all."""
        cells = self._table.row(_COMMITS) if self.exists() else {}
        return [
            CommitCount(from_millis(int(column.removeprefix(_COUNT))), **json.loads(value))
            for column, value in sorted(cells.items())
        ]
