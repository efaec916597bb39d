"""The pools, made in a real database of Airflow's, in a process of its own as the API server is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lowtide_airflow.plugin import LowtidePlugin
from lowtide_airflow.pools import with_pools

ASKED = """
import json, logging, sys
from airflow.models import Pool
from lowtide_airflow.pools import with_pools

logging.basicConfig(stream=sys.stderr, level=logging.INFO, force=True)
application = object()
for slots in json.loads(sys.argv[1]):
    Pool.create_or_update_pool("lowtide", slots, "by hand", include_deferred=False)
assert with_pools(application) is application
print(json.dumps({pool.pool: [pool.slots, pool.description] for pool in Pool.get_pools()}))
"""


def asked(*before: int) -> tuple[dict[str, list[object]], str]:
    """The pools after the plugin's part in the start of an API server, and what it logged; *before*: slots of the pool
    that was there.
    """
    done = subprocess.run(
        [sys.executable, "-c", ASKED, json.dumps(before)], capture_output=True, text=True, check=False, env=os.environ
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


def test_the_server_makes_what_lacks_and_leaves_what_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One slot each, for every store; a pool that somebody gave more slots keeps them, and is told of."""
    home = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__LOWTIDE__STORES": '{"orders": "/etc/orders.yaml"}'}
    for name, value in home.items():
        monkeypatch.setenv(name, value)
    subprocess.run([Path(sys.executable).with_name("airflow"), "db", "migrate"], check=True, capture_output=True)
    pools, said = asked()
    about = "One job of Lowtide at a time"
    assert (pools["lowtide"], pools["orders.lowtide"]) == ([1, about], [1, about])
    assert "made the pool orders.lowtide, of one slot" in said
    pools, said = asked(4)
    assert (pools["lowtide"], pools["orders.lowtide"]) == ([4, "by hand"], [1, about])
    assert "the pool lowtide has 4 slots, and jobs would work on the store side by side" in said
    assert f'airflow pools set lowtide 1 "{about}"' in said
    assert "made the pool" not in said
    monkeypatch.setenv("AIRFLOW__LOWTIDE__STORES", "orders")
    assert "no pools are made for the stores: [lowtide] stores is 'orders'" in asked()[1]


def test_a_database_that_refuses_costs_the_server_nothing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has the remedy."""
    from airflow.models import Pool

    def refuse(_: str) -> None:
        raise OSError("locked")

    monkeypatch.setattr(Pool, "get_pool", refuse)
    application = object()
    assert with_pools(application) is application
    [said] = caplog.messages
    assert (
        "the pool lowtide could not be made (locked), and tasks would wait for it for ever; airflow pools set" in said
    )


def test_the_plugin_hands_it_to_the_server() -> None:
    """As a middleware, which Airflow calls once with its application."""
    [each] = LowtidePlugin.fastapi_root_middlewares
    assert each["middleware"] is with_pools
