"""The job ``why``: of one row every cell that is there or went, the rule, the evidence, the run. Writes nothing.

It decides by the functions by which jobs do (:func:`lowtide_spark.cleaning.orphans.find_and_decide`,
:func:`lowtide_spark.history.superseded.plan`), on the one row. What a row alone cannot show, and a whole table would:
that a version stays because its transaction has an undecided cell in another row, and that its key range is stopped
because of another row's cell.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lowtide.asking.answer import Answer, Line, marker, present, removed
from lowtide.asking.terminal import print_answer
from lowtide.cleaning.evidence import IN_WORDS, Proof
from lowtide.cleaning.facts import Region
from lowtide.cleaning.planning import WorkRange
from lowtide.errors import LowtideError, StoreError, TableError, UsageError
from lowtide.history.mark import mark_of
from lowtide.run.private import write_private
from lowtide.tables.inventory import Entry, Kind
from lowtide.terminal.console import new_console
from lowtide.values.clock import first_timestamp, from_millis
from lowtide.values.formats import after, base
from lowtide.values.hbase_shell import unquoted
from lowtide.values.keyranges import KeyRange, printable
from lowtide_spark.asking.sidelines import kept_until, recorded
from lowtide_spark.cleaning import undecided
from lowtide_spark.cleaning.listing import with_evidence
from lowtide_spark.cleaning.orphans import find_and_decide
from lowtide_spark.cleaning.suspects import prepare_all
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames import cell_list, missed, sideline
from lowtide_spark.frames.inventory import take_inventory
from lowtide_spark.frames.kinds import END_OF_RANGE
from lowtide_spark.frames.store import FOREVER
from lowtide_spark.history import mark, superseded
from lowtide_spark.run.context import Run
from lowtide_spark.run.tables import refusal

#: Cells of a row that are told of; a row may have millions.
MOST = 1000
_KEY = ("family", "qualifier", "timestamp")
_CELL = (*_KEY, "row", "start_ts", "commit_ts", "replaced_ts", "kind", "problem")
_VERDICTS = {
    "committed": "committed at {tc}",
    "aborted": "never committed",
    "absent": "never committed, as far as is seen",
}

Key = tuple[bytes, bytes, int]


def why(run: Run) -> None:
    """Answer, on the terminal and with ``--json`` in a file.

    Raises:
        UsageError: no table, or no row; or the table holds no transactions.
        TableError: there is no such table.
        StoreError: nothing is known of the row.
    """
    if len(run.options.table) != 1 or run.options.row is None:
        msg = "name one table and one row: lowtide why TABLE ROW"
        raise UsageError(msg)
    row = unquoted(run.options.row)
    with ExitStack() as held:
        answer = _answer(run, run.options.table[0], row, held)
    run.summary.tables.clear()  # the looks' own, of tables that nobody asked about
    run.summary.problems.clear()
    print_answer(new_console(), answer)
    if run.options.json is not None:
        write_private(run.options.json, json.dumps(answer.to_json(), indent=2) + "\n")


def _answer(run: Run, table: str, row: bytes, held: ExitStack) -> Answer:
    notes: list[str] = []
    watermark = run.read_low_watermark(notes)
    inventory = take_inventory(run.store, notes)
    entry = _entry(table, inventory)
    if entry.doubt:
        notes.append(f"nothing is done to the table, and it keeps the prune bound back: {entry.doubt}")
    place = _place(run, entry, row, watermark)
    there = _versions(run, place).where(F.col("kind") != END_OF_RANGE).select(*_CELL).limit(MOST + 1).collect()
    if len(there) > MOST:
        notes.append(f"the row has more cells than the {MOST:,} that are told of")
    went = _went(run, place)
    cells = sorted(there[:MOST], key=lambda c: (bytes(c.family), bytes(c.qualifier), -c.timestamp))
    markers = list(_markers(run, place))
    if not (cells or markers or went):
        msg = (
            f'row "{printable(row)}" of {table} has no cell, and no run has put one of it aside in the last '
            f"{run.config.state.sideline_keep.days} days (state.sideline_keep)"
        )
        raise StoreError(msg)
    decided, transactions = _cleanup(run, place, inventory, [*cells, *went], watermark, held)
    mark_now, history = _history(run, place, inventory, watermark, notes)
    lines = [
        present(
            cell.asDict(),
            watermark,
            decision := decided.get(_key(cell)),
            history.get(_key(cell)),
            _described(run, table, decision),
            stopped=bool(place.work.stopped),
        )
        for cell in cells
    ]
    runs, until = recorded(run), kept_until(run)
    return Answer(
        table,
        printable(row),
        watermark,
        mark_now,
        [*notes, *_recorded_as_cleaned(place)],
        [*lines, *markers],
        [removed(cell.asDict(), runs.get(cell.run), until.get(cell.run, "it is swept")) for cell in went],
        list(_done(run, place, runs)),
        transactions,
    )


@dataclass(frozen=True)
class _Place:
    """The row, in its table and region, and the table's work as a cleanup prepares it."""

    table: str
    row: bytes
    entry: Entry
    region: Region
    work: CleanupWork

    @property
    def keys(self) -> KeyRange:
        """The row alone."""
        return KeyRange(self.row, self.row + b"\x00")

    def range(self, from_ts: int = 0, to_ts: int = FOREVER) -> WorkRange:
        """The row, between these timestamps."""
        return WorkRange(self.region.name, self.keys, from_ts, to_ts)


