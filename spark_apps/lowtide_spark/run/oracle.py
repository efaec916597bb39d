"""The low watermark of a run, and the clocks that it goes by: read first, checked again before anything is done."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property

from lowtide.errors import GatewayError, StoreError, UsageError, WatermarkError
from lowtide.run.jobs import INSPECTIONS
from lowtide.store import oracle_probe
from lowtide.store.gateway import allotted, check_entries_kept, expiring_entries, failures, low_watermark
from lowtide.store.state import StateStore
from lowtide.values.clock import Clock, SampledClock, WorldClock, clock_contradiction, on_world_clock
from lowtide.values.skew import machine_apart, oracle_ahead, oracle_apart, refusal
from lowtide_spark.frames.store import explained
from lowtide_spark.frames.writing import Life
from lowtide_spark.run.base import RunBase

#: The jobs that change nothing in the store, whatever their arguments.
_READING = ("balances", *INSPECTIONS)
_ORACLE_SECONDS = 5.0


@dataclass
class OracleChecks(RunBase):
    """The oracle's low watermark and the clocks, as far as a run may go by them."""

    def check_clock(self) -> None:
        """Before anybody's table is written to: this machine's clock and HBase's agree. From here on the run goes by
        HBase's.

        A run that only plans says what is wrong and goes on, if there is a state table to ask by.

        Raises:
            StoreError: the clocks differ.
        """
        if self.read_only or self.summary.job in _READING:
            return
        state = self.state()
        if self.acting:
            state.create()
        elif not state.exists():
            return
        here, server = datetime.now(UTC), state.server_time()
        self.request = replace(self.request, now=server)
        self._refuse(machine_apart(here, server))

    def read_low_watermark(self, doubts: list[str] | None = None) -> int:
        """Read the low watermark, refuse it where it is missing or has gone back, or where the commit table may have
        lost entries; remember it where the run may write.

        First of all reads: what is listed and read later can hold no commit at or below it that is not yet in the
        commit table.

        Args:
            doubts: of a job that acts on nothing: takes the reasons not to trust the low watermark, instead of the
                refusal.
        """
        with _doubting(doubts):
            self._check_oracle()
        with _doubting(doubts):
            self._check_entries_kept()  # before the low watermark, which is gone where that expires
        life = self._commit_table_life()
        stated = life.stated
        watermark = self._stored_low_watermark()
        with _doubting(doubts):
            if wrong := clock_contradiction(self.config.omid.clock, watermark):
                raise UsageError(wrong)
        self.read_at = datetime.now(UTC)
        state = self.state()
        with _doubting(doubts):
            self._check_recorded(state, watermark, stated)
        ahead = oracle_ahead(allotted(state.connection, self.config), self.request.now)
        self.oracle_ahead = ahead or timedelta()
        # Before it is remembered: one that is far ahead would have every right one after it refused.
        self._refuse(oracle_apart(ahead, watermark, self.request.now), doubts)
        if self.acting:
            state.create()
            state.record_low_watermark(watermark, stated)
            self.read_at = state.server_time()
        self.generation = state.generation()
        self.commit_table_life = life
        self.summary.low_watermark = watermark
        return watermark

    def check_low_watermark_again(self) -> None:
        """Before acting and before recording: the oracle may have been made anew, or the records reset, since the run
        began.

        Raises:
            StoreError: the commit table may have lost entries, or loses them, or is in another life than when this
                run began, whatever was said of it since.
            WatermarkError: the low watermark is below one recorded, such as that which this run began with; or the
                records were reset.
        """
        state = self.state()
        generation = state.generation()
        self._check_entries_kept()
        life = self._commit_table_life()
        self._check_recorded(state, self._stored_low_watermark(), life.stated)
        if generation != self.generation:
            msg = (
                f"the records were reset since this run began ({self.generation} resets then, {generation} now), as "
                "after an oracle was made anew; nothing more is done or recorded. Run again"
            )
            raise WatermarkError(msg)
        if life != self.commit_table_life:
            # Somebody has said that it is whole: as it is now, not as it was read.
            msg = (
                f"{life.table} was disabled and enabled, restored or made anew since this run began; nothing more is "
                "done or recorded. Run again"
            )
            raise StoreError(msg)

    def limited(self, watermark: int) -> int:
        """How far to work: *watermark*, or as far as the plan did that was approved. An older low watermark is as safe
        as a new one.
        """
        return watermark if self.approved is None else min(watermark, self.approved.low_watermark)

    @property
    def world_clock(self) -> bool:
        """Whether the oracle counts a world clock's milliseconds (known once the low watermark was read)."""
        return on_world_clock(self.config.omid.clock, self.summary.low_watermark)

    @cached_property
    def clock(self) -> Clock:
        """The oracle's clock."""
        if self.world_clock:
            return WorldClock()
        return SampledClock(self.state().samples())

    def _refuse(self, apart: str | None, doubts: list[str] | None = None) -> None:
        """Stop where clocks are *apart*; a job that collects its *doubts* goes on with that, and a run that only plans
        notes it.
        """
        if apart is None:
            return
        if doubts is not None:
            doubts.append(apart)
        elif self.acting:
            raise StoreError(refusal(apart))
        else:
            self.summary.notes.append(f"{apart}; a run that acts is refused")

    def _check_recorded(self, state: StateStore, watermark: int, stated: int) -> None:
        """Refuse a commit table of another life, and a low watermark that went back, now or before; a run that acts
        remembers that: the oracle will pass the recorded one again. What is told first is the commit table: where it
        came back, the low watermark is that of then, and the oracle may have forgotten nothing.
        """
        gone_back = None
        try:
            state.check_low_watermark(watermark)
        except WatermarkError as error:
            gone_back = error
            current = self._stored_low_watermark()  # another run may have recorded a newer one than was read here
            if self.acting:
                state.remember_gone_back(current)
        state.check_commit_table(self.config.omid.commit_table, stated)
        if gone_back is not None:
            state.check_low_watermark(current)

    def _check_entries_kept(self) -> None:
        """Refuse a commit table that loses entries by itself; a run that acts remembers that: with the TTL taken off,
        nothing in HBase tells that it was there.
        """
        state = self.state()
        expired = expiring_entries(state.connection, self.config)
        if self.acting and self.config.omid.commit_family in expired:
            state.doubt_commit_table()
        check_entries_kept(expired, self.config)

    def _commit_table_life(self) -> Life:
        return self.store.life(self.config.omid.commit_table)

    def _stored_low_watermark(self) -> int:
        # A row by its key: Spark would take longer to plan the read of it than HBase takes to answer.
        name = self.config.omid.commit_table
        try:
            return low_watermark(self.store.connections.one(), self.config, listed=[name.encode()])
        except failures() as error:
            raise explained(error, name) from error

    def _check_oracle(self) -> None:
        if problem := oracle_probe.unreachable(self.config.omid.oracle, _ORACLE_SECONDS):
            msg = (
                f"{problem}: whether its low watermark still holds cannot be known; "
                "start it, or set omid.oracle (an empty list leaves the check out)"
            )
            raise GatewayError(msg)


@contextmanager
def _doubting(doubts: list[str] | None) -> Iterator[None]:
    try:
        yield
    except (StoreError, UsageError) as error:
        if doubts is None:
            raise
        doubts.append(str(error))
