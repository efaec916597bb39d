"""``make chaos MODE=free`` and ``MODE=zombies``, and ``python -m tests.chaos judge FOLDER``, by hand."""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

from tests.chaos.free import schedule
from tests.chaos.free.conductor import Conductor
from tests.chaos.free.judging import judged
from tests.chaos.free.wakening import ForProcesses, Wakening
from tests.chaos.free.zombies import CASES, made
from tests.chaos.laboratory import opened_laboratory

#: Where what was recorded is kept.
KEPT = Path(__file__).resolve().parents[3] / ".lowtide" / "chaos"


def zombies(asked: argparse.Namespace) -> int:
    """One after another for so many seconds, or those of a seed and after it; 1 if something was wrong."""
    first = asked.seed if asked.seed is not None else random.SystemRandom().getrandbits(24)
    most = asked.count if asked.seed is not None else sys.maxsize
    counts: Counter[str] = Counter()
    done, wrong, until = 0, 0, time.monotonic() + asked.seconds
    with tempfile.TemporaryDirectory(prefix="lowtide-zombies-") as name:
        folder = Path(name)
        log = folder / "jobs.log"
        with opened_laboratory(folder, asked.servers) as opened, log.open("w") as sink:
            lab = ForProcesses(**vars(opened))
            while done == 0 or (done < most and time.monotonic() < until):
                began, plan = time.monotonic(), made(first + done)
                director = Wakening(replace(lab, folder=folder / f"zombie-{done}", origins=[]), plan)
                with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
                    report = director.carried_out()
                counts.update(report.counts)
                job, what = CASES[plan.seed % len(CASES)]
                print(f"seed {plan.seed}, {time.monotonic() - began:.0f} s: {job}, {what}: {director.told}", flush=True)
                if report.wrong:
                    wrong += 1
                    print("\n".join([*report.trace, "", *report.wrong]), flush=True)
                done += 1
    print(f"{done} zombies from seed {first} on, {wrong} wrong; {dict(sorted(counts.items()))}")
    return int(bool(wrong))


def free(asked: argparse.Namespace) -> int:
    """One schedule of so many seconds, recorded and then judged; 1 if something was wrong."""
    seed = asked.seed if asked.seed is not None else random.SystemRandom().getrandbits(24)
    what = schedule.made(seed, asked.seconds, region_servers=bool(asked.servers))
    if asked.print:
        print(what)
        return 0
    folder = KEPT / f"free-{seed}-{time.strftime('%Y%m%dT%H%M%S')}"
    print(f"seed {seed}, {asked.seconds:.0f} s, {asked.servers} region servers; recorded in {folder}", flush=True)
    with (
        tempfile.TemporaryDirectory(prefix="lowtide-free-") as name,
        opened_laboratory(Path(name), asked.servers) as lab,
        (Path(name) / "jobs.log").open("w") as sink,
    ):
        begun = time.monotonic()
        with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            Conductor(lab, what, folder).carried_out()
        print(f"{time.monotonic() - begun:.0f} s, with the last rounds", flush=True)
    return judge(folder)


def judge(folder: Path) -> int:
    """Judge what is recorded in a folder; 1 if something was wrong.

    Raises:
        SystemExit: there is no history in it.
    """
    if not (folder / "history.jsonl").exists():
        raise SystemExit(f"{folder} has no history.jsonl: name a folder of make chaos MODE=free")
    verdict = judged(folder)
    print(verdict)
    return int(bool(verdict.wrong))


#: By ``--mode``; the baton is in ``__main__``.
MODES = {"free": free, "zombies": zombies}
