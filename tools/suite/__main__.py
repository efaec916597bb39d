"""All checks and tests, in phases that share the machine: ``make test``.

Phases of one lane follow one another; lanes run side by side, since some wait while others compute. Each phase has its
log and its JUnit file in ``.lowtide/suite``. At the end: the output of what failed, how long each file, test and phase
took, what was left out and what would bring it in, what failed by name once more, and the total.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from suite.cpu import MARK, Meter
from suite.phases import LANES, PHASES
from suite.results import closing
from suite.running import Runner
from suite.tables import print_durations, print_failed, print_left_out, print_phases
from tests import seeds, warm

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / ".lowtide" / "suite"
_GIB = 1024**3
#: What all phases together put on the disk at a time, with the room that each of their stores asks for.
_NEEDS = 3 * _GIB


def main() -> int:
    """Run the phases that were asked for; 1 if one of them failed."""
    parser = argparse.ArgumentParser(prog="make test", description="All checks and tests.")
    parser.add_argument("--only", nargs="+", choices=PHASES, default=list(PHASES), metavar="PHASE")
    parser.add_argument("--jobs", type=int, default=2, help="processes that share a phase's files of tests")
    parser.add_argument("--whole", action="store_true", help="every test of a store, not this run's part of them")
    arguments = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    for old in OUT.glob("*.xml"):
        old.unlink()
    lanes = [[PHASES[name] for name in lane if name in arguments.only] for lane in LANES]
    print(f"LOWTIDE_SEED={seeds.RUN} brings back all that is drawn by chance in this run", flush=True)
    began = time.monotonic()
    os.environ[MARK] = "driver"  # what belongs to no phase: the driver that phases share
    check_room(Path(tempfile.gettempdir()))
    temp = Path(tempfile.mkdtemp(prefix="lowtide-tests-"))
    with Meter(temp) as meter, warm_driver(arguments.only, temp) as environment:
        done = Runner(ROOT, OUT, temp, arguments.jobs, environment, whole=arguments.whole).run(lanes)
    cases = [case for one in done for case in one.cases]
    for one in done:
        if one.code:
            print(f"\n===== {one.phase.name} failed; its output, from {one.log.relative_to(ROOT)}:\n")
            print(one.log.read_text(errors="replace"))
    print_durations(cases)
    used = meter.seconds
    rows = [(d.phase.name, d.seconds, used.get(d.phase.name, 0.0), d.code) for d in done]
    print_phases([*rows, ("driver", time.monotonic() - began, used.get("driver", 0.0), 0)])
    took, left = (meter.free - meter.least_free) / _GIB, meter.least_free / _GIB
    print(f"{(time.monotonic() - began) / 60:.1f} minutes in all; {took:.1f} GiB of disk, {left:.1f} GiB were left")
    print_left_out(cases)
    failed = [one for one in done if one.code]
    for one in failed:
        print_failed(one.phase.name, one.log, one.cases)
    if failed:
        print(f"what the tests left is in {temp}")
    else:
        shutil.rmtree(temp, ignore_errors=True)
    print(closing(cases), flush=True)
    return int(bool(failed))


def check_room(folder: Path) -> None:
    """End here, rather than in every test of a store, where the disk of *folder* has too little room."""
    free = shutil.disk_usage(folder).free
    if free < _NEEDS:
        sys.exit(
            f"make test: {folder} has {free / _GIB:.1f} GiB free, and the tests need {_NEEDS / _GIB:.0f}; "
            "free some, or name another folder: TMPDIR=FOLDER make test"
        )


@contextmanager
def warm_driver(phases: Collection[str], temp: Path) -> Iterator[dict[str, str]]:
    """One Spark driver for all processes that test Spark code: each would spend a minute on making its own quick."""
    if not any(PHASES[name].shares_driver for name in phases):
        yield {}
        return
    folder = temp / "driver"
    folder.mkdir()
    with warm.Driver(folder, warm.LONG_LIVED) as driver:
        yield driver.environment


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))  # by way of what ends the phases
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
