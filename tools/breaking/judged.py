"""A plugin of pytest: has the verifier look at the store before each job of a test that acts, and when the test is
over, and notes what it finds.

It is the verifier of the code as it is: no mutation breaks it. What it says of a store that a test has spoilt by hand
it says of the code as it is too.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Generator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from lowtide_spark.verification import read_points, records

from breaking.noted import note
from lowtide.verification import read_points as drawing

#: The phase under which it is noted.
JUDGED = "judged"
_JUDGE = pytest.StashKey["Judge"]()


@pytest.fixture(autouse=True)
def verifier(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Around every ``job`` of the stores' tests."""
    if "job" not in request.fixturenames:
        return
    judge = Judge(request.node.nodeid, sys.modules["conftest"], tmp_path)
    request.node.stash[_JUDGE] = judge
    monkeypatch.setattr(judge.kit, "run_job", judge)
    monkeypatch.setattr(records, "_SECONDS_BETWEEN_READS", 0)  # nobody publishes beside a test
    # Tables here have a few commits, and a plan of more read points costs seconds.
    monkeypatch.setattr(drawing, "ANYWHERE", 1)
    monkeypatch.setattr(read_points, "AFTER_COMMITS", 4)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Once more when the test is over, before its tables go: a compaction, a client's write, another run of the code
    may show only now what a job has spoilt.
    """
    judge = item.stash.get(_JUDGE, None)
    try:
        result = yield
    except BaseException:
        if judge is not None and judge.end():  # another set of the test's parameters would say no more
            item.session.shouldstop = "the verifier has found something"
        raise
    if judge is not None:
        judge.end()
    return result


class Judge:
    """What the verifier finds before each job that acts, and at the end: what a job did is seen before the next. It
    compares what it sees with the look before.
    """

    def __init__(self, test: str, kit: Any, folder: Path) -> None:
        self.kit = kit  # conftest of the stores' tests
        self._test, self._folder, self._run = test, folder, kit.run_job
        self._argv: list[str] | None = None
        self._looks = 0
        self._noted = False

    def __call__(self, name: str, body: Callable[..., None], argv: list[str], **named: Any) -> int:
        """A job, as ``run_job`` runs it."""
        if "--execute" in argv:
            self._look(argv)
            self._argv = argv
        return int(self._run(name, body, argv, **named))

    def end(self) -> bool:
        """The last look; whether any has found something."""
        if self._argv is not None:
            self._look(self._argv)
        return self._noted

    def _look(self, argv: list[str]) -> None:
        """Note what is found. What a test has spoilt by hand is found in the code as it is too, by the same look."""
        self._looks += 1
        found, earlier, points = (self._folder / f"judged-{name}" for name in ("found", "earlier", "points"))
        found.unlink(missing_ok=True)
        arguments = ["--config", argv[argv.index("--config") + 1], "--json", str(found), "--before", str(points)]
        arguments += ["--summary", str(self._folder / "judged-summary")]
        if points.exists():
            arguments += ["--after", str(points.replace(earlier))]
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            self._run("verify", self.kit.JOBS["verify"], arguments, read_only=True, blind=2)
        violations = json.loads(found.read_text())["violations"] if found.exists() else []
        for what in sorted({(v["invariant"], re.sub(r"\S*\d\S*", "#", v["what"])) for v in violations}):
            invariant, said = what  # names and numbers are others in each run of a test
            kind = f"{invariant} of look {self._looks}: {said}"
            note({"test": self._test, "phase": JUDGED, "kind": kind, "text": ""})
            self._noted = True
