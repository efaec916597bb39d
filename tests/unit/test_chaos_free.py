"""Chaos among processes, without a store: schedules, zombies' plans, and what the judge of records notices."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.free import schedule, zombies
from tests.chaos.free.judging import judged, never_committed, resumed
from tests.chaos.free.recording import Recorder
from tests.chaos.free.schedule import Fate, Job, Lane
from tests.chaos.judge import Cell, Seen
from tests.chaos.steps import LOSING, Alter, Change

ROOT = Path(__file__).resolve().parents[2]
SEEDS = range(40)


# -- schedules


def test_a_seed_is_one_schedule() -> None:
    """The same each time, another than its neighbour's; every number is there once, and all is due within its time."""
    for seed in SEEDS:
        made = schedule.made(seed, 120)
        assert made == schedule.made(seed, 120)
        assert made.lanes != schedule.made(seed + 1, 120).lanes
        dues = [due for lane in made.lanes.values() for due in lane]
        assert len({due.step.number for due in dues}) == len(dues) == len(str(made).splitlines())
        assert all(0 <= due.at <= 120 for due in dues)


def test_all_seeds_together_have_everything() -> None:
    """Every lane, job, fate and part; every moment that a job has; no change after which nobody could tell."""
    steps = [d.step for seed in SEEDS for lane in schedule.made(seed, 300).lanes.values() for d in lane]
    jobs = [step for step in steps if isinstance(step, Job)]
    assert {(step.run.job, step.fate) for step in jobs} == {(job, fate) for job in schedule.JOBS for fate in Fate}
    assert {(job, schedule.DECIDED[job]) for job in schedule.DECIDED} <= {(s.run.job, s.phase) for s in jobs}
    assert {s.part for s in steps if isinstance(s, schedule.Strike)} == set(schedule.Part)
    changes = {s.change for s in steps if isinstance(s, Alter)}
    assert changes == set(schedule._CHANGES)
    assert not changes & {*LOSING, Change.DISABLE, Change.ENABLE}
    assert {s.killed for s in steps if isinstance(s, schedule.Client)} == {True, False}
    assert any(isinstance(s, schedule.Reset) for s in steps)


def test_without_region_servers_of_their_own_none_is_killed() -> None:
    """Nothing else of the schedule is missing."""
    made = [schedule.made(seed, 300, region_servers=False) for seed in SEEDS]
    parts = {d.step.part for one in made for d in one.lanes[Lane.SERVERS]}  # type: ignore[union-attr]
    assert parts == {schedule.Part.GATEWAY, schedule.Part.ORACLE}


def test_seeds_in_a_row_have_every_case_of_a_zombie() -> None:
    """Each stands still before its first write, or some time after its decision; what is lost meanwhile only before."""
    made = [zombies.made(seed) for seed in range(3 * len(zombies.CASES))]
    last = [one.steps[-1] for one in made]
    assert {(z.job, z.what) for z in last} == set(zombies.CASES)  # type: ignore[union-attr]
    assert {z.delay > 0 for z in last} == {True, False}  # type: ignore[union-attr]
    assert made == [zombies.made(seed) for seed in range(3 * len(zombies.CASES))]
    for one, zombie in zip(made, last, strict=True):
        assert isinstance(zombie, zombies.Zombie)
        numbers = [s.number for s in (*one.steps, *zombie.meanwhile)]
        assert len(set(numbers)) == len(numbers)
        assert max(one.numbers()) == zombie.number == max(numbers), "runs at the end have numbers above it"
        losing = any(isinstance(s, Alter) and s.change in LOSING for s in zombie.meanwhile)
        assert not (losing and zombie.delay)


# -- the judge


def test_the_judge_knows_nothing_of_lowtide() -> None:
    """It imports the standard library, and the baton's judge, which does too."""
    tree = ast.parse((ROOT / "tests" / "chaos" / "free" / "judging.py").read_text())
    modules = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    modules |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    standard = {"__future__", "json", "collections", "collections.abc", "dataclasses", "pathlib", "typing"}
    assert modules == {*standard, "tests.chaos.judge"}


T, TC, W = 1000, 1100, 5000
Q = ("r", "a", "q")
DATA = Cell(b"r", b"a", b"q", T, "put", b"v")
SHADOW = Cell(b"r", b"a", b"\x00\xc2\x80q\xc2\x80", T, "put", TC.to_bytes(8, "big"))
LOW = Cell(b"LOW_WATERMARK", b"LWF", b"LWC", 1, "put", W.to_bytes(8, "big"))
KEY = ["r", "a", "q", T]


