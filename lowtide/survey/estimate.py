"""Totals of a table from the regions that were read, with the error stated. Pure.

Regions are drawn at random without replacement, all with the same chance. The total is then estimated by the mean times
the number of regions, which is right on average; the interval is Student's, at 95 %, with the correction for a finite
number of regions (Cochran, Sampling Techniques, sections 2.5 to 2.7).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

Region = TypeVar("Region")

#: Student's t at 97.5 %, for 1 to 30 degrees of freedom; beyond, the last is taken, which errs on the safe side.
_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
#: Fewer regions than this are never read of a table that has more: the error would not be known.
LEAST_REGIONS = 3


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, and the 95 % interval that it lies in; exact where the ends are equal."""

    value: int
    low: int
    high: int

    @classmethod
    def exact(cls, value: int) -> Estimate:
        """What was counted."""
        return cls(value, value, value)

    @property
    def is_exact(self) -> bool:
        """Whether it was counted, not estimated."""
        return self.low == self.high

    def __add__(self, other: Estimate) -> Estimate:
        """The sum; its interval is the widest that the two allow."""
        return Estimate(self.value + other.value, self.low + other.low, self.high + other.high)

    def __str__(self) -> str:
        """``1,234`` or ``1,234 (900 to 1,600)``."""
        return f"{self.value:,}" if self.is_exact else f"{self.value:,} ({self.low:,} to {self.high:,})"


def draw(regions: Sequence[Region], share: float | None, seed: str) -> list[Region]:
    """Regions to read: all without a *share*, else that share of them at random, in their order; the same for the
    same *seed*.
    """
    if share is None:
        return list(regions)
    number = min(len(regions), max(LEAST_REGIONS, math.ceil(share * len(regions))))
    chosen = sorted(random.Random(seed).sample(range(len(regions)), number))
    return [regions[i] for i in chosen]


def total(parts: Sequence[int], population: int, most: int) -> Estimate:
    """The sum over *population* regions, from what those that were read hold.

    Args:
        parts: what each region that was read holds; all of them where there are *population*.
        population: how many regions there are.
        most: what one region can hold at most, as far as is known: for the case that all parts are equal (none holds an
            orphan, say), which would otherwise pass for certainty about regions that nobody read. Others may hold so
            much, or nothing.

    Returns:
        the estimate. Its interval is never below what was read.
    """
    count, read = len(parts), sum(parts)
    if count >= population:
        return Estimate.exact(read)
    mean = read / count
    variance = sum((p - mean) ** 2 for p in parts) / (count - 1) if count > 1 else 0.0
    if variance:
        below = above = _T[min(count - 1, len(_T)) - 1] * math.sqrt(variance_of_total(variance, count, population))
    else:
        others = _others(count, population)
        below, above = others * mean, others * max(most - mean, 0)
    value = round(mean * population)
    return Estimate(value, max(read, math.floor(value - below)), max(value, math.ceil(value + above)))


def _others(count: int, population: int) -> int:
    """How many of *population* regions can be otherwise although none of *count* was: so many that the chance of it
    is still above 5 %.
    """
    chance, others = 1.0, 0
    while others < population - count:
        chance *= (population - count - others) / (population - others)
        if chance <= 0.05:
            break
        others += 1
    return others


def variance_of_total(variance: float, count: int, population: int) -> float:
    """The variance of the estimated total of *population* regions, from the *variance* among the *count* that were
    read.
    """
    return population**2 * (1 - count / population) * variance / count
