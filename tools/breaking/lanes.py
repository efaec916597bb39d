"""Several benches that deal out the seeds of chaos for one mutation: as many plans at a time as there are stores."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from breaking.bench import LEFT_OUT, Bench
from breaking.catalogue import (
    CHAOS_OVER,
    CHAOS_SECONDS,
    CHAOS_SEEDS,
    CHAOS_TAKEN,
    Mutation,
    by_chaos,
    by_chaos_in_memory,
    seeds_for,
)
from breaking.verdict import ELSEWHERE, NOTICED, Verdict

#: A plan that has begun is let come to its end.
_LONGEST_PLAN = 240


class Lanes:
    """Stands where a bench does. Whichever is free takes the next seed; the first that notices ends it for all: the
    others break off what they do.
    """

    def __init__(self, folder: Path, count: int, *, seeds: int, seconds: int) -> None:
        self._over, self._taken = folder / "over", folder / "taken"
        self._seeds = seeds
        told = {CHAOS_OVER: str(self._over), CHAOS_TAKEN: str(self._taken)}
        told |= {CHAOS_SECONDS: str(seconds)} if seconds else {}
        within = seconds + _LONGEST_PLAN if seconds else None
        self.benches: Sequence[Bench] = [
            Bench(folder / str(n), first=True, seconds=within, told=told) for n in range(count)
        ]

    def tried(self, mutation: Mutation) -> Verdict:
        """What plans that need no store notice, and if they do not, those that need one."""
        self._begin(seeds_for(mutation, self._seeds))
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
        """Those that do not pass on the code as it is. What one bench leaves out another has taken."""
        self._begin(range(1, self._seeds + 1))
        with ThreadPoolExecutor(len(self.benches)) as pool:
            found = list(pool.map(lambda bench: bench.unbroken(tests), self.benches))
        everywhere = set.intersection(*map(set, found))
        return {
            test: why
            for wrong in found
            for test, why in wrong.items()
            if test in everywhere or (test not in tests and why != LEFT_OUT)
        }

    def _begin(self, seeds: Sequence[int]) -> None:
        """None of these seeds is taken, and nothing is noticed."""
        for bench in self.benches:
            bench.told[CHAOS_SEEDS] = ",".join(map(str, seeds))
        self._over.unlink(missing_ok=True)
        shutil.rmtree(self._taken, ignore_errors=True)
        self._taken.mkdir()

    def interrupt(self) -> None:
        """End what runs now."""
        for bench in self.benches:
            bench.interrupt()

    def close(self) -> None:
        """End what was started."""
        for bench in self.benches:
            bench.close()
