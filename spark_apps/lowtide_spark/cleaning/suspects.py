"""Finding: which key ranges are read, from what, and the cells in them that lack proof."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lowtide.cleaning.facts import DROPPING, VOID, Region, cleaned_before, valid
from lowtide.cleaning.planning import WorkRange, first_unrecorded, plan_ranges, without_read
from lowtide.errors import StoreError
from lowtide.journal import life
from lowtide.run.summary import TableReport
from lowtide.store.facts import taken_over
from lowtide.store.records import TableState
from lowtide.tables.inventory import Entry, without_compactor
from lowtide.values.intervals import Intervals
from lowtide_spark.cleaning import undecided
from lowtide_spark.cleaning.work import FEW_SUSPECTS, READ_TOGETHER, CleanupWork, together
from lowtide_spark.frames import omid
from lowtide_spark.frames.computed import frozen, frozen_with, union
from lowtide_spark.frames.startset import StartSet, start_set
from lowtide_spark.frames.store import LIVE, TableRead
from lowtide_spark.run.context import Run
from lowtide_spark.run.table_work import begin_report, choose_source, count_read, failures_kept, read_once

#: Rows of the commit table that prove a commit by themselves.
PLAIN_ENTRY = "problem is null and not invalid and not fence and commit_ts is not null"
#: Rows of each of its regions whose keys are read, wherever the interval lies.
KEY_SAMPLE = 100


def prepare_all(run: Run, entries: Sequence[Entry], watermark: int) -> list[CleanupWork]:
    """What to do for each table; takes its epoch where the run will act. One that fails keeps its error in its report,
    and is left out.
    """
    reports = {entry.table: begin_report(run, entry) for entry in entries}
    regions_of, regions = run.store.regions_of(list(reports)), {}
    for table, report in reports.items():
        try:
            regions[table] = regions_of(table)
        except StoreError as error:
            report.problems.append(str(error))
    acting = {table: listed for table, listed in regions.items() if reports[table].execute}
    taken, overtaken = run.state().begin_all(acting)
    for table, state in overtaken.items():
        reports[table].problems.append(taken_over(state))
    states = taken | run.state().read_all(regions.keys() - acting.keys())
    known = [entry for entry in entries if entry.table in states]

    @cache  # asked of few tables, and there are many bounds
    def bound() -> int:
        return run.state().greatest_bound(run.journal)

    works = (_prepared(run, e, reports[e.table], regions[e.table], states[e.table], watermark, bound) for e in known)
    return [work for work in works if work is not None]


def _prepared(
    run: Run,
    entry: Entry,
    report: TableReport,
    regions: list[Region],
    state: TableState,
    watermark: int,
    bound: Callable[[], int],
) -> CleanupWork | None:
    incarnation = state.incarnation.advance(regions)
    try:
        facts = valid(state.facts, entry.families, incarnation, entry.shape)
        if state.facts and not facts:
            report.notes.append(f"{VOID}; it is read from 0")
            if entry.compactor:  # no problem: when this run is through it has healed what is still there
                report.notes.append(f"{DROPPING}. In HBase's shell, at once: {without_compactor(entry.table)}")
        before = cleaned_before(state.facts, incarnation, bound, state.forgotten)
        horizon = run.journal.horizon
        if any(life.unwatched(r.keys, facts, Intervals.up_to(horizon)) for r in regions):
            report.notes.append(_unknown_files(entry.table, horizon))
        ranges = plan_ranges(
            run.request, regions, facts, run.clock, watermark, run.config.table(entry.table).full_pass_every
        )
        if not run.read_only:  # a survey tells of everything, whatever its id
            ranges, left_out = without_read(run.request, ranges, facts)
            report.notes += [left_out] if left_out else []
        from_0 = {r.region for r in ranges if r.from_ts == 0}
        run.note_reading(entry.table, [region for region in regions if region.name in from_0])
    except StoreError as error:
        report.problems.append(str(error))
        return None
    report.regions = len(ranges)
    report.intervals = list(Intervals.of((r.from_ts, r.to_ts) for r in ranges))
    return CleanupWork(report, entry, regions, state, facts, ranges, before)


def _unknown_files(table: str, horizon: int) -> str:
    """What :func:`rewritten` cannot do where the journal tells no more whose entries were pruned."""
    return (
        f"the journal has let go of what was pruned up to {horizon}: committed cells of before that may lie in other "
        "files than their shadow cells, where Omid's compactor loses both. Where it is to be on the table, run in "
        f"HBase's shell, without it: major_compact '{table}'"
    )


def drop_left_snapshots(run: Run, works: Sequence[CleanupWork]) -> None:
    """Drop HBase snapshots of runs that were killed, whether or not there is anything to read: with the table's epoch
    taken nobody reads them any more. One that cannot be dropped makes the run red and keeps nothing from being cleaned.
    """
    acting = {w.entry.table: w for w in works if w.execute}
    for left in run.store.left_snapshots(acting) if acting else ():
        try:
            run.store.drop_snapshot(left.name)
        except StoreError as error:
            acting[left.table].report.problems.append(str(error))


def entries(run: Run, works: Sequence[CleanupWork]) -> DataFrame:
    """The commit table's rows for all that will be read, frozen. One that is of an unknown form makes the run red.

    Raises:
        StoreError: there are rows whose keys are of no form that is known; nothing is known of any transaction then.
    """
    table, family = run.config.omid.commit_table, run.config.omid.commit_family
    read = omid.entries(run.store.cells(table, rows_of(works)), family)
    entries, [counted] = frozen_with(read, (), F.count_if(F.col("problem").isNotNull()).alias("odd"))
    # Another key generator's rows lie anywhere: some of each region are read, beside those of the interval.
    elsewhere = omid.entries(run.store.cells(table, first=KEY_SAMPLE), family)
    strange = entries.unionByName(elsewhere).where("start_ts is null")
    ((problem,),) = strange.agg(F.min("problem")).collect()
    if problem is not None:
        msg = (
            f"{table} holds rows that are no transaction's by the keys that Omid writes by default: {problem}; "
            "with keys of another generator no commit can be looked up, so nothing is cleaned; see that "
            "omid.commit_table names the oracle's table and that the oracle has its default key generator, and take "
            "out rows that are nobody's"
        )
        raise StoreError(msg)
    if counted.odd:
        run.summary.problems += [f"{table}: {problem}" for problem in undecided.odd_entries(table, entries)]
    return entries


def rows_of(works: Sequence[CleanupWork]) -> list[WorkRange]:
    """Where the commit table, and the journal, have the transactions of all that will be read."""
    spans = [(r.from_ts, r.to_ts) for w in works for r in w.ranges]
    return omid.commit_ranges(min((a for a, _ in spans), default=0), max((b for _, b in spans), default=0))


def pruned(run: Run, works: Sequence[CleanupWork], held: ExitStack) -> StartSet | None:
    """Transactions of what will be read that had a commit entry, by the journal. Asked after the commit table: pruning
    moves them from there to here.

    What is older than the oracle counts as well: it says of no transaction that it committed, only whose cells with a
    shadow cell to write anew. None, and nothing read, where the journal has none, as of increments: what was pruned is
    below every region's watermark.
    """
    first = min((r.from_ts for w in works for r in w.ranges), default=None)
    if first is None or not run.has_journal():
        return None
    name = run.config.state.journal_table
    with run.store.connections.connection() as connection:
        if not life.reaches(connection, name, first):
            return None
    rows = omid.journal(run.store.cells(name, rows_of(works)))
    return start_set(rows.where("start_ts is not null and commit_ts is not null"), held)


def rewritten(work: CleanupWork, committed: StartSet, pruned: StartSet | None, held: ExitStack) -> StartSet:
    """Transactions whose cells are suspects with their shadow cells, too: those with a commit entry, and those that had
    one when nothing was recorded.

    A shadow cell that lies in another file than its data is lost to Omid's compactor. The entry goes when every such
    pair was written anew, but a table that comes back from an HBase snapshot has them as they lay before. Where a fact
    tells of a range they were written anew since.
    """
    if not pruned or pruned.span[1] <= (first := first_unrecorded(work.ranges, work.facts)):
        return committed
    return start_set(committed.frame.unionByName(pruned.frame.where(F.col("start_ts") >= first)), held)


def find(run: Run, work: CleanupWork, rewritten: StartSet, held: ExitStack) -> None:
    """Find from what the table's suspects are read, and by which filter, for :func:`read_all`."""
    if not work.ranges:
        return
    full = any(r.from_ts == 0 for r in work.ranges)
    work.source = choose_source(run, work, held, full=full, sweep=work.execute)
    work.report.read = work.source.name
    work.filter = rewritten


