"""What no rule decides, described for people.

A cell with the statements that mend it, and the list of transactions that wait for ``lowtide resolve``.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lowtide.journal import decision_lines
from lowtide.run.summary import TableReport
from lowtide.values import hbase_shell
from lowtide.values.formats import after, base, commit_key, shadow_qualifier
from lowtide_spark.cleaning import rules
from lowtide_spark.frames import shown
from lowtide_spark.frames.sideline import put_list
from lowtide_spark.run.context import Run

#: What names a cell of a plan.
PLACE = ("row", "family", "qualifier", "timestamp")
#: The most transactions in a list; the next run lists the next.
MOST = 100_000
#: So many rows of the commit table are named.
_NAMED = 20


def describe(run: Run, table: str, cell: Row) -> str:
    """Why nothing is done about *cell* (``why``, :data:`PLACE`); the statements that its remedy names are filled in.

    A key that is None is too long to be shown, and there is no statement: half of a key is another cell's.
    """
    if cell.row is None or cell.qualifier is None:
        own, shadow = (
            hbase_shell.with_long_key(f"delete {what} at {cell.timestamp}", table, cell.timestamp)
            for what in ("the cell", "its shadow cell")
        )
    else:
        row, family, qualifier = bytes(cell.row), bytes(cell.family), bytes(cell.qualifier)
        own, shadow = (
            hbase_shell.delete(table, row, family, name, cell.timestamp)
            for name in (qualifier, shadow_qualifier(qualifier))
        )
    text = fill(run, cell.why, base(cell.timestamp))
    return text.replace(rules.OWN_CELL, own).replace(rules.OWN_SHADOW, shadow)


def fill(run: Run, why: str, start: int) -> str:
    """*why* nothing decides a transaction, with its number and the statement that removes what is said of it."""
    # What Omid writes is at the start; what a replay put back, a little above.
    proofs = hbase_shell.delete_row(run.config.omid.commit_table, commit_key(start), after(start) - 1)
    return why.replace(rules.START, str(start)).replace(rules.PROOFS, proofs)


def odd_entries(table: str, entries: DataFrame) -> list[str]:
    """Of the first rows of the commit table that are of an unknown form a sentence each, with what mends it.

    *entries* are those of :func:`lowtide_spark.frames.omid.entries`.
    """
    odd = entries.where("problem is not null").limit(_NAMED)
    found = odd.select("start_ts", "problem", "newest", shown.in_hex(F.col("row")).alias("row")).collect()
    return [_odd_entry(table, entry) for entry in found]


def _odd_entry(table: str, entry: Row) -> str:
    problem = f"{entry.problem} (row {entry.row}); left alone"
    if entry.start_ts is None:  # no transaction's key
        return problem
    key = commit_key(entry.start_ts)
    mend = hbase_shell.delete_row(table, key, max(entry.newest, after(entry.start_ts) - 1))
    return (
        f"{problem}. Say what became of transaction {base(entry.start_ts)}: lowtide resolve; then in HBase's shell: "
        f"{mend}"
    )


def listed(run: Run, report: TableReport, cells: DataFrame) -> None:
    """Write those transactions to a file that only a person decides, and name it: they need not be met one by one.

    *cells* are those of a plan that are stopped.
    """
    left = cells.where(F.col("why").contains(rules.RESOLVE))
    each = left.groupBy("start_ts").agg(F.count("*").alias("cells"), shown.in_hex(F.min("row")).alias("row"))
    found = [(r.start_ts, r.cells, r.row) for r in each.orderBy("start_ts").limit(MOST).collect()]
    if len(found) > 1:
        text = "\n".join(decision_lines.lines(run.request.run, report.table, run.state().numbered_anew(), found)) + "\n"
        report.problems.append(
            f"{len(found):,} transactions wait for somebody to decide; they are listed in "
            f"{put_list(run, report.table, text)}: write there what became of each, then lowtide resolve --from FILE"
        )
