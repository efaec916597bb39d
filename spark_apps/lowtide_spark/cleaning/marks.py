"""Invalidation marks: which transactions need one before their cells go, which bear a wrong one, and putting and
removing them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.evidence import IN_WORDS, Proof, Rule
from lowtide.run.summary import TableReport
from lowtide.store.records import Claim
from lowtide.values.formats import COMMIT_QUALIFIER, INVALID_QUALIFIER, OWN_INVALID_VALUE
from lowtide_spark.cleaning import rules
from lowtide_spark.cleaning.turn import epochs
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames import omid
from lowtide_spark.frames.computed import frozen, union
from lowtide_spark.frames.kinds import PUT
from lowtide_spark.frames.startset import start_set
from lowtide_spark.frames.store import Life, by_region
from lowtide_spark.run.context import Run
from lowtide_spark.run.listing import list_cells

#: What becomes of a mark in a list, and why.
_TOLD = {
    Rule.INVALIDATE: ("put", IN_WORDS[Proof.NONE]),
    Rule.TAKE_BACK: ("delete", "its transaction committed after all: cells of it have their shadow cells"),
}


def commit_table_report(run: Run) -> TableReport:
    """The report of what this run does to the commit table."""
    name = run.config.omid.commit_table
    for report in run.summary.tables:
        if report.table == name:
            return report
    run.summary.tables.append(TableReport(name))
    return run.summary.tables[-1]


def _planned(works: Sequence[CleanupWork], condition: Column, like: DataFrame, given_up: bool) -> DataFrame:
    frames = [
        w.plan.where(condition).select("start_ts")
        for w in works
        if w.plan is not None and (given_up or w.suspects is not None)
    ]
    return union(frames, like=like.select("start_ts")).distinct()


def lacks_mark() -> Column:
    """Of a cell of a plan: it goes, and nothing has invalidated its transaction yet."""
    return (F.col("action") == rules.DELETE) & (F.col("verdict") == rules.ABSENT)


def has_wrong_mark() -> Column:
    """Of a cell of a plan: its transaction has a mark, and is committed after all."""
    return (F.col("action") == rules.HEAL) & F.col("marked")


def needed(works: Sequence[CleanupWork], like: DataFrame, *, given_up: bool = False) -> DataFrame:
    """Transactions of planned deletes that nothing has invalidated yet. With *given_up* also of tables to which the run
    does nothing more, as beyond their budget: to tell of them, never to act.
    """
    return _planned(works, lacks_mark(), like, given_up)


def wrong(works: Sequence[CleanupWork], like: DataFrame, *, given_up: bool = False) -> DataFrame:
    """Transactions with a mark that are committed after all; *given_up* as in :func:`needed`."""
    return _planned(works, has_wrong_mark(), like, given_up)


def put(run: Run, works: Sequence[CleanupWork], known: DataFrame, held: ExitStack) -> DataFrame:
    """Put the invalidation marks, where no commit entry is there; then read entries and marks again.

    After it nothing is ``absent`` any more: a transaction is marked, or its commit entry was found, or it is undecided.
    """
    lacking = [work for work in works if work.lacking]
    absent = start_set(needed(lacking, like=known), held) if lacking else None
    table, family = run.config.omid.commit_table, run.config.omid.commit_family
    report = commit_table_report(run)
    report.execute = True
    report.counts.marked = 0
    again = known.select(
        "start_ts", F.lit(False).alias("invalid"), F.lit(0).alias("commit_ts"), F.lit("").alias("problem")
    )
    again = again.limit(0).withColumn("fence", F.lit(False))
    if absent:
        rows = mark_rows(absent.frame, family)
        list_cells(run, table, cells(rows, Rule.INVALIDATE), acts=True)
        # Not those of the other tables: one that is another run's by now has nothing to do with these.
        written = run.store.write(rows, table, holding=_holding(run, lacking))
        report.counts.marked = sum(w.done for w in written)
        for failure in (w for w in written if w.failed):
            report.counts.failed += failure.failed
            report.problems.append(f"{failure.failed} invalidation marks could not be put: {failure.failure}")
        planned, answered = absent.size, by_region(written).total()
        if answered != planned:  # one that was not put is not read back, and decides nothing
            report.problems.append(f"{planned} invalidation marks were planned and {answered} answered for; run again")
        there = run.store.cells(table, omid.commit_ranges(*absent.span))
        again = frozen(absent.restrict(omid.entries(there, family)))
    return frozen(rules.after_marking(known, again))


def _holding(run: Run, works: Sequence[CleanupWork]) -> list[Claim | Life]:
    """What stands as long as the tables are this run's, and the commit table is in the life that was read: in another,
    as after an oracle was made anew, the numbers may be those of new transactions.
    """
    return [*epochs(run, works), run.commit_table_life]


def mark_rows(starts: DataFrame, family: str) -> DataFrame:
    """Mutations of the commit table that put the invalidation marks of these transactions."""
    return starts.select(
        F.lit("put_if_absent").alias("op"),
        F.lit("marks").alias("region"),
        omid.commit_key(F.col("start_ts")).alias("row"),
        F.lit(family.encode()).alias("family"),
        F.lit(INVALID_QUALIFIER).alias("qualifier"),
        F.col("start_ts").alias("timestamp"),
        F.lit(OWN_INVALID_VALUE).alias("value"),
        F.lit(family.encode()).alias("guard_family"),
        F.lit(COMMIT_QUALIFIER).alias("guard_qualifier"),
    )


def remove(run: Run, works: Sequence[CleanupWork], starts: DataFrame) -> int:
    """Remove the invalidation marks of these transactions, with cells in *works*; how many were removed. One that stays
    no later run looks for, since its cells have their shadow cells by now.
    """
    mutations = unmark_rows(starts, run.config.omid.commit_family)
    list_cells(run, run.config.omid.commit_table, cells(mutations, Rule.TAKE_BACK), acts=True)
    written = run.store.write(mutations, run.config.omid.commit_table, holding=_holding(run, works))
    for failure in (w for w in written if w.failed):
        commit_table_report(run).problems.append(
            f"{failure.failed} wrong marks could not be removed: {failure.failure}. Their transactions committed; "
            "lowtide verify names each, and the command that removes its mark"
        )
    return sum(w.done for w in written)


def cells(rows: DataFrame, rule: Rule) -> DataFrame:
    """The marks of these mutations as a list has them; a mark's timestamp is its transaction's."""
    action, evidence = _TOLD[rule]
    return rows.select(
        F.lit(action).alias("action"),
        *("row", "family", "qualifier", "timestamp"),
        F.lit(PUT).alias("kind"),
        F.col("timestamp").alias("start_ts"),
        F.lit(rule.value).alias("rule"),
        F.lit(evidence).alias("evidence"),
    )


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
