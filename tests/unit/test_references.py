"""What docstrings and comments refer to by its name is there: modules, functions, classes, constants."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "lowtide": ROOT,
    "lowtide_spark": ROOT / "spark_apps",
    "lowtide_airflow": ROOT / "plugins",
    "tests": ROOT,
    "breaking": ROOT / "tools",
}
PYTHON = sorted(
    path
    for folder in ("lowtide", "spark_apps", "plugins", "dags", "bench", "tools", "tests")
    for path in (ROOT / folder).rglob("*.py")
)
JAVA = sorted(path for folder in ("connector", "embedded") for path in (ROOT / folder / "src").rglob("*.java"))
#: Java's packages, which begin as Python's do, and what is the name of a file or a property.
NOT_OURS = re.compile(r"lowtide\.(connector|store\.[A-Z]|workload\.[A-Z]|yaml|log)\b")
ROLE = re.compile(r":(?:func|class|meth|data|mod|attr|exc):`~?([\w.]+)`")
DOTTED = re.compile(r"(?<![\w./@-])(lowtide(?:_spark|_airflow)?(?:\.\w+)+)")


def _targets(node: ast.stmt) -> Iterator[str]:
    """The names that a statement of a module, or of a class, defines there."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from (each.asname or each.name for each in node.names)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        found = node.targets if isinstance(node, ast.Assign) else [node.target]
        yield from (each.id for target in found for each in ast.walk(target) if isinstance(each, ast.Name))
    elif isinstance(node, ast.If | ast.Try | ast.With):
        yield from (name for inner in node.body for name in _targets(inner))


@cache
def names(path: Path) -> frozenset[str]:
    """What a module defines by itself."""
    return frozenset(name for node in ast.parse(path.read_text("utf-8")).body for name in _targets(node))


@cache
def members(path: Path) -> frozenset[str]:
    """What the classes of a module have."""
    classes = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.ClassDef)]
    return frozenset(name for node in classes for each in node.body for name in _targets(each))


@cache
def all_members() -> frozenset[str]:
    """What some class has: a class may have it from another module's."""
    return frozenset(name for path in PYTHON for name in members(path))


def defines(module: Path, inside: str) -> bool:
    """Whether a module has a name, or a class of it that member."""
    name, _, member = inside.partition(".")
    return name in names(module) and (not member or member in all_members())


def resolves(dotted: str) -> bool:
    """Whether a dotted name of ours is a module's, or that of something in one."""
    first, *rest = dotted.split(".")
    path = FOLDERS[first] / first
    for i, part in enumerate(rest):
        if (path / part).is_dir():
            path /= part
        else:
            module = path / f"{part}.py"
            inside = ".".join(rest[i + 1 :])
            if module.is_file():
                return not inside or defines(module, inside)
            return (path / "__init__.py").is_file() and defines(path / "__init__.py", ".".join(rest[i:]))
    return True


def _texts(path: Path) -> Iterator[str]:
    """Docstrings and comments of a Python file; of a Java file the comments."""
    source = path.read_text("utf-8")
    if path.suffix == ".java":
        yield from re.findall(r"/\*.*?\*/|//[^\n]*", source, re.DOTALL)
        return
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""
    yield from re.findall(r"(?m)(?:^|\s)#:? .*", source)


def _known_here(path: Path, name: str) -> bool:
    """Whether a role's name is a whole one that is right, or one of the file's own, or Python's."""
    first = name.partition(".")[0]
    if first in FOLDERS:
        return resolves(name) or bool(NOT_OURS.match(name))
    known = names(path) | members(path) | frozenset(dir(builtins))
    return name in known or defines(path, name) or path.with_name(f"{name}.py").is_file()


@pytest.mark.parametrize("path", [*PYTHON, *JAVA], ids=lambda path: str(path.relative_to(ROOT)))
def test_what_is_referred_to_is_there(path: Path) -> None:
    """A role names something of its own module, or bears the whole dotted name; a dotted name of ours is right."""
    for text in _texts(path):
        joined = re.sub(r"\n\s*\*?\s*", " ", text)
        wanted = {name for name in DOTTED.findall(joined) if not NOT_OURS.match(name)}
        wrong = {name for name in wanted if not resolves(name)}
        if path.suffix == ".py":
            wrong |= {name for name in ROLE.findall(joined) if not _known_here(path, name)}
        assert not wrong, f"{path.relative_to(ROOT)} refers to {sorted(wrong)}, in: {joined.strip()[:200]}"


def test_a_name_that_is_not_there_is_noticed() -> None:
    """The resolver takes modules, names in them and those of classes, and nothing else."""
    good = ("lowtide.values.clock", "lowtide.values.clock.first_timestamp", "lowtide.store.state.StateStore.reset")
    assert all(resolves(name) for name in (*good, "lowtide_spark.frames.store", "lowtide.history"))
    bad = ("lowtide.store.state.NOTHING", "lowtide.values.clocks", "lowtide.store.state.StateStore.nothing")
    assert not any(resolves(name) for name in bad)
