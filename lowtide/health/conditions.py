"""What one can wait for: conditions on the ledger and on the store.

Each is a value of settings that go through JSON. A check reads (a few rows through the gateway, whose number follows
what is new and not what is there) and judges; the judging is pure. Those that go by HBase's time put a row and delete
it again (:mod:`lowtide.health.clocks`). Blocking sensors, triggers and event watchers in Airflow share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Any, ClassVar

from lowtide.config import Config
from lowtide.errors import UsageError
from lowtide.health.clocks import hbase_time, millis_of, time_reached
from lowtide.ledger import settled, steps
from lowtide.ledger.model import State, Table, parse_transaction, parse_transaction_id
from lowtide.ledger.store import Tables
from lowtide.store.gateway import connect, failures, low_watermark, no_answer
from lowtide.store.state import StateStore
from lowtide.values.clock import from_millis, millis
from lowtide.values.durations import parse_duration, parse_time
from lowtide.values.formats import COMMIT_ROWS

__all__ = [
    "CONDITIONS",
    "CheckResult",
    "CommitTableLarger",
    "Condition",
    "LowWatermarkPast",
    "RegionWatermarkPast",
    "TransactionIs",
    "TransactionsSettled",
    "TransactionsStuck",
    "check",
    "from_json",
]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found.

    Args:
        met: whether the condition holds.
        text: the same for people, with the numbers.
        level: how far things are, for watchers: ms for times, else whatever distinguishes one cause of an event from
            the next.
        never: it can no longer come to hold; waiting on is of no use.
    """

    met: bool
    text: str
    level: int | str | bool
    never: bool = False


@dataclass(frozen=True)
class Condition:
    """Base of all conditions."""

    #: Name in JSON.
    kind: ClassVar[str]

    def check(self, config: Config, connection: Any) -> CheckResult:
        """Read and judge.

        Raises:
            UsageError: there is nothing in this store that could be waited for so.
            StoreError: what is to be read is not there or cannot be read, or the clocks that the times come from
                differ.
        """
        raise NotImplementedError

    def news(self, cursor: Any, result: CheckResult) -> tuple[Any, bool]:
        """A watcher's next cursor, and whether the check is an event: here, where it holds and did not at the check
        before.

        *cursor*: of the check before; None at the very first.
        """
        return result.met, result.met and not cursor

    def to_json(self) -> dict[str, Any]:
        """Kind and settings."""
        return {"kind": self.kind, **asdict(self)}


@dataclass(frozen=True)
class _Reached(Condition):
    """Something that moves up with time has reached *past*; or, for watchers, has passed another multiple of *every*.

    Args:
        past: ISO 8601 with zone.
        every: a duration, as in 1h; one of the two is given.

    Raises:
        UsageError: none of them or both are given, or one cannot be read.
    """

    past: str | None = None
    every: str | None = None
    what: ClassVar[str]

    def __post_init__(self) -> None:
        if (self.past is None) == (self.every is None):
            msg = (
                f"{self.kind}: one of past (a time) and every (a duration, for watchers) must be given, found "
                f"{self.past!r} and {self.every!r}"
            )
            raise UsageError(msg)
        if self.every is not None and self._step() <= 0:
            msg = f"{self.kind}: every must be a duration above 0, found {self.every!r}"
            raise UsageError(msg)
        if self.past is not None:
            parse_time(self.past, f"{self.kind}: past")

    def judge(self, reached: int | None) -> CheckResult:
        """*reached*: ms; None: nothing yet."""
        at = "nothing yet" if reached is None else _iso(reached)
        if self.past is None:
            level = 0 if reached is None else reached - reached % self._step()
            return CheckResult(level > 0, f"{self.what}: {at}", level)
        wanted = millis(parse_time(self.past))
        met = reached is not None and reached >= wanted
        return CheckResult(met, f"{self.what}: {at}, waiting for {_iso(wanted)}", reached or 0)

    def news(self, cursor: Any, result: CheckResult) -> tuple[Any, bool]:
        """An event a multiple of *every* that is passed; a mark that went back and comes again is none."""
        if self.past is not None:
            return super().news(cursor, result)
        highest = max(int(cursor or 0), int(result.level))
        return highest, highest > int(cursor or 0)

    def _step(self) -> int:
        try:
            return parse_duration(self.every) // timedelta(milliseconds=1)
        except ValueError as error:
            msg = f"{self.kind}: every: {error}"
            raise UsageError(msg) from None


