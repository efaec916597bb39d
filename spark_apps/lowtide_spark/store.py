"""The store as Spark sees it: DataFrames through the connector, and the few things asked of HBase's master."""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lowtide.cleaned import Region
from lowtide.config import Config
from lowtide.errors import StoreError, TableError
from lowtide.inventory import Descriptor
from lowtide.keyranges import KeyRange
from lowtide.planning import WorkRange
from lowtide.state import Claim

FORMAT = "lowtide"
#: Above every timestamp: no upper bound on the time range.
FOREVER = 2**63 - 1
#: Durabilities of tables whose servers may lose what they acknowledged.
UNSYNCED = ("ASYNC_WAL", "SKIP_WAL")
#: No run reads a snapshot for so long: a scratch folder of before is a dead one's.
SCRATCH_KEPT = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the mutations of one kind in one region: acknowledged, refused by their guard, failed."""

    region: str
    op: str
    done: int
    refused: int
    failed: int
    bytes: int
    failure: str | None


@dataclass(frozen=True, slots=True)
class Life:
    """A table as it was when a run listed its regions: known by *stated*, the time in ms of its state in hbase:meta.

    That is written anew whenever the table is made, disabled or enabled; an HBase snapshot is restored or cloned only into a table that is disabled
    or not there. Given to :meth:`Store.write`, it is looked at again by each task before each of its batches.
    """

    table: str
    stated: int

    @classmethod
    def of(cls, table: str, regions: Sequence[Region]) -> Life:
        """Of *table* when its *regions* were listed."""
        return cls(table, max((r.stated for r in regions), default=0))


def by_region(written: Iterable[Written]) -> Counter[str]:
    """How many mutations of each region were answered for: done, refused or failed."""
    answered = Counter[str]()
    for w in written:
        answered[w.region] += w.done + w.refused + w.failed
    return answered


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An HBase snapshot; *created* in ms."""

    name: str
    table: str
    created: int


@dataclass(frozen=True, slots=True)
class Source:
    """How a table is read: from the live table, or from a snapshot and its scratch folder."""

    snapshot: str | None = None
    scratch: str | None = None

    @property
    def name(self) -> str:
        """``rpc`` or ``snapshot``, as the connector calls them."""
        return "snapshot" if self.snapshot else "rpc"

    def options(self) -> dict[str, str]:
        """The connector's options for it."""
        if self.snapshot is None or self.scratch is None:
            return {"read": "rpc"}
        return {"read": "snapshot", "snapshot": self.snapshot, "restoreDir": self.scratch}


LIVE = Source()


