"""What is said of the ledger: how far it is settled, what is stuck, whether its money adds up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.config import Config
from lowtide.health import Cause, LedgerReading, Level, Severity, assess, ledger_status, repairs
from lowtide.health.ledger import status_rows
from lowtide.ledger.settled import PAID_IN_FIGURE, Settled, money_figure, money_figures
from lowtide.run.summary import Counts, Summary, TableReport
from lowtide.values.clock import millis
from tests.unit.test_health import ACTING, DAY, HOUR, NOW, healthy, only

MINUTE = timedelta(minutes=1)
LEDGER = {Cause.UNSETTLED, Cause.MONEY, Cause.NEVER_REPAIRED, Cause.SETTLED_BACK, Cause.LEDGER_BROKEN}


def ledger(behind: timedelta | None = 20 * MINUTE, repaired: timedelta = HOUR / 2, **more: Any) -> LedgerReading:
    """A ledger settled up to *behind* before now (None: never), by a repair *repaired* ago."""
    if behind is None:
        return LedgerReading(**more)
    changes = {k: more.pop(k) for k in list(more) if k.startswith(("moved", "full", "wrong"))}
    mark = Settled(millis(NOW - behind), "r1", millis(NOW - repaired), millis(NOW - repaired))
    return LedgerReading(replace(mark, **changes), **more)


def stuck(count: int, oldest: timedelta) -> dict[str, Any]:
    return {"stuck": count, "oldest": NOW - oldest}


def repair(
    before: timedelta,
    wrong: int | None = 0,
    *problems: str,
    when: str = "after",
    execute: bool = True,
    full: bool = False,
    went: tuple[int, int] | None = None,
) -> Mapping[str, Any]:
    """A run of the repair that checked 40 transactions, *full*: all; *wrong* None: the check did not get to its end.
    *went*: through these times.
    """
    names = money_figure(when)
    figures = {names[0]: 40} | ({} if wrong is None else {names[1]: wrong}) | ({PAID_IN_FIGURE: 7} if full else {})
    failed = [f"the money does not add up {when} the repair"] if wrong else []
    report = TableReport("ledger_transactions", Counts(finished=2, dropped=1), problems=list(problems), execute=execute)
    report.intervals = [went] if went else []
    run = Summary("transaction_repair", f"r-{before}", execute, millis(NOW - before), tables=[report], problems=failed)
    run.figures = figures
    return run.to_json()


def causes(**changes: Any) -> set[Cause]:
    return {f.cause for f in assess(healthy(**changes), ACTING).findings}


def test_a_ledger_that_is_repaired_every_hour_is_no_finding() -> None:
    """Nor are transactions that the next repair will end; the sentence says up to when all are over."""
    health = assess(healthy(ledger=ledger(**stuck(3, 20 * MINUTE))), ACTING)
    assert (health.level, health.findings) == (Level.FINE, ())
    assert "All transactions of the ledger are over that began before 2026-03-10 11:40 UTC" in health.sentence
    assert "ledger" not in assess(healthy(), ACTING).sentence
    assert ledger_status(healthy()) is None


@pytest.mark.parametrize(("behind", "severity"), [(4 * HOUR, Severity.WARNING), (3 * DAY, Severity.ALARM)])
def test_a_repair_that_does_not_run(behind: timedelta, severity: Severity) -> None:
    """It is said since when, and how many transactions wait for it."""
    seen = healthy(ledger=ledger(behind, behind - 15 * MINUTE, **stuck(1, behind)))
    finding = only(assess(seen, ACTING), Cause.UNSETTLED)
    assert (finding.severity, finding.since) == (severity, NOW - behind)
    assert "transaction_repair has not acted for" in finding.why
    assert "1 transaction older than the grace" in finding.why
    assert finding.commands == ("lowtide run transaction_repair --execute",)
    assert finding.setting is None
    planned = only(assess(seen, Config()), Cause.UNSETTLED)
    assert planned.setting == "tables.ledger_transactions.mode"


def test_transactions_that_a_repair_cannot_end() -> None:
    """The repair ran; then another of the same kind does not help, and its problems are what to look at."""
    went = (millis(NOW - 6 * HOUR), millis(NOW - HOUR))
    runs = (repair(HOUR / 4), repair(HOUR / 2, went=went))
    seen = healthy(ledger=ledger(5 * HOUR, HOUR / 2, **stuck(7, 5 * HOUR)), runs=(*runs, *healthy().runs))
    finding = only(assess(seen, ACTING), Cause.UNSETTLED)
    assert "7 transactions that began at 2026-03-10 07:00 UTC or later cannot be ended" in finding.why
    assert "as a repair found at 2026-03-10 11:30 UTC" in finding.why
    assert finding.commands == (
        "lowtide runs --job transaction_repair",
        "lowtide run transaction_repair --full --execute",
    )
    many = replace(seen, ledger=replace(seen.ledger, more=True))  # type: ignore[type-var]
    assert "7 or more transactions" in only(assess(many, ACTING), Cause.UNSETTLED).why


@pytest.mark.parametrize(
    ("execute", "hours"), [(True, (3, 1)), (True, (9, 5)), (False, (6, 1))], ids=["later", "earlier", "dry run"]
)
def test_of_what_no_run_looked_at_nothing_is_said_to_be_found(execute: bool, hours: tuple[int, int]) -> None:
    """A backfill of another interval moves the mark's own time too; a dry run ends nothing."""
    start, end = (millis(NOW - hour * HOUR) for hour in hours)
    runs = (repair(HOUR / 2, execute=execute, went=(start, end)), *healthy().runs)
    seen = healthy(ledger=ledger(5 * HOUR, HOUR / 2, **stuck(7, 5 * HOUR)), runs=runs)
    finding = only(assess(seen, ACTING), Cause.UNSETTLED)
    assert "cannot be ended" not in finding.why
    assert "acted last at 2026-03-10 11:30 UTC, and none of its runs that were read went so far back" in finding.why
    assert finding.commands == ("lowtide run transaction_repair --execute",)


