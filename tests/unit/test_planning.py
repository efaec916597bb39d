"""Which ranges a run reads."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.cleaning.facts import RESTART, Fact, Region, cleaned_intervals, region_watermark
from lowtide.cleaning.planning import Request, WorkRange, first_unrecorded, plan_ranges, without_read
from lowtide.errors import UsageError
from lowtide.values.clock import EPOCH, WorldClock, millis
from lowtide.values.formats import CHECKPOINTS, after
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
WEEK = timedelta(days=7)
CLOCK = WorldClock()
W = CLOCK.timestamp(NOW)
TABLE = [Region("a", KeyRange(b"", b"m"), 1), Region("z", KeyRange(b"m", b""), 1)]


def day(n: int) -> datetime:
    """Midnight of January *n*."""
    return datetime(2026, 1, n, tzinfo=UTC)


def at(n: int) -> int:
    return CLOCK.timestamp(day(n))


def fact(
    keys: KeyRange, *pairs: tuple[int, int], run: str = "before", full: datetime = NOW, since: datetime = NOW
) -> Fact:
    """Recorded, and read, by *run* at *since*."""
    known = Intervals.of(pairs)
    return Fact(keys, known, frozenset({"f"}), 1, run, millis(since), millis(full), known, millis(since))


def everywhere(*pairs: tuple[int, int], run: str = "before", full: datetime = NOW, since: datetime = NOW) -> list[Fact]:
    return [fact(r.keys, *pairs, run=run, full=full, since=since) for r in TABLE]


def plan(
    facts: list[Fact],
    run: str = "now",
    start: datetime | None = None,
    end: datetime | None = None,
    full: bool = False,
    regions: list[Region] = TABLE,
    low_watermark: int = W,
) -> list[WorkRange]:
    return planned(facts, Request(run, NOW, start, end, full), regions, low_watermark)[0]


def planned(
    facts: list[Fact], request: Request, regions: list[Region] = TABLE, low_watermark: int = W
) -> tuple[list[WorkRange], str | None]:
    """What a run reads, and the note on what it leaves out."""
    return without_read(request, plan_ranges(request, regions, facts, CLOCK, low_watermark, WEEK), facts)


def spans(ranges: list[WorkRange]) -> list[tuple[str, int, int]]:
    return [(r.region, r.from_ts, r.to_ts) for r in ranges]


def test_first_run_reads_all_there_is() -> None:
    """Where nothing is recorded, every region is read from 0 up to and with the low watermark."""
    assert spans(plan([])) == [("a", 0, W + CHECKPOINTS), ("z", 0, W + CHECKPOINTS)]


def test_low_watermark_between_bases_ends_after_its_base() -> None:
    """A watermark that is no multiple of 50 takes the base timestamp below it, with its checkpoints, and nothing
    more.
    """
    assert [r.to_ts for r in plan([], low_watermark=149)] == [150, 150]
    assert [r.to_ts for r in plan([], low_watermark=150)] == [200, 200]


def test_scheduled_run_goes_on_at_each_regions_watermark() -> None:
    """Each region starts where its own gap-free prefix ends."""
    facts = [fact(TABLE[0].keys, (0, at(10))), fact(TABLE[1].keys, (0, at(20)))]
    assert spans(plan(facts, end=day(30))) == [("a", at(10), at(30)), ("z", at(20), at(30))]


def test_a_full_pass_that_is_yet_to_come_counts_for_none() -> None:
    """It was recorded while the clocks were wrong; within the margin it is of now."""
    known = (0, W + CHECKPOINTS)
    assert spans(plan(everywhere(known, full=NOW + timedelta(hours=1)))) == spans(plan([]))
    assert plan(everywhere(known, full=NOW + timedelta(seconds=50))) == []


def test_nothing_left_is_no_work() -> None:
    """A region cleaned up to the end of the interval is left out."""
    assert plan(everywhere((0, W + CHECKPOINTS))) == []
    assert plan(everywhere((0, at(20))), end=day(20)) == []


def test_gap_is_read_although_later_days_are_recorded() -> None:
    """The start is the first gap, not the last recorded day."""
    assert spans(plan(everywhere((0, at(5)), (at(6), at(20)))))[0] == ("a", at(5), W + CHECKPOINTS)


def test_region_without_record_is_read_from_0_beside_cleaned_ones() -> None:
    """What one region has says nothing of another."""
    assert spans(plan([fact(TABLE[0].keys, (0, W + CHECKPOINTS))])) == [("z", 0, W + CHECKPOINTS)]


@given(st.permutations(range(1, 8)), st.lists(st.integers(1, 7), max_size=3))
def test_days_in_any_order_and_repeated_join_up(order: list[int], again: list[int]) -> None:
    """Backfilled days, out of order and some twice, read their own day each and leave one gap-free stretch."""
    facts = everywhere((0, at(1)))
    for n, number in enumerate([*order, *again]):
        ranges = plan(facts, run=f"run-{n}", start=day(number), end=day(number + 1))
        assert spans(ranges) == [("a", at(number), at(number + 1)), ("z", at(number), at(number + 1))]
        facts = recorded(ranges, facts, f"run-{n}")
    assert {region_watermark(r.keys, facts) for r in TABLE} == {at(8) - 1}
    assert spans(plan(facts, end=day(8))) == []


def test_what_is_read_for_the_first_time() -> None:
    """An increment from its start on, a full pass from where the records end, in the region of which they tell least;
    without records all of it.
    """
    known = [fact(TABLE[0].keys, (0, at(10))), fact(TABLE[1].keys, (0, at(20)))]
    assert first_unrecorded(plan(known), known) == at(10)
    assert first_unrecorded(plan(known, full=True), known) == at(10)
    assert first_unrecorded(plan(known[1:]), known[1:]) == 0
    assert first_unrecorded(plan(known, start=day(15)), known) == at(15)
    assert first_unrecorded([], known) == 0


def recorded(ranges: list[WorkRange], facts: list[Fact], run: str) -> list[Fact]:
    """The facts after a run that did all of *ranges*."""
    fresh = [fact(r.keys, *cleaned_intervals(r.keys, facts), (r.from_ts, r.to_ts), run=run) for r in ranges]
    return [f for f in facts if f.keys not in {n.keys for n in fresh}] + fresh


def test_restart_leaves_out_what_this_run_recorded() -> None:
    """Under the same run id only the ranges that were not recorded are read again; another run reads them."""
    facts = [*everywhere((0, at(5)))[1:], fact(TABLE[0].keys, (0, at(6)), run="now")]
    assert spans(plan(facts, start=day(5), end=day(6))) == [("z", at(5), at(6))]
    assert len(plan(facts, run="other", start=day(5), end=day(6))) == 2
    assert spans(plan(facts, full=True, end=day(6))) == [("z", 0, at(6))]


def test_what_a_restart_leaves_out_is_said() -> None:
    """How many ranges are left out, whose they are and since when; where nothing is, nothing is said."""
    request = Request("now", NOW, day(5), day(6))
    ranges, note = planned([fact(TABLE[0].keys, (0, at(6)), run="now", since=NOW - timedelta(hours=2))], request)
    assert [r.region for r in ranges] == ["z"]
    assert note is not None
    assert note.startswith(
        "1 key range left out: read and recorded by the run of this id, now, since 2026-01-31T10:00:00"
    )
    ranges, note = planned(everywhere((0, at(6)), run="now"), request)
    assert (ranges, note and note.split(":")[0]) == ([], "2 key ranges left out")
    assert planned(everywhere((0, at(6)), run="other"), request)[1] is None


def test_restart_with_a_higher_low_watermark_reads_what_it_lacks() -> None:
    """A full pass that is started again does not read again what it has recorded, though there is more to read by
    now.
    """
    facts = everywhere((0, at(20)), run="now")
    ranges, note = planned(facts, Request("now", NOW, full=True))
    assert spans(ranges) == [("a", at(20), W + CHECKPOINTS), ("z", at(20), W + CHECKPOINTS)]
    assert note is not None
    assert "2 of them in part" in note


def test_a_run_id_used_for_another_interval_leaves_nothing_out() -> None:
    """What a run of the same id has recorded leaves out that interval alone, and of a record only what that run itself
    has read.
    """
    later = [fact(r.keys, (0, at(6)), run="now") for r in TABLE]
    assert len(plan(later, start=day(6), end=day(7))) == 2
    assert spans(plan(later, start=day(5), end=day(7)))[0] == ("a", at(6), at(7))
    part = [replace(f, read=Intervals.of([(at(5), at(6))])) for f in later]
    assert spans(plan(part, full=True))[0] == ("a", 0, W + CHECKPOINTS)
    assert plan(part, start=day(5), end=day(6)) == []
    assert len(plan([replace(f, read=Intervals()) for f in later], start=day(5), end=day(6))) == 2


@pytest.mark.parametrize("ahead", [-1, 1], ids=["ago", "ahead"])
def test_a_run_id_used_again_a_day_later_leaves_nothing_out(ahead: int) -> None:
    """Records of the same id leave something out for a day, no longer; a clock that runs ahead makes that no longer."""
    day_later = timedelta(milliseconds=RESTART)
    just = day_later - timedelta(milliseconds=1)
    assert plan(everywhere((0, at(6)), run="now", since=NOW + ahead * just), start=day(5), end=day(6)) == []
    assert len(plan(everywhere((0, at(6)), run="now", since=NOW + ahead * day_later), start=day(5), end=day(6))) == 2


def test_restart_after_a_split_or_a_merge() -> None:
    """Daughters of a range that this run recorded are left out; a merged region of which it recorded half is read
    whole.
    """
    facts = [fact(TABLE[0].keys, (0, at(6)), run="now")]
    daughters = [Region("a1", KeyRange(b"", b"f"), 2), Region("a2", KeyRange(b"f", b"m"), 2), TABLE[1]]
    assert [r.region for r in plan(facts, regions=daughters, full=True, end=day(6))] == ["z"]
    assert spans(plan(facts, regions=[Region("az", KeyRange(b"", b""), 2)])) == [("az", 0, W + CHECKPOINTS)]


def test_full_pass_when_asked_for() -> None:
    """``--full`` reads from 0, also what is recorded and also where an interval's start was given."""
    facts = everywhere((0, W + CHECKPOINTS))
    assert spans(plan(facts, full=True))[0] == ("a", 0, W + CHECKPOINTS)
    assert spans(plan(facts, full=True, start=day(5), end=day(6)))[0] == ("a", 0, at(6))


