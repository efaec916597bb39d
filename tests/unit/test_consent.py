"""Whether a table may be written to: what its descriptor says, and what is paused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.cleaning.facts import NEVER, OBJECTED, PARTLY, RegionMark, by_reason, prune_bound, still_blocking
from lowtide.cli.pauses import _is_span
from lowtide.config import Config
from lowtide.errors import UsageError
from lowtide.health import Cause, Level, Severity, assess
from lowtide.health.bound import region_cause
from lowtide.health.reading import Reading
from lowtide.store.records import Bound
from lowtide.tables.consent import LONGEST, Pause, check_pause, forbid, objection, permit, veto
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.keyranges import KeyRange

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def pause(table: str | None = None, until: timedelta = HOUR, since: timedelta = -HOUR, **changes: str) -> Pause:
    about = {"id": "p1", "owner": "ada", "reason": "a migration", **changes}
    return Pause(table=table, since=NOW + since, until=NOW + until, **about)


@given(st.text(), st.text())
def test_all_but_on_is_a_no(before: str, after: str) -> None:
    """A misspelt no forbids; nothing said, and ``on`` in whatever case and among whatever spaces, permits."""
    said = before + after
    assert bool(veto({"LOWTIDE": said})) == (said.strip().lower() != "on")
    assert veto({}) == veto({"LOWTIDE": " On "}) == veto({"OTHER": "off"}) == ""


@given(st.lists(st.tuples(st.integers(-100, 100), st.integers(-100, 100)), max_size=5))
def test_a_pause_forbids_until_its_end_exclusive(spans: list[tuple[int, int]]) -> None:
    """At a moment something is paused if one of the pauses has its end after it; the one that ends last is told."""
    pauses = [pause(until=timedelta(minutes=end), id=f"p{end}") for _, end in spans]
    lasting = [p for p in pauses if p.until > NOW]
    what, remedy = objection("orders", "", pauses, NOW)
    assert bool(what) == bool(remedy) == bool(lasting)
    if lasting:
        assert f"lowtide resume {max(lasting, key=lambda p: p.until).id}`" in remedy
        assert (f"and {len(lasting) - 1} more" in what) == (len(lasting) > 1)


def test_who_objects_is_told_with_the_way_out() -> None:
    """The owner's word comes before a pause: it does not end by itself."""
    assert objection("orders", "off", [pause()], NOW) == (
        "table orders says no itself: its descriptor has LOWTIDE => 'off'",
        "its owner takes that back in HBase's shell: alter 'orders', METHOD => 'table_att_unset', NAME => 'LOWTIDE'",
    )
    assert objection("orders", "", [pause("orders")], NOW) == (
        "table orders is paused until 2026-03-01 13:00 UTC by ada: a migration",
        "`lowtide resume p1` ends it before",
    )
    assert objection("orders", "", [], NOW) == ("", "")
    assert permit("t") != forbid("t")


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"reason": " "}, "needs a reason"),
        ({"owner": ""}, "needs a reason and an owner"),
        ({"until": -HOUR}, "is over already"),
        ({"until": LONGEST}, "more than 92d away"),
    ],
)
def test_a_pause_that_cannot_be_meant_is_refused(changes: dict[str, object], named: str) -> None:
    """One without reason, one that is over, and one that somebody would forget."""
    with pytest.raises(UsageError, match=named):
        check_pause(pause(**changes))  # type: ignore[arg-type]
    check_pause(pause(until=LONGEST - HOUR))


@given(st.sampled_from([None, "orders", "ns:orders"]), st.text(), st.integers(0, 10**6))
def test_a_pause_is_recorded_whole(table: str | None, reason: str, minutes: int) -> None:
    """What is read back is what was written, to the millisecond."""
    one = pause(table, timedelta(minutes=minutes), reason=reason)
    assert Pause.from_json(one.to_json()) == one


def test_what_others_say_moves_no_terminal() -> None:
    """Neither a table's descriptor nor a pause's owner and reason, of whoever wrote them into the records: they are one
    line, and short.
    """
    said = "\x1b[2Jall is well\nproblem: none"
    assert veto({"LOWTIDE": said}) == r"\x1b[2Jall is well\nproblem: none"
    one = Pause.from_json({**pause().to_json(), "owner": said, "reason": said * 50})
    assert one.sentence.isprintable()
    assert len(one.sentence) < 500


def test_an_end_is_a_span_or_a_time() -> None:
    """And what is neither is refused by name."""
    assert _is_span("2h")
    assert _is_span("1d12h")
    assert not _is_span("2026-03-01T12:00:00Z")
    with pytest.raises(UsageError, match=r"--until: a duration such as .* found 'tomorrow'; or an ISO 8601 time"):
        _is_span("tomorrow")


def test_what_waits_for_somebody_names_him() -> None:
    """A region that holds the bound says why no cleanup moves it on; since when it holds it is not new by that."""
    said = objection("orders", "off", [], NOW)
    marks = [RegionMark("orders", "r1", KeyRange(b"", b""), watermark, 0, objection=said) for watermark in (0, 99)]
    for mark, reason in zip(marks, (NEVER, PARTLY), strict=True):
        _, blockers = prune_bound([mark], [], 500)
        (held,) = by_reason(blockers)
        assert held["reason"] == f"{reason}{OBJECTED}{said[0]}"
        assert held["remedy"] == said[1]
        assert region_cause(held) is (Cause.NEVER_CLEANED if reason is NEVER else Cause.BEHIND)
        (before,) = still_blocking([{**held, "reason": reason}], [], 1000)
        assert still_blocking([held], [before], 2000)[0]["since"] == 1000


def test_pauses_and_vetoes_are_shown_as_notes() -> None:
    """They are meant: nobody is called for them, and everybody sees them, with who and why; a pause that is over is not
    shown, nor is a plain table's no.
    """
    entries = [
        Entry("orders", Kind.TRANSACTIONAL, True, frozenset({"a"}), veto="off"),
        Entry("logs", Kind.PLAIN, True, veto="off"),
    ]
    reading = Reading(
        at=NOW,
        low_watermark=100,
        bounds=(Bound(NOW, 100, ()),),
        inventory=tuple(entries),
        pauses=(pause(), pause("orders", -timedelta(minutes=1), id="old")),
    )
    found = {f.cause: f for f in assess(reading, Config()).findings if f.cause in (Cause.PAUSED, Cause.VETOED)}
    assert {f.severity for f in found.values()} == {Severity.NOTE}
    assert found[Cause.PAUSED].commands == ("lowtide resume p1",)
    assert "by ada: a migration" in found[Cause.PAUSED].why
    assert found[Cause.VETOED].tables == ("orders",)
    assert "table_att_unset" in found[Cause.VETOED].remedy
    assert Level.ALARM not in {assess(reading, Config()).level}
