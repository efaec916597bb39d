"""Restore: put back what a cleanup or a history GC removed, from its sideline, and read it back.

A put at the timestamp of a delete marker stays hidden until a major compaction drops the marker. So the families
concerned are flushed and compacted first, then the cells are put, then read back; what does not show is named.

Orphans come back as they were: without shadow cell, invisible to Omid's readers. Those of a transaction that committed after all (``--as-committed``)
come back with shadow cells; first the journal says so, and the mark goes that called it aborted. Committed history comes back with its shadow cells, and
hidden as it was: tombstones are put before what they hide, the highest family tombstone first. What would be *visible* again, because
what replaced it was removed by a later run, is not put back: that run is to be restored first. Neither is an orphan over which a later run removed a
tombstone: it would be shown as soon as its transaction is said to have committed.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide.errors import StoreError, TableError, UsageError
from lowtide.history.compaction import last_compactions, still_there, to_record
from lowtide.history.mark import OF_RESTORE, Hold
from lowtide.journal.decisions import Decisions
from lowtide.run.summary import TableReport, myself
from lowtide.store.gateway import connect
from lowtide.store.history import REMOVES_FOR
from lowtide.store.records import History, Intent
from lowtide.store.state import StateStore
from lowtide.tables.inventory import OMID_COMPACTOR, Descriptor, has_compactor
from lowtide.values.clock import EPOCH
from lowtide.values.formats import CHECKPOINTS
from lowtide.values.text import number_and_time
from lowtide_spark.cleaning.marks import unmark_rows
from lowtide_spark.cleaning.proofs import shadow_cells
from lowtide_spark.cleaning.rules import CELL_KINDS
from lowtide_spark.frames.inventory import take_inventory
from lowtide_spark.frames.omid import bytes_of, shadow_of
from lowtide_spark.frames.sideline import kept as kept_sidelines
from lowtide_spark.frames.sideline import sideline
from lowtide_spark.frames.startset import StartSet
from lowtide_spark.frames.store import Life, Written
from lowtide_spark.history.compaction import COMPACTION_TIMEOUT_SECONDS
from lowtide_spark.run.context import Run
from lowtide_spark.run.passage import failures_kept

#: A restore that is killed keeps history GC off its table for so long; one that goes on renews its hold with each step.
HELD_FOR = timedelta(days=1)

KEY = ("row", "family", "qualifier", "timestamp", "lone")
_SHOWN = "they would be visible again; restore the runs after this one first"


def restore(run: Run) -> None:
    """The job ``sideline_restore``: ``--restore RUN`` names the run whose sideline is put back."""
    wanted = run.options.restore
    if not wanted:
        msg = "--restore RUN is missing: name the run whose removed cells are to come back"
        raise UsageError(msg)
    aside = sideline(run, wanted)
    cells, lost = _decided(run, aside.cells).persist(), aside.lost
    tables = sorted({row.table for row in cells.select("table").distinct().collect()} | set(lost))
    for name in sorted(set(run.options.table) - set(tables)):
        run.summary.problems.append(f"run {wanted} put nothing of {name} aside; it has cells of {', '.join(tables)}")
    there = {d.table: d for d in run.store.descriptors()}
    for table in tables:
        if not run.options.table or table in run.options.table:
            work = Work(TableReport(table, execute=run.summary.execute))
            run.summary.tables.append(work.report)
            with failures_kept(work):
                if lost.get(table):
                    work.report.problems.append(
                        f"{len(lost[table])} files of the sideline are missing or cut short, such as {lost[table][0]}; what they held is not put back"
                    )
                _check_table(table, there.get(table))
                of_table = cells.where(F.col("table") == table)
                with _undisturbed(run, table) if run.summary.execute else nullcontext() as kept:
                    if not of_table.isEmpty():
                        _restore_table(run, work.report, of_table, kept)
    _name_the_rest(run, [t for t in tables if not run.options.table or t in run.options.table], there)
    run.phase("restore")


def overruled(given: Sequence[str]) -> dict[int, int]:
    """Commit timestamp by start timestamp, of ``START=COMMIT``.

    Raises:
        UsageError: one is no such pair, or a transaction is given two.
    """
    found: dict[int, int] = {}
    for pair in given:
        start, _, commit = pair.partition("=")
        if not (start.isdecimal() and commit.isdecimal()):
            msg = f"--as-committed {pair}: the start and the commit timestamp of a transaction are expected, such as 1795427921123450=1795427921123950"
            raise UsageError(msg)
        if found.setdefault(int(start), int(commit)) != int(commit):
            msg = f"--as-committed {pair}: transaction {start} cannot have committed at {found[int(start)]} too"
            raise UsageError(msg)
    return found


def _decided(run: Run, cells: DataFrame) -> DataFrame:
    """*cells* of the sideline, those of transactions that committed after all with their commit timestamps, and ``decided``: whether they are these.

    A run that acts makes the decision good for all tables before a cell comes back: the next cleanup goes by the journal.

    Raises:
        UsageError, StoreError: one cannot have committed then (:meth:`lowtide.journal.decisions.Decisions.check_overruled`), or has no cell here.
    """
    wanted = overruled(run.options.as_committed)
    start = F.col("timestamp") - F.col("timestamp") % CHECKPOINTS
    if not wanted:
        return cells.withColumn("decided", F.lit(False))
    spark = run.store.spark
    said = spark.createDataFrame(list(wanted.items()), "start_ts bigint, decided_ts bigint")
    orphans = cells.where(F.col("commit_ts").isNull()).select(start.alias("start_ts"))
    missing = [r.start_ts for r in said.join(orphans, "start_ts", "left_anti").collect()]
    if missing:
        msg = f"run {run.options.restore} removed nothing of transaction {missing[0]} that was taken for aborted; its orphans' timestamps are in its sideline"
        raise UsageError(msg)
    run.has_journal()  # one that is gone, or lost rows, is not made anew
    with connect(run.config.hbase.thrift) as connection, run.state() as state:
        decisions = Decisions(connection, run.config, state.numbered_anew())
        for each, commit in wanted.items():
            decisions.check_overruled(each, commit)
    _check_shadow_cells(run, said)
    if run.summary.execute:
        with connect(run.config.hbase.thrift) as connection, run.state() as state:
            decisions = Decisions(connection, run.config)
            for each, commit in wanted.items():
                decisions.record(each, commit)
            state.create()
        run.has_journal()
        omid = run.config.omid
        for w in run.store.write(unmark_rows(said, omid.commit_family), omid.commit_table):
            if (
                w.failed
            ):  # a mark beside a shadow cell is named by `lowtide verify`; a cleanup takes it off when it heals
                run.summary.problems.append(
                    f"{w.failed} marks could not be removed: {w.failure}; run the restore again"
                )
    decides = F.col("commit_ts").isNull() & F.col("decided_ts").isNotNull()
    return (
        cells.withColumn("start_ts", start)
        .join(F.broadcast(said), "start_ts", "left")
        .withColumn("decided", decides)
        .withColumn("commit_ts", F.coalesce("commit_ts", "decided_ts"))
        .drop("start_ts", "decided_ts")
    )


def _check_shadow_cells(run: Run, said: DataFrame) -> None:
    """Refuse a commit timestamp that a shadow cell of the same transaction contradicts, in any table."""
    starts = StartSet(said)
    found, blind = shadow_cells(run, take_inventory(run.store), starts, {})
    if blind:
        msg = "a transactional table is disabled, so it cannot be searched for shadow cells of these transactions; enable it, and run the restore again"
        raise StoreError(msg)
    others = found.join(said, "start_ts").where(
        (F.col("commit_ts") > F.col("timestamp")) & (F.col("commit_ts") != F.col("decided_ts"))
    )
    for other in others.limit(1).collect():
        msg = f"--as-committed {other.start_ts}={other.decided_ts}: a shadow cell says that it committed at {other.commit_ts}"
        if other.unconfirmed:
            msg += f"; it lies in table {other.unconfirmed}, which may have come from elsewhere. If so, move it away, or put it under omid.foreign"
        raise UsageError(msg)
    starts.close()


def _name_the_rest(run: Run, restored: Collection[str], there: Collection[str]) -> None:
    """Name what was removed of the transactions that committed after all, and is not back: until it is, readers see a part of each.

    What the journal says of them is said for every table, so all sidelines that are kept are looked into, but for the tables that this run has *restored*:
    their own reports tell. *there*: the tables that HBase has.
    """
    wanted = overruled(run.options.as_committed)
    if not wanted:
        return
    said = run.store.spark.createDataFrame(list(wanted.items()), "start_ts bigint, commit_ts bigint")
    aside = kept_sidelines(run)
    orphans = aside.cells.where(
        F.col("commit_ts").isNull() & F.col("timestamp").between(min(wanted), max(wanted) + CHECKPOINTS)
    ).drop("commit_ts")
    start = F.col("timestamp") - F.col("timestamp") % CHECKPOINTS
    mine = (F.col("run") == run.options.restore) & F.col("table").isin(list(restored))
    removed = orphans.withColumn("start_ts", start).join(F.broadcast(said), "start_ts")
    # A cell that was removed, put back and removed again lies in several.
    by_cell = removed.groupBy("table", *KEY[:-1], "start_ts", "commit_ts")
    cells = by_cell.agg(F.max("run").alias("run"), F.max(mine).alias("mine")).where("not mine").localCheckpoint()
    for table in sorted(r.table for r in cells.select("table").distinct().collect()):
        of_table = cells.where(F.col("table") == table)
        missing = _absent(run, table, of_table) if table in there else of_table
        found = missing.groupBy("run").agg(
            F.count("*").alias("n"), F.sort_array(F.collect_set("start_ts")).alias("starts")
        )
        for row in found.orderBy("run").collect():
            decisions = " ".join(f"--as-committed {start}={wanted[start]}" for start in row.starts)
            told = (
                f"run {row.run} removed {row.n} cells of transaction {', '.join(map(str, row.starts))} in {table}, too"
            )
            if table in there:
                command = f"lowtide restore {shlex.quote(row.run)} --table {table} {decisions} --execute"
                run.summary.problems.append(f"{told}; until they are back readers see the rest without them: {command}")
            else:
                run.summary.notes.append(f"{told}, which is not in HBase any more")
    others = {name for names in aside.lost.values() for name in names} - {run.options.restore}
    for name in sorted(others):
        run.summary.notes.append(
            f"files of the sideline of run {name} are missing or cut short; whether they held cells of these transactions is not known"
        )


def _absent(run: Run, table: str, cells: DataFrame) -> DataFrame:
    """Those of *cells*, which are committed, that *table* does not show as such. Reads no more than the time span of their transactions."""
    starts = StartSet(cells.select((F.col("timestamp") - F.col("timestamp") % CHECKPOINTS).alias("start_ts")))
    families = sorted(bytes(r.family).decode() for r in cells.select("family").distinct().collect())
    ranges = [WorkRange(r.name, r.keys, *starts.span) for r in run.store.regions(table)]
    live = starts.restrict(run.store.versions(table, ranges, families))
    found = _missing(cells.withColumn("lone", F.lit(False)), live)
    starts.close()
    return found


@dataclass
class Work:
    """One table of the restore."""

    report: TableReport

    def give_up(self, reason: str) -> None:
        """Tell why nothing (more) is done."""
        self.report.problems.append(reason)


def _check_table(table: str, descriptor: Descriptor | None) -> None:
    """Refuse a table that is gone, and one with Omid's compactor, which would lose rows in the compaction that a restore needs."""
    if descriptor is None:
        msg = (
            f"table {table} is not in HBase any more; make it anew, with the families it had, and run the restore again"
        )
        raise TableError(msg)
    if has_compactor(descriptor):
        msg = (
            f"nothing of {table} is put back: a restore has to compact it, and Omid's own compactor is on it, which loses rows whose family was "
            f"deleted and written again. Take the coprocessor {OMID_COMPACTOR} off the table, then run the restore again"
        )
        raise StoreError(msg)