def test_a_mark_that_began_anew_is_not_that_of_a_ledger_never_repaired() -> None:
    """After ``lowtide ledger mend`` it tells of no run, and runs may tell that there were some."""
    mended = healthy(ledger=ledger(None), runs=(repair(HOUR, execute=False), repair(2 * HOUR), *healthy().runs))
    why = only(assess(mended, ACTING), Cause.NEVER_REPAIRED).why
    assert "acted last at 2026-03-10 10:00 UTC" in why
    assert "never acted" not in why
    new = healthy(ledger=ledger(None), runs=(repair(HOUR, execute=False), *healthy().runs))
    assert "transaction_repair never acted" in only(assess(new, ACTING), Cause.NEVER_REPAIRED).why


def test_a_ledger_that_was_never_repaired() -> None:
    """A note while nothing is stuck."""
    assert only(assess(healthy(ledger=ledger(None)), ACTING), Cause.NEVER_REPAIRED).severity is Severity.NOTE
    waiting = only(assess(healthy(ledger=ledger(None, **stuck(2, HOUR))), Config()), Cause.NEVER_REPAIRED)
    assert (waiting.severity, waiting.since) == (Severity.WARNING, NOW - HOUR)
    assert waiting.setting == "tables.ledger_transactions.mode"


def test_money_that_does_not_add_up_is_an_alarm_until_it_does() -> None:
    """Said once, with what the run named; a check that did not get to its end hides nothing, a good one ends it."""
    wrong = [repair(HOUR, 3, "transaction a-1 has no debit."), repair(2 * HOUR, 1, when="before", execute=False)]
    good = repair(3 * HOUR, 0)
    seen = healthy(ledger=ledger(), runs=(repair(MINUTE, None), *wrong, good, *healthy().runs))
    health = assess(seen, ACTING)
    finding = only(health, Cause.MONEY)
    assert health.level is Level.ALARM
    assert (finding.since, finding.tables) == (NOW - 2 * HOUR, ("ledger_transactions",))
    assert "of 40 finished transactions 3 did not move" in finding.why
    assert "transaction a-1 has no debit" in finding.why
    assert Cause.FAILED not in {f.cause for f in health.findings}
    assert Cause.MONEY not in causes(ledger=ledger(), runs=(repair(MINUTE), *wrong, *healthy().runs))


