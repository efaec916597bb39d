"""Restore: put back what an orphan cleanup removed, from its sideline, and read it back.

A put at the timestamp of a delete marker stays hidden until a major compaction drops the marker. So the families
concerned are flushed and compacted first, then the cells are put, then read back; what does not show is named.
The cells come back as they were: orphans without shadow cell, invisible to Omid's readers.
"""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.errors import StoreError, UsageError
from lowtide.planning import WorkRange
from lowtide.summary import TableReport
from lowtide_spark.job import Run
from lowtide_spark.rules import CELL_KINDS
from lowtide_spark.sideline import sidelined
from lowtide_spark.startset import StartSet

COMPACTION_TIMEOUT_SECONDS = 3600


def restore(run: Run) -> None:
    """The job ``sideline_restore``: ``--restore RUN`` names the run whose sideline is put back."""
    wanted = run.options.restore
    if not wanted:
        msg = "--restore RUN is missing: name the run whose removed cells are to come back"
        raise UsageError(msg)
    try:
        cells = sidelined(run, wanted).persist()
    except AnalysisException as error:
        msg = f"run {wanted} has no sideline under {run.config.state.sideline}: it removed nothing, or it was cleared after sideline_keep"
        raise StoreError(msg) from error
    for row in cells.select("table").distinct().orderBy("table").collect():
        if not run.options.table or row.table in run.options.table:
            _restore_table(run, row.table, cells.where(F.col("table") == row.table))
    run.phase("restore")


def _restore_table(run: Run, table: str, cells: DataFrame) -> None:
    report = TableReport(table)
    run.summary.tables.append(report)
    cells = cells.dropDuplicates(["row", "family", "qualifier", "timestamp"])
    missing = _missing(run, table, cells).persist()
    counts = report.counts
    counts.candidates = cells.count()
    counts.restored = missing.count()
    if counts.candidates > counts.restored:
        counts.skipped["there already"] = counts.candidates - counts.restored
    if not run.summary.execute or not counts.restored:
        return
    for family in sorted(bytes(r.family).decode() for r in missing.select("family").distinct().collect()):
        run.store.major_compact(table, family, COMPACTION_TIMEOUT_SECONDS)
    written = run.store.write(
        missing.select(F.lit("put").alias("op"), "region", "row", "family", "qualifier", "timestamp", "value"), table
    )
    for w in written:
        counts.bytes_written += w.bytes
        counts.failed += w.failed
        if w.failed:
            report.problems.append(f"{w.failed} cells could not be put: {w.failure}")
    hidden = _missing(run, table, missing).count()
    counts.restored = sum(w.done for w in written) - hidden
    if hidden:
        report.problems.append(
            f"{hidden} cells are put but still hidden behind delete markers that the compaction kept "
            "(it may have been put off, or the markers are younger than hbase.hstore.time.to.purge.deletes); "
            f"major-compact {table} and run the restore again"
        )


def _missing(run: Run, table: str, cells: DataFrame) -> DataFrame:
    """Those of *cells* that are not in the live table."""
    starts = StartSet(cells.withColumn("start_ts", F.col("timestamp") - F.col("timestamp") % 50))
    whole = [WorkRange(r.name, r.keys, *starts.span) for r in run.store.regions(table)]
    families = [bytes(r.family).decode() for r in cells.select("family").distinct().collect()]
    keys = ["row", "family", "qualifier", "timestamp"]
    data = run.store.versions(table, whole, families).where(F.col("kind").isin(*CELL_KINDS))
    there = starts.restrict(data).select(*keys)
    found = cells.join(there, keys, "left_anti").localCheckpoint()
    starts.close()
    return found
