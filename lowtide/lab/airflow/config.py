"""What a local Airflow is made of, and the ``airflow.cfg`` that follows from it."""

from __future__ import annotations

import base64
import configparser
import dataclasses
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lowtide import paths
from lowtide.errors import LowtideError
from lowtide.lab.stack.config import LOOPBACK, free_ports_config

USER = "admin"


class AirflowError(LowtideError):
    """The local Airflow cannot be started, asked or stopped; the message names the remedy."""


@dataclass(frozen=True)
class AirflowConfig:
    """A local Airflow.

    ``home`` is its AIRFLOW_HOME and holds everything: database, configuration, logs, process ids. ``lowtide_config`` is
    the configuration that the DAGs use; None: as :func:`lowtide.config.load` finds it. ``parallelism`` is how many
    tasks run at once; two suit a machine with two cores. ``triggerer`` adds the process that deferrable sensors need.
    ``settings`` are further sections and keys of ``airflow.cfg``, over those made here.
    """

    home: Path
    port: int = 8080
    dags: Path = field(default_factory=paths.dags)
    lowtide_config: Path | None = None
    parallelism: int = 2
    triggerer: bool = False
    settings: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("home", "dags"):
            object.__setattr__(self, name, Path(getattr(self, name)).absolute())
        if self.lowtide_config is not None:
            object.__setattr__(self, "lowtide_config", Path(self.lowtide_config).absolute())
        if not self.dags.is_dir():
            raise AirflowError(f"there is no folder of DAGs {self.dags}; name one that exists")

    @property
    def url(self) -> str:
        """Where its page and its API are."""
        return f"http://{LOOPBACK}:{self.port}"

    @property
    def parts(self) -> tuple[str, ...]:
        """Its processes, as ``airflow`` names them."""
        return ("api-server", "scheduler", "dag-processor", *(("triggerer",) if self.triggerer else ()))

    @property
    def database(self) -> Path:
        """Its SQLite file."""
        return self.home / "airflow.db"


def free_port_config(home: Path, **options: Any) -> AirflowConfig:
    """A configuration on a port that is free now, for tests and for a second Airflow beside a first."""
    return AirflowConfig(home=home, port=free_ports_config(home).thrift_port, **options)


def write(config: AirflowConfig) -> None:
    """Write ``airflow.cfg`` and the password file under ``home``, readable for their owner alone, and keep *config* for
    :func:`load`.

    Secrets once made are kept.
    """
    config.home.mkdir(parents=True, exist_ok=True)
    known = _secrets(config)
    passwords = config.home / "passwords.json"
    _write_private(passwords, json.dumps({USER: known["password"]}))
    # As text: Airflow would read a % in a value as the begin of a reference.
    cfg = configparser.RawConfigParser()
    cfg.read_dict(_settings(config, known, passwords))
    cfg.read_dict(config.settings)
    part = config.home / "airflow.cfg.new"
    _write_private(part, "")
    with part.open("w") as sink:
        cfg.write(sink)
    part.replace(config.home / "airflow.cfg")
    values = {name: value for name, value in dataclasses.asdict(config).items() if name != "home"}
    _saved(config.home).write_text(json.dumps(values, indent=2, default=str) + "\n", "utf-8")


def load(home: Path) -> AirflowConfig:
    """The configuration that the Airflow under *home* was last started with; the defaults where there is none."""
    saved = _saved(home)
    if not saved.exists():
        return AirflowConfig(home=home)
    values = json.loads(saved.read_text("utf-8"))
    paths = {name: Path(values[name]) if values[name] else None for name in ("dags", "lowtide_config")}
    return AirflowConfig(home=home, **values | paths)


def password(config: AirflowConfig) -> str:
    """The password of the user ``admin``."""
    return _secrets(config)["password"]


def _settings(config: AirflowConfig, known: Mapping[str, str], passwords: Path) -> dict[str, dict[str, str]]:
    return {
        "core": {
            "dags_folder": str(config.dags),
            "load_examples": "False",
            "executor": "LocalExecutor",
            "parallelism": str(config.parallelism),
            "execution_api_server_url": f"{config.url}/execution/",
            "simple_auth_manager_users": f"{USER}:admin",
            "simple_auth_manager_passwords_file": str(passwords),
            "fernet_key": known["fernet"],
        },
        # Seconds to wait for others that write: five, which is SQLite's own, are few on a busy machine.
        "database": {"sql_alchemy_conn": f"sqlite:///{config.database}?timeout=60"},
        "logging": {"base_log_folder": str(config.home / "logs")},
        "api": {
            "host": LOOPBACK,
            "port": str(config.port),
            "base_url": config.url,
            "workers": "1",
            "secret_key": known["session"],
        },
        "api_auth": {"jwt_secret": known["jwt"]},
        "dag_processor": {"min_file_process_interval": "60", "refresh_interval": "60"},
        "usage_data_collection": {"enabled": "False"},
    }


def _secrets(config: AirflowConfig) -> dict[str, str]:
    file = config.home / "secrets.json"
    if not file.exists():
        made = {
            "password": secrets.token_urlsafe(12),
            "jwt": secrets.token_urlsafe(48),
            "session": secrets.token_urlsafe(24),
            "fernet": base64.urlsafe_b64encode(os.urandom(32)).decode(),
        }
        _write_private(file, json.dumps(made))
    known: dict[str, str] = json.loads(file.read_text("utf-8"))
    return known


def _saved(home: Path) -> Path:
    return Path(home) / "local-airflow.json"


def _write_private(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch(mode=0o600)
    file.chmod(0o600)
    file.write_text(text, "utf-8")
