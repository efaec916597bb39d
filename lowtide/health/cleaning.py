"""Orphan cleanup, watermarks and pruning: what keeps the prune bound back, what failed, what does not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any

from lowtide.cleaning.facts import DROPPING, NEVER, PARTLY, REPLAY
from lowtide.config import Config, Mode
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.ledger import wrong_money
from lowtide.health.reading import Reading
from lowtide.health.words import ago, listed, told
from lowtide.store.state import Bound
from lowtide.tables.inventory import UNMARKED_SINCE, Entry, Kind, without_compactor
from lowtide.tables.phoenix_catalog import UNFINISHED, UNREADABLE
from lowtide.values.clock import EPOCH, clock_contradiction
from lowtide.values.skew import machine_apart, oracle_ahead, oracle_apart

#: The jobs that must run again and again, in their order, and what each is for.
RECURRING = {
    "orphan_cleanup": "cleans",
    "watermark_collection": "moves the prune bound",
    "commit_table_pruning": "prunes the commit table",
}
COLLECT = "lowtide run watermark_collection --execute"
#: Jobs that a person asks for and sees the answer of; what they leave undone no later run makes good, so it would be an alarm for ever.
ASKED_FOR = ("sideline_restore", "journal_replay")


@dataclass(frozen=True, slots=True)
class Standing:
    """How far one table is clean. *lowest* is the least watermark of its regions, *behind* how far below the low watermark that is.

    Regions whose watermark is 0 are *at_zero*. Those of which something was recorded that no longer counts are not *never_cleaned*.
    """

    table: str
    mode: Mode
    regions: int
    at_zero: int
    never_cleaned: int
    lowest: int
    behind: int
    collected: datetime


def standings(reading: Reading, config: Config) -> list[Standing]:
    """Every table that was collected last, by name."""
    found = []
    void = {
        b["table"]
        for b in (reading.bound.blockers if reading.bound else ())
        if b["region"] is not None and _cause(b) is Cause.VOID
    }
    for table, value in sorted(reading.watermarks.items()):
        marks = [r["watermark"] for r in value["regions"]]
        lowest = min(marks, default=0)
        current = max(reading.low_watermark or 0, value["low_watermark"])
        collected = EPOCH + timedelta(milliseconds=value["at"])
        mode = config.table(table).mode
        behind = max(0, current - lowest)
        zero = marks.count(0)
        never = 0 if table in void else zero
        found.append(Standing(table, mode, len(marks), zero, never, lowest, behind, collected))
    return found


# -- the checks


def oracle(reading: Reading, config: Config) -> Iterator[Finding]:
    """The oracle and its low watermark: without them nothing moves."""
    if reading.oracle_problem:
        yield Finding(
            Cause.ORACLE,
            Severity.ALARM,
            "No run can act",
            reading.oracle_problem,
            "Start the oracle, or correct omid.oracle",
            setting="omid.oracle",
        )
    if reading.low_watermark is None:
        what = "No run can start: there is no low watermark"
        yield Finding(
            Cause.NO_WATERMARK,
            Severity.ALARM,
            what,
            reading.low_watermark_problem,
            "Start the oracle: it writes the row",
        )
    elif reading.recorded and (reading.low_watermark < reading.recorded[0] or reading.went_back is not None):
        lowest = min(reading.low_watermark, reading.low_watermark if reading.went_back is None else reading.went_back)
        yield Finding(
            Cause.WATERMARK_BACK,
            Severity.ALARM,
            f"The low watermark went back from {reading.recorded[0]} to {lowest}",
            "the oracle has forgotten its timestamps, or this is another oracle; no recorded watermark can be trusted"
            + ("" if reading.low_watermark == lowest else f", though it stands at {reading.low_watermark} now"),
            "Give the oracle a timestamp store that lasts, make sure that every transaction of before is over, then forget the records; that is "
            "refused, with what is to be done, as long as the oracle gives numbers a second time",
            ("lowtide state reset",),
        )
    elif (
        reading.recorded
        and reading.low_watermark == reading.recorded[0]
        and _old(reading.recorded[1], config.health.stuck_after, reading.at)
    ):
        yield Finding(
            Cause.WATERMARK_STILL,
            Severity.WARNING,
            f"The low watermark stands at {told(reading.low_watermark, reading.clock)}",
            "the oracle raises it when entries fall out of its conflict map: either hardly anything is written, and nothing is wrong, "
            "or the map is too large for what is written",
            "In a store that is written to, set a smaller conflictMapSize in the oracle's omid-server-configuration.yml and start it again; "
            "any transactions that follow raise the mark",
            since=reading.recorded[1],
        )


def clocks(reading: Reading, _: Config) -> Iterator[Finding]:
    """Clocks that differ, as far as reading tells: of a machine that is ahead it does not, since the oracle may have rested."""
    kept = reading.allotted
    if kept is None:
        return
    behind = machine_apart(reading.at, kept.written) if kept.written > reading.at else None
    for apart in (behind, oracle_apart(oracle_ahead(kept), reading.low_watermark or 0, kept.written)):
        if apart:
            what = "Runs that act refuse to start, and sensors that wait for a time fail"
            yield Finding(Cause.CLOCKS, Severity.ALARM, what, apart, "Set the clocks")


def no_grace(_: Reading, config: Config) -> Iterator[Finding]:
    """Pruning that waits for nobody."""
    if not config.grace:
        yield Finding(
            Cause.NO_GRACE,
            Severity.NOTE,
            "Commit entries are pruned without grace",
            "a client that is suspended between its commit and the answer takes itself for aborted, and rolls back what others have read",
            "Set grace to longer than any client may be suspended, such as 7d, unless that is meant",
            setting="grace",
        )


def collected(reading: Reading, _: Config) -> Iterator[Finding]:
    """Whether there is a prune bound at all."""
    if reading.bound is None:
        yield Finding(
            Cause.NEVER_COLLECTED,
            Severity.WARNING,
            "There is no prune bound",
            "no watermark_collection has published yet",
            "Collect",
            (COLLECT,),
        )


def blockers(reading: Reading, config: Config) -> Iterator[Finding]:
    """What held the prune bound when it was collected last, one finding a table and reason."""
    bound = reading.bound
    if bound is None:
        return
    entries = {e.table: e for e in reading.inventory}
    whole = {b["table"] for b in bound.blockers if b["region"] is None}
    for blocker in bound.blockers:
        # What bars the table as a whole comes first: a cleanup would be refused before it.
        if blocker["region"] is None or blocker["table"] not in whole:
            yield _blocking(blocker, entries.get(blocker["table"]), bound, reading, config)


def _blocking(
    blocker: Mapping[str, Any], entry: Entry | None, bound: Bound, reading: Reading, config: Config
) -> Finding:
    table = blocker["table"]
    clean = (f"lowtide run orphan_cleanup --table {table} --execute", COLLECT)
    since = EPOCH + timedelta(milliseconds=blocker["since"]) if "since" in blocker else bound.since
    stuck = since is not None and _old(since, config.health.stuck_after, reading.at)
    severity = Severity.ALARM if stuck else Severity.WARNING
    what = f"The prune bound stands at {told(bound.value, reading.clock)}"
    tables = (table,) if table else ()
    if blocker["region"] is not None:
        more = blocker.get("regions", 1) - 1
        where = f"region {blocker['keys']} of table {table}" + (f" and {more:,} more of its regions" if more else "")
        cause = _cause(blocker)
        dry = config.table(table).mode is Mode.DRY_RUN
        why = {
            Cause.NEVER_CLEANED: f"{where} {'were' if more else 'was'} never cleaned",
            Cause.BEHIND: f"{where} {'are' if more else 'is'} clean up to there only",
        }.get(cause, f"{where}: {blocker['reason']}")
        why += "; its mode is dry-run, so scheduled runs only plan" if dry else ""
        if cause is Cause.BEHIND and not stuck:
            severity = Severity.NOTE  # what every day looks like between one run and the next
        remedy = "Clean it and collect" + (", and set its mode to execute to have that done by itself" if dry else "")
        commands: tuple[str, ...] = clean
        if DROPPING in blocker["reason"]:
            remedy = f"Take Omid's compactor off the table until it is clean; if it came back, let readers see all of it ({REPLAY}). {remedy}"
            commands = (_in_hbase_shell(without_compactor(table)), *clean)
        return Finding(
            cause,
            severity,
            what,
            why,
            remedy,
            commands,
            since,
            tables,
            blocker["keys"],
            f"tables.{table}.mode" if dry else None,
        )
    if entry is not None and not entry.enabled:
        return Finding(
            Cause.DISABLED,
            severity,
            what,
            f"table {table} is disabled, and may come back with cells that were never looked at",
            "Enable it, clean it and collect; or drop it and collect",
            (_in_hbase_shell(f"enable '{table}'"), *clean),
            since,
            tables,
        )
    if entry is not None and entry.doubt:
        return _doubted(entry, what, severity, since, clean)
    if entry is not None and (entry.kind is Kind.UNMARKED or entry.unmarked):
        return Finding(
            Cause.UNMARKED,
            severity,
            what,
            f"table {table}: {blocker['reason']}",
            f"Say in the configuration what it is, tables: {{{table}: {{kind: transactional}}}}"
            + (
                " or kind: plain; then clean it, unless plain, and collect"
                if entry.kind is Kind.UNMARKED
                else "; then clean it and collect"
            ),
            clean,
            since,
            tables,
            setting=f"tables.{table}.kind",
        )
    why = f"table {table}: {blocker['reason']}" if table else blocker["reason"]
    remedy = f"{blocker['remedy'][:1].upper()}{blocker['remedy'][1:]}; then collect"
    return Finding(Cause.BLOCKED, severity, what, why, remedy, (COLLECT,), since, tables)


def blocker_text(blocker: Mapping[str, Any]) -> str:
    """What holds the bound, in a sentence: table, keys of the first of its regions and how many more, reason, remedy."""
    others = blocker.get("regions", 1) - 1
    more = f" and {others:,} more region{'' if others == 1 else 's'}" if others else ""
    where = f"{blocker['table']} {blocker['keys'] or ''}{more}".strip()
    return f"{where}: {blocker['reason']}. Remedy: {blocker['remedy']}"


def _cause(blocker: Mapping[str, Any]) -> Cause:
    """What a region that holds the bound is a finding of."""
    return {NEVER: Cause.NEVER_CLEANED, PARTLY: Cause.BEHIND}.get(blocker["reason"], Cause.VOID)


def _in_hbase_shell(statement: str) -> str:
    return f'echo "{statement}" | hbase shell -n'


def _doubted(entry: Entry, what: str, severity: Severity, since: datetime | None, clean: tuple[str, ...]) -> Finding:
    """A table that is left alone: by what Phoenix's catalog says, by its settings, or by what was recorded of it."""
    table = entry.table
    if entry.kind is Kind.TRANSACTIONAL and entry.doubt.startswith(UNFINISHED):
        cause, setting = Cause.INDEX_UNFINISHED, None
        remedy = (
            "Wait until it is built (one made ASYNC waits for Phoenix's IndexTool). A build that died goes on for ever: begin it again in SQL (ALTER INDEX ... ON ... REBUILD) "
            "or give it up (DROP INDEX ... ON ...). Then clean its table, unless that is dropped, and collect"
        )
    elif entry.kind is Kind.TRANSACTIONAL or UNMARKED_SINCE in entry.doubt:
        cause, setting = Cause.LEFT_ALONE, f"tables.{table}.kind" if entry.kind is Kind.UNMARKED else None
        remedy = "Do what that says; then clean the table, unless it is plain then, and collect"
    elif entry.doubt.startswith(UNREADABLE):
        cause, setting = Cause.CATALOG, f"tables.{table}.kind"
        remedy = (
            "Let the user of the jobs read SYSTEM.CATALOG (enable it, grant R), and collect: what is not transactional is passed over then. "
            f"Or say in the configuration what the table is, tables: {{{table}: {{kind: plain}}}} or kind: transactional"
        )
        clean = clean[1:]
    else:
        cause, setting = Cause.UNMARKED, f"tables.{table}.kind"
        remedy = (
            "Take it for what it is in Phoenix, if its cells are those of Omid as docs/phoenix.md has them: "
            f"tables: {{{table}: {{kind: transactional}}}}, or kind: plain; then clean it, unless plain, and collect"
        )
    return Finding(
        cause, severity, what, f"table {entry.title}: {entry.doubt}", remedy, clean, since, (table,), setting=setting
    )


