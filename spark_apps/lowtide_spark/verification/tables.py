"""What is read: which tables, their families and key ranges, their raw cells; and the commit table and the journal."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide.tables.inventory import Descriptor, Kind, marked_families
from lowtide.tables.settings import shape_of
from lowtide.values.keyranges import KeyRange
from lowtide.verification.findings import Verification
from lowtide.verification.records import Published, Records, published
from lowtide.verification.watermarks import allowed, recorded, stated
from lowtide_spark.frames.local import few_rows
from lowtide_spark.frames.store import FOREVER
from lowtide_spark.run.context import Run
from lowtide_spark.verification.rawcells import proofs


@dataclass
class Table:
    """A transactional table as it is read: its transactional families, all of them, and key ranges. Each has the
    timestamp up to which it is claimed to be clean: published as its watermark, or as the records allow it now.
    """

    name: str
    families: frozenset[str]
    all_families: frozenset[str]
    ranges: list[Published]
    of: int


def families_by_table(
    run: Run, described: Iterable[Descriptor], records: Records, found: Verification
) -> dict[str, frozenset[str]]:
    """The transactional families of every table that can be read.

    By marks, by what was published, by the configuration; by code of its own.
    """
    inventory = json.loads(records.get("inventory", {}).get("value", "[]"))
    listed = inventory if isinstance(inventory, list) else inventory["tables"]  # in format 1 it was the tables alone
    known = {e["table"]: frozenset(e["families"]) for e in listed if e["kind"] == "transactional"}
    asked = frozenset(run.options.table)
    tables = {}
    for d in described:
        if d.table in run.config.own_tables or run.config.omid.is_foreign(d.table):
            continue
        kind = run.config.table(d.table).kind
        families = marked_families(d)[0] | (known.get(d.table, frozenset()) & frozenset(d.families))
        if kind is Kind.TRANSACTIONAL:
            families = frozenset(d.families)
        if not families or (kind is Kind.PLAIN and not marked_families(d)[0]):
            continue
        if asked and d.table not in asked:
            continue
        if d.enabled:
            tables[d.table] = families
        else:
            found.unseen.append(f"table {d.table} is disabled and cannot be read; enable it, or drop it")
    found.unseen += [
        f"table {name} is not there, or bears no mark of Omid"
        for name in sorted(asked - set(tables))
        if not any(name in u for u in found.unseen)
    ]
    return tables


def planned(run: Run, descriptor: Descriptor, families: frozenset[str], records: Records) -> Table:
    """The table's key ranges: those that watermarks were published for last, or its regions now."""
    name = descriptor.table
    regions = run.store.regions(name)
    run.note_reading(name, regions)
    ranges = [p for p in published(records) if p.table == name]
    if not ranges:
        ranges = [Published(name, r.keys.start, r.keys.stop, 0) for r in regions]
    columns = records.get(f"table/{name}", {})
    if stated(columns) == max((r.stated for r in regions), default=0):  # what is recorded is of this life of the table
        facts = recorded(columns, families, shape_of(descriptor, families))
        ranges = [replace(p, watermark=max(p.watermark, allowed(p.start, p.stop, facts) or 0)) for p in ranges]
    of = len(ranges)
    if run.options.sample is not None:
        draw = random.Random(f"{run.request.run}/{name}")
        ranges = sorted(draw.sample(ranges, max(1, round(len(ranges) * run.options.sample))), key=lambda p: p.start)
    return Table(name, families, frozenset(descriptor.families), ranges, of)


def whole(run: Run, name: str) -> Table:
    """A table with all of its families, in one range, of which nothing is claimed."""
    (descriptor,) = (d for d in run.store.descriptors() if d.table == name)
    families = frozenset(descriptor.families)
    return Table(name, families, families, [Published(name, b"", b"", 0)], 1)


def raw_cells(run: Run, table: Table) -> DataFrame:
    """Raw cells of all of the table's families: any may hold a proof. ``region`` is the number of the key range."""
    ranges = [WorkRange(str(i), KeyRange(p.start, p.stop), 0, FOREVER) for i, p in enumerate(table.ranges)]
    return run.store.cells(table.name, ranges, raw=True)


def with_claims(run: Run, table: Table, cells: DataFrame) -> DataFrame:
    """*cells* of the table with ``watermark``: the timestamp up to which their key range is claimed to be clean."""
    claims = [(str(i), p.watermark) for i, p in enumerate(table.ranges)]
    return cells.join(F.broadcast(few_rows(run.store.spark, claims, "region string, watermark bigint")), "region")


def transactional(table: Table) -> Column:
    """Whether a cell is of a family whose cells are transactions'; those of others are nobody's business here."""
    return F.col("family").isin([bytearray(f.encode()) for f in table.families])


def commits_and_marks(run: Run, found: Verification) -> DataFrame:
    """What commit table and journal say of each transaction, row by row."""
    there = {d.table for d in run.store.descriptors()}
    commit = run.store.cells(run.config.omid.commit_table)
    journal = run.config.state.journal_table
    pruned = run.store.cells(journal) if journal in there else commit.limit(0)
    pruned = pruned.where(F.col("timestamp") >= found.numbered_anew)
    return proofs(commit, pruned, run.config.omid.commit_family)
