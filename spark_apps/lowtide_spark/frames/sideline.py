"""The sideline: Parquet files of what a run is about to remove, one folder a run and table.

Of transactions that a person has to decide lies a list beside the folders. Beside the files lie lists of them
(:mod:`lowtide_spark.frames.file_list`): by these a restore knows that none is missing.

A file that is missing shows by that list, and a folder that is missing by the summaries in the state table, which are
the same for all machines: where each worker has a folder of its own, what is seen from one of them is a part.

What lies there is people's data: a run's folder is its user's alone.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from lowtide.errors import StoreError
from lowtide.values.clock import millis
from lowtide_spark.frames import cell_list, file_list, missed
from lowtide_spark.frames.file_list import Summed
from lowtide_spark.frames.folders import (
    SHARED,
    Context,
    at,
    child,
    make_durable,
    make_private,
    name_of,
    newest,
    root_of,
    safe,
    write_text,
)
from lowtide_spark.frames.local import no_rows
from lowtide_spark.frames.store import cause

COLUMNS = (
    "table",
    "region",
    "row",
    "family",
    "qualifier",
    "timestamp",
    "commit_ts",
    "kind",
    "value",
    "rule",
    "evidence",
)
#: Sidelines of before the last two were kept have null there.
SCHEMA = (
    "table string, region string, row binary, family binary, qualifier binary, timestamp bigint, commit_ts bigint, "
    "kind string, value binary, rule string, evidence string"
)
#: By it the sweep knows a run's folder.
_MARKER = "_lowtide"
#: A file that a person puts into the folder of a run whose files are lost for good: nothing waits for them any more.
_GIVEN_UP = f"{_MARKER}-given-up"
_SHARED = "let Spark's user write there, the same for driver and executors, or name a place that they share"
#: So begin the names of lists of transactions that a person has to decide.
UNDECIDED = "lowtide-undecided-"


def put_aside(run: Context, table: str, cells: DataFrame, number: int) -> str:
    """Export *cells* (rows of the view ``versions`` with values, ``rule`` and ``evidence``); the folder. When it
    returns, each of them was read there again, whole, and on a file system of this machine they outlast a power cut. Of
    HDFS they outlast what its own files do: its data nodes need not have them on their disks yet.

    Args:
        run: whose sideline it is. Another driver may be at work under the same name, as where two copies of Airflow's
            database act on one store: neither costs the other a file.
        table: where the cells are.
        cells: those that are to go.
        number: how many they are, by what was planned.

    Raises:
        StoreError: the folder cannot be written, or not be finished, or what is in it is not all of them, or is
            something else; nothing may be removed then.
    """
    folder = f"{_own_folder(run)}/{safe(table)}"
    with _writing(folder):
        path, files = at(run, folder)
        # What Spark clears up after a driver that was ended is all that lies in the folder it writes to: others' files,
        # too, that are written and not finished.
        own = f"_{uuid.uuid4().hex}"
        going = cells.withColumn("table", F.lit(table)).select(*_typed())
        going.write.parquet(f"{folder}/{own}")
        found = _checked(_read(run, [f"{folder}/{own}"]), going, number, folder)
        make_durable(files, child(run, path, own))
        # Only what was found to be right gets names by which it is read.
        moved = _moved(run, files, path, own)
        file_list.write(run, files, path, own.strip("_"), moved, found)
        make_durable(files, path)
    return folder


def _typed() -> list[Column]:
    """The columns as they come back, for a sum goes by their types too."""
    return [F.col(name).cast(kind).alias(name) for name, kind in (each.split() for each in SCHEMA.split(", "))]


def _sums() -> list[Column]:
    """What cells come to, see :class:`Summed`."""
    whole = F.sum(F.xxhash64(*COLUMNS).cast("decimal(20,0)"))
    return [F.count(F.lit(1)).alias("cells"), whole.alias("sum")]


def _checked(there: DataFrame, going: DataFrame, number: int, folder: str) -> Summed:
    """What the cells that can be read *there* come to: *number*, and the same as those *going*.

    Of a file's end alone Parquet tells how many there are; for the sum each value is read.

    Raises:
        StoreError: they do not.
    """
    both = there.agg(F.lit("there").alias("which"), *_sums()).union(going.agg(F.lit("going"), *_sums()))
    summed = {row["which"]: Summed(row["cells"], str(row["sum"])) for row in both.collect()}
    found = summed["there"]
    if found.cells != number:
        fact = f"the sideline {folder} holds {found.cells} of the {number} cells that are to go; nothing was removed"
        raise StoreError(fact, "see whether another program removes files there; run again")
    if found != summed["going"]:
        fact = f"the sideline {folder} holds other cells than those that are to go; nothing was removed"
        raise StoreError(fact, "see whether another program writes there, or a disk is failing; run again")
    return found


def _moved(run: Context, files: Any, path: Any, own: str) -> dict[str, int]:
    """The files that lie in the folder *own* of *path*, moved there from it, with their lengths; the folder goes."""
    written = child(run, path, own)
    moved = _data(_inside(files, written))
    for name in moved:
        target = child(run, path, name)
        if not files.rename(child(run, written, name), target):
            fact = f"the sideline {path.toString()} cannot be finished: {own}/{name} cannot be moved into it"
            raise StoreError(f"{fact}; nothing was removed", "look at the folder's rights, run again")
    files.delete(written, True)
    return moved


@contextmanager
def _writing(folder: str) -> Iterator[None]:
    """What Spark and file systems say of a folder that they cannot write to, as a full disk, for people."""
    try:
        yield
    except (Py4JError, PySparkException, OSError) as error:
        fact = f"the sideline {folder} cannot be written, so nothing that was to go there is removed: {cause(error)}"
        raise StoreError(fact, f"see that state.sideline has room, and {_SHARED}; then run again") from error


def put_list(run: Context, table: str, text: str) -> str:
    """Write the list of a table's transactions that wait for a decision beside what the run put aside; its name.

    Raises:
        StoreError: it cannot be written.
    """
    name = f"{_own_folder(run)}/{UNDECIDED}{safe(table)}.txt"
    path, files = at(run, name)
    with _writing(name):
        write_text(files, path, text)
    return name


def try_out(run: Context, rows: int, parts: int) -> int:
    """Have executors write *rows* rows into a folder of their own in the sideline, in *parts* tasks; how many of them
    are there to read. The folder is removed again.

    Raises:
        StoreError: they cannot be written, or not be read.
    """
    spark, where = run.store.spark, run.config.state.sideline
    folder = f"{root_of(run)}/{SHARED}check-{uuid.uuid4().hex}"
    with ExitStack() as made:
        try:
            root, files = at(run, where)
            if not files.exists(root):
                made.callback(_removed, files, root, False)  # later than what lies in it
            made.callback(_removed, files, at(run, folder)[0], True)
            make_private(run, folder)
            spark.range(0, rows, 1, parts).write.mode("append").parquet(folder)
            return spark.read.schema("id bigint").parquet(folder).distinct().count()
        except Exception as error:  # Spark's, a file system's
            fact = f"state.sideline, {where}, takes no files of the executors, or loses them: {cause(error)}"
            remedy = "let Spark's user write there, the same for driver and executors, or name a place that they share"
            raise StoreError(fact, remedy) from error


def _removed(files: Any, path: Any, whole: bool) -> None:
    """Remove it, with what lies in it if *whole*; what cannot be removed, as where others write by now, stays."""
    with suppress(Py4JError):
        files.delete(path, whole)


@dataclass(frozen=True)
class Sideline:
    """What a run put aside, and by table the files that are missing or cut short, and the lists of them that cannot be
    read (none: it lacks none).

    And by table a sentence where it removed more of it than is here. *at*, ms: not before it began last, as far as that
    is known: by its summary, or else by when the newest of its cells were written here.
    """

    cells: DataFrame
    lost: dict[str, list[str]]
    at: int = 0
    elsewhere: dict[str, str] = field(default_factory=dict)

    @cached_property
    def counts(self) -> dict[str, int]:
        """By table how many cells these are; one that several tries of a run put aside counts for each."""
        return {r.table: r["count"] for r in self.cells.groupBy("table").count().collect()}


@contextmanager
def reserved(run: Context, name: str) -> Iterator[None]:
    """While a restore reads the sideline of run *name* no other run sweeps it: there is a young file in it. Where this
    user may only read it, that is not so.
    """
    path, files = at(run, f"{_folder(run, name)}/{_MARKER}-read-by-{safe(run.request.run)}")
    with suppress(Py4JError):
        if files.exists(path.getParent()):
            write_text(files, path, "")
    try:
        yield
    finally:
        with suppress(Py4JError):
            files.delete(path, False)


@dataclass(frozen=True, slots=True)
class Kept:
    """What all runs put aside whose sidelines are kept, with the ``run``.

    And by table the runs that put more aside than is seen here whole, but for those that a person has given up.
    """

    cells: DataFrame
    lost: dict[str, list[missed.Lost]]


def remedy(run: Context, lost: Sequence[missed.Lost]) -> str:
    """What to do about them, to be followed by what must be so where nothing waits for them any more."""
    return (
        f"{missed.FETCH}; or, where it is lost for good, put an empty file "
        f"{_folder(run, missed.first(lost).run)}/{_GIVEN_UP} there"
    )


def sideline(run: Context, name: str) -> Sideline:
    """All that run *name* put aside and that is there whole; ``commit_ts`` is null for what had no shadow cell.

    Of a run that was ended before it had put all of a table aside no file is missed: it had removed nothing of it yet.

    Raises:
        StoreError: there is nothing.
    """
    root, files = at(run, _folder(run, name))
    if not files.exists(root):
        raise StoreError(f"run {name} has no sideline under {run.config.state.sideline}: {missed.why_none(run, name)}")
    whole, lost = _whole(run, files, root)
    known = missed.recorded(run).get(name)
    aside = Sideline(_read(run, whole), lost, known.started if known else _written(files, root))
    if known:
        for table, number in known.cells.items():
            if aside.counts.get(table, 0) < number and not lost.get(table):
                aside.elsewhere[table] = known.sentence(table, aside.counts.get(table, 0))
    return aside


def kept(run: Context, closed: list[str] | None = None, *, table: str | None = None) -> Kept:
    """The sidelines of all runs; of each what is there whole.

    A folder counts as lost, too, where the summaries of the last ``sideline_keep`` say that its run removed something.
    A run that was killed has no summary: of that nothing is missed.

    Args:
        run: who looks.
        closed: gets a sentence on each folder that this user may not look into, for looks; None: that is an error, for
            what is in it could not be taken into account.
        table: of it alone. None: of all.

    Raises:
        StoreError: see *closed*.
    """
    root, files = at(run, root_of(run))
    whole: list[str] = []
    seen: dict[str, dict[str, list[str]]] = {}
    given_up = set()
    for folder in _sidelines(files, root, closed):
        there, missing = _whole(run, files, folder, table)
        whole += there
        seen[name_of(folder.getName())] = missing
        if files.exists(child(run, folder, _GIVEN_UP)):
            given_up.add(name_of(folder.getName()))
    # Of .../RUN/TABLE/FILE, the run's name as safe made it a folder's.
    name = F.element_at(F.split(F.input_file_name(), "/"), -3)
    cells = _read(run, whole).withColumn("run", F.url_decode(F.replace(name, F.lit("="), F.lit("%"))))
    lost: dict[str, list[missed.Lost]] = {}
    for of, one in (*missed.damaged(seen), *missed.elsewhere(run, seen, cells, table)):
        if one.run not in given_up:
            lost.setdefault(of, []).append(one)
    return Kept(cells, lost)


def _written(files: Any, root: Any) -> int:
    """When the newest cells of a run's were. What lies beside its tables is of who reads them, and of people."""
    tables = (status.getPath() for status in files.listStatus(root) if status.isDirectory())
    return max((newest(files, table) for table in tables), default=0)


