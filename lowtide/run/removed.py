"""What runs removed, as their summaries count it: which sidelines have to be there, on whose disk ever. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lowtide.run.jobs import REMOVING

#: As the note of a table says where its cells lie.
_KEPT_IN = re.compile(r"what goes is kept in (.+?); `lowtide restore ")


@dataclass(slots=True)
class Removed:
    """A run that removed something, by all of its summaries: one that was tried again has several, and each try may
    have had another machine.
    """

    run: str
    jobs: set[str] = field(default_factory=set)
    #: By table, how many cells.
    cells: Counter[str] = field(default_factory=Counter)
    #: By table, in how many tries.
    tries: Counter[str] = field(default_factory=Counter)
    #: The highest that it had read: it removed nothing of a transaction above it.
    low_watermark: int = 0
    #: When it began last, ms.
    started: int = 0
    #: By table, the machines that it ran on, each with the folder that it put cells of that table into; "": not known.
    places: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def sentence(self, table: str, here: int) -> str:
        """That of what it removed of *table* only so many cells are *here*, and where the others ought to be."""
        there = "; or ".join(_said(*place) for place in self.places[table])
        return (
            f"run {self.run} removed {self.cells[table]:,} cells of {table}, and of those {here:,} are in the sideline "
            f"that is seen from here. It put them aside {there}"
        )


def removed(summaries: Iterable[Mapping[str, Any]]) -> dict[str, Removed]:
    """The runs of *summaries* that removed something, by their ids; what a run only planned is not counted."""
    found: dict[str, Removed] = {}
    for summary in summaries:
        if summary["job"] not in REMOVING:
            continue
        for table in summary["tables"]:
            if not (table["execute"] and table["counts"]["deleted"]):
                continue
            one = found.setdefault(summary["run"], Removed(summary["run"]))
            name = table["table"]
            one.jobs.add(summary["job"])
            one.cells[name] += table["counts"]["deleted"]
            one.tries[name] += 1
            one.low_watermark = max(one.low_watermark, summary["low_watermark"])
            one.started = max(one.started, int(summary["started"]))
            place = summary.get("by", {}).get("host", ""), _folder(table)
            if place not in (places := one.places.setdefault(name, [])):
                places.append(place)
    return found


def _folder(table: Mapping[str, Any]) -> str:
    return next((found[1] for note in table.get("notes", ()) if (found := _KEPT_IN.match(note))), "")


def _said(host: str, folder: str) -> str:
    on = f"on {host or 'a machine whose name is not recorded'}"
    return f"{on}, in {folder}" if folder else on
