"""The phases of the suite: what each runs, and which run side by side."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from turns import OPTION as BY_TURNS
from turns import WHOLE_FILES

from tests.prove import PROVE

Command = Sequence[str]
ROOT = Path(__file__).resolve().parents[2]
#: The files that take longest begin, or the last process would work on one of them alone. Processes take two files each
#: at the start, the first and the third, the second and the fourth.
LONGEST_FIRST = (
    "tests/store/test_phoenix.py",
    "tests/store/test_end_to_end.py",
    "tests/store/test_deadman.py",
    "tests/store/test_history.py",
    "tests/store/test_restart.py",
    "tests/store/test_safety.py",
    "tests/store/test_as_of.py",
    "tests/store/test_ledger_repair.py",
    "tests/store/test_health.py",
    "tests/store/test_stack.py",
    "tests/store/test_monitoring.py",
    "tests/store/test_regions.py",
    "tests/store/test_connector_read.py",
    "tests/store/test_failures.py",
    "tests/store/test_workload.py",
    "tests/airflow/test_runs.py",
    "tests/airflow/test_two_stores_runs.py",
    "tests/airflow/test_phoenix_runs.py",
    "tests/airflow/test_warm_driver.py",
    "tests/airflow/test_sensor_runs.py",
)
#: What a small driver can do is seen in a driver of its own; and one whose disk is made to be full is no other test's.
#: First, in the driver as it is new, that nothing is written: one renews the holds of reads that others still refer to.
OWN_DRIVER = tuple(f"tests/store/test_{name}.py" for name in ("survey", "chaos", "full_disk", "scale"))
#: The oldest line of Spark that is supported: its environment (``make spark-3.5``), and the phase that runs in it.
LEAST_SPARK = "spark-3.5"
LEAST_PYTHON = ROOT / ".lowtide" / LEAST_SPARK / "bin" / "python"
_BUT_HISTORY = () if PROVE else ("--ignore=tests/spark/test_ancient.py",)
_TURNS = () if PROVE else (BY_TURNS, "{turns}")
A_SHARE, ALL_RULES = ("--known", "--share", "40"), ("--jobs", "{jobs}")


@dataclass(frozen=True)
class Phase:
    """A part of the suite. In its commands ``{jobs}`` stands for the number of processes, ``{junit}`` for the file of
    its results, ``{turns}`` for the runs that share its tests out, ``{temp}`` for a folder of its own: in the one that
    pytest takes by itself, another run of this user clears away what it finds to be old."""

    name: str
    commands: Sequence[Command]
    #: Where the files of its results lie if its commands cannot be told.
    results: str = ""
    #: Whether its processes share the suite's Spark driver.
    shares_driver: bool = False
    #: Minutes after which it hangs: a test's own time-out should have ended it long before.
    limit: int = 15
    #: In one run of so many has each of its tests a turn (:mod:`turns`), unless the whole is asked for.
    turns: int = 1

    def made(self, jobs: int, junit: Path, temp: Path, *, whole: bool = False) -> list[Command]:
        """The commands to run; the *whole*, of all tests but those whose mark makes them wait."""
        given = {"jobs": jobs, "junit": junit, "temp": temp, "turns": 1 if whole else self.turns}
        return [[part.format(**given) for part in command] for command in self.commands]


def _pytest(*arguments: str, python: str = sys.executable) -> Command:
    return (
        python,
        "-m",
        "pytest",
        "-q",
        "--durations=0",
        "--junitxml={junit}",
        "--basetemp={temp}",
        # Of the proof a run is killed at each of its effects in one test. Else twice what suffices for a test by
        # itself: phases side by side have been as slow as that on a small machine.
        f"--timeout={5400 if PROVE else 1800}",
        *arguments,
    )


def _shared(folder: str, *options: str) -> Command:
    """The files of a folder, shared out among processes; each boots its own store, for all its files."""
    # Each by its name: beside its folder a file would lose its place.
    names = sorted({f"{folder}/{file.name}" for file in (ROOT / folder).glob("test_*.py")} - {*OWN_DRIVER})
    files = sorted(names, key=lambda name: LONGEST_FIRST.index(name) if name in LONGEST_FIRST else len(LONGEST_FIRST))
    return _pytest("-n", "{jobs}", "--dist", "loadfile", "--no-loadscope-reorder", *_TURNS, *options, *files)


_ALL = (
    Phase(
        "lint",
        (
            (sys.executable, "-m", "ruff", "check", "."),
            (sys.executable, "-m", "ruff", "format", "--check", "."),
            (sys.executable, "-m", "mypy"),
            (str(Path(sys.executable).with_name("lint-imports")), "--no-logo"),
        ),
    ),
    Phase(
        "java",
        (("mvn", "-q", "-B", "-ntp", "-f", "connector/pom.xml", "surefire:test"),),
        results="connector/target/surefire-reports/*.xml",
    ),
    # A process a folder: Spark sessions with different class paths cannot share one JVM.
    Phase("unit", (_pytest("tests/unit"),)),
    Phase("spark", (_pytest("tests/spark"),), shares_driver=True),
    # Once more on the oldest Spark, by a driver of its own; the rules of history take half of the time.
    Phase(LEAST_SPARK, (_pytest("tests/spark", *_BUT_HISTORY, *_TURNS, python=str(LEAST_PYTHON)),), turns=3),
    # A sixth of them is what a run after each change has time for, on a machine a third as quick as ours too.
    Phase("store", (_shared("tests/store"),), shares_driver=True, limit=300 if PROVE else 85, turns=6),
    Phase("own-driver", (_pytest(*OWN_DRIVER),), limit=120 if PROVE else 30),
    # Many go on from what the ones before have done to their Airflow.
    Phase("airflow", (_shared("tests/airflow", WHOLE_FILES),), limit=120 if PROVE else 60, turns=3),
    # A rotating fortieth, one at a time, whose tests run on the code as it is in other phases, each in its turn; all of
    # them run theirs unbroken first, in the sizes of every day.
    Phase(
        "rules",
        ((sys.executable, "tools/break-rules", *(ALL_RULES if PROVE else A_SHARE)),),
        limit=300 if PROVE else 60,
    ),
)
PHASES = {phase.name: phase for phase in _ALL}
#: The stores' tests compute, Airflow's wait; what boots a store of its own comes one after the other.
LANES = (
    ("store", "own-driver", "rules"),
    ("lint", "java", "unit", "spark", LEAST_SPARK, "airflow"),
)