def test_full_pass_when_due() -> None:
    """A region whose last pass from 0 is as old as allowed is read from 0, a younger one is not; a given start
    stands.
    """
    due, young = NOW - WEEK, NOW - WEEK + timedelta(milliseconds=1)
    facts = [fact(TABLE[0].keys, (0, at(20)), full=due), fact(TABLE[1].keys, (0, at(20)), full=young)]
    assert [r.from_ts for r in plan(facts)] == [0, at(20)]
    assert [r.from_ts for r in plan(facts, start=day(25))] == [at(25), at(25)]


def test_interval_before_the_counter_began_starts_at_0() -> None:
    """A start before 1970 is 0: no store has negative timestamps, and HBase refuses them."""
    assert [r.from_ts for r in plan([], start=EPOCH - timedelta(days=1))] == [0, 0]


moments = st.datetimes(datetime(2025, 12, 1), NOW.replace(tzinfo=None), timezones=st.just(UTC))
pieces = st.lists(
    st.tuples(st.integers(1, 30), st.integers(1, 10)).map(lambda p: (at(p[0]), at(min(p[0] + p[1], 31)))), max_size=4
)


@given(
    pieces,
    pieces,
    st.none() | moments,
    st.none() | moments,
    st.booleans(),
    st.integers(0, W),
    st.sampled_from([NOW, day(1)]),
)
def test_never_beyond_the_low_watermark_and_never_past_a_gap(
    left: list,
    right: list,
    start: datetime | None,
    end: datetime | None,
    full: bool,
    low_watermark: int,
    passed: datetime,
) -> None:
    """Whatever is asked and recorded: no range reads above the low watermark or the end; without a start, none skips a
    gap.
    """
    facts = [fact(TABLE[0].keys, *left, full=passed), fact(TABLE[1].keys, *right, full=passed)]
    ranges = plan(facts, start=start, end=end, full=full, low_watermark=low_watermark)
    stop = min(after(low_watermark), CLOCK.timestamp(end) if end else after(low_watermark))
    for region in TABLE:
        known = cleaned_intervals(region.keys, facts)
        work = [r for r in ranges if r.region == region.name]
        assert len(work) <= 1
        for r in work:
            assert r.keys == region.keys
            assert r.from_ts < r.to_ts == stop <= after(low_watermark)
            assert r.from_ts % CHECKPOINTS == r.to_ts % CHECKPOINTS == 0
        if start is None:
            done = known | Intervals.of([(r.from_ts, r.to_ts) for r in work])
            assert done.covers(0, stop)


