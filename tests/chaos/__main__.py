"""Chaos by hand: seed after seed for some time, or one again.

::

    make chaos SECONDS=3600            # new seeds for an hour; what fails is cut down
    make chaos SEED=17                 # this one
    make chaos SEED=17 KEEP=0,4,9      # of its plan these steps and seams alone
    make chaos PARKS=10                # ten runs of each plan more stand still, and go on when others have been there
    make chaos NEMESES=LATE,ORACLE     # of what fails around the jobs these alone; none: nothing
    make chaos PHOENIX=1               # other plans, in which clients of Apache Phoenix take steps too
    make chaos MODE=free SERVERS=3     # processes that run at the same time: tests/chaos/free
    make chaos MODE=zombies            # runs that stand still, and go on when others have been there
    python -m tests.chaos judge FOLDER # what a free run has recorded, once more
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.chaos import plan
from tests.chaos.cutting import cut_down
from tests.chaos.director import Director, Report
from tests.chaos.free.hand import MODES, judge
from tests.chaos.laboratory import Laboratory, opened_laboratory
from tests.chaos.nemeses import ALONE, SERVERS, Kind


def main() -> int:
    """Run seeds; 1 if something was wrong, or came out differently the second time."""
    if sys.argv[1:2] == ["judge"] and len(sys.argv) == 3:
        return judge(Path(sys.argv[2]))
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Chaos: seeds, and a judge.")
    parser.add_argument("--mode", choices=["baton", *MODES], default="baton", help="who moves when")
    parser.add_argument("--seconds", type=float, default=600, help="no seed begins later")
    parser.add_argument("--seed", type=int, help="this one only")
    parser.add_argument("--count", type=int, default=1, help="of zombies: with --seed, so many from it on")
    parser.add_argument("--keep", default="", help="of its plan these numbers only: 0,4,9")
    parser.add_argument("--jobs", type=int, default=plan.JOBS, help="runs of jobs a plan, or some more")
    parser.add_argument("--parks", type=int, default=0, help="so many runs of a plan more stand still, and go on later")
    parser.add_argument("--servers", type=int, default=0, help="region servers; 0: HBase is one process")
    parser.add_argument("--phoenix", action="store_true", help="clients of Apache Phoenix take steps too")
    parser.add_argument("--twice", type=int, default=0, help="every so many seeds are carried out twice and compared")
    parser.add_argument("--cut", type=int, default=40, help="how often a plan that fails is tried with less; 0: not")
    parser.add_argument("--print", action="store_true", help="print the plan, and carry nothing out")
    parser.add_argument("--nemeses", default="all", help=f"all, none, or some of {', '.join(k.name for k in Kind)}")
    asked = parser.parse_args()
    if asked.mode in MODES:
        return MODES[asked.mode](asked)
    first = asked.seed if asked.seed is not None else random.SystemRandom().getrandbits(24)
    if asked.print:
        print(_plan(first, asked))
        return 0
    with tempfile.TemporaryDirectory(prefix="lowtide-chaos-") as folder:
        log = Path(folder) / "jobs.log"
        with opened_laboratory(Path(folder), asked.servers, phoenix=asked.phoenix) as lab, log.open("w") as sink:
            return _seeds(Hand(lab, sink), first, asked)


class Hand:
    """Carries plans out, each in a folder of its own; what jobs print goes to a file."""

    def __init__(self, lab: Laboratory, sink: object) -> None:
        self._lab = lab
        self._sink = sink
        self._times = 0
        self.counts: Counter[str] = Counter()

    def __call__(self, what: plan.Plan) -> Report:
        self._times += 1
        lab = replace(self._lab, folder=self._lab.folder.with_name(f"plan-{self._times}"), origins=[])
        with contextlib.redirect_stdout(self._sink), contextlib.redirect_stderr(self._sink):  # type: ignore[type-var]
            report = Director(lab, what).carried_out()
        self.counts.update(report.counts)
        return report


def _seeds(hand: Hand, first: int, asked: argparse.Namespace) -> int:
    until = time.monotonic() + asked.seconds
    seeds, wrong = 0, 0
    seed = first
    while seeds == 0 or (asked.seed is None and time.monotonic() < until):
        began = time.monotonic()
        what = _plan(seed, asked)
        report = hand(what)
        found = list(report.wrong)
        again = asked.twice and seeds % asked.twice == 0
        if again and (second := hand(what)).digest != report.digest:
            report.wrong.append(f"carried out again it is another: {_apart(report.lines, second.lines)}")
        took = time.monotonic() - began
        told = f"seed {seed}: {what.jobs()} runs, {took:.0f} s, {report.digest}{' twice' if again else ''}"
        told += f", {report.counts['reads'] + report.counts['reads as of']} reads judged"
        print(f"{told}, {len(report.wrong)} wrong; {_met(report.counts)}", flush=True)
        if report.wrong or asked.seed is not None:
            print(report, flush=True)
        if report.wrong:
            wrong += 1
        if found:  # what comes of a plan only now and then is not cut down by trying each piece once
            _cut(hand, what, found, asked)
        seeds, seed = seeds + 1, seed + 1
    print(f"{seeds} seeds from {first} on, {wrong} wrong; {dict(sorted(hand.counts.items()))}")
    return int(bool(wrong))


def _plan(seed: int, asked: argparse.Namespace) -> plan.Plan:
    made = plan.made(seed, max(asked.jobs, asked.parks), _kinds(asked), asked.parks, phoenix=asked.phoenix)
    return made.only([int(n) for n in asked.keep.split(",")]) if asked.keep else made


def _kinds(asked: argparse.Namespace) -> frozenset[Kind]:
    """The kinds of nemeses that were asked for, of those that the store can have."""
    if asked.nemeses == "none":
        return frozenset()
    had = SERVERS if asked.servers else ALONE
    return had if asked.nemeses == "all" else had & {Kind[name] for name in asked.nemeses.split(",")}


def _cut(hand: Hand, what: plan.Plan, wrong: Sequence[str], asked: argparse.Namespace) -> None:
    """Print the smallest plan found that has something of the same kind wrong."""
    kinds = {_kind(line) for line in wrong}

    def fails(numbers: Sequence[int]) -> bool:
        return bool(kinds & {_kind(line) for line in hand(what.only(numbers)).wrong})

    if not asked.cut:
        return
    left = cut_down(what.numbers(), fails, asked.cut)
    numbers = ",".join(map(str, left))
    with_them = "" if asked.nemeses == "all" else f" NEMESES={asked.nemeses}"
    with_them += f" SERVERS={asked.servers}" if asked.servers else ""
    with_them += f" PARKS={asked.parks}" if asked.parks else ""
    with_them += " PHOENIX=1" if asked.phoenix else ""
    print(f"cut down to {len(left)} of {len(what.numbers())}: make chaos SEED={what.seed} KEEP={numbers}{with_them}")
    print(what.only(left), flush=True)


def _met(counts: Counter[str]) -> str:
    """Which nemeses struck, and what they did to whom."""
    ends = ("deaths", "zombies", "effects that failed", "requests that came late")
    kinds = ("nemesis: ", "requests: ", "exit ")
    met = {name: n for name, n in counts.items() if name in ends or name.startswith(kinds)}
    return ", ".join(f"{name.removeprefix('nemesis: ')} {n}" for name, n in sorted(met.items()))


def _kind(line: str) -> str:
    """Which rule it breaks; without one, how it begins."""
    return line[-3:] if line.endswith(")") else line.partition(": ")[2][:30]


def _apart(first: Sequence[str], second: Sequence[str]) -> str:
    """Where two reports part."""
    for a, b in zip(first, second, strict=False):
        if a != b:
            return f"{a!r}, and then {b!r}"
    return "one goes on"


if __name__ == "__main__":
    sys.exit(main())
