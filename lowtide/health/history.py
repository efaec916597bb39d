"""History GC: how far each table's history is removed, what keeps the mark back, the holds, and what the runs
removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lowtide.config import Config, Mode
from lowtide.errors import StoreError
from lowtide.health.reading import Reading
from lowtide.history.mark import By, Hold, Limit, at_most, limits, mark_of
from lowtide.run.summary import looked_at
from lowtide.store.records import Bound, History
from lowtide.tables.inventory import Kind
from lowtide.values.clock import Clock, from_millis
from lowtide.values.durations import duration_text
from lowtide.values.text import moment_text, timestamp_text

JOB = "history_gc"


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
    return [_status(known.get(t, History(t)), removed.get(t, []), reading, config) for t in sorted(tables)]


def removals(reading: Reading) -> list[Removal]:
    """What the runs that were read removed, or planned to: by run and table, newest first."""
    found = []
    for run in reading.runs:
        if run["job"] != JOB:
            continue
        started = from_millis(run["started"])
        for t in filter(looked_at, run["tables"]):
            counts = t["counts"]
            numbers = (counts["deleted"], counts.get("markers", 0), counts.get("bytes_removed", 0))
            found.append(Removal(t["table"], run["run"], started, bool(t.get("execute")), *numbers))
    return found


def _status(history: History, removed: Sequence[Removal], reading: Reading, config: Config) -> HistoryStatus:
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
        time_of(history.about),
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
            bound_by=bound_text(bound),
            holds=[h for h in reading.holds if h.table == table],
        )
    except StoreError:  # a counter without any sample of its time
        return None, (), 0
    mark, holding = mark_of(found)
    return mark, tuple(holding), min(at_most(limit.timestamp) for limit in found if limit.by is By.AGE)


def bound_text(bound: Bound | None) -> str:
    """What holds the prune bound, in short."""
    if bound is None:
        return "never collected"
    if not bound.blockers:
        return "as collected last"
    first = bound.blockers[0]
    more = f" and {len(bound.blockers) - 1} more" if len(bound.blockers) > 1 else ""
    return f"{first['table']} {first['keys'] or ''}: {first['reason']}{more}".replace(" :", ":").strip()


def time_of(about: Mapping[str, Any]) -> datetime | None:
    """When a mark was applied or announced, as it was recorded."""
    return from_millis(about["at"]) if about.get("at") else None


def kept_back(status: HistoryStatus) -> str:
    """What keeps a table's mark from moving on, with what would move it; for people."""
    if status.possible is None:
        return (
            "not known: the oracle counts, and no sample of its time is recorded yet (watermark_collection keeps them)"
        )
    return "; ".join(_limit_text(limit, status.table) for limit in status.held_by)


def _limit_text(limit: Limit, table: str) -> str:
    if limit.hold:
        return (
            f"{limit.what}, since {limit.hold.taken:%Y-%m-%d %H:%M}, until {moment_text(limit.hold.expires)} "
            f"({limit.remedy})"
        )
    if limit.by is By.AGE:
        return f"{limit.what} (tables.{table}.{limit.what.split()[0].rstrip(':')})"
    return limit.what


def mark_text(status: HistoryStatus, clock: Clock) -> str:
    """A table's applied mark for people."""
    return timestamp_text(status.applied, clock) if status.applied else "never"


def hold_text(hold: Hold, reading: Reading) -> tuple[str, ...]:
    """A hold for people: table, id, read point, owner, reason, since when, until when."""
    until = moment_text(hold.expires) + ("" if hold.counts(reading.at) else ", expired")
    since = moment_text(hold.taken)
    return (hold.table, hold.id, timestamp_text(hold.timestamp, reading.clock), hold.owner, hold.reason, since, until)
