"""Sets of timestamps as sorted, disjoint, half-open intervals [from, to)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Intervals:
    """An immutable set of integers, held as [from, to) pairs that neither touch nor overlap."""

    pairs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, pairs: Iterable[tuple[int, int]]) -> Intervals:
        """The union of *pairs*, in any order, overlapping or not; empty ones ([a, a)) are dropped.

        Raises:
            ValueError: a pair ends before it starts.
        """
        joined: list[tuple[int, int]] = []
        for start, end in sorted((int(a), int(b)) for a, b in pairs):
            if end < start:
                msg = f"interval [{start}, {end}) ends before it starts"
                raise ValueError(msg)
            if end == start:
                continue
            if joined and start <= joined[-1][1]:
                joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
            else:
                joined.append((start, end))
        return cls(tuple(joined))

    @classmethod
    def up_to(cls, last: int) -> Intervals:
        """All from 0 to *last*, inclusive; nothing where that is 0, which stands for "none is known"."""
        return cls(((0, last + 1),)) if last > 0 else cls()

    def __or__(self, other: Intervals) -> Intervals:
        """Union."""
        return Intervals.of(self.pairs + other.pairs)

    def __and__(self, other: Intervals) -> Intervals:
        """Intersection."""
        return Intervals.of(
            (max(a, c), min(b, d)) for a, b in self.pairs for c, d in other.pairs if max(a, c) < min(b, d)
        )

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The pairs, ascending."""
        return iter(self.pairs)

    def __bool__(self) -> bool:
        """Whether there is any number in the set."""
        return bool(self.pairs)

    def covers(self, start: int, end: int) -> bool:
        """Whether all of [start, end) is in the set; an empty interval always is."""
        return start >= end or any(a <= start and end <= b for a, b in self.pairs)

    def prefix_end(self, start: int = 0) -> int:
        """The end, exclusive, of the gap-free stretch that begins at *start*; *start* itself where there is none."""
        return next((b for a, b in self.pairs if a <= start < b), start)
