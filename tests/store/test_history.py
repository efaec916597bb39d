"""History GC on the real store: what it removes, what it leaves, holds, restores, and every interruption."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import deadman
import pytest
import wreck
from conftest import Outcome
from deadman import Die, Effect, Moment
from lowtide_spark.frames.store import Store
from scene import Scene
from typer.testing import CliRunner

from lowtide.cleaning.facts import VOID
from lowtide.cli.app import app
from lowtide.config import Config, load
from lowtide.errors import HistoryError, TableError, UsageError
from lowtide.history.holding import RENEWED_FOR, hold, release, renew, take
from lowtide.history.mark import Hold, at_most
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient, Result, Shape, run
from lowtide.store.state import StateStore
from lowtide.tables import settings
from lowtide.values.formats import shadow_qualifier
from tests import seeds
from tests.prove import PROVE
from tests.spark.histories import leaving, random_history
from tests.spark.omid_reader import EndlessError, Key, is_shadow, read

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]

#: History may go as soon as it is history: the mark is then the low watermark of the last sample, or a hold.
YOUNG = {"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}}
Cells = dict[tuple[bytes, bytes, bytes, int], bytes]


@pytest.fixture
def eager(configure: Callable[..., Path]) -> Path:
    """A configuration that keeps no history by age, in a file of its own."""
    path = configure(defaults=YOUNG)
    return path.rename(path.with_name("eager.yaml"))


@pytest.fixture
def config(eager: Path) -> Config:
    """The same, loaded."""
    return load(eager)


@pytest.fixture
def gc(job: Job, eager: Path) -> Callable[..., Outcome]:
    """Run history_gc for a table, acting unless told otherwise."""

    def start(*tables: str, execute: bool = True, extra: tuple[str, ...] = (), config: Path = eager) -> Outcome:
        named = [part for table in tables for part in ("--table", table)]
        return job("history_gc", *named, *(["--execute"] if execute else []), *extra, config=config)

    return start


@pytest.fixture(autouse=True)
def no_holds(state: StateStore) -> Iterator[None]:
    """A test leaves no holds behind."""
    yield
    for held in state.holds():
        state.drop_hold(held)


def cleaned(job: Job, omid: OmidClient, *tables: str) -> int:
    """Everything so far is history: cleaned, below the low watermark, and the time is known to be past it."""
    watermark = omid.advance_watermark()
    for table in tables or [None]:
        named = ["--table", table] if table else []
        outcome = job("orphan_cleanup", *named, "--full", "--execute")
        assert outcome.code == 0, outcome.problems
    assert job("watermark_collection", "--execute").code == 0
    return watermark


def shown(omid: OmidClient, table: str) -> Cells:
    """What HBase shows of a table: puts, without those that delete markers hide."""
    found: Cells = {}
    one: set[tuple[bytes, bytes, bytes, int]] = set()
    up_to: dict[tuple[bytes, bytes, bytes], int] = {}
    for cell in omid.raw(table):
        if cell.kind == "delete":
            one.add(cell.key)
        elif cell.kind == "delete_column":
            up_to[cell.key[:3]] = max(cell.timestamp, up_to.get(cell.key[:3], -1))
        elif cell.kind == "put":
            found[cell.key] = cell.value
        else:
            raise AssertionError(cell)
    return {k: v for k, v in found.items() if k not in one and k[3] > up_to.get(k[:3], -1)}


def rows(cells: Cells) -> dict[bytes, dict[Key, bytes]]:
    """By row, as the model of the reader takes them."""
    found: dict[bytes, dict[Key, bytes]] = {}
    for (row, *key), value in cells.items():
        found.setdefault(row, {})[Key(*key)] = value
    return found


def expected(cells: Cells, mark: int) -> set[tuple[bytes, bytes, bytes, int]]:
    """The keys that must go, by the model."""
    return {(row, *key) for row, of_row in rows(cells).items() for key in leaving(of_row, mark, 50)}


# -- what it does not touch


@pytest.mark.parametrize(
    "own", [{"history_mode": "dry-run"}, {"history_max_age": "forever"}, {"min_history_age": "7d"}]
)
def test_history_that_is_kept_under_a_wrong_name_stays(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], own: dict[str, str]
) -> None:
    """A table's own settings that would keep its history, under a name that HBase does not have, stop the run before
    anything goes; under the right name they keep it.
    """
    table = scene.table()
    _versions(scene, table)
    cleaned(job, omid, table)
    before = omid.raw(table)
    own = own if "min_history_age" not in own else {**own, "history_max_age": "7d"}
    eager = {**YOUNG, "history_mode": "execute"}
    for name, code in ((f"{table}x", 2), (table, 0)):
        outcome = job("history_gc", "--as-configured", config=configure(defaults=eager, tables={name: own}))
        assert omid.raw(table) == before
        assert outcome.code == code, outcome.problems
    outcome = job("history_gc", "--as-configured", config=configure(defaults=eager))
    assert outcome.table(table)["counts"]["deleted"] > 0


def test_a_family_that_does_not_keep_all_versions_is_left_alone(
    job: Job, gc: Callable[..., Outcome], scene: Scene, omid: OmidClient
) -> None:
    """With VERSIONS => 1 HBase hides what lies below a deletion from history GC too, and would show it again when the
    deletion went: such a table is named, with what mends it, and holds the bound that no history may pass; when that is
    done, both are worked on."""
    few, all_of_them = scene.table(("f", "g"), versions=1), scene.table(("f", "g"))
    for table in (few, all_of_them):
        for value in (b"deleted", b""):  # Omid's deletion is a put of nothing
            scene.committed(table, family=b"f", value=value)
            omid.flush(table)
    snapshot = cleaned(job, omid)
    assert omid.read(few, snapshot) == {}
    before = omid.raw(few)
    outcome = gc(few, all_of_them)
    assert omid.read(few, snapshot) == omid.read(all_of_them, snapshot) == {}, "a deleted value is shown again"
    assert outcome.code == 1
    for family in ("f", "g"):
        assert f"alter '{few}', {{NAME => '{family}', VERSIONS => 2147483647}}" in outcome.problems
    assert omid.raw(few) == before
    assert outcome.table(all_of_them)["problems"] == []
    assert few in str(outcome.table(all_of_them)["notes"])
    omid.set(few, families={"VERSIONS": "2147483647"})
    snapshot = cleaned(job, omid)
    outcome = gc(few, all_of_them)
    assert outcome.code == 0, outcome.problems
    assert omid.read(few, snapshot) == omid.read(all_of_them, snapshot) == {}
    assert min(outcome.table(table)["counts"]["deleted"] for table in (few, all_of_them)) > 0


def alter_without_reopening(connector: Store, table: str, setting: str, value: str) -> None:
    """Give all of a table's families a setting that no region's server reads before it opens the region again."""
    hadoop: Any = connector.spark._jvm.org.apache.hadoop.hbase  # type: ignore[union-attr]
    client = hadoop.HBaseConfiguration.create()
    for name, text in connector.config.hbase.client_properties().items():
        client.set(name, text)
    connection = hadoop.client.ConnectionFactory.createConnection(client)
    try:
        before = connection.getAdmin().getDescriptor(hadoop.TableName.valueOf(table))
        after = hadoop.client.TableDescriptorBuilder.newBuilder(before)
        for family in before.getColumnFamilies():
            described = hadoop.client.ColumnFamilyDescriptorBuilder.newBuilder(family).setValue(setting, value)
            after = after.modifyColumnFamily(described.build())
        connection.getAdmin().modifyTable(after.build(), False)
    finally:
        connection.close()


def test_settings_that_servers_do_not_go_by_yet_leave_a_table_alone(
    job: Job,
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    connector: Store,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An alter to all versions that opens no region again: HBase's master tells the new setting, servers go on to hide
    what lies below a deletion, and would show it when the deletion went. The table is left alone by name until each of
    its regions was opened, others are worked on meanwhile; and so is one whose alter opened its regions itself.
    """
    monkeypatch.setattr(settings, "_MARGIN", 0)  # the tables are younger than that
    few, other = scene.table(("f",), versions=1, splits=(b"s",)), scene.table(("f",))
    for table in (few, other):
        for value in (b"deleted", b""):
            scene.committed(table, family=b"f", value=value)
            omid.flush(table)
    assert job("watermark_collection", "--execute").code == 0
    alter_without_reopening(connector, few, "VERSIONS", str(2**31 - 1))
    omid.set(other, DURABILITY="FSYNC_WAL")
    snapshot = cleaned(job, omid)
    before = omid.raw(few)
    outcome = gc(few, other)
    assert omid.read(few, snapshot) == omid.read(other, snapshot) == {}, "a deleted value is shown again"
    assert outcome.code == 1
    assert "(VERSIONS of family f 1 -> 2147483647), and 2 of its 2 regions, such as " in outcome.problems
    assert outcome.table(other)["problems"] == []
    named = job("orphan_cleanup", "--table", few, "--table", other, "--execute")
    assert (named.code, named.table(other)["problems"]) == (1, [])
    assert f"table {few} is left alone, and keeps the prune bound back" in named.problems
    collected = job("watermark_collection", "--execute")
    assert [b["table"] for b in collected.summary["blockers"] if "were not opened since" in b["reason"]] == [few]
    assert omid.raw(few) == before
    omid.move(few, b"a")
    assert "and 1 of its 2 regions, such as " in gc(few).problems
    omid.move(few, b"z")
    snapshot = cleaned(job, omid)
    outcome = gc(few, other)
    assert outcome.code == 0, outcome.problems
    assert omid.read(few, snapshot) == omid.read(other, snapshot) == {}
    assert min(outcome.table(table)["counts"]["deleted"] for table in (few, other)) > 0