@pytest.mark.parametrize(
    ("start", "end", "named"),
    [
        (day(5), day(5), "2026-01-05"),
        (day(6), day(5), "2026-01-05"),
        (NOW + timedelta(seconds=61), None, "--from"),
        (None, NOW + timedelta(seconds=61), "--to"),
        (None, NOW + timedelta(seconds=61), "the clock of this machine says 2026-01-31T12:00:00"),
    ],
)
def test_intervals_that_cannot_be_meant_are_refused(start: datetime | None, end: datetime | None, named: str) -> None:
    """Empty, backward and future intervals are usage errors that name the value."""
    with pytest.raises(UsageError, match=named):
        Request("r", NOW, start, end).check()


def test_intervals_up_to_now_are_accepted() -> None:
    """The present moment is no future. Nor is one that is ahead by no more than clocks may be apart: it is that of
    whoever asked, such as Airflow's scheduler.
    """
    Request("r", NOW, day(1), NOW).check()
    Request("r", NOW).check()
    Request("r", NOW, day(1), NOW + timedelta(seconds=20)).check()


def test_nothing_of_the_future_is_read_whatever_was_asked_for() -> None:
    """The interval ends now, by the clock that the run goes by; once that has got there, where it was asked to."""
    asked = Request("r", NOW, None, NOW + timedelta(seconds=20))
    (work,) = planned([], asked, TABLE[:1], CLOCK.timestamp(NOW + timedelta(days=1)))[0]
    assert work.to_ts == W, "the future is read"
    assert asked.until == NOW
    assert replace(asked, now=NOW + timedelta(seconds=30)).until == asked.end
    assert Request("r", NOW).until is None
