"""V6: the timestamps at which a table is read before and after, and what differs between the two. Pure."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from lowtide.verification.findings import Violation

#: Read points of a comparison, the low watermark among them.
READ_POINTS = 8


def read_points(mark: int, watermark: int, seed: str) -> list[int]:
    """Timestamps in (mark, watermark] at which a table is read, the last one among them; the same for the same seed."""
    if mark >= watermark:
        return []
    draw = random.Random(seed)
    return sorted({draw.randint(mark + 1, watermark) for _ in range(READ_POINTS - 1)} | {watermark})


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Violation]:
    """V6: the read points of a table that show something else than they did."""
    found = []
    for table, points in before.items():
        for point, was in points.items():
            now = after.get(table, {}).get(point)
            if now is not None and now != was:
                found.append(
                    Violation(
                        "V6",
                        table,
                        f"read as of {point} it showed {was['cells']} cells with hash {was['hash']}, and shows "
                        f"{now['cells']} with hash {now['hash']} now",
                        "Run no job that removes; look at what the runs between the two put aside (lowtide restore)",
                    )
                )
    return found
