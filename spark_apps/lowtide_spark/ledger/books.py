"""The ledger in the hands of one repair: its tables, and programs for single transactions, many side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from lowtide.errors import LowtideError, StoreError, UsageError
from lowtide.ledger import settled, steps
from lowtide.ledger.model import ContradictionError, Table, parse_transaction_id, record_row, user_id
from lowtide.ledger.settled import Settled
from lowtide.ledger.steps import Program
from lowtide.ledger.store import Node
from lowtide.run.summary import TableReport
from lowtide.values.clock import millis
from lowtide_spark.ledger import dataframes
from lowtide_spark.run.context import Run

#: Problems named one by one; more are counted.
MOST_NAMED = 50
#: Contradictions that are kept, after which no more are looked for: a driver holds so many, and nobody reads them all.
_MOST_WRONG = 100_000


@dataclass(frozen=True)
class Books:
    """What the parts of a repair have in common.

    *now* is the run's time, ms by the clock of HBase's servers: the grace, the mark and the checks go by it, and by no
    driver's clock. *stored* is the settled mark as it was found.
    """

    run: Run
    node: Node
    frames: dataframes.LedgerFrames
    rows: dataframes.LedgerRows
    report: TableReport
    issuer: str
    now: int
    stored: Settled

    @classmethod
    def open(cls, run: Run, connections: Node) -> Books:
        """The books of a run, which has its report from then on.

        Raises:
            StoreError: there is no ledger, or this user may not read all of it.
        """
        frames = dataframes.LedgerFrames(run.store)
        frames.check_readable()
        name = frames.name(Table.TRANSACTIONS)
        run.summary.execute = run.executes(name) and run.permitted(*map(frames.name, Table))
        now = millis(run.request.now)  # HBase's time
        stored, _ = connections.run(settled.read_settled, "the settled mark")
        report = TableReport(name, execute=run.summary.execute)
        run.summary.tables = [report]
        issuer = user_id(run.config.ledger.issuer)
        return cls(run, connections, frames, dataframes.LedgerRows(run.store), report, issuer, now, stored)

    def time(self) -> int:
        """The time now, ms by the clock of HBase's servers."""
        return millis(self.run.state().server_time())

    def each(
        self,
        items: Iterable[Any],
        program: Callable[[Any], Program[Any]],
        done: Callable[[Any], None],
        what: str,
        contradicts: Callable[[str], None] | None = None,
    ) -> None:
        """Run a program an item, many side by side; *done* gets each result.

        A contradiction is a problem (or goes to *contradicts*); what failed otherwise is counted and named. The others
        go on.
        """

        def name(item: Any) -> str:
            return f"{what} {getattr(item, 'id', None) or getattr(item, 'key', item)}"

        for _, result in self.node.run_many(items, program, name, self.rows):
            if isinstance(result, ContradictionError):
                (contradicts or self.contradiction)(str(result))
            elif isinstance(result, LowtideError):
                self.report.counts.failed += 1
                self.problem(str(result))
            else:
                done(result)

    def audit(self, keys: DataFrame, check: Callable[[str, Any], Program[object]] | None = None) -> list[str]:
        """What *check* says is wrong with transactions that columns alone do not clear: all of them, however many.
        After a repair of many they are as many, and nothing is wrong with any.

        Args:
            keys: ``key`` and ``user`` (null: any) of each.
            check: None: :func:`audited`.

        Raises:
            StoreError: some of them could not be checked.
        """
        wrong: list[str] = []

        def rows() -> Iterator[Any]:
            for row in keys.toLocalIterator():
                if len(wrong) >= _MOST_WRONG:
                    wrong.append("and there may be more: no more were looked for")
                    return
                yield row

        def program(row: Any) -> Program[Any]:
            return (check or audited)(row.key, row.user)

        before = len(self.report.problems), self.report.counts.failed
        self.each(rows(), program, lambda _: None, "check of", wrong.append)
        if (len(self.report.problems), self.report.counts.failed) != before:
            msg = f"{self.report.counts.failed} transactions could not be checked: {self.report.problems[-1]}"
            raise StoreError(msg)
        return wrong

    def contradiction(self, text: str) -> None:
        """Count and name what contradicts itself; it is left alone."""
        self.report.counts.skipped["contradicts itself, left alone"] += 1
        self.problem(text)

    def problem(self, text: str) -> None:
        """Name a problem, once, and no more of them than a person reads."""
        if len(self.report.problems) < MOST_NAMED and text not in self.report.problems:
            self.report.problems.append(text)


def audited(id: str, user: str | None) -> Program[object]:
    """The audit of a transaction, also of one whose id is malformed: that is a contradiction, too."""
    try:
        parse_transaction_id(id)
    except UsageError as error:
        where = f"row {id} of {Table.TRANSACTIONS}" if user is None else f"record {record_row(user, id)}"
        raise ContradictionError(f"{where}: {error}") from None
    return (yield from steps.audit(id, user))
