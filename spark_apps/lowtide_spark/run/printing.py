"""A run's summary, printed for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from lowtide.run.summary import Summary, TableReport
from lowtide.values.text import number_and_time, size_text

#: Regions that are printed; the summary has more.
_REGIONS = 5


def report(summary: Summary, problems_only: bool = False) -> None:
    """Print the run for people, problems last; those alone where the job has printed the rest."""
    if not problems_only:
        print(*_lines(summary), sep="\n", flush=True)
    for problem in [*(f"{t.table}: {p}" for t in summary.tables for p in t.problems), *summary.problems]:
        print(f"problem: {problem}", file=sys.stderr, flush=True)


def _lines(summary: Summary) -> Iterator[str]:
    yield f"{summary.job} {summary.run}: {'executed' if summary.execute else 'dry run'}, {summary.seconds} s"
    if summary.hbase:
        yield f"  HBase {summary.hbase}"
    yield from (f"  note: {note}" for note in summary.notes)
    for table in summary.tables:
        counts = {k: v for k, v in table.counts.to_json().items() if v}
        yield f"  {table.table}: {counts or 'nothing to do'}"
        yield from _history(table)
        yield from (f"    note: {note}" for note in table.notes)
    if summary.bound is not None:
        yield f"  prune bound {number_and_time(summary.bound)}, low watermark {number_and_time(summary.low_watermark)}"
    yield from (f"  {name}: {number:,}" for name, number in summary.figures.items())
    if summary.listing.folder:
        yield f"  list of {summary.listing.cells.total():,} cells: {summary.listing.folder}"
    of_marks = {t.table for t in summary.tables if t.mark}
    yield from (f"  held by {_blocker(b)}" for b in summary.blockers if b["table"] not in of_marks)


def _history(table: TableReport) -> Iterator[str]:
    """The ancient history mark with what allows no higher one, and the regions from which most goes."""
    if table.mark:
        applied = table.mark["applied"]
        so_far = (
            ""
            if applied == table.mark["mark"]
            else f"; applied so far: {number_and_time(applied) if applied else 'none'}"
        )
        yield f"    mark {number_and_time(table.mark['mark'])}{so_far}"
        yield from (f"      kept back by {by['reason']}: {by['remedy']}" for by in table.mark["held_by"])
    for region in table.by_region[:_REGIONS]:
        lone = f" and {region['shadows']:,} lone shadow cells" if region["shadows"] else ""
        yield (
            f"    region {region['region']}: {region['versions']:,} versions{lone}, {size_text(region['bytes'])}, "
            f"by {region['markers']:,} delete markers"
        )
    if len(table.by_region) > _REGIONS:
        yield f"    and {len(table.by_region) - _REGIONS:,} regions more, in the summary"


def _blocker(blocker: Mapping[str, Any]) -> str:
    where = " ".join(str(blocker[name]) for name in ("table", "keys") if blocker.get(name))
    more = f" (and {blocker['regions'] - 1:,} regions more)" if blocker.get("regions", 1) > 1 else ""
    return f"{where} at {number_and_time(blocker['watermark'])}: {blocker['reason']}{more}; {blocker['remedy']}"
