"""The metrics of a store, from what was read of it. Pure.

A name's unit is its last word, as Prometheus has it: seconds, bytes; ``timestamp_seconds`` are seconds since 1970. Ages
are as of the moment of the reading, ``lowtide_read_timestamp_seconds``. What is not known has no series, rather than a
0. A label never has more values than there are tables, jobs or causes: no run, region, row or transaction is one. None
is called ``job`` or ``instance``: those are Prometheus's own.

Numbers that go to Airflow's metrics too (StatsD) have the same names there, with dots, as of a job's run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime

from lowtide.config import Config, Mode
from lowtide.health import (
    Reading,
    Severity,
    TableStatus,
    assess,
    history_statuses,
    last_runs,
    ledger_status,
    table_statuses,
)
from lowtide.health.bound import blockers
from lowtide.run.summary import DONE, looked_at
from lowtide.values.clock import WorldClock, millis, seconds_since


@dataclass(frozen=True, slots=True)
class Observation:
    """What was read of one store, and the configuration by which it is judged and called."""

    reading: Reading
    config: Config


@dataclass(frozen=True, slots=True)
class Gauge:
    """A metric: every one has the label ``store`` before its own."""

    name: str
    #: One sentence without a full stop, as the text has it in ``HELP``.
    help: str
    labels: tuple[str, ...] = ()

    def of(self, value: float | datetime, *labels: str) -> Sample:
        """A sample; a time becomes seconds since 1970."""
        if len(labels) != len(self.labels):
            msg = f"{self.name} has the labels {self.labels}, found {labels}"
            raise ValueError(msg)
        number = millis(value) / 1000 if isinstance(value, datetime) else float(value)
        return Sample(self, number, labels)


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric, with those of its own labels."""

    gauge: Gauge
    value: float
    labels: tuple[str, ...]


UP = Gauge("lowtide_up", "Whether the store could be read, through HBase's Thrift gateway: 1, or 0")
READ = Gauge("lowtide_read_timestamp_seconds", "When it was read, or was tried to be, by the clock of who read")
STATE_FORMAT = Gauge("lowtide_state_format", "The format of the records in the state table")
FINDINGS = Gauge("lowtide_findings", "How many findings lowtide explain has, by severity", ("severity",))
FINDING = Gauge(
    "lowtide_finding",
    "1 for each cause and table of a finding; docs/operating.md has a paragraph on each cause",
    ("severity", "cause", "table"),
)

ORACLE_UP = Gauge("lowtide_oracle_up", "Whether the oracle answers, where omid.oracle says where it is")
LOW_WATERMARK_AGE = Gauge("lowtide_low_watermark_age_seconds", "How old the oracle's low watermark is (world clock)")

BOUND_AGE = Gauge("lowtide_prune_bound_age_seconds", "How old the prune bound is (world clock)")
BOUND_BEHIND = Gauge("lowtide_prune_bound_behind", "How many timestamps the prune bound is below the low watermark")
BOUND_SINCE = Gauge("lowtide_prune_bound_since_timestamp_seconds", "Since when the prune bound stands where it does")
BOUND_COLLECTED = Gauge("lowtide_prune_bound_collected_timestamp_seconds", "When the prune bound was computed last")
BOUND_BLOCKERS = Gauge(
    "lowtide_prune_bound_blockers", "How many findings say what holds the prune bound, by table", ("cause", "table")
)

TABLE_EXECUTE = Gauge(
    "lowtide_table_execute", "Whether scheduled runs act on the table: its mode is execute", ("table",)
)
REGIONS = Gauge("lowtide_regions", "Regions of the table, as collected last", ("table",))
NEVER_CLEANED = Gauge("lowtide_regions_never_cleaned", "Regions of which no cleaning from 0 is recorded", ("table",))
TABLE_AGE = Gauge(
    "lowtide_region_watermark_age_seconds", "How old the lowest watermark of its regions is (world clock)", ("table",)
)
TABLE_BEHIND = Gauge("lowtide_region_watermark_behind", "How many timestamps it is below the low watermark", ("table",))
LEFTOVERS = Gauge(
    "lowtide_leftover_cells",
    "Cells that the table's last orphan_cleanup found and did not mend: planned only, left alone, or failed",
    ("table",),
)

COMMIT_ENTRIES = Gauge("lowtide_commit_table_entries", "Commit entries, as commit_table_pruning counted them last")
COMMIT_MARKS = Gauge("lowtide_commit_table_marks", "Invalidation marks in the commit table, counted with them")
COMMIT_COUNTED = Gauge("lowtide_commit_table_counted_timestamp_seconds", "When both were counted")

