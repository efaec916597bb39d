"""What a report shows: plain values, made by whoever read a store, turned into a page or terminal tables by others.
Pure.

Timestamps are the oracle's; low watermark, region watermarks and prune bound are inclusive, as everywhere. What was not
read is None or an empty tuple, and the report leaves it out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime


@dataclass(frozen=True, slots=True)
class Day:
    """A calendar day (UTC) as timestamps of the oracle, [from_ts, to_ts)."""

    date: date
    from_ts: int
    to_ts: int


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a dry run of ``orphan_cleanup`` would do to one table.

    *orphans* are cells that no commit proves (to be deleted); *unproven* are committed cells of transactions that never
    completed (to be healed).
    """

    table: str
    orphans: int
    unproven: int
    cells_read: int


@dataclass(frozen=True, slots=True)
class CommitRows:
    """Rows of the commit table whose transactions began on one day; None: after the last of the days."""

    day: date | None
    entries: int
    marks: int


@dataclass(frozen=True, slots=True)
class RegionMark:
    """How far one region is clean; *keys* are for people."""

    table: str
    keys: str
    watermark: int


@dataclass(frozen=True, slots=True)
class Observation:
    """A store at one moment."""

    at: datetime
    low_watermark: int
    bound: int | None = None
    leftovers: tuple[Leftovers, ...] = ()
    commit_table: tuple[CommitRows, ...] | None = None
    regions: tuple[RegionMark, ...] = ()
    blockers: tuple[str, ...] = ()

    @property
    def level(self) -> bool:
        """Whether all regions are equally far, and the bound with them: then no one of them holds it back."""
        return {m.watermark for m in self.regions} == {self.bound}

    @property
    def orphans(self) -> int:
        """Orphaned cells in all tables."""
        return sum(t.orphans for t in self.leftovers)

    @property
    def unproven(self) -> int:
        """Committed cells to heal in all tables."""
        return sum(t.unproven for t in self.leftovers)

    @property
    def entries(self) -> int:
        """Commit entries."""
        return sum(d.entries for d in self.commit_table or ())

    @property
    def marks(self) -> int:
        """Invalidation marks."""
        return sum(d.marks for d in self.commit_table or ())


@dataclass(frozen=True, slots=True)
class JobRun:
    """One run of a job. *day* is the day it was for; None: for no day in particular. *problems* made it red."""

    job: str
    run: str
    started: datetime
    seconds: float
    execute: bool
    state: str
    day: date | None = None
    healed: int = 0
    deleted: int = 0
    marked: int = 0
    pruned: int = 0
    finished: int = 0
    dropped: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ReadPointCheck:
    """Every table at one read point, through Omid's client: the values found, and how many differ from the model."""

    timestamp: int
    values: int
    differences: int


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """What readers see, compared with what they must see by the workload's model."""

    tables: tuple[str, ...]
    #: At each read point; the name is that of the report's JSON.
    snapshots: tuple[ReadPointCheck, ...]

    @property
    def values(self) -> int:
        """Values compared."""
        return sum(s.values for s in self.snapshots)

    @property
    def differences(self) -> int:
        """Values that are missing, too many or other than in the model."""
        return sum(s.differences for s in self.snapshots)

    @property
    def sentence(self) -> str:
        """The result in a sentence."""
        read = f"{len(self.snapshots)} read points x {len(self.tables)} tables read through Omid's client"
        if self.differences:
            return f"{read}: {self.differences:,} of {self.values:,} values differ from the model"
        return f"{read} equal the model: {self.values:,} values compared"


@dataclass(frozen=True, slots=True)
class Workload:
    """What was done to the store before anything was cleaned: how many transactions ended how."""

    seed: int
    outcomes: tuple[tuple[str, int], ...]

    @property
    def transactions(self) -> int:
        """All of them."""
        return sum(number for _, number in self.outcomes)


@dataclass(frozen=True, slots=True)
class Bank:
    """A ledger whose clients were killed: transactions by state before and after the repair, and the money after it.

    *balances* are those of the customers, *paid_in* is what the issuer has given out, net.
    """

    killed: int
    before: tuple[tuple[str, int], ...]
    after: tuple[tuple[str, int], ...]
    balances: tuple[tuple[str, int], ...]
    paid_in: int

    @property
    def total(self) -> int:
        """What all customers have."""
        return sum(balance for _, balance in self.balances)

    @property
    def left_open(self) -> int:
        """Transactions that are still neither finished nor dropped."""
        return sum(number for state, number in self.after if state not in ("finished", "dropped"))

    @property
    def sentence(self) -> str:
        """The result in a sentence."""
        same = "exactly what was paid in" if self.total == self.paid_in else f"but {self.paid_in:,} was paid in"
        return f"{self.killed} clients of the bank were killed; its customers have {self.total:,}, {same}"

    @property
    def faults(self) -> list[str]:
        """Everything that is not as it should be."""
        found = [f"{self.left_open:,} transfers are still under way"] if self.left_open else []
        found += [f"{name} has {balance:,}" for name, balance in self.balances if balance < 0]
        return found + ([self.sentence] if self.total != self.paid_in else [])


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that the page shows.

    *check* was made after the cleaning, *check_before* before it. *commands* are for the reader to go on with: (what it
    does, command or address).
    """

    title: str
    made_at: datetime
    after: Observation
    before: Observation | None = None
    days: tuple[Day, ...] = ()
    runs: tuple[JobRun, ...] = ()
    check: ModelCheck | None = None
    check_before: ModelCheck | None = None
    workload: Workload | None = None
    bank: Bank | None = None
    seconds: float | None = None
    commands: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> str:
        """All of it for programs; days and times are ISO 8601 texts."""
        return json.dumps(asdict(self), indent=2, default=lambda value: value.isoformat()) + "\n"

    @property
    def faults(self) -> list[str]:
        """Everything that is not as it should be, one sentence each; empty: all is well."""
        found = [
            f"{len(r.problems) or 'unnamed'} problem(s) in {r.job} {r.run}" for r in self.runs if r.state != "done"
        ]
        if self.before is not None:
            found += [f"{t.orphans:,} orphaned cells are left in {t.table}" for t in self.after.leftovers if t.orphans]
            found += [
                f"{t.unproven:,} unproven cells are left in {t.table}" for t in self.after.leftovers if t.unproven
            ]
        if self.check is not None and self.check.differences:
            found.append(self.check.sentence)
        return found + (self.bank.faults if self.bank else [])


def day_of(timestamp: int, days: Sequence[Day]) -> date | None:
    """The day that a start timestamp belongs to; what lies before the first day counts to it, what lies after the
    last to none.
    """
    return next((d.date for d in days if timestamp < d.to_ts), None)


def by_day(entries: Sequence[int], marks: Sequence[int], days: Sequence[Day]) -> tuple[CommitRows, ...]:
    """Commit-table rows counted by the day of their start timestamps, every day named, then those of later."""
    found = [day_of(t, days) for t in entries], [day_of(t, days) for t in marks]
    named = [*(d.date for d in days), None]
    return tuple(CommitRows(day, *(column.count(day) for column in found)) for day in named)
