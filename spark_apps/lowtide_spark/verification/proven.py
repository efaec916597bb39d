"""V2, before and after: what commit table and journal say of some transactions is held against what they said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from lowtide.values.clock import millis
from lowtide.verification.findings import Verification
from lowtide.verification.proven import Allowed, Proof, lost, turned
from lowtide_spark.frames.local import few_rows
from lowtide_spark.run.context import Run
from lowtide_spark.verification.look import Look
from lowtide_spark.verification.rawcells import pairs
from lowtide_spark.verification.tables import Table, commits_and_marks, raw_cells

#: So many transactions at most are written, drawn from all that have a row.
_KEPT = 1000


def compare(run: Run, found: Verification, tables: Sequence[Table], look: Look) -> None:
    """Hold what is said now against what was said before, and see what is said of some that began at or below the low
    watermark.
    """
    rows = commits_and_marks(run, found)
    earlier = [Proof(**values) for values in look.earlier.get("transactions", ())]  # older files have none
    if earlier:
        starts = few_rows(run.store.spark, [(e.start,) for e in earlier], "start_ts bigint")
        now = {p.start: p for p in _proofs(_by_transaction(rows.join(starts, "start_ts")))}
        found.violations += lost(earlier, look.earlier["at"], now, Allowed(found.horizon, _let_go_before(run)))
        if doubtful := {v.transaction for v in turned(earlier, now, ())}:
            shown = _shown(tables, run, [start for start in doubtful if start is not None])
            found.violations += turned(earlier, now, shown)
        found.notes.append(f"of {len(earlier)} transactions was compared whether they are said to have committed")
    if look.writes:
        known = _by_transaction(rows.where(F.col("start_ts") <= found.low_watermark))
        drawn = known.orderBy(F.xxhash64("start_ts", F.lit(run.request.run))).limit(_KEPT)
        look.seen["transactions"] = [asdict(proof) for proof in _proofs(drawn)]


def _let_go_before(run: Run) -> int:
    """What was written to the journal before this may have gone: it is older than it is kept, and than every HBase
    snapshot that could bring back its cells. Wall-clock ms; 0: nothing may go.
    """
    keep = run.config.state.journal_keep
    if keep == "forever":
        return 0
    own = run.config.own_tables
    created = [s.created for s in run.store.snapshots() if s.table not in own]
    return min([millis(run.request.now - keep), *created])


def _by_transaction(rows: DataFrame) -> DataFrame:
    columns = ("entry", "mark", "pruned", "pruned_mark", "journaled", "decided")
    return rows.groupBy("start_ts").agg(*(F.max(name).alias(name) for name in columns))


def _proofs(rows: DataFrame) -> list[Proof]:
    return [
        Proof(
            r.start_ts,
            (None if r.mark else r.entry) or r.pruned,
            bool(r.mark or r.pruned_mark),
            r.journaled,
            bool(r.decided),
        )
        for r in rows.where("coalesce(entry, pruned) is not null or mark or pruned_mark").collect()
    ]


def _shown(tables: Sequence[Table], run: Run, starts: Sequence[int]) -> set[int]:
    """Those of *starts* that a shadow cell shows, in one of the *tables*."""
    of = [
        pairs(raw_cells(run, t)).where(F.col("start_ts").isin(starts) & (F.col("shadow") > F.col("timestamp")))
        for t in tables
    ]
    return (
        {r.start_ts for r in reduce(DataFrame.unionByName, of).select("start_ts").distinct().collect()} if of else set()
    )
