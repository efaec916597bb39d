"""Restore: put back what a cleanup or a history GC removed, from its sideline, and read it back.

A put at the timestamp of a delete marker stays hidden until a major compaction drops the marker. So the families
concerned are flushed and compacted first, then the cells are put, then read back; what does not show is named.

Orphans come back as they were: without shadow cell, invisible to Omid's readers. Those of a transaction that committed
after all (``--as-committed``) come back with shadow cells; first the journal says so, and the mark goes that called it
aborted. Committed history comes back with its shadow cells, and hidden as it was: tombstones are put before what they
hide, the highest family tombstone first. What would be *visible* again, because what replaced it was removed by a later
run, is not put back: that run is to be restored first. Neither is an orphan over which a later run removed a
tombstone: it would be shown as soon as its transaction is said to have committed.

This module is the course of it. Each chapter has one of its own: which transactions committed after all
(``as_committed``), what keeps history GC off (``protection``), what the table holds now (``live``), which cells may
come back (``judgement``), and the steps in which they do (``putting_back``).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lowtide.errors import StoreError, TableError, UsageError
from lowtide.run.summary import TableReport
from lowtide.store.permissions import judged
from lowtide.tables.inventory import OMID_COMPACTOR, Descriptor, has_compactor
from lowtide.values.text import number_and_time
from lowtide_spark.frames import kinds
from lowtide_spark.frames.computed import few, frozen_with
from lowtide_spark.frames.sideline import reserved, sideline
from lowtide_spark.run.context import Run
from lowtide_spark.run.table_work import TableWork, failures_kept
from lowtide_spark.undo import as_committed, judgement, live
from lowtide_spark.undo.protection import Protection, protected
from lowtide_spark.undo.putting_back import IF_ANOTHER, drop_delete_markers, put_back, still_hidden


def restore(run: Run) -> None:
    """The job ``sideline_restore``: ``--restore RUN`` names the run whose sideline is put back."""
    wanted = run.options.restore
    if not wanted:
        msg = "--restore RUN is missing: name the run whose removed cells are to come back"
        raise UsageError(msg)
    with reserved(run, wanted) if run.summary.execute else nullcontext():
        _restore(run, wanted)


def _restore(run: Run, wanted: str) -> None:
    aside = sideline(run, wanted)
    overruled = as_committed.overruled(run.options.as_committed)
    lost = aside.lost
    tables = sorted({*aside.counts, *lost, *aside.elsewhere})
    if overruled and run.summary.execute:  # what is decided counts for all of them: readers would be shown a part
        run.store.check_consent(*(table for table in tables if not run.options.table or table in run.options.table))
    cells = as_committed.decided(run, aside.cells, overruled).persist()
    of_before = aside.at < run.state().numbered_anew()
    for name in sorted(set(run.options.table) - set(tables)):
        run.summary.problems.append(f"run {wanted} put nothing of {name} aside; it has cells of {', '.join(tables)}")
    there = {d.table: d for d in run.store.descriptors()}
    chosen = [table for table in tables if not run.options.table or table in run.options.table]
    run.store.check_readable(judged(run.config, [there[table] for table in chosen if table in there]))
    for table in chosen:
        work = TableWork(TableReport(table, execute=run.summary.execute))
        run.summary.tables.append(work.report)
        with failures_kept(work):
            if lost.get(table):
                work.report.problems.append(
                    f"{len(lost[table])} files of the sideline are missing or cut short, such as {lost[table][0]}; "
                    "what they held is not put back"
                )
            if table in aside.elsewhere:
                work.report.problems.append(
                    f"{aside.elsewhere[table]}. Run the restore there too, or copy the folder here and run it again"
                )
            descriptor = _checked(table, there.get(table))
            if run.summary.execute:
                run.store.check_consent(table)  # before it takes a hold, and compacts
            of_table = cells.where(F.col("table") == table)
            with protected(run, table) if run.summary.execute else nullcontext() as protection:
                if number := aside.counts.get(table):
                    of_table = few(of_table, number)
                    why = still_hidden(descriptor)
                    life = protection.life if protection else run.store.life(table)
                    changed = {"of_before": of_before, "came_back": life.stated > aside.at}
                    _restore_table(run, work.report, of_table, protection, why, **changed)
    _name_nothing(run, wanted)
    as_committed.name_the_rest(run, overruled, chosen, there)
    if run.summary.execute:
        as_committed.name_the_unproved(run, overruled)
    run.phase("restore")


def _name_nothing(run: Run, wanted: str) -> None:
    """A restore that finds everything in its place was asked for by mistake. Some tables in theirs are no problem: it
    goes on where one was cut.
    """
    counts = [t.counts for t in run.summary.tables]
    already = sum(c.skipped["there already"] for c in counts)
    unknown = any(t.problems for t in run.summary.tables)  # of a table that was not looked at
    if already and not unknown and already == sum(c.candidates for c in counts):
        run.summary.problems.append(
            f"all {already} cells of run {wanted} are there already: it was restored before, nothing was changed"
        )


def _checked(table: str, descriptor: Descriptor | None) -> Descriptor:
    """Refuse a table that is gone, and one with Omid's compactor, which would lose rows when a restore compacts."""
    if descriptor is None:
        msg = (
            f"table {table} is not in HBase any more; make it anew, with the families it had, and run the restore again"
        )
        raise TableError(msg)
    if has_compactor(descriptor):
        msg = (
            f"nothing of {table} is put back: a restore has to compact it, and Omid's own compactor is on it, which "
            f"loses rows whose family was deleted and written again. Take the coprocessor {OMID_COMPACTOR} off the "
            "table, then run the restore again"
        )
        raise StoreError(msg)
    return descriptor


