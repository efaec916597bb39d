"""The map in CONTRIBUTING.md, and its picture: every file, function and room that it names is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONNECTOR = ROOT / "connector/src/main/java/lowtide/connector"
PAGE = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
PICTURE = ROOT / "docs/images/ways.svg"
#: How the page introduces each way, and how the picture colours it.
WAYS = {"way1": "One interval, from the form to the prune:", "way2": "One suspect cell, from the scan"}


@dataclass(frozen=True)
class Step:
    """A row of one of the two tables."""

    file: str
    functions: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where the file is: those of the connector are named without their folder."""
        return (CONNECTOR if self.file.endswith(".java") else ROOT) / self.file


def steps(way: str) -> list[Step]:
    """The steps of a way, in order."""
    text = PAGE.partition(WAYS[way])[2]
    table = re.search(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert table
    rows = re.findall(r"^\| (\d+) \| `([^`]+)` \| (.*?) ?\|", table.group(), re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, len(table.group().splitlines()) - 1))
    return [Step(file, tuple(re.findall(r"`([^`]+)`", names))) for _, file, names in rows]


ALL = [step for way in WAYS for step in steps(way)]


def defined(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """What a module defines, under ``with`` too; methods as ``Class.method``."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield prefix + node.name
        if isinstance(node, ast.ClassDef):
            yield from defined(node.body, f"{node.name}.")
        if isinstance(node, ast.With):
            yield from defined(node.body)
        if isinstance(node, ast.Assign):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def declared(text: str, name: str) -> bool:
    """Whether a Java file has the method ``Class.method`` itself, of a class at whatever depth."""
    holder, _, method = name.partition(".")
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
    begins = re.search(rf"\b(?:class|record|interface|enum) {holder}\b[^{{]*{{", text)
    if not begins:
        return False
    depth, own = 1, ""
    for at in range(begins.end(), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            break
        own += text[at] if depth == 1 else ""  # neither what methods do nor what classes inside have
    return bool(re.search(rf"^ +[\w<>\[\], .?]+ {method}\(", own, re.MULTILINE))


@pytest.mark.parametrize("step", ALL, ids=lambda step: f"{step.file}:{','.join(step.functions)}")
def test_every_step_is_there(step: Step) -> None:
    """A file that moved, or a function that is called otherwise now, is found on the map."""
    text = step.path.read_text("utf-8")
    if step.path.suffix == ".java":
        assert step.functions
        assert [name for name in step.functions if not declared(text, name)] == []
        return
    names = set(defined(ast.parse(text).body))
    assert set(step.functions) <= names
    if not step.functions:
        assert not re.search(r"^ *(def|class) ", text, re.MULTILINE), "it has functions: which is the step?"


def test_files_that_the_map_mentions_are_there() -> None:
    """Also where they are no step: by their place, or by their name in the connector."""
    chapter = PAGE.partition("## The two ways")[2].partition("\n## ")[0]
    files = set(re.findall(r"`([\w./]+\.(?:py|java))`", chapter))
    assert len(files) > 30
    assert {f for f in files if not (ROOT / f).exists() and not (CONNECTOR / f).exists()} == set()


def test_the_picture_shows_steps_of_the_map() -> None:
    """Each stop has the number, the file (or its end) and one of the functions of a step; no other file is named."""
    found = ElementTree.parse(PICTURE)
    seen: dict[str, list[int]] = {way: [] for way in WAYS}
    for text in found.iter("{http://www.w3.org/2000/svg}text"):
        words = "".join(text.itertext()).split()
        way = next((child.get("class") or "" for child in text), "")
        if way not in WAYS:
            assert not re.search(r"\.(py|java)\b", " ".join(words))
            continue
        number, file, *functions = words
        step = steps(way)[int(number) - 1]
        assert f"/{step.file}".endswith(f"/{file}"), words
        assert len(functions) == min(1, len(step.functions)), words
        assert all(any(f".{name}".endswith(f".{shown}") for name in step.functions) for shown in functions), words
        seen[way].append(int(number))
    assert all(len(stops) > 10 and len(set(stops)) == len(stops) for stops in seen.values())
    assert all(stops[-1] == len(steps(way)) for way, stops in seen.items()), "a way ends before its end"


def first_sentence(package: Path) -> str:
    """What a package says of itself, to the first full stop."""
    doc = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    return " ".join(re.split(r"(?<=\.)\s|\n\n", doc, maxsplit=1)[0].split()).rstrip(".").replace("``", "`")


def test_every_room_is_in_the_table() -> None:
    """With what it says of itself; a package that is new or gone is noticed."""
    packages = [
        file.parent
        for top in ("lowtide", "spark_apps/lowtide_spark")
        for file in (ROOT / top).rglob("__init__.py")
        if file.parent != ROOT / top
    ]
    told = dict(re.findall(r"^\| `((?:lowtide|spark_apps/lowtide_spark)/[\w/]+)/` \| ([^|]*) \|$", PAGE, re.MULTILINE))
    assert len(packages) > 20
    assert told == {str(package.relative_to(ROOT)): first_sentence(package) for package in packages}


def test_every_folder_of_the_table_is_there() -> None:
    """The table of what lives where names no folder that is gone."""
    chapter = PAGE.partition("## Where things live")[2].partition("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", chapter, re.MULTILINE)
    places = {place for cell in cells for place in re.findall(r"`([^`]+)`", cell)}
    assert len(places) > 30
    assert {place for place in places if not (ROOT / place).exists()} == set()
