"""Transactions that were taken for aborted and, as somebody has found out, committed: ``--as-committed START=COMMIT``.

The journal says so first, and the mark goes that called each aborted; then its cells come back with shadow cells.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide.errors import StoreError, UsageError
from lowtide.journal.decisions import Decisions
from lowtide.run.jobs import OF_ABORTS
from lowtide.values.formats import CHECKPOINTS
from lowtide_spark.cleaning.marks import unmark_rows
from lowtide_spark.cleaning.proofs import shadow_cells
from lowtide_spark.frames import missed, sideline
from lowtide_spark.frames.computed import union
from lowtide_spark.frames.inventory import take_inventory, transactional
from lowtide_spark.frames.kinds import CELL_KINDS
from lowtide_spark.frames.local import few_rows, no_rows
from lowtide_spark.frames.omid import base_of
from lowtide_spark.frames.startset import start_set
from lowtide_spark.frames.store import TableRead
from lowtide_spark.run.context import Run
from lowtide_spark.undo import live


def overruled(given: Sequence[str]) -> dict[int, int]:
    """Commit timestamp by start timestamp, of ``START=COMMIT``.

    Raises:
        UsageError: one is no such pair, or a transaction is given two.
    """
    found: dict[int, int] = {}
    for pair in given:
        start, _, commit = pair.partition("=")
        if not (start.isdecimal() and commit.isdecimal()):
            msg = (
                f"--as-committed {pair}: the start and the commit timestamp of a transaction are expected, such as "
                "1795427921123450=1795427921123950"
            )
            raise UsageError(msg)
        if found.setdefault(int(start), int(commit)) != int(commit):
            msg = f"--as-committed {pair}: transaction {start} cannot have committed at {found[int(start)]} too"
            raise UsageError(msg)
    return found


def decided(run: Run, cells: DataFrame, wanted: Mapping[int, int]) -> DataFrame:
    """*cells* of the sideline, those of *wanted* transactions with their commit timestamps, and ``decided``: those are.

    A run that acts makes the decision good for all tables before a cell comes back: the next cleanup goes by the
    journal.

    Raises:
        UsageError, StoreError: one cannot have committed then
            (:meth:`lowtide.journal.decisions.Decisions.check_overruled`), or has no cell here; or not all is seen from
            here that runs removed, and it may have cells among that.
        WatermarkError, StoreError: the oracle was made anew, or the commit table came back, before or meanwhile.
    """
    if not wanted:
        return cells.withColumn("decided", F.lit(False))
    start = base_of(F.col("timestamp"))
    decisions = few_rows(run.store.spark, list(wanted.items()), "start_ts bigint, decided_ts bigint")
    orphans = cells.where(F.col("commit_ts").isNull()).select(start.alias("start_ts"))
    missing = [r.start_ts for r in decisions.join(orphans, "start_ts", "left_anti").collect()]
    if missing:
        msg = (
            f"run {run.options.restore} removed nothing of transaction {missing[0]} that was taken for aborted; its "
            "orphans' timestamps are in its sideline"
        )
        raise UsageError(msg)
    run.read_low_watermark()  # refuses an oracle that was made anew: its numbers may be another transaction's now
    run.has_journal()  # one that is gone, or lost rows, is not made anew
    state = run.state()
    allowed = Decisions(state.connection, run.config, state.numbered_anew())
    for each, commit in wanted.items():
        allowed.check_overruled(each, commit)
    with ExitStack() as held:
        _check_shadow_cells(run, decisions, held)
    _check_sidelines(run, wanted)
    if run.summary.execute:
        run.check_low_watermark_again()  # since then every table was searched, and every sideline
        run.store.check_consent(run.config.omid.commit_table, run.config.state.journal_table)
        _decide(run, wanted, decisions)
    decides = F.col("commit_ts").isNull() & F.col("decided_ts").isNotNull()
    return (
        cells.withColumn("start_ts", start)
        .join(F.broadcast(decisions), "start_ts", "left")
        .withColumn("decided", decides)
        .withColumn("commit_ts", F.coalesce("commit_ts", "decided_ts"))
        .drop("start_ts", "decided_ts")
    )


def _check_shadow_cells(run: Run, decisions: DataFrame, held: ExitStack) -> None:
    """Refuse a commit timestamp that a shadow cell of the same transaction contradicts, in any table."""
    found, blind = shadow_cells(run, take_inventory(run.store), start_set(decisions, held), {})
    if blind:
        msg = (
            "a transactional table is disabled, so it cannot be searched for shadow cells of these transactions; "
            "enable it, and run the restore again"
        )
        raise StoreError(msg)
    others = found.join(decisions, "start_ts").where(
        (F.col("commit_ts") > F.col("timestamp")) & (F.col("commit_ts") != F.col("decided_ts"))
    )
    for other in others.limit(1).collect():
        msg = (
            f"--as-committed {other.start_ts}={other.decided_ts}: a shadow cell says that it committed at "
            f"{other.commit_ts}"
        )
        if other.unconfirmed:
            msg += (
                f"; it lies in table {other.unconfirmed}, which may have come from elsewhere. If so, move it away, or "
                "put it under omid.foreign"
            )
        raise UsageError(msg)


def _check_sidelines(run: Run, wanted: Mapping[int, int]) -> None:
    """Refuse where cells of *wanted* transactions may lie in a sideline that is not here: nobody could name them, and
    readers would see a part of each.
    """
    lost = [
        each
        for of_table in sideline.kept(run).lost.values()
        for each in of_table
        if each.may_hold(OF_ABORTS, min(wanted))
    ]
    if lost:
        fact = (
            f"{missed.summed(lost)}. Whether cells of these transactions were among them is not known, and readers "
            "would see a part of each; nothing was decided or put back"
        )
        raise StoreError(fact, f"{sideline.remedy(run, lost)}, if nothing of these transactions was in it")


def _decide(run: Run, wanted: Mapping[int, int], decisions: DataFrame) -> None:
    """Write the decisions to the journal, for every cleanup to come, and take the marks off that contradict them."""
    state = run.state()
    allowed = Decisions(state.connection, run.config)
    for each, commit in wanted.items():
        allowed.record(each, commit)
    state.create()
    run.has_journal()
    omid = run.config.omid
    unmarked = unmark_rows(decisions, omid.commit_family)
    for w in run.store.write(unmarked, omid.commit_table, holding=[run.commit_table_life]):
        if w.failed:  # a mark beside a shadow cell is named by `lowtide verify`; a cleanup takes it off when it heals
            run.summary.problems.append(f"{w.failed} marks could not be removed: {w.failure}; run the restore again")


def name_the_rest(run: Run, wanted: Mapping[int, int], restored: Collection[str], there: Collection[str]) -> None:
    """Name what was removed of *wanted* transactions, and is not back: until it is, readers see a part of each.

    What the journal says of them is said for every table, so all sidelines that are kept are searched, but for the
    tables that this run has *restored*: their own reports tell. *there*: the tables that HBase has.
    """
    if not wanted:
        return
    cells = _removed_elsewhere(run, sideline.kept(run).cells, wanted, restored).localCheckpoint()
    for table in sorted(r.table for r in cells.select("table").distinct().collect()):
        of_table = cells.where(F.col("table") == table)
        missing = live.absent(run, table, of_table) if table in there else of_table
        found = missing.groupBy("run").agg(
            F.count("*").alias("n"), F.sort_array(F.collect_set("start_ts")).alias("starts")
        )
        for row in found.orderBy("run").collect():
            decisions = " ".join(f"--as-committed {start}={wanted[start]}" for start in row.starts)
            removed = (
                f"run {row.run} removed {row.n} cells of transaction {', '.join(map(str, row.starts))} in {table}, too"
            )
            if table in there:
                command = f"lowtide restore {shlex.quote(row.run)} --table {table} {decisions} --execute"
                run.summary.problems.append(
                    f"{removed}; until they are back readers see the rest without them: {command}"
                )
            else:
                run.summary.notes.append(f"{removed}, which is not in HBase any more")


def name_the_unproved(run: Run, wanted: Mapping[int, int]) -> None:
    """Name what stands in tables of *wanted* transactions without its shadow cell, where a cleanup heals it by the
    journal: no cleanup had come to it, or its key range was stopped. Not of tables that nobody has confirmed, nor of
    families without Omid's mark, which none works on.
    """
    if not wanted:
        return
    decisions = few_rows(run.store.spark, [(start,) for start in wanted], "start_ts bigint")
    entries = [entry for entry in transactional(take_inventory(run.store)) if entry.enabled and not entry.unconfirmed]
    regions = run.store.regions_of([entry.table for entry in entries])
    with ExitStack() as held:
        starts = start_set(decisions, held)
        reads = [
            TableRead(
                entry.table,
                sorted(entry.families),
                [WorkRange(region.name, region.keys, *starts.span) for region in regions(entry.table)],
            )
            for entry in entries
        ]
        unproved = F.col("commit_ts").isNull() & F.col("kind").isin(*CELL_KINDS)
        cells = [
            starts.restrict(read.where(unproved)).select("table", "start_ts") for read in run.store.versions_of(reads)
        ]
        found = union(cells, like=no_rows(run.store.spark, "table string, start_ts bigint")).groupBy("table")
        counted = found.agg(F.count("*").alias("n"), F.sort_array(F.collect_set("start_ts")).alias("starts"))
        run.summary.problems += [
            f"{row.n} cells of transaction {', '.join(map(str, row.starts))} stand in {row.table} without their shadow "
            "cells; until a cleanup has healed them readers see the rest without them: lowtide run orphan_cleanup "
            f"--table {row.table} --full --execute"
            for row in counted.orderBy("table").collect()
        ]


def _removed_elsewhere(run: Run, aside: DataFrame, wanted: Mapping[int, int], restored: Collection[str]) -> DataFrame:
    """Cells that were removed of *wanted* transactions, each once, with the last ``run`` that did.

    Those are left out that this run restores.
    """
    decisions = few_rows(run.store.spark, list(wanted.items()), "start_ts bigint, commit_ts bigint")
    orphans = aside.where(
        F.col("commit_ts").isNull() & F.col("timestamp").between(min(wanted), max(wanted) + CHECKPOINTS)
    ).drop("commit_ts")
    mine = (F.col("run") == run.options.restore) & F.col("table").isin(list(restored))
    removed = orphans.withColumn("start_ts", base_of(F.col("timestamp"))).join(F.broadcast(decisions), "start_ts")
    # A cell that was removed, put back and removed again lies in several.
    by_cell = removed.groupBy("table", *live.PLACE, "start_ts", "commit_ts")
    return by_cell.agg(F.max("run").alias("run"), F.max(mine).alias("mine")).where("not mine")
