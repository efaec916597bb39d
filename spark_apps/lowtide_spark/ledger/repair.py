"""Transaction repair: what clients of the ledger left half-way is brought to its end, and the money is counted before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import chain
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.errors import LedgerError, LowtideError, StoreError, UsageError
from lowtide.ledger import settled, steps
from lowtide.ledger.model import (
    Cells,
    ContradictionError,
    Entry,
    RecordState,
    State,
    Table,
    parse_transaction,
    parse_transaction_id,
    user_id,
)
from lowtide.ledger.settled import SKEW, Settled, trusted
from lowtide.ledger.steps import Program, Put, Read
from lowtide.ledger.store import Node, node
from lowtide.run.summary import TableReport
from lowtide.values.clock import EPOCH, millis
from lowtide_spark.ledger import dataframes
from lowtide_spark.run.context import Run

#: Problems named one by one; more are counted.
_MOST_NAMED = 50
#: Rows that the columns alone do not clear, looked at one by one. More than these are the sign of something else.
_MOST_LOOKED_AT = 100_000
#: How often a mark that others move is tried.
_MOST_TRIES = 10


def repair(run: Run) -> None:
    """The job ``transaction_repair``.

    Raises:
        UsageError: a table was named; the ledger's are known.
        StoreError: there is no ledger, or its money does not add up before anything was done.
    """
    if run.options.table:
        msg = f"transaction_repair works on the ledger, not on tables (found {', '.join(run.options.table)}); leave --table out"
        raise UsageError(msg)
    with node(run.config) as connections:
        work = _Repair.begin(run, connections)
        work.check_money("before", work.settled.checked_at if not work.full else 0, work.now)
        if work.full:
            work.check_everything()
        work.repair()
        if run.summary.execute:
            work.check_money("after", work.now, work.time())
            work.settle()
            work.report.notes += run.mend_tables([*map(work.frames.name, Table), run.config.state.table])


@dataclass
class _Repair:
    """One run. *now* is its time, ms by the clock of HBase's servers: the grace, the mark and the checks go by it, and by no driver's clock.

    *settled* is the mark that it found, *horizon* the beginning of the grace (ms).
    """

    run: Run
    node: Node
    frames: dataframes.LedgerFrames
    rows: dataframes.LedgerRows
    report: TableReport
    issuer: str
    now: int
    settled: Settled
    horizon: int
    full: bool
    #: Where reading the index begins.
    start: int
    #: Entries that this run gave back.
    restored: list[Entry] = field(default_factory=list)

    @classmethod
    def begin(cls, run: Run, connections: Node) -> _Repair:
        frames = dataframes.LedgerFrames(run.store)
        name = frames.name(Table.TRANSACTIONS)
        run.summary.execute = run.executes(name)
        now = millis(run.request.now)  # HBase's time
        stored, _ = connections.run(settled.read_settled, "the settled mark")
        found = trusted(stored, now)
        full = bool(run.options.full) or (
            run.request.start is None and now - found.full_at >= _millis(run.config.ledger.full_check_every)
        )
        start = found.mark if run.request.start is None else millis(run.request.start)
        report = TableReport(name, execute=run.summary.execute)
        run.summary.tables = [report]
        issuer = user_id(run.config.ledger.issuer)
        horizon = now - _millis(run.options.grace)
        rows = dataframes.LedgerRows(run.store)
        work = cls(run, connections, frames, rows, report, issuer, now, found, horizon, full, 0 if full else start)
        if found != stored:
            work.distrust(stored)
        return work

    def distrust(self, stored: Settled) -> None:
        """Tell that a mark of a time to come was found, and take it back before anything is done: what goes by it waits then."""
        told = max(stored.mark, stored.at, stored.checked_at, stored.full_at)  # whichever of them it was
        self.report.notes.append(
            f"the settled mark tells of {_when(told)}, and HBase's servers have {_when(self.now)}: a run on a machine whose clock is fast "
            "has moved it; it begins anew, and the full check is due"
        )
        if self.run.summary.execute:
            self._move(lambda mark: trusted(self._back(mark, 0), self.now) if mark == stored else mark)

    def time(self) -> int:
        """The time now, ms by the clock of HBase's servers."""
        with self.run.state() as state:
            return millis(state.server_time())

    # -- repairing

    def repair(self) -> None:
        """Everything in the interval that is older than the grace."""
        end = self.horizon
        if self.run.request.end is not None:
            end = min(end, millis(self.run.request.end))
        start = self.start if self.run.request.start is None else millis(self.run.request.start)
        self.report.intervals = [(start, max(start, end))]
        # By both clocks older than the grace: where a client's is slow, it may be about to claim the number.
        old = self.frames.open_rows(start, end).where(F.col("written") < self.horizon)
        # Those that this run gave back are young by HBase's clock.
        restored = [e for e in self.restored if self._whole or start <= e.timestamp < end]
        self.report.counts.candidates += len(restored)
        entries = chain(self._entries(old), self._ahead(), restored)
        if self.run.summary.execute:
            self._each(entries, lambda entry: steps.repair(entry, self.issuer), self._repaired, "repair of")
        else:
            self._each(entries, _look, self._looked_at, "look at")
        self.run.phase("repair" if self.run.summary.execute else "plan")

    @property
    def _whole(self) -> bool:
        """Whether the run has no interval."""
        return self.run.request.start is None and self.run.request.end is None

    def _ahead(self) -> Iterator[Entry]:
        """Entries that HBase wrote before the grace and whose time is later: of clients whose clocks are fast. Not of a run that has an interval."""
        if not self._whole:
            return
        rows = self.frames.open_rows(self.horizon).where(F.col("written") < self.horizon)
        ahead = F.substring("key", 1, 15).try_cast("bigint") > F.col("written") + SKEW
        found = list(self._entries(rows.where(ahead)))
        if found:
            latest = max(found)
            self.report.notes.append(
                f"{len(found)} entries of the index bear a later time than they were written at, the latest {_when(latest.timestamp)} "
                f"({latest.id}): a client's clock is fast"
            )
        yield from found

    def _entries(self, rows: DataFrame) -> Iterator[Entry]:
        for row in rows.toLocalIterator():
            self.report.counts.candidates += 1
            try:
                yield Entry.parse(row.key)
            except ContradictionError as error:
                self._contradiction(str(error))

    def _repaired(self, outcome: steps.Outcome | None) -> None:
        counts = self.report.counts
        if outcome is None:
            counts.skipped["never claimed"] += 1
        elif outcome.state is State.FINISHED:
            counts.finished += 1
        else:
            counts.dropped += 1

    def _looked_at(self, state: str) -> None:
        self.report.counts.skipped[f"{state}, left by the dry run"] += 1

    # -- money

    def check_money(self, when: str, since: int, until: int) -> None:
        """Every finished transaction has moved its amount, once: then what all users have is what was paid in.

        Those that changed since *since* (ms of the servers' clocks; 0: all), and those whose records did, up to *until*, before anything is
        read. What does not add up in one reading is looked at by itself, since tables are read one after the other while clients go on.

        Raises:
            StoreError: it does not add up.
        """
        since = max(0, since - SKEW)
        moving = dataframes.finished(self.frames.transactions(("sender", "recipient", "amount", "state"), since))
        # Kept, so that the records are read later than every transaction that they are compared with.
        moving = moving.localCheckpoint(eager=True)
        # Kept where the count has computed them: doubtful ones are looked at as they were counted.
        sides = dataframes.settled_sides(moving, self.frames.records(("amount", "state"), since)).localCheckpoint(
            eager=False
        )
        good, paid_in = dataframes.balanced(), dataframes.paid_in(self.issuer)
        counted = sides.agg(F.count("*"), F.sum(F.when(good, paid_in)), F.count(F.when(~good, 1))).first()
        total, paid, doubtful = int(counted[0]), int(counted[1] or 0), int(counted[2])  # type: ignore[index]
        figures = self.run.summary.figures
        names = settled.money_figure(when)
        figures[names[0]] = total
        if not since:
            figures["paid in"] = paid
        wrong = self._second_look(sides.where(~good)) if doubtful else []
        if since:
            wrong += self._later_records(moving, since, until)
        figures[names[1]] = len(wrong)
        self.run.phase(f"money {when}")
        if wrong:
            for text in wrong[:_MOST_NAMED]:
                self._problem(text)
            done = "nothing was repaired" if when == "before" else "the settled mark stays where it is"
            msg = (
                f"the money does not add up {when} the repair: of {total} finished transactions, {doubtful} had not moved "
                f"their amount exactly once at first sight; {len(wrong)} contradictions at second; {done}"
            )
            raise StoreError(msg)

    def _second_look(self, doubtful: DataFrame) -> list[str]:
        """What is wrong with transactions that seem not to have moved their amount exactly once."""
        return self._audit(doubtful.where("foreign = 0").select("key", F.lit(None).alias("user"))) + [
            f"transaction {r.key} has {r.foreign} finished record(s) of users that have no part in it"
            for r in doubtful.where("foreign > 0").limit(_MOST_NAMED).collect()
        ]

    def _later_records(self, moving: DataFrame, since: int, until: int) -> list[str]:
        """What is wrong with records that were written since, of transactions that were finished before.

        Such a record is nobody's to write any more: a third user's would count in his balance.
        """
        written = self.frames.records(("amount", "state"), since, until)
        # Of an amount that alone was changed, the state was written earlier.
        counting = written.where(F.col("state").isNull() | (F.col("state") == RecordState.FINISHED.value))
        known = moving.select(F.col("key").alias("transaction"))
        later = counting.join(known, "transaction", "left_anti")
        return self._audit(later.select(F.col("transaction").alias("key"), "user"), _audit_finished)

    # -- the full check

    def check_everything(self) -> None:
        """Reads the tables whole: rows that contradict each other, and open transactions that the index does not know."""
        transactions = self.frames.transactions().localCheckpoint(eager=True)
        records = self.frames.records()
        known = self.frames.open_rows(0).withColumnRenamed("key", "entry")
        odd = transactions.where(~dataframes.orderly()).select("key", F.lit(None).alias("user"))
        stray = dataframes.strays(transactions, records).select(
            F.col("transaction").alias("key"), F.substring("key", 1, 40).alias("user")
        )
        wrong = self._audit(odd) + self._audit(stray)
        self.run.summary.figures["contradictions"] = len(wrong)
        for text in wrong:
            self._problem(text)
        # However young: an entry is there before its transaction, and the index is read after the transactions.
        lost = transactions.where(~dataframes.is_over()).withColumn("entry", dataframes.entry_key())
        lost = lost.join(known, "entry", "left_anti")
        failed = self.report.counts.failed
        passed = self._passed()
        passed += self._restore_entries(r.key for r in lost.select("key").toLocalIterator())
        if passed and self.run.summary.execute:
            self._move_back(min(passed))
        if self.report.counts.failed != failed:
            msg = f"open transactions could not be looked at, or not be given their index entries: {self.report.problems[-1]}; the settled mark stays"
            raise StoreError(msg)
        self.run.summary.figures["transactions"] = transactions.count()
        self.run.phase("full check")

    def _passed(self) -> list[Entry]:
        """Entries of open transactions that the mark has passed."""
        found: list[Entry] = []

        def entries() -> Iterator[Entry]:
            for row in self.frames.open_rows(0, self.settled.mark).toLocalIterator():
                with suppress(ContradictionError):  # named when it is to be repaired
                    yield Entry.parse(row.key)

        self._each(entries(), _if_open, lambda e: found.append(e) if e else None, "look at", lambda _: None)
        if found:
            oldest = min(found)
            self.report.notes.append(
                f"{len(found)} open transactions lie below the settled mark, the oldest of {_when(oldest.timestamp)} ({oldest.id}): a "
                "client's clock is slow, or it took longer than the grace to claim; who waited for the mark was told too early"
            )
        return found

    def _restore_entries(self, ids: Iterable[str]) -> list[Entry]:
        """Give open transactions that have none their index entries; which."""
        entries: list[Entry] = []
        self._each(ids, _entry_of_open, lambda entry: entries.append(entry) if entry else None, "look at")
        if entries:
            oldest = min(entries)
            self.report.notes.append(
                f"{len(entries)} open transactions had no index entry, the oldest of "
                f"{_when(oldest.timestamp)} ({oldest.id}): a client took longer than the grace to claim, or an entry was lost"
            )
            if self.run.summary.execute:
                self._each(entries, _put_entry, lambda _: None, "index entry of")
        self.restored = entries
        return entries

    def _move_back(self, oldest: Entry) -> None:
        """Move the mark back below the *oldest*, before it is repaired.

        The entries come first, and the mark is written also where it stays: a run that read mark and index before the entries were there
        finds it changed, and so does not move it over them.
        """

        def back(mark: Settled) -> Settled:
            mark = self._back(mark, oldest.timestamp)
            return replace(mark, run=self.run.summary.run, at=self.now)

        self._move(back)

    def settle(self) -> None:
        """Move the mark to the oldest transaction that is still open, at most to the beginning of the grace."""
        now = self.now

        def further(mark: Settled) -> Settled:
            start = min(self.start, mark.mark)
            end = max(self.horizon, mark.mark)
            found = self.node.run(lambda: settled.open_entries(start, end, limit=1), "the index")
            to = settled.next_mark(mark.mark, self.horizon, found[0].timestamp if found else None)
            mark = self._back(mark, to)
            full_at = now if self.full else mark.full_at
            return replace(mark, mark=to, run=self.run.summary.run, at=now, checked_at=now, full_at=full_at)

        self.run.summary.figures["settled before, ms"] = self._move(further).mark
        self.run.phase("record")

    def _back(self, mark: Settled, to: int) -> Settled:
        """The mark moved back, if *to* lies below it; else as it is."""
        if to >= mark.mark:
            return mark
        before = mark.moved_back_from if mark.moved_back_at == self.now else mark.mark  # where it stood before this run
        return replace(mark, mark=to, moved_back_from=before, moved_back_at=self.now)

    def _move(self, change: Callable[[Settled], Settled]) -> Settled:
        """Write the changed mark, again from the beginning if another run has moved it meanwhile."""
        for _ in range(_MOST_TRIES):
            mark, text = self.node.run(settled.read_settled, "the settled mark")
            changed = change(mark)
            if self.node.run(lambda text=text, to=changed: settled.write_settled(text, to), "the settled mark"):  # type: ignore[misc]
                if changed.mark < mark.mark:
                    self.report.notes.append(
                        f"the settled mark is moved back from {_when(mark.mark)} to {_when(changed.mark)}"
                    )
                return changed
        msg = f"the settled mark was moved by other runs {_MOST_TRIES} times while this one tried to; what it repaired stays repaired"
        raise LedgerError(msg)

    # -- many transactions, one by one

    def _audit(self, keys: DataFrame, check: Callable[[str, str | None], Program[object]] | None = None) -> list[str]:
        """What *check* says is wrong with transactions that columns alone do not clear; ``key`` and ``user`` (null: any)."""
        wrong: list[str] = []
        looked_at = 0

        def rows() -> Iterator[Any]:
            nonlocal looked_at
            for row in keys.limit(_MOST_LOOKED_AT).toLocalIterator():
                looked_at += 1
                yield row

        def program(row: Any) -> Program[Any]:
            return (check or _audit)(row.key, row.user)

        before = len(self.report.problems), self.report.counts.failed
        self._each(rows(), program, lambda _: None, "check of", wrong.append)
        if (len(self.report.problems), self.report.counts.failed) != before:
            msg = f"{self.report.counts.failed} transactions could not be checked: {self.report.problems[-1]}"
            raise StoreError(msg)
        if looked_at >= _MOST_LOOKED_AT:
            wrong.append(f"{_MOST_LOOKED_AT} rows or more seem to contradict each other; no more were looked at")
        return wrong

    def _each(
        self,
        items: Iterable[Any],
        program: Callable[[Any], Program[Any]],
        done: Callable[[Any], None],
        what: str,
        contradicts: Callable[[str], None] | None = None,
    ) -> None:
        """Run a program an item, many side by side; *done* gets each result.

        A contradiction is a problem (or goes to *contradicts*); what failed otherwise is counted and named. The others go on.
        """

        def name(item: Any) -> str:
            return f"{what} {getattr(item, 'id', None) or getattr(item, 'key', item)}"

        for _, result in self.node.run_many(items, program, name, self.rows):
            if isinstance(result, ContradictionError):
                (contradicts or self._contradiction)(str(result))
            elif isinstance(result, LowtideError):
                self.report.counts.failed += 1
                self._problem(str(result))
            else:
                done(result)

    def _contradiction(self, text: str) -> None:
        self.report.counts.skipped["contradicts itself, left alone"] += 1
        self._problem(text)

    def _problem(self, text: str) -> None:
        if len(self.report.problems) < _MOST_NAMED and text not in self.report.problems:
            self.report.problems.append(text)


def _look(entry: Entry) -> Program[str]:
    """The state of an entry's transaction."""
    (row,) = yield Read(Table.TRANSACTIONS, (entry.id,))
    if not row:
        return "never claimed"
    transaction = parse_transaction(entry.id, row)
    return "never claimed" if transaction.entry != entry else str(transaction.state or "claimed")


def _audit(id: str, user: str | None) -> Program[object]:
    try:
        parse_transaction_id(id)
    except UsageError as error:
        raise ContradictionError(str(error)) from None
    return (yield from steps.audit(id, user))


def _audit_finished(id: str, user: str | None) -> Program[object]:
    """Of a transaction that is finished; what is not moves no money yet."""
    (row,) = yield Read(Table.TRANSACTIONS, (id,))
    return (yield from _audit(id, user)) if row.get("state") == State.FINISHED else None


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


def _millis(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)


def _when(at: int) -> str:
    try:
        return (EPOCH + timedelta(milliseconds=at)).isoformat(timespec="seconds")
    except OverflowError:  # a client's clock may say anything
        return f"{at} ms"
