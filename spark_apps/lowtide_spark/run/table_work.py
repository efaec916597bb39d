"""What every job does with a table: read it to its end, stop what it does not understand, and count what was answered
for.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from lowtide.cleaning.facts import Region
from lowtide.config import Read
from lowtide.errors import LowtideError, StoreError
from lowtide.run.summary import TableReport
from lowtide.tables.inventory import Entry
from lowtide_spark.frames import shown
from lowtide_spark.frames.computed import frozen
from lowtide_spark.frames.kinds import END_OF_RANGE
from lowtide_spark.frames.store import LIVE, Source, Written, told
from lowtide_spark.run.context import Run

#: Of a cell, what clients may make as long as they like.
_KEYS = ("row", "qualifier")


@dataclass
class TableWork:
    """What a run does with one table: its report, and whether it goes on."""

    report: TableReport

    @property
    def table(self) -> str:
        """Its name."""
        return self.report.table

    @property
    def execute(self) -> bool:
        """Whether the run acts on it, or plans only."""
        return self.report.execute

    def give_up(self, reason: str) -> None:
        """Do nothing (more) to this table."""
        self.report.problems.append(reason)


@dataclass
class RegionWork(TableWork):
    """One table of a run that reads all of its regions."""

    entry: Entry
    regions: list[Region]
    #: Regions that nothing (more) is done to, with the reason.
    stopped: dict[str, str] = field(default_factory=dict, kw_only=True)
    #: By region the cells that were read, and their bytes.
    read_by_region: dict[str, tuple[int, int]] = field(default_factory=dict, kw_only=True)

    #: How the report names a region that is stopped.
    STOPPED: ClassVar[str] = "region {region}: {reason}"

    @property
    def families(self) -> list[str]:
        """The transactional ones."""
        return sorted(self.entry.families)

    def stop(self, regions: Iterable[str], reason: str) -> None:
        """Do nothing (more) to these regions; the first reason is reported."""
        for region in regions:
            if region not in self.stopped:
                self.stopped[region] = reason
                self.report.problems.append(self.STOPPED.format(region=region, reason=reason))

    def go_on(self) -> None:
        """Have no region stopped after all, as a job may that acts on nothing; its problems go with it."""
        texts = {self.STOPPED.format(region=region, reason=reason) for region, reason in self.stopped.items()}
        self.report.problems = [problem for problem in self.report.problems if problem not in texts]
        self.stopped.clear()

    def book(self, written: Sequence[Written], consequence: str = "") -> None:
        """Count acknowledged mutations; a region with one that failed is stopped."""
        for each in written:
            self.report.counts.bytes_written += each.bytes
            self.report.counts.failed += each.failed
            if each.failed:
                self.stop([each.region], f"{each.failed} mutations failed: {each.failure}{consequence}")

    def reckon(self, planned: Mapping[str, int], answered: Mapping[str, int], what: str) -> None:
        """Stop every region in which not all mutations that were planned were answered for, or more."""
        for region, number in planned.items():
            if answered.get(region, 0) != number:
                self.stop([region], f"{number} {what} and {answered.get(region, 0)} answered for; run again")


@contextmanager
def failures_kept(work: TableWork) -> Iterator[None]:
    """One failing table never hides the others, nor costs them their records: its error is kept and its work ends."""
    try:
        yield
    except LowtideError as error:
        work.give_up(str(error))
    except Exception as error:  # Spark's, Thrift's, Java's
        traceback.print_exc()
        work.give_up(told(error))


def begin_report(run: Run, entry: Entry) -> TableReport:
    """The report of what this run does to a table, in the run's summary."""
    report = TableReport(entry.table, execute=run.executes(entry.table))
    run.summary.tables.append(report)
    if entry.unmarked:
        report.notes.append(
            f"families {sorted(entry.unmarked)} hold shadow cells but bear no mark; they are left alone"
        )
    return report


