"""Two oracles on one HBase, each with its own commit table and timestamps: both are Omid's own servers, and each has
clients of its own.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from conftest import Outcome
from lowtide_spark.frames.store import Store
from scene import Scene
from typer.testing import CliRunner

from lowtide.cleaning import renumbered
from lowtide.cleaning.given import MILLIS, SKIPPED
from lowtide.cli.app import app
from lowtide.lab.servers import Process, spawn
from lowtide.lab.stack import Stack, free_ports_config, probes
from lowtide.lab.workload import OmidClient, Shape
from lowtide.lab.workload.runner import make_tables
from lowtide.lab.workload.script import CRASH_POINTS, generate
from lowtide.values.formats import encode_long
from tests import seeds

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]

COMMITS, TIMESTAMPS = "OTHER_COMMITS", "OTHER_TIMESTAMPS"
#: The second installation's own tables.
OWN = {"table": "OTHER_STATE", "journal_table": "OTHER_JOURNAL"}
_MODULE = r"(commitTableStoreModule|timestampStoreModule): (!!\S+) \[ \]"


@dataclass
class Oracle:
    """A second oracle on the store of *stack*; what a client must know of it."""

    stack: Stack
    folder: Path
    port: int
    process: Process | None = field(default=None)

    @property
    def oracle(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def records(self) -> dict[str, str]:
        """Lowtide's, of the store that this oracle is of: nothing of them is the first one's."""
        return {**OWN, "sideline": str(self.folder / "sideline")}

    @property
    def conflict_map_size(self) -> int:
        return self.stack.conflict_map_size

    @property
    def logs(self) -> Path:
        return self.stack.logs

    def java_command(
        self, main_class: str, *args: str, heap: str = "256m", log: str = "client", options: Sequence[str] = ()
    ) -> list[str]:
        return self.stack.java_command(main_class, *args, heap=heap, log=f"second-{log}", options=options)

    def start(self, *more: str) -> None:
        """Start it with the first one's settings, but for its port, its tables and *more*, and wait until it
        answers.
        """
        settings = (self.stack.config.home / "conf" / "omid-server-configuration.yml").read_text()
        tables = {"commitTableStoreModule": COMMITS, "timestampStoreModule": TIMESTAMPS}
        settings = re.sub(_MODULE, lambda m: f"{m[1]}: {m[2]} {{tableName: {tables[m[1]]}}}", settings)
        settings = re.sub(r"^port: \d+", f"port: {self.port}", settings)
        (self.folder / "omid-server-configuration.yml").write_text("\n".join([settings, *more]))
        command = self.java_command("lowtide.store.Oracle", log="tso", options=self.stack.config.java_options)
        place = command.index("-cp") + 1
        command[place] = os.pathsep.join([str(self.folder), command[place]])
        self.process = spawn(command, self.folder / "out", self.folder)
        deadline = time.monotonic() + 60
        while not probes.oracle_answers(self.port):
            assert self.process.alive, (self.folder / "out").read_text()
            assert time.monotonic() < deadline, (self.folder / "out").read_text()
            time.sleep(0.1)

    def begin_at(self, omid: OmidClient, number: int) -> None:
        """Stop it, and let it begin at *number*, as the statement of a refused reset says."""
        self.stop()
        row = (b"MAX_TIMESTAMP_R", b"MAX_TIMESTAMP_CF", b"MAX_TIMESTAMP_Q")
        omid.put(TIMESTAMPS, *row, time.time_ns() // 10**6, encode_long(number))
        self.start()

    def stop(self) -> None:
        """End it; its tables stay."""
        if self.process is not None:
            self.process.end(10)


@pytest.fixture(scope="module")
def second(stack: Stack, omid: OmidClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Oracle]:
    """The second oracle, running; its tables go with the module's."""
    folder = tmp_path_factory.mktemp("second")
    oracle = Oracle(stack, folder, free_ports_config(folder).tso_port)
    omid.create(COMMITS, ("F", "LWF"), omid_enabled=False, versions=1)
    omid.create(TIMESTAMPS, ("MAX_TIMESTAMP_CF",), omid_enabled=False, versions=1)
    try:
        oracle.start()
        yield oracle
    finally:
        oracle.stop()
        for table in (COMMITS, TIMESTAMPS, *OWN.values()):
            omid.drop(table)


