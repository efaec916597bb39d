"""What every job has in common: arguments, the run's context, the summary, the exit code."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from pydantic import ByteSize, TypeAdapter, ValidationError
from pyspark.sql import functions as F

from lowtide.cleaning.planning import Request
from lowtide.config import Budget, Config, Mode, load, source
from lowtide.errors import GatewayError, LowtideError, StoreError, UsageError, WatermarkError
from lowtide.journal import life
from lowtide.journal.life import Journal
from lowtide.run import approval
from lowtide.run.approval import Approved
from lowtide.run.submit import LOOKING, takes
from lowtide.run.summary import Summary, TableReport, here
from lowtide.store import oracle_probe
from lowtide.store.gateway import allotted, connect, parse_low_watermark, without_bloom_or_cache
from lowtide.store.state import FAMILY, StateStore
from lowtide.tables.inventory import Entry, Kind
from lowtide.values.clock import Clock, SampledClock, WorldClock, clock_contradiction, on_world_clock
from lowtide.values.durations import parse_duration, parse_time
from lowtide.values.formats import LOW_WATERMARK_QUALIFIER, LOW_WATERMARK_ROW
from lowtide.values.skew import machine_apart, oracle_ahead, oracle_apart, refusal
from lowtide_spark.frames.store import Store
from lowtide_spark.run.printing import report
from lowtide_spark.run.session import session

#: The jobs that put aside what they remove.
_PUTTING_ASIDE = ("orphan_cleanup", "history_gc")
#: The jobs that change nothing in the store, whatever they are told.
_READING = ("balances", *LOOKING)

#: How often a row that other runs write too is compared, read both ways.
_LOOKS = 5
_ORACLE_SECONDS = 5.0


@dataclass
class Run:
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
    #: Whether the job promises to write nothing to the store at all: no record, no summary, no snapshot that was not asked for.
    read_only: bool = False
    #: How often the records had been reset when the low watermark was read.
    generation: int = 0
    #: How far the oracle's clock is ahead of HBase's, as far as that can be told; negative: behind.
    oracle_ahead: timedelta = timedelta()
    _journal: Journal | None = field(default=None, init=False, repr=False)
    #: When the phase that is booked next began.
    phase_started: float = field(default_factory=time.monotonic)

    @property
    def acting(self) -> bool:
        """Whether the run may write to the store."""
        return bool(self.options.execute or self.options.as_configured)

    @contextmanager
    def state(self) -> Iterator[StateStore]:
        """The state table, over a connection of its own: the gateway closes those that idle while Spark works."""
        with connect(self.config.hbase.thrift) as connection:
            yield StateStore(connection, self.config.state.table)

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

    def budget(self, table: str) -> Budget:
        """The table's budget, with the arguments over the configuration."""
        changes = {"rows": self.options.budget_rows, "share": self.options.budget_share}
        given = {name: value for name, value in changes.items() if value is not None}
        return self.config.table(table).budget.model_copy(update=given)

    def check_cluster(self) -> None:
        """Refuse a gateway of another HBase than ZooKeeper leads to: facts of one store would be recorded of the other. And records that vanish.

        That is kept as a summary behind the gateway, where `lowtide status` and the page look.

        Raises:
            StoreError: the state table has a TTL.
            UsageError: the token that the gateway shows in the state table is not the one that is there past it.
        """
        table, thrift = self.config.state.table, self.config.hbase.thrift
        with self.state() as state:
            if self.acting:
                state.create()
                state.say_format()
                state.say_cluster()
            elif not state.exists():
                return  # nothing is recorded that could be taken for this store's
            state.check_kept()
            for _ in range(_LOOKS):  # another run may write its own between the two
                told = state.cluster()
                if told == self.store.row(table, FAMILY, "cluster").get("value"):
                    return
        msg = (
            f"hbase.thrift ({thrift.host}:{thrift.port}) and hbase.zookeeper_quorum ({self.config.hbase.zookeeper_quorum}:"
            f"{self.config.hbase.zookeeper_port}{self.config.hbase.znode}) lead to different HBase clusters: what was written to {table} through the one is not "
            "what the other reads. Correct one of them; nothing was read"
        )
        raise UsageError(msg)

    def read_low_watermark(self, doubts: list[str] | None = None) -> int:
        """Read the low watermark, refuse it where it is missing or has gone back, remember it where the run may write.

        First of all reads: what is listed and read later can hold no commit at or below it that is not yet in the commit table.

        Args:
            doubts: of a job that acts on nothing: takes the reasons not to trust the low watermark, instead of the refusal.
        """
        with _doubting(doubts):
            self._check_oracle()
        watermark = self._stored_low_watermark()
        with _doubting(doubts):
            if wrong := clock_contradiction(self.config.omid.clock, watermark):
                raise UsageError(wrong)
        self.read_at = datetime.now(UTC)
        with connect(self.config.hbase.thrift) as connection:
            state = StateStore(connection, self.config.state.table)
            with _doubting(doubts):
                self._check_recorded(state, watermark)
            ahead = oracle_ahead(allotted(connection, self.config), self.request.now)
            self.oracle_ahead = ahead or timedelta()
            # Before it is remembered: one that is far ahead would have every right one after it refused.
            self._refuse(oracle_apart(ahead, watermark, self.request.now), doubts)
            if self.acting:
                state.create()
                state.record_low_watermark(watermark)
                self.read_at = state.server_time()
            self.generation = state.generation()
        self.summary.low_watermark = watermark
        return watermark

    @property
    def journal(self) -> Journal:
        """The journal in force, as it was when this run last looked."""
        if self._journal is None:
            self.has_journal()
        assert self._journal is not None
        return self._journal

    def has_journal(self) -> bool:
        """Whether the journal's table is there, as of now.

        Raises:
            StoreError: it was, and is gone; or it has lost rows, or may have.
        """
        name = self.config.state.journal_table
        with self.state() as state:
            self._journal = life.checked(state.connection, state, name, acting=self.acting)
        return self._journal.there

    def hold_journal(self, *, horizon: int = 0, pruned: int = 0) -> None:
        """Have it said, by the journal and the state, that nothing up to *horizon* need be in the journal, and that it was *pruned* so far.

        Raises:
            StoreError: as :meth:`has_journal`; or the journal takes no row.
        """
        self.has_journal()
        said = replace(
            self.journal, horizon=max(horizon, self.journal.horizon), pruned=max(pruned, self.journal.pruned)
        )
        with self.state() as state:
            life.hold(state.connection, state, self.config.state.journal_table, said)

    def check_clock(self) -> None:
        """Before anything else: this machine's clock and HBase's agree. From here on the run goes by HBase's.

        A run that only plans says what is wrong and goes on, if there is a state table to ask by.

        Raises:
            StoreError: the clocks differ.
        """
        if self.read_only or self.summary.job in _READING:
            return
        with self.state() as state:
            if self.acting:
                state.create()
            elif not state.exists():
                return
            here, server = datetime.now(UTC), state.server_time()
        self.request = replace(self.request, now=server)
        self._refuse(machine_apart(here, server))

    def _refuse(self, apart: str | None, doubts: list[str] | None = None) -> None:
        """Stop where clocks are *apart*; a job that collects its *doubts* goes on with that, and a run that only plans notes it."""
        if apart is None:
            return
        if doubts is not None:
            doubts.append(apart)
        elif self.acting:
            raise StoreError(refusal(apart))
        else:
            self.summary.notes.append(f"{apart}; a run that acts is refused")

    def mend_tables(self, names: Iterable[str]) -> list[str]:
        """Give tables of our own that the gateway made by its defaults what these leave out; notes on what was done. Those that are right cost a look."""
        with connect(self.config.hbase.thrift) as connection:
            there = connection.tables()
            slow = {name: without_bloom_or_cache(connection, name) for name in names if name.encode() in there}
        notes = []
        for name, families in slow.items():
            if not families:
                continue
            try:
                self.store.give_bloom_and_cache(name, families)
            except StoreError as error:
                ddl = ", ".join(f"{{NAME => '{f}', BLOOMFILTER => 'ROW', BLOCKCACHE => 'true'}}" for f in families)
                notes.append(
                    f"{name} has no bloom filter or no block cache, so that reads of it are slow, and {error}; in HBase's shell: "
                    f"alter '{name}', {ddl}"
                )
            else:
                notes.append(
                    f"{name} was made without bloom filter or block cache; it has both now, its files as they are written"
                )
        return notes

    def check_low_watermark_again(self) -> None:
        """Before acting and before recording: the oracle may have been made anew, or the records reset, since the run began.

        Raises:
            WatermarkError: the low watermark is below one recorded, such as that which this run began with; or the records were reset.
        """
        with self.state() as state:
            generation = state.generation()
            self._check_recorded(state, self._stored_low_watermark())
        if generation != self.generation:
            msg = (
                f"the records were reset since this run began ({self.generation} resets then, {generation} now), as after an oracle was made anew; "
                "nothing more is done or recorded. Run again"
            )
            raise WatermarkError(msg)

    def _check_recorded(self, state: StateStore, watermark: int) -> None:
        """Refuse a low watermark that went back, now or before; a run that acts remembers it: the oracle will pass the recorded one again."""
        try:
            state.check_low_watermark(watermark)
        except WatermarkError:
            current = self._stored_low_watermark()  # another run may have recorded a newer one than was read here
            if self.acting:
                state.remember_gone_back(current)
            state.check_low_watermark(current)

    def _stored_low_watermark(self) -> int:
        omid = self.config.omid
        cells = self.store.cells(omid.commit_table).where(F.col("row") == bytearray(LOW_WATERMARK_ROW)).collect()
        wanted = (omid.watermark_family.encode(), LOW_WATERMARK_QUALIFIER)
        values = [bytes(c.value) for c in cells if (bytes(c.family), bytes(c.qualifier)) == wanted]
        return parse_low_watermark(values[0] if values else None, omid.commit_table)

    def _check_oracle(self) -> None:
        if problem := oracle_probe.unreachable(self.config.omid.oracle, _ORACLE_SECONDS):
            msg = (
                f"{problem}: whether its low watermark still holds cannot be known; "
                "start it, or set omid.oracle (an empty list leaves the check out)"
            )
            raise GatewayError(msg)

    def limited(self, watermark: int) -> int:
        """How far to work: *watermark*, or as far as the plan did that was approved. An older low watermark is as safe as a new one."""
        return watermark if self.approved is None else min(watermark, self.approved.low_watermark)

    def check_approved(self) -> None:
        """Before acting, when everything is planned and counted.

        Raises:
            ApprovalError: the plan is not the one that was approved.
        """
        if self.approved is not None:
            approval.check(self.approved, [t.to_json() for t in self.summary.tables])

    @property
    def world_clock(self) -> bool:
        """Whether the oracle counts a world clock's milliseconds (known once the low watermark was read)."""
        return on_world_clock(self.config.omid.clock, self.summary.low_watermark)

    @cached_property
    def clock(self) -> Clock:
        """The oracle's clock."""
        if self.world_clock:
            return WorldClock()
        with self.state() as state:
            return SampledClock(state.samples())

    def choose(self, inventory: Sequence[Entry]) -> list[Entry]:
        """The tables to work on, out of the inventory.

        One that was asked for by name and is unknown, plain, of unknown standing or disabled makes the run red; the others
        are worked on.
        """
        by_name = {e.table: e for e in inventory}
        names = self.options.table or [e.table for e in inventory if e.kind is Kind.TRANSACTIONAL and e.workable]
        chosen = []
        for name in dict.fromkeys(names):
            entry = by_name.get(name)
            if entry is not None and entry.kind is Kind.TRANSACTIONAL and entry.workable:
                chosen.append(entry)
            elif not self.options.discovered:
                self.summary.problems.append(_refusal(name, entry))
            else:
                print(f"{self.summary.job}: {name} is passed over: {_refusal(name, entry)}", flush=True)
        self._tell_left_alone(inventory, names)
        return chosen

    def _tell_left_alone(self, inventory: Sequence[Entry], names: Sequence[str]) -> None:
        """A note on each table that is in doubt and that nobody asked for by name; one that was asked for is a problem."""
        asked = set() if self.options.discovered else set(self.options.table)
        # Without names all tables were meant; those of unknown standing are the collection's to tell of.
        meant = names if self.options.table else [e.table for e in inventory if e.kind is Kind.TRANSACTIONAL]
        for entry in inventory:
            if entry.doubt and entry.enabled and entry.table in meant and entry.table not in asked:
                self.summary.tables.append(TableReport(entry.table, notes=[_refusal(entry.table, entry)]))


