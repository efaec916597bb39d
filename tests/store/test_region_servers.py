"""HBase with region servers of their own, one of which is killed while a job works."""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import deadman
import pytest
from conftest import Outcome, booted
from connector_kit import Kit
from deadman import Moment
from lowtide_spark.cleaning import suspects
from lowtide_spark.frames.connector import Connector
from pyspark.sql import SparkSession
from scene import check_read_points
from shown import check_snapshots

from lowtide.lab.servers import start_time
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import Model, OmidClient, Shape, WorkloadError, run
from lowtide.run.jobs import INSPECTIONS
from tests import seeds

Job = Callable[..., Outcome]

SHAPE = Shape(tables=("orders", "stock"))
TRANSACTIONS = 120
POINTS = 20
CLEANUP, PRUNING = ("orphan_cleanup", "--full"), ("commit_table_pruning", "--grace", "0s")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A store of this module's own, with three region servers. A dead one is missed soon."""
    config = free_ports_config(
        tmp_path_factory.mktemp("store"),
        region_servers=3,
        hbase_heap="384m",
        timestamps="incremental",
        conflict_map_size=64,
        extra_hbase={"zookeeper.session.timeout": "10000"},
    )
    with booted(config) as store:
        yield store


@pytest.fixture(scope="module")
def omid(stack: Stack) -> Iterator[OmidClient]:
    with OmidClient(stack) as client:
        yield client


def states(stack: Stack) -> dict[str, str]:
    return {part.name: part.state for part in stack.status()}


def pids(stack: Stack) -> dict[str, int | None]:
    return {part.name: part.pid for part in stack.status()}


def serving(stack: Stack, omid: OmidClient, table: str) -> list[str]:
    """The parts that serve the table's regions, in key order."""
    ports = [int(region.server.split(",")[1]) for region in omid.regions(table)]
    return [next(part for part in stack.region_servers if port in stack.listening(part)) for port in ports]


def test_each_server_is_a_process_and_regions_are_spread(stack: Stack, omid: OmidClient) -> None:
    """ZooKeeper, the master and three region servers run beside the gateway and the oracle; a table's regions are on
    all of the three.
    """
    assert set(states(stack).values()) == {"running"}
    running = pids(stack)
    assert len(set(running.values())) == len(running) == 7
    omid.create("spread", ("a",), splits=("b", "c", "d", "e", "f"))
    assert set(serving(stack, omid, "spread")) == set(stack.region_servers)
    omid.drop("spread")


def test_a_killed_region_server_is_noticed_and_started_again_alone(stack: Stack, omid: OmidClient) -> None:
    """What it had acknowledged is there on another one; ``up`` starts it and leaves the other parts alone."""
    omid.create("survivor", ("a",))
    omid.put("survivor", b"r", b"a", b"q", 50, b"kept")
    (part,) = serving(stack, omid, "survivor")
    before = pids(stack)
    stack.kill(part)
    assert {name for name, state in states(stack).items() if state != "running"} == {part}
    assert [(cell.key, cell.value) for cell in omid.raw("survivor")] == [((b"r", b"a", b"q", 50), b"kept")]
    assert serving(stack, omid, "survivor") != [part]
    stack.up()
    assert set(states(stack).values()) == {"running"}
    assert {name for name, pid in pids(stack).items() if pid != before[name]} == {part}
    omid.drop("survivor")


@pytest.mark.turns(3)
def test_servers_that_died_are_waited_for_before_a_table_is_read(
    spark: SparkSession, stack: Stack, omid: OmidClient
) -> None:
    """Nobody has missed a table's server yet that was killed: its regions are listed, with their sizes, and a read of
    it is planned, once they are open elsewhere. It is not an error.
    """
    table = "planned"
    omid.create(table, ("a",), splits=("b", "c", "d"))
    kit = Kit(spark, stack)
    # With Lowtide's own patience: the dead server may be that of hbase:meta, and HBase's client counts its tries.
    del kit.options["hbase.client.retries.number"]
    before = kit.read(table, view="regions").collect()
    dead = serving(stack, omid, table)[0]
    stack.kill(dead)
    now = kit.read(table, view="regions").collect()
    assert [(region.region, region.memstore_bytes is None) for region in now] == [(r.region, False) for r in before]
    assert len({region.server for region in before} - {region.server for region in now}) == 1
    stack.up()
    stack.kill(serving(stack, omid, table)[0])
    assert kit.read(table).rdd.getNumPartitions() == len(before)
    stack.up()
    assert set(states(stack).values()) == {"running"}
    omid.drop(table)


