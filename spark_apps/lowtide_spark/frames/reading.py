"""Tables as DataFrames, through the connector; what tables and regions there are."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.facts import Region
from lowtide.cleaning.planning import WorkRange
from lowtide.errors import StoreError
from lowtide.run.patience import Patience
from lowtide.run.rate import READS
from lowtide.tables.inventory import Descriptor
from lowtide.values.keyranges import KeyRange
from lowtide_spark.frames.connector import Connector, explained

#: Above every timestamp: no upper bound on the time range.
FOREVER = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Source:
    """How a table is read: from the live table, or from an HBase snapshot and its scratch folder."""

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


@dataclass(frozen=True, slots=True)
class TableRead:
    """What is read of one table among others: *families* and *ranges*, or all of it where these are None."""

    table: str
    families: Sequence[str] | None = None
    ranges: Sequence[WorkRange] | None = None

    def option(self) -> dict[str, Any]:
        """An entry of the connector's option ``tables``."""
        families = {} if self.families is None else {"families": list(self.families)}
        ranges = {} if self.ranges is None else {"ranges": _ranges(self.ranges)}
        return {"table": self.table} | families | ranges


class Reading(Connector):
    """What is read: of tables as DataFrames, of the cluster as lists."""

    def versions(
        self,
        table: str,
        ranges: Sequence[WorkRange],
        families: Sequence[str],
        source: Source = LIVE,
        *,
        traces: bool = False,
    ) -> DataFrame:
        """Cell versions of *ranges*, each with its own time range.

        One ``end_of_range`` row a partition and family tells what was read. With *traces*, tombstones, cells without
        qualifier and shadow cells without data pass every filter on timestamps.
        """
        options = {"ranges": _ranges_json(ranges), "endRows": "true", "traces": str(traces).lower()}
        frame = self._read("versions", table, **options, **source.options())
        return frame.where(_is_family(families))

    def versions_of(self, reads: Sequence[TableRead]) -> list[DataFrame]:
        """What :meth:`versions` gives of several live tables: a frame for those of each rate, for one table's tasks
        wait for no other's. A query of many tables is planned, and small ones are read, in about the time of one.
        """
        return self._several(reads, endRows="true")

    def proofs(self, read: TableRead, span: tuple[int, int], source: Source = LIVE) -> DataFrame:
        """Shadow cells with timestamps in [span): ``table, start_ts, timestamp, commit_ts``.

        Those of an unknown form come with null for ``commit_ts``, also from outside the span.
        """
        only = {} if read.ranges is None else {"ranges": _ranges_json(read.ranges)}
        frame = self._read("versions", read.table, **source.options(), **only)
        return _proofs(frame.where(_is_family(read.families)), span)

    def proofs_of(self, reads: Sequence[TableRead], span: tuple[int, int]) -> list[DataFrame]:
        """What :meth:`proofs` gives of several live tables, in frames as :meth:`versions_of`."""
        return [_proofs(frame, span) for frame in self._several(reads)]

    def samples_of(self, tables: Sequence[str], rows: int) -> list[DataFrame]:
        """Some cell versions from the beginning of every region of several live tables, in frames as
        :meth:`versions_of`.
        """
        return self._several([TableRead(table) for table in tables], rowsPerRange=str(rows))

    def _several(self, reads: Sequence[TableRead], view: str = "versions", **options: str) -> list[DataFrame]:
        paces: dict[str, list[TableRead]] = {}
        for read in reads:
            paces.setdefault(json.dumps(self._paced(read.table, READS)), []).append(read)
        return [
            self._read(view, None, tables=json.dumps([r.option() for r in some]), **json.loads(paced), **options)
            for paced, some in paces.items()
        ]

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

    def raw_cells_of(self, reads: Sequence[TableRead], first: int) -> list[DataFrame]:
        """What :meth:`cells` gives, ``raw`` and the *first* of each region, of ranges of several live tables, in frames
        as :meth:`versions_of`. Of which range a cell is tells ``region``.
        """
        return self._several(reads, "cells", raw="true", rowsPerRange=str(first))

    def descriptors(self) -> list[Descriptor]:
        """All tables but HBase's own.

        Raises:
            StoreError: they cannot be listed, or HBase keeps some of them from this user: one of those could hold the
                proof of a commit.
        """
        tables: dict[str, Descriptor] = {}
        families: dict[str, dict[str, dict[str, str]]] = {}
        for r in self._listed("tables"):
            of_table = families.setdefault(r.table, {})
            tables.setdefault(r.table, Descriptor(r.table, r.enabled, r.attributes, tuple(r.coprocessors), of_table))
            of_table[r.family] = dict(r.family_attributes)
        return list(tables.values())

    def regions(self, table: str) -> list[Region]:
        """The regions of *table* now, in key order.

        Raises:
            StoreError: they do not cover the table from end to end (one is between states).
        """
        return _covering(table, self._listed("regions", table))

    def opened(self, table: str) -> dict[str, int]:
        """By region of *table*: no server has read the table's settings for it before this time, ms by the clock of
        HBase's master; 0 where it is not open.

        Raises:
            StoreError: hbase:meta does not tell.
        """
        try:
            told: dict[str, int] = json.loads(self._admin().opened(self._java_options, table))
        except (Py4JError, PySparkException) as error:
            raise explained(error, table) from error
        return told

    def regions_of(self, tables: Sequence[str]) -> Callable[[str], list[Region]]:
        """The regions of several tables, listed now and all at once: by table, as :meth:`regions` gives and raises
        them. One that was not there is asked for by itself, and each where they cannot be listed together: one that
        nobody answers for hides no other.
        """
        rows: dict[str, list[Any]] = {}
        try:
            for row in self._listed("regions", *tables) if len(tables) > 1 else ():
                rows.setdefault(row.table, []).append(row)
        except StoreError:
            rows.clear()
        patience = Patience()
        return lambda table: (
            _covering(table, rows[table]) if table in rows else patience.ask(lambda: self.regions(table))
        )


def _is_family(families: Sequence[str] | None) -> Any:
    return F.lit(True) if families is None else F.col("family").isin([bytearray(f.encode()) for f in families])


def _covering(table: str, rows: Sequence[Any]) -> list[Region]:
    found = sorted(
        (
            Region(
                r.region,
                KeyRange(bytes.fromhex(r.start), bytes.fromhex(r.stop)),
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
        msg = (
            f"the regions of {table} do not cover it from end to end; one may be in transition: look at HBase's "
            "master, run again"
        )
        raise StoreError(msg)
    return found


def _proofs(versions: DataFrame, span: tuple[int, int]) -> DataFrame:
    return versions.where(
        F.col("commit_ts").isNotNull() & (F.col("timestamp") >= span[0]) & (F.col("timestamp") < span[1])
    ).select("table", "start_ts", "timestamp", "commit_ts")


def _ranges_json(ranges: Sequence[WorkRange]) -> str:
    return json.dumps(_ranges(ranges))


def _ranges(ranges: Sequence[WorkRange]) -> list[dict[str, Any]]:
    return [
        {"id": r.region, "start": r.keys.start.hex(), "stop": r.keys.stop.hex(), "from": r.from_ts, "to": r.to_ts}
        for r in ranges
    ]
