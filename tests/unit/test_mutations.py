"""The list of ways to break the safety rules stays true to the code, and tools/break-rules to its promises."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from breaking.catalogue import (
    CONNECTOR_TESTS,
    Mutation,
    by_chaos,
    by_chaos_in_memory,
    drawn,
    folder,
    number_of_today,
    read,
    seeds_for,
    share,
)
from breaking.results import Results
from breaking.verdict import ELSEWHERE, MISSED, NOTICED, names_it

from tests.chaos import worlds
from tests.chaos.worlds import WORLDS, World

ROOT = Path(__file__).resolve().parents[2]
MUTATIONS = read(ROOT / "tests/mutations.toml")


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_mutation_can_be_made_and_names_tests_that_are_there(name: str) -> None:
    """The text to break stands once in its file; the tests that must notice exist, in one folder; the assertion is
    named, and stands in some test.
    """
    mutation = MUTATIONS[name]
    text = (ROOT / mutation.file).read_text()
    assert mutation.broken(text) != text
    assert len(mutation.folders) == 1, "a folder of tests has a process of its own"
    for test in mutation.tests:
        file, _, function = test.partition("[")[0].partition("::")
        before = "void" if folder(test) == "connector" else "def"
        assert function, "a test is named, not a file of them"
        assert re.search(rf"\b{before} {function}\(", (ROOT / file).read_text())
        body = _body((ROOT / file).read_text(), f"{before} {function}(")
        named = body.count(_squeezed(mutation.fails))
        assert named < 2, "which of the two assertions fails does not show"
    assert mutation.fails, "tools/break-rules --learn tells what fails"
    if mutation.fails.startswith("assert"):  # not an error's text, which nobody need have written down
        assert _squeezed(mutation.fails) in _all_tests(), "that stands in no test"


@pytest.mark.parametrize("asked", [by_chaos(MUTATIONS["1a"]), by_chaos_in_memory(MUTATIONS["L1a"])])
def test_chaos_has_a_test_that_can_be_asked_instead(asked: Mutation) -> None:
    """It is there, and the assertion stands in it once."""
    (test,) = asked.tests
    file, _, function = test.partition("::")
    assert _body((ROOT / file).read_text(), f"def {function}(").count(_squeezed(asked.fails)) == 1


def test_plans_in_memory_are_asked_of_what_they_run() -> None:
    """The ledger's own programs, where money moves by them: neither Spark's part of it, nor the connector's, nor what
    is only told.
    """
    asked = {name: m for name, m in MUTATIONS.items() if by_chaos_in_memory(m)}
    assert {"L1a", "L4mb", "L6a"} < asked.keys()
    assert all(mutation.file.startswith("lowtide/ledger/") and mutation.of_money for mutation in asked.values())
    assert not {"1a", "L3d", "L3e", "L5a"} & asked.keys()


def test_chaos_is_asked_of_what_it_may_notice_and_says_why_not_of_the_rest() -> None:
    """What it never meets is among the mutations that it is asked of, and counts as not noticed; what is only told of
    a ledger is not.
    """
    asked = {name: m for name, m in MUTATIONS.items() if m.data or m.of_money}
    assert {name for name, mutation in MUTATIONS.items() if mutation.unmet} < asked.keys()
    assert {"2mc", "L1a"} < asked.keys()
    assert not {"L3g", "L7a", "L7b", "L6g"} & asked.keys()


def test_broken_code_still_runs(tmp_path: Path) -> None:
    """A name that is not there fails every test, and shows nothing of the rule."""
    for mutation in MUTATIONS.values():
        if mutation.file.endswith(".py"):
            (tmp_path / f"m_{mutation.name}.py").write_text(mutation.broken((ROOT / mutation.file).read_text()))
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F821,F823", str(tmp_path)]
    done = subprocess.run(ruff, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _body(source: str, begins: str) -> str:
    """A test's own text, without white space; what stands after it in its file is left out."""
    _, _, rest = source.partition(begins)
    return _squeezed(re.split(r"\n(?=[^\s#)]|    }\n)", rest, maxsplit=1)[0])