@dataclass
class Kept:
    """What keeps history GC off a table: the claim of its mark, and a hold on all its history; and the table as it was then."""

    claim: Intent
    hold: Hold
    life: Life

    def renew(self, state: StateStore) -> None:
        """Before each step: both are there, and the hold lasts on from now.

        Raises:
            FencedError: another run has the mark.
            StoreError: the hold is gone.
        """
        state.check_claim(self.claim)
        longer = replace(self.hold, expires=state.server_time() + HELD_FOR)
        if not state.change_hold(self.hold, longer):
            msg = f"the hold {self.hold.id} on {self.hold.table} is gone: this restore took longer than {HELD_FOR} over a step; run it again"
            raise StoreError(msg)
        self.hold = longer


@contextmanager
def _undisturbed(run: Run, table: str) -> Iterator[Kept]:
    """Keep history GC off *table* while cells come back.

    A run that read the table between the return of a tombstone and that of what it hides would remove the tombstone alone, and readers
    would be shown for good what was deleted. All history is held, and a claim takes the mark from every run that does not remove yet.
    Beside one that does, what hides a cell may go while the cell comes back: the restore is refused. The claim ends every other restore of
    the table, so what these held is let go of.
    """
    now = run.request.now
    reason = f"restore of run {run.options.restore}"
    held = Hold(f"{OF_RESTORE}{run.request.run}", table, 0, myself(), reason, now, now + HELD_FOR)
    with run.state() as state:
        state.create()
        state.add_hold(held)
    kept = None
    try:
        with run.state() as state:
            seen = state.history(table)
            _check_removal(table, seen, now)
            life = run.store.life(table)  # before anything of it is read
            kept = Kept(state.intend(table, seen.applied, run.request.run, seen), held, life)
            for left in state.holds(table):  # of restores that were killed: without the claim they put nothing back
                if left.of_restore and left.id != held.id:
                    state.drop_hold(left)
        yield kept
    finally:
        with run.state() as state:
            state.drop_hold(kept.hold if kept else held)


