"""The prune bound: whether there is one, and what keeps it back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lowtide.cleaning.facts import DROPPING, NEVER, OBJECTED, PARTLY, REPLAY
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


@dataclass(frozen=True, slots=True)
class _Blocker:
    """What held the bound, with what all findings of it share."""

    about: Mapping[str, Any]
    #: The table, where the last collection listed it.
    entry: Entry | None
    since: datetime | None
    #: Since so long that it is an alarm.
    stuck: bool
    what: str

    @property
    def table(self) -> str:
        """Its name; empty where no table in particular holds the bound."""
        name: str = self.about["table"]
        return name

    @property
    def severity(self) -> Severity:
        """By how long the bound has been held."""
        return Severity.ALARM if self.stuck else Severity.WARNING

    @property
    def clean(self) -> tuple[str, ...]:
        """The commands that clean the table and move the bound on."""
        return (f"lowtide run orphan_cleanup --table {self.table} --execute", COLLECT)

    def finding(
        self,
        cause: Cause,
        why: str,
        remedy: str,
        commands: tuple[str, ...],
        *,
        severity: Severity | None = None,
        region: str | None = None,
        setting: str | None = None,
    ) -> Finding:
        """One of *cause*; *severity*: None: by how long the bound has been held."""
        tables = (self.table,) if self.table else ()
        return Finding(
            cause, severity or self.severity, self.what, why, remedy, commands, self.since, tables, region, setting
        )


def _blocking(about: Mapping[str, Any], entry: Entry | None, bound: Bound, reading: Reading, config: Config) -> Finding:
    """The first that fits: a region comes before its table, and what bars a table before what is not known of it."""
    since = from_millis(about["since"]) if "since" in about else bound.since
    stuck = since is not None and reading.at - since >= config.health.stuck_after
    what = f"The prune bound stands at {timestamp_text(bound.value, reading.clock)}"
    blocker = _Blocker(about, entry, since, stuck, what)
    if about["region"] is not None:
        return _region(blocker, dry=config.table(blocker.table).mode is Mode.DRY_RUN)
    if entry is not None and not entry.enabled:
        return _disabled(blocker)
    if entry is not None and entry.doubt:
        return _doubted(blocker, entry)
    if entry is not None and (entry.kind is Kind.UNMARKED or entry.unmarked):
        return _unmarked(blocker, entry)
    return _other(blocker)


def _region(blocker: _Blocker, dry: bool) -> Finding:
    """A region that is not clean. *dry*: its table's mode is dry-run."""
    about, table = blocker.about, blocker.table
    more = about.get("regions", 1) - 1
    where = f"region {about['keys']} of table {table}" + (f" and {more:,} more of its regions" if more else "")
    cause = region_cause(about)
    why = {
        Cause.NEVER_CLEANED: f"{where} {'were' if more else 'was'} never cleaned",
        Cause.BEHIND: f"{where} {'are' if more else 'is'} clean up to there only",
    }.get(cause, f"{where}: {about['reason']}")
    waits = about["reason"].partition(OBJECTED)[2]
    if waits and cause is not Cause.VOID:
        why += f"{OBJECTED}{waits}"
    why += "; its mode is dry-run, so scheduled runs only plan" if dry else ""
    remedy = "Clean it and collect" + (", and set its mode to execute to have that done by itself" if dry else "")
    commands = blocker.clean
    if DROPPING in about["reason"]:
        remedy = (
            "Take Omid's compactor off the table until it is clean; if it came back, let readers see all of "
            f"it ({REPLAY}). {remedy}"
        )
        commands = (_in_hbase_shell(without_compactor(table)), *commands)
    if waits:  # to clean it would be refused before
        remedy = f"{about['remedy'][:1].upper()}{about['remedy'][1:]}. {remedy}"
    # What every day looks like between one run and the next.
    severity = Severity.NOTE if cause is Cause.BEHIND and not blocker.stuck else None
    setting = f"tables.{table}.mode" if dry else None
    return blocker.finding(cause, why, remedy, commands, severity=severity, region=about["keys"], setting=setting)


def _disabled(blocker: _Blocker) -> Finding:
    return blocker.finding(
        Cause.DISABLED,
        f"table {blocker.table} is disabled, and may come back with cells that no job has read",
        "Enable it, clean it and collect; or drop it and collect",
        (_in_hbase_shell(f"enable '{blocker.table}'"), *blocker.clean),
    )


def _unmarked(blocker: _Blocker, entry: Entry) -> Finding:
    """A table, or families of it, of which nothing says whether they are transactional."""
    table = blocker.table
    return blocker.finding(
        Cause.UNMARKED,
        f"table {table}: {blocker.about['reason']}",
        f"Say in the configuration what it is, tables: {{{table}: {{kind: transactional}}}}"
        + (
            " or kind: plain; then clean it, unless plain, and collect"
            if entry.kind is Kind.UNMARKED
            else "; then clean it and collect"
        ),
        blocker.clean,
        setting=f"tables.{table}.kind",
    )


def _other(blocker: _Blocker) -> Finding:
    """Whatever else the collection says of it, with its remedy."""
    about = blocker.about
    why = f"table {blocker.table}: {about['reason']}" if blocker.table else about["reason"]
    remedy = f"{about['remedy'][:1].upper()}{about['remedy'][1:]}; then collect"
    return blocker.finding(Cause.BLOCKED, why, remedy, (COLLECT,))


def _doubted(blocker: _Blocker, entry: Entry) -> Finding:
    """A table that is left alone: by what Phoenix's catalog says, by its settings, or by what was recorded of it."""
    table, commands = entry.table, blocker.clean
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
        commands = (COLLECT,)
    else:
        cause, setting = Cause.UNMARKED, f"tables.{table}.kind"
        remedy = (
            "Take it for what it is in Phoenix, if its cells are those of Omid as docs/phoenix.md has them: "
            f"tables: {{{table}: {{kind: transactional}}}}, or kind: plain; then clean it, unless plain, and collect"
        )
    return blocker.finding(cause, f"table {entry.title}: {entry.doubt}", remedy, commands, setting=setting)


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
    reason = blocker["reason"].partition(OBJECTED)[0]
    return {NEVER: Cause.NEVER_CLEANED, PARTLY: Cause.BEHIND}.get(reason, Cause.VOID)


def _in_hbase_shell(statement: str) -> str:
    return f'echo "{statement}" | hbase shell -n'
