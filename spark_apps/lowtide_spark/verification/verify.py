"""The verifier: whether a store keeps the invariants V1 to V6 of docs/safety.md, by code of its own. Writes nothing to the store.

It trusts neither the rules (``lowtide_spark.cleaning.rules``) nor the reading (the view ``versions``) by which jobs decide, nor the records that they keep: it reads raw
cells, raw records and the sideline's files, and holds them against one another.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from lowtide.cleaning.planning import WorkRange
from lowtide.errors import StoreError, UsageError
from lowtide.tables.inventory import Kind, marked_families
from lowtide.values import hbase_shell
from lowtide.values.clock import EPOCH, millis
from lowtide.values.formats import commit_key, shadow_qualifier
from lowtide.values.keyranges import KeyRange
from lowtide.verification.invariants import (
    JOURNALS_OWN,
    NAMED,
    Published,
    Records,
    Verification,
    Violation,
    bound,
    differences,
    history_mark,
    horizon,
    published,
    read_points,
    watermark_violations,
)
from lowtide_spark.frames.store import FOREVER, cause
from lowtide_spark.run.context import Run
from lowtide_spark.run.progress import told
from lowtide_spark.verification.rawcells import deleted_entries, pairs, proofs

#: The jobs that put aside what they remove.
_REMOVING = ("orphan_cleanup", "history_gc")
#: Records that the verifier looks at, by the beginning of their rows.
_RECORDS = ("table/", "watermarks/", "bound/", "history/", "journal", "run/", "inventory")
_MAX_MILLIS = 10**15
#: Between two looks at records that do not agree: a collection may just be publishing.
_LOOK_AGAIN = 5.0
_COMPLETE = "Run lowtide run orphan_cleanup --table {table} --full --execute, then verify again"


def verify(run: Run) -> None:
    """The job ``verify``; the exit code is 1 where an invariant does not hold, 2 where something could not be looked at."""
    if run.options.sample and (run.options.before or run.options.after):
        msg = "--before and --after compare whole tables, and --sample reads some regions of each: leave one out"
        raise UsageError(msg)
    found = Verification(run.request.run)
    with told(run.store.spark, "verify"):
        _look(run, found)
    if run.options.json is not None:
        run.options.json.write_text(found.to_json(), "utf-8")
    for line in _lines(found):
        print(line, flush=True)
    run.summary.problems += [f"{v.table}: {v}" if v.table else str(v) for v in found.violations]
    run.summary.figures["violations"] = sum(v.number for v in found.violations)
    if found.unseen and not found.violations:
        raise StoreError("; ".join(found.unseen))
    run.summary.problems += found.unseen


def _lines(found: Verification) -> Iterator[str]:
    yield f"verify: low watermark {found.low_watermark}, prune bound {found.bound}"
    for table, about in sorted(found.tables.items()):
        yield f"  {table}: {about['cells']:,} cells in {about['ranges']} of {about['of']} key ranges"
    yield from (f"  note: {note}" for note in found.notes)
    if not found.violations:
        yield "  no invariant was found broken"


@dataclass
class _Table:
    """A transactional table as it is read: its families, and key ranges with the watermark published for each."""

    name: str
    families: frozenset[str]
    ranges: list[Published]
    of: int


def _look(run: Run, found: Verification) -> None:
    # First of all what is claimed, then what is there: what was published holds for good.
    found.low_watermark = run.read_low_watermark(found.notes)
    records = _records(run)
    found.bound, found.horizon = bound(records), horizon(records)
    families = _families(run, records, found)
    tables = [_planned(run, name, of, records) for name, of in sorted(families.items())]
    run.phase("plan")
    with _seen(found, "the records"):
        _check_records(run, found, records, families)
    with _seen(found, "the sidelines"):
        found.violations += _sidelines(run, records, found)
    run.phase("records")
    with _seen(found, "the tables"):
        _check_cells(run, found, tables)
    run.phase("cells")
    if run.options.before is not None or run.options.after is not None:
        with _seen(found, "the read points"):
            _compare(run, found, tables, records)
        run.phase("read points")


@contextmanager
def _seen(found: Verification, what: str) -> Iterator[None]:
    """One part that cannot be looked at does not hide the others."""
    try:
        yield
    except Exception as error:  # Spark's, HBase's
        found.unseen.append(f"{what} could not be looked at: {cause(error)}")


# -- what is claimed


def _records(run: Run) -> Records:
    """The rows of the state table, as they are, and the journal's about itself, which outlives them."""
    table, journal = run.config.state.table, run.config.state.journal_table
    there = {d.table for d in run.store.descriptors()}
    found: dict[str, dict[str, str]] = {}
    if journal in there:
        for r in run.store.cells(journal).where((F.col("row") == b"journal") & (F.col("kind") == "put")).collect():
            found[JOURNALS_OWN] = {bytes(r.qualifier).decode(): bytes(r.value).decode()}
    if table not in there:
        return found
    wanted = reduce(lambda a, b: a | b, (F.substring("row", 1, len(p)) == p.encode() for p in _RECORDS))
    # Summaries are many; those whose sideline is gone by its age are of no use here.
    oldest = _MAX_MILLIS - millis(run.request.now - run.config.state.sideline_keep)
    old = (F.substring("row", 1, 4) == b"run/") & (F.col("row") > f"run/{oldest:020d}".encode())
    for r in run.store.cells(table).where(wanted & ~old & (F.col("kind") == "put")).toLocalIterator():
        found.setdefault(bytes(r.row).decode(), {})[bytes(r.qualifier).decode()] = bytes(r.value).decode()
    return found