def _check_removal(table: str, seen: History, now: datetime) -> None:
    for run, at in seen.intent.get("removing", {}).items():
        since = EPOCH + timedelta(milliseconds=at)
        if now < since + REMOVES_FOR:
            msg = (
                f"run {run} removes history of {table} since {since:%Y-%m-%d %H:%M} UTC; nothing is put back beside it. Wait until it has ended; if it was "
                f"killed, let the next run finish its work, and restore after {since + REMOVES_FOR:%Y-%m-%d %H:%M} UTC: until then a write of it may be under way"
            )
            raise StoreError(msg)


def _restore_table(run: Run, report: TableReport, cells: DataFrame, kept: Kept | None) -> None:
    table = report.table
    cells = cells.withColumn("lone", F.col("kind") == "shadow").dropDuplicates([*KEY])
    families = sorted(bytes(r.family).decode() for r in cells.select("family").distinct().collect())
    live = _live(run, table, families, cells)
    missing = _missing(cells, live)
    counts = report.counts
    counts.candidates = cells.count()
    there = counts.candidates - missing.count()
    mark = _mark(run, table)
    judged = _judged(missing, live, mark, *_bared(run, table, missing)).localCheckpoint()
    back = judged.where(F.col("why").isNull())
    counts.restored = back.count()
    if there:
        counts.skipped["there already"] = there
    for row in judged.where(F.col("why").isNotNull()).groupBy("why").count().collect():
        counts.skipped[row.why] = row["count"]
        report.problems.append(f"{row['count']} cells are not put back: {row.why}")
    if there == counts.candidates:
        report.problems.append(f"all {there} cells are there already: the run was restored before, nothing was changed")
    decided = back.where("decided").count()
    if decided:
        report.notes.append(f"{decided} of the cells come back as committed, to be read at once")
    if mark and not back.where(F.col("commit_ts").isNotNull() & ~F.col("decided")).isEmpty():
        report.notes.append(
            f"snapshots before the mark {number_and_time(mark)} stay refused to asOf; Omid's own client reads them. The next run of history_gc removes again "
            "what comes back, unless history_max_age is raised before"
        )
    if kept is None or not counts.restored:
        return
    with run.state() as state:
        known = still_there(state.uncompacted(table), last_compactions(run.store.regions(table)))
    for family in families:
        run.store.major_compact(table, family, COMPACTION_TIMEOUT_SECONDS)
    others = {(region, family): size for (region, family), size in known.items() if family not in families}
    with run.state() as state:
        state.put_uncompacted(table, to_record(others, last_compactions(run.store.regions(table))))
    whole = _put_back(run, report, families, back, kept)
    run.store.check_life(kept.life, _IF_ANOTHER)
    now = _live(run, table, families, back)
    hidden = _missing(back, now).count()
    counts.restored -= hidden
    if hidden and whole:
        report.problems.append(f"{hidden} cells are put but {_HIDDEN}; major-compact {table} and run the restore again")
    visible = _visible(back, now, mark).count()
    if visible:
        report.problems.append(
            f"{visible} of the cells that came back are visible again: what hid them was removed while the restore was at work; restore the runs "
            "after this one, which removed it; where there is none, run this restore again"
        )


