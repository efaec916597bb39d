"""The list of ways to break the safety rules stays true to the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MUTATIONS = tomllib.loads((ROOT / "tests/mutations.toml").read_text())


@pytest.mark.parametrize("name", MUTATIONS)
def test_each_mutation_can_be_made_and_names_tests_that_are_there(name: str) -> None:
    """The text to break stands once in its file; the tests that must notice exist."""
    mutation = MUTATIONS[name]
    assert (ROOT / mutation["file"]).read_text().count(mutation["old"]) == 1
    for test in re.findall(r"tests/\S+", mutation["tests"]):
        file, _, function = test.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text() if function else (ROOT / file).exists()


def test_every_rule_is_broken_somewhere() -> None:
    """Each of the eleven rules of docs/safety.md has a mutation."""
    numbers = (re.match(r"\d+", name) for name in MUTATIONS)  # those of other rules begin with a letter
    assert {int(number[0]) for number in numbers if number} == set(range(1, 12))
