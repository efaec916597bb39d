"""Prometheus, for the tests of the folder ``monitoring/``: a server that scrapes for a while, and ``promtool``."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import yaml

from lowtide.lab.stack.config import free_ports

ROOT = Path(__file__).resolve().parent.parent
#: Where tools/get-prometheus puts them.
FOLDER = ROOT / ".lowtide" / "prometheus" / "usr" / "bin"
#: Seconds that a server may take to start on a machine that has much else to do.
_PATIENCE = 60.0


def program(name: str) -> str | None:
    """``prometheus`` or ``promtool``: the one on the path, else Debian's, unpacked here; None: there is none."""
    return shutil.which(name) or shutil.which(name, path=str(FOLDER))


def is_there() -> bool:
    """Whether this machine has both."""
    return all(map(program, ("promtool", "prometheus")))


def promtool(*arguments: str | Path, given: bytes | None = None) -> str:
    """What it prints; *given* is its standard input.

    Raises:
        AssertionError: it says that something is wrong; with what it says.
    """
    command = [program("promtool") or "promtool", *map(str, arguments)]
    done = subprocess.run(command, input=given, capture_output=True, check=False)
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, f"promtool {' '.join(map(str, arguments))}:\n{said}"
    return said


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    url: str

    def get(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API.

        Raises:
            AssertionError: it refused; with its reason.
        """
        answer = httpx.get(f"{self.url}/api/v1/{path}", params=parameters, timeout=_PATIENCE, trust_env=False)
        body = answer.json()
        assert body["status"] == "success", f"{parameters}: {body}"
        return body["data"]

    def query(self, expression: str, at: float | None = None) -> list[dict[str, Any]]:
        """The series that an expression has now, or had *at* a time, in seconds since 1970."""
        when = {} if at is None else {"time": str(at)}
        found: list[dict[str, Any]] = self.get("query", query=expression, **when)["result"]
        return found

    def over_time(self, expression: str, since: float, until: float | None = None) -> list[dict[str, Any]]:
        """The series that an expression had between two times, in seconds since 1970, in some two hundred steps; None:
        until now.
        """
        end = time.time() if until is None else until
        span = {"start": str(since), "end": str(end), "step": str(max(1, round((end - since) / 200)))}
        found: list[dict[str, Any]] = self.get("query_range", query=expression, **span)["result"]
        return found

    def wait_for(self, expression: str) -> None:
        """Until an expression has a series."""
        deadline = time.monotonic() + _PATIENCE
        while not self.query(expression):
            assert time.monotonic() < deadline, f"{expression} has no value: {json.dumps(self.get('targets'))}"
            time.sleep(0.2)


@contextmanager
def server(folder: Path, scrape_configs: Sequence[Mapping[str, Any]], rules: Sequence[Path] = ()) -> Iterator[Server]:
    """A server on a free port of the loopback for the block, that scrapes every second and evaluates *rules*."""
    (port,) = free_ports(1)
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(file) for file in rules],
        "scrape_configs": list(scrape_configs),
    }
    file = folder / "prometheus.yml"
    file.write_text(yaml.safe_dump(config))
    promtool("check", "config", file)
    address = f"127.0.0.1:{port}"
    arguments = (f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}", f"--web.listen-address={address}")
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([program("prometheus") or "prometheus", *arguments], stdout=log, stderr=log)
        try:
            made = Server(f"http://{address}")
            _until_ready(made, process, folder / "prometheus.log")
            yield made
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def _until_ready(made: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, log.read_text()
        try:
            if httpx.get(f"{made.url}/-/ready", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