# -- exactness, on real workloads and on random cells


@seeds.each("history of a workload", always=[1])
def test_every_read_point_from_the_mark_on_reads_as_before(
    job: Job, gc: Callable[..., Outcome], stack: Stack, omid: OmidClient, config: Config, tmp_path: Path, seed: int
) -> None:
    """After a workload of crashing and conflict-free clients exactly what the model names goes, a dry run counts the
    same, a second run writes nothing, and every read point from the mark on shows the same through the real client;
    restores bring all of it back.
    """
    shape = Shape(tables=("orders",), rows=12, conflict_free=0.2, deletes=0.15, family_deletes=0.06, row_deletes=0.05)
    tables = list(shape.tables)
    try:
        result: Result = run(
            stack,
            seed=seed,
            transactions=400,
            out=tmp_path / "history",
            shape=shape,
            omid=omid,
            slices=2,
            kills=1,
            halts=1,
        )
        cleaned(job, omid)
        middle = result.boundaries[0]
        held = [take(config, t, middle, owner="test", reason="the middle", lasting=timedelta(hours=1)) for t in tables]
        first = _collect(gc, omid, result, tables, at_most(middle))
        for one in held:
            release(config, one.table, one.id)
        second = _collect(gc, omid, result, tables, None)
        totals = second["outcome"].totals
        assert totals["markers"] < totals["deleted"]

        # The first run's cells alone would be seen again where the second removed what hid them: refused, by name.
        refused = job("sideline_restore", "--restore", first["outcome"].summary["run"])
        assert refused.code == 1
        assert "restore the runs after this one first" in refused.problems
        for one in (second, first):
            for removed in (one["next"], one["outcome"]):
                if removed.totals["deleted"]:
                    restored = job("sideline_restore", "--restore", removed.summary["run"], "--execute")
                    assert restored.code == 0, restored.problems
            assert {t: shown(omid, t) for t in tables} == one["before"]
        _check(omid, result, tables, result.model.read_timestamps(20, seed))
        again = job("sideline_restore", "--restore", first["outcome"].summary["run"], "--execute")
        assert (again.code, again.totals["restored"]) == (1, 0)
        assert "restored before" in again.problems
    finally:
        for table in tables:
            omid.drop(table)