_IF_ANOTHER = "What came back from an HBase snapshot of before that run needs nothing of it; a table that was only disabled and enabled: run the restore again"
_HIDDEN = (
    "still hidden behind delete markers that the compaction kept (it may have been put off, or the markers are younger than "
    "hbase.hstore.time.to.purge.deletes)"
)


def _put_back(run: Run, report: TableReport, families: list[str], back: DataFrame, kept: Kept) -> bool:
    """Put the cells back, step by step; whether all steps were taken.

    What is hidden is put only when all that hides it was acknowledged and is *seen* there: one tombstone that failed, or lies behind a
    delete marker itself, and readers would be shown what was deleted.
    """
    *hiding, hidden = _steps()
    for step in hiding:
        _put(run, report, back.where(step), kept)
        if report.counts.failed:
            report.problems.append("what the tombstones that failed would hide is not put back; run the restore again")
            return False
    first = _hiding(back)
    if not first.isEmpty():
        unseen = _missing(first, _live(run, report.table, families, first)).count()
        if unseen:
            report.problems.append(
                f"{unseen} tombstones are put but {_HIDDEN}, so what they hide is not put back; "
                f"major-compact {report.table} and run the restore again"
            )
            return False
    refused = _put(run, report, back.where(hidden), kept)
    if refused:
        report.problems.append(
            f"{refused} cells are not put back: what hides them from readers went while the restore was at work; run the restore again"
        )
    return not refused


