"""What is said of history: each table's mark, what keeps it back, the holds, and what the runs removed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.config import Config
from lowtide.health import RECURRING, Cause, Level, Reading, Severity, assess, history_statuses, removals
from lowtide.health.history import hold_text, kept_back
from lowtide.history.mark import Hold
from lowtide.run.summary import Counts, Summary, TableReport
from lowtide.store.records import Bound, History
from lowtide.values.clock import WorldClock, millis
from tests.unit.test_health import DAY, HOUR, NOW, a_run, blocker, healthy, only

CLOCK = WorldClock()
REMOVES = Config.model_validate({"defaults": {"mode": "execute", "history_mode": "execute"}})
AGES = Config.model_validate({"defaults": {"mode": "execute"}})
WEEK = 7 * DAY


def at(before: timedelta) -> int:
    """The oracle's timestamp at that time before now."""
    return CLOCK.timestamp(NOW - before)


def mark(table: str = "orders", applied: timedelta | None = WEEK, gone: timedelta = HOUR, **more: Any) -> History:
    """A mark at *applied* before now, applied *gone* ago."""
    about = {"at": millis(NOW - gone), "run": "r1"}
    return History(table, at(applied) + 49 if applied is not None else 0, about=about if applied else {}, **more)


def hold(**changes: Any) -> Hold:
    held = Hold("h1", "orders", at(9 * DAY), "ann", "month end.", NOW - HOUR, NOW + DAY)
    return replace(held, **changes)


def gc_run(before: timedelta, execute: bool = True, table: str = "orders", **counts: int) -> Mapping[str, Any]:
    report = TableReport(table, Counts(**counts), execute=execute)
    return Summary("history_gc", f"gc-{before}", execute, millis(NOW - before), tables=[report]).to_json()


def store(**changes: Any) -> Reading:
    """A healthy store with a world clock, whose history is removed as configured."""
    low = at(timedelta())
    about: dict[str, Any] = {
        "low_watermark": low,
        "recorded": (low - 50, NOW - HOUR),
        "bounds": (Bound(NOW - HOUR, at(HOUR), since=NOW - HOUR),),
        "histories": (mark("orders"), mark("users")),
    }
    return healthy(**about | changes)


def test_history_that_goes_as_configured_is_no_finding() -> None:
    """The mark is kept back by the age alone, whose setting is named."""
    assert assess(store(), REMOVES).findings == ()
    orders, users = history_statuses(store(), REMOVES)
    assert (orders.table, users.table, orders.aged, orders.age) == ("orders", "users", True, "7d")
    assert orders.possible is not None
    assert 0 <= orders.possible + 50 - at(WEEK) <= 50
    assert kept_back(orders) == "history_max_age 7d (tables.orders.history_max_age)"


@pytest.mark.parametrize(("held", "severity"), [(HOUR, Severity.NOTE), (3 * DAY, Severity.WARNING)])
def test_a_hold_that_keeps_the_mark_back_is_named(held: timedelta, severity: Severity) -> None:
    """With its owner, reason, expiry, and the command that releases it; after a while somebody should ask."""
    seen = store(holds=(hold(taken=NOW - held),))
    finding = only(assess(seen, REMOVES), Cause.HISTORY_HELD)
    assert (finding.severity, finding.since, finding.tables) == (severity, NOW - held, ("orders",))
    assert finding.why == "ann holds it until 2026-03-11 12:00 UTC (h1): month end"
    assert finding.commands == ("lowtide hold release orders h1", "lowtide run history_gc --table orders --execute")
    (orders, _) = history_statuses(seen, REMOVES)
    assert "h1 of ann: month end., since 2026-03-" in kept_back(orders)
    assert "lowtide hold release orders h1" in kept_back(orders)


