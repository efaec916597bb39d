"""Runs the phases: lanes side by side, each phase's output to its log, nothing left running whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from suite.cpu import MARK
from suite.phases import Phase
from suite.results import Case, closing, read_cases

#: How long a phase may take to end its stores when it is told to end.
_PATIENCE = 90


@dataclass(frozen=True)
class Done:
    """A phase that is over."""

    phase: Phase
    code: int
    seconds: float
    log: Path
    cases: Sequence[Case]


class Runner:
    """Runs phases in *root*, with logs and results in *out* and what tests leave in *temp*; *driver* is the environment
    of those that share a Spark driver; *whole*: every test, not this run's part of them."""

    def __init__(
        self, root: Path, out: Path, temp: Path, jobs: int, driver: Mapping[str, str], *, whole: bool = False
    ) -> None:
        self._root, self._out, self._temp, self._jobs, self._driver = root, out, temp, jobs, driver
        self._whole = whole
        self._running: set[subprocess.Popen[str]] = set()
        self._over = False

    def run(self, lanes: Sequence[Sequence[Phase]]) -> list[Done]:
        """Run every phase of every lane, also after one has failed. Interrupted, it ends what runs."""
        with ThreadPoolExecutor(max(1, len(lanes))) as pool:
            lines = [pool.submit(self._lane, lane) for lane in lanes]
            try:
                return [done for line in lines for done in line.result()]
            finally:
                self._over = True
                for process in list(self._running):
                    _end(process)

    def _lane(self, lane: Sequence[Phase]) -> list[Done]:
        return [self._phase(phase) for phase in lane]

    def _phase(self, phase: Phase) -> Done:
        log, junit = self._out / f"{phase.name}.log", self._out / f"{phase.name}.xml"
        began, code = time.monotonic(), 0
        for old in self._root.glob(phase.results or "-"):
            old.unlink()
        with log.open("w") as sink:
            for command in phase.made(self._jobs, junit, self._temp / phase.name, whole=self._whole):
                code = self._command(phase, command, sink.fileno()) or code
        seconds = time.monotonic() - began
        cases = read_cases(phase.name, [junit] if junit.exists() else sorted(self._root.glob(phase.results or "-")))
        word, counts = "FAILED" if code else "passed", closing(cases) if cases else ""
        print(f"{phase.name:8} {word} in {seconds / 60:.1f} min  {counts}".rstrip(), flush=True)
        return Done(phase, code, seconds, log, cases)

    def _command(self, phase: Phase, command: Sequence[str], sink: int) -> int:
        """Run a command; lines that tell how far it is are shown."""
        if self._over:
            return 1
        environment = {**os.environ, **(self._driver if phase.shares_driver else {}), MARK: phase.name}
        process = subprocess.Popen(
            command,
            cwd=self._root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._running.add(process)
        limit = threading.Timer(phase.limit * 60, _end, [process])
        limit.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                os.write(sink, line.encode())
                if line.rstrip().endswith("%]"):
                    print(f"{phase.name:8} {line.rstrip()}", flush=True)
            return process.wait()
        finally:
            limit.cancel()
            self._running.discard(process)


def _end(process: subprocess.Popen[str]) -> None:
    """As Ctrl-C does, so that its stores and servers are ended; what does not listen is killed."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
