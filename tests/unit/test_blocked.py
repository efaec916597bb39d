"""Which tables hold the prune bound as a whole, and where."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from lowtide_spark.cleaning.watermarks import region_marks

from lowtide.cleaning.facts import Fact, Incarnation, Region
from lowtide.store.records import Epoch, TableState
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange

WHOLE = KeyRange(b"", b"")


def a_run() -> Any:
    """A run on a store of whose every table one region is recorded as clean up to 100."""

    def recorded(tables: list[str]) -> dict[str, TableState]:
        fact = Fact(WHOLE, Intervals.up_to(100), frozenset({"a"}), 1)
        return {table: TableState(table, Epoch(1), Incarnation(1, 5), (fact,)) for table in tables}

    state = SimpleNamespace(pauses=list, read_all=recorded)
    store = SimpleNamespace(regions_of=lambda _: lambda _: [Region("r", WHOLE, 5)])
    summary = SimpleNamespace(tables=[])
    return SimpleNamespace(state=lambda: state, store=store, summary=summary, request=SimpleNamespace(now=NOW))


NOW = datetime(2026, 1, 31, tzinfo=UTC)


def test_families_without_mark_block_at_nothing_beside_a_doubt_too() -> None:
    """What holds the bound at what is recorded of the marked families says nothing of the others: they were never
    cleaned.
    """
    families = {"families": frozenset({"a"}), "unmarked": frozenset({"b"})}
    for doubt in ("", "its settings were altered"):
        marks, blocked = region_marks(a_run(), [Entry("orders", Kind.TRANSACTIONAL, True, **families, doubt=doubt)])
        assert [mark.watermark for mark in marks] == [100]
        assert min(b.watermark for b in blocked) == 0


def test_a_doubt_alone_blocks_at_what_is_recorded() -> None:
    """And a table of which nobody knows what it is at nothing, told once."""
    marked = Entry("orders", Kind.TRANSACTIONAL, True, families=frozenset({"a"}), doubt="its settings were altered")
    _, blocked = region_marks(a_run(), [marked])
    assert [b.watermark for b in blocked] == [100]
    unknown = Entry("logs", Kind.UNMARKED, True, unmarked=frozenset({"b"}), doubt="it came from elsewhere")
    _, blocked = region_marks(a_run(), [unknown])
    assert [(b.watermark, b.reason) for b in blocked] == [(0, "it came from elsewhere")]
