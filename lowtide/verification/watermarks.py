"""V4 as far as the records tell it: how far watermarks may be, by brute force from the raw records. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from lowtide.verification.findings import Violation
from lowtide.verification.records import Records, bound, published

#: First row, the row after the last (empty: none), and the intervals [from, to) of timestamps that were read there.
Recorded = tuple[bytes, bytes, Sequence[Sequence[int]]]


def watermark_violations(records: Records, families: Mapping[str, Iterable[str]]) -> tuple[list[Violation], list[str]]:
    """V4 as far as the records tell it, and notes of tables whose records are void since they were published."""
    found, notes, limit = [], {}, None
    ranges: dict[str, list[Recorded]] = {}
    for p in published(records):
        limit = p.watermark if limit is None else min(limit, p.watermark)
        if p.table not in families:
            continue
        if p.table not in ranges:  # once a table: it may have thousands of regions, and as many facts
            ranges[p.table] = recorded(records.get(f"table/{p.table}", {}), families[p.table])
        may = allowed(p.start, p.stop, ranges[p.table])
        if may is None and p.watermark:
            notes[p.table] = (
                f"{p.table}: its records are void since its region watermarks were published; lowtide run "
                "watermark_collection --execute publishes anew"
            )
        elif may is not None and p.watermark > may:
            found.append(
                Violation(
                    "V4",
                    p.table,
                    f"the region watermark published for {p.start.hex() or 'the first row'} is {p.watermark}, and the "
                    f"records allow {may}",
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


def recorded(columns: Mapping[str, str], families: Iterable[str], shape: str | None = None) -> list[Recorded]:
    """What the raw record of a table says was read; not what is void, of fewer *families* than are transactional, or,
    where it is given, under another *shape* of them.
    """
    number = json.loads(columns.get("incarnation") or "{}").get("number")
    facts = [json.loads(value) for column, value in columns.items() if column.startswith("fact/") and value]
    return [
        (bytes.fromhex(f["start"]), bytes.fromhex(f["stop"]), f["intervals"])
        for f in facts
        if f["incarnation"] == number and set(families) <= set(f["families"])
        if shape in (None, f.get("shape", ""))
    ]


def stated(columns: Mapping[str, str]) -> int:
    """The time of the table's state, ms, that its records speak of; 0: not known."""
    return int(json.loads(columns.get("incarnation") or "{}").get("stated", 0))


def allowed(start: bytes, stop: bytes, ranges: Sequence[Recorded]) -> int | None:
    """How far the records let the watermark of [start, stop) be, inclusive, by brute force.

    Every row between two edges of the recorded *ranges* is in the same of them, so that one row of each stretch is
    checked. None: the table has no record that still describes it, so that whatever was published is of a table of
    before.

    Args:
        start: first row.
        stop: the row after the last; empty: none.
        ranges: see :func:`recorded`.
    """
    if not ranges:
        return None
    edges = {edge for low, high, _ in ranges for edge in (low, high)}
    rows = [start, *sorted(e for e in edges if e > start and (not stop or e < stop))]
    return min(_cleaned_at(row, ranges) for row in rows)


def _cleaned_at(row: bytes, ranges: Sequence[Recorded]) -> int:
    """Up to which timestamp, inclusive, this row was read without a gap from 0 on."""
    reached = 0
    spans = sorted(tuple(i) for low, high, spans in ranges if low <= row and (not high or row < high) for i in spans)
    for begin, end in spans:
        if begin > reached:
            break
        reached = max(reached, end)
    return max(0, reached - 1)
