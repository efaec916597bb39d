"""What is known of the oracle: its low watermark and the commit table's life, its generation, samples of its clock."""

from __future__ import annotations

import json
from datetime import datetime

from lowtide.errors import StoreError, WatermarkError
from lowtide.store.records import Recorded
from lowtide.store.rows import VALUE, Rows, dump
from lowtide.values.clock import from_millis, millis, now_millis

#: In the row ``oracle``: the life of the commit table.
_LIFE = "commit_table"
#: There, in place of a time: it lost entries by itself, so that it is whole in no life until somebody says so.
_DOUBTED = -1


class OracleRows(Rows):
    """The rows ``oracle``, ``generation`` and ``clock/``."""

    def generation(self) -> int:
        """How often the records were reset: a new life of the oracle, as far as is known here."""
        return int(self._json(b"generation", {}).get("generation", 0))

    def numbered_anew(self) -> int:
        """Wall-clock ms; rows of the journal that are older may be of transactions whose numbers the oracle gave a
        second time. 0: there are none.
        """
        return int(self._json(b"generation", {}).get("since", 0))

    def skipped(self) -> list[tuple[int, int]]:
        """Spans [from, to) of numbers that the oracle skipped when it was made anew, as the resets recorded them."""
        return [(start, stop) for start, stop in self._json(b"generation", {}).get("skipped", ())]

    def pruned_before(self) -> int:
        """How far was pruned into the journal when the oracle was made anew: a number up to it says nothing of the
        transactions that bear such numbers now. 0: it never was.
        """
        return int(self._json(b"generation", {}).get("pruned", 0))

    def check_low_watermark(self, current: int) -> None:
        """Refuse a low watermark below the highest one recorded: the oracle lost its timestamps, and every recorded
        watermark is void.

        So is one that was below it at any time since, however far it has come again.

        Raises:
            WatermarkError: *current* is below the recorded one, or one before it was.
        """
        recorded = self.recorded_low_watermark()
        if recorded is None or (current >= recorded.low_watermark and recorded.back is None):
            return
        went = current if current < recorded.low_watermark else recorded.back
        again = "" if went == current else f", and has come to {current} again"
        msg = (
            f"the low watermark has gone back from {recorded.low_watermark} to {went}{again}: the oracle was made "
            "anew or has forgotten its timestamps (an in-memory timestamp store does at a restart), or another took "
            "over from it, or this is another store's; no recorded watermark can be trusted. See which it is "
            "(lowtide check, and low-watermark-back in docs/operating.md). Where another took over: start that one "
            "again, then lowtide state reset --same-oracle. Only where timestamps are given a second time: configure a "
            "timestamp store that lasts, make sure that every transaction of before is over, then lowtide state reset, "
            "after which the journal of before proves nothing any more"
        )
        raise WatermarkError(msg)

    def remember_gone_back(self, current: int) -> None:
        """Remember a low watermark below the recorded one; nothing happens where it is not."""
        while (known := self._table.row(b"oracle").get(VALUE) if self.exists() else None) is not None:
            value = json.loads(known)
            if current >= value["low_watermark"] or value.get("back", current + 1) <= current:
                return
            if self._check_and_put(b"oracle", (VALUE, known), (VALUE, dump({**value, "back": current}))):
                return

    def record_low_watermark(self, current: int, stated: int = 0) -> None:
        """Remember *current* as seen (it never goes down), after :meth:`check_low_watermark`; and the life of the
        commit table, *stated* ms, where none is remembered yet: who reads it does so before the low watermark.
        """
        while True:
            known = self._table.row(b"oracle").get(VALUE)
            before = json.loads(known) if known is not None else {"low_watermark": -1}
            value = {**before, _LIFE: before.get(_LIFE) or stated}
            if before["low_watermark"] < current:
                value |= {"low_watermark": current, "at": now_millis()}
            if value[_LIFE] == before.get(_LIFE, 0) and value["low_watermark"] == before["low_watermark"]:
                return
            if self._check_and_put(b"oracle", (VALUE, known), (VALUE, dump(value))):
                return

    def check_commit_table(self, name: str, stated: int) -> None:
        """Refuse a commit table that may have lost entries since a run saw it, whatever its low watermark says: the
        oracle raises that above all at its next start. Before anything is known of it, any is taken as it is.

        Args:
            name: of the table.
            stated: when it was made, enabled or restored last, ms.

        Raises:
            StoreError: that is not when it was for the run that remembered it.
        """
        if self.commit_table_life() not in (0, stated):
            msg = (
                f"the commit table {name} was disabled and enabled, truncated, restored or made anew, or had a TTL, or "
                "omid.commit_table names another: entries may be lost that alone proved commits, and their cells would "
                "be taken for aborted. If it has all its entries: lowtide commit-table whole. If they are lost for "
                "good, or nobody knows: start the oracle again, then lowtide state reset --same-oracle"
            )
            raise StoreError(msg)

    def commit_table_life(self) -> int:
        """When the commit table was made, enabled or restored last, ms, as a run that acted saw it; 0: none did."""
        return int(self._json(b"oracle", {}).get(_LIFE, 0))

    def doubt_commit_table(self) -> None:
        """Remember that the commit table may have lost entries, until :meth:`settle_commit_table` or a reset; nothing
        happens where nothing is known of it yet.
        """
        if self.exists() and self.commit_table_life():
            self.settle_commit_table(_DOUBTED)

    def settle_commit_table(self, stated: int) -> None:
        """Remember what a person declared: in this life, *stated* ms, the commit table has all its entries."""
        while (known := self._table.row(b"oracle").get(VALUE)) is not None:
            if self._check_and_put(b"oracle", (VALUE, known), (VALUE, dump({**json.loads(known), _LIFE: stated}))):
                return

    def recorded_low_watermark(self) -> Recorded | None:
        """The highest low watermark ever seen, and when it was seen first; None on a new store."""
        value = self._json(b"oracle", None)
        return None if value is None else Recorded(value["low_watermark"], from_millis(value["at"]), value.get("back"))

    def add_sample(self, at: datetime, timestamp: int) -> None:
        """Remember that at *at* the oracle had given out *timestamp*."""
        self._table.put(b"clock/%020d" % millis(at), {VALUE: dump({"timestamp": timestamp})})

    def samples(self) -> list[tuple[datetime, int]]:
        """All samples, by time."""
        return [
            (from_millis(int(row[6:])), json.loads(cells[VALUE])["timestamp"]) for row, cells in self._scan(b"clock/")
        ]
