"""HBase with region servers of their own, one of which is killed while a job works."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import deadman
import pytest
from conftest import Outcome, booted
from connector_kit import Kit
from deadman import Moment
from lowtide_spark.cleaning import suspects
from pyspark.sql import SparkSession
from scene import check_read_points

from lowtide.lab.servers import start_time
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient, Shape, WorkloadError, run
from tests import seeds

Job = Callable[..., Outcome]

SHAPE = Shape(tables=("orders", "stock"))
TRANSACTIONS = 120


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


def killing_at(moment: str, kill: Callable[[], None], patched: pytest.MonkeyPatch) -> deadman.Watch:
    """Have *kill* called when a cleanup that is watched by this finds, acts or records, before it does."""
    find = suspects.find

    def finding(*arguments: Any) -> None:
        kill()
        find(*arguments)

    def watch(effect: deadman.Effect, when: Moment) -> None:
        acts = effect.seam == "connector" and effect.on in SHAPE.tables
        if when is Moment.BEFORE and {"act": acts, "record": effect.step == "facts.record"}.get(moment):
            kill()

    if moment == "find":
        patched.setattr(suspects, "find", finding)
    return watch


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


@pytest.mark.turns(3)
@pytest.mark.parametrize("moment", ["find", "act", "record"])
@seeds.each("a region server killed during a cleanup")
def test_a_cleanup_in_which_a_region_server_is_killed_ends_right_or_is_run_again(
    stack: Stack,
    omid: OmidClient,
    job: Job,
    configure: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
    seed: int,
) -> None:
    """While the cleanup finds, acts or records, SIGKILL ends a server of its table, and regions move from server to
    server all the time. HBase opens the regions elsewhere; the cleanup waits for them, or is red and does the rest when
    it is run again. Then every read point shows what the model says, and pruning takes no proof that a reader needs.
    """
    for table in SHAPE.tables:
        omid.drop(table)
    history = tmp_path / "history"
    model = run(stack, seed, TRANSACTIONS, history, shape=SHAPE, kills=0, halts=0, regions=3, omid=omid).model
    # Properties that nobody else has: a connection of the connector's own, which knows nothing of what died before.
    own = {"hbase.tests": f"{moment} {seed}", "hbase.rootdir": stack.hbase_properties()["hbase.rootdir"]}
    # The dead server may be the state table's, which comes back no sooner than others.
    gateway = {"port": stack.config.thrift_port, "timeout": "60s"}
    config = configure(hbase={"zookeeper_port": stack.config.zookeeper_port, "thrift": gateway, "properties": own})
    killed: list[str] = []

    def kill() -> None:
        if not killed:
            killed.append(serving(stack, omid, "orders")[0])
            stack.kill(killed[0])

    def clean() -> Outcome:
        return job("orphan_cleanup", "--full", "--execute", config=config)

    with moving(stack, seed) as moved:
        outcome = deadman.run(clean, killing_at(moment, kill, monkeypatch)).result
    print(f"{moved[0]} regions were moved meanwhile")
    assert outcome
    assert moved[0], "no region moved"
    assert killed, "nothing was killed"
    if outcome.code:
        print(f"the run in which {killed} was killed ended with {outcome.code}: {outcome.problems}")
        outcome = clean()
    assert (outcome.code, outcome.summary["state"]) == (0, "done"), outcome.problems
    check_read_points(omid, model, seed)
    pruning = job("commit_table_pruning", "--grace", "0s", "--execute", config=config)
    assert (pruning.code, pruning.totals["pruned"] > 0) == (0, True), pruning.problems
    check_read_points(omid, model, seed)
    stack.up()
    assert set(states(stack).values()) == {"running"}


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
