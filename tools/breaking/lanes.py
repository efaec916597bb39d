"""Several benches that deal out the seeds of chaos for one mutation: as many plans at a time as there are stores."""

from __future__ import annotations

import re
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

#: A plan that has begun is let come to its end; in drivers that are new it takes twice as long as in others.
_LONGEST_PLAN = 240
#: What ends the name of a test that carries one out.
_SEED = re.compile(r"test_whatever_\w+\[(\d+)\]$")


class Lanes:
    """Stands where a bench does. Whichever is free takes the next seed; the first that notices ends it for all: the
    others break off what they do.
    """

    def __init__(self, folder: Path, count: int, *, seeds: int, seconds: int) -> None:
        """*seconds*: after so many of a broken rule no seed begins any more; 0: each does."""
        self._over, self._taken = folder / "over", folder / "taken"
        self._seeds, self._seconds = seeds, seconds
        #: The seeds that fail without anything being broken: of those a failure shows nothing.
        self._failing: set[int] = set()
        told = {CHAOS_OVER: str(self._over), CHAOS_TAKEN: str(self._taken)}
        self.benches: Sequence[Bench] = [Bench(folder / str(n), first=True, told=told) for n in range(count)]

    def tried(self, mutation: Mutation) -> Verdict:
        """What plans that need no store notice, and if they do not, those that need one."""
        self._begin([s for s in seeds_for(mutation, self._seeds) if s not in self._failing], self._seconds)
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
        """Those that do not pass on the code as it is, of all seeds, however long they take: drivers and stores are
        quick after that. What one bench leaves out another has taken.
        """
        self._begin(range(1, self._seeds + 1))
        with ThreadPoolExecutor(len(self.benches)) as pool:
            found = list(pool.map(lambda bench: bench.unbroken(tests), self.benches))
        everywhere = set.intersection(*map(set, found))
        failing = {
            test: why
            for wrong in found
            for test, why in wrong.items()
            if test in everywhere or (test not in tests and why != LEFT_OUT)
        }
        self._failing |= {int(seed[1]) for test in failing if (seed := _SEED.search(test))}
        return failing

    def _begin(self, seeds: Sequence[int], seconds: int = 0) -> None:
        """None of these seeds is taken, and nothing is noticed."""
        for bench in self.benches:
            bench.told |= {CHAOS_SEEDS: ",".join(map(str, seeds)), CHAOS_SECONDS: str(seconds or "inf")}
            bench.seconds = (seconds or len(seeds) * _LONGEST_PLAN) + _LONGEST_PLAN
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