def _hiding(cells: DataFrame) -> DataFrame:
    """Those of *cells* that hide others: committed tombstones."""
    return cells.where(F.col("commit_ts").isNotNull() & F.col("kind").isin("tombstone", "family_tombstone"))


def _put(run: Run, report: TableReport, cells: DataFrame, kept: Kept) -> int:
    """Put these; how many were refused, because what hides them is not there."""
    refused = 0
    if not cells.isEmpty():
        run.store.check_life(kept.life, _IF_ANOTHER)
        with run.state() as state:
            kept.renew(state)
            holding = [state.mark_claim(kept.claim), kept.life]
        written = run.store.write(_puts(cells), report.table, holding=holding)
        _book(report, written)
        refused = sum(w.refused for w in written)
    return refused


def _steps() -> tuple[Column, ...]:
    """In this order cells are put back, each step acknowledged before the next: what hides before what is hidden."""
    kind, highest = F.col("kind"), F.col("highest")
    return (
        highest,
        (kind == "family_tombstone") & ~highest,
        kind == "tombstone",
        ~kind.isin("tombstone", "family_tombstone"),
    )


def _book(report: TableReport, written: list[Written]) -> None:
    for w in written:
        report.counts.bytes_written += w.bytes
        report.counts.failed += w.failed
        if w.failed:
            report.problems.append(f"{w.failed} cells could not be put: {w.failure}")


def _mark(run: Run, table: str) -> int:
    with run.state() as state:
        return state.history(table).applied


def _live(run: Run, table: str, families: list[str], cells: DataFrame) -> DataFrame:
    """What the table holds now in the rows and families of *cells*."""
    regions = [WorkRange(r.name, r.keys, 0, 2**63 - 1) for r in run.store.regions(table)]
    kinds = F.col("kind").isin(*CELL_KINDS, "shadow")
    data = run.store.versions(table, regions, families).where(kinds)
    committed = cells.where(F.col("commit_ts").isNotNull())
    starts = StartSet(cells.withColumn("start_ts", F.col("timestamp") - F.col("timestamp") % 50))
    if committed.isEmpty():  # orphans hide nothing and are hidden by nothing: their own versions are all that matters
        found = starts.restrict(data)
    else:
        found = data.join(committed.select("row", "family").distinct(), ["row", "family"], "left_semi").unionByName(
            starts.restrict(data)
        )
    wanted = found.select("row", "family", "qualifier", "timestamp", "commit_ts", "kind")
    frozen = wanted.dropDuplicates(["row", "family", "qualifier", "timestamp"]).localCheckpoint()
    starts.close()
    return frozen


