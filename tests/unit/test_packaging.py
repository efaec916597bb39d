"""What the wheel takes along. (tests/airflow/test_wheel.py builds one and uses it.)"""

from __future__ import annotations

import re
import runpy
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
import setuptools

ROOT = Path(__file__).resolve().parents[2]


def test_every_file_of_a_package_goes_into_the_wheel() -> None:
    """Templates, styles and pictures beside the code are named in the package data, each by a pattern that finds it."""
    setuptools = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {name: ROOT / folder for name, folder in setuptools["package-dir"].items()}
    packed = set()
    for package, patterns in setuptools["package-data"].items():
        top, *below = package.split(".")
        for pattern in patterns:
            found = set(folders[top].joinpath(*below).glob(pattern))
            assert found, f"{package}: {pattern} finds nothing"
            packed |= found
    lab = ROOT / "lowtide" / "lab"  # a wheel of its own
    beside = {
        p
        for folder in folders.values()
        for p in folder.rglob("*")
        if p.is_file() and p.suffix not in {".py", ".pyc"} and not p.is_relative_to(lab)
    }
    assert beside <= packed, sorted(str(p.relative_to(ROOT)) for p in beside - packed)


def test_two_clients_of_hbase_go_into_no_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier build left in the connector's folder: they would answer for each other."""
    monkeypatch.setattr(setuptools, "setup", lambda **_: None)
    check = runpy.run_path(str(ROOT / "setup.py"))["check_clients"]
    one, two = (tmp_path / f"hbase-shaded-mapreduce-{version}.jar" for version in ("2.6.3", "2.6.4"))
    check([one, tmp_path / "opentelemetry-api-1.49.0.jar"])
    with pytest.raises(SystemExit, match=r"2 HBase clients \(.*2\.6\.3\.jar, .*2\.6\.4\.jar\).*run make setup"):
        check([one, two])


def test_nothing_of_an_earlier_build_stays_in_a_folder_of_jars() -> None:
    """Maven copies into it and takes nothing out: wherever make lets it package, the folders go before."""
    lines = (ROOT / "Makefile").read_text("utf-8").splitlines()
    packages = [(above, line) for above, line in pairwise(lines) if line.endswith(" package")]
    assert len(packages) == 6
    for above, line in packages:
        [pom] = re.findall(r"-f (\S+)/pom\.xml", line)
        folder = f"{pom}/target/hbase-2.5" if "-P hbase-2.5" in line else f"{pom}/target"
        assert above == f"\t@rm -rf $(call stale,{folder})"


def test_an_environment_that_broke_off_is_made_anew() -> None:
    """venv puts Python into it first and pip last: what has no pip is not whole."""
    made = [line for line in (ROOT / "Makefile").read_text("utf-8").splitlines() if "-m venv" in line]
    assert len(made) == 3
    for line in made:
        assert re.match(r"\t@test -x \S+/pip \|\| \$\(PYTHON\) -m venv --clear \S+", line), line
