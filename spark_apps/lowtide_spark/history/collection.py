"""History GC: what no snapshot at or after a table's ancient history mark needs is put aside and deleted.

Its order is what keeps readers safe (docs/history.md): the plan is made for a mark that every known limit allows; then the mark is
published as intended, then the holds are read again, then the mark is applied, and only then anything is deleted. A reader
looks at the applied mark when it begins and when it ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.facts import Region, prune_bound
from lowtide.cleaning.planning import WorkRange
from lowtide.config import Read
from lowtide.errors import ApprovalError, LowtideError, StoreError, UsageError
from lowtide.history.compaction import RegionFamily, last_compactions, still_there
from lowtide.history.mark import By, Limit, at_most, limits, mark_of
from lowtide.run.budget import check_budget
from lowtide.run.summary import TableReport
from lowtide.store.records import History, Intent
from lowtide.tables.inventory import Entry
from lowtide.values.clock import millis
from lowtide_spark.cleaning import rules
from lowtide_spark.cleaning.watermarks import region_marks
from lowtide_spark.frames.inventory import take_inventory
from lowtide_spark.frames.sideline import put_aside
from lowtide_spark.frames.sideline import sweep as sweep_sideline
from lowtide_spark.frames.store import FOREVER, LIVE, Life, Source, Written, by_region
from lowtide_spark.history import superseded
from lowtide_spark.history.compaction import compact, remember
from lowtide_spark.run.context import Run
from lowtide_spark.run.passage import failures_kept

#: Regions that the summary tells of, those that lose most.
MOST_REGIONS = 1000


@dataclass
class Work:
    """One table of the run."""

    entry: Entry
    report: TableReport
    execute: bool
    regions: list[Region]
    limits: list[Limit]
    mark: int
    #: The mark and the claims to it before anything was read.
    seen: History
    cells: DataFrame | None = None
    plan: DataFrame | None = None
    #: Regions that are not touched (any more), with the reason.
    stopped: dict[str, str] = field(default_factory=dict)
    #: Bytes that earlier runs removed and no major compaction has dropped yet.
    uncompacted: Counter[RegionFamily] = field(default_factory=Counter)
    #: What goes, by region, see :func:`_count_plan`.
    by_region: list[dict[str, Any]] = field(default_factory=list)
    #: Bytes read, and those of them that go.
    examined: dict[RegionFamily, int] = field(default_factory=dict)
    going: Counter[RegionFamily] = field(default_factory=Counter)

    @property
    def table(self) -> str:
        return self.entry.table

    @property
    def life(self) -> Life:
        """The table as it was before anything of it was read; in what came back in its place what replaced a version may be missing."""
        return Life.of(self.table, self.regions)

    def stop(self, regions: Iterable[str], reason: str) -> None:
        """Touch nothing (more) in these regions."""
        for region in regions:
            if region not in self.stopped:
                self.stopped[region] = reason
                self.report.problems.append(f"region {region}: {reason}")

    def give_up(self, reason: str) -> None:
        """Do nothing more for this table."""
        self.report.problems.append(reason)
        self.cells = None
        self.going.clear()

    def report_regions(self) -> None:
        """Put the regions of which most goes into the summary, which is one cell of the state table."""
        self.report.by_region = sorted(self.by_region, key=lambda r: -r["bytes"])[:MOST_REGIONS]


def collect_history(run: Run) -> None:
    """The job ``history_gc``."""
    watermark = run.read_low_watermark()
    inventory = take_inventory(run.store)
    _check_names(run, inventory)
    bound, bound_by = _bound(run, inventory, watermark)
    prepared = (_prepare(run, e, watermark, bound, bound_by) for e in run.choose(inventory))
    works = [w for w in prepared if w is not None]
    run.summary.execute = any(w.execute for w in works)
    run.phase("plan")
    with ExitStack() as held:
        for work in works:
            with failures_kept(work):
                _find(run, work, held)
        run.phase("find")
        for work in works:
            with failures_kept(work):
                _plan(run, work)
        run.phase("decide")
        acting = [w for w in works if w.execute and w.cells is not None]
        if acting:
            run.check_approved()
            run.check_low_watermark_again()
            for work in acting:
                with failures_kept(work):
                    _act(run, work)
            run.phase("act")
    compacting = [w for w in works if run.options.compact or run.config.table(w.table).compaction.always]
    for work in compacting:
        with failures_kept(work):
            compact(run, work)
    if compacting:
        run.phase("compact")
    if run.summary.execute:
        _clear_holds(run)
        sweep_sideline(run)


def _check_names(run: Run, inventory: Sequence[Entry]) -> None:
    """Refuse an age for a table that is not there: it may be the misspelt name of one whose history is to be kept."""
    known = {e.table for e in inventory}
    absent = sorted(n for n, own in run.config.tables.items() if n not in known and "history_max_age" in own)
    if absent:
        msg = (
            f"the configuration has history_max_age for {', '.join(absent)}, and HBase has no such table; nothing is removed from any. Mend the name "
            "under tables:, or take it out"
        )
        raise UsageError(msg)


# -- the mark


def _bound(run: Run, inventory: Sequence[Entry], watermark: int) -> tuple[int, str]:
    """The prune bound as of now, and what holds it. Removing a shadow cell here may remove the proof of a cell anywhere below it."""
    marks, blocked = region_marks(run, inventory)
    bound, blockers = prune_bound(marks, blocked, watermark)
    run.summary.bound = bound
    run.summary.tables = [t for t in run.summary.tables if t.problems]
    if not blockers:
        return bound, "every region is cleaned up to it"
    first = blockers[0]
    more = f" and {len(blockers) - 1} more" if len(blockers) > 1 else ""
    return bound, f"{first.table} {first.keys or ''}: {first.reason}{more}".replace("  ", " ")


def _prepare(run: Run, entry: Entry, watermark: int, bound: int, bound_by: str) -> Work | None:
    execute = run.executes(entry.table)
    report = TableReport(entry.table, execute=execute)
    run.summary.tables.append(report)
    if entry.unmarked:
        report.notes.append(
            f"families {sorted(entry.unmarked)} hold shadow cells but bear no mark; they are left alone"
        )
    try:
        regions = run.store.regions(entry.table)
        with run.state() as state:
            # Claims before holds: a restore takes its hold first, so one that is not seen here is seen when this run claims.
            seen = state.history(entry.table)
            holds = state.holds(entry.table)
            uncompacted = still_there(state.uncompacted(entry.table), last_compactions(regions))
        found = limits(
            ages=run.config.table(entry.table).ages,
            # Where the oracle's clock is behind, what is young by it would be old by HBase's.
            now=run.request.now + min(run.oracle_ahead, timedelta()),
            as_of=run.request.end,
            clock=run.clock,
            low_watermark=watermark,
            bound=bound,
            bound_by=bound_by,
            holds=holds,
        )
    except StoreError as error:
        report.problems.append(str(error))
        return None
    if run.approved is not None:
        part = run.approved.parts.get(entry.table)
        mark = part.mark if part and part.mark else 0
        found.append(Limit(mark, f"the plan of run {run.approved.run}", "make a new plan", By.PLAN))
    work = Work(entry, report, execute, regions, found, mark_of(found)[0], seen, uncompacted=uncompacted)
    _tell_mark(run, work, seen.applied)
    return work


def _tell_mark(run: Run, work: Work, applied: int) -> None:
    """Put the mark, and what keeps it from moving on, into the report; what is no mere age is a blocker of the run."""
    mark, holding = mark_of(work.limits)
    told = [
        {"mark": at_most(x.timestamp), "reason": x.what, "remedy": x.remedy, "since": x.since and millis(x.since)}
        for x in holding
    ]
    work.report.mark = {"mark": mark, "applied": applied, "held_by": told}
    work.report.intervals = [(0, mark + 1)] if mark else []
    if mark < applied:
        work.report.notes.append(
            f"the mark {applied} was applied before and stays: what the settings allow now, {mark}, is behind it"
        )
    run.summary.blockers = [b for b in run.summary.blockers if b["table"] != work.table]
    if not any(limit.by in (By.AGE, By.PLAN) for limit in holding):
        where = {"table": work.table, "region": None, "keys": None, "watermark": mark}
        run.summary.blockers += [{**where, **one} for one in told]


# -- finding and deciding


def _find(run: Run, work: Work, held: ExitStack) -> None:
    """Read, once, what may go and whatever stands in its way."""
    report = work.report
    if work.mark == 0:
        report.notes.append("nothing may go: " + "; ".join(limit.what for limit in mark_of(work.limits)[1]))
        return
    source = _source(run, work, held)
    report.read, report.regions = source.name, len(work.regions)
    # No upper end: whatever lies under the empty qualifier decides what family tombstones hide, however young it is.
    ranges = [WorkRange(r.name, r.keys, 0, FOREVER) for r in work.regions]
    families = sorted(work.entry.families)
    first = rules.first_timestamp(run.world_clock)
    # Decided on what was read now: a cache would be read again where a block is lost, from a store that has moved on.
    read = (
        run.store.versions(work.table, ranges, families, source, traces=True)
        .where(superseded.wanted(work.mark, first))
        .localCheckpoint()
    )
    is_end = F.col("kind") == "end_of_range"
    counted = read.agg(
        F.sum("cells_read"), F.sum("bytes_read"), F.count_if(~is_end), F.count_distinct(F.when(is_end, F.col("region")))
    ).first()
    counts = report.counts
    counts.cells_read, counts.bytes_read, counts.candidates, seen = (int(value or 0) for value in counted)
    if seen != len(ranges):
        msg = f"{len(ranges)} regions of {work.table} were to be read, {seen} were read to their end"
        raise StoreError(msg)
    ends = read.where(is_end & F.col("family").isNotNull())
    work.examined = {
        (r.region, bytes(r.family).decode()): r.bytes
        for r in ends.groupBy("region", "family").agg(F.sum("bytes_read").alias("bytes")).collect()
    }
    work.cells = read.where(~is_end)


def _source(run: Run, work: Work, held: ExitStack) -> Source:
    """The live table, or a snapshot made now: every run reads from 0."""
    settings = run.config.table(work.table)
    readable = "hbase.rootdir" in run.config.hbase.properties
    size = sum(r.store_bytes for r in work.regions)
    large = settings.read is Read.AUTO and readable and size >= settings.snapshot_from_bytes
    if settings.read is Read.SNAPSHOT or large:
        return held.enter_context(run.store.snapshot(work.table, run.request.run, sweep=False))
    return LIVE


def _plan(run: Run, work: Work) -> None:
    """Decide every cell for the work's mark, count the plan, stop the regions that hold something unknown, keep to the budget."""
    if work.cells is None:
        return
    plan = superseded.plan(work.cells, work.mark, rules.first_timestamp(run.world_clock)).localCheckpoint()
    unknown = (
        plan.where(F.col("action") == superseded.STOP)
        .groupBy("region")
        .agg(
            F.count("*").alias("n"),
            F.min_by(F.struct("why", F.hex("row").alias("row"), "timestamp"), "row").alias("one"),
        )
    )
    for found in unknown.collect():
        one = found.one
        work.stop(
            [found.region],
            f"{found.n} cells that no rule decides, such as row {one.row} at timestamp {one.timestamp}: {one.why}; "
            "nothing is removed from it",
        )
    work.plan = plan
    _count_plan(work)
    counts = work.report.counts
    check_budget(work.table, counts.deleted, counts.cells_read, run.budget(work.table))


