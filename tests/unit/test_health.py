"""What is a finding, how bad it is, and what is said of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.cleaning.facts import DROPPING, NEVER, PARTLY, VOID, RegionMark, by_reason, prune_bound, still_blocking
from lowtide.config import Config, Omid
from lowtide.health import (
    RECURRING,
    Cause,
    Finding,
    Health,
    Level,
    Reading,
    Severity,
    assess,
    last_runs,
    table_statuses,
)
from lowtide.run.hbases import TRIED
from lowtide.run.summary import Counts, Summary, TableReport
from lowtide.store.records import Bound
from lowtide.store.state import StateStore
from lowtide.tables.consent import Pause
from lowtide.tables.inventory import UNMARKED_SINCE, Entry, Kind, without_compactor
from lowtide.tables.phoenix_catalog import UNFINISHED, UNREADABLE
from lowtide.values.clock import WorldClock, millis
from lowtide.values.durations import parse_time
from lowtide.values.keyranges import KeyRange
from lowtide.values.skew import ALLOTTED_AHEAD, Allotted
from lowtide.values.text import age_text, distance_text, timestamp_text
from tests.unit.test_state import Records, store

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
ACTING = Config.model_validate({"defaults": {"mode": "execute"}})
DOCS = Path(__file__).resolve().parents[2] / "docs"


def a_run(job: str, before: timedelta, *problems: str, dag_run: str = "", **tables: str | None) -> Mapping[str, Any]:
    """A run that acted, *before* now; tables with their problem or None."""
    reports = [TableReport(name, problems=[problem] if problem else []) for name, problem in tables.items()]
    context = {"run_id": dag_run} if dag_run else {}
    run = f"{job}-{before}"
    return Summary(
        job, run, True, millis(NOW - before), tables=reports, problems=list(problems), context=context
    ).to_json()


def blocker(table: str, reason: str, *, region: str | None = "r", watermark: int = 0, **more: Any) -> dict[str, Any]:
    keys = "[a, b)" if region else None
    found = {
        "table": table,
        "region": region,
        "keys": keys,
        "watermark": watermark,
        "reason": reason,
        "remedy": "do it",
    }
    return found | more


def healthy(**changes: Any) -> Reading:
    """A store about which there is nothing to say, with what a test changes."""
    about: dict[str, Any] = {
        "at": NOW,
        "low_watermark": 1049,
        "recorded": (1000, NOW - HOUR),
        "listed": frozenset({"orders", "users", "OMID_COMMIT_TABLE"}),
        "bounds": (Bound(NOW - HOUR, 999, since=NOW - HOUR),),
        "inventory": (
            Entry("orders", Kind.TRANSACTIONAL, True, frozenset({"a"})),
            Entry("users", Kind.TRANSACTIONAL, True, frozenset({"a"})),
        ),
        "watermarks": {
            name: {
                "at": millis(NOW - HOUR),
                "low_watermark": 1049,
                "regions": [{"region": "r", "start": "", "stop": "", "watermark": w} for w in (999, 1049)],
            }
            for name in ("orders", "users")
        },
        "runs": tuple(a_run(job, HOUR, orders=None) for job in RECURRING),
    }
    return Reading(**about | changes)


def only(health: Health, cause: Cause) -> Finding:
    (found,) = [f for f in health.findings if f.cause is cause]
    return found


def test_a_healthy_store_has_no_findings() -> None:
    """And the sentence says how far it is clean."""
    health = assess(healthy(), ACTING)
    assert (health.level, health.exit_code, health.findings) == (Level.FINE, 0, ())
    assert "2 tables are clean up to 999, 50 below the low watermark" in health.sentence
    [orders, _] = table_statuses(healthy(), ACTING)
    assert (orders.table, orders.regions, orders.lowest, orders.behind, orders.never_cleaned) == (
        "orders",
        2,
        999,
        50,
        0,
    )


def test_a_store_that_cannot_be_looked_at() -> None:
    """Nothing else is guessed at, and the exit code is that of a failure."""
    health = assess(Reading(NOW, unreachable="the Thrift gateway at h:9090 does not answer"), ACTING)
    assert (health.level, health.exit_code) == (Level.UNKNOWN, 1)
    assert [f.cause for f in health.findings] == [Cause.GATEWAY]
    assert "h:9090" in health.sentence


@pytest.mark.parametrize(
    ("changes", "cause", "level", "words"),
    [
        ({"oracle_problem": "does not answer at h:1"}, Cause.ORACLE, Level.ALARM, ["h:1", "omid.oracle"]),
        ({"low_watermark": None, "low_watermark_problem": "no row"}, Cause.NO_WATERMARK, Level.ALARM, ["no row"]),
        ({"low_watermark": 999}, Cause.WATERMARK_BACK, Level.ALARM, ["1000", "999", "lowtide state reset"]),
        (
            {"went_back": 200},
            Cause.WATERMARK_BACK,
            Level.ALARM,
            ["1000", "to 200", "at 1049 now", "lowtide state reset"],
        ),
        ({"bounds": ()}, Cause.NEVER_COLLECTED, Level.ATTENTION, ["watermark_collection --execute"]),
        (
            {"low_watermark": 1000, "recorded": (1000, NOW - 2 * DAY)},
            Cause.WATERMARK_STILL,
            Level.ATTENTION,
            ["1,000", "conflictMapSize", "2 days"],
        ),
    ],
)
def test_what_is_wrong_with_the_whole(changes: dict[str, Any], cause: Cause, level: Level, words: list[str]) -> None:
    """The one thing that is wrong is the sentence, with its reason and its remedy."""
    health = assess(healthy(**changes), ACTING)
    finding = only(health, cause)
    assert health.level is level
    said = " ".join([health.sentence, *finding.commands])
    assert [word for word in words if word not in said] == []


def test_a_low_watermark_that_rests_a_while_is_no_finding() -> None:
    """Nor one that moved since it was recorded, however long ago that was."""
    rests = healthy(low_watermark=1000, recorded=(1000, NOW - 2 * DAY + HOUR))
    moved = healthy(low_watermark=1050, recorded=(1000, NOW - 9 * DAY))
    assert assess(rests, ACTING).findings == assess(moved, ACTING).findings == ()


@pytest.mark.parametrize(("age", "severity"), [(HOUR, Severity.WARNING), (3 * DAY, Severity.ALARM)])
def test_a_region_that_was_never_cleaned(age: timedelta, severity: Severity) -> None:
    """It is named with its keys, and the commands clean its table; after a while it is an alarm."""
    held = blocker("users", "never cleaned", regions=3, since=millis(NOW - age))
    health = assess(healthy(bounds=(Bound(NOW, 0, (held,), NOW - age),)), ACTING)
    finding = only(health, Cause.NEVER_CLEANED)
    assert (finding.severity, finding.tables, finding.region, finding.since) == (
        severity,
        ("users",),
        "[a, b)",
        NOW - age,
    )
    assert "[a, b) of table users and 2 more" in finding.why
    assert finding.commands[0] == "lowtide run orphan_cleanup --table users --execute"
    assert finding.setting is None


def test_a_region_whose_records_are_void() -> None:
    """Not that it was never cleaned, in the table's numbers neither; where Omid's compactor drops what the cleanup
    would heal, that goes first.
    """
    void = blocker("users", VOID, regions=3, since=millis(NOW - HOUR))
    marks = {"users": {**healthy().watermarks["users"], "regions": [{"watermark": 0}]}}
    seen = healthy(bounds=(Bound(NOW, 0, (void,)),), watermarks=marks)
    health = assess(seen, ACTING)
    assert [f.cause for f in health.findings] == [Cause.VOID]
    finding = health.findings[0]
    assert f"[a, b) of table users and 2 more of its regions: {VOID}" in finding.why
    assert "what was recorded no longer counts" in health.sentence
    assert finding.commands[0] == "lowtide run orphan_cleanup --table users --execute"
    assert [s.never_cleaned for s in table_statuses(seen, ACTING)] == [0]
    never = healthy(bounds=(Bound(NOW, 0, (blocker("users", "never cleaned"),)),), watermarks=marks)
    assert [s.never_cleaned for s in table_statuses(never, ACTING)] == [1]

    _, dropping = prune_bound([RegionMark("users", "r", KeyRange(b"", b""), 0, void=True, compactor=True)], [], 1000)
    finding = only(assess(healthy(bounds=(Bound(NOW, 0, tuple(by_reason(dropping))),)), ACTING), Cause.VOID)
    assert "drops committed cells whose commit entries were pruned" in finding.why
    assert finding.commands[0] == f'echo "{without_compactor("users")}" | hbase shell -n'
    assert finding.commands[1] == "lowtide run orphan_cleanup --table users --execute"
    assert "lowtide journal replay" in finding.remedy


def test_a_lag_of_a_day_is_nothing_to_worry_about() -> None:
    """Between two runs the bound is always held by somebody; only when it stands still that is a fault."""
    held = blocker("users", "cleaned up to here only", watermark=999, since=millis(NOW - HOUR))
    fresh = assess(healthy(bounds=(Bound(NOW, 999, (held,), NOW - HOUR),)), ACTING)
    assert (fresh.level, only(fresh, Cause.BEHIND).severity) == (Level.FINE, Severity.NOTE)
    held["since"] = millis(NOW - 2 * DAY)
    stands = assess(healthy(bounds=(Bound(NOW, 999, (held,), NOW - 2 * DAY),)), ACTING)
    assert (stands.level, stands.exit_code) == (Level.ALARM, 4)


def test_the_setting_that_holds_a_region_is_named() -> None:
    """A table in dry run that holds the bound will hold it for ever."""
    held = blocker("users", "never cleaned", since=millis(NOW - HOUR))
    finding = only(assess(healthy(bounds=(Bound(NOW, 0, (held,)),)), Config()), Cause.NEVER_CLEANED)
    assert finding.setting == "tables.users.mode"
    assert "dry-run" in finding.why


def test_what_bars_a_whole_table_comes_before_its_regions() -> None:
    """A disabled table must be enabled before a cleanup can take it, so that is what is said."""
    entries = (Entry("users", Kind.TRANSACTIONAL, False, frozenset({"a"})),)
    held = blocker("users", "never cleaned"), blocker("users", "the table is disabled", region=None)
    health = assess(healthy(bounds=(Bound(NOW, 0, held, NOW),), inventory=entries), ACTING)
    finding = only(health, Cause.DISABLED)
    assert [f.cause for f in health.findings] == [Cause.DISABLED]
    assert finding.commands[0] == "echo \"enable 'users'\" | hbase shell -n"


def test_a_table_of_unknown_standing() -> None:
    """The setting that settles it is named."""
    entries = (Entry("legacy", Kind.UNMARKED, True, unmarked=frozenset({"a"})),)
    held = blocker("legacy", "it has shadow cells but no mark", region=None)
    finding = only(assess(healthy(bounds=(Bound(NOW, 0, (held,)),), inventory=entries), ACTING), Cause.UNMARKED)
    assert finding.setting == "tables.legacy.kind"
    assert "kind: transactional" in finding.remedy


INDEX = (
    Entry(
        "_IDX_T",
        Kind.TRANSACTIONAL,
        True,
        frozenset({"0"}),
        names=("V1", "V2"),
        doubt="Phoenix's index V2 is being built",
    ),
    Cause.INDEX_UNFINISHED,
    ["_IDX_T (V1, V2)", "V2 is being built", "REBUILD", "DROP INDEX"],
    ("lowtide run orphan_cleanup --table _IDX_T --execute", "lowtide run watermark_collection --execute"),
    None,
)
NO_MARK = (
    Entry("T", Kind.UNMARKED, True, unmarked=frozenset({"0"}), names=("T",), doubt="Phoenix's catalog says that ..."),
    Cause.UNMARKED,
    ["table T: Phoenix's catalog says", "kind: transactional"],
    ("lowtide run orphan_cleanup --table T --execute", "lowtide run watermark_collection --execute"),
    "tables.T.kind",
)
BLIND = (
    Entry("T", Kind.UNMARKED, True, unmarked=frozenset({"0"}), doubt=f"{UNREADABLE} (denied)"),
    Cause.CATALOG,
    ["denied", "SYSTEM.CATALOG"],
    ("lowtide run watermark_collection --execute",),
    "tables.T.kind",
)


HIDING = (
    Entry("T", Kind.TRANSACTIONAL, True, frozenset({"f"}), doubt="family f has TTL => 60, ...: alter 'T', {...}"),
    Cause.LEFT_ALONE,
    ["family f has TTL => 60", "alter 'T'", "Do what that says"],
    ("lowtide run orphan_cleanup --table T --execute", "lowtide run watermark_collection --execute"),
    None,
)
LOST_ITS_MARK = (
    Entry("T", Kind.UNMARKED, True, unmarked=frozenset({"f"}), doubt=f"{UNMARKED_SINCE} what bears no mark now: ..."),
    Cause.LEFT_ALONE,
    ["recorded as transactional", "Do what that says"],
    ("lowtide run orphan_cleanup --table T --execute", "lowtide run watermark_collection --execute"),
    "tables.T.kind",
)


@pytest.mark.parametrize(
    ("entry", "cause", "words", "commands", "setting"),
    [INDEX, NO_MARK, BLIND, HIDING, LOST_ITS_MARK],
    ids=["index", "no mark", "blind", "hiding", "mark lost"],
)
def test_what_is_left_alone_and_keeps_the_bound_back(
    entry: Entry, cause: Cause, words: list[str], commands: tuple[str, ...], setting: str | None
) -> None:
    """An index that is being built, a table whose mark is not known, a catalog that cannot be read, settings that hide
    cells, a mark that is gone: each has its own remedy.

    Under SQL's names; and it comes before the table's regions, which are never clean while it is left alone.
    """
    held = (
        blocker(entry.table, "never cleaned"),
        blocker(entry.table, entry.doubt, region=None, since=millis(NOW - 3 * DAY)),
    )
    health = assess(healthy(bounds=(Bound(NOW, 0, held, NOW),), inventory=(entry,)), ACTING)
    finding = only(health, cause)
    assert [f.cause for f in health.findings if entry.table in f.tables] == [cause]
    assert (finding.severity, finding.since, finding.setting) == (Severity.ALARM, NOW - 3 * DAY, setting)
    assert [word for word in words if word not in f"{finding.why} {finding.remedy}"] == []
    assert finding.commands == commands


def test_a_clock_of_the_configuration_that_the_oracle_contradicts() -> None:
    """Jobs refuse to run, which no record tells: both sides are named."""
    settings = ACTING.model_copy(update={"omid": Omid(clock="world")})
    finding = only(assess(healthy(), settings), Cause.CONTRADICTED)
    assert (finding.severity, finding.setting) == (Severity.ALARM, "omid.clock")
    assert "omid.clock is world" in finding.why
    assert "1049" in finding.why


def test_a_reason_that_is_not_known_here_is_passed_on() -> None:
    """With the collection's own remedy."""
    held = blocker("", "no transactional table was found", region=None, remedy="check the cluster")
    finding = only(assess(healthy(bounds=(Bound(NOW, 0, (held,)),)), ACTING), Cause.BLOCKED)
    assert (finding.why, finding.remedy) == ("no transactional table was found", "Check the cluster; then collect")


