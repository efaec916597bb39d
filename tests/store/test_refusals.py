"""What is refused: with an error that names the thing, the value and the remedy, and nothing changed."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from conftest import Outcome
from job_kit import own_spark
from lowtide_spark.frames import jars, master
from lowtide_spark.frames.store import Store
from scene import Scene
from typer.testing import CliRunner

from lowtide.cli.app import app
from lowtide.config import Config, load
from lowtide.errors import StoreError
from lowtide.lab.stack import Stack, free_ports_config
from lowtide.lab.workload import OmidClient
from lowtide.run import submit
from lowtide.store.gateway import connect
from lowtide.store.state import StateStore
from lowtide.tables.consent import Pause
from lowtide.values.formats import LOW_WATERMARK_ROW, decode_long, encode_long

Job = Callable[..., Outcome]
ENTRIES = Config().omid.commit_table


@pytest.fixture
def untouched(scene: Scene, omid: OmidClient) -> Callable[[], bool]:
    """A store with leftovers, and a check that they are still what they were."""
    table = scene.table()
    scene.orphan(table)
    scene.crashed_after_commit(table, row=b"healed")
    omid.advance_watermark()
    before = omid.raw(table), omid.commit_table()
    return lambda: (omid.raw(table), omid.commit_table()) == before


def refused(outcome: Outcome, code: int, *words: str) -> None:
    """The run ended with *code* and its problems hold all *words*."""
    assert outcome.code == code, outcome.problems
    for word in words:
        assert word in outcome.problems


def test_an_unknown_table(job: Job, untouched: Callable[[], bool]) -> None:
    """A table that is not there is refused by name."""
    refused(job("orphan_cleanup", "--table", "nosuchtable", "--execute"), 1, "nosuchtable", "unknown table")
    assert untouched()


@pytest.fixture
def altered(omid: OmidClient) -> Iterator[None]:
    """A commit table whose entries may die with a region server."""
    omid.set(ENTRIES, DURABILITY="ASYNC_WAL")
    yield
    omid.set(ENTRIES, DURABILITY="USE_DEFAULT")


@pytest.mark.usefixtures("altered")
@pytest.mark.parametrize("name", ["orphan_cleanup", "watermark_collection", "commit_table_pruning"])
def test_a_commit_table_that_may_lose_what_clients_were_told(
    job: Job, untouched: Callable[[], bool], name: str
) -> None:
    """Where an entry died with its server, what committed looks as an orphan does: no job goes by it."""
    way = "alter 'OMID_COMMIT_TABLE', DURABILITY => 'SYNC_WAL'"
    refused(job(name, "--execute"), 1, "OMID_COMMIT_TABLE has DURABILITY => ASYNC_WAL", way)
    assert untouched()


def test_a_table_that_is_protected_under_a_wrong_name(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path]
) -> None:
    """Nothing is deleted, published or pruned where the defaults act and a table's own settings, which would keep runs
    from it, stand under a name that HBase does not have; under the right name it is left alone.
    """
    table = scene.table()
    orphan = scene.orphan(table)
    omid.advance_watermark()
    before = omid.raw(table), omid.commit_table()
    eager = {"mode": "execute", "history_mode": "execute", "budget": {"share": 1.0}}

    def protected(name: str, **own: str) -> Path:
        return configure(defaults=eager, tables={name: own})

    dry, marked = protected(f"{table}x", mode="dry-run"), protected(f"{table}x", kind="transactional")
    for name, config in (("orphan_cleanup", dry), ("commit_table_pruning", dry), ("watermark_collection", marked)):
        outcome = job(name, "--as-configured", config=config)
        assert (omid.raw(table), omid.commit_table()) == before
        refused(outcome, 2, f"tables.{table}x.", f"({table} may be meant)", "HBase has no such table")
    assert job("orphan_cleanup", "--as-configured", config=protected(table, mode="dry-run")).code == 0
    assert omid.raw(table) == before[0]
    assert job("orphan_cleanup", "--as-configured", config=configure(defaults=eager)).code == 0
    assert not scene.has(table, orphan)


def test_a_table_without_marks(job: Job, scene: Scene, omid: OmidClient) -> None:
    """A plain table is refused, with the setting that would make it transactional; discovered, it is passed over."""
    table = scene.table(omid_enabled=False)
    scene.cell(table, omid.begin())
    refused(job("orphan_cleanup", "--table", table, "--execute"), 1, table, "kind: transactional")
    assert job("orphan_cleanup", "--table", table, "--discovered", "--execute").code == 0
    assert len(omid.raw(table)) == 1


def test_a_run_that_acts_on_nothing_of_what_it_was_to_act_on_has_failed_and_stays_so(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore
) -> None:
    """A night's task of one table that is disabled, say, is no dry run. What it left undone stays known, though other
    tables are cleaned after it and runs pass this one by, until it is cleaned itself.
    """
    gone, well = scene.table(), scene.table()
    omid.advance_watermark()
    assert job("orphan_cleanup", "--table", gone, "--execute").code == 0

    def failing() -> list[str]:
        return [t["table"] for run in state.outcomes().failing for t in run["tables"] if t["table"] in (gone, well)]

    omid.disable(gone)
    try:
        outcome = job("orphan_cleanup", "--table", gone, "--execute")
        assert (outcome.code, outcome.summary["execute"]) == (1, True), outcome.problems
        assert f"table {gone} is disabled" in outcome.problems
        assert failing() == [gone]
        assert job("orphan_cleanup", "--table", well, "--execute").code == 0
        assert failing() == [gone]
    finally:
        omid.enable(gone)
    pause = Pause("here", gone, "ann", "month end", datetime.now(UTC), datetime.now(UTC) + timedelta(hours=1))
    state.add_pause(pause, datetime.now(UTC))
    try:
        outcome = job("orphan_cleanup", "--table", gone, "--table", well, "--discovered", "--execute")
        assert (outcome.code, outcome.table(gone)["left_alone"]) == (0, True), outcome.problems
        assert failing() == [gone]
    finally:
        state.drop_pause(pause.id)
    assert job("orphan_cleanup", "--table", gone, "--full", "--execute").code == 0
    assert failing() == []


@pytest.mark.parametrize("value", [None, b"\x00\x01"], ids=["missing", "malformed"])
def test_no_low_watermark(
    job: Job, stack: Stack, untouched: Callable[[], bool], connector: Store, value: bytes | None
) -> None:
    """Without a readable low watermark nothing runs."""
    with connect(connector.config.hbase.thrift) as connection:
        table = connection.table("OMID_COMMIT_TABLE")
        kept = table.row(LOW_WATERMARK_ROW)[b"LWF:LWC"]
        assert decode_long(kept) > 0
        try:
            table.delete(LOW_WATERMARK_ROW)
            if value:
                table.put(LOW_WATERMARK_ROW, {b"LWF:LWC": value})
            refused(job("orphan_cleanup", "--execute"), 1, "low watermark", "OMID_COMMIT_TABLE")
            refused(job("commit_table_pruning", "--grace", "0s", "--execute"), 1, "low watermark")
        finally:
            table.put(LOW_WATERMARK_ROW, {b"LWF:LWC": encode_long(decode_long(kept))})
    assert untouched()


def test_a_table_that_hbase_does_not_list(job: Job, untouched: Callable[[], bool], connector: Store) -> None:
    """HBase lists to a user only the tables on which he has rights; one that only hbase:meta has stops every job that
    acts on the bound.
    """
    with connect(connector.config.hbase.thrift) as connection:
        meta = connection.table("hbase:meta")
        state = meta.row(b"OMID_COMMIT_TABLE")[b"table:state"]
        try:
            meta.put(b"kept_secret", {b"table:state": state})
            for name in ("orphan_cleanup", "watermark_collection", "commit_table_pruning"):
                refused(job(name, "--execute"), 1, "kept_secret", "Give this user ADMIN", "'A', 'kept_secret'")
        finally:
            meta.delete(b"kept_secret")
    assert untouched()
    assert job("orphan_cleanup").code == 0


def test_zookeeper_or_oracle_down(
    job: Job, configure: Callable[..., Path], untouched: Callable[[], bool], tmp_path: Path
) -> None:
    """A ZooKeeper or an oracle that does not answer is named with its address."""
    nowhere = free_ports_config(tmp_path).thrift_port
    no_hbase = configure(hbase={"zookeeper_port": nowhere})
    refused(job("orphan_cleanup", "--execute", config=no_hbase), 1, f"127.0.0.1:{nowhere}", "ZooKeeper")
    no_oracle = configure(omid={"oracle": [f"127.0.0.1:{nowhere}"]})
    refused(job("orphan_cleanup", "--execute", config=no_oracle), 1, f"127.0.0.1:{nowhere}", "oracle")
    assert untouched()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--from", "2026-01-01T00:00:00"], ["--from", "2026-01-01T00:00:00", "time zone"]),
        (["--to", "yesterday"], ["--to", "yesterday"]),
        (["--to", (datetime.now(UTC) + timedelta(days=2)).isoformat()], ["--to", "future"]),
        (["--from", "2026-01-02T00:00:00Z", "--to", "2026-01-01T00:00:00Z"], ["not after its start"]),
    ],
)
def test_bad_intervals(job: Job, untouched: Callable[[], bool], arguments: list[str], words: list[str]) -> None:
    """Naive and unparsable times, intervals in the future and back to front end with exit code 2."""
    refused(job("orphan_cleanup", "--execute", *arguments), 2, *words)
    assert untouched()


def test_unknown_configuration_keys(job: Job, configure: Callable[..., Path], untouched: Callable[[], bool]) -> None:
    """An unknown key is named with its place, and nothing runs."""
    path = configure()
    content = yaml.safe_load(path.read_text())
    content["omid"]["comit_table"] = "X"
    path.write_text(yaml.safe_dump(content))
    refused(job("orphan_cleanup", "--execute", config=path), 2, "omid.comit_table", "unknown key")
    assert untouched()


def test_unknown_arguments_end_with_2(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    """An argument that no job has is named."""
    with pytest.raises(SystemExit) as ended:
        job("orphan_cleanup", "--exekute")
    assert ended.value.code == 2
    assert "--exekute" in capsys.readouterr().err


@pytest.mark.usefixtures("no_snapshots")
def test_a_snapshot_that_cannot_be_made(
    job: Job,
    configure: Callable[..., Path],
    untouched: Callable[[], bool],
    monkeypatch: pytest.MonkeyPatch,
    scene: Scene,
) -> None:
    """Where HBase refuses the HBase snapshot (its name is taken by one of another table), the table is named with the
    remedy and left alone.
    """
    table, other = scene.tables[0], scene.table()
    number = uuid.UUID(int=1)
    taken = f"lowtide-run-{table}-{number.hex[:12]}"
    scene.omid.snapshot(other, taken)
    monkeypatch.setattr(master.uuid, "uuid4", lambda: number)
    try:
        snapshot = configure(defaults={"read": "snapshot"})
        refused(job("orphan_cleanup", "--table", table, "--execute", config=snapshot), 1, table, "read: rpc")
        assert scene.omid.snapshots() == [taken]
    finally:
        scene.omid.delete_snapshot(taken)
    assert untouched()


def apart(path: Path) -> Path:
    """A configuration that jobs without one do not write over."""
    return path.rename(path.with_name("apart.yaml"))


#: Every job that decides by the inventory, as it would act.
DECIDING = (
    ("orphan_cleanup", "--execute"),
    ("watermark_collection", "--execute"),
    ("commit_table_pruning", "--grace", "0s", "--execute"),
    ("history_gc", "--execute"),
)


def test_plain_said_of_a_table_that_bears_omids_mark(
    job: Job, configure: Callable[..., Path], untouched: Callable[[], bool], scene: Scene
) -> None:
    """The configuration calls a table plain, its descriptor says that transactions write it: no job goes on, a survey
    says so and goes on, and
    ``lowtide explain`` tells it."""
    table = scene.tables[0]
    plain = configure(tables={table: {"kind": "plain"}})
    told = (f"tables.{table}.kind", "plain", "OMID_ENABLED")
    for command in DECIDING:
        refused(job(*command, config=plain), 2, *told)
    refused(job("survey", config=plain), 1, *told)
    explained = CliRunner().invoke(app, ["explain", "--config", str(plain), "--json"])
    assert (explained.exit_code, told[0] in explained.stdout) == (4, True)
    assert untouched()


def test_plain_said_of_a_table_that_was_transactional(
    job: Job, configure: Callable[..., Path], scene: Scene, omid: OmidClient
) -> None:
    """A table without a mark was listed as transactional before: to call it plain is refused until a collection has
    looked at it without that word. It has shadow cells, so that the word is needed then, and taken."""
    table = scene.table(omid_enabled=False)
    scene.committed(table)
    scene.crashed_after_commit(table, row=b"proved by its entry")
    transactional = configure(tables={table: {"kind": "transactional"}})
    assert job("watermark_collection", "--execute", config=transactional).code == 0
    before = omid.commit_table()
    plain = apart(configure(tables={table: {"kind": "plain"}}))
    for command in DECIDING:
        refused(job(*command, config=plain), 2, f"tables.{table}.kind", "recorded as transactional")
    assert omid.commit_table() == before
    collected = job("watermark_collection", "--execute")
    assert (collected.code, collected.summary["bound"]) == (0, 0)
    assert job("watermark_collection", "--execute", config=plain).code == 0


@pytest.fixture
def theirs(scene: Scene, omid: OmidClient) -> dict[str, str]:
    """Tables of another oracle: its commit table, and one whose cell that commit table proves, below our low
    watermark.
    """
    commits, data = scene.table(("F", "LWF"), omid_enabled=False), scene.table()
    start, commit = omid.begin(), omid.begin()
    scene.cell(data, start)
    omid.put(commits, bytes([start & 15]) + encode_long(start), b"F", b"C", start, bytes([commit - start]))
    omid.advance_watermark()
    return {"commits": commits, "data": data}


def test_tables_of_another_oracle(
    job: Job, configure: Callable[..., Path], untouched: Callable[[], bool], theirs: dict[str, str], omid: OmidClient
) -> None:
    """Another commit table stops every job: the tables beside it may be its oracle's, and ours proves nothing of
    them.
    """
    before = omid.raw(theirs["data"])
    outcomes = [job(*command) for command in DECIDING]
    assert omid.raw(theirs["data"]) == before
    for outcome in outcomes:
        refused(outcome, 2, "OMID_COMMIT_TABLE", theirs["commits"], "omid.foreign")
    refused(job("survey"), 1, theirs["commits"])
    assert untouched()


def test_tables_of_another_oracle_that_the_configuration_names(
    job: Job, configure: Callable[..., Path], scene: Scene, theirs: dict[str, str], omid: OmidClient
) -> None:
    """When each table is said to be ours or the other oracle's, jobs go on: the others' are not touched, prove nothing
    and hold nothing back. One that is left out, and one that is said to be both, stop them."""
    ours = [name for name in omid.tables() if name not in theirs.values()]
    table = scene.table()
    orphan = scene.orphan(table)
    scene.shadow(theirs["data"], orphan, orphan + 50)  # says nothing of ours: the same number, given by another
    scene.committed(table, row=b"kept")
    omid.advance_watermark()
    before = omid.raw(theirs["data"])

    def said(tables: list[str], foreign: list[str]) -> Path:
        return apart(configure(omid={"tables": tables, "foreign": foreign}))

    for tables, foreign, missing in (
        ([*ours, table], [theirs["commits"]], theirs["data"]),
        (ours, list(theirs.values()), table),
        ([*ours, "scene*"], list(theirs.values()), theirs["data"]),
    ):
        outcome = job("orphan_cleanup", "--execute", config=said(tables, foreign))
        assert omid.raw(theirs["data"]) == before, "judged by our commit table"
        refused(outcome, 2, missing, "omid.foreign", "omid.tables")
    good = said([*ours, table], list(theirs.values()))
    outcome = job("orphan_cleanup", "--execute", config=good)
    assert outcome.code == 0, outcome.problems
    assert not scene.has(table, orphan)
    assert omid.raw(theirs["data"]) == before
    assert job("watermark_collection", "--execute", config=good).summary["bound"] > orphan
    refused(job("orphan_cleanup", "--table", theirs["data"], "--execute", config=good), 1, theirs["data"])
    refused(job("orphan_cleanup", "--execute"), 2, theirs["commits"])
    omid.drop(theirs["commits"])
    refused(job("orphan_cleanup", "--execute", config=good), 2, theirs["data"], "omid.foreign")


def test_regions_with_a_hole_are_refused(connector: Store, monkeypatch: pytest.MonkeyPatch, scene: Scene) -> None:
    """A region that is not listed would leave rows unread: the table is not worked on."""
    table = scene.table(splits=(b"g", b"s"))
    assert len(connector.regions(table)) == 3
    listed = Store._listed
    monkeypatch.setattr(Store, "_listed", lambda *a: [r for r in listed(*a) if r.start != "67"])
    with pytest.raises(StoreError, match="end to end"):
        connector.regions(table)


def test_a_connector_of_another_version(
    job: Job, untouched: Callable[[], bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A jar that agreed on something else than this Python: nothing is read, and both numbers are named."""
    number = jars.CONTRACT
    monkeypatch.setattr(jars, "CONTRACT", number + 1)
    outcome = job("orphan_cleanup", "--execute")
    assert untouched()
    refused(outcome, 2, f"has contract {number}", f"goes with contract {number + 1}", "lowtide path connector")


@pytest.mark.turns(2, group="executors of their own")
def test_executors_without_the_connector(
    untouched: Callable[[], bool], configure: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Real ones, in processes of their own, whose class path leads past the connector, as an archive with a folder more
    in it does: the job ends before it reads, with one sentence and the exit code of bad configuration.
    """
    own_spark(monkeypatch, tmp_path)
    conf = {"spark.executor.extraClassPath": "connector/lowtide-connector.jar:connector/lib/*"}
    file = configure(spark={"master": "local-cluster[1,1,1024]", "driver_memory": "512m", "conf": conf})
    summary = tmp_path / "summary.json"
    program = submit.command(load(file), "orphan_cleanup", ["--config", str(file), "--full", "--summary", str(summary)])
    ended = subprocess.run(program, env=submit.environment(), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    (problem,) = json.loads(summary.read_text())["problems"]
    assert "executors lack the connector (ClassNotFoundException: lowtide.connector." in problem
    assert "lowtide-connector.jar and lib at its root" in problem
    assert untouched()
