"""A job's numbers in Airflow's metrics."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowtide_airflow.metrics import Kind, Metric, emit, metrics
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from test_dag_files import in_a_new_python

from lowtide.cleaning.commit_count import CommitCount, count_figures
from lowtide.ledger.settled import money_figure
from lowtide.run.summary import DONE, Counts, Summary, TableReport
from lowtide.values.clock import millis

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
WORLD = 1_000_000


def summary(job: str = "orphan_cleanup", execute: bool = True, **changes: Any) -> dict[str, Any]:
    tables = [
        TableReport("orders", Counts(healed=3, deleted=2, skipped=Counter(odd=4)), execute=execute),
        TableReport("stock", Counts(deleted=5), execute=False, problems=["over budget", "and more"]),
    ]
    found = Summary(job, "r1", execute, millis(NOW), seconds=1.5, low_watermark=1049, bound=999, tables=tables)
    for name, value in changes.items():
        setattr(found, name, value)
    return found.to_json()


def numbers(value: dict[str, Any]) -> dict[tuple[str, str], Any]:
    return {(m.name, m.tags.get("table", "")): m.value for m in metrics(value)}


def test_a_store_that_has_a_name_is_a_tag_of_each_metric() -> None:
    """Beside the table; without a name there is no such tag."""
    found = list(metrics(summary(), "east"))
    assert {m.tags["store"] for m in found} == {"east"}
    assert {(m.name, m.tags.get("table", "")): m.value for m in found} == numbers(summary())
    assert not any("store" in m.tags for m in metrics(summary()))


def test_deeds_and_plans_are_different_metrics() -> None:
    """Of a run as configured, what a table in dry run would have had done is no deed; each table is a tag."""
    assert numbers(summary()) == {
        ("lowtide.orphan_cleanup.runs.failed", ""): 1,
        ("lowtide.orphan_cleanup.duration", ""): timedelta(seconds=1.5),
        ("lowtide.orphan_cleanup.healed", "orders"): 3,
        ("lowtide.orphan_cleanup.deleted", "orders"): 2,
        ("lowtide.orphan_cleanup.skipped", "orders"): 4,
        ("lowtide.orphan_cleanup.planned.deleted", "stock"): 5,
        ("lowtide.orphan_cleanup.problems", "stock"): 2,
        ("lowtide.prune_bound.behind", ""): 50,
    }
    dry = numbers(summary(execute=False))
    assert ("lowtide.orphan_cleanup.dry_runs.failed", "") in dry
    assert {name for name, table in dry if table and name.rpartition(".")[2] in DONE} == {
        "lowtide.orphan_cleanup.planned.healed",
        "lowtide.orphan_cleanup.planned.deleted",
    }


def test_marks_have_an_age_where_timestamps_are_times() -> None:
    """Low watermark, prune bound, and each table's history mark; of a counter only how far they are behind."""
    low, bound, mark = (millis(NOW - timedelta(hours=h)) * WORLD for h in (1, 2, 3))
    report = TableReport("orders", mark={"mark": mark, "applied": mark, "held_by": []}, execute=True)
    found = numbers(summary("history_gc", low_watermark=low, bound=bound, tables=[report]))
    assert found[("lowtide.low_watermark.age_seconds", "")] == 3600
    assert found[("lowtide.prune_bound.age_seconds", "")] == 7200
    assert found[("lowtide.history_mark.age_seconds", "orders")] == 10800
    assert found[("lowtide.history_mark.behind", "orders")] == low - mark
    never = TableReport("orders", mark={"mark": 0, "applied": 0, "held_by": []})
    assert not any("history_mark" in name for name, _ in numbers(summary("history_gc", tables=[never])))


def test_the_ledgers_mark_and_money() -> None:
    """The last check of the run counts; one that did not get to its end is none."""
    figures = {"settled before, ms": millis(NOW - timedelta(minutes=20)), **dict.fromkeys(money_figure("after"), 2)}
    found = numbers(summary("transaction_repair", low_watermark=0, bound=None, figures=figures))
    assert found[("lowtide.ledger.settled.age_seconds", "")] == 1200
    assert found[("lowtide.ledger.wrong_transactions", "")] == 2
    half = numbers(summary("transaction_repair", figures={money_figure("after")[0]: 2}))
    assert ("lowtide.ledger.wrong_transactions", "") not in half


