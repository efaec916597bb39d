"""Orphan cleanup: find suspects, decide by proof, heal and delete under guards, then record.

The phases keep the order that the safety rules ask for (docs/safety.md): the low watermark is read before tables, regions and
cells; absence of a proof becomes an abort only behind an invalidation mark; a key range is recorded after all its
actions are acknowledged.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.budget import check_budget
from lowtide.cleaned import Fact, Region, cleaned_intervals, last_full_pass, valid
from lowtide.config import Read
from lowtide.errors import BudgetError, LowtideError, StoreError
from lowtide.formats import INVALID_QUALIFIER, INVALID_VALUE
from lowtide.intervals import Intervals
from lowtide.inventory import Entry
from lowtide.planning import WorkRange, plan_ranges
from lowtide.state import TableState
from lowtide.summary import TableReport
from lowtide_spark import omid, rules
from lowtide_spark.inventory import take_inventory, transactional
from lowtide_spark.job import Run
from lowtide_spark.sideline import put_aside
from lowtide_spark.startset import StartSet
from lowtide_spark.store import LIVE, Source, Written


@dataclass
class Work:
    """One table of the run."""

    entry: Entry
    report: TableReport
    execute: bool
    regions: list[Region]
    state: TableState
    facts: list[Fact]
    ranges: list[WorkRange]
    source: Source = LIVE
    suspects: DataFrame | None = None
    plan: DataFrame | None = None
    #: Ranges that are not to be recorded, with the reason.
    stopped: dict[str, str] = field(default_factory=dict)

    @property
    def families(self) -> list[str]:
        return sorted(self.entry.families)

    @property
    def alive(self) -> bool:
        """Whether there is still something to do and nothing that forbids it."""
        return bool(self.ranges) and self.suspects is not None

    def stop(self, regions: Iterable[str], reason: str) -> None:
        """Neither act on nor record these ranges any more."""
        for region in regions:
            if region not in self.stopped:
                self.stopped[region] = reason
                self.report.problems.append(f"range {region}: {reason}; it is not recorded as cleaned")

    def give_up(self, reason: str) -> None:
        """Do nothing more for this table."""
        self.report.problems.append(reason)
        self.suspects = None


def clean(run: Run) -> None:
    """The job ``orphan_cleanup``."""
    watermark = run.read_low_watermark()
    inventory = take_inventory(run.store)
    works = [w for e in run.choose(inventory) if (w := _prepare(run, e, watermark)) is not None]
    run.phase("plan")
    with ExitStack() as held:
        entries = _entries(run, works, held)
        committed = StartSet(entries.where("problem is null and not invalid and not fence and commit_ts is not null"))
        for work in works:
            with _failures(work):
                _find(run, work, committed, held)
        run.phase("find")
        _decide_and_act(run, works, inventory, entries, held)
    for work in works:
        with _failures(work):
            _record(run, work)
    run.phase("record")


# -- before reading


def _prepare(run: Run, entry: Entry, watermark: int) -> Work | None:
    """What to do for one table; takes its epoch where the run will act."""
    report = TableReport(entry.table)
    run.summary.tables.append(report)
    if entry.unmarked:
        report.notes.append(
            f"families {sorted(entry.unmarked)} hold shadow cells but bear no mark; they are left alone"
        )
    execute = run.executes(entry.table)
    try:
        regions = run.store.regions(entry.table)
        with run.state() as store:
            state = store.begin(entry.table, regions) if execute else store.read(entry.table)
        facts = valid(state.facts, entry.families, state.incarnation.advance(regions))
        ranges = plan_ranges(
            run.request, regions, facts, run.clock, watermark, run.config.table(entry.table).full_pass_every
        )
    except StoreError as error:
        report.problems.append(str(error))
        return None
    report.regions = len(ranges)
    report.intervals = list(Intervals.of((r.from_ts, r.to_ts) for r in ranges))
    return Work(entry, report, execute, regions, state, facts, ranges)


@contextmanager
def _failures(work: Work) -> Iterator[None]:
    """One failing table never hides the others: its error is kept and its work ends."""
    try:
        yield
    except LowtideError as error:
        work.give_up(str(error))
    except (PySparkException, Py4JError) as error:
        work.give_up(f"Spark: {str(error).strip().splitlines()[0]}")


# -- finding


def _entries(run: Run, works: Sequence[Work], held: ExitStack) -> DataFrame:
    """The commit table's rows for all that will be read. One that is of an unknown form makes the run red."""
    spans = [(r.from_ts, r.to_ts) for w in works for r in w.ranges]
    ranges = (
        omid.commit_ranges(min(a for a, _ in spans), max(b for _, b in spans)) if spans else omid.commit_ranges(0, 0)
    )
    cells = run.store.cells(run.config.omid.commit_table, ranges)
    entries = omid.entries(cells, run.config.omid.commit_family).persist()
    held.callback(entries.unpersist)
    for row in entries.where("problem is not null").limit(20).collect():
        run.summary.problems.append(
            f"{run.config.omid.commit_table}: {row.problem} (row {bytes(row.row).hex()}); left alone"
        )
    return entries


