"""Which scenes of chaos can meet what a mutation breaks: those that run the statement.

Told by :mod:`tests.chaos.lines` when the seeds were carried out on the code as it is, each as a whole and once more
with nothing but its scenes: what becomes of a scene depends on what was before it. Of the connector, and of what runs
when a module is loaded, nothing is known: any scene may meet it.

They are played plan by plan: to have those first that run the most lines which none before them has came to fewer
notices in the same time, and so did to have the shortest first.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Self

from breaking.catalogue import Mutation
from tests.chaos.lines import BETWEEN


@dataclass(frozen=True)
class Part:
    """A plan, or what is left of it with some of its scenes alone; None: all of it."""

    seed: int
    scenes: tuple[int, ...] | None = None

    def __str__(self) -> str:
        return f"{self.seed}" if self.scenes is None else f"{self.seed}:{'.'.join(map(str, self.scenes))}"

    @classmethod
    def of(cls, text: str) -> Self:
        """As it is written."""
        seed, has_scenes, scenes = text.partition(":")
        return cls(int(seed), tuple(int(n) for n in scenes.split(".") if n) if has_scenes else None)


#: By what a plan has (a scene's number, or what is between them) and file the lines that were run.
_Run = Mapping[str, Mapping[str, Sequence[int]]]


class Reach:
    """What the seeds ran that have files in a folder: ``SEED.json`` of all of a plan, ``SEED-scenes.json``."""

    def __init__(self, folder: Path) -> None:
        self._whole: dict[int, _Run] = {}
        self._alone: dict[int, _Run] = {}
        for file in folder.glob("*.json"):
            seed, _, alone = file.stem.partition("-")
            (self._alone if alone else self._whole)[int(seed)] = json.loads(file.read_text())

    def parts(self, mutation: Mutation, whole: str, seeds: Iterable[int]) -> list[Part]:
        """What can meet it of the plans of *seeds*, in their order: scenes alone first, then all of each plan that
        does; *whole*: its file as it is.
        """
        lines = frozenset[int]() if mutation.in_java else changed(whole, mutation.broken(whole))
        parts: list[Part] = []
        plans: list[Part] = []

        def meet(run: _Run) -> list[str]:
            return [at for at, ran in run.items() if not lines or not lines.isdisjoint(ran.get(mutation.file, ()))]

        for seed in seeds:
            alone = meet(self._alone.get(seed, {}))
            if scenes := tuple(sorted(int(scene) for scene in alone if scene != BETWEEN)):
                parts.append(Part(seed, scenes))
            if seed not in self._whole or meet(self._whole[seed]):
                plans.append(Part(seed))
        return parts + plans


def changed(whole: str, broken: str) -> frozenset[int]:
    """The lines of the statements of *whole* that are others in *broken*, or beside which there are others: of a
    compound one those of its head, of what stands between a function's statements all of the function's. None of them
    where it is run when its module is loaded.
    """
    statements = [node for node in ast.walk(ast.parse(whole)) if isinstance(node, ast.stmt)]
    functions = [range(f.body[0].lineno, _end(f) + 1) for f in statements if isinstance(f, _FUNCTIONS)]
    lines: set[int] = set()
    for line in _touched(whole.splitlines(), broken.splitlines()):
        within = [node for node in statements if node.lineno <= line <= _end(node)]
        if not within or not any(line in body for body in functions):
            continue
        innermost = max(within, key=lambda node: node.lineno)
        body = getattr(innermost, "body", None)
        if isinstance(innermost, _FUNCTIONS):  # its head is run when it is made
            lines |= set(range(innermost.body[0].lineno, _end(innermost) + 1))
        else:
            lines |= set(range(innermost.lineno, body[0].lineno if body else _end(innermost) + 1))
    return frozenset(lines)


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _end(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _touched(before: Sequence[str], after: Sequence[str]) -> set[int]:
    """The lines that go or are replaced; where some only come, the one behind which they do, or that they precede."""
    touched: set[int] = set()
    for what, begin, end, *_ in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if what == "insert":
            touched.add(begin + 1 if begin < len(before) else begin)
        elif what != "equal":
            touched.update(range(begin + 1, end + 1))
    return touched
