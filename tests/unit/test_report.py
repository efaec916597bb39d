"""The report: what it says, that it says nothing untrue, and that the page stands alone."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from importlib import import_module
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lowtide.config import Config
from lowtide.errors import StoreError, UsageError
from lowtide.health import Reading
from lowtide.report import (
    Bank,
    CommitRows,
    Day,
    JobRun,
    Leftovers,
    ModelCheck,
    Observation,
    ReadPointCheck,
    RegionMark,
    Report,
    Workload,
    by_day,
    contents,
    day_of,
    render,
)
from lowtide.report.page import Axis
from lowtide.report.terminal import print_report
from lowtide.run.summary import Counts, Summary, TableReport
from lowtide.store.records import Bound
from lowtide.values.clock import SampledClock, WorldClock

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
DAYS = (Day(date(2026, 1, 29), 0, 1000), Day(date(2026, 1, 30), 1000, 2500))
LATER = CommitRows(None, 0, 0)


def _observation(**changes: object) -> Observation:
    seen = Observation(
        at=NOW,
        low_watermark=2600,
        bound=2499,
        leftovers=(Leftovers("accounts", 0, 0, 4321), Leftovers("orders", 0, 0, 99)),
        commit_table=(CommitRows(DAYS[0].date, 0, 0), CommitRows(DAYS[1].date, 0, 0), LATER),
        regions=(RegionMark("accounts", "[-∞, m)", 2499), RegionMark("accounts", "[m, ∞)", 2499)),
    )
    return replace(seen, **changes)


def _report(**changes: object) -> Report:
    before = _observation(
        bound=None,
        leftovers=(Leftovers("accounts", 1234, 56, 4321), Leftovers("orders", 0, 8765, 99)),
        commit_table=(CommitRows(DAYS[0].date, 31, 17), CommitRows(DAYS[1].date, 41, 19), LATER),
        regions=(RegionMark("accounts", "[-∞, ∞)", 0),),
    )
    cleanup = JobRun("orphan_cleanup", "b-1", NOW, 16.4, True, "done", DAYS[0].date, healed=321, deleted=654, marked=23)
    whole = Report(
        title="Cleaned",
        made_at=NOW,
        after=_observation(),
        before=before,
        days=DAYS,
        runs=(cleanup, JobRun("commit_table_pruning", "p-1", NOW, 14.0, True, "done", pruned=108)),
        check=ModelCheck(("accounts", "orders"), (ReadPointCheck(900, 150, 0), ReadPointCheck(2400, 160, 0))),
        workload=Workload(7, (("committed", 900), ("abandoned", 80))),
        commands=(("Airflow", "http://127.0.0.1:8080"), ("stop", "lowtide demo --down")),
    )
    return replace(whole, **changes)


class _Page(HTMLParser):
    """Tags with their attributes, and the text outside style sheets."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.styles = ""
        self._open: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "br", "path"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "path":
            return
        assert self._open.pop() == tag, f"{tag} is closed where another is open"

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            self.styles += data
        else:
            self.words += f" {data}"

    @property
    def text(self) -> str:
        return " ".join(self.words.split())


