"""What every job's program is told, and what it books."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from lowtide_spark import job as program


def test_sparks_start_is_booked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is what a small run takes longest for."""
    file = tmp_path / "lowtide.yaml"
    file.write_text("")
    monkeypatch.setattr(program, "connect", lambda _: nullcontext())
    monkeypatch.setattr(program, "session", lambda _: time.sleep(0.2))
    monkeypatch.setattr(program, "Store", lambda *_: None)
    phases: dict[str, float] = {}
    run = program.run_job(
        "balances", lambda run: phases.update(run.summary.phases), ["--config", str(file)], read_only=True
    )
    assert run == 0
    assert 0.2 <= phases["start"] < 5
