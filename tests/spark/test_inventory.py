"""The inventory's look into tables: where shadow cells are searched for, and what stands as transactional."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.frames import inventory
from lowtide_spark.frames.inventory import take_inventory, transactional
from pyspark.sql import DataFrame, SparkSession

from lowtide.config import Config
from lowtide.store.records import Listing
from lowtide.tables.inventory import FAMILY_FLAG, Descriptor, Entry, Kind

FLAG = {FAMILY_FLAG: "true"}
OWN = sorted(Config().own_tables)


@pytest.fixture(autouse=True)
def nothing_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No collection has run, HBase keeps no labels and nobody else's records: what the gateway would tell."""
    monkeypatch.setattr(inventory, "_recorded", lambda *_: (Listing(), []))


def a_store(spark: SparkSession, shadowed: dict[str, set[str]], *descriptors: Descriptor) -> Any:
    """A store of these tables; in the families of *shadowed* the sample finds a shadow cell, in all a put."""

    def samples_of(tables: list[str], rows: int) -> list[DataFrame]:
        assert len(tables) <= inventory.TOGETHER
        cells: list[Any] = [(d.table, f, None, "put") for d in descriptors if d.table in tables for f in d.families]
        cells += [(table, f, 100, "shadow") for table in tables for f in shadowed.get(table, ())]
        cells = [(table, bytearray(f.encode()), *rest) for table, f, *rest in cells]
        return [spark.createDataFrame(cells, "table string, family binary, commit_ts bigint, kind string")]

    there = list(descriptors)
    return SimpleNamespace(config=Config(), descriptors=lambda: there, samples_of=samples_of, lacking=lambda _: [])


def test_a_family_without_mark_is_looked_into(spark: SparkSession) -> None:
    """Also beside one that bears a mark; a table with a mark on each is not."""
    orders = Descriptor("orders", True, {}, (), {"f": FLAG, "g": {}})
    logs = Descriptor("logs", True, {}, (), {"f": {}})
    found = {e.table: e for e in take_inventory(a_store(spark, {"orders": {"g"}, "logs": {"f"}}, orders, logs))}
    assert (found["orders"].kind, found["orders"].families) == (Kind.TRANSACTIONAL, {"f"})
    assert found["orders"].unmarked == {"g"}
    assert (found["logs"].kind, found["logs"].unmarked) == (Kind.UNMARKED, {"f"})


def test_every_table_is_looked_into_however_many_there_are(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are sampled some at a time."""
    monkeypatch.setattr(inventory, "TOGETHER", 2)
    tables = [Descriptor(f"t{n}", True, {}, (), {"f": {}}) for n in range(5)]
    found = take_inventory(a_store(spark, {t.table: {"f"} for t in tables}, *tables))
    assert [e.kind for e in found] == [Kind.UNMARKED] * 5


def test_own_tables_are_not_of_the_inventory(spark: SparkSession) -> None:
    """Omid's and Lowtide's: they would be taken for other people's."""
    tables = [Descriptor(name, True, {}, (), {"f": {}}) for name in (*OWN, "orders")]
    assert [e.table for e in take_inventory(a_store(spark, {}, *tables))] == ["orders"]


def test_what_may_be_transactional_counts_as_it(spark: SparkSession) -> None:
    """A table of unknown standing may hold the proof of a commit."""
    entries = [Entry(kind.name, kind, True) for kind in Kind]
    assert {e.table for e in transactional(entries)} == {kind.name for kind in Kind} - {"PLAIN"}
