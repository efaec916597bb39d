"""HBase that lets a job's writes and reads through slowly, or not at all: quotas, and regions that are busy."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome, booted
from pyspark.sql import SparkSession
from scene import Scene, check_read_points

from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient, Shape, run
from tests import seeds

Job = Callable[..., Outcome]
Throttle = Callable[..., None]

SHAPE = Shape(tables=("orders",))
TRANSACTIONS = 120
#: A server takes a quota over within that.
_TAKEN_OVER_SECONDS = 4
#: So many bytes in memory, and a region takes no write until they are in a file.
_BUSY_BYTES = 1000


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A store of this module's own, with quotas, and tables whose settings HBase would call unwise."""
    quotas = {
        "hbase.quota.enabled": "true",
        "hbase.quota.refresh.period": "1000",
        "hbase.table.sanity.checks": "false",
        "hbase.hregion.memstore.block.multiplier": "1",
        "hbase.hstore.blockingStoreFiles": "1000",
        "hbase.thrift.server.socket.read.timeout": "900000",
    }
    config = free_ports_config(
        tmp_path_factory.mktemp("store"),
        hbase_heap="512m",
        timestamps="incremental",
        conflict_map_size=64,
        extra_hbase=quotas,
    )
    with booted(config) as store:
        yield store


@pytest.fixture(scope="module")
def omid(stack: Stack) -> Iterator[OmidClient]:
    with OmidClient(stack) as client:
        yield client


@pytest.fixture
def hbase(spark: SparkSession, stack: Stack) -> Iterator[Any]:
    """HBase's administration."""
    hadoop: Any = spark._jvm.org.apache.hadoop  # type: ignore[union-attr]
    settings = hadoop.hbase.HBaseConfiguration.create()
    for name, value in stack.hbase_properties().items():
        settings.set(name, value)
    connection = hadoop.hbase.client.ConnectionFactory.createConnection(settings)
    yield connection.getAdmin()
    connection.close()


@pytest.fixture
def throttle(spark: SparkSession, hbase: Any) -> Iterator[Throttle]:
    """Set a quota of a table, as ``set_quota`` does, until the test is over."""
    jvm: Any = spark._jvm
    quotas = jvm.org.apache.hadoop.hbase.quotas
    throttled: list[Any] = []

    def unset() -> None:
        for table in throttled:
            hbase.setQuota(quotas.QuotaSettingsFactory.unthrottleTable(table))

    def throttle(table: str | None, kind: str = "", limit: int = 0, unit: str = "SECONDS") -> None:
        if table is None:
            unset()
        else:
            name = jvm.org.apache.hadoop.hbase.TableName.valueOf(table)
            throttled.append(name)
            kinds, units = quotas.ThrottleType, jvm.java.util.concurrent.TimeUnit
            settings = quotas.QuotaSettingsFactory
            hbase.setQuota(settings.throttleTable(name, kinds.valueOf(kind), limit, units.valueOf(unit)))
        time.sleep(_TAKEN_OVER_SECONDS)

    yield throttle
    unset()


@pytest.mark.turns(2, group="splits and throttles")
@seeds.each("a cleanup of a throttled table")
def test_a_cleanup_of_a_throttled_table_is_slow_and_whole(
    stack: Stack, omid: OmidClient, job: Job, throttle: Throttle, tmp_path: Path, seed: int
) -> None:
    """A quota of so many requests a second, reads and writes together, has the cleanup wait for its turns: it does all
    that it would have done, nothing failed, and every read point shows what the model says.
    """
    omid.drop("orders")
    history = tmp_path / "history"
    model = run(stack, seed, TRANSACTIONS, history, shape=SHAPE, kills=0, halts=0, regions=2, omid=omid).model
    planned = job("orphan_cleanup", "--full").totals
    to_write = planned["deleted"] + planned["healed"]
    limit = to_write // 6  # the seed says how much there is to hold back
    throttle("orders", "REQUEST_NUMBER", limit)
    began = time.monotonic()
    outcome = job("orphan_cleanup", "--full", "--execute")
    took = time.monotonic() - began
    throttle(None)
    assert (outcome.code, outcome.totals["failed"]) == (0, 0), outcome.problems
    done = {name: outcome.totals[name] for name in ("deleted", "healed")}
    assert done == {name: planned[name] for name in done}
    assert limit, "the quota had nothing to hold back"
    assert took > to_write / limit - 2, "it was not throttled"
    check_read_points(omid, model, seed)


def test_a_quota_that_lets_nothing_through_ends_the_run_by_name(
    omid: OmidClient, job: Job, scene: Scene, throttle: Throttle
) -> None:
    """One write a day: within a minute the run is red, with table, quota and remedy; nothing is recorded as clean. With
    the quota gone the next run does the work.
    """
    table = scene.table()
    orphans = [scene.orphan(table, row=b"r%d" % number) for number in range(30)]
    omid.advance_watermark()
    throttle(table, "WRITE_NUMBER", 1, "DAYS")
    began = time.monotonic()
    outcome = job("orphan_cleanup", "--table", table, "--execute")
    assert time.monotonic() - began < 60
    assert (outcome.code, outcome.totals["failed"] > 0) == (1, True)
    for part in (f"throttles writes to {table}", "number of write requests exceeded", "list_quotas", "set_quota"):
        assert part in outcome.problems
    throttle(None)
    outcome = job("orphan_cleanup", "--table", table, "--execute")
    assert outcome.code == 0, outcome.problems
    assert not any(scene.has(table, start, row=b"r%d" % number) for number, start in enumerate(orphans))


def test_a_quota_that_lets_nothing_be_read_ends_the_run_by_name(
    omid: OmidClient, job: Job, scene: Scene, throttle: Throttle
) -> None:
    """One read a day: the run is red at once, with table, quota and remedy."""
    table = scene.table()
    scene.orphan(table)
    omid.advance_watermark()
    throttle(table, "READ_NUMBER", 1, "DAYS")
    began = time.monotonic()
    outcomes = [job("orphan_cleanup", "--table", table) for _ in range(2)]  # the first may have the one read
    assert time.monotonic() - began < 60
    assert outcomes[1].code == 1
    assert outcomes[1].table(table)["problems"] == [outcomes[1].problems]
    for part in ("number of read requests exceeded", "list_quotas", "set_quota"):
        assert part in outcomes[1].problems


def test_a_region_that_is_busy_is_waited_for(
    spark: SparkSession, omid: OmidClient, job: Job, scene: Scene, hbase: Any
) -> None:
    """A region that takes no write until its memory is in a file, again and again, holds the cleanup up and fails none
    of its writes.
    """
    table = scene.table()
    orphans = [scene.orphan(table, row=b"r%d" % number) for number in range(60)]
    omid.advance_watermark()
    hadoop: Any = spark._jvm.org.apache.hadoop.hbase  # type: ignore[union-attr]
    name = hadoop.TableName.valueOf(table)
    small = hadoop.client.TableDescriptorBuilder.newBuilder(hbase.getDescriptor(name))
    hbase.modifyTable(small.setMemStoreFlushSize(_BUSY_BYTES).build())
    outcome = job("orphan_cleanup", "--table", table, "--execute")
    assert (outcome.code, outcome.totals["failed"]) == (0, 0), outcome.problems
    assert not any(scene.has(table, start, row=b"r%d" % number) for number, start in enumerate(orphans))
