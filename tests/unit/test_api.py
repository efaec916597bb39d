"""The public names: those listed here, and each is there with a docstring. Another list is another promise to users."""

from __future__ import annotations

import importlib
import runpy
from pathlib import Path

import pytest

PAGE = runpy.run_path(str(Path(__file__).resolve().parents[2] / "tools" / "api-page"))
PUBLIC = {
    "lowtide.history": ["Hold", "hold", "read_options", "read_point_at", "release", "renew", "spark_settings", "take"],
    "lowtide.ledger": ["ContradictionError", "Ledger", "Outcome", "State", "init", "ledger", "user_id"],
    "lowtide.health.conditions": [
        "CONDITIONS",
        "CheckResult",
        "CommitTableLarger",
        "Condition",
        "LowWatermarkPast",
        "RegionWatermarkPast",
        "TransactionIs",
        "TransactionsSettled",
        "TransactionsStuck",
        "check",
        "from_json",
    ],
    "lowtide_airflow.factory": ["has_ledger", "lowtide_assets", "lowtide_dags"],
    "lowtide_airflow.operator": ["SUMMARY_KEY", "LowtideSparkOperator"],
    "lowtide_airflow.sensors": [
        "CommitTableSensor",
        "ConditionSensor",
        "LowWatermarkSensor",
        "RegionWatermarkSensor",
        "TransactionStateSensor",
        "TransactionsSettledSensor",
        "TransactionsStuckSensor",
    ],
    "lowtide_airflow.triggers": ["ConditionTrigger", "ConditionWatcher"],
    "lowtide_airflow.hook": ["HBaseHook"],
    "lowtide.config": ["Config", "load"],
    "lowtide.errors": [
        "ApprovalError",
        "BudgetError",
        "ConsentError",
        "FencedError",
        "FormatError",
        "GatewayError",
        "HistoryError",
        "LedgerError",
        "LowtideError",
        "StoreError",
        "TableError",
        "UnnamedStoreError",
        "UsageError",
        "WatermarkError",
    ],
}


def test_the_page_has_every_public_module() -> None:
    """And no other."""
    assert list(PAGE["MODULES"]) == list(PUBLIC)


@pytest.mark.parametrize("module", PUBLIC)
def test_what_is_exported(module: str) -> None:
    """Exactly the names of the list; each is defined, and documented."""
    assert PAGE["exported"](module) == PUBLIC[module]
    assert all(PAGE["entry"](module, name) for name in PUBLIC[module])


@pytest.mark.parametrize("module", [name for name in PUBLIC if not name.startswith("lowtide_airflow")])
def test_what_is_exported_can_be_imported(module: str) -> None:
    """Where Airflow is not needed for it; and nothing that is not there passes for exported."""
    loaded = importlib.import_module(module)
    assert loaded.__all__ == PUBLIC[module]
    assert all(getattr(loaded, name) is not None for name in PUBLIC[module])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        loaded.nothing  # noqa: B018
