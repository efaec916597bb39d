"""Tables as DataFrames, through the connector; what tables and regions there are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.facts import Region
from lowtide.cleaning.planning import WorkRange
from lowtide.errors import StoreError
from lowtide.tables.inventory import Descriptor
from lowtide.values.keyranges import KeyRange
from lowtide_spark.frames.connector import Connector

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

    def proofs(
        self,
        table: str,
        families: Sequence[str],
        span: tuple[int, int],
        source: Source = LIVE,
        ranges: Sequence[WorkRange] = (),
    ) -> DataFrame:
        """Shadow cells in *families* with timestamps in [span): ``start_ts, timestamp, commit_ts``.

        Of the whole table, or of *ranges* alone. Those of an unknown form come with null for ``commit_ts``, also from
        outside the span.
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
                for r in self._listed("regions", table)
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


def _is_family(families: Sequence[str]) -> Any:
    return F.col("family").isin([bytearray(f.encode()) for f in families])


def _ranges_json(ranges: Sequence[WorkRange]) -> str:
    return json.dumps(
        [
            {"id": r.region, "start": r.keys.start.hex(), "stop": r.keys.stop.hex(), "from": r.from_ts, "to": r.to_ts}
            for r in ranges
        ]
    )
