"""What does not move, since when, why, and what to do about it: findings, and the one sentence that sums them up. Pure.

A :class:`Seen` is what was read of a store (:mod:`lowtide.health.look`); :func:`assess` judges it by the configuration. Whatever a later job
keeps in the state table gets a field there and a check in ``CHECKS``. ``lowtide status``, ``lowtide explain`` and the page in
Airflow show what comes out of here and judge nothing themselves.

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
from lowtide.health.seen import LedgerSeen, Seen
from lowtide.health.words import ago, span, told, when
from lowtide.store.records import Bound

__all__ = [
    "CHECKS",
    "EXIT_CODES",
    "RECURRING",
    "Cause",
    "Finding",
    "Health",
    "HistoryStanding",
    "LedgerSeen",
    "LedgerStanding",
    "Level",
    "Seen",
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
CHECKS: tuple[Callable[[Seen, Config], Iterable[Finding]], ...] = (
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


def assess(seen: Seen, config: Config) -> Health:
    """Judge *seen* by *config*, as of the moment it was seen."""
    if seen.newer:
        what, remedy = "The records are a newer Lowtide's", "Upgrade Lowtide on this machine"
        finding = Finding(Cause.NEWER, Severity.ALARM, what, seen.unreachable, remedy)
        return Health(Level.UNKNOWN, _sentence(finding, (), seen.at), (finding,))
    if seen.unreachable:
        finding = Finding(
            Cause.GATEWAY,
            Severity.ALARM,
            "The store cannot be looked at",
            seen.unreachable,
            "Start the Thrift gateway, or correct hbase.thrift",
            setting="hbase.thrift",
        )
        return Health(Level.UNKNOWN, _sentence(finding, (), seen.at), (finding,))
    found = [finding for check in CHECKS for finding in check(seen, config)]
    found.sort(key=lambda f: (-_RANK.index(f.severity), f.since or seen.at))
    worst = found[0].severity if found else Severity.NOTE
    if worst is Severity.NOTE and seen.bound is not None:  # without a bound there is a warning
        return Health(Level.FINE, _all_is_well(seen, seen.bound), tuple(found))
    level = Level.ALARM if worst is Severity.ALARM else Level.ATTENTION
    others = [f for f in found[1:] if f.severity is not Severity.NOTE]
    return Health(level, _sentence(found[0], others, seen.at), tuple(found))


def _sentence(finding: Finding, others: Sequence[Finding], now: datetime) -> str:
    since = f" since {finding.since:%Y-%m-%d %H:%M} UTC ({ago(now - finding.since)})" if finding.since else ""
    more = (
        f" ({len(others)} more {'findings need' if len(others) > 1 else 'finding needs'} attention)" if others else ""
    )
    return f"{finding.what}{since}: {finding.why}. {finding.remedy}{more}."


def _all_is_well(seen: Seen, bound: Bound) -> str:
    tables = len(seen.watermarks)
    behind = span(max(0, (seen.low_watermark or 0) - bound.value), seen.clock)
    return (
        f"All is well: {tables} {'table is' if tables == 1 else 'tables are'} clean up to {told(bound.value, seen.clock)}, "
        f"{behind} below the low watermark, as collected {ago(seen.at - bound.at)} ago.{_ledger(seen)}"
    )


def _ledger(seen: Seen) -> str:
    standing = ledger_standing(seen)
    settled = standing.settled if standing else None
    return f" All transactions of the ledger are over that began before {when(settled)}." if settled else ""
