"""The DAGs, a module each: its docs, as Airflow's page shows them, its form and its tasks, wired for one store."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from airflow.sdk import DAG

from lowtide_airflow.dags import (
    commit_table_pruning,
    history_gc,
    orphan_cleanup,
    transaction_repair,
    verification,
    watermark_collection,
)
from lowtide_airflow.wiring import Wiring

#: What makes each DAG, by its name.
MAKERS: Mapping[str, Callable[[Wiring], DAG]] = {
    "orphan_cleanup": orphan_cleanup.make,
    "watermark_collection": watermark_collection.make,
    "commit_table_pruning": commit_table_pruning.make,
    "history_gc": history_gc.make,
    "transaction_repair": transaction_repair.make,
    "verification": verification.make,
}
