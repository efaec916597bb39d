"""What clients are to do, as pure data: the same seed gives the same script.

A script is a list of *groups*. A group is a few transactions that overlap, and the order in which their steps are
taken; one thread of the client program carries a group out, so that conflicts within it are the same in every run. What
comes of a script (timestamps, aborts, what a killed client had done) is in the history, not here.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

#: The crash points of Omid's commit protocol that a client alone can produce. The others (3, 11 to 14) need the oracle
#: to die or its low-latency mode.
#:
#: 0: nothing was sent. 1: some puts were sent, no commit. 2: the oracle refused, the client died while it cleaned up.
#: 4: the commit entry is there, no shadow cell. 5: half of the shadow cells. 6: all of them, the entry is left.
#: 7: the oracle's answer was lost; the client found its entry, completed, and left it. 8: the oracle was lost before it
#: decided; marked and rolled back. 9: cells of a dead client, marked by a reader. 10: half of the shadow cells, the
#: entry deleted: a torn transaction.
CRASH_POINTS = (0, 1, 2, 4, 5, 6, 7, 8, 9, 10)

#: These never ask for a commit.
_ABANDONED = frozenset({0, 1, 9})
#: Need two cells to be half done, and no cell that a family delete would add to the write set without writing it.
_HALVED = frozenset({5, 10})

Step = dict[str, Any]
Script = dict[str, Any]
Group = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """The tables a workload writes to and the mixture of what it does. Shares are of 1."""

    tables: Sequence[str] = ("orders", "stock", "users")
    families: Sequence[str] = ("a", "b")
    qualifiers: Sequence[str] = ("q0", "q1", "q2")
    rows: int = 60
    steps: tuple[int, int] = (1, 6)
    #: Of all transactions: those that end at a crash point, are rolled back, only read, write without conflict checks.
    crashes: float = 0.15
    rollbacks: float = 0.05
    reads: float = 0.05
    conflict_free: float = 0.0
    #: Of all groups: those with two or three transactions at once.
    overlaps: float = 0.25
    #: Of all steps.
    deletes: float = 0.12
    family_deletes: float = 0.05
    row_deletes: float = 0.03
    checkpoints: float = 0.08
    #: Of all transactions: those that wait before they commit, so that the low watermark may pass them.
    pauses: float = 0.0
    pause_ms: int = 300
    crash_points: Sequence[int] = field(default=CRASH_POINTS)

    def row(self, number: int) -> str:
        """The key of row *number*; keys sort as the numbers do."""
        return f"r{number:0{len(str(self.rows))}d}"

    def splits(self, regions: int) -> list[str]:
        """The start keys of all regions but the first, when the rows are shared among *regions*."""
        return [self.row(self.rows * i // regions) for i in range(1, regions)]


def generate(shape: Shape, seed: int | str, transactions: int) -> list[Group]:
    """A script of at least *transactions* transactions (the last group may bring one or two more)."""
    source = _Source(shape, seed)
    groups: list[Group] = []
    count = 0
    while count < transactions:
        group = source.group()
        groups.append(group)
        count += len(group["transactions"])
    return groups


def crash_each(shape: Shape, seed: int | str, *, halt: bool = False) -> list[Group]:
    """One group for each of the shape's crash points; with *halt* the whole process ends at it."""
    source = _Source(shape, seed)
    return [source.crashing(point, halt=halt) for point in shape.crash_points]


