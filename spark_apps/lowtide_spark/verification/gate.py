"""The gate before pruning: one read of the tables themselves, which shows that no cell still needs what is about to go,
from the commit table or from the journal.

It reads as the verifier does. The bound follows from records. The gate believes none: it is the last moment at which
the entry is there to heal with.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide.errors import LowtideError
from lowtide.run.summary import TableReport
from lowtide.tables.inventory import Entry
from lowtide_spark.frames.inventory import transactional
from lowtide_spark.frames.shown import in_hex
from lowtide_spark.frames.startset import StartSet
from lowtide_spark.frames.store import cause
from lowtide_spark.run.context import Run
from lowtide_spark.verification.rawcells import pairs, start_of

#: What is not done where the gate stays closed.
PRUNED, SWEPT = "nothing was pruned", "no journal entry was removed"
#: Cells that are named, and counted.
_NAMED, _MOST = 5, 1000


def closed(run: Run, inventory: Sequence[Entry], committed: DataFrame, report: TableReport, undone: str) -> bool:
    """Whether the entries of *committed* transactions (``start_ts``) must stay: a cell of theirs lacks its shadow cell,
    or a table could not be read to see. *undone*: what is not done then, for the report.

    To be asked when the cleanups that heal are over. A disabled table cannot be read, and is passed over, by name:
    what it may have is below what its own records say, it holds the bound there, and every entry that goes is in the
    journal. When it comes back it is read from 0. To keep all entries for it would keep them for as long as it is
    disabled, and for a table that nobody enables again, for ever.
    """
    starts = StartSet(committed)
    try:
        if not starts:
            return False
        problems = []
        for entry in transactional(inventory):
            if not entry.enabled:
                report.notes.append(_passed_over(entry, undone))
                continue
            try:
                problems += _lacking(run, entry, starts)
            except LowtideError as error:
                problems.append(f"{entry.table} cannot be read to see whether it still needs them: {error}. Run again")
            except Exception as error:  # Spark's: the read failed on the way
                problems.append(
                    f"{entry.table} cannot be read to see whether it still needs them: {cause(error)}. Run again"
                )
    finally:
        starts.close()
    report.problems += [f"{undone}: {problem}" for problem in problems]
    return bool(problems)


def _passed_over(entry: Entry, undone: str) -> str:
    if undone != PRUNED:
        return f"{entry.table} is disabled and was not read before the journal let go of anything; its records allow it"
    return (
        f"{entry.table} is disabled and was not read before pruning; its records allow it, the journal keeps the "
        "commits, and it is read from 0 when it is enabled again"
    )


def _lacking(run: Run, entry: Entry, starts: StartSet) -> list[str]:
    """One sentence for each of the first cells of the table that lack their shadow cell."""
    regions = [WorkRange(r.name, r.keys, *starts.span) for r in run.store.regions(entry.table)]
    # Not raw, which would read all timestamps. HBase leaves out what is deleted, by markers of whatever timestamp: it
    # passes over no file that holds one which hides more than its own version.
    cells = run.store.cells(entry.table, regions, every=True)
    told = (in_hex(F.col(name)).alias(name) for name in ("row", "qualifier"))
    lacking = _without(entry, cells, starts).select("family", "timestamp", "start_ts", *told)
    found = lacking.limit(_MOST + 1).collect()
    lines = [
        f"{entry.table}, row {r.row}, family {bytes(r.family).decode()}, qualifier "
        f"{r.qualifier or 'none'}: the cell of transaction {r.start_ts} at {r.timestamp} lacks its shadow "
        f"cell, although its range is recorded as cleaned. Run lowtide run orphan_cleanup --table {entry.table} --full "
        "--execute, then prune again"
        for r in found[:_NAMED]
    ]
    if len(found) > _NAMED:
        lines.append(f"{entry.table}: {'at least ' if len(found) > _MOST else ''}{len(found) - _NAMED:,} cells more")
    return lines


def _without(entry: Entry, cells: DataFrame, starts: StartSet) -> DataFrame:
    families = [bytearray(f.encode()) for f in entry.families | entry.unmarked]
    ours = starts.restrict(
        cells.where(F.col("family").isin(families)).withColumn("start_ts", start_of(F.col("timestamp")))
    )
    return pairs(ours.drop("start_ts")).where("data and shadow is null")
