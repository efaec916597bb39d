"""A plan that was approved: the counts of a dry run, and whether a later plan is still the same. Pure, but for reading
the file.

A run that is given one works no further than that dry run did, makes its own plan, and acts only if that plan has the
same counts, table by table. So it does what was approved, or nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lowtide.errors import ApprovalError, UsageError
from lowtide.run.summary import PLANNED

#: The jobs whose plans can be approved.
JOBS = ("orphan_cleanup", "history_gc")
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Part:
    """What is planned for one table: the counts that are not 0, and for history_gc the mark."""

    counts: Mapping[str, int]
    mark: int | None = None

    def __str__(self) -> str:
        mark = [] if self.mark is None else [f"mark {self.mark}"]
        return ", ".join([*mark, *(f"{name} {count:,}" for name, count in self.counts.items())]) or "nothing"


@dataclass(frozen=True, slots=True)
class Approved:
    """A plan that was approved: the run that made it, how far it went, and its parts by table; those with nothing to do
    are left out.
    """

    run: str
    low_watermark: int
    parts: Mapping[str, Part]


def digest(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What of a dry run's *summary* must be kept to hold a later run to it; :func:`approved` takes it like the
    whole.
    """
    return {
        **{name: summary[name] for name in ("job", "run", "execute", "state", "low_watermark")},
        "tables": [
            {"table": name, "counts": dict(part.counts), "mark": None if part.mark is None else {"mark": part.mark}}
            for name, part in parts(summary["tables"]).items()
        ],
    }


def read(file: Path, job: str) -> Approved:
    """The plan in *file*, the summary that a dry run of *job* wrote.

    Raises:
        UsageError: there is no such file, or it holds no plan of this job.
    """
    try:
        return approved(json.loads(file.read_text("utf-8")), job)
    except OSError as error:
        msg = f"--approved: cannot read {file}: {error.strerror}; give the file that a dry run wrote with --summary"
        raise UsageError(msg) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        msg = (
            f"--approved: {file} is no summary of a run ({type(error).__name__}: {error}); give the file that a "
            "dry run wrote with --summary"
        )
        raise UsageError(msg) from error


def approved(summary: Mapping[str, Any], job: str) -> Approved:
    """The plan in a dry run's *summary*.

    Raises:
        UsageError: it is another job's, or the run acted, or it left something undone.
    """
    wrong = (
        f"of {summary['job']}, not of {job}"
        if summary["job"] != job
        else "of a run that acted, not of a dry run"
        if summary["execute"]
        else "of a run that failed, so its plan is not whole"
        if summary["state"] != "done"
        else ""
    )
    if wrong:
        msg = (
            f"--approved: the summary of run {summary['run']} is {wrong}; give that of a dry run of {job} that is done"
        )
        raise UsageError(msg)
    return Approved(summary["run"], int(summary["low_watermark"]), parts(summary["tables"]))


def parts(tables: Iterable[Mapping[str, Any]]) -> dict[str, Part]:
    """The plan by table, of the tables of a summary."""
    found = {}
    for table in tables:
        counts = {name: count for name in PLANNED if (count := int(table["counts"].get(name, 0)))}
        mark = (table.get("mark") or {}).get("mark") or None
        if counts or mark is not None:
            found[table["table"]] = Part(counts, mark)
    return found


def check(plan: Approved, tables: Iterable[Mapping[str, Any]]) -> None:
    """Refuse to go on where what is planned for *tables*, of the summary as it stands, is not what was approved.

    Raises:
        ApprovalError: names the tables, what is planned and what was approved; of a table for which nothing is, what
            the run has to say about it, such as that it is paused.
    """
    reports = list(tables)
    now = parts(reports)
    differing = [name for name in sorted({*now, *plan.parts}) if now.get(name) != plan.parts.get(name)]
    if differing:
        said = {t["table"]: "; ".join([*t["problems"], *t["notes"]]) for t in reports if t["table"] not in now}
        nothing = Part({})
        named = [
            f"{name}: planned {now.get(name, nothing)}; approved {plan.parts.get(name, nothing)}"
            + (f"; {said[name]}" if said.get(name) else "")
            for name in differing[:_NAMED]
        ]
        more = [f"and {len(differing) - _NAMED} more tables"] if len(differing) > _NAMED else []
        msg = (
            f"the plan is no longer the one of run {plan.run} that was approved ({'. '.join([*named, *more])}); "
            "nothing was done. Make a new plan and have that approved"
        )
        raise ApprovalError(msg)
