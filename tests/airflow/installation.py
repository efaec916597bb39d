"""A store, Lowtide's configuration for it, and an Airflow with the DAGs: what the tests of whole runs stand on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from lowtide.airflowctl import Dags, LocalAirflow, free_port_config
from lowtide.stack import Stack

#: Seconds for a few Spark starts on a machine that has much else to do.
PATIENCE = 1800


@contextmanager
def installation(
    folder: Path, stack: Stack, tables: dict[str, Any], **options: Any
) -> Iterator[tuple[LocalAirflow, Path]]:
    """Both are up, and ended whatever happens; gives Airflow and the configuration's file.

    Without grace, and every table acts unless *tables*, a section of the configuration, says otherwise. *options* are Airflow's. One retry, at
    once: enough to see that there is one.
    """
    file = folder / "lowtide.yaml"
    settings = {
        "hbase": {"zookeeper_port": stack.config.zookeeper_port, "thrift": {"port": stack.config.thrift_port}},
        "omid": {"oracle": [f"127.0.0.1:{stack.config.tso_port}"]},
        "state": {"sideline": str(folder / "sideline")},
        "grace": "0s",
        "defaults": {"mode": "execute", "budget": {"share": 1.0}},
        "tables": tables,
    }
    file.write_text(yaml.safe_dump(settings))
    quick = {"retries": "1", "retry_delay": "1"}
    own = options.pop("settings", {})
    airflow_settings = own | {"lowtide": quick | own.get("lowtide", {})}
    airflow = LocalAirflow(
        free_port_config(folder / "airflow", lowtide_config=file, settings=airflow_settings, **options)
    )
    try:
        stack.up()
        airflow.up()
        yield airflow, file
    finally:
        airflow.down()
        stack.down()


def follow_only(dags: Dags, *names: str) -> None:
    """Unpause DAGs with yesterday counted as done, so that a run of theirs can only come from the one before."""
    yesterday = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    for name in names:
        dags.mark(dags.trigger(name, logical_date=yesterday), "success")
        dags.unpause(name)
