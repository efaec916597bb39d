"""The inventory as published last, and which tables somebody confirmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lowtide.store.records import Listing
from lowtide.store.rows import VALUE, Rows, dump
from lowtide.tables.inventory import Change, Entry, Kind
from lowtide.values.clock import now_millis

_CONFIRMED = b"confirmed/"


class ListingRows(Rows):
    """The rows ``inventory`` and ``confirmed/``."""

    def put_inventory(self, entries: Sequence[Entry], low_watermark: int = 0, at: int = 0) -> None:
        """Publish the inventory, with the low watermark that was read before it, and HBase's time in ms before the
        tables were listed; 0: not known.
        """
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
                "settings": e.settings,
                "change": e.change,
            }
            for e in entries
        ]
        self._table.put(b"inventory", {VALUE: dump({"low_watermark": low_watermark, "at": at, "tables": tables})})

    def listing(self) -> Listing:
        """The inventory as published last, with what belongs to it."""
        confirmed = frozenset(row.removeprefix(_CONFIRMED).decode() for row, _ in self._scan(_CONFIRMED))
        value = self._inventory()
        return Listing(_entries(value), value["low_watermark"], confirmed, value.get("at", 0))

    def inventory(self) -> list[Entry]:
        """The inventory as published last; empty before the first run."""
        return list(_entries(self._inventory()))

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


def _entries(value: Mapping[str, Any]) -> tuple[Entry, ...]:
    return tuple(
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
            settings=v.get("settings", ""),
            change=Change(*v["change"]) if v.get("change") else None,
        )
        for v in value["tables"]
    )
