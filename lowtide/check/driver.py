"""The hops that only a driver can look at: submitted to Spark as a job is, with a limit of time, and its lines read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lowtide import paths
from lowtide.check.hops import HOPS, OF_THE_STORE, Line, Result, hops_for, not_walked, through_gateway, walk
from lowtide.config import Config
from lowtide.run import rate
from lowtide.run.submit import command, environment

#: The program's hops, in its order (``lowtide_spark.check.Driver.looks``).
DRIVER_HOPS = ("driver", "hbase", "cluster", "clocks", "executors", "listing", "rights", "sideline")
_END_SECONDS = 10


def wanted(known: Sequence[Line]) -> tuple[str, ...]:
    """The hops that the driver looks at, after these lines: what is in the store too, where no gateway leads there."""
    return DRIVER_HOPS if through_gateway(known) else (*DRIVER_HOPS, *OF_THE_STORE)


def look(config: Config, file: Path | None, known: Sequence[Line], seconds: float) -> list[Line]:
    """The driver's lines. Spark is started only where what it needs is well.

    Args:
        config: the configuration.
        file: where ``--config`` says that it is.
        known: the lines so far.
        seconds: how long it may take; the driver is ended then.
    """
    needs = next(hop.needs for hop in HOPS if hop.name == "driver")
    if any(line.hop in needs and line.result is not Result.OK for line in known):
        return list(walk(dict.fromkeys(wanted(known), str), known))
    with tempfile.TemporaryDirectory(prefix="lowtide-check-") as folder:
        told, lines, output = (Path(folder) / name for name in ("known.json", "lines.jsonl", "output"))
        told.write_text(json.dumps([line.to_json() for line in known]))
        lines.touch()
        arguments = ["--known", str(told), "--lines", str(lines), *(["--config", str(file)] if file else [])]
        # An executor that lacks the connector lacks the plug-in by which it keeps to a rate, and ends over that.
        submit = command(rate.without(config), "check", arguments, paths.spark_apps() / "check.py")
        end = _ended(submit, environment(config), output, seconds)
        found = [Line.from_json(json.loads(text)) for text in lines.read_text().splitlines()]
        return completed(found, end, output.read_text(errors="replace"), known)


def completed(found: Sequence[Line], end: str, output: str, known: Sequence[Line] = ()) -> list[Line]:
    """*found*, and a line for each hop that the driver did not come to: it broke off at the first of them.

    Args:
        found: the lines that it wrote.
        end: how it ended, in words; empty: well.
        output: what it printed.
        known: the lines before it.
    """
    told = {line.hop for line in found}
    missing = [hop for hop in hops_for(known) if hop.name in wanted(known) and hop.name not in told]
    if not missing:
        return list(found)
    first, *rest = missing
    text = f"Spark's driver {end or 'ended'} before it had looked at this; it said last: {last_words(output)}"
    remedy = "run `lowtide survey --sample 0.01` to see all that it says; correct spark in the configuration"
    broken = Line(first.name, first.title, Result.WRONG, text, remedy)
    return [*found, broken, *not_walked((hop.name for hop in rest), f"{first.title} is wrong")]


def last_words(output: str) -> str:
    """The line of a driver's output that tells most: the last error, else the last one."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if ("Exception" in line or "Error" in line) and not line.startswith("at ")]
    return (errors or lines or ["nothing"])[-1][:300]


def _ended(submit: Sequence[str], environment: dict[str, str], output: Path, seconds: float) -> str:
    """Run it to its end, or end it with all that it started; how it ended, empty for well."""
    with output.open("w") as sink:
        process = subprocess.Popen(submit, env=environment, stdout=sink, stderr=sink, start_new_session=True)
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            return f"did not end within {seconds:.0f} s and was ended"
        finally:
            _end(process)
    return f"ended with exit code {code}" if code else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    for how in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, how)
        try:
            process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            continue
