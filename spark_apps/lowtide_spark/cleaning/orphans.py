"""Orphan cleanup: find suspects, decide by proof, heal and delete under guards, then record.

The phases keep the order that the safety rules ask for (docs/safety.md): the low watermark is read before tables, regions and
cells; absence of a proof becomes an abort only behind an invalidation mark; a key range is recorded after all its
actions are acknowledged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.facts import DROPPING, VOID, Fact, Region, cleaned_intervals, last_full_pass, read_by, valid
from lowtide.cleaning.planning import WorkRange, first_unrecorded, plan_ranges, without_read
from lowtide.config import Read
from lowtide.errors import StoreError
from lowtide.journal import life
from lowtide.run.budget import check_budget
from lowtide.run.summary import TableReport
from lowtide.store.gateway import connect
from lowtide.store.records import Claim, TableState
from lowtide.tables.inventory import Entry, without_compactor
from lowtide.values.clock import millis
from lowtide.values.formats import (
    COMMIT_QUALIFIER,
    INVALID_QUALIFIER,
    INVALID_VALUE,
    SHADOW_PREFIX,
    SHADOW_SUFFIX,
)
from lowtide.values.intervals import Intervals
from lowtide_spark.cleaning import rules, undecided
from lowtide_spark.frames import omid
from lowtide_spark.frames.inventory import take_inventory, transactional
from lowtide_spark.frames.sideline import put_aside
from lowtide_spark.frames.sideline import sweep as sweep_sideline
from lowtide_spark.frames.startset import StartSet
from lowtide_spark.frames.store import LIVE, Life, Source, Written, by_region
from lowtide_spark.run.job import Run, failures_kept

#: Rows of the commit table that prove a commit by themselves.
PLAIN_ENTRY = "problem is null and not invalid and not fence and commit_ts is not null"
#: Rows of each of its regions whose keys are looked at, wherever the interval lies.
KEY_SAMPLE = 100


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
    #: The plan with the cells of ranges that are stopped.
    decided: DataFrame | None = None
    #: What no rule decides, by what the look found: of a range that is stopped nothing is marked, which a later plan takes for the reason.
    waits: DataFrame | None = None
    #: Cells that the plan has for each action and region, of all regions.
    planned: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Cells whose heal was sent.
    healed: DataFrame | None = None
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
    # Where readers see orphans they go first.
    chosen = sorted(run.choose(inventory), key=lambda e: not e.unfiltered)
    works = [w for e in chosen if (w := prepare(run, e, run.limited(watermark))) is not None]
    run.summary.execute = any(w.execute for w in works)
    _drop_left_snapshots(run, works)
    run.phase("plan")
    with ExitStack() as held:
        looked = look(run, works, inventory, held)
        acting = [w for w in works if w.execute and w.ranges]
        if acting:
            run.check_approved()
            run.check_low_watermark_again()
            _act_all(run, acting, looked.known, held)
            for work in acting:
                with failures_kept(work):
                    if work.waits is not None and work.stopped:
                        undecided.listed(run, work.report, work.waits)
            run.phase("act")
            _stop_if_entries_came(run, acting, looked.committed)
            for work in acting:
                with failures_kept(work):
                    _look_again(run, work)
            run.check_low_watermark_again()
            for work in acting:
                with failures_kept(work):
                    _record(run, work)
            sweep_sideline(run)
            run.phase("record")


@dataclass(frozen=True)
class Looked:
    """What reading showed: transactions with a commit entry, and what is known of every transaction in question."""

    committed: StartSet
    known: DataFrame


def look(
    run: Run,
    works: Sequence[Work],
    inventory: Sequence[Entry],
    held: ExitStack,
    proofs_in: Mapping[str, Sequence[WorkRange]] | None = None,
) -> Looked:
    """Find the suspects of every table and decide them: each work has its plan and its counts then. Writes nothing.

    Args:
        run: the run.
        works: as :func:`prepare` made them.
        inventory: every table of the cluster.
        held: what is made on the way, such as snapshots, goes when it is closed.
        proofs_in: the only ranges, by table, that are searched for shadow cells of the transactions in question; for estimates,
            never for a run that acts. None: every transactional table from end to end.
    """
    entries = _entries(run, works)
    committed = _start_set(entries.where(PLAIN_ENTRY), held)
    pruned = _pruned(run, works, held)
    for work in works:
        with failures_kept(work):
            _find(run, work, _rewritten(work, committed, pruned, held), held)
    run.phase("find")
    known = _verdicts(run, works, inventory, entries, held, proofs_in)
    _plan_all(run, works, known)
    run.phase("decide")
    return Looked(committed, known)


# -- before reading


def prepare(run: Run, entry: Entry, watermark: int) -> Work | None:
    """What to do for one table; takes its epoch where the run will act."""
    execute = run.executes(entry.table)
    report = TableReport(entry.table, execute=execute)
    run.summary.tables.append(report)
    if entry.unmarked:
        report.notes.append(
            f"families {sorted(entry.unmarked)} hold shadow cells but bear no mark; they are left alone"
        )
    try:
        regions = run.store.regions(entry.table)
        with run.state() as store:
            state = store.begin(entry.table, regions) if execute else store.read(entry.table)
        facts = valid(state.facts, entry.families, state.incarnation.advance(regions), entry.shape)
        if state.facts and not facts:
            report.notes.append(f"{VOID}; it is read from 0")
            if entry.compactor:  # no problem: when this run is through it has healed what is still there
                report.notes.append(f"{DROPPING}. In HBase's shell, at once: {without_compactor(entry.table)}")
        horizon = run.journal.horizon
        if any(life.unwatched(r.keys, facts, horizon) for r in regions):
            report.notes.append(_apart_unseen(entry.table, horizon))
        ranges = plan_ranges(
            run.request, regions, facts, run.clock, watermark, run.config.table(entry.table).full_pass_every
        )
        if not run.read_only:  # a survey tells of everything, whatever its id
            ranges, left_out = without_read(run.request, ranges, facts)
            report.notes += [left_out] if left_out else []
    except StoreError as error:
        report.problems.append(str(error))
        return None
    report.regions = len(ranges)
    report.intervals = list(Intervals.of((r.from_ts, r.to_ts) for r in ranges))
    return Work(entry, report, execute, regions, state, facts, ranges)


def _apart_unseen(table: str, horizon: int) -> str:
    """What :func:`_rewritten` cannot do where the journal tells no more whose entries were pruned."""
    return (
        f"the journal has let go of what was pruned up to {horizon}: committed cells of before that may lie in other files than their shadow cells, where Omid's "
        f"compactor loses both. Where it is to be on the table, run in HBase's shell, without it: major_compact '{table}'"
    )


def _drop_left_snapshots(run: Run, works: Sequence[Work]) -> None:
    """Drop HBase's snapshots of runs that were killed, whether or not there is anything to read: with the table's epoch taken nobody reads them
    any more. One that cannot be dropped makes the run red and keeps nothing from being cleaned.
    """
    acting = {w.entry.table: w for w in works if w.execute}
    for left in run.store.left_snapshots(acting) if acting else ():
        try:
            run.store.drop_snapshot(left.name)
        except StoreError as error:
            acting[left.table].report.problems.append(str(error))


# -- finding


def _entries(run: Run, works: Sequence[Work]) -> DataFrame:
    """The commit table's rows for all that will be read, frozen. One that is of an unknown form makes the run red.

    Raises:
        StoreError: there are rows whose keys are of no form that is known; nothing can be said of any transaction then.
    """
    table, family = run.config.omid.commit_table, run.config.omid.commit_family
    entries = _frozen(omid.entries(run.store.cells(table, _rows_of(works)), family))
    # Another key generator's rows lie anywhere: some of each region are looked at, beside those of the interval.
    elsewhere = omid.entries(run.store.cells(table, first=KEY_SAMPLE), family)
    for row in entries.unionByName(elsewhere).where("start_ts is null").limit(1).collect():
        msg = (
            f"{table} holds rows that are no transaction's by the keys that Omid writes by default: {row.problem}; "
            "with keys of another generator no commit can be looked up, so nothing is cleaned"
        )
        raise StoreError(msg)
    for row in entries.where("problem is not null").limit(20).collect():
        run.summary.problems.append(f"{table}: {undecided.odd_entry(table, row)}")
    return entries


def _rows_of(works: Sequence[Work]) -> list[WorkRange]:
    """Where the commit table, and the journal, have the transactions of all that will be read."""
    spans = [(r.from_ts, r.to_ts) for w in works for r in w.ranges]
    return omid.commit_ranges(min((a for a, _ in spans), default=0), max((b for _, b in spans), default=0))


def _pruned(run: Run, works: Sequence[Work], held: ExitStack) -> StartSet | None:
    """Transactions of what will be read that had a commit entry, by the journal. Asked after the commit table: pruning moves them from there to here.

    What is older than the oracle counts as well: it says of no transaction that it committed, only whose cells with a shadow cell to write anew. None, and nothing read,
    where the journal has none, as of increments: what was pruned is below every region's watermark.
    """
    first = min((r.from_ts for w in works for r in w.ranges), default=None)
    if first is None or not run.has_journal():
        return None
    name = run.config.state.journal_table
    with connect(run.config.hbase.thrift) as connection:
        if not life.reaches(connection, name, first):
            return None
    rows = omid.journal(run.store.cells(name, _rows_of(works)))
    return _start_set(rows.where("start_ts is not null and commit_ts is not null"), held)


def _rewritten(work: Work, committed: StartSet, pruned: StartSet | None, held: ExitStack) -> StartSet:
    """Transactions whose cells are suspects with their shadow cells, too: those with a commit entry, and those that had one when nothing was recorded.

    A shadow cell that lies in another file than its data is lost to Omid's compactor. The entry goes when every such pair was written anew, but a table that
    comes back from a snapshot has them as they lay before. Where a fact tells of a range they were written anew since.
    """
    if not pruned or pruned.span[1] <= (first := first_unrecorded(work.ranges, work.facts)):
        return committed
    return _start_set(committed.frame.unionByName(pruned.frame.where(F.col("start_ts") >= first)), held)


def _find(run: Run, work: Work, rewritten: StartSet, held: ExitStack) -> None:
    """Read the table's suspects, once, and count what was read."""
    if not work.ranges:
        return
    work.source = _source(run, work, held)
    work.report.read = work.source.name
    suspects = _frozen(
        rewritten.suspects(run.store.versions(work.entry.table, work.ranges, work.families, work.source))
    )
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
    if run.read_only and not run.options.snapshot:
        return LIVE
    settings = run.config.table(work.entry.table)
    size = sum(r.store_bytes for r in work.regions)
    full = any(r.from_ts == 0 for r in work.ranges)
    readable = "hbase.rootdir" in run.config.hbase.properties  # without it the snapshot's files cannot be found
    large = settings.read is Read.AUTO and readable and full and size >= settings.snapshot_from_bytes
    if settings.read is Read.SNAPSHOT or large or run.read_only:
        return held.enter_context(run.store.snapshot(work.entry.table, run.request.run, sweep=work.execute))
    return LIVE