def _going(work: Work) -> DataFrame:
    """The planned cells that may still be removed."""
    assert work.plan is not None
    return work.plan.where((F.col("action") == superseded.REMOVE) & ~_in_regions(work.stopped))


def _in_regions(regions: Iterable[str]) -> Column:
    return F.col("region").isin(list(regions))


def _count_plan(work: Work) -> None:
    counts = work.report.counts
    counts.skipped.clear()
    assert work.plan is not None
    kept = work.plan.where((F.col("action") == superseded.KEEP) & F.col("why").isNotNull())
    for row in kept.groupBy("why").count().collect():
        counts.skipped[row.why] += row["count"]
    _count_regions(work)
    work.report_regions()
    _total(work)


def _count_regions(work: Work) -> None:
    going = _going(work)
    markers = {r.region: r["count"] for r in superseded.mutations(going).groupBy("region").count().collect()}
    is_version = F.col("kind") != "shadow"
    rows = going.groupBy("region", "family").agg(
        F.count_if(is_version).alias("versions"),
        F.count_if(~is_version).alias("shadows"),
        F.sum("bytes").alias("bytes"),
    )
    work.going.clear()
    found: dict[str, Counter[str]] = {}
    for r in rows.orderBy("region").collect():
        counts = found.setdefault(r.region, Counter(versions=0, shadows=0, bytes=0))
        counts.update(versions=r.versions, shadows=r.shadows, bytes=r.bytes)
        work.going[r.region, bytes(r.family).decode()] = r.bytes
    work.by_region = [{"region": r, **counts, "markers": markers.get(r, 0)} for r, counts in found.items()]


