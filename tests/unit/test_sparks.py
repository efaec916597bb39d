"""Which lines of Spark are supported, and which Spark a run would start."""

from __future__ import annotations

import os
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from lowtide_spark.run import session
from typer.testing import CliRunner

from lowtide.cli import jobs
from lowtide.cli.app import app
from lowtide.errors import UsageError
from lowtide.run import installation, sparks, submit
from lowtide.run.pins import BUCKETING, BUCKETING_SINCE, PINNED, pinned

ROOT = Path(__file__).resolve().parents[2]
OLD, NEW = "3.4.4", "9.1.0"


def spark(home: Path, version: str, scala: str = "2.12", *, release: bool = False) -> Path:
    """A folder that looks like a Spark, as far as it is looked at."""
    for name in ("bin/spark-class", "bin/spark-submit"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("#!/bin/sh\n")
        (home / name).chmod(0o755)
    (home / "jars").mkdir()
    if release:
        (home / "RELEASE").write_text(f"Spark {version} (git revision abc) built for Hadoop 3.3.4\nBuild flags: -B\n")
    else:
        (home / "jars" / f"spark-core_{scala}-{version}.jar").touch()
    return home


@pytest.mark.parametrize("of_vendor", ["3.5.9", "3.5.4.7.3.1.0-197", "3.5.5-amzn-0", "3.5.0-SNAPSHOT"])
def test_a_version_is_judged_by_its_line(of_vendor: str) -> None:
    """Whatever a vendor writes behind it."""
    assert sparks.line_of(of_vendor) == (3, 5)
    assert sparks.refusal(of_vendor, "this driver") is sparks.note(of_vendor) is None


def test_what_was_tried_needs_no_word() -> None:
    """Neither refused nor remarked upon; the development set's Spark is one of them."""
    for line in sparks.TRIED:
        found = f"{sparks.name(line)}.0"
        assert sparks.refusal(found, "here") is sparks.note(found) is None
    assert sparks.line_of(version("pyspark")) in sparks.TRIED
    assert list(sparks.TRIED) == sorted(set(sparks.TRIED))
    (lines,) = re.findall(r"^SPARK_LINES := (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert {sparks.name(line) for line in sparks.TRIED} <= set(lines.split()), "make matrix has an environment for each"


def test_the_page_names_what_is_pinned() -> None:
    """Each setting with its value; no other is said to be pinned."""
    page = (ROOT / "docs/clusters.md").read_text("utf-8")
    _, _, table = page.partition("| setting | jobs run with | because |\n")
    rows = [line.split("|")[1:3] for line in table.partition("\n\n")[0].splitlines()[1:]]
    named = {name: value.strip(" `") for names, value in rows for name in re.findall(r"`(spark[^`]+)`", names)}
    bucketing = named.pop(BUCKETING)
    assert named == dict(PINNED)
    assert f"from Spark {sparks.name(BUCKETING_SINCE)} on" in bucketing
    assert [pinned(version)[BUCKETING] for version in ("3.5.9", "4.1.4", "4.2.0")] == ["false", "false", "true"]


@pytest.mark.parametrize("found", [OLD, "2.4.8", "nightly"])
def test_an_older_spark_is_refused(found: str) -> None:
    """And one that does not tell what it is; the message names it, where it is, and what would do."""
    why = sparks.refusal(found, "SPARK_HOME (/opt/spark)")
    assert why is not None
    assert all(word in why for word in (found, "SPARK_HOME (/opt/spark)", *map(sparks.name, sparks.TRIED)))
    with pytest.raises(UsageError, match=f"this driver.*{found}"):
        session.check_version(found, found)


def test_a_newer_spark_is_remarked_upon() -> None:
    """It is not refused."""
    assert sparks.refusal(NEW, "here") is None
    assert NEW in (sparks.note(NEW) or "")
    session.check_version(NEW, NEW)


def test_a_python_package_of_another_line_is_refused() -> None:
    """As where PYTHONPATH holds that of another installation; within a line they fit."""
    session.check_version("3.5.4.7.3.1.0-197", "3.5.9")
    with pytest.raises(UsageError, match=r"Spark 3\.5\.9.*pyspark is 4\.2\.0.*SPARK_HOME"):
        session.check_version("3.5.9", "4.2.0")


@pytest.mark.parametrize("release", [False, True])
def test_the_spark_of_spark_home_is_obeyed_and_told(
    release: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own spark-submit runs, and the line names version and folder."""
    home = spark(tmp_path / "spark", "3.5.4-amzn-0", release=release)
    monkeypatch.setenv("SPARK_HOME", str(home))
    found = installation.find(os.environ)
    assert found.submit == str(home / "bin" / "spark-submit")
    assert found.told() == [f"Spark 3.5.4-amzn-0, by SPARK_HOME ({home})"]
    assert submit.environment()["SPARK_HOME"] == str(home)


def test_a_spark_home_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    """One that is too old, and one that is none: with the folder, and that without it this Python's own would run."""
    own = rf"unset it: this Python has Spark {version('pyspark')}"
    with pytest.raises(UsageError, match=rf"SPARK_HOME \({tmp_path}/old\) has Spark {OLD}.*{own}"):
        installation.find({"SPARK_HOME": str(spark(tmp_path / "old", OLD))})
    with pytest.raises(UsageError, match=rf"SPARK_HOME is {tmp_path}/none, .*spark-class is missing.*{own}"):
        installation.find({"SPARK_HOME": str(tmp_path / "none")})


def test_a_newer_spark_home_is_remarked_upon(tmp_path: Path) -> None:
    """Both that it is obeyed, and that nobody tried it."""
    told = installation.find({"SPARK_HOME": str(spark(tmp_path / "new", NEW, "3.0"))}).told()
    assert len(told) == 2
    assert all(NEW in line for line in told)


def test_without_spark_home_this_pythons_own_runs_and_nothing_is_told() -> None:
    """That is how it was installed. Its folder is named to spark-submit, which would look for it by PYSPARK_PYTHON."""
    found = installation.find({"PATH": "", "SPARK_HOME": ""})
    assert (found.version, found.told()) == (version("pyspark"), [])
    assert found.home is not None
    assert (found.home / "bin" / "spark-class").is_file()


def test_a_spark_on_the_path_is_judged_where_its_files_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through links, as in /usr/bin; a program of a vendor's that shows nothing is left to the driver."""
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    place = tmp_path / "bin"
    place.mkdir()
    (place / "spark-submit").symlink_to(spark(tmp_path / "old", OLD) / "bin" / "spark-submit")
    with pytest.raises(UsageError, match=rf"{place}/spark-submit has Spark {OLD}.*SPARK_HOME"):
        installation.find({"PATH": str(place)})
    (place / "spark-submit").unlink()
    (place / "spark-submit").write_text("#!/bin/sh\n")
    (place / "spark-submit").chmod(0o755)
    found = installation.find({"PATH": str(place)})
    assert (found.submit, found.home, found.told()) == (str(place / "spark-submit"), None, [])


def test_lowtide_run_starts_nothing_with_a_spark_that_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence, and exit code 2; with one that fits the program starts in its environment, and a line says so."""
    started: list[dict[str, str]] = []

    def run(_: list[str], env: dict[str, str], **__: object) -> int:
        started.append(env)
        return 0

    monkeypatch.setattr(jobs.child, "run", run)
    (tmp_path / "lowtide.yaml").write_text("spark: {connector_class_path: [one.jar]}\n")
    argv = ["run", "verify", "--config", str(tmp_path / "lowtide.yaml")]
    monkeypatch.setenv("SPARK_HOME", str(spark(tmp_path / "old", OLD)))
    refused = CliRunner().invoke(app, argv)
    assert isinstance(refused.exception, UsageError)
    assert not started
    monkeypatch.setenv("SPARK_HOME", str(spark(tmp_path / "fits", "3.5.9")))
    obeyed = CliRunner().invoke(app, argv)
    assert obeyed.exit_code == 0
    assert f"Spark 3.5.9, by SPARK_HOME ({tmp_path}/fits)" in obeyed.stderr
    assert [env["SPARK_HOME"] for env in started] == [str(tmp_path / "fits")]
