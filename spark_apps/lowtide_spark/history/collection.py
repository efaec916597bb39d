"""History GC: what no read point at or after a table's ancient history mark needs is put aside and deleted.

Its order is what keeps readers safe (docs/history.md): the plan is made for a mark that every known limit allows; then
the mark is published as intended, then the holds are read again, then the mark is applied, and only then anything is
deleted. A reader reads the applied mark when it begins and when it ends.
"""

from __future__ import annotations

from contextlib import ExitStack

from lowtide_spark.frames.inventory import take_inventory
from lowtide_spark.history import mark, plan, removal
from lowtide_spark.history.compaction import compact
from lowtide_spark.run.context import Run
from lowtide_spark.run.listing import list_cells
from lowtide_spark.run.table_work import failures_kept


def collect_history(run: Run) -> None:
    """The job ``history_gc``."""
    watermark = run.read_low_watermark()
    inventory = take_inventory(run.store)
    run.check_names([e.table for e in inventory])
    bound, bound_by = mark.bound(run, inventory, watermark)
    prepared = (mark.prepare(run, e, watermark, bound, bound_by) for e in run.choose(inventory))
    works = [w for w in prepared if w is not None]
    run.summary.execute = any(report.execute for report in run.summary.tables)
    run.phase("plan")
    with ExitStack() as held:
        for work in works:
            with failures_kept(work):
                plan.find(run, work, held)
        run.phase("find")
        for work in works:
            with failures_kept(work):
                plan.decide(run, work)
        run.phase("decide")
        for work in works:
            if work.plan is not None and not (
                work.execute and work.cells is not None
            ):  # in a dry run, beyond the budget
                with failures_kept(work):
                    list_cells(run, work.table, plan.cells(plan.to_remove(work)), acts=False)
        acting = [w for w in works if w.execute and w.cells is not None]
        run.check_approved()
        if acting:
            run.check_low_watermark_again()
            for work in acting:
                with failures_kept(work):
                    removal.act(run, work)
            run.phase("act")
    compacting = [w for w in works if run.options.compact or run.config.table(w.table).compaction.always]
    for work in compacting:
        with failures_kept(work):
            compact(run, work)
    if compacting:
        run.phase("compact")
    if run.summary.execute:
        _clear_holds(run)


def _clear_holds(run: Run) -> None:
    """Remove holds that expired."""
    state = run.state()
    for hold in state.holds():
        if not hold.counts(run.request.now):
            state.drop_hold(hold)
