"""The tests' own ``spark-submit``: what it passes on, what it refuses, and that it leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from lowtide_airflow.operator import _USAGE
from warm.resident import REFUSED
from warm_driver import BIN, WarmDriver

PROGRAM = """
import os, subprocess, sys, time
import beside
print("said", *sys.argv[1:], os.environ["ONLY_HERE"], os.getcwd(), flush=True)
print("and complained", file=sys.stderr)
subprocess.run(["echo", "and so did a child"])
if sys.argv[1] == "sleep":
    open("begun", "w").close()
    time.sleep(120)
if sys.argv[1] == "raise":
    raise ValueError("odd")
sys.stdout.write("no end of line")
sys.exit(int(sys.argv[1]))
"""
SETTINGS = {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.ui.enabled": "false"}


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmDriver]:
    driver = WarmDriver(tmp_path_factory.mktemp("warm") / "driver", SETTINGS, session=False)
    driver.start()
    yield driver
    driver.stop()
    assert not driver.alive


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "beside.py").write_text("")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


def submit(driver: WarmDriver, program: Path, *words: str, first: Path | None = None) -> subprocess.Popen[str]:
    """Begin a run as the hook does, in the program's folder; *first* comes next on the path."""
    path = [first or program.parent, Path(sys.executable).parent, os.environ["PATH"]]
    environment = {"PATH": os.pathsep.join(map(str, path)), "ONLY_HERE": "here"}
    return subprocess.Popen(
        [BIN / "spark-submit", *words],
        env=driver.environment(environment),
        cwd=program.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_a_run_is_as_if_in_a_process_of_its_own(driver: WarmDriver, program: Path) -> None:
    """Arguments, environment, folder, its neighbours, both streams, those of children, the exit code; and nothing of it
    is left for the next.
    """
    options = ["--master", "local[2]", "--conf", "spark.ui.enabled=false", "--name", "x", "--driver-memory", "1g"]
    for code in (3, 0):
        run = submit(driver, program, *options, str(program), str(code), "--name", "y")
        said = run.communicate(timeout=60)[0].splitlines()
        assert (run.returncode, said[0].partition(":")[0].split()[:2]) == (code, ["warm", "driver"])
        complained = ["and complained", "and so did a child", "no end of line"]
        assert said[1:] == [f"said {code} --name y here {program.parent}", *complained]
    run = submit(driver, program, str(program), "raise")
    assert "ValueError: odd" in run.communicate(timeout=60)[0]
    assert run.returncode == 1
    assert not driver.calls()[-1].real


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--master", "local[1]"], "spark.master=local[1] (here local[2])"),
        (["--conf", "spark.ui.enabled=true"], "spark.ui.enabled=true (here false)"),
        (["--conf", "spark.new=1"], "spark.new=1 (here nothing is set)"),
        (["--deploy-mode", "cluster"], "invalid choice: 'cluster'"),
        (["--proxy-user", "other"], "unrecognized arguments: --proxy-user"),
    ],
)
def test_what_it_would_not_do_as_asked_it_refuses(
    driver: WarmDriver, program: Path, words: list[str], why: str
) -> None:
    """With an exit code that no job has, and nothing was run."""
    run = submit(driver, program, *words, str(program), "0")
    said = run.communicate(timeout=60)[0]
    assert run.returncode == REFUSED not in (0, 1, _USAGE)
    assert said.startswith("the warm driver refuses this run: ")
    assert why in said
    assert len(said.splitlines()) == 1


def test_the_real_one_gets_what_is_meant_for_it(driver: WarmDriver, program: Path, tmp_path: Path) -> None:
    """It is the next on the path, sees the path without this one, and the run is noted."""
    real = tmp_path / "bin" / "spark-submit"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\necho "real $* $PATH"\nexit 5\n')
    real.chmod(0o755)
    with driver.real():
        run = submit(driver, program, "--conf", "spark.new=1", "a.py", first=real.parent)
        said = run.communicate(timeout=60)[0]
    assert run.returncode == 5
    assert said.startswith(f"real --conf spark.new=1 a.py {real.parent}")
    assert str(BIN) not in said
    assert driver.calls()[-1].real
    assert driver.calls()[-1].argv[-1] == "a.py"


def test_a_run_that_is_killed_does_nothing_more(program: Path, tmp_path: Path) -> None:
    """The driver ends with it, at once; who comes next is told."""
    driver = WarmDriver(tmp_path / "driver", SETTINGS, session=False)
    driver.start()
    try:
        run = submit(driver, program, str(program), "sleep")
        deadline = time.monotonic() + 60
        while not (program.parent / "begun").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert driver.alive
        run.kill()
        run.wait()
        while driver.alive:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        run = submit(driver, program, str(program), "0")
        assert "no warm driver answers" in run.communicate(timeout=60)[0]
        assert run.returncode == 1
    finally:
        driver.stop()
