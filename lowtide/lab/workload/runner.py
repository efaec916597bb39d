"""Run a workload whose clients really crash, and know afterwards what every read point must show."""

from __future__ import annotations

import contextlib
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lowtide.lab.waiting import reached
from lowtide.lab.workload import history, script
from lowtide.lab.workload.client import OmidClient, WorkloadError
from lowtide.lab.workload.model import Model, Transaction
from lowtide.lab.workload.program import Store
from lowtide.lab.workload.script import Group, Shape

#: Of a client that is to be killed: it gets more than it can do before it dies.
_DOOMED_TRANSACTIONS = 200
_ENDS = 5
"""How often a client that shall halt goes to its crash point: the oracle may refuse it before it gets there."""


@dataclass(frozen=True)
class Result:
    """A finished workload."""

    model: Model
    watermark: int
    """The low watermark at the end: above every transaction of the workload."""
    boundaries: list[int]
    """The oracle's start timestamp at the end of each slice: a read point there shows that slice and those before."""
    seconds: float


def run(
    store: Store,
    seed: int,
    transactions: int,
    out: Path,
    *,
    shape: Shape | None = None,
    slices: int = 1,
    kills: int = 2,
    halts: int = 2,
    threads: int = 4,
    omid_enabled: bool = True,
    regions: int = 2,
    omid: OmidClient | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Result:
    """Write *transactions* random transactions and the history of what they did to *out*.

    Most crashes are transactions that their client abandons at a crash point. Beside them *kills* clients are ended
    with SIGKILL at a random moment and *halts* clients halt themselves at a crash point, each with several transactions
    under way. What those were is settled from the store when all is over and the low watermark has passed them; *out*
    is then written, so that it never says less than what is certain.

    The same seed makes the same script. Tables that are missing are made, with Omid's flag on their families if
    *omid_enabled*. With *slices* the transactions are cut into as many parts of equal size, one after another.
    """
    began = time.monotonic()
    shape = shape or Shape()
    groups = script.generate(shape, seed, transactions)
    with contextlib.ExitStack() as closing:
        folder = Path(closing.enter_context(tempfile.TemporaryDirectory(prefix="lowtide-workload-")))
        client = omid or closing.enter_context(OmidClient(store))
        make_tables(client, shape, omid_enabled=omid_enabled, regions=regions)
        doomed = _Doomed(store, shape, seed, folder, kills, halts)
        boundaries = []
        for number, part in enumerate(_parts(groups, slices)):
            progress(f"slice {number + 1} of {slices}")
            with doomed.during(number, slices):
                client.run(part, folder / "main.jsonl", threads=threads)
            boundaries.append(client.begin())
        watermark = client.advance_watermark()
        settled = [
            *history.read(folder / "main.jsonl", client.fate),
            *doomed.settled(client.fate),
        ]
    model = Model(settled)
    model.save(out)
    return Result(model, watermark, boundaries, time.monotonic() - began)


def make_tables(client: OmidClient, shape: Shape, *, omid_enabled: bool = True, regions: int = 1) -> None:
    """Make the shape's tables that are missing."""
    there = set(client.tables())
    for table in shape.tables:
        if table not in there:
            client.create(table, shape.families, omid_enabled=omid_enabled, splits=shape.splits(regions))


@dataclass
class _Doomed:
    """The clients whose processes do not end in peace, spread over the slices."""

    store: Store
    shape: Shape
    seed: int
    folder: Path
    kills: int
    halts: int
    logs: dict[Path, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._random = random.Random(f"lowtide/doomed/{self.seed}")
        points = [point for point in self.shape.crash_points if point not in (7, 8, 10)]
        # Points 7, 8 and 10 are clients that live on; there is nothing to halt at.
        self._plans: list[tuple[str, int | None]] = [("kill", None)] * self.kills
        if points:
            self._plans += [("halt", self._random.choice(points)) for _ in range(self.halts)]

    @contextlib.contextmanager
    def during(self, number: int, slices: int) -> Iterator[None]:
        """Start this slice's clients, let the others work beside them, and see them all dead."""
        mine = [(i, *plan) for i, plan in enumerate(self._plans) if i % slices == number]
        with contextlib.ExitStack() as closing:
            running = [(closing.enter_context(OmidClient(self.store)), *each) for each in mine]
            for client, index, kind, point in running:
                log = self.folder / f"{kind}-{index}.jsonl"
                self.logs[log] = kind
                client.start_run(self._groups(index, point), log)
            yield
            for client, index, kind, _point in running:
                if kind == "kill":
                    self._await_events(self.folder / f"{kind}-{index}.jsonl")
                    client.kill()
                else:
                    _await_halt(client)

    def settled(self, fate: history.Fate) -> list[Transaction]:
        return [each for log in self.logs for each in history.read(log, fate, ended="kill")]

    def _groups(self, index: int, point: int | None) -> list[Group]:
        """For a client to be killed: more than enough. For one that halts: some groups, then its end, repeatedly."""
        seed = f"{self.seed}-{'kill' if point is None else 'halt'}{index}"
        if point is None:
            return script.generate(self.shape, seed, _DOOMED_TRANSACTIONS)
        source = script.generate(self.shape, seed, 20)
        shape = replace(self.shape, crash_points=(point,) * _ENDS)
        return [*source, *script.crash_each(shape, f"{seed}-end", halt=True)]

    def _await_events(self, log: Path) -> None:
        """Until the client has done some random part of its work."""
        wanted = self._random.randint(20, 3 * _DOOMED_TRANSACTIONS // 2)
        reached(lambda: log.exists() and log.read_bytes().count(b"\n") >= wanted, 60, pause=0.005)


def _await_halt(client: OmidClient) -> None:
    """See a client that halts at a crash point dead.

    One whose last transactions the oracle refused, every one (a conflict, or the low watermark had passed it), never
    reaches its point and would live on: it is killed, which is one more way to crash.
    """
    try:
        client.wait(30)
    except WorkloadError:
        client.kill()


def _parts(groups: Sequence[Group], count: int) -> list[Sequence[Group]]:
    return [groups[len(groups) * i // count : len(groups) * (i + 1) // count] for i in range(count)]
