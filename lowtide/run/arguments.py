"""What a job was told: its arguments, understood and checked. Neither Spark nor the store is needed for it, so that
``lowtide run`` refuses what the job's program would refuse, before a driver starts.

argparse, where the command ``lowtide`` takes Typer: a program's options are data (:mod:`lowtide.run.options`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Any, NoReturn

from lowtide.cleaning.planning import Request
from lowtide.errors import UsageError
from lowtide.run import approval
from lowtide.run.approval import Approved
from lowtide.run.jobs import INSPECTIONS, JOBS
from lowtide.run.options import options_of, takes
from lowtide.run.writable import check_writable
from lowtide.values.durations import parse_duration, parse_time

#: What runs read of options that their job does not take.
_UNTOLD = {
    "table": (),
    "discovered": False,
    "start": None,
    "end": None,
    "grace": None,
    "rate": None,
    "write_rate": None,
    "sample": None,
    "snapshot": False,
    "approved": None,
    "list": False,
    "first": 100,
}
_WORKING = {"full": False, "budget_rows": None, "budget_share": None}
#: They read everything, whatever is recorded; a plan out of proportion is for them to report, not to refuse.
_INSPECTING = {
    "full": True,
    "execute": False,
    "as_configured": False,
    "budget_rows": sys.maxsize,
    "budget_share": 1.0,
}
_EITHER = ("--execute", "--as-configured")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message.removeprefix('argument ')}", _remedy(self.prog))


@dataclass(frozen=True, slots=True)
class Asked:
    """What the words of the arguments mean. Times are aware; None: not given."""

    request: Request
    grace: timedelta | None
    context: Mapping[str, str]
    #: The plan that the run is held to.
    approved: Approved | None


def arguments(job: str, argv: Sequence[str] | None = None) -> argparse.Namespace:
    """The arguments of *job*, those of this process if *argv* is None; an attribute for each that runs read.

    Raises:
        UsageError: an option that the job does not take, with the nearest that it does, or a value that none can be.
    """
    parser = _Parser(prog=job, allow_abbrev=False, description=JOBS[job])
    parser.set_defaults(**_UNTOLD, **(_INSPECTING if job in INSPECTIONS else _WORKING))
    either = parser.add_mutually_exclusive_group()
    for option in options_of(job):
        about: dict[str, Any] = {"dest": option.attribute, "help": option.text}
        if not option.metavar:
            about["action"] = "store_true"
        elif option.several:
            about |= {"metavar": option.metavar, "action": "append", "default": []}
        else:
            about |= {"metavar": option.metavar, "type": _telling(option.parse)}
        (either if option.name in _EITHER else parser).add_argument(option.name, **about)
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        raise UsageError(*_unknown(job, unknown[0]))
    return options


def understood(job: str, options: argparse.Namespace, run: str, now: datetime) -> Asked:
    """What the arguments of *job* mean, as far as they alone tell.

    Args:
        job: whose they are.
        options: as of :func:`arguments`.
        run: the run's name.
        now: the time, by which none may lie in the future.

    Raises:
        UsageError: a time, a duration or a pair that cannot be read; times that cannot be meant; a file that holds no
            plan, or a plan for a run that does not act; a file to write that cannot be written.
    """
    start, end = (
        parse_time(text, name) if text else None for name, text in (("--from", options.start), ("--to", options.end))
    )
    request = Request(run, now, start, end, options.full)
    request.check()
    _check_rates(job, options)
    for option in options_of(job):
        if option.writes and (file := getattr(options, option.attribute)):
            check_writable(option.name, file)
    context = dict(_pair(text) for text in options.context)
    return Asked(request, _grace(options.grace), context, _approved(job, options))


def without_grace(options: argparse.Namespace) -> bool:
    """Whether a run that acts is asked to prune without grace, and not that this is meant (``--yes``)."""
    return bool(not getattr(options, "yes", True) and options.execute and _grace(options.grace) == timedelta())


def _check_rates(job: str, options: argparse.Namespace) -> None:
    """Of a run that acts both or neither: whoever is careful with its reads would be surprised by its writes."""
    acts = options.execute or options.as_configured
    if not acts or not takes(job, "--write-rate") or bool(options.rate) is bool(options.write_rate):
        return
    if options.rate:
        msg = f"--rate {options.rate} holds back its reads alone, and the run would write as fast as it can"
        raise UsageError(msg, "Give --write-rate with it, such as --write-rate 2000")
    msg = f"--write-rate {options.write_rate} holds back its writes alone, and the run would read as fast as it can"
    raise UsageError(msg, "Give --rate with it, such as --rate 30000")


def _telling(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """*parse*, whose words argparse passes on."""

    def told(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return told


def _remedy(job: str) -> str:
    return f"its options are told by: lowtide run {job} --help"


def _unknown(job: str, word: str) -> tuple[str, str]:
    """What to say of a *word* that is none of the job's options, and what to do."""
    name = word.partition("=")[0]
    if not name.startswith("-"):
        return f"{job} takes no {word!r}: each value stands behind an option", _remedy(job)
    near = get_close_matches(name, [option.name for option in options_of(job)], n=1)
    elsewhere = [other for other in JOBS if takes(other, name)]
    if elsewhere:
        return f"{job} has no option {name}, which is for {', '.join(elsewhere)}", _remedy(job)
    return f"{job} has no option {name}", f"{near[0]} may be meant; {_remedy(job)}" if near else _remedy(job)


def _approved(job: str, options: argparse.Namespace) -> Approved | None:
    if options.approved is None:
        return None
    if not options.execute and not options.as_configured:
        msg = "--approved holds a run that acts to a plan; give --execute with it"
        raise UsageError(msg)
    return approval.read(options.approved, job)


def _grace(text: str | None) -> timedelta | None:
    try:
        return None if text is None else parse_duration(text)
    except ValueError as error:
        msg = f"--grace: {error}"
        raise UsageError(msg) from None


def _pair(text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        msg = f"--context: KEY=VALUE is expected, found {text!r}"
        raise UsageError(msg)
    return key, value
