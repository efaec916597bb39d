"""What this Airflow has for Lowtide, printed as one line of JSON: ``python -m lowtide_airflow.installed``.

``lowtide check`` asks by it. It reads Airflow's configuration and database, and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from airflow import __version__
from airflow.configuration import AIRFLOW_HOME, conf
from airflow.models import Connection, Pool
from airflow.sdk.exceptions import AirflowNotFoundException

from lowtide.check.airflow import HBASE, SPARK
from lowtide.errors import UsageError
from lowtide_airflow import stores

_SECTION = "lowtide"
NUMBERS = (
    "retries",
    "retry_delay",
    "approval_timeout",
    "deadline",
    "job_timeout",
    "page_seconds",
    "batch_bytes",
    "approval_cells",
    "batch_tables",
    "batches",
)
OTHERS = ("approval", "deadline_callback", "deadline_callback_kwargs", "metrics_token_file", "stores")


def problems(section: Mapping[str, Any], mapped_at_most: int) -> Iterator[str]:
    """What is wrong in the section ``[lowtide]``, where *mapped_at_most* is ``core.max_map_length``."""
    for name, value in section.items():
        if name not in (*NUMBERS, *OTHERS):
            yield f"[lowtide] {name} is no setting of Lowtide's; known are {', '.join((*NUMBERS, *OTHERS))}"
        elif name in NUMBERS and not str(value).strip().isdecimal():
            yield f"[lowtide] {name} is {value!r}, and a whole number is expected"
        elif name == "stores":
            try:
                stores.check(str(value))
            except UsageError as error:
                yield str(error)
        elif name == "batches" and int(value) < 1:
            yield f"[lowtide] batches is {value}, and must be 1 or more"
        elif name == "batches" and int(value) >= mapped_at_most:
            yield f"[lowtide] batches is {value}, and must stay below core.max_map_length, {mapped_at_most}"


def installed() -> dict[str, Any]:
    """Version, pools, connections, and what is wrong in the section."""
    found = {name: connection for name in (SPARK, HBASE) if (connection := _connection(name))}
    section = conf.getsection(_SECTION) or {}
    return {
        "version": __version__,
        "home": str(AIRFLOW_HOME),
        "pools": {name: pool.slots if (pool := Pool.get_pool(name)) else None for name in _pools()},
        "connections": found,
        "settings": list(problems(section, conf.getint("core", "max_map_length"))),
    }


def _pools() -> list[str]:
    """Those of the stores; of a section that names none that can be used, of the nameless one."""
    try:
        return [stores.Store().pool, *(store.pool for store in stores.named().values())]
    except UsageError:
        return [stores.Store().pool]


def _connection(name: str) -> dict[str, Any] | None:
    try:
        found = Connection.get_connection_from_secrets(name)
    except AirflowNotFoundException:
        return None
    # Of the extra this alone: others may be secrets.
    mode = found.extra_dejson.get("deploy-mode", "client")
    return {"type": found.conn_type, "host": found.host, "port": found.port, "mode": mode}


if __name__ == "__main__":
    print(json.dumps(installed()))
