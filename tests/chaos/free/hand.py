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

from tests.chaos.free.zombies import CASES, ForProcesses, Wakening, made
from tests.chaos.laboratory import opened_laboratory


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
                director = Wakening(replace(lab, folder=folder / f"zombie-{done}"), plan)
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


MODES = {"zombies": zombies}