# -- deciding


def _frozen(frame: DataFrame) -> DataFrame:
    """Computed once, for good.

    Decisions are made on what was read *in this order*. A cache would be read again where an executor was lost, from a store that
    has moved on; a local checkpoint fails the run instead.
    """
    return frame.localCheckpoint()


def _start_set(frame: DataFrame, held: ExitStack) -> StartSet:
    starts = StartSet(frame)
    held.callback(starts.close)
    return starts


def _union(frames: Sequence[DataFrame], like: DataFrame) -> DataFrame:
    return reduce(lambda a, b: a.unionByName(b), frames) if frames else like.limit(0)


def _verdicts(
    run: Run,
    works: Sequence[Work],
    inventory: Sequence[Entry],
    entries: DataFrame,
    held: ExitStack,
    proofs_in: Mapping[str, Sequence[WorkRange]] | None,
) -> DataFrame:
    """What is known of every transaction that has a suspect cell or a commit entry, frozen."""
    first = rules.first_timestamp(run.world_clock)
    unproved = F.col("commit_ts").isNull() & F.col("kind").isin(*rules.CELL_KINDS) & (F.col("timestamp") >= first)
    suspects = [w.suspects.where(unproved).select("start_ts") for w in works if w.suspects is not None]
    decided = entries.where(PLAIN_ENTRY).select("start_ts")
    starts = _start_set(_union(suspects, like=decided).join(decided, "start_ts", "left_anti"), held)
    sources = {w.entry.table: w.source for w in works}
    siblings, blind = shadow_cells(run, inventory, starts, sources, proofs_in)
    everyone = entries.select("start_ts").unionByName(starts.frame).where("start_ts is not null")
    known = _frozen(rules.verdicts(everyone, entries, _journal(run, starts), siblings, _hidden(run, starts), blind))
    run.has_journal()  # after it was read, too: what it let go of, or lost, meanwhile was not found
    return known


