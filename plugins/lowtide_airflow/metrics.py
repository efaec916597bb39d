"""What a job's summary becomes in Airflow's metrics: counters of what was done, gauges of how far the marks are behind.

Airflow sends them where its own go (``[metrics]`` of airflow.cfg: StatsD, Datadog, OpenTelemetry), under its prefix.
All but :func:`emit` is pure.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any

from lowtide.cleaning.commit_count import counted_figures
from lowtide.ledger.settled import SETTLED_FIGURE, money_figures
from lowtide.run.summary import DONE
from lowtide.values.clock import is_world, seconds_since

log = logging.getLogger(__name__)


class Kind(StrEnum):
    """The function of Airflow's ``stats`` that takes the metric."""

    COUNTER = "incr"
    GAUGE = "gauge"
    TIMING = "timing"


@dataclass(frozen=True, slots=True)
class Metric:
    """One number, without Airflow's prefix. The job, and whether it acted, are in the name: plain StatsD knows no
    tags.
    """

    kind: Kind
    name: str
    value: float | timedelta
    tags: Mapping[str, str] = field(default_factory=dict)


def metrics(summary: Mapping[str, Any], store: str = "") -> Iterator[Metric]:
    """Everything that a *summary* has, each with the tag ``store`` where the *store* has a name (docs/monitoring.md).

    What a dry run, or a table that was only planned for, would have had done is counted as ``planned``, so that no sum
    of deeds has it.
    """
    for metric in _metrics(summary):
        yield replace(metric, tags={**metric.tags, "store": store}) if store else metric


def _metrics(summary: Mapping[str, Any]) -> Iterator[Metric]:
    job = f"lowtide.{summary['job']}"
    yield Metric(Kind.COUNTER, f"{job}.{'runs' if summary['execute'] else 'dry_runs'}.{summary['state']}", 1)
    yield Metric(Kind.TIMING, f"{job}.duration", timedelta(seconds=summary["seconds"]))
    for kind, seconds in (summary.get("pace") or {}).get("waited", {}).items():
        yield Metric(Kind.TIMING, f"{job}.waited.{kind}", timedelta(seconds=seconds))
    for table in summary["tables"]:
        for name in DONE:
            if count := table["counts"].get(name, 0):
                yield Metric(
                    Kind.COUNTER, f"{job}.{'' if table.get('execute') else 'planned.'}{name}", count, _of(table)
                )
        if skipped := sum(table["counts"]["skipped"].values()):
            yield Metric(Kind.COUNTER, f"{job}.skipped", skipped, _of(table))
        if table["problems"]:
            yield Metric(Kind.COUNTER, f"{job}.problems", len(table["problems"]), _of(table))
    if summary["problems"]:
        yield Metric(Kind.COUNTER, f"{job}.problems", len(summary["problems"]))
    yield from _marks(summary)


def _marks(summary: Mapping[str, Any]) -> Iterator[Metric]:
    low = summary["low_watermark"]
    if low:
        yield from _lag("lowtide.low_watermark", low, summary)
        if summary["bound"] is not None:
            yield from _lag("lowtide.prune_bound", summary["bound"], summary)
        for table in summary["tables"]:
            if applied := (table.get("mark") or {}).get("applied", 0):
                yield from _lag("lowtide.history_mark", applied, summary, _of(table))
    figures = summary.get("figures", {})
    if settled := figures.get(SETTLED_FIGURE):
        yield Metric(Kind.GAUGE, "lowtide.ledger.settled.age_seconds", (summary["started"] - settled) / 1000)
    if counted := counted_figures(figures):
        yield Metric(Kind.GAUGE, "lowtide.commit_table.entries", counted[0])
        yield Metric(Kind.GAUGE, "lowtide.commit_table.marks", counted[1])
    checked, wrong = money_figures(figures)
    if checked is not None and wrong is not None:
        yield Metric(Kind.GAUGE, "lowtide.ledger.wrong_transactions", wrong)


def _lag(name: str, mark: int, summary: Mapping[str, Any], tags: Mapping[str, str] | None = None) -> Iterator[Metric]:
    """How old a mark is, where the oracle's clock is the world's; and how many timestamps it is behind the low
    watermark.
    """
    low = summary["low_watermark"]
    if name != "lowtide.low_watermark":
        yield Metric(Kind.GAUGE, f"{name}.behind", max(0, low - mark), tags or {})
    age = seconds_since(mark, summary["started"]) if is_world(low) else None
    if age is not None:
        yield Metric(Kind.GAUGE, f"{name}.age_seconds", age, tags or {})


def _of(table: Mapping[str, Any]) -> dict[str, str]:
    return {"table": table["table"]}


def emit(found: Iterable[Metric], of: str) -> None:
    """Hand metrics to Airflow, in a process of its own. A backend that fails costs a warning, which names what they
    are *of*, and nothing else.
    """
    from airflow.sdk.observability import stats

    try:
        for metric in found:
            getattr(stats, metric.kind.value)(metric.name, metric.value, tags=dict(metric.tags) or None)
    except Exception as error:  # whatever a metrics backend raises
        log.warning("the metrics of %s could not be sent: %s", of, error)
