"""Deciding: what becomes of each suspect cell, counted, and held to the budget."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.journal import life
from lowtide.run.budget import check_budget
from lowtide.values.clock import first_timestamp
from lowtide_spark.cleaning import marks, rules, undecided
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames.computed import frozen
from lowtide_spark.frames.kinds import END_OF_RANGE, UNKNOWN
from lowtide_spark.run.context import Run
from lowtide_spark.run.table_work import failures_kept, in_regions, stop_unknown


def decide_all(run: Run, works: Sequence[CleanupWork], known: DataFrame) -> None:
    """Plan every table, and count the invalidation marks that the plans need."""
    for work in works:
        with failures_kept(work):
            decide(run, work, known)
    report = marks.commit_table_report(run)
    report.counts.marked = marks.needed(works, like=known).count()
    report.counts.unmarked = marks.wrong(works, like=known).count()


def decide(run: Run, work: CleanupWork, known: DataFrame) -> None:
    """Decide every suspect cell of a table, count the plan, and stop the ranges that hold something unknown."""
    if work.suspects is None:
        return
    cells = work.suspects.where(F.col("kind") != END_OF_RANGE)
    unwatched = [r.region for r in work.ranges if life.unwatched(r.keys, work.facts, run.journal.horizon)]
    actions = rules.cell_actions(cells, known, first_timestamp(run.world_clock), run.journal.horizon, unwatched)
    plan = frozen(actions)
    # A damaged shadow cell before the cells beside it that are undecided for its sake.
    first = F.struct(F.col("kind") != UNKNOWN, *undecided.PLACE)
    stop_unknown(
        work,
        plan.where(F.col("action") == rules.STOP),
        ("why", *undecided.PLACE),
        first,
        lambda one: undecided.describe(run, work.table, one),
    )
    work.decided = plan
    if work.waits is None:
        work.waits = plan.where(F.col("action") == rules.STOP)
    work.plan = plan.where(~in_regions(work.stopped))
    _count_plan(work, plan)
    check_budget(work.table, work.report.counts.deleted, work.report.counts.cells_read, run.budget(work.table))


def heals(work: CleanupWork) -> DataFrame:
    """The planned cells that are written, with their shadow cells."""
    return _planned(work, rules.HEAL)


def deletes(work: CleanupWork) -> DataFrame:
    """The planned cells that go. Also of a range that has been stopped since the plan was made none does."""
    return _planned(work, rules.DELETE)


def _planned(work: CleanupWork, action: str) -> DataFrame:
    assert work.plan is not None
    return work.plan.where((F.col("action") == action) & ~in_regions(work.stopped))


def _count_plan(work: CleanupWork, plan: DataFrame) -> None:
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
