"""V5: what the runs removed as an abort's is of no transaction that committed, and of none that nothing calls aborted.

A run may be right when it takes a transaction for aborted and wrong an hour later only by an error of its own: the mark
that it puts first keeps the transaction from committing ever after.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.verification.findings import NAMED, Verification, Violation
from lowtide_spark.frames.computed import union
from lowtide_spark.frames.shown import in_hex
from lowtide_spark.run.context import Run
from lowtide_spark.verification.rawcells import visible
from lowtide_spark.verification.sidelines import Aside
from lowtide_spark.verification.tables import Table, raw_cells, whole

_PLACE = ("table", "row", "family", "qualifier", "timestamp")


def removed(run: Run, found: Verification, tables: Sequence[Table], aside: Aside) -> DataFrame | None:
    """What went as an abort's of *tables*, as :meth:`Aside.cells` has it; None: nothing.

    Not what was removed as history afterwards: that had come back, and was committed.
    """
    cells = aside.cells(run)
    if cells is None:
        return None
    names = [table.name for table in tables]
    cells = cells.where(F.col("table").isin(names) & (F.col("start_ts") <= found.low_watermark))
    return cells.where("aborted").join(cells.where("not aborted"), list(_PLACE), "left_anti")


def name(run: Run, found: Verification, aside: Aside, removed: DataFrame, known: DataFrame) -> None:
    """Name those that are not there, of transactions that are proved committed, or that nothing calls aborted.

    Args:
        run: the run.
        found: takes violations.
        aside: where *removed* is from.
        removed: see :func:`removed`.
        known: of transactions ``start_ts, proved`` (commit timestamp, or null), ``mark`` (in the commit table),
            ``marked`` (there, or in the journal), ``removed``.
    """
    # An oracle in low-latency mode may write an entry at any time, unless the mark is in its way.
    called = F.col("mark") if run.config.omid.low_latency else F.col("marked")
    unfounded = F.col("proved").isNotNull() | (~F.coalesce(called, F.lit(False)) & (F.col("start_ts") > found.horizon))
    doubtful = known.where(F.col("removed") & unfounded).select("start_ts", "proved").persist()
    try:
        if doubtful.isEmpty():
            return
        cells = removed.join(F.broadcast(doubtful), "start_ts").persist()
        names = sorted(r.table for r in cells.select("table").distinct().collect())
        there = [
            visible(raw_cells(run, whole(run, table))).withColumn("table", F.lit(table)).select(*_PLACE)
            for table in names
        ]
        # A cell that stays is none that went: it had a shadow cell when it was to go, or was put back.
        gone = cells.join(union(there, like=cells.select(*_PLACE)), list(_PLACE), "left_anti")
        by_transaction = gone.groupBy("start_ts", "table").agg(
            F.count("*").alias("n"),
            F.max("aside").alias("aside"),
            in_hex(F.min("row")).alias("row"),
            F.first("proved").alias("proved"),
        )
        wrong = by_transaction.orderBy("start_ts", "table").limit(NAMED + 1).collect()
        number = by_transaction.count() if len(wrong) > NAMED else len(wrong)
    finally:
        doubtful.unpersist()
    for r in wrong[:NAMED]:
        its_run = aside.run_of(r.aside)
        back = f"lowtide restore {its_run} --table {r.table}"
        if r.proved:
            what = f"which committed at {r.proved}"
            remedy = (
                f"Put them back: {back} --execute; then lowtide run orphan_cleanup --table {r.table} --full --execute "
                "heals them, and takes what else came back"
            )
        else:
            what = "of which neither a mark nor the journal says that it was aborted"
            remedy = (
                f"Find out from the application. If it committed: {back} --as-committed {r.start_ts}=TIMESTAMP "
                f"--execute; if not: lowtide resolve {r.start_ts} --aborted"
            )
        text = f"run {its_run} removed {r.n} cells as an abort's of this transaction, {what}"
        found.violations.append(Violation("V5", r.table, text, remedy, 1, r.row, r.start_ts))
    if number > NAMED:
        more = number - NAMED
        found.violations.append(
            Violation("V5", "", f"of {more:,} more transactions: cells were removed as an abort's", "", more)
        )