def test_wrong_money_of_a_full_check_is_cleared_by_a_full_check_alone() -> None:
    """What was written since may add up every hour: finding, page and numbers stay with the one that was wrong."""
    found = repair(3 * HOUR, 2, "transaction a-1 has no debit", when="before", full=True)
    hourly = [repair(HOUR, 0), repair(2 * HOUR, 0, execute=False)]
    seen = healthy(ledger=ledger(), runs=(*hourly, found, *healthy().runs))
    finding = only(assess(seen, ACTING), Cause.MONEY)
    assert (finding.since, "2 did not move" in finding.why) == (NOW - 3 * HOUR, True)
    standing = ledger_status(seen)
    assert standing is not None
    assert standing.money is not None
    assert (standing.money.wrong, standing.to_json()["money"]["wrong"]) == (2, 2)
    assert ("money", "2 wrong; 40 finished transactions were checked at 2026-03-10 09:00 UTC") in status_rows(
        standing, NOW
    )
    cleared = healthy(ledger=ledger(), runs=(repair(MINUTE, 0, full=True), *hourly, found, *healthy().runs))
    assert Cause.MONEY not in causes(ledger=cleared.ledger, runs=cleared.runs)


def test_wrong_money_that_the_mark_tells_of_needs_no_run() -> None:
    """The runs that found it may be among those that are not read any more."""
    seen = healthy(ledger=ledger(wrong_at=millis(NOW - 2 * HOUR)), runs=(repair(HOUR, None), *healthy().runs))
    finding = only(assess(seen, ACTING), Cause.MONEY)
    assert (finding.severity, finding.since) == (Severity.ALARM, NOW - 2 * HOUR)
    standing = ledger_status(seen)
    assert standing is not None
    assert standing.to_json()["wrong_since"] == "2026-03-10T10:00:00+00:00"
    assert "does not add up, as a repair found at 2026-03-10 10:00 UTC" in dict(status_rows(standing, NOW))["money"]


def test_a_contradiction_is_a_failure_of_its_own() -> None:
    """The money may add up all the same."""
    runs = (repair(HOUR, 0, "transaction a-1 contradicts itself"), *healthy().runs)
    seen = healthy(ledger=ledger(), runs=runs, listed=frozenset({"orders", "ledger_transactions"}))
    finding = only(assess(seen, ACTING), Cause.FAILED)
    assert finding.commands[-1] == "lowtide run transaction_repair --execute"


def test_a_mark_that_was_moved_back_is_told_for_a_while() -> None:
    """With the setting that would have prevented it."""
    back = {"moved_back_from": millis(NOW - DAY), "moved_back_at": millis(NOW - HOUR)}
    finding = only(assess(healthy(ledger=ledger(**back)), ACTING), Cause.SETTLED_BACK)
    assert (finding.severity, finding.setting, finding.since) == (Severity.NOTE, "ledger.grace", NOW - HOUR)
    assert "2026-03-09 12:00 UTC" in finding.what
    back["moved_back_at"] = millis(NOW - 3 * DAY)
    assert causes(ledger=ledger(**back)) == set()


def test_a_mark_of_a_time_to_come_is_told_of_the_machine_that_moved_it() -> None:
    """No client is to blame, and no grace would have prevented it."""
    back = {"moved_back_from": millis(NOW + HOUR), "moved_back_at": millis(NOW - HOUR)}
    finding = only(assess(healthy(ledger=ledger(**back)), ACTING), Cause.SETTLED_BACK)
    assert (finding.severity, finding.setting) == (Severity.NOTE, None)
    assert "a machine whose clock was fast" in finding.why


