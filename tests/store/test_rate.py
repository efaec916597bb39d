"""A run that keeps to a rate: no faster than it was told, by the clock, and with the result of one that was told
nothing. Only that it is too fast fails a test: a slow machine is slower.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import Outcome
from job_kit import own_spark
from lowtide_spark.frames.store import Store, TableRead
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from scene import Scene

from lowtide.config import Rate, load
from lowtide.errors import ConsentError
from lowtide.lab.workload import OmidClient
from lowtide.run import submit
from lowtide.store.state import StateStore
from lowtide.tables.consent import Pause

Job = Callable[..., Outcome]

ORPHANS = 60
#: Cells and mutations a second. What is let in at a time is a twentieth of that, one at least.
READS, WRITES = 30, 20


def _table(scene: Scene) -> str:
    """Some columns of each row are committed, one is an orphan, one lost its client after the commit."""
    table = scene.table()
    for number in range(ORPHANS):
        row = b"r%d" % number
        scene.orphan(table, row=row)
        scene.committed(table, row=row, qualifier=b"p")
    scene.crashed_after_commit(table, row=b"r0", qualifier=b"o")
    return table


def _shape(scene: Scene, table: str) -> set[tuple[bytes, ...]]:
    """The cells that are there, but for their timestamps."""
    return {key[:3] for key in scene.data(table)}


@pytest.mark.turns(2, group="a cleanup at a rate")
@pytest.mark.parametrize("way", ["rpc", "snapshot"])
def test_a_cleanup_is_no_faster_than_its_rate_and_does_the_same(
    omid: OmidClient, job: Job, scene: Scene, configure: Callable[..., Path], way: str
) -> None:
    """From region servers and from files: for what is read, healed, marked and deleted at least the time goes by that
    the rate has for it; all is done; the summary says the rate, and for how long somebody waited.
    """
    free, paced = _table(scene), _table(scene)
    omid.advance_watermark()
    tables = {table: {"read": way} for table in (free, paced)}
    config = configure(tables=tables)
    fast = job("orphan_cleanup", "--table", free, "--execute", config=config)
    argv = ("--execute", "--rate", str(READS), "--write-rate", str(WRITES))
    slow = job("orphan_cleanup", "--table", paced, *argv, config=config)
    assert (fast.code, slow.code) == (0, 0), fast.problems + slow.problems
    assert slow.totals == fast.totals
    assert slow.table(paced)["read"] == way
    assert (slow.totals["deleted"], slow.totals["healed"]) == (ORPHANS, 1)
    assert _shape(scene, paced) == _shape(scene, free)
    assert fast.summary["pace"] == {}
    pace = slow.summary["pace"]
    assert pace["rates"][paced] == {"reads": READS, "writes": WRITES}
    phases = slow.summary["phases"]
    assert phases["find"] >= (slow.table(paced)["counts"]["cells_read"] - READS / 20) / READS
    written = slow.totals["deleted"] + slow.totals["healed"] + slow.totals["marked"]
    assert phases["act"] >= (written - 1) / WRITES
    assert 0 < pace["waited"]["reads"] < slow.summary["seconds"]
    assert 0 < pace["waited"]["writes"] < slow.summary["seconds"]


@pytest.mark.turns(3, group="executors at a rate")
def test_executors_ask_the_driver_for_their_turn(
    omid: OmidClient, scene: Scene, configure: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Two real ones, in processes of their own: together they are no faster than one, by the rate of the configuration,
    and do all that is to be done.
    """
    table = _table(scene)
    omid.advance_watermark()
    own_spark(monkeypatch, tmp_path)
    file = configure(
        spark={"master": "local-cluster[2,1,1024]", "driver_memory": "512m"},
        tables={table: {"rate": {"reads": READS, "writes": WRITES}}},
    )
    summary = tmp_path / "summary.json"
    asked = ("--config", str(file), "--table", table, "--execute", "--summary", str(summary))
    program = submit.command(load(file), "orphan_cleanup", asked)
    ended = subprocess.run(program, env=submit.environment(), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = json.loads(summary.read_text())
    assert (told["totals"]["deleted"], told["totals"]["healed"]) == (ORPHANS, 1)
    assert told["pace"]["rates"] == {table: {"reads": READS, "writes": WRITES}}
    assert told["phases"]["find"] >= (told["tables"][0]["counts"]["cells_read"] - READS / 20) / READS
    assert min(told["pace"]["waited"].values()) > 0
    assert "rate: at most 30 cells/s read and 20 mutations/s written" in ended.stdout


def test_what_several_tasks_read_and_write_is_one_rate(
    spark: SparkSession, omid: OmidClient, scene: Scene, configure: Callable[..., Path]
) -> None:
    """Four tasks, two at a time, over two tables: all of them together are no faster than one would be."""
    tables = [scene.table(splits=(b"r2", b"r3", b"r4")) for _ in range(2)]
    store = Store(spark, load(configure()), Rate(reads=100, writes=50))
    mutations = spark.range(0, 50, 1, 4).select(
        F.lit("put").alias("op"),
        F.lit("all").alias("region"),
        F.concat(F.lit("r"), F.col("id") % 5, F.lit("x"), F.col("id")).cast("binary").alias("row"),
        F.lit(b"a").alias("family"),
        F.lit(b"q").alias("qualifier"),
        F.lit(50).cast("long").alias("timestamp"),
        F.lit(b"v").alias("value"),
    )
    began = time.monotonic()
    for table in tables:
        (written,) = store.write(mutations, table)
        assert (written.done, written.failed) == (50, 0)
    assert time.monotonic() - began >= (2 * 50 - 2) / 50
    began = time.monotonic()
    assert store.cells(tables[0]).unionByName(store.cells(tables[1])).count() == 100
    # What came in one answer more than was paid for is paid for by the next.
    assert time.monotonic() - began >= 0.5
    assert store.pace()["rates"] == {table: {"reads": 100, "writes": 50} for table in sorted(tables)}


def test_files_of_an_hbase_snapshot_are_read_at_the_rate(
    spark: SparkSession, scene: Scene, configure: Callable[..., Path]
) -> None:
    """Its files lie on the disks that clients of the store read from, too."""
    table = scene.table()
    store = Store(spark, load(configure()), Rate(reads=10, writes=1000))
    for number in range(30):
        scene.committed(table, row=b"r%d" % number)
    with store.snapshot(table, "rate", sweep=True) as source:
        # Once without: what the first read of files costs is no waiting.
        assert Store(spark, store.config).proofs(TableRead(table, ["a"]), (0, 1 << 62), source).count() == 30
        began = time.monotonic()
        assert store.proofs(TableRead(table, ["a"]), (0, 1 << 62), source).count() == 30
        assert time.monotonic() - began >= (60 - 3) / 10


def test_a_pause_that_begins_while_a_batch_waits_keeps_it_from_being_sent(
    spark: SparkSession, scene: Scene, state: StateStore, configure: Callable[..., Path]
) -> None:
    """What must stand for a batch to be sent is read after it has waited for its turn, not before."""
    table = scene.table()
    store = Store(spark, load(configure()), Rate(reads=1000, writes=1000))
    row = spark.range(1).select(
        F.lit("put").alias("op"),
        F.lit("all").alias("region"),
        F.lit(b"r").alias("row"),
        F.lit(b"a").alias("family"),
        F.lit(b"q").alias("qualifier"),
        F.lit(50).cast("long").alias("timestamp"),
        F.lit(b"v").alias("value"),
    )
    state.create()
    state.record_format()
    now = state.server_time()
    pause = Pause("while-it-waits", table, "a test", "in time", now, now + timedelta(minutes=5))
    assert not store._await("writes", 10 * 10**9), "nobody is before it; whoever comes next waits for 10 s"

    def add_once_it_waits() -> None:
        deadline = time.monotonic() + 60
        while not store.pace().get("waited", {}).get("writes") and time.monotonic() < deadline:
            time.sleep(0.05)
        state.add_pause(pause, now)

    later = threading.Thread(target=add_once_it_waits, name="pauses")
    later.start()
    try:
        (written,) = store.write(row, table)
    finally:
        later.join()
        state.drop_pause(pause.id)
    assert (written.done, written.failed) == (0, 1)
    assert f"not tried: a pause of {table} began" in written.failure
    assert scene.data(table) == {}


def test_rows_that_the_driver_reads_and_writes_keep_to_it_too(
    spark: SparkSession, omid: OmidClient, scene: Scene, configure: Callable[..., Path]
) -> None:
    """As the steps of the ledger's repair: all are carried out, each has its answer, in their order. An owner's no ends
    what has not had its turn yet.
    """
    table = scene.table()
    store = Store(spark, load(configure()), Rate(reads=40, writes=20))
    rows = [f"r{number}" for number in range(30)]
    began = time.monotonic()
    assert store.work_rows("a", [["put", table, row, {"q": row}] for row in rows]) == [True] * len(rows)
    assert time.monotonic() - began >= (len(rows) - 1) / 20
    omid.set(table, LOWTIDE="off")
    time.sleep(2 / 20)  # the first portion waits for nobody: who calls has just looked
    with pytest.raises(ConsentError, match=f"nothing .more. is written to {table}"):
        store.work_rows("a", [["put", table, row, {"p": row}] for row in rows])
    assert {qualifier for _, _, qualifier, _ in scene.data(table)} == {b"q", b"p"}, "the first portion was sent"
    assert len(scene.data(table)) == len(rows) + 1
    store._await("writes", 10**9)  # whoever comes next waits for as long
    with pytest.raises(ConsentError, match=f"nothing .more. is written to {table}"):
        store.work_rows("a", [["put", table, "late", {"p": "late"}]])
    assert len(scene.data(table)) == len(rows) + 1, "one that has waited is not"
    began = time.monotonic()
    assert store.work_rows("a", [["read", table, [row]] for row in rows[1:]]) == [[{"q": row}] for row in rows[1:]]
    assert time.monotonic() - began >= (len(rows) - 3) / 40