def _squeezed(text: str) -> str:
    """Without white space: what stands on a line changes with its length."""
    return "".join(text.split())


@cache
def _all_tests() -> str:
    """Those of Python and of Java, and what they call."""
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / CONNECTOR_TESTS).rglob("*.java")]
    return _squeezed("\n".join(file.read_text() for file in files))


def test_every_rule_is_broken_somewhere() -> None:
    """Each of the twelve rules of docs/safety.md has a mutation."""
    numbers = (re.match(r"\d+", name) for name in MUTATIONS)  # those of other rules begin with a letter
    assert {int(number[0]) for number in numbers if number} == set(range(1, 13))


@pytest.mark.parametrize(
    "place",
    [
        *(
            f"connector/src/main/java/lowtide/connector/{n}.java"
            for n in ("VersionReader", "WideFamily", "Pushdown", "MutationWriter")
        ),
        *(f"connector/src/main/java/lowtide/connector/{n}.java" for n in ("Hold", "Omid", "Hiding", "Mutation")),
        *(f"spark_apps/lowtide_spark/frames/{n}.py" for n in ("omid", "reading", "writing", "master", "inventory")),
        *(
            f"spark_apps/lowtide_spark/cleaning/{n}.py"
            for n in ("rules", "suspects", "proofs", "plan", "marks", "acting", "recording", "pruning", "watermarks")
        ),
        *(f"spark_apps/lowtide_spark/history/{n}.py" for n in ("mark", "plan", "removal", "superseded")),
        *(f"spark_apps/lowtide_spark/run/{n}.py" for n in ("oracle", "table_work", "job")),
        *(
            f"spark_apps/lowtide_spark/undo/{n}.py"
            for n in ("as_committed", "judgement", "protection", "putting_back", "replay", "restore")
        ),
        *(f"spark_apps/lowtide_spark/verification/{n}.py" for n in ("gate", "rawcells", "transactions")),
        *(f"lowtide/values/{n}.py" for n in ("intervals", "keyranges")),
        *(f"lowtide/{n}.py" for n in ("run/approval", "run/arguments", "cleaning/facts", "cleaning/planning")),
        *(f"lowtide/store/{n}.py" for n in ("facts", "history", "oracle", "records", "rows", "state")),
        *(f"plugins/lowtide_airflow/{n}.py" for n in ("operator", "arguments", "approved", "sensors", "triggers")),
        *(f"plugins/lowtide_airflow/{n}.py" for n in ("tables", "batches", "wiring", "stores", "timetable", "hook")),
        *(str(file.relative_to(ROOT)) for file in (ROOT / "plugins/lowtide_airflow/dags").glob("[!_]*.py")),
    ],
)
def test_what_the_rules_stand_on_is_broken_somewhere(place: str) -> None:
    """Code that decides what is touched, what is proof and what is recorded has a mutation."""
    assert any(mutation.file.startswith(place) for mutation in MUTATIONS.values())


def test_shares_take_every_mutation_in_turn() -> None:
    """Ten numbers that follow each other take each once; a number takes the same again, whatever lies before it."""
    shares = [share(MUTATIONS, 10, number) for number in range(7_000_003, 7_000_013)]
    assert sorted(name for part in shares for name in part) == sorted(MUTATIONS)
    assert share(MUTATIONS, 10, 7_000_023) == shares[0]
    sizes = [len(part) for part in shares]
    assert max(sizes) - min(sizes) <= 1
    in_store = [sum("store" in m.folders for m in part.values()) for part in shares]
    assert max(in_store) - min(in_store) <= 1, "those that need the store are dealt out evenly"


