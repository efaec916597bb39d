"""The survey: what a cleanup would find and do, and what the owner should know. Writes nothing to the store.

It finds and decides as ``orphan_cleanup`` does, by the same code
(:func:`lowtide_spark.cleaning.orphans.find_and_decide`); what is its own is adding up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide.errors import BudgetError, StoreError
from lowtide.run.budget import check_budget
from lowtide.survey.estimate import Estimate, draw, total
from lowtide.survey.findings import AgeRow, CommitTableFindings, Notice, Severity, Survey, TableFindings
from lowtide.survey.notices import table_notices, timestamp_store_notices, watermark_notices
from lowtide.survey.page import render
from lowtide.survey.terminal import print_survey
from lowtide.tables.inventory import Descriptor, Entry, Kind
from lowtide.terminal.console import new_console
from lowtide.values.formats import ALLOTTED_ROW
from lowtide_spark.cleaning import rules
from lowtide_spark.cleaning.orphans import find_and_decide
from lowtide_spark.cleaning.suspects import prepare_all
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames import omid
from lowtide_spark.frames.inventory import left_behind, take_inventory, transactional
from lowtide_spark.frames.store import FOREVER
from lowtide_spark.run.context import Run
from lowtide_spark.run.progress import progress

AGES = (
    ("up to an hour", timedelta(hours=1)),
    ("up to a day", timedelta(days=1)),
    ("up to 7 days", timedelta(days=7)),
    ("up to 30 days", timedelta(days=30)),
)
OLDER, UNKNOWN_AGE = "older", "of unknown age"
#: Growth is counted over the last days.
WINDOW = timedelta(days=7)
#: Below this there is too little to tell growth from.
LEAST_WINDOW = timedelta(hours=1)


def survey(run: Run) -> None:
    """The job ``survey``."""
    found = take(run)
    print_survey(new_console(), found)
    for path, content in ((run.options.json, found.to_json), (run.options.html, lambda: render(found))):
        if path is not None:
            path.write_text(content(), "utf-8")


def take(run: Run) -> Survey:
    """Look at the store; see the module's text."""
    doubts: list[str] = []
    watermark = run.read_low_watermark(doubts)
    inventory = take_inventory(run.store, run.summary.problems)
    descriptors = {d.table: d for d in run.store.descriptors()}
    works = prepare_all(run, run.choose(inventory), watermark)
    regions = {w.entry.table: len(w.ranges) for w in works}
    for work in works:
        work.ranges = draw(work.ranges, run.options.sample, f"{run.request.run}/{work.entry.table}")
    run.phase("plan")
    with ExitStack() as held:
        sampled = None if run.options.sample is None else {w.entry.table: w.ranges for w in works}
        with progress(run.store.spark, "survey"):
            _find_and_decide(run, works, inventory, held, sampled)
            if sampled is not None:
                for work in works:
                    _go_on(work)
            tables = tuple(_findings(w, regions[w.entry.table]) for w in works)
            commit_table = _commit_table(run, watermark)
    run.phase("count")
    age = _watermark_age(run, watermark)
    return Survey(
        at=datetime.now(UTC),
        run=run.request.run,
        low_watermark=watermark,
        watermark_age=age,
        tables=tables,
        commit_table=commit_table,
        marks_to_put=run.summary.totals.marked,
        notices=tuple(_notices(run, doubts, inventory, descriptors, works, watermark, age)),
        sample=run.options.sample,
        rate=_rate(run),
        seconds=run.summary.phases.get("find", 0.0) + run.summary.phases.get("decide", 0.0),
        problems=tuple(run.summary.problems),
    )


def _rate(run: Run) -> int:
    """At which rate all tables were read; 0: at none, or not all at the same."""
    rates = {run.store.rate(table.table).reads or 0 for table in run.summary.tables}
    return rates.pop() if len(rates) == 1 else 0


