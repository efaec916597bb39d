"""Airflow reads its home when it is first imported: the tests have one of their own, gone when they are over."""

from __future__ import annotations

import os
import shutil
import tempfile

HOME = tempfile.mkdtemp(prefix="lowtide-airflow-home-")

for name in [name for name in os.environ if name.startswith("AIRFLOW_")]:
    del os.environ[name]
os.environ |= {"AIRFLOW_HOME": HOME, "AIRFLOW__CORE__LOAD_EXAMPLES": "False"}


def pytest_unconfigure() -> None:
    """Leave nothing behind."""
    shutil.rmtree(HOME, ignore_errors=True)
