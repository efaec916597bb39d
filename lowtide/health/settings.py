"""What the configuration has that a person should know: what is only planned, what has no grace, what is not there,
what cannot be true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lowtide.config import Config, Mode
from lowtide.health.bound import COLLECT
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.reading import Reading
from lowtide.tables.inventory import Kind
from lowtide.values.clock import clock_contradiction
from lowtide.values.text import names_text


def contradicted(reading: Reading, config: Config) -> Iterator[Finding]:
    """What the configuration contradicts, so that every job refuses to run: the clock that the oracle has, and tables
    that it calls plain since the last collection found them transactional.
    """
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
                f"{key} is plain in the configuration, and the last collection recorded table {entry.title} as "
                "transactional" + (f" ({entry.mark})" if entry.mark else ""),
                f"Take {key} out, and collect",
                (COLLECT,),
                tables=(entry.table,),
                setting=key,
            )


def dry_runs(reading: Reading, config: Config) -> Iterator[Finding]:
    """Tables that scheduled runs only plan for."""
    tables = [e.table for e in reading.inventory if e.kind is Kind.TRANSACTIONAL]
    holding = {b["table"] for b in (reading.bound.blockers if reading.bound else ()) if b["region"] is not None}
    dry = [t for t in tables if config.table(t).mode is Mode.DRY_RUN and t not in holding]
    if dry:
        yield _dry_run(
            dry, f"{'tables' if len(dry) > 1 else 'table'} {names_text(dry)}", "scheduled and backfilled runs only plan"
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


def no_grace(_: Reading, config: Config) -> Iterator[Finding]:
    """Pruning that waits for nobody."""
    if not config.grace:
        yield Finding(
            Cause.NO_GRACE,
            Severity.NOTE,
            "Commit entries are pruned without grace",
            "a client that is suspended between its commit and the answer takes itself for aborted, and rolls back "
            "what others have read",
            "Set grace to longer than any client may be suspended, such as 7d, unless that is meant",
            setting="grace",
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