def key(start: int) -> bytes:
    return bytes([start % 16]) + start.to_bytes(8, "big")


def entry(start: int, distance: int) -> Cell:
    return Cell(key(start), b"F", b"C", start, "put", bytes([distance]))


MARK = Cell(key(T), b"F", b"IT", T, "put", b"\x00\x00\x00\x01")
JOURNALED = Cell(key(T), b"j", b"C", 1, "put", TC.to_bytes(8, "big"))


def record(row: str, **columns: object) -> list[Cell]:
    return [
        Cell(row.encode(), b"s", name.encode(), 1, "put", (v if isinstance(v, str) else json.dumps(v)).encode())
        for name, v in columns.items()
    ]


class Recorded:
    """A folder, by default of one client that committed one cell at 1100, of one look with its cell and shadow cell,
    and of a last round that ended well.
    """

    def __init__(
        self, folder: Path, *, outcome: str | None = "committed", commit: int | None = TC, over: int = 3
    ) -> None:
        self.folder, self.recorder = folder, Recorder(folder)
        self.number = 0
        events: list[dict[str, Any]] = [
            {"event": "begin", "start": T, "at": 1},
            {"event": "cells", "start": T, "at": 2, "cells": [["chaos_a", *Q, 0, "put", "v"]]},
        ]
        if outcome is not None:
            events.append({"event": "end", "start": T, "at": over, "outcome": outcome, "commit": commit})
        lines = "".join(json.dumps(event) + "\n" for event in events)
        (folder / "clients" / "0.jsonl").write_text(lines + '{"event": "be')
        self.recorder.line("client", 0, log="0.jsonl", seed="x", killed=outcome is None)

    def look(
        self,
        *cells: Cell,
        commits: Sequence[Cell] = (),
        journal: Sequence[Cell] = (),
        state: Sequence[Cell] = (),
    ) -> Recorded:
        self.number += 1
        # Everybody who died, or told an end, did so before the first of these.
        at = 10**15 + self.number
        parts = {
            "CHAOS_STATE": state,
            "OMID_COMMIT_TABLE": [LOW, *commits],
            "chaos_a": cells,
            "chaos_b": (),
            "journal": journal,
        }
        self.recorder.look(self.number, [(name, frozenset(raw), at) for name, raw in parts.items()])
        return self

    def read(self, point: int, cells: Mapping[str, str], **fields: Any) -> Recorded:
        shown = [["r", "a", q, v] for q, v in cells.items()]
        self.recorder.line(
            "read",
            0,
            **{
                "how": "omid",
                "table": "chaos_a",
                "point": point,
                "refused": False,
                "cells": shown,
                "mark_before": -1,
                "mark_after": -1,
                **fields,
            },
        )
        return self

    def run(self, code: int, *problems: str, what: str = "run", **fields: Any) -> Recorded:
        self.recorder.line(what, 0, run="x", job="history_gc", code=code, problems=problems, fate="ends", **fields)
        return self

    def aside(self) -> Recorded:
        self.recorder.line("aside", 0, run="x", table="chaos_a", keys=[KEY])
        return self

    def wrong(self, code: int = 0) -> list[str]:
        self.run(code, *(["it says why"] if code else []), what="last run", round=0)
        self.recorder.line("end", 0)
        self.recorder.close()
        return judged(self.folder).wrong


def test_what_is_right_is_not_wrong(tmp_path: Path) -> None:
    """A commit that is healed and pruned, and shown; a commit whose client was killed; an orphan that goes."""
    healed = Recorded(tmp_path / "a").look(DATA, commits=[entry(T, 100)]).look(DATA, SHADOW, commits=[entry(T, 100)])
    healed.look(DATA, SHADOW, journal=[JOURNALED]).read(TC + 1, {"q": "v"}).read(TC, {}).run(1, "why")
    assert healed.wrong() == []
    killed = Recorded(tmp_path / "b", outcome=None).look(DATA, commits=[entry(T, 100)])
    assert killed.look(DATA, SHADOW, journal=[JOURNALED]).read(TC + 1, {"q": "v"}).wrong() == []
    killed = Recorded(tmp_path / "c", outcome=None).look(DATA, SHADOW).read(TC + 1, {"q": "v"})
    assert killed.wrong() == []
    orphan = Recorded(tmp_path / "d", outcome=None).look(DATA).look(commits=[MARK]).aside().read(TC + 1, {})
    assert orphan.wrong() == []
    # Looked at while the client was about to roll back, or had a request on its way.
    rolled_back = Recorded(tmp_path / "e", outcome="rolled back", commit=None, over=10**15 - 50_000).look(DATA).look()
    assert rolled_back.wrong() == []


