"""Folders that runs leave beside the store, by Hadoop's file systems: where they lie, what they are called, who may
look into them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

from py4j.protocol import Py4JError

from lowtide.cleaning.planning import Request
from lowtide.config import Config
from lowtide_spark.frames.store import Store

#: So begin the names of folders that the runs share. No run's begins so: of its name the sign would be written
#: otherwise (:func:`safe`).
SHARED = "~"
#: In a folder that has it, what lies there is removed and renamed by its owner alone, as in ``/tmp``.
_STICKY = 0o1000
#: Its owner's alone: what lies in such a folder nobody else reads, whatever rights it has itself.
_MINE = "700"


class Context(Protocol):
    """What a folder goes by: whose it is and when, where the configuration puts it, whose session writes it.

    A job's run (``lowtide_spark.run.context.Run``) is one; this room knows no jobs.
    """

    @property
    def request(self) -> Request: ...

    @property
    def config(self) -> Config: ...

    @property
    def store(self) -> Store: ...


def root_of(run: Context) -> str:
    """Where the configuration puts them."""
    return run.config.state.sideline.rstrip("/")


def safe(name: str) -> str:
    """*name* as a folder's: one to one, so that no two runs share one, and none is the folder above.

    What is no letter and no digit becomes its bytes in UTF-8, each in two digits: a sign of more than one byte is no
    other's, whatever follows.
    """
    plain = "-_." if name.strip(".") else "-_"
    return "".join(c if c.isalnum() or c in plain else _coded(c) for c in name)


def _coded(sign: str) -> str:
    return "".join(f"={byte:02X}" for byte in sign.encode("utf-8", "surrogatepass"))


def name_of(folder: str) -> str:
    """The name whose folder is called so, see :func:`safe`."""
    return unquote(folder.replace("=", "%"))


def at(run: Context, folder: str) -> tuple[Any, Any]:
    """A path of Hadoop's and its file system."""
    path = jvm(run).org.apache.hadoop.fs.Path(folder)
    return path, path.getFileSystem(run.store.spark._jsc.hadoopConfiguration())


def child(run: Context, path: Any, name: str) -> Any:
    """What lies under *path* by this name."""
    return jvm(run).org.apache.hadoop.fs.Path(path, name)


def make_private(run: Context, folder: str) -> tuple[Any, Any]:
    """Make the folder, if it is not there, and let nobody else into it, before anything lies in it; its path and file
    system. What it lies in is made with the usual rights.

    Object stores know no such rights: there it is as open as the bucket.
    """
    path, files = at(run, folder)
    files.mkdirs(path.getParent())
    files.mkdirs(path, rights(run, _MINE))
    files.setPermission(path, rights(run, _MINE))  # of one that was there
    return path, files


def make_shared(run: Context, folder: Any) -> None:
    """Make a folder in that of the sidelines, for whoever may write there: as open as that one, no wider, and what lies
    in it only its owner may take away. Another's is left as it is.
    """
    files = folder.getFileSystem(run.store.spark._jsc.hadoopConfiguration())
    files.mkdirs(folder)
    above, there = files.getFileStatus(folder.getParent()), files.getFileStatus(folder)
    shared = above.getPermission().toShort() | _STICKY
    if there.getPermission().toShort() != shared or there.getGroup() != above.getGroup():
        with suppress(Py4JError):
            files.setOwner(folder, None, above.getGroup())
        with suppress(Py4JError):
            files.setPermission(folder, rights(run, f"{shared:o}"))


def newest(files: Any, folder: Any) -> int:
    """When the newest file in a folder, or in a folder in it, was written, ms; 0: there is none, or it is not known.

    A folder's own time is no help: an object store has none or the present one, and HDFS changes it only when something
    is made in the folder itself.
    """
    times = [0]
    for status in files.listStatus(folder):
        inner = files.listStatus(status.getPath()) if status.isDirectory() else [status]
        times += [each.getModificationTime() for each in inner if not each.isDirectory()]
    return int(max(times))


def rights(run: Context, octal: str) -> Any:
    """Rights as Hadoop has them."""
    return jvm(run).org.apache.hadoop.fs.permission.FsPermission(octal)


def write_text(files: Any, path: Any, text: str, *, over: bool = True) -> None:
    """Write a small file; when it returns, it is there. Unless *over*, one that is there is an error, and stays."""
    out = files.create(path, over)
    try:
        out.write(bytearray(text.encode()))
    finally:
        out.close()


def make_durable(files: Any, folder: Any) -> None:
    """Have the disk keep what lies in a folder, and the folders above it by which it is found, where they are this
    machine's: what is only written is lost with the power. Other file systems have ways of their own.

    Raises:
        OSError: a file in it is not kept. Of a folder that is passed over: there are file systems whose folders need
            not be asked, and folders above that others made.
    """
    if files.getUri().getScheme() != "file":
        return
    here = Path(folder.toUri().getPath())
    for path in here.iterdir():
        if path.is_file():
            _sync(path)
    for path in (here, *here.parents):
        with suppress(OSError):
            _sync(path)


def _sync(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def jvm(run: Context) -> Any:
    """The JVM's packages by name, as py4j gives them, which has no types."""
    return run.store.spark._jvm
