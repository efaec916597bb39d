"""Runs of jobs as processes of their own, as ``lowtide run`` starts them, and what is done to them by signals."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import yaml

from lowtide.config import load
from lowtide.run.submit import command, environment

_PHASE = re.compile(r"^\w+: ([\w ]+) took [\d.]+ s$")
#: What makes plans of some hundred rows start sooner; results depend on none of it.
_SMALL = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def configure(file: Path, **hbase: Any) -> None:
    """Have the configuration in *file* start small runs of one thread; *hbase* takes the place of that section's."""
    content = yaml.safe_load(file.read_text())
    content["spark"] = {"master": "local[1]", "driver_memory": "640m", "conf": _SMALL}
    content["hbase"] |= hbase
    file.write_text(yaml.safe_dump(content))


class JobProcess:
    """A run that goes on by itself: ``spark-submit``, its virtual machine and its Python, in a session of their own.

    *at* is called with the name of each phase as soon as the run says that it is over, in the thread that reads what it
    prints. What it prints is in ``FOLDER/RUN.log``, its summary in ``FOLDER/RUN.json``, if it got so far.
    """

    def __init__(
        self,
        config: Path,
        job: str,
        run: str,
        arguments: Sequence[str],
        folder: Path,
        at: Callable[[str], None] = lambda _: None,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.job, self.run, self.summary, self.log = job, run, folder / f"{run}.json", folder / f"{run}.log"
        self.phases: list[str] = []
        self.stopped = threading.Event()
        self._at = at
        words = ["--config", str(config), "--run-id", run, "--summary", str(self.summary), *arguments]
        self._process = subprocess.Popen(
            command(load(config), job, words),
            env=environment(),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, name=run, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self.log.open("w") as log:
            for line in self._process.stdout:
                if found := _PHASE.match(line.strip()):
                    self.phases.append(found[1])
                    self._at(found[1])
                log.write(line)
                log.flush()

    @property
    def pid(self) -> int:
        """Of ``spark-submit``, which leads the session."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it has not ended; one that stands still has not."""
        return self._process.poll() is None

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def stop(self) -> None:
        """SIGSTOP to all of it: it stands still wherever it is."""
        self._signal(signal.SIGSTOP)
        self.stopped.set()

    def resume(self) -> None:
        """SIGCONT to all of it."""
        self.stopped.clear()
        self._signal(signal.SIGCONT)

    def kill(self) -> None:
        """SIGKILL to all of it, driver and virtual machine; returns when it is gone."""
        self._signal(signal.SIGKILL)
        self._process.wait()

    def wait(self, seconds: float) -> int | None:
        """Its exit code, negative for a signal; None: it has not ended after so long."""
        try:
            code = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        self._reader.join(10)
        return code

    def await_stop(self, seconds: float) -> bool:
        """Whether it came to stand still, within so long and before it ended."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.alive:
            if self.stopped.wait(0.2):
                return True
        return self.stopped.is_set()
