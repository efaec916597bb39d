"""The survey on the real store: it counts what is there, says how sure it is, and writes nothing."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from lowtide_spark.check import Driver
from lowtide_spark.cleaning import suspects
from pyspark.sql import SparkSession
from scene import Scene

from lowtide.config import load
from lowtide.lab.stack import Stack
from lowtide.lab.workload import OmidClient, RawCell, Shape, run
from lowtide.store.state import StateStore
from lowtide.survey.estimate import draw, total
from lowtide.values.formats import SHADOW_PREFIX, SHADOW_SUFFIX, base, decode_long
from tests import seeds, warm

Job = Callable[..., Outcome]

SHADOW = len(SHADOW_PREFIX) + len(SHADOW_SUFFIX) + 8


@dataclass
class Counted:
    """What brute force finds in one table."""

    orphans: int = 0
    orphan_bytes: int = 0
    heals: int = 0
    heal_bytes: int = 0


def is_shadow(cell: RawCell) -> bool:
    return cell.qualifier.startswith(SHADOW_PREFIX) and cell.qualifier.endswith(SHADOW_SUFFIX)


Regions = dict[str, list[tuple[bytes, bytes]]]


def by_brute_force(omid: OmidClient, regions: Regions, watermark: int) -> dict[str, list[Counted]]:
    """Every cell of these regions, decided one by one over the raw tables and the commit table: counts by table and
    region.
    """
    there: dict[tuple[str, int], list[RawCell]] = {}
    for table, ranges in regions.items():
        cells = omid.raw(table)
        deleted = {c.key for c in cells if c.kind == "delete"}
        cells = [c for c in cells if c.kind == "put" and c.key not in deleted]
        for index, (start, stop) in enumerate(ranges):
            there[table, index] = [c for c in cells if start <= c.row and (not stop or c.row < stop)]
    entries = {t for t, e in omid.commit_table().items() if e.commit is not None and not e.invalid}
    invalid = {t for t, e in omid.commit_table().items() if e.invalid}
    # Where no proof is found in these regions, a row that was deleted from the commit table leaves the cell undecided.
    removed = {
        decode_long(c.row[1:]) for c in omid.raw("OMID_COMMIT_TABLE") if c.kind == "delete_family" and len(c.row) == 9
    }
    undecided = removed - invalid
    siblings = {
        base(c.timestamp)
        for cells in there.values()
        for c in cells
        if is_shadow(c) and decode_long(c.value) > c.timestamp
    }
    found: dict[str, list[Counted]] = {table: [] for table in regions}
    for (table, _), cells in there.items():
        own = {(c.row, c.family, c.qualifier[3:-2], c.timestamp) for c in cells if is_shadow(c)}
        count = Counted()
        found[table].append(count)
        for cell in (c for c in cells if not is_shadow(c) and base(c.timestamp) <= watermark):
            start, proven = base(cell.timestamp), cell.key in own
            size = 20 + len(cell.row) + len(cell.family) + len(cell.qualifier)
            if start in entries or (not proven and start in siblings):
                count.heals += 1
                count.heal_bytes += 2 * size + len(cell.value) + SHADOW
            elif not proven and start not in undecided:
                count.orphans += 1
                count.orphan_bytes += size + len(cell.value)
    return found


def whole(counts: list[Counted]) -> dict[str, int]:
    """The sum over regions, by name."""
    return {name: sum(vars(c)[name] for c in counts) for name in vars(Counted())}


def everything(omid: OmidClient) -> dict[str, Any]:
    """The store as far as a write could change it: tables, HBase snapshots, cells, and the servers' own counters; each
    under a key of its own, so that a difference names its table.
    """
    names = omid.tables()
    return {
        "tables": names,
        "snapshots": omid.snapshots(),
        **{f"cells of {t}": omid.raw(t) for t in names},
        **{f"writes of {t}": n for t, n in omid.write_requests().items()},
    }


def assert_same(now: dict[str, Any], before: dict[str, Any]) -> None:
    """Nothing of :func:`everything` has changed."""
    changed = {what: (before.get(what), now.get(what)) for what in before.keys() | now.keys()}
    changed = {what: (was, is_) for what, (was, is_) in changed.items() if was != is_}
    assert not changed, {what: str(both)[:2000] for what, both in changed.items()}


@pytest.fixture
def quiet(omid: OmidClient, spark: SparkSession) -> Iterator[None]:
    """Nobody else writes. The driver may be that of other tests too (the suite gives these a new one), and lets go of a
    read's hold and HBase snapshot when it collects its garbage, which may be in the middle of this one; and a server
    that has flushed three files compacts them by itself, some time later, and drops what delete markers hide.
    """
    with omid.no_compactions():
        warm.collect_garbage(spark)
        before = everything(omid)
        for _ in range(30):
            time.sleep(1)
            if (now := everything(omid)) == before:
                break
            before = now
        else:
            pytest.fail("somebody else writes")
        yield


@pytest.mark.usefixtures("quiet")
def test_a_survey_leaves_no_trace(job: Job, omid: OmidClient, scene: Scene, state: StateStore) -> None:
    """Not even its summary, where Lowtide keeps those of its other jobs."""
    state.create()
    scene.orphan(scene.table())
    omid.advance_watermark()
    before = everything(omid)
    assert job("survey").code == 0
    assert_same(everything(omid), before)


def read(survey: Path) -> list[dict[str, Any]]:
    """The tables of a survey that was written as JSON."""
    return json.loads(survey.read_text())["tables"]


def _as_estimated(table: dict[str, Any], parts: list[Counted], truth: dict[str, int]) -> int:
    """A table is as estimated from what brute force finds in the regions that were read; how many of its numbers have
    an interval by that.
    """
    assert table["regions_read"] == len(parts)
    estimated = 0
    for name, number in truth.items():
        seen = [vars(c)[name] for c in parts]
        if len(seen) == table["regions"]:
            assert table[name] == {"value": number, "low": number, "high": number}, (table["table"], name)
        elif len(set(seen)) > 1:  # else the interval hangs on what a region can hold at most
            expected = total(seen, table["regions"], max(seen))
            assert table[name] == asdict(expected), (table["table"], name)
            assert expected.low < expected.value < expected.high
            estimated += 1
    return estimated


@pytest.mark.usefixtures("quiet")
@seeds.each("survey", always=[4])
def test_a_survey_counts_what_is_there_and_writes_nothing(
    job: Job,
    stack: Stack,
    omid: OmidClient,
    scene: Scene,
    state: StateStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    """Over crashed clients' leftovers a survey equals a brute-force count, cell by cell and byte by byte; a sample
    states the estimates and the intervals that follow from brute-force counts of the regions drawn; regions that split
    and move while it reads change nothing; and after all of that no table, HBase snapshot, cell or write counter of
    HBase has changed. (How often such an interval holds the truth is tried in the unit tests.)"""
    shape = Shape()
    state.create()
    try:
        run(stack, seed=seed, transactions=300, out=tmp_path / "history", shape=shape, regions=6, omid=omid)
        extra = scene.table(splits=(b"m",))
        for n in range(9):
            scene.orphan(extra, row=b"a%d" % n)
        scene.crashed_after_commit(extra, row=b"z")
        watermark = omid.advance_watermark()
        tables = [*shape.tables, extra]
        for table in tables:
            omid.flush(table)
        before = everything(omid)
        page, exact, sampled = tmp_path / "survey.html", tmp_path / "exact.json", tmp_path / "sampled.json"

        outcome = job("survey", "--json", str(exact), "--html", str(page), "--rate", "1000000")
        assert outcome.code == 0, outcome.problems
        assert_same(everything(omid), before)
        regions = {t: [(r.start, r.end) for r in omid.regions(t)] for t in tables}
        truth = {t: whole(counts) for t, counts in by_brute_force(omid, regions, watermark).items()}
        found = json.loads(exact.read_text())
        assert sum(t["orphans"] for t in truth.values()) > 20
        assert sum(t["heals"] for t in truth.values()) > 20
        seen = {t["table"]: t for t in found["tables"]}
        assert set(seen) == set(tables)
        for table, counted in truth.items():
            for name, number in counted.items():
                assert seen[table][name] == {"value": number, "low": number, "high": number}, (table, name)
        rows = list(omid.commit_table().values())
        ages = found["commit_table"]["rows"]
        # Other tests may have left what is no transaction's: a fence, which commits at its own start, or an odd start.
        odd = {e.start for e in rows if not e.invalid and (e.commit == e.start or e.start % 50)}
        counted = {
            "marks": sum(e.invalid for e in rows),
            "entries": sum(e.commit is not None and not e.invalid and e.start not in odd for e in rows),
            "others": len(odd),
        }
        assert {name: sum(r[name] for r in ages) for name in counted} == counted, rows
        assert found["commit_table"]["settled"] == sum(e.start <= watermark for e in rows), rows
        assert f"{truth[extra]['orphans']:,}" in page.read_text()

        assert job("survey", "--json", str(sampled), "--sample", "0.5", "--run-id", "half").code == 0
        assert_same(everything(omid), before)
        drawn = {t: draw(regions[t], 0.5, f"half/{t}") for t in tables}
        parts = by_brute_force(omid, drawn, watermark)
        estimated = sum(_as_estimated(t, parts[t["table"]], truth[t["table"]]) for t in read(sampled))
        assert estimated >= len(vars(Counted())) * len(shape.tables) // 2
        assert [t["regions"] for t in read(sampled)] == [len(regions[t["table"]]) for t in read(sampled)]

        find, moved = suspects.find, Counter[str]()

        def moving(*arguments: Any) -> None:
            if not moved:
                moved[extra] += 1
                omid.split(extra, b"a5")
                omid.move(extra, b"z")
            find(*arguments)

        monkeypatch.setattr(suspects, "find", moving)
        assert job("survey", "--json", str(exact), "--table", extra).code == 0
        (again,) = json.loads(exact.read_text())["tables"]
        assert moved
        assert (again["orphans"]["value"], again["heals"]["value"]) == (truth[extra]["orphans"], truth[extra]["heals"])
        assert {t: omid.raw(t) for t in tables} == {t: before[f"cells of {t}"] for t in tables}
    finally:
        for table in shape.tables:
            omid.drop(table)


def test_a_survey_tells_what_is_wrong_with_the_store(
    job: Job, scene: Scene, omid: OmidClient, state: StateStore, configure: Callable[..., Path], tmp_path: Path
) -> None:
    """Tables without mark, with too few versions, with Omid's compactor: each is named; growth and ages come from the
    clock's samples; an oracle that does not answer is told of and does not stop the survey; a share or rate that cannot
    be meant is refused."""
    state.create()
    now = datetime.now(UTC)
    state.add_sample(now - timedelta(days=40), 0)
    state.add_sample(now - timedelta(days=2), omid.begin())
    table, few, unmarked = scene.table(), scene.table(versions=3), scene.table(omid_enabled=False)
    for n in range(6):
        scene.crashed_after_commit(table, row=b"%d" % n)
    scene.committed(unmarked)
    omid.attach_omid_compactor(table)
    state.add_sample(now - timedelta(days=1), omid.begin())
    watermark = omid.advance_watermark()
    state.add_sample(now, watermark)
    out = tmp_path / "survey.json"
    try:
        silent = configure(omid={"oracle": ["127.0.0.1:1"]})
        assert job("survey", "--json", str(out), config=silent).code == 0
        found = json.loads(out.read_text())
    finally:
        state.reset()
    assert any("does not answer" in n["what"] for n in found["notices"])
    notices: dict[tuple[str, str], str] = defaultdict(str)
    for notice in found["notices"]:
        notices[notice["severity"], notice["table"]] += notice["what"]
    assert "3 versions" in notices["danger", few]
    assert "no mark of Omid" in notices["caution", unmarked]
    assert "compactor is attached" in notices["note", table]
    assert {r["age"] for r in found["commit_table"]["rows"]} > {"up to a day", "up to 7 days", "older"}
    assert found["commit_table"]["per_day"] >= 6 / 2.1
    assert 0 <= found["watermark_age"] < 3600
    for bad in (["--sample", "0"], ["--sample", "1.5"], ["--rate", "fast"], ["--execute"]):
        with pytest.raises(SystemExit) as refused:
            job("survey", *bad)
        assert refused.value.code == 2


def test_a_peer_that_gets_no_journal_is_told_of(
    job: Job, spark: SparkSession, scene: Scene, omid: OmidClient, configure: Callable[..., Path], tmp_path: Path
) -> None:
    """Where HBase replicates a transactional table and not the journal and the state table, check, survey and pruning
    say so and fail nothing; the statements that the survey tells end it.
    """
    own = {"table": "PEER_STATE", "journal_table": "PEER_JOURNAL"}
    file, out = configure(state=own), tmp_path / "survey.json"
    table = scene.table()
    scene.tables += own.values()
    assert job("commit_table_pruning", "--execute", config=file).code == 0

    def told() -> list[str]:
        pruned = job("commit_table_pruning", config=file)
        assert (job("survey", "--table", table, "--json", str(out), config=file).code, pruned.code) == (0, 0)
        notices = [n["what"] + ": " + n["remedy"] for n in json.loads(out.read_text())["notices"]]
        listing = Driver(spark, load(file)).looks()["listing"]()
        notes = pruned.table("OMID_COMMIT_TABLE")["notes"]
        return [each for each in (*notices, listing, *notes) if "REPLICATION_SCOPE" in each]

    assert told() == []
    omid.set(table, families={"REPLICATION_SCOPE": "1"})
    found = told()
    assert len(found) == 3, "survey, check and pruning"
    surveyed, listing, note = found
    for text in (surveyed, listing, note):
        assert f"HBase replicates {table} to another cluster (REPLICATION_SCOPE), and not PEER_JOURNAL and P" in text
    assert listing.startswith("complete: ")
    altered = re.findall(r"alter '(\w+)', {NAME => '(\w)', REPLICATION_SCOPE => '1'}", surveyed)
    assert altered == [("PEER_JOURNAL", "j"), ("PEER_STATE", "s")]
    for each, _ in altered:
        omid.set(each, families={"REPLICATION_SCOPE": "1"})
    assert told() == []
