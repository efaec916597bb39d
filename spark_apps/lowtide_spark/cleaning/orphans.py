"""Orphan cleanup: find suspects, decide by proof, heal and delete under guards, then record.

The phases keep the order that the safety rules ask for (docs/safety.md): the low watermark is read before tables,
regions and cells; absence of a proof becomes an abort only behind an invalidation mark; a key range is recorded after
all its actions are acknowledged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from pyspark.sql import DataFrame

from lowtide.cleaning.planning import WorkRange
from lowtide.tables.inventory import Entry
from lowtide_spark.cleaning import acting, listing, plan, proofs, recording, suspects, turn, undecided
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames.inventory import take_inventory, transactional
from lowtide_spark.frames.startset import StartSet, start_set
from lowtide_spark.frames.store import Life
from lowtide_spark.run.context import Run
from lowtide_spark.run.table_work import failures_kept


def clean(run: Run) -> None:
    """The job ``orphan_cleanup``."""
    watermark = run.read_low_watermark()
    inventory = take_inventory(run.store)
    run.check_names([e.table for e in inventory])
    # Where readers see orphans they go first.
    chosen = sorted(run.choose(inventory), key=lambda e: not e.unfiltered)
    works = suspects.prepare_all(run, chosen, run.limited(watermark))
    run.summary.execute = any(report.execute for report in run.summary.tables)
    suspects.drop_left_snapshots(run, works)
    run.phase("plan")
    with ExitStack() as held:
        found = find_and_decide(run, works, inventory, held)
        listing.list_planned(run, works, found.known)
        taken = [w for w in works if w.execute and w.ranges]
        held.callback(acting.uncount, taken)
        run.check_approved()
        if taken:
            run.check_low_watermark_again()
            turn.check_searched(run, found.searched)
            acting.act_all(run, taken, found.known, held)
            for work in taken:
                with failures_kept(work):
                    if work.waits is not None and work.stopped:
                        undecided.listed(run, work.report, work.waits)
            run.phase("act")
            recording.stop_if_entries_came(run, taken, found.committed)
            for work in taken:
                with failures_kept(work):
                    acting.check_healed(run, work)
            run.check_low_watermark_again()
            recording.record_all(run, taken)
            run.phase("record")


@dataclass(frozen=True)
class Found:
    """What reading showed: transactions with a commit entry, what is known of every transaction in question, and the
    tables that were searched for proofs, as they were before; none where nothing was in question.
    """

    committed: StartSet
    known: DataFrame
    searched: list[Life]


def find_and_decide(
    run: Run,
    works: Sequence[CleanupWork],
    inventory: Sequence[Entry],
    held: ExitStack,
    proofs_in: Mapping[str, Sequence[WorkRange]] | None = None,
) -> Found:
    """Find the suspects of every table and decide them: each work has its plan and its counts then. Writes nothing.

    Args:
        run: the run.
        works: as :func:`~lowtide_spark.cleaning.suspects.prepare_all` made them.
        inventory: every table of the cluster.
        held: what is made on the way, such as HBase snapshots, goes when it is closed.
        proofs_in: the only ranges, by table, that are searched for shadow cells of the transactions in question; for
            estimates, never for a run that acts. None: every transactional table from end to end.
    """
    entries = suspects.entries(run, works)
    committed = start_set(entries.where(suspects.PLAIN_ENTRY), held)
    pruned = suspects.pruned(run, works, held)
    for work in works:
        with failures_kept(work):
            suspects.find(run, work, suspects.rewritten(work, committed, pruned, held), held)
    suspects.read_all(run, works)
    run.phase("find")
    asked = [entry.table for entry in transactional(inventory) if entry.enabled]
    searched = run.store.lives(asked) if not all(work.idle for work in works) else []
    known = proofs.verdicts(run, works, inventory, entries, committed, held, proofs_in)
    plan.decide_all(run, works, known)
    run.phase("decide")
    return Found(committed, known, searched)