def _total(work: Work) -> None:
    """Sum the regions that are not stopped into the table's counts."""
    total = Counter[str]()
    for region in work.by_region:
        if region["region"] not in work.stopped:
            total.update({name: region[name] for name in ("versions", "shadows", "bytes", "markers")})
    counts = work.report.counts
    counts.deleted, counts.markers = total["versions"] + total["shadows"], total["markers"]
    counts.bytes_removed = total["bytes"]


# -- acting


def _act(run: Run, work: Work) -> None:
    """Apply the mark, put aside what goes, delete it: tombstones of families after all that they hid."""
    counts = work.report.counts
    counts.deleted = counts.markers = counts.bytes_removed = 0
    run.store.check_life(work.life)
    intent = _apply_mark(run, work)
    going = _going(work)
    if not going.isEmpty():
        run.store.check_life(work.life)
        run.store.make_durable(work.table)  # what replaced a version must outlive the version
        with _removal(run, intent) as claim:
            _remove(run, work, going, claim)
    work.going = Counter({store: size for store, size in work.going.items() if store[0] not in work.stopped})
    remember(run, work, work.regions)


@contextmanager
def _removal(run: Run, intent: Intent) -> Iterator[Intent]:
    """Keep restores off the table: what one put back beside a run that removes could be shown again for good."""
    with run.state() as state:
        claim = state.begin_removal(intent, run.request.run)
    try:
        yield claim
    finally:
        # Where this is lost, restores wait for a day.
        with suppress(Exception), run.state() as state:
            if intent.table in run.store.unfinished:
                # Executors that the driver lost may write on: a new claim ends that at their next batch, and restores wait all the same.
                state.begin_removal(claim, run.request.run)
            else:
                state.end_removal(claim, run.request.run)