def _missing(cells: DataFrame, live: DataFrame) -> DataFrame:
    """Those of *cells* that are not in the live table: the data cell, or the shadow cell that belongs to it, or both."""
    there = live.select(
        *KEY[:-1], (F.col("kind") != "shadow").alias("_data"), F.col("commit_ts").isNotNull().alias("_proof")
    )
    has_data = F.col("lone") | F.coalesce("_data", F.lit(False))
    has_proof = F.col("commit_ts").isNull() | F.coalesce("_proof", F.lit(False))
    found = cells.join(there, [*KEY[:-1]], "left").where(~(has_data & has_proof)).drop("_data", "_proof")
    return found.localCheckpoint()


def _visible(back: DataFrame, live: DataFrame, mark: int) -> DataFrame:
    """Those of *back* that are there, as *live* was read, hidden by nothing that is there, and are not to be seen."""
    key = [*KEY[:-1]]
    there = back.drop("why", "highest", "under").join(live.select(*key), key, "left_semi")
    others = live.join(there.select(*key), key, "left_anti")
    return _judged(there, others, mark).where(F.col("why") == _SHOWN)


def _bared(run: Run, table: str, missing: DataFrame) -> tuple[DataFrame, str | None]:
    """Those puts of *missing* that were taken for an abort's, and over which another run removed a tombstone that is not back: their key, and ``bared``,
    a sentence on it; and a sentence on why it cannot be known of the others, where it cannot.

    While such a put is there history GC leaves the tombstone over it. When a cleanup had removed it the tombstone could go, and nothing would hide it.
    """
    puts = missing.where((F.col("kind") == "put") & (F.col("commit_ts").isNull() | F.col("decided"))).select(*KEY)
    if puts.isEmpty():
        return puts.withColumn("bared", F.lit(None).cast("string")), None
    aside = kept_sidelines(run)
    tombstone = F.col("kind").isin("tombstone", "family_tombstone") & F.col("commit_ts").isNotNull()
    removed = aside.cells.where(tombstone & (F.col("table") == table) & (F.col("run") != run.options.restore))
    over = removed.join(puts.select("row", "family").distinct(), ["row", "family"], "left_semi").localCheckpoint()
    if not over.isEmpty():
        over = _absent(run, table, over)
    hiding = over.select("row", "family", F.struct("run", "kind", "qualifier", "timestamp", "commit_ts").alias("over"))
    hides = F.when(
        F.col("over.kind") == "tombstone",
        (F.col("over.qualifier") == F.col("qualifier")) & (F.col("over.timestamp") > F.col("timestamp")),
    ).otherwise(F.col("over.commit_ts") >= F.col("timestamp"))
    told = F.format_string(
        "a tombstone over them was removed since, without which they may be shown although they were deleted; first run: "
        f"lowtide restore %s --table {table} --execute",
        F.max("over.run"),
    )
    found = puts.join(hiding, ["row", "family"]).where(hides).groupBy(*KEY).agg(told.alias("bared"))
    lost = sorted(set(aside.lost.get(table, ())) - {run.options.restore})
    doubt = (
        f"files of the sideline of run {', '.join(lost)} are missing or cut short, and may have held a tombstone over them. Put the files back; or, "
        "where nothing of what comes back was ever deleted, remove that sideline's folder"
    )
    return found, doubt if lost else None


