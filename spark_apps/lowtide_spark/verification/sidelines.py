"""V5: what the runs removed, as their summaries count it, against the files that they put aside, by code of its own."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from pyspark.sql import functions as F

from lowtide.values.clock import EPOCH, from_millis
from lowtide.values.formats import base
from lowtide.verification.findings import NAMED, Verification, Violation
from lowtide.verification.records import Records
from lowtide_spark.frames.store import cause
from lowtide_spark.run.context import Run

#: The jobs that put aside what they remove.
_REMOVING = ("orphan_cleanup", "history_gc")


def check(run: Run, records: Records, found: Verification) -> list[Violation]:
    """V5: what the runs removed, as their summaries count it, against the files that they put aside."""
    removed: dict[tuple[str, str], int] = {}
    until: dict[str, datetime] = {}
    watermarks: dict[str, int] = {}
    for row, columns in records.items():
        if not row.startswith("run/"):
            continue
        summary = json.loads(columns["value"])
        if summary["job"] in _REMOVING:
            for t in summary["tables"]:
                if t["execute"] and t["counts"]["deleted"]:
                    began = from_millis(summary["started"])
                    until[summary["run"]] = max(
                        until.get(summary["run"], EPOCH), began + run.config.state.sideline_keep
                    )
                    watermarks[summary["run"]] = max(watermarks.get(summary["run"], 0), summary["low_watermark"])
                    key = (summary["run"], t["table"])
                    removed[key] = removed.get(key, 0) + t["counts"]["deleted"]
    wrong = []
    for (name, table), number in removed.items():
        if run.options.table and table not in run.options.table:
            continue
        what, newest = _kept(run, name, table, number)
        if newest > watermarks[name]:
            wrong.append(
                Violation(
                    "V5",
                    table,
                    f"run {name} removed cells of transaction {newest}, above the low watermark that it had read, "
                    f"{watermarks[name]}",
                    f"Put back what it took: lowtide restore {name} --table {table} --execute",
                    transaction=newest,
                )
            )
        if what:
            remedy = (
                f"What it lacks cannot be put back by lowtide restore {name}: look for a copy of the folder. Nothing "
                f"in the store is wrong; without a copy this is reported until {until[name]:%Y-%m-%d %H:%M} UTC, when "
                "sidelines of then go (state.sideline_keep)"
            )
            wrong.append(Violation("V5", table, f"run {name} removed {number:,} cells: {what}", remedy))
    found.notes.append(f"{len(removed)} sidelines of the last {run.config.state.sideline_keep.days} days were checked")
    return wrong


def _kept(run: Run, name: str, table: str, number: int) -> tuple[str, int]:
    """What is wrong with one sideline, empty: nothing; and the newest transaction of which it holds a cell, 0: none, or
    it cannot be read.
    """
    jvm: Any = run.store.spark._jvm  # py4j knows no types of Java's
    folder = jvm.org.apache.hadoop.fs.Path(
        f"{run.config.state.sideline.rstrip('/')}/{_file_name(name)}/{_file_name(table)}"
    )
    files = folder.getFileSystem(run.store.spark._jsc.hadoopConfiguration())
    if not files.exists(folder):
        return f"its sideline {folder} is not there", 0
    there = {s.getPath().getName(): s.getLen() for s in files.listStatus(folder)}
    if "_lowtide.json" not in there:
        return f"its sideline {folder} has no list of its files", 0
    stream = files.open(jvm.org.apache.hadoop.fs.Path(folder, "_lowtide.json"))
    try:
        text = jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8")
    finally:
        stream.close()
    listed = json.loads(text)["files"]
    if short := sorted(file for file, length in listed.items() if there.get(file) != length):
        return f"files of its sideline {folder} are missing or cut short: {', '.join(short[:NAMED])}", 0
    try:
        (kept,) = (
            run.store.spark.read.parquet(str(folder))
            .agg(F.count("*").alias("n"), F.max("timestamp").alias("t"))
            .collect()
        )
    except Exception as error:  # Parquet's: a file that is damaged in its whole length
        return f"its sideline {folder} cannot be read: {cause(error)}", 0
    return (f"its sideline {folder} has {kept.n:,}" if kept.n < number else ""), base(kept.t or 0)


def _file_name(name: str) -> str:
    """A run's or a table's name as a folder's, as docs/operating.md has it."""
    plain = "-_." if name.strip(".") else "-_"
    return "".join(c if c.isalnum() or c in plain else f"={ord(c):02X}" for c in name)
