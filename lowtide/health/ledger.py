"""The ledger: how far it is settled, what is stuck, and whether its money adds up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from lowtide.config import Config, Mode
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.reading import Reading
from lowtide.ledger.model import Table
from lowtide.ledger.settled import money_figures
from lowtide.values.clock import from_millis
from lowtide.values.text import age_text, moment_text

JOB = "transaction_repair"
_REPAIR = f"lowtide run {JOB} --execute"
_FULL = f"lowtide run {JOB} --full --execute"
_RUNS = f"lowtide runs --job {JOB}"


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
    finished: int
    dropped: int
    checked: int | None
    wrong: int | None


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
    #: The newest run that was read, and the newest with a money check.
    last: Repair | None
    money: Repair | None

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
        }


def repairs(reading: Reading) -> list[Repair]:
    """The runs of transaction_repair that were read, newest first."""
    return [_repair(run) for run in reading.runs if run["job"] == JOB]


def _repair(run: Mapping[str, Any]) -> Repair:
    totals = run["totals"]
    started = from_millis(run["started"])
    done = totals.get("finished", 0), totals.get("dropped", 0)
    return Repair(run["run"], started, run["execute"], run["state"], *done, *money_figures(run.get("figures", {})))


def ledger_status(reading: Reading) -> LedgerStatus | None:
    """None where there is no ledger, or its index cannot be read."""
    if reading.ledger is None or reading.ledger.problem:
        return None
    mark = reading.ledger.settled
    runs = repairs(reading)
    settled = _time(mark.mark)
    return LedgerStatus(
        settled,
        reading.at - (settled or reading.ledger.oldest or reading.at),
        reading.ledger.stuck,
        reading.ledger.more,
        reading.ledger.oldest,
        _time(mark.at),
        _time(mark.full_at),
        next(iter(runs), None),
        next((r for r in runs if r.checked is not None), None),
    )


def wrong_money(run: Mapping[str, Any]) -> bool:
    """Whether the run of *run*, a summary, found money that does not add up."""
    return run["job"] == JOB and bool(_repair(run).wrong)


# -- the checks


def broken(reading: Reading, config: Config) -> Iterator[Finding]:
    """An index of open transactions that cannot be read."""
    if reading.ledger is not None and reading.ledger.problem:
        yield Finding(
            Cause.LEDGER_BROKEN,
            Severity.ALARM,
            "It is not known which transactions of the ledger are over",
            reading.ledger.problem.strip().rstrip("."),
            "Correct or remove the row, then repair with a full check",
            (_FULL,),
            tables=_tables(config),
        )


def money(reading: Reading, config: Config) -> Iterator[Finding]:
    """Money that the last check found made or lost."""
    checked = [(r, run) for run in reading.runs if run["job"] == JOB and (r := _repair(run)).wrong is not None]
    wrong = list(takewhile(lambda pair: pair[0].wrong, checked))
    if wrong:
        newest, run = wrong[0]
        named = [p for t in run["tables"] for p in t["problems"]]
        first = f", such as: {named[0].strip().rstrip('.')}" if named else ""
        yield Finding(
            Cause.MONEY,
            Severity.ALARM,
            "The ledger's money does not add up",
            f"of {newest.checked:,} finished transactions {newest.wrong:,} did not move their amount exactly "
            f"once{first}",
            "Look at each transaction that the run names (lowtide ledger show ID): somebody wrote to the tables behind "
            "the ledger's back; undo that, then repair with a full check",
            (_RUNS, _FULL),
            wrong[-1][0].started,
            _tables(config),
        )


def unsettled(reading: Reading, config: Config) -> Iterator[Finding]:
    """A settled mark that is far behind: transactions are stuck, or no repair runs."""
    s = ledger_status(reading)
    if s is None:
        return
    dry = config.table(_tables(config)[0]).mode is Mode.DRY_RUN
    so = "; its mode is dry-run, so scheduled runs repair nothing" if dry else ""
    setting = f"tables.{_tables(config)[0]}.mode" if dry else None
    if s.settled is None:
        yield Finding(
            Cause.NEVER_REPAIRED,
            Severity.WARNING if s.stuck else Severity.NOTE,
            "No transaction of the ledger is known to be over",
            f"{JOB} never acted{_and_stuck(s)}{so}",
            "Repair" + (", and set its mode to execute to have that done by itself" if dry else ""),
            (_REPAIR,),
            s.oldest,
            _tables(config),
            setting=setting,
        )
    elif s.behind >= config.health.unsettled_after:
        yield _unsettled(s, reading, config, so, setting)


def _unsettled(s: LedgerStatus, reading: Reading, config: Config, so: str, setting: str | None) -> Finding:
    what = f"The transactions of the ledger are over up to {moment_text(s.settled)} only"
    severity = Severity.ALARM if s.behind >= config.health.stuck_after else Severity.WARNING
    tried = s.oldest is not None and s.repaired is not None and s.repaired - config.ledger.grace > s.oldest
    if tried:
        return Finding(
            Cause.UNSETTLED,
            severity,
            what,
            f"{_count(s)} that began at {moment_text(s.oldest)} or later cannot be ended, as a repair found at "
            f"{moment_text(s.repaired)}",
            "Do what the problems of the last repair say, then repair with a full check",
            (_RUNS, _FULL),
            s.settled,
            _tables(config),
        )
    last = f"has not acted for {age_text(reading.at - s.repaired)}" if s.repaired else "never acted"
    return Finding(
        Cause.UNSETTLED,
        severity,
        what,
        f"{JOB} {last}{_and_stuck(s)}{so}",
        f"Repair now; if Airflow should have, see that its DAG is not paused (airflow dags unpause {JOB}) and that its "
        "runs start",
        (_REPAIR,),
        s.settled,
        _tables(config),
        setting=setting,
    )


def moved_back(reading: Reading, config: Config) -> Iterator[Finding]:
    """A settled mark that was wrong a short while ago."""
    mark = reading.ledger.settled if reading.ledger else None
    at = _time(mark.moved_back_at) if mark else None
    if mark and at and reading.at - at < config.health.stuck_after:
        what = f"The settled mark was moved back from {moment_text(_time(mark.moved_back_from))}"
        if mark.moved_back_from > mark.moved_back_at:
            yield Finding(
                Cause.SETTLED_BACK,
                Severity.NOTE,
                what,
                "that was a time to come: a repair had run on a machine whose clock was fast",
                "Set the clocks of the machines that run jobs right; see what waited for the mark",
                (_RUNS,),
                since=at,
                tables=_tables(config),
            )
            return
        yield Finding(
            Cause.SETTLED_BACK,
            Severity.NOTE,
            what,
            "a repair found transactions before it that were not over: a client's clock is slow, or it paused for "
            f"longer than the grace between its first two writes ({config.ledger.grace})",
            "Set the clients' clocks right; if they do pause so long, raise ledger.grace",
            since=at,
            tables=_tables(config),
            setting="ledger.grace",
        )


def dry_run(reading: Reading, config: Config) -> Iterator[Finding]:
    """A ledger that was repaired by hand, and that scheduled runs do not repair."""
    s = ledger_status(reading)
    (name,) = _tables(config)
    if s and s.settled and config.table(name).mode is Mode.DRY_RUN:
        yield Finding(
            Cause.DRY_RUN,
            Severity.NOTE,
            "The ledger is not repaired by itself",
            f"the mode of {name} is dry-run: scheduled runs repair nothing",
            f"Set tables.{name}.mode to execute",
            tables=(name,),
            setting=f"tables.{name}.mode",
        )


def _tables(config: Config) -> tuple[str]:
    """The ledger's table by which its settings go."""
    return (f"{config.ledger.prefix}{Table.TRANSACTIONS}",)


