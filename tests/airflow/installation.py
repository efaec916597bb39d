"""A store, Lowtide's configuration for it, and an Airflow with the DAGs: what the tests of whole runs stand on."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from warm_driver import AirflowWithDriver, WarmDriver

from lowtide.config import load
from lowtide.lab.airflow import AirflowConfig, Dags, LocalAirflow, Run, free_port_config
from lowtide.lab.stack import Stack
from tests.new_day import wait_for_a_new_day

#: Seconds for a few Spark starts on a machine that has much else to do.
PATIENCE = 1800


#: What a driver that is a process of its own says at its start, before the job's name.
SUBMITTED = "INFO SparkContext: Submitted application: lowtide "
#: On a machine that has much else to do Airflow's server may be slow to answer a task, which by default gives up after
#: five seconds.
UNHURRIED = {"workers": {"execution_api_timeout": "60"}}
#: The files of Lowtide's DAGs do not change meanwhile, and to look at them anew each minute is a tenth of what Airflow
#: does here.
SETTLED = {"dag_processor": {"min_file_process_interval": "3600", "refresh_interval": "3600"}}
#: What suits jobs that live for some seconds, on tables of a few cells: no second compiler, whose work would not pay,
#: and few tasks.
SHORT = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.shuffle.partitions": "2",
}

#: One retry, at once: enough to see that there is one.
QUICK = {"retries": "1", "retry_delay": "1"}


@contextmanager
def installation(
    folder: Path, stack: Stack, tables: dict[str, Any], *, warm: bool = False, **options: Any
) -> Iterator[tuple[LocalAirflow, Path]]:
    """Both are up, and ended whatever happens; gives Airflow and the configuration's file.

    *tables*: see :func:`configuration`; *options* are Airflow's. *warm*: jobs run on a driver that is up already
    (warm_driver.py), which Airflow then has as its ``driver``.
    """
    wait_for_a_new_day()
    file = configuration(folder / "lowtide.yaml", stack, tables)
    own = options.pop("settings", {})
    airflow_settings = UNHURRIED | SETTLED | own | {"lowtide": QUICK | own.get("lowtide", {})}
    config = free_port_config(folder / "airflow", lowtide_config=file, settings=airflow_settings, **options)
    with driver(config, file, folder / "driver") if warm else nullcontext(LocalAirflow(config)) as airflow:
        try:
            up_together(stack, airflow)
            yield airflow, file
        finally:
            airflow.down()
            stack.down()


def configuration(file: Path, stack: Stack, tables: dict[str, Any]) -> Path:
    """Write Lowtide's configuration for a store. Without grace, and every table acts unless *tables*, a section of it,
    says otherwise.
    """
    settings = {
        "hbase": {
            "zookeeper_quorum": "127.0.0.1",
            "zookeeper_port": stack.config.zookeeper_port,
            "thrift": {"port": stack.config.thrift_port},
        },
        "omid": {"oracle": [f"127.0.0.1:{stack.config.tso_port}"]},
        "state": {"sideline": str(file.parent / f"{file.stem}-sideline")},
        "spark": {"conf": SHORT},
        "grace": "0s",
        "allow_no_grace": True,
        "defaults": {"mode": "execute", "budget": {"share": 1.0}},
        "tables": tables,
    }
    file.write_text(yaml.safe_dump(settings))
    return file


@contextmanager
def driver(config: AirflowConfig, file: Path, folder: Path) -> Iterator[AirflowWithDriver]:
    """An Airflow, which is not started here, whose jobs run on a driver that is up from now on."""
    made = WarmDriver.of(load(file), folder)
    try:
        made.start()
        yield AirflowWithDriver(config, made)
    finally:
        made.stop()


def up_together(*parts: Stack | LocalAirflow) -> None:
    """Start all: none needs another to start, and each waits much."""
    with ThreadPoolExecutor() as pool:
        for started in [pool.submit(part.up) for part in parts]:
            started.result()


def first_of_its_kind(dags: Dags, dag_id: str, kind: str) -> Run:
    """A run that nobody here started, the first of its kind, once it is over."""
    deadline = time.monotonic() + PATIENCE
    while not (found := dags.runs(dag_id, kind)):
        assert time.monotonic() < deadline, f"no {kind} run of {dag_id}; is the DAG unpaused?"
        time.sleep(0.5)
    return dags.wait([found[-1]], timeout=deadline - time.monotonic())[0]


def follow_only(dags: Dags, *names: str) -> None:
    """Unpause DAGs with yesterday counted as done, so that a run of theirs can only come from the one before."""
    yesterday = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    for name in names:
        dags.mark(dags.trigger(name, logical_date=yesterday), "success")
        dags.unpause(name)
