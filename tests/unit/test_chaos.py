"""Chaos without a store: plans, how one that fails is cut down, and what the judge notices."""

from __future__ import annotations

import ast
import json
import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import deadman
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from lowtide.lab.workload import Model, Transaction
from lowtide.lab.workload.model import cell_from_json
from lowtide.lab.workload.phoenix import PHYSICAL
from tests.chaos import actor as actors
from tests.chaos import cutting, judge, ledger_plan, oracle_steps, plan, sql_plan, striking, worlds
from tests.chaos.actor import Actor
from tests.chaos.actor import _kinds as actor_kinds
from tests.chaos.judge import ANEW, ENTRIES_BACK, Cell, Entry, Judge, Seen, low_watermark
from tests.chaos.laboratory import Laboratory, listed_aside
from tests.chaos.nemeses import ANY, MOST, SEAMS, SERVERS, SHARED, Kind, Nemesis
from tests.chaos.scenes import ledger
from tests.chaos.steps import (
    ACTS,
    ASKED,
    COUNTED,
    INTENDED,
    LOOKS_AGAIN,
    LOSING,
    MARKED,
    READS,
    RECORD,
    SEARCHES,
    TIMED,
    TURN,
    WRITTEN,
    Act,
    Alter,
    Change,
    Compact,
    Land,
    Moment,
    Resume,
    Run,
    Say,
    Seam,
    Settle,
    Step,
    Table,
    Word,
    numbers_in,
)
from tests.chaos.striking import Strikes
from tests.chaos.tables import Tables

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(60)


# -- plans


def test_a_seed_is_one_plan() -> None:
    """The same each time, and another than its neighbour's; every number stands in it once, and in its print."""
    for seed in SEEDS:
        made = plan.made(seed)
        assert made == plan.made(seed)
        assert made.steps != plan.made(seed + 1).steps
        numbers = made.numbers()
        assert len(set(numbers)) == len(numbers)
        assert [int(line.split(":")[0]) for line in str(made).splitlines()[1:]] == numbers


def test_all_seeds_together_have_everything() -> None:
    """Every kind of step, change and word, every job, each way for a run to end at a seam, and runs within runs."""
    made = [plan.made(seed, nemeses=SERVERS, phoenix=seed % 7 == 0) for seed in range(120)]
    steps = [step for one in made for step in one.every()]
    assert {type(step) for step in steps} == set(Step.__args__)
    assert {s.change for s in steps if isinstance(s, Alter)} == set(Change)
    assert {s.word for s in steps if isinstance(s, Say)} == set(Word)
    runs = [step for step in steps if isinstance(step, Run)]
    assert {run.job for run in runs} == {*plan._JOBS, ledger_plan.REPAIR, ledger_plan.BALANCES}
    seams = [seam for run in runs for seam in run.seams]
    assert ({seam.act for seam in seams}, {seam.kind for seam in seams}) == (
        set(Act),
        {
            *(*plan.KINDS, *ledger_plan.KINDS, ledger.MARK, ANY, ACTS, INTENDED, LOOKS_AGAIN, MARKED, TURN, WRITTEN),
            *(ASKED, READS, SEARCHES),
        },
    )
    assert {s.event for s in steps if isinstance(s, oracle_steps.Oracle)} == set(oracle_steps.Event)
    assert any(isinstance(step, Run) for seam in seams for step in seam.steps)
    assert all(one.jobs() >= plan.JOBS for one in made)


def test_plans_with_phoenix_have_all_that_its_clients_do() -> None:
    """Each way for a transaction to end, at its step or by its seed, and each change of a physical table."""
    steps = [step for seed in SEEDS for step in plan.made(seed, phoenix=True).every()]
    assert {step.fate for step in steps if isinstance(step, sql_plan.End)} == set(sql_plan.Fate)
    assert {sql_plan.fate(random.Random(seed)) for seed in SEEDS} == set(sql_plan.Fate)
    altered = [step for step in steps if isinstance(step, sql_plan.Alter)]
    assert ({step.change for step in altered}, {step.table for step in altered}) == (
        set(sql_plan.Physical),
        set(PHYSICAL),
    )
    assert not any(isinstance(step, plan.SqlStep) for seed in SEEDS for step in plan.made(seed).every())


def test_torn_transactions_and_lost_tables_do_not_meet() -> None:
    """Nothing in a store tells of a torn transaction once the table with its last shadow cell is gone. While a run
    searches one may be, which is back before the run acts, and again when it is over.
    """
    made = [plan.made(seed) for seed in SEEDS]
    changes = {
        torn: [s.change for one in made if one.torn is torn for s in one.every() if isinstance(s, Alter)]
        for torn in (False, True)
    }
    back = [Change.TRUNCATE, Change.RESTORE, Change.RESTORE]
    assert [c for c in changes[True] if c in LOSING] == back * sum(one.torn for one in made)
    assert set(changes[False]) >= LOSING


def test_where_omids_own_compactor_is_no_table_is_lost() -> None:
    """It would drop what is committed and not yet healed; and only there it is. One that came back is clean before."""
    made = [plan.made(seed) for seed in SEEDS]
    for one in made:
        changes = [step.change for step in one.every() if isinstance(step, Alter)]
        assert one.compactor or Change.COMPACTOR not in changes
        assert not (one.compactor and one.torn)
        if one.compactor:
            before, after = changes[: (at := changes.index(Change.COMPACTOR))], changes[at:]
            assert not LOSING & {*after}
            assert LOSING & {*before} <= {Change.RESTORE}
    its_own = {seed for seed in SEEDS if worlds.of(seed) is worlds.World.COMPACTOR}
    assert {one.seed for one in made if one.compactor} == its_own


def test_seeds_in_a_row_have_every_world() -> None:
    """And what each is about comes in it. No entry is taken away where the commit table is compacted: nothing would
    tell of its transaction.
    """
    assert set(worlds.WORLDS) == set(worlds.World)
    for seed in SEEDS:
        steps = list(plan.made(seed).every())
        changes = {step.change for step in steps if isinstance(step, Alter)}
        taken = any(isinstance(step, Land) and step.taken for step in steps)
        assert not (taken and any(isinstance(step, Compact) for step in steps))
        match worlds.of(seed):
            case worlds.World.TORN:
                hard = {Change.DISABLE, Change.UNMARK, Change.GARBLE, Change.RENAME}
                assert changes >= hard
            case worlds.World.BACK:
                assert changes >= {Change.COPY, Change.RESTORE}
            case worlds.World.COMPACTOR:
                assert changes >= {Change.COMPACTOR, Change.NEWER, Change.HIDE}
            case worlds.World.SWEPT:
                assert changes >= {Change.SNAPSHOT, Change.UNSNAP, Change.LOAD}
                assert plan.made(seed).sweeps
            case worlds.World.HISTORY:
                going = [step for step in steps if isinstance(step, Run) and step.job == "history_gc"]
                met = [step for run in going for seam in run.seams for step in seam.steps]
                assert {type(step) for step in met} >= {Alter, Say, Run}
            case worlds.World.ORACLE:
                events = {step.event for step in steps if isinstance(step, oracle_steps.Oracle)}
                rare = {"LOSE", "IMPORT", "OTHER", "COMMITS", "NAMED", "GONE"}
                assert {each.name for each in events} >= {each.name for each in oracle_steps.Event} - rare
            case worlds.World.LEDGER:
                forged = {step.forgery for step in steps if isinstance(step, ledger_plan.Forge)}
                assert forged >= {*ledger_plan.Forgery} - {ledger_plan.Forgery.AMOUNT, ledger_plan.Forgery.THIRD}
                assert {type(step) for step in steps} >= {ledger_plan.Lose, ledger_plan.Mend, ledger_plan.Refuse}
            case _:
                between = [s for run in steps if isinstance(run, Run) for s in run.seams if s.kind == "connector"]
                assert any(isinstance(step, Land) for seam in between for step in seam.steps)


