"""Servers that outlive the program that started them: started, found again, ended with all that they started.

What a process is doing and what it has started, psutil knows. Written here is what psutil does not do: its own identity
of a process ends with the program that asked, and its ``create_time`` moves when the clock is set; members of a session
whose parents have died are nobody's children to it; and it waits for the exit code of a child or for an id to vanish,
where a process counts as ended as soon as it holds no port any more, whoever its parent is.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import psutil

from lowtide.lab.waiting import reached

State = Literal["running", "stopped", "killed", "not answering"]
Progress = Callable[[str], None]

#: Of the boot that the kernel runs since; there is none on macOS, whose start times do not count from it.
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class Process:
    """A process that was started once; it may be gone.

    It is known by its id *and* its start time, so that another program which got the same id later is never taken for
    it.
    """

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
        return reached(lambda: not self.alive, seconds, pause=0.05)

    def kill(self) -> None:
        """End it at once, without any of its clean-up, as a crash does; what it started goes on."""
        self.signal(signal.SIGKILL)
        self.gone_within(10)

    def end(self, patience: float) -> None:
        """Ask it, its descendants and the rest of its session to end; after *patience* seconds make them."""
        members = [self, *self._family()]
        for process in members:
            process.signal(signal.SIGTERM)
        deadline = time.monotonic() + patience
        for process in members:
            if not process.gone_within(max(0.0, deadline - time.monotonic())):
                process.kill()
        # What was started meanwhile, by one that was asked and had not ended yet.
        for process in self._family():
            process.kill()

    def _family(self) -> list[Process]:
        """Descendants by parent; and the session that it leads, where members stay when their parents die, with theirs.

        Its id names the session as long as that has members, so it is not given to another process meanwhile; should
        another one bear it all the same, the session is that one's.
        """
        if start_time(self.pid) not in (None, self.started):
            return []
        found = {pid for pid in psutil.pids() if self.pid in (pid, _session(pid))}
        for pid in tuple(found):
            with contextlib.suppress(psutil.NoSuchProcess):
                found |= {child.pid for child in psutil.Process(pid).children(recursive=True)}
        return [Process(pid, started) for pid in sorted(found - {self.pid}) if (started := start_time(pid))]


@dataclass(frozen=True)
class Part:
    """A server as it is now.

    ``stopped``: not started, or ended in good order. ``killed``: it was started and its process is gone.
    ``not answering``: its process runs, and it did not say that it is well (it may still boot).
    """

    name: str
    state: State
    pid: int | None


class Servers:
    """The servers of one home folder, by name. Any number of objects and programs may control the same.

    ``run/processes.json`` holds their processes, replaced as a whole; ``logs/NAME.out`` what they print.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self._file = home / "run" / "processes.json"

    def processes(self) -> dict[str, Process]:
        """Every process recorded; running or not."""
        if not self._file.exists():
            return {}
        return {name: Process(**known) for name, known in json.loads(self._file.read_text("utf-8")).items()}

    def record(self, name: str, process: Process | None) -> None:
        """Remember *process* as the one of *name*; None forgets it."""
        known = self.processes()
        known.pop(name, None)
        if process:
            known[name] = process
        draft = self._file.with_suffix(".new")
        draft.write_text(json.dumps({each: asdict(process) for each, process in known.items()}), "utf-8")
        draft.replace(self._file)

    def start(self, name: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Start a server in the home folder; *environment* in place of ours."""
        self.record(name, spawn(command, self.output(name), self.home, environment))

    def end(self, name: str, patience: float) -> None:
        """End a server, should it run, with all that it started, and forget it; see :meth:`Process.end`."""
        if process := self.processes().get(name):
            process.end(patience)
            self.record(name, None)

    def kill(self, name: str) -> None:
        """End a server as a crash does; it then counts as killed."""
        if process := self.processes().get(name):
            process.kill()

    def part(self, name: str, answers: Callable[[str], bool]) -> Part:
        """A server as it is now; *answers*, given its name, is asked only while its process runs."""
        process = self.processes().get(name)
        if process is None:
            return Part(name, "stopped", None)
        if not process.alive:
            return Part(name, "killed", process.pid)
        return Part(name, "running" if answers(name) else "not answering", process.pid)

    def ports(self, name: str) -> list[int]:
        """The TCP ports on which a server listens now."""
        process = self.processes().get(name)
        if process is None or not process.alive:
            return []
        try:
            found = psutil.Process(process.pid).net_connections("tcp")
        except psutil.NoSuchProcess:
            return []
        return sorted({each.laddr.port for each in found if each.status == psutil.CONN_LISTEN})

    def output(self, name: str) -> Path:
        """The file of what a server prints."""
        return self.folder("logs") / f"{name}.out"

    def folder(self, name: str) -> Path:
        """A folder of the home, made if need be."""
        folder = self.home / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextlib.contextmanager
    def exclusively(self) -> Iterator[None]:
        """One program at a time changes what runs; a second waits."""
        with (self.folder("run") / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def spawn(command: Sequence[str], output: Path, folder: Path, environment: Mapping[str, str] | None = None) -> Process:
    """Start *command* in a session of its own, so that it outlives us; its output goes to the end of *output*."""
    with output.open("ab") as sink:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
    # Ended already: the start time is unknown, and the empty text equals none.
    return Process(child.pid, start_time(child.pid) or "")


def start_time(pid: int) -> str | None:
    """When process *pid* was started, as a text that is equal for equal processes; None if it does not run.

    A process that ended and waits for its parent to notice does not run; if we are that parent, we notice now.
    """
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)
    try:
        process = psutil.Process(pid)
        # The first thread of a killed process is dead before the others, which still hold its ports.
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD) and process.num_threads() <= 1:
            return None
        started = process.create_time()
    except psutil.NoSuchProcess:
        return None
    # Since the boot, where there is one to count from: that stays the same when the clock is set.
    return f"{_BOOT.read_text().strip()}:{started - psutil.boot_time():.2f}" if _BOOT.exists() else f"{started:.6f}"


def last_words(files: Sequence[Path], lines: int) -> str:
    """The last *lines* of each of *files* that is there."""
    found = [file.read_text("utf-8", errors="replace").splitlines()[-lines:] for file in files if file.exists()]
    return "\n".join(line for each in found for line in each)


def _session(pid: int) -> int | None:
    with contextlib.suppress(OSError):  # gone, or of another user
        return os.getsid(pid)
    return None