@contextmanager
def moving(stack: Stack, seed: int) -> Iterator[list[int]]:
    """Have one region after the other moved to another server, again and again; how many were, so far."""
    ended = threading.Event()
    rng = random.Random(seed)
    moved: list[int] = [0]

    def move() -> None:
        with OmidClient(stack) as client:
            while not ended.wait(0.3):
                table = rng.choice(SHAPE.tables)
                with suppress(WorkloadError):  # the region's server, or the one it is to go to, may be the dead one
                    client.move(table, rng.choice(client.regions(table)).start)
                    moved[0] += 1

    mover = threading.Thread(target=move, name="mover")
    mover.start()
    try:
        yield moved
    finally:
        ended.set()
        mover.join()


@dataclass
class World:
    """Tables of a workload, jobs on them, and a server of theirs that can be killed."""

    stack: Stack
    omid: OmidClient
    model: Model
    config: Path
    job: Job
    seed: int
    killed: list[str] = field(default_factory=list)
    moved: int = 0

    def kill(self) -> None:
        """End a server of the first table by SIGKILL, once."""
        if not self.killed:
            self.killed.append(serving(self.stack, self.omid, SHAPE.tables[0])[0])
            self.stack.kill(self.killed[0])

    def run(self, name: str, *arguments: str) -> Outcome:
        """Run a job; one that could act acts."""
        act = () if name in INSPECTIONS else ("--execute",)
        return self.job(name, *arguments, *act, config=self.config)

    def well(self, name: str, *arguments: str) -> Outcome:
        """Run a job that has nothing to complain of."""
        outcome = self.run(name, *arguments)
        assert (outcome.code, outcome.summary["state"]) == (0, "done"), outcome.problems
        return outcome

    def struck(self, watch: deadman.Watch, name: str, *arguments: str) -> Outcome:
        """Run a job in which a server is killed, by *watch* or what the test prepared, and regions move from server to
        server all the time; where it ends red, once more.
        """
        with moving(self.stack, self.seed) as moved:
            outcome = deadman.run(lambda: self.run(name, *arguments), watch).result
        self.moved += moved[0]
        print(f"{moved[0]} regions were moved meanwhile")
        assert outcome
        assert self.killed, "nothing was killed"
        if outcome.code:
            print(f"the run in which {self.killed} was killed ended with {outcome.code}: {outcome.problems}")
            outcome = self.run(name, *arguments)
            # All was back before the first run died: it is as it should be.
            if "it was restored before" in outcome.problems:
                return outcome
        assert (outcome.code, outcome.summary["state"]) == (0, "done"), outcome.problems
        return outcome


@pytest.fixture(scope="module")
def sideline(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of all of the module's runs: a verification looks for what any of them put aside."""
    return str(tmp_path_factory.mktemp("sideline"))


@pytest.fixture
def world(
    stack: Stack, omid: OmidClient, job: Job, configure: Callable[..., Path], tmp_path: Path, sideline: str, seed: int
) -> Iterator[World]:
    """The workload of the seed; afterwards all servers run again."""
    for table in SHAPE.tables:
        omid.drop(table)
    history = tmp_path / "history"
    model = run(stack, seed, TRANSACTIONS, history, shape=SHAPE, kills=0, halts=0, regions=3, omid=omid).model
    # Properties that nobody else has: a connection of the connector's own, which knows nothing of what died before.
    own = {"hbase.tests": str(tmp_path), "hbase.rootdir": stack.hbase_properties()["hbase.rootdir"]}
    # The dead server may be the state table's, which comes back no sooner than others.
    gateway = {"port": stack.config.thrift_port, "timeout": "60s"}
    hbase = {"zookeeper_port": stack.config.zookeeper_port, "thrift": gateway, "properties": own}
    young = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}
    config = configure(hbase=hbase, defaults=young, state={"sideline": sideline})
    yield World(stack, omid, model, config, job, seed)
    stack.up()
    assert set(states(stack).values()) == {"running"}


