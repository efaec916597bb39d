"""The audit log: what is written down of every run that may act, before it begins and after it ended. Pure.

An entry is a line of JSON. It says who, as whom, from where, with which arguments, by whose approval, and what came of
it in numbers by table; it names no row and no value, so that it can be kept for longer than what was removed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from lowtide.run.summary import Summary, TableReport

#: The events, in their order. A run of which only the first is there was killed, or could not write the second.
BEGAN, ENDED = "began", "ended"


def began(summary: Summary, arguments: Sequence[str], at: datetime) -> str:
    """Before anything of it takes effect. *arguments*: as the job's program was given them."""
    return _line(BEGAN, summary, at, {"arguments": list(arguments)})


def ended(summary: Summary, code: int, at: datetime) -> str:
    """After all of it. *code*: the exit code as it stands."""
    found = {
        "exit": code,
        "seconds": summary.seconds,
        "low_watermark": summary.low_watermark,
        "bound": summary.bound,
        "tables": [_of_table(table) for table in summary.tables],
        # How many: in the words of one, a row may be named.
        "problems": len(summary.problems) + sum(len(table.problems) for table in summary.tables),
    }
    return _line(ENDED, summary, at, found)


def name(event: str, run: str, at: datetime) -> str:
    """What the file of an entry is called: names sort as the entries came. *run*: as it can stand in a name."""
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%S.%fZ}-{event}-{run}.jsonl"


def _line(event: str, summary: Summary, at: datetime, found: dict[str, Any]) -> str:
    whose = {"run": summary.run, "job": summary.job, "by": summary.by, "context": summary.context}
    return json.dumps({"at": at.astimezone(UTC).isoformat(), "event": event, **whose, **found}) + "\n"


def _of_table(table: TableReport) -> dict[str, Any]:
    counts = {name: count for name, count in table.counts.to_json().items() if count}
    return {
        "table": table.table,
        "execute": table.execute,
        "counts": counts,
        "mark": table.mark["mark"] if table.mark else None,
        "problems": len(table.problems),
    }
