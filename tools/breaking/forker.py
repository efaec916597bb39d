"""Runs pytest again and again, each time in a fork of this process, which has loaded what every run loads and nothing
of ours.

One request a line on the standard input, one answer a line on the standard output. A fork that does not end in time is
ended, with all it started; so is the one that runs when this process is told to end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import happybase  # noqa: F401
import hypothesis  # noqa: F401
import pydantic  # noqa: F401
import pyspark.sql  # noqa: F401
import pytest
import rich.table  # noqa: F401
import yaml  # noqa: F401


def main() -> None:
    """Serve until the standard input ends."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    # To compile all of ours takes a fork as long as a quick test.
    sys.dont_write_bytecode, sys.pycache_prefix = False, str(Path.cwd() / "pycache")
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            _test(request)
        print(json.dumps(_code(child, request["seconds"])), flush=True)


def _test(request: dict) -> None:
    os.setsid()
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for old, new in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(old, new)
    os.chdir(request["folder"])
    os.environ |= request["environment"]
    os.environ["PYTHONPATH"] = os.pathsep.join(request["paths"])
    sys.path[:1] = request["paths"]
    code = 3
    try:
        code = int(pytest.main(request["arguments"]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _code(child: int, seconds: float) -> int | None:
    """The exit code; None where it did not end in time."""
    deadline = time.monotonic() + seconds
    ended = 0
    try:
        while time.monotonic() < deadline:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.02)
        return None
    finally:
        if not ended:
            with suppress(ProcessLookupError):  # it has no group of its own yet
                os.killpg(child, signal.SIGKILL)
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


if __name__ == "__main__":
    main()
