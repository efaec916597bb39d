"""How much of the processors each phase used, servers that it started included; and of the disk all of them."""

from __future__ import annotations

import shutil
import threading
import time
from collections import defaultdict
from pathlib import Path
from types import TracebackType

import psutil

#: Names the phase in the environment of all of its processes; those that leave their parent keep it.
MARK = "LOWTIDE_SUITE_PHASE"
_EVERY = 1.0


class Meter:
    """Adds up the processor seconds of marked processes while it is open, and looks how much is free on the disk that
    *folder* is on.

    What a process used after the last look at it, a second at most, is not counted.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        #: Bytes that were free when it was made, and when there were fewest.
        self.free = self.least_free = shutil.disk_usage(folder).free
        self._began = time.time()
        self._phases: dict[tuple[int, float], str] = {}
        self._used: dict[tuple[int, float], float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    @property
    def seconds(self) -> dict[str, float]:
        """Processor seconds by phase."""
        total: dict[str, float] = defaultdict(float)
        for key, used in self._used.items():
            total[self._phases[key]] += used
        return dict(total)

    def __enter__(self) -> Meter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY):
            self.look()

    def look(self) -> None:
        """Take note of what every marked process has used by now, and of what is free."""
        self.least_free = min(self.least_free, shutil.disk_usage(self._folder).free)
        for process in psutil.process_iter():
            try:
                key = (process.pid, process.create_time())
                if key[1] < self._began - 1:
                    continue
                # One without the mark may be about to become a marked program: it is asked again.
                if key not in self._phases and (phase := process.environ().get(MARK)):
                    self._phases[key] = phase
                if key in self._phases:
                    times = process.cpu_times()
                    self._used[key] = times.user + times.system
            except psutil.Error:
                continue