class Store:
    """One HBase cluster, through one Spark session."""

    def __init__(self, spark: SparkSession, config: Config, bytes_per_second: int = 0) -> None:
        """*bytes_per_second*: what all tasks together read of live tables at most; 0: no limit."""
        self.spark = spark
        self.config = config
        self._options = config.hbase.client_properties()
        tasks = spark.sparkContext.defaultParallelism
        self._pace = {"bytesPerSecond": str(max(1, bytes_per_second // tasks))} if bytes_per_second else {}
        #: Tables with a write that broke off: executors that the driver lost may go on with it.
        self.unfinished: set[str] = set()

    # -- reading

    def versions(
        self,
        table: str,
        ranges: Sequence[WorkRange],
        families: Sequence[str],
        source: Source = LIVE,
        *,
        traces: bool = False,
    ) -> DataFrame:
        """Cell versions of *ranges*, each with its own time range; one ``end_of_range`` row a partition and family tells what was read.

        With *traces*, tombstones, cells without qualifier and shadow cells without data pass every filter on timestamps.
        """
        options = {"ranges": _ranges_json(ranges), "endRows": "true", "traces": str(traces).lower()}
        frame = self._read("versions", table, **options, **source.options())
        return frame.where(_is_family(families))

    def proofs(
        self,
        table: str,
        families: Sequence[str],
        span: tuple[int, int],
        source: Source = LIVE,
        ranges: Sequence[WorkRange] = (),
    ) -> DataFrame:
        """Shadow cells in *families* with timestamps in [span): ``start_ts, timestamp, commit_ts``.

        Of the whole table, or of *ranges* alone. Those of an unknown form come with null for ``commit_ts``, also from outside
        the span.
        """
        only = {"ranges": _ranges_json(ranges)} if ranges else {}
        frame = self._read("versions", table, **source.options(), **only)
        return frame.where(
            _is_family(families)
            & F.col("commit_ts").isNotNull()
            & (F.col("timestamp") >= span[0])
            & (F.col("timestamp") < span[1])
        ).select("start_ts", "timestamp", "commit_ts")

    def sample(self, table: str, rows: int) -> DataFrame:
        """Some cell versions from the beginning of every region."""
        return self._read("versions", table, rowsPerRange=str(rows))

    def cells(
        self, table: str, ranges: Sequence[WorkRange] = (), raw: bool = False, first: int = 0, *, every: bool = False
    ) -> DataFrame:
        """Cells of a plain table, of each column the newest version.

        Args:
            table: name.
            ranges: where; none: everywhere.
            raw: all versions, delete markers, and what these hide. Whatever the ranges' timestamps, all of it is read.
            first: so many of each region (0: all).
            every: all versions that no delete marker hides.
        """
        extra = {"ranges": _ranges_json(ranges)} if ranges else {}
        extra |= {"allVersions": "true"} if every else {}
        extra |= {"rowsPerRange": str(first)} if first else {}
        return self._read("cells", table, raw=str(raw).lower(), **extra)

    def descriptors(self) -> list[Descriptor]:
        """All tables but HBase's own.

        Raises:
            StoreError: they cannot be listed, or HBase keeps some of them from this user: one of those could hold the proof of a commit.
        """
        tables: dict[str, Descriptor] = {}
        try:
            rows = self._read("tables").collect()
        except Exception as error:
            raise error if isinstance(error, StoreError) else _explained(error, None) from error
        for r in rows:
            known = tables.setdefault(r.table, Descriptor(r.table, r.enabled, r.attributes, tuple(r.coprocessors), {}))
            known.families[r.family] = dict(r.family_attributes)  # type: ignore[index]
        return list(tables.values())

    def regions(self, table: str) -> list[Region]:
        """The regions of *table* now, in key order.

        Raises:
            StoreError: they do not cover the table from end to end (one is between states).
        """
        rows = self._read("regions", table).collect()
        found = sorted(
            (
                Region(
                    r.region,
                    KeyRange(bytes(r.start), bytes(r.stop)),
                    r.created,
                    r.store_bytes or 0,
                    r.compacted or 0,
                    r.stated or 0,
                )
                for r in rows
            ),
            key=lambda r: r.keys.start,
        )
        edges = [b"", *(r.keys.stop for r in found)]
        if [r.keys.start for r in found] != edges[:-1] or edges[-1] != b"" or not found:
            msg = f"the regions of {table} do not cover it from end to end; one may be in transition: look at HBase's master, run again"
            raise StoreError(msg)
        return found

    def snapshots(self) -> list[Snapshot]:
        """All snapshots of the cluster."""
        return [Snapshot(r.snapshot, r.table, r.created) for r in self._read("snapshots").collect()]

    def _read(self, view: str, table: str | None = None, **options: str) -> DataFrame:
        if view in ("versions", "cells"):
            options |= self._pace
        reader = self.spark.read.format(FORMAT).options(**self._options).options(view=view, **options)
        try:
            return (reader.option("table", table) if table else reader).load()
        except (AnalysisException, Exception) as error:
            raise _explained(error, table) from error

    # -- writing

    def life(self, table: str) -> Life:
        """*table* as it is now.

        Raises:
            StoreError: HBase cannot tell.
        """
        try:
            return Life(table, self._admin().stated(self._options, table))
        except Py4JError as error:
            msg = f"cannot tell whether {table} is the table that was read: {cause(error)}; nothing more is done to it. Run again"
            raise StoreError(msg) from error

    def check_life(self, life: Life, remedy: str = "Run again: what there is now is read then") -> None:
        """What was planned for a table is done to no other, also not to what a backup has brought back under its name.

        Args:
            life: of the table that was read.
            remedy: what to do where it is another.

        Raises:
            StoreError: it was restored, made anew, or disabled and enabled since, or HBase cannot tell.
        """
        if self.life(life.table) != life:
            msg = f"{life.table} was restored, made anew, or disabled and enabled while the run went on; nothing more is done to it. {remedy}"
            raise StoreError(msg)

    def write(self, mutations: DataFrame, table: str, *, holding: Claim | Sequence[Claim | Life] = ()) -> list[Written]:
        """Apply mutation rows (see the connector's page) and count what became of them.

        Returns when all are acknowledged, refused or failed. A failed mutation does not raise: it is counted, with its text.

        Args:
            mutations: rows.
            table: name.
            holding: what must stand for the write to go on, read by each task before each of its batches, in the records: a task that
                goes on after the run has ended stops when another run takes over; and of the table that was read: what was planned for it
                is not done to what came back in its place.
        """
        name = uuid.uuid4().hex
        claims = [holding] if isinstance(holding, Claim) else holding
        options = {**self._options, "table": table, "writeId": name, "holding": _claims_json(claims)}
        self.unfinished.add(table)
        mutations.write.format(FORMAT).options(**options).mode("append").save()
        self.unfinished.discard(table)
        return [Written(**r) for r in json.loads(self._admin().takeReport(name))]

    # -- single rows

    def work_rows(self, family: str, operations: Sequence[Sequence[Any]]) -> list[Any]:
        """Work off reads and writes of rows by key, many at once; each with its answer, or with a text that says why there is none.

        The operations and their answers are those of ``lowtide.connector.Rows`` (see the connector's page).

        Raises:
            StoreError: HBase cannot be reached.
        """
        try:
            rows = self.spark._jvm.lowtide.connector.Rows  # type: ignore[union-attr]
            found: list[Any] = json.loads(rows.work(self._options, family, json.dumps(operations)))
        except Py4JError as error:
            msg = f"cannot work on rows of the store: {cause(error)}"
            raise StoreError(msg) from error
        return found

    def row(self, table: str, family: str, row: str) -> dict[str, bytes]:
        """One row of *table*, its values by qualifier; empty where the row is not there, or the table.

        Raises:
            StoreError: HBase cannot be reached.
        """
        (answer,) = self.work_rows(family, [["read", table, [row]]])
        if isinstance(answer, str) and "TableNotFound" not in answer:
            msg = f"cannot read row {row} of {table}: {answer}"
            raise StoreError(msg)
        return {} if isinstance(answer, str) else {name: value.encode("latin-1") for name, value in answer[0].items()}

    # -- what HBase's master is asked for

    def left_snapshots(self, tables: Collection[str]) -> list[Snapshot]:
        """Those of :meth:`snapshot` that are still there, of these tables: of runs at work, or of runs that were killed."""
        return [
            s
            for s in self.snapshots()
            if s.table in tables and re.fullmatch(re.escape(_prefix(s.table)) + "[0-9a-f]{12}", s.name)
        ]

    def drop_snapshot(self, name: str) -> None:
        """Drop a snapshot; nothing happens where it is gone.

        Raises:
            StoreError: it cannot be dropped.
        """
        try:
            self._admin().dropSnapshot(self._options, name)
        except Py4JError as error:
            msg = f"cannot drop the HBase snapshot {name}: {cause(error)}; drop it in HBase's shell: delete_snapshot '{name}'"
            raise StoreError(msg) from error

    @contextmanager
    def snapshot(self, table: str, run: str, sweep: bool) -> Iterator[Source]:
        """A snapshot of *table*, memstore included, dropped at the end whatever happens.

        Args:
            table: name.
            run: for the message.
            sweep: whether the caller holds the table's epoch, so that scratch folders left over are of runs that were killed; they go
                after a day.

        Raises:
            StoreError: it cannot be made.
        """
        prefix = _prefix(table)
        if sweep:
            self._admin().sweepScratchDirs(self._options, prefix, SCRATCH_KEPT // timedelta(milliseconds=1))
        name = prefix + uuid.uuid4().hex[:12]
        with ExitStack() as made:
            try:
                scratch = self._admin().scratchDir(self._options, name)
                made.callback(self._admin().dropScratchDir, self._options, scratch)
                self._admin().createSnapshot(self._options, table, name)
                made.callback(self._admin().dropSnapshot, self._options, name)
            except Exception as error:
                msg = (
                    f"cannot make a snapshot of {table} for run {run}: {cause(error)}; "
                    "allow snapshots (hbase.snapshot.enabled, ADMIN permission), or set read: rpc for this table"
                )
                raise StoreError(msg) from error
            yield Source(name, scratch)

    def make_durable(self, table: str) -> None:
        """Write to files what HBase may keep of *table* in memory alone, as clients of a table without a synced log leave it.

        What is deleted or recorded on the strength of such a cell would outlive it when its server dies. Does nothing where the table's
        log is synced.

        Raises:
            StoreError: that cannot be done.
        """
        try:
            if self._admin().durability(self._options, table) in UNSYNCED:
                self._admin().flush(self._options, table)
        except Py4JError as error:
            msg = (
                f"cannot flush {table}, whose clients' writes a server may lose (DURABILITY): {cause(error)}; nothing is done to it. "
                f"In HBase's shell: flush '{table}', then run again"
            )
            raise StoreError(msg) from error

    def create_table(self, table: str, family: str) -> None:
        """Make a table of one family with one version; nothing happens where it is."""
        self._admin().createTable(self._options, table, family, 1)

    def give_bloom_and_cache(self, table: str, families: Sequence[str]) -> None:
        """Give *families* of a table a bloom filter over rows and the block cache; the table stays enabled, its regions are opened again.

        Raises:
            StoreError: HBase does not do it.
        """
        try:
            self._admin().giveBloomAndCache(self._options, table, list(families))
        except Py4JError as error:
            msg = f"cannot alter {table}: {cause(error)}"
            raise StoreError(msg) from error

    def major_compact(self, table: str, family: str, timeout_seconds: int) -> None:
        """Major-compact one family of *table* and wait for the end."""
        self._admin().majorCompact(self._options, table, family, timeout_seconds * 1000)

    def compact_regions(
        self, table: str, families: Mapping[str, Sequence[str]], timeout_seconds: int
    ) -> dict[str, tuple[int, int]]:
        """Major-compact these *families* of regions, wait, and tell each region's bytes on disk before and after (whole MiB).

        A region that was split or merged since it was listed is left out.
        """
        wanted = {region: list(names) for region, names in families.items()}
        report = self._admin().compactRegions(self._options, table, wanted, timeout_seconds * 1000)
        return {region: (before, after) for region, (before, after) in json.loads(report).items()}

    def _admin(self) -> Any:
        return self.spark._jvm.lowtide.connector.Admin  # type: ignore[union-attr]


def _prefix(table: str) -> str:
    return f"lowtide-run-{re.sub(r'[^A-Za-z0-9]', '-', table)}-"


def _is_family(families: Sequence[str]) -> Any:
    return F.col("family").isin([bytearray(f.encode()) for f in families])


def _claims_json(claims: Sequence[Claim | Life]) -> str:
    return json.dumps([_claim_json(claim) for claim in claims])


def _claim_json(claim: Claim | Life) -> dict[str, Any]:
    if isinstance(claim, Life):
        return {"table": claim.table, "stated": claim.stated}
    return {
        "table": claim.table,
        "row": claim.row.hex(),
        "family": claim.family,
        "qualifier": claim.qualifier,
        "value": claim.value.hex(),
    }


def _ranges_json(ranges: Sequence[WorkRange]) -> str:
    return json.dumps(
        [
            {"id": r.region, "start": r.keys.start.hex(), "stop": r.keys.stop.hex(), "from": r.from_ts, "to": r.to_ts}
            for r in ranges
        ]
    )


def cause(error: BaseException) -> str:
    """The innermost message of an error that came through py4j, in one line."""
    text = str(getattr(error, "java_exception", None) or error)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return next((line for line in lines if "Exception" in line), lines[0] if lines else type(error).__name__)


def _explained(error: Exception, table: str | None) -> StoreError:
    reason = cause(error)
    if table is not None and "nknown table" in reason:
        return TableError(f"unknown table {table}; `lowtide tables` lists those there are")
    return StoreError(f"cannot read {table or 'the store'}: {reason}")
