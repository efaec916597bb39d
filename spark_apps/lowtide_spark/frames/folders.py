"""Folders that runs leave beside the store, by Hadoop's file systems: where they lie, and what they are called."""

from __future__ import annotations

from typing import Any, Protocol
from urllib.parse import unquote

from lowtide.cleaning.planning import Request
from lowtide.config import Config
from lowtide_spark.frames.store import Store


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
    """*name* as a folder's: one to one, so that no two runs share one, and none is the folder above."""
    plain = "-_." if name.strip(".") else "-_"
    return "".join(c if c.isalnum() or c in plain else f"={ord(c):02X}" for c in name)


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


def jvm(run: Context) -> Any:
    """The JVM's packages by name, as py4j gives them, which has no types."""
    return run.store.spark._jvm
