"""Lists of files, one for each time that something was put aside: which files that were, how long each is, and what
they hold. By them it is known later that none is missing, and that none holds anything else.

A list is written when all its files are there, and never again: what was lost before a run was tried a second time is
missed for good.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JError

from lowtide.errors import StoreError
from lowtide_spark.frames.folders import Context, child, jvm, write_text
from lowtide_spark.frames.store import cause

#: What a list says, and what it means. A reader of another format does not take what it knows of it for all.
FORMAT = 1
#: So begin the names of lists. Spark passes over files whose names begin like this.
_BEGINNING, _END = "_lowtide-list-", ".json"
#: The one list of a folder of before there were several; the last try's, which had replaced the one before it.
_SINGLE = "_lowtide.json"


@dataclass(frozen=True, slots=True)
class Summed:
    """What cells come to: how many they are, and a sum over all that each of them holds."""

    cells: int
    sum: str


@dataclass(frozen=True, slots=True)
class Listed:
    """What the lists of a folder say: the length of each file, and which of the lists cannot be gone by, and why."""

    lengths: dict[str, int] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)


def is_list(name: str) -> bool:
    """Whether a file of this name is a list."""
    return name == _SINGLE or (name.startswith(_BEGINNING) and name.endswith(_END))


def write(run: Context, files: Any, folder: Any, own: str, lengths: Mapping[str, int], summed: Summed) -> None:
    """List files of *folder*, under a name that has *own* in it, which is no other try's. Under its name it is there
    whole or not at all: a run may be killed while it writes.

    Raises:
        StoreError: it cannot be given its name.
    """
    name = f"{_BEGINNING}{own}{_END}"
    fresh = child(run, folder, f"{name}.new")
    said = {"format": FORMAT, "files": dict(lengths), "cells": summed.cells, "sum": summed.sum}
    write_text(files, fresh, json.dumps(said))
    if not files.rename(fresh, child(run, folder, name)):
        msg = (
            f"the sideline {folder.toString()} cannot be finished: {name}.new cannot be renamed to {name}; nothing was "
            "removed. Look at the folder's rights, run again"
        )
        raise StoreError(msg)


def read(run: Context, files: Any, folder: Any, names: Iterable[str]) -> Listed | None:
    """What those of *names* that are lists say, all together; None: none of them is one."""
    lists = sorted(filter(is_list, names))
    found = Listed()
    for name in lists:
        try:
            said = json.loads(_text(run, files, child(run, folder, name)))
            if (format := said.get("format", FORMAT)) != FORMAT:
                found.damaged.append(f"{name} (its format is {format}, and this Lowtide knows {FORMAT})")
            else:
                found.lengths.update(said["files"])
        except (Py4JError, ValueError, KeyError, TypeError, AttributeError) as error:
            found.damaged.append(f"{name} (it cannot be read: {cause(error)})")
    return found if lists else None


def _text(run: Context, files: Any, path: Any) -> str:
    stream = files.open(path)
    try:
        return str(jvm(run).org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
    finally:
        stream.close()
