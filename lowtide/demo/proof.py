"""Reading through the real Omid client and comparing with the model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lowtide.report import ModelCheck, SnapshotCheck
from lowtide.workload import Model, OmidClient


def compare(omid: OmidClient, model: Model, timestamps: Sequence[int], progress: Callable[[str], None]) -> ModelCheck:
    """Read every table of *model* in full at each of *timestamps*, healing nothing, and count what differs."""
    torn = {table: model.torn_columns(table) for table in model.tables}
    checks = []
    for number, timestamp in enumerate(timestamps, 1):
        values = differences = torn_differences = 0
        for table in model.tables:
            seen, due = omid.read(table, timestamp), model.snapshot(table, timestamp)
            columns = seen.keys() | due.keys()
            differing = {column for column in columns if seen.get(column) != due.get(column)}
            values += len(columns)
            differences += len(differing)
            torn_differences += len(differing & torn[table])
        checks.append(SnapshotCheck(timestamp, values, differences, torn_differences))
        if number % 8 == 0:
            progress(f"{number} of {len(timestamps)} snapshots read through Omid's client")
    return ModelCheck(tuple(model.tables), tuple(checks))
