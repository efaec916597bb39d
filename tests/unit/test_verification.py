"""What the verifier computes without a store, against the code whose work it judges, and against nothing at all."""

from __future__ import annotations

import ast
import json
import stat
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowtide_spark.verification import verify

from lowtide.cleaning.facts import Fact, region_watermark
from lowtide.run.summary import Summary
from lowtide.values.intervals import Intervals
from lowtide.values.keyranges import KeyRange
from lowtide.verification.proven import Allowed, Proof, lost, turned
from lowtide.verification.read_points import ANYWHERE, differences, held_violations, read_points
from lowtide.verification.records import JOURNALS_OWN, bound, history_mark, horizon
from lowtide.verification.watermarks import allowed, recorded, stated, watermark_violations

ROOT = Path(__file__).resolve().parents[2]
#: What the verifier holds up to itself: the rules, their readings, and the records as the jobs read them.
JUDGED = (
    "lowtide_spark.cleaning",
    "lowtide_spark.history",
    "lowtide_spark.undo",
    "lowtide_spark.frames.omid",
    "lowtide_spark.frames.sideline",
    "lowtide.cleaning.facts",
    "lowtide.history",
    "lowtide.journal",
    "lowtide.store",
    "lowtide.values.intervals",
)

KEYS = 6


def test_the_verifier_is_made_of_nothing_that_it_judges() -> None:
    """An error in a rule, or in a reading of a job's, must not hide itself in what looks for it."""
    files = [
        p for place in ("lowtide", "spark_apps/lowtide_spark") for p in (ROOT / place / "verification").glob("*.py")
    ]
    imported = {
        (file.name, name)
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
        for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
    }
    assert ("verify.py", "lowtide_spark.run.context.Run") in imported
    assert [pair for pair in sorted(imported) if f"{pair[1]}.".startswith(tuple(f"{j}." for j in JUDGED))] == []


def ascending(most: int) -> st.SearchStrategy[tuple[int, int]]:
    """Two numbers from 0 to *most*, the smaller one first."""
    return st.sets(st.integers(0, most), min_size=2, max_size=2).map(lambda pair: (min(pair), max(pair)))


spans, ranges = ascending(12), ascending(KEYS)


def key(n: int) -> bytes:
    """Key number *n*; 0 and KEYS are the open ends."""
    return b"" if n in (0, KEYS) else bytes([n])


def record(facts: list[tuple[tuple[int, int], list[tuple[int, int]]]], number: int = 1) -> dict[str, str]:
    """A table's raw record."""
    told = {
        f"fact/{i}": json.dumps(
            {
                "start": key(a).hex(),
                "stop": key(b).hex(),
                "intervals": intervals,
                "families": ["f"],
                "incarnation": number,
                "shape": "f: VERSIONS=9",
            }
        )
        for i, ((a, b), intervals) in enumerate(facts)
    }
    return {"incarnation": json.dumps({"number": 1, "newest_region": 5, "stated": 7}), **told}


@given(st.lists(st.tuples(ranges, st.lists(spans, min_size=1, max_size=3)), min_size=1, max_size=6), ranges)
def test_brute_force_says_what_the_records_say(
    facts: list[tuple[tuple[int, int], list[tuple[int, int]]]], region: tuple[int, int]
) -> None:
    """Two ways to one number: the sweep over rows here, the interval arithmetic that publishes."""
    keys = KeyRange(key(region[0]), key(region[1]))
    known = [
        Fact(KeyRange(key(a), key(b)), Intervals.of(intervals), frozenset({"f"}), 1) for (a, b), intervals in facts
    ]
    assert allowed(keys.start, keys.stop, recorded(record(facts), ["f"])) == region_watermark(keys, known)


