"""Who says that nothing is to be written: pauses, and tables that say no themselves."""

from __future__ import annotations

from collections.abc import Iterator

from lowtide.config import Config
from lowtide.health.findings import Cause, Finding, Severity
from lowtide.health.reading import Reading
from lowtide.tables import consent
from lowtide.tables.inventory import Kind
from lowtide.values.text import moment_text


def paused(reading: Reading, _: Config) -> Iterator[Finding]:
    """Each pause that lasts. It is meant, so it is no warning; what it keeps back is one when it does so for long."""
    for pause in reading.pauses:
        if pause.lasts(reading.at):
            what = f"Table {pause.table} is paused" if pause.table else "The store is paused"
            yield Finding(
                Cause.PAUSED,
                Severity.NOTE,
                what,
                f"until {moment_text(pause.until)} by {pause.owner}: {pause.reason}; no job writes meanwhile, and what "
                "is not cleaned keeps the prune bound back",
                "It ends by itself; or end it",
                (pause.ended_by,),
                pause.since,
                tables=(pause.table,) if pause.table else (),
            )


def vetoed(reading: Reading, _: Config) -> Iterator[Finding]:
    """Each table that said no when it was listed last."""
    for entry in reading.inventory:
        if entry.veto and entry.kind is not Kind.PLAIN:
            yield Finding(
                Cause.VETOED,
                Severity.NOTE,
                f"Table {entry.title} is left alone",
                f"{consent.vetoed(entry.table, entry.veto)}; it is read for proofs and never written to, and what is "
                "not clean in it keeps the prune bound back",
                f"Ask its owner, who can take it back in HBase's shell: {consent.permit(entry.table)}",
                tables=(entry.table,),
            )