@dataclass(frozen=True)
class TransactionsSettled(_Reached):
    """Every transaction of the ledger that began before *past* is finished or dropped, and past is older than the
    grace.
    """

    kind: ClassVar[str] = "transactions settled"
    what: ClassVar[str] = "all transactions are over that began before"

    def check(self, config: Config, connection: Any) -> CheckResult:
        """The settled mark, and the first open entry after it: what the next repair would make of it.

        Nothing is known before a full check has stood behind the mark: an index that was emptied, or made anew, has no
        open entry either. The first repair that acts makes one.
        """
        now = hbase_time(config, connection)
        tables = _ledger(config, connection)
        mark = _mark(tables, now)
        if not mark.full_at:
            return replace(self.judge(None), text=f"{self.judge(None).text}; {_NO_FULL_CHECK}")
        horizon = now - millis_of(config.ledger.grace)
        found = steps.run(settled.open_entries(mark.mark, max(horizon, mark.mark), limit=1), tables)
        return self.judge(settled.next_mark(mark.mark, horizon, found[0].timestamp if found else None))


@dataclass(frozen=True)
class TransactionsStuck(Condition):
    """More than *more_than* entries in the index of open transactions are *older_than* old, or older.

    Nearly all are of transactions that are not over. Some may be of a client that stopped before it claimed a number,
    or between a transaction's end and the entry's: a repair takes these away.
    """

    older_than: str = "15m"
    more_than: int = 0
    kind: ClassVar[str] = "transactions stuck"

    def __post_init__(self) -> None:
        try:
            parse_duration(self.older_than)
        except ValueError as error:
            msg = f"{self.kind}: older_than: {error}"
            raise UsageError(msg) from None
        _check_count(self.kind, "more_than", self.more_than)

    def check(self, config: Config, connection: Any) -> CheckResult:
        """Open entries from the settled mark on, no more than decide it."""
        now = hbase_time(config, connection)
        tables = _ledger(config, connection)
        mark = _mark(tables, now)
        end = max(mark.mark, now - millis_of(parse_duration(self.older_than)))
        return self.judge(len(steps.run(settled.open_entries(mark.mark, end, limit=self.more_than + 1), tables)))

    def judge(self, found: int) -> CheckResult:
        """*found*: how many, counted up to one more than the limit."""
        met = found > self.more_than
        number = f"more than {self.more_than}" if met else str(found)
        what = f"{number} entries of the index of open transactions are older than {self.older_than}"
        few = "; a few of them may have claimed nothing, or be over" if found else ""
        return CheckResult(met, f"{what}{few}", met)


_NO_FULL_CHECK = (
    "no full check stands behind the settled mark, so that the index may lack open transactions: lowtide run "
    "transaction_repair --execute makes one"
)

#: How far a transaction is.
_ORDER = {None: 0, State.INITIAL: 1, State.IN_PROGRESS: 2, State.COMMITTED: 3, State.FINISHED: 4}


@dataclass(frozen=True)
class TransactionIs(Condition):
    """A transaction of the ledger has got to *state*, or beyond it: a check may come too late for the states
    between.
    """

    transaction: str = ""
    state: str = State.FINISHED.value
    kind: ClassVar[str] = "transaction is"

    def __post_init__(self) -> None:
        parse_transaction_id(self.transaction)
        if self.state not in tuple(State):
            msg = f"{self.kind}: a state is one of {', '.join(State)}, found {self.state!r}"
            raise UsageError(msg)

    def check(self, config: Config, connection: Any) -> CheckResult:
        """One row, and how long the ledger keeps it."""
        tables = _ledger(config, connection)
        (row,) = tables(steps.Read(Table.TRANSACTIONS, (self.transaction,)))
        return self.judge(parse_transaction(self.transaction, row).state if row else None, bool(row))

    def judge(self, found: State | None, exists: bool = True) -> CheckResult:
        """*found*: None before ``initial``."""
        wanted = State(self.state)
        text = (
            f"transaction {self.transaction} is {found or ('claimed' if exists else 'unknown')}, waiting for {wanted}"
        )
        if State.DROPPED in (found, wanted):
            return CheckResult(
                found is wanted, text, str(found or ""), never=found is not wanted and bool(found and found.over)
            )
        return CheckResult(_ORDER[found] >= _ORDER[wanted], text, str(found or ""))


@dataclass(frozen=True)
class LowWatermarkPast(_Reached):
    """The oracle's low watermark has got to *past*: nothing that began before it can commit any more. Refused where
    the oracle counts.
    """

    kind: ClassVar[str] = "low watermark past"
    what: ClassVar[str] = "the low watermark is at"

    def check(self, config: Config, connection: Any) -> CheckResult:
        """Two rows."""
        watermark = low_watermark(connection, config)
        return self.judge(time_reached(watermark, watermark, config, connection, self.kind))


