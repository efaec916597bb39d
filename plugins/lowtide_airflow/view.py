"""What the page shows, as one JSON object: read from the store, then made by plain functions.

Timestamps go out as what the page draws them at: times for a world clock (whose numbers are beyond a browser's
integers), plain numbers for a counter.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import quote

from lowtide.config import Config
from lowtide.errors import LowtideError
from lowtide.health import Finding, Health, Reading, TableStatus, assess, grouped, table_statuses
from lowtide.health.reader import read
from lowtide.run.summary import ON_PAGE, ran_by
from lowtide.values.clock import Clock, WorldClock, from_millis
from lowtide.values.text import age_text, distance_text, moment_text, time_text, timestamp_text
from lowtide_airflow import stores
from lowtide_airflow.sections import SECTIONS
from lowtide_airflow.stores import Store

#: The gateway's time to answer, for the page: less than anybody waits.
_SECONDS = 5
#: Marks drawn of one table; of more, as many steps of equal width.
_STEPS = 60
#: Tables drawn, those whose lowest region is furthest behind; all are told as rows.
_DRAWN = 100
_PROBLEMS = 3
_NAMELESS = Store()
#: What stands before a DAG's id in remedies, which do not know of Airflow's stores.
_UNPAUSE = "airflow dags unpause "


@dataclass(frozen=True, slots=True)
class Latest:
    """What was read last of a store, and, where that failed, what was read before."""

    reading: Reading
    config: Config | None
    before: Reading | None = None
    store: Store = _NAMELESS


class Reader:
    """Reads a store, quickly, and keeps what it read for when the gateway is down. For one thread at a time. *store*:
    its name, empty of the nameless one.
    """

    def __init__(self, store: str = "") -> None:
        self._store = store
        self._before: Reading | None = None

    def __call__(self) -> Latest:
        """Raises nothing."""
        store = _NAMELESS
        try:
            store = stores.store(self._store)
            config = store.load()
        except LowtideError as error:
            return Latest(Reading(datetime.now(UTC), unreachable=str(error)), None, self._before, store)
        reading = read(hurried(config), attempts=1)
        latest = Latest(reading, config, self._before, store)
        if not reading.unreachable:
            self._before = reading
        return latest


def hurried(config: Config) -> Config:
    """*config* with a gateway that must answer soon."""
    timeout = min(config.hbase.thrift.timeout, timedelta(seconds=_SECONDS))
    thrift = config.hbase.thrift.model_copy(update={"timeout": timeout})
    return config.model_copy(update={"hbase": config.hbase.model_copy(update={"thrift": thrift})})


def judged(latest: Latest) -> Health:
    """How the store is, told to somebody who looks at several: of one with a name, commands name its configuration, and
    DAGs bear its prefix. Copied into a shell, they would else act on the store of that shell.
    """
    health = assess(latest.reading, latest.config or Config())
    if not latest.store.name:
        return health
    findings = tuple(_of_store(each, latest.store) for each in health.findings)
    return replace(health, sentence=_with_prefix(health.sentence, latest.store), findings=findings)


def _of_store(finding: Finding, store: Store) -> Finding:
    file = f" --config {shlex.quote(str(store.file))}"
    commands = tuple(each + file if each.startswith("lowtide ") else each for each in finding.commands)
    return replace(finding, commands=commands, remedy=_with_prefix(finding.remedy, store))


def _with_prefix(words: str, store: Store) -> str:
    return words.replace(_UNPAUSE, f"{_UNPAUSE}{store.id('')}")


def view(latest: Latest | None) -> dict[str, Any]:
    """The page's data; of a reading that is still under way only that."""
    if latest is None:
        return {"waiting": True}
    config = latest.config or Config()
    health = judged(latest)
    shown = latest.before if latest.reading.unreachable and latest.before else latest.reading
    clock = shown.clock
    bound = shown.bound
    statuses = table_statuses(shown, config)
    drawn = {s.table for s in sorted(statuses, key=lambda s: s.lowest)[:_DRAWN]}
    return {
        "waiting": False,
        "at": latest.reading.at.isoformat(),
        "as_of": shown.at.isoformat(),
        "known": not shown.unreachable,
        "health": health.to_json(),
        "findings": [[finding.to_json() for finding in group] for group in grouped(health.findings)],
        "world": isinstance(clock, WorldClock),
        "low_watermark": _card(shown.low_watermark, shown),
        "bound": _card(bound.value if bound else None, shown),
        "bound_since": _iso(bound.since or bound.at) if bound else None,
        "tables": [_table(s, shown, clock, drawn=s.table in drawn) for s in statuses],
        "bounds": [{"at": _iso(b.at), **(_mark(b.value, clock) or {})} for b in reversed(shown.bounds)],
        "commits": [{"at": _iso(c.at), "entries": c.entries, "marks": c.marks} for c in shown.commit_counts],
        "runs": [_run(r, shown.at) for r in shown.runs],
        "sections": [s.to_json() for make in SECTIONS if (s := make(shown, config))],
    }