def test_what_holds_one_mark_is_one_finding() -> None:
    """Two holds at the low watermark and the bound there too: both owners are named and released; the bound is no
    cause.
    """
    low = at(9 * DAY)
    both = (hold(timestamp=low), hold(id="h2", owner="bob", reason="audit", timestamp=low + 40, taken=NOW - 3 * DAY))
    about = {"low_watermark": low, "recorded": (low, NOW - HOUR), "bounds": (Bound(NOW, low, since=NOW - HOUR),)}
    seen = store(**about, histories=(mark("orders"),), inventory=healthy().inventory[:1], holds=both)
    finding = only(assess(seen, REMOVES), Cause.HISTORY_HELD)
    assert Cause.HISTORY_BLOCKED not in {f.cause for f in assess(seen, REMOVES).findings}
    assert [word in finding.why for word in ("ann", "bob", "the low watermark is no further", "bound")] == [
        True
    ] * 3 + [False]
    assert (finding.severity, finding.since) == (Severity.WARNING, NOW - 3 * DAY)
    assert "if ann and bob need it no more, release them" in finding.remedy
    hers = replace(seen, holds=(both[0], replace(both[1], owner="ann")))
    assert "if ann needs it no more, release them" in only(assess(hers, REMOVES), Cause.HISTORY_HELD).remedy
    assert finding.commands == (
        "lowtide hold release orders h1",
        "lowtide hold release orders h2",
        "lowtide run history_gc --table orders --execute",
    )


def test_a_bound_at_the_low_watermark_is_no_cause() -> None:
    """Nothing blocks it, and cleaning would not move it: the low watermark alone is named, and the mark is the same."""
    low = at(9 * DAY)
    seen = store(low_watermark=low, recorded=(low, NOW - HOUR), bounds=(Bound(NOW, low, since=NOW - HOUR),))
    assert "low watermark" in only(assess(seen, REMOVES), Cause.HISTORY_BLOCKED).why
    assert [kept_back(h) for h in history_statuses(seen, REMOVES)] == ["the low watermark"] * 2


@pytest.mark.parametrize(
    "changes",
    [
        {"expires": NOW - HOUR},
        {"timestamp": at(DAY)},
        {"table": "users2"},
    ],
    ids=["expired", "younger than the age", "of another table"],
)
def test_a_hold_that_keeps_nothing_back_is_no_finding(changes: dict[str, Any]) -> None:
    """It is listed all the same."""
    seen = store(holds=(hold(**changes),))
    assert assess(seen, REMOVES).findings == ()
    assert hold_text(seen.holds[0], seen)[-1].endswith("expired") == ("expires" in changes)


def test_holds_do_not_matter_where_nothing_is_removed() -> None:
    """A table whose history nobody removes has all of it anyway."""
    seen = store(holds=(hold(),), histories=())
    assert Cause.HISTORY_HELD not in {f.cause for f in assess(seen, AGES).findings}


def test_the_prune_bound_keeps_all_history_back() -> None:
    """One finding, however many tables; the commands clean what holds the bound, then remove."""
    held = (blocker("users", "never cleaned"),)
    young = store(bounds=(Bound(NOW, 0, held, NOW - HOUR),))
    finding = only(assess(young, REMOVES), Cause.HISTORY_BLOCKED)
    assert (finding.severity, finding.tables) == (Severity.NOTE, ("orders", "users"))
    assert "users [a, b): never cleaned" in finding.why
    assert finding.commands == (
        "lowtide run orphan_cleanup --table users --execute",
        "lowtide run watermark_collection --execute",
        "lowtide run history_gc --table orders --table users --execute",
    )
    stuck = store(bounds=(Bound(NOW, at(9 * DAY), held, NOW - 3 * DAY),))
    assert only(assess(stuck, REMOVES), Cause.HISTORY_BLOCKED).severity is Severity.WARNING