def test_a_failed_table_stays_failed_until_it_is_done() -> None:
    """A run about other tables does not make up for it; since when is when the failures began."""
    failed = [a_run("orphan_cleanup", n * DAY, orders="over budget.", users=None) for n in (1, 2)]
    others = [a_run("orphan_cleanup", HOUR, users=None), *healthy().runs]
    before = [a_run("orphan_cleanup", 3 * DAY, orders=None)]
    finding = only(assess(healthy(runs=(*others[:1], *failed, *before)), ACTING), Cause.FAILED)
    assert (finding.tables, finding.since, finding.why) == (("orders",), NOW - 2 * DAY, "over budget")
    assert finding.commands[-1] == "lowtide run orphan_cleanup --table orders --execute"
    done = (a_run("orphan_cleanup", HOUR, orders=None), *failed)
    assert Cause.FAILED not in {f.cause for f in assess(healthy(runs=done), ACTING).findings}
    dropped = healthy(runs=(*others[:1], *failed), listed=frozenset({"users"}))
    assert Cause.FAILED not in {f.cause for f in assess(dropped, ACTING).findings}


def test_what_failed_in_a_table_that_no_run_takes_by_name_is_done_by_one_on_all() -> None:
    """A cleanup puts marks into the commit table, and refuses it as a table to clean."""
    failed = a_run("orphan_cleanup", HOUR, OMID_COMMIT_TABLE="2 mutations failed")
    finding = only(assess(healthy(runs=(failed,)), ACTING), Cause.FAILED)
    assert finding.tables == ("OMID_COMMIT_TABLE",)
    assert finding.commands[-1] == "lowtide run orphan_cleanup --execute"


