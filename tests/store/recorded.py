"""The records of a cleanup that has nothing to do, without running it: for tests that are not about cleaning."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

from lowtide_spark.frames.store import Store

from lowtide.cleaning.facts import Fact, cleaned_before, cleaned_intervals, valid
from lowtide.journal import life
from lowtide.lab.workload import OmidClient
from lowtide.store.state import StateStore
from lowtide.tables import settings
from lowtide.tables.inventory import Kind, classify
from lowtide.values.formats import SHADOW_PREFIX, SHADOW_SUFFIX, after, base, shadow_qualifier
from lowtide.values.intervals import Intervals


def record_as_cleaned(omid: OmidClient, store: Store, state: StateStore, tables: Iterable[str]) -> int:
    """Record what ``orphan_cleanup --full`` would of *tables*, and the time sample of ``watermark_collection``, with
    them among the tables that it has listed, if it has any; the low watermark.

    Only for tables in which that run would write nothing: every data cell has its shadow cell and no commit entry any
    more. Anything else fails the test. tests/store/test_recorded.py compares it with the jobs.
    """
    watermark = omid.advance_watermark()
    read_at = datetime.now(UTC)
    state.create()
    state.record_low_watermark(watermark)
    entries = omid.commit_table()
    for table in tables:
        unclean = _to_be_cleaned(omid, table, watermark, set(entries))
        assert unclean == [], f"a cleanup of {table} would have something to do"
        record(store, state, table, watermark)
        _list(store, state, table)
    state.add_sample(read_at, watermark)
    return watermark


def _list(store: Store, state: StateStore, table: str) -> None:
    """One that is not listed may be a clone of whatever table, and is read no further back than any was cleaned."""
    listing = state.listing()
    if not listing.entries or any(e.table == table for e in listing.entries):
        return
    (descriptor,) = [d for d in store.descriptors() if d.table == table]
    entry = classify(descriptor, None, frozenset())
    if entry.kind is Kind.TRANSACTIONAL:
        entry = replace(entry, settings=settings.shape_of(descriptor, descriptor.families))
        state.put_inventory([*listing.entries, entry], listing.low_watermark, listing.at)


def _to_be_cleaned(omid: OmidClient, table: str, watermark: int, entries: set[int]) -> list[object]:
    raw = omid.raw(table)
    deleted = {c.key for c in raw if c.kind == "delete"}
    up_to = {c.key[:3]: c.timestamp for c in reversed(raw) if c.kind == "delete_column"}
    there = {c.key for c in raw if c.kind == "put" and c.key not in deleted and c.timestamp > up_to.get(c.key[:3], -1)}
    return [
        key
        for key in sorted(there)
        if base(key[3]) <= watermark
        and not (key[2].startswith(SHADOW_PREFIX) and key[2].endswith(SHADOW_SUFFIX))
        and (base(key[3]) in entries or (*key[:2], shadow_qualifier(key[2]), key[3]) not in there)
    ]


def _bound(store: Store, state: StateStore) -> int:
    """As a job has it, which reads what the journal says of itself, too: the records may have been reset."""
    known, own_row = state.journal(), life.observe(state.connection, store.config.state.journal_table).own_row
    return state.greatest_bound(replace(known, pruned=max(known.pruned, own_row.pruned if own_row else 0)))


def record(store: Store, state: StateStore, table: str, watermark: int) -> None:
    """Record that *table* is clean up to *watermark*, be it so or not."""
    (descriptor,) = [d for d in store.descriptors() if d.table == table]
    families = frozenset(descriptor.families)
    look = settings.shape_of(descriptor, families)
    regions = store.regions(table)
    taken = state.begin(table, regions)
    facts = valid(taken.facts, families, taken.incarnation, look)
    before = cleaned_before(taken.facts, taken.incarnation, lambda: _bound(store, state), taken.forgotten)
    now = int(time.time() * 1000)
    for region in regions:
        intervals = cleaned_intervals(region.keys, facts) | Intervals.of([(0, after(watermark))])
        state.record(
            taken,
            Fact(
                region.keys,
                intervals,
                families,
                taken.incarnation.number,
                "recorded by a test",
                now,
                now,
                shape=look,
                before=before,
            ),
        )