def _entry(table: str, inventory: list[Entry]) -> Entry:
    entry = next((e for e in inventory if e.table == table), None)
    if entry is None:
        raise TableError(refusal(table, None))
    if entry.kind is not Kind.TRANSACTIONAL or not entry.enabled:
        raise UsageError(refusal(table, entry))
    return entry


def _place(run: Run, entry: Entry, row: bytes, watermark: int) -> _Place:
    works = prepare_all(run, [entry], watermark)
    if not works:
        raise StoreError("; ".join(problem for report in run.summary.tables for problem in report.problems))
    (work,) = works
    region = next(r for r in work.regions if r.keys.contains(KeyRange(row, row + b"\x00")))
    return _Place(entry.table, row, entry, region, work)


def _versions(run: Run, place: _Place, *, traces: bool = False) -> DataFrame:
    families = sorted(place.entry.families | place.entry.unmarked)
    return run.store.versions(place.table, [place.range()], families, traces=traces)


def _markers(run: Run, place: _Place) -> Iterator[Line]:
    raw = run.store.cells(place.table, [place.range()], raw=True).where(F.col("kind") != "put")
    for cell in raw.select("kind", *_KEY).limit(MOST).collect():
        yield marker(cell.asDict())


def _went(run: Run, place: _Place) -> list[Row]:
    """Cells of the row in sidelines, the newest run's first."""
    kept = sideline.kept(run, run.summary.notes)
    aside = kept.cells
    if lost := kept.lost.get(place.table):
        run.summary.notes.append(f"{missed.summed(lost)}; cells of this row may have been among them")
    mine = (F.col("table") == place.table) & (F.col("row") == F.lit(bytearray(place.row)))
    columns = ("run", "table", *_KEY, "commit_ts", "kind", "rule", "evidence")
    return list(aside.where(mine).select(*columns).distinct().orderBy(*_KEY).limit(MOST).collect())