def _families(run: Run, records: Records, found: Verification) -> dict[str, frozenset[str]]:
    """The transactional families of every table that can be read: by marks, by what was published, by the configuration."""
    published = json.loads(records.get("inventory", {}).get("value", "[]"))
    listed = published if isinstance(published, list) else published["tables"]  # in format 1 it was the tables alone
    known = {e["table"]: frozenset(e["families"]) for e in listed if e["kind"] == "transactional"}
    asked = frozenset(run.options.table)
    tables = {}
    for d in run.store.descriptors():
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


def _planned(run: Run, name: str, families: frozenset[str], records: Records) -> _Table:
    """The table's key ranges: those that watermarks were published for, or its regions now."""
    ranges = [p for p in published(records) if p.table == name]
    if not ranges:
        ranges = [Published(name, r.keys.start, r.keys.stop, 0) for r in run.store.regions(name)]
    of = len(ranges)
    if run.options.sample is not None:
        draw = random.Random(f"{run.request.run}/{name}")
        ranges = sorted(draw.sample(ranges, max(1, round(len(ranges) * run.options.sample))), key=lambda p: p.start)
    return _Table(name, families, ranges, of)


def _check_records(run: Run, found: Verification, records: Records, families: Mapping[str, frozenset[str]]) -> None:
    violations, notes = watermark_violations(records, families)
    if violations:
        time.sleep(_LOOK_AGAIN)
        violations, notes = watermark_violations(_records(run), families)
    if found.bound > found.low_watermark:
        violations.append(
            Violation(
                "V4",
                "",
                f"the prune bound published last, {found.bound}, is above the low watermark, {found.low_watermark}",
                "Prune nothing",
            )
        )
    found.violations += violations
    found.notes += notes


# -- what is there


def _cells(run: Run, table: _Table) -> DataFrame:
    """Raw cells of the table's transactional families; ``region`` is the number of the key range."""
    ranges = [WorkRange(str(i), KeyRange(p.start, p.stop), 0, FOREVER) for i, p in enumerate(table.ranges)]
    families = [bytearray(f.encode()) for f in table.families]
    return run.store.cells(table.name, ranges, raw=True).where(F.col("family").isin(families))


def _said(run: Run) -> DataFrame:
    """What commit table and journal say of each transaction, row by row."""
    there = {d.table for d in run.store.descriptors()}
    commit = run.store.cells(run.config.omid.commit_table)
    journal = run.config.state.journal_table
    pruned = run.store.cells(journal) if journal in there else commit.limit(0)
    return proofs(commit, pruned, run.config.omid.commit_family)