def test_a_failed_run_is_made_up_for_by_the_next_one_only() -> None:
    """Of the tasks of one DAG run, one that is done does not make up for one that is not."""
    failed = a_run("orphan_cleanup", DAY, "the oracle does not answer", dag_run="mon")
    sibling = a_run("orphan_cleanup", DAY - HOUR, dag_run="mon", users=None)
    after = a_run("orphan_cleanup", HOUR, dag_run="tue", users=None)
    finding = only(assess(healthy(runs=(sibling, failed)), ACTING), Cause.FAILED)
    assert (finding.why, finding.tables) == ("the oracle does not answer", ())
    assert Cause.FAILED not in {f.cause for f in assess(healthy(runs=(after, sibling, failed)), ACTING).findings}


def test_a_dry_run_that_failed_is_no_finding() -> None:
    """A person tried something: the store is as it was."""
    tried = {**a_run("orphan_cleanup", HOUR, "no such table"), "execute": False}
    assert assess(healthy(runs=(tried, *healthy().runs)), ACTING).findings == ()


def test_a_restore_that_left_something_undone_is_no_finding() -> None:
    """Whoever asked for it saw the answer; no later run could take the alarm back."""
    again = [
        a_run("sideline_restore", HOUR, users="all 9 cells are there already"),
        a_run("sideline_restore", HOUR, "no such run"),
    ]
    assert assess(healthy(runs=(*again, *healthy().runs)), ACTING).findings == ()