def test_what_is_cut_goes_with_all_that_is_in_it() -> None:
    """All numbers: the same plan. Without a seam its steps are gone; without a run its seams. Nothing else changes."""
    made = next(one for one in map(plan.made, SEEDS) if _with_seams(one))
    assert made.only(made.numbers()) == made
    run = _with_seams(made)[0]
    seam = run.seams[0]
    inside = {n for step in seam.steps for n in numbers_in(step)}
    left = made.only([n for n in made.numbers() if n != seam.number])
    assert set(left.numbers()) == set(made.numbers()) - inside - {seam.number}
    left = made.only([n for n in made.numbers() if n != run.number])
    assert left.steps == tuple(step for step in made.steps if step is not run)


def test_runs_are_parked_in_a_plan_that_stays_what_it_is() -> None:
    """As many as are asked for, where so many act; none dies before, and others run before it goes on. None in the
    world of the ledger, where what goes on would meet what is forged.
    """
    about = {seed: worlds.of(seed) is worlds.World.LEDGER for seed in SEEDS}
    assert all(plan.made(seed, 12, parks=10) == plan.made(seed, 12) for seed in SEEDS if about[seed])
    for seed in (seed for seed in SEEDS if not about[seed]):
        without, made = plan.made(seed, 12), plan.made(seed, 12, parks=10)
        acting = [s for s in without.steps if isinstance(s, Run) and "--execute" in s.arguments]
        parked = [s for s in made.steps if isinstance(s, Run) and s.seams and s.seams[0].act is Act.PARK]
        added = set(made.numbers()) - set(without.numbers())
        assert sum(run.seams[0].number in added for run in parked) == min(10, len(acting))
        for run in parked:
            if run.seams[0].number in added:
                assert {seam.act for seam in run.seams[1:]} <= {Act.ON}
        assert [s.number for s in made.steps if s.number not in added] == [s.number for s in without.steps]
        standing: list[int] = []
        for at, step in enumerate(made.steps):
            if isinstance(step, Run) and step.seams and step.seams[0].number in added:
                standing.append(at)
            elif isinstance(step, Resume) and step.number in added:
                went_on = standing.pop(step.pick)
                assert any(isinstance(s, Run) for s in made.steps[went_on + 1 : at])
        assert plan.made(seed, 12, parks=10) == made


def test_nemeses_come_to_a_plan_that_stays_what_it_is() -> None:
    """One to three of the kinds that were asked for, between steps and at seams of runs; all else of the plan is the
    same, number for number. Without any kind none comes but those of scenes.
    """
    places = set()
    for seed in SEEDS:
        bare, made = plan.made(seed), plan.made(seed, nemeses=SHARED)
        assert plan.made(seed, nemeses=()) == bare
        found = [step for step in made.every() if isinstance(step, Nemesis)]
        in_scenes = [step for step in found if step.number in _steps_of_the_world(seed)]
        assert 1 <= len(found) - len(in_scenes) <= MOST
        assert {one.kind for one in found} <= SHARED
        assert made.only(bare.numbers()) == bare
        inside = [step for run in made.every() if isinstance(run, Run) for seam in run.seams for step in seam.steps]
        places |= {one in inside for one in found}
    assert places == {False, True}


def _steps_of_the_world(seed: int) -> set[int]:
    """Numbers of the steps that a plan has without those nemeses that are drawn for it."""
    with_all = plan.made(seed, nemeses=frozenset(Kind))
    drawn_from = max(plan.made(seed).numbers())
    return {number for number in with_all.numbers() if number <= drawn_from}


def test_nemeses_leave_the_scenes_of_two_in_three_plans_in_peace() -> None:
    """In the others a run of a scene meets one, too; and no scene begins in order."""
    struck: dict[int, set[bool]] = defaultdict(set)
    for seed in range(96):
        made = plan.made(seed, nemeses=SHARED)
        its_own = set(plan.made(seed).numbers())
        begins = {isinstance(step, Settle) for step in made.steps if any(step.number == min(s) for s in made.scenes)}
        assert begins == {seed % 3 != 1}
        struck[seed % 3] |= {
            made.scene_of(run) is not None
            for run in made.steps
            if isinstance(run, Run)
            for seam in run.seams
            if seam.number not in its_own and any(isinstance(step, Nemesis) for step in seam.steps)
        }
    assert struck == {0: {False}, 1: {False, True}, 2: {False}}


def test_every_kind_of_nemesis_comes() -> None:
    """In a store with region servers of its own all of them, at every seam."""
    made = [plan.made(seed, nemeses=SERVERS) for seed in range(200)]
    steps = [step for one in made for step in one.every()]
    assert {step.kind for step in steps if isinstance(step, Nemesis)} == set(Kind)
    runs = [step for step in steps if isinstance(step, Run)]
    struck = {seam.kind for run in runs for seam in run.seams if any(isinstance(s, Nemesis) for s in seam.steps)}
    assert struck == set(SEAMS)


def _with_seams(made: plan.Plan) -> list[Run]:
    return [step for step in made.steps if isinstance(step, Run) and step.seams]


# -- cutting


@pytest.mark.parametrize("needed", [{3}, {0, 39}, {5, 6, 7}, {1, 13, 20, 38}, set(range(40))])
def test_what_is_not_needed_is_cut(needed: set[int]) -> None:
    """What is left fails, and none of it can go."""

    def fails(numbers: Sequence[int]) -> bool:
        return needed <= set(numbers)

    assert set(cutting.cut_down(range(40), fails, tries=10_000)) == needed


def test_it_ends_after_so_many_tries_with_what_was_tried() -> None:
    """However many are left, they fail."""
    tried: list[list[int]] = []

    def fails(numbers: Sequence[int]) -> bool:
        tried.append(list(numbers))
        return {1, 13, 20, 38} <= set(numbers)

    left = cutting.cut_down(range(40), fails, tries=25)
    assert len(tried) == 25
    assert left in tried
    assert {1, 13, 20, 38} <= set(left)


# -- the judge


def test_the_judge_knows_nothing_of_lowtide() -> None:
    """It imports the standard library alone: no rule of Lowtide's, and no test's, can make it blind."""
    tree = ast.parse((ROOT / "tests" / "chaos" / "judge.py").read_text())
    modules = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert modules == {"__future__", "json", "collections", "collections.abc", "dataclasses", "typing"}


T, TC, W = 1000, 1100, 5000
Q = (b"r", b"a", b"q")
DATA = Cell(*Q, T, "put", b"v")
SHADOW = Cell(b"r", b"a", b"\x00\xc2\x80q\xc2\x80", T, "put", TC.to_bytes(8, "big"))
GONE = Cell(*Q, T, "delete", b"")
BARED = Cell(*SHADOW[:3], T, "delete", b"")


def key(start: int) -> bytes:
    return bytes([start % 16]) + start.to_bytes(8, "big")