def _find_and_decide(
    run: Run,
    works: Sequence[CleanupWork],
    inventory: Sequence[Entry],
    held: ExitStack,
    sampled: Mapping[str, Sequence[WorkRange]] | None,
) -> None:
    """Find and decide; where the commit table cannot be understood no table is judged, and the rest is still
    reported.
    """
    try:
        find_and_decide(run, works, inventory, held, sampled)
    except StoreError as error:
        for work in works:
            work.give_up("it was not judged, since the commit table cannot be understood")
        run.summary.problems.append(str(error))


# -- tables


def _go_on(work: CleanupWork) -> None:
    """In a sample no range is stopped: what cannot be decided is counted, a region that was not read may prove it."""
    if work.decided is None or work.suspects is None:
        return
    work.go_on()
    work.plan = work.decided
    undecided = work.decided.where(F.col("action") == rules.STOP).count()
    skipped = work.decided.where(F.col("action") == rules.SKIP).groupBy("why").count().collect()
    work.report.counts.skipped = Counter({r.why: r["count"] for r in skipped})
    if undecided:
        work.report.counts.skipped["undecided in this sample"] = undecided


def _findings(work: CleanupWork, regions: int) -> TableFindings:
    """Add up one table's plan, region by region."""
    report = work.report
    if work.suspects is None or work.plan is None:
        return TableFindings(work.entry.table, regions, 0, problems=tuple(report.problems), names=work.entry.names)
    read = work.read_by_region
    planned = {} if work.idle else {r.region: r for r in _planned_by_region(work.plan).collect()}
    names = [r.region for r in work.ranges]
    most_cells, most_bytes = (max((read[n][i] for n in names), default=0) for i in (0, 1))

    def estimate(column: str, most: int) -> Estimate:
        return total([getattr(planned[n], column) if n in planned else 0 for n in names], regions, most)

    return TableFindings(
        table=work.entry.table,
        regions=regions,
        regions_read=len(names),
        cells=total([read[n][0] for n in names], regions, most_cells),
        bytes=total([read[n][1] for n in names], regions, most_bytes),
        orphans=estimate("orphans", most_cells),
        orphan_bytes=estimate("orphan_bytes", most_bytes),
        heals=estimate("heals", most_cells),
        heal_bytes=estimate("heal_bytes", most_bytes),
        others=dict(sorted(report.counts.skipped.items())),
        problems=tuple(report.problems),
        names=work.entry.names,
    )


def _planned_by_region(plan: DataFrame) -> DataFrame:
    """Cells to delete and to heal by region, with the bytes that go and those that healing writes.

    Healing writes the data again and the shadow cell.
    """
    deletes, heals = F.col("action") == rules.DELETE, F.col("action") == rules.HEAL
    data = omid.key_value_bytes()
    return plan.groupBy("region").agg(
        F.count_if(deletes).alias("orphans"),
        F.coalesce(F.sum(F.when(deletes, data)), F.lit(0)).alias("orphan_bytes"),
        F.count_if(heals).alias("heals"),
        F.coalesce(F.sum(F.when(heals, data + omid.shadow_bytes())), F.lit(0)).alias("heal_bytes"),
    )


# -- the commit table


def _commit_table(run: Run, watermark: int) -> CommitTableFindings:
    table, family = run.config.omid.commit_table, run.config.omid.commit_family
    cells = run.store.cells(table, omid.commit_ranges(0, FOREVER)).where(F.length("row") == 9)
    ((size,),) = cells.agg(F.sum(omid.key_value_bytes())).collect()
    rows = omid.entries(cells, family).localCheckpoint()
    mark = F.col("invalid")
    odd = F.col("problem").isNotNull() | F.col("fence") | F.col("start_ts").isNull()
    entry = ~mark & ~odd & F.col("commit_ts").isNotNull()
    edges = _age_edges(run)
    bucket = F.lit(edges[-1][0])
    for label, from_ts in reversed(edges[:-1]):
        bucket = F.when(F.col("start_ts") >= from_ts, F.lit(label)).otherwise(bucket)
    counted = rows.groupBy(bucket.alias("age")).agg(
        F.count_if(entry).alias("entries"), F.count_if(mark).alias("marks"), F.count_if(~entry & ~mark).alias("others")
    )
    by_age = {r.age: AgeRow(r.age, r.entries, r.marks, r.others) for r in counted.collect()}
    per_day, days = _growth(run, rows, watermark)
    return CommitTableFindings(
        rows=tuple(by_age.get(label, AgeRow(label, 0, 0, 0)) for label, _ in edges),
        settled=rows.where(F.col("start_ts") <= watermark).count(),
        bytes=int(size or 0),
        per_day=per_day,
        window_days=days,
    )


