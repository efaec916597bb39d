"""A run's summary, printed for people."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

from rich.table import Table

from lowtide.run.rate import sentences
from lowtide.run.summary import WORDS, Summary, TableReport
from lowtide.terminal.console import new_console
from lowtide.terminal.tables import new_table, print_table
from lowtide.values.text import names_text, number_and_time, size_text

#: Regions that are printed; the summary has more.
_REGIONS = 5
#: Tables that are printed: those that hold the prune bound, and those with nothing to do.
_TABLES = 20


def report(summary: Summary, problems_only: bool = False) -> None:
    """Print the run for people, problems last; those, and its rate, alone where the job has printed the rest."""
    console = new_console()
    for line in _rate(summary) if problems_only else _lines(summary):
        if isinstance(line, Table):
            print_table(console, line)
        else:
            console.print(line, soft_wrap=True)
    for problem in [*(f"{t.table}: {p}" for t in summary.tables for p in t.problems), *summary.problems]:
        print(f"problem: {problem}", file=sys.stderr, flush=True)


def _lines(summary: Summary) -> Iterator[str | Table]:
    yield f"{summary.job} {summary.run}: {'executed' if summary.execute else 'dry run'}, {summary.seconds} s"
    if summary.hbase:
        yield f"  HBase {summary.hbase}"
    yield from _rate(summary)
    yield from (f"  note: {note}" for note in summary.notes)
    if (grid := counts(summary)).row_count:
        yield grid
    if idle := [t.table for t in summary.tables if not any(t.counts.to_json().values())]:
        yield f"  nothing to do: {names_text(idle, _TABLES)}"
    for table in summary.tables:
        about = [*_history(table), *(f"  note: {note}" for note in table.notes)]
        yield from ([f"{table.table}:", *about] if about else [])
    if summary.bound is not None:
        yield f"  prune bound {number_and_time(summary.bound)}, low watermark {number_and_time(summary.low_watermark)}"
    yield from (f"  {name}: {number:,}" for name, number in summary.figures.items())
    if summary.listing.folder:
        yield f"  list of {summary.listing.cells.total():,} cells: {summary.listing.folder}"
    of_marks = {t.table for t in summary.tables if t.mark}
    holding = [blocker for blocker in summary.blockers if blocker["table"] not in of_marks]
    yield from (f"  held by {_blocker(blocker)}" for blocker in holding[:_TABLES])
    if len(holding) > _TABLES:
        yield f"  and by {len(holding) - _TABLES:,} more, in the summary"


def _rate(summary: Summary) -> Iterator[str]:
    yield from (f"  {sentence}" for sentence in sentences(summary.pace))


def counts(summary: Summary) -> Table:
    """What was done, or would be, with each table of which there is something to tell: the counters that are not 0 in
    all of them.
    """
    busy = [(table.table, told) for table in summary.tables if any((told := table.counts.to_json()).values())]
    names = [name for name in WORDS if any(told[name] for _, told in busy)]
    numbers = [WORDS[name] for name in names if name != "skipped"]
    grid = new_table(
        "Done" if summary.execute else "Would be done", "table", *(WORDS[n] for n in names), numbers=numbers
    )
    for table, told in busy:
        grid.add_row(table, *(_count(name, told[name]) for name in names))
    return grid


def _count(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{number:,} {why}" for why, number in value.items())
    return size_text(value) if name.startswith("bytes") and value else f"{value:,}"


def _history(table: TableReport) -> Iterator[str]:
    """The ancient history mark with what allows no higher one, and the regions from which most goes."""
    if table.mark:
        applied = table.mark["applied"]
        so_far = (
            ""
            if applied == table.mark["mark"]
            else f"; applied so far: {number_and_time(applied) if applied else 'none'}"
        )
        yield f"  mark {number_and_time(table.mark['mark'])}{so_far}"
        yield from (f"    kept back by {by['reason']}: {by['remedy']}" for by in table.mark["held_by"])
    for region in table.by_region[:_REGIONS]:
        lone = f" and {region['shadows']:,} lone shadow cells" if region["shadows"] else ""
        yield (
            f"  region {region['region']}: {region['versions']:,} versions{lone}, {size_text(region['bytes'])}, "
            f"by {region['markers']:,} delete markers"
        )
    if len(table.by_region) > _REGIONS:
        yield f"  and {len(table.by_region) - _REGIONS:,} regions more, in the summary"


def _blocker(blocker: Mapping[str, Any]) -> str:
    where = " ".join(str(blocker[name]) for name in ("table", "keys") if blocker.get(name))
    more = f" (and {blocker['regions'] - 1:,} regions more)" if blocker.get("regions", 1) > 1 else ""
    return f"{where} at {number_and_time(blocker['watermark'])}: {blocker['reason']}{more}; {blocker['remedy']}"
