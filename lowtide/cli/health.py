"""``lowtide status`` and ``lowtide explain``: what :mod:`lowtide.health` found, in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from lowtide.cli.configuration import configured
from lowtide.cli.options import ConfigFile
from lowtide.cli.output import Output, OutputStyle, answer
from lowtide.config import Config
from lowtide.errors import TableError, UsageError
from lowtide.health import (
    RECURRING,
    Finding,
    Health,
    HistoryStatus,
    Level,
    Reading,
    Severity,
    TableStatus,
    assess,
    grouped,
    history_statuses,
    last_runs,
    ledger_status,
    table_statuses,
)
from lowtide.health.bound import blocker_text
from lowtide.health.hbase import version
from lowtide.health.history import hold_text, kept_back, mark_text
from lowtide.health.ledger import status_rows
from lowtide.health.reader import read
from lowtide.terminal.console import new_console, note
from lowtide.terminal.tables import new_table, print_table
from lowtide.values.clock import from_millis
from lowtide.values.text import age_text, distance_text, moment_text, size_text, timestamp_text

_LEVELS = {
    Level.FINE: ("✓", "green"),
    Level.ATTENTION: ("!", "yellow"),
    Level.ALARM: ("✗", "bold red"),
    Level.UNKNOWN: ("?", "bold red"),
}
_SEVERITIES = {Severity.NOTE: "dim", Severity.WARNING: "yellow", Severity.ALARM: "bold red"}

console = new_console()
#: Of the CSV of status, and of explain.
TABLE_COLUMNS = ("table", "mode", "regions", "never_cleaned", "lowest", "behind", "collected")
FINDING_COLUMNS = (
    *("severity", "cause", "what", "why", "since", "tables", "region", "setting"),
    *("remedy", "commands"),
)


def status(
    config: ConfigFile = None,
    output: OutputStyle = Output.TABLE,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables",
            help="How far each table is, alone and in full: the names that SQL has for it, marks as numbers, all that "
            "holds the prune bound.",
        ),
    ] = False,
    prometheus: Annotated[
        bool,
        typer.Option(
            "--prometheus",
            help="Print the metrics in Prometheus's text format, for node_exporter's textfile collector. Exit code 0, "
            "however the store is: that is in the metrics.",
        ),
    ] = False,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to",
            help="With --prometheus: write them to this file, whole or not at all, instead of printing them.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Whether the store is healthy, in one sentence, and how far each table is. Exit code 0: fine, 1: unknown, 3:
    attention, 4: alarm.
    """
    if prometheus or to:
        _check_alone(prometheus, to, {f"--output {output}": output is not Output.TABLE, "--tables": tables})
        _print_metrics(configured(config), to)
        return
    reading, health, loaded = _assessed(config)
    each = [_table_json(s) for s in table_statuses(reading, loaded)]
    answer(
        output,
        lambda: {**health.to_json(), **_marks(reading), "tables": each, **_further_json(reading, loaded)},
        TABLE_COLUMNS,
        lambda: each,
        lambda: _print_status(health, reading, loaded, in_full=tables),
    )
    if output is Output.CSV and reading.unreachable:
        note(reading.unreachable)
    raise typer.Exit(health.exit_code)


def _print_status(health: Health, reading: Reading, config: Config, *, in_full: bool) -> None:
    _print_sentence(health)
    if in_full:
        if not reading.unreachable:
            _print_tables_in_full(reading, config)
        return
    if not reading.unreachable:
        _print_marks(reading, config)
        _print_history(reading, config)
        _print_ledger(reading)
        _print_last_runs(reading)
    for first, *alike in grouped(health.findings[0 if health.level is Level.FINE else 1 :]):
        more = f"; {len(alike)} more like it" if alike else ""
        console.print(_headline(first).append(more), soft_wrap=True)
    if health.findings and not reading.unreachable:
        console.print("More: lowtide explain", style="dim", soft_wrap=True)


def explain(
    table: Annotated[str | None, typer.Argument(help="Only what concerns this table.", show_default=False)] = None,
    config: ConfigFile = None,
    output: OutputStyle = Output.TABLE,
) -> None:
    """Why marks do not move: what blocks, since when, and the commands that resolve it. Exit codes as of status."""
    reading, health, loaded = _assessed(config)
    found = health.findings
    if table is not None and not reading.unreachable:
        found = health.of(table)
        if table not in reading.listed and not any(
            table in f.tables for f in found
        ):  # one only configured is a finding
            msg = f"no such table: {table}; HBase has {', '.join(sorted(reading.listed)) or 'none'}"
            raise TableError(msg)
    findings = [f.to_json() for f in found]

    def everything() -> dict[str, object]:
        tables = [_table_json(s) for s in table_statuses(reading, loaded) if table in (None, s.table)]
        told = {**health.to_json(), "findings": findings, **_marks(reading), "tables": tables}
        return {**told, **_further_json(reading, loaded, table)}

    answer(
        output,
        everything,
        FINDING_COLUMNS,
        lambda: findings,
        lambda: _print_explanation(health, reading, loaded, table, found),
    )
    raise typer.Exit(health.exit_code)


