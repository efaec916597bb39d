"""Sensors under a real scheduler and a real triggerer, both of which are killed meanwhile, as is the gateway."""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
import yaml
from installation import UNHURRIED, up_together

from lowtide.config import Config, load
from lowtide.lab.airflow import Dags, LocalAirflow, Run, free_port_config
from lowtide.lab.servers import Process, start_time
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.ledger import Ledger, State, init, ledger
from lowtide.ledger.model import SETTLED_ROW, Entry, Table
from lowtide.ledger.settled import Settled
from lowtide.ledger.steps import Put, Write
from lowtide.ledger.store import Moment, Tables
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore

PATIENCE = 600

SENSING = """
    from airflow.providers.standard.operators.empty import EmptyOperator
    from airflow.sdk import DAG, Asset, AssetWatcher, Param
    from lowtide_airflow.sensors import TransactionsSettledSensor, TransactionsStuckSensor, TransactionStateSensor
    from lowtide_airflow.triggers import ConditionWatcher
    from lowtide.health.conditions import TransactionsStuck

    often = {"poke_interval": 1, "timeout": 500, "patience": "3m", "hbase_conn_id": "hbase_bank"}
    stuck = TransactionsStuck(older_than="1s").to_json()
    watched = Asset("stuck", watchers=[AssetWatcher(name="stuck", trigger=ConditionWatcher(stuck, 1, "hbase_bank"))])

    params = {"transaction": Param("", type="string"), "before": Param("", type="string")}
    with DAG("sensing", schedule=None, params=params):
        TransactionsStuckSensor(task_id="stuck", older_than="1s", **often)
        TransactionStateSensor(task_id="blocking", transaction="{{ params.transaction }}", **often)
        # Not so often: a task that is back before the scheduler has heard of its last leave is taken for failed.
        seldom = often | {"poke_interval": 10}
        TransactionsSettledSensor(
            task_id="rescheduled", before="{{ params.before }}", mode="reschedule", **seldom
        )
        TransactionStateSensor(task_id="deferred", transaction="{{ params.transaction }}", deferrable=True, **often)
        TransactionsSettledSensor(task_id="settled", before="{{ params.before }}", deferrable=True, **often)

    # Longer than a scheduler on a busy machine takes to hear of a leave, for the same reason.
    brief = often | {"timeout": 12, "retries": 1, "retry_delay": 1}

    with DAG("hurried", schedule=None, params={"transaction": Param("", type="string")}):
        TransactionStateSensor(task_id="blocking", transaction="{{ params.transaction }}", **brief)
        TransactionStateSensor(task_id="deferred", transaction="{{ params.transaction }}", deferrable=True, **brief)
        TransactionStateSensor(
            task_id="soft", transaction="{{ params.transaction }}", deferrable=True, soft_fail=True, **brief
        )

    with DAG("event_driven", schedule=[watched]):
        EmptyOperator(task_id="repair")
"""


class Stopped(BaseException):
    """The client ended here."""


