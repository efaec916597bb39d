"""What runs put aside and is not seen from here: files that are missing, and what the summaries in the state table tell
of and no folder has. They are the same for all machines; a folder may be one machine's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.run.removed import Removed, removed
from lowtide.values.clock import millis
from lowtide_spark.frames.folders import Context

#: By run and table the files of a sideline that are missing; of a table that is not in it no list of files is there.
Seen = Mapping[str, Mapping[str, list[str]]]

#: What to do about a folder that is elsewhere.
FETCH = (
    "Run this where that folder is (the same path is another folder where HADOOP_CONF_DIR names another file system), "
    "or copy the folder here"
)


@dataclass(frozen=True, slots=True)
class Lost:
    """A run of whose sideline something is missing, of one table: in a sentence what, and where it ought to be."""

    run: str
    what: str
    #: Which jobs it was of, and the low watermark above which it removed nothing. None: files are missing, whose nobody
    #: knows.
    by: tuple[frozenset[str], int] | None = None

    def may_hold(self, job: str, start: int) -> bool:
        """Whether something that *job* removed, of a transaction that began at *start* or later, may be missing."""
        return self.by is None or (job in self.by[0] and start <= self.by[1])


def first(lost: Sequence[Lost]) -> Lost:
    """The one that is named where there are several."""
    return min(lost, key=lambda each: each.run)


def summed(lost: Sequence[Lost]) -> str:
    """What is missing, in one sentence without its full stop."""
    more = f" (and so it is with {len(lost) - 1} more)" if len(lost) > 1 else ""
    return f"{first(lost).what}{more}"


def recorded(run: Context) -> dict[str, Removed]:
    """The runs whose sidelines are to be there, by the summaries of the last ``sideline_keep``. Not those that were
    killed: they left none.
    """
    since = run.request.now - run.config.state.sideline_keep
    return removed(run.store.state().runs_since(millis(since)))


def why_none(run: Context, name: str) -> str:
    """Why the run has no sideline here, as far as the summaries tell."""
    known = run.store.state().runs_since(0)
    if one := recorded(run).get(name):
        return (
            f"{one.sentence(min(one.cells), 0)}. {FETCH}. One state.sideline that all machines reach, such as "
            "hdfs://..., spares that"
        )
    if name in removed(known):
        return f"it was cleared after state.sideline_keep ({run.config.state.sideline_keep.days} days)"
    acted = any(each["run"] == name and each["execute"] for each in known)
    return "it removed nothing" if acted else "no run of this name that acted has a summary; see `lowtide runs`"


def damaged(seen: Seen) -> Iterator[tuple[str, Lost]]:
    """By table the runs of whose files some are missing."""
    for name, missing in seen.items():
        for table, names in missing.items():
            if names:
                what = f"files of the sideline of run {name} are missing or cut short, such as {names[0]} of {table}"
                yield table, Lost(name, what)


def elsewhere(run: Context, seen: Seen, cells: DataFrame, only: str | None = None) -> Iterator[tuple[str, Lost]]:
    """By table, or of the *only* one that was looked for, the runs that removed more of it than is among *cells*, by
    their summaries; not the :func:`damaged` ones.
    """
    known = recorded(run)
    listed = {(name, table) for name, missing in seen.items() for table in missing}
    # A list that is whole has all that one try put aside; of several tries each may have had a disk of its own.
    doubtful = {
        (name, table)
        for name, one in known.items()
        for table, tries in one.tries.items()
        if only in (None, table) and name in seen and (tries > 1 or (name, table) not in listed)
    }
    counts = _counted(cells, {name for name, _ in doubtful})
    for name, one in sorted(known.items()):
        for table, number in sorted(one.cells.items()):
            if only not in (None, table):
                continue
            if (name, table) in listed - doubtful or seen.get(name, {}).get(table):
                continue
            here = counts.get((name, table), 0)
            if here < number:
                yield table, Lost(name, one.sentence(table, here), (frozenset(one.jobs), one.low_watermark))


def _counted(cells: DataFrame, names: set[str]) -> dict[tuple[str, str], int]:
    """How many *cells* are of these runs, by run and table."""
    if not names:
        return {}
    of_runs = cells.where(F.col("run").isin(sorted(names))).groupBy("run", "table").count()
    return {(r.run, r.table): r["count"] for r in of_runs.collect()}