def _find(run: Run, work: Work, committed: StartSet, held: ExitStack) -> None:
    """Read the table's suspects, once, and count what was read."""
    if not work.ranges:
        return
    work.source = _source(run, work, held)
    work.report.read = work.source.name
    suspects = committed.suspects(
        run.store.versions(work.entry.table, work.ranges, work.families, work.source)
    ).persist()
    held.callback(suspects.unpersist)
    is_end = F.col("kind") == "end_of_range"
    counted = suspects.agg(
        F.sum("cells_read"), F.sum("bytes_read"), F.count_if(~is_end), F.count_distinct(F.when(is_end, F.col("region")))
    ).first()
    counts = work.report.counts
    counts.cells_read, counts.bytes_read, counts.candidates, seen = (int(value or 0) for value in counted)
    if seen != len(work.ranges):
        msg = f"{len(work.ranges)} key ranges of {work.entry.table} were to be read, {seen} were read to their end"
        raise StoreError(msg)
    work.suspects = suspects


def _source(run: Run, work: Work, held: ExitStack) -> Source:
    """The live table, or a snapshot made now: after the low watermark was read, memstore included."""
    settings = run.config.table(work.entry.table)
    size = sum(r.store_bytes for r in work.regions)
    full = any(r.from_ts == 0 for r in work.ranges)
    large = settings.read is Read.AUTO and full and size >= settings.snapshot_from_bytes
    if settings.read is Read.SNAPSHOT or large:
        return held.enter_context(run.store.snapshot(work.entry.table, run.request.run))
    return LIVE


# -- deciding and acting


def _decide_and_act(
    run: Run, works: list[Work], inventory: Sequence[Entry], entries: DataFrame, held: ExitStack
) -> None:
    starts = _in_question(works, entries, held)
    known = _verdicts(run, works, inventory, entries, starts, held)
    for work in works:
        with _failures(work):
            _plan(run, work, known, held)
    run.phase("decide")
    acting = [w for w in works if w.execute]
    if acting:
        known = _mark(run, acting, known, held)
        for work in acting:
            with _failures(work):
                _plan(run, work, known, held)
                _act(run, work)
        _take_back_marks(run, acting)
    run.phase("act")


def _in_question(works: Sequence[Work], entries: DataFrame, held: ExitStack) -> StartSet:
    """The transactions of cells without shadow cell that no plain commit entry decides."""
    frames = [
        w.suspects.where(F.col("commit_ts").isNull() & F.col("kind").isin(*rules.CELL_KINDS)).select("start_ts")
        for w in works
        if w.suspects is not None
    ]
    decided = entries.where("problem is null and not invalid and not fence").select("start_ts")
    starts = StartSet(_union(frames, run_schema=entries.select("start_ts")).join(decided, "start_ts", "left_anti"))
    held.callback(starts.close)
    return starts


def _union(frames: Sequence[DataFrame], run_schema: DataFrame) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b), frames) if frames else run_schema.limit(0)


def _verdicts(
    run: Run, works: Sequence[Work], inventory: Sequence[Entry], entries: DataFrame, starts: StartSet, held: ExitStack
) -> DataFrame:
    """What is known of every transaction that has a suspect cell."""
    siblings, blind = _siblings(run, works, inventory, starts)
    pruned = _journal(run, starts)
    hidden = _hidden(run, starts)
    all_starts = entries.select("start_ts").unionByName(starts.frame)
    known = rules.verdicts(all_starts.where("start_ts is not null"), entries, pruned, siblings, hidden, blind).persist()
    held.callback(known.unpersist)
    known.count()
    return known