def test_how_full_the_commit_table_is() -> None:
    """As counted last: what is left, or where nothing was removed what was there before; nothing of runs that counted
    nothing.
    """
    before, left = CommitCount(NOW, 70, 30), CommitCount(NOW, 0, 5)
    for counts, wanted in (
        (count_figures("before", before), (70, 30)),
        (count_figures("before", before) | count_figures("left", left), (0, 5)),
    ):
        found = numbers(summary("commit_table_pruning", figures=counts))
        assert (found[("lowtide.commit_table.entries", "")], found[("lowtide.commit_table.marks", "")]) == wanted
    assert not any("commit_table." in name for name, _ in numbers(summary("watermark_collection")))


@given(
    st.fixed_dictionaries({name: st.integers(0, 10**12) for name in DONE}), st.booleans(), st.integers(0, 2 * 10**18)
)
def test_every_metric_can_be_sent(counts: dict[str, int], execute: bool, low: int) -> None:
    """Counters are above 0, names short enough for OpenTelemetry with Airflow's prefix, and every deed is counted
    once.
    """
    report = TableReport("orders", Counts(**counts), execute=execute)
    found = list(metrics(summary("commit_table_pruning", execute, low_watermark=low, bound=low // 2, tables=[report])))
    assert all(m.value > 0 for m in found if m.kind is Kind.COUNTER)  # type: ignore[operator]
    assert all(len(f"airflow.{m.name}") <= 63 for m in found)
    assert len({(m.name, *m.tags.items()) for m in found}) == len(found)
    told = {m.name.rpartition(".")[2]: m.value for m in found if m.tags}
    assert told == {name: count for name, count in counts.items() if count}


def test_a_backend_that_fails_costs_no_task(caplog: pytest.LogCaptureFixture) -> None:
    """The work is done by then; it is said in the log."""

    def broken() -> Iterator[Metric]:
        yield from ()
        raise OSError("no route")

    emit(broken(), "orphan_cleanup r1")
    assert "orphan_cleanup r1 could not be sent: no route" in caplog.text


@contextmanager
def collector() -> Iterator[tuple[int, dict[str, Any]]]:
    """A receiver of OpenTelemetry's metrics: its port, and what came by name, with the tags that have a table."""
    came: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = ExportMetricsServiceRequest.FromString(self.rfile.read(int(self.headers["content-length"])))
            for metric in (m for r in body.resource_metrics for s in r.scope_metrics for m in s.metrics):
                data = getattr(metric, metric.WhichOneof("data"))
                for point in data.data_points:
                    tags = {a.key: a.value.string_value for a in point.attributes}
                    number = point.as_double or point.as_int if hasattr(point, "as_int") else point.sum
                    came[f"{metric.name} {tags.get('table', '')}".strip()] = number
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Nothing into the test's output."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_address[1], came
    finally:
        server.shutdown()
        server.server_close()


def test_the_numbers_arrive_where_airflow_sends_its_own(tmp_path: Path) -> None:
    """From a process that has set up its metrics as Airflow's task runner does, through Airflow's own exporter."""
    with collector() as (port, came):
        in_a_new_python(
            f"""
            import json
            from airflow.sdk.configuration import conf
            from airflow.sdk.observability import stats
            from airflow.sdk.observability.metrics import stats_utils
            from lowtide_airflow.metrics import emit, metrics

            legacy = conf.getboolean("metrics", "legacy_names_on")
            stats.initialize(factory=stats_utils.get_stats_factory(), export_legacy_names=legacy)
            emit(metrics(json.loads({json.dumps(summary())!r})), "a run")
            """,
            tmp_path,
            AIRFLOW__METRICS__OTEL_ON="True",
            AIRFLOW__METRICS__OTEL_HOST="127.0.0.1",
            AIRFLOW__METRICS__OTEL_PORT=str(port),
            NO_PROXY="*",
        )
    assert {name: number for name, number in came.items() if "lowtide" in name} == {
        "airflow.lowtide.orphan_cleanup.runs.failed": 1,
        "airflow.lowtide.orphan_cleanup.duration": 1500,
        "airflow.lowtide.orphan_cleanup.healed orders": 3,
        "airflow.lowtide.orphan_cleanup.deleted orders": 2,
        "airflow.lowtide.orphan_cleanup.skipped orders": 4,
        "airflow.lowtide.orphan_cleanup.planned.deleted stock": 5,
        "airflow.lowtide.orphan_cleanup.problems stock": 2,
        "airflow.lowtide.prune_bound.behind": 50,
    }