def shadow_cells(
    run: Run,
    inventory: Sequence[Entry],
    starts: StartSet,
    sources: Mapping[str, Source],
    proofs_in: Mapping[str, Sequence[WorkRange]] | None = None,
) -> tuple[DataFrame, bool]:
    """Shadow cells of the transactions in question in every transactional table, and whether one could not be searched.

    They are as :func:`lowtide_spark.cleaning.rules.verdicts` takes them, with the table where that has to be confirmed first.
    *sources*: what tables are read from, where not live; *proofs_in*: as for :func:`look`.
    """
    empty = run.store.spark.createDataFrame(
        [], "start_ts bigint, timestamp bigint, commit_ts bigint, unconfirmed string"
    )
    if not starts:
        return empty, False
    found, blind = [empty], False
    for entry in transactional(inventory):
        if not entry.enabled:
            blind = True
            continue
        ranges = () if proofs_in is None else proofs_in.get(entry.table, ())
        if proofs_in is not None and not ranges:
            continue
        families = sorted(entry.families | entry.unmarked)
        proofs = run.store.proofs(entry.table, families, starts.span, sources.get(entry.table, LIVE), ranges)
        unconfirmed = F.lit(entry.table if entry.unconfirmed else None).cast("string").alias("unconfirmed")
        found.append(starts.restrict(proofs).select("start_ts", "timestamp", "commit_ts", unconfirmed))
    return reduce(lambda a, b: a.unionByName(b), found), blind


