"""The list of the cells that a run writes or removes, or would: JSON lines, one folder a run and table, beside the
sidelines.

It names cells and why they go, never what they hold. Row keys may be people's data all the same: the folder of a run is
its user's alone. The folder above is shared by all who may put aside: as open as that of the sidelines, no wider, and
what lies in it only its owner may take away.
"""

from __future__ import annotations

from contextlib import suppress

from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.errors import StoreError
from lowtide.values.clock import millis
from lowtide_spark.frames.folders import SHARED, Context, at, make_private, make_shared, newest, root_of, safe
from lowtide_spark.frames.functions import substring
from lowtide_spark.frames.store import cause

#: Of a line, in this order. Bytes are written as in HBase's shell, without quotes.
FIELDS = (
    "action",
    "table",
    "row",
    "family",
    "qualifier",
    "timestamp",
    "kind",
    "transaction",
    "rule",
    "evidence",
)
#: What a list is made from: the cells as a job has decided them.
COLUMNS = ("action", "row", "family", "qualifier", "timestamp", "kind", "start_ts", "rule", "evidence")
#: Where lists lie in the folder of the sidelines.
FOLDER = f"{SHARED}lists"
_NUMBERS = ("timestamp", "transaction")


def folder_of(run: Context, name: str) -> str:
    """Where the lists of run *name* are."""
    return f"{root_of(run)}/{FOLDER}/{safe(name)}"


def write(run: Context, table: str, cells: DataFrame, *, anew: bool) -> str:
    """Write the lines of *cells* (:data:`COLUMNS`) by the executors; the folder.

    Args:
        run: whose list it is.
        table: where the cells are.
        cells: all of them; as many as there are, none passes through the driver.
        anew: in the place of what is listed of the table; else beside it, as where a run acts step by step.

    Raises:
        StoreError: they cannot be written.
    """
    folder = f"{folder_of(run, run.request.run)}/{safe(table)}"
    try:
        own = folder_of(run, run.request.run)
        make_shared(run, at(run, own)[0].getParent())
        make_private(run, own)
        lines(table, cells).write.mode("overwrite" if anew else "append").json(folder, compression="gzip")
    except Exception as error:  # Spark's, a file system's
        fact = f"the list of cells cannot be written to {folder}: {cause(error)}"
        remedy = "let Spark's user write there (state.sideline), or leave --list out"
        raise StoreError(fact, remedy) from error
    return folder


def lines(table: str, cells: DataFrame, *more: str) -> DataFrame:
    """*cells* (:data:`COLUMNS`) of *table* as a list has them (:data:`FIELDS`), and *more* of their columns."""
    shown = {
        "table": F.lit(table),
        "transaction": F.col("start_ts"),
        **{name: shell_text(F.col(name)) for name in ("row", "family", "qualifier")},
    }
    return cells.select(*(shown.get(name, F.col(name)).alias(name) for name in FIELDS), *more)


def shell_text(data: Column) -> Column:
    r"""Bytes as :func:`lowtide.values.keyranges.printable` writes them: printable ASCII as it is, all else, and the
    backslash, as ``\xNN``.
    """

    def one(index: Column) -> Column:
        digits = F.hex(substring(data, index, F.lit(1)))
        plain = digits.between("20", "7E") & (digits != "5C")
        return F.when(plain, F.unhex(digits).cast("string")).otherwise(F.concat(F.lit("\\x"), digits))

    text = data.cast("string")
    spelled = F.array_join(F.transform(F.sequence(F.lit(1), F.length(data)), one), "")
    # Most keys are plain, also those without a byte: these are not spelled byte by byte.
    return F.when(text.rlike(r"\A[\x20-\x5B\x5D-\x7E]*\z"), text).otherwise(spelled)


def kept(run: Context) -> DataFrame | None:
    """All lines of all lists that this user may read, with the ``run``; None: there are none."""
    root, files = at(run, f"{root_of(run)}/{FOLDER}")
    tables = []
    for folder in (status.getPath() for status in files.listStatus(root)) if files.exists(root) else ():
        with suppress(Py4JError):  # another's
            tables += [inner.getPath().toString() for inner in files.listStatus(folder)]
    if not tables:
        return None
    schema = ", ".join(f"{name} {'bigint' if name in _NUMBERS else 'string'}" for name in FIELDS)
    # Of .../RUN/TABLE/FILE, the run's name as safe made it a folder's.
    name = F.element_at(F.split(F.input_file_name(), "/"), -3)
    run_name = F.url_decode(F.replace(name, F.lit("="), F.lit("%")))
    return run.store.spark.read.schema(schema).json(tables).withColumn("run", run_name)


def sweep(run: Context) -> None:
    """Remove the lists of runs that are older than ``sideline_keep``, as far as this user may: another's list ends no
    run.
    """
    root, files = at(run, f"{root_of(run)}/{FOLDER}")
    if not files.exists(root):
        return
    limit, own = millis(run.request.now - run.config.state.sideline_keep), safe(run.request.run)
    for folder in (status.getPath() for status in files.listStatus(root)):
        with suppress(Py4JError):
            if folder.getName() != own and 0 < newest(files, folder) < limit:
                files.delete(folder, True)