class TableWork(Protocol):
    """What a job does for one table."""

    def give_up(self, reason: str) -> None:
        """Do nothing more for this table, and tell why."""


@contextmanager
def failures_kept(work: TableWork) -> Iterator[None]:
    """One failing table never hides the others, nor costs them their records: its error is kept and its work ends."""
    try:
        yield
    except LowtideError as error:
        work.give_up(str(error))
    except Exception as error:  # Spark's, Thrift's, Java's
        traceback.print_exc()
        work.give_up(f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}")


@contextmanager
def _doubting(doubts: list[str] | None) -> Iterator[None]:
    try:
        yield
    except (GatewayError, WatermarkError, UsageError) as error:
        if doubts is None:
            raise
        doubts.append(str(error))


def _refusal(name: str, entry: Entry | None) -> str:
    if entry is None:
        return f"unknown table {name}; it is not in HBase, or is one of Omid's, of Lowtide's own or of another oracle's (omid.foreign)"
    if not entry.enabled:
        return f"table {name} is disabled; enable it (it keeps the prune bound back until it is cleaned)"
    if entry.doubt:
        return f"table {name} is left alone, and keeps the prune bound back: {entry.doubt}"
    if entry.kind is Kind.UNMARKED:
        return (
            f"table {name} has shadow cells but no mark of Omid; say in the configuration what it is: "
            f"tables: {{{name}: {{kind: transactional}}}} or plain"
        )
    return f"table {name} bears no marks of Omid and no shadow cells; if it is transactional all the same, say so: tables: {{{name}: {{kind: transactional}}}}"


