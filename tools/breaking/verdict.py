"""What became of a mutation."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

NOTICED, MISSED, ELSEWHERE, BROKEN = "noticed", "NOT NOTICED", "FAILED ELSEWHERE", "CANNOT BE MADE"
#: No verdict: there was no time for it.
PUT_OFF = "PUT OFF"
#: Not tried: chaos has no part in what it is about.
UNMET = "NEVER MET"


@dataclass
class Outcome:
    """What a run of tests came to: the exit code (None: it did not end), what it printed, what became of each test, and
    when they had run, by ``time.monotonic``: what is put in order after that is not theirs.
    """

    code: int | None
    output: str
    noted: list[dict[str, Any]]
    at: float = field(default_factory=time.monotonic)

    @property
    def failures(self) -> list[dict[str, Any]]:
        """The errors."""
        return [n for n in self.noted if n["phase"] not in ("passed", "skipped", "judged")]

    @property
    def judged(self) -> set[tuple[str, str]]:
        """What the verifier found after a job, where it was asked (:mod:`breaking.judged`): in which test, which
        invariant was broken.
        """
        return {(n["test"], n["kind"]) for n in self.noted if n["phase"] == "judged"}


@dataclass
class Verdict:
    """One of the four words; with what failed, with what was printed where nothing did, and when it was known, by
    ``time.monotonic``.
    """

    word: str
    failures: list[dict[str, Any]] = field(default_factory=list)
    output: str = ""
    judged: set[tuple[str, str]] = field(default_factory=set)
    at: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, outcome: Outcome, fails: str) -> Verdict:
        """Whether the assertion that a mutation names failed, or none did, or others."""
        if outcome.code is None:
            return cls(ELSEWHERE, output="the tests did not end in time", at=outcome.at)
        if any(names_it(fails, failure) for failure in outcome.failures):
            return cls(NOTICED, outcome.failures, at=outcome.at)
        if outcome.code == 0:
            return cls(MISSED, at=outcome.at)
        said = "" if outcome.failures else outcome.output[-2000:]
        return cls(ELSEWHERE, outcome.failures, said, at=outcome.at)


def names_it(fails: str, failure: dict[str, Any]) -> bool:
    """Whether what failed is the assertion that a mutation names: a piece of its line, or of the text of the error."""
    said = f"{failure['statement']}\n{failure['text']}"
    return bool(fails) and failure["phase"] == "call" and " ".join(fails.split()) in " ".join(said.split())
