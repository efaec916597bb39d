"""V5: what the runs removed, as their summaries count it, against the files that they put aside, by code of its own.

And what they removed as an abort's, for whoever holds it against what says that it committed.
"""

from __future__ import annotations

import json
import operator
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import reduce
from typing import Any
from urllib.parse import unquote

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from lowtide.values.clock import from_millis
from lowtide.values.formats import base
from lowtide.verification.findings import NAMED, Verification, Violation
from lowtide.verification.records import Records
from lowtide_spark.frames.store import cause
from lowtide_spark.run.context import Run
from lowtide_spark.verification.rawcells import start_of

#: The jobs that put aside what they remove.
_REMOVING = ("orphan_cleanup", "history_gc")
_SCHEMA = (
    "table string, region string, row binary, family binary, qualifier binary, timestamp bigint, commit_ts bigint, "
    "kind string, value binary, rule string, evidence string"
)


@dataclass
class Aside:
    """The sidelines that are whole, by the oracle's numbers of now: folders, and of each folder's name its run."""

    folders: list[str] = field(default_factory=list)
    runs: dict[str, str] = field(default_factory=dict)

    def cells(self, run: Run) -> DataFrame | None:
        """What they hold, one row a cell: ``table, row, family, qualifier, timestamp, start_ts``; ``aborted`` (whether
        it went as an abort's), ``aside`` (the folder's name of its run). None: nothing is kept.
        """
        if not self.folders:
            return None
        columns = ("table", "row", "family", "qualifier", "timestamp")
        aside = F.regexp_extract(F.input_file_name(), "([^/]+)/[^/]+/[^/]+$", 1)
        return _read(run, self.folders).select(
            *columns,
            start_of(F.col("timestamp")).alias("start_ts"),
            F.col("commit_ts").isNull().alias("aborted"),
            aside.alias("aside"),
        )

    def run_of(self, aside: str) -> str:
        """The run whose folder has this name."""
        return self.runs[unquote(aside)]


def check(run: Run, records: Records, found: Verification) -> Aside:
    """The part of V5 that the sidelines show by themselves: what the runs removed, as their summaries count it, is in
    the files that they put aside.

    Returns:
        The sidelines of which nothing is wrong.
    """
    aside = Aside()
    keep = run.config.state.sideline_keep
    asked = [each for each in _removing(records) if not run.options.table or {*run.options.table} & {*each.removed}]
    runs = [each for each in asked if not (each.removed and _is_closed(run, each.name, found))]
    wanted = [
        (each, table, number)
        for each in runs
        for table, number in sorted(each.removed.items())
        if not run.options.table or table in run.options.table
    ]
    looked = {(each.name, table): _look(run, _folder(run, each.name, table)) for each, table, _ in wanted}
    whole = [_folder(run, *of) for of, files in looked.items() if not files.wrong]
    try:
        kept = _kept(run, whole)
    except Exception:  # one of them cannot be read, which shows when each is read by itself
        kept = {}
    for each, table, number in wanted:
        folder, files, newest = _folder(run, each.name, table), looked[each.name, table], 0
        what = files.wrong
        if not what:
            what, newest = _content_wrong(run, folder, number, files, kept)
        found.violations += _violations(each, table, what, newest, each.began + keep)
        # Of before an oracle was made anew, its numbers may be another transaction's now.
        if not what and each.started >= found.numbered_anew:
            aside.folders.append(folder)
            aside.runs[_file_name(each.name)] = each.name
    number = sum(len(each.removed) for each in runs)
    found.notes.append(f"{number} sidelines of the last {keep.days} days were checked")
    return aside


@dataclass
class _Removing:
    """A run that removed something, by its summaries: one that was tried again has several."""

    name: str
    summaries: list[dict[str, Any]]

    @property
    def started(self) -> int:
        """When it began last, ms."""
        return max(int(s["started"]) for s in self.summaries)

    @property
    def began(self) -> datetime:
        """The same."""
        return from_millis(self.started)

    @property
    def low_watermark(self) -> int:
        """The highest that it had read."""
        return max(int(s["low_watermark"]) for s in self.summaries)

    @property
    def removed(self) -> Counter[str]:
        """By table, how many cells."""
        tables = (t for s in self.summaries for t in s["tables"] if t["execute"] and t["counts"]["deleted"])
        return reduce(operator.add, (Counter({t["table"]: t["counts"]["deleted"]}) for t in tables), Counter())


def _removing(records: Records) -> Iterator[_Removing]:
    return (_Removing(name, of) for name, of in sorted(_removals(records).items()))


def _is_closed(run: Run, name: str, found: Verification) -> bool:
    """Whether this user may not look into the folder of a run, which is said then."""
    folder, files = _at(run, f"{_root(run)}/{_file_name(name)}")
    try:
        if files.exists(folder):
            files.listStatus(folder)
    except Exception as error:  # the file system's
        found.unseen.append(
            f"the sideline of run {name} cannot be read ({cause(error)}): verify as the user who ran it, or as another "
            "who may read all of state.sideline"
        )
        return True
    return False


def _removals(records: Records) -> dict[str, list[dict[str, Any]]]:
    """The summaries of runs of jobs that remove, by the run."""
    found: dict[str, list[dict[str, Any]]] = {}
    for row, columns in records.items():
        if row.startswith("run/"):
            summary = json.loads(columns["value"])
            if summary["job"] in _REMOVING:
                found.setdefault(summary["run"], []).append(summary)
    return found