def _cleanup(
    run: Run, place: _Place, inventory: list[Entry], cells: list[Row], watermark: int, held: ExitStack
) -> tuple[dict[Key, dict[str, Any]], dict[int, str]]:
    """What a cleanup decides of the row's cells, and what is known of their transactions."""
    starts = sorted({start for cell in cells if (start := base(cell.timestamp)) <= watermark})
    if not starts:
        return {}, {}
    work = place.work
    # No wider than the row's own transactions: commit table and journal are read between them.
    work.ranges = [place.range(starts[0], min(after(starts[-1]), after(watermark)))]
    found = find_and_decide(run, [work], inventory, held)
    if work.decided is None:
        raise StoreError("; ".join(work.report.problems))
    columns = ("action", "tc", "why", "rule", "evidence", "verdict")
    decided = with_evidence(work.decided).select(*columns, *_CELL).collect()
    known = found.known.where(F.col("start_ts").isin(starts)).collect()
    return {_key(cell): cell.asDict() for cell in decided}, {r.start_ts: _told(run, r) for r in known}


def _told(run: Run, known: Row) -> str:
    """A verdict on a transaction, with its proof."""
    if known.verdict not in _VERDICTS:
        return f"undecided: {undecided.fill(run, known.why, known.start_ts)}"
    proof = IN_WORDS[Proof(known.proof)]
    words = proof % known.tc if "%d" in proof else proof
    marked = "; it bears an invalidation mark" if known.marked and known.verdict == "committed" else ""
    return f"{_VERDICTS[known.verdict].format(tc=known.tc)}: {words}{marked}"


def _history(
    run: Run, place: _Place, inventory: list[Entry], watermark: int, notes: list[str]
) -> tuple[int, dict[Key, dict[str, Any]]]:
    """The mark that a run of history_gc could work with now, and what it would decide of the row."""
    try:
        bound, bound_by = mark.bound(run, inventory, watermark)
        work = mark.prepare(run, place.entry, watermark, bound, bound_by)
    except LowtideError as error:
        notes.append(f"what history_gc would do is not known: {error}")
        return 0, {}
    if work is None:
        return 0, {}
    if not work.mark:
        notes.append(
            f"history_gc removes nothing of the table now: {'; '.join(x.what for x in mark_of(work.limits)[1])}"
        )
        return 0, {}
    first = first_timestamp(run.world_clock)
    read = _versions(run, place, traces=True).where(superseded.wanted(work.mark, first))
    plan = superseded.plan(read.where(F.col("kind") != END_OF_RANGE), work.mark, first)
    found = superseded.with_evidence(plan, work.mark).select("action", "why", "rule", "evidence", *_CELL).collect()
    return work.mark, {_key(cell): cell.asDict() for cell in found}


def _key(cell: Row) -> Key:
    return bytes(cell.family), bytes(cell.qualifier), cell.timestamp


def _described(run: Run, table: str, decision: Mapping[str, Any] | None) -> str:
    if decision is None or decision["action"] != "stop":
        return ""
    return undecided.describe(run, table, Row(**decision))


def _recorded_as_cleaned(place: _Place) -> Iterator[str]:
    """By whom the row's key range is recorded as cleaned."""
    for fact in place.work.facts:
        if fact.keys.contains(place.keys):
            spans = ", ".join(f"[{a}, {b})" for a, b in fact.intervals)
            yield (
                f"its key range is recorded as cleaned, of transactions that began in {spans}, last by run {fact.run} "
                f"on {from_millis(fact.recorded_at):%Y-%m-%d at %H:%M} UTC"
            )


def _done(run: Run, place: _Place, runs: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What runs that acted, and kept a list of it, have written in the row: what is deleted is in the sideline."""
    lists = cell_list.kept(run)
    if lists is None:
        return
    mine = (F.col("table") == place.table) & (F.col("row") == printable(place.row)) & (F.col("action") == "heal")
    for cell in lists.where(mine).orderBy("family", "qualifier", "timestamp").limit(MOST).collect():
        if cell.run in runs:
            yield (
                f"{cell.family}:{cell.qualifier} at {cell.timestamp} was to be written anew by run {cell.run} on "
                f"{from_millis(runs[cell.run]['started']):%Y-%m-%d at %H:%M} UTC: {cell.rule}: {cell.evidence}"
            )