def _print_explanation(
    health: Health, reading: Reading, config: Config, table: str | None, found: Sequence[Finding]
) -> None:
    _print_sentence(health)
    for each in table_statuses(reading, config):
        if each.table == table:
            console.print(_table_text(each, reading), soft_wrap=True)
    for history in history_statuses(reading, config):
        if history.table == table:
            console.print(_history_text(history, reading), soft_wrap=True)
    for finding in found:
        _print_finding(finding, reading.at)
    if not found:
        console.print("Nothing holds anything back.", soft_wrap=True)


def _assessed(file: Path | None) -> tuple[Reading, Health, Config]:
    config = configured(file)
    reading = read(config)
    return reading, assess(reading, config), config


def _check_alone(prometheus: bool, to: Path | None, others: Mapping[str, bool]) -> None:
    if not prometheus:
        raise UsageError(f"--to {to} is where metrics go, and none are asked for", "add --prometheus, or leave it out")
    if given := [name for name, chosen in others.items() if chosen]:
        raise UsageError(f"--prometheus and {given[0]} are two forms of one answer", "ask for one of them")


def _print_metrics(config: Config, to: Path | None) -> None:
    from lowtide.monitoring.metrics import Observation  # who asks for no metrics does not wait for their library
    from lowtide.monitoring.text import exposition, write

    seen = [Observation(read(config), config)]
    if to:
        write(seen, to)
    else:
        typer.echo(exposition(seen)[0].decode(), nl=False)


def _print_sentence(health: Health) -> None:
    sign, style = _LEVELS[health.level]
    console.print(Text(f"{sign} {health.sentence}", style), soft_wrap=True)


def _print_marks(reading: Reading, config: Config) -> None:
    clock = reading.clock
    titles = ("table", "mode", "regions", "never cleaned", "clean up to", "behind the low watermark")
    grid = new_table("Tables", *titles, numbers=titles[2:])
    for s in table_statuses(reading, config):
        never = Text(f"{s.never_cleaned:,}", "yellow" if s.never_cleaned else "")
        grid.add_row(
            s.table,
            s.mode.value,
            f"{s.regions:,}",
            never,
            timestamp_text(s.lowest, clock),
            distance_text(s.behind, clock),
        )
    if grid.row_count:
        print_table(console, grid)
    if reading.low_watermark is not None:
        console.print(f"Low watermark {timestamp_text(reading.low_watermark, clock)}", soft_wrap=True)
    if reading.bound:
        since = reading.bound.since or reading.bound.at
        console.print(
            f"Prune bound {timestamp_text(reading.bound.value, clock)}, since {moment_text(since)}", soft_wrap=True
        )
    if found := version(reading):
        console.print(f"HBase {found}", soft_wrap=True)
    if reading.commit_counts:
        count = reading.commit_counts[-1]
        console.print(
            f"Commit table {count.entries:,} entries and {count.marks:,} invalidation marks, as counted "
            f"{age_text(reading.at - count.at)} ago",
            soft_wrap=True,
        )


def _print_tables_in_full(reading: Reading, config: Config) -> None:
    """What is short in :func:`_print_marks`, with numbers that other commands take, and everything that holds the
    prune bound.
    """
    found = table_statuses(reading, config)
    if not found:
        console.print(
            "No region watermark is recorded yet; run: lowtide run watermark_collection --execute", soft_wrap=True
        )
        return
    titles = {entry.table: entry.title for entry in reading.inventory}
    columns = ("table", "mode", "regions", "at 0", "never cleaned", "lowest watermark", "behind the low watermark")
    grid = new_table("Region watermarks", *columns, numbers=columns[2:])
    for s in found:
        counts = (str(n) for n in (s.regions, s.at_zero, s.never_cleaned, s.lowest, s.behind))
        grid.add_row(titles.get(s.table, s.table), s.mode.value, *counts)
    print_table(console, grid)
    if reading.low_watermark is not None:
        console.print(f"Low watermark: {reading.low_watermark}", soft_wrap=True)
    if bound := reading.bound:
        since = f", since {moment_text(bound.since)}" if bound.since else ""
        console.print(f"Prune bound: {bound.value}, computed {moment_text(bound.at)}{since}", soft_wrap=True)
        for blocker in bound.blockers:
            console.print(f"  held by {blocker_text(blocker)}", soft_wrap=True)


