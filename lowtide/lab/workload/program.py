"""A Java program that takes commands on its standard input and answers on its standard output, a line of JSON each."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from lowtide.errors import LowtideError


class Store(Protocol):
    """What a client program must know of its store: an embedded ``Stack``, or a ``RemoteStore``."""

    @property
    def oracle(self) -> str:
        """The oracle's address, host:port."""

    @property
    def conflict_map_size(self) -> int:
        """How many written cells the oracle remembers."""

    @property
    def logs(self) -> Path:
        """Where programs log."""

    def java_command(
        self, main_class: str, *args: str, heap: str = ..., log: str = ..., options: Sequence[str] = ...
    ) -> list[str]:
        """The command of a Java program with the client's classes and the store's configuration."""


class WorkloadError(LowtideError):
    """The client program refused a command or is gone."""


class Program:
    """One such process, ended at the latest when the program that started it ends. Use as a context manager."""

    def __init__(self, store: Store, main_class: str, *arguments: str, heap: str, log: str) -> None:
        logs = store.logs
        logs.mkdir(parents=True, exist_ok=True)
        command = store.java_command(main_class, *arguments, heap=heap, log=log, options=["-XX:TieredStopAtLevel=1"])
        with (logs / f"{log}.out").open("ab") as errors:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8"
            )
        self._log = logs / f"{log}.log"

    def close(self) -> None:
        """End the client in peace."""
        if self._process.stdin:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self.kill()
        if self._process.stdout:
            self._process.stdout.close()

    def kill(self) -> None:
        """SIGKILL: whatever was under way stays as it is."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def wait(self, seconds: float) -> None:
        """Wait for the client to end by itself, as one that halts does."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            msg = f"the client {self._process.pid} still runs after {seconds:.0f} s; see {self._log}"
            raise WorkloadError(msg) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _do(self, command: str, **request: Any) -> Any:
        self._send(command, **request)
        return self._receive(command)

    def _receive(self, command: str) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            raise WorkloadError(f"the client ended with {code} at {command!r}; see {self._log}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkloadError(f"{command}: {answer['error']}")
        return answer["answer"]

    def _send(self, command: str, **request: Any) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": command, **request}) + "\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError) as e:
            raise WorkloadError(f"the client is gone ({command!r} cannot be sent); see {self._log}") from e
