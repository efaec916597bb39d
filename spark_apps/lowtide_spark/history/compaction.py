"""The space that history GC gives back: what it removed, in books kept from run to run, and the compactions that
pay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lowtide.cleaning.facts import Region
from lowtide.history.compaction import Gain, gains, last_compactions, to_record, worth_compacting
from lowtide_spark.history.work import HistoryWork
from lowtide_spark.run.context import Run


def compact(run: Run, work: HistoryWork) -> None:
    """Ask HBase for the compactions that pay, within the configured share, bytes and regions at a time; a dry run names
    them.

    Never where Omid's compactor is on the table: a major compaction with it drops committed cells under a family
    tombstone that was written over, and Lowtide must not be what sets it off.
    """
    if work.entry.compactor:
        work.report.notes.append(
            "nothing is compacted: Omid's compactor is on the table, and it loses rows whose family was "
            "deleted and written again"
        )
        return
    if work.cells is None:
        return
    settings = run.config.table(work.table).compaction
    found = [
        g
        for g in gains(work.examined, work.going, work.uncompacted, {r.name: r.store_bytes for r in work.regions})
        if g.region not in work.stopped
    ]
    chosen = worth_compacting(found, settings.share, settings.bytes)
    families: dict[str, list[str]] = {}
    for gain in chosen:
        families.setdefault(gain.region, []).append(gain.family)
    _report_gains(work, found, chosen)
    would = (
        f"{len(families)} of {len(work.regions)} regions hold, within the budget, families of which "
        f"{settings.share:.0%} or more is removed"
    )
    if not work.execute or not families:
        work.report.notes.append(
            f"{would}; " + ("nothing is compacted in a dry run" if families else "none is compacted")
        )
        return
    done: dict[str, tuple[int, int]] = {}
    names = list(families)
    try:
        for start in range(0, len(names), settings.regions):
            batch = {name: families[name] for name in names[start : start + settings.regions]}
            done |= run.store.compact_regions(work.table, batch)
    finally:
        _book(run, work, [g for g in chosen if g.region in done], done)
        before, after = (sum(sizes[i] for sizes in done.values()) for i in (0, 1))
        ratio = (
            f"{after / (before - after):.2f} bytes rewritten for each byte given back"
            if before > after
            else "too small to measure"
        )
        which = "and were compacted" if len(done) == len(families) else f"and {len(done)} of them were compacted"
        work.report.notes.append(
            f"{would} {which}: {before >> 20:,} MiB on disk before, {after >> 20:,} after (whole MiB a region, "
            f"as HBase tells), {ratio}"
        )


def _book(run: Run, work: HistoryWork, compacted: Sequence[Gain], sizes: Mapping[str, tuple[int, int]]) -> None:
    """Take what is on disk no more off the books, and tell the regions' bytes before and after."""
    for gain in compacted:
        store = (gain.region, gain.family)
        work.going[store] = work.uncompacted[store] = 0
    remember(run, work, run.store.regions(work.table))
    for entry in work.by_region:
        if entry["region"] in sizes:
            entry["bytes_before"], entry["bytes_after"] = sizes[entry["region"]]
    work.report_regions()


def _report_gains(work: HistoryWork, found: Sequence[Gain], chosen: Sequence[Gain]) -> None:
    """Put what a compaction would do into the regions from which something goes or which are to be compacted."""
    gains: dict[str, list[dict[str, Any]]] = {}
    for g in found:
        gains.setdefault(g.region, []).append(
            {
                "family": g.family,
                "share": round(g.share, 4),
                "reclaimable": g.reclaimed,
                "rewritten_per_byte": g.ratio,
                "pays": g in chosen,
            }
        )
    listed = {r["region"] for r in work.by_region}
    nothing = {"versions": 0, "shadows": 0, "bytes": 0, "markers": 0}
    work.by_region += [{"region": r, **nothing} for r in sorted({g.region for g in chosen} - listed)]
    work.by_region = [{**r, "compaction": gains.get(r["region"], [])} for r in work.by_region]
    work.report_regions()


def remember(run: Run, work: HistoryWork, regions: Sequence[Region]) -> None:
    """Record what is removed and not compacted yet, for the runs to come."""
    run.state().put_uncompacted(work.table, to_record(work.uncompacted + work.going, last_compactions(regions)))
