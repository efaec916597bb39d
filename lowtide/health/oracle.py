"""The oracle: whether it answers, what its low watermark does, and whether the clocks agree."""

from __future__ import annotations

from collections.abc import Iterator

from lowtide.config import Config
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.reading import Reading
from lowtide.values.skew import machine_apart, oracle_ahead, oracle_apart
from lowtide.values.text import timestamp_text


def down(reading: Reading, _: Config) -> Iterator[Finding]:
    """An oracle that does not answer: no run can act."""
    if reading.oracle_problem:
        yield Finding(
            Cause.ORACLE,
            Severity.ALARM,
            "No run can act",
            reading.oracle_problem,
            "Start the oracle, or correct omid.oracle",
            setting="omid.oracle",
        )


def low_watermark(reading: Reading, config: Config) -> Iterator[Finding]:
    """The low watermark, without which nothing moves: missing, gone back, standing still."""
    if reading.low_watermark is None:
        what = "No run can start: there is no low watermark"
        yield Finding(
            Cause.NO_WATERMARK,
            Severity.ALARM,
            what,
            reading.low_watermark_problem,
            "Start the oracle: it writes the row",
        )
    elif reading.recorded and (reading.low_watermark < reading.recorded[0] or reading.went_back is not None):
        lowest = min(reading.low_watermark, reading.low_watermark if reading.went_back is None else reading.went_back)
        yield Finding(
            Cause.WATERMARK_BACK,
            Severity.ALARM,
            f"The low watermark went back from {reading.recorded[0]} to {lowest}",
            "the oracle has forgotten its timestamps, or this is another oracle; no recorded watermark can be trusted"
            + ("" if reading.low_watermark == lowest else f", though it stands at {reading.low_watermark} now"),
            "Give the oracle a timestamp store that lasts, make sure that every transaction of before is over, then "
            "forget the records; that is refused, with what is to be done, as long as the oracle gives numbers a "
            "second time, and the journal of before proves nothing any more. If only the commit table came back, from "
            "an HBase snapshot, or another oracle took over just now, nothing is forgotten: start it again, then "
            "lowtide state reset --same-oracle",
            ("lowtide state reset",),
        )
    elif (
        reading.recorded
        and reading.low_watermark == reading.recorded[0]
        and reading.at - reading.recorded[1] >= config.health.stuck_after
    ):
        yield Finding(
            Cause.WATERMARK_STILL,
            Severity.WARNING,
            f"The low watermark stands at {timestamp_text(reading.low_watermark, reading.clock)}",
            "the oracle raises it when entries fall out of its conflict map: either hardly anything is written, and "
            "nothing is wrong, or the map is too large for what is written",
            "In a store that is written to, set a smaller conflictMapSize in the oracle's "
            "omid-server-configuration.yml and start it again; any transactions that follow raise the mark",
            since=reading.recorded[1],
        )


def clocks(reading: Reading, _: Config) -> Iterator[Finding]:
    """Clocks that differ, as far as a reading shows it: not of a machine that is ahead, since the oracle may have
    rested.
    """
    kept = reading.allotted
    if kept is None:
        return
    behind = machine_apart(reading.at, kept.written) if kept.written > reading.at else None
    for apart in (behind, oracle_apart(oracle_ahead(kept), reading.low_watermark or 0, kept.written)):
        if apart:
            what = "Runs that act refuse to start, and sensors that wait for a time fail"
            yield Finding(Cause.CLOCKS, Severity.ALARM, what, apart, "Set the clocks")
