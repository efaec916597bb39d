"""The days of a store on the cluster, plain or secured: what its tests hand on to each other, what each day does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from shown import check_snapshots, unproved
from yarn_kit import Site

from lowtide.lab.workload import Model, OmidClient


@dataclass
class Days:
    """What the tests of a file hand on to each other."""

    model: Model
    watermark: int
    config: Path
    #: The name of the run that acted first.
    first: str = ""
    #: And of the one that removed history.
    history: str = ""


def left(omid: OmidClient, days: Days) -> int:
    """How many cells are not proved."""
    return sum(len(unproved(omid, table, days.watermark)) for table in days.model.tables)


def history_goes(site: Site, omid: OmidClient, days: Days, tables: Sequence[str], *, more_than: int) -> None:
    """Watermarks are collected, and history GC deletes more than so many cells; at the marks of these
    *tables* and now each shows what the model says.
    """
    collected = site.run("watermark_collection", "--config", str(days.config), "--execute")
    assert collected.code == 0, collected.output
    gone = site.run("history_gc", "--config", str(days.config), "--execute")
    assert gone.code == 0, gone.output
    assert gone.totals["deleted"] > more_than
    days.history = gone.summary["run"]
    marks = [table["mark"]["applied"] for table in gone.summary["tables"] if table["table"] in tables]
    assert len(marks) == len(tables)
    check_snapshots(omid, days.model, [*marks, omid.begin()])


def entries_are_pruned(site: Site, omid: OmidClient, days: Days) -> None:
    """No entry is left at or below the bound, and what the commit table proved is still shown."""
    pruned = site.run("commit_table_pruning", "--config", str(days.config), "--grace", "0s", "--execute")
    assert (pruned.code, pruned.totals["pruned"] > 0) == (0, True), pruned.output
    assert [start for start in omid.commit_table() if start <= pruned.summary["bound"]] == []
    check_snapshots(omid, days.model, [omid.begin()])
