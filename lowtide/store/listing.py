"""The inventory as published last, and which tables somebody confirmed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowtide.store.records import Listing
from lowtide.store.rows import VALUE, Rows, dump
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.clock import now_millis

_CONFIRMED = b"confirmed/"


class ListingRows(Rows):
    """The rows ``inventory`` and ``confirmed/``."""

    def put_inventory(self, entries: Sequence[Entry], low_watermark: int = 0) -> None:
        """Publish the inventory, with the low watermark that was read before it."""
        tables = [
            {
                "table": e.table,
                "kind": e.kind.value,
                "enabled": e.enabled,
                "families": sorted(e.families),
                "unmarked": sorted(e.unmarked),
                "mark": e.mark,
                "bytes": e.bytes,
                "names": e.names,
                "doubt": e.doubt,
                "compactor": e.compactor,
                "came_after": e.came_after,
                "veto": e.veto,
            }
            for e in entries
        ]
        self._table.put(b"inventory", {VALUE: dump({"low_watermark": low_watermark, "tables": tables})})

    def listing(self) -> Listing:
        """The inventory as published last, with what belongs to it."""
        confirmed = frozenset(row.removeprefix(_CONFIRMED).decode() for row, _ in self._scan(_CONFIRMED))
        return Listing(tuple(self.inventory()), self._inventory()["low_watermark"], confirmed)

    def inventory(self) -> list[Entry]:
        """The inventory as published last; empty before the first run."""
        return [
            Entry(
                v["table"],
                Kind(v["kind"]),
                v["enabled"],
                frozenset(v["families"]),
                frozenset(v["unmarked"]),
                v["mark"],
                v["bytes"],
                tuple(v.get("names", ())),
                v.get("doubt", ""),
                compactor=v.get("compactor", False),
                came_after=v.get("came_after", 0),
                veto=v.get("veto", ""),
            )
            for v in self._inventory()["tables"]
        ]

    def _inventory(self) -> dict[str, Any]:
        """As stored; in format 1 it was the tables alone."""
        value = self._json(b"inventory", [])
        return {"low_watermark": 0, "tables": value} if isinstance(value, list) else value

    def confirm(self, table: str) -> None:
        """Remember that the transactions of *table* are this oracle's."""
        self._table.put(_CONFIRMED + table.encode(), {VALUE: dump({"at": now_millis()})})

    def sweep_confirmed(self, entries: Sequence[Entry]) -> None:
        """Drop what was confirmed of tables that are no longer in question by *entries*: another table of that name is
        another question.
        """
        asked = {e.table for e in entries if e.came_after}
        for row, _ in list(self._scan(_CONFIRMED)):
            if row.removeprefix(_CONFIRMED).decode() not in asked:
                self._table.delete(row)
