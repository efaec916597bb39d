"""Putting cells back, in steps: what hides before what is hidden."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.history.compaction import last_compactions, still_there, to_record
from lowtide.run.summary import TableReport
from lowtide.store.records import Claim
from lowtide.tables.inventory import Descriptor, is_phoenix
from lowtide_spark.frames.kinds import FAMILY_TOMBSTONE, TOMBSTONE, TOMBSTONES
from lowtide_spark.frames.omid import bytes_of, shadow_of
from lowtide_spark.frames.store import Life, Written
from lowtide_spark.run.context import Run
from lowtide_spark.undo import live
from lowtide_spark.undo.protection import Protection

#: What to do where the table that was read is not there any more.
IF_ANOTHER = (
    "What came back from an HBase snapshot of before that run needs nothing of it; a table that was only disabled and "
    "enabled: run the restore again"
)


def still_hidden(descriptor: Descriptor) -> str:
    """Why cells that were put into the table may not be seen there, and what to do; to follow how many they are.

    Phoenix's own compaction keeps what is younger than its lookback, and takes Omid's timestamps, which are
    nanoseconds, for milliseconds to come (``CompactionScanner``). HBase's setting does as much.
    """
    table = descriptor.table
    if is_phoenix(descriptor):
        return (
            "still hidden behind delete markers, which Phoenix keeps in its compactions. In HBase's shell: alter "
            f"'{table}', CONFIGURATION => {{'phoenix.table.ttl.enabled' => 'false', 'phoenix.compaction.enabled' => "
            "'false'}; then run the restore again"
        )
    return (
        "still hidden behind delete markers that the compaction kept: it may have been put off, or a region server "
        "keeps them by hbase.hstore.time.to.purge.deletes (above 0 for ever, where the oracle's clock is the world's). "
        f"Major-compact {table} and run the restore again"
    )


def drop_delete_markers(run: Run, table: str, families: Sequence[str]) -> None:
    """Major-compact the *families* that cells come back to, which would lie behind the markers that removed them."""
    state = run.state()
    known = still_there(state.uncompacted(table), last_compactions(run.store.regions(table)))
    for family in families:
        run.store.major_compact(table, family)
    others = {(region, family): size for (region, family), size in known.items() if family not in families}
    state.put_uncompacted(table, to_record(others, last_compactions(run.store.regions(table))))


def put_back(
    run: Run, report: TableReport, families: Sequence[str], back: DataFrame, protection: Protection, why: str
) -> bool:
    """Put the cells back, step by step; whether all steps were taken. *why*: as :func:`still_hidden` gives it.

    What is hidden is put only when all that hides it was acknowledged and is *seen* there: one tombstone that failed,
    or lies behind a delete marker itself, and readers would be shown what was deleted.
    """
    *hiding, hidden = _steps()
    for step in hiding:
        _put(run, report, back.where(step), protection)
        if report.counts.failed:
            report.problems.append("what the tombstones that failed would hide is not put back; run the restore again")
            return False
    first = _hiding(back)
    if not first.isEmpty():
        hidden_still = live.compare(run, report.table, families, first).lacking
        if hidden_still:
            report.problems.append(f"what {hidden_still} tombstones hide is not put back: these are put but {why}")
            return False
    refused = _put(run, report, back.where(hidden), protection)
    if refused:
        report.problems.append(
            f"{refused} cells are not put back: what hides them from readers went while the restore was at work; run "
            "the restore again"
        )
    return not refused


def _steps() -> tuple[Column, ...]:
    """In this order cells are put back, each step acknowledged before the next: what hides before what is hidden."""
    kind, highest = F.col("kind"), F.col("highest")
    return (
        highest,
        (kind == FAMILY_TOMBSTONE) & ~highest,
        kind == TOMBSTONE,
        ~kind.isin(*TOMBSTONES),
    )


def _hiding(cells: DataFrame) -> DataFrame:
    """Those of *cells* that hide others: committed tombstones."""
    return cells.where(F.col("commit_ts").isNotNull() & F.col("kind").isin(*TOMBSTONES))


def _put(run: Run, report: TableReport, cells: DataFrame, protection: Protection) -> int:
    """Put these; how many were refused, because what hides them is not there."""
    refused = 0
    if not cells.isEmpty():
        run.store.check_life(protection.life, IF_ANOTHER)
        state = run.state()
        protection.renew(state)
        holding: list[Claim | Life] = [state.mark_claim(protection.claim), protection.life]
        written = run.store.write(_mutations(cells), report.table, holding=holding)
        _book(report, written)
        refused = sum(w.refused for w in written)
    return refused


def _book(report: TableReport, written: Sequence[Written]) -> None:
    for w in written:
        report.counts.bytes_written += w.bytes
        report.counts.failed += w.failed
        if w.failed:
            report.problems.append(f"{w.failed} cells could not be put: {w.failure}")


def _mutations(cells: DataFrame) -> DataFrame:
    """Rows for :meth:`lowtide_spark.frames.store.Store.write`; a put that something hides is guarded by it."""
    committed, lone = F.col("commit_ts").isNotNull(), F.col("lone")
    under = F.col("under")
    guarded = committed & ~lone & under.isNotNull()
    op: Column = F.when(guarded, "put_committed_if_present").when(committed & ~lone, "put_committed").otherwise("put")
    return cells.select(
        op.alias("op"),
        "region",
        "row",
        "family",
        F.when(lone, shadow_of(F.col("qualifier"))).otherwise(F.col("qualifier")).alias("qualifier"),
        "timestamp",
        F.when(lone, bytes_of(F.col("commit_ts"))).otherwise(F.col("value")).alias("value"),
        "commit_ts",
        F.when(guarded, F.col("family")).alias("guard_family"),
        F.when(guarded, under.qualifier).alias("guard_qualifier"),
        F.when(guarded, under.timestamp).alias("guard_timestamp"),
    )
