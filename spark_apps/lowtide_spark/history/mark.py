"""The mark that a run works with: what limits it, and how it is published before anything goes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta

from lowtide.cleaning.facts import prune_bound
from lowtide.errors import ApprovalError, LowtideError, StoreError
from lowtide.history.compaction import last_compactions, still_there
from lowtide.history.mark import By, Limit, at_most, limits, mark_of
from lowtide.store.records import Intent
from lowtide.tables.inventory import Entry
from lowtide.values.clock import millis
from lowtide_spark.cleaning.watermarks import region_marks
from lowtide_spark.history import plan
from lowtide_spark.history.work import HistoryWork
from lowtide_spark.run.context import Run
from lowtide_spark.run.table_work import begin_report


def bound(run: Run, inventory: Sequence[Entry], watermark: int) -> tuple[int, str]:
    """The prune bound as of now, and what holds it. Removing a shadow cell here may remove the proof of a cell anywhere
    below it.
    """
    marks, blocked = region_marks(run, inventory)
    bound, blockers = prune_bound(marks, blocked, watermark)
    run.summary.bound = bound
    run.summary.tables = [t for t in run.summary.tables if t.problems]
    if not blockers:
        return bound, "every region is cleaned up to it"
    first = blockers[0]
    more = f" and {len(blockers) - 1} more" if len(blockers) > 1 else ""
    return bound, f"{first.table} {first.keys or ''}: {first.reason}{more}".replace("  ", " ")


def prepare(run: Run, entry: Entry, watermark: int, bound: int, bound_by: str) -> HistoryWork | None:
    """What to do for one table, and the mark that its limits allow; None where it cannot be computed, which makes the
    run red.
    """
    report = begin_report(run, entry)
    try:
        regions = run.store.regions(entry.table)
        run.note_reading(entry.table, regions)
        state = run.state()
        # Claims before holds: a restore takes its hold first, so one that is not seen here is seen when this run
        # claims.
        before = state.history(entry.table)
        holds = state.holds(entry.table)
        uncompacted = still_there(state.uncompacted(entry.table), last_compactions(regions))
        found = limits(
            ages=run.config.table(entry.table).ages,
            # Where the oracle's clock is behind, what is young by it would be old by HBase's.
            now=run.request.now + min(run.oracle_ahead, timedelta()),
            as_of=run.request.until,
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
    work = HistoryWork(report, entry, regions, found, mark_of(found)[0], before, uncompacted=uncompacted)
    _report_mark(run, work, before.applied)
    return work


def _report_mark(run: Run, work: HistoryWork, applied: int) -> None:
    """Put the mark, and what keeps it from moving on, into the report; what is no mere age is a blocker of the run."""
    mark, holding = mark_of(work.limits)
    reasons = [
        {"mark": at_most(x.timestamp), "reason": x.what, "remedy": x.remedy, "since": x.since and millis(x.since)}
        for x in holding
    ]
    work.report.mark = {"mark": mark, "applied": applied, "held_by": reasons}
    work.report.intervals = [(0, mark + 1)] if mark else []
    if mark < applied:
        work.report.notes.append(
            f"the mark {applied} was applied before and stays: what the settings allow now, {mark}, is behind it"
        )
    run.summary.blockers = [b for b in run.summary.blockers if b["table"] != work.table]
    if not any(limit.by in (By.AGE, By.PLAN) for limit in holding):
        where = {"table": work.table, "region": None, "keys": None, "watermark": mark}
        run.summary.blockers += [{**where, **one} for one in reasons]


def apply(run: Run, work: HistoryWork) -> Intent:
    """Publish the mark as intended, *then* read the holds, then apply: a hold written since either shows here or sees
    the intention.

    A hold that shows here lowers the mark, and the plan is made again for it from what was read.
    """
    try:
        state = run.state()
        intent = state.intend(work.table, work.mark, run.request.run, work.before)
        holds = [h for h in state.holds(work.table) if h.counts(run.request.now)]
        mark = min([work.mark, *(at_most(h.timestamp) for h in holds)])
        if mark < work.mark:
            intent = state.lower_intent(intent, mark, run.request.run)
            _lower(run, work, mark, [h.id for h in holds if at_most(h.timestamp) == mark])
        about = {"run": run.request.run, "held_by": (work.report.mark or {}).get("held_by", [])}
        applied = state.apply_mark(intent, about)
    except BaseException:
        _withdraw(run, work.table)
        raise
    work.report.mark = {**(work.report.mark or {}), "applied": applied}
    return intent


def _withdraw(run: Run, table: str) -> None:
    """Intend no more than is applied, so that no hold is refused for a run that ended without applying."""
    with suppress(LowtideError):
        state = run.state()
        known = state.history(table)
        if known.claim is not None and known.intent.get("run") == run.request.run:
            state.lower_intent(Intent(table, known.intended, known.claim), known.applied, run.request.run)


def _lower(run: Run, work: HistoryWork, mark: int, holds: Sequence[str]) -> None:
    if run.approved is not None:
        msg = (
            f"hold {', '.join(holds)} on {work.table} came while the run went on, so that the plan that was approved "
            "cannot be done; nothing was done to the table. Make a new plan and have that approved"
        )
        raise ApprovalError(msg)
    work.report.notes.append(
        f"hold {', '.join(holds)} came while the run went on; it works with the mark {mark}, not {work.mark}"
    )
    work.mark = mark
    work.report.mark = {**(work.report.mark or {}), "mark": mark}
    plan.decide(run, work)
    work.report.counts.deleted = work.report.counts.markers = work.report.counts.bytes_removed = 0