def test_another_installation_on_the_same_tables_stops_both(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], tmp_path: Path
) -> None:
    """On one oracle (this stands before what starts the second). What one has pruned the other's journal does not
    prove. Each refuses for the other's tables, until they are named as not this oracle's, or nobody's any more.
    """
    table = scene.table()
    start, commit = scene.crashed_after_commit(table)
    omid.advance_watermark()
    name = f"{table}_before"
    omid.snapshot(table, name)
    state = {**OWN, "sideline": str(tmp_path / "theirs")}
    theirs = configure(state=state, omid={"foreign": []}).rename(tmp_path / "theirs.yaml")
    cleanup = ("orphan_cleanup", "--table", table, "--execute")
    prune = ("commit_table_pruning", "--grace", "0s", "--execute")
    for command in (cleanup, prune):
        outcome = job(*command)
        assert outcome.code == 0, outcome.problems
    assert start not in omid.commit_table()
    omid.restore(name)
    omid.delete_snapshot(name)
    try:
        refused = job(*cleanup, config=theirs)
        assert scene.has(table, start), "the other's journal proves it, and it is deleted"
        assert (refused.code, "LOWTIDE_STATE is the state table of another" in refused.problems) == (2, True)
        assert "LOWTIDE_JOURNAL is the journal of another" in refused.problems
        refused = job(*cleanup)
        assert (refused.code, f"{OWN['table']} is the state table" in refused.problems) == (2, True), refused.problems
        outcome = job(*cleanup, config=configure(omid={"foreign": [OWN["table"]]}).rename(tmp_path / "named.yaml"))
        assert outcome.code == 0, outcome.problems
    finally:
        omid.drop(OWN["table"])
    assert scene.healed(table, start) == commit


@seeds.each("two oracles")
def test_each_oracle_keeps_its_cells(
    job: Job, configure: Callable[..., Path], omid: OmidClient, second: Oracle, tmp_path: Path, seed: int
) -> None:
    """Clients of both leave crashed and aborted transactions behind, under numbers that both have given. No job of
    either goes on before each table is named; then each cleans and prunes its own, touches nothing of the other's, and
    every read point of both shows what it did before."""
    # Point 10 tears a transaction for its readers, and a cleanup makes it whole by its shadow cells in another table.
    points = [point for point in CRASH_POINTS if point != 10]
    mine, theirs = (
        Shape(tables=(f"{name}1", f"{name}2"), rows=20, crashes=0.5, crash_points=points) for name in ("mine", "theirs")
    )
    ours = [name for name in omid.tables() if name not in (COMMITS, TIMESTAMPS)]

    def config(name: str, **sections: dict[str, object]) -> Path:
        return configure(**sections).rename(tmp_path / name)

    with OmidClient(second, commit_table=COMMITS) as other:
        snapshots = {}
        for client, shape in ((omid, mine), (other, theirs)):
            make_tables(client, shape)
            half = generate(shape, f"{seed}.1", 40)
            client.run(half, tmp_path / f"{shape.tables[0]}.jsonl")
            between = client.begin()
            client.run(generate(shape, f"{seed}.2", 40), tmp_path / f"{shape.tables[0]}.jsonl")
            watermark = client.advance_watermark()
            snapshots[client] = {(t, s): client.read(t, s) for t in shape.tables for s in (between, watermark)}
            assert any(snapshots[client].values())

        unnamed = {
            omid: config("mine.yaml"),
            other: config(
                "theirs.yaml",
                omid={"commit_table": COMMITS, "timestamp_table": TIMESTAMPS, "oracle": [second.oracle]},
                state=second.records,
            ),
        }
        before = {table: omid.raw(table) for table in (*mine.tables, *theirs.tables)}
        for file, commits in ((unnamed[omid], COMMITS), (unnamed[other], "OMID_COMMIT_TABLE")):
            outcome = job("orphan_cleanup", "--execute", config=file)
            assert {table: omid.raw(table) for table in before} == before, "judged by the other's commit table"
            assert (outcome.code, commits in outcome.problems) == (2, True)

        said = {
            omid: {"tables": [*ours, "mine*"], "foreign": [COMMITS, "theirs*", *OWN.values()]},
            other: {"tables": ["theirs*"], "foreign": [*ours, "mine*", "LOWTIDE_*"]},
        }
        for client, foreign, commits in ((omid, theirs, COMMITS), (other, mine, "OMID_COMMIT_TABLE")):
            named = configure(omid=said[client]) if client is omid else _theirs(configure, second, said[client])
            kept = {table: omid.raw(table) for table in (*foreign.tables, commits)}
            for command in (("orphan_cleanup",), ("watermark_collection",), ("commit_table_pruning", "--grace", "0s")):
                outcome = job(*command, "--execute", config=named)
                assert outcome.code == 0, outcome.problems
            assert outcome.totals["pruned"] > 0
            assert {table: omid.raw(table) for table in kept} == kept
        for client, expected in snapshots.items():
            assert {place: client.read(*place) for place in expected} == expected


