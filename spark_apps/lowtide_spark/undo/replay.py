"""Journal replay: put pruned commit entries back, for tables that come back from an HBase snapshot.

A table as it was then has cells whose commit only an entry proved that has been pruned since. The next cleanup heals
them by the journal; readers that come before it do not see them. With their entries back they do, at once. What was
pruned *since* it was made is enough: whatever was pruned before had its cells healed before, in it too.

Rows of before the oracle was made anew are left out, and counted: their numbers may be those of other transactions by
now.

An entry comes back above the delete marker that pruning left, so not at the timestamp that Omid would give it; Omid's
reader does not use that (``HBaseCommitTable.getCommitTimestamp``), and pruning removes up to whatever is there.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.errors import UsageError
from lowtide.run.summary import TableReport
from lowtide.values.clock import from_millis, millis
from lowtide.values.formats import COMMIT_QUALIFIER, INVALID_QUALIFIER
from lowtide_spark.frames import omid
from lowtide_spark.frames.startset import StartSet
from lowtide_spark.run.context import Run

#: The master's clock dates HBase snapshots, a region server's the journal's rows.
MARGIN = timedelta(days=1)


def replay(run: Run) -> None:
    """The job ``journal_replay``."""
    run.read_low_watermark()  # refuses an oracle that was made anew
    since = _since(run)
    if run.summary.execute:
        run.store.check_consent(run.config.omid.commit_table)
    if not run.has_journal():
        msg = (
            f"there is no journal {run.config.state.journal_table}: nothing was ever pruned, so there is nothing to "
            "put back"
        )
        raise UsageError(msg)
    report = TableReport(run.config.omid.commit_table, execute=run.summary.execute)
    run.summary.tables.append(report)
    report.notes.append(f"what was pruned since {since:%Y-%m-%d %H:%M} UTC")
    run.phase("plan")
    back = _back(run, report, since)
    report.counts.restored = back.count()
    run.phase("find")
    if run.summary.execute and report.counts.restored:
        run.check_low_watermark_again()
        report.counts.restored = 0
        # In this life of the commit table alone: in another, as after an oracle was made anew, the numbers may be new
        # transactions'.
        holding = [run.commit_table_life]
        puts = _puts(back, run.config.omid.commit_family)
        written = run.store.write(puts, run.config.omid.commit_table, holding=holding)
        report.counts.restored = sum(w.done for w in written)
        report.counts.bytes_written = sum(w.bytes for w in written)
        for w in written:
            report.counts.failed += w.failed
            if w.failed:
                report.problems.append(f"{w.failed} entries could not be put: {w.failure}; run again")
            if w.refused:
                report.counts.skipped["marked as aborted meanwhile"] += w.refused
        run.phase("act")
    if report.counts.restored:
        report.notes.append(
            "commit_table_pruning removes them again: keep it paused until orphan_cleanup has read what came back, "
            "which heals it for good"
        )


def _since(run: Run) -> datetime:
    wanted = run.options.since_snapshot
    if (run.request.start is None) == (wanted is None):
        msg = "say since when what was pruned is to come back: give one of --from TIME and --since-snapshot NAME"
        raise UsageError(msg)
    if run.request.start is not None:
        return run.request.start
    for snapshot in run.store.snapshots():
        if snapshot.name == wanted:
            return from_millis(snapshot.created) - MARGIN
    msg = (
        f"there is no HBase snapshot {wanted}; list_snapshots in its shell names those there are. Give --from TIME for "
        "one that is gone"
    )
    raise UsageError(msg)


def _back(run: Run, report: TableReport, since: datetime) -> DataFrame:
    """What comes back: ``start_ts, commit_ts, newest``.

    *newest* is the greatest HBase timestamp of anything in the entry's row, delete markers included; null: none.
    """
    names = run.config.omid
    anew = run.state().numbered_anew()
    young = omid.pruned_rows(run.store.cells(run.config.state.journal_table)).where(F.col("timestamp") >= millis(since))
    if older := young.where(F.col("timestamp") < anew).select("row").distinct().count():
        report.counts.skipped["of before the oracle was made anew"] += older
    rows = omid.journal(young.where(F.col("timestamp") >= anew)).localCheckpoint()
    for row in rows.where("odd").limit(20).collect():
        report.problems.append(f"the journal's row of transaction {row.start_ts} is of an unknown form; left alone")
    commits = rows.where("not odd and commit_ts is not null")
    starts = StartSet(commits)
    report.counts.candidates = starts.size
    if not starts:
        return commits.withColumn("newest", F.lit(None).cast("bigint"))
    ranges = omid.commit_ranges(*starts.span)
    there = starts.restrict(omid.entries(run.store.cells(names.commit_table, ranges), names.commit_family))
    raw = run.store.cells(names.commit_table, ranges, raw=True).where(F.length("row") == 9)
    newest = raw.select(omid.long_of(F.substring("row", 2, 8)).alias("start_ts"), "timestamp")
    found = (
        commits.join(there.select("start_ts", F.col("commit_ts").alias("entry"), "invalid"), "start_ts", "left")
        .join(newest.groupBy("start_ts").agg(F.max("timestamp").alias("newest")), "start_ts", "left")
        .localCheckpoint()
    )
    starts.close()
    marked, present = F.coalesce("invalid", F.lit(False)), F.col("entry").isNotNull()
    for name, which in (("marked as aborted since", marked), ("there already", present & ~marked)):
        if number := found.where(which).count():
            report.counts.skipped[name] += number
    return found.where(~marked & ~present).select("start_ts", "commit_ts", "newest")


def _puts(back: DataFrame, family: str) -> DataFrame:
    start = F.col("start_ts")
    above: Column = F.greatest(start, F.coalesce("newest", start)) + 1
    return back.select(
        F.lit("put_if_absent").alias("op"),
        F.lit("replay").alias("region"),
        omid.commit_key(start).alias("row"),
        F.lit(family.encode()).alias("family"),
        F.lit(COMMIT_QUALIFIER).alias("qualifier"),
        above.alias("timestamp"),
        omid.bytes_of_varint(F.col("commit_ts") - start).alias("value"),
        F.lit(family.encode()).alias("guard_family"),
        F.lit(INVALID_QUALIFIER).alias("guard_qualifier"),
    )