def _siblings(run: Run, works: Sequence[Work], inventory: Sequence[Entry], starts: StartSet) -> tuple[DataFrame, bool]:
    """Shadow cells of the transactions in question in every transactional table, and whether one could not be searched."""
    empty = run.store.spark.createDataFrame([], "start_ts bigint, timestamp bigint, commit_ts bigint")
    if not starts:
        return empty, False
    sources = {w.entry.table: w.source for w in works}
    found, blind = [empty], False
    for entry in transactional(inventory):
        if not entry.enabled:
            blind = True
            continue
        families = sorted(entry.families | entry.unmarked)
        proofs = run.store.proofs(entry.table, families, starts.span, sources.get(entry.table, LIVE))
        found.append(starts.restrict(proofs).select("start_ts", "timestamp", "commit_ts"))
    return reduce(lambda a, b: a.unionByName(b), found), blind


def _journal(run: Run, starts: StartSet) -> DataFrame:
    """What was pruned of the transactions in question."""
    with run.state() as state:
        there = state.has_table(run.config.state.journal_table)
    if not starts or not there:
        return run.store.spark.createDataFrame([], "start_ts bigint, commit_ts bigint")
    cells = run.store.cells(run.config.state.journal_table, omid.commit_ranges(*starts.span))
    return starts.restrict(omid.journal(cells))


def _hidden(run: Run, starts: StartSet) -> DataFrame:
    """Transactions whose row in the commit table lies behind a delete marker: a mark put there could not be read back."""
    if not starts:
        return run.store.spark.createDataFrame([], "start_ts bigint")
    raw = run.store.cells(run.config.omid.commit_table, omid.commit_ranges(*starts.span), raw=True)
    start = omid.long_of(F.substring("row", 2, 8))
    family, mark = bytearray(run.config.omid.commit_family.encode()), bytearray(INVALID_QUALIFIER)
    covers = (F.col("kind") == "delete_family") | (
        F.col("kind").isin("delete_column", "delete") & (F.col("qualifier") == mark)
    )
    rows = raw.where((F.length("row") == 9) & (F.col("family") == family) & covers & (F.col("timestamp") >= start))
    return starts.restrict(rows.select(start.alias("start_ts")).distinct())


def _plan(run: Run, work: Work, known: DataFrame, held: ExitStack) -> None:
    """Decide every suspect cell of a table, count the plan, and stop the ranges that hold something unknown."""
    if work.suspects is None:
        return
    cells = work.suspects.where(F.col("kind") != "end_of_range")
    plan = rules.cell_actions(cells, known, run.world_clock).persist()
    held.callback(plan.unpersist)
    for row in (
        plan.where(F.col("action") == rules.STOP)
        .groupBy("region")
        .agg(
            F.min("why").alias("why"),
            F.count("*").alias("n"),
            F.min(F.hex("row")).alias("row"),
            F.min("timestamp").alias("ts"),
        )
        .collect()
    ):
        work.stop(
            [row.region], f"{row.n} cells of a form that no rule decides: {row.why} (row {row.row}, timestamp {row.ts})"
        )
    counts = work.report.counts
    counts.healed = counts.deleted = counts.marked = counts.unmarked = 0
    counts.skipped.clear()
    work.plan = plan.where(~F.col("region").isin(list(work.stopped))) if work.stopped else plan
    rows = plan.groupBy("action", "why", F.col("region").isin(list(work.stopped)).alias("held")).count().collect()
    for row in rows:
        if row.action == rules.STOP or row.held:
            counts.skipped["in a range that is held"] += row["count"]
        elif row.action == rules.SKIP:
            counts.skipped[row.why] += row["count"]
        elif row.action == rules.HEAL:
            counts.healed += row["count"]
        else:
            counts.deleted += row["count"]
    counts.marked = _marks(work).count()
    counts.unmarked = _wrong_marks(work).count()
    foreign = counts.skipped.get("written by no oracle", 0)
    if foreign:
        work.report.notes = [n for n in work.report.notes if "written by no oracle" not in n]
        work.report.notes.append(
            f"{foreign} cells with timestamps that this oracle cannot have given, written by no oracle: left alone"
        )
    try:
        check_budget(work.entry.table, counts.deleted, counts.cells_read, run.budget(work.entry.table))
    except BudgetError as error:
        work.plan = None
        work.give_up(str(error))


