"""The dashboard and the alert rules on a real store's metrics, through a real Prometheus."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from conftest import Outcome, booted
from prometheus import Server, server
from scene import Scene

from lowtide.config import load
from lowtide.history.holding import take
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.ledger import init, user_id
from lowtide.ledger.model import Entry, Table, transaction_id
from lowtide.ledger.steps import Put
from lowtide.ledger.store import Tables
from lowtide.monitoring.metrics import GAUGES
from lowtide.store.gateway import connect
from lowtide.values.clock import now_millis

LOWTIDE = Path(sys.executable).with_name("lowtide")
ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = json.loads((ROOT / "monitoring" / "dashboard.json").read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
STORE = "orders-prod"

pytestmark = pytest.mark.needs("prometheus")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A store of its own, whose oracle has the world's clock: else no mark has an age."""
    home = tmp_path_factory.mktemp("store")
    extra = {"hbase.thrift.server.socket.read.timeout": "900000"}
    with booted(free_ports_config(home, timestamps="world", conflict_map_size=64, extra_hbase=extra)) as store:
        yield store


@pytest.fixture(scope="module")
def omid(stack: Stack) -> Iterator[OmidClient]:
    with OmidClient(stack) as client:
        yield client


class Collector(SimpleHTTPRequestHandler):
    """What node_exporter does with a file of its folder."""

    extensions_map: ClassVar = {".prom": "text/plain; version=0.0.4"}

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@contextmanager
def watched(config: Path, folder: Path) -> Iterator[Server]:
    """A Prometheus that scrapes the file which the command writes again and again, as cron would have it do."""
    file, over = folder / "lowtide.prom", threading.Event()
    command = (LOWTIDE, "status", "--prometheus", "--to", file, "--config", config)

    def keep_writing() -> None:
        while not over.wait(1):
            subprocess.run(command, check=True)

    served = ThreadingHTTPServer(("127.0.0.1", 0), partial(Collector, directory=str(folder)))
    threads = [threading.Thread(target=work, daemon=True) for work in (served.serve_forever, keep_writing)]
    for thread in threads:
        thread.start()
    target = {"targets": [f"127.0.0.1:{served.server_address[1]}"]}
    scraped = {"job_name": "node", "metrics_path": "/lowtide.prom", "static_configs": [target]}
    try:
        with server(folder, [scraped], [ROOT / "monitoring" / "alerts.yaml"]) as prometheus:
            prometheus.wait_for("lowtide_up")
            yield prometheus
    finally:
        over.set()
        served.shutdown()
        served.server_close()
        for thread in threads:
            thread.join()


def everything(file: Path, job: Callable[..., Outcome], scene: Scene, omid: OmidClient) -> None:
    """A store that has a value of every metric, as people leave one."""

    def run(name: str, *arguments: str) -> None:
        assert job(name, *arguments, config=file).code == 0

    omid.create("accounts", splits=(b"m",))
    omid.create("orders")
    for row in (b"a", b"b", b"n", b"z"):
        for table in ("accounts", "orders"):
            scene.orphan(table, row=row)
            scene.crashed_after_commit(table, row=row)
            for value in (b"of before", b"now"):
                scene.committed(table, row=row, value=value)
    omid.advance_watermark()
    run("orphan_cleanup", "--execute")
    run("watermark_collection", "--execute")
    run("commit_table_pruning", "--grace", "0s", "--execute")
    run("history_gc", "--execute")
    omid.create("baskets")  # never cleaned
    for row in (b"a", b"z"):
        scene.orphan("orders", row=row)
        scene.committed("accounts", row=row, value=b"later")
    omid.advance_watermark()
    run("orphan_cleanup")
    run("watermark_collection", "--execute")
    run("history_gc")
    config = load(file)
    init(config)
    run("transaction_repair", "--full", "--execute")
    with connect(config.hbase.thrift) as connection:  # a client that died after its first write
        entry = Entry(now_millis(), transaction_id(user_id("ann"), 1), "0" * 16)
        Tables(connection, config.ledger.prefix)(Put(Table.OPEN, entry.row, entry.cells))
    paused = (LOWTIDE, "pause", "--table", "baskets", "--until", "1h", "--reason", "a load", "--config", file)
    subprocess.run(paused, check=True)
    take(config, "orders", owner="ann", reason="month end", lasting=timedelta(hours=1))


@pytest.mark.turns(2, group="the whole at length")
def test_the_whole_kit_on_a_real_store(
    job: Callable[..., Outcome],
    configure: Callable[..., Path],
    scene: Scene,
    omid: OmidClient,
    stack: Stack,
    tmp_path: Path,
) -> None:
    """Every query of the dashboard gives data, and its choice of stores has the store; no rule calls anybody for a
    store that is well but those that should. Its gateway gone, the store is down, and no number of before stays.
    """
    config = configure(
        store=STORE,
        defaults={
            "mode": "execute",
            "history_mode": "execute",
            "history_max_age": "0s",
            "min_history_age": "0s",
            "budget": {"share": 1.0},
        },
        ledger={"grace": "0s", "allow_short_grace": True},
        allow_no_grace=True,
        grace="0s",
    )
    began = time.time()
    with watched(config, tmp_path) as prometheus:
        everything(config, job, scene, omid)
        prometheus.wait_for("lowtide_history_holds == 1")
        assert prometheus.get("label/store/values", **{"match[]": "lowtide_up"}) == [STORE]
        assert {g.name for g in GAUGES} - set(prometheus.get("label/__name__/values")) == set()
        for panel in PANELS:
            for target in panel["targets"]:
                asked = target["expr"].replace("$store", STORE)
                # As Grafana does: what is shown now, or over the time that is shown.
                found = prometheus.query(asked) if target.get("instant") else prometheus.over_time(asked, began)
                assert found, f"{panel['title']}: {asked}"
        rules = prometheus.get("rules")["groups"][0]["rules"]
        assert [rule["name"] for rule in rules if rule["health"] != "ok"] == []
        pending = {rule["name"] for rule in rules if rule["state"] != "inactive"}
        assert pending == {"LowtideWarning"}, "of a table that was never cleaned"
        down = re.sub(r"port: \d+", f"port: {free_ports_config(tmp_path).thrift_port}", config.read_text())
        config.write_text(down)
        prometheus.wait_for("lowtide_up == 0")
        assert prometheus.query("lowtide_prune_bound_behind") == []
        prometheus.wait_for('ALERTS{alertname="LowtideDown"}')