@pytest.mark.turns(3)
@pytest.mark.parametrize("moment", ["find", "act", "record"])
@seeds.each("a region server killed during a cleanup")
def test_a_cleanup_in_which_a_region_server_is_killed_ends_right_or_is_run_again(
    world: World, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """While the cleanup finds, acts or records, SIGKILL ends a server of its table, and regions move from server to
    server all the time. HBase opens the regions elsewhere; the cleanup waits for them, or is red and does the rest when
    it is run again. Then every read point shows what the model says, and pruning takes no proof that a reader needs.
    """
    find = suspects.find

    def finding(*arguments: Any) -> None:
        world.kill()
        find(*arguments)

    def watch(effect: deadman.Effect, when: Moment) -> None:
        acts = effect.seam == "connector" and effect.on in SHAPE.tables
        if when is Moment.BEFORE and {"act": acts, "record": effect.step == "facts.record_all"}.get(moment):
            world.kill()

    if moment == "find":
        monkeypatch.setattr(suspects, "find", finding)
    world.struck(watch, *CLEANUP)
    assert world.moved, "no region moved"
    check_read_points(world.omid, world.model, world.seed)
    assert world.well(*PRUNING).totals["pruned"] > 0
    check_read_points(world.omid, world.model, world.seed)


#: Jobs after a cleanup, and how many times each reads or writes, at least.
MOMENTS = {
    "survey": 8,
    "verify": 5,
    "watermark_collection": 12,
    "history_gc": 30,
    "commit_table_pruning": 20,
    "sideline_restore": 10,
}


@pytest.mark.turns(6)
@pytest.mark.parametrize("name", MOMENTS)
@seeds.each("a region server killed during any job")
def test_a_job_in_which_a_region_server_is_killed_ends_right_or_is_run_again(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Before one of the job's reads or writes, which the seed chooses, SIGKILL ends a server of its table, and regions
    move. The job waits, or is red and does the rest when it is run again. A cleanup and pruning after it find nothing
    amiss, and readers are shown what the model says: at every read point, after history GC from its mark on.
    """
    cleaned = world.well(*CLEANUP)
    if name == "history_gc":
        world.well("watermark_collection")
    arguments = {"commit_table_pruning": PRUNING[1:], "sideline_restore": ("--restore", cleaned.summary["run"])}
    chosen, moments = random.Random(world.seed).randint(1, MOMENTS[name]), itertools.count(1)

    def strike() -> None:
        if next(moments) == chosen:
            world.kill()

    def watch(effect: deadman.Effect, when: Moment) -> None:
        if when is Moment.BEFORE:
            strike()

    def striking(read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(*asked: Any, **options: str) -> Any:
            strike()
            return read(*asked, **options)

        return reading

    with monkeypatch.context() as patched:
        for read in ("_read", "_listed", "_gateway_call"):
            patched.setattr(Connector, read, striking(getattr(Connector, read)))
        struck = world.struck(watch, name, *arguments.get(name, ()))
    print(f"{next(moments) - 1} reads and writes; a server was killed before number {chosen}")
    world.well(*CLEANUP)
    world.well(*PRUNING)
    mark = max((table["mark"]["applied"] for table in struck.summary["tables"] if table.get("mark")), default=0)
    points = [point for point in world.model.read_timestamps(POINTS, world.seed) if point >= mark]
    check_snapshots(world.omid, world.model, [*points, world.omid.begin()])


def test_down_ends_every_process_and_data_survive(stack: Stack, omid: OmidClient) -> None:
    """The master ends its region servers, which write their memory to files first; nothing is left running."""
    omid.create("kept", ("a",), splits=("m",))
    for row in (b"a", b"z"):
        omid.put("kept", row, b"a", b"q", 50, b"value")
    running = pids(stack)
    stack.down()
    assert set(states(stack).values()) == {"stopped"}
    assert [pid for pid in running.values() if pid and start_time(pid)] == []
    stack.up()
    with OmidClient(stack) as after:
        assert [cell.row for cell in after.raw("kept")] == [b"a", b"z"]
