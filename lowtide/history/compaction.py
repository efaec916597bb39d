"""Which families of which regions are worth a major compaction after history was removed from them. Pure.

A delete marker frees nothing: HBase drops it, and what it hides, when it rewrites a whole store, which is one family of
one region. So each store is weighed: what its compaction would give back against what it would rewrite. Given back is
also what earlier runs removed, as long as no major compaction has dropped it: where a day's share is small, a month's
may pay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lowtide.cleaning.facts import Region

#: A region, by its encoded name, and a family of it.
RegionFamily = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Uncompacted:
    """What history GC removed from a region and no major compaction has dropped since: bytes, as KeyValues, by family.

    *compacted* is the time of the region's last major compaction as HBase gave it then (ms; 0: none). When it tells
    another, nothing of this is left.
    """

    compacted: int
    removed: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Gain:
    """What a store holds: bytes as KeyValues, those of them that are removed, and its bytes on disk (compressed as
    they may be).
    """

    region: str
    family: str
    removed: int
    held: int
    store_bytes: int

    @property
    def share(self) -> float:
        """Of what is there, the share that a compaction would give back."""
        return min(1.0, self.removed / self.held) if self.held else 0.0

    @property
    def reclaimed(self) -> int:
        """Bytes on disk that it would give back, as well as the share shows."""
        return int(self.share * self.store_bytes)

    @property
    def ratio(self) -> float | None:
        """Bytes rewritten for each byte given back; None where nothing is."""
        return (self.store_bytes - self.reclaimed) / self.reclaimed if self.reclaimed else None


def last_compactions(regions: Iterable[Region]) -> dict[str, int]:
    """When each of these regions was last compacted, as HBase tells it."""
    return {region.name: region.compacted for region in regions}


def still_there(recorded: Mapping[str, Uncompacted], compacted: Mapping[str, int]) -> Counter[RegionFamily]:
    """The bytes by store that are removed and not compacted yet.

    Args:
        recorded: by region.
        compacted: when each region that there is now was last compacted, as HBase tells it. Daughters of a split begin
            anew.
    """
    return Counter(
        {
            (region, family): size
            for region, known in recorded.items()
            if compacted.get(region) == known.compacted
            for family, size in known.removed.items()
        }
    )


def to_record(removed: Mapping[RegionFamily, int], compacted: Mapping[str, int]) -> dict[str, Uncompacted]:
    """The opposite: what is to be recorded of *removed*, of regions that there are now."""
    found: dict[str, dict[str, int]] = {}
    for (region, family), size in removed.items():
        if size and region in compacted:
            found.setdefault(region, {})[family] = size
    return {region: Uncompacted(compacted[region], sizes) for region, sizes in found.items()}


def gains(
    read: Mapping[RegionFamily, int],
    going: Mapping[RegionFamily, int],
    removed: Mapping[RegionFamily, int],
    on_disk: Mapping[str, int],
) -> list[Gain]:
    """What a compaction of each store would do.

    Args:
        read: bytes of all that is seen in it, as KeyValues, what goes now included.
        going: those of them that go now.
        removed: what is not seen any more and not compacted yet.
        on_disk: by region; what has no file yet is taken as it is. HBase tells it for all families together; each is
            taken to have its share by what it holds.
    """
    held = {store: size + removed.get(store, 0) for store, size in read.items()}
    of_region = Counter[str]()
    for (region, _), size in held.items():
        of_region[region] += size
    return [
        Gain(
            region,
            family,
            going.get((region, family), 0) + removed.get((region, family), 0),
            size,
            (on_disk.get(region) or of_region[region]) * size // of_region[region] if size else 0,
        )
        for (region, family), size in held.items()
    ]


def worth_compacting(found: Iterable[Gain], least_share: float, budget_bytes: int) -> list[Gain]:
    """The stores to compact: the largest shares first, none below *least_share*, together at most *budget_bytes* read
    anew.

    A store that alone is larger than what is left of the budget is passed over; smaller ones behind it may still fit.
    """
    chosen: list[Gain] = []
    left = budget_bytes
    for gain in sorted(found, key=lambda g: (-g.share, g.store_bytes, g.region, g.family)):
        if gain.removed and gain.share >= least_share and gain.store_bytes <= left:
            chosen.append(gain)
            left -= gain.store_bytes
    return chosen