def _journal(run: Run, starts: StartSet) -> DataFrame:
    """What was pruned of the transactions in question."""
    if not run.has_journal() or not starts:
        return run.store.spark.createDataFrame([], "start_ts bigint, commit_ts bigint, odd boolean")
    with run.state() as state:
        since = state.numbered_anew()
    cells = run.store.cells(run.config.state.journal_table, omid.commit_ranges(*starts.span))
    return starts.restrict(omid.journal(cells, since))


def _hidden(run: Run, starts: StartSet) -> DataFrame:
    """Transactions whose row in the commit table lies behind a delete marker: a mark put there could not be read back."""
    if not starts:
        return run.store.spark.createDataFrame([], "start_ts bigint")
    raw = run.store.cells(run.config.omid.commit_table, omid.commit_ranges(*starts.span), raw=True)
    start = omid.long_of(F.substring("row", 2, 8))
    family, mark = bytearray(run.config.omid.commit_family.encode()), bytearray(INVALID_QUALIFIER)
    covers = F.col("kind").isin("delete_family", "delete_family_version") | (
        F.col("kind").isin("delete_column", "delete") & (F.col("qualifier") == mark)
    )
    rows = raw.where((F.length("row") == 9) & (F.col("family") == family) & covers & (F.col("timestamp") >= start))
    return starts.restrict(rows.select(start.alias("start_ts")).distinct())


