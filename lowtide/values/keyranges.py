"""Ranges of row keys [start, stop); an empty *stop* means to the end of the table, as in HBase."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class KeyRange:
    """Rows from *start* (inclusive) to *stop* (exclusive; empty: no end)."""

    start: bytes
    stop: bytes

    def overlaps(self, other: KeyRange) -> bool:
        """Whether the two have a possible row in common."""
        return (not self.stop or other.start < self.stop) and (not other.stop or self.start < other.stop)

    def contains(self, other: KeyRange) -> bool:
        """Whether every row of *other* lies in this range."""
        return self.start <= other.start and (not self.stop or (bool(other.stop) and other.stop <= self.stop))

    def cut(self, edges: Iterable[bytes]) -> list[KeyRange]:
        """This range in pieces, cut at those of *edges* that lie inside it."""
        inside = sorted({e for e in edges if e and e > self.start and (not self.stop or e < self.stop)})
        return [KeyRange(a, b) for a, b in zip([self.start, *inside], [*inside, self.stop], strict=True)]

    def __str__(self) -> str:
        """For people: printable keys as they are, others escaped as HBase's shell does."""
        return f"[{printable(self.start) or '-∞'}, {printable(self.stop) or '∞'})"


def printable(key: bytes) -> str:
    r"""*key* with bytes outside printable ASCII as ``\xNN``."""
    return "".join(chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02X}" for b in key)
