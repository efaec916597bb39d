"""What is planned and what writers answer for are the same number, or it is told: without a store."""

from __future__ import annotations

from collections import Counter

from lowtide_spark.cleaning import acting, pruning, rules
from lowtide_spark.cleaning.work import CleanupWork
from lowtide_spark.frames.store import Written

from lowtide.cleaning.facts import Incarnation
from lowtide.run.summary import TableReport
from lowtide.store.records import TableState
from lowtide.tables.inventory import Entry, Kind


def _work(**planned: int) -> CleanupWork:
    entry = Entry("orders", Kind.TRANSACTIONAL, True, frozenset("f"))
    state = TableState("orders", 1, Incarnation.unknown(), ())
    work = CleanupWork(TableReport("orders", execute=True), entry, [], state, [], [])
    work.planned = Counter({(rules.HEAL, region): number for region, number in planned.items()})
    work.planned[rules.DELETE, "elsewhere"] = 7
    return work


def test_every_planned_mutation_must_be_answered_for() -> None:
    """Done, refused and failed together are what was planned, region by region; a difference either way stops the
    range, by name.
    """
    work = _work(whole=4, short=3, long=1, silent=2)
    written = [
        Written("whole", "heal_if_present", 3, 1, 0, 9, None),
        Written("short", "heal_if_present", 2, 0, 0, 9, None),
        Written("long", "heal_if_present", 2, 0, 0, 9, None),
    ]
    assert acting._book(work, written, rules.HEAL) == 7
    assert set(work.stopped) == {"short", "long", "silent"}
    assert work.stopped["silent"] == "2 cells were planned to heal and 0 answered for; run again"


def test_what_failed_is_answered_for_and_stops_its_range_by_its_own_name() -> None:
    """The failure is told, not the count."""
    work = _work(east=2)
    acting._book(work, [Written("east", "heal_if_present", 1, 0, 1, 9, "busy")], rules.HEAL)
    assert work.stopped == {"east": "1 mutations failed: busy"}
    assert work.report.counts.failed == 1


def test_nothing_is_pruned_while_journal_entries_are_not_answered_for() -> None:
    """The journal is the only proof of what is restored later."""
    report = TableReport("OMID_COMMIT_TABLE")
    written = [Written("journal", "put", 2, 0, 0, 9, None)]
    assert not pruning._unanswered(written, 2, report, "journal entries")
    assert pruning._unanswered(written, 3, report, "journal entries")
    assert report.problems == ["3 journal entries were planned and 2 answered for; run again"]