def _plan_all(run: Run, works: Sequence[Work], known: DataFrame) -> None:
    """Plan every table, and count the invalidation marks that the plans need."""
    for work in works:
        with failures_kept(work):
            _plan(run, work, known)
    report = _marks_report(run)
    report.counts.marked = _marks(works, like=known).count()
    report.counts.unmarked = _wrong_marks(works, like=known).count()


def _plan(run: Run, work: Work, known: DataFrame) -> None:
    """Decide every suspect cell of a table, count the plan, and stop the ranges that hold something unknown."""
    if work.suspects is None:
        return
    cells = work.suspects.where(F.col("kind") != "end_of_range")
    unwatched = [r.region for r in work.ranges if life.unwatched(r.keys, work.facts, run.journal.horizon)]
    actions = rules.cell_actions(cells, known, rules.first_timestamp(run.world_clock), run.journal.horizon, unwatched)
    plan = _frozen(actions)
    unknown = (
        plan.where(F.col("action") == rules.STOP)
        .groupBy("region")
        .agg(
            F.count("*").alias("n"),
            # A damaged shadow cell before the cells beside it that are undecided for its sake.
            F.min_by(F.struct("why", *undecided.PLACE), F.struct(F.col("kind") != "unknown", *undecided.PLACE)).alias(
                "one"
            ),
        )
    )
    for found in unknown.collect():
        one = found.one
        work.stop(
            [found.region],
            f"{found.n} cells that no rule decides, such as row {bytes(one.row).hex()} at timestamp {one.timestamp}: {undecided.told(run, work.entry.table, one)}",
        )
    work.decided = plan
    if work.waits is None:
        work.waits = plan.where(F.col("action") == rules.STOP)
    work.plan = plan.where(~_in_regions(work.stopped))
    _count_plan(work, plan)
    check_budget(
        work.entry.table, work.report.counts.deleted, work.report.counts.cells_read, run.budget(work.entry.table)
    )


def _in_regions(regions: Iterable[str]) -> Column:
    return F.col("region").isin(list(regions))


def _count_plan(work: Work, plan: DataFrame) -> None:
    counts = work.report.counts
    counts.healed = counts.deleted = 0
    counts.skipped.clear()
    work.planned.clear()
    for row in plan.groupBy("action", "why", "region").count().collect():
        work.planned[row.action, row.region] += row["count"]
        if row.region in work.stopped:
            counts.skipped["in a range that is stopped"] += row["count"]
        elif row.action == rules.SKIP:
            counts.skipped[row.why] += row["count"]
        elif row.action == rules.HEAL:
            counts.healed += row["count"]
        else:
            counts.deleted += row["count"]
    foreign = counts.skipped.get(rules.FOREIGN, 0)
    work.report.notes = [n for n in work.report.notes if rules.FOREIGN not in n]
    if foreign:
        work.report.notes.append(
            f"{foreign} cells with timestamps that this oracle cannot have given, {rules.FOREIGN}: left alone"
        )


# -- acting


def _act_all(run: Run, works: Sequence[Work], known: DataFrame, held: ExitStack) -> None:
    for work in works:
        with failures_kept(work):
            _check_turn(run, work)
            _check_life(run, work)
    decided = _mark(run, works, known, held)
    for work in works:
        with failures_kept(work):
            _plan(run, work, decided)
            _act(run, work)
    wrong = _start_set(_wrong_marks(works, like=known), held)
    _marks_report(run).counts.unmarked = _unmark(run, works, wrong.frame) if wrong else 0


def _epochs(run: Run, works: Sequence[Work]) -> list[Claim]:
    """What stands as long as this run is the newest of these tables, of those that it has not given up."""
    with run.state() as state:
        return [state.epoch_claim(w.state) for w in works if w.suspects is not None]