def test_a_low_watermark_that_rests_keeps_history_back() -> None:
    """The oracle's own setting is the remedy."""
    low = at(9 * DAY)
    seen = store(low_watermark=low, recorded=(low, NOW - 9 * DAY), bounds=(Bound(NOW, low + 50, since=NOW - HOUR),))
    finding = only(assess(seen, REMOVES), Cause.HISTORY_BLOCKED)
    assert "low watermark" in finding.why
    assert "conflictMapSize" in finding.remedy


def test_a_table_that_history_gc_never_worked_on_is_shown_and_no_fault() -> None:
    """The health is none the worse; the setting that would have it done is named, unless all of it is to stay."""
    seen = store(histories=(mark("orders"),))
    health = assess(seen, AGES)
    never = only(health, Cause.HISTORY_NEVER)
    assert health.level is Level.FINE
    assert (never.tables, never.setting, never.severity) == (("users",), "tables.users.history_mode", Severity.NOTE)
    assert never.commands == (
        "lowtide run history_gc --table users",
        "lowtide run history_gc --table users --execute",
    )
    by_hand = [f for f in health.findings if f.tables == ("orders",)]
    assert [(f.cause, f.setting) for f in by_hand] == [(Cause.DRY_RUN, "tables.orders.history_mode")]
    acted = replace(seen, runs=(gc_run(HOUR, table="users"), *seen.runs))
    for_ever = Config.model_validate({"tables": {"users": {"history_max_age": "forever"}}})
    for other, config in ((acted, AGES), (seen, for_ever)):
        assert Cause.HISTORY_NEVER not in {f.cause for f in assess(other, config).findings}


def test_history_gc_that_does_not_run_is_overdue() -> None:
    """Where the mark could move on, and a run acted before; a run that found nothing to do counts too."""
    late = store(histories=(mark("orders", 10 * DAY + HOUR, 3 * DAY), mark("users")))
    finding = only(assess(late, REMOVES), Cause.OVERDUE)
    assert (finding.tables, finding.since, finding.severity) == (("orders",), NOW - 3 * DAY, Severity.WARNING)
    assert "has not acted for 3 days, and the mark could move on by 3 days" in finding.why
    assert finding.commands == ("lowtide run history_gc --table orders --execute",)
    assert Cause.OVERDUE not in {f.cause for f in assess(late, AGES).findings}
    ran = replace(late, runs=(gc_run(HOUR), *late.runs))
    assert assess(ran, REMOVES).findings == ()


def test_a_mark_that_was_announced_and_never_applied() -> None:
    """After an hour the run must have died; until another is done it keeps refusing holds."""
    intent = {"mark": at(DAY), "run": "gone", "at": millis(NOW - 2 * HOUR)}
    seen = store(histories=(mark("orders", intended=at(DAY), intent=intent), mark("users")))
    finding = only(assess(seen, REMOVES), Cause.HISTORY_UNFINISHED)
    assert (finding.since, finding.commands) == (
        NOW - 2 * HOUR,
        ("lowtide run history_gc --table orders --execute",),
    )
    assert "run gone ended" in finding.why
    under_way = store(histories=(mark("orders", intended=at(DAY), intent={**intent, "at": millis(NOW)}), mark("users")))
    assert assess(under_way, REMOVES).findings == ()


def test_what_the_runs_removed_and_what_could_go() -> None:
    """By run and table; the last dry run counts where nothing was removed since."""
    runs = (
        gc_run(HOUR, execute=False, deleted=5, bytes_removed=500),
        gc_run(2 * HOUR, deleted=70, markers=9, bytes_removed=7000),
        gc_run(3 * HOUR, execute=False, deleted=1, bytes_removed=1),
        *healthy().runs,
    )
    seen = store(runs=runs)
    assert [(r.execute, r.versions, r.markers, r.size) for r in removals(seen)] == [
        (False, 5, 0, 500),
        (True, 70, 9, 7000),
        (False, 1, 0, 1),
    ]
    orders, users = history_statuses(seen, REMOVES)
    assert (orders.removed and orders.removed.size, orders.reclaimable and orders.reclaimable.size) == (7000, 500)
    assert (users.removed, users.reclaimable) == (None, None)
    (again, _) = history_statuses(replace(seen, runs=runs[1:]), REMOVES)
    assert again.reclaimable is None
    assert again.to_json()["removed"] == {
        "run": f"gc-{2 * HOUR}",
        "started": (NOW - 2 * HOUR).isoformat(),
        "versions": 70,
        "bytes": 7000,
    }


