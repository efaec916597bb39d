"""The warm driver itself: one process with one Spark session that runs one program after the other; see warm_driver.py.

Its arguments are its folder and whether it makes a session. It ends with the process that started it (its standard
input ends then), and when the ``spark-submit`` of a run is gone before the run is over: what such a run would still do
is not wanted any more, and a thread cannot be stopped.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import secrets
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

#: The exit code of a run that this driver would not make as it is asked for. No job ends with it.
REFUSED = 70


class RefusedError(Exception):
    """What was asked for is not what this driver does; the message says how it differs."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RefusedError(message)


def understood(argv: Sequence[str], settings: Mapping[str, str]) -> list[str]:
    """The program and its arguments, out of the arguments of ``spark-submit``.

    Raises:
        RefusedError: a setting of the run is not that of this driver, or nothing is known here of an option.
    """
    parser = _Parser(prog="spark-submit", allow_abbrev=False, add_help=False)
    parser.add_argument("--master")
    parser.add_argument("--deploy-mode", choices=["client"])
    parser.add_argument("--driver-memory")
    parser.add_argument("--name")
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args(argv)
    asked = dict(pair.split("=", 1) for pair in given.conf)
    short = {"spark.master": given.master, "spark.driver.memory": given.driver_memory}
    asked |= {name: value for name, value in short.items() if value is not None}
    differs = [
        f"{name}={value} (here {settings.get(name, 'nothing is set')})"
        for name, value in asked.items()
        if settings.get(name) != value
    ]
    if differs:
        raise RefusedError(f"the run asks for {', '.join(differs)}; let the real spark-submit have it")
    return [given.program, *given.arguments]


class Output:
    """All that this process and its JVM write, line by line to whoever listens, else to the log."""

    def __init__(self, log: BinaryIO) -> None:
        self._log = log
        self._listener: socket.socket | None = None
        self._end = b""
        self._over = threading.Event()
        reading, writing = os.pipe()
        for stream in (1, 2):
            os.dup2(writing, stream)
        os.close(writing)
        threading.Thread(target=self._pass_on, args=(reading,), daemon=True).start()

    @contextmanager
    def to(self, listener: socket.socket) -> Iterator[None]:
        """*listener* gets what is written in the body, and has all of it at the body's end."""
        self._end = secrets.token_hex(16).encode()
        self._over.clear()
        self._listener = listener
        try:
            yield
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os.write(1, self._end + b"\n")
            self._over.wait()

    def _pass_on(self, reading: int) -> None:
        with os.fdopen(reading, "rb") as lines:
            for line in lines:
                said, end, _ = line.partition(self._end) if self._end else (line, b"", b"")
                if said:
                    self._tell(said)
                if end:
                    self._listener = None
                    self._over.set()

    def _tell(self, said: bytes) -> None:
        self._log.write(said)
        if self._listener:
            with suppress(OSError):  # who hung up is noticed elsewhere
                self._listener.sendall(json.dumps({"said": said.decode(errors="replace")}).encode() + b"\n")


def start_session(settings: Mapping[str, str]) -> None:
    """The session that each run finds, as it finds the one that the real ``spark-submit`` prepared."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("warm driver")
    for name, value in settings.items():
        builder = builder.config(name, value)
    builder.getOrCreate().range(1).collect()


def forget() -> None:
    """What a run left in the session is no business of the next."""
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    if session:
        session.catalog.clearCache()


def run(words: Sequence[str], cwd: str, environment: Mapping[str, str]) -> int:
    """Run a program of Python as a process of its own would, and give its exit code."""
    before = (dict(os.environ), Path.cwd(), sys.argv, list(sys.path))
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.argv = list(words)
    sys.path.insert(0, str(Path(words[0]).parent))
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:  # as the interpreter does
        traceback.print_exc()
        return 1
    finally:
        os.environ.clear()
        os.environ.update(before[0])
        os.chdir(before[1])
        sys.argv, sys.path[:] = before[2], before[3]
    return 0


def end_now(*_: Any) -> NoReturn:
    """End this process and its JVM in the middle of whatever they do."""
    if "pyspark" in sys.modules:
        from pyspark import SparkContext

        if SparkContext._gateway:
            SparkContext._gateway.proc.kill()
    os._exit(1)


def end_at_the_end_of(stream: BinaryIO) -> threading.Event:
    """End when nothing more can come from *stream*, unless the event is set by then."""
    over = threading.Event()

    def wait() -> None:
        with suppress(OSError):
            stream.read()
        if not over.is_set():
            end_now()

    threading.Thread(target=wait, daemon=True).start()
    return over


def serve(line: socket.socket, output: Output, settings: Mapping[str, str]) -> None:
    """Make one run."""
    with line.makefile("rb") as asking:
        request = json.loads(asking.readline())
        over = end_at_the_end_of(asking)
        with output.to(line):
            try:
                words = understood(request["argv"], settings)
                print(f"warm driver {os.getpid()}: {words[0]}", flush=True)
                code = run(words, request["cwd"], request["environment"])
            except RefusedError as error:
                print(f"the warm driver refuses this run: {error}", flush=True)
                code = REFUSED
        over.set()
        line.sendall(json.dumps({"code": code}).encode() + b"\n")


def main(folder: Path, with_session: bool) -> None:
    parent = os.fdopen(os.dup(0), "rb")
    end_at_the_end_of(parent)
    output = Output((folder / "log").open("ab", buffering=0))
    settings = json.loads((folder / "settings.json").read_text())
    os.chdir(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        server.listen()
        if with_session:
            start_session(settings)
        while True:
            line, _ = server.accept()
            with line:
                serve(line, output, settings)
            if with_session:
                forget()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] == "session")