def entry(start: int, distance: int) -> Cell:
    varint = bytes([distance % 128 | 128, distance // 128]) if distance > 127 else bytes([distance])
    return Cell(key(start), b"F", b"C", start, "put", varint)


def mark(start: int) -> Cell:
    return Cell(key(start), b"F", b"IT", start, "put", b"\x00\x00\x00\x01")


LOW = Cell(b"LOW_WATERMARK", b"LWF", b"LWC", 1, "put", W.to_bytes(8, "big"))


def seen(*cells: Cell, commits: Sequence[Cell] = (), journal: Sequence[Cell] = ()) -> Seen:
    return Seen({"t": frozenset(cells)}, frozenset([LOW, *commits]), frozenset(journal))


def told(*, commit: int | None = TC, start: int = T, value: str = "v") -> Judge:
    """A judge of a store in which one client put one cell, and ended so."""
    made = Judge()
    cells = [["t", "r", "a", "q", 0, "put", value]]
    for event in (
        {"event": "begin", "start": start},
        {"event": "cells", "start": start, "cells": cells},
        {"event": "end", "start": start, "commit": commit, "outcome": "committed" if commit else "abandoned"},
    ):
        made.history.read(json.dumps(event))
    return made


def of(made: Judge, before: Seen, after: Seen, aside: Sequence[tuple[Any, ...]] = (), **named: Any) -> list[str]:
    made.written("here", before, after, {"t": aside}, **named)
    return made.wrong


KEY = (*Q, T)


def test_the_low_watermark_is_the_newest_that_stands() -> None:
    """One that lies above the oracle's and was deleted hides no other; its delete marker stays for a while."""
    other = LOW._replace(timestamp=1 << 61, value=(W - 50).to_bytes(8, "big"))
    assert low_watermark([LOW]) == low_watermark([LOW, other, other._replace(kind="delete", value=b"")]) == W
    assert low_watermark([LOW, other]) == W - 50
    assert low_watermark([]) == 0


def test_what_is_right_is_not_wrong() -> None:
    """An orphan that goes and is aside, a commit that is healed, an entry that is journaled and pruned."""
    assert of(told(commit=None), seen(DATA), seen(DATA, GONE), [KEY]) == []
    assert of(told(), seen(DATA, commits=[entry(T, 100)]), seen(DATA, SHADOW, commits=[entry(T, 100)])) == []
    journaled = [Cell(key(T), b"j", b"C", 1, "put", TC.to_bytes(8, "big"))]
    before = seen(DATA, SHADOW, commits=[entry(T, 100)])
    made = told()
    assert of(made, before, seen(DATA, SHADOW, journal=journaled)) == []
    assert made.counts["changes of the commit table"] == 1


@pytest.mark.parametrize(
    ("made", "before", "after", "aside", "said"),
    [
        (told(), seen(DATA), seen(DATA, GONE), [KEY], "the mark is -1"),
        (told(commit=None), seen(DATA), seen(DATA, GONE), [], "in no sideline"),
        (told(), seen(DATA, SHADOW), seen(DATA, SHADOW, BARED), [], "and its data stands"),
        (told(commit=None), seen(DATA), seen(DATA, SHADOW), [], "a shadow cell"),
        (told(commit=TC + 50), seen(DATA), seen(DATA, SHADOW), [], "a shadow cell"),
        (told(commit=None), seen(), seen(DATA._replace(value=b"x")), [], "no client wrote it"),
        (told(), seen(DATA), seen(DATA._replace(value=b"x")), [], "another value"),
        (told(), seen(DATA), seen(DATA, commits=[mark(T)]), [], "got a mark"),
        (told(), seen(), seen(commits=[entry(T, 50)]), [], "got the entry 1050"),
        (told(), seen(commits=[entry(T, 100)]), seen(), [], "the journal has None"),
        (told(commit=None), seen(commits=[mark(T)]), seen(), [], "the journal has nothing"),
        (
            told(),
            seen(DATA, commits=[entry(T, 100)]),
            seen(DATA, journal=[Cell(key(T), b"j", b"C", 1, "put", TC.to_bytes(8, "big"))]),
            [],
            "lacks its shadow cell",
        ),
        (
            told(start=W + 50, commit=None),
            seen(DATA._replace(timestamp=W + 50)),
            seen(),
            [(*Q, W + 50)],
            "above the low watermark",
        ),
    ],
)
def test_a_wrong_write_is_noticed(
    made: Judge, before: Seen, after: Seen, aside: Sequence[tuple[Any, ...]], said: str
) -> None:
    """Each rule by one write that breaks it, and says so."""
    assert any(said in line for line in of(made, before, after, aside)), made.wrong


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        (TC, None, f"{T} went from the journal"),
        (TC, TC + 50, f"{T} has {TC + 50} in the journal, and had {TC}"),
        (None, TC + 50, f"{T} came into the journal with {TC + 50}, and has {TC}"),
        (None, TC, ""),
        (TC, TC, ""),
    ],
)
def test_a_journal_that_loses_or_says_what_is_not_so_is_noticed(was: int | None, now: int | None, says: str) -> None:
    """At whichever write of a run: it is the last proof of what was pruned."""

    def rows(commit: int | None) -> list[Cell]:
        return [] if commit is None else [Cell(key(T), b"j", b"C", 1, "put", commit.to_bytes(8, "big"))]

    found = of(told(), seen(DATA, SHADOW, journal=rows(was)), seen(DATA, SHADOW, journal=rows(now)))
    assert [says in each for each in found] == ([True] if says else [])


def test_what_the_journal_lets_go_of_nobody_may_need() -> None:
    """Neither an HBase snapshot, whatever it has, nor a cell that is there."""
    journaled = [Cell(key(T), b"j", b"C", 1, "put", TC.to_bytes(8, "big"))]
    for cells, kept, says in (
        ((DATA, SHADOW), set(), ""),
        ((DATA, SHADOW), {"t"}, "['t'] are kept (4)"),
        ((DATA,), set(), "lacks its shadow cell (4)"),
    ):
        made = told()
        made.sweeps, made.history.standing = True, kept
        found = of(made, seen(*cells, journal=journaled), seen(*cells))
        assert [says in each for each in found] == ([True] if says else [])
    # Of a table that came back since it looked a run cannot know.
    assert of(_sweeping(), seen(DATA, journal=journaled), seen(DATA), came_back={"t"}) == []


def test_a_read_as_of_fails_where_the_journal_has_let_go_of_what_it_meets() -> None:
    """What nothing else tells of it need not show."""
    journaled = [Cell(key(T), b"j", b"C", 1, "put", TC.to_bytes(8, "big"))]
    made = _sweeping()
    made.history.untold_of(T)
    made.read_as_of("x", "t", TC + 1, {}, mark=-1)
    assert made.wrong == []
    assert of(made, seen(DATA, SHADOW, journal=journaled), seen(DATA, SHADOW)) == []
    made.read("x", "t", TC + 1, {})
    assert made.wrong == [], "Omid's readers know of no journal"
    made.read_as_of("x", "t", TC + 1, {}, mark=-1)
    assert "as of" in made.wrong[0]


def _sweeping() -> Judge:
    made = told()
    made.sweeps = True
    return made


def test_nothing_need_tell_of_what_has_lost_its_proof() -> None:
    """It is left to a person; what a shadow cell, the commit table or the journal tells of is not."""
    for made, cells, proofs, untold in (
        (told(), {KEY: b"v"}, {T}, set()),
        (told(), {KEY: b"v"}, set(), {T}),
        (told(), {KEY: b"v", judge.shadow(KEY): b""}, set(), set()),
        (told(commit=None), {KEY: b"v"}, set(), set()),
    ):
        made.history.untold_where(cells, proofs)
        assert made.history.untold == untold


