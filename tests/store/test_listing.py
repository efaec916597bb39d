"""``--list``: what a dry run names is what the run that acts then writes and removes, cell by cell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from listed import keys, listed, texts
from lowtide_spark.cleaning import acting
from scene import Scene

from lowtide.config import load
from lowtide.lab.workload import OmidClient
from lowtide.values.formats import commit_key, shadow_qualifier
from lowtide.values.keyranges import printable

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]
HOSTILE = (b"\x00\xff\x80", b"<script>alert(1)</script>", b"a|b`c\n", b"r \\x41")


def test_a_list_is_what_the_cleanup_then_does(
    job: Job, scene: Scene, omid: OmidClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Orphans, healed cells and marks, of hostile keys too: the dry run's list, the list of the run that acts, and what
    differs between before and after are one and the same; each line says by which rule, and what that goes by.
    """
    table, other = scene.table(("a", "b")), scene.table()
    orphans = {row: scene.orphan(table, row=row, qualifier=b"q\x00") for row in HOSTILE}
    late, commit = scene.crashed_after_commit(table, row=b"late", family=b"b")
    sibling, proven = scene.committed(other)
    scene.cell(table, sibling, row=b"sibling")
    ready, _ = scene.committed(table, row=b"ready")
    scene.cell(table, 7, row=b"no oracle's")
    omid.advance_watermark()
    named = ("orphan_cleanup", "--table", table, "--list")
    before, marks = scene.data(table), set(omid.commit_table())
    dry = job(*named)
    assert dry.code == 0, dry.problems
    assert (scene.data(table), set(omid.commit_table())) == (before, marks), "a dry run writes nothing to the store"
    printed = capsys.readouterr().out

    done = job(*named, "--execute")
    assert done.code == 0, done.problems
    after = scene.data(table)
    of_table = listed(dry, table)
    assert {x["action"] for x in of_table} == {"heal", "delete"}
    assert keys(of_table, "delete") == texts(before.keys() - after.keys())
    assert {x["transaction"] for x in of_table if x["action"] == "delete"} == set(orphans.values())
    healed = {(row, family, name, at) for row, family, name, at in after.keys() - before.keys()}
    assert texts(
        (r, f, shadow_qualifier(q), t)
        for r, f, q, t in ((b"late", b"b", b"q", late), (b"sibling", b"a", b"q", sibling))
    ) == texts(healed)
    assert keys(of_table, "heal") == {("late", "b", "q", late), ("sibling", "a", "q", sibling)}
    assert not any(x["timestamp"] == ready for x in of_table)
    marked = {x["transaction"] for x in listed(dry) if x["rule"] == "invalidate"}
    assert marked == set(orphans.values()) == {s for s in orphans.values() if s in omid.commit_table()}
    assert {x["row"] for x in listed(dry) if x["rule"] == "invalidate"} == {printable(commit_key(s)) for s in marked}

    def told(outcome: Outcome) -> set[tuple[Any, ...]]:
        return {
            tuple(x[name] for name in ("action", "table", "row", "family", "qualifier", "timestamp", "rule"))
            for x in listed(outcome)
        }

    assert told(done) == told(dry)
    evidence = {x["row"]: x["evidence"] for x in of_table}
    assert evidence["late"] == f"the commit table says that its transaction committed at {commit}"
    assert evidence["sibling"] == f"a shadow cell of its transaction says that it committed at {proven}"
    assert evidence[printable(HOSTILE[0])].startswith("nothing proves that its transaction committed")
    assert all(f'"{printable(row)}" a:q\\x00 at {start}: orphan: ' in printed for row, start in orphans.items())
    assert str(Path(dry.summary["listing"]["folder"])) in printed
    assert "value" not in of_table[0]


