"""Several benches that deal out the seeds of chaos for one mutation: as many plans at a time as there are stores."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from breaking.bench import Bench
from breaking.catalogue import (
    CHAOS_LANE,
    CHAOS_OVER,
    CHAOS_SECONDS,
    CHAOS_SEEDS,
    Mutation,
    by_chaos,
    by_chaos_in_memory,
)
from breaking.verdict import ELSEWHERE, NOTICED, Verdict

#: A plan that has begun is let come to its end.
_LONGEST_PLAN = 240


class Lanes:
    """Stands where a bench does. The first that notices ends it for all: the others break off what they do."""

    def __init__(self, folder: Path, count: int, *, seeds: int, seconds: int) -> None:
        over = folder / "over"
        told = {CHAOS_SEEDS: str(seeds), CHAOS_OVER: str(over), **({CHAOS_SECONDS: str(seconds)} if seconds else {})}
        within = seconds + _LONGEST_PLAN if seconds else None
        self._over = over
        self.benches: Sequence[Bench] = [
            Bench(folder / str(n), first=True, seconds=within, told=told | {CHAOS_LANE: f"{n}/{count}"})
            for n in range(count)
        ]

    def tried(self, mutation: Mutation) -> Verdict:
        """What plans that need no store notice, and if they do not, those that need one."""
        self._over.unlink(missing_ok=True)
        quick = by_chaos_in_memory(mutation)
        if quick and (verdict := self.benches[0].tried(quick)).word == NOTICED:
            return verdict
        slow = by_chaos(mutation)

        def on_a(bench: Bench) -> Verdict:
            verdict = bench.tried(slow)
            if verdict.word == NOTICED:
                self._over.touch()
            return verdict

        with ThreadPoolExecutor(len(self.benches)) as pool:
            found = {verdict.word: verdict for verdict in pool.map(on_a, self.benches)}
        return found.get(NOTICED) or found.get(ELSEWHERE) or found.popitem()[1]

    def unbroken(self, tests: list[str]) -> dict[str, str]:
        """Those that do not pass on the code as it is: each bench asks its own seeds."""
        with ThreadPoolExecutor(len(self.benches)) as pool:
            found = pool.map(lambda bench: bench.unbroken(tests), self.benches)
        return {test: why for wrong in found for test, why in wrong.items()}

    def interrupt(self) -> None:
        """End what runs now."""
        for bench in self.benches:
            bench.interrupt()

    def close(self) -> None:
        """End what was started."""
        for bench in self.benches:
            bench.close()
