"""History GC: what keeps history longer than its age, what is not removed by itself, runs that came to no end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from lowtide.config import Config, Mode
from lowtide.health.bound import COLLECT
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.history import JOB, HistoryStatus, bound_text, history_statuses, time_of
from lowtide.health.reading import Reading
from lowtide.history.mark import By
from lowtide.store.history import ANNOUNCED_FOR
from lowtide.values.clock import Clock
from lowtide.values.text import age_text, distance_text, moment_text, names_text, timestamp_text

#: Tables named in commands; for more there is one command for all.
_COMMANDS = 5


def held(reading: Reading, config: Config) -> Iterator[Finding]:
    """Holds that keep history longer than its age: one finding a table, however many they are and whatever else is
    there.
    """
    for s in _held_back(reading, config):
        holds = s.holds
        if holds:
            since = min(hold.taken for hold in holds)
            texts = [
                f"{hold.owner} holds it until {moment_text(hold.expires)} ({hold.id}): "
                f"{hold.reason.strip().rstrip('.')}"
                for hold in holds
            ]
            others = [f"{limit.what} is no further" for limit in s.held_by if not limit.hold]
            owners = list(dict.fromkeys(hold.owner for hold in holds))
            many = len(holds) > 1
            yield Finding(
                Cause.HISTORY_HELD,
                Severity.WARNING if reading.at - since >= config.health.stuck_after else Severity.NOTE,
                _stays(s.table, min(hold.timestamp for hold in holds), reading.clock),
                "; ".join([*texts, *others]),
                f"Wait until {'they expire' if many else 'it expires'}; or, if {' and '.join(owners)} "
                f"need{'' if len(owners) > 1 else 's'} it no more, release {'them' if many else 'it'}, then run "
                "history_gc",
                (
                    *(f"lowtide hold release {s.table} {hold.id}" for hold in holds if not hold.of_restore),
                    *_again([s.table]),
                ),
                since,
                (s.table,),
            )


def blocked(reading: Reading, config: Config) -> Iterator[Finding]:
    """What is common to all tables and keeps history longer than its age: the prune bound, the low watermark."""
    back = [s for s in _held_back(reading, config) if not s.holds]  # those with holds are in the holds' finding
    for by in (By.BOUND, By.LOW_WATERMARK):
        tables = [s.table for s in back if any(limit.by is by for limit in s.held_by)]
        if tables:
            yield _blocked(by, tables, reading, config)


def _blocked(by: By, tables: Sequence[str], reading: Reading, config: Config) -> Finding:
    bound = reading.bound
    if by is By.BOUND:
        at, since = (bound.value, bound.since or bound.at) if bound else (0, None)
        holding = list(dict.fromkeys(b["table"] for b in (bound.blockers if bound else ()) if b["table"]))
        why = f"the prune bound stands there ({bound_text(bound)})"
        remedy = "Clean what holds the bound, collect, then run history_gc"
        names = [f" --table {t}" for t in holding] if len(holding) <= _COMMANDS else [""]
        commands = tuple(f"lowtide run orphan_cleanup{name} --execute" for name in names or [""])
        commands = (*commands, COLLECT, *_again(tables))
    else:
        at, since = reading.recorded or (reading.low_watermark or 0, None)
        at = at if reading.low_watermark is None else reading.low_watermark
        why, commands = "the oracle's low watermark stands there", _again(tables)
        remedy = (
            "See that transactions commit, or set a smaller conflictMapSize in the oracle's configuration; then "
            "run history_gc"
        )
    stuck = since is not None and reading.at - since >= config.health.stuck_after
    return Finding(
        Cause.HISTORY_BLOCKED,
        Severity.WARNING if stuck else Severity.NOTE,
        _stays(names_text(tables), at, reading.clock),
        why,
        remedy,
        commands,
        since,
        tuple(tables),
    )


def _stays(tables: str, at: int, clock: Clock) -> str:
    since = f"The history of {tables} from {timestamp_text(at, clock)} on" if at else f"All history of {tables}"
    return f"{since} stays longer than its age"


def _held_back(reading: Reading, config: Config) -> Iterator[HistoryStatus]:
    """Where Omid's own compactor removes history nothing keeps it back."""
    by_omid = _by_omid(reading)
    return (
        s for s in history_statuses(reading, config) if s.active and s.held_by and not s.aged and s.table not in by_omid
    )


