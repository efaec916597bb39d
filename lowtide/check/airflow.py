"""Airflow, where there is one: asked in a process of its own, by the Python that it is installed for."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lowtide.check.hops import NotCheckedError
from lowtide.config import Config
from lowtide.errors import GatewayError, UsageError

#: What prints what an Airflow has for Lowtide (plugins/lowtide_airflow/installed.py).
PROGRAM = "lowtide_airflow.installed"
#: Airflow alone takes some ten seconds to start on a busy machine.
SECONDS = 90.0
#: What a pool's one slot is for, as Airflow's page of pools shows it.
POOL_IS_FOR = "One job of Lowtide at a time"
SPARK, HBASE = "spark_lowtide", "hbase_default"
_DATABASE = "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"


@dataclass(frozen=True, slots=True)
class Installed:
    """What an Airflow has for Lowtide."""

    version: str
    home: str
    #: Slots of the pool of each store that it serves; None: there is none.
    pools: Mapping[str, int | None]
    #: Connections by name, with type, host, port and deploy mode; those that are not there are left out.
    connections: Mapping[str, Mapping[str, Any]]
    #: What is wrong in the section ``[lowtide]``.
    settings: tuple[str, ...]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Installed:
        """As the program prints it."""
        return cls(**{**value, "settings": tuple(value["settings"])})


def python(environment: Mapping[str, str] = os.environ) -> Path:
    """The Python of the Airflow that is set up here.

    Raises:
        NotCheckedError: there is none; to ask one that is not set up would set it up.
    """
    beside = Path(sys.executable).parent / "airflow"
    found = str(beside) if beside.exists() else shutil.which("airflow", path=environment.get("PATH"))
    if not found:
        raise NotCheckedError("there is no Airflow here")
    home = Path(environment.get("AIRFLOW_HOME") or Path.home() / "airflow")
    if not (home / "airflow.cfg").exists() and not environment.get(_DATABASE):
        raise NotCheckedError(
            f"Airflow is installed here and not set up: there is no {home}/airflow.cfg (AIRFLOW_HOME)"
        )
    return Path(sys.executable) if found == str(beside) else interpreter(Path(found))


def interpreter(program: Path) -> Path:
    """The Python that *program*, as pip writes it, starts with: the one that it names itself, else the one beside it,
    wherever a link (pipx's, or one in /usr/local/bin) leads.
    """
    with suppress(OSError, ValueError):
        first, second = [*program.read_text("utf-8", "replace").splitlines()[:2], "", ""][:2]
        # A path that is long, or has blanks in it, stands in the second line.
        words = shlex.split(second) if second.startswith("'''exec'") else first.removeprefix("#!").split()
        for word in words:
            if Path(word).name.startswith("python") and Path(word).is_absolute() and os.access(word, os.X_OK):
                return Path(word)
    return program.resolve().with_name("python")


def wants_gateway(config: Config, environment: Mapping[str, str] = os.environ) -> str:
    """Who counts on there being a gateway, in a clause; empty: nobody does, as far as this machine knows."""
    if {"host", "port"} & config.hbase.thrift.model_fields_set:
        return "hbase.thrift names one, as it need not where only jobs run"
    try:
        python(environment)
    except NotCheckedError:
        return ""
    return "the sensors and the page of the Airflow that is set up here look through it"


def ask(program: Path, seconds: float = SECONDS) -> Installed:
    """What that Airflow has.

    Raises:
        GatewayError: it does not answer in time.
        UsageError: it cannot be asked; the message has its last words.
    """
    try:
        done = subprocess.run(
            [str(program), "-m", PROGRAM], capture_output=True, text=True, check=False, timeout=seconds
        )
    except subprocess.TimeoutExpired as error:
        fact = f"Airflow did not answer within {seconds:.0f} s"
        raise GatewayError(fact, "see that its database answers (airflow db check), then check again") from error
    except OSError as error:
        raise UsageError(
            f"Airflow's Python {program} does not start ({error})", "install Lowtide beside Airflow"
        ) from error
    if done.returncode:
        words = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        if PROGRAM.partition(".")[0] in words and "No module" in words:
            raise UsageError(f"{program} has Airflow and no Lowtide", "install Lowtide's wheel there: its DAGs need it")
        raise UsageError(
            f"Airflow cannot be asked: {words}", "airflow db check tells more; airflow db migrate sets it up"
        )
    return Installed.from_json(json.loads(done.stdout.strip().splitlines()[-1]))


def pool_command(name: str) -> str:
    """What makes the pool *name* what it must be."""
    return f'airflow pools set {name} 1 "{POOL_IS_FOR}"'


def judge_pool(found: Installed) -> str:
    """Whether the pools are there, with one slot each: one job at a time works on a store."""
    for name, slots in found.pools.items():
        make = pool_command(name)
        if slots is None:
            raise UsageError(f"there is no pool {name}: tasks would wait for ever", make)
        if slots != 1:
            raise UsageError(f"the pool {name} has {slots} slots: jobs would work on the store side by side", make)
    return f"{' and '.join(found.pools)} {'have' if len(found.pools) > 1 else 'has'} one slot"


def judge_connections(found: Installed, config: Config) -> str:
    """Whether the connections, where they are there, lead to where the configuration does."""
    parts = []
    if spark := found.connections.get(SPARK):
        if spark["type"] != "spark":
            raise UsageError(
                f"the connection {SPARK} is of type {spark['type']}", "make it of type spark, or remove it"
            )
        if (mode := spark["mode"]) != "client":
            fact = f"the connection {SPARK} has deploy mode {mode}: the summary is read on the worker"
            raise UsageError(fact, "set its deploy mode to client")
        parts.append(f"{SPARK} leads to {spark['host'] or 'no host'}")
    else:
        parts.append(f"no {SPARK}: spark.master of the configuration, {config.spark.master}, counts")
    if gateway := found.connections.get(HBASE):
        thrift = config.hbase.thrift
        if gateway["type"] != "hbase":
            raise UsageError(
                f"the connection {HBASE} is of type {gateway['type']}", "make it of type hbase, or remove it"
            )
        address = f"{gateway['host'] or thrift.host}:{gateway['port'] or thrift.port}"
        if address != f"{thrift.host}:{thrift.port}":
            fact = f"the connection {HBASE} leads to {address}, and hbase.thrift to {thrift.host}:{thrift.port}"
            raise UsageError(fact, "sensors must see the store that jobs work on: correct one of them")
        parts.append(f"{HBASE} leads to {address}")
    else:
        parts.append(f"no {HBASE}: hbase.thrift of the configuration counts")
    return "; ".join(parts)


def judge_settings(found: Installed) -> str:
    """Whether the section ``[lowtide]`` can be used."""
    if found.settings:
        raise UsageError(
            "; ".join(found.settings), "correct airflow.cfg, or AIRFLOW__LOWTIDE__NAME: see docs/airflow.md"
        )
    return "the section [lowtide] is in order"