UNKNOWN: dict[str, Any] = {"outcome": None}
ROLLED_BACK: dict[str, Any] = {"outcome": "rolled back", "commit": None}
ABORTED: dict[str, Any] = {"outcome": "abandoned", "commit": None}
WHOLE = (DATA, SHADOW)
EARLIER = SHADOW._replace(value=(TC - 50).to_bytes(8, "big"))
FOREIGN = DATA._replace(timestamp=T + 500)


def bound(number: int) -> list[Cell]:
    return record("bound/1", value={"value": number})


def region(watermark: int) -> list[Cell]:
    return record("watermarks/chaos_a", value={"regions": [{"start": "", "stop": "", "watermark": watermark}]})


@pytest.mark.parametrize(
    ("client", "happens", "said"),
    [
        (UNKNOWN, lambda r: r.look(*WHOLE).look(DATA, EARLIER), "committed at [1050, 1100], all of them (2)"),
        (UNKNOWN, lambda r: r.look(*WHOLE).read(TC + 1, {}), "q') is None and was to be b'v' (5)"),
        (UNKNOWN, lambda r: r.look().read(TC + 1, {"q": "v"}), "is b'v' and was to be None (5)"),
        (UNKNOWN, lambda r: r.look(DATA, commits=[entry(T, 100)]).look(DATA), "journal has None (4)"),
        (ABORTED, lambda r: r.look(*WHOLE), "abandoned, has None; the store said [1100] (2)"),
        (ABORTED, lambda r: r.look(journal=[JOURNALED]), "has None; the store said [1100] (2)"),
        ({}, lambda r: r.look(DATA, EARLIER), "has 1100; the store said [1050] (2)"),
        ({}, lambda r: r.look(*WHOLE, commits=[MARK]), "has a mark, and committed at 1100 (2)"),
        ({}, lambda r: r.look(*WHOLE, FOREIGN), "came, and no client wrote it (2)"),
        ({}, lambda r: r.look(*WHOLE).look(SHADOW, DATA._replace(value=b"x")), "has another value (2)"),
        ({}, lambda r: r.look(DATA, state=bound(T)), "lacks its shadow cell: bound 1000, watermark [] (3)"),
        ({}, lambda r: r.look(DATA, state=region(T)), "lacks its shadow cell: bound 0, watermark [1000] (3)"),
        ({}, lambda r: r.look(*WHOLE, state=bound(W + 50)), "is above the low watermark 5000 (3)"),
        (
            {},
            lambda r: r.look(DATA, commits=[entry(T, 100)]).look(DATA, journal=[JOURNALED]),
            "lacks its shadow cell (4)",
        ),
        ({}, lambda r: r.look(*WHOLE, commits=[entry(T, 100)]).look(*WHOLE), "and the journal has None (4)"),
        (ABORTED, lambda r: r.look(commits=[MARK]).look(), "1000: its mark went, and the journal has nothing (4)"),
        ({}, lambda r: r.look(*WHOLE).look(DATA), "went, and its data stands (1)"),
        ({}, lambda r: r.look(*WHOLE).look(SHADOW), "1000, committed, went and is in no sideline (7)"),
        (ABORTED, lambda r: r.look(DATA).look(), "1000, abandoned, went and is in no sideline (7)"),
        (ROLLED_BACK, lambda r: r.look(DATA).look(), "1000, rolled back, went and is in no sideline (7)"),
        (UNKNOWN, lambda r: r.look(DATA).look(), "1000, without an answer, went and is in no sideline (7)"),
        (UNKNOWN, lambda r: r.look(DATA), "has no shadow cell (9)"),
        ({}, lambda r: r.look(), "the mark is -1: "),
        ({}, lambda r: r.look(*WHOLE).read(TC, {"q": "v"}, mark_before=TC), "is b'v' and was to be None (5)"),
        (
            {},
            lambda r: r.look(*WHOLE).read(TC + 1, {"q": "v"}, how="as of", mark_before=TC + 50, mark_after=TC + 50),
            "the mark was 1150, and it was not refused (5)",
        ),
        (
            {},
            lambda r: r.look(*WHOLE).read(TC + 1, {}, how="as of", error="[INTERNAL_ERROR] a bug\nCaused by: Null"),
            "Caused by: Null (9)",
        ),
        ({}, lambda r: r.look(*WHOLE).read(TC + 1, {}, error="WorkloadError: away"), "WorkloadError: away (9)"),
        ({}, lambda r: r.look(*WHOLE).read(TC + 1, {}, mark_after=TC + 2), "1 reads were answered, and none could be"),
        ({}, lambda r: r.look(*WHOLE).run(1), "ended with 1 and does not say why (9)"),
        ({}, lambda r: r.look(*WHOLE).run(1, "unexpected KeyError: 1"), "unexpected KeyError"),
        ({}, lambda r: r.look(*WHOLE).run(1, hung=True), "it never ended (9)"),
        (
            {},
            lambda r: r.look(*WHOLE, state=record("table/chaos_a", epoch="2/x/0")).look(
                *WHOLE, state=record("table/chaos_a", epoch="1/y/0")
            ),
            "the epoch of chaos_a went from 2 back to 1 (6)",
        ),
        (
            {},
            lambda r: r.look(*WHOLE, state=record("history/chaos_a", mark={"mark": 900})).look(
                *WHOLE, state=record("history/chaos_a", mark={"mark": 850})
            ),
            "the history mark of chaos_a went from 900 back to 850 (6)",
        ),
        (
            {},
            lambda r: r.look(*WHOLE, state=bound(900)).look(*WHOLE, state=bound(850)),
            "went from 900 back to 850 (6)",
        ),
        ({}, lambda r: r.look(*WHOLE, commits=[entry(T, 100)], state=bound(T)), "is at or below the bound 1000 (9)"),
    ],
)
def test_what_is_wrong_is_noticed(tmp_path: Path, client: dict[str, Any], happens: Any, said: str) -> None:
    """Each rule by one thing that breaks it, and says so."""
    found = happens(Recorded(tmp_path, **client)).wrong()
    assert any(said in line for line in found), found