def _check_turn(run: Run, work: Work) -> None:
    """Before the first mark; each write claims the same again, batch by batch.

    Raises:
        FencedError: another run has taken the table since, or the records were reset or lost.
    """
    with run.state() as state:
        state.check_epoch(work.state)


def _check_life(run: Run, work: Work) -> None:
    """After the table was read, and again before it is recorded: it is the one that the run's records speak of.

    What came back in between was never under watch: where the journal has let go of its proofs, absence would be taken for one.

    Raises:
        StoreError: it was restored, made anew, or disabled and enabled since the run listed its regions.
    """
    if work.suspects is not None and not work.state.incarnation.lives(run.store.regions(work.entry.table)):
        msg = (
            f"{work.entry.table} was restored, made anew, or disabled and enabled while the run went on; nothing more is done to it and nothing "
            "is recorded. Run again: it is read from 0"
        )
        raise StoreError(msg)


def _marks_report(run: Run) -> TableReport:
    """The report of what this run does to the commit table."""
    name = run.config.omid.commit_table
    for report in run.summary.tables:
        if report.table == name:
            return report
    run.summary.tables.append(TableReport(name))
    return run.summary.tables[-1]


def _planned(works: Sequence[Work], condition: Column, like: DataFrame) -> DataFrame:
    frames = [
        w.plan.where(condition).select("start_ts") for w in works if w.plan is not None and w.suspects is not None
    ]
    return _union(frames, like=like.select("start_ts")).distinct()


def _marks(works: Sequence[Work], like: DataFrame) -> DataFrame:
    """Transactions of planned deletes that nothing has invalidated yet."""
    return _planned(works, (F.col("action") == rules.DELETE) & (F.col("verdict") == rules.ABSENT), like)


def _wrong_marks(works: Sequence[Work], like: DataFrame) -> DataFrame:
    """Transactions with a mark that are committed after all."""
    return _planned(works, (F.col("action") == rules.HEAL) & F.col("marked"), like)


def _mark(run: Run, works: Sequence[Work], known: DataFrame, held: ExitStack) -> DataFrame:
    """Put the invalidation marks, where no commit entry is there; then read entries and marks again.

    After it nothing is ``absent`` any more: a transaction is marked, or its commit entry was found, or it is undecided.
    """
    absent = _start_set(_marks(works, like=known), held)
    table, family = run.config.omid.commit_table, run.config.omid.commit_family
    report = _marks_report(run)
    report.execute = True
    report.counts.marked = 0
    again = known.select(
        "start_ts", F.lit(False).alias("invalid"), F.lit(0).alias("commit_ts"), F.lit("").alias("problem")
    )
    again = again.limit(0).withColumn("fence", F.lit(False))
    if absent:
        written = run.store.write(_mark_rows(absent.frame, family.encode()), table, holding=_epochs(run, works))
        report.counts.marked = sum(w.done for w in written)
        for failure in (w for w in written if w.failed):
            report.counts.failed += failure.failed
            report.problems.append(f"{failure.failed} invalidation marks could not be put: {failure.failure}")
        planned, answered = absent.frame.count(), by_region(written).total()
        if answered != planned:  # one that was not put is not read back, and decides nothing
            report.problems.append(f"{planned} invalidation marks were planned and {answered} answered for; run again")
        cells = run.store.cells(table, omid.commit_ranges(*absent.span))
        again = _frozen(absent.restrict(omid.entries(cells, family)))
    return _frozen(rules.after_marking(known, again))


def _mark_rows(starts: DataFrame, family: bytes) -> DataFrame:
    return starts.select(
        F.lit("put_if_absent").alias("op"),
        F.lit("marks").alias("region"),
        omid.commit_key(F.col("start_ts")).alias("row"),
        F.lit(family).alias("family"),
        F.lit(INVALID_QUALIFIER).alias("qualifier"),
        F.col("start_ts").alias("timestamp"),
        F.lit(INVALID_VALUE).alias("value"),
        F.lit(family).alias("guard_family"),
        F.lit(COMMIT_QUALIFIER).alias("guard_qualifier"),
    )


