"""Two stores in one Airflow, made by the factory in one file, under a real scheduler: an embedded HBase with its oracle
each, schedules of their own, and people who are called of one of them.

The gateway of the store ``west`` is down at first. Jobs run on a driver that is up already (warm_driver.py).
"""

from __future__ import annotations

import json
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from installation import PATIENCE, QUICK, SETTLED, UNHURRIED, configuration, driver, first_of_its_kind, up_together
from lowtide_airflow.approved import APPROVE

from lowtide.config import load
from lowtide.lab.airflow import AirflowError, Dags, LocalAirflow, Run, free_port_config
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.store.state import opened

EAST, WEST = "east", "west"
MADE = """
    from pathlib import Path

    from airflow.sdk import BaseNotifier
    from lowtide_airflow.factory import lowtide_dags


    class Noted(BaseNotifier):
        template_fields = ("line",)

        def __init__(self, line):
            super().__init__()
            self.line = line

        def notify(self, context):
            with Path(__file__).with_name("called.txt").open("a") as file:
                file.write(self.line + "\\n")


    cleaning = ["orphan_cleanup", "watermark_collection"]
    failed = {"on_failure_callback": Noted("failed {{ ti.dag_id }} {{ ti.task_id }}")}

    lowtide_dags(
        "east",
        dags=cleaning,
        schedule={"orphan_cleanup": "@daily", "watermark_collection": None},
        timezone="Asia/Tokyo",
        callbacks=failed,
        approvers=["ann"],
        notifiers=Noted("asked {{ ti.dag_id }} {{ ti.task_id }}"),
    )
    lowtide_dags(
        "west",
        dags=cleaning,
        schedule={"orphan_cleanup": "@hourly", "watermark_collection": None},
        callbacks=failed,
        run_callbacks={"on_failure_callback": Noted("over {{ dag_run.dag_id }}")},
    )
"""


@dataclass
class Place:
    """One of the stores, and what dead clients left in its only table."""

    stack: Stack
    omid: OmidClient
    table: str
    orphans: set[int]

    def left(self) -> set[int]:
        """Which of them are still there; deleted ones lie there until a compaction, behind a marker."""
        cells = self.omid.raw(self.table)
        gone = {cell.key for cell in cells if cell.kind == "delete"}
        return {c.timestamp for c in cells if c.kind == "put" and c.key not in gone} & self.orphans


@dataclass
class Two:
    airflow: LocalAirflow
    places: dict[str, Place]
    book: Path

    @property
    def dags(self) -> Dags:
        return self.airflow.dags

    def called(self) -> list[str]:
        """Who was called so far, a line a call."""
        return self.book.read_text().splitlines() if self.book.exists() else []

    def until_called(self, line: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while line not in self.called():
            assert time.monotonic() < deadline, self.called()
            time.sleep(0.3)

    def over(self, run: Run) -> Run:
        return self.dags.wait([run], timeout=PATIENCE)[0]

    def log(self, run: Run, task_id: str) -> str:
        (task,) = (t for t in self.dags.tasks(run) if t.task_id == task_id)
        return self.dags.log(run, task)


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Two]:
    folder = tmp_path_factory.mktemp("two")
    (folder / "dags").mkdir()
    (folder / "dags" / "stores.py").write_text(textwrap.dedent(MADE))
    stacks = {
        name: Stack(free_ports_config(folder / name, timestamps="incremental", conflict_map_size=64))
        for name in (EAST, WEST)
    }
    files = {name: configuration(folder / f"{name}.yaml", stack, {}) for name, stack in stacks.items()}
    served = {"stores": json.dumps({name: str(file) for name, file in files.items()})}
    settings = UNHURRIED | SETTLED | {"lowtide": QUICK | served}
    config = free_port_config(folder / "airflow", dags=folder / "dags", settings=settings)
    with driver(config, files[EAST], folder / "driver") as airflow, ExitStack() as clients:
        try:
            up_together(*stacks.values(), airflow)
            places = {}
            for name, stack in stacks.items():
                omid = clients.enter_context(OmidClient(stack))
                places[name] = Place(stack, omid, f"{name}_orders", set())
                leave_orphans(places[name], files[name])
            yield Two(airflow, places, folder / "dags" / "called.txt")
        finally:
            airflow.down()
            for stack in stacks.values():
                stack.down()


def leave_orphans(place: Place, file: Path) -> None:
    """Let three clients die after their first write, two days ago as far as the store knows."""
    place.omid.create(place.table)
    for _ in range(3):
        place.orphans.add(start := place.omid.begin())
        place.omid.put(place.table, b"row%d" % start, b"a", b"q", start, b"never committed")
    with opened(load(file)) as state:
        state.create()
        state.add_sample(datetime.now(UTC) - timedelta(days=2), place.omid.begin())
    place.omid.advance_watermark()


