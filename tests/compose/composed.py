"""docker-compose.yaml brought up for real: built, watched until all is well, asked, taken down."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lowtide.lab.stack.config import free_ports_config

ROOT = Path(__file__).resolve().parents[2]
#: Not the name under which a person's own stack runs: its containers and volumes are others.
PROJECT = "lowtide-test"
_PATIENCE_SECONDS = 1500
_REMEDY = (
    "install one (Debian: apt-get install docker.io docker-compose) and start it, or point DOCKER_HOST at one that runs"
)


class ComposeError(Exception):
    """The stack could not be built or did not come up; the message ends with what its log says."""


def command() -> list[str]:
    """The Compose that is installed.

    Raises:
        ComposeError: there is none, or no engine answers.
    """
    try:
        engine = subprocess.run(["docker", "version"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise ComposeError(f"there is no docker; {_REMEDY}") from None
    if engine.returncode:
        raise ComposeError(f"no Docker engine answers ({engine.stderr.strip()}); {_REMEDY}")
    for words in (["docker", "compose"], ["docker-compose"]):
        try:
            if not subprocess.run([*words, "version"], capture_output=True, check=False).returncode:
                return words
        except FileNotFoundError:
            continue
    raise ComposeError("there is no Compose; install one (Debian: apt-get install docker-compose)")


def tell(text: str) -> None:
    """Progress: this takes its time (make compose-test lets pytest capture nothing)."""
    print(text, flush=True)


@dataclass
class Composed:
    """The stack under test, on ports that are free now."""

    logs: Path
    command: list[str] = field(default_factory=command)

    def __post_init__(self) -> None:
        ports = free_ports_config(self.logs)
        self._ports = {"AIRFLOW_PORT": str(ports.thrift_port), "SPARK_PORT": str(ports.tso_port)}
        self._environment = os.environ | self._ports

    @property
    def airflow(self) -> str:
        """The address of Airflow's page."""
        return f"http://127.0.0.1:{self._ports['AIRFLOW_PORT']}"

    @property
    def spark(self) -> str:
        """The address of Spark's page."""
        return f"http://127.0.0.1:{self._ports['SPARK_PORT']}"

    @property
    def password(self) -> str:
        """That of Airflow's user."""
        lines = (ROOT / ".env").read_text("utf-8").splitlines()
        return next(line.partition("=")[2] for line in lines if line.startswith("AIRFLOW_PASSWORD="))

    def build(self) -> None:
        """Build the images; what has not changed since the last time is kept."""
        tell("building the images (many minutes the first time)")
        self._logged("build")

    def up(self) -> None:
        """Start everything and wait until every server is healthy and every one-shot is done; each is told as it
        comes.
        """
        began, told = time.monotonic(), dict[str, str]()
        services = set(self.run("config", "--services").split())
        with self._log("up").open("wb") as log:
            starting = subprocess.Popen(
                self._words("up", "-d"), stdout=log, stderr=log, cwd=ROOT, env=self._environment
            )
        try:
            while True:
                states = self.states()
                for service in states.keys() & services:
                    if told.get(service) != states[service] and states[service] in {"healthy", "done"}:
                        tell(f"  {time.monotonic() - began:4.0f} s  {service} {states[service]}")
                told = states
                self._refuse(starting.poll(), states)
                if starting.poll() == 0 and all(states.get(each) in {"healthy", "done"} for each in services):
                    return
                if time.monotonic() - began > _PATIENCE_SECONDS:
                    waiting = sorted(each for each in services if states.get(each) not in {"healthy", "done"})
                    raise ComposeError(self._told(f"not up after {_PATIENCE_SECONDS} s", waiting))
                time.sleep(2)
        finally:
            if starting.poll() is None:
                starting.terminate()
                starting.wait()

    def down(self) -> None:
        """End everything and remove its volumes."""
        self._logged("down", "--volumes", "--remove-orphans")

    def states(self) -> dict[str, str]:
        """Each container by its service: ``healthy``, ``unhealthy``, ``starting``, ``done``, ``failed``, or as Docker
        says.
        """
        asked = ["docker", "ps", "--all", "--filter", f"label=com.docker.compose.project={PROJECT}", "--format"]
        shown = subprocess.run(
            [*asked, '{{.Label "com.docker.compose.service"}}\t{{.Label "com.docker.compose.oneoff"}}\t{{.Status}}'],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        rows = [line.split("\t") for line in shown.splitlines()]
        return {service: _state(status) for service, oneoff, status in rows if oneoff != "True"}

    def run(self, *words: str) -> str:
        """What a command of Compose prints.

        Raises:
            ComposeError: it failed.
        """
        done = subprocess.run(
            self._words(*words), capture_output=True, text=True, cwd=ROOT, env=self._environment, check=False
        )
        if done.returncode:
            raise ComposeError(f"{' '.join(words)} ended with {done.returncode}:\n{_tail(done.stdout + done.stderr)}")
        return done.stdout

    def exec(self, service: str, *words: str) -> str:
        """What a command in the service's container prints."""
        return self.run("exec", "-T", service, *words)

    def json(self, service: str, *words: str) -> Any:
        """The same of a command that prints JSON."""
        return json.loads(self.exec(service, *words))

    def tail(self, *services: str) -> str:
        """The ends of the services' logs."""
        words = self._words("logs", "--no-color", "--tail", "40", *services)
        return subprocess.run(
            words, capture_output=True, text=True, cwd=ROOT, env=self._environment, check=False
        ).stdout

    # --- inside -----------------------------------------------------------------------------------------------------

    def _refuse(self, code: int | None, states: dict[str, str]) -> None:
        failed = sorted(service for service, state in states.items() if state in {"unhealthy", "failed"})
        if failed:
            raise ComposeError(self._told("did not come up", failed))
        if code:
            raise ComposeError(f"up ended with {code}:\n{_tail(self._log('up').read_text('utf-8', 'replace'))}")

    def _told(self, what: str, services: list[str]) -> str:
        return f"{', '.join(services)}: {what}\n{self.tail(*services)}"

    def _words(self, *words: str) -> list[str]:
        return [*self.command, "--project-name", PROJECT, *words]

    def _log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def _logged(self, *words: str) -> None:
        log = self._log(words[0])
        with log.open("wb") as sink:
            code = subprocess.run(
                self._words(*words), stdout=sink, stderr=sink, cwd=ROOT, env=self._environment, check=False
            ).returncode
        if code:
            raise ComposeError(f"{words[0]} ended with {code}:\n{_tail(log.read_text('utf-8', 'replace'))}")


def _state(status: str) -> str:
    """Of Docker's words, such as "Up 5 seconds (health: starting)" or "Exited (0) 2 minutes ago"."""
    if status.startswith("Exited"):
        return "done" if status.startswith("Exited (0)") else "failed"
    return next((word for word in ("unhealthy", "starting", "healthy") if word in status), status)


def _tail(text: str, lines: int = 40) -> str:
    return "\n".join(text.splitlines()[-lines:])
