"""What the tests of the connector share: tables of cells, written and read through nothing but the connector."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lowtide.lab.stack import Stack
from lowtide.values.formats import shadow_qualifier

COLUMNS = (
    "op string, region string, row binary, family binary, qualifier binary, timestamp bigint, value binary, "
    "commit_ts bigint, guard_family binary, guard_qualifier binary, guard_timestamp bigint"
)


class Cell(NamedTuple):
    """A data cell, and the commit timestamp in its shadow cell (none: no shadow cell)."""

    row: bytes
    qualifier: bytes
    timestamp: int
    commit: int | None = None
    value: bytes = b"v"
    family: bytes = b"f"


class Kit:
    """One cluster through one session. Tables get unique names; they are dropped after the module."""

    def __init__(self, spark: SparkSession, stack: Stack) -> None:
        self.spark = spark
        self.options = {
            "hbase.zookeeper.quorum": "127.0.0.1",
            "hbase.zookeeper.property.clientPort": str(stack.config.zookeeper_port),
            "hbase.client.retries.number": "4",
            "hbase.rootdir": stack.hbase_properties()["hbase.rootdir"],
        }
        self.admin: Any = spark._jvm.lowtide.connector.Admin  # type: ignore[union-attr]

    def table(self, family: str = "f", encoding: str | None = None) -> str:
        """A new table that keeps all versions, its data blocks encoded if asked for."""
        name = f"connector_{uuid.uuid4().hex[:10]}"
        if encoding is None:
            self.admin.createTable(self.options, name, family, 2**31 - 1)
            return name
        hadoop: Any = self.spark._jvm.org.apache.hadoop  # type: ignore[union-attr]
        client = hadoop.hbase.client
        descriptor = client.TableDescriptorBuilder.newBuilder(hadoop.hbase.TableName.valueOf(name)).setColumnFamily(
            client.ColumnFamilyDescriptorBuilder.newBuilder(family.encode())
            .setMaxVersions(2**31 - 1)
            .setDataBlockEncoding(hadoop.hbase.io.encoding.DataBlockEncoding.valueOf(encoding))
            .build()
        )
        with self._master() as admin:
            admin.createTable(descriptor.build())
        return name

    @contextmanager
    def _master(self) -> Iterator[Any]:
        """HBase's own administration."""
        hadoop: Any = self.spark._jvm.org.apache.hadoop  # type: ignore[union-attr]
        settings = hadoop.hbase.HBaseConfiguration.create()
        for key, value in self.options.items():
            settings.set(key, value)
        connection = hadoop.hbase.client.ConnectionFactory.createConnection(settings)
        try:
            yield connection.getAdmin()
        finally:
            connection.close()

    @contextmanager
    def closed(self, table: str) -> Iterator[Callable[[], None]]:
        """No server has the table's one region open, until what this gives is called, or the table is enabled anew."""
        name = self.spark._jvm.org.apache.hadoop.hbase.TableName.valueOf(table)  # type: ignore[union-attr]
        with self._master() as admin:
            (region,) = admin.getRegions(name)
            admin.unassign(region.getRegionName(), False)
            yield lambda: admin.assign(region.getRegionName())

    def region_threads(self) -> int:
        """Threads that an open region starts, in the driver, which is also the executor."""
        running = self.spark._jvm.java.lang.Thread.getAllStackTraces().keySet()  # type: ignore[union-attr]
        pattern = re.compile("Lru|Mob|StoreFile|StoreOpener|StoreCloser|HFile|MemStore|Chunk|RpcServer|Evict")
        return sum(pattern.search(thread.getName()) is not None for thread in running)

    def read(self, table: str | None, **options: Any) -> DataFrame:
        """A DataFrame of the view *versions*, unless another is named."""
        reader = self.spark.read.format("lowtide").options(**self.options).options(**options)
        return (reader if table is None else reader.option("table", table)).load()

    def write(self, table: str, rows: Iterable[dict[str, Any]] | DataFrame, **options: str) -> list[dict[str, Any]]:
        """Write mutations and return the report."""
        frame = rows if isinstance(rows, DataFrame) else self.frame(rows)
        name = uuid.uuid4().hex
        settings = {**self.options, "table": table, "writeId": name, **options}
        frame.write.format("lowtide").options(**settings).mode("append").save()
        return json.loads(self.admin.takeReport(name))

    def frame(self, rows: Iterable[dict[str, Any]]) -> DataFrame:
        """Mutations as a DataFrame with all columns."""
        names = [part.split()[0] for part in COLUMNS.split(", ")]
        return self.spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], COLUMNS)

    def put(self, table: str, cells: Iterable[Cell]) -> None:
        """Put cells with their shadow cells."""
        rows = []
        for cell in cells:
            place = {"op": "put", "row": cell.row, "family": cell.family, "timestamp": cell.timestamp}
            rows.append({**place, "qualifier": cell.qualifier, "value": cell.value})
            if cell.commit is not None:
                shadow = cell.commit.to_bytes(8, "big")
                rows.append({**place, "qualifier": shadow_qualifier(cell.qualifier), "value": shadow})
        report = self.write(table, rows)
        assert [(r["op"], r["done"], r["failed"]) for r in report] == [("put", len(rows), 0)]

    @contextmanager
    def snapshot(self, table: str) -> Iterator[dict[str, str]]:
        """Options that read a new HBase snapshot of the table; it and the scratch folder are gone afterwards."""
        name = f"s{uuid.uuid4().hex[:10]}"
        self.admin.createSnapshot(self.options, table, name)
        scratch = self.admin.scratchDir(self.options, name)
        try:
            yield {"read": "snapshot", "snapshot": name, "restoreDir": scratch}
        finally:
            self.admin.dropScratchDir(self.options, scratch)
            self.admin.dropSnapshot(self.options, name)

    def plain(self, table: str) -> dict[tuple[bytes, bytes, int], bytes]:
        """What HBase holds: value by row, qualifier and timestamp, shadow cells too, without what markers hide."""
        raw = self.read(table, view="cells", raw="true").orderBy("row", "qualifier", F.desc("timestamp")).collect()
        deleted = {(bytes(r.row), bytes(r.qualifier), r.timestamp) for r in raw if r.kind == "delete"}
        deleted_up_to = {(bytes(r.row), bytes(r.qualifier)): r.timestamp for r in raw if r.kind == "delete_column"}
        return {
            (bytes(r.row), bytes(r.qualifier), r.timestamp): bytes(r.value)
            for r in raw
            if r.kind == "put"
            and (bytes(r.row), bytes(r.qualifier), r.timestamp) not in deleted
            and r.timestamp > deleted_up_to.get((bytes(r.row), bytes(r.qualifier)), -1)
        }


def shown(frame: DataFrame) -> list[tuple[Any, ...]]:
    """Rows as tuples with real bytes, in a fixed order."""
    rows = [tuple(bytes(v) if isinstance(v, bytearray) else v for v in row) for row in frame.collect()]
    return sorted(rows, key=repr)