def _check_cells(run: Run, found: Verification, tables: Sequence[_Table]) -> None:
    """V1 to V4, by what is known of each transaction: one read of every table, one grouping by start timestamp."""
    if not tables:
        return
    start, shadow, stamp = F.col("start_ts"), F.col("shadow"), F.col("timestamp")
    lacking = F.col("data") & shadow.isNull()
    parts = []
    for table in tables:
        marks = run.store.spark.createDataFrame(
            [(str(i), p.watermark) for i, p in enumerate(table.ranges)], "region string, watermark bigint"
        )
        cells = pairs(_cells(run, table)).where(start <= found.low_watermark).join(F.broadcast(marks), "region")
        place = F.struct(
            F.lit(table.name).alias("table"), F.lower(F.hex("row")).alias("row"), "family", "qualifier", "timestamp"
        )
        claimed = lacking & (start <= F.greatest(F.col("watermark"), F.lit(found.bound)))
        parts.append(
            cells.groupBy("start_ts").agg(
                F.lit(table.name).alias("table"),
                F.count("*").alias("cells"),
                # A shadow cell that names its own timestamp is index population's, and proves its own cell only.
                F.min(F.when(shadow > stamp, shadow)).alias("low"),
                F.max(F.when(shadow > stamp, shadow)).alias("high"),
                F.count_if(lacking & (start <= found.bound)).alias("below_bound"),
                F.count_if(lacking & (start <= F.col("watermark"))).alias("below_mark"),
                F.min(F.when(claimed, place)).alias("lacks"),
                F.min(F.when(shadow > stamp, F.struct(shadow, place.alias("place")))).alias("least"),
                F.max(F.when(shadow > stamp, F.struct(shadow, place.alias("place")))).alias("most"),
            )
        )
    of_cells = reduce(DataFrame.unionByName, parts)
    gone = deleted_entries(run.store.cells(run.config.omid.commit_table, raw=True))
    said = (
        _said(run)
        .where(start <= found.low_watermark)
        .unionByName(gone.withColumn("deleted", F.lit(True)), allowMissingColumns=True)
    )
    known = _by_transaction(of_cells.unionByName(said, allowMissingColumns=True))
    kept = known.withColumn("wrong", _wrong(run, found)).where("wrong is not null or cells > 0")
    told = ("lacks", "least", "most", "entry", "pruned", "at", "below_bound", "below_mark")
    counted = _keep(kept.select("start_ts", "wrong", *told, "by_table"))
    try:
        _count_cells(found, tables, counted)
        _name(run, found, counted)
    finally:
        counted.unpersist()


def _keep(frame: DataFrame) -> DataFrame:
    return frame.persist()


def _by_transaction(rows: DataFrame) -> DataFrame:
    """One row a transaction, of what its cells, the commit table and the journal say."""
    named = F.when(F.col("cells").isNotNull(), F.struct("table", "cells"))
    return rows.groupBy("start_ts").agg(
        F.sum("cells").alias("cells"),
        F.collect_list(named).alias("by_table"),
        *(F.sum(name).alias(name) for name in ("below_bound", "below_mark")),
        *(F.min(name).alias(name) for name in ("low", "lacks", "least")),
        *(
            F.max(name).alias(name)
            for name in ("high", "most", "entry", "at", "mark", "pruned", "pruned_mark", "deleted")
        ),
    )


def _wrong(run: Run, found: Verification) -> Column:
    """Which invariants a transaction breaks, and how; null: none."""
    entry = F.when(~F.coalesce("mark", F.lit(False)), F.col("entry"))  # a mark outranks an entry
    stamps = (F.col("low"), F.col("high"), entry, F.col("pruned"))
    proof = F.coalesce(entry, "pruned")
    proved = F.coalesce(entry, "pruned", "low")
    marked = F.coalesce(F.col("mark") | F.col("pruned_mark"), F.col("mark"), F.col("pruned_mark"), F.lit(False))
    nothing = proved.isNull() & ~marked & (F.coalesce("below_bound", F.lit(0)) > 0)
    # A reader of an oracle in low-latency mode that dies may leave its mark beside a commit.
    race = F.lit("note mark") if run.config.omid.low_latency else F.lit("V3 mark")
    one = (
        F.when(proof.isNotNull() & (F.col("below_bound") > 0), F.lit("V1")),
        F.when(proved.isNotNull() & (F.col("below_mark") > 0), F.lit("V4")),
        F.when(nothing & F.col("deleted") & (F.col("start_ts") > found.horizon), F.lit("V2")),
        F.when(nothing & (F.col("start_ts") <= found.horizon), F.lit("note horizon")),
        F.when(
            nothing & ~F.coalesce("deleted", F.lit(False)) & (F.col("start_ts") > found.horizon), F.lit("note orphan")
        ),
        F.when(F.col("low").isNotNull() & marked, race),
        F.when(F.least(*stamps) != F.greatest(*stamps), F.lit("V3 commits")),
    )
    wrong = F.filter(F.array(*one), lambda each: each.isNotNull())
    return F.when(F.size(wrong) > 0, wrong)


