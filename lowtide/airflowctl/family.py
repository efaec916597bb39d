"""A server's process and all that it started: Airflow's workers, their tasks, and the drivers of Spark that these wait for."""

from __future__ import annotations

import signal
import subprocess
import time

from lowtide.stack.processes import Process, start_time


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
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,sess="], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in listed.splitlines()]
    ours = {leader.pid} if start_time(leader.pid) in (None, leader.started) else set()
    found: set[int] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for pid, parent, session in rows:
            if int(parent) in ours | found or (session.isdigit() and int(session) in ours):
                found.add(int(pid))
    found.discard(leader.pid)
    return [Process(pid, started) for pid in sorted(found) if (started := start_time(pid))]
