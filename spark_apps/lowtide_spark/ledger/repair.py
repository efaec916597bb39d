"""Transaction repair: what clients of the ledger left half-way is brought to its end.

The money is counted before and after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import chain, islice

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.errors import UsageError
from lowtide.ledger import steps
from lowtide.ledger.model import ContradictionError, Entry, State, Table, parse_transaction
from lowtide.ledger.settled import SKEW
from lowtide.ledger.steps import Program, Read
from lowtide.ledger.store import node_on
from lowtide.run.summary import TableReport
from lowtide.values.clock import millis
from lowtide_spark.frames.functions import try_cast
from lowtide_spark.ledger import listing, settled_mark
from lowtide_spark.ledger.books import Books
from lowtide_spark.ledger.full_check import check_everything
from lowtide_spark.ledger.money import check_money
from lowtide_spark.ledger.settled_mark import when
from lowtide_spark.run import own_tables
from lowtide_spark.run.context import Run

#: What a summary says of entries that a run left although they are older than its own grace.
YOUNG = "not claimed, and within the ledger's grace"


def repair(run: Run) -> None:
    """The job ``transaction_repair``.

    Raises:
        UsageError: a table was named, and the ledger's are known; or a setting that would keep the repair from acting
            stands under a name that no table has.
        StoreError: there is no ledger, or its money does not add up before anything was done.
    """
    if run.options.table:
        msg = (
            f"transaction_repair works on the ledger, not on tables (found {', '.join(run.options.table)}); leave "
            "--table out"
        )
        raise UsageError(msg)
    run.check_names([name.decode() for name in run.state().connection.tables()])
    node = node_on(run.store.connections, run.config, run.config.ledger.pool)
    books = Books.open(run, node)
    mark = settled_mark.take_up(books)
    due = run.request.start is None and books.now - mark.full_at >= _millis(run.config.ledger.full_check_every)
    # What a check found wrong may lie before anything that was written since the last one: an interval's run, too, must
    # not take the rest for all of it.
    full = bool(run.options.full or mark.wrong_at) or due
    # A shorter grace than the ledger's hurries what is claimed; of what is not, a client may be about to claim it.
    horizon = books.now - _millis(run.options.grace)
    ripe = min(horizon, books.now - _millis(run.config.ledger.grace))
    # Where reading the index begins.
    start = 0 if full else mark.mark if run.request.start is None else millis(run.request.start)
    check_money(books, "before", 0 if full else mark.checked_at, books.now)
    restored = check_everything(books, mark.mark) if full else []
    _repair_open(books, start, horizon, ripe, restored)
    if run.summary.execute:
        check_money(books, "after", books.now, books.time())
        settled_mark.settle(books, start, ripe, full)
        books.report.notes += own_tables.mend(run, [*map(books.frames.name, Table), run.config.state.table])


def _repair_open(books: Books, start: int, horizon: int, ripe: int, restored: Sequence[Entry]) -> None:
    """Everything in the interval that is older than the run's grace, which began at *horizon*, and of the entries that
    this run *restored*. What is not older than the ledger's own, which began at *ripe*, only if it is claimed.
    """
    run, report = books.run, books.report
    # Without a beginning it takes what is open before its end, and a fast clock's transactions too: their time is to
    # come, so that no later run meets them in its interval.
    whole = run.request.start is None
    end = horizon
    if run.request.until is not None:
        end = min(end, millis(run.request.until))
    start = start if run.request.start is None else millis(run.request.start)
    report.intervals = [(start, max(start, end))]
    # By both clocks older than the grace: where a client's is slow, it may be about to claim the number.
    old = books.frames.open_rows(start, end).where(F.col("written") < horizon)
    # Those that this run gave back are young by HBase's clock, and claimed.
    restored = [e for e in restored if whole or start <= e.timestamp < end]
    report.counts.candidates += len(restored)
    entries = chain(_entries(books, old, ripe), _ahead(books, end, ripe) if whole else (), restored)
    if run.options.list:
        _listed(books, entries)
    elif run.summary.execute:
        _bring_to_end(books, entries)
    else:
        books.each(entries, _state, lambda state: _count_left(report, state), "look at")
    run.phase("repair" if run.summary.execute else "plan")


def _bring_to_end(books: Books, entries: Iterable[Entry]) -> None:
    def program(entry: Entry) -> Program[steps.Outcome | None]:
        return steps.repair(entry, books.issuer, at_once=True)

    books.each(entries, program, lambda outcome: _count(books.report, outcome), "repair of")


def _listed(books: Books, entries: Iterator[Entry]) -> None:
    """The same, listed first, some at a time. What contradicts itself is told once: by the repair, if there is one."""
    execute, first = books.run.summary.execute, True
    while (some := list(islice(entries, listing.AT_ONCE))) or first:
        found = listing.list_foreseen(books, some, (lambda _: None) if execute else None, first=first)
        first = False
        if execute:
            _bring_to_end(books, some)
        else:
            for each in found:
                _count_left(books.report, each.found)


def _entries(books: Books, rows: DataFrame, ripe: int) -> Iterator[Entry]:
    """The entries of *rows*; those that HBase wrote from *ripe* on only where they are claimed."""
    young: list[Entry] = []
    for row in rows.toLocalIterator():
        books.report.counts.candidates += 1
        try:
            entry = Entry.parse(row.key)
        except ContradictionError as error:
            books.contradiction(str(error))
            continue
        if row.written < ripe:
            yield entry
            continue
        young.append(entry)
        if len(young) == listing.AT_ONCE:
            yield from _claimed(books, young)
            young = []
    yield from _claimed(books, young)


def _claimed(books: Books, entries: Sequence[Entry]) -> list[Entry]:
    """Those whose numbers are claimed, for them or for another: either stays so. The others are left to their
    clients.
    """
    found: list[Entry] = []

    def take(entry: Entry | None) -> None:
        if entry:
            found.append(entry)
        else:
            books.report.counts.skipped[YOUNG] += 1

    books.each(entries, _if_claimed, take, "look at")
    return found


def _if_claimed(entry: Entry) -> Program[Entry | None]:
    (row,) = yield Read(Table.TRANSACTIONS, (entry.id,))
    return entry if row else None


def _ahead(books: Books, end: int, ripe: int) -> Iterator[Entry]:
    """Entries that HBase wrote before *end*, and whose time is later: of clients whose clocks are fast."""
    rows = books.frames.open_rows(end).where(F.col("written") < end)
    ahead = try_cast(F.substring("key", 1, 15), "bigint") > F.col("written") + SKEW
    found = list(_entries(books, rows.where(ahead), ripe))
    if found:
        latest = max(found)
        books.report.notes.append(
            f"{len(found)} entries of the index bear a later time than they were written at, the latest "
            f"{when(latest.timestamp)} ({latest.id}): a client's clock is fast"
        )
    yield from found


def _count(report: TableReport, outcome: steps.Outcome | None) -> None:
    if outcome is None:
        report.counts.skipped["never claimed"] += 1
    elif outcome.state is State.FINISHED:
        report.counts.finished += 1
    else:
        report.counts.dropped += 1


def _count_left(report: TableReport, state: str) -> None:
    report.counts.skipped[f"{state}, left by the dry run"] += 1


def _state(entry: Entry) -> Program[str]:
    """The state of an entry's transaction."""
    (row,) = yield Read(Table.TRANSACTIONS, (entry.id,))
    if not row:
        return "never claimed"
    transaction = parse_transaction(entry.id, row)
    return "never claimed" if transaction.entry != entry else str(transaction.state or "claimed")


def _millis(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
