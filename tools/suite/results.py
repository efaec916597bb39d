"""What JUnit files tell of the tests that ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

from needs import LEFT_OUT


@dataclass(frozen=True)
class Case:
    """A test that ran; *why* it failed, or was left out."""

    phase: str
    file: str
    name: str
    seconds: float
    outcome: Literal["passed", "failed", "skipped"]
    why: str = ""

    @property
    def left_out(self) -> bool:
        """Whether the machine lacked something that it needs."""
        return self.outcome == "skipped" and self.why.startswith(LEFT_OUT)


def read_cases(phase: str, files: Iterable[Path]) -> list[Case]:
    """The tests in JUnit files; a file that was cut short holds none."""
    cases: list[Case] = []
    for file in files:
        try:
            root = ElementTree.parse(file).getroot()
        except ElementTree.ParseError:
            continue
        cases += [_case(phase, element) for element in root.iter("testcase")]
    return cases


def _case(phase: str, element: ElementTree.Element) -> Case:
    outcome: Literal["passed", "failed", "skipped"] = "passed"
    why = ""
    for found, tells in (("skipped", "skipped"), ("failure", "failed"), ("error", "failed")):
        if (said := element.find(found)) is not None:
            outcome, why = tells, said.get("message", "")
    seconds = float(element.get("time", "0").replace(",", ""))
    return Case(phase, element.get("classname", ""), element.get("name", ""), seconds, outcome, why)


def closing(cases: Sequence[Case]) -> str:
    """The total, in one line."""
    count = Counter(case.outcome for case in cases)
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    return f"{count['passed']} passed, {count['failed']} failed{skipped}"