def read_all(run: Run, works: Sequence[CleanupWork]) -> None:
    """Read every table's suspects, once, with its ``table``, and count what was read. A table that fails keeps its
    error and hides no other.
    """
    readable = [work for work in works if work.filter is not None]
    together(readable, lambda group: _read(run, group), lambda work: work.weight_before, READ_TOGETHER)


def _read(run: Run, group: Sequence[CleanupWork]) -> None:
    group = [work for work in group if work.filter is not None]
    if not group:  # it was given up when it was read with others
        return
    suspects, read = read_once(_asked(run, group))
    mine: dict[str, list[Row]] = {}
    for row in read:
        mine.setdefault(row.table, []).append(row)
    for work in group:
        work.suspects = suspects
        with failures_kept(work):
            count_read(work, mine.get(work.table, []), len(work.ranges), "key ranges")
    weight = sum(work.weight for work in group)
    if len(group) > 1 and 0 < weight <= FEW_SUSPECTS:  # else each table would be looked for in the key ranges of all
        suspects = frozen(suspects.coalesce(1))
    nothing = suspects.limit(0)  # of those with nothing in question, of which nothing is asked any more
    for work in (work for work in group if work.suspects is not None):
        with failures_kept(work):
            if len(group) > 1:
                own = nothing if work.idle else suspects.where(F.col("table") == work.table)
                work.suspects = frozen(own) if weight > FEW_SUSPECTS and not work.idle else own


def _asked(run: Run, group: Sequence[CleanupWork]) -> DataFrame:
    """The suspects of these tables, not read yet: those that are live and have one filter by one read of them all."""
    alike: dict[StartSet, list[CleanupWork]] = {}
    frames = []
    for work in group:
        assert work.filter is not None
        if len(group) > 1 and work.source is LIVE:
            alike.setdefault(work.filter, []).append(work)
        else:
            versions = run.store.versions(work.table, work.ranges, work.families, work.source)
            frames.append(work.filter.suspects(versions))
    for starts, works in alike.items():
        reads = [TableRead(work.table, work.families, work.ranges) for work in works]
        frames += [starts.suspects(versions) for versions in run.store.versions_of(reads)]
    return union(frames, like=frames[0])
