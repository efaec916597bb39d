"""What a reading of the store leads to: findings, and the judgement of the whole. Values only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How much a finding matters, from nothing to do at all."""

    NOTE = "note"
    WARNING = "warning"
    ALARM = "alarm"


class Level(StrEnum):
    """The health of the whole."""

    FINE = "fine"
    ATTENTION = "attention"
    ALARM = "alarm"
    #: The store could not be read.
    UNKNOWN = "unknown"


#: What ``lowtide status`` and ``lowtide explain`` end with (2 is for bad arguments, as everywhere).
EXIT_CODES = {Level.FINE: 0, Level.UNKNOWN: 1, Level.ATTENTION: 3, Level.ALARM: 4}


class Cause(StrEnum):
    """The kinds of findings; docs/operating.md has a paragraph on each."""

    GATEWAY = "gateway-down"
    NEWER = "newer-records"
    CLOCKS = "clocks-apart"
    ORACLE = "oracle-down"
    NO_WATERMARK = "no-low-watermark"
    WATERMARK_BACK = "low-watermark-back"
    WATERMARK_STILL = "low-watermark-still"
    NEVER_COLLECTED = "never-collected"
    NEVER_CLEANED = "never-cleaned"
    VOID = "records-void"
    BEHIND = "behind"
    UNMARKED = "unmarked"
    DISABLED = "disabled"
    INDEX_UNFINISHED = "index-unfinished"
    CATALOG = "catalog-unreadable"
    LEFT_ALONE = "left-alone"
    BLOCKED = "blocked"
    FAILED = "failed"
    OVERDUE = "overdue"
    DRY_RUN = "dry-run"
    NO_GRACE = "no-grace"
    ABSENT = "absent"
    CONTRADICTED = "contradicted"
    UNTRIED_HBASE = "untried-hbase"
    PAUSED = "paused"
    VETOED = "vetoed"
    HISTORY_HELD = "history-held"
    HISTORY_BLOCKED = "history-blocked"
    HISTORY_NEVER = "history-never"
    HISTORY_UNFINISHED = "history-unfinished"
    NEVER_REPAIRED = "never-repaired"
    UNSETTLED = "unsettled"
    SETTLED_BACK = "settled-back"
    MONEY = "money"
    LEDGER_BROKEN = "ledger-broken"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to know. *what* does not move or is wrong, and *why*; both are sentences without a full stop.

    *since* is when it was first recorded, None where that is not recorded. *setting* is the key of the configuration
    that is the reason or the remedy. *commands* are for a shell, in their order; where a remedy is nothing for a shell
    they are what comes after it.
    """

    cause: Cause
    severity: Severity
    what: str
    why: str
    remedy: str
    commands: tuple[str, ...] = ()
    since: datetime | None = None
    tables: tuple[str, ...] = ()
    region: str | None = None
    setting: str | None = None

    def to_json(self) -> dict[str, Any]:
        """A plain mapping; *since* is ISO 8601."""
        return {
            **{name: getattr(self, name) for name in ("what", "why", "remedy", "region", "setting")},
            "cause": self.cause.value,
            "severity": self.severity.value,
            "commands": list(self.commands),
            "tables": list(self.tables),
            "since": self.since.isoformat() if self.since else None,
        }


@dataclass(frozen=True, slots=True)
class Health:
    """The judgement: findings, the worst first, and one sentence."""

    level: Level
    sentence: str
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        """What a program that asked ends with."""
        return EXIT_CODES[self.level]

    def of(self, table: str) -> tuple[Finding, ...]:
        """The findings about *table*, and those about no table in particular."""
        return tuple(f for f in self.findings if not f.tables or table in f.tables)

    def to_json(self) -> dict[str, Any]:
        """A plain mapping."""
        found = [f.to_json() for f in self.findings]
        return {"level": self.level.value, "sentence": self.sentence, "findings": found}


def grouped(findings: Iterable[Finding]) -> list[tuple[Finding, ...]]:
    """The findings as they are shown: notes of one cause together, where the first of them stands, every other one by
    itself.
    """
    found: dict[object, list[Finding]] = {}
    for each in findings:
        key: object = each.cause if each.severity is Severity.NOTE else id(each)
        found.setdefault(key, []).append(each)
    return [tuple(group) for group in found.values()]
