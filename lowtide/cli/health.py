"""``lowtide status`` and ``lowtide explain``: what :mod:`lowtide.health` found, in the terminal."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lowtide.cli.screen import screen
from lowtide.config import Config, load
from lowtide.errors import TableError
from lowtide.health import (
    RECURRING,
    Finding,
    Health,
    HistoryStanding,
    Level,
    Reading,
    Severity,
    Standing,
    ago,
    assess,
    histories,
    ledger_standing,
    span,
    standings,
    told,
)
from lowtide.health.cleaning import blocker_text
from lowtide.health.history import hold_text, kept_back, mark_text
from lowtide.health.ledger import facts
from lowtide.health.reader import read
from lowtide.survey.words import size

_LEVELS = {
    Level.FINE: ("✓", "green"),
    Level.ATTENTION: ("!", "yellow"),
    Level.ALARM: ("✗", "bold red"),
    Level.UNKNOWN: ("?", "bold red"),
}
_SEVERITIES = {Severity.NOTE: "dim", Severity.WARNING: "yellow", Severity.ALARM: "bold red"}

console = screen()
ConfigFile = Annotated[Path | None, typer.Option("--config", help="The configuration file.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="One JSON object instead of text.")]


def status(
    config: ConfigFile = None,
    as_json: Json = False,
    tables: Annotated[
        bool,
        typer.Option(
            "--tables",
            help="How far each table is, alone and in full: the names that SQL has for it, marks as numbers, all that holds the prune bound.",
        ),
    ] = False,
) -> None:
    """Whether the store is healthy, in one sentence, and how far each table is. Exit code 0: fine, 1: cannot be told, 3: attention, 4: alarm."""
    reading, health, loaded = _assessed(config)
    if as_json:
        each = [_standing_json(s) for s in standings(reading, loaded)]
        _print_json({**health.to_json(), **_marks(reading), "tables": each, **_further_json(reading, loaded)})
    elif tables:
        _print_sentence(health)
        if not reading.unreachable:
            _print_tables_in_full(reading, loaded)
    else:
        _print_sentence(health)
        if not reading.unreachable:
            _print_marks(reading, loaded)
            _print_history(reading, loaded)
            _print_ledger(reading)
            _print_last_runs(reading)
        others = health.findings[0 if health.level is Level.FINE else 1 :]
        for finding in others:
            console.print(_headline(finding), soft_wrap=True)
        if health.findings and not reading.unreachable:
            console.print("More: lowtide explain", style="dim")
    raise typer.Exit(health.exit_code)


def explain(
    table: Annotated[str | None, typer.Argument(help="Only what concerns this table.", show_default=False)] = None,
    config: ConfigFile = None,
    as_json: Json = False,
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
    if as_json:
        tables = [_standing_json(s) for s in standings(reading, loaded) if table in (None, s.table)]
        said = {**health.to_json(), "findings": [f.to_json() for f in found], **_marks(reading), "tables": tables}
        _print_json({**said, **_further_json(reading, loaded, table)})
    else:
        _print_sentence(health)
        for standing in standings(reading, loaded):
            if standing.table == table:
                console.print(_standing_text(standing, reading), soft_wrap=True)
        for history in histories(reading, loaded):
            if history.table == table:
                console.print(_history_text(history, reading), soft_wrap=True)
        for finding in found:
            _print_finding(finding, reading.at)
        if not found:
            console.print("Nothing holds anything back.")
    raise typer.Exit(health.exit_code)


def _assessed(file: Path | None) -> tuple[Reading, Health, Config]:
    config = load(file)
    reading = read(config)
    return reading, assess(reading, config), config


def _print_sentence(health: Health) -> None:
    sign, style = _LEVELS[health.level]
    console.print(Text(f"{sign} {health.sentence}", style), soft_wrap=True)


def _print_marks(reading: Reading, config: Config) -> None:
    clock = reading.clock
    grid = Table(title="Tables", title_justify="left")
    for column in ("table", "mode", "regions", "never cleaned", "clean up to", "behind the low watermark"):
        grid.add_column(column, justify="left" if column in {"table", "mode"} else "right", overflow="fold")
    for s in standings(reading, config):
        never = Text(f"{s.never_cleaned:,}", "yellow" if s.never_cleaned else "")
        grid.add_row(s.table, s.mode.value, f"{s.regions:,}", never, told(s.lowest, clock), span(s.behind, clock))
    if grid.row_count:
        console.print(grid)
    if reading.low_watermark is not None:
        console.print(f"Low watermark {told(reading.low_watermark, clock)}", soft_wrap=True)
    if reading.bound:
        since = reading.bound.since or reading.bound.at
        console.print(
            f"Prune bound {told(reading.bound.value, clock)}, since {since:%Y-%m-%d %H:%M} UTC", soft_wrap=True
        )
    if reading.commit_counts:
        count = reading.commit_counts[-1]
        console.print(
            f"Commit table {count.entries:,} entries and {count.marks:,} invalidation marks, as counted {ago(reading.at - count.at)} ago",
            soft_wrap=True,
        )


def _print_tables_in_full(reading: Reading, config: Config) -> None:
    """What is short in :func:`_print_marks`, with numbers that other commands take, and everything that holds the prune bound."""
    found = standings(reading, config)
    if not found:
        console.print("No region watermark is recorded yet; run: lowtide run watermark_collection --execute")
        return
    titles = {entry.table: entry.title for entry in reading.inventory}
    grid = Table(title="Region watermarks", title_justify="left")
    for column in ("table", "mode", "regions", "at 0", "never cleaned", "lowest watermark", "behind the low watermark"):
        grid.add_column(column, justify="left" if column in {"table", "mode"} else "right", overflow="fold")
    for s in found:
        counts = (str(n) for n in (s.regions, s.at_zero, s.never_cleaned, s.lowest, s.behind))
        grid.add_row(titles.get(s.table, s.table), s.mode.value, *counts)
    console.print(grid)
    if reading.low_watermark is not None:
        console.print(f"Low watermark: {reading.low_watermark}", soft_wrap=True)
    if bound := reading.bound:
        since = f", since {bound.since:%Y-%m-%d %H:%M} UTC" if bound.since else ""
        console.print(f"Prune bound: {bound.value}, computed {bound.at:%Y-%m-%d %H:%M} UTC{since}", soft_wrap=True)
        for blocker in bound.blockers:
            console.print(f"  held by {blocker_text(blocker)}", soft_wrap=True)


def _print_last_runs(reading: Reading) -> None:
    for job in (*RECURRING, "history_gc", "transaction_repair"):
        run = next((r for r in reading.runs if r["job"] == job and r["execute"]), None)
        if run:
            started = datetime.fromtimestamp(run["started"] / 1000, UTC)
            style = "green" if run["state"] == "done" else "red"
            said = Text.assemble(f"{job}: ", (run["state"], style), f" {ago(reading.at - started)} ago")
            console.print(said, soft_wrap=True)


def _print_history(reading: Reading, config: Config) -> None:
    """Nothing where no history was ever removed, nor is meant to be, and nobody holds any."""
    found = histories(reading, config)
    if any(h.active or h.removed or h.reclaimable for h in found):
        grid = Table(title="History", title_justify="left")
        for column in ("table", "mode", "removed before", "kept back by", "last removed", "could go"):
            grid.add_column(
                column, justify="right" if column in {"last removed", "could go"} else "left", overflow="fold"
            )
        for h in found:
            gone = [size(r.size) if r else "" for r in (h.removed, h.reclaimable)]
            grid.add_row(h.table, h.mode.value, mark_text(h, reading.clock), kept_back(h), *gone)
        console.print(grid)
    if reading.holds:
        grid = Table(title="Holds", title_justify="left")
        for column in ("table", "id", "from", "owner", "reason", "taken", "expires"):
            grid.add_column(column, overflow="fold")
        for hold in reading.holds:
            grid.add_row(*hold_text(hold, reading))
        console.print(grid)


def _print_ledger(reading: Reading) -> None:
    standing = ledger_standing(reading)
    for what, how in facts(standing, reading.at) if standing else ():
        console.print(Text(f"Ledger, {what}: {how}"), soft_wrap=True)


def _headline(finding: Finding) -> Text:
    return Text(f"{finding.severity.value}: {finding.what}: {finding.why}", _SEVERITIES[finding.severity])


def _print_finding(finding: Finding, now: datetime) -> None:
    console.print()
    console.print(_headline(finding), soft_wrap=True)
    lines = [f"since {finding.since:%Y-%m-%d %H:%M} UTC, {ago(now - finding.since)} ago"] if finding.since else []
    lines += [f"setting {finding.setting}"] if finding.setting else []
    lines += [f"{finding.remedy}{':' if finding.commands else '.'}", *(f"    {c}" for c in finding.commands)]
    for line in lines:
        console.print(Padding(Text(line), (0, 0, 0, 2)), soft_wrap=True)


def _standing_text(s: Standing, reading: Reading) -> Text:
    clock = reading.clock
    never = f", {s.never_cleaned:,} never cleaned" if s.never_cleaned else ""
    return Text(
        f"{s.table}: {s.regions:,} regions{never}; clean up to {told(s.lowest, clock)}, {span(s.behind, clock)} behind the low watermark; "
        f"mode {s.mode.value}; collected {ago(reading.at - s.collected)} ago"
    )


def _history_text(h: HistoryStanding, reading: Reading) -> Text:
    applied = f", applied {ago(reading.at - h.applied_at)} ago" if h.applied_at else ""
    gone = [
        f"; {size(r.size)} {what} {ago(reading.at - r.started)} ago"
        for r, what in ((h.removed, "removed"), (h.reclaimable, "could go, as planned"))
        if r
    ]
    if h.uncompacted:
        gone.append(f"; {size(h.uncompacted)} removed are on disk until HBase compacts")
    mark = f"removed before {mark_text(h, reading.clock)}{applied}" if h.applied else "never removed"
    return Text(f"{h.table}: history {mark}; kept back by {kept_back(h)}; history_mode {h.mode.value}{''.join(gone)}")


def _marks(reading: Reading) -> dict[str, object]:
    bound = reading.bound
    count = reading.commit_counts[-1] if reading.commit_counts else None
    return {
        "at": reading.at.isoformat(),
        "low_watermark": reading.low_watermark,
        "bound": None if bound is None else bound.value,
        "bound_since": None if bound is None else (bound.since or bound.at).isoformat(),
        "commit_table": count
        and {"at": count.at.isoformat(timespec="milliseconds"), "entries": count.entries, "marks": count.marks},
    }


def _standing_json(s: Standing) -> dict[str, object]:
    numbers = {name: getattr(s, name) for name in ("table", "regions", "never_cleaned", "lowest", "behind")}
    return {**numbers, "mode": s.mode.value, "collected": s.collected.isoformat()}


def _further_json(reading: Reading, config: Config, table: str | None = None) -> dict[str, object]:
    return {
        "history": [h.to_json() for h in histories(reading, config) if table in (None, h.table)],
        "holds": [h.to_json() | {"counts": h.counts(reading.at)} for h in reading.holds if table in (None, h.table)],
        "ledger": (ledger := ledger_standing(reading)) and ledger.to_json(),
    }


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2))
