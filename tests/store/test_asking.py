"""``lowtide why`` and ``lowtide sideline``: what is told of single cells is what the jobs do, and did."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Outcome
from scene import Scene

from lowtide.lab.workload import OmidClient
from lowtide.values.formats import shadow_qualifier
from lowtide.values.keyranges import printable

pytestmark = pytest.mark.usefixtures("swept")
Job = Callable[..., Outcome]
ROW = b"<r>\x00\xff|"


@pytest.fixture
def ask(job: Job, tmp_path: Path) -> Callable[..., Any]:
    """Run a job that answers, and return the answer."""

    def run(name: str, *arguments: str, config: Path | None = None) -> Any:
        file = tmp_path / "answer.json"
        file.unlink(missing_ok=True)
        outcome = job(name, *arguments, "--json", str(file), config=config)
        assert outcome.code == 0, outcome.problems
        return json.loads(file.read_text())

    return run


def of(table: str, row: bytes = ROW) -> tuple[str, ...]:
    """The arguments of `lowtide why`."""
    return "--table", table, f"--row={printable(row)}"


def test_each_kind_of_cell_is_told_before_and_after(
    job: Job, ask: Callable[..., Any], scene: Scene, omid: OmidClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """What it is, what becomes of it, by which rule and proof; then, of the same row, what became of it, by which run;
    and after a restore it is there again. All of it is what the jobs do.
    """
    table, other = scene.table(), scene.table()

    def at(qualifier: bytes) -> dict[str, bytes]:
        return {"row": ROW, "qualifier": qualifier}

    committed, commit = scene.committed(table, **at(b"committed"))
    orphan = scene.orphan(table, **at(b"orphan"))
    invalid = scene.orphan(table, **at(b"invalid"))
    omid.invalidate(invalid)
    late, proven = scene.crashed_after_commit(table, **at(b"late"))
    sibling, shown = scene.committed(other)
    scene.cell(table, sibling, **at(b"sibling"))
    scene.committed(table, **at(b"tombstone"), value=b"")
    lone = omid.begin()
    scene.shadow(table, lone, omid.begin(), **at(b"lone"))
    scene.cell(table, 7, **at(b"foreign"))
    scene.orphan(table, row=b"another row")
    omid.advance_watermark()
    young = scene.orphan(table, **at(b"young"))
    before = scene.data(table), set(omid.commit_table())

    told = ask("why", *of(table))
    assert (scene.data(table), set(omid.commit_table())) == before, "nothing is written"
    assert (told["table"], told["row"], told["removed"]) == (table, printable(ROW), [])
    cells = {c["qualifier"]: c for c in told["cells"]}
    assert {q: c["transaction"] for q, c in cells.items() if q not in ("tombstone", "foreign")} == {
        "committed": committed,
        "orphan": orphan,
        "invalid": invalid,
        "late": late,
        "sibling": sibling,
        "lone": lone,
        "young": young,
    }
    assert cells["committed"]["what"] == f"a cell, committed at {commit}, with its shadow cell"
    assert "an orphan: a cell whose transaction never committed" in cells["orphan"]["what"]
    assert "and invalidated" in cells["invalid"]["what"]
    assert cells["late"]["what"] == f"a cell, committed at {proven}, without its shadow cell"
    assert "a tombstone, committed" in cells["tombstone"]["what"]
    assert "a shadow cell without its data cell" in cells["lone"]["what"]
    assert "above the low watermark" in cells["young"]["what"]
    assert "written by no oracle" in cells["foreign"]["what"]
    expected = {"orphan": "orphan", "invalid": "orphan", "late": "heal", "sibling": "heal"}
    assert {q: c["rule"] for q, c in cells.items() if c["rule"]} == expected
    assert cells["late"]["evidence"] == f"the commit table says that its transaction committed at {proven}"
    assert cells["sibling"]["evidence"] == f"a shadow cell of its transaction says that it committed at {shown}"
    assert cells["invalid"]["evidence"] == "its transaction bears an invalidation mark in the commit table"
    assert told["transactions"][str(orphan)].startswith("never committed, as far as is seen: nothing proves")

    done = job("orphan_cleanup", "--table", table, "--execute", "--list", "--run-id", "cleans")
    assert done.code == 0, done.problems
    told = ask("why", *of(table))
    there = {c["qualifier"]: c for c in told["cells"] if "delete marker" not in c["what"]}
    assert set(there) == set(cells) - {"orphan", "invalid"}
    went = {c["qualifier"]: c for c in told["removed"]}
    assert {q: (c["transaction"], c["rule"]) for q, c in went.items()} == {
        "orphan": (orphan, "orphan"),
        "invalid": (invalid, "orphan"),
    }
    assert went["orphan"]["evidence"].startswith("nothing proved that its transaction committed")
    assert went["invalid"]["evidence"] == cells["invalid"]["evidence"]
    assert "put aside by orphan_cleanup run cleans on " in went["orphan"]["becomes"]
    assert f"`lowtide restore cleans --table {table} --execute`" in went["orphan"]["becomes"]
    assert there["late"]["what"] == f"a cell, committed at {proven}, with its shadow cell"
    assert {c["qualifier"] for c in told["cells"] if "HBase's delete marker" in c["what"]} >= {"orphan", "invalid"}
    assert any("late at " in d and "run cleans" in d for d in told["done"])
    assert any("recorded as cleaned" in n and "run cleans" in n for n in told["notes"])
    assert told["transactions"][str(orphan)].startswith("never committed: its transaction bears an invalidation mark")

    listed = ask("sideline", "--table", table)["runs"]
    assert [(r["run"], r["job"], r["cells"], r["lost"]) for r in listed] == [("cleans", "orphan_cleanup", 3, [])]
    assert listed[0]["bytes"] > 0
    found = ask("sideline", "--show", "cleans", f"--row={printable(ROW)}")
    assert (found["total"], {c["qualifier"] for c in found["cells"]}) == (2, {"orphan", "invalid"})
    assert "value" not in found["cells"][0]
    first = ask("sideline", "--show", "cleans", "--first", "1")
    assert (first["total"], len(first["cells"])) == (3, 1)

    capsys.readouterr()
    assert job("sideline_restore", "--restore", "cleans", "--table", table, "--execute").code == 0
    told = ask("why", *of(table))
    assert "orphan" in {c["qualifier"] for c in told["cells"] if c["rule"]}
    assert printable(ROW) in capsys.readouterr().out


def test_history_and_what_nothing_decides_are_told(
    job: Job, ask: Callable[..., Any], scene: Scene, omid: OmidClient, configure: Callable[..., Path], recorded: Any
) -> None:
    """A replaced version goes by history_gc's rule, with the run that removed it after; of a cell that no rule decides
    the statements that mend it are told, and nothing is done beside it.
    """
    table, odd = scene.table(), scene.table()
    old, _ = scene.committed(table)
    new, commit = scene.committed(table)
    recorded(table)
    config = configure(defaults={"history_max_age": "0s", "min_history_age": "0s", "budget": {"share": 1.0}})
    told = ask("why", *of(table, b"r"), config=config)
    assert any("history_gc removes nothing of the table now" in n and odd in n for n in told["notes"]), told["notes"]
    recorded(table, odd)
    told = ask("why", *of(table, b"r"), config=config)
    cells = {c["timestamp"]: c for c in told["cells"]}
    assert (cells[old]["rule"], cells[new]["rule"]) == ("replaced", "")
    assert f"hidden since {commit}, before the mark {told['mark']}" in cells[old]["evidence"]
    assert job("history_gc", "--table", table, "--execute", "--run-id", "gc", config=config).code == 0
    [gone] = ask("why", *of(table, b"r"), config=config)["removed"]
    assert (gone["timestamp"], gone["rule"], "history_gc run gc on" in gone["becomes"]) == (old, "replaced", True)

    broken, beside = scene.orphan(odd), scene.orphan(odd, qualifier=b"p")
    omid.put(odd, b"r", b"a", shadow_qualifier(b"q"), broken, b"bad")
    omid.advance_watermark()
    cells = {c["qualifier"]: c for c in ask("why", *of(odd, b"r"))["cells"]}
    damaged, data, other = cells[printable(shadow_qualifier(b"q"))], cells["q"], cells["p"]
    assert "of an unknown form" in damaged["what"]
    assert f"lowtide resolve {broken} --aborted" in damaged["evidence"]
    assert f"delete '{odd}'" in damaged["evidence"]
    assert (damaged["transaction"], data["transaction"], other["transaction"]) == (broken, broken, beside)
    assert "undecided" in data["what"]
    assert all("nothing is done to it, nor to its key range" in c["becomes"] for c in (damaged, data))
    assert other["becomes"] == "once nothing stops its key range, orphan_cleanup puts it aside and deletes it"
    assert job("orphan_cleanup", "--table", odd, "--execute").code == 1
    assert scene.has(odd, beside, qualifier=b"p")


def test_what_is_not_there_is_said_in_a_sentence(job: Job, scene: Scene, omid: OmidClient) -> None:
    """An unknown table, a table that holds no transactions, a row without cells, a key that is none, a run without
    sideline.
    """
    table, plain = scene.table(), scene.table(omid_enabled=False)
    scene.committed(table)
    omid.advance_watermark()
    for arguments, code, said in (
        (("why", *of("nowhere", b"r")), 1, "unknown table nowhere"),
        (("why", *of(plain, b"r")), 2, f"table {plain} bears no marks of Omid"),
        (("why", *of(table, b"no\x00ne")), 1, f'row "no\\x00ne" of {table} has no cell, and no run has put one'),
        (("why", "--table", table, "--row", "a\\b"), 2, "write a backslash as \\x5C"),
        (("why", "--table", table), 2, "lowtide why TABLE ROW"),
        (("sideline", "--show", "nobody"), 1, "run nobody has no sideline"),
    ):
        outcome = job(*arguments)
        assert (outcome.code, said in outcome.problems) == (code, True), outcome.problems
