"""What a job can be told: one table, which the command line, the DAGs and the jobs' own programs read.

A new option is an :class:`Option` here; the command offers it, the program understands it, and help explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lowtide.run import approval
from lowtide.run.jobs import INSPECTIONS, JOBS, REMOVING, SCANS, all_but

_INTERVAL = ("orphan_cleanup", "transaction_repair")
_WORKING = all_but(INSPECTIONS)
#: They look at tables, and not at one row or at files of Lowtide's own.
_READING = all_but(("sideline", "why"))
#: What they do may be more than their own records.
WRITING = all_but(INSPECTIONS, ("balances",))

#: Where the help shows what programs that submit jobs give; people hardly ever do.
FOR_PROGRAMS = "For programs that submit jobs"


@dataclass(frozen=True, slots=True)
class Option:
    """An option of the jobs that have a use for it.

    *text* explains it, in a sentence without a full stop. *metavar* names its value; without one it is a switch.
    *parse* makes the value of what was written, and raises a ValueError that says what is expected. *into* is the
    attribute that holds it, if not its own name. *panel* is where help shows it, if not among the others. *writes*: it
    names a file that the job writes when its work is over.
    """

    name: str
    text: str
    jobs: Collection[str] = tuple(JOBS)
    metavar: str = ""
    parse: Callable[[str], Any] = str
    several: bool = False
    into: str = ""
    panel: str = ""
    writes: bool = False

    @property
    def attribute(self) -> str:
        """What holds its value."""
        return self.into or self.name.removeprefix("--").replace("-", "_")


def _share(text: str) -> float:
    value = _number(float, text, "a share above 0 and up to 1 is expected, such as 0.1")
    if value > 1:
        msg = f"a share above 0 and up to 1 is expected, such as 0.1, found {text}"
        raise ValueError(msg)
    return value


def _rate(text: str) -> int:
    expected = "so many a second are expected, not bytes: a whole number above 0 such as 30000"
    return int(_number(int, text, expected))


def _count(text: str) -> int:
    return int(_number(int, text, "a whole number above 0 is expected"))


def _number(kind: Callable[[str], float], text: str, expected: str) -> float:
    try:
        value = kind(text)
    except ValueError:
        value = 0
    if not value > 0:
        msg = f"{expected}, found {text}"
        raise ValueError(msg)
    return value


#: In the order in which help shows them.
OPTIONS = (
    Option("--config", "the configuration file", metavar="FILE", parse=Path),
    Option("--execute", "act; without it the run only plans and counts", _WORKING),
    Option(
        "--table",
        "only this table; may be given several times",
        # The ledger's jobs say themselves why they take none.
        (*REMOVING, "sideline_restore", "transaction_repair", "balances", *INSPECTIONS),
        "NAME",
        several=True,
    ),
    Option(
        "--from",
        "where the interval begins: ISO 8601 with zone; else where the last run ended",
        _INTERVAL,
        "TIME",
        into="start",
    ),
    Option(
        "--from", "put back what was pruned since then: ISO 8601 with zone", ("journal_replay",), "TIME", into="start"
    ),
    Option(
        "--to", "where the interval ends: ISO 8601 with zone; else as far as is safe", _INTERVAL, "TIME", into="end"
    ),
    Option("--to", "the mark as of then, not as of now: ISO 8601 with zone", ("history_gc",), "TIME", into="end"),
    Option("--full", "read everything, also what is recorded as done", _INTERVAL),
    Option(
        "--grace",
        "instead of the configured grace, as in 15m or 24h; 0s: none",
        ("commit_table_pruning",),
        "DURATION",
    ),
    Option(
        "--grace",
        "instead of ledger.grace; less of it ends only what is claimed, and the settled mark goes by ledger.grace",
        ("transaction_repair",),
        "DURATION",
    ),
    Option("--yes", "do not ask on a terminal whether 0s is meant", ("commit_table_pruning",)),
    Option(
        "--budget-rows",
        "the most cells that may go from one table, as configured if left out",
        REMOVING,
        "N",
        _count,
    ),
    Option("--budget-share", "and the largest share of those examined, such as 0.5", REMOVING, "X", _share),
    Option(
        "--approved",
        "a dry run's summary: act only if the plan is still the same",
        approval.JOBS,
        "FILE",
        Path,
    ),
    Option(
        "--list",
        "list each cell that is written or goes, or would be: the first are printed",
        (*REMOVING, "commit_table_pruning"),
    ),
    Option(
        "--list",
        "list each transaction that is brought to its end, or would be, and how: the first are printed",
        ("transaction_repair",),
    ),
    Option("--compact", "ask HBase for the compactions that pay", ("history_gc",)),
    Option("--csv", "write every balance there, as CSV; a folder that does not exist yet", ("balances",), "FOLDER"),
    Option(
        "--since-snapshot",
        "put back what was pruned since this HBase snapshot was made",
        ("journal_replay",),
        "NAME",
    ),
    Option("--restore", "the run whose removed cells are put back", ("sideline_restore",), "RUN"),
    Option(
        "--as-committed",
        "a transaction that committed after all, and when; may be given several times",
        ("sideline_restore",),
        "START=COMMIT",
        several=True,
    ),
    Option("--sample", "read only this share of each table's regions, such as 0.1", SCANS, "SHARE", _share),
    Option("--rate", "read at most so many cells a second, all tasks together", _READING, "CELLS", _rate),
    Option("--write-rate", "write at most so many mutations a second", WRITING, "MUTATIONS", _rate),
    Option("--snapshot", "read HBase snapshots, made for it and dropped, not the live tables", ("survey",)),
    Option("--json", "write what was found there, as JSON", INSPECTIONS, "FILE", Path, writes=True),
    Option("--show", "the cells that this run put aside", ("sideline",), "RUN"),
    Option("--first", "at most so many of them, 100 if left out", ("sideline",), "N", _count),
    Option("--row", r"a row, as HBase's shell writes it: \xNN is a byte", ("sideline", "why"), "ROW"),
    Option("--html", "write a page there", ("survey",), "FILE", Path, writes=True),
    Option("--before", "write there what random read points show", ("verify",), "FILE", Path, writes=True),
    Option("--after", "compare with what --before wrote there", ("verify",), "FILE", Path),
    Option("--as-configured", "act on the tables whose mode is execute", _WORKING, panel=FOR_PROGRAMS),
    Option(
        "--discovered",
        "pass over tables that turn out plain or gone, instead of refusing",
        REMOVING,
        panel=FOR_PROGRAMS,
    ),
    Option(
        "--run-id",
        "names the run; a restart leaves out what it has recorded under it",
        metavar="ID",
        panel=FOR_PROGRAMS,
    ),
    Option(
        "--context",
        "kept in the summary; may be given several times",
        metavar="KEY=VALUE",
        several=True,
        panel=FOR_PROGRAMS,
    ),
    Option(
        "--summary", "write the summary there, as JSON", metavar="FILE", parse=Path, panel=FOR_PROGRAMS, writes=True
    ),
)


def options_of(job: str) -> list[Option]:
    """The options that *job* takes."""
    return [option for option in OPTIONS if job in option.jobs]


def takes(job: str, name: str) -> bool:
    """Whether *job* has a use for the option of that *name*."""
    return any(option.name == name for option in options_of(job))
