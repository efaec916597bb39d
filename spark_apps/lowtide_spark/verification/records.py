"""What is claimed: the rows of the state table, and the journal's about itself, as they are."""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import reduce

from pyspark.sql import functions as F

from lowtide.values.clock import millis
from lowtide.verification.findings import Verification, Violation
from lowtide.verification.read_points import held_violations
from lowtide.verification.records import JOURNALS_OWN, Records
from lowtide.verification.watermarks import watermark_violations
from lowtide_spark.run.context import Run

#: Records that the verifier reads, by the beginning of their rows.
_RECORDS = ("table/", "watermarks/", "bound/", "history/", "journal", "run/", "inventory", "generation", "hold/")
_MAX_MILLIS = 10**15
#: Between two reads of records that do not agree: a collection may just be publishing.
_SECONDS_BETWEEN_READS = 5.0


def read(run: Run) -> Records:
    """The rows of the state table, as they are, and the journal's about itself, which outlives them."""
    table, journal = run.config.state.table, run.config.state.journal_table
    there = {d.table for d in run.store.descriptors()}
    found: dict[str, dict[str, str]] = {}
    if journal in there:
        for r in (
            run.store.cells(journal).where((F.col("row") == F.lit(b"journal")) & (F.col("kind") == "put")).collect()
        ):
            found[JOURNALS_OWN] = {bytes(r.qualifier).decode(): bytes(r.value).decode()}
    if table not in there:
        return found
    wanted = reduce(lambda a, b: a | b, (F.substring("row", 1, len(p)) == F.lit(p.encode()) for p in _RECORDS))
    # Summaries are many; those whose sideline is gone by its age are of no use here.
    oldest = _MAX_MILLIS - millis(run.request.now - run.config.state.sideline_keep)
    old = (F.substring("row", 1, 4) == F.lit(b"run/")) & (F.col("row") > F.lit(f"run/{oldest:020d}".encode()))
    for r in run.store.cells(table).where(wanted & ~old & (F.col("kind") == "put")).toLocalIterator():
        found.setdefault(bytes(r.row).decode(), {})[bytes(r.qualifier).decode()] = bytes(r.value).decode()
    return found


def check(run: Run, found: Verification, records: Records, families: Mapping[str, frozenset[str]]) -> None:
    """What the records show by themselves of V4 and V6: watermarks and bound are what the facts allow, and no history
    mark is above what is held.

    What does not agree is read once more after some seconds: a collection may just be publishing, and whoever takes a
    hold writes it before he looks whether the mark has passed it.

    Args:
        run: the run.
        found: takes violations and notes.
        records: as they were read first.
        families: the transactional ones of every table.
    """

    def look(records: Records) -> tuple[list[Violation], list[str]]:
        violations, notes = watermark_violations(records, families)
        return violations + held_violations(records, millis(run.request.now)), notes

    violations, notes = look(records)
    if violations:
        time.sleep(_SECONDS_BETWEEN_READS)
        violations, notes = look(read(run))
    if found.bound > found.low_watermark:
        violations.append(
            Violation(
                "V4",
                "",
                f"the prune bound published last, {found.bound}, is above the low watermark, {found.low_watermark}",
                "Prune nothing",
            )
        )
    found.violations += violations
    found.notes += notes