def _act(run: Run, work: Work) -> None:
    """Heal, put aside, delete; every count is of acknowledged mutations."""
    if work.plan is None or work.suspects is None:
        return
    counts = work.report.counts
    counts.healed = counts.deleted = 0
    holding = [*_epochs(run, [work]), Life(work.entry.table, work.state.incarnation.stated)]
    run.store.make_durable(
        work.entry.table
    )  # what proved a commit here must outlive what is done for it, and what is recorded
    heals = work.plan.where(F.col("action") == rules.HEAL)
    if not heals.isEmpty():
        work.healed = heals
        written = run.store.write(_heal_rows(heals), work.entry.table, holding=holding)
        counts.healed = _book(work, written, rules.HEAL)
        _skip(work, written, "gone before it was healed")
    deletes = work.plan.where((F.col("action") == rules.DELETE) & ~_in_regions(work.stopped))
    if not deletes.isEmpty():
        folder = put_aside(run, work.entry.table, deletes)
        work.report.notes.append(f"what goes is kept in {folder}; `lowtide restore {run.request.run}` puts it back")
        written = run.store.write(_delete_rows(deletes), work.entry.table, holding=holding)
        counts.deleted = _book(work, written, rules.DELETE)
        if _skip(work, written, "committed before it was deleted"):
            _after_refusal(run, work, deletes, [w.region for w in written if w.refused])


def _look_again(run: Run, work: Work) -> None:
    """Read every healed cell once more, by its key: a range is recorded only where each has its shadow cell, or is gone itself.

    An acknowledgement is the word of a server that may have died since; the record outlives it, and the commit entry goes by the record.
    """
    if work.healed is None or work.suspects is None:
        return
    healed = work.healed.where(~_in_regions(work.stopped))
    for seen in run.store.write(_seen_rows(healed), work.entry.table):
        if seen.refused:
            work.stop(
                [seen.region], f"{seen.refused} healed cells have no shadow cell when they are read again; run again"
            )
        if seen.failed:
            work.stop([seen.region], f"{seen.failed} healed cells could not be read again: {seen.failure}")


def _heal_rows(cells: DataFrame) -> DataFrame:
    key = ("region", "row", "family", "qualifier", "timestamp", "value")
    return cells.select(F.lit("heal_if_present").alias("op"), *key, F.col("tc").alias("commit_ts"))


def _seen_rows(cells: DataFrame) -> DataFrame:
    key = ("region", "row", "family", "qualifier", "timestamp")
    return cells.select(F.lit("see_healed").alias("op"), *key, F.col("tc").alias("commit_ts"))


def _delete_rows(cells: DataFrame) -> DataFrame:
    key = ("region", "row", "family", "qualifier", "timestamp")
    guard = (F.col("family").alias("guard_family"), shadow_of(F.col("qualifier")).alias("guard_qualifier"))
    return cells.select(F.lit("delete_if_absent").alias("op"), *key, *guard)


def shadow_of(qualifier: Column) -> Column:
    """The qualifier of the shadow cell beside a data cell's."""
    return F.concat(F.lit(SHADOW_PREFIX), qualifier, F.lit(SHADOW_SUFFIX))


def _book(work: Work, written: Sequence[Written], action: str) -> int:
    """Count acknowledged mutations; ranges with a failed one, or with one that nobody answered for, are not recorded."""
    counts = work.report.counts
    for w in written:
        counts.bytes_written += w.bytes
        counts.failed += w.failed
        if w.failed:
            work.stop([w.region], f"{w.failed} mutations failed: {w.failure}")
    answered = by_region(written)
    for (planned, region), number in work.planned.items():
        if planned == action and answered[region] != number:
            work.stop(
                [region], f"{number} cells were planned to {action} and {answered[region]} answered for; run again"
            )
    return sum(w.done for w in written)


def _skip(work: Work, written: Sequence[Written], why: str) -> int:
    refused = sum(w.refused for w in written)
    if refused:
        work.report.counts.skipped[why] += refused
    return refused