@dataclass(frozen=True)
class RegionWatermarkPast(_Reached):
    """Every region of *table* is clean up to *past*, as the last ``watermark_collection`` published it. Refused
    where the oracle counts.
    """

    table: str = ""
    kind: ClassVar[str] = "region watermark past"
    what: ClassVar[str] = "the lowest region watermark is at"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.table:
            msg = f"{self.kind}: the name of a table is missing"
            raise UsageError(msg)

    def check(self, config: Config, connection: Any) -> CheckResult:
        """Two rows, and those that are published."""
        state = StateStore(connection, config.state.table)
        published = state.watermarks().get(self.table) if state.exists() else None
        regions = published["regions"] if published else ()
        lowest = min((int(region["watermark"]) for region in regions), default=0)
        return self.judge(time_reached(lowest, low_watermark(connection, config), config, connection, self.kind))


@dataclass(frozen=True)
class CommitTableLarger(Condition):
    """The commit table has more than *than* rows of transactions, entries and invalidation marks."""

    than: int = 0
    kind: ClassVar[str] = "commit table larger"

    def __post_init__(self) -> None:
        _check_count(self.kind, "than", self.than)

    def check(self, config: Config, connection: Any) -> CheckResult:
        """At most one row more than the limit; their first cells only."""
        start, stop = COMMIT_ROWS
        rows = connection.table(config.omid.commit_table).scan(
            row_start=start, row_stop=stop, limit=self.than + 1, filter="FirstKeyOnlyFilter()"
        )
        return self.judge(sum(1 for _ in rows))

    def judge(self, found: int) -> CheckResult:
        """*found*: how many, counted up to one more than the limit."""
        met = found > self.than
        number = f"more than {self.than}" if met else str(found)
        return CheckResult(met, f"the commit table has {number} rows of transactions", met)


#: All conditions, by the kind that they have in JSON.
CONDITIONS: dict[str, type[Condition]] = {
    c.kind: c
    for c in (
        TransactionsSettled,
        TransactionsStuck,
        TransactionIs,
        LowWatermarkPast,
        RegionWatermarkPast,
        CommitTableLarger,
    )
}


def from_json(value: Mapping[str, Any]) -> Condition:
    """The condition of :meth:`Condition.to_json`.

    Raises:
        UsageError: there is no such kind, or its settings cannot be meant.
    """
    settings = dict(value)
    kind = settings.pop("kind", None)
    if kind not in CONDITIONS:
        msg = f"unknown condition {kind!r}; there are {', '.join(CONDITIONS)}"
        raise UsageError(msg)
    try:
        return CONDITIONS[kind](**settings)
    except TypeError as error:
        msg = f"condition {kind!r}: {error}"
        raise UsageError(msg) from None


def check(condition: Condition, config: Config) -> CheckResult:
    """Check once, over a connection of its own, tried once.

    Raises:
        GatewayError: the gateway does not answer, or stopped answering.
        StoreError: see :meth:`Condition.check`.
    """
    try:
        with connect(config.hbase.thrift, attempts=1) as connection:
            return condition.check(config, connection)
    except failures() as error:
        thrift = config.hbase.thrift
        then = f"see that the Thrift gateway at {thrift.host}:{thrift.port} runs, and HBase behind it"
        raise no_answer(f"condition {condition.kind!r}", error, then) from error


def parse_patience(text: str) -> timedelta:
    """How long is paused in all between tries at a gateway that does not answer; a try takes its own time besides.

    Raises:
        UsageError: *text* is no duration.
    """
    try:
        return parse_duration(text)
    except ValueError as error:
        msg = f"patience: {error}"
        raise UsageError(msg) from None


def pauses(patience: timedelta, most: float = 30.0) -> Iterator[float]:
    """Seconds to wait between tries at a gateway that does not answer: 1, 2, 4 up to *most*, *patience* in all."""
    left, pause = patience.total_seconds(), 1.0
    while left > 0:
        yield min(pause, left)
        left, pause = left - pause, min(pause * 2, most)


def _ledger(config: Config, connection: Any) -> Tables:
    """The ledger's tables, all of which are there, and none of which loses rows: what expired would count as over."""
    tables = Tables(connection, config.ledger.prefix)
    tables.check_there()
    tables.check_kept()
    return tables


def _mark(tables: Tables, now: int) -> settled.Settled:
    """The settled mark, as far as it can be trusted."""
    mark, _ = steps.run(settled.read_settled(), tables)
    return settled.trusted(mark, now)


def _iso(at: int) -> str:
    return from_millis(at).isoformat(timespec="seconds")


def _check_count(kind: str, name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        msg = f"{kind}: {name} is a count from 0 on, found {value!r}"
        raise UsageError(msg)
