"""What a job reports: one JSON object, the same on disk, in the state table, on the page and in the terminal."""

from __future__ import annotations

import getpass
import json
import os
import socket
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lowtide import __version__
from lowtide.run.private import write_private
from lowtide.values.clock import now_millis
from lowtide.values.text import cut

#: A summary is one cell of the state table, and goes through Airflow's database: so long is a sentence in it at most.
LONGEST = 8_000


@dataclass
class Counts:
    """Counters of one table; each is counted where the thing happens, none is inferred from others."""

    candidates: int = 0
    healed: int = 0
    deleted: int = 0
    marked: int = 0
    unmarked: int = 0
    pruned: int = 0
    restored: int = 0
    finished: int = 0
    dropped: int = 0
    failed: int = 0
    #: Delete markers written for what was deleted: one may stand for many versions.
    markers: int = 0
    #: Bytes of what was deleted. HBase gives them back when it compacts.
    bytes_removed: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    cells_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0

    def to_json(self) -> dict[str, Any]:
        """A plain mapping."""
        return {**self.__dict__, "skipped": dict(sorted(self.skipped.items()))}

    def __add__(self, other: Counts) -> Counts:
        """The sum, counter by counter."""
        return Counts(**{name: getattr(self, name) + getattr(other, name) for name in self.__dict__})


#: The counters of what was done, or would be: told by `lowtide runs`, in this order, and sent as metrics. Every counter
#: is one of these or of those below.
DONE = (
    "healed",
    "marked",
    "unmarked",
    "deleted",
    "markers",
    "pruned",
    "restored",
    "finished",
    "dropped",
    "failed",
    "bytes_removed",
)
#: The counters of what was looked at, what was left alone, and what both cost.
LOOKED_AT = ("candidates", "skipped", "cells_read", "bytes_read", "bytes_written")
#: Each counter in words, as people are told of it.
WORDS = {
    "healed": "healed",
    "marked": "invalidated",
    "unmarked": "invalidations taken back",
    "deleted": "removed",
    "markers": "delete markers",
    "pruned": "pruned",
    "restored": "restored",
    "finished": "finished",
    "dropped": "dropped",
    "failed": "failed",
    "bytes_removed": "bytes removed",
    "candidates": "candidates",
    "skipped": "left alone",
    "cells_read": "cells read",
    "bytes_read": "bytes read",
    "bytes_written": "bytes written",
}
#: What would be written: a plan that is approved is compared by these.
PLANNED = ("healed", "deleted", "marked", "unmarked", "markers", "bytes_removed")
#: The columns of the report's runs in the terminal.
REPORTED = ("healed", "deleted", "marked", "pruned", "finished", "dropped")
#: The counts of a run on the page in Airflow.
ON_PAGE = ("candidates", "healed", "deleted", "marked", "pruned", "failed")


@dataclass
class TableReport:
    """A run's work on one table. *intervals* are of start timestamps, half-open; *problems* made the run red."""

    table: str
    counts: Counts = field(default_factory=Counts)
    intervals: list[tuple[int, int]] = field(default_factory=list)
    regions: int = 0
    regions_recorded: int = 0
    read: str = ""
    #: Whether the run acted on this table, or planned only.
    execute: bool = False
    #: Whether the run passed it by, and *notes* say why: nothing is known of it then that was not before.
    left_alone: bool = False
    #: The ancient history mark that the run worked with, and what holds it (``history_gc``).
    mark: dict[str, Any] | None = None
    #: What goes, by region (``history_gc``).
    by_region: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping, in which no problem and no note is longer than :data:`LONGEST`."""
        return {
            **self.__dict__,
            **_bounded(self.problems, self.notes),
            "counts": self.counts.to_json(),
            "intervals": [list(p) for p in self.intervals],
        }


def _bounded(problems: Sequence[str], notes: Sequence[str]) -> dict[str, list[str]]:
    """What others' texts may be part of: keys, and what servers say."""
    return {name: [cut(text, LONGEST) for text in texts] for name, texts in (("problems", problems), ("notes", notes))}


def looked_at(table: Mapping[str, Any]) -> bool:
    """Whether what a run's summary has of a *table* says anything of it: not where it was passed by or refused."""
    return not table.get("left_alone") and bool(table["counts"].get("cells_read") or not table["problems"])


#: In a run's context: who approved its plan.
APPROVED_BY = "approved_by"
#: How the ids begin of what :func:`by_hand` keeps.
BY_HAND = "by-hand-"