def choose_source(run: Run, work: RegionWork, held: ExitStack, *, full: bool, sweep: bool) -> Source:
    """The live table, or an HBase snapshot made now: after the low watermark was read, memstore included.

    Of a table that the run will act on, and whose clients' writes a server may lose, they are in files first: what is
    decided by a proof, or a delete marker, that the server takes along when it dies would outlive it.

    Args:
        run: the run.
        work: the table.
        held: the HBase snapshot is dropped when it is closed.
        full: whether the table is read from timestamp 0; else its young cells are found fastest in the live one.
        sweep: whether HBase snapshots that earlier runs left of the table are dropped.
    """
    if run.read_only and not run.options.snapshot:
        return LIVE
    settings = run.config.table(work.table)
    if work.execute and settings.accept_durability:
        run.store.make_durable(work.table)
    size = sum(region.store_bytes for region in work.regions)
    readable = "hbase.rootdir" in run.config.hbase.properties  # without it the files of one cannot be found
    large = settings.read is Read.AUTO and readable and full and size >= settings.snapshot_from_bytes
    if settings.read is Read.SNAPSHOT or large or run.read_only:
        return held.enter_context(run.store.snapshot(work.table, run.request.run, sweep=sweep))
    return LIVE


def read_once(versions: DataFrame) -> tuple[DataFrame, list[Row]]:
    """Rows of the view ``versions`` with their ``table``, frozen; and for :func:`count_read` what was read of each
    table, region and family.
    """
    is_end = F.col("kind") == END_OF_RANGE
    figures = (
        F.sum("cells_read").alias("cells"),
        F.sum("bytes_read").alias("bytes"),
        F.count_if(~is_end).alias("candidates"),
        F.count_if(is_end).alias("ends"),
    )
    read = frozen(versions)  # before it is counted: where there is nothing, nothing is decided either
    return read, read.groupBy("table", "region", "family").agg(*figures).collect()


def count_read(work: RegionWork, read: Sequence[Row], expected: int, what: str) -> None:
    """Count what was read of a table, by :func:`read_once`.

    Raises:
        StoreError: not every region, or key range, was read to its end.
    """
    counts = work.report.counts
    counts.cells_read = sum(each.cells or 0 for each in read)
    counts.bytes_read = sum(each.bytes or 0 for each in read)
    counts.candidates = sum(each.candidates for each in read)
    work.read_by_region = {}
    for each in read:
        cells, size = work.read_by_region.get(each.region, (0, 0))
        work.read_by_region[each.region] = cells + (each.cells or 0), size + (each.bytes or 0)
    ended = len({each.region for each in read if each.ends})
    if ended != expected:
        msg = (
            f"{expected} {what} of {work.table} were to be read, {ended} were read to their end: nothing was done "
            "by it. Run again; if it stays, driver and executors have connectors of different versions"
        )
        raise StoreError(msg)


def stop_unknown(
    work: RegionWork, unknown: DataFrame, fields: Sequence[str], first: Column, describe: Callable[[Any], str]
) -> None:
    """Stop each region that holds a cell which no rule decides, and name one of them.

    Args:
        work: the table.
        unknown: those cells.
        fields: columns that *describe* takes, ``row`` and ``timestamp`` among them; a key that is too long to be shown
            is null.
        first: by which that one is chosen: the lowest.
        describe: what is wrong with it, and what follows.
    """
    told = [shown.whole(F.col(name)).alias(name) if name in _KEYS else F.col(name) for name in fields]
    one = F.struct(*told, shown.in_hex(F.col("row")).alias("row_told"))
    found = unknown.groupBy("region").agg(F.count("*").alias("n"), F.min_by(one, first).alias("one"))
    for region in found.collect():
        work.stop(
            [region.region],
            f"{region.n} cells that no rule decides, such as row {region.one.row_told} at timestamp "
            f"{region.one.timestamp}: {describe(region.one)}",
        )


def in_regions(regions: Iterable[str]) -> Column:
    """Whether a cell lies in one of these."""
    return F.col("region").isin(list(regions))
