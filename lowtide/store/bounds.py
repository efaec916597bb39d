"""Prune bounds and region watermarks: what runs compute for the next ones and for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lowtide.cleaning.facts import still_blocking
from lowtide.store.records import Bound
from lowtide.store.rows import MAX_MILLIS, VALUE, Rows, dump
from lowtide.values.clock import from_millis, millis


class BoundRows(Rows):
    """The rows ``bound/`` and ``watermarks/``."""

    def add_bound(self, bound: Bound) -> None:
        """Log a prune bound, with since when it and each of its blockers stand."""
        before = next(iter(self.bounds(1)), None)
        at = millis(bound.at)
        stands = before is not None and before.value == bound.value
        value = {
            "value": bound.value,
            "at": at,
            "since": min(at, millis(before.since or before.at)) if before and stands else at,
            "blockers": still_blocking(bound.blockers, before.blockers if before else (), at),
        }
        self._table.put(b"bound/%020d" % (MAX_MILLIS - millis(bound.at)), {VALUE: dump(value)})

    def bounds(self, limit: int | None = None) -> list[Bound]:
        """Logged prune bounds, newest first."""
        return [
            Bound(from_millis(v["at"]), v["value"], tuple(v["blockers"]), from_millis(v.get("since", v["at"])))
            for v in self._values(b"bound/", limit)
        ]

    def put_watermarks(self, table: str, value: dict[str, Any]) -> None:
        """Publish a table's region watermarks for the page and the command line."""
        self._table.put(b"watermarks/" + table.encode(), {VALUE: dump(value)})

    def watermarks(self) -> dict[str, dict[str, Any]]:
        """All published region watermarks, by table."""
        return {row[11:].decode(): json.loads(cells[VALUE]) for row, cells in self._scan(b"watermarks/")}

    def drop_watermarks(self, keep: Sequence[str]) -> None:
        """Remove published watermarks of tables that are not in *keep* (dropped or no longer transactional)."""
        for name in sorted(self.watermarks().keys() - set(keep)):
            self._table.delete(b"watermarks/" + name.encode())
