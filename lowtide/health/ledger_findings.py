"""The ledger: transactions that are not over, repairs that do not run, money that does not add up."""

from __future__ import annotations

from collections.abc import Iterator

from lowtide.config import Config, Mode
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.ledger import (
    JOB,
    LedgerStatus,
    Repair,
    ledger_status,
    repairs,
    stuck_text,
    time_or_none,
    uncleared,
)
from lowtide.health.reading import Reading
from lowtide.ledger.model import Table
from lowtide.values.text import age_text, moment_text

_REPAIR = f"lowtide run {JOB} --execute"
_FULL = f"lowtide run {JOB} --full --execute"
_RUNS = f"lowtide runs --job {JOB}"
_WRITTEN_DOWN = (
    "a repair found that, or that finished transactions are gone; no full check of a repair that acts has cleared it "
    "since"
)


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
    """Money that a check found made or lost, and that no later one has cleared: of all finished transactions, if that
    was one of all.
    """
    wrong = uncleared(repairs(reading))
    at = reading.ledger.settled.wrong_at if reading.ledger else 0
    if wrong or at:
        yield Finding(
            Cause.MONEY,
            Severity.ALARM,
            "The ledger's money does not add up",
            _wrong_text(wrong[0], reading) if wrong else _WRITTEN_DOWN,
            "Look at each transaction that the run names (lowtide ledger show ID): somebody wrote to the tables behind "
            "the ledger's back; undo that, then repair with a full check",
            (_RUNS, _FULL),
            wrong[-1].started if wrong else time_or_none(at),
            _tables(config),
        )


def _wrong_text(newest: Repair, reading: Reading) -> str:
    run = next(run for run in reading.runs if run["run"] == newest.run)
    named = [p for t in run["tables"] for p in t["problems"]]
    first = f", such as: {named[0].strip().rstrip('.')}" if named else ""
    return f"of {newest.checked:,} finished transactions {newest.wrong:,} did not move their amount exactly once{first}"


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
            f"{_anew(s, reading)}{_and_stuck(s)}{so}",
            "Repair" + (", and set its mode to execute to have that done by itself" if dry else ""),
            (_REPAIR,),
            s.oldest,
            _tables(config),
            setting=setting,
        )
    elif s.behind >= config.health.unsettled_after:
        yield _unsettled(s, reading, config, so, setting)


def _anew(s: LedgerStatus, reading: Reading) -> str:
    """Why there is no settled mark."""
    acted = s.repaired or next((repair.started for repair in repairs(reading) if repair.execute), None)
    if acted is None:
        return f"{JOB} never acted"
    return (
        f"{JOB} acted last at {moment_text(acted)}, and there is no settled mark: no run without --from got to its end "
        "since, or the mark began anew (lowtide ledger mend, or somebody took it off)"
    )


def _unsettled(s: LedgerStatus, reading: Reading, config: Config, so: str, setting: str | None) -> Finding:
    what = f"The transactions of the ledger are over up to {moment_text(s.settled)} only"
    severity = Severity.ALARM if s.behind >= config.health.stuck_after else Severity.WARNING
    oldest = s.oldest
    # By the runs: the mark's own time is moved by those of other intervals too.
    tried = next((r for r in repairs(reading) if r.looked_at(oldest)), None) if oldest is not None else None
    if tried is not None:
        return Finding(
            Cause.UNSETTLED,
            severity,
            what,
            f"{stuck_text(s)} that began at {moment_text(oldest)} or later cannot be ended, as a repair found at "
            f"{moment_text(tried.started)}",
            "Do what the problems of the last repair say, then repair with a full check",
            (_RUNS, _FULL),
            s.settled,
            _tables(config),
        )
    if s.repaired is None:
        last = "never acted"
    elif oldest is not None and s.repaired - config.ledger.grace > oldest:
        last = f"acted last at {moment_text(s.repaired)}, and none of its runs that were read went so far back"
    else:
        last = f"has not acted for {age_text(reading.at - s.repaired)}"
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
    at = time_or_none(mark.moved_back_at) if mark else None
    if mark and at and reading.at - at < config.health.stuck_after:
        what = f"The settled mark was moved back from {moment_text(time_or_none(mark.moved_back_from))}"
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


def _and_stuck(s: LedgerStatus) -> str:
    return f", and {stuck_text(s)} older than the grace may not be over" if s.stuck else ""


def _tables(config: Config) -> tuple[str]:
    """The ledger's table by which its settings go."""
    return (f"{config.ledger.prefix}{Table.TRANSACTIONS}",)
