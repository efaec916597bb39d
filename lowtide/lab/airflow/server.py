"""The processes of a local Airflow: start, look, stop."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lowtide.config import CONFIG_VARIABLE, load
from lowtide.lab.airflow.config import USER, AirflowConfig, AirflowError, password, write
from lowtide.lab.airflow.dags import Dags
from lowtide.lab.airflow.rest import Rest
from lowtide.lab.servers import Part, Progress, Servers, last_words
from lowtide.lab.stack.config import LOOPBACK, port_is_free
from lowtide.lab.waiting import reached
from lowtide.run.submit import POOL

#: The parts' names in the health report.
_COMPONENTS = {
    "api-server": "metadatabase",
    "scheduler": "scheduler",
    "dag-processor": "dag_processor",
    "triggerer": "triggerer",
}
#: The DAG that a store without a ledger has not.
_LEDGERS = "transaction_repair"
_BOOT_SECONDS = 180
_END_SECONDS = 15


class LocalAirflow:
    """Control of one local Airflow. Any number of objects and programs may control the same ``home``."""

    def __init__(self, config: AirflowConfig) -> None:
        self.config = config
        self._servers = Servers(config.home)

    @property
    def user(self) -> str:
        """The one user."""
        return USER

    @property
    def password(self) -> str:
        """The user's password, made at the first start."""
        return password(self.config)

    @cached_property
    def rest(self) -> Rest:
        """The API."""
        return Rest(self.config.url, self.password)

    @cached_property
    def dags(self) -> Dags:
        """The DAGs."""
        return Dags(self.rest, self.command)

    def up(self, progress: Progress = lambda _: None) -> None:
        """Start whatever does not run and wait until every part is healthy, the DAGs are loaded and the pool is there.

        Raises:
            AirflowError: a part ended or did not answer in time, or a DAG does not load. What was started is left as it
            is.
        """
        with self._servers.exclusively():
            missing = [part.name for part in self.status() if part.state != "running"]
            if missing:
                self._start(missing, progress)
            self._await_parts()
            self._await_dags()
            self._await(self._has_pool, f"the plugin did not make the pool {POOL}")
            progress(f"Airflow answers at {self.config.url}")

    def status(self) -> list[Part]:
        """The parts as they are now."""
        health = self.rest.health() if self._servers.processes() else {}

        def healthy(name: str) -> bool:
            return health.get(_COMPONENTS[name]) == "healthy"

        return [self._servers.part(name, healthy) for name in self.config.parts]

    def down(self, progress: Progress = lambda _: None) -> None:
        """End every part and whatever it started; returns when no process is left. Data stay.

        Tasks that run are ended too; at the next start Airflow counts them as failed tries.
        """
        if not self._servers.processes():
            return
        with self._servers.exclusively():
            for name in reversed(self._servers.processes()):
                progress(f"stopping {name}")
                self._servers.end(name, _END_SECONDS)

    def command(self, arguments: Sequence[str]) -> str:
        """Run ``airflow`` with *arguments* on this home and return what it printed.

        Raises:
            AirflowError: it failed; the message ends with its last lines.
        """
        done = subprocess.run(
            [self._program(), *arguments],
            env=self._environment(),
            cwd=self.config.home,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
            raise AirflowError(f"airflow {' '.join(arguments)} failed with exit code {done.returncode}:\n{said}")
        return done.stdout

    # --- inside -----------------------------------------------------------------------------------------------------

    def _start(self, missing: list[str], progress: Progress) -> None:
        for name in missing:
            self._servers.end(name, _END_SECONDS)
        if "api-server" in missing and not port_is_free(self.config.port):
            raise AirflowError(f"port {self.config.port} is taken; end what listens there, or choose another port")
        write(self.config)
        self._migrate(progress)
        progress(f"starting Airflow's {', '.join(missing)}")
        for name in missing:
            # A server for the logs of other machines' workers would listen on every interface.
            alone = ["--skip-serve-logs"] if name in ("scheduler", "triggerer") else []
            self._servers.start(name, [self._program(), name, *alone], self._environment())

    def _migrate(self, progress: Progress) -> None:
        """Make the database or bring it up to date; skipped where this very version has done so."""
        note = self._servers.folder("run") / "migrated"
        if note.exists() and note.read_text("utf-8") == _airflow_version() and self.config.database.exists():
            return
        progress("making Airflow's database")
        self.command(["db", "migrate"])
        with contextlib.closing(sqlite3.connect(self.config.database)) as database:
            # Readers then do not wait for the one writer, nor it for them; the setting stays with the file.
            database.execute("PRAGMA journal_mode=WAL")
        note.write_text(_airflow_version(), "utf-8")

    def _environment(self) -> dict[str, str]:
        """Ours, without settings meant for another Airflow; ``spark-submit`` and ``python`` are this environment's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW_")}
        local = ",".join(filter(None, (os.environ.get("NO_PROXY"), LOOPBACK, "localhost")))
        added = {
            "AIRFLOW_HOME": str(self.config.home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            # Spark's driver would else listen on the address of the machine's name.
            "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", LOOPBACK),
            "NO_PROXY": local,
            "no_proxy": local,
        }
        if self.config.lowtide_config:
            added[CONFIG_VARIABLE] = str(self.config.lowtide_config)
        return kept | added

    def _await_parts(self) -> None:
        def answer() -> bool:
            parts = self.status()
            for part in parts:
                if part.state == "killed":
                    said = last_words([self._servers.output(part.name)], lines=30)
                    raise AirflowError(f"Airflow's {part.name} ended while it started; it said:\n{said}")
            return all(part.state == "running" for part in parts)

        self._await(answer, "Airflow did not become healthy")

    def _await_dags(self) -> None:
        # Its file makes no DAG where the configuration has no ledger.
        ledger = self.config.lowtide_config and load(self.config.lowtide_config).has_ledger
        files = [f for f in self.config.dags.glob("*.py") if ledger or f.stem != _LEDGERS]

        def loaded() -> bool:
            errors = self.dags.import_errors()
            if errors:
                raise AirflowError("\n".join(["DAG files do not load:", *(f"{f}: {e}" for f, e in errors.items())]))
            return len(self.dags.names()) >= len(files)

        self._await(loaded, f"the DAGs of {self.config.dags} were not loaded")

    def _await(self, goal: Callable[[], bool], what: str) -> None:
        if not reached(goal, _BOOT_SECONDS, pause=0.3):
            raise AirflowError(f"{what} within {_BOOT_SECONDS} s; see {self._servers.folder('logs')}")

    def _has_pool(self) -> bool:
        return POOL in {pool["name"] for pool in self.rest.get("pools", limit=100)["pools"]}

    @staticmethod
    def _program() -> str:
        program = Path(sys.executable).parent / "airflow"
        if not program.exists():
            raise AirflowError(f"there is no {program}; run make setup")
        return str(program)


def _airflow_version() -> str:
    try:
        return version("apache-airflow")
    except PackageNotFoundError as error:
        raise AirflowError("Airflow is not installed here; run make setup") from error
