"""What a bare machine lacks is said at once, by name and with the remedy, before anything is set up."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BASH = shutil.which("bash") or "bash"


class Machine:
    """A folder that is the whole path: the system's small tools, and programs that say what they are told to."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._home = folder / "checkout"
        self._home.mkdir()
        for name in ("awk", "sed", "sort"):
            (self.bin / name).symlink_to(shutil.which(name) or name)
        (self.bin / "python3.11").symlink_to(sys.executable)
        self.says("df", "Filesystem\ndisk 99999 0 99999 0% /")
        self.says("javac", "javac 17.0.15")
        self.says("mvn", "\x1b[1mApache Maven 3.8.7\x1b[m\nMaven home: /usr/share/maven")

    @property
    def bin(self) -> Path:
        return self.folder("bin")

    def folder(self, name: str) -> Path:
        (self._folder / name).mkdir(exist_ok=True, parents=True)
        return self._folder / name

    def says(self, program: str, text: str, code: int = 0) -> None:
        """Put a program there that prints *text* and exits with *code*."""
        file = self.bin / program
        file.unlink(missing_ok=True)
        file.write_text(f"#!{BASH}\necho '{text}'\nexit {code}\n")
        file.chmod(0o755)

    def lacks(self, program: str) -> None:
        (self.bin / program).unlink()

    def check(self, **environment: str) -> tuple[int, list[str]]:
        """The exit code of tools/check-tools, and the lines of its complaints."""
        done = subprocess.run(
            [BASH, ROOT / "tools" / "check-tools"],
            env={"PATH": str(self.bin), **environment},
            cwd=self._home,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr.splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_a_machine_that_has_all_hears_nothing(machine: Machine) -> None:
    """Silence, and exit code 0; git, a browser and gcc are not asked for."""
    assert machine.check() == (0, [])


@pytest.mark.parametrize(
    ("program", "told", "remedy"),
    [
        ("python3.11", "python3.11 not found", "install Python 3.11"),
        ("javac", "no JDK found: no javac", "openjdk-17-jdk-headless"),
        ("mvn", "Maven (mvn) not found", "apt-get install maven"),
    ],
)
def test_what_is_missing_is_named_with_the_remedy(machine: Machine, program: str, told: str, remedy: str) -> None:
    """A runtime without compiler is no JDK."""
    machine.says("java", "openjdk version 17")
    machine.lacks(program)
    code, (first, second) = machine.check()
    assert (code, first) == (1, f"setup: {told}")
    assert remedy in second


def test_all_that_is_missing_is_named_at_once(machine: Machine) -> None:
    """Nobody installs one thing to be told of the next."""
    for program in ("python3.11", "javac", "mvn"):
        machine.lacks(program)
    code, lines = machine.check()
    assert code == 1
    assert sum(line.startswith("setup: ") for line in lines) == 3


@pytest.mark.parametrize(
    ("program", "says", "told"),
    [
        ("javac", "javac 11.0.2", "javac is version 11"),
        ("javac", "javac 23.0.1", "javac is version 23"),
        ("mvn", "Apache Maven 3.6.3", "Maven is version 3.6.3"),
        ("df", "Filesystem\ndisk 99999 0 5999 0% /", "only 5999 MB free on this disk"),
    ],
)
def test_versions_that_do_not_work_are_named(machine: Machine, program: str, says: str, told: str) -> None:
    """Too old, or for Java too new for HBase; and a disk too small."""
    machine.says(program, says)
    code, lines = machine.check()
    assert code == 1
    assert lines[0].startswith(f"setup: {told}")


def test_a_machine_that_is_set_up_needs_less_room(machine: Machine) -> None:
    """What set-up fetches is there by then; a store wants some all the same."""
    machine.says("df", "Filesystem\ndisk 99999 0 2500 0% /")
    stamps = machine.folder("checkout/.lowtide/setup")
    for name in ("python", "connector"):
        (stamps / name).touch()
    assert "6 GB" in machine.check()[1][1], "one part is not there"
    (stamps / "embedded").touch()
    assert machine.check() == (0, [])
    machine.says("df", "Filesystem\ndisk 99999 0 1999 0% /")
    code, lines = machine.check()
    assert (code, lines[0]) == (1, "setup: only 1999 MB free on this disk")
    assert "a store needs 2 GB" in lines[1]


@pytest.mark.parametrize("says", ["javac 17", "javac 22.0.1"])
def test_every_java_that_hbase_runs_on_is_taken(machine: Machine, says: str) -> None:
    """From 17 to 22: in 23 the login of HBase's Hadoop ends."""
    machine.says("javac", says)
    assert machine.check() == (0, [])


def test_java_home_goes_before_the_path(machine: Machine) -> None:
    """As for Maven and for the store: a JAVA_HOME without compiler is named although the path has one."""
    runtime = machine.folder("jre")
    code, lines = machine.check(JAVA_HOME=str(runtime))
    assert (code, lines[0]) == (1, f"setup: no JDK found: no {runtime}/bin/javac")
    assert "JAVA_HOME" in lines[1]


def test_a_python_that_is_too_old_or_has_no_venv_is_named(machine: Machine) -> None:
    """Debian parts venv from Python."""
    machine.says("python3.11", "Python 3.9.1", code=1)
    code, lines = machine.check()
    assert code == 1
    assert lines[::2] == ["setup: python3.11 is Python 3.9.1", "setup: python3.11 has no venv"]


def test_which_pythons_would_do_is_told(machine: Machine) -> None:
    """Where there is none, and where it is one that was not tried: which other does, and where to get the first."""
    machine.lacks("python3.11")
    missing = machine.check()[1][1]
    machine.says("python3.13", "Python 3.13.1", code=1)
    code, lines = machine.check(PYTHON="python3.13")
    assert (code, lines[0]) == (1, "setup: python3.13 is Python 3.13.1")
    for remedy in (missing, lines[1]):
        assert "make PYTHON=python3.12" in remedy
        assert "uv python install 3.11" in remedy