def test_what_somebody_was_mistaken_about_is_shown_again_once_the_journal_says_so() -> None:
    """Not before; its shadow cell says its own commit. Of what is back, all of it where the restore says so."""
    journaled = [Cell(key(T), b"j", b"C", 2, "put", TC.to_bytes(8, "big"))]
    for shadows, whole, back, shown, wrong in (
        ([SHADOW], True, {KEY}, {KEY[:3]: b"v"}, 0),
        ([SHADOW], False, {KEY}, {KEY[:3]: b"v"}, 0),
        ([], True, set(), {}, 2),
        ([], False, {KEY}, {}, 1),
        ([], False, set(), {}, 0),
    ):
        made = told()
        made.history.untold_of(T)
        made.history.taken_for_aborted(T)
        made.read("here", "t", TC + 1, {})
        assert of(made, seen(), seen(DATA, *shadows, journal=journaled)) == []
        made.put_right("here", seen(DATA), whole=True)  # by no word of the journal's
        made.read("here", "t", TC + 1, {})
        assert (made.wrong, made.history.commits) == ([], {})
        made.put_right("here", seen(DATA, *shadows, journal=journaled), whole=whole, back={"t": back})
        made.read("here", "t", TC + 1, shown)
        assert (len(made.wrong), made.history.commits, made.history.mistaken) == (wrong, {T: TC}, {})
    made = told()
    made.history.taken_for_aborted(T)
    made.put_right("here", seen(journal=journaled), whole=False)
    made.read("here", "t", TC + 1, {})
    assert made.wrong == [], "what is not back was removed"


def test_a_mark_goes_where_it_is_journaled_and_never_of_an_oracle_whose_clients_write_entries() -> None:
    """They would commit where it has gone."""
    journaled = [Cell(key(T), b"j", b"IT", 1, "put", b"\x00")]
    for keeps in (False, True):
        made = told(commit=None)
        made.keeps_marks = keeps
        found = of(made, seen(commits=[mark(T)]), seen(journal=journaled))
        assert [f"the mark of {T} went" in each for each in found] == [True] * keeps
        made.recorded("a", "one", state(bound__1={"value": {"value": T}}))
        made.wrong.clear()
        made.at_the_end(seen(commits=[mark(T)]))
        assert ["is at or below the bound" in each for each in made.wrong] == [True] * (not keeps)


def test_what_the_journal_had_when_the_oracle_was_made_anew_is_of_others() -> None:
    """It proves nothing of the transactions of now, and may be written over; what comes after it is judged as ever."""

    def row(commit: int, at: int) -> Cell:
        return Cell(key(T), b"j", b"C", at, "put", commit.to_bytes(8, "big"))

    old, pruned = row(TC + 50, 1), (seen(DATA, SHADOW, commits=[entry(T, 100)]), seen(DATA, SHADOW))
    for journal, wrong in (([old], 1), ([old, row(TC, 2)], 0), ([old, row(TC + 50, 2)], 2)):
        made, (before, after) = told(), pruned
        known = made.history
        made.begins_anew(frozenset([old]))
        assert (made.history.commits, made.history.tables, made.of_before()) == ({}, {}, {T: TC + 50})
        made.history = known
        found = of(made, replace(before, journal=frozenset([old])), replace(after, journal=frozenset(journal)))
        assert len(found) == wrong


def test_what_a_run_does_that_began_before_the_oracle_was_made_anew_is_noticed() -> None:
    """It writes nothing, and records nothing as cleaned; others do."""
    made = Judge()
    made.written_by_one_of_before("here", seen(DATA), seen(DATA))
    records = state(table__t={"epoch": "1/x/0"}), state(table__t={"epoch": "1/x/0", "fact/-": {"run": "one"}})
    made.recorded("a", "one", records[0], of_before=ANEW)
    made.recorded("a", "one", records[1])
    assert made.wrong == []
    made.written_by_one_of_before("here", seen(DATA), seen(DATA, GONE))
    made.recorded("a", "one", records[0])
    made.recorded("a", "one", records[1], of_before=ANEW)
    assert ["and it has written (2)" in made.wrong[0], "and it recorded of t (3)" in made.wrong[1]] == [True, True]
    assert len(made.wrong) == 2
    made.written_by_one_of_before("here", seen(DATA), seen(DATA, GONE), ENTRIES_BACK)
    assert made.wrong[2] == "here: the commit table came back since the run began, and it has written (2)"


def test_what_a_cleanup_goes_by_is_of_before_from_when_its_commit_table_comes_back_until_it_records() -> None:
    """Not that of a run which has yet to read it, nor of one that may record by now, nor any other job's."""
    for job, looked, met, before in (
        ("orphan_cleanup", True, 4, True),
        ("orphan_cleanup", True, 5, False),
        ("orphan_cleanup", False, 2, False),
        ("history_gc", True, 4, False),
    ):
        actor = Actor(SimpleNamespace(), Run(0, job, ()), "run", ())  # type: ignore[arg-type]
        actor.looked = looked
        actor._met[TIMED] = met
        actor.entries_came_back()
        assert actor.of_before == (ENTRIES_BACK if before else "")


def test_records_that_are_lost_begin_anew() -> None:
    """Neither an epoch nor a mark of before counts."""
    made = Judge()
    made.recorded("a", "one", state(table__t={"epoch": "3/x/0"}, history__t={"mark": {"mark": 500}}))
    made.lost_records()
    made.recorded("b", "two", state(table__t={"epoch": "1/y/0"}))
    assert (made.wrong, made.marks) == ([], {})


def test_a_write_to_another_oracles_table_is_noticed() -> None:
    """Be it ever so right by this one's commit table."""
    theirs = {"o": frozenset([DATA])}
    before, after = (replace(seen(), foreign=cells) for cells in (theirs, {"o": frozenset([DATA, GONE])}))
    assert of(told(commit=None), before, before) == []
    assert "o is another oracle's, and was written to (6)" in of(told(commit=None), before, after)[0]


def test_a_write_of_a_run_that_is_not_to_act_is_noticed() -> None:
    """Be it ever so right."""
    made = Judge()
    made.dry("here", seen(DATA), seen(DATA))
    assert made.wrong == []
    made.dry("here", seen(DATA), seen(DATA, GONE))
    assert made.wrong == ["here: it is not to act, and has written"]


def test_a_mark_of_a_run_that_was_overtaken_everywhere_is_noticed() -> None:
    """Who has a table still may put marks."""
    made = told(commit=None)
    made.recorded("a", "one", state(table__t={"epoch": "1/x/0"}, table__u={"epoch": "1/x/0"}))
    made.recorded("b", "two", state(table__t={"epoch": "2/y/0"}, table__u={"epoch": "1/x/0"}))
    assert of(made, seen(DATA), seen(DATA, commits=[mark(T)]), owner="one") == []
    made.recorded("c", "two", state(table__t={"epoch": "2/y/0"}, table__u={"epoch": "2/y/0"}))
    assert "others have taken over (6)" in of(made, seen(DATA), seen(DATA, commits=[mark(T)]), owner="one")[0]


def test_a_write_where_somebody_said_no_is_noticed() -> None:
    """Be it ever so right."""
    wrong = of(told(commit=None), seen(DATA), seen(DATA, GONE), [KEY], silent={"t"})
    assert "said no" in wrong[0]


