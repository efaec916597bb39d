"""The ``spark-submit`` command line."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lowtide import paths
from lowtide.cli import jobs
from lowtide.cli.app import app
from lowtide.config import Config, Spark
from lowtide.errors import UsageError
from lowtide.run import jars, submit
from lowtide.run.arguments import arguments
from lowtide.run.jobs import JOBS
from lowtide.run.options import options_of, takes
from lowtide.run.pins import contradictions
from tests.unit.test_arguments import VALUES

CONFIG = Config(spark=Spark(master="local[3]", driver_memory="2g", connector_class_path=["one.jar", "lib/*"]))


def confs(command: list[str]) -> dict[str, str]:
    return dict(command[i + 1].split("=", 1) for i, part in enumerate(command) if part == "--conf")


def test_command_line() -> None:
    """Options come first, then the program, then the job's own arguments, untouched and in order."""
    arguments = ["--table", "a b", "--conf", "x=y"]
    command = submit.command(CONFIG, "orphan_cleanup", arguments)
    assert Path(command[0]).name == "spark-submit"
    assert command[1:7] == ["--master", "local[3]", "--driver-memory", "2g", "--name", "lowtide orphan_cleanup"]
    program = command.index(str(submit.application("orphan_cleanup")))
    assert command[program + 1 :] == arguments
    settings = confs(command[:program])
    entries = os.pathsep.join(["one.jar", "lib/*"])
    assert settings["spark.driver.extraClassPath"] == settings["spark.executor.extraClassPath"] == entries
    assert settings["spark.ui.enabled"] == "false"


def test_configured_settings_win() -> None:
    """``spark.conf`` adds settings and overrides Lowtide's own."""
    config = CONFIG.model_copy(
        update={"spark": CONFIG.spark.model_copy(update={"conf": {"spark.ui.enabled": "true", "a": "b"}})}
    )
    settings = submit.job_conf(config)
    assert (settings["spark.ui.enabled"], settings["a"]) == ("true", "b")


def test_a_drivers_class_path_without_the_connector_is_refused(tmp_path: Path) -> None:
    """Spark's own setting goes before Lowtide's, so that the driver would have no connector. One that has it, as a jar
    or as a folder of classes, is taken; executors' lies elsewhere and is not looked at.
    """
    (tmp_path / "site.jar").touch()

    def conf(name: str, value: str) -> dict[str, str]:
        spark = CONFIG.spark.model_copy(update={"conf": {f"spark.{name}.extraClassPath": value}})
        return submit.job_conf(CONFIG.model_copy(update={"spark": spark}))

    with pytest.raises(UsageError, match=rf"driver\.extraClassPath in spark\.conf is {tmp_path}/\*.*leave it out"):
        conf("driver", f"{tmp_path}/*")
    assert conf("executor", "/site/*")["spark.executor.extraClassPath"] == "/site/*"
    (tmp_path / "lowtide-connector-1.0.jar").touch()
    assert conf("driver", f"{tmp_path}/*")[jars.SETTING] == f"{tmp_path}/*"
    (tmp_path / "classes" / "lowtide" / "connector").mkdir(parents=True)
    assert conf("driver", f"{tmp_path}/classes")[jars.SETTING] == f"{tmp_path}/classes"


