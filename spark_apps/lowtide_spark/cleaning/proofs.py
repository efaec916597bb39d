"""What is known of the transactions in question: entries, marks, the journal, and shadow cells in every transactional
table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide.tables.inventory import Entry
from lowtide.values.clock import first_timestamp
from lowtide.values.formats import INVALID_QUALIFIER
from lowtide_spark.cleaning import rules
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames import omid
from lowtide_spark.frames.computed import frozen, union
from lowtide_spark.frames.inventory import transactional
from lowtide_spark.frames.kinds import CELL_KINDS
from lowtide_spark.frames.local import no_rows
from lowtide_spark.frames.startset import StartSet, start_set
from lowtide_spark.frames.store import LIVE, Source, TableRead
from lowtide_spark.run.context import Run


def verdicts(
    run: Run,
    works: Sequence[CleanupWork],
    inventory: Sequence[Entry],
    entries: DataFrame,
    committed: StartSet,
    held: ExitStack,
    proofs_in: Mapping[str, Sequence[WorkRange]] | None,
) -> DataFrame:
    """What is known of every transaction that has a suspect cell or a commit entry, frozen. Those *committed* have an
    entry that proves it, and are looked for nowhere else.
    """
    first = first_timestamp(run.world_clock)
    unproved = F.col("commit_ts").isNull() & F.col("kind").isin(*CELL_KINDS) & (F.col("timestamp") >= first)
    found = [w.suspects for w in works if w.suspects is not None and w.report.counts.candidates]
    suspects = [cells.where(unproved).select("start_ts") for cells in found]
    starts = start_set(committed.without(union(suspects, like=entries.select("start_ts"))), held)
    sources = {w.entry.table: w.source for w in works}
    siblings, blind = shadow_cells(run, inventory, starts, sources, proofs_in)
    everyone = entries.select("start_ts").unionByName(starts.frame).where("start_ts is not null")
    known = frozen(rules.verdicts(everyone, entries, _journal(run, starts), siblings, _hidden(run, starts), blind))
    run.has_journal()  # after it was read, too: what it let go of, or lost, meanwhile was not found
    return known


def shadow_cells(
    run: Run,
    inventory: Sequence[Entry],
    starts: StartSet,
    sources: Mapping[str, Source],
    proofs_in: Mapping[str, Sequence[WorkRange]] | None = None,
) -> tuple[DataFrame, bool]:
    """Shadow cells of the transactions in question in every transactional table, and whether one could not be searched.

    They are as :func:`lowtide_spark.cleaning.rules.verdicts` takes them, with the table where that has to be confirmed
    first. *sources*: what tables are read from, where not live; *proofs_in*: as for
    :func:`lowtide_spark.cleaning.orphans.find_and_decide`.
    """
    empty = no_rows(run.store.spark, "start_ts bigint, timestamp bigint, commit_ts bigint, unconfirmed string")
    if not starts:
        return empty, False
    tables = transactional(inventory)
    live: list[TableRead] = []
    found: list[DataFrame] = []
    for entry in (entry for entry in tables if entry.enabled):
        ranges = None if proofs_in is None else proofs_in.get(entry.table, ())
        if ranges is not None and not ranges:
            continue
        read = TableRead(entry.table, sorted(entry.families | entry.unmarked), ranges)
        source = sources.get(entry.table, LIVE)
        if source is LIVE:
            live.append(read)
        else:
            found.append(run.store.proofs(read, starts.span, source))
    found += run.store.proofs_of(live, starts.span)
    unconfirmed = F.when(F.col("table").isin([entry.table for entry in tables if entry.unconfirmed]), F.col("table"))
    shown = [
        starts.restrict(proofs).select("start_ts", "timestamp", "commit_ts", unconfirmed.alias("unconfirmed"))
        for proofs in found
    ]
    return union([empty, *shown], like=empty), not all(entry.enabled for entry in tables)


def _journal(run: Run, starts: StartSet) -> DataFrame:
    """What was pruned of the transactions in question."""
    if not run.has_journal() or not starts:
        return no_rows(run.store.spark, omid.JOURNALED)
    since = run.state().numbered_anew()
    cells = run.store.cells(run.config.state.journal_table, omid.commit_ranges(*starts.span))
    return starts.restrict(omid.journal(cells, since))


def _hidden(run: Run, starts: StartSet) -> DataFrame:
    """Transactions whose row in the commit table lies behind a delete marker: a mark put there could not be read
    back.
    """
    if not starts:
        return no_rows(run.store.spark, "start_ts bigint")
    raw = run.store.cells(run.config.omid.commit_table, omid.commit_ranges(*starts.span), raw=True)
    start = omid.long_of(F.substring("row", 2, 8))
    family, mark = bytearray(run.config.omid.commit_family.encode()), bytearray(INVALID_QUALIFIER)
    covers = F.col("kind").isin("delete_family", "delete_family_version") | (
        F.col("kind").isin("delete_column", "delete") & (F.col("qualifier") == mark)
    )
    rows = raw.where((F.length("row") == 9) & (F.col("family") == family) & covers & (F.col("timestamp") >= start))
    return starts.restrict(rows.select(start.alias("start_ts")).distinct())
