"""HBase itself: of which version its servers are, as the last run heard from its master."""

from __future__ import annotations

from collections.abc import Iterator

from lowtide.config import Config
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.reading import Reading
from lowtide.run import hbases
from lowtide.values.clock import from_millis
from lowtide.values.text import names_text


def version(reading: Reading) -> str:
    """Empty where no run that is kept tells it. The gateway cannot be asked: its protocol has no such question."""
    return next((run["hbase"] for run in reading.runs if run.get("hbase")), "")


def untried(reading: Reading, _: Config) -> Iterator[Finding]:
    """Servers of a line of releases that nobody tried Lowtide with."""
    found = version(reading)
    if hbases.untried(found):
        since = min(from_millis(run["started"]) for run in reading.runs if run.get("hbase") == found)
        yield Finding(
            Cause.UNTRIED_HBASE,
            Severity.NOTE,
            f"HBase {found} was not tried",
            f"the tests of Lowtide ran against HBase {names_text(hbases.TRIED)}",
            "Look at what a dry run finds before anything acts",
            ("lowtide survey", "lowtide run orphan_cleanup"),
            since=since,
        )