def _restore_table(
    run: Run, report: TableReport, cells: DataFrame, protection: Protection | None, why: str, **changed: bool
) -> None:
    """Plan, and with *protection* act: make room, put in steps, read again. *why*: of cells that are not seen then;
    *changed*: what became of oracle and table since they were removed, as of
    :func:`lowtide_spark.undo.judgement.judge`.
    """
    table = report.table
    cells = cells.withColumn("lone", F.col("kind") == kinds.SHADOW).dropDuplicates([*live.KEY])
    # Files say the same however often they are read: the figures are of what is kept.
    figures = F.count("*").alias("cells"), F.count("commit_ts").alias("committed")
    cells, of_families = frozen_with(cells, ("family",), *figures)
    families = sorted(bytes(r.family).decode() for r in of_families)
    committed = any(r.committed for r in of_families)
    there, missing, lacking = live.compare(run, table, families, cells, committed=committed)
    report.counts.candidates = sum(r.cells for r in of_families)
    already = report.counts.candidates - lacking
    mark = _mark(run, table)
    judged, counted = judgement.judge(run, table, missing, there, mark, **changed)
    back = judged.where(F.col("why").isNull())
    planned = report.counts.restored = sum(r.cells for r in counted if r.why is None)
    _report_plan(report, counted, already, mark)
    if protection is None or not planned:
        return
    report.counts.restored = 0  # none is, before it is seen
    drop_delete_markers(run, table, families)
    whole = put_back(run, report, families, back, protection, why)
    run.store.check_life(protection.life, IF_ANOTHER)
    report.counts.restored = planned
    proven = any(r.why is None and (r.committed or r.decided) for r in counted)
    _check_outcome(run, report, families, back, mark, committed=proven, why=why if whole else "")


def _mark(run: Run, table: str) -> int:
    """As of now; of a run that acts, after its claim: what was applied until then counts."""
    return run.state().history(table).applied


def _report_plan(report: TableReport, counted: Sequence[Row], already: int, mark: int) -> None:
    """What comes back, what does not, and what of it will be as it was; *counted* by
    :func:`lowtide_spark.undo.judgement.judge`.
    """
    back = [row for row in counted if row.why is None]
    if already:
        report.counts.skipped["there already"] = already
    for row in counted:
        if row.why is not None:
            report.counts.skipped[row.why] = row.cells
            report.problems.append(f"{row.cells} cells are not put back: {row.why}")
    decided = sum(row.decided for row in back)
    if decided:
        report.notes.append(f"{decided} of the cells come back as committed, to be read at once")
    if mark and any(row.committed for row in back):
        report.notes.append(
            f"read points before the mark {number_and_time(mark)} stay refused to asOf; Omid's own client reads them. "
            "The next run of history_gc removes again what comes back, unless history_max_age is raised before"
        )


def _check_outcome(
    run: Run, report: TableReport, families: Sequence[str], back: DataFrame, mark: int, *, committed: bool, why: str
) -> None:
    """What was put is there, and none of it is seen that was not to be. *committed*: whether any of *back* was, or is
    by now; *why*: of what is not there, where all of it was put.
    """
    there, _, hidden = live.compare(run, report.table, families, back, committed=committed)
    report.counts.restored -= hidden
    if hidden and why:
        report.problems.append(f"{hidden} cells are put but {why}")
    # No orphan is: nobody reads what has no commit timestamp.
    visible = judgement.visible(back, there, mark).count() if committed else 0
    if visible:
        report.problems.append(
            f"{visible} of the cells that came back are visible again: what hid them was removed while the restore was "
            "at work; restore the runs after this one, which removed it; where there is none, run this restore again"
        )
