"""Which tables share a Spark job: starting Spark costs more than an idle table. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def batches(sizes: Mapping[str, int], batch_bytes: int, batch_tables: int, most: int) -> list[list[str]]:
    """Every table in exactly one batch, the largest first; the same answer for the same sizes, in whatever order.

    A table of *batch_bytes* or more has a batch of its own; the others share batches of less than *batch_bytes* and at
    most *batch_tables* tables. Where that makes more than *most* batches (Airflow limits mapped tasks,
    ``core.max_map_length``), both limits are doubled until it does not.

    Args:
        sizes: bytes by table; 0 where unknown.
        batch_bytes: 0 gives each table a batch of its own.
        batch_tables: at least 1.
        most: less than 1 counts as 1.
    """
    found = _fill(sizes, batch_bytes, batch_tables)
    while len(found) > max(1, most):  # that many tables always fit into one batch
        batch_bytes, batch_tables = max(1, batch_bytes * 2), batch_tables * 2
        found = _fill(sizes, batch_bytes, batch_tables)
    return found


def _fill(sizes: Mapping[str, int], batch_bytes: int, batch_tables: int) -> list[list[str]]:
    found: list[list[str]] = []
    shared: list[str] = []
    total = 0
    for table, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
        if size >= batch_bytes:
            found.append([table])
            continue
        if shared and (total + size >= batch_bytes or len(shared) == batch_tables):
            found.append(shared)
            shared, total = [], 0
        shared.append(table)
        total += size
    return [*found, shared] if shared else found