def _time(at: int) -> datetime | None:
    return from_millis(at) if at else None


# -- words


def _count(s: LedgerStatus) -> str:
    return f"{s.stuck:,}{' or more' if s.more else ''} transaction{'' if s.stuck == 1 else 's'}"


def _and_stuck(s: LedgerStatus) -> str:
    return f", and {_count(s)} older than the grace may not be over" if s.stuck else ""


def facts(s: LedgerStatus, now: datetime) -> list[tuple[str, str]]:
    """How the ledger stands, for people: what, and how it is."""
    settled = f"{moment_text(s.settled)}, {age_text(s.behind)} ago" if s.settled else "never"
    since = f", the oldest of {moment_text(s.oldest)}" if s.oldest else ""
    last = f"{moment_text(s.repaired)}, {age_text(now - s.repaired)} ago" if s.repaired else "never"
    return [
        ("all transactions are over that began before", settled),
        ("older than the grace and perhaps not over", f"{_count(s)}{since}" if s.stuck else "none"),
        ("last repair", last),
        ("money", _money(s.money)),
        ("last full check", moment_text(s.full_check) if s.full_check else "never"),
    ]


def _money(check: Repair | None) -> str:
    if check is None or check.checked is None:
        return "no check among the runs that were read"
    found = "did not get to its end" if check.wrong is None else f"{check.wrong:,} wrong" if check.wrong else "adds up"
    return f"{found}; {check.checked:,} finished transactions were checked at {moment_text(check.started)}"
