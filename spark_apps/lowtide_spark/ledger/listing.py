"""``--list``: the transactions that a repair brings to their end, or would, in the shape of a list of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import functions as F

from lowtide.ledger.model import FAMILY, Entry, Table
from lowtide.ledger.rehearsal import End, Foreseen, foreseen
from lowtide_spark.frames.kinds import PUT
from lowtide_spark.frames.local import few_rows
from lowtide_spark.ledger.books import Books
from lowtide_spark.run.listing import list_cells

#: So many are listed at a time: as a literal of Spark's.
AT_ONCE = 2000

_SCHEMA = "action string, row string, qualifier string, timestamp bigint, rule string, evidence string"


def list_foreseen(
    books: Books, entries: Sequence[Entry], contradicts: Callable[[str], None] | None, *, first: bool
) -> list[Foreseen]:
    """Find out what becomes of *entries*, and list it; before any of it is done, where the run acts.

    Args:
        books: of the run.
        entries: at most :data:`AT_ONCE` of them.
        contradicts: as :meth:`Books.each` takes it.
        first: whether they are the run's first: of a dry run the list then replaces an earlier try's.
    """
    found: list[Foreseen] = []
    books.each(entries, lambda entry: foreseen(entry, books.issuer), found.append, "look at", contradicts)
    for table in (Table.TRANSACTIONS, Table.OPEN):
        rows = [_row(each) for each in found if (each.end is End.REMOVE) == (table is Table.OPEN)]
        if rows or first:
            frame = few_rows(books.run.store.spark, rows, _SCHEMA)
            as_bytes = {name: F.col(name).cast("binary") for name in ("row", "qualifier")}
            cells = frame.withColumns(
                {
                    **as_bytes,
                    "family": F.lit(FAMILY.encode()),
                    "kind": F.lit(PUT),
                    "start_ts": F.lit(None).cast("bigint"),  # of Omid's, of whom the ledger knows nothing
                }
            )
            acts = books.run.summary.execute or not first
            list_cells(books.run, books.frames.name(table), cells, acts=acts)
    return found


def _row(each: Foreseen) -> tuple[str, str, str, int, str, str]:
    """The cell that says what becomes of it: the transaction's state, or the entry that goes."""
    entry = each.entry
    place = (entry.row, "transaction") if each.end is End.REMOVE else (entry.id, "state")
    return (str(each.end), *place, entry.timestamp, str(each.rule), each.evidence)
