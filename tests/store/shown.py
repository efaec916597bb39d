"""What readers are shown against the model, and what is left without proof: after jobs, wherever they ran."""

from __future__ import annotations

from lowtide.lab.workload import Model, OmidClient
from lowtide.values.formats import SHADOW_PREFIX, SHADOW_SUFFIX, base, shadow_qualifier


def check_snapshots(omid: OmidClient, model: Model, timestamps: list[int]) -> int:
    """Every table at every read point shows what the model says; the number of comparisons."""
    for timestamp in timestamps:
        for table in model.tables:
            assert omid.read(table, timestamp) == model.shown_at(table, timestamp), (table, timestamp)
    return len(timestamps) * len(model.tables)


def unproved(omid: OmidClient, table: str, watermark: int) -> list[tuple[bytes, bytes, bytes, int]]:
    """Data cells at or below *watermark* that have no shadow cell: by brute force over the raw table."""
    cells = omid.raw(table)
    deleted = {c.key for c in cells if c.kind == "delete"}
    there = {c.key for c in cells if c.kind == "put" and c.key not in deleted}
    return [
        key
        for key in sorted(there)
        if base(key[3]) <= watermark
        and not (key[2].startswith(SHADOW_PREFIX) and key[2].endswith(SHADOW_SUFFIX))
        and (key[0], key[1], shadow_qualifier(key[2]), key[3]) not in there
    ]