def test_failed_mutations_count_without_a_problem() -> None:
    """What the store refused was left undone."""
    report = TableReport("orders", Counts(failed=7))
    failed = Summary("orphan_cleanup", "r", True, millis(NOW - HOUR), tables=[report]).to_json()
    assert "7 mutations" in only(assess(healthy(runs=(failed,)), ACTING), Cause.FAILED).why


def test_a_job_that_does_not_run() -> None:
    """Overdue counts from its last run that acted, or, where none is known, from the oldest run that is."""
    old = a_run("orphan_cleanup", 3 * DAY), a_run("watermark_collection", HOUR), a_run("commit_table_pruning", HOUR)
    finding = only(assess(healthy(runs=old), ACTING), Cause.OVERDUE)
    assert "orphan_cleanup has not acted for 3 days" in finding.why
    assert finding.commands == ("lowtide run orphan_cleanup --execute",)
    assert "airflow dags unpause orphan_cleanup" in finding.remedy
    many = healthy(runs=old[1:] * 9 + (a_run("watermark_collection", 4 * DAY),), more_runs=True)
    assert "for at least 4 days" in only(assess(many, ACTING), Cause.OVERDUE).why
    planned = tuple({**r, "execute": r["job"] != "commit_table_pruning"} for r in (*old[1:], old[0]))
    assert {f.what for f in assess(healthy(runs=planned), ACTING).findings} == {
        "Nothing cleans",
        "Nothing prunes the commit table",
    }
    assert {f.what for f in assess(healthy(runs=planned), Config()).findings if f.cause is Cause.OVERDUE} == {
        "Nothing cleans"
    }
    fresh = healthy(runs=(a_run("watermark_collection", HOUR),))
    assert assess(fresh, ACTING).findings == ()
    never = healthy(runs=(a_run("watermark_collection", HOUR), a_run("watermark_collection", 3 * DAY)))
    assert {f.why.split()[0] for f in assess(never, ACTING).findings} == {"orphan_cleanup", "commit_table_pruning"}