def marks(watermarks: Sequence[int]) -> list[tuple[int, int]]:
    """Watermarks with the number of regions at each, least first; at most ``_STEPS`` + 1 of them.

    Where they are more, each stands for those of a step of equal width, by the least of them: none is shown higher than
    it is.
    """
    counted = Counter(watermarks)
    if len(counted) > _STEPS:
        low = min(counted)
        width = -(-(max(counted) - low + 1) // _STEPS)
        least: dict[int, int] = {}
        sums: Counter[int] = Counter()
        for mark, number in sorted(counted.items()):
            step = (mark - low) // width
            least.setdefault(step, mark)
            sums[step] += number
        return [(least[step], sums[step]) for step in sorted(sums)]
    return sorted(counted.items())


def _table(status: TableStatus, reading: Reading, clock: Clock, *, drawn: bool) -> dict[str, Any]:
    """A row, and of a table that is *drawn* its marks; None of another."""
    regions = reading.watermarks[status.table]["regions"] if drawn else []
    steps = marks([r["watermark"] for r in regions])
    return {
        "table": status.table,
        "mode": status.mode.value,
        "regions": status.regions,
        "never_cleaned": status.never_cleaned,
        "lowest": _mark(status.lowest, clock),
        "behind": distance_text(status.behind, clock),
        "collected": _iso(status.collected),
        "marks": [{**(_mark(m, clock) or {}), "regions": n} for m, n in steps] if drawn else None,
    }


def _mark(timestamp: int | None, clock: Clock) -> dict[str, Any] | None:
    """A timestamp: where it is drawn, and its text."""
    if timestamp is None:
        return None
    moment = clock.time(timestamp) if isinstance(clock, WorldClock) and timestamp else None
    return {"x": _iso(moment) if moment else timestamp, "text": timestamp_text(timestamp, clock)}


def _card(timestamp: int | None, reading: Reading) -> dict[str, Any] | None:
    """A timestamp, and how it stands on a card: in a few words, of a world clock how long ago it was, with its date or
    what is known of that beneath.
    """
    clock = reading.clock
    mark = _mark(timestamp, clock)
    if mark is None or timestamp is None:
        return None
    moment = clock.time(timestamp) if isinstance(clock, WorldClock) and timestamp else None
    if moment:
        age = reading.at - moment
        short = f"{age_text(age)} ago" if age >= timedelta(minutes=1) else "just now"
        return {**mark, "short": short, "date": moment_text(moment)}
    return {**mark, "short": f"{timestamp:,}", "date": time_text(timestamp, clock) if timestamp else ""}


def _run(summary: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    started = from_millis(summary["started"])
    problems = [*summary["problems"], *(f"{t['table']}: {p}" for t in summary["tables"] for p in t["problems"])]
    totals = summary["totals"]
    return {
        **{name: summary[name] for name in ("job", "run", "execute", "state", "seconds")},
        "started": _iso(started),
        "ago": age_text(now - started),
        "tables": len(summary["tables"]),
        "counts": {name: totals[name] for name in ON_PAGE},
        "problems": problems[:_PROBLEMS],
        "more_problems": max(0, len(problems) - _PROBLEMS),
        "by": ran_by(summary),
        "log": log_link(summary["context"]),
    }


def log_link(context: Mapping[str, str]) -> str | None:
    """Where Airflow shows the log of the task that ran a job, below its address; None for a run that no DAG started."""
    if not {"dag_id", "run_id", "task_id"} <= set(context):
        return None
    dag, run, task = (quote(context[name], safe="") for name in ("dag_id", "run_id", "task_id"))
    mapped = context.get("map_index", "-1")
    place = f"/mapped/{quote(mapped, safe='')}" if mapped != "-1" else ""
    return f"dags/{dag}/runs/{run}/tasks/{task}{place}?try_number={quote(context.get('try', '1'), safe='')}"


def _iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")