def arguments(job: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The job's arguments; ends the program with exit code 2 where they are wrong."""
    parser = argparse.ArgumentParser(prog=job, allow_abbrev=False)
    several = {"action": "append", "default": []}
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration file")
    if takes(job, "--table"):
        parser.add_argument("--table", **several, metavar="NAME", help="only this table; may be given several times")
    parser.add_argument(
        "--run-id", metavar="ID", help="names the run; a restart leaves out what it has recorded under it"
    )
    parser.add_argument(
        "--context", **several, metavar="KEY=VALUE", help="kept in the summary; may be given several times"
    )
    parser.add_argument("--summary", type=Path, metavar="FILE", help="write the summary there, as JSON")
    parser.set_defaults(table=[])
    (_looking if job in LOOKING else _working)(parser, job)
    return parser.parse_args(argv)


def _working(parser: argparse.ArgumentParser, job: str) -> None:
    # What runs read of options that their job does not take.
    parser.set_defaults(discovered=False, start=None, end=None, full=False, grace=None, rate=0)
    parser.set_defaults(budget_rows=None, budget_share=None)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--execute", action="store_true", help="act; without it the run only plans and counts")
    how.add_argument("--as-configured", action="store_true", help="act on the tables whose mode is execute")

    def offer(option: str, text: str, **about: Any) -> None:
        if takes(job, option):
            parser.add_argument(option, help=text, **about)

    offer("--discovered", "pass over tables that turn out plain or gone, instead of refusing", action="store_true")
    offer(
        "--from",
        "put back what was pruned since then: ISO 8601 with zone"
        if job == "journal_replay"
        else "where the interval begins: ISO 8601 with zone; else where the last run ended",
        dest="start",
        metavar="TIME",
    )
    until = (
        "the mark as of then, not as of now"
        if job == "history_gc"
        else "where the interval ends; else as far as is safe"
    )
    offer("--to", f"{until}: ISO 8601 with zone", dest="end", metavar="TIME")
    offer("--full", "look at everything, also at what is recorded as done", action="store_true")
    offer("--grace", "instead of the configured grace, as in 15m or 24h; 0s: none", metavar="DURATION")
    offer("--yes", "do not ask on a terminal whether 0s is meant", action="store_true")
    offer(
        "--budget-rows",
        "the most cells that may go from one table, as configured if left out",
        type=_positive(int),
        metavar="N",
    )
    offer("--budget-share", "and the largest share of those examined, such as 0.5", type=_positive(float), metavar="X")
    offer("--approved", "a dry run's summary: act only if the plan is still the same", type=Path, metavar="FILE")
    offer("--compact", "ask HBase for the compactions that pay", action="store_true")
    offer("--output", "write every balance there, as CSV", metavar="FOLDER")
    offer("--since-snapshot", "put back what was pruned since this HBase snapshot was made", metavar="S")
    offer("--restore", "the run whose removed cells are put back", metavar="RUN")
    offer(
        "--as-committed",
        "a transaction that committed after all, and when; may be given several times",
        metavar="T=TC",
        action="append",
        default=[],
    )


def _looking(parser: argparse.ArgumentParser, job: str) -> None:
    """What a survey and the verifier can be told: no way to make them act."""
    parser.add_argument("--sample", type=_share, metavar="SHARE", help="read only this share of each table's regions")
    parser.add_argument("--rate", type=_rate, default=0, metavar="BYTES", help="read at most so much a second: 20MB")
    parser.add_argument("--json", type=Path, metavar="FILE")
    if job == "survey":
        parser.add_argument(
            "--snapshot", action="store_true", help="read HBase snapshots, made and dropped, not live tables"
        )
        parser.add_argument("--html", type=Path, metavar="FILE")
    else:
        parser.add_argument("--before", type=Path, metavar="FILE", help="write there what read points show")
        parser.add_argument("--after", type=Path, metavar="FILE", help="compare with what --before wrote")
    # It reads everything, whatever is recorded; a plan out of proportion is for it to report, not to refuse.
    parser.set_defaults(discovered=False, start=None, end=None, full=True, execute=False, as_configured=False)
    parser.set_defaults(grace=None, budget_rows=sys.maxsize, budget_share=1.0)


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        msg = f"a share above 0 and up to 1 is expected, such as 0.1, found {text}"
        raise argparse.ArgumentTypeError(msg)
    return value


def _rate(text: str) -> int:
    try:
        value = int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError:
        value = 0
    if value <= 0:
        msg = f"bytes a second are expected, such as 500KB or 20MB, found {text}"
        raise argparse.ArgumentTypeError(msg)
    return value


def _positive(number: Callable[[str], float]) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = number(text)
        if value <= 0:
            msg = f"a number above 0 is expected, found {text}"
            raise argparse.ArgumentTypeError(msg)
        return value

    return parse


def run_job(
    job: str,
    body: Callable[[Run], None],
    argv: Sequence[str] | None = None,
    *,
    read_only: bool = False,
    blind: int = 1,
) -> int:
    """Run *body* and report: summary in the file, the state table and the terminal; returns the exit code.

    *read_only*: the job writes nothing to the store, the summary neither. *blind*: the least exit code of a job that could not do its work.
    """
    options = arguments(job, argv)
    started = time.monotonic()
    now = datetime.now(UTC)
    summary = Summary(
        job,
        options.run_id or now.strftime("manual-%Y%m%dT%H%M%S.%fZ"),
        options.execute or options.as_configured,
        by=here(source(options.config)),
    )
    run: Run | None = None
    code = 0
    try:
        run = _prepare(job, options, summary, now, started)
        run.read_only = read_only
        run.check_cluster()
        run.check_clock()
        body(run)
        code = 1 if summary.failed else 0
    except LowtideError as error:
        summary.problems.append(str(error))
        code = max(error.exit_code, blind)
    except Exception as error:  # whatever it is, the run ends red, with its summary
        traceback.print_exc()
        summary.problems.append(
            f"unexpected {type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else ''}"
        )
        code = blind
    finally:
        summary.seconds = round(time.monotonic() - started, 2)
    if run is not None and not read_only:
        _keep(run)
    if options.summary:
        summary.write(options.summary)
    report(summary, problems_only=read_only)
    return code


def _prepare(job: str, options: argparse.Namespace, summary: Summary, now: datetime, began: float) -> Run:
    config = load(options.config)
    for name in options.table:
        config.table(name)
    summary.context = dict(_pair(text) for text in options.context)
    start = parse_time(options.start, "--from") if options.start else None
    end = parse_time(options.end, "--to") if options.end else None
    options.grace = _grace(options.grace, config.ledger.grace if job == "transaction_repair" else config.grace)
    request = Request(summary.run, now, start, end, options.full)
    request.check()
    with connect(config.hbase.thrift):
        pass  # say that the gateway is down before Spark starts
    approved = _approved(job, options)
    spark = session(f"lowtide {job}")
    if summary.execute and job in _PUTTING_ASIDE:
        config.state.check_sideline(spark.sparkContext.master)
    run = Run(options, config, Store(spark, config, options.rate), request, summary, approved, phase_started=began)
    run.phase("start")  # Spark's own start is most of it
    return run


def _approved(job: str, options: argparse.Namespace) -> Approved | None:
    file = getattr(options, "approved", None)
    if file is None:
        return None
    if not options.execute and not options.as_configured:
        msg = "--approved holds a run that acts to a plan; give --execute with it"
        raise UsageError(msg)
    return approval.read(file, job)


def _grace(text: str | None, configured: timedelta) -> timedelta:
    try:
        return parse_duration(text) if text is not None else configured
    except ValueError as error:
        msg = f"--grace: {error}"
        raise UsageError(msg) from None


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        msg = f"--context: KEY=VALUE is expected, found {text!r}"
        raise UsageError(msg)
    return key, value


def _keep(run: Run) -> None:
    """Keep the summary in the state table, where the page finds it; a store that refuses it has said so already."""
    try:
        with run.state() as state:
            if state.exists():
                state.add_run(run.summary.to_json())
    except LowtideError as error:
        run.summary.problems.append(f"the summary is not in the state table: {error}")
