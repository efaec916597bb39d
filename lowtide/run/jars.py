"""The jars on a class path of this machine: the connector's, and beside it one HBase client. Two would answer for each
other, class by class.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from lowtide import paths
from lowtide.config import Config
from lowtide.errors import UsageError

#: The driver's class path. It is on this machine, so what lies there can be looked at; executors' may lie elsewhere.
SETTING = "spark.driver.extraClassPath"
_KEY = "spark.connector_class_path"
_FOLDER = "the jar and lib/* of the folder that `lowtide path connector` prints"


def of_driver(config: Config, ours: Sequence[str]) -> tuple[str, list[str]]:
    """What decides the driver's class path, and its entries: a setting of Spark's goes before *ours*, the connector's;
    empty: nothing but where Lowtide finds it.
    """
    if (given := config.spark.conf.get(SETTING)) is not None:
        return f"{SETTING} in spark.conf", given.split(os.pathsep)
    return (_KEY if config.spark.connector_class_path else ""), list(ours)


def names(entries: Iterable[str]) -> list[str]:
    """The files that these entries lead to, by name, as far as they are there."""
    return sorted({Path(file).name for entry in entries for file in glob.glob(entry)})


def connectors(names: Iterable[str]) -> list[str]:
    """Which of them are the connector, of whichever version."""
    return [name for name in names if re.fullmatch(r"lowtide-connector.*\.jar", name)]


def clients(names: Iterable[str]) -> list[str]:
    """The versions of the HBase clients among them."""
    return [m[1] for name in names if (m := re.fullmatch(r"hbase-shaded-mapreduce-(.+)\.jar", name))]


def check(key: str, entries: Sequence[str]) -> None:
    """Refuse a driver's class path of :func:`of_driver` that cannot be meant. What is not there cannot be judged, but
    for a class path that Spark's setting puts in the place of Lowtide's own.

    Raises:
        UsageError: there is no connector in that one, or there are two HBase clients.
    """
    found = names(entries)
    folders = [Path(entry) / "lowtide" / "connector" for entry in entries]
    if key.startswith(SETTING) and not connectors(found) and not any(folder.is_dir() for folder in folders):
        fact = f"{key} is {os.pathsep.join(entries)}, and no lowtide-connector.jar lies there on this machine"
        raise UsageError(fact, f"It takes the place of Lowtide's own: leave it out, or have {_FOLDER} in it")
    if len(clients(found)) > 1:
        raise UsageError(*several(key, entries, clients(found)))


def several(key: str, entries: Sequence[str], versions: Sequence[str]) -> tuple[str, str]:
    """Of two or more HBase clients on a class path of :func:`of_driver`: what is so, and what to do."""
    fact = (
        f"the connector wants one HBase client beside it, and {os.pathsep.join(entries)} has {len(versions)} of them "
        f"({', '.join(versions)})"
    )
    if key:
        return fact, f"Have {_FOLDER} in {key}, and nothing else of HBase's, or leave the key out"
    if paths.installed():
        return fact, "One is of an earlier Lowtide: uninstall the wheel, remove what is left of its folder, install it"
    return fact, f"One is of an earlier build: remove {paths.connector()} and .lowtide/setup/connector, run make setup"
