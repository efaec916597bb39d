"""A plugin of pytest: has the verifier look at the store before and after each job of a test that acts, and notes what
it finds then alone.

It is the verifier of the code as it is: no mutation breaks it. What it says of a store that a test has spoilt by hand
it says before the job too.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from breaking.noted import note

#: The phase under which it is noted.
JUDGED = "judged"


@pytest.fixture(autouse=True)
def verifier(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Around every ``job`` of the stores' tests."""
    if "job" not in request.fixturenames:
        yield
        return
    kit = sys.modules["conftest"]  # of the stores' tests
    run, points = kit.run_job, tmp_path / "points.json"

    def look(argv: list[str], option: str) -> set[tuple[str, str]]:
        found = tmp_path / "found.json"
        found.unlink(missing_ok=True)
        config = argv[argv.index("--config") + 1]
        arguments = [
            "--config",
            config,
            "--summary",
            str(tmp_path / "judged.json"),
            "--json",
            str(found),
            option,
            str(points),
        ]
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            run("verify", kit.JOBS["verify"], arguments, read_only=True, blind=2)
        violations = json.loads(found.read_text())["violations"] if found.exists() else []
        return {(v["invariant"], v["table"]) for v in violations}

    def judged(name: str, body: Callable[..., None], argv: list[str], **named: Any) -> int:
        if "--execute" not in argv:
            return int(run(name, body, argv, **named))
        before = look(argv, "--before")
        try:
            return int(run(name, body, argv, **named))
        finally:
            for invariant, table in sorted(look(argv, "--after") - before):
                note({"test": request.node.nodeid, "phase": JUDGED, "kind": invariant, "text": table})

    monkeypatch.setattr(kit, "run_job", judged)
    yield