@pytest.mark.turns(2, group="Airflow at length")
def test_each_store_has_dags_and_a_pool_of_its_own(two: Two) -> None:
    """The pools were made when Airflow's API server started, each with its slot."""
    names = ("orphan_cleanup", "watermark_collection")
    assert two.dags.names() == [f"{store}.{name}" for store in (EAST, WEST) for name in names]
    slots = {pool["name"]: pool["slots"] for pool in two.airflow.rest.get("pools", limit=100)["pools"]}
    assert slots.items() >= {f"{EAST}.lowtide": 1, f"{WEST}.lowtide": 1, "lowtide": 1}.items()


def test_a_failure_of_one_store_calls_its_people_and_the_other_goes_on(two: Two) -> None:
    """Each by its own schedule, on its own store: what of the one is cleaned starts the next DAG of that one alone."""
    two.places[WEST].stack.kill("thrift")
    for store in (EAST, WEST):
        two.dags.unpause(f"{store}.watermark_collection")
        two.dags.unpause(f"{store}.orphan_cleanup")
    good, bad = (first_of_its_kind(two.dags, f"{store}.orphan_cleanup", "scheduled") for store in (EAST, WEST))
    assert (good.state, bad.state) == ("success", "failed")
    assert two.places[EAST].left() == set()
    assert good.interval is not None
    assert bad.interval is not None
    assert good.interval[1] - good.interval[0] == timedelta(days=1)
    assert good.interval[1].astimezone(UTC).hour == 15, "midnight in Tokyo"
    assert bad.interval[1] - bad.interval[0] == timedelta(hours=1)
    assert "--config" in two.log(good, "clean")
    collected = first_of_its_kind(two.dags, f"{EAST}.watermark_collection", "asset_triggered")
    assert collected.state == "success"
    # The task that failed, when its retry had failed too; at its end the run; and nobody for those behind it.
    two.until_called(f"over {WEST}.orphan_cleanup")
    called = two.called()
    assert set(called) == {f"failed {WEST}.orphan_cleanup choose_tables", f"over {WEST}.orphan_cleanup"}
    # Once for each run: there is another where the hour turned meanwhile.
    assert max(called.count(line) for line in called) <= len(two.dags.runs(f"{WEST}.orphan_cleanup"))
    assert two.dags.runs(f"{WEST}.watermark_collection") == []


def test_a_run_by_hand_works_on_the_interval_that_was_specified(two: Two) -> None:
    """And on its own store, once its gateway is back. Without one it has an empty interval, which means none
    (test_arguments.py), and no job is needed to see it.
    """
    west = two.places[WEST]
    west.stack.up()
    two.dags.pause(f"{WEST}.watermark_collection")
    now = datetime.now(UTC).replace(microsecond=0)
    start, end = now - timedelta(days=9), now - timedelta(days=1)
    name, form = f"{WEST}.orphan_cleanup", {"tables": [west.table], "execute": True}
    specified = two.dags.trigger(name, form, logical_date=now, interval=(start, end))
    unsaid = two.dags.trigger(name, logical_date=now + timedelta(seconds=1))
    two.dags.mark(unsaid, "failed")
    assert specified.interval == (start, end)
    assert unsaid.interval == (unsaid.logical_date, unsaid.logical_date)
    specified = two.over(specified)
    assert specified.state == "success"
    assert west.left() == set()
    assert f"--from {start.isoformat()} --to {end.isoformat()}" in two.log(specified, "clean")


def test_an_approval_calls_those_who_can_give_it_and_takes_no_other_answer(two: Two) -> None:
    """The notifier is called when the run begins to wait; who is no approver is refused, whatever else they may do."""
    east = two.places[EAST]
    run = two.dags.trigger(f"{EAST}.orphan_cleanup", {"tables": [east.table], "execute": True, "approval": True})
    two.until_called(f"asked {EAST}.orphan_cleanup {APPROVE}")
    path = ("dags", run.dag_id, "dagRuns", run.run_id, "taskInstances", APPROVE, "-1", "hitlDetails")
    with pytest.raises(AirflowError, match="403"):
        two.airflow.rest.patch(*path, body={"chosen_options": ["Approve"], "params_input": {}})
    assert two.airflow.rest.get(*path)["assigned_users"] == [{"id": "ann", "name": "ann"}]
    two.dags.mark(run, "failed")
