"""Server processes that outlive us: started, recognised again, ended.

A process is known by its id *and* its start time, so that another program which got the same id later is never taken
for ours.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

PROC = Path("/proc")


@dataclass(frozen=True)
class Process:
    """A process that was started once; it may be gone."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """Whether this very process still runs."""
        return start_time(self.pid) == self.started

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process is gone."""
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def gone_within(self, seconds: float) -> bool:
        """Wait up to *seconds* for the process to end."""
        deadline = time.monotonic() + seconds
        while self.alive:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def end(self, patience: float) -> None:
        """Ask it to end; after *patience* seconds make it."""
        self.signal(signal.SIGTERM)
        if not self.gone_within(patience):
            self.kill()

    def kill(self) -> None:
        """End it at once, without any of its clean-up."""
        self.signal(signal.SIGKILL)
        self.gone_within(10)


def start_time(pid: int) -> str | None:
    """When process *pid* was started, as a text that is equal for equal processes; None if it does not run.

    A process that ended and waits for its parent to notice does not run; if we are that parent, we notice now.
    """
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    if not PROC.is_dir():
        answer = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False)
        return answer.stdout.strip() or None
    try:
        # The second field is the program's name in parentheses and may hold spaces: count from behind it.
        fields = (PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        boot = (PROC / "sys/kernel/random/boot_id").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The first thread of a killed process is dead before the others, which still hold its ports.
    dead = fields[0] in "ZX" and int(fields[17]) <= 1
    return None if dead else f"{boot}:{fields[19]}"


def spawn(command: Sequence[str], output: Path, folder: Path) -> Process:
    """Start *command* in a session of its own, so that it outlives us; its output goes to the end of *output*."""
    with output.open("ab") as sink:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, cwd=folder, start_new_session=True
        )
    # Ended already: the start time is unknown, and the empty text equals none.
    return Process(child.pid, start_time(child.pid) or "")


class ProcessFile:
    """The processes of a store by part, in one JSON file that is replaced as a whole."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> dict[str, Process]:
        """Every process recorded; running or not."""
        if not self._path.exists():
            return {}
        return {part: Process(**known) for part, known in json.loads(self._path.read_text("utf-8")).items()}

    def record(self, part: str, process: Process | None) -> None:
        """Remember *process* as the one of *part*; None forgets it."""
        known = self.read()
        known.pop(part, None)
        if process:
            known[part] = process
        draft = self._path.with_suffix(".new")
        draft.write_text(json.dumps({name: asdict(each) for name, each in known.items()}), "utf-8")
        draft.replace(self._path)