def _marks(work: Work) -> DataFrame:
    """Transactions of planned deletes that bear no invalidation mark yet."""
    assert work.plan is not None
    return work.plan.where((F.col("action") == rules.DELETE) & ~F.col("marked")).select("start_ts").distinct()


def _wrong_marks(work: Work) -> DataFrame:
    """Transactions with a mark that are committed after all."""
    assert work.plan is not None
    return work.plan.where((F.col("action") == rules.HEAL) & F.col("marked")).select("start_ts").distinct()


def _mark(run: Run, works: Sequence[Work], known: DataFrame, held: ExitStack) -> DataFrame:
    """Put the invalidation marks, where no commit entry is there; then read entries and marks again.

    After it a transaction that had nothing is either marked, or its commit entry was found, or it stays undecided.
    """
    planned = [w for w in works if w.plan is not None]
    absent = StartSet(_union([_marks(w) for w in planned], run_schema=known.select("start_ts")))
    held.callback(absent.close)
    if not absent:
        return known
    table, family = run.config.omid.commit_table, run.config.omid.commit_family.encode()
    mutations = absent.frame.select(
        F.lit("put_if_absent").alias("op"),
        F.lit("marks").alias("region"),
        omid.commit_key(F.col("start_ts")).alias("row"),
        F.lit(family).alias("family"),
        F.lit(INVALID_QUALIFIER).alias("qualifier"),
        F.col("start_ts").alias("timestamp"),
        F.lit(INVALID_VALUE).alias("value"),
        F.lit(family).alias("guard_family"),
        F.lit(b"C").alias("guard_qualifier"),
    )
    failures = [w for w in run.store.write(mutations, table) if w.failed]
    for failure in failures:
        run.summary.problems.append(f"{table}: {failure.failed} invalidation marks could not be put: {failure.failure}")
    cells = run.store.cells(table, omid.commit_ranges(*absent.span))
    again = absent.restrict(omid.entries(cells, run.config.omid.commit_family)).persist()
    held.callback(again.unpersist)
    fresh = again.select(
        "start_ts",
        F.when(F.col("invalid"), rules.ABORTED)
        .when(F.col("problem").isNotNull() | F.col("fence"), rules.UNDECIDED)
        .otherwise(rules.COMMITTED)
        .alias("now"),
        F.col("commit_ts").alias("now_tc"),
    )
    asked = absent.frame.withColumn("asked", F.lit(True))
    changed = F.col("asked").isNotNull()
    decided = (
        known.join(asked, "start_ts", "left")
        .join(fresh, "start_ts", "left")
        .select(
            "start_ts",
            F.when(changed, F.coalesce("now", F.lit(rules.UNDECIDED))).otherwise(F.col("verdict")).alias("verdict"),
            F.when(changed, F.col("now_tc")).otherwise(F.col("tc")).alias("tc"),
            F.when(changed & F.col("now").isNull(), F.lit("its invalidation mark cannot be read back"))
            .otherwise(F.col("why"))
            .alias("why"),
            "marked",
        )
        .persist()
    )
    held.callback(decided.unpersist)
    return decided


def _act(run: Run, work: Work) -> None:
    """Heal, put aside, delete; every count is of acknowledged mutations."""
    if work.plan is None or work.suspects is None:
        return
    counts = work.report.counts
    marked, unmarked = counts.marked, counts.unmarked
    counts.healed = counts.deleted = 0
    heals = work.plan.where(F.col("action") == rules.HEAL)
    deletes = work.plan.where(F.col("action") == rules.DELETE)
    if not heals.isEmpty():
        written = run.store.write(
            heals.select(
                F.lit("heal_if_present").alias("op"), "region", "row", "family", "qualifier", "timestamp", "value",
                F.col("tc").alias("commit_ts"),
            ),
            work.entry.table,
        )  # fmt: skip
        counts.healed = _book(work, written)
        _skip(work, written, "gone before it was healed")
    if not deletes.isEmpty():
        folder = put_aside(run, work.entry.table, deletes)
        work.report.notes.append(f"what goes is kept in {folder}; `lowtide restore {run.request.run}` puts it back")
        written = run.store.write(
            deletes.select(
                F.lit("delete_if_absent").alias("op"), "region", "row", "family", "qualifier", "timestamp",
                F.col("family").alias("guard_family"), shadow_of(F.col("qualifier")).alias("guard_qualifier"),
            ),
            work.entry.table,
        )  # fmt: skip
        counts.deleted = _book(work, written)
        refused = _skip(work, written, "committed before it was deleted")
        if refused:
            _after_refusal(run, work, deletes, [w.region for w in written if w.refused])
    counts.marked, counts.unmarked = marked, unmarked


