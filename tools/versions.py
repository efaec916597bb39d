#!/usr/bin/env python3
"""docs/versions.md from tests/versions.json, and the file from what ran.

``tools/versions.py`` writes the page. ``tools/versions.py record "make test"`` first adds what the JUnit files of the
last run tell: which tests passed, by folder, with the versions of what that folder's tests really use. A run takes the
place of an earlier one of the same name with the same versions.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from suite.phases import LEAST_SPARK  # noqa: E402 - found by the lines above
from suite.results import Case, read_cases  # noqa: E402

from lowtide.check.machine import JAVA_LEAST, JAVA_MOST  # noqa: E402
from lowtide.lab.stack.config import HBASE_LINES  # noqa: E402
from lowtide.run import airflows, hbases, sparks  # noqa: E402

FILE = ROOT / "tests" / "versions.json"
PAGE = ROOT / "docs" / "versions.md"

_PYTHON = ("Python", "System")
_SPARK = (*_PYTHON, "Java", "Spark")
_STORE = (*_SPARK, "HBase", "Thrift gateway", "Omid", "happybase")
_AIRFLOW = ("Airflow", "Apache Spark provider")
#: What the tests of a folder or file really use, by how their names in JUnit files begin; the longest that fits counts.
USES = {
    "lowtide.connector.": ("connector", ("Java", "System")),
    "tests.unit.": ("unit", _PYTHON),
    "tests.spark.": ("spark", _SPARK),
    "tests.store.": ("store", _STORE),
    "tests.store.test_phoenix": ("store", (*_STORE, "Phoenix")),
    "tests.cluster.": ("YARN and HDFS", (*_STORE, "Hadoop")),
    "tests.cluster.test_airflow": ("YARN and HDFS", (*_STORE, "Hadoop", *_AIRFLOW)),
    "tests.airflow.": ("airflow", (*_PYTHON, *_AIRFLOW)),
    "tests.airflow.test_runs": ("airflow runs", (*_STORE, *_AIRFLOW)),
    "tests.airflow.test_sensor_runs": ("airflow runs", (*_STORE, *_AIRFLOW)),
    "tests.airflow.test_two_stores_runs": ("airflow runs", (*_STORE, *_AIRFLOW)),
    "tests.airflow.test_phoenix_runs": ("airflow runs", (*_STORE, *_AIRFLOW, "Phoenix")),
}
#: Packages of Python, by the words of the page.
PACKAGES = {
    "Spark": "pyspark",
    "Airflow": "apache-airflow",
    "Apache Spark provider": airflows.SPARK_PROVIDER,
    "happybase": "happybase",
}
#: Jars of the embedded store, by the words of the page; those with HBase of an older line lie in a folder of its own.
JARS = {
    "HBase": "embedded/target{older}/lib/hbase-server-*.jar",
    "Thrift gateway": "embedded/target{older}/lib/hbase-thrift-*.jar",
    "Omid": "embedded/target{older}/lib/omid-tso-server-*.jar",
    "Phoenix": "embedded/phoenix/target/lib/phoenix-core-server-*.jar",
    "Hadoop": "embedded/hadoop/target/lib/hadoop-yarn-server-resourcemanager-*.jar",
}

HEAD = """# Versions

| word | means |
|---|---|
| tried | tests ran with it and none failed; which, and when, stands below |
| expected | nothing is known against it, and it was not run |
| refused | Lowtide says in a sentence that it does not fit, and does nothing |

