"""Commit-table pruning: what every region has passed for longer than the grace goes to the journal, then leaves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.commit_count import CommitCount, count_figures
from lowtide.cleaning.evidence import Rule
from lowtide.cleaning.facts import by_reason, prune_bound
from lowtide.journal import life
from lowtide.run.summary import TableReport
from lowtide.store.records import Bound
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.clock import EPOCH, millis
from lowtide.values.formats import COMMIT_QUALIFIER, INVALID_QUALIFIER, INVALID_VALUE, OWN_INVALID_VALUE
from lowtide_spark.cleaning import undecided
from lowtide_spark.cleaning.watermarks import region_marks
from lowtide_spark.frames import omid
from lowtide_spark.frames.computed import frozen_with
from lowtide_spark.frames.inventory import left_behind, take_inventory
from lowtide_spark.frames.kinds import PUT
from lowtide_spark.frames.store import Written, by_region
from lowtide_spark.run.context import Run
from lowtide_spark.run.listing import list_cells
from lowtide_spark.verification import gate


def prune(run: Run) -> None:
    """The job ``commit_table_pruning``."""
    watermark = run.read_low_watermark()
    inventory = take_inventory(run.store)
    run.check_names([e.table for e in inventory])
    marks, blocked = region_marks(run, inventory)
    run.has_journal()
    fresh, blockers = prune_bound(marks, blocked, watermark)
    bounds = run.state().bounds()
    bound = min(fresh, _aged(bounds, run, fresh))
    run.summary.bound = bound
    run.summary.blockers = by_reason(blockers)
    run.summary.execute = run.executes(run.config.omid.commit_table) and run.permitted(
        run.config.omid.commit_table, run.config.state.journal_table
    )
    report = TableReport(run.config.omid.commit_table, execute=run.summary.execute, intervals=[(0, bound + 1)])
    run.summary.tables = [t for t in run.summary.tables if t.problems] + [report]
    if bound < fresh:
        report.notes.append(f"the bound is {fresh}, but only {bound} has been passed for longer than the grace")
    if not run.options.grace:
        report.notes.append(
            "without grace: a client that is suspended between its commit and the answer finds no entry any more, "
            "takes itself for aborted and rolls back what others have read"
        )
    if staying := left_behind(run.config, run.store.descriptors(), {e.table: e.families for e in inventory})[0]:
        report.notes.append(f"{staying}: docs/backups.md")
    run.phase("plan")

    _count(run, "before")
    run.phase("count")
    cells = run.store.cells(run.config.omid.commit_table, omid.commit_ranges(0, bound + 1))
    doomed = _doomed(omid.entries(cells, run.config.omid.commit_family), run, report)
    run.phase("find")
    if not run.summary.execute:
        list_cells(run, report.table, _cells(doomed, run, bound), acts=False)
    if run.summary.execute:
        committed = doomed.where(~F.col("invalid") & ~F.col("fence") & F.col("commit_ts").isNotNull())
        if report.counts.pruned and gate.closed(run, inventory, committed, report, gate.PRUNED):
            report.counts.pruned = 0
        else:
            run.phase("gate")
            run.check_low_watermark_again()
            _journal_and_delete(run, doomed, bound, report)
            _sweep_journal(run, inventory, fresh, report)
        run.phase("act")
        if report.counts.pruned:
            _count(run, "left")
            run.phase("count")


def _count(run: Run, when: str) -> None:
    """Count the whole commit table, beyond the bound too: summary and page tell as well what cannot be pruned yet."""
    found = omid.tally(run.store.cells(run.config.omid.commit_table), run.config.omid.commit_family).collect()[0]
    count = CommitCount(datetime.now(UTC), found.entries, found.marks)
    run.summary.figures |= count_figures(when, count)
    state = run.state()
    if state.exists():
        state.add_commit_count(count)


def _aged(bounds: list[Bound], run: Run, fresh: int) -> int:
    """The highest bound that was logged at least the grace ago; without grace, the bound as computed now.

    The grace is wall time since the bound passed, by our own log: commit-table cells carry no wall time.
    """
    grace: timedelta = run.options.grace
    if not grace:
        return fresh
    return max((b.value for b in bounds if b.at <= run.request.now - grace), default=0)


def _doomed(entries: DataFrame, run: Run, report: TableReport) -> DataFrame:
    """Rows to prune, computed once; those of unknown form are named and stay, and marks of a low-latency oracle stay
    too.
    """
    counts = report.counts
    keep_marks = F.lit(run.config.omid.low_latency) & F.col("invalid")
    groups = (F.col("problem").isNotNull().alias("unknown"), keep_marks.alias("kept"))
    # Not cached: a lost block must end the run, for read again it could hold rows that are not in the journal.
    rows, counted = frozen_with(entries, groups, F.count("*").alias("rows"))
    tally = {(r.unknown, r.kept): r.rows for r in counted}
    unknown = tally.get((True, False), 0) + tally.get((True, True), 0)
    report.problems += undecided.odd_entries(run.config.omid.commit_table, rows) if unknown else []
    counts.candidates = sum(tally.values())
    counts.pruned = tally.get((False, False), 0)
    for name, number in (
        ("of an unknown form", unknown),
        ("a low-latency oracle's marks", tally.get((False, True), 0)),
    ):
        if number:
            counts.skipped[name] += number
    return rows.where(F.col("problem").isNull() & ~keep_marks)


def _cells(doomed: DataFrame, run: Run, bound: int) -> DataFrame:
    """The entries and marks of these rows as a list has them."""
    columns = {COMMIT_QUALIFIER: F.col("entered"), INVALID_QUALIFIER: F.col("marked")}
    each = (F.when(at.isNotNull(), F.struct(F.lit(name).alias("q"), at.alias("t"))) for name, at in columns.items())
    cells = doomed.withColumn("cell", F.explode(F.array_compact(F.array(*each))))
    return cells.select(
        F.lit("delete").alias("action"),
        "row",
        F.lit(run.config.omid.commit_family.encode()).alias("family"),
        F.col("cell.q").alias("qualifier"),
        F.col("cell.t").alias("timestamp"),
        F.lit(PUT).alias("kind"),
        "start_ts",
        F.lit(Rule.PRUNE.value).alias("rule"),
        F.lit(f"at or below the prune bound {bound}; it goes to the journal first").alias("evidence"),
    )


def _journal_and_delete(run: Run, doomed: DataFrame, bound: int, report: TableReport) -> None:
    """The journal first: an HBase snapshot restored later has no other proof. Nothing is deleted that is not in it."""
    counts = report.counts
    planned, counts.pruned = counts.pruned, 0
    run.store.create_table(run.config.state.journal_table, life.FAMILY)
    run.hold_journal(pruned=bound)  # first: a journal of before lacks what goes now
    if not planned:
        list_cells(run, report.table, _cells(doomed, run, bound), acts=True)
        return
    # What goes was read in this life of the table: in another, as after an oracle was made anew, a row of the same
    # number may be a new transaction's, and a run that stood still would take it.
    holding = [run.commit_table_life]
    # A mark outranks an entry, so a row with both is journaled as what its readers saw: not committed.
    committed = ~F.col("invalid")
    # Whose mark it was decides what it proves of a cell that comes back.
    mark = F.when(F.col("own_mark"), F.lit(OWN_INVALID_VALUE)).otherwise(F.lit(INVALID_VALUE))
    at = millis(run.state().server_time())
    written = run.store.write(
        doomed.select(
            F.lit("put").alias("op"),
            F.lit("journal").alias("region"),
            "row",
            F.lit(life.FAMILY.encode()).alias("family"),
            F.when(committed, F.lit(COMMIT_QUALIFIER)).otherwise(F.lit(INVALID_QUALIFIER)).alias("qualifier"),
            F.lit(at).alias("timestamp"),
            F.when(committed, omid.bytes_of(F.col("commit_ts"))).otherwise(mark).alias("value"),
        ),
        run.config.state.journal_table,
        holding=holding,
    )
    if _failed(written, report, "journal entries could not be written; nothing was pruned"):
        return
    if _unanswered(written, planned, report, "journal entries"):
        return
    list_cells(run, report.table, _cells(doomed, run, bound), acts=True)
    family = run.config.omid.commit_family.encode()
    columns = F.explode(F.array(F.lit(COMMIT_QUALIFIER), F.lit(INVALID_QUALIFIER)))
    written = run.store.write(
        doomed.select(
            F.lit("delete_up_to").alias("op"),
            F.lit("prune").alias("region"),
            "row",
            F.lit(family).alias("family"),
            columns.alias("qualifier"),
            F.greatest("start_ts", "newest").alias("timestamp"),  # one that was put back lies above its start
        ),
        run.config.omid.commit_table,
        holding=holding,
    )
    _failed(written, report, "commit-table rows could not be deleted")
    _unanswered(written, 2 * planned, report, "deletions of commit-table cells")
    counts.bytes_written += sum(w.bytes for w in written)
    counts.pruned = sum(w.done for w in written) // 2


def _failed(written: list[Written], report: TableReport, what: str) -> bool:
    failed = sum(w.failed for w in written)
    if failed:
        report.counts.failed += failed
        report.problems.append(f"{failed} {what}: {next(w.failure for w in written if w.failed)}")
    return bool(failed)


def _unanswered(written: list[Written], planned: int, report: TableReport, what: str) -> bool:
    """Tell where not every mutation that was planned was answered for."""
    answered = by_region(written).total()
    if answered != planned:
        report.problems.append(f"{planned} {what} were planned and {answered} answered for; run again")
    return answered != planned


def _sweep_journal(run: Run, inventory: Sequence[Entry], fresh: int, report: TableReport) -> None:
    """Drop journal entries that are old enough, that no HBase snapshot predates, and that no table needs now.

    No table needs those up to the bound, as it is *fresh*, by what is recorded. Those of dropped tables are among them.
    None are dropped unless the configuration asks for it, nor before the tables themselves were read, as they are then:
    one may have come back since the bound was known, or have been given cells of before that nobody has told of.

    Only HBase snapshots of tables known to be plain, or of Lowtide's and Omid's own, do not count; a table that was
    cleaned once was not plain then. A day of margin lies between the master's clock, which dates those, and ours, which
    dates the entries.
    """
    if run.config.state.journal_keep == "forever":
        return
    cluster = run.store.cluster()
    if not cluster.sees_every_snapshot:
        report.notes.append(
            f"no journal entry is removed: HBase shows {cluster.user}, who is not ADMIN globally, only HBase snapshots "
            "of their own, and one of somebody else's may still need it. Grant ADMIN, or set state.journal_keep to "
            "forever"
        )
        return
    snapshots = run.store.snapshots()
    plain = {e.table for e in inventory if e.kind is Kind.PLAIN} & {s.table for s in snapshots}
    ever_cleaned = {state.table for state in run.state().read_all(sorted(plain)).values() if state.epoch.counter}
    harmless = run.config.own_tables | (plain - ever_cleaned)
    oldest = min((s.created for s in snapshots if s.table not in harmless), default=2**62)
    limit = min(millis(run.request.now - run.config.state.journal_keep), oldest - millis(EPOCH + timedelta(days=1)))
    read = run.store.life(run.config.state.journal_table)
    rows = omid.pruned_rows(run.store.cells(run.config.state.journal_table))
    # A table that came back waits for its proofs, and holds the bound.
    needless = omid.long_of(F.substring("row", 2, 8)) <= fresh
    old, [counted] = frozen_with(rows.where((F.col("timestamp") < limit) & needless), (), F.count("*").alias("rows"))
    if not counted.rows:
        return
    ((horizon,),) = omid.journal(old).agg(F.max("start_ts")).collect()
    if horizon is None:
        return
    committed = omid.journal(old).where(F.col("commit_ts").isNotNull())
    if gate.closed(run, take_inventory(run.store), committed, report, gate.SWEPT):
        return
    run.hold_journal(horizon=horizon)  # first: what is gone must not be taken for never there
    written = run.store.write(
        old.select(
            F.lit("delete_up_to").alias("op"),
            F.lit("journal").alias("region"),
            "row",
            "family",
            "qualifier",
            F.col("timestamp"),
        ),
        run.config.state.journal_table,
        holding=[read],
    )
    _failed(written, report, "old journal entries could not be removed")
