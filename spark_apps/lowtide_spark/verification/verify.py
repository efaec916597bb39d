"""The verifier: whether a store keeps the invariants V1 to V6 of docs/safety.md. Writes nothing to the store.

It trusts neither the rules (``lowtide_spark.cleaning.rules``) nor the reading (the view ``versions``) by which jobs
decide, nor the records that they keep: it reads raw cells, raw records and the sideline's files by code of its own,
and holds them against one another. So nothing in this package comes from ``lowtide_spark.cleaning`` or
``lowtide_spark.history``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lowtide.errors import StoreError, UsageError
from lowtide.run.private import write_private
from lowtide.verification.findings import Verification
from lowtide.verification.records import bound, horizon, numbered_anew
from lowtide_spark.frames.store import cause
from lowtide_spark.run.context import Run
from lowtide_spark.run.progress import progress
from lowtide_spark.verification import proven, read_points, records, sidelines, transactions
from lowtide_spark.verification.look import Look
from lowtide_spark.verification.tables import families_by_table, planned


def verify(run: Run) -> None:
    """The job ``verify``.

    Raises:
        UsageError: whole tables are to be compared, and a share of them read; what they are to be compared with cannot
            be read.
        StoreError: no invariant is broken, as far as could be seen, and something could not be checked.
    """
    if run.options.sample and (run.options.before or run.options.after):
        msg = "--before and --after compare whole tables, and --sample reads some regions of each: leave one out"
        raise UsageError(msg)
    found, look = Verification(run.request.run), Look.of(run)
    with progress(run.store.spark, "verify"):
        _check(run, found, look)
    for line in _lines(found):
        print(line, flush=True)
    run.summary.problems += [f"{v.table}: {v}" if v.table else str(v) for v in found.violations]
    run.summary.figures["violations"] = sum(v.number for v in found.violations)
    look.write(run, found)
    if run.options.json is not None:
        write_private(run.options.json, found.to_json())
    if found.unseen and not found.violations:
        raise StoreError("; ".join(found.unseen))
    run.summary.problems += found.unseen


def _check(run: Run, found: Verification, look: Look) -> None:
    # First of all what is claimed, then what is there: what was published holds for good.
    found.low_watermark = run.read_low_watermark(found.notes)
    claimed = records.read(run)
    found.bound, found.horizon, found.numbered_anew = bound(claimed), horizon(claimed), numbered_anew(claimed)
    described = {d.table: d for d in run.store.descriptors()}
    families = families_by_table(run, described.values(), claimed, found)
    tables = [planned(run, described[name], of, claimed) for name, of in sorted(families.items())]
    run.store.check_readable({table.name: table.all_families for table in tables})
    run.phase("plan")
    with _part(found, "the records"):
        records.check(run, found, claimed, families)
    aside = sidelines.Aside()
    with _part(found, "the sidelines"):
        aside = sidelines.check(run, claimed, found)
    run.phase("records")
    with _part(found, "the tables"):
        transactions.check(run, found, tables, aside, look)
    run.phase("cells")
    if look.writes or look.earlier:
        with _part(found, "the read points"):
            read_points.compare(run, found, tables, claimed, look)
        with _part(found, "what was said of transactions"):
            proven.compare(run, found, tables, look)
        run.phase("read points")


@contextmanager
def _part(found: Verification, what: str) -> Iterator[None]:
    """One part that cannot be checked does not hide the others."""
    try:
        yield
    except Exception as error:  # Spark's, HBase's
        found.unseen.append(f"{what} could not be checked: {cause(error)}")


def _lines(found: Verification) -> Iterator[str]:
    yield f"verify: low watermark {found.low_watermark}, prune bound {found.bound}"
    for table, about in sorted(found.tables.items()):
        yield f"  {table}: {about['cells']:,} cells in {about['ranges']} of {about['of']} key ranges"
    yield from (f"  note: {note}" for note in found.notes)
    if not found.violations:
        yield "  no invariant was found broken"
