"""Whether the ledger's money adds up: what all users have is what was paid in."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.errors import StoreError, UsageError
from lowtide.ledger import settled, steps
from lowtide.ledger.model import (
    ContradictionError,
    RecordState,
    State,
    Table,
    parse_transaction,
    parse_transaction_id,
)
from lowtide.ledger.settled import SKEW
from lowtide.ledger.steps import Program, Read
from lowtide_spark.ledger import dataframes, settled_mark
from lowtide_spark.ledger.books import MOST_NAMED, Books, audited


def check_money(books: Books, when: str, since: int, until: int) -> None:
    """Every finished transaction has moved its amount, once: then what all users have is what was paid in.

    Those that changed since *since* (ms of the servers' clocks; 0: all), and those whose records did, up to *until*,
    before anything is read. What does not add up in one reading is checked by itself, since tables are read one after
    the other while clients go on.

    Where all are counted, there are no fewer of them than the last full check counted.

    Raises:
        StoreError: it does not add up, or some are gone. Where the run acts, that is written down beside the settled
            mark, so that the runs to come do not go on from what they check alone.
    """
    since = max(0, since - SKEW)
    moving = dataframes.finished(books.frames.transactions(("sender", "recipient", "amount", "state"), since))
    # Kept, so that the records are read later than every transaction that they are compared with.
    moving = moving.localCheckpoint(eager=True)
    # Kept where the count has computed them: doubtful ones are checked as they were counted.
    records = books.frames.records(("amount", "state"), since)
    sides = dataframes.settled_sides(moving, records).localCheckpoint(eager=False)
    good, paid_in = dataframes.balanced(), dataframes.paid_in(books.issuer)
    (counted,) = sides.agg(F.count("*"), F.sum(F.when(good, paid_in)), F.count(F.when(~good, 1))).collect()
    total, paid, doubtful = int(counted[0]), int(counted[1] or 0), int(counted[2])
    figures = books.run.summary.figures
    names = settled.money_figure(when)
    figures[names[0]] = total
    if not since:
        figures[settled.PAID_IN_FIGURE] = paid
        if gone := settled.lost(books.stored, total, books.frames.name(Table.OPEN)):
            raise _wrong(books, gone)
    wrong = _checked_again(books, sides.where(~good)) if doubtful else []
    if since:
        wrong += _later_records(books, moving, since, until)
    figures[names[1]] = len(wrong)
    books.run.phase(f"money {when}")
    if wrong:
        for text in wrong[:MOST_NAMED]:
            books.problem(text)
        done = "nothing was repaired" if when == "before" else "the settled mark stays where it is"
        msg = (
            f"the money does not add up {when} the repair: of {total} finished transactions, {doubtful} had not moved "
            f"their amount exactly once at first sight; {len(wrong)} contradictions at second; {done}"
        )
        raise _wrong(books, msg)


def _wrong(books: Books, text: str) -> StoreError:
    if books.run.summary.execute:
        settled_mark.doubt(books)
    return StoreError(text)


def _checked_again(books: Books, doubtful: DataFrame) -> list[str]:
    """What is wrong with transactions that seem not to have moved their amount exactly once."""
    return books.audit(doubtful.where("foreign = 0").select("key", F.lit(None).alias("user"))) + [
        f"transaction {r.key} has {r.foreign} finished record(s) of users that have no part in it"
        for r in doubtful.where("foreign > 0").limit(MOST_NAMED).collect()
    ]


def _later_records(books: Books, moving: DataFrame, since: int, until: int) -> list[str]:
    """What is wrong with records that were written since, of transactions that were not finished since.

    One of a transaction that was finished before is nobody's to write any more. A third user's is nobody's to write at
    all, however far the transaction is: it would count in his balance from its end on, and no later check of what was
    written since sees it again. Whose one is that has no transaction yet cannot be told; it moves no money, and is a
    problem of the run.
    """
    written = books.frames.records(("amount", "state"), since, until)
    # Of an amount that alone was changed, the state was written earlier.
    counting = written.where(F.col("state").isNull() | (F.col("state") == RecordState.FINISHED.value))
    known = moving.select(F.col("key").alias("transaction"))
    later = counting.join(known, "transaction", "left_anti")
    lone: list[str] = []
    wrong = books.audit(later.select(F.col("transaction").alias("key"), "user"), partial(_audited_of_its_time, lone))
    for text in lone[:MOST_NAMED]:
        books.problem(text)
    return wrong


def _audited_of_its_time(lone: list[str], id: str, user: str) -> Program[object]:
    """The audit of a transaction that is finished; of any other, that *user* has a part in it; *lone* hears of none."""
    try:
        parse_transaction_id(id)
    except UsageError:
        return None  # no transaction has it: it moves no money, and the full check names it
    (row,) = yield Read(Table.TRANSACTIONS, (id,))
    if row.get("state") == State.FINISHED:
        return (yield from audited(id, user))
    if not row:
        lone.append(steps.lone(user, id))
        return None
    try:
        transaction = parse_transaction(id, row)
    except ContradictionError:
        return None  # the transaction is named when it is to be repaired
    return steps.side(transaction, user)
