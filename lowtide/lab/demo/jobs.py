"""Jobs outside Airflow: what ``lowtide run`` does, with the output in a file and the summary as a value."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lowtide.config import load
from lowtide.lab.demo.settings import DemoError
from lowtide.run.submit import command, environment


def run_job(config_file: Path, job: str, arguments: Sequence[str], folder: Path) -> dict[str, Any]:
    """Submit *job* to Spark and return its summary.

    Args:
        config_file: the configuration.
        job: its name.
        arguments: further ones of the job.
        folder: for its output and its summary.

    Raises:
        DemoError: it ended with a problem; the message ends with what it said last.
    """
    log, summary = folder / f"{job}.log", folder / f"{job}.json"
    summary.unlink(missing_ok=True)
    given = ["--config", str(config_file), "--summary", str(summary), *arguments]
    with log.open("wb") as output:
        code = subprocess.run(
            command(load(config_file), job, given),
            env=environment(),
            stdout=output,
            stderr=output,
            cwd=folder,
            check=False,
        ).returncode
    if code or not summary.exists():
        said = "\n".join(log.read_text("utf-8", errors="replace").splitlines()[-15:])
        msg = f"{job} ended with exit code {code}; see {log}, which ends:\n{said}"
        raise DemoError(msg)
    found: dict[str, Any] = json.loads(summary.read_text("utf-8"))
    return found