def test_tables_in_dry_run_are_one_note() -> None:
    """However many there are; the health is none the worse for it."""
    entries = tuple(Entry(f"t{n}", Kind.TRANSACTIONAL, True) for n in range(8))
    health = assess(healthy(inventory=entries), Config())
    tables, commit = [f for f in health.findings if f.cause is Cause.DRY_RUN]
    assert health.level is Level.FINE
    assert (len(tables.tables), tables.setting) == (8, "defaults.mode")
    assert "and 3 more" in tables.what
    assert commit.setting == "tables.OMID_COMMIT_TABLE.mode"


def test_a_configured_table_that_is_not_there() -> None:
    """A misspelt name in the configuration would do nothing, silently."""
    config = Config.model_validate({"defaults": {"mode": "execute"}, "tables": {"ordres": {}}})
    assert only(assess(healthy(), config), Cause.ABSENT).setting == "tables.ordres"


def test_servers_of_a_line_that_was_not_tried_are_a_note() -> None:
    """Since the first run that met them, until a run meets others; the health is none the worse for it."""
    runs = healthy().runs
    met = [{**a_run("survey", hours * HOUR), "hbase": version} for hours, version in ((2, "9.1.0"), (5, "9.1.0"))]
    health = assess(healthy(runs=(*runs, *met)), ACTING)
    finding = only(health, Cause.UNTRIED_HBASE)
    assert (health.level, finding.since) == (Level.FINE, NOW - 5 * HOUR)
    assert "HBase 9.1.0" in finding.what
    upgraded = {**a_run("survey", HOUR), "hbase": f"{TRIED[-1]}.9"}
    assert assess(healthy(runs=(*runs, upgraded, *met)), ACTING).findings == ()


def test_a_table_that_is_called_plain_against_the_records() -> None:
    """What was transactional and is called plain now stops every job; a table that is gone, and one that was plain,
    do not.
    """
    plain = {"kind": "plain"}
    config = Config.model_validate({"defaults": {"mode": "execute"}, "tables": {"orders": plain, "gone": plain}})
    kept = healthy().inventory
    seen = healthy(inventory=(*kept, Entry("gone", Kind.TRANSACTIONAL, True), Entry("users", Kind.PLAIN, True)))
    finding = only(assess(seen, config), Cause.CONTRADICTED)
    assert (finding.severity, finding.tables, finding.setting) == (Severity.ALARM, ("orders",), "tables.orders.kind")
    everywhere = Config.model_validate({"defaults": {"mode": "execute", "kind": "plain"}})
    assert {f.setting for f in assess(healthy(), everywhere).findings} == {"defaults.kind"}


def test_the_findings_about_one_table() -> None:
    """Those that name it, and those that concern all."""
    held = blocker("users", "never cleaned"), blocker("orders", "never cleaned")
    health = assess(healthy(bounds=(Bound(NOW, 0, held),), oracle_problem="down"), ACTING)
    assert {f.tables for f in health.of("users")} == {("users",), ()}


