"""The sideline: Parquet files of what a run is about to remove, one folder a run and table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.clock import millis

if TYPE_CHECKING:
    from lowtide_spark.job import Run

COLUMNS = ("table", "region", "row", "family", "qualifier", "timestamp", "commit_ts", "kind", "value")


def put_aside(run: Run, table: str, cells: DataFrame) -> str:
    """Export *cells* (rows of the view ``versions`` with values) and return the folder; when it returns, they are durable."""
    folder = f"{_folder(run, run.request.run)}/{_safe(table)}"
    cells.withColumn("table", F.lit(table)).select(*COLUMNS).write.mode("append").parquet(folder)
    return folder


def sidelined(run: Run, name: str) -> DataFrame:
    """All that run *name* put aside; ``commit_ts`` is null for what had no shadow cell.

    Raises:
        pyspark.errors.AnalysisException: there is nothing.
    """
    cells = run.store.spark.read.option("recursiveFileLookup", "true").parquet(_folder(run, name))
    # Sidelines of before history GC hold orphans only.
    return cells if "commit_ts" in cells.columns else cells.withColumn("commit_ts", F.lit(None).cast("bigint"))


def _folder(run: Run, name: str) -> str:
    return f"{run.config.state.sideline.rstrip('/')}/{_safe(name)}"


def _safe(name: str) -> str:
    """*name* as a folder's: one to one, so that no two runs share one."""
    return "".join(c if c.isalnum() or c in "-_." else f"={ord(c):02X}" for c in name)


def sweep(run: Run) -> None:
    """Remove the folders of runs that are older than ``sideline_keep``."""
    jvm, context = run.store.spark._jvm, run.store.spark._jsc
    root = jvm.org.apache.hadoop.fs.Path(run.config.state.sideline)
    files = root.getFileSystem(context.hadoopConfiguration())
    if not files.exists(root):
        return
    limit = millis(run.request.now - run.config.state.sideline_keep)
    for status in files.listStatus(root):
        if status.getModificationTime() < limit:
            files.delete(status.getPath(), True)
