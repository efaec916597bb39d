"""What a job's summary becomes in Airflow: lines of the task's log, and a digest for XCom and asset events. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from lowtide.run import approval
from lowtide.run.cell_lines import what, why
from lowtide.run.summary import LONGEST, PLANNED
from lowtide.values.text import plain

#: An XCom and an asset event are rows of the metadata database: names beyond these are counted only.
_MOST = 20
#: Tables, and notes of one of them, that a person is shown before a plan is done.
_ROWS = 50
_NOTES = 3


def digest(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The summary without its tables, of bounded size."""
    problems = list(all_problems(summary))
    return {
        **{name: summary[name] for name in ("job", "run", "execute", "state", "seconds", "low_watermark", "bound")},
        "totals": {name: count for name, count in summary["totals"].items() if count},
        "blockers": summary["blockers"][:_MOST],
        "problem_count": len(problems),
        "problems": problems[:_MOST],
    }


def merge(digests: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The sum of the digests of one run's batches."""
    totals: Counter[str] = Counter()
    skipped: Counter[str] = Counter()
    merged: dict[str, Any] = {"jobs": 0, "problem_count": 0, "problems": []}
    for each in digests:
        merged["jobs"] += 1
        merged["problem_count"] += each["problem_count"]
        merged["problems"] = [*merged["problems"], *each["problems"]][:_MOST]
        totals.update({name: count for name, count in each["totals"].items() if name != "skipped"})
        skipped.update(each["totals"].get("skipped", {}))
    merged["totals"] = dict(totals) | ({"skipped": dict(skipped)} if skipped else {})
    return merged


def plan(summary: Mapping[str, Any], cells: int = 0) -> dict[str, Any]:
    """What a dry run planned: to be shown to a person, and to hold a later run to it (:mod:`lowtide.run.approval`).

    Of its list at most so many *cells*: what is in it goes into Airflow's database.
    """
    notes = {t["table"]: t["notes"][:_NOTES] for t in summary["tables"] if t["notes"]}
    listing = summary.get("listing") or {}
    listed = {**listing, "first": listing["first"][:cells]} if listing else {}
    return {**approval.digest(summary), "notes": notes, "listing": listed}


def plan_text(plans: Sequence[Mapping[str, Any]], as_configured: bool) -> str:
    """The plans of a run's batches for a person, as Markdown: the tables of which most goes first, the rest in
    numbers.
    """
    parts = {name: part for each in plans for name, part in approval.parts(each["tables"]).items()}
    rows = sorted(parts.items(), key=lambda item: (-item[1].counts.get("deleted", 0), item[0]))
    names = [name for name in PLANNED if any(name in part.counts for part in parts.values())]
    marks = any(part.mark is not None for part in parts.values())
    heads = ["table", *names, *(["history mark"] if marks else [])]
    lines = [
        f"**{sum(p.counts.get('deleted', 0) for p in parts.values()):,}** cells of {len(parts):,} tables would go.",
        "",
    ]
    if as_configured:
        lines[0] += " Approved, the run acts on those tables whose mode is `execute` in the configuration."
    lines += [f"| {' | '.join(heads)} |", f"|---{'|---:' * (len(heads) - 1)}|"]
    for table, part in rows[:_ROWS]:
        mark = [f"{part.mark:,}" if part.mark is not None else ""] if marks else []
        lines.append(f"| {' | '.join([f'`{table}`', *(f'{part.counts.get(n, 0):,}' for n in names), *mark])} |")
    if len(rows) > _ROWS:
        lines.append(f"\nand {len(rows) - _ROWS:,} more tables: see the logs of the task `plan`.")
    notes = [
        f"- `{table}`: {_code(note)}" for each in plans for table, found in each["notes"].items() for note in found
    ]
    lines += ["", *notes[:_ROWS]] if notes else []
    lines += _listed([each["listing"] for each in plans if each.get("listing")])
    runs = ", ".join(f"`{each['run']}`" for each in plans[:_ROWS])
    return "\n".join(
        [
            *lines,
            "",
            f"Planned up to the low watermark {max((p['low_watermark'] for p in plans), default=0):,} by {runs}.",
        ]
    )


def _listed(listings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where the lists are, and their first cells, those of one reason below it."""
    if not listings:
        return []
    total = sum(sum(each["cells"].values()) for each in listings)
    first = [cell for each in listings for cell in each["first"]][: max(len(each["first"]) for each in listings)]
    head = f"The first {len(first):,} of {total:,} cells:" if first else f"All {total:,} cells are listed."
    where = [f"- all of them: `{each['folder']}`" for each in listings[:_ROWS]]
    reasons: dict[str, list[str]] = {}
    for cell in first:
        reasons.setdefault(why(cell), []).append(f"- {_code(what(cell))}")
    block = [line for reason, cells in reasons.items() for line in ("", _code(reason), "", *cells)]
    return ["", head, "", *where, *block]


def _code(text: str) -> str:
    """A text as inline code of Markdown, in one line, which nothing in it ends: keys hold whatever their owners put
    there, and notes what others say. Airflow's page breaks no line in a block of code.
    """
    text = plain(" ".join(text.split()), LONGEST)
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    ticks = "`" * (longest + 1)
    return f"{ticks} {text} {ticks}" if longest else f"`{text}`"


def all_problems(summary: Mapping[str, Any]) -> Iterator[str]:
    """Every problem, those of a table with its name."""
    for table in summary["tables"]:
        yield from (f"{table['table']}: {problem}" for problem in table["problems"])
        if table["counts"]["failed"] and not table["problems"]:
            yield f"{table['table']}: {table['counts']['failed']} actions failed"
    yield from summary["problems"]


def log_lines(summary: Mapping[str, Any]) -> list[str]:
    """The summary for people: one line a table, what was done (or would be, in a dry run), what was skipped and why."""
    from lowtide.health.bound import blocker_text  # not with the DAG files, which import this module

    did = "executed" if summary["execute"] else "dry run, nothing was changed"
    lines = [f"{summary['job']} {summary['run']}: {summary['state']}, {did}, {summary['seconds']} s"]
    if summary["tables"]:
        width = max(len(t["table"]) for t in summary["tables"])
        lines.append(f"  {'table':{width}}  {'recorded':>9}  done")
        for table in summary["tables"]:
            regions = f"{table['regions_recorded']}/{table['regions']}" if table["regions"] else "-"
            lines.append(f"  {table['table']:{width}}  {regions:>9}  {_counted(table['counts'])}")
            lines += [f"  {'':{width}}  note: {note}" for note in table["notes"]]
    if summary["bound"] is not None:
        lines.append(f"  prune bound {summary['bound']}, low watermark {summary['low_watermark']}")
    listing = summary.get("listing") or {}
    if listing:
        lines.append(f"  list of {sum(listing['cells'].values()):,} cells: {listing['folder']}")
    return [*lines, *(f"  held by {blocker_text(blocker)}" for blocker in summary["blockers"][:_MOST])]


def _counted(counts: Mapping[str, Any]) -> str:
    shown = [f"{name} {count:,}" for name, count in counts.items() if name != "skipped" and count]
    shown += [f"skipped {count:,} ({reason})" for reason, count in counts["skipped"].items()]
    return ", ".join(shown) or "nothing to do"