@dataclass(frozen=True, slots=True)
class Folder:
    """The sideline of a run: when it was written last, ms, and by table the bytes of its files."""

    run: str
    written: int
    tables: dict[str, int]


def folders(run: Context) -> list[Folder]:
    """The sidelines of all runs that this user may look into, the newest first. Of one that was being written when its
    run ended, too.
    """
    root, files = at(run, root_of(run))
    found = []
    for folder in _sidelines(files, root, []):
        tables = [inner.getPath() for inner in files.listStatus(folder) if inner.isDirectory()]
        sizes = {name_of(table.getName()): sum(_data(_inside(files, table)).values()) for table in tables}
        found.append(Folder(name_of(folder.getName()), newest(files, folder), sizes))
    return sorted(found, key=lambda each: -each.written)


def _sidelines(files: Any, root: Any, closed: list[str] | None) -> Iterator[Any]:
    """The folders of runs. *closed* as of :func:`kept`."""
    for status in files.listStatus(root) if files.exists(root) else ():
        folder = status.getPath()
        try:
            if _is_runs(status) and _is_sideline(files, folder):
                yield folder
        except Py4JError as error:
            if not files.exists(folder):  # another run has just removed it
                continue
            fact = f"the folder {folder.toString()} belongs to {status.getOwner()} and cannot be read: {cause(error)}"
            if closed is None:
                raise StoreError(fact, "run this as a user who may read all of state.sideline") from error
            closed.append(fact)


