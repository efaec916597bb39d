"""What does not move, since when, why, and what to do about it: findings, and the one sentence that sums them up. Pure.

A :class:`Reading` is what was read of a store at one moment (:mod:`lowtide.health.reader`); :func:`assess` judges it by the configuration.
Whatever a later job keeps in the state table gets a field there and a check in ``CHECKS``. ``lowtide status``, ``lowtide explain``, the
report and the page in Airflow show what comes out of here; they read and judge nothing themselves.

Times are wall-clock times of the machines that recorded them; timestamps are the oracle's, watermarks and bound inclusive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from lowtide.config import Config
from lowtide.health import cleaning, history, ledger
from lowtide.health.cleaning import RECURRING, Standing, standings
from lowtide.health.findings import EXIT_CODES, Cause, Finding, Health, Level, Severity
from lowtide.health.history import HistoryStanding, histories, removals
from lowtide.health.ledger import LedgerStanding, ledger_standing, repairs
from lowtide.health.reading import LedgerReading, Reading
from lowtide.health.words import ago, span, told, when
from lowtide.store.state import Bound

__all__ = [
    "CHECKS",
    "EXIT_CODES",
    "RECURRING",
    "Cause",
    "Finding",
    "Health",
    "HistoryStanding",
    "LedgerReading",
    "LedgerStanding",
    "Level",
    "Reading",
    "Severity",
    "Standing",
    "ago",
    "assess",
    "histories",
    "ledger_standing",
    "removals",
    "repairs",
    "span",
    "standings",
    "told",
]

#: In the order in which findings of one severity and age are told.
CHECKS: tuple[Callable[[Reading, Config], Iterable[Finding]], ...] = (
    cleaning.oracle,
    cleaning.clocks,
    ledger.money,
    ledger.broken,
    cleaning.contradicted,
    cleaning.collected,
    cleaning.failures,
    cleaning.blockers,
    ledger.unsettled,
    cleaning.overdue,
    history.unfinished,
    history.held,
    history.blocked,
    history.overdue,
    cleaning.dry_runs,
    cleaning.no_grace,
    history.by_hand,
    ledger.dry_run,
    ledger.moved_back,
    history.never,
    cleaning.absent,
)
_RANK = list(Severity)


def assess(reading: Reading, config: Config) -> Health:
    """Judge *reading* by *config*, as of the moment at which it was read."""
    if reading.newer:
        what, remedy = "The records are a newer Lowtide's", "Upgrade Lowtide on this machine"
        finding = Finding(Cause.NEWER, Severity.ALARM, what, reading.unreachable, remedy)
        return Health(Level.UNKNOWN, _sentence(finding, (), reading.at), (finding,))
    if reading.unreachable:
        finding = Finding(
            Cause.GATEWAY,
            Severity.ALARM,
            "The store cannot be looked at",
            reading.unreachable,
            "Start the Thrift gateway, or correct hbase.thrift",
            setting="hbase.thrift",
        )
        return Health(Level.UNKNOWN, _sentence(finding, (), reading.at), (finding,))
    found = [finding for check in CHECKS for finding in check(reading, config)]
    found.sort(key=lambda f: (-_RANK.index(f.severity), f.since or reading.at))
    worst = found[0].severity if found else Severity.NOTE
    if worst is Severity.NOTE and reading.bound is not None:  # without a bound there is a warning
        return Health(Level.FINE, _all_is_well(reading, reading.bound), tuple(found))
    level = Level.ALARM if worst is Severity.ALARM else Level.ATTENTION
    others = [f for f in found[1:] if f.severity is not Severity.NOTE]
    return Health(level, _sentence(found[0], others, reading.at), tuple(found))


def _sentence(finding: Finding, others: Sequence[Finding], now: datetime) -> str:
    since = f" since {finding.since:%Y-%m-%d %H:%M} UTC ({ago(now - finding.since)})" if finding.since else ""
    more = (
        f" ({len(others)} more {'findings need' if len(others) > 1 else 'finding needs'} attention)" if others else ""
    )
    return f"{finding.what}{since}: {finding.why}. {finding.remedy}{more}."


def _all_is_well(reading: Reading, bound: Bound) -> str:
    tables = len(reading.watermarks)
    behind = span(max(0, (reading.low_watermark or 0) - bound.value), reading.clock)
    return (
        f"All is well: {tables} {'table is' if tables == 1 else 'tables are'} clean up to {told(bound.value, reading.clock)}, "
        f"{behind} below the low watermark, as collected {ago(reading.at - bound.at)} ago.{_ledger(reading)}"
    )


def _ledger(reading: Reading) -> str:
    standing = ledger_standing(reading)
    settled = standing.settled if standing else None
    return f" All transactions of the ledger are over that began before {when(settled)}." if settled else ""