def test_records_of_another_table_shape_or_of_fewer_families_allow_nothing() -> None:
    """Then what was published is of a table of before."""
    facts = [((0, KEYS), [(0, 10)])]
    assert allowed(b"", b"", recorded(record(facts), ["f"])) == 9
    assert allowed(b"", b"", recorded(record(facts), ["f", "g"])) is None
    assert allowed(b"", b"", recorded(record(facts, number=2), ["f"])) is None
    assert allowed(b"", b"", recorded({}, ["f"])) is None
    assert allowed(b"", b"", recorded(record(facts), ["f"], "f: VERSIONS=9")) == 9
    assert recorded(record(facts), ["f"], "f: VERSIONS=1") == []
    assert (stated(record(facts)), stated({})) == (7, 0)


def store(watermark: int, pruned_to: int) -> dict[str, dict[str, str]]:
    """A store with one table that is cleaned up to 9, as its records are."""
    region: dict[str, Any] = {"start": "", "stop": "", "watermark": watermark}
    return {
        "table/t": record([((0, 3), [(0, 10)]), ((3, KEYS), [(0, 12)])]),
        "watermarks/t": {"value": json.dumps({"regions": [region]})},
        "bound/0002": {"value": json.dumps({"value": 99})},
        "bound/0001": {"value": json.dumps({"value": pruned_to})},
        "history/t": {"mark": json.dumps({"mark": 3}), "intended": json.dumps({"mark": 5})},
        "journal": {"value": json.dumps({"there": True, "horizon": 4})},
    }


@pytest.mark.parametrize(
    ("watermark", "pruned_to", "wrong"), [(9, 9, []), (8, 8, []), (10, 9, ["t"]), (9, 10, [""]), (11, 12, ["t", ""])]
)
def test_a_mark_above_what_the_records_allow_is_named(watermark: int, pruned_to: int, wrong: list[str]) -> None:
    """A region watermark above its records, a prune bound above the least watermark; the newest bound counts."""
    found, notes = watermark_violations(store(watermark, pruned_to), {"t": ["f"]})
    assert ([v.table for v in found], notes) == (wrong, [])
    assert all(v.invariant == "V4" and v.remedy for v in found)


def test_void_records_are_a_note() -> None:
    """A table made anew, or forgotten by hand, since its watermarks were published: nobody moved anything."""
    records = {**store(9, 9), "table/t": record([((0, KEYS), [(0, 10)])], number=0)}
    found, notes = watermark_violations(records, {"t": ["f"]})
    assert found == []
    assert "watermark_collection --execute" in notes[0]


def test_single_records_are_read() -> None:
    """And are 0 where there are none."""
    records = store(9, 9)
    assert (bound(records), horizon(records), history_mark(records, "t")) == (9, 4, 5)
    assert (bound({}), horizon({}), history_mark({}, "t")) == (0, 0, 0)
    own = {JOURNALS_OWN: {"value": json.dumps({"horizon": 6, "pruned": 9})}}
    assert (horizon({**records, **own}), horizon(own)) == (6, 6), "the state table may be lost"


@given(
    st.integers(0, 10**18), st.integers(0, 10**18), st.text(max_size=5), st.lists(st.integers(0, 10**18), max_size=4)
)
def test_read_points_lie_above_the_mark(mark: int, watermark: int, seed: str, commits: list[int]) -> None:
    """In (mark, watermark], the last among them, and the first at which each commit is shown; the same for the same
    seed.
    """
    points = read_points(mark, watermark, seed, commits)
    assert points == read_points(mark, watermark, seed, commits)
    if mark >= watermark:
        assert points == []
    else:
        assert points[-1] == watermark
        assert len(points) <= ANYWHERE + len(commits)
        assert all(mark < p <= watermark for p in points)
        assert {c + 1 for c in commits if mark <= c < watermark} <= set(points)