def _by_omid(reading: Reading) -> set[str]:
    return {e.table for e in reading.inventory if e.compactor}


def never(reading: Reading, config: Config) -> Iterator[Finding]:
    """Tables with history that could go and never did: no fault, but worth to be known."""
    found = [s for s in history_statuses(reading, config) if not s.applied and s.possible and s.removed is None]
    if found:
        tables = [s.table for s in found]
        dry = [s.table for s in found if s.mode is Mode.DRY_RUN]
        why = "history_gc never acted on them" if len(tables) > 1 else "history_gc never acted on it"
        if dry:
            of = "their" if len(dry) > 1 else "its"
            why += f"; {of} history_mode is dry-run, so scheduled runs only plan" if dry == tables else ""
        yield Finding(
            Cause.HISTORY_NEVER,
            Severity.NOTE,
            f"No history of {names_text(tables)} was ever removed",
            why,
            "Look at the plan of a dry run; if that is to go, act"
            + (", and set history_mode to execute to have it done by itself" if dry else ""),
            (*(c.removesuffix(" --execute") for c in _again(tables)), *_again(tables)),
            tables=tuple(tables),
            setting=_setting(dry) if dry else None,
        )


def by_hand(reading: Reading, config: Config) -> Iterator[Finding]:
    """Tables whose history was removed by hand, and that scheduled runs only plan for."""
    by_omid = _by_omid(reading)
    dry = [
        s.table
        for s in history_statuses(reading, config)
        if s.applied and s.mode is Mode.DRY_RUN and s.table not in by_omid
    ]
    if dry:
        yield Finding(
            Cause.DRY_RUN,
            Severity.NOTE,
            f"The history of {names_text(dry)} is not removed by itself",
            f"{'their' if len(dry) > 1 else 'its'} history_mode is dry-run: scheduled and backfilled runs only plan",
            f"Look at a dry run's plan; if it is right, set {_setting(dry)} to execute",
            tables=tuple(dry),
            setting=_setting(dry),
        )


def overdue(reading: Reading, config: Config) -> Iterator[Finding]:
    """Tables whose mark could move on, and that no run has worked on for ``health.overdue_after``."""
    late: list[tuple[HistoryStatus, datetime]] = []
    for s in history_statuses(reading, config):
        last = max((t for t in (s.applied_at, s.removed.started if s.removed else None) if t), default=None)
        moves = s.possible is not None and s.possible > s.applied
        if s.applied and s.mode is Mode.EXECUTE and moves and last and reading.at - last >= config.health.overdue_after:
            late.append((s, last))
    if late:
        since = min(last for _, last in late)
        tables = [s.table for s, _ in late]
        most = max((s.possible or 0) - s.applied for s, _ in late)
        yield Finding(
            Cause.OVERDUE,
            Severity.WARNING,
            f"Nothing removes the history of {names_text(tables)}",
            f"history_gc has not acted for {age_text(reading.at - since)}, and the mark could move on by "
            f"{distance_text(most, reading.clock)}",
            f"Run it now; if Airflow should have, see that its DAG is not paused (airflow dags unpause {JOB}) and that "
            "its runs start",
            _again(tables),
            since,
            tuple(tables),
        )


def unfinished(reading: Reading, config: Config) -> Iterator[Finding]:  # noqa: ARG001 - every check is called alike
    """Marks that a run announced and never applied: holds before them are refused all the same."""
    for h in reading.histories:
        at = time_of(h.intent)
        gone = reading.listed and h.table not in reading.listed
        if h.intended > h.applied and at and reading.at - at >= ANNOUNCED_FOR and not gone:
            yield Finding(
                Cause.HISTORY_UNFINISHED,
                Severity.WARNING,
                f"A run of history_gc announced the mark {timestamp_text(h.intended, reading.clock)} for {h.table} and "
                "never applied it",
                f"run {h.intent.get('run', '')} ended in between; holds before that mark are refused until another run "
                "is done",
                "Run it again",
                _again([h.table]),
                at,
                (h.table,),
            )


def _again(tables: Sequence[str]) -> tuple[str, ...]:
    names = "".join(f" --table {t}" for t in tables) if len(tables) <= _COMMANDS else ""
    return (f"lowtide run {JOB}{names} --execute",)


def _setting(tables: Sequence[str]) -> str:
    return f"tables.{tables[0]}.history_mode" if len(tables) == 1 else "defaults.history_mode"
