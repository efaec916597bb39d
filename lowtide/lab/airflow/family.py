"""A server's process and all that it started: Airflow's workers, their tasks, and the drivers of Spark that these wait for."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time

from lowtide.lab.stack.processes import PROC, Process, start_time


def end_family(leader: Process, patience: float) -> None:
    """Ask *leader*, its descendants and the rest of its session to end; after *patience* seconds make them."""
    members = [leader, *_family(leader)]
    for process in members:
        process.signal(signal.SIGTERM)
    deadline = time.monotonic() + patience
    for process in members:
        if not process.gone_within(max(0.0, deadline - time.monotonic())):
            process.kill()
    # What was started meanwhile, by one that was asked and had not ended yet.
    for process in _family(leader):
        process.kill()


def _family(leader: Process) -> list[Process]:
    """Descendants by parent, and members of the leader's session, which stay in it when their parents die.

    The leader's id names its session as long as that has members, so it is not given to another process meanwhile; should another
    one bear it all the same, the session is that one's.
    """
    rows = _processes()
    ours = {leader.pid} if start_time(leader.pid) in (None, leader.started) else set()
    found: set[int] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for pid, parent, session in rows:
            if parent in ours | found or session in ours:
                found.add(pid)
    found.discard(leader.pid)
    return [Process(pid, started) for pid in sorted(found) if (started := start_time(pid))]


def _processes() -> list[tuple[int, int, int]]:
    """Of every process its id, its parent's, and its session's."""
    if not PROC.is_dir():
        asked = ["ps", "-A", "-o", "pid=,ppid=,sess="]
        rows = (
            line.split()
            for line in subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
        )
        return [(int(pid), int(parent), int(session) if session.isdigit() else 0) for pid, parent, session in rows]
    # Read here: not every Linux has a `ps`.
    found = []
    for file in PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            # The program's name is in parentheses and may hold spaces: count from behind it.
            fields = file.read_text().rpartition(")")[2].split()
            found.append((int(file.parent.name), int(fields[1]), int(fields[3])))
    return found
