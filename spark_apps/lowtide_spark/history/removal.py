"""Removing: the mark first, then the sideline, then the versions, and family tombstones after all that they hid."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.store.records import Claim, Intent
from lowtide_spark.frames.sideline import put_aside
from lowtide_spark.frames.store import Life, Written, by_region
from lowtide_spark.history import mark, plan, superseded
from lowtide_spark.history.compaction import remember
from lowtide_spark.history.work import HistoryWork
from lowtide_spark.run.context import Run
from lowtide_spark.run.listing import list_cells
from lowtide_spark.run.table_work import failures_kept, in_regions


def act(run: Run, work: HistoryWork) -> None:
    """Apply the mark, put aside what goes, delete it: tombstones of families after all that they hid."""
    counts = work.report.counts
    counts.deleted = counts.markers = counts.bytes_removed = 0
    run.store.check_life(work.life)
    run.store.check_consent(work.table)  # before readers are refused what will not be removed
    intent = mark.apply(run, work)
    going = plan.to_remove(work)
    if any(region["region"] not in work.stopped for region in work.by_region):
        run.store.check_life(work.life)
        run.store.make_durable(work.table)  # what replaced a version must outlive the version
        with _removal(run, intent) as claim:
            _remove(run, work, going, claim)
    _keep_books(run, work)


@contextmanager
def _removal(run: Run, intent: Intent) -> Iterator[Intent]:
    """Keep restores off the table: what one put back beside a run that removes could be shown again for good."""
    state = run.state()
    claim = state.begin_removal(intent, run.request.run)
    try:
        yield claim
    finally:
        # Where this is lost, restores wait for a day.
        with suppress(Exception):
            if intent.table in run.store.unfinished:
                # Executors that the driver lost may write on: a new claim ends that at their next batch, and restores
                # wait all the same.
                state.begin_removal(claim, run.request.run)
            else:
                state.end_removal(claim, run.request.run)


def _remove(run: Run, work: HistoryWork, going: DataFrame, claim: Intent) -> None:
    list_cells(run, work.table, plan.cells(going), acts=True)
    folder = put_aside(run, work.table, going, plan.number(work))
    work.report.notes.append(f"what goes is kept in {folder}; `lowtide restore {run.request.run}` puts it back")
    _delete(run, work, going, claim)


def _delete(run: Run, work: HistoryWork, going: DataFrame, claim: Intent) -> None:
    """In two steps, and count what is gone, also where the second is not to be done any more."""
    answered, done = Counter[str](), list[bool]()
    try:
        for last in (False, True):
            _step(run, work, going.where(F.col("last") == last), claim, answered)
            done.append(last)
        run.store.check_life(work.life)
    except Exception:
        with failures_kept(work):
            _tell_of(run, work, going.where(F.col("last").isin(done)), answered)
        raise
    _reckon(work, answered)
    plan.total(work)


def _step(run: Run, work: HistoryWork, going: DataFrame, claim: Intent, answered: Counter[str]) -> None:
    mutations = superseded.mutations(going).where(~in_regions(work.stopped)).drop("last")
    if not mutations.isEmpty():
        run.store.check_life(work.life)
        state = run.state()
        state.check_claim(claim)
        holding: list[Claim | Life] = [state.mark_claim(claim), work.life]
        written = run.store.write(mutations, work.table, holding=holding)
        _book(work, written)
        answered.update(by_region(written))


def _tell_of(run: Run, work: HistoryWork, gone: DataFrame, answered: Mapping[str, int]) -> None:
    """Of a removal that broke off between its steps, as where the table came to say no: what went before is gone, and
    its delete markers lie there.
    """
    plan.count_regions(work, gone)
    _reckon(work, answered)
    plan.total(work)
    if run.store.life(work.table) == work.life:  # the books of a table that came back in its place would be others
        _keep_books(run, work)


def _keep_books(run: Run, work: HistoryWork) -> None:
    """Record what was removed, of regions in which all was done."""
    work.going = Counter({store: size for store, size in work.going.items() if store[0] not in work.stopped})
    remember(run, work, work.regions)


def _reckon(work: HistoryWork, answered: Mapping[str, int]) -> None:
    """Every mutation that was planned must have been answered for."""
    planned = {region["region"]: region["markers"] for region in work.by_region}
    work.reckon(planned, answered, "mutations were planned")


def _book(work: HistoryWork, written: Sequence[Written]) -> None:
    """Count acknowledged mutations; a region with one that failed or was refused gets no more, and counts as not done.

    What was refused has data beside it now, which a family tombstone of the next step may hide.
    """
    for each in written:
        if each.refused:
            work.stop(
                [each.region], f"data came beside {each.refused} lone shadow cells while the run went on; run again"
            )
    work.book(written, "; what of it is gone the next run will see")
