"""A real Airflow beside the secured store: its scheduler has jobs clean and repair, its sensors wait for them."""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from job_site import Site
from ledger_kit import Books
from scene import Scene, staged
from secured_kit import Gateway, of_kind

from lowtide.lab.airflow import Dags, LocalAirflow, Run, free_port_config
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.ledger import init
from lowtide.ledger.model import Entry
from tests.new_day import wait_for_a_new_day

pytestmark = pytest.mark.needs("kerberos")

PATIENCE = 900
SENSING = """
    from airflow.sdk import DAG, Param
    from lowtide_airflow.sensors import TransactionStateSensor

    often = {"poke_interval": 2, "timeout": 600, "patience": "3m", "transaction": "{{ params.transaction }}"}
    hasty = often | {"patience": "10s"}
    with DAG("sensing", schedule=None, params={"transaction": Param("", type="string")}):
        TransactionStateSensor(task_id="blocking", hbase_conn_id="bank", **often)
        TransactionStateSensor(task_id="deferred", hbase_conn_id="bank", deferrable=True, **often)
        TransactionStateSensor(task_id="stranger", hbase_conn_id="stranger", **hasty)
        TransactionStateSensor(task_id="lost_key", hbase_conn_id="lost_key", deferrable=True, **hasty)
"""


@dataclass
class Bank:
    """Airflow, and the books that the store keeps."""

    airflow: LocalAirflow
    books: Books

    @property
    def dags(self) -> Dags:
        return self.airflow.dags

    def connect(self, name: str, gateway: Gateway, **more: str) -> None:
        """Give Airflow a connection to the gateway, as its form does."""
        said = gateway.settings().model_dump(mode="json", exclude_defaults=True, exclude={"timeout"}) | more
        connection = {"conn_type": "hbase", "host": said.pop("host"), "port": said.pop("port")}
        body = {"connection_id": name, **connection, "extra": json.dumps(said)}
        self.airflow.rest.post("connections", body=body)

    def leave_one_open(self) -> Entry:
        """A client ends in the middle of a transfer, after its records."""
        assert self.books.stopped(lambda book: book.transfer("issuer", "ann", 5), 5, "before")
        (entry,) = self.books.entries()
        return entry

    def said(self, run: Run, task_id: str) -> tuple[str, str]:
        """How a task ended, and its log."""
        task = next(each for each in self.dags.tasks(run) if each.task_id == task_id)
        return task.state, self.dags.log(run, task)


@pytest.fixture
def gateway(store: Stack, tmp_path: Path) -> Gateway:
    """One that asks for a login by SASL, and encrypts."""
    return of_kind(store, "auth-conf", tmp_path)


@pytest.fixture
def scene(store: Stack) -> Iterator[Scene]:
    """Tables of the test, by Omid's client."""
    with OmidClient(store) as omid:
        yield from staged(omid)


@pytest.fixture
def bank(gateway: Gateway, tmp_path: Path) -> Iterator[Bank]:
    """Airflow with all its parts, which knows the store by its configuration and by connections; one user has money."""
    ledger = {"prefix": "bank_", "grace": "1s", "allow_short_grace": True}
    defaults = {"mode": "execute", "budget": {"share": 1.0}}
    file = Site(gateway, tmp_path).configuration(ledger=ledger, defaults=defaults)
    (dags := tmp_path / "dags").mkdir()
    (dags / "sensing.py").write_text(textwrap.dedent(SENSING))
    (dags / "lowtide.py").write_text("from lowtide_airflow.factory import lowtide_dags\nlowtide_dags()\n")
    config = free_port_config(tmp_path / "airflow", lowtide_config=file, dags=dags, triggerer=True, parallelism=4)
    airflow = LocalAirflow(config)
    wait_for_a_new_day()
    try:
        airflow.up()
        found = Bank(airflow, Books(file))
        init(found.books.config)
        with found.books.open() as book:
            book.add_user("ann")
        found.connect("bank", gateway)
        found.connect("stranger", gateway, principal="alice", keytab=gateway.keytab("alice"))
        found.connect("lost_key", gateway, keytab=str(tmp_path / "nobodys.keytab"))
        yield found
    finally:
        airflow.down()


def test_airflow_works_on_a_store_that_asks_for_logins(bank: Bank, scene: Scene) -> None:
    """Blocking and deferred sensors log in by their connection's keytab and wait, until a repair that the scheduler
    submits has ended what they wait for. Who may not read, and who has no key, is told why in one sentence at each
    look, and fails when the sensor's patience is over.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    scene.omid.advance_watermark()
    entry = bank.leave_one_open()
    yesterday = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=1)
    for name in ("orphan_cleanup", "transaction_repair"):  # whose daily run would come first
        bank.dags.mark(bank.dags.trigger(name, logical_date=yesterday), "success")
        bank.dags.unpause(name)
    bank.dags.unpause("sensing")
    waiting = bank.dags.trigger("sensing", {"transaction": entry.id})
    deadline = time.monotonic() + PATIENCE
    states: dict[str, str] = {}
    while states != {"blocking": "running", "deferred": "deferred", "stranger": "failed", "lost_key": "failed"}:
        assert time.monotonic() < deadline, states
        states = {task.task_id: task.state for task in bank.dags.tasks(waiting)}
        time.sleep(1)
    assert "HBase does not let alice do this: the right READ is missing" in bank.said(waiting, "stranger")[1]
    assert "nobodys.keytab" in bank.said(waiting, "lost_key")[1]
    form = {"execute": True}
    runs = [
        bank.dags.trigger("orphan_cleanup", form | {"tables": [table]}),
        bank.dags.trigger("transaction_repair", form),
    ]
    for run in bank.dags.wait(runs, timeout=PATIENCE):
        assert run.state == "success", [bank.said(run, task.task_id) for task in bank.dags.tasks(run)]
    assert not scene.has(table, orphan)
    bank.dags.wait([waiting], timeout=PATIENCE)
    ended = {name: bank.said(waiting, name)[0] for name in states}
    assert ended == {"blocking": "success", "deferred": "success", "stranger": "failed", "lost_key": "failed"}