def _after_refusal(run: Run, work: Work, deletes: DataFrame, regions: Sequence[str]) -> None:
    """A guard found a shadow cell where there was none: committed after all.

    The mark was wrong and goes; the ranges are not recorded, so that the next run looks at them again.
    """
    work.stop(regions, "a cell was committed while the run went on; run again")
    with ExitStack() as held:
        starts = _start_set(deletes, held)
        ranges = [r for r in work.ranges if r.region in set(regions)]
        shadowed = run.store.versions(work.entry.table, ranges, work.families).where(F.col("commit_ts").isNotNull())
        committed = starts.restrict(shadowed.where(F.col("commit_ts") > F.col("timestamp")))
        _unmark(run, [work], committed.select("start_ts").distinct())


def _unmark(run: Run, works: Sequence[Work], starts: DataFrame) -> int:
    """Remove invalidation marks; how many were removed."""
    mutations = unmark_rows(starts, run.config.omid.commit_family)
    written = run.store.write(mutations, run.config.omid.commit_table, holding=_epochs(run, works))
    for failure in (w for w in written if w.failed):
        _marks_report(run).problems.append(f"{failure.failed} wrong marks could not be removed: {failure.failure}")
    return sum(w.done for w in written)


def unmark_rows(starts: DataFrame, family: str) -> DataFrame:
    """Mutations of the commit table that remove the invalidation marks of these transactions."""
    return starts.select(
        F.lit("delete_version").alias("op"),
        F.lit("marks").alias("region"),
        omid.commit_key(F.col("start_ts")).alias("row"),
        F.lit(family.encode()).alias("family"),
        F.lit(INVALID_QUALIFIER).alias("qualifier"),
        F.col("start_ts").alias("timestamp"),
    )


# -- recording


def _stop_if_entries_came(run: Run, works: Sequence[Work], committed: StartSet) -> None:
    """Record nothing where the commit table has gained an entry since it was first read.

    One healthy oracle never adds an entry below the low watermark; a deposed one or a low-latency client may. Cells of
    such a transaction that had shadow cells by then were not rewritten, and its entry must not be taken for dealt with.
    """
    cells = run.store.cells(run.config.omid.commit_table, _rows_of(works))
    now = omid.entries(cells, run.config.omid.commit_family).where(PLAIN_ENTRY)
    came = now.join(committed.frame, "start_ts", "left_anti").count()
    if came:
        for work in works:
            work.stop(
                [r.region for r in work.ranges],
                f"{came} commit entries below the low watermark came while the run went on; run again",
            )


def _record(run: Run, work: Work) -> None:
    """Record the ranges that are done, under the table's epoch, and drop facts that say nothing more."""
    if work.suspects is None:
        return
    _check_life(run, work)
    fresh: list[Fact] = []
    with run.state() as state:
        now = millis(state.server_time())
        for done in work.ranges:
            if done.region in work.stopped:
                continue
            known = cleaned_intervals(done.keys, work.facts)
            # From 0 over all that was recorded before: only that finds what a paused client landed since.
            is_full = done.from_ts == 0 and done.to_ts >= known.prefix_end(0)
            full = now if is_full else last_full_pass(done.keys, work.facts)
            read, since = read_by(run.request.run, done.keys, work.facts, now)
            fact = Fact(
                done.keys,
                known | Intervals.of([(done.from_ts, done.to_ts)]),
                frozenset(work.families),
                work.state.incarnation.number,
                run.request.run,
                now,
                full,
                read | Intervals.of([(done.from_ts, done.to_ts)]),
                since,
                work.entry.shape,
            )
            state.record(work.state, fact)
            fresh.append(fact)
        for old in work.state.facts:
            said_again = all(cleaned_intervals(old.keys, fresh).covers(a, b) for a, b in old.intervals)
            if old.keys not in {f.keys for f in fresh} and said_again:
                state.forget(work.state, old.keys)
    work.report.regions_recorded = len(fresh)