@given(st.sets(st.sampled_from(sorted(Severity))), st.sampled_from([HOUR, 3 * DAY]))
def test_the_worst_finding_is_the_sentence_and_the_level(wanted: set[Severity], age: timedelta) -> None:
    """Whatever else there is; and everything that is more than a note is counted."""
    held = blocker("users", "never cleaned", since=millis(NOW - age))
    changes = {
        Severity.ALARM: {"oracle_problem": "the oracle is down"},
        Severity.WARNING: {"bounds": (Bound(NOW, 0, (held,), NOW - age),)},
        Severity.NOTE: {},
    }
    asked = {name: value for severity in wanted for name, value in changes[severity].items()}
    health = assess(healthy(**asked), ACTING)
    ranks = [list(Severity).index(f.severity) for f in health.findings]
    assert ranks == sorted(ranks, reverse=True)
    serious = [f for f in health.findings if f.severity is not Severity.NOTE]
    assert (health.level is Level.FINE) == (not serious)
    if serious:
        assert serious[0].what in health.sentence
        assert (f"({len(serious) - 1} more" in health.sentence) == (len(serious) > 1)
        assert health.to_json()["findings"][0]["what"] == serious[0].what


def test_blockers_are_kept_once_a_table_with_since_when() -> None:
    """Ten thousand regions make one record a table and reason; what blocked before keeps its time while its mark
    stands still.
    """
    marks = [RegionMark("t", f"r{n}", KeyRange(b"%d" % n, b"%d" % (n + 1)), 0) for n in range(1000)]
    kept = by_reason(prune_bound(marks, [], 99)[1])
    assert [(b["table"], b["regions"], b["region"]) for b in kept] == [("t", 1000, "r0")]
    first = still_blocking(kept, [], 100)
    assert [b["since"] for b in still_blocking(kept, first, 200)] == [100]
    moved = [{**b, "watermark": 50} for b in kept]
    assert [b["since"] for b in still_blocking(moved, first, 200)] == [200]


def test_words() -> None:
    """Counters stay numbers, world clocks become times, spans have one unit."""
    world = healthy(low_watermark=millis(NOW) * 1_000_000).clock
    assert timestamp_text(millis(NOW) * 1_000_000, world) == "2026-03-10 12:00:00.000 UTC"
    sampled = healthy(samples=((NOW, 900),)).clock
    assert timestamp_text(1234, sampled) == "1,234 (about 2026-03-10 12:00 UTC)"
    assert (timestamp_text(5, sampled), timestamp_text(0, world)) == ("5", "0")
    assert (distance_text(5000, sampled), distance_text(90_000 * 1_000_000, world)) == ("5,000", "1 minute")
    assert [age_text(timedelta(seconds=s)) for s in (0, 1, 59, 3600, 200_000)] == [
        "0 seconds",
        "1 second",
        "59 seconds",
        "1 hour",
        "2 days",
    ]


@given(st.datetimes(datetime(2001, 9, 10), datetime(2100, 1, 1), timezones=st.just(UTC)), st.integers(0, 20_000))
def test_a_mark_can_be_read_at_the_time_that_is_told_of_it(moment: datetime, further: int) -> None:
    """As ``asOf`` and ``lowtide hold --at`` take it; it is the first such millisecond."""
    clock = WorldClock()
    mark = clock.timestamp(moment) + 50 * further + 49
    said = parse_time(timestamp_text(mark, clock).replace(" UTC", "+00:00"))
    assert mark <= clock.timestamp(said) < mark + 1_000_000


def test_a_hold_at_a_time_beyond_all_calendars_is_told_as_a_number() -> None:
    """Anybody may have written it; status goes on."""
    assert timestamp_text(99999999999999999999999, WorldClock()) == "99,999,999,999,999,999,999,999"


def test_every_kind_of_finding_has_its_paragraph() -> None:
    """docs/operating.md explains each, under its name."""
    named = set(re.findall(r"^### `([a-z-]+)`", (DOCS / "operating.md").read_text(), re.MULTILINE))
    assert named == {cause.value for cause in Cause}


# -- clocks and grace

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize("off", [HOUR, -HOUR, DAY, -DAY])
def test_an_oracle_whose_clock_is_off_is_an_alarm(off: timedelta) -> None:
    """As it stored it last: an oracle that rests is none."""
    seconds = "3,600" if abs(off) == HOUR else "86,400"
    stored = Allotted(WorldClock().timestamp(NOW - DAY + off + ALLOTTED_AHEAD), NOW - DAY)
    health = assess(healthy(allotted=stored), ACTING)
    found = only(health, Cause.CLOCKS)
    assert f"the oracle's clock is {seconds} s {'ahead of' if off > timedelta() else 'behind'}" in found.why
    assert health.level is Level.ALARM
    assert f"### `{Cause.CLOCKS.value}`" in (DOCS / "operating.md").read_text()


