"""Acting: marks first, then heals, then deletes of what was put aside; every count is of acknowledged mutations."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.store.records import Claim
from lowtide_spark.cleaning import marks, plan, rules, turn
from lowtide_spark.cleaning.listing import with_evidence
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames.omid import shadow_of
from lowtide_spark.frames.sideline import put_aside
from lowtide_spark.frames.startset import start_set
from lowtide_spark.frames.store import Life, Written, by_region
from lowtide_spark.run.context import Run
from lowtide_spark.run.listing import list_cells
from lowtide_spark.run.table_work import failures_kept, in_regions


def act_all(run: Run, works: Sequence[CleanupWork], known: DataFrame, held: ExitStack) -> None:
    """Carry out the plans of *works*: marks for the absent, then heals, then deletes, then wrong marks off.

    The order is what keeps it safe. Before the first mark each table is seen to be this run's still, and the one that
    was read. Marks of all tables are put and read back, and every cell is decided again by what stands there then,
    before any cell goes: a transaction that nothing proves may commit until its mark is there. Of a table cells are
    healed before any is deleted, and none is deleted in a range that a heal has stopped. A wrong mark, of a transaction
    that committed after all, goes last, when the cells that the run acted on have their shadow cells.

    Args:
        run: the run.
        works: the tables that it acts on; one that fails keeps its error and hides no other.
        known: what the look found of each transaction.
        held: what is made on the way goes when it is closed.
    """
    busy = [work for work in works if not work.idle]
    turn.check_lives(run, busy)
    for work in busy:
        with failures_kept(work):
            turn.check(run, work)
            run.store.check_consent(work.table)
    decided = marks.put(run, busy, known, held)
    plan.decide(run, busy, decided)
    for work in works:
        with failures_kept(work):
            _act(run, work)
    mismarked = [work for work in works if work.mismarked]
    wrong = start_set(marks.wrong(mismarked, like=known), held) if mismarked else None
    marks.commit_table_report(run).counts.unmarked = marks.remove(run, mismarked, wrong.frame) if wrong else 0


def uncount(works: Sequence[CleanupWork]) -> None:
    """Of a table of which nothing was begun no deed is told: it was refused, overtaken, or the run ended before."""
    for work in works:
        if not work.begun:
            work.report.counts.healed = work.report.counts.deleted = 0


def _act(run: Run, work: CleanupWork) -> None:
    """Heal, put aside, delete; every count is of acknowledged mutations."""
    if work.plan is None or work.suspects is None:
        return
    counts = work.report.counts
    counts.healed = counts.deleted = 0
    work.begun = True
    # In the life of the commit table that was read, too: in another, as after an oracle was made anew, a number may be
    # that of a new transaction, which has written to the same cell.
    lives = [Life(work.table, work.state.incarnation.stated), run.commit_table_life]
    holding: list[Claim | Life] = [*turn.epochs(run, [work]), *lives]
    # What proved a commit here must outlive what is done for it, and what is recorded; where the log is not synced so
    # must a delete marker, of which nobody sees that it lies over a cell. Here it is what came since it was read.
    if counts.cells_read or run.config.table(work.table).accept_durability:
        run.store.make_durable(work.table)
    if plan.plans(work, rules.HEAL):
        heals = with_evidence(plan.heals(work))
        list_cells(run, work.table, heals, acts=True)
        work.healed = heals
        written = run.store.write(_heal_rows(heals), work.table, holding=holding)
        counts.healed = _book(work, written, rules.HEAL)
        _skip(work, written, "gone before it was healed")
    else:  # a range is not recorded by the word of that look alone
        _book(work, (), rules.HEAL)
    if plan.plans(work, rules.DELETE):
        deletes = with_evidence(plan.deletes(work))
        list_cells(run, work.table, deletes, acts=True)
        folder = put_aside(run, work.table, deletes, plan.number(work, rules.DELETE))
        work.report.notes.append(f"what goes is kept in {folder}; `lowtide restore {run.request.run}` puts it back")
        written = run.store.write(_delete_rows(deletes), work.table, holding=holding)
        counts.deleted = _book(work, written, rules.DELETE)
        if _skip(work, written, "committed before it was deleted"):
            _after_refusal(run, work, deletes, [w.region for w in written if w.refused])
    else:
        _book(work, (), rules.DELETE)


def _heal_rows(cells: DataFrame) -> DataFrame:
    key = ("region", "row", "family", "qualifier", "timestamp", "value")
    return cells.select(F.lit("heal_if_present").alias("op"), *key, F.col("tc").alias("commit_ts"))


def _delete_rows(cells: DataFrame) -> DataFrame:
    key = ("region", "row", "family", "qualifier", "timestamp")
    guard = (F.col("family").alias("guard_family"), shadow_of(F.col("qualifier")).alias("guard_qualifier"))
    return cells.select(F.lit("delete_if_absent").alias("op"), *key, *guard)


def _book(work: CleanupWork, written: Sequence[Written], action: str) -> int:
    """Count acknowledged mutations; ranges with a failed one, or with one that nobody answered for, are not
    recorded.
    """
    work.book(written)
    planned = {region: number for (what, region), number in work.planned.items() if what == action}
    work.reckon(planned, by_region(written), f"cells were planned to {action}")
    return sum(w.done for w in written)


def _skip(work: CleanupWork, written: Sequence[Written], why: str) -> int:
    refused = sum(w.refused for w in written)
    if refused:
        work.report.counts.skipped[why] += refused
    return refused


def _after_refusal(run: Run, work: CleanupWork, deletes: DataFrame, regions: Sequence[str]) -> None:
    """A guard found a shadow cell where there was none: committed after all.

    The mark was wrong and goes; the ranges are not recorded, so that the next run reads them again.
    """
    work.stop(regions, "a cell was committed while the run went on; run again")
    with ExitStack() as held:
        starts = start_set(deletes, held)
        ranges = [r for r in work.ranges if r.region in set(regions)]
        shadowed = run.store.versions(work.table, ranges, work.families).where(F.col("commit_ts").isNotNull())
        committed = starts.restrict(shadowed.where(F.col("commit_ts") > F.col("timestamp")))
        marks.remove(run, [work], committed.select("start_ts").distinct())


def check_healed(run: Run, work: CleanupWork) -> None:
    """Read every healed cell once more, by its key: a range is recorded only where each has its shadow cell, or is gone
    itself.

    An acknowledgement is the word of a server that may have died since; the record outlives it, and the commit entry
    goes by the record.
    """
    if work.healed is None or work.suspects is None:
        return
    healed = work.healed.where(~in_regions(work.stopped))
    for answer in run.store.see(_healed_rows(healed), work.table):
        if answer.refused:
            work.stop(
                [answer.region],
                f"{answer.refused} healed cells have no shadow cell when they are read again; run again",
            )
        if answer.failed:
            work.stop([answer.region], f"{answer.failed} healed cells could not be read again: {answer.failure}")


def _healed_rows(cells: DataFrame) -> DataFrame:
    key = ("region", "row", "family", "qualifier", "timestamp")
    return cells.select(F.lit("see_healed").alias("op"), *key, F.col("tc").alias("commit_ts"))
