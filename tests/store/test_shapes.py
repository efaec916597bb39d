"""Tables as clusters have them: in HBase's namespaces, with region replicas, compressed, encoded. The jobs do to them
what they do to any other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from scene import Scene
from typer.testing import CliRunner

from lowtide.cli.app import app
from lowtide.config import load
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient
from lowtide.report.scans import uncleaned_regions
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore

pytestmark = pytest.mark.usefixtures("swept", "no_snapshots")
Job = Callable[..., Outcome]
ROWS = (b"a", b"z")
#: Read points of any age may be given up.
AT_ONCE = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}


@dataclass(frozen=True)
class Shape:
    """What a table has beyond others."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


REPLICAS = Shape("region replicas", {"attributes": {"REGION_REPLICATION": "2"}})
#: With values on both sides of the threshold; shadow cells, of 8 bytes, are above it.
MOB = Shape("MOB", {"settings": {"IS_MOB": "true", "MOB_THRESHOLD": "2"}})
SHAPES = [
    Shape("a namespace", {"namespace": "shop"}),
    REPLICAS,
    Shape("GZ and FAST_DIFF", {"settings": {"COMPRESSION": "GZ", "DATA_BLOCK_ENCODING": "FAST_DIFF"}}),
    Shape("ROW_INDEX_V1", {"settings": {"DATA_BLOCK_ENCODING": "ROW_INDEX_V1"}}),
    MOB,
]


@dataclass
class Story:
    """What happened in a table of two regions: in each a value that was replaced, a commit without its shadow cell, and
    an orphan. Half of the cells are in files, half in memory.
    """

    table: str
    replaced: dict[bytes, int] = field(default_factory=dict)
    crashed: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    orphans: dict[bytes, int] = field(default_factory=dict)


def told(scene: Scene, shape: Shape) -> Story:
    """A new table with its story."""
    story = Story(scene.table(splits=(b"m",), **shape.options))
    for row in ROWS:
        story.replaced[row], _ = scene.committed(story.table, row=row, value=b"old")
        scene.omid.flush(story.table)
        scene.committed(story.table, row=row, value=b"new")
        story.crashed[row] = scene.crashed_after_commit(story.table, row=row, qualifier=b"crashed")
        story.orphans[row] = scene.orphan(story.table, row=row, qualifier=b"orphan")
    return story


def there(scene: Scene, story: Story) -> list[bool]:
    """Whether each orphan is."""
    return [scene.has(story.table, start, row=row, qualifier=b"orphan") for row, start in story.orphans.items()]


