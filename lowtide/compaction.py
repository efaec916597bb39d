"""Which regions are worth a major compaction after history was removed from them. Pure.

A delete marker frees nothing: HBase drops it, and what it hides, when it rewrites the whole store. So each compaction is weighed: what it
would give back against what it would rewrite.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gain:
    """A region's removed and examined bytes, as KeyValues, and its bytes on disk (compressed as they may be)."""

    region: str
    removed: int
    examined: int
    store_bytes: int

    @property
    def share(self) -> float:
        """Of what is there, the share that a compaction would give back."""
        return min(1.0, self.removed / self.examined) if self.examined else 0.0

    @property
    def reclaimed(self) -> int:
        """Bytes on disk that it would give back, as well as can be told from the share."""
        return int(self.share * self.store_bytes)

    @property
    def ratio(self) -> float | None:
        """Bytes rewritten for each byte given back; None where nothing is."""
        return (self.store_bytes - self.reclaimed) / self.reclaimed if self.reclaimed else None


def worth_compacting(gains: Iterable[Gain], least_share: float, budget_bytes: int) -> list[Gain]:
    """The regions to compact: the largest shares first, none below *least_share*, together at most *budget_bytes* read anew.

    A region that alone is larger than what is left of the budget is passed over; smaller ones behind it may still fit.
    """
    chosen: list[Gain] = []
    left = budget_bytes
    for gain in sorted(gains, key=lambda g: (-g.share, g.store_bytes, g.region)):
        if gain.removed and gain.share >= least_share and gain.store_bytes <= left:
            chosen.append(gain)
            left -= gain.store_bytes
    return chosen
