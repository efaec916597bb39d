"""Deciding: what becomes of each suspect cell, counted, and held to the budget."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lowtide.cleaning.given import MILLIS, SKIPPED, given, left
from lowtide.journal import life
from lowtide.run.budget import check_budget
from lowtide.values.intervals import Intervals
from lowtide_spark.cleaning import marks, rules, undecided
from lowtide_spark.cleaning.work import CleanupWork, together
from lowtide_spark.frames.computed import frozen_with, union
from lowtide_spark.frames.kinds import END_OF_RANGE, UNKNOWN
from lowtide_spark.run.context import Run
from lowtide_spark.run.table_work import failures_kept, in_regions, stop_unknown


def decide_all(run: Run, works: Sequence[CleanupWork], known: DataFrame) -> None:
    """Plan every table, and count the invalidation marks that the plans need."""
    decide(run, works, known)
    report = marks.commit_table_report(run)
    lacking, mismarked = [w for w in works if w.lacking], [w for w in works if w.mismarked]
    report.counts.marked = marks.needed(lacking, like=known).count() if lacking else 0
    report.counts.unmarked = marks.wrong(mismarked, like=known).count() if mismarked else 0


def decide(run: Run, works: Sequence[CleanupWork], known: DataFrame) -> None:
    """Decide every suspect cell of these tables, count the plans, and stop the ranges that hold something unknown. A
    table that fails keeps its error and hides no other.
    """

    def decide_some(group: Sequence[CleanupWork]) -> None:
        actions, counted = _decided(run, group, known)
        for work in group:
            with failures_kept(work):
                mine = [row for row in counted if row.table == work.table]
                _take(run, work, actions.where(F.col("table") == work.table), mine)

    readable = [work for work in works if work.suspects is not None]
    together([work for work in readable if not work.idle], decide_some, lambda work: work.weight)
    if idle := [work for work in readable if work.idle]:
        nothing = _actions(run, idle[:1], known).limit(0)  # nothing is decided, and Spark has nothing to do
        for work in idle:
            with failures_kept(work):
                _take(run, work, nothing, [])


def _actions(run: Run, group: Sequence[CleanupWork], known: DataFrame) -> DataFrame:
    """What becomes of each suspect cell of these tables."""
    suspects = [work.suspects for work in group if work.suspects is not None]
    horizon = run.journal.horizon
    let_go = Intervals.up_to(horizon)
    unwatched = [r.region for work in group for r in work.ranges if life.unwatched(r.keys, work.facts, let_go)]
    before = {
        r.region: work.before for work in group for r in work.ranges if life.unwatched(r.keys, work.facts, work.before)
    }
    cells = union(suspects, like=suspects[0]).where(F.col("kind") != END_OF_RANGE)
    cells = cells.coalesce(1) if len(group) > 1 else cells  # they are few
    numbers = given(run.world_clock, run.state().skipped(), run.request.now)
    return rules.cell_actions(cells, known, numbers, horizon, unwatched, before)


def _decided(run: Run, group: Sequence[CleanupWork], known: DataFrame) -> tuple[DataFrame, list[Row]]:
    """Those actions, computed once; and counted by table, region, action and reason."""
    actions = _actions(run, group, known)
    figures = {"lacking": marks.lacks_mark(), "mismarked": marks.has_wrong_mark(), "cells": F.lit(True)}
    counts = (F.count_if(which).alias(name) for name, which in figures.items())
    return frozen_with(actions, ("table", "region", "action", "why"), *counts, F.min("start_ts").alias("least"))


def _take(run: Run, work: CleanupWork, plan: DataFrame, counted: Sequence[Row]) -> None:
    """Take the *plan* of a table, held to its budget."""
    unknown = plan.where(F.col("action") == rules.STOP) if counted else plan
    if any(row.action == rules.STOP for row in counted):
        # A damaged shadow cell before the cells beside it that are undecided for its sake.
        first = F.struct(F.col("kind") != UNKNOWN, *undecided.PLACE)
        stop_unknown(
            work,
            unknown,
            ("why", *undecided.PLACE),
            first,
            lambda one: undecided.describe(run, work.table, one),
        )
    work.decided = plan
    if work.waits is None:
        work.waits = unknown
    work.plan = plan.where(~in_regions(work.stopped)) if work.stopped else plan
    _count_plan(work, counted)
    counts = work.report.counts
    run.note_writing(work.table, counts.healed + counts.deleted)
    check_budget(work.table, counts.deleted, counts.cells_read, run.budget(work.table))


def heals(work: CleanupWork) -> DataFrame:
    """The planned cells that are written, with their shadow cells."""
    return _planned(work, rules.HEAL)


def deletes(work: CleanupWork) -> DataFrame:
    """The planned cells that go. Also of a range that has been stopped since the plan was made none does."""
    return _planned(work, rules.DELETE)


def plans(work: CleanupWork, action: str) -> bool:
    """Whether a cell of that action is planned, in a range that is not stopped."""
    planned = {region for (what, region), cells in work.planned.items() if what == action and cells}
    return bool(planned - work.stopped.keys())


def number(work: CleanupWork, action: str) -> int:
    """How many cells of that action are planned, but for those in ranges that are stopped."""
    return sum(cells for (what, region), cells in work.planned.items() if what == action and region not in work.stopped)


def _planned(work: CleanupWork, action: str) -> DataFrame:
    assert work.plan is not None
    return work.plan.where((F.col("action") == action) & ~in_regions(work.stopped))


def _count_plan(work: CleanupWork, counted: Sequence[Row]) -> None:
    counts = work.report.counts
    counts.healed = counts.deleted = 0
    counts.skipped.clear()
    work.planned.clear()
    work.lacking, work.mismarked = (sum(row[name] for row in counted) for name in ("lacking", "mismarked"))
    for row in counted:
        work.planned[row.action, row.region] += row.cells
        if row.region in work.stopped:
            counts.skipped["in a range that is stopped"] += row.cells
        elif row.action == rules.SKIP:
            counts.skipped[row.why] += row.cells
        elif row.action == rules.HEAL:
            counts.healed += row.cells
        else:
            counts.deleted += row.cells
    foreign = counts.skipped.get(rules.FOREIGN, 0)
    told = (rules.FOREIGN, MILLIS, SKIPPED)
    work.report.notes = [n for n in work.report.notes if not any(why in n for why in told)]
    if foreign:
        work.report.notes.append(
            f"{foreign} cells with timestamps that this oracle cannot have given, {rules.FOREIGN}: left alone"
        )
    for why in (MILLIS, SKIPPED):
        if cells := counts.skipped.get(why, 0):
            such_as = min(row.least for row in counted if row.why == why and row.region not in work.stopped)
            work.report.notes.append(left(why, cells, such_as, work.table))
