"""Several benches that deal out the seeds of chaos for one mutation: as many plans at a time as there are stores."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from breaking.bench import LEFT_OUT, Bench
from breaking.catalogue import (
    CHAOS_LINES,
    CHAOS_OVER,
    CHAOS_SECONDS,
    CHAOS_SEEDS,
    CHAOS_TAKEN,
    Mutation,
    by_chaos,
    by_chaos_in_memory,
    seeds_for,
)
from breaking.reach import Part, Reach
from breaking.verdict import BROKEN, ELSEWHERE, MISSED, NOTICED, Verdict
from breaking.warm import ROOT
from tests.chaos import plan
from tests.chaos.nemeses import SHARED

#: A plan that has begun is let come to its end; in drivers that are new it takes twice as long as in others.
_LONGEST_PLAN = 240
#: What ends the name of a test that carries one out.
_SEED = re.compile(r"test_whatever_\w+\[(\d+)(?::[\d.]+)?\]$")


class Lanes:
    """Stands where a bench does. Whichever is free takes the next seed; the first that notices ends it for all: the
    others break off what they do.
    """

    def __init__(self, folder: Path, count: int, *, seeds: int, seconds: int, lines: Path | None = None) -> None:
        """*seconds*: after so many of a broken rule no seed begins any more; 0: each does. *lines*: the folder that
        tells which of Lowtide's lines the plans run, if that is to be kept.
        """
        self._over, self._taken = folder / "over", folder / "taken"
        self._lines = lines or folder / "lines"
        self._seeds, self._seconds = seeds, seconds
        #: The seeds that fail without anything being broken: of those a failure shows nothing.
        self._failing: set[int] = set()
        told = {CHAOS_OVER: str(self._over), CHAOS_TAKEN: str(self._taken)}
        self.benches: Sequence[Bench] = [Bench(folder / str(n), first=True, told=told) for n in range(count)]

    def tried(self, mutation: Mutation) -> Verdict:
        """What plans that need no store notice, and if they do not, those that need one and run what is broken."""
        seeds = [seed for seed in seeds_for(mutation, self._seeds) if seed not in self._failing]
        try:
            parts = Reach(self._lines).parts(mutation, (ROOT / mutation.file).read_text(), seeds)
        except ValueError as error:
            return Verdict(BROKEN, output=str(error))
        self._begin(parts, self._seconds)
        quick = by_chaos_in_memory(mutation)
        if quick and (verdict := self.benches[0].tried(quick)).word == NOTICED:
            return verdict
        if not parts:
            return Verdict(MISSED, output="no plan runs what it breaks")
        slow = by_chaos(mutation)

        def on_a(bench: Bench) -> Verdict:
            verdict = bench.tried(slow)
            if verdict.word == NOTICED:
                self._over.touch()
            return verdict

        with ThreadPoolExecutor(len(self.benches)) as pool:
            verdicts = sorted(pool.map(on_a, self.benches), key=lambda verdict: -verdict.at)
        found = {verdict.word: verdict for verdict in verdicts}
        # It was noticed when the first did, and was not when the last had nothing more to ask.
        return found.get(NOTICED) or found.get(ELSEWHERE) or verdicts[0]

    def unbroken(self, tests: list[str]) -> dict[str, str]:
        """Those that do not pass on the code as it is, of all seeds, with all that they have and with nothing but their
        scenes, however long they take: drivers and stores are quick after that. What one bench leaves out another has
        taken.
        """
        self._lines.mkdir(exist_ok=True)
        plans = [plan.made(seed, nemeses=SHARED) for seed in range(1, self._seeds + 1)]
        scenes = [Part(each.seed, tuple(range(len(each.scenes)))) for each in plans if each.scenes]
        self._begin([*scenes, *(Part(each.seed) for each in plans)], lines=self._lines)
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

    def _begin(self, parts: Sequence[Part], seconds: int = 0, lines: Path | str = "") -> None:
        """None of these is taken, and nothing is noticed."""
        for bench in self.benches:
            bench.told |= {CHAOS_SEEDS: ",".join(map(str, parts)), CHAOS_SECONDS: str(seconds or "inf")}
            bench.told[CHAOS_LINES] = str(lines)
            bench.seconds = (seconds or len(parts) * _LONGEST_PLAN) + _LONGEST_PLAN
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
