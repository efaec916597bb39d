"""The full check of the ledger: rows that contradict each other, and open transactions that the index does not know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from pyspark.sql import functions as F

from lowtide.errors import StoreError
from lowtide.ledger.model import Cells, ContradictionError, Entry, Table, parse_transaction
from lowtide.ledger.steps import Program, Put, Read
from lowtide_spark.ledger import dataframes, settled_mark
from lowtide_spark.ledger.books import Books
from lowtide_spark.ledger.settled_mark import when


def check_everything(books: Books, mark: int) -> list[Entry]:
    """Reads the tables whole. Entries of open transactions that had none are put back, and the mark moves below them.

    Args:
        books: of the run.
        mark: the settled mark, ms: open transactions below it were passed.

    Returns:
        the entries that were put back; of a dry run, those that would be.

    Raises:
        StoreError: an open transaction could not be read, or not be given its entry.
    """
    transactions = books.frames.transactions().localCheckpoint(eager=True)
    # Of what was written while the transactions were read the transaction may not be among them.
    records = books.frames.records(until=books.now)
    known = books.frames.open_rows(0).withColumnRenamed("key", "entry")
    odd = transactions.where(~dataframes.orderly()).select("key", F.lit(None).alias("user"))
    stray = dataframes.strays(transactions, records).select(
        F.col("transaction").alias("key"), F.substring("key", 1, 40).alias("user")
    )
    wrong = books.audit(odd) + books.audit(stray)
    books.run.summary.figures["contradictions"] = len(wrong)
    for text in wrong:
        books.problem(text)
    # However young: an entry is there before its transaction, and the index is read after the transactions.
    lost = transactions.where(~dataframes.is_over()).withColumn("entry", dataframes.entry_key())
    lost = lost.join(known, "entry", "left_anti")
    failed = books.report.counts.failed
    passed = _passed(books, mark)
    restored = _restore_entries(books, (r.key for r in lost.select("key").toLocalIterator()))
    passed += restored
    if passed and books.run.summary.execute:
        settled_mark.move_back(books, min(passed))
    if books.report.counts.failed != failed:
        msg = (
            "open transactions could not be read, or not be given their index entries: "
            f"{books.report.problems[-1]}; the settled mark stays"
        )
        raise StoreError(msg)
    books.run.summary.figures["transactions"] = transactions.count()
    books.run.phase("full check")
    return restored


def _passed(books: Books, mark: int) -> list[Entry]:
    """Entries of open transactions that the mark has passed."""
    found: list[Entry] = []

    def entries() -> Iterator[Entry]:
        for row in books.frames.open_rows(0, mark).toLocalIterator():
            with suppress(ContradictionError):  # named when it is to be repaired
                yield Entry.parse(row.key)

    books.each(entries(), _if_open, lambda e: found.append(e) if e else None, "look at", lambda _: None)
    if found:
        oldest = min(found)
        books.report.notes.append(
            f"{len(found)} open transactions lie below the settled mark, the oldest of {when(oldest.timestamp)} "
            f"({oldest.id}): a client's clock is slow, or it took longer than the grace to claim; who waited for the "
            "mark was set too early"
        )
    return found


def _restore_entries(books: Books, ids: Iterable[str]) -> list[Entry]:
    """Give open transactions that have none their index entries; which."""
    entries: list[Entry] = []
    books.each(ids, _entry_of_open, lambda entry: entries.append(entry) if entry else None, "look at")
    if entries:
        oldest = min(entries)
        books.report.notes.append(
            f"{len(entries)} open transactions had no index entry, the oldest of {when(oldest.timestamp)} "
            f"({oldest.id}): a client took longer than the grace to claim, or an entry was lost"
        )
        if books.run.summary.execute:
            books.each(entries, _put_entry, lambda _: None, "index entry of")
    return entries


def _entry_of_open(id: str) -> Program[Entry | None]:
    """The index entry that a transaction should have; None: it is over by now."""
    (row,) = yield Read(Table.TRANSACTIONS, (id,))
    return _entry_if_open(id, row)


def _if_open(entry: Entry) -> Program[Entry | None]:
    """The entry, if it is that of a transaction which is not over."""
    (row,) = yield Read(Table.TRANSACTIONS, (entry.id,))
    return entry if row and _entry_if_open(entry.id, row) == entry else None


def _entry_if_open(id: str, row: Cells) -> Entry | None:
    transaction = parse_transaction(id, row)
    return None if transaction.state and transaction.state.over else transaction.entry


def _put_entry(entry: Entry) -> Program[None]:
    yield Put(Table.OPEN, entry.row, entry.cells)
