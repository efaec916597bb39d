"""What a cleanup has decided, with the words of :mod:`lowtide.cleaning.evidence`: for its list, and the sideline."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.evidence import IN_WORDS, Rule
from lowtide_spark.cleaning import marks, plan
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.run.context import Run
from lowtide_spark.run.listing import list_cells
from lowtide_spark.run.table_work import failures_kept


def with_evidence(cells: DataFrame) -> DataFrame:
    """Cells of a plan with ``evidence``: what their ``proof`` means, in words."""
    words = (F.when(F.col("proof") == proof.value, F.format_string(text, "tc")) for proof, text in IN_WORDS.items())
    return cells.withColumn("evidence", F.coalesce(*words))


def list_planned(run: Run, works: Sequence[CleanupWork], known: DataFrame) -> None:
    """List what the tables' plans would do, of those that the run does not act on: in a dry run, or beyond the budget.

    By the frames from which acting makes its mutations. Of a table beyond its budget the list says what would go if
    the budget were raised, which is what somebody who is asked to raise it wants to know.
    """
    if not run.options.list:
        return
    left = [work for work in works if work.plan is not None and not (work.execute and work.suspects is not None)]
    if not left:
        return
    for work in left:
        with failures_kept(work):
            cells = with_evidence(plan.heals(work).unionByName(plan.deletes(work)))
            list_cells(run, work.table, cells, acts=False)
    table = run.config.omid.commit_table
    put = marks.mark_rows(marks.needed(left, like=known, given_up=True), run.config.omid.commit_family)
    taken = marks.unmark_rows(marks.wrong(left, like=known, given_up=True), run.config.omid.commit_family)
    cells = marks.cells(put, Rule.INVALIDATE).unionByName(marks.cells(taken, Rule.TAKE_BACK))
    list_cells(run, table, cells, acts=False)
