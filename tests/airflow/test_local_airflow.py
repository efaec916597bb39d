"""The local Airflow's files; that its processes start and end is seen in test_runs.py."""

from __future__ import annotations

import configparser
import json
import stat
from pathlib import Path

import pytest

from lowtide.lab.airflow import AirflowConfig, AirflowError, LocalAirflow
from lowtide.lab.airflow.config import load, password, write


def test_what_was_written_is_loaded_again(tmp_path: Path) -> None:
    """``down`` and ``status`` need no arguments but the home."""
    config = AirflowConfig(
        tmp_path, port=18123, lowtide_config=tmp_path / "l.yaml", settings={"lowtide": {"retries": "1"}}
    )
    write(config)
    assert load(tmp_path) == config
    assert load(tmp_path / "elsewhere").port == AirflowConfig.port


def test_airflow_reads_what_was_meant(tmp_path: Path) -> None:
    """Loopback only, no examples, this checkout's DAGs, and the further settings over it all, percent signs too."""
    write(AirflowConfig(tmp_path, port=18123, settings={"lowtide": {"odd": "100%"}, "core": {"parallelism": "7"}}))
    cfg = configparser.RawConfigParser()
    cfg.read(tmp_path / "airflow.cfg")
    assert cfg["api"]["host"] == "127.0.0.1"
    assert cfg["core"]["execution_api_server_url"] == "http://127.0.0.1:18123/execution/"
    assert cfg["core"]["load_examples"] == "False"
    assert {file.stem for file in Path(cfg["core"]["dags_folder"]).glob("*.py")} >= {"orphan_cleanup"}
    assert (cfg["lowtide"]["odd"], cfg["core"]["parallelism"]) == ("100%", "7")


def test_secrets_are_kept_and_private(tmp_path: Path) -> None:
    """A second start has the password of the first, and nobody else can read it."""
    write(config := AirflowConfig(tmp_path))
    first = password(config)
    write(config)
    assert password(config) == first
    assert json.loads((tmp_path / "passwords.json").read_text()) == {"admin": first}
    for name in ("airflow.cfg", "passwords.json", "secrets.json"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, name


def test_a_missing_folder_of_dags_is_refused(tmp_path: Path) -> None:
    """Airflow would start and show an empty page."""
    with pytest.raises(AirflowError, match=r"no folder of DAGs .*nowhere"):
        AirflowConfig(tmp_path, dags=tmp_path / "nowhere")


def test_an_airflow_that_never_started_is_stopped(tmp_path: Path) -> None:
    """Asking for its state or ending it is no error, and asking it for runs says what to do."""
    airflow = LocalAirflow(AirflowConfig(tmp_path / "home", port=1))
    assert {part.state for part in airflow.status()} == {"stopped"}
    airflow.down()
    with pytest.raises(AirflowError, match="lowtide airflow up"):
        airflow.dags.names()
