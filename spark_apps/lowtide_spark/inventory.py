"""The inventory: every transactional table of the cluster, whichever tables a run was given."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce

from pyspark.sql import functions as F

from lowtide.catalog import CATALOG_TABLES, COLUMNS, Catalog, parse, told_by
from lowtide.config import Config
from lowtide.inventory import Descriptor, Entry, Kind, classify, is_phoenix, marked_families
from lowtide_spark.store import Store, cause

#: Rows at the start of each region that are looked at for shadow cells, where a family bears no mark.
SAMPLE_ROWS = 1000
#: Tables sampled in one Spark job.
SAMPLE_BATCH = 40


def take_inventory(store: Store) -> list[Entry]:
    """All tables but HBase's, Omid's and Lowtide's own, with what each is.

    Must be called after the low watermark was read: a table that comes later can hold no committed cell at or below it.
    """
    config = store.config
    descriptors = [d for d in store.descriptors() if d.table not in config.own_tables]
    in_question = [d for d in descriptors if _needs_sample(d, config)]
    shadowed: dict[str, frozenset[str]] = {}
    for start in range(0, len(in_question), SAMPLE_BATCH):
        shadowed |= _shadowed_families(store, in_question[start : start + SAMPLE_BATCH])
    catalog = _catalog(store, descriptors)
    return [
        told_by(catalog, classify(d, config.table(d.table).kind, shadowed.get(d.table, frozenset())), d)
        for d in sorted(descriptors, key=lambda d: d.table)
    ]


def _catalog(store: Store, descriptors: Sequence[Descriptor]) -> Catalog | None:
    """Phoenix's catalog; None where no table of the cluster is Phoenix's."""
    if not any(is_phoenix(d) for d in descriptors):
        return None
    table = next((d.table for d in descriptors if d.table in CATALOG_TABLES), None)
    if table is None:
        return Catalog({}, f"there is no {CATALOG_TABLES[0]}")
    try:
        cells = store.cells(table).where(F.col("qualifier").isin([bytearray(name) for name in COLUMNS]))
        return parse((bytes(c.row), bytes(c.qualifier), bytes(c.value)) for c in cells.collect())
    except Exception as error:  # Spark's, HBase's: whatever it is, what the catalog would have said is not known
        return Catalog({}, f"{table}: {cause(error)}")


def _needs_sample(descriptor: Descriptor, config: Config) -> bool:
    unmarked = frozenset(descriptor.families) - marked_families(descriptor)[0]
    return bool(unmarked) and descriptor.enabled and config.table(descriptor.table).kind is None


def _shadowed_families(store: Store, descriptors: Sequence[Descriptor]) -> dict[str, frozenset[str]]:
    seen = F.max(F.col("commit_ts").isNotNull() | F.col("kind").isin("shadow", "unknown")).alias("seen")
    samples = [
        store.sample(d.table, SAMPLE_ROWS).groupBy("family").agg(seen).withColumn("table", F.lit(d.table))
        for d in descriptors
    ]
    found: dict[str, set[str]] = defaultdict(set)
    for r in reduce(lambda a, b: a.unionByName(b), samples).where("seen").collect():
        found[r.table].add(bytes(r.family).decode())
    return {table: frozenset(families) for table, families in found.items()}


def transactional(entries: Sequence[Entry]) -> list[Entry]:
    """The tables whose cells may be transactions', those of unknown standing included."""
    return [e for e in entries if e.kind is not Kind.PLAIN]
