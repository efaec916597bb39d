"""A driver runs where it is started: what asks for another place is refused by name, before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from lowtide.config import Config, Spark
from lowtide.errors import UsageError
from lowtide.run import deploy, submit

SETTING = deploy.SETTING
WHY = r"a failed job a second time.*exit code.*summary.*caller is ended"


def config(**conf: str) -> Config:
    return Config(spark=Spark(master="yarn", connector_class_path=["one.jar"], conf=conf))


@pytest.fixture
def spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Spark of this test's own, which SPARK_HOME names; its folder."""
    for name in ("bin/spark-class", "bin/spark-submit", "conf/spark-defaults.conf"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    for name in ("SPARK_CONF_DIR", deploy.VARIABLE):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def test_the_configuration_cannot_ask_for_it(spark: Path) -> None:
    """The setting is named with its value, why not, and what to set; client, and nothing, are no matter."""
    with pytest.raises(UsageError, match=rf"spark\.conf.*{SETTING}=cluster.*{WHY}.*Set it to client") as refused:
        submit.command(config(**{SETTING: "cluster"}), "survey", [])
    assert refused.value.exit_code == 2
    for given in ({}, {SETTING: "client"}):
        assert submit.command(config(**given), "survey", [])


@pytest.mark.parametrize(
    "line", [f"{SETTING} cluster", f"  {SETTING}\t=\tcluster  ", f"{SETTING}: client\n{SETTING}=cluster"]
)
def test_sparks_defaults_cannot_ask_for_it(spark: Path, line: str) -> None:
    """However they are written; the file is named. The configuration's own word wins, as it does for Spark."""
    file = spark / "conf/spark-defaults.conf"
    file.write_text(f"# {SETTING} cluster\nspark.master yarn\n")
    assert submit.command(config(), "survey", [])
    file.write_text(f"spark.master yarn\n{line}\n")
    with pytest.raises(UsageError, match=rf"{file} has {SETTING}=cluster.*{WHY}.*client in spark\.conf"):
        submit.command(config(), "survey", [])
    assert submit.command(config(**{SETTING: "client"}), "survey", [])


def test_the_defaults_are_those_that_spark_reads(spark: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SPARK_CONF_DIR has others than the installation."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "spark-defaults.conf").write_text(f"{SETTING} cluster\n")
    assert submit.command(config(), "survey", [])
    monkeypatch.setenv("SPARK_CONF_DIR", str(elsewhere))
    with pytest.raises(UsageError, match=str(elsewhere)):
        submit.command(config(), "survey", [])


def test_the_environment_cannot_ask_for_it(spark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark goes by DEPLOY_MODE where nothing else says anything; what wins over it here wins there."""
    monkeypatch.setenv("DEPLOY_MODE", "cluster")
    with pytest.raises(UsageError, match=rf"DEPLOY_MODE=cluster.*{WHY}.*unset it"):
        submit.command(config(), "survey", [])
    (spark / "conf/spark-defaults.conf").write_text(f"{SETTING} client\n")
    assert submit.command(config(), "survey", [])


def test_a_driver_in_the_cluster_refuses() -> None:
    """By its own configuration: YARN's, and that of a pod, where Spark sets the mode back."""
    deploy.check_driver({})
    deploy.check_driver({SETTING: "client"})
    with pytest.raises(UsageError, match=rf"this driver runs in the cluster.*{SETTING}=cluster.*{WHY}"):
        deploy.check_driver({SETTING: "cluster"})
    with pytest.raises(UsageError, match="pod"):
        deploy.check_driver({SETTING: "client", "spark.kubernetes.submitInDriver": "true"})