_RUN = ("job_name", "mode")
RUN_STARTED = Gauge("lowtide_last_run_started_timestamp_seconds", "When the job's last run began", _RUN)
RUN_ENDED = Gauge("lowtide_last_run_ended_timestamp_seconds", "When it ended", _RUN)
RUN_DONE = Gauge("lowtide_last_run_done", "Whether it left nothing undone", _RUN)
RUN_CHANGES = Gauge(
    "lowtide_last_run_changes", "What it did, by the counter of its summary; of dry runs, would do", (*_RUN, "what")
)
RUN_BYTES = Gauge("lowtide_last_run_removed_bytes", "Bytes of the cells that it removed, or would", _RUN)
RUN_SKIPPED = Gauge("lowtide_last_run_skipped", "What it left alone", _RUN)

HISTORY_EXECUTE = Gauge("lowtide_history_execute", "Whether scheduled runs remove history: history_mode", ("table",))
HISTORY_AGE = Gauge(
    "lowtide_history_mark_age_seconds", "How old the table's ancient history mark is (world clock)", ("table",)
)
HISTORY_BEHIND = Gauge(
    "lowtide_history_mark_behind", "How many timestamps the mark is below the low watermark", ("table",)
)
HISTORY_APPLIED = Gauge("lowtide_history_mark_applied_timestamp_seconds", "When the mark was applied last", ("table",))
HISTORY_RECLAIMABLE = Gauge(
    "lowtide_history_reclaimable_bytes", "Bytes that the last dry run of history_gc would have removed", ("table",)
)
HISTORY_UNCOMPACTED = Gauge(
    "lowtide_history_uncompacted_bytes", "Bytes that history_gc removed and HBase has not compacted away", ("table",)
)
HOLDS = Gauge("lowtide_history_holds", "Holds on the table's history that count now", ("table",))

PAUSED_UNTIL = Gauge(
    "lowtide_paused_until_timestamp_seconds",
    "Until when no job writes to the table; without a table, to the store",
    ("table",),
)

SETTLED_AGE = Gauge(
    "lowtide_ledger_settled_age_seconds", "How long ago the moment is before which all transactions are over"
)
UNFINISHED = Gauge(
    "lowtide_ledger_unfinished_transactions",
    "Transactions older than the grace that are perhaps not over, counted up to 1000",
)
OLDEST = Gauge("lowtide_ledger_oldest_unfinished_timestamp_seconds", "When the first of them began")
WRONG_MONEY = Gauge(
    "lowtide_ledger_wrong_transactions", "Finished transactions whose money does not add up, as of the last check"
)
FULL_CHECK = Gauge("lowtide_ledger_full_check_timestamp_seconds", "When the last full check of the ledger began")

#: All of them, in the order in which they stand above, which is that of the text.
GAUGES = tuple(value for value in list(globals().values()) if isinstance(value, Gauge))
#: Counters of a summary that :data:`RUN_CHANGES` has.
CHANGES = tuple(name for name in DONE if name != "bytes_removed")


def samples(seen: Observation) -> Iterator[Sample]:
    """Everything that is known; of a store that cannot be read, that, why by its cause, and when."""
    health = assess(seen.reading, seen.config)
    yield UP.of(not seen.reading.unreachable)
    yield READ.of(seen.reading.at)
    for severity in Severity:
        yield FINDINGS.of(sum(f.severity is severity for f in health.findings), severity.value)
    for about in sorted({(f.severity.value, f.cause.value, t) for f in health.findings for t in f.tables or ("",)}):
        yield FINDING.of(1, *about)
    if not seen.reading.unreachable:
        for subject in SUBJECTS:
            yield from subject(seen.reading, seen.config)


def _oracle(reading: Reading, config: Config) -> Iterator[Sample]:
    if config.omid.oracle:
        yield ORACLE_UP.of(not reading.oracle_problem)
    yield from _age(LOW_WATERMARK_AGE, reading.low_watermark or 0, reading)


def _records(reading: Reading, _: Config) -> Iterator[Sample]:
    if reading.state_format:
        yield STATE_FORMAT.of(reading.state_format)


def _bound(reading: Reading, config: Config) -> Iterator[Sample]:
    bound = reading.bound
    if bound is None:
        return
    yield from _age(BOUND_AGE, bound.value, reading)
    if reading.low_watermark is not None:
        yield BOUND_BEHIND.of(max(0, reading.low_watermark - bound.value))
    yield BOUND_SINCE.of(bound.since or bound.at)
    yield BOUND_COLLECTED.of(bound.at)
    held = Counter((f.cause.value, t) for f in blockers(reading, config) for t in f.tables or ("",))
    for about, number in sorted(held.items()):
        yield BOUND_BLOCKERS.of(number, *about)


