"""The ledger: how far it is settled, what is stuck, whether its money adds up; and the same for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lowtide.health.reading import Reading
from lowtide.ledger.settled import money_figures, whole
from lowtide.values.clock import from_millis, millis
from lowtide.values.text import age_text, moment_text

JOB = "transaction_repair"


@dataclass(frozen=True, slots=True)
class Repair:
    """One run of transaction_repair, from its summary.

    *checked* finished transactions had their money checked, at the last check of the run; *wrong* of them had not moved
    their amount exactly once. None: there was no check, or it did not get to its end.
    """

    run: str
    started: datetime
    execute: bool
    state: str
    #: Whether it counted all finished transactions, and not only what was written since the last check.
    full: bool
    finished: int
    dropped: int
    checked: int | None
    wrong: int | None
    #: The times [from, to), ms, whose open transactions it went through; none where it did not get so far.
    intervals: tuple[tuple[int, int], ...] = ()

    def looked_at(self, began: datetime) -> bool:
        """Whether it tried to end what began then."""
        return self.execute and any(start <= millis(began) < end for start, end in self.intervals)


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """How the ledger stands. Times are None where the thing never was."""

    #: Every transaction that began before it is over.
    settled: datetime | None
    #: How long ago that is.
    behind: timedelta
    #: Index entries from there on that are older than the grace; *more*: there may be more than were counted.
    stuck: int
    more: bool
    oldest: datetime | None
    #: When the last repair that acted began, and the last full check.
    repaired: datetime | None
    full_check: datetime | None
    #: The newest run that was read; the newest that found wrong money where no check since has cleared that, else the
    #: newest with a money check.
    last: Repair | None
    money: Repair | None
    #: Since when the ledger's own mark says that the money does not add up, whatever runs were read.
    wrong_since: datetime | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; times are ISO 8601."""
        times = {name: getattr(self, name) for name in ("settled", "oldest", "repaired", "full_check")}
        money = self.money and {
            "run": self.money.run,
            "started": self.money.started.isoformat(),
            "checked": self.money.checked,
            "wrong": self.money.wrong,
        }
        return {
            **{name: time and time.isoformat() for name, time in times.items()},
            "behind_seconds": int(self.behind.total_seconds()),
            "stuck": self.stuck,
            "more": self.more,
            "money": money,
            "wrong_since": self.wrong_since and self.wrong_since.isoformat(),
        }


def repairs(reading: Reading) -> list[Repair]:
    """The runs of transaction_repair that were read, newest first."""
    return [parse_repair(run) for run in reading.runs if run["job"] == JOB]


def parse_repair(run: Mapping[str, Any]) -> Repair:
    """The repair of *run*, a summary of transaction_repair."""
    totals = run["totals"]
    started = from_millis(run["started"])
    done = totals.get("finished", 0), totals.get("dropped", 0)
    figures = run.get("figures", {})
    full = whole(figures)
    # What is kept of a run that failed has none (lowtide.store.runs).
    intervals = tuple((start, end) for table in run["tables"] for start, end in table.get("intervals", ()))
    return Repair(run["run"], started, run["execute"], run["state"], full, *done, *money_figures(figures), intervals)


def uncleared(repairs: Iterable[Repair]) -> list[Repair]:
    """Of *repairs*, newest first, those that found wrong money where no later check has cleared that.

    What a check of all finished transactions found, only another such clears: one of what was written since does not
    see it again. What that one found, the next of its kind does see again.
    """
    wrong, since_is_right = [], False
    for repair in repairs:
        if repair.wrong and (repair.full or not since_is_right):
            wrong.append(repair)
        elif repair.wrong == 0:
            if repair.full:
                break
            since_is_right = True
    return wrong


def ledger_status(reading: Reading) -> LedgerStatus | None:
    """None where there is no ledger, or its index cannot be read."""
    if reading.ledger is None or reading.ledger.problem:
        return None
    mark = reading.ledger.settled
    runs = repairs(reading)
    settled = time_or_none(mark.mark)
    return LedgerStatus(
        settled,
        reading.at - (settled or reading.ledger.oldest or reading.at),
        reading.ledger.stuck,
        reading.ledger.more,
        reading.ledger.oldest,
        time_or_none(mark.at),
        time_or_none(mark.full_at),
        next(iter(runs), None),
        next(iter(uncleared(runs)), None) or next((r for r in runs if r.checked is not None), None),
        time_or_none(mark.wrong_at),
    )


def wrong_money(run: Mapping[str, Any]) -> bool:
    """Whether the run of *run*, a summary, found money that does not add up."""
    return run["job"] == JOB and bool(parse_repair(run).wrong)


def status_rows(s: LedgerStatus, now: datetime) -> list[tuple[str, str]]:
    """How the ledger stands, for people: what, and how it is."""
    settled = f"{moment_text(s.settled)}, {age_text(s.behind)} ago" if s.settled else "never"
    since = f", the oldest of {moment_text(s.oldest)}" if s.oldest else ""
    last = f"{moment_text(s.repaired)}, {age_text(now - s.repaired)} ago" if s.repaired else "never"
    return [
        ("all transactions are over that began before", settled),
        ("older than the grace and perhaps not over", f"{stuck_text(s)}{since}" if s.stuck else "none"),
        ("last repair", last),
        ("money", _money(s.money, s.wrong_since)),
        ("last full check", moment_text(s.full_check) if s.full_check else "never"),
    ]


def _money(check: Repair | None, wrong_since: datetime | None) -> str:
    if wrong_since and not (check and check.wrong):
        return f"does not add up, as a repair found at {moment_text(wrong_since)}; no full check since has cleared that"
    if check is None or check.checked is None:
        return "no check among the runs that were read"
    found = "did not get to its end" if check.wrong is None else f"{check.wrong:,} wrong" if check.wrong else "adds up"
    return f"{found}; {check.checked:,} finished transactions were checked at {moment_text(check.started)}"


def stuck_text(s: LedgerStatus) -> str:
    """How many transactions are stuck, as far as they were counted."""
    return f"{s.stuck:,}{' or more' if s.more else ''} transaction{'' if s.stuck == 1 else 's'}"


def time_or_none(at: int) -> datetime | None:
    """The time of *at*, ms; None for 0: never."""
    return from_millis(at) if at else None