def _age_edges(run: Run) -> list[tuple[str, int]]:
    """Ages, youngest first, each with the start timestamp that it begins at."""
    try:
        return [*((label, run.clock.timestamp(run.request.now - age)) for label, age in AGES), (OLDER, 0)]
    except StoreError:  # a counter without time samples
        return [(UNKNOWN_AGE, 0)]


def _growth(run: Run, rows: DataFrame, watermark: int) -> tuple[float | None, float | None]:
    """How many rows of the last days' transactions stayed, a day, and how many days were counted.

    Only rows at or below the low watermark: those above it may be of transactions that are about to complete.
    """
    try:
        begin = run.clock.timestamp(run.request.now - WINDOW)
    except StoreError:
        return None, None
    recent = rows.where((F.col("start_ts") >= begin) & (F.col("start_ts") <= watermark))
    ((number, oldest),) = recent.agg(F.count("*"), F.min("start_ts")).collect()
    end = run.clock.time(watermark)
    start = run.clock.time(oldest) if oldest is not None else None
    if end is None or start is None:
        return None, None
    window = end - max(start, run.request.now - WINDOW)
    if window < LEAST_WINDOW:
        return None, None
    days = window / timedelta(days=1)
    return round(number / days, 2), round(days, 3)


# -- what to know


def _watermark_age(run: Run, watermark: int) -> float | None:
    given = run.clock.time(watermark)
    return None if given is None else round((run.read_at - given).total_seconds(), 1)


def _notices(
    run: Run,
    doubts: Sequence[str],
    inventory: Sequence[Entry],
    descriptors: Mapping[str, Descriptor],
    works: Sequence[CleanupWork],
    watermark: int,
    age: float | None,
) -> list[Notice]:
    found = [Notice(Severity.DANGER, "", doubt) for doubt in doubts]
    found += watermark_notices(watermark, age)
    found += timestamp_store_notices(run.config.omid.timestamp_table, _persisted(run, descriptors), watermark)
    fact, remedy = left_behind(
        run.config, list(descriptors.values()), {e.table: e.families for e in transactional(inventory)}
    )
    found += [Notice(Severity.CAUTION, "", fact, remedy)] if fact else []
    for entry in inventory:
        if entry.kind is not Kind.PLAIN and entry.table in descriptors:
            found += table_notices(entry, descriptors[entry.table])
    for work in works:
        found += [Notice(Severity.NOTE, work.entry.table, note) for note in work.report.notes]
        counts = work.report.counts
        try:
            check_budget(work.entry.table, counts.deleted, counts.cells_read, run.config.table(work.entry.table).budget)
        except BudgetError as error:
            found.append(Notice(Severity.NOTE, work.entry.table, str(error)))
    return sorted(found, key=lambda n: (list(Severity).index(n.severity), n.table))


def _persisted(run: Run, descriptors: Mapping[str, Descriptor]) -> int | None:
    """The highest timestamp that the oracle has stored in HBase; None where there is none."""
    table = run.config.omid.timestamp_table
    if table not in descriptors:
        return None
    cells = run.store.cells(table).where(F.col("row") == F.lit(ALLOTTED_ROW)).collect()
    return max((int.from_bytes(bytes(c.value), "big") for c in cells if len(c.value) == 8), default=None)
