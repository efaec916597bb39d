"""V6: the timestamps at which a table is read before and after, and what differs between the two. Pure."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any

from lowtide.verification.findings import Violation
from lowtide.verification.records import Records, history_mark

#: Read points of a comparison that lie anywhere, the low watermark among them.
ANYWHERE = 4
#: Read points that each lie just after a commit of the table's.
AFTER_COMMITS = 6


def read_points(mark: int, watermark: int, seed: str, commits: Iterable[int] = ()) -> list[int]:
    """Timestamps in (mark, watermark] at which a table is read, the last one among them; the same for the same seed.

    Most of that time may lie before the table's first cell, and a version is shown until the next one only: so some are
    the first at which one of the *commits* (commit timestamps) is shown.
    """
    if mark >= watermark:
        return []
    draw = random.Random(seed)
    anywhere = {draw.randint(mark + 1, watermark) for _ in range(ANYWHERE - 1)}
    return sorted(anywhere | {c + 1 for c in commits if mark < c + 1 <= watermark} | {watermark})


def held_violations(records: Records, now: int) -> list[Violation]:
    """V6: no history mark is above a read point that somebody holds.

    Args:
        records: the raw ones.
        now: wall-clock ms; a hold that has expired by then holds nothing. Those that restores take are
            no reader's.
    """
    found = []
    for row, columns in sorted(records.items()):
        if row.startswith("hold/") and columns.get("value"):
            hold = json.loads(columns["value"])
            mark = history_mark(records, hold["table"])
            of_restore = hold["id"].startswith("restore-")
            if not of_restore and now < int(hold["expires"]) and mark > int(hold["timestamp"]):
                found.append(
                    Violation(
                        "V6",
                        hold["table"],
                        f"{hold['owner']} holds the read point {hold['timestamp']}, and the history mark is {mark}: "
                        "what it shows may be gone",
                        "Run no job that removes; look at what history_gc put aside (lowtide restore)",
                    )
                )
    return found


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