def _tables(reading: Reading, config: Config) -> Iterator[Sample]:
    statuses = table_statuses(reading, config)
    for s in statuses:
        yield from _table(s, reading)
    yield from _leftovers(reading, config)


def _table(s: TableStatus, reading: Reading) -> Iterator[Sample]:
    yield TABLE_EXECUTE.of(s.mode is Mode.EXECUTE, s.table)
    yield REGIONS.of(s.regions, s.table)
    yield NEVER_CLEANED.of(s.never_cleaned, s.table)
    yield from _age(TABLE_AGE, s.lowest, reading, s.table)
    yield TABLE_BEHIND.of(s.behind, s.table)


def _leftovers(reading: Reading, config: Config) -> Iterator[Sample]:
    done = set(config.own_tables)  # in a cleanup's summary the commit table has the marks that it put
    for run in reading.runs:
        for t in run["tables"] if run["job"] == "orphan_cleanup" else ():
            if t["table"] not in done and looked_at(t) and (not reading.listed or t["table"] in reading.listed):
                done.add(t["table"])
                counts = t["counts"]
                planned = 0 if t.get("execute") else counts["healed"] + counts["deleted"]
                yield LEFTOVERS.of(planned + counts["failed"] + sum(counts["skipped"].values()), t["table"])


def _commit_table(reading: Reading, _: Config) -> Iterator[Sample]:
    for count in reading.commit_counts[-1:]:
        yield COMMIT_ENTRIES.of(count.entries)
        yield COMMIT_MARKS.of(count.marks)
        yield COMMIT_COUNTED.of(count.at)


def _runs(reading: Reading, _: Config) -> Iterator[Sample]:
    for last in last_runs(reading):
        labels = (last.job, (Mode.EXECUTE if last.execute else Mode.DRY_RUN).value)
        yield RUN_STARTED.of(last.started, *labels)
        yield RUN_ENDED.of(last.ended, *labels)
        yield RUN_DONE.of(last.done, *labels)
        totals = [s["totals"] for s in last.summaries]
        for name in CHANGES:
            yield RUN_CHANGES.of(sum(t.get(name, 0) for t in totals), *labels, name)
        yield RUN_BYTES.of(sum(t.get("bytes_removed", 0) for t in totals), *labels)
        yield RUN_SKIPPED.of(sum(sum(t["skipped"].values()) for t in totals), *labels)


def _history(reading: Reading, config: Config) -> Iterator[Sample]:
    for h in history_statuses(reading, config):
        yield HISTORY_EXECUTE.of(h.mode is Mode.EXECUTE, h.table)
        if h.applied:
            yield from _age(HISTORY_AGE, h.applied, reading, h.table)
            if reading.low_watermark is not None:
                yield HISTORY_BEHIND.of(max(0, reading.low_watermark - h.applied), h.table)
        if h.applied_at:
            yield HISTORY_APPLIED.of(h.applied_at, h.table)
        if h.reclaimable:
            yield HISTORY_RECLAIMABLE.of(h.reclaimable.size, h.table)
        yield HISTORY_UNCOMPACTED.of(h.uncompacted, h.table)
        yield HOLDS.of(sum(x.table == h.table and x.counts(reading.at) for x in reading.holds), h.table)


def _pauses(reading: Reading, _: Config) -> Iterator[Sample]:
    lasting = sorted((p.table or "", p.until) for p in reading.pauses if p.lasts(reading.at))
    for table, until in dict(lasting).items():  # the one that ends last
        yield PAUSED_UNTIL.of(until, table)


def _ledger(reading: Reading, _: Config) -> Iterator[Sample]:
    status = ledger_status(reading)
    if status is None:
        return
    if status.settled:
        yield SETTLED_AGE.of((reading.at - status.settled).total_seconds())
    yield UNFINISHED.of(status.stuck)
    if status.oldest:
        yield OLDEST.of(status.oldest)
    if status.money and status.money.wrong is not None:
        yield WRONG_MONEY.of(status.money.wrong)
    if status.full_check:
        yield FULL_CHECK.of(status.full_check)


#: By subject. Whatever a later job keeps in the state table, and :class:`Reading` has, gets a function here.
SUBJECTS: tuple[Callable[[Reading, Config], Iterator[Sample]], ...] = (
    _records,
    _oracle,
    _bound,
    _tables,
    _commit_table,
    _runs,
    _history,
    _pauses,
    _ledger,
)


def _age(gauge: Gauge, timestamp: int, reading: Reading, *labels: str) -> Iterator[Sample]:
    """Nothing where timestamps are a counter's, or the mark is 0: then nothing was ever cleaned."""
    age = seconds_since(timestamp, millis(reading.at)) if isinstance(reading.clock, WorldClock) else None
    if age is not None:
        yield gauge.of(age, *labels)