def state(**columns: dict[str, object]) -> frozenset[Cell]:
    """Rows of the state table, with ``/`` for ``__``; a text as it is, else JSON."""
    return frozenset(
        Cell(
            row.replace("__", "/").encode(),
            b"s",
            column.encode(),
            1,
            "put",
            value.encode() if isinstance(value, str) else json.dumps(value).encode(),
        )
        for row, cells in columns.items()
        for column, value in cells.items()
    )


def test_records_that_go_back_are_noticed() -> None:
    """An epoch, a mark; and a mark that passes a hold."""
    made = Judge()
    made.recorded("a", "one", state(table__t={"epoch": "3/x/0"}, history__t={"mark": {"mark": 500}}))
    assert made.wrong == []
    made.recorded("b", "one", state(table__t={"epoch": "2/x/0"}, history__t={"mark": {"mark": 450}}))
    assert [" went from " in line and "back to" in line for line in made.wrong] == [True, True]
    made = Judge()
    made.held["t"].append(400)
    made.recorded("c", "one", state(history__t={"mark": {"mark": 500}}))
    assert "passed the hold 400" in made.wrong[0]


def test_what_is_put_back_beside_a_run_that_removes_is_noticed() -> None:
    """Where it removes, and no longer than it does."""
    made = told()
    for removing, other, says in (({}, {"gc": 1}, 0), ({"gc": 1}, {}, 1), ({}, {}, 1)):
        claims = {"t": removing, "u": other}
        made.recorded("a", "gc", state(**{f"history__{t}": {"intended": {"removing": c}} for t, c in claims.items()}))
        made.put_back_beside("here", seen(), seen(DATA))
        made.put_back_beside("here", seen(DATA), seen(DATA))
        assert len(made.wrong) == says
    assert made.wrong == ["here: it put back into t, of which ['gc'] remove history (7)"]


def test_an_epoch_that_vanishes_and_begins_anew_is_noticed() -> None:
    """But for a table that was dropped for good: one of its name begins anew by right."""
    made = Judge()
    made.recorded("a", "one", state(table__t={"epoch": "3/x/0"}))
    made.recorded("b", "one", state())
    made.recorded("c", "two", state(table__t={"epoch": "1/y/0"}))
    assert ["from 3 back to 1" in each for each in made.wrong] == [True]
    made.wrong.clear()
    made.dropped("t")
    made.recorded("d", "three", state(table__t={"epoch": "1/z/0"}))
    assert made.wrong == []


def test_a_record_of_a_run_that_was_overtaken_is_noticed() -> None:
    """Who took the table over last may record; whoever had it before may not."""
    made = Judge()
    made.recorded("a", "one", state(table__t={"epoch": "1/x/0"}))
    made.recorded("b", "two", state(table__t={"epoch": "2/y/0"}))
    made.recorded("c", "two", state(table__t={"epoch": "2/y/0", "fact/-": {"run": "two"}}))
    assert made.wrong == []
    made.recorded("d", "one", state(table__t={"epoch": "2/y/0", "fact/-": {"run": "one"}}))
    assert "one recorded of t, which two took over" in made.wrong[0]


def test_a_write_to_a_table_that_another_run_took_over_is_noticed() -> None:
    """Of a run that writes under its table's epoch, whatever it writes; one that has none writes where it may."""
    made = told()
    made.recorded("a", "one", state(table__t={"epoch": "1/x/0"}))
    change = seen(DATA, commits=[entry(T, 100)]), seen(DATA, SHADOW, commits=[entry(T, 100)])
    assert of(made, *change, owner="one") == []
    made.recorded("b", "two", state(table__t={"epoch": "2/y/0"}))
    assert of(made, *change) == []
    assert "t was written to, which two took over (6)" in of(made, *change, owner="one")[0]


@pytest.mark.parametrize(("bound", "watermark"), [(T, 0), (0, T)])
def test_a_bound_or_a_watermark_that_says_too_much_is_noticed(bound: int, watermark: int) -> None:
    """A commit at or below it lacks its shadow cell; of an orphan neither says anything."""
    regions = [{"start": "", "stop": "", "watermark": watermark}]
    records = state(bound__1={"value": {"value": bound}}, watermarks__t={"value": {"regions": regions}})
    for commit, wrong in ((TC, 1), (None, 0)):
        made = told(commit=commit)
        made.recorded("a", "one", records)
        made.published("b", seen(DATA))
        assert len(made.wrong) == wrong, made.wrong
    made = told()
    made.recorded("a", "one", records)
    made.published("b", seen(DATA, SHADOW))
    assert made.wrong == []


def test_what_came_back_is_left_out_where_a_run_cannot_know_of_it_and_nowhere_else() -> None:
    """What it publishes speaks of all other tables; what it has cleaned are all others. A table that came back before
    it looked which there are it knows.
    """
    records = state(bound__1={"value": {"value": T}})
    made = told()
    made.recorded("a", "one", records)
    made.published("b", seen(DATA), {"t"})
    assert made.wrong == []
    made.published("c", seen(DATA), {"another"})
    assert "lacks its shadow cell" in made.wrong[0]
    made.came_back = {"t", "u", "w"}
    made.cleaned({"t", "u"}, {"u"})
    assert made.came_back == {"u", "w"}
    actor = Actor(SimpleNamespace(), Run(1, "orphan_cleanup", ()), "run-1", ())  # type: ignore[arg-type]
    listed = str(Table.A)
    for step, left in (
        ("state.create", {"t", listed}),
        (f"commit_counts.{COUNTED}", {"t"}),
        ("oracle.record_low_watermark", set()),
    ):
        actor.came_back_since |= {"t", listed}
        actor.did(deadman.Effect(1, "gateway", "mutateRow", "LOWTIDE_STATE", step, False))
        assert actor.came_back_since == left


def test_a_seam_is_at_an_effect_by_its_kind_or_its_step() -> None:
    """At the nth of each; a read is of no kind that effects are of, and has its step behind that."""
    kinds = ("gateway", RECORD, ANY, "read", f"read of {RECORD}")
    seams = tuple(Seam(number, kind, 1, Moment.BEFORE, Act.ON) for number, kind in enumerate(kinds))
    actor = Actor(SimpleNamespace(), Run(9, "orphan_cleanup", (), seams=seams), "run-1", ())  # type: ignore[arg-type]
    found = []
    for number, seam, step in (
        (1, "rows", f"facts.{RECORD}"),
        (0, "read", RECORD),
        (2, "gateway", "x.y"),
        (3, "gateway", f"facts.{RECORD}"),
    ):
        effect = deadman.Effect(number, seam, "", "", step, False)
        actor._met.update(actor_kinds(effect))
        found.append([each.number for each in actor._seams(effect, deadman.Moment.BEFORE)])
    assert found == [[1, 2], [3, 4], [0], []]


@pytest.mark.parametrize("seconds", [0, 60])
def test_what_comes_too_late_for_a_write_that_waits_is_judged_by_nobody(
    monkeypatch: pytest.MonkeyPatch, seconds: int
) -> None:
    """It may be sent by then. What came before any other write is there, however long it took."""
    clock = count(step=seconds)
    monkeypatch.setattr(actors.time, "monotonic", lambda: next(clock))
    actor = Actor(SimpleNamespace(), Run(9, "orphan_cleanup", ()), "run-1", ())  # type: ignore[arg-type]
    monkeypatch.setattr(actor, "_hand_over", lambda _: None)
    for kind, judged in (("connector", True), (TURN, not seconds)):
        actor.before = Seen({}, frozenset(), frozenset())
        actor._have_taken(Seam(0, kind, 1, Moment.BEFORE, Act.ON))
        assert (actor.before is not None) is judged


