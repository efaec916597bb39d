"""The arguments of a job.

argparse, where the command ``lowtide`` takes Typer: which options a job offers is data, which the DAGs and the command
read as well (``lowtide.run.submit.TAKEN_BY``); with Typer each of the ten jobs would need a function that repeats it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic import ByteSize, TypeAdapter, ValidationError

from lowtide.run.submit import INSPECTIONS, takes


def arguments(job: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The job's arguments; ends the program with exit code 2 where they are wrong."""
    parser = argparse.ArgumentParser(prog=job, allow_abbrev=False)
    several: dict[str, Any] = {"action": "append", "default": []}
    parser.add_argument("--config", type=Path, metavar="FILE", help="the configuration file")
    if takes(job, "--table"):
        parser.add_argument("--table", **several, metavar="NAME", help="only this table; may be given several times")
    parser.add_argument(
        "--run-id", metavar="ID", help="names the run; a restart leaves out what it has recorded under it"
    )
    parser.add_argument(
        "--context", **several, metavar="KEY=VALUE", help="kept in the summary; may be given several times"
    )
    parser.add_argument("--summary", type=Path, metavar="FILE", help="write the summary there, as JSON")
    parser.set_defaults(table=[])
    (_inspecting if job in INSPECTIONS else _working)(parser, job)
    return parser.parse_args(argv)


def _working(parser: argparse.ArgumentParser, job: str) -> None:
    # What runs read of options that their job does not take.
    parser.set_defaults(discovered=False, start=None, end=None, full=False, grace=None, rate=0)
    parser.set_defaults(budget_rows=None, budget_share=None, list=False)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--execute", action="store_true", help="act; without it the run only plans and counts")
    how.add_argument("--as-configured", action="store_true", help="act on the tables whose mode is execute")

    def offer(option: str, text: str, **about: Any) -> None:
        if takes(job, option):
            parser.add_argument(option, help=text, **about)

    offer("--discovered", "pass over tables that turn out plain or gone, instead of refusing", action="store_true")
    offer(
        "--from",
        "put back what was pruned since then: ISO 8601 with zone"
        if job == "journal_replay"
        else "where the interval begins: ISO 8601 with zone; else where the last run ended",
        dest="start",
        metavar="TIME",
    )
    until = (
        "the mark as of then, not as of now"
        if job == "history_gc"
        else "where the interval ends; else as far as is safe"
    )
    offer("--to", f"{until}: ISO 8601 with zone", dest="end", metavar="TIME")
    offer("--full", "read everything, also what is recorded as done", action="store_true")
    offer("--grace", "instead of the configured grace, as in 15m or 24h; 0s: none", metavar="DURATION")
    offer("--yes", "do not ask on a terminal whether 0s is meant", action="store_true")
    offer(
        "--budget-rows",
        "the most cells that may go from one table, as configured if left out",
        type=_positive(int),
        metavar="N",
    )
    offer("--budget-share", "and the largest share of those examined, such as 0.5", type=_positive(float), metavar="X")
    offer("--approved", "a dry run's summary: act only if the plan is still the same", type=Path, metavar="FILE")
    offer("--list", "list each cell that is written or goes, or would be: the first are printed", action="store_true")
    offer("--compact", "ask HBase for the compactions that pay", action="store_true")
    offer("--output", "write every balance there, as CSV", metavar="FOLDER")
    offer("--since-snapshot", "put back what was pruned since this HBase snapshot was made", metavar="S")
    offer("--restore", "the run whose removed cells are put back", metavar="RUN")
    offer(
        "--as-committed",
        "a transaction that committed after all, and when; may be given several times",
        metavar="T=TC",
        action="append",
        default=[],
    )


def _inspecting(parser: argparse.ArgumentParser, job: str) -> None:
    """The arguments of a survey and of the verifier: none makes them act."""
    parser.set_defaults(sample=None, rate=0, snapshot=False)
    if takes(job, "--sample"):
        parser.add_argument("--sample", type=_share, metavar="SHARE", help="read only this share of a table's regions")
        parser.add_argument("--rate", type=_rate, metavar="BYTES", help="read at most so much a second: 20MB")
    if takes(job, "--show"):
        parser.add_argument("--show", metavar="RUN", help="the cells that this run put aside")
        parser.add_argument("--first", type=_positive(int), default=100, metavar="N", help="at most so many")
    if takes(job, "--row"):
        parser.add_argument("--row", metavar="ROW", help=r"a row, as in HBase's shell: \xNN is a byte")
    parser.add_argument("--json", type=Path, metavar="FILE")
    if job == "survey":
        parser.add_argument(
            "--snapshot", action="store_true", help="read HBase snapshots, made and dropped, not live tables"
        )
        parser.add_argument("--html", type=Path, metavar="FILE")
    elif job == "verify":
        parser.add_argument("--before", type=Path, metavar="FILE", help="write there what read points show")
        parser.add_argument("--after", type=Path, metavar="FILE", help="compare with what --before wrote")
    # It reads everything, whatever is recorded; a plan out of proportion is for it to report, not to refuse.
    parser.set_defaults(discovered=False, start=None, end=None, full=True, execute=False, as_configured=False)
    parser.set_defaults(grace=None, budget_rows=sys.maxsize, budget_share=1.0, list=False)


def _share(text: str) -> float:
    value = float(text)
    if not 0 < value <= 1:
        msg = f"a share above 0 and up to 1 is expected, such as 0.1, found {text}"
        raise argparse.ArgumentTypeError(msg)
    return value


def _rate(text: str) -> int:
    try:
        value = int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError:
        value = 0
    if value <= 0:
        msg = f"bytes a second are expected, such as 500KB or 20MB, found {text}"
        raise argparse.ArgumentTypeError(msg)
    return value


def _positive(number: Callable[[str], float]) -> Callable[[str], float]:
    def parse(text: str) -> float:
        value = number(text)
        if value <= 0:
            msg = f"a number above 0 is expected, found {text}"
            raise argparse.ArgumentTypeError(msg)
        return value

    return parse