def _judged(
    missing: DataFrame, live: DataFrame, mark: int, bared: DataFrame | None = None, doubt: str | None = None
) -> DataFrame:
    """*missing* with ``why`` it must not come back (null: it may), ``highest``: the family tombstone that counts in its family, and ``under``:
    for a put, the version that hides it, which is to be there when it is put.

    A version may come back if, before the mark, a higher version or a family tombstone hides it: one that is there, or a tombstone
    that comes back with it. Those hide what was put back whatever else is; a put that comes back is itself hidden by one of them.
    What was taken for an abort's may come back to be seen, but not *bared* of a tombstone, nor in *doubt* of that (:func:`_bared`).
    """
    both = live.withColumn("back", F.lit(False)).unionByName(
        missing.where(F.col("commit_ts").isNotNull()).withColumn("back", F.lit(True)), allowMissingColumns=True
    )
    before = F.coalesce(F.col("commit_ts") < mark, F.lit(False)) & (F.col("kind") != "shadow")
    hides = before & (~F.col("back") | F.col("kind").isin("tombstone", "family_tombstone"))
    column = Window.partitionBy("row", "family", "qualifier").orderBy(F.desc("timestamp"))
    family = Window.partitionBy("row", "family")
    is_family = F.col("kind") == "family_tombstone"
    is_bare = (F.length("qualifier") == 0) & ~is_family & (F.col("kind") != "shadow")
    top = F.max(F.when(is_family & before, F.struct("timestamp", "commit_ts", "back"))).over(family)
    # What is there, committed, and would vanish under a family tombstone that comes back as the highest.
    exposed = F.min(F.when(~F.col("back") & ~is_family & before, F.col("timestamp"))).over(family)
    judged = (
        both.withColumn("_higher", F.max(hides).over(column.rowsBetween(Window.unboundedPreceding, -1)))
        .withColumn(
            "_hider",
            F.max(F.when(hides, F.struct("timestamp", "qualifier"))).over(
                column.rowsBetween(Window.unboundedPreceding, -1)
            ),
        )
        .withColumn("_top", top)
        .withColumn("_exposed", exposed)
        .withColumn("_bare", F.max(is_bare).over(family))
        .where("back")
    )
    by_family = ~F.col("_bare") & F.coalesce(F.col("_top.commit_ts") >= F.col("timestamp"), F.lit(False))
    buries = F.coalesce(F.col("_top.back") & (F.col("_exposed") <= F.col("_top.commit_ts")), F.lit(False))
    visible = (F.col("kind") == "put") & ~F.coalesce("_higher", F.lit(False)) & ~by_family
    # What committed after all is to hide, and to be seen.
    why = F.when(
        buries & ~F.col("decided"),
        "their family tombstone would hide what lies there now; restore the runs after this one first",
    ).when(
        visible,
        F.when(~F.col("decided"), _SHOWN).when(F.col("timestamp") < mark, F.lit(doubt)),
    )
    highest = is_family & F.coalesce(F.col("_top.timestamp") == F.col("timestamp"), F.lit(False))
    hider = F.coalesce(
        F.col("_hider"), F.when(by_family, F.struct(F.col("_top.timestamp"), F.lit(b"").alias("qualifier")))
    )
    names = [*missing.columns, "why", "highest", "under"]
    orphans = missing.where(F.col("commit_ts").isNull())
    found = (
        judged.withColumn("why", why)
        .withColumn("highest", highest)
        .withColumn("under", F.when(F.col("kind") == "put", hider))
        .select(*names)
        .unionByName(
            orphans.withColumn("why", F.lit(None).cast("string")).withColumn("highest", F.lit(False)),
            allowMissingColumns=True,
        )
    )
    if bared is None:
        return found
    return found.join(bared, [*KEY], "left").withColumn("why", F.coalesce("bared", "why")).select(*names)


def _puts(cells: DataFrame) -> DataFrame:
    committed, lone = F.col("commit_ts").isNotNull(), F.col("lone")
    under = F.col("under")
    guarded = committed & ~lone & under.isNotNull()
    op: Column = F.when(guarded, "put_committed_if_present").when(committed & ~lone, "put_committed").otherwise("put")
    return cells.select(
        op.alias("op"),
        "region",
        "row",
        "family",
        F.when(lone, shadow_of(F.col("qualifier"))).otherwise(F.col("qualifier")).alias("qualifier"),
        "timestamp",
        F.when(lone, bytes_of(F.col("commit_ts"))).otherwise(F.col("value")).alias("value"),
        "commit_ts",
        F.when(guarded, F.col("family")).alias("guard_family"),
        F.when(guarded, under.qualifier).alias("guard_qualifier"),
        F.when(guarded, under.timestamp).alias("guard_timestamp"),
    )