def _print_last_runs(reading: Reading) -> None:
    told = (*RECURRING, "history_gc", "transaction_repair")
    last = {run.job: run.summaries[0] for run in last_runs(reading) if run.execute}
    for job in (job for job in told if job in last):
        run = last[job]
        style = "green" if run["state"] == "done" else "red"
        ago = age_text(reading.at - from_millis(run["started"]))
        console.print(Text.assemble(f"{job}: ", (run["state"], style), f" {ago} ago"), soft_wrap=True)


def _print_history(reading: Reading, config: Config) -> None:
    """Nothing where no history was ever removed, nor is meant to be, and nobody holds any."""
    found = history_statuses(reading, config)
    if any(h.active or h.removed or h.reclaimable for h in found):
        columns = ("table", "mode", "removed before", "kept back by", "last removed", "could go")
        grid = new_table("History", *columns, numbers=columns[4:])
        for h in found:
            gone = [size_text(r.size) if r else "" for r in (h.removed, h.reclaimable)]
            grid.add_row(h.table, h.mode.value, mark_text(h, reading.clock), kept_back(h), *gone)
        print_table(console, grid)
    if reading.holds:
        grid = new_table("Holds", "table", "id", "from", "owner", "reason", "taken", "expires")
        for hold in reading.holds:
            grid.add_row(*hold_text(hold, reading))
        print_table(console, grid)


def _print_ledger(reading: Reading) -> None:
    status = ledger_status(reading)
    for what, how in status_rows(status, reading.at) if status else ():
        console.print(Text(f"Ledger, {what}: {how}"), soft_wrap=True)


def _headline(finding: Finding) -> Text:
    return Text(f"{finding.severity.value}: {finding.what}: {finding.why}", _SEVERITIES[finding.severity])


def _print_finding(finding: Finding, now: datetime) -> None:
    console.print()
    console.print(_headline(finding), soft_wrap=True)
    lines = [f"since {moment_text(finding.since)}, {age_text(now - finding.since)} ago"] if finding.since else []
    lines += [f"setting {finding.setting}"] if finding.setting else []
    lines += [f"{finding.remedy}{':' if finding.commands else '.'}", *(f"    {c}" for c in finding.commands)]
    for line in lines:
        console.print(Text(f"  {line}"), soft_wrap=True)


def _table_text(s: TableStatus, reading: Reading) -> Text:
    clock = reading.clock
    never = f", {s.never_cleaned:,} never cleaned" if s.never_cleaned else ""
    return Text(
        f"{s.table}: {s.regions:,} regions{never}; clean up to {timestamp_text(s.lowest, clock)}, "
        f"{distance_text(s.behind, clock)} behind the low watermark; mode {s.mode.value}; collected "
        f"{age_text(reading.at - s.collected)} ago"
    )


def _history_text(h: HistoryStatus, reading: Reading) -> Text:
    applied = f", applied {age_text(reading.at - h.applied_at)} ago" if h.applied_at else ""
    gone = [
        f"; {size_text(r.size)} {what} {age_text(reading.at - r.started)} ago"
        for r, what in ((h.removed, "removed"), (h.reclaimable, "could go, as planned"))
        if r
    ]
    if h.uncompacted:
        gone.append(f"; {size_text(h.uncompacted)} removed are on disk until HBase compacts")
    mark = f"removed before {mark_text(h, reading.clock)}{applied}" if h.applied else "never removed"
    return Text(f"{h.table}: history {mark}; kept back by {kept_back(h)}; history_mode {h.mode.value}{''.join(gone)}")


def _marks(reading: Reading) -> dict[str, object]:
    bound = reading.bound
    count = reading.commit_counts[-1] if reading.commit_counts else None
    return {
        "at": reading.at.isoformat(),
        "hbase": version(reading) or None,
        "low_watermark": reading.low_watermark,
        "bound": None if bound is None else bound.value,
        "bound_since": None if bound is None else (bound.since or bound.at).isoformat(),
        "commit_table": count
        and {"at": count.at.isoformat(timespec="milliseconds"), "entries": count.entries, "marks": count.marks},
    }


def _table_json(s: TableStatus) -> dict[str, object]:
    numbers = {name: getattr(s, name) for name in ("table", "regions", "never_cleaned", "lowest", "behind")}
    return {**numbers, "mode": s.mode.value, "collected": s.collected.isoformat()}


def _further_json(reading: Reading, config: Config, table: str | None = None) -> dict[str, object]:
    return {
        "history": [h.to_json() for h in history_statuses(reading, config) if table in (None, h.table)],
        "holds": [h.to_json() | {"counts": h.counts(reading.at)} for h in reading.holds if table in (None, h.table)],
        "ledger": (ledger := ledger_status(reading)) and ledger.to_json(),
    }