def _violations(each: _Removing, table: str, what: str, newest: int, until: datetime) -> Iterator[Violation]:
    """Of one sideline: *what* is wrong with it, and whose the *newest* of its cells is."""
    if newest > each.low_watermark:
        yield Violation(
            "V5",
            table,
            f"run {each.name} removed cells of transaction {newest}, above the low watermark that it had read, "
            f"{each.low_watermark}",
            f"Put back what it took: lowtide restore {each.name} --table {table} --execute",
            transaction=newest,
        )
    if what:
        yield Violation(
            "V5",
            table,
            f"run {each.name} removed {each.removed[table]:,} cells: {what}",
            f"What it lacks cannot be put back by lowtide restore {each.name}: look for a copy of the folder. Nothing "
            f"in the store is wrong; without a copy this is reported until {until:%Y-%m-%d %H:%M} UTC, when sidelines "
            "of then go (state.sideline_keep)",
        )


def _folder(run: Run, name: str, table: str) -> str:
    return f"{_root(run)}/{_file_name(name)}/{_file_name(table)}"


def _root(run: Run) -> str:
    return run.config.state.sideline.rstrip("/")


def _at(run: Run, name: str) -> tuple[Any, Any]:
    """A path, and its file system."""
    jvm: Any = run.store.spark._jvm  # py4j knows no types of Java's
    path = jvm.org.apache.hadoop.fs.Path(name)
    return path, path.getFileSystem(run.store.spark._jsc.hadoopConfiguration())


@dataclass
class _Files:
    """The files of one sideline, by its lists: what is *wrong* with them, empty: nothing; and of each list that tells
    so, its files and what they come to.
    """

    wrong: str = ""
    sums: list[tuple[frozenset[str], int]] = field(default_factory=list)


def _look(run: Run, name: str) -> _Files:
    """The files of one sideline, the folder *name*."""
    folder, files = _at(run, name)
    if not files.exists(folder):
        return _Files(f"its sideline {name} is not there")
    there = {s.getPath().getName(): s.getLen() for s in files.listStatus(folder)}
    lists = sorted(file for file in there if file.startswith("_lowtide") and file.endswith(".json"))
    if not lists:
        return _Files(f"its sideline {name} has no list of its files")
    found, listed = _Files(), {}
    for each in lists:
        try:
            said = _said(run, files, f"{name}/{each}")
            if said.get("format", 1) != 1:
                return _Files(f"its sideline {name} is of another Lowtide: the format of {each} is {said['format']}")
            listed.update(said["files"])
            if said.get("sum") and said["files"]:
                found.sums.append((frozenset(said["files"]), int(said["sum"])))
        except Exception as error:  # the file system's, or it is cut short
            return _Files(f"the list {each} of its sideline {name} cannot be read: {cause(error)}")
    if short := sorted(file for file, length in listed.items() if there.get(file) != length):
        return _Files(f"files of its sideline {name} are missing or cut short: {', '.join(short[:NAMED])}")
    return found


def _said(run: Run, files: Any, name: str) -> dict[str, Any]:
    stream = files.open(_at(run, name)[0])
    try:
        jvm: Any = run.store.spark._jvm  # py4j knows no types of Java's
        text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    found: dict[str, Any] = json.loads(text)
    return found


def _content_wrong(
    run: Run, folder: str, number: int, files: _Files, kept: Mapping[str, Sequence[Row]]
) -> tuple[str, int]:
    """What is wrong with the cells of one sideline, empty: nothing; and the newest transaction of which it holds a
    cell, 0: none, or it cannot be read. Of what is not *kept*, by :func:`_kept`, the sideline itself tells.
    """
    end = _end(folder)
    try:
        mine = kept.get(end) or _kept(run, [folder]).get(end) or ()
    except Exception as error:  # Parquet's: a file that is damaged in its whole length
        return f"its sideline {folder} cannot be read: {cause(error)}", 0
    cells, newest = sum(r.n for r in mine), base(max((r.t for r in mine), default=0))
    if cells < number:
        return f"its sideline {folder} has {cells:,}", newest
    sums = {unquote(r.file): int(r.sum) for r in mine}
    for names, due in files.sums:
        if sum(sums.get(name, 0) for name in names) != due:
            return (
                f"its sideline {folder} holds other cells than were put aside, in {min(names)} or another file",
                newest,
            )
    return "", newest


def _kept(run: Run, folders: Sequence[str]) -> dict[str, list[Row]]:
    """Of each file of sidelines how many cells it holds (``n``), the newest's timestamp (``t``), and the sum over all
    that is in them, by the end of the folder's name.
    """
    if not folders:
        return {}
    end = F.regexp_extract(F.input_file_name(), "([^/]+/[^/]+)/[^/]+$", 1).alias("end")
    file = F.regexp_extract(F.input_file_name(), "([^/]+)$", 1).alias("file")
    cells = _read(run, folders).groupBy(end, file)
    whole = F.sum(F.xxhash64(*(each.split()[0] for each in _SCHEMA.split(", "))).cast("decimal(20,0)"))
    found: dict[str, list[Row]] = {}
    for row in cells.agg(F.count("*").alias("n"), F.max("timestamp").alias("t"), whole.alias("sum")).collect():
        found.setdefault(unquote(row.end), []).append(row)
    return found


def _read(run: Run, folders: Sequence[str]) -> DataFrame:
    """Spark's files there, whatever lies beside them."""
    return run.store.spark.read.schema(_SCHEMA).option("pathGlobFilter", "*.parquet").parquet(*folders)


def _end(folder: str) -> str:
    """What tells sidelines apart: the names of run and table, as they are folders."""
    return "/".join(folder.split("/")[-2:])


def _file_name(name: str) -> str:
    """A run's or a table's name as a folder's, as docs/operating.md has it."""
    plain = "-_." if name.strip(".") else "-_"
    coded = ("".join(f"={b:02X}" for b in c.encode("utf-8", "surrogatepass")) for c in name)
    return "".join(c if c.isalnum() or c in plain else code for c, code in zip(name, coded, strict=True))