@pytest.mark.turns(4)
@pytest.mark.parametrize("read", ["rpc", "snapshot"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_job_does_its_work_on_it(
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    configure: Callable[..., Path],
    tmp_path: Path,
    shape: Shape,
    read: str,
) -> None:
    """Read live or from an HBase snapshot: the survey counts its orphans, the cleanup heals and deletes, a restore
    brings back, the collection publishes a watermark a region, history goes, the verifier is silent, and every read
    point from the mark on shows what it showed.
    """
    story = told(scene, shape)
    table, found = story.table, tmp_path / "found.json"
    config = configure(defaults={**AT_ONCE, "read": read})
    only = ("--table", table)

    def act(name: str, *arguments: str) -> Outcome:
        done = job(name, *only, *arguments, "--execute", config=config)
        assert done.code == 0, done.problems
        return done

    def silent() -> None:
        verified = job("verify", *only, "--json", str(found), config=config)
        assert (verified.code, json.loads(found.read_text())["violations"]) == (0, []), verified.problems

    point = omid.begin()
    shown = omid.read(table, point)
    assert len(shown) == 2 * len(ROWS)
    watermark = omid.advance_watermark()
    surveyed = job("survey", *only, "--json", str(found), config=config)
    assert surveyed.code == 0, surveyed.problems
    (counted,) = json.loads(found.read_text())["tables"]
    assert (counted["table"], counted["regions"]) == (table, len(ROWS))
    assert [counted[what]["value"] for what in ("orphans", "heals")] == [len(ROWS), len(ROWS)]
    silent()

    cleaned = act("orphan_cleanup", "--full")
    assert (cleaned.table(table)["read"], cleaned.table(table)["regions_recorded"]) == (read, len(ROWS))
    assert [cleaned.totals[what] for what in ("deleted", "healed")] == [len(ROWS), len(ROWS)]
    assert not any(there(scene, story))
    for row, (start, commit) in story.crashed.items():
        assert scene.healed(table, start, row=row, qualifier=b"crashed") == commit
    assert act("sideline_restore", "--restore", cleaned.summary["run"]).totals["restored"] == len(ROWS)
    assert all(there(scene, story))
    assert act("orphan_cleanup", "--full").totals["deleted"] == len(ROWS)
    assert not any(there(scene, story))
    assert omid.read(table, point) == shown

    assert job("watermark_collection", "--execute", config=config).code == 0
    assert len(state.watermarks()[table]["regions"]) == len(ROWS)
    removed = act("history_gc")
    assert removed.totals["deleted"] == len(ROWS)
    assert removed.table(table)["mark"]["applied"] > 0
    assert [scene.has(table, start, row=row) for row, start in story.replaced.items()] == [False] * len(ROWS)
    for later in (point, watermark, omid.begin()):
        assert omid.read(table, later) == shown
    silent()
    assert [name for name in omid.snapshots() if "lowtide" in name] == []


def test_commands_take_the_name_of_a_namespace(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """The configuration, ``status`` and ``explain`` name the table as HBase does; a table of the same name in the
    default namespace is another one.
    """
    table = scene.table(namespace="shop")
    alone = table.removeprefix("shop:")
    omid.create(alone, ("a",))
    scene.tables.append(alone)
    starts = {name: scene.orphan(name) for name in (table, alone)}
    omid.advance_watermark()
    config = configure(tables={table: {"mode": "execute"}})
    assert load(config).table(table).mode == "execute"
    cleaned = job("orphan_cleanup", "--table", table, "--table", alone, "--as-configured", config=config)
    assert cleaned.code == 0, cleaned.problems
    assert {name: scene.has(name, start) for name, start in starts.items()} == {table: False, alone: True}
    assert job("watermark_collection", "--execute", config=config).code == 0
    for command in (["status", "--json"], ["explain", table, "--json"]):
        said = CliRunner().invoke(app, [*command, "--config", str(config)])
        assert table in {each["table"] for each in json.loads(said.output)["tables"]}, said.output


def test_a_report_counts_a_region_with_replicas_once(scene: Scene, configure: Callable[..., Path]) -> None:
    """The gateway lists the replicas beside the regions."""
    table = scene.table(splits=(b"m",), **REPLICAS.options)
    with connect(load(configure()).hbase.thrift) as connection:
        assert len(connection.table(table).regions()) == 4
        assert [mark.keys for mark in uncleaned_regions(connection, [table])] == ["[-∞, m)", "[m, ∞)"]


def test_a_cluster_that_hides_zookeeper_is_reached_through_its_servers(
    job: Job, scene: Scene, omid: OmidClient, stack: Stack, configure: Callable[..., Path]
) -> None:
    """With ``RpcConnectionRegistry`` and a server to begin with no job needs ZooKeeper: here none is where the
    configuration says.
    """
    table = scene.table()
    start = scene.orphan(table)
    omid.advance_watermark()
    (region,) = omid.regions(table)
    host, port, _ = region.server.split(",")
    properties = {
        "hbase.client.registry.impl": "org.apache.hadoop.hbase.client.RpcConnectionRegistry",
        "hbase.client.bootstrap.servers": f"{host}:{port}",
        "hbase.rootdir": stack.hbase_properties()["hbase.rootdir"],
    }
    config = configure(
        hbase={
            "zookeeper_port": 1,
            "thrift": {"port": stack.config.thrift_port, "timeout": "20s"},
            "properties": properties,
        },
        defaults={"read": "snapshot", "budget": {"share": 1.0}},
    )
    cleaned = job("orphan_cleanup", "--table", table, "--execute", config=config)
    assert (cleaned.code, cleaned.table(table)["read"]) == (0, "snapshot"), cleaned.problems
    assert not scene.has(table, start)


def test_a_run_names_the_version_of_hbase(job: Job, stack: Stack, scene: Scene, configure: Callable[..., Path]) -> None:
    """In its summary, and so in ``status``; no note where it was tried."""
    scene.table()
    dry = job("orphan_cleanup")
    assert dry.summary["hbase"].startswith("2.")
    assert "Lowtide was tried with" not in " ".join(dry.summary["notes"])
    assert job("watermark_collection", "--execute").code == 0
    said = CliRunner().invoke(app, ["status", "--json", "--config", str(configure())])
    assert json.loads(said.output)["hbase"] == dry.summary["hbase"]