def test_a_machine_that_is_behind_what_hbase_has_dated_is_an_alarm() -> None:
    """By more than the margin. Of one that is ahead nothing tells: the oracle may rest."""
    for apart, found in ((HOUR, 1), (50 * SECOND, 0), (-DAY, 0)):
        written = NOW + apart
        stored = Allotted(WorldClock().timestamp(written + ALLOTTED_AHEAD), written)
        health = assess(healthy(allotted=stored), ACTING)
        assert len([f for f in health.findings if f.cause is Cause.CLOCKS]) == found
        assert not found or "the clock of this machine is 3,600 s behind" in health.findings[0].why


def test_pruning_without_grace_is_a_note() -> None:
    """It is allowed, and said as long as it is configured."""
    health = assess(healthy(), ACTING.model_copy(update={"grace": timedelta()}))
    found = only(health, Cause.NO_GRACE)
    assert (found.severity, found.setting, health.level) == (Severity.NOTE, "grace", Level.FINE)


def test_sentences_that_are_kept_in_the_store_stay_as_they_are() -> None:
    """A kept bound's cause is known by its sentence: in other words it would be another cause, and its "since" lost."""
    assert (NEVER, PARTLY) == ("never cleaned", "cleaned up to here only")
    assert DROPPING.startswith("Omid's compactor is on the table: if it came back from an HBase snapshot, that drops")
    assert VOID.startswith("what was recorded no longer counts: the table was made anew, restored, or disabled")
    assert UNMARKED_SINCE == "the last collection recorded as transactional"
    assert (UNREADABLE, UNFINISHED) == ("it is Phoenix's, and the catalog cannot be read", "Phoenix's ")


def _task(n: int, dag_run: str, started: datetime, *problems: str, whole: str = "") -> Summary:
    """A cleanup of one table, one of many tasks of a DAG run."""
    report = TableReport(f"t{n:02}", problems=list(problems))
    context = {"run_id": dag_run, "task_id": "clean", "map_index": n}
    summary = Summary("orphan_cleanup", f"{dag_run}-{n}", True, millis(started), tables=[report], context=context)
    summary.problems += [whole] if whole else []
    return summary


def _kept(state: StateStore, *summaries: Summary) -> Health:
    for summary in summaries:
        state.add_run(summary.to_keep())
    runs, outcomes = tuple(state.runs(60)), state.outcomes()
    return assess(healthy(runs=runs, outcomes=outcomes, listed=frozenset(f"t{n:02}" for n in range(80))), ACTING)


def _failed(health: Health) -> list[tuple[tuple[str, ...], datetime | None]]:
    return [(f.tables, f.since) for f in health.findings if f.cause is Cause.FAILED]


def test_a_table_that_failed_stays_so_however_many_runs_come_after() -> None:
    """Of 80 tasks in a night 60 are read: the one that failed first is told until its own table is cleaned."""
    state = store(Records())
    night, next_night = NOW - 30 * HOUR, NOW - 6 * HOUR
    tasks = [_task(n, "night", night + n * MINUTE, *(["it broke"] if n == 3 else [])) for n in range(80)]
    assert _failed(_kept(state, *tasks)) == [(("t03",), night + 3 * MINUTE)]
    assert [r.done for r in last_runs(healthy(runs=tuple(state.runs(60)), outcomes=state.outcomes()))] == [False]
    again = [_task(n, "next", next_night + n * MINUTE, *(["still"] if n == 3 else [])) for n in range(80)]
    assert _failed(_kept(state, *again)) == [(("t03",), night + 3 * MINUTE)], "since when it fails"
    assert _failed(_kept(state, _task(3, "by hand", NOW - HOUR))) == []
    assert state.outcomes().failing == ()


def test_a_run_that_failed_as_a_whole_stays_so_until_a_later_one_is_done() -> None:
    """Another task of the same DAG run does not make up for it, its own next try and a later DAG run do."""
    state = store(Records())
    night = NOW - 30 * HOUR
    tasks = [_task(n, "night", night + n * MINUTE, whole="no oracle" if n in (3, 4) else "") for n in range(80)]
    assert _failed(_kept(state, *tasks)) == [((), night + 3 * MINUTE)]
    assert _failed(_kept(state, _task(3, "night", night + 90 * MINUTE))) == [((), night + 4 * MINUTE)]
    later = [_task(n, "next", NOW - 2 * HOUR + n * MINUTE) for n in range(80)]
    assert _failed(_kept(state, *later)) == []
    assert state.outcomes().failing == ()


