"""A job's driver as a child of this process, which ends no sooner than the driver: nothing goes on deleting that nobody
waits for.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import IO

#: Seconds that a driver has for its end: Spark's own clean-up takes some.
PATIENCE = 10.0
#: Ctrl-C, ``kill``, and a terminal that is closed.
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    stdout: IO[str] | None = None,
    stopping: Callable[[], None] = lambda: None,
) -> int:
    """Run *command* to its end; its exit code, or 128 and the signal's number where this process was told to stop.

    Then the child is told the same, has :data:`PATIENCE` to end, and is killed. A signal that this process ignores, as
    under nohup, is ignored here too. Only for a process's main thread.

    Args:
        command: the child's.
        environment: the child's.
        stdout: where its output goes, if not where this process's does.
        stopping: is called when this process is told to stop.
    """
    child: subprocess.Popen[bytes] | None = None
    told = 0
    timers: list[Timer] = []

    def end() -> None:
        if child is None or timers:
            return
        timers.append(Timer(PATIENCE, child.kill))
        timers[0].daemon = True
        timers[0].start()
        # Where the terminal told it already, it hears it twice, which is the same to it.
        child.send_signal(told)

    def hear(number: int, _: object) -> None:
        nonlocal told
        if not told:
            told = number
            stopping()
            end()

    with _heard(hear):
        child = subprocess.Popen(command, env=environment, stdout=stdout)
        if told:  # before there was a child
            end()
        code = child.wait()
    for timer in timers:
        timer.cancel()
    return 128 + told if told else code


@contextmanager
def _heard(hear: Callable[[int, object], None]) -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in _STOPS}
    heard = {number: known for number, known in before.items() if known is not signal.SIG_IGN}
    try:
        for number in heard:
            signal.signal(number, hear)
        yield
    finally:
        for number, known in heard.items():
            signal.signal(number, known)
