"""A driver that is told to stop with the process that started it: real processes, a stand-in for the driver."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lowtide.run import child

ROOT = Path(__file__).resolve().parents[2]
#: Says by files that it began, what it was told, and that it is at its end; OBEYS: within how many seconds.
DRIVER = """#!{python}
import signal, sys, time
from pathlib import Path
here = Path({here!r})
def told(number, _):
    (here / "told").write_text(str(number))
    time.sleep({obeys})
    (here / "ended").touch()
    sys.exit(0)
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, told)
(here / "began").touch()
time.sleep(60)
"""


def heard() -> None:
    """Whoever started the tests in the background has them ignore what a terminal sends."""
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Start a command, with a group of its own, whose ``spark-submit`` is the stand-in; wait until that has begun."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(obeys: float, patience: float, *before: str) -> subprocess.Popen[bytes]:
        spark = tmp_path / "spark" / "bin" / "spark-submit"
        spark.parent.mkdir(parents=True)
        spark.write_text(DRIVER.format(python=sys.executable, here=str(tmp_path), obeys=obeys))
        spark.chmod(0o755)
        (tmp_path / "lowtide.yaml").write_text("spark: {connector_class_path: [one.jar]}\n")
        code = (
            "from pathlib import Path; import lowtide.cli.jobs as jobs; from lowtide.run import child; "
            f"child.PATIENCE = {patience}; jobs.command = lambda *_: [{str(spark)!r}]; "
            "from lowtide.cli import main; main()"
        )
        argv = [*before, sys.executable, "-c", code, "run", "orphan_cleanup", "--execute"]
        # A file, not a pipe: that would be waited for as long as the driver has it.
        with (tmp_path / "said").open("w") as said:
            process = subprocess.Popen(
                argv,
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stderr=said,
                start_new_session=True,
                preexec_fn=heard,
            )
        processes.append(process)
        until((tmp_path / "began").exists)
        return process

    yield start
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_what_stops_the_command_stops_the_driver(
    started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path, number: signal.Signals
) -> None:
    """The driver is told the same and cleans up; the command ends after it, says what holds, and its exit code is the
    shell's for that signal.
    """
    command = started(0.3, 20)
    os.kill(command.pid, number)
    command.wait(30)
    assert (tmp_path / "ended").exists(), "nothing goes on without the command"
    assert (tmp_path / "told").read_text() == str(int(number))
    assert command.returncode == 128 + number
    said = (tmp_path / "said").read_text()
    assert "orphan_cleanup was told to stop" in said
    assert "What was done until then is safe" in said


def test_ctrl_c_leaves_the_driver_time_to_clean_up(
    started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """The terminal tells both; the driver needs longer than Python's own patience, a quarter of a second."""
    command = started(1.5, 20)
    os.killpg(command.pid, signal.SIGINT)
    command.wait(30)
    assert (tmp_path / "ended").exists()
    assert command.returncode == 130


def test_a_driver_that_does_not_end_is_killed(started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path) -> None:
    """After the patience; the command does not end before."""
    command = started(60, 1)
    os.kill(command.pid, signal.SIGTERM)
    command.wait(30)
    assert command.returncode == 143
    assert not (tmp_path / "ended").exists()


def test_a_signal_that_is_ignored_reaches_nobody(
    started: Callable[..., subprocess.Popen[bytes]], tmp_path: Path
) -> None:
    """Under nohup a terminal may be closed, and the run goes on."""
    command = started(0, 20, "nohup")
    os.kill(command.pid, signal.SIGHUP)
    time.sleep(0.5)
    assert command.poll() is None
    assert not (tmp_path / "told").exists()
    os.kill(command.pid, signal.SIGTERM)
    command.wait(30)
    assert command.returncode == 143


def test_a_child_that_ends_by_itself_says_how() -> None:
    """Its exit code is the answer, and this process hears its signals as before."""
    before = signal.getsignal(signal.SIGTERM)
    assert child.run([sys.executable, "-c", "raise SystemExit(3)"], os.environ) == 3
    assert signal.getsignal(signal.SIGTERM) is before
