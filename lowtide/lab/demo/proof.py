"""Reading through the real Omid client and comparing with the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lowtide.lab.workload import Model, OmidClient
from lowtide.report import ModelCheck, ReadPointCheck


def compare(omid: OmidClient, model: Model, timestamps: Sequence[int], progress: Callable[[str], None]) -> ModelCheck:
    """Read every table of *model* in full at each of *timestamps*, healing nothing, and count what differs."""
    checks = []
    for number, timestamp in enumerate(timestamps, 1):
        values = differences = 0
        for table in model.tables:
            seen, due = omid.read(table, timestamp), model.shown_at(table, timestamp)
            columns = seen.keys() | due.keys()
            values += len(columns)
            differences += sum(seen.get(column) != due.get(column) for column in columns)
        checks.append(ReadPointCheck(timestamp, values, differences))
        if number % 8 == 0:
            progress(f"{number} of {len(timestamps)} read points read through Omid's client")
    return ModelCheck(tuple(model.tables), tuple(checks))
