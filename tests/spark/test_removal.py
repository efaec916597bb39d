"""History GC's removal: what is told and remembered of one that broke off between its steps."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.frames.store import Life, Written
from lowtide_spark.history import removal
from lowtide_spark.history.work import HistoryWork
from pyspark.sql import DataFrame, SparkSession

from lowtide.cleaning.facts import Region
from lowtide.errors import ConsentError, StoreError
from lowtide.history.compaction import Uncompacted
from lowtide.run.summary import TableReport
from lowtide.store.records import History, Intent
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.keyranges import KeyRange

REGIONS = [Region("east", KeyRange(b"", b"m"), 1, stated=7), Region("west", KeyRange(b"m", b""), 1, stated=7)]
#: Region, row, kind, timestamp, up to, whether it goes last, bytes.
PLANNED = [
    ("east", "a", "put", 50, 100, False, 10),
    ("east", "a", "tombstone", 100, 100, False, 20),
    ("west", "z", "put", 50, None, False, 40),
    ("west", "z", "shadow", 100, None, False, 80),
    ("west", "y", "family_tombstone", 150, None, True, 160),
]


class Hbase:
    """Acknowledges the first *steps* writes; then the table's owner says no, unless *error* is another."""

    def __init__(self, steps: int, error: Exception, *, stated: int = 7) -> None:
        self.steps, self.error, self.stated = steps, error, stated
        self.sent: list[list[str]] = []

    def check_life(self, life: Life) -> None:
        """It is the table that was read."""

    def life(self, table: str) -> Life:
        return Life(table, self.stated)

    def write(self, mutations: DataFrame, _: str, **__: Any) -> list[Written]:
        if len(self.sent) == self.steps:
            raise self.error
        rows = mutations.collect()
        self.sent.append([r.op for r in rows])
        return [Written(r.region, r.op, 1, 0, 0, 9, None) for r in rows]


class Records:
    """The records, as far as a removal asks them."""

    def __init__(self) -> None:
        self.kept: dict[str, Uncompacted] | None = None

    def check_claim(self, claim: Intent) -> None:
        """It stands."""

    def mark_claim(self, claim: Intent) -> None:
        """None is looked at."""

    def put_uncompacted(self, _: str, value: dict[str, Uncompacted]) -> None:
        self.kept = value


def removed(spark: SparkSession, store: Hbase) -> tuple[HistoryWork, Records]:
    """The work and the records after a removal of :data:`PLANNED`, by which earlier runs had removed something too."""
    records, report = Records(), TableReport("orders", execute=True)
    entry = Entry("orders", Kind.TRANSACTIONAL, True, frozenset({"f"}))
    work = HistoryWork(report, entry, REGIONS, [], 1049, History("orders"))
    work.uncompacted["west", "f"] = 1000
    cells = spark.createDataFrame(
        PLANNED, "region string, row string, kind string, timestamp bigint, up_to bigint, last boolean, bytes bigint"
    ).selectExpr("*", "cast('f' as binary) as family", "cast('' as binary) as qualifier")
    run: Any = SimpleNamespace(store=store, state=lambda: records)
    try:
        removal._delete(run, work, cells, Intent("orders", 1049, b""))
    except (StoreError, OSError):
        assert len(store.sent) == store.steps
    return work, records


def told(work: HistoryWork) -> tuple[int, int, int]:
    counts = work.report.counts
    return counts.deleted, counts.markers, counts.bytes_removed


@pytest.mark.parametrize("error", [ConsentError("no"), StoreError("another run has taken over"), OSError("gone")])
def test_what_went_before_a_removal_broke_off_is_counted_and_remembered(spark: SparkSession, error: Exception) -> None:
    """Not what was still to go, and in no region twice; the next compaction knows of it, as of what went before."""
    work, records = removed(spark, Hbase(1, error))
    assert told(work) == (4, 3, 150)
    assert {r["region"]: (r["versions"], r["shadows"]) for r in work.by_region} == {"east": (2, 0), "west": (1, 1)}
    assert work.report.by_region == sorted(work.by_region, key=lambda r: -r["bytes"])
    assert records.kept == {"east": Uncompacted(0, {"f": 30}), "west": Uncompacted(0, {"f": 1120})}
    assert work.report.problems == []


def test_a_removal_that_never_began_tells_of_nothing(spark: SparkSession) -> None:
    """What earlier runs removed stays known."""
    work, records = removed(spark, Hbase(0, ConsentError("no")))
    assert (told(work), work.by_region) == ((0, 0, 0), [])
    assert records.kept == {"west": Uncompacted(0, {"f": 1000})}


def test_nothing_is_remembered_of_a_table_that_is_another_by_now(spark: SparkSession) -> None:
    """It was restored, say: what went of it is told, and its books begin anew."""
    work, records = removed(spark, Hbase(1, StoreError("restored"), stated=8))
    assert (told(work), records.kept) == ((4, 3, 150), None)
