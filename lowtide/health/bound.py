"""The prune bound: whether there is one, and what keeps it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from lowtide.cleaning.facts import DROPPING, NEVER, PARTLY, REPLAY
from lowtide.config import Config, Mode
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.reading import Reading
from lowtide.store.records import Bound
from lowtide.tables.inventory import UNMARKED_SINCE, Entry, Kind, without_compactor
from lowtide.tables.phoenix_catalog import UNFINISHED, UNREADABLE
from lowtide.values.clock import from_millis
from lowtide.values.text import timestamp_text

COLLECT = "lowtide run watermark_collection --execute"


def never_collected(reading: Reading, _: Config) -> Iterator[Finding]:
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
    since = from_millis(blocker["since"]) if "since" in blocker else bound.since
    stuck = since is not None and reading.at - since >= config.health.stuck_after
    severity = Severity.ALARM if stuck else Severity.WARNING
    what = f"The prune bound stands at {timestamp_text(bound.value, reading.clock)}"
    tables = (table,) if table else ()
    if blocker["region"] is not None:
        more = blocker.get("regions", 1) - 1
        where = f"region {blocker['keys']} of table {table}" + (f" and {more:,} more of its regions" if more else "")
        cause = region_cause(blocker)
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
            remedy = (
                "Take Omid's compactor off the table until it is clean; if it came back, let readers see all of "
                f"it ({REPLAY}). {remedy}"
            )
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
            f"table {table} is disabled, and may come back with cells that no job has read",
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
    """What holds the bound, in a sentence: table, keys of the first of its regions and how many more, reason,
    remedy.
    """
    others = blocker.get("regions", 1) - 1
    more = f" and {others:,} more region{'' if others == 1 else 's'}" if others else ""
    where = f"{blocker['table']} {blocker['keys'] or ''}{more}".strip()
    return f"{where + ': ' if where else ''}{blocker['reason']}. Remedy: {blocker['remedy']}"


def region_cause(blocker: Mapping[str, Any]) -> Cause:
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
            "Wait until it is built (one made ASYNC waits for Phoenix's IndexTool). A build that died goes on for "
            "ever: begin it again in SQL (ALTER INDEX ... ON ... REBUILD) or give it up (DROP INDEX ... ON ...). Then "
            "clean its table, unless that is dropped, and collect"
        )
    elif entry.kind is Kind.TRANSACTIONAL or UNMARKED_SINCE in entry.doubt:
        cause, setting = Cause.LEFT_ALONE, f"tables.{table}.kind" if entry.kind is Kind.UNMARKED else None
        remedy = "Do what that says; then clean the table, unless it is plain then, and collect"
    elif entry.doubt.startswith(UNREADABLE):
        cause, setting = Cause.CATALOG, f"tables.{table}.kind"
        remedy = (
            "Let the user of the jobs read SYSTEM.CATALOG (enable it, grant R), and collect: what is not transactional "
            f"is passed over then. Or say in the configuration what the table is, tables: {{{table}: {{kind: plain}}}} "
            "or kind: transactional"
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