def test_a_table_that_fails_in_the_middle_keeps_its_list_and_the_others_theirs(
    job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list is written before what it tells of is done, and one table's failure costs no other its own. Beyond its
    budget a table is listed, though nothing of it goes: whoever is asked to raise the budget wants to know.
    """
    broken, sound = scene.table(), scene.table()
    starts = {table: [scene.orphan(table, row=b"r%d" % n) for n in range(3)] for table in (broken, sound)}
    omid.advance_watermark()
    both = ("orphan_cleanup", "--table", broken, "--table", sound, "--list")
    over = job(*both, "--budget-rows", "2", "--execute")
    assert over.code == 1
    assert {table: {x["timestamp"] for x in listed(over, table)} for table in starts} == {
        t: set(s) for t, s in starts.items()
    }
    everyone = {start for of_table in starts.values() for start in of_table}
    assert {x["transaction"] for x in listed(over) if x["rule"] == "invalidate"} == everyone, "their marks too"
    assert not everyone & omid.commit_table().keys()
    assert all(scene.has(table, s, row=b"r%d" % n) for table, of in starts.items() for n, s in enumerate(of))

    put_aside = acting.put_aside

    def failing(run: Any, table: str, cells: Any, number: int) -> str:
        if table == broken:
            raise OSError("no room")
        return put_aside(run, table, cells, number)

    monkeypatch.setattr(acting, "put_aside", failing)
    done = job(*both, "--execute")
    assert (done.code, "no room" in done.problems) == (1, True)
    assert {x["timestamp"] for x in listed(done, broken)} == set(starts[broken])
    assert {x["timestamp"] for x in listed(done, sound)} == set(starts[sound])
    assert scene.has(broken, starts[broken][0], row=b"r0")
    assert not scene.has(sound, starts[sound][0], row=b"r0")


def test_history_and_pruning_list_what_they_then_remove(
    job: Job, scene: Scene, omid: OmidClient, configure: Callable[..., Path], recorded: Callable[..., int]
) -> None:
    """Replaced versions, tombstones and lone shadow cells with what hid them; commit entries and marks with the
    bound.
    """
    table = scene.table()
    for _ in range(3):
        scene.committed(table, row=HOSTILE[1])
    scene.committed(table, row=b"gone")
    scene.committed(table, row=b"gone", value=b"")
    scene.shadow(table, omid.begin(), omid.begin(), row=b"alone")
    recorded(table)
    config = configure(defaults={"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}})
    gc = ("history_gc", "--table", table, "--list")
    before = scene.data(table)
    dry = job(*gc, config=config)
    assert dry.code == 0, dry.problems
    assert scene.data(table) == before
    done = job(*gc, "--execute", config=config)
    assert done.code == 0, done.problems
    gone = before.keys() - scene.data(table).keys()
    data = {key for key in gone if (*key[:2], shadow_qualifier(key[2]), key[3]) in gone}
    alone = {key for key in gone if key[0] == b"alone"}
    assert keys(listed(dry), "remove") == keys(listed(done), "remove") == texts(data | alone)
    rules = {(x["row"], x["rule"]) for x in listed(dry)}
    assert rules == {
        (printable(HOSTILE[1]), "replaced"),
        ("gone", "replaced"),
        ("gone", "tombstone"),
        ("alone", "lone-shadow"),
    }
    assert all(str(dry.table(table)["mark"]["mark"]) in x["evidence"] for x in listed(dry))

    start, mark = omid.begin(), omid.begin()
    omid.add_commit_entry(start, omid.begin())
    omid.invalidate(mark)
    recorded(table)
    prune = ("commit_table_pruning", "--grace", "0s", "--list")
    name = load(config).omid.commit_table
    entries, cells = omid.commit_table(), scene.data(name)
    dry = job(*prune)
    assert dry.code == 0, dry.problems
    assert omid.commit_table() == entries
    done = job(*prune, "--execute")
    assert done.code == 0, done.problems
    pruned = set(entries) - set(omid.commit_table())
    assert {start, mark} <= pruned
    of_dry = listed(dry)
    pruned_cells = texts(key for key in cells.keys() - scene.data(name).keys() if len(key[0]) == 9)
    assert keys(of_dry, "delete") == pruned_cells
    assert keys(listed(done), "delete") == pruned_cells
    assert {x["transaction"] for x in of_dry} == pruned
    assert all(f"prune bound {dry.summary['bound']}" in x["evidence"] for x in of_dry)