def test_a_table_that_a_run_passes_by_is_not_well() -> None:
    """It is paused, or in doubt: of the night before nothing is made good, by what is kept and by the runs alone."""
    state = store(Records())
    passing = _task(4, "next", NOW - HOUR)
    passing.tables.append(TableReport("t03", left_alone=True, notes=["paused"]))
    night = NOW - 30 * HOUR
    health = _kept(state, _task(3, "night", night, "it broke"), passing)
    assert _failed(health) == [(("t03",), night)]
    assert [t["table"] for run in state.outcomes().failing for t in run["tables"]] == ["t03"]
    listed = frozenset({"t03", "t04"})
    assert _failed(assess(healthy(runs=tuple(state.runs(60)), listed=listed), ACTING)) == [(("t03",), night)]


def _ran(job: str, at: datetime, *, execute: bool = True, **context: str) -> Summary:
    return Summary(job, f"{job}-{millis(at)}", execute, millis(at), context=context)


def _overdue(state: StateStore, runs: int, **more: Any) -> dict[str, Finding]:
    read = tuple(state.runs(runs))
    reading = healthy(runs=read, more_runs=len(read) == runs, outcomes=state.outcomes(), **more)
    return {f.what: f for f in assess(reading, ACTING).findings if f.cause is Cause.OVERDUE}


def test_what_does_not_run_is_told_however_many_others_do() -> None:
    """A ledger's repair each half hour leaves no other run among those that are read; those that ran last are known,
    and of one that never did, since when.
    """
    state = store(Records())
    for job in ("orphan_cleanup", "watermark_collection"):
        state.add_run(_ran(job, NOW - 5 * DAY).to_keep())
    for n in range(120):
        state.add_run(_ran("transaction_repair", NOW - 60 * HOUR + n * 30 * MINUTE).to_keep())
    found = _overdue(state, 60)
    assert {what: f.since for what, f in found.items()} == dict.fromkeys(
        ("Nothing cleans", "Nothing moves the prune bound", "Nothing prunes the commit table"), NOW - 5 * DAY
    )
    assert found["Nothing cleans"].why == "orphan_cleanup has not acted for 5 days"
    assert found["Nothing prunes the commit table"].why == "commit_table_pruning has not acted for at least 5 days"
    state.add_run(_ran("orphan_cleanup", NOW - HOUR).to_keep())
    for n in range(60):
        state.add_run(_ran("transaction_repair", NOW - 50 * MINUTE + n * SECOND).to_keep())
    assert "Nothing cleans" not in _overdue(state, 60)
    state.add_run(_ran("orphan_cleanup", NOW - 4 * DAY).to_keep())  # one that ended late
    assert "Nothing cleans" not in _overdue(state, 60)


def test_what_only_plans_is_told_to_and_not_that_its_dag_is_paused() -> None:
    """Every night, since no table's mode is execute: the remedy is a table to begin with, not all of them at once. Not
    so where somebody has looked by hand, nor while a pause keeps runs from acting.
    """
    state = store(Records())
    state.add_run(_ran("orphan_cleanup", NOW - 5 * DAY, execute=False, dag_id="orphan_cleanup").to_keep())
    state.add_run(_ran("orphan_cleanup", NOW - HOUR, execute=False, dag_id="orphan_cleanup").to_keep())
    found = _overdue(state, 60)
    cleans, collects = found["Nothing cleans"], found["Nothing moves the prune bound"]
    assert cleans.why.endswith("it only plans")
    assert ("mode: execute" in cleans.remedy, "unpause" in cleans.remedy) == (True, False)
    assert cleans.commands[-1] == "lowtide run orphan_cleanup --table <table> --execute"
    assert "airflow dags unpause watermark_collection" in collects.remedy
    paused = _overdue(state, 60, pauses=(Pause("p", None, "ann", "month end", NOW - DAY, NOW + DAY),))
    assert "only plans" not in paused["Nothing cleans"].why
    state.add_run(_ran("orphan_cleanup", NOW - MINUTE, execute=False).to_keep())
    assert "airflow dags unpause orphan_cleanup" in _overdue(state, 60)["Nothing cleans"].remedy


def test_what_runs_left_undone_goes_with_the_runs() -> None:
    """Of a table that is gone nobody says that it is well."""
    state = store(Records())
    _kept(state, _task(3, "night", NOW - 30 * DAY, "it broke"), _task(4, "next", NOW - DAY, "it broke"))
    state.sweep(NOW - 7 * DAY)
    assert [f["tables"][0]["table"] for f in state.outcomes().failing] == ["t04"]