def _count_cells(found: Verification, tables: Sequence[_Table], known: DataFrame) -> None:
    each = known.select(F.explode("by_table").alias("t")).groupBy("t.table").agg(F.sum("t.cells").alias("cells"))
    cells = {r.table: r.cells for r in each.collect()}
    for table in tables:
        found.tables[table.name] = {"cells": cells.get(table.name, 0), "ranges": len(table.ranges), "of": table.of}


_WHAT = {
    "V1": "{cells} cells at or below the prune bound lack their shadow cell, and the commit table or the journal proves their commit: readers do not see them",
    "V2": "{cells} cells at or below the prune bound lack their shadow cell; their transaction's row was removed from the commit table, and the journal does not have it",
    "V3 mark": "it has a shadow cell and an invalidation mark, in the commit table or the journal",
    "V3 commits": "its shadow cells, its commit entry and the journal name different commit timestamps",
    "V4": "{cells} committed cells at or below the region's watermark lack their shadow cell",
}
_REMEDY_SHOWN = "lowtide resolve {start} --committed {shadow} --shown-in {table} {row}"
_REMEDY = {
    "V2": "Prune nothing; look whether a backup of the commit table has the entry, and put it back. Where none has, find out from the application, and say "
    "lowtide resolve {start} --committed TIMESTAMP, or --aborted. Then run lowtide run orphan_cleanup --table {table} --full --execute, and verify again",
    "V3 mark": f"Readers go by the shadow cell: run {_REMEDY_SHOWN}, then verify again",
    "V3 commits": "Prune nothing, clean nothing of this table. Find out which is right, and mend the others (put, delete, deleteall: in HBase's shell): {mends}. Then verify again",
}
_NOTES = {
    "note horizon": "whether {number} transactions with cells that lack a shadow cell were committed cannot be known: they lie at or below the journal's horizon",
    "note orphan": "{number} transactions have cells at or below the prune bound that nothing proves: a paused client landed them late; the next full pass removes them",
    "note mark": "{number} transactions have a shadow cell and an invalidation mark: of readers that died, in low-latency mode",
}


def _mends(run: Run, transaction: Row) -> str:
    """What names a commit timestamp of this transaction, and the statement that makes each of them right, or lets it go."""
    least, most = transaction.least, transaction.most
    stamps = dict.fromkeys(
        s for s in (least and least.shadow, most and most.shadow, transaction.entry, transaction.pruned) if s
    )
    told = []
    for one in {c.shadow: c for c in (least, most) if c}.values():
        place = one.place
        row, family, name = bytes.fromhex(place.row), bytes(place.family), shadow_qualifier(bytes(place.qualifier))
        told += [
            f"a shadow cell in row {place.row} of {place.table} says {one.shadow}; where {other} is right: "
            + hbase_shell.put_long(place.table, row, family, name, place.timestamp, other)
            for other in stamps
            if other != one.shadow
        ]
    key, entries, journal = (
        commit_key(transaction.start_ts),
        run.config.omid.commit_table,
        run.config.state.journal_table,
    )
    if transaction.entry:
        wrong = hbase_shell.delete_row(entries, key, transaction.at)
        told.append(f"{entries} says {transaction.entry}; where that is wrong: {wrong}")
    if transaction.pruned:
        wrong = hbase_shell.delete_row(journal, key)
        if least and least.shadow == most.shadow:  # readers go by it
            wrong = _REMEDY_SHOWN.format(
                start=transaction.start_ts, shadow=least.shadow, table=least.place.table, row=least.place.row
            )
        told.append(f"{journal} says {transaction.pruned}; where that is wrong: {wrong}")
    return "; ".join(told)


def _name(run: Run, found: Verification, known: DataFrame) -> None:
    """Name the first transactions of each kind, count the rest."""
    broken = known.where("wrong is not null").select(F.explode("wrong").alias("kind"), "*")
    numbers = {r["kind"]: r["count"] for r in broken.groupBy("kind").count().collect()}
    found.notes += [text.format(number=f"{numbers[kind]:,}") for kind, text in _NOTES.items() if kind in numbers]
    for kind, what in _WHAT.items():
        if kind not in numbers:
            continue
        first = broken.where(F.col("kind") == kind).orderBy("start_ts").limit(NAMED).collect()
        for r in first:
            has = r.least.place if r.least else None
            place = (has if kind.startswith("V3") else r.lacks) or has
            table, row = (place.table, place.row) if place else ("", "")
            cells = r.below_mark if kind == "V4" else r.below_bound
            text = what.format(cells=cells)
            remedy = _REMEDY.get(kind, _COMPLETE).format(
                table=table,
                row=row,
                start=r.start_ts,
                shadow=r.least.shadow if r.least else "TIMESTAMP",
                mends=_mends(run, r) if kind == "V3 commits" else "",
            )
            found.violations.append(Violation(kind[:2], table, text, remedy, 1, row, r.start_ts))
        if numbers[kind] > len(first):
            more = numbers[kind] - len(first)
            found.violations.append(
                Violation(kind[:2], "", f"of {more:,} more transactions: {what.format(cells='')}", "", more)
            )