class _Source:
    def __init__(self, shape: Shape, seed: int | str) -> None:
        self._shape = shape
        self._seed = seed
        self._random = random.Random(f"lowtide/{seed}")
        self._numbers = itertools.count()
        self._points = itertools.cycle(shape.crash_points)

    def group(self) -> Group:
        chance, shape = self._random.random(), self._shape
        if shape.crash_points and chance < shape.crashes:
            return self.crashing(next(self._points))
        size = 1 if self._random.random() >= shape.overlaps else self._random.choice((2, 2, 3))
        scripts = [self._plain() for _ in range(size)]
        if size > 1 and self._random.random() < 0.5:
            self._contend(scripts)
        return {"transactions": scripts, "order": self._interleaved(scripts)}

    def crashing(self, point: int, *, halt: bool = False) -> Group:
        """A transaction that ends at *point*; for point 2 with another that makes the oracle refuse it."""
        shape = self._shape
        steps = self._puts(max(2, shape.steps[1])) if point in _HALVED or point == 0 else self._writes()
        ending = {"do": "abandon"} if point in _ABANDONED else {"do": "commit"}
        doomed = self._script([*steps, ending], crash=point, halt=halt, buffered=point == 0)
        if point != 2:
            return {"transactions": [doomed], "order": [0] * len(doomed["steps"])}
        rival = self._script([*self._writes(), {"do": "commit"}])
        self._contend([doomed, rival])
        first, second = len(doomed["steps"]), len(rival["steps"])
        return {"transactions": [doomed, rival], "order": [0] * (first - 1) + [1] * second + [0]}

    def _plain(self) -> Script:
        shape, chance = self._shape, self._random.random()
        if chance < shape.reads:
            table = self._random.choice(shape.tables)
            return self._script([{"do": "read", "table": table, "row": self._row()}, {"do": "commit"}])
        ending = "rollback" if chance < shape.reads + shape.rollbacks else "commit"
        steps = self._writes()
        if self._random.random() < shape.pauses:
            steps.append({"do": "pause", "ms": shape.pause_ms})
        return self._script(
            [*steps, {"do": ending}],
            conflict_free=self._random.random() < shape.conflict_free,
            buffered=self._random.random() < 0.5,
        )

    def _script(self, steps: list[Step], **options: Any) -> Script:
        number = next(self._numbers)
        for position, step in enumerate(steps):
            if step["do"] == "put":
                step["value"] = f"{self._seed}.{number}.{position}"
        return {"id": f"{self._seed}.{number}", "steps": steps, **{k: v for k, v in options.items() if v is not False}}

    def _writes(self) -> list[Step]:
        """Puts and deletes with checkpoints between; no column twice between two checkpoints."""
        shape = self._shape
        wanted = self._random.randint(*shape.steps)
        steps: list[Step] = [self._put()]
        taken = {_column(steps[0])}
        while len(steps) < wanted:
            step = self._step()
            if step["do"] == "checkpoint":
                taken.clear()
            elif _column(step) in taken:
                continue
            taken.add(_column(step))
            steps.append(step)
        return steps

    def _puts(self, count: int) -> list[Step]:
        columns: dict[tuple[str, ...], Step] = {}
        while len(columns) < count:
            put = self._put()
            columns[_column(put)] = put
        return list(columns.values())

    def _step(self) -> Step:
        shape, chance = self._shape, self._random.random()
        kinds = (
            ("checkpoint", shape.checkpoints),
            ("delete_row", shape.row_deletes),
            ("delete_family", shape.family_deletes),
            ("delete", shape.deletes),
        )
        for kind, share in kinds:
            if chance < share:
                return self._of(kind)
            chance -= share
        return self._put()

    def _of(self, kind: str) -> Step:
        put = self._put()
        kept = {
            "checkpoint": (),
            "delete_row": ("table", "row"),
            "delete_family": ("table", "row", "family"),
            "delete": ("table", "row", "family", "qualifier"),
        }[kind]
        return {"do": kind, **{name: put[name] for name in kept}}

    def _put(self) -> Step:
        pick, shape = self._random.choice, self._shape
        return {
            "do": "put",
            "table": pick(shape.tables),
            "row": self._row(),
            "family": pick(shape.families),
            "qualifier": pick(shape.qualifiers),
        }

    def _row(self) -> str:
        """Every third write goes to a fifth of the rows, so that columns have many versions."""
        rows = self._shape.rows
        hot = self._random.random() < 0.33
        return self._shape.row(self._random.randrange(max(1, rows // 5) if hot else rows))

    def _contend(self, scripts: list[Script]) -> None:
        """Make all write the column that the first begins with, in their first step."""
        first = scripts[0]["steps"][0]
        if first["do"] != "put":
            return
        for script in scripts[1:]:
            steps = script["steps"]
            if steps[0]["do"] == "put":
                column = {name: first[name] for name in ("table", "row", "family", "qualifier")}
                until = next((i for i, step in enumerate(steps) if step["do"] == "checkpoint"), len(steps))
                kept = [step for step in steps[1:until] if _column(step) != _column(first)]
                script["steps"] = [{**steps[0], **column}, *kept, *steps[until:]]

    def _interleaved(self, scripts: list[Script]) -> list[int]:
        order = [number for number, script in enumerate(scripts) for _ in script["steps"]]
        self._random.shuffle(order)
        return order


def _column(step: Step) -> tuple[str, ...]:
    return tuple(step.get(name, "") for name in ("table", "row", "family", "qualifier"))


def scripts(groups: Sequence[Group]) -> Iterator[Script]:
    """The transactions of *groups*, one by one."""
    for group in groups:
        yield from group["transactions"]