def test_a_plain_table_takes_one_name_and_no_other_table_is_dropped_in_its_place() -> None:
    """That of the table that comes and goes, under which another is not brought then."""
    tables = Tables(MagicMock(), MagicMock(), MagicMock(), phoenix=False)

    def said(*changes: tuple[Change, Table]) -> list[str | None]:
        return [tables.alter(Alter(0, change, table), written=False) for change, table in changes]

    assert said((Change.PLAIN, Table.C), (Change.DROP, Table.B)) == [None, None]
    assert tables.there == {Table.A}
    taken = (Change.MAKE, Table.C), (Change.COPY, Table.C), (Change.RENAME, Table.A)
    assert said(*taken) == ["the name is a plain one's"] * 3
    assert said((Change.MAKE, Table.B), (Change.DROP, Table.C), (Change.MAKE, Table.C)) == [None] * 3
    assert tables.there == set(Table)


def test_readers_are_excused_until_they_are_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    """From when a server that they ask was killed on; while one is dead no answer ends that, and the gateway's death is
    none of theirs.
    """
    monkeypatch.setattr(striking.disks, "driver", lambda _: None)
    stack = SimpleNamespace(kill=lambda _: None, up=lambda: None, region_servers=("rs-1", "rs-2"))
    strikes = Strikes(SimpleNamespace(stack=stack, spark=None, gateway=None, servers=None))  # type: ignore[arg-type]
    strikes.strike(Nemesis(0, Kind.GATEWAY))
    assert not strikes.shaken
    strikes.strike(Nemesis(1, Kind.SERVER, lasts=2))
    strikes.heard()
    assert strikes.shaken
    strikes.put_back(Kind.SERVER)
    assert strikes.shaken
    strikes.heard()
    assert not strikes.shaken


def test_a_clock_is_wrong_from_a_minute_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Either way, until it is put right."""
    monkeypatch.setattr(striking.disks, "driver", lambda _: None)
    strikes = Strikes(SimpleNamespace(spark=None, gateway=None, servers=None))  # type: ignore[arg-type]
    found = []
    for size in (20, -600, 86_400):
        strikes.strike(Nemesis(0, Kind.CLOCK, size=size))
        found.append(strikes.clock_off)
    strikes.put_back(Kind.CLOCK)
    assert (found, strikes.clock_off) == ([False, True, True], False)


@pytest.mark.parametrize("steps", [3, 10**9])
def test_tasks_of_a_run_that_is_over_are_waited_for(steps: int) -> None:
    """What they write would be judged as another's. Where they do not end there is no judgement."""
    looks = iter(range(steps))
    executor = SimpleNamespace(numRunningTasks=lambda: int(next(looks, None) is not None))
    tracker = SimpleNamespace(getExecutorInfos=lambda: [executor])
    context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: SimpleNamespace(statusTracker=lambda: tracker)))
    lab: Any = SimpleNamespace(spark=SimpleNamespace(sparkContext=context))
    if steps == 3:
        Laboratory.settle(lab)
        assert next(looks, None) is None
    else:
        with pytest.raises(RuntimeError, match="1 tasks of Spark's are still at work 0 s after"):
            Laboratory.settle(lab, within=0.1)


def test_a_reader_that_fails_is_noticed() -> None:
    """But for one that asked a server that was killed: its regions are nowhere for a while."""
    made = Judge()
    made.read_failed("x", "WorkloadError: away", shaken=True)
    assert (made.wrong, made.counts["reads that failed"]) == ([], 1)
    made.read_failed("x", "WorkloadError: away", shaken=False)
    assert "a reader failed, and all servers were there: WorkloadError: away (9)" in made.wrong[0]


def test_a_bound_above_the_low_watermark_is_noticed() -> None:
    """Whatever the tables have."""
    made = Judge()
    made.recorded("a", "one", state(bound__1={"value": {"value": W + 50}}))
    made.published("b", seen())
    assert "above the low watermark" in made.wrong[0]


def test_a_reader_is_judged_by_what_clients_did() -> None:
    """Shown is what was committed before the read point, of a column the highest version, unless it or its family is
    deleted; columns of torn transactions are left out, tables that came back are not judged.
    """
    made = told()
    made.read("x", "t", TC + 1, {Q: b"v"})
    made.read("x", "t", TC, {})
    assert (made.wrong, made.counts["reads"]) == ([], 2)
    made.read("x", "t", TC + 1, {})
    made.read("x", "t", TC, {Q: b"v"})
    assert len(made.wrong) == 2
    made.came_back.add("t")
    made.read("x", "t", TC + 1, {})
    assert len(made.wrong) == 2


def test_what_omids_own_compactor_was_at_is_judged_from_there_on() -> None:
    """Of a reader before, and of what is left for it at the end, nothing is said; ``asOf`` had to be refused."""
    made = told()
    made.compacted("t", T)
    assert made.kept("t") == TC + 1
    made.read("x", "t", TC, {Q: b"gone"})
    assert made.wrong == []
    made.read("x", "t", TC + 1, {})
    assert len(made.wrong) == 1
    made.read_as_of("x", "t", TC + 1, {Q: b"v"}, mark=-1)
    assert "Omid's own compactor is on it" in made.wrong[1]
    made = told()
    made.compacted("t", T - 50)
    assert made.kept("t") == 0, "nothing that was there committed"


def test_a_copy_has_what_the_snapshot_has() -> None:
    """Where the HBase snapshot tells who committed, and whoever was under way then is over now."""
    made = judge.History()
    cells = [["t", "r", "a", "q", 0, "put", "v"]]
    made.read(json.dumps({"event": "begin", "start": T}))
    made.read(json.dumps({"event": "cells", "start": T, "cells": cells}))
    assert not made.restorable("t")
    made.kept("t")
    assert (made.restorable("t"), made.copyable("t")) == (True, False)
    made.read(json.dumps({"event": "end", "start": T, "commit": None, "crash": 1}))
    assert made.unanswered == {T}
    assert made.copyable("t")
    made.copied("t", "u")
    assert made.tables["u"] == made.ever["u"] == {(*Q, T): b"v"}
    assert not made.loadable("t", frozenset([DATA]))
    made.emptied("t")
    assert made.loadable("t", frozenset())
    made.loaded("t")
    assert made.tables["t"] == made.tables["u"]
    made.committed(T, TC)
    assert not made.restorable("t")


def test_nothing_is_loaded_where_something_that_was_committed_has_gone() -> None:
    """It may have hidden what would come."""
    made = told().history
    made.kept("t")
    made.emptied("t")
    made.read(json.dumps({"event": "cells", "start": T + 50, "cells": [["t", "r", "a", "q", 0, "put", ""]]}))
    assert made.loadable("t", frozenset())
    made.committed(T + 50, TC + 50)
    assert not made.loadable("t", frozenset())
    assert made.loadable("t", frozenset([DATA._replace(timestamp=T + 50)]))


