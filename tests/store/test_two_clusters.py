"""Two stores: a configuration mixes the ways, so that ZooKeeper leads to the one, the gateway to the other; or both put
aside in one folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import JOBS, Outcome, booted
from lowtide_spark.frames import audit_log
from lowtide_spark.frames.owner import FOLDER
from scene import Scene
from typer.testing import CliRunner

from lowtide.cli.app import app
from lowtide.config import Thrift, load
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.run.jobs import INSPECTIONS
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore
from tests import warm

Job = Callable[..., Outcome]


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Another store, with a gateway and an oracle of its own."""
    with booted(warm.store_config(tmp_path_factory.mktemp("other"))) as store:
        yield store


@pytest.fixture
def crossed_state(stack: Stack, other: Stack) -> Iterator[str]:
    """Records of these runs alone: what they leave in those of other tests would be an alarm there."""
    name = "CROSSED_STATE"
    yield name
    for store in (stack, other):
        with connect(Thrift(port=store.config.thrift_port)) as connection:
            if name.encode() in connection.tables():
                connection.delete_table(name, disable=True)


def test_the_gateway_of_another_store_is_refused_by_every_job(
    job: Job,
    configure: Callable[..., Path],
    scene: Scene,
    omid: OmidClient,
    stack: Stack,
    other: Stack,
    crossed_state: str,
) -> None:
    """Either way round: nothing is read, nothing of a table is recorded anywhere, and both addresses are named, by
    ``status`` too; each store with its own gateway goes on.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    before = omid.raw(table), omid.commit_table()
    ports = {"thrift": {"port": other.config.thrift_port}, "zookeeper_port": other.config.zookeeper_port}
    for part in ports.items():
        crossed = configure(hbase=dict([part]), state={"table": crossed_state})
        for name in JOBS:
            # A run that only looks has nothing to go wrong by before one has acted through either.
            outcome = job(name, *([] if name in ("balances", *INSPECTIONS) else ["--execute"]), config=crossed)
            assert (omid.raw(table), omid.commit_table()) == before
            assert outcome.code == 2, outcome.problems
            assert "different HBase clusters" in outcome.problems
            assert str(part[1] if isinstance(part[1], int) else part[1]["port"]) in outcome.problems
        said = CliRunner().invoke(app, ["status", "--json", "--config", str(crossed)])
        found = [f for f in json.loads(said.stdout)["findings"] if "different HBase clusters" in f["why"]]
        assert {f["cause"] for f in found} == {"failed"}
        assert said.exit_code == 4
    for port in (stack.config.thrift_port, other.config.thrift_port):
        with connect(Thrift(port=port)) as connection:
            assert StateStore(connection, crossed_state).read(table).facts == ()
    assert job("orphan_cleanup", "--table", table, "--execute").code == 0
    assert not scene.has(table, orphan)


def test_the_sideline_of_another_store_is_refused_by_every_job_that_needs_it(
    job: Job,
    configure: Callable[..., Path],
    scene: Scene,
    omid: OmidClient,
    stack: Stack,
    other: Stack,
    crossed_state: str,
    tmp_path: Path,
) -> None:
    """Of another HBase, and of another state table in the same one: nothing is put there, swept, restored or shown, the
    owner is named; with a folder of its own each goes on, and the owner always did.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    omid.advance_watermark()
    folder = tmp_path / "sideline"
    run = f"one-{table}"  # a run's id is its own in a store that other tests work on too
    acting = ("orphan_cleanup", "--table", table, "--execute", "--run-id", run)
    assert job(*acting).code == 0

    def files() -> dict[str, bytes]:
        # That a run began, and was refused, is entered beside the others.
        there = [file for file in sorted(folder.rglob("*")) if file.is_file() and audit_log.FOLDER not in file.parts]
        return {str(file): file.read_bytes() for file in there}

    def others(**state: str) -> list[Path]:
        elsewhere = {
            "zookeeper_port": other.config.zookeeper_port,
            "thrift": {"port": other.config.thrift_port},
        }
        swept = {"table": crossed_state, "sideline_keep": "1s", **state}
        return [configure(state=swept), configure(hbase=elsewhere, state=swept)]

    before, later, records = files(), omid.raw(table), load(configure()).state.table
    assert any("part-" in name for name in before), "there is something to lose"
    for config in others():
        for name in set(JOBS) - {"balances", "survey"}:
            needs = {"sideline_restore": ["--restore", run], "journal_replay": ["--from", "2020-01-01T00:00:00Z"]}
            acts = [] if name in INSPECTIONS else ["--execute"]
            shown = ["--table", table, "--row", "r"] if name == "why" else []
            refused = job(name, *needs.get(name, []), *acts, *shown, "--run-id", run, config=config)
            assert "belongs to another store" in refused.problems, name
            assert (refused.code, f"with the records {records} in HBase" in refused.problems) == (2, True)
        assert "belongs to another store" in job("orphan_cleanup", "--list", config=config).problems
        assert "belongs to another store" in job("sideline_restore", "--restore", run, config=config).problems
    assert files() == before
    assert omid.raw(table) == later
    for number, _ in enumerate(others()):
        own = tmp_path / f"own{number}"
        config = others(sideline=str(own))[number]
        assert "another store" not in job("watermark_collection", "--execute", config=config).problems
        assert [path.name.split("~")[1] for path in (own / FOLDER).iterdir() if path.name[0] != "."] == [crossed_state]
    back = job("sideline_restore", "--restore", run, "--execute")
    assert (back.code, back.totals["restored"], scene.has(table, orphan)) == (0, 1, True), back.problems