def test_a_checkout_without_history_has_a_number_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The day's, where there is no git either; where there are commits, their count."""
    monkeypatch.setenv("PATH", str(tmp_path))
    today = number_of_today(tmp_path)
    git = tmp_path / "git"
    for answer, number in (("exit 128", today), ("echo 442", 442)):
        git.write_text(f"#!/bin/sh\n{answer}\n")
        git.chmod(0o755)
        assert number_of_today(tmp_path) == number
    git.chmod(0o644)  # somebody's file of that name
    assert number_of_today(tmp_path) == today
    assert abs(today - time.time() / 86400) < 2


def test_seeds_begin_with_the_world_that_is_about_what_is_broken() -> None:
    """All are asked; plans of the ledger and of history that goes come last for whatever is broken elsewhere."""
    about = {"L5a": World.LEDGER, "aud-f": World.HISTORY, "2xa": World.SWEPT, "6v": World.ORACLE, "2c": World.TORN}
    for name, first in about.items():
        seeds = seeds_for(MUTATIONS[name], len(WORLDS))
        order = [worlds.of(seed) for seed in seeds]
        assert sorted(seeds) == [*range(1, len(WORLDS) + 1)]
        assert order[0] is first
        assert {World.LEDGER, World.HISTORY} - {first} <= set(order[-2:])
    twice = [worlds.of(seed) for seed in seeds_for(MUTATIONS["2c"], 2 * len(WORLDS))]
    others = len(WORLDS) - 2
    assert set(twice[:others]) == set(twice[others : 2 * others]), "a world came again before another had come"


def test_a_number_draws_the_same_mutations_again() -> None:
    """As many as are asked for, none twice; another number others; of few, all."""
    some = drawn(MUTATIONS, 30, 17)
    assert len(some) == 30
    assert some == drawn(MUTATIONS, 30, 17) != drawn(MUTATIONS, 30, 18)
    assert drawn(some, 50, 1) == some


def test_what_became_of_a_mutation_is_kept_for_the_next_run(tmp_path: Path) -> None:
    """It is left out there; of one that was tried again the last verdict counts."""
    file = tmp_path / "results"
    first = Results(file)
    for name, word in (("1a", MISSED), ("1b", NOTICED), ("L1a", NOTICED), ("1a", NOTICED), ("2a", ELSEWHERE)):
        first.add(name, word, 61.23)
    again = Results(file)
    assert [name in again for name in ("1a", "2a", "3a")] == [True, True, False]
    assert again.table() == first.table()
    assert again.table().splitlines()[0] == "1a        61 s  noticed"
    assert again.table().endswith("4 in all: 1 failed elsewhere, 3 noticed; 75 % noticed")


FAILED: dict[str, Any] = {"phase": "call", "statement": "assert scene.has(\n    table, old)", "text": "assert False"}


@pytest.mark.parametrize(
    ("failure", "noticed"),
    [
        ({}, True),
        ({"phase": "setup"}, False),
        ({"phase": "teardown"}, False),
        ({"statement": "assert outcome.code == 0"}, False),
        ({"statement": "", "text": "No module named 'x'"}, False),
        ({"statement": "", "text": "assert scene.has( table, old) of the code"}, True),
    ],
    ids=["itself", "a fixture", "an end", "another", "no assertion", "the error's text"],
)
def test_a_failure_shows_something_only_where_it_is_the_one_that_is_named(
    failure: dict[str, Any], noticed: bool
) -> None:
    """Line breaks and spaces do not matter; a fixture that fails, another assertion and another error show nothing."""
    assert names_it("scene.has( table, old)", {**FAILED, **failure}) is noticed
    assert not names_it("", {**FAILED, **failure}), "nothing is named"


def test_a_mutation_that_cannot_be_made_is_told() -> None:
    """What is not there once is not broken at some other place."""
    mutation = Mutation("x", "", "a.py", "old", "new", (f"{CONNECTOR_TESTS}ATest.java::a",), "fails")
    assert mutation.broken("an old text") == "an new text"
    for text in ("none", "old and old"):
        with pytest.raises(ValueError, match=r"a\.py holds . times, not once: old"):
            mutation.broken(text)
