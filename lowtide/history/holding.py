"""Holds on history: taken, renewed, released.

A hold and a run of history GC meet in the state table, and one of the two gives way: the run writes the mark it
intends, *then* reads the holds, then applies the mark and removes; a hold is written, *then* the mark is read.
Whichever comes first, either the run sees the hold and keeps to it, or the hold sees the mark and is refused.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from lowtide.config import State
from lowtide.errors import NAMES_OF_TABLES, GatewayError, HistoryError, LowtideError, StoreError, TableError, UsageError
from lowtide.history.mark import Hold, check_hold
from lowtide.run import tokens
from lowtide.run.summary import myself
from lowtide.store.gateway import connect, low_watermark
from lowtide.store.history import ANNOUNCED_FOR
from lowtide.store.state import StateStore
from lowtide.tables.inventory import Kind
from lowtide.values.clock import Clock, WorldClock, from_millis, is_world, on_world_clock, oracle_clock
from lowtide.values.text import moment_text, number_and_time

if TYPE_CHECKING:
    from lowtide.config import Config

#: A hold that is renewed as long as its reader lives lasts so long beyond its last renewal.
RENEWED_FOR = timedelta(minutes=10)


def take(
    config: Config,
    table: str,
    timestamp: int | None = None,
    *,
    owner: str,
    reason: str,
    lasting: timedelta,
) -> Hold:
    """Hold *table*'s history from the read point *timestamp* on (None: the oracle's low watermark now) for *lasting*.

    When it returns, every read point from there on stays readable until the hold expires, by HBase's clock, or is
    released. It is not renewed: see :func:`hold`.

    Raises:
        UsageError: no owner, no reason, or longer than ``hold_max_age``.
        TableError: there is no such table.
        HistoryError: that history is gone, or about to go, or Omid's own compactor is on the table, which keeps to no
            hold.
    """
    now = _now()
    with connect(config.hbase.thrift) as connection:
        state = StateStore(connection, config.state.table)
        watermark = low_watermark(connection, config)
        wanted = watermark if timestamp is None else timestamp
        check_unit(wanted, watermark, "a hold's timestamp", world=on_world_clock(config.omid.clock, watermark))
        new = Hold(f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}", table, wanted, owner, reason, now, now + lasting)
        check_hold(new, now, config.table(table).hold_max_age)
        _check_table(config, state, table)
        if wanted > watermark:
            msg = (
                f"a hold's timestamp is a read point that can be read: {number_and_time(wanted)} is above the low "
                f"watermark {number_and_time(watermark)}, above which nothing is removed. Leave the timestamp out: a "
                "hold at the low watermark keeps what transactions under way see, too"
            )
            raise UsageError(msg)
        if any(entry.compactor for entry in state.inventory() if entry.table == table):
            msg = (
                f"history of {table} cannot be held: Omid's own compactor is on it and removes history whatever holds "
                "there are. Take the coprocessor org.apache.omid.transaction.OmidCompactor off the table, let `lowtide "
                "run watermark_collection --execute` see it, and hold again"
            )
            raise HistoryError(msg)
        _check_elsewhere(state, new)
        state.create()
        taken = state.server_time()  # by which its end is judged: a reader's machine may be days off
        new = replace(new, taken=taken, expires=taken + lasting)
        state.add_hold(new)
        try:
            _check_mark(state, new, taken)
        except HistoryError:
            state.drop_hold(new)
            raise
        return new


def renew(config: Config, held: Hold, lasting: timedelta) -> Hold:
    """Let *held* last until *lasting* from now, by HBase's clock, though never beyond ``hold_max_age`` after it was
    taken. The hold as it is then, which the next renewal takes.

    Raises:
        HistoryError: it was released, has expired and its history is gone, or its hard maximum is reached.
    """
    with connect(config.hbase.thrift) as connection:
        state = StateStore(connection, config.state.table)
        now = state.server_time()
        ends = min(now + lasting, held.taken + config.table(held.table).hold_max_age)
        if ends <= now:
            msg = (
                f"hold {held.id} on {held.table} has reached its longest life (hold_max_age, taken "
                f"{moment_text(held.taken)}); it cannot be renewed: finish, or take a new read point"
            )
            raise HistoryError(msg)
        longer = replace(held, expires=ends)
        if not state.change_hold(held, longer):
            msg = f"hold {held.id} on {held.table} is no longer there: it was released, or expired and was cleared away"
            raise HistoryError(msg)
        _check_mark(state, longer, now)
    return longer


def release(config: Config, table: str, identity: str) -> Hold:
    """Let go of a hold, and return it as it was last; one that is renewed meanwhile is read again.

    Raises:
        HistoryError: there is none of that id, or a restore has it and may be at work.
    """
    with connect(config.hbase.thrift) as connection:
        state = StateStore(connection, config.state.table)
        while found := next((held for held in state.holds(table) if held.id == identity), None):
            _check_released(found, state)
            if state.drop_hold(found):
                # For `lowtide history advise`, as the connector counts reads; a counter's ages need its samples.
                world = on_world_clock(config.omid.clock, found.timestamp)
                read_at = WorldClock().time(found.timestamp) if world else None
                if read_at is not None:
                    state.count_read(table, _now() - read_at)
                return found
    msg = f"there is no hold {identity} on {table}; `lowtide hold list` shows those there are"
    raise HistoryError(msg)


def _check_released(held: Hold, state: StateStore) -> None:
    if held.of_restore and held.counts(state.server_time()):
        msg = (
            f"hold {held.id} on {held.table} is a restore's ({held.reason}): without it history GC could take what "
            "hides a cell while the cell comes back. It goes when the restore ends; that of a restore that was killed "
            f"goes with the next restore of the table, or expires at {moment_text(held.expires)}"
        )
        raise HistoryError(msg)


@contextmanager
def hold(
    config: Config, table: str, timestamp: int | None = None, *, reason: str, owner: str | None = None
) -> Iterator[Hold]:
    """Hold history for as long as the block runs: taken before it, renewed in the background, released after it.

    A process that dies holds nothing after :data:`RENEWED_FOR`. Where a renewal fails the block goes on, and the end
    raises: what was read since may be short of history.

    Args:
        config: of the store.
        table: name.
        timestamp: the read point; None: the low watermark now.
        reason: for whoever asks why a mark stands still.
        owner: None: this user on this machine.

    Raises:
        LowtideError: at the beginning, all that :func:`take` raises; nothing is held then.
        HistoryError: at the end: the hold was lost, and the history may have been removed before all of it was read.
        GatewayError: at the end: the hold may have expired, and whether the history was still there is not known.
    """
    named = owner or myself()
    lasting = min(RENEWED_FOR, config.table(table).hold_max_age)
    began = _clocks()
    held = take(config, table, timestamp, owner=named, reason=reason, lasting=lasting)
    renewals = _Renewals(config, held, lasting, began)
    renewals.start()
    try:
        yield held
    finally:
        renewals.stop()
    if renewals.failure:
        raise renewals.failure


class _Renewals(threading.Thread):
    """Renews a hold three times in its life, until it is stopped; then releases it."""

    def __init__(self, config: Config, held: Hold, lasting: timedelta, began: tuple[float, float]) -> None:
        """*began*: of :func:`_clocks`, before the hold was taken."""
        super().__init__(name=f"hold {held.id}", daemon=True)
        self._config, self._held, self._lasting = config, held, lasting
        self._taken = self._renewed = began
        self._done = threading.Event()
        self.failure: LowtideError | None = None

    def run(self) -> None:
        while not self._done.wait(self._lasting.total_seconds() / 3):
            asked = _clocks()
            try:
                self._held = renew(self._config, self._held, self._lasting)
                self._renewed, self.failure = asked, None
            except HistoryError as error:  # for good: the hold is gone
                self.failure = error
                return
            except Exception as error:  # Thrift's and HBase's too: the gateway may be back before the hold expires
                self.failure = _as_ours(error)

    def stop(self) -> None:
        """End the renewals, see whether the history is still there, and release.

        The mark decides: it moves before anything is removed. A record that can still be released proves nothing; the
        reader's machine may have slept through the expiry.
        """
        self._done.set()
        self.join()
        try:
            with connect(self._config.hbase.thrift) as connection:
                applied = StateStore(connection, self._config.state.table).history(self._held.table).applied
            if self._held.timestamp < applied:
                self.failure = HistoryError(too_early(self._held.table, self._held.timestamp, applied))
            elif not isinstance(self.failure, HistoryError):
                self.failure = None  # a renewal that failed in passing: nothing was lost
            release(self._config, self._held.table, self._held.id)
        except Exception as error:
            # What cannot be released expires; a reader that has its result need not fail for it. One that was lost
            # must, and one that may be: the mark was not seen.
            if not isinstance(self.failure, HistoryError):
                self.failure = _as_ours(error) if self._may_have_expired() else None

    def _may_have_expired(self) -> bool:
        """Whether so much time has passed. The expiry itself is on HBase's clock, which this machine's may differ
        from.
        """
        longest = self._config.table(self._held.table).hold_max_age
        return _passed(self._renewed) >= self._lasting or _passed(self._taken) >= longest


def _clocks() -> tuple[float, float]:
    """Seconds, by the clock that nobody sets and by the one that goes on while the machine sleeps."""
    return time.monotonic(), time.time()


def _passed(since: tuple[float, float]) -> timedelta:
    """How much time may have passed since :func:`_clocks` was asked: by that clock which tells more."""
    return timedelta(seconds=max(now - then for now, then in zip(_clocks(), since, strict=True)))


def _as_ours(error: Exception) -> LowtideError:
    if isinstance(error, LowtideError):
        return error
    return GatewayError(f"the hold could not be renewed or released: {type(error).__name__}: {error}")


def _now() -> datetime:
    """The time to the millisecond, as it is recorded: a hold is compared with its record."""
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


def _check_mark(state: StateStore, held: Hold, now: datetime) -> None:
    """Refuse a hold whose history is gone, or about to go.

    *now*: by HBase's clock; a run whose claim is old enough by it is taken for dead.
    """
    history = state.history(held.table)
    # A run that was killed between announcing its mark and applying it would refuse all holds until another run acts.
    if history.applied <= held.timestamp < history.intended and state.overtake(history, now, f"hold {held.id}"):
        history = state.history(held.table)
    if held.timestamp < history.applied:
        raise HistoryError(too_early(held.table, held.timestamp, history.applied))
    if held.timestamp < history.intended:
        ends = from_millis(history.intent.get("at", 0)) + ANNOUNCED_FOR
        msg = (
            f"a run of history_gc is about to remove the history of {held.table} before "
            f"{number_and_time(history.intended)}, so a hold at {number_and_time(held.timestamp)} comes too late; hold "
            f"{history.intended} or later, or try again after it (if it was killed: from {moment_text(ends)} on)"
        )
        raise HistoryError(msg)


def _check_elsewhere(state: StateStore, held: Hold) -> None:
    """Refuse a hold whose history may have been removed when the table was here under another name. Once is enough: of
    a clone that was before it was made.
    """
    if held.timestamp < (mark := state.mark_of_any(held.table)):
        msg = (
            f"the read point {number_and_time(held.timestamp)} of {held.table} lies {mark - held.timestamp} before "
            f"{number_and_time(mark)}, the greatest ancient history mark of any table: {held.table} is new to "
            "watermark_collection, or came from elsewhere, and a clone lacks what was removed of the table that it was "
            f"made of. Read at {mark} or later; a table that was made new has its own history when "
            "watermark_collection --execute has listed it"
        )
        raise HistoryError(msg)


def _check_table(config: Config, state: StateStore, table: str) -> None:
    if not state.has_table(table):
        msg = f"unknown table {table}: it is not in HBase, so there is no history to hold; {NAMES_OF_TABLES}"
        raise TableError(msg)
    plain = {e.table for e in state.inventory() if e.kind is Kind.PLAIN}
    if table in config.own_tables | plain:
        msg = (
            f"table {table} holds no history of transactions, so there is none to hold; `lowtide status` lists "
            "those that do"
        )
        raise TableError(msg)


def read_options(config: Config, table: str | None = None) -> dict[str, str]:
    """The options that ``spark.read.format("lowtide")`` needs for ``asOf``: ``.options(**read_options(config,
    table))``.

    HBase's address, the names of Omid's and Lowtide's tables, the oracle's clock and how long a hold may last, as
    configured. Nothing is read.

    Args:
        config: of the store.
        table: the one that is read, for what its holds may last (``hold_max_age``); None: what the defaults say.
    """
    longest = (config.defaults if table is None else config.table(table)).hold_max_age
    # One that is named has to be there; under the name that ships it may be missing, where Lowtide has never run.
    named = {"stateTable": config.state.table} if config.state.table != State().table else {}
    return {
        **config.hbase.client_properties(),
        **named,
        "journalTable": config.state.journal_table,
        "commitTable": config.omid.commit_table,
        "commitFamily": config.omid.commit_family,
        "watermarkFamily": config.omid.watermark_family,
        "clock": config.omid.clock,
        "holdMaxAgeMillis": str(longest // timedelta(milliseconds=1)),
        **({"lowLatency": "true"} if config.omid.low_latency else {}),
    }


def spark_settings(config: Config, master: str | None = None) -> dict[str, str]:
    """What a Spark session of one's own needs on a cluster where HBase asks for logins, so that its executors are let
    in: ``SparkSession.builder.config(map=spark_settings(config))``, before there is a session.

    Jobs have it by themselves. Empty where nobody is asked, on one machine, and on a standalone master. HBase's
    properties are among it, so it is none for a command line: a trust store's password may be there.

    Args:
        config: of the store.
        master: where the session is, if not at ``spark.master``.

    Raises:
        UsageError: of Spark's own login in ``spark.conf``, half is given.
    """
    where = master or config.spark.master
    return {**tokens.submitted(config, where), **tokens.in_driver(config, where, config.spark.conf)}


def read_point_at(config: Config, time: datetime) -> int:
    """The oracle's timestamp at *time* (aware), never later than it: what a hold or ``asOf`` takes.

    Exact to the millisecond where the oracle's clock is the world's; of one that counts, the last sample at or before
    *time*.

    Raises:
        UsageError: *time* is not over yet.
        StoreError: the oracle counts, and no sample of its time is that old.
    """
    if time > _now():
        msg = (
            f"the time {time.isoformat(sep=' ', timespec='seconds')} is not over yet; give one that is, or leave it "
            "out for now"
        )
        raise UsageError(msg)
    with connect(config.hbase.thrift) as connection:
        clock = clock_of(config, connection)
    found = clock.timestamp(time)
    if found == 0:
        msg = (
            "the oracle counts, and the first sample of its time is later than "
            f"{time.isoformat(sep=' ', timespec='seconds')}; give a timestamp of the oracle instead. "
            "watermark_collection takes the samples: run it regularly"
        )
        raise StoreError(msg)
    return found


def clock_of(config: Config, connection: Any) -> Clock:
    """The clock of the oracle's timestamps; its low watermark is read where the configuration does not say."""
    watermark = low_watermark(connection, config) if config.omid.clock == "auto" else 0
    return oracle_clock(config.omid.clock, watermark, StateStore(connection, config.state.table).samples)


def check_unit(timestamp: int, watermark: int, what: str, *, world: bool) -> None:
    """Refuse a timestamp that an oracle on the *world*'s clock cannot have given: milliseconds, most likely.

    Raises:
        UsageError: that is so.
    """
    if world and not is_world(timestamp):
        msg = (
            f"{what} is given as {timestamp}; timestamps of this oracle count nanoseconds since 1970 (now: "
            f"{watermark}). Milliseconds take six more digits; or give a time with zone, such as 2026-01-31T00:00:00Z"
        )
        raise UsageError(msg)


def too_early(table: str, timestamp: int, mark: int) -> str:
    """What to say to a reader whose read point lies before the mark."""
    return (
        f"the read point {number_and_time(timestamp)} of {table} lies {mark - timestamp} before its ancient history "
        f"mark {number_and_time(mark)}: that history was removed. Read at {mark} or later; to keep more from now on, "
        f"raise history_max_age for {table}"
    )