# -- sidelines


def _sidelines(run: Run, records: Records, found: Verification) -> list[Violation]:
    """V5: what the runs removed, as their summaries count it, against the files that they put aside."""
    removed: dict[tuple[str, str], int] = {}
    until: dict[str, datetime] = {}
    for row, columns in records.items():
        if not row.startswith("run/"):
            continue
        summary = json.loads(columns["value"])
        if summary["job"] in _REMOVING:
            for t in summary["tables"]:
                if t["execute"] and t["counts"]["deleted"]:
                    began = EPOCH + timedelta(milliseconds=summary["started"])
                    until[summary["run"]] = max(
                        until.get(summary["run"], EPOCH), began + run.config.state.sideline_keep
                    )
                    key = (summary["run"], t["table"])
                    removed[key] = removed.get(key, 0) + t["counts"]["deleted"]
    wrong = []
    for (name, table), number in removed.items():
        if run.options.table and table not in run.options.table:
            continue
        what = _lost(run, name, table, number)
        if what:
            remedy = (
                f"What it lacks cannot be put back by lowtide restore {name}: look for a copy of the folder. Nothing in the store is wrong; without a copy "
                f"this is told until {until[name]:%Y-%m-%d %H:%M} UTC, when sidelines of then go (state.sideline_keep)"
            )
            wrong.append(Violation("V5", table, f"run {name} removed {number:,} cells: {what}", remedy))
    found.notes.append(
        f"{len(removed)} sidelines of the last {run.config.state.sideline_keep.days} days were looked at"
    )
    return wrong


def _lost(run: Run, name: str, table: str, number: int) -> str:
    """What is wrong with one sideline; empty: nothing."""
    hadoop = run.store.spark._jvm.org.apache.hadoop.fs  # type: ignore[union-attr]
    folder = hadoop.Path(f"{run.config.state.sideline.rstrip('/')}/{_file_name(name)}/{_file_name(table)}")
    files = folder.getFileSystem(run.store.spark._jsc.hadoopConfiguration())
    if not files.exists(folder):
        return f"its sideline {folder} is not there"
    there = {s.getPath().getName(): s.getLen() for s in files.listStatus(folder)}
    if "_lowtide.json" not in there:
        return f"its sideline {folder} has no list of its files"
    stream = files.open(hadoop.Path(folder, "_lowtide.json"))
    try:
        text = run.store.spark._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")  # type: ignore[union-attr]
    finally:
        stream.close()
    listed = json.loads(text)["files"]
    if short := sorted(file for file, length in listed.items() if there.get(file) != length):
        return f"files of its sideline {folder} are missing or cut short: {', '.join(short[:NAMED])}"
    try:
        kept = run.store.spark.read.parquet(str(folder)).count()
    except Exception as error:  # Parquet's: a file that is damaged in its whole length
        return f"its sideline {folder} cannot be read: {cause(error)}"
    return f"its sideline {folder} has {kept:,}" if kept < number else ""


def _file_name(name: str) -> str:
    """A run's or a table's name as a folder's, as docs/operating.md has it."""
    plain = "-_." if name.strip(".") else "-_"
    return "".join(c if c.isalnum() or c in plain else f"={ord(c):02X}" for c in name)


# -- read points


