"""What does not move, since when, why, and what to do about it: findings, and the one sentence that sums them up.

A :class:`Reading` is what was read of a store at one moment; :func:`assess` judges it by the configuration. All of that
is pure; :mod:`lowtide.health.reader` reads, and so does :mod:`lowtide.health.conditions`, what Airflow's sensors wait
for, with the times of :mod:`lowtide.health.clocks`. Whatever a later job keeps in the state table gets a field there
and a check in ``CHECKS``. ``lowtide status``, ``lowtide explain``, the report and the page in Airflow show what comes
out of here; they read and judge nothing themselves.

Times are wall-clock times of the machines that recorded them; timestamps are the oracle's, watermarks and bound
inclusive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from lowtide.config import Config
from lowtide.health import bound, hbase, history_findings, ledger_findings, objections, oracle, runs, settings
from lowtide.health.findings import EXIT_CODES, Cause, Finding, Health, Level, Severity, grouped
from lowtide.health.history import HistoryStatus, history_statuses, removals
from lowtide.health.ledger import LedgerStatus, ledger_status, repairs
from lowtide.health.reading import LedgerReading, Reading
from lowtide.health.runs import RECURRING, LastRun, last_runs
from lowtide.health.tables import TableStatus, table_statuses
from lowtide.store.records import Bound
from lowtide.values.text import age_text, distance_text, moment_text, timestamp_text

__all__ = [
    "CHECKS",
    "EXIT_CODES",
    "RECURRING",
    "Cause",
    "Finding",
    "Health",
    "HistoryStatus",
    "LastRun",
    "LedgerReading",
    "LedgerStatus",
    "Level",
    "Reading",
    "Severity",
    "TableStatus",
    "assess",
    "grouped",
    "history_statuses",
    "last_runs",
    "ledger_status",
    "removals",
    "repairs",
    "table_statuses",
]

#: In the order in which findings of one severity and age are shown.
CHECKS: tuple[Callable[[Reading, Config], Iterable[Finding]], ...] = (
    oracle.down,
    oracle.low_watermark,
    oracle.clocks,
    ledger_findings.money,
    ledger_findings.broken,
    settings.contradicted,
    bound.never_collected,
    runs.failures,
    bound.blockers,
    ledger_findings.unsettled,
    runs.overdue,
    history_findings.unfinished,
    history_findings.held,
    history_findings.blocked,
    history_findings.overdue,
    objections.paused,
    objections.vetoed,
    settings.dry_runs,
    settings.no_grace,
    history_findings.by_hand,
    ledger_findings.dry_run,
    ledger_findings.moved_back,
    history_findings.never,
    settings.absent,
    hbase.untried,
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
            "The store cannot be read",
            reading.unreachable,
            "Start the Thrift gateway, or correct hbase.thrift; jobs do without it, and `lowtide check` looks past it",
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
    since = f" since {moment_text(finding.since)} ({age_text(now - finding.since)})" if finding.since else ""
    more = (
        f" ({len(others)} more {'findings need' if len(others) > 1 else 'finding needs'} attention)" if others else ""
    )
    return f"{finding.what}{since}: {finding.why}. {finding.remedy}{more}."


def _all_is_well(reading: Reading, bound: Bound) -> str:
    tables = len(reading.watermarks)
    behind = distance_text(max(0, (reading.low_watermark or 0) - bound.value), reading.clock)
    return (
        f"All is well: {tables} {'table is' if tables == 1 else 'tables are'} clean up to "
        f"{timestamp_text(bound.value, reading.clock)}, {behind} below the low watermark, as collected "
        f"{age_text(reading.at - bound.at)} ago.{_ledger(reading)}"
    )


def _ledger(reading: Reading) -> str:
    status = ledger_status(reading)
    settled = status.settled if status else None
    return f" All transactions of the ledger are over that began before {moment_text(settled)}." if settled else ""