def test_jobs_that_fail_at_last_and_a_folder_without_end_are_noticed(tmp_path: Path) -> None:
    """What was not recorded to its end was not right, only not judged."""
    assert "the jobs ended with {0: [1]} (9)" in Recorded(tmp_path / "a").look(*WHOLE).wrong(1)[0]
    cut = Recorded(tmp_path / "b").look(*WHOLE)
    cut.recorder.close()
    assert any("not recorded to its end" in line for line in judged(cut.folder).wrong)


def test_what_a_reset_takes_back_is_not_wrong(tmp_path: Path) -> None:
    """A bound of before it says nothing any more; an epoch and a mark still do."""
    reset = [*bound(850), *record("generation", value={"generation": 1})]
    assert Recorded(tmp_path).look(*WHOLE, state=bound(900)).look(*WHOLE, state=reset).wrong() == []


@pytest.mark.parametrize(
    ("client", "happens", "over"),
    [
        (UNKNOWN, lambda r: r.look(DATA), {T}),
        (ABORTED, lambda r: r.look(DATA, commits=[MARK]), {T}),
        (UNKNOWN, lambda r: r.look(*WHOLE).look(DATA), set()),
        (UNKNOWN, lambda r: r.look(DATA, commits=[entry(T, 100)]).look(DATA), set()),
        (UNKNOWN, lambda r: r.look(DATA, journal=[JOURNALED]).look(DATA), set()),
        ({}, lambda r: r.look(DATA), set()),
    ],
)
def test_who_never_committed_is_known_by_all_that_was_recorded(
    tmp_path: Path, client: dict[str, Any], happens: Any, over: set[int]
) -> None:
    """Of one whose client got no answer whatever has ever said that it committed counts, though it is gone by now."""
    assert never_committed(happens(Recorded(tmp_path, **client)).folder) == over


def test_readers_that_the_mark_has_passed_are_not_judged(tmp_path: Path) -> None:
    """Omid's reader is not refused, and shown what is left; one that failed beside a dead server, or was refused, was
    shown nothing.
    """
    recorded = Recorded(tmp_path).look(*WHOLE).read(TC + 1, {"q": "v"}).read(TC + 1, {}, mark_after=TC + 2)
    recorded.recorder.line("server", 0, part="tso", kind="the oracle")
    recorded.read(TC + 1, {}, how="as of", refused=True).read(TC + 1, {}, error="WorkloadError: away")
    assert recorded.wrong() == []