def _whole(run: Context, files: Any, root: Any, table: str | None = None) -> tuple[list[str], dict[str, list[str]]]:
    """The files of a run's sideline, and by table those that are missing or cut short, or that list them and cannot be
    read; *table* as of :func:`kept`.
    """
    whole: list[str] = []
    lost = {}
    for folder in (status.getPath() for status in files.listStatus(root) if status.isDirectory()):
        if table is not None and folder.getName() != safe(table):
            continue
        inside = _inside(files, folder)
        there, wanted = _data(inside), {}
        if listed := file_list.read(run, files, folder, inside):
            wanted = listed.lengths
            missing = sorted(file for file, length in wanted.items() if there.get(file) != length)
            lost[name_of(folder.getName())] = listed.damaged + missing
        whole += [
            child(run, folder, file).toString() for file, length in there.items() if wanted.get(file, length) == length
        ]
    return whole, lost


def _read(run: Context, whole: list[str]) -> DataFrame:
    spark = run.store.spark
    return spark.read.schema(SCHEMA).parquet(*whole) if whole else no_rows(spark, SCHEMA)


def _folder(run: Context, name: str) -> str:
    return f"{root_of(run)}/{safe(name)}"


def _own_folder(run: Context) -> str:
    """This run's, made for this user alone before anything lies in it.

    Raises:
        StoreError: it cannot be made.
    """
    folder = _folder(run, run.request.run)
    try:
        path, files = make_private(run, folder)
        marker = child(run, path, _MARKER)
        if not files.exists(marker):
            write_text(files, marker, "")
    except Exception as error:  # the file system's
        fact = f"the sideline {folder} cannot be made for this user alone: {cause(error)}; nothing was removed"
        raise StoreError(fact, "let Spark's user make and own folders in state.sideline, and run again") from error
    return folder


