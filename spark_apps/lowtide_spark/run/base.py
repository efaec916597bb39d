"""What a run was asked, and what it works with."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from lowtide.cleaning.facts import Region
from lowtide.cleaning.planning import Request
from lowtide.config import Budget, Config, Mode
from lowtide.run import rate
from lowtide.run.approval import Approved
from lowtide.run.summary import Summary
from lowtide.store.records import Journal
from lowtide.store.state import StateStore
from lowtide_spark.frames.store import Store
from lowtide_spark.frames.writing import Life


@dataclass
class RunBase:
    """One run of a job: what was asked, the store, the state, and the summary that grows."""

    options: argparse.Namespace
    config: Config
    store: Store
    request: Request
    summary: Summary
    #: The plan that the run is held to, see :mod:`lowtide.run.approval`.
    approved: Approved | None = None
    #: When the low watermark was read, by HBase's clock where the run may write: the oracle had given it out by then.
    read_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    #: Whether the job promises to write nothing to the store at all: no record, no summary, no HBase snapshot that was
    #: not asked for.
    read_only: bool = False
    #: How often the records had been reset when the low watermark was read.
    generation: int = 0
    #: The commit table as it was then.
    commit_table_life: Life = field(default_factory=lambda: Life("", 0))
    #: How far the oracle's clock is ahead of HBase's, as far as that is known; negative: behind.
    oracle_ahead: timedelta = timedelta()
    _journal: Journal | None = field(default=None, init=False, repr=False)
    #: When the phase that is booked next began.
    phase_started: float = field(default_factory=time.monotonic)

    @property
    def acting(self) -> bool:
        """Whether the run may write to the store."""
        return bool(self.options.execute or self.options.as_configured)

    def state(self) -> StateStore:
        """The state table, past the gateway."""
        return self.store.state()

    def phase(self, name: str) -> None:
        """Book the time since the last call under *name*."""
        now = time.monotonic()
        self.summary.phases[name] = round(self.summary.phases.get(name, 0.0) + now - self.phase_started, 2)
        self.phase_started = now
        print(f"{self.summary.job}: {name} took {self.summary.phases[name]} s", flush=True)

    def executes(self, table: str) -> bool:
        """Whether this run acts on *table*, or plans only."""
        if self.options.as_configured:
            settings = self.config.table(table)
            return (settings.history_mode if self.summary.job == "history_gc" else settings.mode) is Mode.EXECUTE
        return bool(self.options.execute)

    def note_reading(self, table: str, regions: Sequence[Region]) -> None:
        """Warn where reading these *regions* of *table* from end to end takes longer than a day at its rate, or than
        Airflow lets the run be; of a run that reads a share of them, that share. Not where one row is asked for.
        """
        if getattr(self.options, "row", None) is None:
            size = sum(region.store_bytes for region in regions) * (self.options.sample or 1)
            self._note(rate.slow_reading(table, round(size), self.store.rate(table), self._stopped_after))

    def note_writing(self, table: str, mutations: int) -> None:
        """Warn where writing so many *mutations* takes longer than that at its rate."""
        self._note(rate.slow_writing(table, mutations, self.store.rate(table), self._stopped_after))

    @property
    def _stopped_after(self) -> int | None:
        """After how many seconds Airflow stops this run; None: it did not submit it, or lets it be."""
        text = self.summary.context.get(rate.JOB_TIMEOUT, "")
        return int(text) if text.isdecimal() else None

    def _note(self, note: str) -> None:
        if note:
            self.summary.notes.append(note)
            print(f"{self.summary.job}: {note}", flush=True)

    def permitted(self, *tables: str) -> bool:
        """Whether nothing stands against writing to *tables*. If something does, the run says so: as a problem, where a
        person asked for it with ``--execute``; else as a note, for it is no failure of a scheduled run.
        """
        why = self.store.objection(*tables)
        if why:
            (self.summary.problems if self.options.execute else self.summary.notes).append(why)
        return not why

    def budget(self, table: str) -> Budget:
        """The table's budget, with the arguments over the configuration."""
        changes = {"rows": self.options.budget_rows, "share": self.options.budget_share}
        given = {name: value for name, value in changes.items() if value is not None}
        return self.config.table(table).budget.model_copy(update=given)
