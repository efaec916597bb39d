"""Searching once: a read that finds a table's suspects goes past its shadow cells too, and tells whose they were.

So most tables need not be read a second time for proofs. What is said here of a table is that it has none; that it has
one, and which, only a search tells.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType

from lowtide.cleaning.planning import cover
from lowtide.errors import StoreError
from lowtide.values.text import names_text
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames.computed import union
from lowtide_spark.frames.startset import StartSet
from lowtide_spark.frames.store import Life
from lowtide_spark.run.context import Run

_HAS_ANY = "lowtide_has_any_start"


def without_proofs(run: Run, works: Sequence[CleanupWork], starts: StartSet) -> set[str]:
    """Tables that hold no shadow cell of the transactions *starts*, of whatever form. Of those that are not named
    nothing is said: they have to be searched.

    The word of a read counts only for a table that hides no cells, and of which it left out nothing: every row, each at
    all timestamps that those transactions can have written at, and every family that may hold shadow cells, to the end.
    Like a search it came after the commit table was read: who had no entry then had all shadow cells, or gets none any
    more. It is of the table as it was then: see :func:`check_word`.

    Args:
        run: the run.
        works: tables, with their suspects read; whose word is taken is noted there.
        starts: of more than fit into a list every table has to be searched.
    """
    sought = starts.packed()
    whole = {work.table: work for work in works if sought and _tells_all(work, starts)}
    # One frame of all that were read at once.
    met = {id(work.met): work.met for work in whole.values() if work.met is not None}
    if not met:
        return set()
    run.store.spark.udf.registerJavaFunction(_HAS_ANY, "lowtide.connector.HasAnyStart", BooleanType())
    reads = union(list(met.values()), like=next(iter(met.values())))
    # Of a part that gave up counting it is true: it may hold any.
    may = F.call_udf(_HAS_ANY, "shadow_starts", F.lit(sought))
    found = reads.where(F.col("table").isin(list(whole)) & may).select("table").distinct().collect()
    without = whole.keys() - {row.table for row in found}
    for work in works:
        work.vouches = work.table in without
        work.met = None
    return without


def check_word(run: Run, works: Sequence[CleanupWork]) -> None:
    """Before the first mark: each table whose word was taken is the one that was read.

    Raises:
        StoreError: one was restored, made anew, or disabled and enabled since: what came back may prove commits.
    """
    vouching = [Life.of(work.table, work.regions) for work in works if work.vouches]
    if changed := run.store.changed(vouching) if vouching else ():
        fact = (
            f"{names_text(changed)} {'was' if len(changed) == 1 else 'were'} restored, made anew, or disabled and "
            "enabled while the run went on, after it had been read and had no proof of any transaction in question; "
            "nothing is done to any table"
        )
        raise StoreError(fact, "run again: what came back is read then")


def _tells_all(work: CleanupWork, starts: StartSet) -> bool:
    entry = work.entry
    read = work.suspects is not None and work.met is not None
    return read and not entry.unmarked and not entry.doubt and cover(work.ranges, starts.span)