def _remove(run: Run, work: Work, going: DataFrame, claim: Intent) -> None:
    folder = put_aside(run, work.table, going)
    work.report.notes.append(f"what goes is kept in {folder}; `lowtide restore {run.request.run}` puts it back")
    mutations = superseded.mutations(going)
    answered = Counter[str]()
    for last in (False, True):
        now = mutations.where((F.col("last") == last) & ~_in_regions(work.stopped)).drop("last")
        if not now.isEmpty():
            run.store.check_life(work.life)
            with run.state() as state:
                state.check_claim(claim)
                holding = [state.mark_claim(claim), work.life]
            written = run.store.write(now, work.table, holding=holding)
            _book(work, written)
            answered.update(by_region(written))
    run.store.check_life(work.life)
    _reckon(work, answered)
    _total(work)


def _reckon(work: Work, answered: Mapping[str, int]) -> None:
    """Every mutation that was planned must have been answered for."""
    for region in work.by_region:
        name, planned = region["region"], region["markers"]
        if name not in work.stopped and answered.get(name, 0) != planned:
            work.stop([name], f"{planned} mutations were planned and {answered.get(name, 0)} answered for; run again")


def _apply_mark(run: Run, work: Work) -> Intent:
    """Publish the mark as intended, *then* read the holds, then apply: a hold written since either shows here or sees the intention.

    A hold that shows here lowers the mark, and the plan is made again for it from what was read.
    """
    try:
        with run.state() as state:
            intent = state.intend(work.table, work.mark, run.request.run, work.seen)
            holds = [h for h in state.holds(work.table) if h.counts(run.request.now)]
            mark = min([work.mark, *(at_most(h.timestamp) for h in holds)])
            if mark < work.mark:
                intent = state.lower_intent(intent, mark, run.request.run)
        if mark < work.mark:
            _lower(run, work, mark, [h.id for h in holds if at_most(h.timestamp) == mark])
        about = {"run": run.request.run, "held_by": (work.report.mark or {}).get("held_by", [])}
        with run.state() as state:
            applied = state.apply_mark(intent, about)
    except BaseException:
        _withdraw(run, work.table)
        raise
    work.report.mark = {**(work.report.mark or {}), "applied": applied}
    return intent


def _withdraw(run: Run, table: str) -> None:
    """Intend no more than is applied, so that no hold is refused for a run that ended without applying."""
    with suppress(LowtideError), run.state() as state:
        known = state.history(table)
        if known.claim is not None and known.intent.get("run") == run.request.run:
            state.lower_intent(Intent(table, known.intended, known.claim), known.applied, run.request.run)


def _lower(run: Run, work: Work, mark: int, holds: Sequence[str]) -> None:
    if run.approved is not None:
        msg = (
            f"hold {', '.join(holds)} on {work.table} came while the run went on, so that the plan that was approved cannot be done; "
            "nothing was done to the table. Make a new plan and have that approved"
        )
        raise ApprovalError(msg)
    work.report.notes.append(
        f"hold {', '.join(holds)} came while the run went on; it works with the mark {mark}, not {work.mark}"
    )
    work.mark = mark
    work.report.mark = {**(work.report.mark or {}), "mark": mark}
    _plan(run, work)
    work.report.counts.deleted = work.report.counts.markers = work.report.counts.bytes_removed = 0


def _book(work: Work, written: Sequence[Written]) -> None:
    """Count acknowledged mutations; a region with one that failed or was refused gets no more, and counts as not done.

    What was refused has data beside it now, which a family tombstone of the next step may hide.
    """
    counts = work.report.counts
    for w in written:
        counts.bytes_written += w.bytes
        counts.failed += w.failed
        if w.refused:
            work.stop([w.region], f"data came beside {w.refused} lone shadow cells while the run went on; run again")
        if w.failed:
            work.stop([w.region], f"{w.failed} mutations failed: {w.failure}; what of it is gone the next run will see")


def _clear_holds(run: Run) -> None:
    """Remove holds that expired."""
    with run.state() as state:
        for hold in state.holds():
            if not hold.counts(run.request.now):
                state.drop_hold(hold)