def test_the_page_loads_nothing_and_runs_nothing():
    """No element of the page makes a request or runs a script, and its own policy forbids both."""
    page = _Page(render(_report()))
    loading = {"script", "link", "img", "iframe", "object", "embed", "audio", "video", "source", "base", "form"}
    assert not {tag for tag, _ in page.tags} & loading
    assert not [attrs for _, attrs in page.tags if attrs.keys() & {"src", "srcset", "background", "onclick", "onload"}]
    assert "url(" not in page.styles
    assert "@import" not in page.styles
    policy = next(attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_page_is_well_formed_and_small():
    """Every element that is opened is closed in its place, and a demo's page weighs below 100 kB."""
    source = render(_report())
    page = _Page(source)
    assert page._open == []
    assert source.startswith("<!doctype html>")
    assert len(source.encode()) < 100_000


def test_every_number_stands_in_words():
    """What the bars show is there to read: leftovers, commit table, runs, watermarks, the check."""
    text = _Page(render(_report())).text
    for number in (
        "1,234",
        "56",
        "8,765",
        "321",
        "654",
        "23",
        "108",
        "48",
        "60",
        "2,600",
        "2,499",
        "310 values compared",
    ):
        assert number in text, number


def test_programs_get_the_same_numbers():
    """The JSON holds what the page tells, with days and times as ISO 8601."""
    told = json.loads(_report().to_json())
    assert told["made_at"] == NOW.isoformat()
    assert told["days"][0] == {"date": "2026-01-29", "from_ts": 0, "to_ts": 1000}
    assert told["before"]["leftovers"][0] == {"table": "accounts", "orphans": 1234, "unproven": 56, "cells_read": 4321}
    assert told["check"]["snapshots"][1]["values"] == 160


def test_both_themes_and_narrow_screens_are_provided_for():
    """The style sheet answers to dark themes, to narrow screens and to printers."""
    styles = _Page(render(_report())).styles
    for query in ("prefers-color-scheme: dark", "max-width: 44rem", "@media print"):
        assert query in styles


def test_names_cannot_break_the_page():
    """A table named like markup is shown as the text that it is."""
    name = "<script>alert(1)</script>"
    seen = _observation(regions=(RegionMark(name, name, 1),), leftovers=(Leftovers(name, 0, 0, 0),))
    source = render(_report(after=seen, before=seen))
    assert "<script" not in source
    assert name in _Page(source).text


def test_nothing_is_claimed_that_was_not_looked_at():
    """Without a before, a check or a commit table the page leaves these parts out."""
    seen = _observation(leftovers=(), commit_table=None)
    text = _Page(render(Report("Now", NOW, seen))).text
    for absent in ("orphaned cells", "model", "→", "Day by day", "commit table, by day"):
        assert absent not in text
    assert "prune bound" in text


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"after": _observation(leftovers=(Leftovers("orders", 3, 0, 9),))}, "3 orphaned cells are left in orders"),
        ({"after": _observation(leftovers=(Leftovers("orders", 0, 2, 9),))}, "2 unproven cells are left in orders"),
        ({"check": ModelCheck(("t",), (ReadPointCheck(5, 10, 4),))}, "4 of 10 values differ from the model"),
        (
            {"runs": (JobRun("orphan_cleanup", "r", NOW, 1, True, "failed", problems=("x", "y")),)},
            "2 problem(s) in orphan_cleanup r",
        ),
    ],
)
def test_what_is_wrong_is_said(changes: dict[str, object], fault: str):
    """Leftovers, wrong values and failed runs are named on the page and in the terminal."""
    report = _report(**changes)
    assert any(fault in said for said in report.faults)
    assert fault in _Page(render(report)).text
    screen = StringIO()
    print_report(Console(file=screen, width=200), report)
    assert fault in screen.getvalue()


def test_a_good_report_has_no_faults():
    """Nothing is called wrong where nothing is."""
    assert _report().faults == []
    assert "Not as it should be" not in render(_report())


def test_wrong_values_before_the_cleaning_are_no_fault():
    """Torn transactions are what the cleaning is for; the page says how many values they made wrong."""
    report = _report(check_before=ModelCheck(("t",), (ReadPointCheck(5, 10, 4),)))
    assert report.faults == []
    assert "4 of 10 values were wrong. They belong to torn transactions" in _Page(render(report)).text


def test_of_many_regions_the_furthest_behind_are_drawn():
    """Of 10,000 regions the page shows those with the lowest watermarks and says how many it leaves out."""
    marks = tuple(RegionMark("t", f"[{n:05}, {n + 1:05})", 5000 + n) for n in range(10_000))
    text = _Page(render(Report("Now", NOW, _observation(regions=marks[::-1])))).text
    assert "[00000, 00001)" in text
    assert "[09999, 10000)" not in text
    assert "9,880 regions with higher watermarks are not shown" in text


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_the_axis_keeps_the_order(one: int, other: int):
    """Of two timestamps the later one is never drawn left of the earlier, and none outside."""
    axis = Axis(1000, 2**61, DAYS)
    low, high = sorted((one, other))
    assert 0 <= axis.percent(low) <= axis.percent(high) <= 100


@given(st.lists(st.integers(0, 4000)), st.lists(st.integers(0, 4000)))
def test_each_row_is_counted_on_one_day(entries: list[int], marks: list[int]):
    """Every row of the commit table is counted exactly once, on the day of its start timestamp or after the last."""
    rows = by_day(entries, marks, DAYS)
    assert sum(r.entries for r in rows) == len(entries)
    assert sum(r.marks for r in rows) == len(marks)
    assert rows[0].entries == sum(t < 1000 for t in entries)
    assert rows[-1] == CommitRows(None, sum(t >= 2500 for t in entries), sum(t >= 2500 for t in marks))


def test_a_day_ends_before_the_next_begins():
    """A day's interval is half-open: its end belongs to the next day."""
    assert day_of(999, DAYS) == DAYS[0].date
    assert day_of(1000, DAYS) == DAYS[1].date
    assert day_of(2500, DAYS) is None


def test_a_run_is_read_from_its_summary():
    """Counts and problems come from the tables; the day is the one that holds all intervals, none where no single
    one does.
    """
    table = TableReport(
        "orders", Counts(candidates=9, healed=4, deleted=3, marked=2, cells_read=77), problems=["broken"]
    )
    summary = Summary("orphan_cleanup", "r-1", True, started=1_769_824_800_000, seconds=12.5, tables=[table])
    table.intervals = [(0, 1000)]
    run = contents.job_run(summary.to_json(), DAYS)
    assert (run.day, run.healed, run.deleted, run.marked, run.state) == (date(2026, 1, 29), 4, 3, 2, "failed")
    assert run.problems == ("orders: broken",)
    assert run.started == datetime(2026, 1, 31, 2, 0, tzinfo=UTC)
    for intervals, day in (([(1000, 1800), (2000, 2500)], date(2026, 1, 30)), ([(950, 1050)], None), ([], None)):
        table.intervals = intervals
        assert contents.job_run(summary.to_json(), DAYS).day == day