@pytest.mark.parametrize(
    ("mark", "number", "expires", "wrong"),
    [(100, "1", 10, True), (99, "1", 10, False), (100, "1", 9, False), (100, "restore-1", 10, False)],
)
def test_a_history_mark_above_a_read_point_that_is_held_is_named(
    mark: int, number: str, expires: int, wrong: bool
) -> None:
    """As long as the hold has not expired; a restore's is no reader's."""
    hold = {"id": number, "table": "t", "timestamp": 99, "owner": "me", "expires": expires}
    records = {f"hold/t/{number}": {"value": json.dumps(hold)}, "history/t": {"mark": json.dumps({"mark": mark})}}
    found = held_violations(records, now=9)
    assert [(v.invariant, v.table) for v in found] == [("V6", "t")] * wrong


ENTRY, PRUNED, MARK = Proof(7, 57, False, None), Proof(7, 57, False, 100), Proof(7, None, True, None)


@pytest.mark.parametrize(
    ("was", "now", "allowed", "wrong"),
    [
        (ENTRY, None, Allowed(0, 0), True),
        (ENTRY, PRUNED, Allowed(0, 0), False),
        (PRUNED, None, Allowed(7, 100), True),
        (PRUNED, None, Allowed(7, 101), False),
        (PRUNED, None, Allowed(6, 101), True),
        (ENTRY, None, Allowed(7, 200), True),
        (ENTRY, None, Allowed(7, 201), False),
        (MARK, None, Allowed(0, 0), False),
    ],
)
def test_a_proof_that_the_journal_may_not_have_let_go_of_is_missed(
    was: Proof, now: Proof | None, allowed: Allowed, wrong: bool
) -> None:
    """It is missed unless it lies at or below the horizon, and was in the journal for as long as it is kept there; what
    was in the commit table when it was written came to the journal later."""
    found = lost([was], 200, {7: now} if now else {}, allowed)
    assert [(v.invariant, v.transaction) for v in found] == [("V2", 7)] * wrong


@pytest.mark.parametrize(
    ("was", "now", "shown", "wrong"),
    [
        (ENTRY, PRUNED, (), False),
        (ENTRY, Proof(7, 58, False, None), (), True),
        (ENTRY, MARK, (), True),
        (MARK, PRUNED, (), True),
        (MARK, PRUNED, (7,), False),
        (MARK, Proof(7, 57, False, 100, decided=True), (), False),
        (ENTRY, Proof(7, None, True, 100, decided=True), (), False),
        (MARK, MARK, (), False),
    ],
)
def test_the_opposite_of_what_was_said_of_a_transaction_is_named(
    was: Proof, now: Proof, shown: tuple[int, ...], wrong: bool
) -> None:
    """Unless a person decided, or a shadow cell shows that the mark was wrong."""
    assert [(v.invariant, v.transaction) for v in turned([was], {7: now}, shown)] == [("V2", 7)] * wrong


def test_what_reads_otherwise_is_named() -> None:
    """By table and read point; a point that was not read again is none."""
    before = {"t": {"5": {"cells": 1, "hash": "1"}, "6": {"cells": 1, "hash": "1"}, "7": {"cells": 2, "hash": "3"}}}
    after = {"t": {"5": {"cells": 1, "hash": "1"}, "7": {"cells": 2, "hash": "4"}}}
    assert differences(before, before) == []
    (found,) = differences(before, after)
    assert (found.invariant, found.table) == ("V6", "t")
    assert "read as of 7" in found.what


def test_what_the_verifier_writes_is_for_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of its files name rows: what was found, and what a later look compares with."""
    found, seen = tmp_path / "found.json", tmp_path / "seen.json"
    run: Any = SimpleNamespace(
        options=SimpleNamespace(sample=None, before=seen, after=None, json=found),
        request=SimpleNamespace(run="r1", now=datetime.now(UTC)),
        store=SimpleNamespace(spark=None),
        summary=Summary("verify", "r1", False),
    )
    monkeypatch.setattr(verify, "progress", lambda *_: nullcontext())
    monkeypatch.setattr(verify, "_check", lambda run, found, look: look.write(run, found))
    verify.verify(run)
    assert json.loads(found.read_text())["run"] == json.loads(seen.read_text())["run"] == "r1"
    assert {stat.S_IMODE(file.stat().st_mode) for file in (found, seen)} == {0o600}