@pytest.mark.parametrize("installed", [False, True])
@pytest.mark.parametrize("key", ["", "spark.connector_class_path", "spark.driver.extraClassPath in spark.conf"])
def test_two_clients_of_hbase_are_refused(
    key: str, installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are named, and what to do: where Lowtide itself has found them, one is of a build or a wheel before."""
    monkeypatch.setattr(paths, "installed", lambda: installed)
    for name in ("lowtide-connector.jar", "hbase-shaded-mapreduce-2.6.3.jar"):
        (tmp_path / name).touch()
    jars.check(key, [f"{tmp_path}/*"])
    (tmp_path / "hbase-shaded-mapreduce-2.6.4.jar").touch()
    with pytest.raises(UsageError, match=r"2 of them \(2\.6\.3, 2\.6\.4\)") as refused:
        jars.check(key, [f"{tmp_path}/*"])
    remedy = f"in {key}," if key else "uninstall the wheel" if installed else "make setup"
    assert remedy in refused.value.remedy


@pytest.mark.parametrize("name", ["spark.sql.ansi.enabled", "spark.sql.legacy.sizeOfNull"])
def test_a_setting_that_results_depend_on_is_refused(name: str) -> None:
    """Whoever sets it learns its name and value, and nothing starts; the value that jobs run with is no contradiction,
    however it is written.
    """
    config = CONFIG.model_copy(update={"spark": CONFIG.spark.model_copy(update={"conf": {name: "False"}})})
    with pytest.raises(UsageError, match=rf"spark\.conf.*{re.escape(name)}=False.*[Ll]eave it out"):
        submit.command(config, "orphan_cleanup", [])
    assert contradictions({"spark.sql.ansi.enabled": "TRUE", "spark.sql.shuffle.partitions": "400"}) == []


def test_only_a_local_driver_listens_on_loopback() -> None:
    """Executors elsewhere must reach the driver, also where another master than the configured one was named."""
    assert submit.job_conf(CONFIG)["spark.driver.host"] == "127.0.0.1"
    assert "spark.driver.host" not in submit.job_conf(CONFIG, "yarn")


@pytest.mark.parametrize("job", JOBS)
def test_every_job_has_its_program(job: str) -> None:
    """The program of each job exists."""
    assert submit.application(job).is_file()


def test_unknown_job_is_refused() -> None:
    """An unknown job is named, with those there are."""
    with pytest.raises(UsageError, match=r"'sweep'.*orphan_cleanup"):
        submit.command(CONFIG, "sweep", [])


def test_built_connector_is_found_beside_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without configuration the class path is what the build left, and its absence is an error with the remedy."""
    monkeypatch.setattr(paths, "_CHECKOUT", tmp_path)
    with pytest.raises(UsageError, match=r"lowtide-connector\.jar is missing.*make setup"):
        submit.class_path(Config())
    target = tmp_path / "connector" / "target"
    target.mkdir(parents=True)
    (target / "lowtide-connector.jar").touch()
    assert submit.class_path(Config()) == [str(target / "lowtide-connector.jar"), str(target / "lib" / "*")]
    monkeypatch.setattr(paths, "_SHIPPED", shipped := tmp_path / "shipped")
    (shipped / "connector").mkdir(parents=True)
    (shipped / "connector" / "lowtide-connector.jar").touch()
    assert submit.class_path(Config())[0] == str(shipped / "connector" / "lowtide-connector.jar")
    assert paths.data() == Path.cwd() / ".lowtide"


def test_missing_spark_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no ``spark-submit`` is to be found the message says how to get one."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    with pytest.raises(UsageError, match="install pyspark"):
        submit.command(CONFIG, "orphan_cleanup", [])


def test_spark_is_found_where_no_environment_is_active(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With another ``python3`` first on the path, as where ``.venv/bin/lowtide`` is called by its name,
    ``spark-submit`` still runs.
    """
    stranger = tmp_path / "python3"
    stranger.write_text("#!/bin/sh\nexit 1\n")
    stranger.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("SPARK_HOME", raising=False)
    program = submit.command(CONFIG, "orphan_cleanup", [])[0]
    done = subprocess.run([program, "--version"], env=submit.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("given", ["--config {}", "--config={}", "--config other.yaml --config={}"])
def test_a_job_is_submitted_by_the_configuration_that_it_is_given(
    given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever way the option is written: the master is that file's, and the job is given the same."""
    file = tmp_path / "lowtide.yaml"
    file.write_text("spark: {master: 'local[7]', connector_class_path: [one.jar]}\n")
    ran: list[list[str]] = []

    def run(command: list[str], *_: object, **__: object) -> int:
        ran.append(command)
        return 0

    monkeypatch.setattr(jobs.child, "run", run)
    argv = given.format(file).split()
    assert CliRunner().invoke(app, ["run", "verify", *argv]).exit_code == 0
    assert ran[0][1:3] == ["--master", "local[7]"]
    assert ran[0][-1] == f"--config={file}"


@pytest.fixture
def submitted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """What the commands would run, in a folder with a configuration; nothing starts."""
    (tmp_path / "lowtide.yaml").write_text("spark: {connector_class_path: [one.jar]}\n")
    monkeypatch.chdir(tmp_path)
    ran: list[list[str]] = []

    def run(command: list[str], *_: object, **__: object) -> int:
        ran.append(command)
        return 0

    monkeypatch.setattr(jobs.child, "run", run)
    return ran


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("answer", ["y\n", "n\n"])
@pytest.mark.parametrize(("given", "asked"), [("--grace=0s", True), ("--grace=1h", False), ("--grace=0s --yes", False)])
def test_pruning_without_grace_is_asked_about(
    given: str, asked: bool, answer: str, terminal: bool, submitted: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a terminal, where it acts and nobody says that it is meant; elsewhere it is done as told."""
    monkeypatch.setattr(jobs, "asks", lambda: terminal)
    argv = ["run", "commit_table_pruning", "--execute", *given.split()]
    result = CliRunner().invoke(app, argv, input=answer)
    assert ("Prune without grace?" in result.output) is (asked and terminal)
    assert bool(submitted) is not (asked and terminal and answer == "n\n")


@pytest.mark.parametrize("job", JOBS)
def test_a_job_is_given_every_option_that_the_command_was(job: str, submitted: list[list[str]]) -> None:
    """The program understands the very words, and each option keeps its value: switches, values, lists."""
    # Not files that would be read, nor what stands against --execute.
    options = [o for o in options_of(job) if o.name not in ("--config", "--approved", "--as-configured")]
    argv = [
        word for option in options for word in ([option.name, VALUES[option.name]] if option.metavar else [option.name])
    ]
    result = CliRunner().invoke(app, ["run", job, *argv, *(["--table", "users"] if takes(job, "--table") else [])])
    assert result.exit_code == 0, result.output
    said = arguments(job, submitted[0][submitted[0].index(str(submit.application(job))) + 1 :])
    for option in options:
        meant = getattr(arguments(job, argv), option.attribute)
        assert getattr(said, option.attribute) == ([*meant, "users"] if option.name == "--table" else meant)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["orphan_cleanup", "--excute"], "--execute"),
        (["orphan_clean"], "Did you mean 'orphan_cleanup'"),
        (["orphan_cleanup", "--from", "yesterday"], "--from: an ISO 8601 time"),
        (["survey", "--sample", "7"], "--sample: a share above 0 and up to 1 is expected, such as 0.1, found 7"),
    ],
)
def test_what_a_job_would_refuse_is_refused_before_spark_starts(
    argv: list[str], says: str, submitted: list[list[str]]
) -> None:
    """With what is wrong, and the nearest that is known; the exit code is that of bad arguments."""
    result = CliRunner().invoke(app, ["run", *argv])
    assert says in result.output or says in str(result.exception)
    assert result.exit_code == 2 or getattr(result.exception, "exit_code", 0) == 2
    assert submitted == []


@pytest.mark.parametrize(
    ("said", "place", "wanted"),
    [
        ({"LC_ALL": "C"}, "/home/jürgen", {"LC_ALL": "C.UTF-8"}),
        ({}, "/home/jürgen", {"LC_ALL": "C.UTF-8"}),
        ({"LC_ALL": "", "LC_CTYPE": "POSIX", "LANG": "de_DE.UTF-8"}, "/home/jürgen", {"LC_ALL": "C.UTF-8"}),
        ({"LC_ALL": "C"}, "/home/juergen", {}),
        ({"LANG": "de_DE.UTF-8"}, "/home/jürgen", {}),
        ({"LANG": "C.utf8"}, "/home/jürgen", {}),
        ({"LANG": "de_DE.ISO-8859-1"}, "/home/jürgen", {}),
    ],
)
def test_java_finds_files_whose_names_are_not_ascii(said: dict[str, str], place: str, wanted: dict[str, str]) -> None:
    """In the locale of a cron job, which has ASCII alone; a locale that somebody chose stays."""
    assert submit.locale(said, ["/usr/bin/python3", place]) == wanted