def failures(reading: Reading, _: Config) -> Iterator[Finding]:
    """What the last runs that acted left undone, job by job."""
    acted = [  # wrong money is a finding of its own
        r for r in reading.runs if r["execute"] and r["job"] not in ASKED_FOR and not wrong_money(r)
    ]
    for job in dict.fromkeys(r["job"] for r in acted):
        runs = [r for r in acted if r["job"] == job]
        yield from _failed_tables(job, runs, reading)
        yield from _failed_as_a_whole(job, runs)


def _failed_tables(job: str, runs: Sequence[Mapping[str, Any]], reading: Reading) -> Iterator[Finding]:
    for table in sorted({t["table"] for r in runs for t in r["tables"]}):
        if reading.listed and table not in reading.listed:
            continue  # dropped since
        reports = [(r, t) for r in runs for t in r["tables"] if t["table"] == table]
        failing = list(takewhile(lambda pair: pair[1]["problems"] or pair[1]["counts"]["failed"], reports))
        if failing:
            newest = failing[0][1]
            problems = list(newest["problems"]) or [f"{newest['counts']['failed']} mutations failed"]
            again = f"lowtide run {job}{_for_table(job, table)} --execute"
            yield _failed(job, table, problems, _started(failing[-1][0]), again)


def _failed_as_a_whole(job: str, runs: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for r in runs:  # the tasks of one DAG run belong together: one that is done does not make up for another
        groups.setdefault(r["context"].get("run_id") or r["run"], []).append(r)
    failing = list(takewhile(lambda group: any(r["problems"] for r in group), groups.values()))
    if failing:
        problems = [p for r in failing[0] for p in r["problems"]]
        yield _failed(job, None, problems, _started(failing[-1][-1]), f"lowtide run {job} --execute")


def _failed(job: str, table: str | None, problems: Sequence[str], since: datetime, again: str) -> Finding:
    of = f" of table {table}" if table else ""
    more = f" (and {len(problems) - 1} more problems)" if len(problems) > 1 else ""
    return Finding(
        Cause.FAILED,
        Severity.ALARM,
        f"The last {job}{of} left work undone",
        f"{problems[0].strip().rstrip('.')}{more}",
        "Do what the problem says, then run it again",
        (f"lowtide runs --job {job}", again),
        since,
        (table,) if table else (),
    )


def _for_table(job: str, table: str) -> str:
    return f" --table {table}" if job in ("orphan_cleanup", "history_gc") else ""


def overdue(reading: Reading, config: Config) -> Iterator[Finding]:
    """Jobs that have not acted for ``health.overdue_after``."""
    if not reading.runs:
        return  # a store that nothing was done to yet: there is no bound either
    oldest = _started(reading.runs[-1])
    # A job that is configured to plan only does its duty by planning; that it does no more is a finding of its own.
    planning = {"commit_table_pruning"} if config.table(config.omid.commit_table).mode is Mode.DRY_RUN else set()
    for job, does in RECURRING.items():
        done = (_started(r) for r in reading.runs if r["job"] == job and (r["execute"] or job in planning))
        last = next(done, None)
        # Of a job that is not among the runs that were read only this is known: it did not run since the oldest of them.
        since = last or oldest
        if _old(since, config.health.overdue_after, reading.at):
            gone = ago(reading.at - since)
            if last is not None:
                why = f"{job} has not acted for {gone}"
            elif reading.more_runs:
                why = f"{job} has not acted for at least {gone}"
            else:
                why = f"{job} has never acted; the first run of any job was {gone} ago"
            yield Finding(
                Cause.OVERDUE,
                Severity.WARNING,
                f"Nothing {does}",
                why,
                f"Run it now; if Airflow should have, see that its DAG is not paused (airflow dags unpause {job}) and that its runs start",
                (f"lowtide run {job} --execute",),
                since,
            )


def dry_runs(reading: Reading, config: Config) -> Iterator[Finding]:
    """Tables that scheduled runs only plan for."""
    tables = [e.table for e in reading.inventory if e.kind is Kind.TRANSACTIONAL]
    holding = {b["table"] for b in (reading.bound.blockers if reading.bound else ()) if b["region"] is not None}
    dry = [t for t in tables if config.table(t).mode is Mode.DRY_RUN and t not in holding]
    if dry:
        yield _dry_run(
            dry, f"{'tables' if len(dry) > 1 else 'table'} {listed(dry)}", "scheduled and backfilled runs only plan"
        )
    if tables and config.table(config.omid.commit_table).mode is Mode.DRY_RUN:
        name = config.omid.commit_table
        yield _dry_run([name], f"the commit table {name}", "scheduled runs prune nothing")


def _dry_run(tables: Sequence[str], subject: str, so: str) -> Finding:
    setting = f"tables.{tables[0]}.mode" if len(tables) == 1 else "defaults.mode"
    return Finding(
        Cause.DRY_RUN,
        Severity.NOTE,
        f"Nothing is done to {subject} by itself",
        f"{'their' if len(tables) > 1 else 'its'} mode is dry-run: {so}",
        f"Look at a dry run's plan; if it is right, set {setting} to execute",
        tables=tuple(tables),
        setting=setting,
    )


def contradicted(reading: Reading, config: Config) -> Iterator[Finding]:
    """What the configuration says against what is seen or recorded, so that every job refuses to run: of the oracle's clock, and of tables that it
    has called plain since the last collection found them transactional."""
    if wrong := clock_contradiction(config.omid.clock, reading.low_watermark or 0):
        yield Finding(
            Cause.CONTRADICTED, Severity.ALARM, "Jobs refuse to run", wrong, "Correct omid.clock", setting="omid.clock"
        )
    for entry in reading.inventory:
        there = not reading.listed or entry.table in reading.listed
        if entry.kind is Kind.TRANSACTIONAL and there and config.table(entry.table).kind is Kind.PLAIN:
            key = config.key_of(entry.table, "kind")
            yield Finding(
                Cause.CONTRADICTED,
                Severity.ALARM,
                "Jobs refuse to run",
                f"{key} is plain in the configuration, and the last collection recorded table {entry.title} as transactional"
                + (f" ({entry.mark})" if entry.mark else ""),
                f"Take {key} out, and collect",
                (COLLECT,),
                tables=(entry.table,),
                setting=key,
            )


def absent(reading: Reading, config: Config) -> Iterator[Finding]:
    """Tables of the configuration that HBase does not have."""
    for table in sorted(set(config.tables) - reading.listed) if reading.listed else ():
        yield Finding(
            Cause.ABSENT,
            Severity.NOTE,
            f"Table {table} is configured and not there",
            f"HBase has no table {table}",
            f"Take tables.{table} out of the configuration, or correct its name",
            tables=(table,),
            setting=f"tables.{table}",
        )


def _old(since: datetime, limit: timedelta, now: datetime) -> bool:
    return now - since >= limit


def _started(run: Mapping[str, Any]) -> datetime:
    return EPOCH + timedelta(milliseconds=run["started"])
