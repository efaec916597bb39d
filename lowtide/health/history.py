"""History GC: how far each table's history is removed, what keeps the mark back, the holds, and what the runs
removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lowtide.config import Config, Mode
from lowtide.errors import StoreError
from lowtide.health.bound import COLLECT
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.reading import Reading
from lowtide.history.mark import By, Hold, Limit, at_most, limits, mark_of
from lowtide.store.state import Bound, History
from lowtide.tables.inventory import Kind
from lowtide.values.clock import Clock, from_millis
from lowtide.values.durations import duration_text
from lowtide.values.text import age_text, distance_text, moment_text, names_text, timestamp_text

JOB = "history_gc"
#: Between announcing a mark and applying it a run reads a few rows; what takes longer has ended in between.
_UNDER_WAY = timedelta(hours=1)
#: Tables named in commands; for more there is one command for all.
_COMMANDS = 5


@dataclass(frozen=True, slots=True)
class Removal:
    """What one run of history_gc removed from one table or, in a dry run, would have. *size*: bytes, which HBase
    gives back when it compacts.
    """

    table: str
    run: str
    started: datetime
    execute: bool
    versions: int
    markers: int
    size: int

    def to_json(self) -> dict[str, Any]:
        """A plain mapping, without the table."""
        started = self.started.isoformat()
        return {"run": self.run, "started": started, "versions": self.versions, "bytes": self.size}


@dataclass(frozen=True, slots=True)
class HistoryStatus:
    """How far one table's history is removed. Marks are inclusive; 0: nothing was removed, or may be."""

    table: str
    mode: Mode
    #: ``history_max_age``, as it is configured.
    age: str
    applied: int
    applied_at: datetime | None
    #: The mark that a run announced and has not applied, above the applied one; 0: none.
    intended: int
    #: Where the mark could be now; None: not known yet, by the clock.
    possible: int | None
    #: What allows no more than that.
    held_by: tuple[Limit, ...]
    #: How far the applied mark is behind where ages alone would let it be.
    behind: int
    #: The newest run that acted, among those that were read, and the newest dry run after it.
    removed: Removal | None
    reclaimable: Removal | None
    #: Bytes removed that no major compaction had dropped at the last run that acted: they are still on disk.
    uncompacted: int

    @property
    def active(self) -> bool:
        """Whether history is meant to go: it has been removed before, or scheduled runs remove it."""
        return self.applied > 0 or self.mode is Mode.EXECUTE

    @property
    def aged(self) -> bool:
        """Whether the mark is where the ages let it be."""
        return any(limit.by is By.AGE for limit in self.held_by)

    @property
    def holds(self) -> list[Hold]:
        """The holds among what keeps the mark back."""
        return [limit.hold for limit in self.held_by if limit.hold]

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; times are ISO 8601."""
        numbers = {
            name: getattr(self, name)
            for name in ("table", "age", "applied", "intended", "possible", "behind", "uncompacted")
        }
        held = [{"what": x.what, "by": x.by.value, "remedy": x.remedy, "mark": x.timestamp} for x in self.held_by]
        return {
            **numbers,
            "mode": self.mode.value,
            "applied_at": self.applied_at.isoformat() if self.applied_at else None,
            "held_by": held,
            "removed": self.removed and self.removed.to_json(),
            "reclaimable": self.reclaimable and self.reclaimable.to_json(),
        }


def history_statuses(reading: Reading, config: Config) -> list[HistoryStatus]:
    """Every transactional table that is there, by name; those that history_gc never worked on too."""
    known = {h.table: h for h in reading.histories if not reading.listed or h.table in reading.listed}
    tables = {e.table for e in reading.inventory if e.kind is Kind.TRANSACTIONAL} | set(known)
    removed: dict[str, list[Removal]] = {}
    for each in removals(reading):
        removed.setdefault(each.table, []).append(each)
    return [_standing(known.get(t, History(t)), removed.get(t, []), reading, config) for t in sorted(tables)]


def removals(reading: Reading) -> list[Removal]:
    """What the runs that were read removed, or planned to: by run and table, newest first."""
    found = []
    for run in reading.runs:
        if run["job"] != JOB:
            continue
        started = from_millis(run["started"])
        for t in run["tables"]:
            counts = t["counts"]
            numbers = (counts["deleted"], counts.get("markers", 0), counts.get("bytes_removed", 0))
            found.append(Removal(t["table"], run["run"], started, bool(t.get("execute")), *numbers))
    return found


def _standing(history: History, removed: Sequence[Removal], reading: Reading, config: Config) -> HistoryStatus:
    settings = config.table(history.table)
    age = settings.history_max_age
    possible, held_by, aged = _possible(history.table, reading, config)
    acted = next((r for r in removed if r.execute), None)
    planned = next((r for r in removed if not r.execute), None)
    if acted and planned and planned.started < acted.started:
        planned = None
    return HistoryStatus(
        history.table,
        settings.history_mode,
        age if isinstance(age, str) else duration_text(age),
        history.applied,
        _time(history.about),
        history.intended if history.intended > history.applied else 0,
        possible,
        held_by,
        max(0, aged - history.applied),
        acted,
        planned,
        reading.uncompacted.get(history.table, 0),
    )


def _possible(table: str, reading: Reading, config: Config) -> tuple[int | None, tuple[Limit, ...], int]:
    """Where the mark could be, what allows no more, and where ages alone would let it be."""
    bound = reading.bound
    recorded = reading.recorded[0] if reading.recorded else 0
    try:
        found = limits(
            ages=config.table(table).ages,
            now=reading.at,
            as_of=None,
            clock=reading.clock,
            low_watermark=recorded if reading.low_watermark is None else reading.low_watermark,
            bound=bound.value if bound else 0,
            bound_by=_bound_by(bound),
            holds=[h for h in reading.holds if h.table == table],
        )
    except StoreError:  # a counter without any sample of its time
        return None, (), 0
    mark, holding = mark_of(found)
    return mark, tuple(holding), min(at_most(limit.timestamp) for limit in found if limit.by is By.AGE)


def _bound_by(bound: Bound | None) -> str:
    if bound is None:
        return "never collected"
    if not bound.blockers:
        return "as collected last"
    first = bound.blockers[0]
    more = f" and {len(bound.blockers) - 1} more" if len(bound.blockers) > 1 else ""
    return f"{first['table']} {first['keys'] or ''}: {first['reason']}{more}".replace(" :", ":").strip()


# -- the checks


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
        why = f"the prune bound stands there ({_bound_by(bound)})"
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
        at = _time(h.intent)
        gone = reading.listed and h.table not in reading.listed
        if h.intended > h.applied and at and reading.at - at >= _UNDER_WAY and not gone:
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


def _time(about: Any) -> datetime | None:
    return from_millis(about["at"]) if about.get("at") else None


# -- words


def kept_back(standing: HistoryStatus) -> str:
    """What keeps a table's mark from moving on, with what would move it; for people."""
    if standing.possible is None:
        return (
            "not known: the oracle counts, and no sample of its time is recorded yet (watermark_collection keeps them)"
        )
    told_ = [_limit_text(limit, standing.table) for limit in standing.held_by]
    return "; ".join(told_)


def _limit_text(limit: Limit, table: str) -> str:
    if limit.hold:
        return (
            f"{limit.what}, since {limit.hold.taken:%Y-%m-%d %H:%M}, until {moment_text(limit.hold.expires)} "
            f"({limit.remedy})"
        )
    if limit.by is By.AGE:
        return f"{limit.what} (tables.{table}.{limit.what.split()[0].rstrip(':')})"
    return limit.what


def mark_text(standing: HistoryStatus, clock: Clock) -> str:
    """A table's applied mark for people."""
    return timestamp_text(standing.applied, clock) if standing.applied else "never"


def hold_text(hold: Hold, reading: Reading) -> tuple[str, ...]:
    """A hold for people: table, id, snapshot, owner, reason, since when, until when."""
    until = moment_text(hold.expires) + ("" if hold.counts(reading.at) else ", expired")
    since = moment_text(hold.taken)
    return (hold.table, hold.id, timestamp_text(hold.timestamp, reading.clock), hold.owner, hold.reason, since, until)