def test_a_failed_table_of_history_gc_is_run_again_by_its_name() -> None:
    """As of a cleanup."""
    report = TableReport("orders", problems=["over budget"], execute=True)
    failed = Summary("history_gc", "r", True, millis(NOW - HOUR), tables=[report]).to_json()
    finding = only(assess(store(runs=(failed, *healthy().runs)), REMOVES), Cause.FAILED)
    assert finding.commands[-1] == "lowtide run history_gc --table orders --execute"


def test_a_counter_without_samples_tells_no_ages() -> None:
    """Then nothing is claimed of the mark, and nothing fails."""
    seen = healthy(histories=(History("orders", 49, about={"at": millis(NOW), "run": "r"}),))
    orders, _ = history_statuses(seen, REMOVES)
    assert (orders.possible, orders.applied) == (None, 49)
    assert "watermark_collection" in kept_back(orders)
    assert Cause.HISTORY_HELD not in {f.cause for f in assess(seen, REMOVES).findings}
    sampled = replace(seen, samples=((NOW - 30 * DAY, 500), (NOW, 1000)), histories=())
    assert history_statuses(sampled, REMOVES)[0].possible == 499


def test_a_table_that_was_dropped_is_left_out() -> None:
    """Its mark stays in the records, for a table that is made again under its name."""
    seen = store(histories=(mark("gone"), mark("orders"), mark("users")))
    assert [h.table for h in history_statuses(seen, REMOVES)] == ["orders", "users"]


#: Hours before now: young, older than the age, and just of that age.
HOURS = st.sampled_from([0, 1, 167, 168, 168, 169, 250])


@given(
    st.lists(st.tuples(st.sampled_from(["orders", "users"]), HOURS, st.integers(-3, 3)), max_size=5),
    HOURS,
    HOURS,
)
def test_what_is_named_is_what_holds(holds: list[tuple[str, int, int]], bound: int, low: int) -> None:
    """Without what is said to hold a mark back it could move on; where only the age is said to, nothing else is a
    finding.
    """
    taken = tuple(
        Hold(f"h{n}", table, at(age * HOUR), "o", "r", NOW - DAY, NOW + days * DAY)
        for n, (table, age, days) in enumerate(holds)
    )
    watermark = at(low * HOUR)
    seen = store(
        low_watermark=watermark,
        recorded=(watermark, NOW - HOUR),
        bounds=(Bound(NOW, at(bound * HOUR), since=NOW),),
        holds=taken,
        runs=tuple(a_run(job, HOUR, orders=None) for job in RECURRING),
    )
    causes = {(t, f.cause) for f in assess(seen, REMOVES).findings for t in f.tables}
    for h in history_statuses(seen, REMOVES):
        assert h.held_by
        assert h.possible == min(max(0, x.timestamp + 1 - (x.timestamp + 1) % 50 - 1) for x in h.held_by)
        back = {Cause.HISTORY_HELD, Cause.HISTORY_BLOCKED} & {cause for t, cause in causes if t == h.table}
        assert bool(back) == (not h.aged)
        freed = replace(
            seen,
            holds=tuple(x for x in taken if x not in {limit.hold for limit in h.held_by}),
            bounds=(Bound(NOW, at(timedelta()), since=NOW),),
            low_watermark=at(timedelta()),
        )
        (free,) = (x for x in history_statuses(freed, REMOVES) if x.table == h.table)
        assert free.possible is not None
        assert free.possible > h.possible or h.aged
