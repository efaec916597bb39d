"""What the verifier computes without a store, by code of its own: watermarks from the raw records, read points. Pure.

Nothing here uses ``lowtide.cleaning.facts``, ``lowtide.values.intervals`` or ``lowtide.store.state``: what it is held against must not be what it is made of. The invariants
V1 to V6 are text in docs/safety.md.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

#: Read points of a comparison, the low watermark among them.
READ_POINTS = 8
#: Of one kind of violation so many are named; of the others only how many there are.
NAMED = 20

Records = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold: where, of how many cells or files, what, and what to do."""

    invariant: str
    table: str
    what: str
    remedy: str
    number: int = 1
    row: str = ""
    transaction: int | None = None

    def __str__(self) -> str:
        """One line for people."""
        where = f", row {self.row}" if self.row else ""
        whose = f", transaction {self.transaction}" if self.transaction is not None else ""
        return f"{self.invariant}{where}{whose}: {self.what}. {self.remedy}"


@dataclass
class Verification:
    """What was found, and what could not be looked at."""

    run: str
    low_watermark: int = 0
    bound: int = 0
    horizon: int = 0
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    violations: list[Violation] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)

    def to_json(self) -> str:
        """For programs."""
        return json.dumps(asdict(self), indent=2) + "\n"


#: Among the records the row of the journal's table about itself, which has no other home.
JOURNALS_OWN = "journal's own"


@dataclass(frozen=True, slots=True)
class Published:
    """A region watermark as published: of the key range [start, stop), inclusive."""

    table: str
    start: bytes
    stop: bytes
    watermark: int


def published(records: Records) -> list[Published]:
    """The region watermarks published last."""
    return [
        Published(
            row.removeprefix("watermarks/"), bytes.fromhex(r["start"]), bytes.fromhex(r["stop"]), int(r["watermark"])
        )
        for row, columns in sorted(records.items())
        if row.startswith("watermarks/")
        for r in json.loads(columns["value"])["regions"]
    ]


def bound(records: Records) -> int:
    """The prune bound published last, inclusive; 0 where there is none."""
    newest = min((row for row in records if row.startswith("bound/")), default=None)
    return 0 if newest is None else int(json.loads(records[newest]["value"])["value"])


def horizon(records: Records) -> int:
    """The greatest start timestamp that was swept from the journal, by the state table or by the journal's row about itself; 0: none was."""
    said = (records.get(row, {}).get("value", "{}") for row in ("journal", JOURNALS_OWN))
    return max(int(json.loads(value).get("horizon", 0)) for value in said)


def history_mark(records: Records, table: str) -> int:
    """The ancient history mark that readers of *table* are held to, or are about to be."""
    columns = records.get(f"history/{table}", {})
    return max(
        (int(json.loads(v).get("mark", 0)) for c, v in columns.items() if c in ("mark", "intended") and v), default=0
    )


def allowed(start: bytes, stop: bytes, columns: Mapping[str, str], families: Iterable[str]) -> int | None:
    """How far the records let the watermark of [start, stop) be, inclusive, by brute force.

    Every row between two edges of the recorded ranges is in the same of them, so that one row of each stretch is looked at. None: the table has no
    record that still speaks of it, so that whatever was published is of a table of before.

    Args:
        start: first row.
        stop: the row after the last; empty: none.
        columns: the raw record of the table.
        families: those that are transactional now.
    """
    number = json.loads(columns.get("incarnation") or "{}").get("number")
    facts = [json.loads(value) for column, value in columns.items() if column.startswith("fact/") and value]
    facts = [f for f in facts if f["incarnation"] == number and set(families) <= set(f["families"])]
    if not facts:
        return None
    ranges = [(bytes.fromhex(f["start"]), bytes.fromhex(f["stop"]), f["intervals"]) for f in facts]
    edges = {edge for low, high, _ in ranges for edge in (low, high)}
    rows = [start, *sorted(e for e in edges if e > start and (not stop or e < stop))]
    return min(_cleaned_at(row, ranges) for row in rows)


def _cleaned_at(row: bytes, ranges: Sequence[tuple[bytes, bytes, Sequence[Sequence[int]]]]) -> int:
    """Up to which timestamp, inclusive, this row was read without a gap from 0 on."""
    reached = 0
    spans = sorted(tuple(i) for low, high, spans in ranges if low <= row and (not high or row < high) for i in spans)
    for begin, end in spans:
        if begin > reached:
            break
        reached = max(reached, end)
    return max(0, reached - 1)


def watermark_violations(records: Records, families: Mapping[str, Iterable[str]]) -> tuple[list[Violation], list[str]]:
    """V4 as far as the records tell it, and notes of tables whose records are void since they were published."""
    found, notes, limit = [], {}, None
    for p in published(records):
        limit = p.watermark if limit is None else min(limit, p.watermark)
        if p.table not in families:
            continue
        may = allowed(p.start, p.stop, records.get(f"table/{p.table}", {}), families[p.table])
        if may is None and p.watermark:
            notes[p.table] = (
                f"{p.table}: its records are void since its region watermarks were published; lowtide run watermark_collection --execute publishes anew"
            )
        elif may is not None and p.watermark > may:
            found.append(
                Violation(
                    "V4",
                    p.table,
                    f"the region watermark published for {p.start.hex() or 'the first row'} is {p.watermark}, and the records allow {may}",
                    "Prune nothing; run lowtide run watermark_collection --execute, then verify again",
                )
            )
    now = bound(records)
    if limit is not None and now > limit:
        found.append(
            Violation(
                "V4",
                "",
                f"the prune bound published last, {now}, is above the least region watermark, {limit}",
                "Prune nothing; run lowtide run watermark_collection --execute, then verify again",
            )
        )
    return found, list(notes.values())


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
                        f"read as of {point} it showed {was['cells']} cells with hash {was['hash']}, and shows {now['cells']} with hash {now['hash']} now",
                        "Run no job that removes; look at what the runs between the two put aside (lowtide restore)",
                    )
                )
    return found
