"""A driver that is up already, behind a ``spark-submit`` that stands first on the path: a run then costs no JVM and no
session.

The tasks of Airflow call ``spark-submit`` as ever: operator, hook, command line, environment, output, exit code and
summary are the real ones, and so is the program that runs. What is not is the process: one session serves run after run
(warm/resident.py). It refuses a run that asks for other Spark settings than its own. A test that is about the process
itself lets the real ``spark-submit`` have its runs (:meth:`WarmDriver.real`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lowtide.config import Config
from lowtide.lab.airflow import AirflowConfig, LocalAirflow
from lowtide.run.submit import job_conf

BIN = Path(__file__).parent / "warm"


@dataclass(frozen=True)
class Call:
    """A call of ``spark-submit``."""

    argv: list[str]
    #: Whether it went to the real one.
    real: bool


class WarmDriver:
    """One such driver, in *folder*; without a *session*, which is for tests of it alone, programs that need none run
    all the same.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str], session: bool = True) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True)
        self._session = session
        self._process: subprocess.Popen[bytes] | None = None
        (folder / "settings.json").write_text(json.dumps(dict(settings)))

    @classmethod
    def of(cls, config: Config, folder: Path) -> WarmDriver:
        """For the jobs of an installation, which all have these settings."""
        given = {
            "spark.master": config.spark.master,
            "spark.driver.memory": config.spark.driver_memory,
            **job_conf(config),
        }
        # What no run names: tables here are tiny, and compiling each of hundreds of plans would cost most of the time.
        own = {
            "spark.local.dir": str(folder / "local"),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.sql.codegen.wholeStage": "false",
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        }
        return cls(folder, own | given)

    def start(self) -> None:
        """Does not wait until it is ready: who calls before does."""
        self._process = subprocess.Popen(
            [sys.executable, BIN / "resident.py", self.folder, "session" if self._session else "none"],
            stdin=subprocess.PIPE,
            stdout=(self.folder / "log").open("ab"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        deadline = time.monotonic() + 60
        while not (self.folder / "socket").exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the warm driver did not start: {self.log}")
            time.sleep(0.05)

    def stop(self) -> None:
        """End it and its JVM, whatever they do."""
        if self._process and self._process.stdin:
            self._process.stdin.close()
            self._process.wait(timeout=30)

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What all runs said."""
        return (self.folder / "log").read_text(errors="replace")

    @contextmanager
    def real(self) -> Iterator[None]:
        """What is submitted in the body goes to the real ``spark-submit``."""
        flag = self.folder / "real"
        flag.touch()
        try:
            yield
        finally:
            flag.unlink()

    def calls(self) -> list[Call]:
        """Every call so far, oldest first."""
        file = self.folder / "calls"
        lines = file.read_text().splitlines() if file.exists() else []
        return [Call(**json.loads(line)) for line in lines]

    def environment(self, before: Mapping[str, str]) -> dict[str, str]:
        """*before*, with its ``spark-submit`` first on the path."""
        return {**before, "PATH": f"{BIN}{os.pathsep}{before['PATH']}", "LOWTIDE_WARM_DRIVER": str(self.folder)}


class AirflowWithDriver(LocalAirflow):
    """A local Airflow whose tasks find the driver's ``spark-submit``."""

    def __init__(self, config: AirflowConfig, driver: WarmDriver) -> None:
        super().__init__(config)
        self.driver = driver

    def _environment(self) -> dict[str, str]:
        return self.driver.environment(super()._environment())