def test_a_reader_is_excused_by_the_servers_that_it_asks(tmp_path: Path) -> None:
    """Nobody reads through the gateway, and ``asOf`` asks no oracle."""
    for part, how, excused in (("thrift", "omid", False), ("tso", "omid", True), ("tso", "as of", False)):
        recorded = Recorded(tmp_path / f"{part} {how}").look(*WHOLE).read(TC + 1, {"q": "v"})
        recorded.recorder.line("server", 0, part=part, kind="a server")
        assert (recorded.read(TC + 1, {}, how=how, error="Error: away").wrong() == []) is excused


@pytest.mark.parametrize(
    ("step", "how", "error", "excused"),
    [
        ("chaos_a has a region moved (row 2)", "omid", "Region moved to: hostname=a", True),
        ("chaos_a is merged (row 2)", "omid", "Region moved to: hostname=a", True),
        ("chaos_a is flushed (row 2)", "omid", "Region moved to: hostname=a", False),
        ("chaos_b has a region moved (row 2)", "omid", "Region moved to: hostname=a", False),
        ("chaos_a has a region moved (row 2)", "omid", "callTimeout=60000", False),
        ("chaos_a has a region moved (row 2)", "as of", "Region moved to: hostname=a", False),
    ],
)
def test_hbases_client_may_be_led_astray(tmp_path: Path, step: str, how: str, error: str, excused: bool) -> None:
    """It goes where a region was to be and back until its patience ends; of its own table, and of no job's."""
    recorded = Recorded(tmp_path).look(*WHOLE).read(TC + 1, {"q": "v"})
    recorded.recorder.line("step", 0, step=step)
    assert (recorded.read(TC + 1, {}, how=how, error=f"Error: {error}").wrong() == []) is excused


# -- zombies


def resumed_with(
    *cells: Cell, then: Sequence[Cell], now: Sequence[Cell] | None = None, by_epoch: bool = True, **named: Any
) -> list[str]:
    """A run whose table had an orphan when it went on, and now has these cells."""

    def seen(*of: Cell) -> Seen:
        return Seen({"t": frozenset(of)}, frozenset(named.pop("commits", [LOW])), frozenset())

    stop = record("table/t", epoch="1/x/0")
    states = tuple(frozenset(state) for state in (stop, then, then if now is None else now))
    options: dict[str, Any] = {"came_back": (), "writing": False, **named}
    return resumed("here", (seen(DATA), seen(*cells)), states, by_epoch=by_epoch, **options)  # type: ignore[arg-type]


MINE, ANOTHERS = record("table/t", epoch="1/x/0"), record("table/t", epoch="2/y/0")
AFTER_RESET = [*ANOTHERS, *record("generation", value={"generation": 1})]


def test_a_zombie_may_do_what_is_still_its_to_do() -> None:
    """Its table is its own still; or it has none, and acts by what the store has."""
    assert resumed_with(then=MINE) == []
    assert resumed_with(then=MINE, now=[*MINE, *record("table/t", **{"fact/-": {"run": "z"}})]) == []
    assert resumed_with(then=ANOTHERS, by_epoch=False) == []
    assert resumed_with(DATA, then=ANOTHERS) == []


def test_a_zombie_that_does_more_is_noticed() -> None:
    """A write to a table that another run took over, that came back, or after a reset; a record of one."""
    assert resumed_with(then=ANOTHERS) == ["here: t was written to, and it had another owner or was another (6)"]
    assert "t was written to" in resumed_with(then=MINE, came_back={"t"})[0]
    assert "t was written to" in resumed_with(then=AFTER_RESET, by_epoch=False)[0]
    fact = record("table/t", **{"fact/-": {"run": "z"}})
    for then in (ANOTHERS, AFTER_RESET):
        for writing in (False, True):
            wrong = resumed_with(DATA, then=then, now=[*then, *fact], writing=writing)
            assert ["the record table/t was written" in line for line in wrong] == [True]
    marked = record("history/t", mark={"mark": 5})
    assert "history/t" in resumed_with(DATA, then=AFTER_RESET, now=[*AFTER_RESET, *marked], by_epoch=False)[0]
    assert resumed_with(then=ANOTHERS, writing=True) == [], "one batch was on its way"
