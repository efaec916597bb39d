"""The connector of a copy: one changed file compiled, its classes put in and taken out again, its own tests run."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pyspark

from breaking.catalogue import CONNECTOR_TESTS

_JARS = Path(pyspark.__file__).parent / "jars" / "*"
_PARAMETERS = re.compile(r"\W.*", re.DOTALL)
#: Java that runs for seconds is not worth compiling twice.
SHORT = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


class Connector:
    """The connector that a copy's tests use."""

    def __init__(self, copy: Path) -> None:
        self._folder = copy / "connector"
        self._target = self._folder / "target"
        self._jar = self._target / "lowtide-connector.jar"

    def compiled(self, file: Path, into: Path) -> dict[str, Path]:
        """The classes of *file*, by name; where it is not Java an error with the compiler's words."""
        shutil.rmtree(into, ignore_errors=True)
        path = f"{self._target / 'classes'}:{self._target / 'lib' / '*'}:{_JARS}"
        # Debugging information as Maven has it: else a running class would not take the new body.
        command = ["javac", "-J-XX:TieredStopAtLevel=1", "-g", "-proc:none", "-nowarn", "--release", "17"]
        done = subprocess.run(
            [*command, "-cp", path, "-d", str(into), str(file)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            msg = f"{file.name} is no Java when broken: {done.stdout}{done.stderr}"
            raise ValueError(msg)
        return {str(f.relative_to(into).with_suffix("")).replace("/", "."): f for f in into.rglob("*.class")}

    def whole(self, names: dict[str, Path]) -> dict[str, Path]:
        """The unbroken classes of these names."""
        return {name: self._target / "classes" / f"{name.replace('.', '/')}.class" for name in names}

    def put(self, classes: dict[str, Path]) -> None:
        """Replace classes, in the folder and in the jar."""
        self._keep(self._target / "classes", self._jar)
        for name, file in classes.items():
            shutil.copy(file, self._target / "classes" / f"{name.replace('.', '/')}.class")
        subprocess.run(["jar", "uf", self._jar, "-C", self._target / "classes", "lowtide"], check=True)

    def restore(self) -> None:
        """Have all classes whole again."""
        for kept in self._target.glob("*.whole"):
            place = kept.with_suffix("")
            shutil.rmtree(place) if place.is_dir() else place.unlink()
            kept.rename(place)

    def _keep(self, *places: Path) -> None:
        for place in places:
            copy = place.with_name(f"{place.name}.whole")
            shutil.copytree(place, copy) if place.is_dir() else shutil.copy(place, copy)

    def test(self, tests: tuple[str, ...], seconds: float) -> tuple[int | None, str, list[dict[str, str]]]:
        """Run tests of the connector's own: the exit code (None: they did not end), the output, and what became of
        each.
        """
        reports = self._target / "surefire-reports"
        shutil.rmtree(reports, ignore_errors=True)
        wanted = ",".join(re.sub(r".*/(\w+)\.java(?:::(\w+))?", _wanted, test) for test in tests)
        command = ["mvn", "-q", "-B", "-ntp", "surefire:test", f"-Dtest={wanted}", f"-DargLine={SHORT}"]
        try:
            done = subprocess.run(
                command, cwd=self._folder, capture_output=True, text=True, check=False, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return None, "", []
        return done.returncode, done.stdout + done.stderr, [n for f in reports.glob("*.xml") for n in self._noted(f)]

    def _noted(self, report: Path) -> list[dict[str, str]]:
        found = []
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            file = f"{CONNECTOR_TESTS}java/{case.attrib['classname'].replace('.', '/')}.java"
            name = f"{file}::{re.sub(_PARAMETERS, '', case.attrib['name'])}"
            problems = [child for child in case if child.tag in ("failure", "error")]
            if not problems:
                found.append({"test": name, "phase": "skipped" if case.find("skipped") is not None else "passed"})
            for problem in problems:
                asserted = problem.tag == "failure"
                statement, line = self._statement(file, problem.text or "")
                about = {"kind": problem.attrib.get("type", ""), "text": problem.attrib.get("message", "")}
                found.append(
                    {"test": name, "phase": "call", "statement": statement if asserted else "", "line": line, **about}
                )
        return found

    def _statement(self, file: str, stack: str) -> tuple[str, str]:
        """The assertion of the test that failed, from its line to the semicolon."""
        lines = re.findall(rf"\({Path(file).name}:(\d+)\)", stack)
        if not lines:
            return "", ""
        text = (self._folder.parent / file).read_text().splitlines()[int(lines[0]) - 1 :]
        end = next((n for n, line in enumerate(text) if line.rstrip().endswith((";", "{"))), 0)
        return "\n".join(text[: end + 1]), f"{Path(file).name}:{lines[0]}"


def _wanted(match: re.Match[str]) -> str:
    return match[1] + (f"#{match[2]}" if match[2] else "")