def _compare(run: Run, found: Verification, tables: Sequence[_Table], records: Records) -> None:
    """V6: write what the read points show, or hold it against what was written."""
    if not tables:
        found.unseen.append("there is no table to read as of anything")
        return
    if run.options.after is not None:
        before = json.loads(run.options.after.read_text("utf-8"))["tables"]
        wanted = {table: [int(p) for p in points] for table, points in before.items()}
    else:
        wanted = {
            t.name: read_points(history_mark(records, t.name), found.low_watermark, f"{run.request.run}/{t.name}")
            for t in tables
        }
    shown = {}
    by_name = {t.name: t for t in tables}
    proofs_of = _commits(run, found, tables)
    for table, points in wanted.items():
        if table not in by_name:
            found.unseen.append(f"table {table} was read before and cannot be read now")
            continue
        mark = history_mark(records, table)
        readable = [p for p in points if p > mark]
        if len(readable) < len(points):
            found.notes.append(
                f"{table}: {len(points) - len(readable)} read points lie at or below its history mark, {mark}, by now: left out"
            )
        if readable:
            shown[table] = _show(_cells(run, by_name[table]), proofs_of, readable)
    proofs_of.unpersist()
    if run.options.before is not None:
        text = json.dumps({"run": run.request.run, "low_watermark": found.low_watermark, "tables": shown}, indent=2)
        run.options.before.write_text(text + "\n", "utf-8")
    if run.options.after is not None:
        found.violations += differences(before, shown)
        if wanted and not any(shown.values()):
            found.unseen.append("no read point of the file can be compared any more")


def _commits(run: Run, found: Verification, tables: Sequence[_Table]) -> DataFrame:
    """``start_ts, tc`` of transactions that a cell without shadow cell may be of: by entry, journal, or a shadow cell elsewhere."""
    start = F.col("start_ts")
    cells = [pairs(_cells(run, t)).where(start <= found.low_watermark) for t in tables]
    lacks = F.col("data") & F.col("shadow").isNull()
    one = [
        c.groupBy("start_ts").agg(
            F.max(lacks).alias("lacks"),
            F.max(F.when(F.col("shadow") > F.col("timestamp"), F.col("shadow"))).alias("high"),
        )
        for c in cells
    ]
    rows = reduce(DataFrame.unionByName, one).unionByName(_said(run), allowMissingColumns=True)
    known = rows.groupBy("start_ts").agg(*(F.max(c).alias(c) for c in ("lacks", "high", "entry", "mark", "pruned")))
    entry = F.when(~F.coalesce("mark", F.lit(False)), F.col("entry"))
    return _keep(
        known.where("lacks").select("start_ts", F.coalesce("high", "pruned", entry).alias("tc")).where("tc is not null")
    )


def _show(cells: DataFrame, commits: DataFrame, points: Sequence[int]) -> dict[str, dict[str, Any]]:
    """How many cells each read point shows, and a hash of them that no order changes.

    As Omid's client reads: of a column the version that began last among those committed before the read point; nothing where that is a tombstone, or where a
    family tombstone that it sees was committed at or after the version's timestamp.
    """
    stamp, qualifier = F.col("timestamp"), F.col("qualifier")
    committed = (
        pairs(cells)
        .where("data")
        .join(commits, "start_ts", "left")
        .withColumn("tc", F.coalesce("shadow", "tc"))
        .where("tc is not null")
    )
    of_family = F.col("tombstone") & (F.length(qualifier) == 0)
    version = F.struct("timestamp", "tombstone", "hash")
    columns = committed.groupBy("row", "family", "qualifier").agg(
        *(
            F.max_by(version, F.when(~of_family & (F.col("tc") < p), stamp)).alias(f"v{i}")
            for i, p in enumerate(points)
        ),
        *(F.max_by("tc", F.when(of_family & (F.col("tc") < p), stamp)).alias(f"f{i}") for i, p in enumerate(points)),
    )
    hidden = columns.groupBy("row", "family").agg(*(F.max(f"f{i}").alias(f"h{i}") for i in range(len(points))))
    joined = columns.drop(*(f"f{i}" for i in range(len(points)))).join(hidden, ["row", "family"])
    figures = []
    for i in range(len(points)):
        seen = F.col(f"v{i}.timestamp").isNotNull() & ~F.col(f"v{i}.tombstone")
        seen &= F.coalesce(F.col(f"h{i}") < F.col(f"v{i}.timestamp"), F.lit(True))
        digest = F.xxhash64("row", "family", "qualifier", f"v{i}.timestamp", f"v{i}.hash")
        figures += [F.count_if(seen).alias(f"n{i}"), F.sum(F.when(seen, digest).cast("decimal(38,0)")).alias(f"d{i}")]
    total = joined.agg(*figures).first()
    return {str(p): {"cells": total[f"n{i}"], "hash": str(total[f"d{i}"] or 0)} for i, p in enumerate(points)}
