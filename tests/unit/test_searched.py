"""Which tables' first read may speak for them: those of which it left out nothing, and that hide nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from lowtide_spark.cleaning import searched
from lowtide_spark.cleaning.work import CleanupWork

from lowtide.cleaning.facts import Incarnation
from lowtide.cleaning.planning import WorkRange
from lowtide.run.summary import TableReport
from lowtide.store.records import TableState
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.keyranges import KeyRange

STARTS: Any = SimpleNamespace(span=(100, 250))


def read_whole() -> CleanupWork:
    """A table of which everything was read, to the end."""
    entry = Entry("orders", Kind.TRANSACTIONAL, True, frozenset("f"))
    state = TableState("orders", 1, Incarnation.unknown(), ())  # type: ignore[arg-type]
    made = CleanupWork(TableReport("orders"), entry, [], state, [], [WorkRange("r", KeyRange(b"", b""), 100, 250)])
    made.suspects = made.met = object()  # type: ignore[assignment]
    return made


def without_end(work: CleanupWork) -> None:
    """It was read, and then given up: a range had no end."""
    work.give_up("1 was read to its end")


def with_a_doubt(work: CleanupWork) -> None:
    """Its settings may hide cells from a read of all timestamps, and show them to one of a few."""
    work.entry = work.entry.doubted("family f keeps 1 version")


def with_an_unread_family(work: CleanupWork) -> None:
    """A family bears no mark, and holds shadow cells."""
    work.entry = replace(work.entry, unmarked=frozenset("g"))


def cut_short(work: CleanupWork) -> None:
    """Checkpoints of the last transaction lie beyond what was read."""
    work.ranges = [replace(work.ranges[0], to_ts=249)]


def not_told(work: CleanupWork) -> None:
    """It was not asked."""
    work.met = None


def test_a_table_that_was_read_whole_speaks_for_itself() -> None:
    """Nothing of it was left out."""
    assert searched._tells_all(read_whole(), STARTS)


@pytest.mark.parametrize("lacking", [without_end, with_a_doubt, with_an_unread_family, cut_short, not_told])
def test_a_table_of_which_something_is_not_known_is_searched(lacking: Callable[[CleanupWork], None]) -> None:
    """Whatever it is."""
    work = read_whole()
    lacking(work)
    assert not searched._tells_all(work, STARTS)