def test_an_index_that_cannot_be_read() -> None:
    """Then nothing else is said of the ledger."""
    found = assess(healthy(ledger=LedgerReading(problem="row x is no entry.")), ACTING).findings
    assert [(f.cause, f.why) for f in found] == [(Cause.LEDGER_BROKEN, "row x is no entry")]


def test_a_ledger_in_dry_run_is_a_note() -> None:
    """As of tables."""
    dry = [f for f in assess(healthy(ledger=ledger()), Config()).findings if f.tables == ("ledger_transactions",)]
    assert [(f.cause, f.severity) for f in dry] == [(Cause.DRY_RUN, Severity.NOTE)]


def test_the_standing_in_words_and_numbers() -> None:
    """The same for the terminal, the page and monitors."""
    seen = healthy(
        ledger=ledger(full_at=millis(NOW - DAY), **stuck(2, 20 * MINUTE)),
        runs=(repair(HOUR, None), repair(2 * HOUR, 0), *healthy().runs),
    )
    standing = ledger_status(seen)
    assert standing is not None
    assert [how for _, how in status_rows(standing, NOW)] == [
        "2026-03-10 11:40 UTC, 20 minutes ago",
        "2 transactions, the oldest of 2026-03-10 11:40 UTC",
        "2026-03-10 11:30 UTC, 30 minutes ago",
        "did not get to its end; 40 finished transactions were checked at 2026-03-10 11:00 UTC",
        "2026-03-09 12:00 UTC",
    ]
    assert standing.to_json()["behind_seconds"] == 1200
    assert [(r.finished, r.dropped, r.wrong) for r in repairs(seen)] == [(2, 1, None), (2, 1, 0)]
    empty = ledger_status(healthy(ledger=LedgerReading()))
    assert empty is not None
    assert [how for _, how in status_rows(empty, NOW)] == [
        "never",
        "none",
        "never",
        "no check among the runs that were read",
        "never",
    ]


@pytest.mark.parametrize(
    ("figures", "found"),
    [
        ({}, (None, None)),
        ({"finished transactions checked before": 9}, (9, None)),
        ({money_figure("before")[0]: 9, money_figure("before")[1]: 1}, (9, 1)),
        ({money_figure("before")[0]: 9, money_figure("before")[1]: 0, money_figure("after")[0]: 3}, (3, None)),
    ],
)
def test_the_last_check_of_a_run_is_the_one_that_counts(figures: dict[str, int], found: tuple[Any, Any]) -> None:
    """Also where it did not get to its end."""
    assert money_figures(figures) == found


@given(
    st.none() | st.integers(0, 200), st.integers(0, 200), st.integers(0, 3), st.integers(0, 200), st.integers(1, 100)
)
def test_only_a_mark_that_is_far_behind_is_a_fault(
    behind: int | None, repaired: int, count: int, oldest: int, limit: int
) -> None:
    """However old the last repair and however many wait; and what is a fault has a command."""
    config = Config.model_validate(
        {"defaults": {"mode": "execute"}, "health": {"unsettled_after": f"{limit}h", "stuck_after": f"{limit + 10}h"}}
    )
    waiting = stuck(count, oldest * HOUR) if count else {}
    seen = healthy(ledger=ledger(None if behind is None else behind * HOUR, repaired * HOUR, **waiting))
    faults = [f for f in assess(seen, config).findings if f.cause in LEDGER and f.severity is not Severity.NOTE]
    assert bool(faults) == (count > 0 if behind is None else behind >= limit)
    assert all(f.commands and isinstance(f.since, datetime) for f in faults)
    if behind is not None:
        assert [f.severity for f in faults if behind >= limit + 10] == [Severity.ALARM] * (behind >= limit + 10)
