"""The sideline: Parquet files of what a run is about to remove, one folder a run and table.

Beside the files lies a list of them with their lengths, written when they are all there: by it a restore knows that none is
missing, and the sweep which folders are sidelines at all.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.clock import millis
from lowtide.errors import StoreError

if TYPE_CHECKING:
    from lowtide_spark.job import Run

COLUMNS = ("table", "region", "row", "family", "qualifier", "timestamp", "commit_ts", "kind", "value")
SCHEMA = (
    "table string, region string, row binary, family binary, qualifier binary, timestamp bigint, commit_ts bigint, kind string, "
    "value binary"
)
#: Spark passes over files whose names begin like this.
LIST = "_lowtide.json"


def put_aside(run: Run, table: str, cells: DataFrame) -> str:
    """Export *cells* (rows of the view ``versions`` with values) and return the folder; when it returns, they are durable."""
    folder = f"{_folder(run, run.request.run)}/{_safe(table)}"
    cells.withColumn("table", F.lit(table)).select(*COLUMNS).write.mode("append").parquet(folder)
    path, files = _at(run, folder)
    listed = {"table": table, "files": _lengths(files, path)}
    out = files.create(_child(run, path, LIST), True)
    try:
        out.write(bytearray(json.dumps(listed).encode()))
    finally:
        out.close()
    return folder


def sidelined(run: Run, name: str) -> DataFrame:
    """All that run *name* put aside and that can be read; ``commit_ts`` is null for what had no shadow cell.

    Raises:
        StoreError: there is nothing.
    """
    path, files = _at(run, _folder(run, name))
    if not files.exists(path):
        msg = f"run {name} has no sideline under {run.config.state.sideline}: it removed nothing, or it was cleared after sideline_keep"
        raise StoreError(msg)
    reader = run.store.spark.read.schema(SCHEMA).option("recursiveFileLookup", "true")
    # What cannot be read is told of by name, see missing_files; the rest can still be put back.
    return reader.option("ignoreCorruptFiles", "true").parquet(_folder(run, name))


def missing_files(run: Run, name: str) -> dict[str, list[str]]:
    """By table: the files that run *name* put aside and that are not there any more, or not whole; none for a table that lacks none.

    Of a run that was ended before it had put all of a table aside none are known, nor missed: it had removed nothing yet.
    """
    root, files = _at(run, _folder(run, name))
    found = {}
    for folder in (status.getPath() for status in files.listStatus(root)):
        listed = _child(run, folder, LIST)
        if files.exists(listed):
            known = json.loads(run.store.spark._jvm.org.apache.commons.io.IOUtils.toString(files.open(listed), "UTF-8"))
            there = _lengths(files, folder)
            found[known["table"]] = sorted(f for f, length in known["files"].items() if there.get(f) != length)
    return found


def _folder(run: Run, name: str) -> str:
    return f"{run.config.state.sideline.rstrip('/')}/{_safe(name)}"


def _safe(name: str) -> str:
    """*name* as a folder's: one to one, so that no two runs share one, and none is the folder above."""
    plain = "-_." if name.strip(".") else "-_"
    return "".join(c if c.isalnum() or c in plain else f"={ord(c):02X}" for c in name)


def _at(run: Run, folder: str) -> tuple[Any, Any]:
    """A path of Hadoop's and its file system."""
    path = run.store.spark._jvm.org.apache.hadoop.fs.Path(folder)
    return path, path.getFileSystem(run.store.spark._jsc.hadoopConfiguration())


def _child(run: Run, path: Any, name: str) -> Any:
    return run.store.spark._jvm.org.apache.hadoop.fs.Path(path, name)


def _lengths(files: Any, folder: Any) -> dict[str, int]:
    if not files.exists(folder):
        return {}
    found = ((s.getPath().getName(), s.getLen()) for s in files.listStatus(folder))
    return {name: length for name, length in found if not name.startswith(("_", "."))}


def sweep(run: Run) -> None:
    """Remove the sidelines of runs that are older than ``sideline_keep``, and nothing else that lies there."""
    root, files = _at(run, run.config.state.sideline)
    if not files.exists(root):
        return
    limit = millis(run.request.now - run.config.state.sideline_keep)
    own = _safe(run.request.run)
    for status in files.listStatus(root):
        folder = status.getPath()
        old = status.isDirectory() and folder.getName() != own and status.getModificationTime() < limit
        if old and any(files.exists(_child(run, each.getPath(), LIST)) for each in files.listStatus(folder)):
            files.delete(folder, True)
