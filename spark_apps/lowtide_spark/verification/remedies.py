"""Transactions that break an invariant, named one by one with what mends each."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F

from lowtide.values import hbase_shell
from lowtide.values.formats import commit_key, shadow_qualifier
from lowtide.verification.findings import NAMED, Verification, Violation
from lowtide_spark.frames import shown
from lowtide_spark.run.context import Run

_COMPLETE = "Run lowtide run orphan_cleanup --table {table} --full --execute, then verify again"
_WHAT = {
    "V1": (
        "{cells} cells at or below the prune bound lack their shadow cell, and a commit entry proves their commit, "
        "which is to be pruned"
    ),
    "V1 pruned": ("{cells} cells lack their shadow cell, and only the journal has its commit: readers do not see them"),
    "V2": (
        "{cells} cells at or below the prune bound lack their shadow cell; their transaction's row was removed from "
        "the commit table, and the journal does not have it"
    ),
    "V3 mark": "it has a shadow cell and an invalidation mark, in the commit table or the journal",
    "V3 commits": "its shadow cells, its commit entry and the journal name different commit timestamps",
    "V4": "{cells} committed cells at or below what the records claim to be clean lack their shadow cell",
    "V4 form": (
        "{cells} shadow cells at or below what the records claim to be clean are of a form that names no commit "
        "timestamp"
    ),
}
_REMEDY = {
    "V2": (
        "Prune nothing; look whether a backup of the commit table has the entry, and put it back. Where none has, find "
        "out from the application, and say lowtide resolve {start} --committed TIMESTAMP, or --aborted. Then run "
        "lowtide run orphan_cleanup --table {table} --full --execute, and verify again"
    ),
    "V3 mark": "Readers go by the shadow cell: run {resolve}, then verify again",
    "V4 form": (
        "Prune nothing; run lowtide run orphan_cleanup --table {table} --full --execute: it names each with what mends "
        "it"
    ),
    "V3 commits": (
        "Prune nothing, clean nothing of this table. Find out which is right, and mend the others (put, delete, "
        "deleteall: in HBase's shell): {mends}. Then verify again"
    ),
}
_NOTES = {
    "note horizon": (
        "whether {number} transactions with cells that lack a shadow cell were committed cannot be known: they lie at "
        "or below the journal's horizon"
    ),
    "note orphan": (
        "{number} transactions have cells at or below the prune bound that nothing proves: a paused client landed them "
        "late; the next full pass removes them"
    ),
    "note mark": (
        "{number} transactions have a shadow cell and an invalidation mark: of readers that died, in low-latency mode"
    ),
}


def name(run: Run, found: Verification, known: DataFrame) -> None:
    """Name the first transactions of each kind, count the rest."""
    broken = known.where("wrong is not null").select(F.explode("wrong").alias("kind"), "*")
    numbers = {r["kind"]: r["count"] for r in broken.groupBy("kind").count().collect()}
    found.notes += [text.format(number=f"{numbers[kind]:,}") for kind, text in _NOTES.items() if kind in numbers]
    for kind, what in _WHAT.items():
        if kind not in numbers:
            continue
        first = broken.where(F.col("kind") == kind).select(*_told(broken)).orderBy("start_ts").limit(NAMED).collect()
        for r in first:
            has = r.least.place if r.least else None
            shown = has or r.unknown
            of_kind = {"V1 pruned": r.any, "V3 mark": shown, "V3 commits": has, "V4 form": r.unknown}
            place = of_kind.get(kind, r.lacks) or has
            table, row = (place.table, place.row) if place else ("", "")
            cells = {"V1 pruned": r.lacking, "V4": r.below_mark, "V4 form": r.odd}.get(kind, r.below_bound)
            text = what.format(cells=cells)
            remedy = _REMEDY.get(kind, _COMPLETE).format(
                table=table,
                row=row,
                start=r.start_ts,
                resolve=_resolve(r.start_ts, r.least.shadow if r.least else "TIMESTAMP", shown) if shown else "",
                mends=_mends(run, r) if kind == "V3 commits" else "",
            )
            found.violations.append(Violation(kind[:2], table, text, remedy, 1, row, r.start_ts))
        if numbers[kind] > len(first):
            more = numbers[kind] - len(first)
            found.violations.append(
                Violation(kind[:2], "", f"of {more:,} more transactions: {what.format(cells='')}", "", more)
            )


def _told(known: DataFrame) -> Iterator[Column]:
    """The columns, with the keys of places as they are told; ``row_whole`` and ``qualifier`` are null where they are
    long.
    """

    def short(place: Column) -> Column:
        row = F.unhex(place["row"])
        told = F.struct(
            place["table"].alias("table"),
            shown.in_hex(row).alias("row"),
            shown.whole(row).alias("row_whole"),
            place["family"].alias("family"),
            shown.whole(place["qualifier"]).alias("qualifier"),
            place["timestamp"].alias("timestamp"),
        )
        return F.when(place.isNotNull(), told)

    for name in known.columns:
        column = F.col(name)
        if name in ("lacks", "any", "unknown"):
            yield short(column).alias(name)
        elif name in ("least", "most"):
            told = F.struct(column["shadow"].alias("shadow"), short(column["place"]).alias("place"))
            yield F.when(column.isNotNull(), told).alias(name)
        else:
            yield column


def _resolve(start: int, commit: int | str, place: Row) -> str:
    """The command by which the shadow cell at *place* counts."""
    command = f"lowtide resolve {start} --committed {commit} --shown-in {place.table}"
    if place.row_whole is None:
        return hbase_shell.with_long_key(f"{command} with the row in hexadecimal", place.table, place.timestamp)
    return f"{command} {place.row}"


def _mends(run: Run, transaction: Row) -> str:
    """What names a commit timestamp of this transaction, each with the statement that makes it right or lets it go."""
    least, most = transaction.least, transaction.most
    stamps = dict.fromkeys(
        s for s in (least and least.shadow, most and most.shadow, transaction.entry, transaction.pruned) if s
    )
    lines = []
    for one in {c.shadow: c for c in (least, most) if c}.values():
        place = one.place
        says = f"a shadow cell in row {place.row} of {place.table} says {one.shadow}; where"
        lines += [f"{says} {other} is right: {_put(place, other)}" for other in stamps if other != one.shadow]
    key, entries, journal = (
        commit_key(transaction.start_ts),
        run.config.omid.commit_table,
        run.config.state.journal_table,
    )
    if transaction.entry:
        wrong = hbase_shell.delete_row(entries, key, transaction.at)
        lines.append(f"{entries} says {transaction.entry}; where that is wrong: {wrong}")
    if transaction.pruned:
        wrong = hbase_shell.delete_row(journal, key)
        if least and least.shadow == most.shadow:  # readers go by it
            wrong = _resolve(transaction.start_ts, least.shadow, least.place)
        lines.append(f"{journal} says {transaction.pruned}; where that is wrong: {wrong}")
    return "; ".join(lines)


def _put(place: Row, commit: int) -> str:
    """What makes the shadow cell say *commit*."""
    if place.row_whole is None or place.qualifier is None:
        what = f"put {commit} in eight bytes there at {place.timestamp}"
        return hbase_shell.with_long_key(what, place.table, place.timestamp)
    row, family, name = bytes(place.row_whole), bytes(place.family), shadow_qualifier(bytes(place.qualifier))
    return hbase_shell.put_long(place.table, row, family, name, commit, place.timestamp)
