"""The texts that docs/troubleshooting.md shows are those that the program has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
#: On the page and here: what differs from case to case.
GAP = "…"
SHOWN = re.findall(r"^> `(.+)`$", PAGE.read_text("utf-8"), re.MULTILINE)


def _python(path: Path) -> Iterator[str]:
    """Every text of a module; what is put into it as :data:`GAP`, but for names that the module gives one text."""
    tree = ast.parse(path.read_text("utf-8"))
    given: dict[str, set[str | None]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = node.value.value if isinstance(node.value, ast.Constant) else None
            given.setdefault(node.targets[0].id, set()).add(value if isinstance(value, str) else None)

    def part(each: ast.expr) -> str:
        if isinstance(each, ast.Constant):
            return str(each.value)
        name = each.value.id if isinstance(each, ast.FormattedValue) and isinstance(each.value, ast.Name) else ""
        [*one] = given.get(name, ())
        return one[0] or GAP if len(one) == 1 else GAP

    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(map(part, node.values))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _java(path: Path) -> Iterator[str]:
    """Every text of a class, literals that are added up as one."""
    joined = re.sub(r'"\s*\+\s*"', "", path.read_text("utf-8"))
    yield from re.findall(r'"((?:[^"\\\n]|\\.)*)"', joined)


@cache
def texts() -> tuple[str, ...]:
    """Those of all that users run."""
    python = [p for folder in ("lowtide", "plugins", "spark_apps") for p in (ROOT / folder).rglob("*.py")]
    java = (ROOT / "connector" / "src" / "main").rglob("*.java")
    return tuple(t for p in python for t in _python(p)) + tuple(t for p in java for t in _java(p))


def is_said(shown: str) -> bool:
    """Whether the pieces of a text between its gaps stand in one of the program's, in this order."""
    pattern = re.compile(".*".join(re.escape(piece) for piece in shown.split(GAP)), re.DOTALL)
    return any(pattern.search(text) for text in texts())


@pytest.mark.parametrize("shown", SHOWN)
def test_a_text_on_the_page_is_the_programs(shown: str) -> None:
    """Whoever searches the page for what the terminal shows finds it, and one that was reworded is noticed."""
    assert is_said(shown), shown
    assert len(shown.replace(GAP, "").strip()) >= 20, "too little to be found by"


def test_a_text_of_nobodys_is_noticed() -> None:
    """Nor are the pieces of two texts taken for one."""
    assert len(SHOWN) > 30
    assert not is_said("the Thrift gateway at … answers gladly")
    assert not is_said("the Thrift gateway at … lead to different HBase clusters")