def _collect(
    gc: Callable[..., Outcome], omid: OmidClient, result: Result, tables: list[str], mark: int | None
) -> dict[str, Any]:
    before = {t: shown(omid, t) for t in tables}
    raw = {t: omid.raw(t) for t in tables}
    dry = gc(*tables, execute=False)
    assert dry.code == 0, dry.problems
    assert {t: omid.raw(t) for t in tables} == raw
    outcome = gc(*tables)
    assert outcome.code == 0, outcome.problems
    names = ("deleted", "markers", "bytes_removed", "candidates", "skipped")
    assert [dry.totals[n] for n in names] == [outcome.totals[n] for n in names]
    assert outcome.totals["deleted"] > 100
    marks = {t: outcome.table(t)["mark"]["applied"] for t in tables}
    assert mark is None or set(marks.values()) == {mark}
    for table in tables:
        assert set(before[table]) - set(shown(omid, table)) == expected(before[table], marks[table])
        assert sum(r["versions"] for r in outcome.table(table)["by_region"]) > 0
    later = [t for t in result.model.read_timestamps(400) if t >= max(marks.values())]
    # Under a hold half of the history lies after the mark; without one the mark is behind all of it.
    assert len(later) >= (50 if mark else 0)
    _check(omid, result, tables, [*marks.values(), *later[:: max(1, len(later) // 25)], omid.begin()])
    # The next run takes the family tombstones that hide nothing any more, a third one nothing.
    rest = {t: shown(omid, t) for t in tables}
    following = gc(*tables)
    assert following.code == 0, following.problems
    for table in tables:
        gone = set(rest[table]) - set(shown(omid, table))
        assert gone == expected(rest[table], marks[table])
        assert {rest[table][key] for key in gone if not is_shadow(key[2])} <= {b""}
    _check(omid, result, tables, [*marks.values(), omid.begin()])
    raw = {t: omid.raw(t) for t in tables}
    again = gc(*tables)
    assert (again.code, again.totals["deleted"], again.totals["bytes_written"]) == (0, 0, 0)
    assert {t: omid.raw(t) for t in tables} == raw
    return {"outcome": outcome, "before": before, "next": following}


def _check(omid: OmidClient, result: Result, tables: list[str], timestamps: list[int]) -> None:
    for timestamp in timestamps:
        for table in tables:
            assert omid.read(table, timestamp) == result.model.shown_at(table, timestamp), (table, timestamp)


@seeds.each("random history", always=[11])
def test_twenty_random_histories_on_the_real_store(
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    config: Config,
    recorded: Callable[..., int],
    seed: int,
) -> None:
    """Histories such as the rules are tried on, orphans and lone shadow cells among them: exactly what the model names
    goes, and the real client, minor and major compactions of HBase between, shows what the model of the reader shows.
    """
    number, beats = 20, 40
    mark = at_most(50 * number * 24 + 49)
    while omid.begin() <= 50 * number * (beats + 60):
        pass
    table = scene.table(("f", "g"), splits=(b"row10",))
    # Cleaned, and listed, while it is empty: what lies there afterwards is as clients left it, and no orphan cleanup
    # has touched it.
    recorded(table)
    put = _random_rows(seed, number, beats, mark)
    for row, cells in put.items():
        for key, value in cells.items():
            omid.put(table, row, *key[:2], key.timestamp, value)
    take(config, table, mark, owner="test", reason="the mark", lasting=timedelta(hours=1))
    before = shown(omid, table)
    outcome = gc(table)
    assert (outcome.code, outcome.table(table)["mark"]["applied"]) == (0, mark), outcome.problems
    assert set(before) - set(shown(omid, table)) == expected(before, mark)
    commits = sorted(
        {int.from_bytes(v, "big") + 1 for cells in put.values() for k, v in cells.items() if is_shadow(k.qualifier)}
    )
    snapshots = [mark, *[c for c in commits if c > mark][::3], omid.begin()]
    # Other tests' transactions began at the same numbers; what the commit table says of them the client believes.
    entries = {e.start: None if e.invalid else e.commit for e in omid.commit_table().values()}
    for compaction in (None, False, True):
        if compaction is not None:
            omid.flush(table)
            omid.compact(table, major=compaction)
        for snapshot in snapshots if compaction is None else snapshots[::8]:
            seen = {
                (row, *place): v for row, cells in put.items() for place, v in read(cells, snapshot, entries).items()
            }
            assert omid.read(table, snapshot) == seen, snapshot
    assert set(before) - set(shown(omid, table)) == expected(before, mark)


def _random_rows(seed: int, number: int, beats: int, mark: int) -> dict[bytes, dict[Key, bytes]]:
    """Rows of random histories that the real client can read from the mark on: where it would search for ever, it is no
    witness.
    """
    source = random.Random(seed)
    found: dict[bytes, dict[Key, bytes]] = {}
    while len(found) < number:
        place = len(found)
        shift = source.randrange(0, 12)
        whole = random_history(source, lambda beat, p=place, s=shift: 50 * (number * (beat + s) + p), beats).cells
        # Those below are drawn by chance: in two rows they could be of one transaction, which the model of a row knows
        # nothing of.
        cells = {k: v for k, v in whole.items() if k.timestamp >= 50 * number}
        # Between two of these timestamps every read point shows the same; other rows' commits lie anywhere.
        stamps = {int.from_bytes(v, "big") + 1 for k, v in cells.items() if is_shadow(k.qualifier)}
        stamps |= {stamp for k in cells for stamp in (k.timestamp, k.timestamp + 1)}
        try:
            for snapshot in {mark, 10**9, *(s for s in stamps if s > mark)}:
                read(cells, snapshot)
        except EndlessError:
            continue
        found[b"row%02d" % place] = cells
    return found


# -- the mark


def _versions(scene: Scene, table: str, count: int = 3, row: bytes = b"r") -> list[tuple[int, int]]:
    return [scene.committed(table, row=row, value=b"v%d" % n) for n in range(count)]


def test_the_mark_never_goes_back(
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    configure: Callable[..., Path],
    recorded: Callable[..., int],
) -> None:
    """Nor when the age is raised, nor in a backfill of a day before it, nor for a table that is dropped and made
    again.
    """
    table = scene.table()
    _versions(scene, table)
    first = recorded(table)
    between = datetime.now(UTC)
    _versions(scene, table, row=b"s")
    recorded(table)
    applied = gc(table).table(table)["mark"]["applied"]
    assert state.history(table).applied == applied > first
    behind = gc(table, extra=("--to", between.isoformat()))
    assert behind.table(table)["mark"]["mark"] == at_most(first) > 0
    assert (behind.code, behind.totals["deleted"], state.history(table).applied) == (0, 0, applied)
    raised = gc(table, config=configure(defaults={**YOUNG, "history_max_age": "1000d"}))
    assert (raised.code, raised.totals["deleted"], state.history(table).applied) == (0, 0, applied)
    assert "applied before and stays" in str(raised.table(table)["notes"])
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    assert gc(table, extra=("--to", past)).code == 0
    assert gc(table, config=configure(defaults={**YOUNG, "history_max_age": "forever"})).code == 0
    omid.drop(table)
    omid.create(table, ("a",))
    fresh = gc(table)
    assert (fresh.code, fresh.totals["deleted"], state.history(table).applied) == (0, 0, applied)
    assert VOID in str(fresh.summary["blockers"])
    _versions(scene, table)
    recorded(table)
    assert gc(table).table(table)["mark"]["applied"] > applied


def test_a_backfill_removes_what_was_replaced_by_the_end_of_its_interval(
    gc: Callable[..., Outcome], scene: Scene, omid: OmidClient, recorded: Callable[..., int]
) -> None:
    """Its mark is the one of then; what was replaced later goes with a later run. A day that is not over yet has no
    mark.
    """
    table = scene.table()
    early = _versions(scene, table)
    then = recorded(table)
    between, snapshot = datetime.now(UTC), omid.begin()
    _versions(scene, table)
    recorded(table)
    backfill = gc(table, extra=("--to", between.isoformat()))
    assert backfill.code == 0, backfill.problems
    assert early[-1][1] < backfill.table(table)["mark"]["applied"] <= then < snapshot
    assert backfill.totals["deleted"] == 2
    assert omid.read(table, snapshot) == {(b"r", b"a", b"q"): b"v2"}
    tomorrow = gc(table, extra=("--to", (datetime.now(UTC) + timedelta(days=1)).isoformat()))
    assert tomorrow.code == 2
    assert gc(table).totals["deleted"] == 3


def test_what_is_not_cleaned_holds_the_mark(
    gc: Callable[..., Outcome], scene: Scene, recorded: Callable[..., int]
) -> None:
    """A region of any transactional table that was never cleaned keeps the mark of every table at nothing, and is
    named.
    """
    table = scene.table()
    _versions(scene, table)
    recorded(table)
    other = scene.table()
    scene.committed(other)
    outcome = gc(table)
    assert (outcome.code, outcome.totals["deleted"]) == (0, 0)
    assert any(other in b["reason"] and "never cleaned" in b["reason"] for b in outcome.summary["blockers"])


def test_what_is_undecided_and_what_is_unknown_stays(
    gc: Callable[..., Outcome], scene: Scene, omid: OmidClient, recorded: Callable[..., int]
) -> None:
    """An orphan that landed late stays, also between versions that go; a region with an unknown form is not touched,
    the others are.
    """
    table = scene.table(splits=(b"m",))
    zombie = omid.begin()
    old = _versions(scene, table, row=b"a")
    beyond = _versions(scene, table, row=b"z")
    recorded(table)
    between = old[1][0] + 1
    scene.cell(table, zombie, row=b"a")
    scene.cell(table, between, row=b"a", qualifier=b"other")
    omid.put(table, b"z", b"a", shadow_qualifier(b"odd"), beyond[0][0], b"three")
    outcome = gc(table)
    assert outcome.code == 1
    assert "shadow cell of 5 bytes" in outcome.problems
    kept = {k[3] for k in shown(omid, table) if k[0] == b"a" and k[2] == b"q"}
    # Of the transaction with an undecided cell nothing goes.
    assert kept == {zombie, old[1][0], old[2][0]}
    assert {k[3] for k in shown(omid, table) if k[0] == b"z" and k[2] == b"q"} == {s for s, _ in beyond}
    assert outcome.totals["skipped"]["undecided"] == 2


def test_a_plan_out_of_proportion_moves_no_mark(
    gc: Callable[..., Outcome], scene: Scene, omid: OmidClient, state: StateStore, recorded: Callable[..., int]
) -> None:
    """Over budget nothing is deleted and nothing refused to readers: the mark stays where it was."""
    table = scene.table()
    _versions(scene, table, 10)
    recorded(table)
    before = omid.raw(table)
    outcome = gc(table, extra=("--budget-rows", "5"))
    assert outcome.code == 1
    assert "budget" in outcome.problems
    assert omid.raw(table) == before
    assert (state.history(table).applied, state.history(table).intended) == (0, 0)


def test_only_compactions_that_pay_are_asked_for(
    gc: Callable[..., Outcome], scene: Scene, omid: OmidClient, recorded: Callable[..., int]
) -> None:
    """With --compact the region whose history went is compacted, so that its cells are gone for good; one that loses
    little is not.
    """
    table = scene.table(splits=(b"m",))
    _versions(scene, table, 10, row=b"a")
    for n in range(10):
        scene.committed(table, row=b"z%d" % n)
    _versions(scene, table, 2, row=b"z")
    omid.flush(table)
    recorded(table)
    dry = gc(table, execute=False, extra=("--compact",))
    assert dry.code == 0, dry.problems
    assert "1 of 2 regions" in str(dry.table(table)["notes"])
    outcome = gc(table, extra=("--compact",))
    assert outcome.code == 0, outcome.problems
    done = {r["versions"]: r for r in outcome.table(table)["by_region"]}
    assert "bytes_after" in done[9]
    assert done[9]["compaction"][0]["share"] > 0.8
    assert "bytes_after" not in done[1]
    kinds = {(c.row, c.kind) for c in omid.raw(table)}
    assert (b"a", "delete_column") not in kinds
    assert (b"z", "delete") in kinds
    assert len([c for c in omid.raw(table) if c.row == b"a"]) == 2


def test_what_earlier_runs_removed_is_compacted_by_family(
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    configure: Callable[..., Path],
    recorded: Callable[..., int],
) -> None:
    """A run that removes nothing compacts the family from which earlier runs removed much, and leaves its neighbour as
    it is.
    """
    table = scene.table(families=("a", "b"))
    for n in range(10):
        scene.committed(table, family=b"b", value=b"v%d" % n)
    for n in range(100):
        scene.committed(table, row=b"r%d" % n)
    scene.committed(table, row=b"r0")
    omid.flush(table)
    recorded(table)
    assert gc(table).totals["deleted"] == 10
    ((region, before),) = state.uncompacted(table).items()
    assert set(before.removed) == {"a", "b"}
    assert state.all_uncompacted()[table] == sum(before.removed.values())

    dry = gc(table, execute=False, extra=("--compact",))
    assert "1 of 1 regions" in str(dry.table(table)["notes"])
    second = gc(table, extra=("--compact",))
    assert second.code == 0, second.problems
    assert second.totals["deleted"] == 0
    (told,) = second.table(table)["by_region"]
    assert {c["family"]: c["pays"] for c in told["compaction"]} == {"a": False, "b": True}
    assert "bytes_after" in told
    assert {(c.family, c.kind) for c in omid.raw(table) if c.kind != "put"} == {(b"a", "delete")}
    assert state.uncompacted(table)[region].removed == {"a": before.removed["a"]}

    always = configure(defaults={**YOUNG, "compaction": {"always": True}})
    third = gc(table, config=always)
    assert "none is compacted" in str(third.table(table)["notes"])
    assert "compacted" not in str(gc(table).table(table)["notes"])
    omid.compact(table, major=True)
    assert gc(table, extra=("--compact",)).table(table)["by_region"] == []


def test_a_region_that_splits_while_history_goes(
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    monkeypatch: pytest.MonkeyPatch,
    recorded: Callable[..., int],
) -> None:
    """What was planned goes all the same, from the daughters; what cannot be compacted under its old name is left to
    HBase.
    """
    table = scene.table()
    for row in (b"a", b"r", b"z"):
        _versions(scene, table, 10, row=row)
    omid.flush(table)
    recorded(table)
    before, snapshot = shown(omid, table), omid.begin()
    seen, write, split = omid.read(table, snapshot), Store.write, []

    def splitting(self: Store, *arguments: Any, **named: Any) -> Any:
        if not split:
            split.append(omid.split(table, b"r"))
        return write(self, *arguments, **named)

    monkeypatch.setattr(Store, "write", splitting)
    outcome = gc(table, extra=("--compact",))
    monkeypatch.undo()
    assert outcome.code == 0, outcome.problems
    assert set(before) - set(shown(omid, table)) == expected(before, outcome.table(table)["mark"]["applied"])
    assert outcome.totals["deleted"] == 27
    assert "and 0 of them were compacted" in str(outcome.table(table)["notes"])
    assert omid.read(table, snapshot) == seen
    assert (gc(table).totals["deleted"], len(omid.regions(table))) == (0, 2)


# -- holds


def test_a_hold_that_comes_first_is_honoured(
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    recorded: Callable[..., int],
) -> None:
    """A hold written after the run has planned, but before the run has published its mark, lowers the mark and keeps
    its history.
    """
    table = scene.table()
    versions = _versions(scene, table, 6)
    recorded(table)
    snapshot = versions[2][1] + 1
    before, intend = omid.read(table, snapshot), StateStore.intend

    def held_meanwhile(*arguments: Any) -> Any:
        take(config, table, snapshot, owner="test", reason="in between", lasting=timedelta(hours=1))
        return intend(*arguments)

    monkeypatch.setattr(StateStore, "intend", held_meanwhile)
    outcome = gc(table)
    monkeypatch.undo()
    assert outcome.code == 0, outcome.problems
    assert outcome.table(table)["mark"]["applied"] == at_most(snapshot)
    assert "came while the run went on" in str(outcome.table(table)["notes"])
    assert omid.read(table, snapshot) == before
    # The first version was replaced before the mark; the second only when the third, which the read point shows, was
    # committed.
    assert outcome.totals["deleted"] == 1


def test_a_hold_that_comes_second_is_refused(
    gc: Callable[..., Outcome],
    scene: Scene,
    config: Config,
    state: StateStore,
    monkeypatch: pytest.MonkeyPatch,
    recorded: Callable[..., int],
) -> None:
    """A hold written after the run has read the holds finds the published mark, is refused, and leaves nothing
    behind.
    """
    table = scene.table()
    versions = _versions(scene, table, 4)
    recorded(table)
    refused: list[str] = []
    apply_mark = StateStore.apply_mark

    def held_too_late(*arguments: Any) -> Any:
        for snapshot in (versions[1][1] + 1, 50):
            with pytest.raises(HistoryError) as error:
                take(config, table, snapshot, owner="test", reason="too late", lasting=timedelta(hours=1))
            refused.append(str(error.value))
        return apply_mark(*arguments)

    monkeypatch.setattr(StateStore, "apply_mark", held_too_late)
    outcome = gc(table)
    monkeypatch.undo()
    assert (outcome.code, len(refused), state.holds(table)) == (0, 2, [])
    assert all("about to remove" in text and table in text for text in refused)
    mark = state.history(table).applied
    with pytest.raises(HistoryError, match=f"before its ancient history mark {mark}.*raise history_max_age"):
        take(config, table, versions[1][1], owner="test", reason="much too late", lasting=timedelta(hours=1))
    assert take(config, table, mark, owner="test", reason="just right", lasting=timedelta(hours=1))


def test_a_run_that_was_overtaken_applies_nothing(
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    monkeypatch: pytest.MonkeyPatch,
    recorded: Callable[..., int],
) -> None:
    """When another run claims the mark in between, the first one says so and deletes nothing."""
    table = scene.table()
    _versions(scene, table)
    recorded(table)
    before, holds = omid.raw(table), StateStore.holds

    def overtaken(self: StateStore, *arguments: Any) -> Any:
        StateStore.intend(self, table, 99, "another")
        return holds(self, *arguments)

    once = iter([False, True])
    monkeypatch.setattr(
        StateStore, "holds", lambda self, *a: overtaken(self, *a) if next(once, False) else holds(self, *a)
    )
    outcome = gc(table)
    assert (omid.raw(table), state.history(table).applied) == (before, 0)
    assert outcome.code == 1
    assert "another run of history_gc has taken over" in outcome.problems


def test_the_life_of_a_hold(scene: Scene, omid: OmidClient, config: Config, state: StateStore) -> None:
    """It is renewed up to its hard maximum, ends with its block or its reader, and needs an owner, a reason and a
    table.
    """
    table = scene.table()
    state.create()
    with hold(config, table, reason="a block") as held:
        assert state.holds(table) == [held]
        assert held.timestamp == omid.watermark()
        assert held.expires - held.taken == RENEWED_FOR
    assert state.holds(table) == []
    long = take(config, table, held.timestamp, owner="me", reason="long", lasting=timedelta(minutes=1))
    longer = renew(config, long, timedelta(days=700))
    assert longer.expires == long.taken + timedelta(days=7)
    with pytest.raises(HistoryError, match="no longer there"):
        renew(config, long, timedelta(minutes=5))  # the record is the longer one by now
    assert release(config, table, long.id) == longer
    with pytest.raises(HistoryError, match="no hold"):
        release(config, table, long.id)
    with pytest.raises(UsageError, match="owner"):
        take(config, table, held.timestamp, owner="", reason="x", lasting=timedelta(minutes=1))
    with pytest.raises(UsageError, match="hold_max_age"):
        take(config, table, held.timestamp, owner="me", reason="x", lasting=timedelta(days=8))
    with pytest.raises(TableError, match="nosuch"):
        take(config, "nosuch", held.timestamp, owner="me", reason="x", lasting=timedelta(minutes=1))
    assert state.holds() == []


def test_holds_on_the_command_line(scene: Scene, omid: OmidClient, eager: Path, state: StateStore) -> None:
    """`hold add` tells the id, `hold list` shows who and why, `hold release` lets go; a bad time is refused by name."""
    table = scene.table()
    low = omid.advance_watermark()
    invoke = CliRunner().invoke
    file = ["--config", str(eager)]
    added = invoke(
        app, ["hold", "add", table, "--reason", "audit", "--owner", "ann", "--at", str(low), "--for", "2h", *file]
    )
    assert added.exit_code == 0, added.output
    [held] = state.holds(table)
    assert (held.owner, held.reason, held.timestamp) == ("ann", "audit", low)
    assert held.id in added.output
    listed = invoke(app, ["hold", "list", *file], env={"COLUMNS": "200"}).output
    assert all(word in listed for word in (table, "ann", "audit", str(low)))
    assert invoke(app, ["hold", "release", table, held.id, *file], input="n\n").exit_code == 1
    assert state.holds(table) == [held]
    assert invoke(app, ["hold", "release", table, held.id, "--yes", *file]).exit_code == 0
    assert state.holds(table) == []
    with pytest.raises(UsageError, match="no time zone"):
        invoke(
            app, ["hold", "add", table, "--reason", "x", "--at", "2026-01-01T00:00:00", *file], catch_exceptions=False
        )


def test_a_dead_reader_holds_nothing_after_its_expiry(
    gc: Callable[..., Outcome], scene: Scene, state: StateStore, recorded: Callable[..., int]
) -> None:
    """An expired hold keeps nothing back, and the run that finds it clears it away."""
    table = scene.table()
    _versions(scene, table)
    recorded(table)
    now = datetime.now(UTC)
    dead = Hold("dead", table, 100, "gone", "crashed", now - timedelta(hours=2), now - timedelta(hours=1))
    state.add_hold(dead)
    outcome = gc(table)
    assert (outcome.code, outcome.totals["deleted"], state.holds(table)) == (0, 2, [])


# -- interruptions


def replaced(scene: Scene) -> str:
    """A table of two regions, in each: versions, a family tombstone over them, one over nothing (which goes in a write
    of its own), and what came after them.
    """
    table = scene.table(splits=(b"m",))
    for row in (b"a", b"z"):
        _versions(scene, table, row=row)
        for each in (row, row + b"bare"):
            scene.committed(table, row=each, qualifier=b"", value=b"")
            scene.committed(table, row=each, qualifier=b"again")
    return table


def places(omid: OmidClient, table: str) -> list[tuple[bytes, bytes]]:
    """What HBase shows of a table, timestamps aside."""
    return sorted((row, qualifier) for row, _, qualifier, _ in shown(omid, table))


@pytest.mark.turns(2, group="killed at any effect")
@seeds.each("history_gc killed at any effect")
def test_killed_at_any_effect_and_run_again(
    gc: Callable[..., Outcome],
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    config: Config,
    tmp_path: Path,
    seed: int,
) -> None:
    """Whatever a dead run left, the next one under its id ends in the same cells, and readers never see a difference.

    At its death nothing was gone that is not in the sideline, and as long as it may have removed something it was known
    to remove.
    """
    chance = random.Random(seed)
    earlier, reference = replaced(scene), replaced(scene)
    cleaned(job, omid)
    assert gc(earlier).code == 0  # what others left undone is forgotten by then
    whole = deadman.run(lambda: gc(reference))
    assert whole.result is not None
    assert whole.result.code == 0, whole.result.problems
    assert gc(reference).code == 0
    left = places(omid, reference)
    number = {step: [e.number for e in whole.named(step)] for step in set(whole.steps())}
    (applied,), (begun,), (ended,) = (number[f"history.{s}"] for s in ("apply_mark", "begin_removal", "end_removal"))
    assert len(number["removal._step"]) == 2, "the versions, the family tombstones"
    ordered = [applied, begun, number["sideline.put_aside"][0], number["removal._step"][0]]
    always = [whole.effects[at - 1] for at in ordered]
    chosen = deadman.cuts(whole.effects, chance, every=PROVE, always=always)
    tables = [replaced(scene) for _ in chosen]
    watermark = cleaned(job, omid)
    snapshot = omid.begin()
    for cut, table in zip(chosen, tables, strict=True):
        before, visible = shown(omid, table), omid.read(table, snapshot)
        again = ("--run-id", f"cut-{table}")
        dead = deadman.run(lambda t=table, a=again: gc(t, extra=a), cut)
        told = f"{cut}: {dead.effects[-1]}"
        assert dead.killed, told
        assert omid.read(table, snapshot) == visible, told
        gone = {key for key in set(before) - set(shown(omid, table)) if not is_shadow(key[2])}
        assert gone <= wreck.aside(tmp_path / "sideline", again[1], table), told
        history = state.history(table)
        assert bool(history.intent.get("removing")) == (begun < cut.number <= ended), told
        assert (history.applied > 0) == (cut.number > applied), told
        if number["history.intend"][0] < cut.number <= applied:
            with pytest.raises(HistoryError, match="about to remove"):
                take(config, table, at_most(watermark) - 50, owner="test", reason="late", lasting=timedelta(hours=1))
        finished = gc(table, extra=again)
        assert finished.code == 0, (told, finished.problems)
        assert gc(table).code == 0
        assert places(omid, table) == left, told
        assert omid.read(table, snapshot) == visible, told
        assert state.history(table).intent.get("removing", {}) == {}, told


@pytest.mark.turns(2, group="restores at length")
def test_a_dead_run_that_removed_keeps_restores_waiting(
    gc: Callable[..., Outcome], job: Job, scene: Scene, omid: OmidClient, eager: Path
) -> None:
    """A write of it may be under way: for a day nothing is put back, unless the run is started again under its id, and
    ends.
    """
    table = replaced(scene)
    cleaned(job, omid)
    before = shown(omid, table)
    dead = deadman.run(lambda: gc(table, extra=("--run-id", "dead")), _at("removal._step", Moment.PART))
    assert dead.killed
    assert dead.applied is not None
    assert 0 < dead.applied[0] < dead.applied[1]
    other = gc(table)
    assert other.code == 0, other.problems
    refused = job("sideline_restore", "--restore", other.summary["run"], "--execute", config=eager)
    assert refused.code == 1
    assert f"run dead removes history of {table}" in refused.problems
    assert gc(table, extra=("--run-id", "dead")).code == 0
    # Each of the two runs may have removed the family tombstone over what the other removed: what is refused is asked
    # again.
    for name in (other.summary["run"], "dead", other.summary["run"]):
        back = job("sideline_restore", "--restore", name, "--execute", config=eager)
        assert back.code in (0, 1), back.problems
    assert shown(omid, table) == before


@pytest.mark.turns(2)
@pytest.mark.parametrize("step", ["file_list.write", "removal._step"])
def test_a_run_that_is_overtaken_between_its_steps_goes_no_further(
    gc: Callable[..., Outcome], job: Job, scene: Scene, omid: OmidClient, state: StateStore, step: str
) -> None:
    """Before each of its writes it looks whether the mark is still its own: another's claim, after the one or the
    other, ends it red.
    """
    table = replaced(scene)
    cleaned(job, omid)
    before, visible = shown(omid, table), omid.read(table, omid.begin())
    at_that: list[set[Any]] = []

    def overtake(effect: Effect, moment: Moment) -> None:
        last = effect.name == "rename" or effect.step == "removal._step"
        if effect.step == step and last and moment is Moment.AFTER and not at_that:
            state.intend(table, 99, "another")
            at_that.append(set(shown(omid, table)))

    outcome = deadman.run(lambda: gc(table), overtake).result
    assert outcome is not None
    assert [set(shown(omid, table))] == at_that
    assert outcome.code == 1
    assert "another run of history_gc has taken over" in outcome.problems
    assert (at_that[0] == set(before)) == (step == "file_list.write")
    assert omid.read(table, omid.begin()) == visible
    assert gc(table).code == 0


def _at(step: str, moment: Moment) -> deadman.Watch:
    """Die at the first effect of a step."""

    def watch(effect: Effect, _: Moment) -> Die | None:
        return (Die(0.5) if moment is Moment.PART else Die()) if effect.step == step else None

    return watch


@pytest.mark.turns(2, group="killed at any effect")
@seeds.each("sideline_restore killed at any effect")
def test_a_restore_killed_at_any_effect_and_run_again(
    gc: Callable[..., Outcome],
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    config: Config,
    eager: Path,
    seed: int,
) -> None:
    """The next restore brings all back, and readers never see what was deleted. The dead one's hold keeps history GC
    away until then.
    """
    chance = random.Random(seed)
    table = replaced(scene)
    cleaned(job, omid)
    before, snapshot = shown(omid, table), omid.begin()
    visible = omid.read(table, snapshot)

    def restored(run: str) -> Outcome:
        return job("sideline_restore", "--restore", run, "--execute", config=eager)

    def removed() -> str:
        outcome = gc(table)
        assert (outcome.code, len(shown(omid, table)) < len(before)) == (0, True), outcome.problems
        return str(outcome.summary["run"])

    assert restored(removed()).code == 0  # what others left undone is forgotten by then
    first = removed()
    whole = deadman.run(lambda: restored(first))
    assert whole.result is not None
    assert (whole.result.code, shown(omid, table)) == (0, before), whole.result.problems
    assert len(whole.named("putting_back._put")) >= 2, "what hides, then what is hidden"
    held, freed = (whole.named(f"history.{step}")[0] for step in ("add_hold", "drop_hold"))
    chosen = deadman.cuts(whole.effects, chance, every=PROVE, always=[freed])
    for cut in chosen:
        name = removed()
        dead = deadman.run(lambda n=name: restored(n), cut)
        told = f"{cut}: {dead.effects[-1]}"
        assert dead.killed, told
        assert omid.read(table, snapshot) == visible, told
        assert bool(state.holds(table)) == (held.number < cut.number <= freed.number), told
        if cut.number == freed.number:
            assert gc(table).totals["deleted"] == 0, "a dead restore's hold is a hold"
        again = restored(name)
        assert again.code == 0 or "restored before" in again.problems, (told, again.problems)
        assert (shown(omid, table), omid.read(table, snapshot)) == (before, visible), told
        assert state.holds(table) == [], told


def test_failed_deletes_leave_family_tombstones_alone(
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    monkeypatch: pytest.MonkeyPatch,
    recorded: Callable[..., int],
) -> None:
    """Where a version under a family tombstone could not be deleted, the family tombstone stays, and the run is red."""
    table = scene.table(splits=(b"m",))
    for row in (b"a", b"z"):
        scene.committed(table, row=row)
        scene.committed(table, row=row, qualifier=b"", value=b"")
    recorded(table)
    write = Store.write

    def half(self: Store, mutations: Any, name: str, **named: Any) -> Any:
        written = write(self, mutations.where("row != X'61'"), name, **named)
        failed = mutations.where("row = X'61'").select("region", "op").collect()
        lost = [type(written[0])(r.region, r.op, 0, 0, 1, 0, "refused by the test") for r in failed]
        return [*written, *lost]

    monkeypatch.setattr(Store, "write", half)
    outcome = gc(table)
    monkeypatch.undo()
    assert outcome.code == 1
    assert "refused by the test" in outcome.problems
    assert {(k[0], k[2]) for k in shown(omid, table) if not is_shadow(k[2])} == {(b"a", b"q"), (b"a", b""), (b"z", b"")}
    assert outcome.totals["deleted"] == 1
    assert omid.read(table, omid.begin()) == {}
    for _ in range(2):
        assert gc(table).code == 0
    assert shown(omid, table) == {}


@pytest.mark.parametrize("compacts", [False, True])
def test_a_no_between_the_steps_of_a_removal_leaves_what_went_before_it_on_the_books(
    gc: Callable[..., Outcome],
    job: Job,
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    monkeypatch: pytest.MonkeyPatch,
    compacts: bool,
) -> None:
    """The versions are gone, the family tombstones are not, when the owner says no: the run is red, counts what it
    removed, and remembers it for the compaction to come; the next run adds the rest.
    """
    table = replaced(scene)
    cleaned(job, omid)
    before, planned = shown(omid, table), gc(table, execute=False).totals["deleted"]
    write = Store.write

    def and_then_no(self: Store, mutations: Any, name: str, **named: Any) -> Any:
        written = write(self, mutations, name, **named)
        if name == table:
            omid.set(table, LOWTIDE="off")
        return written

    monkeypatch.setattr(Store, "write", and_then_no)
    outcome = gc(table, extra=("--compact",) if compacts else ())
    monkeypatch.undo()
    assert (outcome.code, "says no itself" in outcome.problems) == (1, True), outcome.summary
    gone = {key for key in before.keys() - shown(omid, table).keys() if not is_shadow(key[2])}
    assert 0 < len(gone) < planned
    assert outcome.totals["deleted"] == len(gone)
    assert outcome.totals["markers"] > 0
    assert state.all_uncompacted()[table] == outcome.totals["bytes_removed"] > 0
    assert sum(region["versions"] for region in outcome.table(table)["by_region"]) == len(gone)
    omid.set(table, LOWTIDE="on")
    rest = gc(table)
    assert rest.code == 0, rest.problems
    assert rest.totals["deleted"] > 0
    assert state.all_uncompacted()[table] == outcome.totals["bytes_removed"] + rest.totals["bytes_removed"]


# -- restores


def test_a_restore_does_not_set_off_omids_compactor(
    job: Job, gc: Callable[..., Outcome], scene: Scene, omid: OmidClient, recorded: Callable[..., int]
) -> None:
    """It would lose the row whose family was deleted and written again: refused by name, in a dry run too, and nothing
    has changed.
    """
    table = scene.table()
    _versions(scene, table)
    recorded(table)
    run_id = gc(table).summary["run"]
    omid.attach_omid_compactor(table)
    before = omid.raw(table)
    for execute in ((), ("--execute",)):
        refused = job("sideline_restore", "--restore", run_id, *execute)
        assert refused.code == 1
        assert "Omid's own compactor is on it" in refused.problems
    assert omid.raw(table) == before
    omid.detach_omid_compactor(table)
    assert job("sideline_restore", "--restore", run_id, "--execute").totals["restored"] == 2


def test_a_restore_into_a_table_that_hbase_does_not_compact_is_refused_at_once(
    job: Job, gc: Callable[..., Outcome], scene: Scene, omid: OmidClient, recorded: Callable[..., int]
) -> None:
    """What comes back would stay behind the delete markers, and the compaction that is asked for never begins: the
    setting is named with the statement that mends it, and nothing has changed.
    """
    table = scene.table()
    _versions(scene, table)
    recorded(table)
    run_id = gc(table).summary["run"]
    omid.set(table, COMPACTION_ENABLED="false")
    before = omid.raw(table)
    refused = job("sideline_restore", "--restore", run_id, "--execute")
    assert refused.code == 1
    assert f"alter '{table}', COMPACTION_ENABLED => 'true'" in refused.problems
    assert omid.raw(table) == before
    omid.set(table, COMPACTION_ENABLED="true")
    assert job("sideline_restore", "--restore", run_id, "--execute").totals["restored"] == 2


def test_nothing_is_put_back_while_history_goes(
    job: Job,
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    config: Config,
    eager: Path,
    monkeypatch: pytest.MonkeyPatch,
    recorded: Callable[..., int],
) -> None:
    """A run that removes what hides a cell, while a restore brings the cell back, would leave it shown for good: the
    restore is refused.
    """
    table = scene.table()
    versions = _versions(scene, table)
    scene.committed(table, value=b"")
    recorded(table)
    held = take(config, table, versions[2][1] + 1, owner="test", reason="the third", lasting=timedelta(hours=1))
    first = gc(table)
    assert first.totals["deleted"] == 1
    release(config, table, held.id)
    write, refused = Store.write, []

    def beside(self: Store, *arguments: Any, **named: Any) -> Any:
        if not refused:
            refused.append(None)  # the restore does not write, so this is not asked again
            refused[0] = job("sideline_restore", "--restore", first.summary["run"], "--execute", config=eager)
        return write(self, *arguments, **named)

    monkeypatch.setattr(Store, "write", beside)
    second = gc(table)
    monkeypatch.undo()
    assert refused[0].code == 1
    assert f"run {second.summary['run']} removes history of {table}" in refused[0].problems
    assert second.code == 0, second.problems
    after = job("sideline_restore", "--restore", first.summary["run"], "--execute")
    assert "restore the runs after this one first" in after.problems
    assert omid.read(table, omid.begin()) == {}


def test_a_restore_shows_nothing_whose_tombstone_goes_while_it_is_at_work(
    job: Job,
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    recorded: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A write of a run that was taken for dead removes tombstones after they were seen: what they hid is not put, and
    the restore is red; run again it puts back what it has the tombstone of.
    """
    table = scene.table(("a", "b"))
    for row in (b"column", b"family", b"whole"):
        scene.committed(table, row=row)
        scene.committed(table, row=row, value=b"", qualifier=b"" if row == b"family" else b"q")
    recorded(table)
    before, snapshot = shown(omid, table), omid.begin()
    removed = gc(table)
    assert (removed.code, {k[0] for k in shown(omid, table)}) == (0, {b"family"})
    write = Store.write

    def beside(self: Store, mutations: Any, name: str, **named: Any) -> Any:
        """Before the puts that are hidden come back, some of what hides them goes, as history GC removes it."""
        if name == table and mutations.where("op like 'put_committed%' and length(value) > 0").count():
            gone = [k for k in shown(omid, table) if k[0] != b"whole"]
            for key in gone:
                omid.delete_version(table, *key)
        return write(self, mutations, name, **named)

    monkeypatch.setattr(Store, "write", beside)
    restored = job("sideline_restore", "--restore", removed.summary["run"], "--execute")
    monkeypatch.undo()
    assert omid.read(table, snapshot) == {}, "a deleted value is shown again"
    assert restored.code == 1
    assert (
        "2 cells are not put back: what hides them from readers went while the restore was at work" in restored.problems
    )
    assert {k[0] for k in shown(omid, table)} == {b"whole"}
    again = job("sideline_restore", "--restore", removed.summary["run"], "--execute")
    assert {k for k in before if k[0] != b"family"} == set(shown(omid, table))
    assert "1 cells are not put back: they would be visible again" in again.problems
    assert omid.read(table, snapshot) == {}


@pytest.mark.turns(2, group="restores at length")
def test_a_restore_tells_what_readers_see_again(
    job: Job,
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    recorded: Callable[..., int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What hides a cell may go right after the cell has come back, by a late write of the run that had removed it: the
    restore looks at its end, and is red. That run restored, nothing is seen any more.
    """
    table = scene.table()
    for value in (b"first", b"second"):
        scene.committed(table, value=value)
    recorded(table)
    before = gc(table)
    scene.committed(table, value=b"")
    recorded(table)
    after = gc(table)
    assert (before.totals["deleted"], after.totals["deleted"], shown(omid, table)) == (1, 2, {})

    def restored(removed: Outcome) -> Outcome:
        return job("sideline_restore", "--restore", removed.summary["run"], "--execute")

    assert restored(after).code == 0
    hiding, write = shown(omid, table), Store.write

    def late(self: Store, mutations: Any, name: str, **named: Any) -> Any:
        written = write(self, mutations, name, **named)
        for key in hiding:
            omid.delete_version(table, *key)
        return written

    monkeypatch.setattr(Store, "write", late)
    outcome = restored(before)
    monkeypatch.undo()
    assert omid.read(table, omid.begin()) == {(b"r", b"a", b"q"): b"first"}, "there is nothing to tell"
    assert outcome.code == 1
    assert "1 of the cells that came back are visible again" in outcome.problems
    again = restored(after)
    assert (again.code, omid.read(table, omid.begin())) == (0, {}), again.problems
    assert {k[3] for k in shown(omid, table)} > {k[3] for k in hiding}


def test_a_restore_hides_nothing_that_came_back(
    job: Job,
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    recorded: Callable[..., int],
    snapshot: Callable[..., str],
) -> None:
    """A table that was restored from an HBase snapshot shows a value that was deleted since. The tombstone, which
    history GC removed, stays aside, and the restore says why; a plan says so too.
    """
    table = scene.table()
    scene.committed(table)
    before = snapshot(table)
    scene.committed(table, value=b"")
    recorded(table)
    removed = gc(table)
    assert (removed.totals["deleted"], shown(omid, table)) == (2, {})
    omid.restore(before)
    seen = omid.read(table, omid.begin())
    assert list(seen.values()) == [b"v"]
    for act in ((), ("--execute",)):
        outcome = job("sideline_restore", "--restore", removed.summary["run"], *act)
        assert "1 cells are not put back: their tombstone would hide what the table shows" in outcome.problems
        assert (outcome.code, outcome.totals["restored"]) == (1, 0)
    assert omid.read(table, omid.begin()) == seen, "what came back is hidden"


@pytest.mark.turns(2)
@pytest.mark.parametrize("before", ["nothing", "as it was"])
def test_what_was_deleted_is_not_shown_again_because_it_had_been_taken_for_aborted(
    job: Job, gc: Callable[..., Outcome], scene: Scene, omid: OmidClient, before: str
) -> None:
    """A cleanup removed it, then history GC the tombstone over it, which hid nothing any more: it comes back after the
    tombstone, whether the cleanup's orphans were put back before or not. What was never deleted comes back to be read.
    """
    table = scene.table()
    start, rows = omid.begin(), (b"column", b"family", b"seen")
    for row in rows:
        scene.cell(table, start, row=row)
    commit, between = omid.begin(), omid.begin()
    scene.committed(table, row=b"column", value=b"")
    scene.committed(table, row=b"family", qualifier=b"", value=b"")
    omid.advance_watermark()
    cleanup = job("orphan_cleanup", "--table", table, "--full", "--execute")
    assert cleanup.totals["deleted"] == len(rows), cleanup.problems
    assert job("watermark_collection", "--execute").code == 0
    removed = gc(table)
    assert (removed.code, shown(omid, table)) == (0, {}), removed.problems
    back = ("sideline_restore", "--restore", cleanup.summary["run"], "--execute")
    if before == "as it was":
        assert job(*back).totals["restored"] == 1
    seen, snapshot = {(b"seen", b"a", b"q"): b"v"}, omid.begin()
    restored = job(*back, "--as-committed", f"{start}={commit}")
    assert omid.read(table, snapshot) == seen, "a deleted value is shown again"
    assert restored.code == 1
    command = f"--restore {removed.summary['run']} --table {table} --execute"
    assert command.replace("--restore", "lowtide restore") in restored.problems
    tombstones = job("sideline_restore", *command.split())
    assert (tombstones.code, tombstones.totals["restored"]) == (0, 2), tombstones.problems
    restored = job(*back, "--as-committed", f"{start}={commit}")
    assert (restored.code, restored.totals["restored"]) == (0, 2), restored.problems
    assert omid.read(table, snapshot) == seen
    assert {row for row, *_ in omid.read(table, between)} == set(rows)
    assert gc(table).code == 0
    assert omid.read(table, snapshot) == seen


@pytest.mark.turns(2)
def test_what_may_have_been_deleted_is_not_shown_while_a_tombstone_may_lie_on_another_machine(
    job: Job,
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    configure: Callable[..., Path],
    tmp_path: Path,
) -> None:
    """History GC had another worker, which put the tombstone on its own disk: what it hid is not put back to be read,
    and the worker is named.
    """
    table = scene.table()
    start = omid.begin()
    scene.cell(table, start)
    commit = omid.begin()
    scene.committed(table, value=b"")
    omid.advance_watermark()
    cleanup = job("orphan_cleanup", "--table", table, "--full", "--execute")
    assert cleanup.totals["deleted"] == 1, cleanup.problems
    assert job("watermark_collection", "--execute").code == 0
    other = configure(defaults=YOUNG, state={"sideline": str(tmp_path / "elsewhere")})
    removed = gc(table, config=other)
    assert (removed.code, shown(omid, table)) == (0, {}), removed.problems
    snapshot = omid.begin()
    back = ("--restore", cleanup.summary["run"], "--execute", "--as-committed", f"{start}={commit}")
    restored = job("sideline_restore", *back)
    assert omid.read(table, snapshot) == {}, "a deleted value is shown again"
    assert restored.code == 1
    assert f"run {removed.summary['run']} removed" in restored.problems
    assert f"in {tmp_path / 'elsewhere'}" in restored.problems


def test_what_cannot_be_restored_is_said(
    job: Job, gc: Callable[..., Outcome], scene: Scene, omid: OmidClient, recorded: Callable[..., int]
) -> None:
    """A run that nobody knows, one that is no name, a table that the run did not touch: each is named, and nothing
    changes.
    """
    table = scene.table()
    _versions(scene, table)
    recorded(table)
    run_id = gc(table).summary["run"]
    before = omid.raw(table)
    for wanted in ("nobody", ".", ".."):
        unknown = job("sideline_restore", "--restore", wanted, "--execute")
        assert unknown.code == 1
        assert f"run {wanted} has no sideline" in unknown.problems
    other = job("sideline_restore", "--restore", run_id, "--table", "ordres", "--execute")
    assert other.code == 1
    assert f"run {run_id} put nothing of ordres aside; it has cells of {table}" in other.problems
    assert omid.raw(table) == before


def test_a_clock_that_is_off_removes_nothing(
    gc: Callable[..., Outcome],
    scene: Scene,
    omid: OmidClient,
    state: StateStore,
    monkeypatch: pytest.MonkeyPatch,
    recorded: Callable[..., int],
) -> None:
    """Ages and holds go by the clock of the machine that runs the job; one that differs from HBase's would remove what
    is young.
    """
    table = scene.table()
    _versions(scene, table)
    recorded(table)
    before = omid.raw(table)
    assert abs(state.server_time() - datetime.now(UTC)) < timedelta(seconds=30)
    monkeypatch.setattr(StateStore, "server_time", lambda _: datetime.now(UTC) - timedelta(days=8))
    outcome = gc(table)
    monkeypatch.undo()
    assert omid.raw(table) == before
    assert state.history(table).applied == 0
    assert outcome.code == 1
    assert "the clock of this machine is 691,200 s ahead of" in outcome.problems