def test_what_was_under_way_comes_back_where_it_is_left_to_a_person_and_nowhere_else() -> None:
    """Who began before what was cleaned of the table, or, under another name, before the prune bound; who is under way
    still would not complete a copy. Of who committed nothing tells then.
    """
    made = Judge()
    history = made.history
    history.read(json.dumps({"event": "begin", "start": T}))
    history.read(json.dumps({"event": "cells", "start": T, "cells": [["t", "r", "a", "q", 0, "put", "v"]]}))
    history.kept("t")
    assert history.left_to_a_person("t"), "it never committed"
    history.committed(T, TC)
    assert (history.restorable("t"), history.left_to_a_person("t")) == (False, False)
    made.cleaned_up_to(T, {"t"}, {"t"})
    made.cleaned_up_to(T - 50, {"t"}, ())
    assert not history.left_to_a_person("t")
    made.cleaned_up_to(T, {"t"}, ())
    made.cleaned_up_to(T - 50, {"t"}, ())
    assert history.left_to_a_person("t")
    assert not history.left_to_a_person_elsewhere("t")
    history.pruned = T
    assert history.left_to_a_person_elsewhere("t")
    history.begun.add(T + 50)
    history.kept("t")
    assert not history.left_to_a_person_elsewhere("t")
    history.snapshots["t"] = (dict(history.tables["t"]), {T})
    assert not history.untold
    history.restored("t")
    assert history.untold == history.torn == {T}
    history.emptied("t")
    assert not history.left_to_a_person("t"), "nothing of it counts as cleaned any more"


@pytest.mark.parametrize(
    ("changes", "now", "came_back", "wrong"),
    [
        ({}, DATA, (), True),
        ({}, SHADOW, (), False),
        ({}, DATA, {"t"}, False),
        ({"run": "another"}, DATA, (), False),
        ({"start": b"s".hex()}, DATA, (), False),
        ({"stop": b"r".hex()}, DATA, (), False),
        ({"families": ["b"]}, DATA, (), False),
        ({"read": [[0, T], [T + 1, W]]}, DATA, (), False),
    ],
)
def test_what_is_recorded_and_was_left_undone_is_noticed(
    changes: dict[str, Any], now: Cell, came_back: Sequence[str], wrong: bool
) -> None:
    """A cell that lacked its shadow cell when the run began, in what the run says that it has read and done."""
    fact = {"run": "one", "start": "", "stop": "", "families": ["a"], "read": [[0, W]]} | changes
    made = told()
    made.recorded("a", "one", state(table__t={"epoch": "1/x/0", "fact/-": fact}))
    made.done("b", "one", seen(DATA), seen(DATA, now), came_back)
    assert ["was left as it was" in line for line in made.wrong] == [True] * wrong
    made.recorded("c", "one", state(table__t={"epoch": "1/x/0", "fact/-": fact}))
    made.wrong.clear()
    made.done("d", "one", seen(DATA), seen(DATA), ())
    assert made.wrong == [], "it was recorded before"


@pytest.mark.parametrize(
    ("was", "now", "wrong"), [(b"\x00\x01", b"\x00\x01", 1), (b"\x00\x01", TC, 0), (TC, b"\x00", 0)]
)
def test_a_range_that_is_recorded_with_a_shadow_cell_of_no_known_form_is_noticed(
    was: bytes | int, now: bytes | int, wrong: int
) -> None:
    """Not where somebody has set it right meanwhile, or it was right when the run began."""

    def shadowed(value: bytes | int) -> Seen:
        return seen(DATA, SHADOW._replace(value=value if isinstance(value, bytes) else value.to_bytes(8, "big")))

    made = told()
    fact = {"run": "one", "start": "", "stop": "", "families": ["a"], "read": [[0, W]]}
    made.recorded("a", "one", state(table__t={"epoch": "1/x/0", "fact/-": fact}))
    made.done("b", "one", shadowed(was), shadowed(now), ())
    assert ["no form that is known, and its range is recorded (8)" in line for line in made.wrong] == [True] * wrong


def test_what_goes_by_what_a_server_may_lose_is_noticed() -> None:
    """It is in files before it is read, and before something is done or recorded."""
    made = told()
    for flushes in (2, 1, 3):
        made.went_by("here", "t", flushes)
    assert made.wrong == ["here: t was flushed 1 times, and its servers may lose what was gone by (3)"]


def test_a_run_that_writes_by_a_wrong_clock_is_noticed() -> None:
    """Whatever it writes, right or not."""
    made = told()
    made.written_by_a_wrong_clock("x", seen(DATA), seen(DATA))
    assert made.wrong == []
    made.written_by_a_wrong_clock("x", seen(DATA, commits=[entry(T, 100)]), seen(DATA, SHADOW, commits=[entry(T, 100)]))
    assert "clock of the run's machine is off" in made.wrong[0]
    made.written_by_a_wrong_clock("x", seen(DATA, commits=[entry(T, 100)]), seen(DATA))
    assert len(made.wrong) == 2


def test_a_read_as_of_before_the_mark_had_to_be_refused() -> None:
    """However right what it gave."""
    made = told()
    made.read_as_of("x", "t", TC + 1, {Q: b"v"}, mark=TC + 1)
    assert made.wrong == []
    made.read_as_of("x", "t", TC + 1, {Q: b"v"}, mark=TC + 2)
    assert "the mark is" in made.wrong[0]


def test_what_is_left_at_the_end_is_noticed() -> None:
    """An orphan, a commit without shadow cell, a commit that is gone, an entry at or below the bound."""
    for made, there in ((told(commit=None), seen(DATA)), (told(), seen(DATA)), (told(), seen())):
        made.at_the_end(there)
        assert made.wrong
    made = told()
    made.recorded("a", "one", state(bound__1={"value": {"value": T}}))
    made.at_the_end(seen(DATA, SHADOW, commits=[entry(T, 100)]))
    assert "at or below the bound" in made.wrong[0]
    made = told()
    made.at_the_end(seen(DATA, SHADOW))
    assert made.wrong == []


def test_a_bound_that_stays_behind_at_the_end_is_noticed() -> None:
    """But for tables that others have on the store."""
    made = Judge()
    made.came_up(T, T, ())
    made.came_up(0, T, {"others"})
    assert made.wrong == []
    made.came_up(T - 1, T, ())
    assert "nothing is pruned" in made.wrong[0]


def test_a_run_that_ends_in_an_error_of_its_own_is_noticed() -> None:
    """One that says why does not count, one that does not say or did not expect it does."""
    made = Judge()
    made.ended("x", 1, {"problems": ["the store says no"], "tables": []})
    assert made.wrong == []
    made.ended("x", 1, {"problems": [], "tables": []})
    made.ended("x", 1, {"problems": [], "tables": [{"problems": ["unexpected KeyError: 1"]}]})
    assert len(made.wrong) == 2


def test_a_run_that_does_more_than_was_approved_is_noticed() -> None:
    """Of anything that it writes."""
    made = Judge()
    made.held_to("x", {"healed": 1, "deleted": 0, "cells_read": 9}, {"healed": 1, "deleted": 2})
    assert made.wrong == []
    made.held_to("x", {"healed": 1, "deleted": 3}, {"healed": 0, "deleted": 2})
    assert [line.split()[1:3] for line in made.wrong] == [["1", "healed,"], ["3", "deleted,"]]


def test_what_was_put_aside_lately_stays() -> None:
    """What is old may go, but where somebody puts it back; what came to it later may not."""
    old, young, other = ("one", "a/1.parquet"), ("one", "a/2.parquet"), ("two", "a/1.parquet")
    found = Judge()
    found.aside("here", {old, other}, [])
    found.is_old()
    found.aside("here", {old, young, other}, [])
    found.aside("here", {old, young}, [])
    assert found.wrong == []
    found.aside("here", {young}, ["one"])
    assert found.wrong == ["here: a/1.parquet of one went, and somebody puts it back (7)"]
    found.aside("here", set(), [])
    assert found.wrong[1:] == ["here: a/2.parquet of one went, and was put aside lately (7)"]