def test_leftovers_are_what_a_dry_run_plans():
    """Deletes are orphans, heals are unproven cells, marks are unmarked transactions; tables by name."""
    tables = [
        TableReport(name, Counts(healed=4, deleted=3, marked=2, cells_read=77)) for name in ("orders", "accounts")
    ]
    summary = Summary("orphan_cleanup", "r-1", False, tables=tables)
    assert contents.leftovers(summary.to_json(), Config()) == (
        Leftovers("accounts", 3, 4, 77),
        Leftovers("orders", 3, 4, 77),
    )


def test_days_follow_the_clock_samples():
    """The last days' edges are the samples at their midnights; the first begins at 0, as all before a first sample
    does.
    """
    today = date(2026, 1, 31)
    midnight = datetime(2026, 1, 31, tzinfo=UTC)
    clock = SampledClock([(midnight - timedelta(days=1), 1000), (midnight, 2500)])
    assert contents.last_days(clock, today, 2) == DAYS
    assert contents.last_days(SampledClock([]), today, 2) == ()
    (day,) = contents.last_days(WorldClock(), today, 1)
    assert day.to_ts - day.from_ts == 24 * 3600 * 1000 * 1_000_000


BANK = Bank(
    killed=12,
    before=(("claimed", 1), ("in progress", 2), ("finished", 90)),
    after=(("finished", 92), ("dropped", 1)),
    balances=(("ada", 700), ("bela", 1300)),
    paid_in=2000,
)


def test_the_bank_is_told_with_its_states_and_its_money() -> None:
    """Before and after by state, every balance, and that the sum is what was paid in; on the page and in the
    terminal.
    """
    words = " ".join(_Page(render(_report(bank=BANK))).words.split())
    assert "12 clients of the bank were killed; its customers have 2,000, exactly what was paid in." in words
    for state, was, now in (("claimed", 1, 0), ("in progress", 2, 0), ("finished", 90, 92), ("dropped", 0, 1)):
        assert f"{state} {was} {now}" in words
    assert "ada 700 bela 1,300 together 2,000" in words
    assert "A bank" not in _Page(render(_report())).words
    out = StringIO()
    print_report(Console(file=out, width=120), _report(bank=BANK))
    assert "exactly what was paid in" in out.getvalue()
    assert _report(bank=BANK).faults == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"paid_in": 1999}, "its customers have 2,000, but 1,999 was paid in"),
        ({"after": (("committed", 3), ("finished", 90))}, "3 transfers are still under way"),
        ({"balances": (("ada", -5), ("bela", 2005))}, "ada has -5"),
    ],
)
def test_a_bank_that_is_not_as_it_should_be_is_a_fault(changes: dict[str, object], said: str) -> None:
    """Money made or lost, a transfer left open, a customer below zero."""
    (fault,) = _report(bank=replace(BANK, **changes)).faults  # type: ignore[arg-type]
    assert said in fault


def test_a_report_shows_what_was_read_of_the_store() -> None:
    """Regions by table and key, the bound with what holds it; before anything was collected there are none."""
    region = {"region": "r", "start": b"m".hex(), "stop": "", "watermark": 20}
    watermarks = {"t": {"regions": [region, {**region, "start": "", "stop": b"m".hex(), "watermark": 70}]}}
    holding = {"table": "t", "keys": "[m, ∞)", "regions": 2, "reason": "never cleaned", "remedy": "clean it"}
    reading = Reading(NOW, low_watermark=100, bounds=(Bound(NOW, 20, (holding,)),), watermarks=watermarks)
    found = contents.observation(reading)
    assert (found.at, found.low_watermark, found.bound) == (NOW, 100, 20)
    assert found.regions == (RegionMark("t", "[-∞, m)", 70), RegionMark("t", "[m, ∞)", 20))
    assert found.blockers == ("t [m, ∞) and 1 more region: never cleaned. Remedy: clean it",)
    assert contents.observation(Reading(NOW, low_watermark=0)) == Observation(NOW, 0)
    with pytest.raises(StoreError, match="no such row"):
        contents.observation(Reading(NOW, low_watermark_problem="no such row"))


def test_a_page_that_cannot_be_written_is_refused_before_the_store_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Not when all is read."""
    command = import_module("lowtide.cli.report")  # the package has its function under that name
    monkeypatch.setattr(command, "connect", lambda _: pytest.fail("the store was read"))
    with pytest.raises(UsageError, match=r"--out .*none/page.html: there is no folder"):
        command.report(tmp_path / "none" / "page.html")
