"""Airflow reads its home when it is first imported: the tests have one of their own, gone when they are over."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HOME = tempfile.mkdtemp(prefix="lowtide-airflow-home-")

for name in [name for name in os.environ if name.startswith("AIRFLOW_")]:
    del os.environ[name]
os.environ |= {"AIRFLOW_HOME": HOME, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    shutil.rmtree(HOME, ignore_errors=True)


@pytest.fixture(scope="module")
def with_ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A configuration that speaks of a ledger, for whoever loads one meanwhile."""
    file = tmp_path_factory.mktemp("with-ledger") / "lowtide.yaml"
    file.write_text("ledger: {}\n")
    with pytest.MonkeyPatch.context() as there:
        there.setenv("LOWTIDE_CONFIG", str(file))
        yield file


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Only whole runs on a store of their own, which take minutes, have turns (tools/turns.py)."""
    for item in items:
        if not item.path.name.endswith("runs.py"):
            item.add_marker(pytest.mark.always)