def _inside(files: Any, folder: Any) -> dict[str, int]:
    """The files of a folder, with their lengths."""
    if not files.exists(folder):
        return {}
    return {status.getPath().getName(): status.getLen() for status in files.listStatus(folder)}


def _data(inside: Mapping[str, int]) -> dict[str, int]:
    """Spark's files of those; what somebody has packed, or put beside them, is none."""
    return {n: length for n, length in inside.items() if n.endswith(".parquet") and not n.startswith(("_", "."))}


def sweep(run: Context) -> list[str]:
    """Remove the sidelines of runs that are older than ``sideline_keep``, lists of cells too, and nothing else that
    lies there.

    Returns:
        The folders that are too old and stay, as another user's do: whoever may has to remove them.
    """
    cell_list.sweep(run)
    root, files = at(run, root_of(run))
    if not files.exists(root):
        return []
    limit = millis(run.request.now - run.config.state.sideline_keep)
    own, left = safe(run.request.run), []
    for status in files.listStatus(root):
        folder = status.getPath()
        try:
            if folder.getName() == own or not _is_runs(status) or not _is_sideline(files, folder):
                continue
            if 0 < newest(files, folder) < limit and not files.delete(folder, True):
                left.append(folder.toString())
        except Py4JError:
            if files.exists(folder):  # else another run has just removed it
                left.append(folder.toString())
    return left


def _is_runs(status: Any) -> bool:
    """Whether it may be a run's folder, by its name."""
    return bool(status.isDirectory()) and not status.getPath().getName().startswith(SHARED)


def _is_sideline(files: Any, folder: Any) -> bool:
    inner = list(files.listStatus(folder))
    if any(each.getPath().getName().startswith((UNDECIDED, _MARKER)) for each in inner):
        return True
    tables = (each.getPath() for each in inner if each.isDirectory())
    return any(file_list.is_list(name) for table in tables for name in _inside(files, table))