@dataclass
class Site:
    stack: Stack
    airflow: LocalAirflow
    config: Config

    @property
    def dags(self) -> Dags:
        return self.airflow.dags

    def leave_one_open(self, sender: str = "issuer", recipient: str = "ann", amount: int = 5, after: int = 4) -> Entry:
        """A client ends in the middle of a transfer, after some writes."""
        seen: list[Write] = []

        def stop(write: Write, moment: Moment) -> None:
            if moment is Moment.AFTER:
                seen.append(write)
                if len(seen) == after:
                    raise Stopped

        with pytest.raises(Stopped), ledger(self.config, stop) as book:
            book.transfer(sender, recipient, amount)
        return Entry.parse(seen[0].row)

    def book(self, work: Callable[[Ledger], object]) -> None:
        with ledger(self.config) as book:
            work(book)

    def states(self, run: Run) -> dict[str, str]:
        return {task.task_id: task.state for task in self.dags.tasks(run)}

    def until(self, check: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not check():
            assert time.monotonic() < deadline, what
            time.sleep(0.5)

    def kill(self, part: str) -> None:
        pid = next(each.pid for each in self.airflow.status() if each.name == part)
        Process(pid, start_time(pid)).kill()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("sensing")
    stack = Stack(free_ports_config(folder / "store", timestamps="incremental"))
    file = folder / "lowtide.yaml"
    # The gateway's port is not in it: that is the connection's to say.
    file.write_text(yaml.safe_dump({"ledger": {"prefix": "bank_", "grace": "1s", "allow_short_grace": True}}))
    dags = folder / "dags"
    dags.mkdir()
    (dags / "sensing.py").write_text(textwrap.dedent(SENSING))
    # How often Airflow looks for deferred tasks whose time is over.
    settings = UNHURRIED | {"scheduler": {"trigger_timeout_check_interval": "3"}}
    options = {"dags": dags, "triggerer": True, "parallelism": 4, "settings": settings}
    airflow = LocalAirflow(free_port_config(folder / "airflow", lowtide_config=file, **options))
    try:
        up_together(stack, airflow)
        config = load(file)
        thrift = config.hbase.thrift.model_copy(update={"port": stack.config.thrift_port})
        config = config.model_copy(update={"hbase": config.hbase.model_copy(update={"thrift": thrift})})
        init(config)
        with connect(config.hbase.thrift) as gateway:
            # As the first run that acts does.
            StateStore(gateway, config.state.table).create()
            mark = Settled(full_at=time.time_ns() // 1_000_000)
            Tables(gateway, config.ledger.prefix)(Put(Table.OPEN, SETTLED_ROW, {"mark": mark.encode()}))
        connection = {"conn_type": "hbase", "host": "127.0.0.1", "port": stack.config.thrift_port}
        airflow.rest.post("connections", body={"connection_id": "hbase_bank", **connection})
        found = Site(stack, airflow, config)
        found.book(lambda book: book.add_user("ann"))
        yield found
    finally:
        airflow.down()
        stack.down()


@pytest.mark.turns(2, group="Airflow at length")
def test_sensors_wait_through_kills_and_see_the_end(site: Site) -> None:
    """One stuck transaction: seen by the blocking sensor and the watcher; the others wait, lose triggerer and gateway,
    and end with it.
    """
    entry = site.leave_one_open()
    site.dags.unpause("event_driven")
    before = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(entry.timestamp / 1000 + 1))
    run = site.dags.trigger("sensing", {"transaction": entry.id, "before": before})
    site.dags.unpause("sensing")
    waiting = {"deferred": "deferred", "settled": "deferred", "blocking": "running"}
    site.until(lambda: waiting.items() <= site.states(run).items(), f"{waiting}: {site.states(run)}")
    site.until(lambda: site.states(run)["stuck"] == "success", "the stuck one was not seen")
    site.until(lambda: site.states(run)["rescheduled"] == "up_for_reschedule", "no worker slot was given back")
    site.until(lambda: len(site.dags.runs("event_driven")) == 1, "the watcher told nothing")

    site.kill("triggerer")
    gateway = next(part.pid for part in site.stack.status() if part.name == "thrift")
    assert gateway
    Process(gateway, start_time(gateway)).kill()  # type: ignore[arg-type]
    time.sleep(3)
    site.airflow.up()
    time.sleep(3)
    assert waiting.items() <= site.states(run).items()
    site.stack.up()
    site.book(lambda book: book.repair(entry))

    (done,) = site.dags.wait([run], timeout=PATIENCE)
    assert (done.state, set(site.states(run).values())) == ("success", {"success"})
    # The watcher of the new triggerer knows what was told: once for this one, once for the next.
    assert len(site.dags.runs("event_driven")) == 1
    second = site.leave_one_open()
    site.until(lambda: len(site.dags.runs("event_driven")) == 2, "the next one was not told")
    site.book(lambda book: book.repair(second))


def test_what_never_comes_and_what_takes_too_long(site: Site) -> None:
    """A dropped transaction fails the sensors that wait for its end, with the reason why. One that stays open fails
    those whose time is over, or has them skipped where they are soft; blocking or deferred, neither gets a retry."""
    with ledger(site.config) as book:
        book.add_user("bob")
        book.transfer("issuer", "ann", 5)
        has = book.balance("ann")
        site.leave_one_open("ann", "bob", has, after=2)
        dropped = book.transfer("ann", "bob", 1)
        assert dropped.state is State.DROPPED
    stays = site.leave_one_open()
    site.dags.unpause("hurried")
    site.dags.unpause("sensing")
    hurried = site.dags.trigger("hurried", {"transaction": stays.id})
    run = site.dags.trigger("sensing", {"transaction": dropped.id, "before": "2026-01-01T00:00:00+00:00"})
    for name in ("deferred", "blocking"):
        site.until(lambda name=name: site.states(run).get(name) == "failed", f"{name} did not give up")  # type: ignore[misc]
    task = next(task for task in site.dags.tasks(run) if task.task_id == "deferred")
    assert "is dropped, waiting for finished: that cannot come any more" in site.dags.log(run, task)

    (late,) = site.dags.wait([hurried], timeout=PATIENCE)
    assert late.state == "failed"
    assert site.states(late) == {"blocking": "failed", "deferred": "failed", "soft": "skipped"}
    said = {
        "blocking": "AirflowSensorTimeout: Sensor has timed out",
        "deferred": "AirflowSensorTimeout: Trigger timeout",
        "soft": "Skipping task",
    }
    for task in site.dags.tasks(late):
        # Airflow may have taken a task for failed that was back too early (see above): such a try has not come to its
        # time's end, the last one has.
        *early, last = (site.dags.log(late, replace(task, tries=number)) for number in range(1, task.tries + 1))
        assert "waiting for finished" in last
        assert said[task.task_id] in last
        assert not any(said[task.task_id] in log for log in early)