`tools/versions.py` makes this page from what ran. If you run another version, you can add it: [how](#how-to-add-one).

## Which fit

| | tried | expected | refused |
|---|---|---|---|
"""

RAN = """
What the distributions ship, by their documents: [cloudera.md](cloudera.md), [emr.md](emr.md), [apache.md](apache.md).

## What ran

| when | what | tests that passed | with |
|---|---|---|---|
"""

TAIL = """
Tests of `unit` are rules alone, `spark` rules as column expressions in a Spark session, `store` jobs against a real
HBase with a real oracle and a real Thrift gateway, `airflow` the plugin and the DAGs as Airflow loads them, `airflow
runs` the same under a real scheduler on a real store, `connector` the Java part's own, `YARN and HDFS` the jobs on
Hadoop's own servers ([what](clusters.md#what-ran-on-yarn)). A run stands with the versions of what its tests used.

## How to add one

Run the tests with the version in question, then `tools/versions.py record "make test"` in the same checkout. It reads
the results in `.lowtide/suite` and the versions that are installed, and writes `tests/versions.json` and this page. A
run in which tests failed is listed as well, with a word on why (`--note`), and counts for nothing in the matrix.
`make matrix` records what it ran by itself; `SPARK_LINES=4.2 HBASE_LINES=2.5` is one pair of Spark and HBase.
"""


def rules() -> dict[str, tuple[str, str]]:
    """What is expected of other versions and what is refused, by the words of the page, as code and wheel have it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    least, below = ".".join(map(str, airflows.LEAST)), airflows.BELOW[0]
    return {
        "Python": (
            project["requires-python"],
            f"before {project['requires-python'].removeprefix('>=')}, by pip; from 3.13 on by `make setup`",
        ),
        "Java": (
            f"{JAVA_LEAST} to {JAVA_MOST}; newer where Spark's Hadoop client is 3.5.0 or newer",
            f"before {JAVA_LEAST}; from {JAVA_MOST + 1} on with an older client, and by `make setup`",
        ),
        "Spark": (_wanted(extras["spark"], "pyspark"), f"before {sparks.name(sparks.LEAST)}"),
        "Airflow": (_wanted(extras["airflow"], "apache-airflow"), f"before {least}, and from {below} on"),
        "Apache Spark provider": (_wanted(extras["airflow"], airflows.SPARK_PROVIDER), ""),
        "HBase": (f"other {' or '.join(hbases.TRIED)}", ""),
        "Thrift gateway": ("Thrift 1 of the same HBase", ""),
        "Omid": ("other 1.1", ""),
        "Hadoop": ("other 3.4, YARN and HDFS", ""),
        "Phoenix": ("other 5.2", ""),
        "happybase": (_wanted(project["dependencies"], "happybase"), ""),
        "System": ("any Linux", ""),
    }


def _wanted(requirements: Iterable[str], package: str) -> str:
    """The versions of *package* that requirements of a wheel ask for."""
    (found,) = (match[1] for each in requirements if (match := re.fullmatch(rf"{package}([<>=!].*)", each)))
    return found.replace(",", ", ")


def page(runs: Sequence[Mapping[str, Any]]) -> str:
    """The whole page."""
    matrix = [
        f"| {name} | {', '.join(_tried(runs, name)) or '-'} | {_code(expected)} | {refused or '-'} |"
        for name, (expected, refused) in rules().items()
    ]
    rows = [
        f"| {run['date']} | `{run['what']}` | {_passed(run)} | "
        f"{', '.join(f'{name} {version}'.removeprefix('System ') for name, version in run['versions'].items())} |"
        for run in sorted(runs, key=lambda run: (run["date"], run["what"]), reverse=True)
    ]
    return HEAD + "\n".join(matrix) + "\n" + RAN + "\n".join(rows) + "\n" + TAIL


def _tried(runs: Iterable[Mapping[str, Any]], name: str) -> list[str]:
    found = {run["versions"][name] for run in runs if name in run["versions"] and not _failed(run)}
    return sorted(found, key=lambda version: [int(n) for n in re.findall(r"\d+", version)])


def _failed(run: Mapping[str, Any]) -> int:
    return sum(counts.get("failed", 0) for counts in run["tests"].values())


def _passed(run: Mapping[str, Any]) -> str:
    parts = []
    for folder, counts in run["tests"].items():
        others = [f"{counts[word]} {word}" for word in ("failed", "left out") if counts.get(word)]
        parts.append(f"{folder} {counts.get('passed', 0):,}" + (f" ({', '.join(others)})" if others else ""))
    return ", ".join(parts) + (f". {run['note']}" if run.get("note") else "")


def _code(text: str) -> str:
    return f"`{text}`" if text.startswith((">", "<", "=")) else text


def summed(cases: Iterable[Case]) -> tuple[dict[str, dict[str, int]], set[str]]:
    """Tests by folder and outcome, and the words for all that those which passed or failed used."""
    tests: dict[str, Counter[str]] = {}
    used: set[str] = set()
    for case in cases:
        names = [prefix for prefix in USES if case.file.startswith(prefix)]
        if not names:
            continue
        folder, uses = USES[max(names, key=len)]
        outcome = "left out" if case.outcome == "skipped" else case.outcome
        tests.setdefault(folder, Counter())[outcome] += 1
        if outcome != "left out":
            used |= set(uses)
    return {folder: dict(sorted(counts.items())) for folder, counts in sorted(tests.items())}, used


def added(runs: Sequence[Mapping[str, Any]], run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """*runs* with *run*, in place of an earlier one of the same name with the same versions.

    Raises:
        SystemExit: nothing ran, or something failed and nobody says why.
    """
    if not run["tests"]:
        raise SystemExit("there are no results of tests; run them first: make test")
    if _failed(run) and not run.get("note"):
        raise SystemExit(f'{_failed(run)} tests failed; say in a word why: --note "..."')
    same = ("what", "versions")
    return [*(old for old in runs if any(old[key] != run[key] for key in same)), run]


def results(checkout: Path, folder: Path | None = None) -> list[Case]:
    """What the JUnit files of *folder* tell; without one, those of the suite's last run: the connector's own tests
    included, and without what ran on an older Spark.
    """
    if folder:
        return read_cases("", folder.glob("*.xml"))
    suite = (file for file in (checkout / ".lowtide" / "suite").glob("*.xml") if file.stem != LEAST_SPARK)
    return read_cases("", [*suite, *checkout.glob("connector/target/surefire-reports/*.xml")])


def installed(python: str, checkout: Path, hbase: str = HBASE_LINES[-1]) -> dict[str, str]:
    """The versions of all that tests may use, by the words of the page; *hbase* is the line of the store's servers."""
    code = f"""if True:
        import json, platform
        from importlib import metadata
        found = {{"Python": platform.python_version()}}
        for word, package in {PACKAGES!r}.items():
            try:
                found[word] = metadata.version(package)
            except metadata.PackageNotFoundError:
                pass
        print(json.dumps(found))
        """
    found = json.loads(subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout)
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    if version := re.search(r'version "([^"]+)"', java):
        found["Java"] = version[1]
    older = "" if hbase == HBASE_LINES[-1] else f"/hbase-{hbase}"
    for word, jars in JARS.items():
        pattern = jars.format(older=older)
        for jar in checkout.glob(pattern):
            found[word] = jar.stem.removeprefix(pattern.rpartition("/")[2].partition("*")[0])
    system = dict(re.findall(r'^(\w+)="?(.*?)"?$', Path("/etc/os-release").read_text("utf-8"), re.MULTILINE))
    found["System"] = f"{system['NAME'].partition(' ')[0]} {system.get('VERSION_ID', '')}".strip()
    return found


def record(given: argparse.Namespace) -> None:
    """Add the run whose results lie in *given.results*, else in the suite's folder, to the file."""
    tests, used = summed(results(given.checkout, given.results))
    versions = installed(given.python, given.checkout, given.hbase) | dict(part.split("=", 1) for part in given.set)
    run = {
        "date": given.date,
        "what": given.what,
        "versions": {name: versions[name] for name in rules() if name in used and name in versions},
        "tests": tests,
        **({"note": given.note} if given.note else {}),
    }
    FILE.write_text(json.dumps(added(read(), run), indent=2) + "\n")


def read() -> list[dict[str, Any]]:
    """The runs of the file."""
    runs: list[dict[str, Any]] = json.loads(FILE.read_text("utf-8"))
    return runs


def main() -> None:
    """Record a run, if that is asked for; write the page."""
    parser = argparse.ArgumentParser(prog="tools/versions.py", description=(__doc__ or "").splitlines()[0])
    adding = parser.add_subparsers(dest="command").add_parser("record", help="add what the last run of tests tells")
    adding.add_argument("what", help="how the run was started, as in: make test")
    adding.add_argument("--note", default="", help="why tests failed")
    adding.add_argument("--python", default=sys.executable, help="the Python that ran them")
    adding.add_argument("--checkout", type=Path, default=ROOT, help="where they ran")
    adding.add_argument("--results", type=Path, help="where the JUnit files lie; else .lowtide/suite of the checkout")
    adding.add_argument("--hbase", default=HBASE_LINES[-1], choices=HBASE_LINES, help="the line of the store's servers")
    adding.add_argument("--date", default=date.today().isoformat(), help="when, if not today")
    adding.add_argument("--set", nargs="*", default=[], metavar="NAME=VERSION", help="what the packages do not tell")
    given = parser.parse_args()
    if given.command:
        record(given)
    PAGE.write_text(page(read()), "utf-8")


if __name__ == "__main__":
    main()