def shadow_of(qualifier: Any) -> Any:
    """The qualifier of the shadow cell beside a data cell's."""
    return F.concat(F.unhex(F.lit("00C280")), qualifier, F.unhex(F.lit("C280")))


def _book(work: Work, written: Sequence[Written]) -> int:
    """Count acknowledged mutations; ranges with a failed one are not recorded."""
    counts = work.report.counts
    for w in written:
        counts.bytes_written += w.bytes
        counts.failed += w.failed
        if w.failed:
            work.stop([w.region], f"{w.failed} mutations failed: {w.failure}")
    return sum(w.done for w in written)


def _skip(work: Work, written: Sequence[Written], why: str) -> int:
    refused = sum(w.refused for w in written)
    if refused:
        work.report.counts.skipped[why] += refused
    return refused


def _after_refusal(run: Run, work: Work, deletes: DataFrame, regions: Sequence[str]) -> None:
    """A guard found a shadow cell where there was none: committed after all. The mark was wrong; the ranges are looked at again."""
    starts = StartSet(deletes)
    ranges = [r for r in work.ranges if r.region in set(regions)]
    shadowed = run.store.versions(work.entry.table, ranges, work.families).where(F.col("commit_ts").isNotNull())
    committed = StartSet(starts.restrict(shadowed))
    _unmark(run, committed.frame)
    work.stop(regions, "a cell was committed while the run went on; run again")
    starts.close()
    committed.close()


def _take_back_marks(run: Run, works: Sequence[Work]) -> None:
    """Remove marks of transactions that are committed after all, once their cells here are healed."""
    for work in works:
        if work.plan is not None and work.suspects is not None:
            wrong = StartSet(_wrong_marks(work))
            if wrong:
                _unmark(run, wrong.frame)
            wrong.close()


def _unmark(run: Run, starts: DataFrame) -> None:
    mutations = starts.select(
        F.lit("delete_version").alias("op"),
        F.lit("marks").alias("region"),
        omid.commit_key(F.col("start_ts")).alias("row"),
        F.lit(run.config.omid.commit_family.encode()).alias("family"),
        F.lit(INVALID_QUALIFIER).alias("qualifier"),
        F.col("start_ts").alias("timestamp"),
    )
    run.store.write(mutations, run.config.omid.commit_table)


# -- recording


def _record(run: Run, work: Work) -> None:
    """Record the ranges that are done, under the table's epoch, and drop facts that say nothing more."""
    if not work.execute or not work.ranges or work.suspects is None:
        return
    now = int(time.time() * 1000)
    fresh: list[Fact] = []
    with run.state() as state:
        for done in work.ranges:
            if done.region in work.stopped:
                continue
            known = cleaned_intervals(done.keys, work.facts)
            # From 0 over all that was recorded before: only that finds what a paused client landed since.
            is_full = done.from_ts == 0 and done.to_ts >= known.prefix_end(0)
            full = now if is_full else last_full_pass(done.keys, work.facts)
            fact = Fact(
                done.keys,
                known | Intervals.of([(done.from_ts, done.to_ts)]),
                frozenset(work.families),
                work.state.incarnation.number,
                run.request.run,
                now,
                full,
            )
            state.record(work.state, fact)
            fresh.append(fact)
        for old in work.state.facts:
            said_again = all(cleaned_intervals(old.keys, fresh).covers(a, b) for a, b in old.intervals)
            if old.keys not in {f.keys for f in fresh} and said_again:
                state.forget(work.state, old.keys)
    work.report.regions_recorded = len(fresh)