def _theirs(configure: Callable[..., Path], second: Oracle, said: dict[str, list[str]]) -> Path:
    return configure(
        omid={"commit_table": COMMITS, "timestamp_table": TIMESTAMPS, "oracle": [second.oracle], **said},
        state=second.records,
    )


def test_an_oracle_begins_where_the_statement_of_a_refused_reset_says(omid: OmidClient, second: Oracle) -> None:
    """The row that is put while it is stopped is the low watermark that it stores and the number below all that it
    gives from then on.
    """
    number = renumbered.beginning(10**12)
    second.begin_at(omid, number)
    with OmidClient(second, commit_table=COMMITS) as other:
        assert other.begin() > number
        assert other.watermark() == number


@pytest.mark.parametrize("reset", [True, False], ids=["reset", "unaided"])
def test_plain_cells_of_a_counter_that_has_passed_their_times_stay(
    job: Job, scene: Scene, omid: OmidClient, second: Oracle, configure: Callable[..., Path], reset: bool
) -> None:
    """A family that counts as transactional is written plainly, with HBase's milliseconds. Once the oracle begins
    beyond them, as the refused reset says, or got there by itself, they lie at or below the low watermark without a
    proof: they stay, and the run says so; an orphan beside them goes, and so does what a person decides.
    """
    table, plain, small = scene.table(families=("a", "g")), time.time_ns() // 10**6, 4_000_000
    for own in OWN.values():
        omid.drop(own)
    others = [name for name in omid.tables() if name not in (COMMITS, TIMESTAMPS, table)]
    file = _theirs(configure, second, {"tables": [table], "foreign": [*others, "LOWTIDE_*"]})
    cleanup = ("orphan_cleanup", "--table", table, "--execute")
    scene.cell(table, plain, family=b"g")
    second.begin_at(omid, small // 2)
    if reset:
        with OmidClient(second, commit_table=COMMITS) as other:
            other.advance_watermark()
        outcome = job(*cleanup, config=file)
        assert (outcome.code, outcome.totals["candidates"]) == (0, 0), outcome.problems
        scene.cell(table, small, family=b"g", row=b"counts otherwise")
    recorded = outcome.summary["low_watermark"] if reset else small
    second.begin_at(omid, renumbered.beginning(recorded))
    if reset:
        asked = ["state", "reset", "--yes", "--config", str(file)]
        assert CliRunner().invoke(app, asked).exit_code == 0
    with OmidClient(second, commit_table=COMMITS) as other:
        orphan = other.begin()
        scene.cell(table, orphan)
        assert other.advance_watermark() > orphan > plain
    outcome = job(*cleanup, config=file)
    assert scene.has(table, plain, family=b"g"), "other people's data"
    assert scene.has(table, small, family=b"g", row=b"counts otherwise") is reset
    assert not scene.has(table, orphan)
    assert outcome.code == 0, outcome.problems
    assert outcome.totals["skipped"] == {SKIPPED: 2} if reset else {MILLIS: 1}
    [note] = [n for n in outcome.table(table)["notes"] if "lowtide resolve" in n]
    assert f"lowtide resolve {small if reset else plain - plain % 50} --aborted" in note
    asked = ["resolve", str(plain - plain % 50), "--aborted", "--yes", "--config", str(file)]
    said = CliRunner().invoke(app, asked)
    assert said.exit_code == 0, said.output
    assert job(*cleanup, "--full", config=file).code == 0
    assert not scene.has(table, plain, family=b"g")


def test_in_low_latency_mode_a_second_read_at_a_read_point_would_show_more(
    connector: Store, scene: Scene, second: Oracle
) -> None:
    """The oracle has answered and its low watermark has passed the commit, and the client has not yet written its
    entry: a read that is not told of the mode misses what the next one shows. One that is told is refused."""
    second.stop()
    second.start("lowLatency: true")
    table = scene.table()
    own = {"stateTable": scene.table(families=("s",)), "journalTable": f"{table}_pruned"}
    where = {**connector.config.hbase.client_properties(), "table": table, "commitTable": COMMITS, **own}

    def read(**options: str) -> int:
        return connector.spark.read.format("lowtide").options(**where, asOf=str(snapshot), **options).load().count()

    with OmidClient(second, commit_table=COMMITS) as other:
        start = other.begin()
        scene.cell(table, start)
        commit = other.decide(start)
        snapshot = other.advance_watermark()
        assert (commit <= snapshot, start in other.commit_table()) == (True, False)
        assert read() == 0
        other.add_commit_entry(start, commit)
        assert read() == 1
    with pytest.raises(Exception, match="low-latency mode"):
        read(lowLatency="true")
