"""The settings of Spark that results depend on: jobs run with these, whatever an installation has by default.

Defaults differ from line to line: by that of 3.5 an overflow wraps around and a bad cast is null, without a word; by
that of 4 both end the job. And an administrator may have set any of them for others' queries.
"""

from __future__ import annotations

from collections.abc import Mapping

from lowtide.run import sparks

PINNED: Mapping[str, str] = {
    # An overflow or a bad cast ends the job. That this reserves more words of SQL, or gives quotes another meaning, is
    # not wanted: columns are called table, row, timestamp.
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.enforceReservedKeywords": "false",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    # Intervals are compared in it.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # Names are compared as they were when the jobs were tried; values byte by byte.
    "spark.sql.caseSensitive": "false",
    "spark.sql.session.collation.default": "UTF8_BINARY",
    # What is written is not bent to fit.
    "spark.sql.storeAssignmentPolicy": "ANSI",
    # A file of the sideline that cannot be read is an error, not a cell less.
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.parquet.binaryAsString": "false",
    # A grouping keeps its columns, and a condition between a table and itself is not taken for always true.
    "spark.sql.retainGroupColumns": "true",
    "spark.sql.analyzer.failAmbiguousSelfJoin": "true",
    # Money.
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
}
#: The connector's rows come region by region: with it, what groups by region needs no shuffle.
BUCKETING = "spark.sql.sources.v2.bucketing.enabled"
#: On Spark 3.5 it puts all that is read of a key range into one task, also where nothing groups; the lines between were
#: not looked at.
BUCKETING_SINCE: sparks.Line = (4, 2)
#: Settings that bring back what some older Spark did.
LEGACY = "spark.sql.legacy."


def pinned(version: str) -> dict[str, str]:
    """What jobs set on a Spark of that version: :data:`PINNED`, and :data:`BUCKETING`, by which only speed differs."""
    bucketing = (sparks.line_of(version) or sparks.LEAST) >= BUCKETING_SINCE
    return {**PINNED, BUCKETING: str(bucketing).lower()}


def contradictions(conf: Mapping[str, str]) -> list[str]:
    """What of somebody's settings no job can run with: each by its name, with its value, and what jobs run with."""
    pinned = [
        f"{name}={value} (jobs run with {PINNED[name]})"
        for name, value in conf.items()
        if name in PINNED and value.casefold() != PINNED[name].casefold()
    ]
    legacy = [f"{name}={value} (jobs run without)" for name, value in conf.items() if name.startswith(LEGACY)]
    return pinned + legacy