def myself() -> str:
    """This user on this machine."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # in a container whose user has no name
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def here(config: str, principal: str = "") -> dict[str, str]:
    """Who runs, on which host, which version of Lowtide, by which configuration file
    (:func:`lowtide.config.source`); and, as far as it is known, the *principal*: as whom HBase knows that user.
    """
    user, _, host = myself().rpartition("@")
    return {"user": user, "host": host, "lowtide": __version__, "config": config, "principal": principal}


def by_hand(what: str, note: str, config: str, principal: str = "") -> Summary:
    """What a person did to the records by a command, to be kept among the runs: *note* says it in a sentence."""
    summary = Summary(what, "", execute=True, notes=[note], by=here(config, principal))
    summary.run = f"{BY_HAND}{summary.started}"
    return summary


def ran_by(run: Mapping[str, Any]) -> str:
    """Who ran it, as whom where that is another name, where, by whose approval, by which version and configuration;
    empty of a run of before that was kept.
    """
    by = run.get("by")
    if not by:
        return ""
    principal = by.get("principal", "")
    as_whom = f" as {principal}" if principal not in ("", by["user"]) else ""
    approver = run["context"].get(APPROVED_BY)
    approved = f", approved by {approver}" if approver else ""
    return f"{by['user']}@{by['host']}{as_whom}{approved}, Lowtide {by['lowtide']}, {by['config']}"


@dataclass
class CellListing:
    """Of a run with ``--list``: the folder of its list, how many cells it has by table, and the first of them, of each
    the fields of a line, with long keys cut.
    """

    folder: str = ""
    cells: Counter[str] = field(default_factory=Counter)
    first: list[dict[str, Any]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; empty where nothing was listed."""
        return {**self.__dict__, "cells": dict(self.cells)} if self.folder else {}


@dataclass
class Summary:
    """A run. Times are wall-clock ms, *low_watermark* and *bound* are inclusive timestamps of the oracle."""

    job: str
    run: str
    execute: bool
    started: int = field(default_factory=now_millis)
    seconds: float = 0.0
    low_watermark: int = 0
    bound: int | None = None
    tables: list[TableReport] = field(default_factory=list)
    blockers: list[dict[str, Any]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    #: What is to be known of the run as a whole, and does not make it red.
    notes: list[str] = field(default_factory=list)
    #: Seconds by phase: what a run costs before the first cell, and what the cells cost.
    phases: dict[str, float] = field(default_factory=dict)
    #: Numbers of the job's own, by name (docs/jobs.md).
    figures: dict[str, int] = field(default_factory=dict)
    #: What the run was for: log link, try, and the like, as the caller gave it.
    context: dict[str, str] = field(default_factory=dict)
    #: The version of HBase's servers, as the master tells it; runs of before there was this have none.
    hbase: str = ""
    #: Who ran it, see :func:`here`; runs of before there was this have none.
    by: dict[str, str] = field(default_factory=dict)
    #: The ``rates`` that it kept to, by table, and for how many seconds it ``waited`` for them, by kind
    #: (:mod:`lowtide.run.rate`); empty where there was none.
    pace: dict[str, Any] = field(default_factory=dict)
    #: Where its cells are listed, if it was asked to.
    listing: CellListing = field(default_factory=CellListing)

    @property
    def failed(self) -> bool:
        """Whether anything was left undone."""
        return bool(self.problems) or any(t.problems or t.counts.failed for t in self.tables)

    @property
    def totals(self) -> Counts:
        """The sum over the tables."""
        return sum((t.counts for t in self.tables), Counts())

    def to_json(self) -> dict[str, Any]:
        """A plain mapping, in which no problem and no note is longer than :data:`LONGEST`; ``state`` is ``done`` or
        ``failed``.
        """
        return {
            **self.__dict__,
            **_bounded(self.problems, self.notes),
            "tables": [t.to_json() for t in self.tables],
            "totals": self.totals.to_json(),
            "state": "failed" if self.failed else "done",
            "listing": self.listing.to_json(),
        }

    def to_keep(self) -> dict[str, Any]:
        """The same for the records, which many may read: without the names of single cells."""
        found = self.to_json()
        return {**found, "listing": {name: value for name, value in found["listing"].items() if name != "first"}}

    def write(self, path: Path) -> None:
        """Write the JSON to *path*, whole or not at all; for this user alone where it names single cells."""
        part = path.with_name(path.name + ".part")
        text = json.dumps(self.to_json(), indent=2) + "\n"
        part.unlink(missing_ok=True)  # one that a killed run left has the rights that it had
        if self.listing.first:
            write_private(part, text)
        else:
            part.write_text(text)
        part.replace(path)
