"""Reading what may go, and deciding it: cell by cell, counted by region, held to the budget."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide.history.mark import mark_of
from lowtide.run.budget import check_budget
from lowtide.values.clock import first_timestamp
from lowtide_spark.frames.computed import frozen_with
from lowtide_spark.frames.kinds import END_OF_RANGE, SHADOW
from lowtide_spark.frames.omid import shadow_of
from lowtide_spark.frames.store import FOREVER
from lowtide_spark.history import superseded
from lowtide_spark.history.work import HistoryWork
from lowtide_spark.run.context import Run
from lowtide_spark.run.table_work import choose_source, count_read, in_regions, read_once, stop_unknown


def find(run: Run, work: HistoryWork, held: ExitStack) -> None:
    """Read, once, what may go and whatever stands in its way."""
    report = work.report
    if work.mark == 0:
        report.notes.append("nothing may go: " + "; ".join(limit.what for limit in mark_of(work.limits)[1]))
        return
    read_from = choose_source(run, work, held, full=True, sweep=False)
    report.read, report.regions = read_from.name, len(work.regions)
    # No upper end: whatever lies under the empty qualifier decides what family tombstones hide, however young it is.
    ranges = [WorkRange(r.name, r.keys, 0, FOREVER) for r in work.regions]
    first = first_timestamp(run.world_clock)
    versions = run.store.versions(work.table, ranges, work.families, read_from, traces=True)
    wanted = versions.where(superseded.wanted(work.mark, first))
    cells, read = read_once(wanted)
    count_read(work, read, len(ranges), "regions")
    work.examined = {(r.region, bytes(r.family).decode()): r.bytes for r in read if r.ends and r.family is not None}
    work.cells = cells.where(F.col("kind") != END_OF_RANGE)


def decide(run: Run, work: HistoryWork) -> None:
    """Decide every cell for the work's mark, count the plan, stop the regions that hold something unknown, keep to the
    budget.
    """
    if work.cells is None:
        return
    decided = superseded.plan(work.cells, work.mark, first_timestamp(run.world_clock))
    plan, counted = frozen_with(decided, ("action", "why"), F.count("*").alias("cells"))
    if any(row.action == superseded.STOP for row in counted):
        stop_unknown(
            work,
            plan.where(F.col("action") == superseded.STOP),
            ("why", "row", "timestamp"),
            F.col("row"),
            lambda one: f"{one.why}; nothing is removed from it",
        )
    work.plan = plan
    _count_plan(work, counted)
    counts = work.report.counts
    run.note_writing(work.table, counts.markers)
    check_budget(work.table, counts.deleted, counts.cells_read, run.budget(work.table))


def cells(going: DataFrame) -> DataFrame:
    """Cells that go as a list has them: a shadow cell that is alone by its own qualifier."""
    own = F.when(F.col("kind") == SHADOW, shadow_of(F.col("qualifier"))).otherwise(F.col("qualifier"))
    return going.withColumn("qualifier", own)


def to_remove(work: HistoryWork) -> DataFrame:
    """The planned cells that may still be removed, with what that goes by."""
    assert work.plan is not None
    going = work.plan.where((F.col("action") == superseded.REMOVE) & ~in_regions(work.stopped))
    return superseded.with_evidence(going, work.mark)


def _count_plan(work: HistoryWork, counted: Sequence[Row]) -> None:
    counts = work.report.counts
    counts.skipped.clear()
    for row in counted:
        if row.action == superseded.KEEP and row.why is not None:
            counts.skipped[row.why] += row.cells
    work.going.clear()
    work.by_region = []
    if any(row.action == superseded.REMOVE for row in counted):
        count_regions(work, to_remove(work))
    work.report_regions()
    total(work)


def count_regions(work: HistoryWork, going: DataFrame) -> None:
    """Count by region what goes, or went: *going* are cells of :func:`to_remove`."""
    markers = {r.region: r["count"] for r in superseded.mutations(going).groupBy("region").count().collect()}
    is_version = F.col("kind") != SHADOW
    rows = going.groupBy("region", "family").agg(
        F.count_if(is_version).alias("versions"),
        F.count_if(~is_version).alias("shadows"),
        F.sum("bytes").alias("bytes"),
    )
    work.going.clear()
    found: dict[str, Counter[str]] = {}
    for r in sorted(rows.collect(), key=lambda r: r.region):
        counts = found.setdefault(r.region, Counter(versions=0, shadows=0, bytes=0))
        counts.update(versions=r.versions, shadows=r.shadows, bytes=r.bytes)
        work.going[r.region, bytes(r.family).decode()] = r.bytes
    work.by_region = [{"region": r, **counts, "markers": markers.get(r, 0)} for r, counts in found.items()]
    work.report_regions()


def number(work: HistoryWork) -> int:
    """How many cells are planned to go, but for those in regions that are stopped."""
    regions = (region for region in work.by_region if region["region"] not in work.stopped)
    return sum(region["versions"] + region["shadows"] for region in regions)


def total(work: HistoryWork) -> None:
    """Sum the regions that are not stopped into the table's counts."""
    total = Counter[str]()
    for region in work.by_region:
        if region["region"] not in work.stopped:
            total.update({name: region[name] for name in ("versions", "shadows", "bytes", "markers")})
    counts = work.report.counts
    counts.deleted, counts.markers = total["versions"] + total["shadows"], total["markers"]
    counts.bytes_removed = total["bytes"]