def test_what_no_list_names_is_not_aside(tmp_path: Path) -> None:
    """A file without a list, one that is cut short, and whatever only half of a list names."""
    columns: dict[str, list[Any]] = {"row": [b"r"], "family": [b"a"], "qualifier": [b"q"], "timestamp": [T]}
    file, listed = tmp_path / "one.parquet", tmp_path / "_lowtide-list-one.json"
    parquet.write_table(pyarrow.table(columns), file)
    whole = json.dumps({"files": {file.name: file.stat().st_size, "gone.parquet": 1}})
    (tmp_path / f"{listed.name}.new").write_text(whole)
    assert listed_aside(tmp_path / "none") == listed_aside(tmp_path) == set()
    for text, found in ((whole, {KEY}), (whole[:-9], set())):
        listed.write_text(text)
        assert listed_aside(tmp_path) == found
    listed.write_text(json.dumps({"files": {file.name: file.stat().st_size + 1}}))
    assert listed_aside(tmp_path) == set()


def test_a_run_that_says_that_it_cannot_put_aside_is_noticed() -> None:
    """Where it can."""
    found = Judge()
    found.could_put_aside("here", "table a is paused\nand more")
    assert found.wrong == []
    found.could_put_aside("here", "the sideline x cannot be written, so nothing goes")
    assert found.wrong == ["here: the sideline x cannot be written, so nothing goes, and it can (7)"]


# -- what a reader is shown


def test_the_highest_version_that_was_committed_before_counts() -> None:
    """By its own timestamp, not by that of its commit."""
    cells = {(*Q, 100): b"a", (*Q, 201): b"b"}
    commits = {100: 350, 200: 300}
    assert judge.shown(cells, commits, 300) == {}
    assert judge.shown(cells, commits, 301) == {Q: b"b"}
    assert judge.shown(cells, commits, 400) == {Q: b"b"}


def test_tombstones_hide() -> None:
    """One of a column hides it; one of a family hides what began before it committed."""
    family = (b"r", b"a", b"")
    assert judge.shown({(*Q, 100): b"a", (*Q, 200): b""}, {100: 150, 200: 250}, 300) == {}
    cells = {(*Q, 100): b"a", (*family, 200): b"", (*Q, 220): b"b", (*Q, 350): b"c"}
    assert judge.shown({k: cells[k] for k in list(cells)[:3]}, {100: 150, 200: 300}, 400) == {}
    commits = {100: 150, 200: 300, 350: 400}
    assert judge.shown(cells, commits, 300) == {Q: b"a"}
    assert judge.shown(cells, commits, 401) == {Q: b"c"}


_WRITES = st.lists(
    st.tuples(
        st.sampled_from(["x", "y"]), st.sampled_from(["", "p", "q"]), st.integers(0, 2), st.sampled_from(["", "v"])
    ),
    min_size=1,
    max_size=4,
)


@given(st.lists(st.tuples(_WRITES, st.booleans(), st.integers(1, 400)), min_size=1, max_size=6))
def test_the_judge_and_the_model_of_the_workloads_agree(transactions: list[tuple[list[Any], bool, int]]) -> None:
    """Two that were written apart show the same at every read point."""
    made, known = judge.History(), []
    for number, (writes, committed, later) in enumerate(transactions, 1):
        start = 100 * number
        commit = start + 50 * later + number if committed else None
        cells = [["t", row, "a", q, k, "put", "" if q == "" else f"{value and number}"] for row, q, k, value in writes]
        made.read(json.dumps({"event": "begin", "start": start}))
        made.read(json.dumps({"event": "cells", "start": start, "cells": cells}))
        made.read(json.dumps({"event": "end", "start": start, "commit": commit}))
        known.append(Transaction(start, commit, "", None, None, "", "", tuple(map(cell_from_json, cells))))
    model = Model(known)
    for point in {1, 10**6, *(t.commit + d for t in known if t.commit for d in (0, 1))}:
        assert judge.shown(made.tables["t"], made.commits, point) == model.shown_at("t", point)


def test_delete_markers_hide() -> None:
    """One version, a column up to it, a family up to it."""
    other = Cell(*Q, T + 50, "put", b"w")
    assert judge.standing([DATA, other, GONE]) == {(*Q, T + 50): b"w"}
    assert judge.standing([DATA, other, GONE._replace(kind="delete_column", timestamp=T + 50)]) == {}
    assert judge.standing([DATA, other, Cell(b"r", b"a", b"", T, "delete_family", b"")]) == {(*Q, T + 50): b"w"}


def test_the_commit_table_is_read_as_omid_writes_it() -> None:
    """Entries, marks, both; other rows are nobody's."""
    raw = frozenset([LOW, entry(T, 100), entry(T + 50, 50), mark(T + 50), mark(T + 100)])
    assert judge.commit_entries(raw) == {
        T: Entry(TC, False),
        T + 50: Entry(T + 100, True),
        T + 100: Entry(None, True),
    }
    assert judge.low_watermark(raw) == W


# -- what is compared


def test_timestamps_are_counted_from_the_oracle_that_gave_them() -> None:
    """An oracle that is started again goes on somewhere above: cells of two times of a plan are the same all the
    same, and of two oracles of one plan never.
    """

    def cells(*origins: int) -> list[tuple[Any, ...]]:
        lab: Any = object.__new__(Laboratory)
        lab.origins = list(origins)
        stamps = [origin + distance for origin in origins for distance in (0, 50)]
        return lab.from_origin(frozenset(Cell(*Q, stamp, "put", b"v") for stamp in stamps))

    assert cells(1000, 70_000) == cells(2000, 900_000)
    assert len({repr(cell) for cell in cells(1000, 70_000)}) == 4
    assert cells(1000) != cells(1000, 2000)


def test_timestamps_of_the_worlds_clock_are_numbered() -> None:
    """Between two transactions there is some time, never the same: it does not count, but checkpoints do, and who was
    first.
    """

    def cells(*starts: int) -> list[tuple[Any, ...]]:
        lab: Any = object.__new__(Laboratory)
        lab.origins = [1000]
        stamps = [start + checkpoint for start in starts for checkpoint in (0, 1)]
        values = {stamp: b"%d" % nth for nth, stamp in enumerate(stamps)}
        return lab.from_origin(frozenset(Cell(*Q, stamp, "put", values[stamp]) for stamp in stamps), starts)

    assert cells(2000, 70_000) == cells(5050, 900_000)
    assert len({repr(cell) for cell in cells(2000, 70_000)}) == 4
    assert cells(2000, 70_000) != cells(70_000, 2000)

    def commits(start: int, commit: int) -> list[tuple[Any, ...]]:
        lab: Any = object.__new__(Laboratory)
        lab.origins = [1000]
        return lab.from_origin(frozenset([entry(start, commit - start)]), (start, commit))

    assert commits(2000, 2450) == commits(70_000, 71_000)

    def of_nobody(*stamps: int) -> list[tuple[Any, ...]]:
        lab: Any = object.__new__(Laboratory)
        lab.origins = [1000]
        return lab.from_origin(frozenset(Cell(*Q, stamp, "delete_family", b"") for stamp in stamps), [5000])

    assert of_nobody(5049, 5060) == of_nobody(5049, 9000) != of_nobody(5048, 9000)
