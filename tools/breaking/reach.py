"""Which scenes of chaos can meet what a mutation breaks: those that run the statement.

Told by :mod:`tests.chaos.lines` when the seeds were carried out on the code as it is. Of the connector, and of what
runs when a module is loaded, nothing is known: any scene may meet it.

A statement that each scene runs does something else, where it is broken, in few. Those come first that run, for each of
their jobs, the most lines that none before them has: of the file that is broken, and then of all.
"""

from __future__ import annotations

import ast
import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Self

from breaking.catalogue import Mutation
from tests.chaos import plan
from tests.chaos.lines import BETWEEN

#: So many jobs the scenes have together that come before all others: what some minutes are enough for.
_FIRST = 45
#: A scene, by its seed and its place in the plan; a line, by its file and its number.
Scene = tuple[int, int]
Line = tuple[str, int]


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


class Reach:
    """What the seeds ran that have a file in a folder, ``SEED.json``."""

    def __init__(self, folder: Path) -> None:
        self._runs = {int(file.stem): json.loads(file.read_text()) for file in folder.glob("*.json")}

    def parts(self, mutation: Mutation, whole: str, seeds: Iterable[int]) -> list[Part]:
        """What can meet it of the plans of *seeds*: scenes alone, those of one plan together, then all of each plan
        that does, in their order; *whole*: its file as it is.
        """
        lines = frozenset[int]() if mutation.in_java else changed(whole, mutation.broken(whole))
        scenes: dict[Scene, frozenset[Line]] = {}
        plans: list[Part] = []
        for seed in seeds:
            run = self._runs.get(seed, {BETWEEN: {}})
            meet = {at: ran for at, ran in run.items() if not lines or not lines.isdisjoint(ran.get(mutation.file, ()))}
            scenes |= {(seed, int(at)): _lines(ran) for at, ran in meet.items() if at != BETWEEN}
            if meet or seed not in self._runs:
                plans.append(Part(seed))
        first, others = _first(scenes, mutation.file)
        return [*_together(first), *_together(others), *plans]


def _lines(ran: Mapping[str, Iterable[int]]) -> frozenset[Line]:
    return frozenset((file, line) for file, lines in ran.items() for line in lines)


def _first(scenes: Mapping[Scene, frozenset[Line]], file: str) -> tuple[list[Scene], list[Scene]]:
    """All of them, by what each has that none before it has; and where those end that come before the others."""
    left, known, ranked, jobs = dict(scenes), set[Line](), list[Scene](), 0
    cost = {(seed, at): 1 + _jobs(seed, at) for seed, at in scenes}

    def news(scene: Scene) -> tuple[float, float]:
        new = left[scene] - known
        return sum(line[0] == file for line in new) / cost[scene], len(new) / cost[scene]

    while left:
        ranked.append(max(left, key=news))
        known |= left.pop(ranked[-1])
    for n, scene in enumerate(ranked):
        jobs += cost[scene]
        if jobs > _FIRST:
            return ranked[:n], ranked[n:]
    return ranked, []


def _jobs(seed: int, at: int) -> int:
    whole = plan.made(seed)
    return whole.with_scenes([at]).jobs() - whole.with_scenes([]).jobs()


def _together(scenes: Iterable[Scene]) -> list[Part]:
    """A store and its clients begin once for those of a plan."""
    found: dict[int, set[int]] = defaultdict(set)
    for seed, at in scenes:
        found[seed].add(at)
    return [Part(seed, tuple(sorted(places))) for seed, places in found.items()]


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
