"""Kinds of rows of the connector's views ``versions`` and ``cells``, by the names in their column ``kind``."""

from __future__ import annotations

PUT = "put"
TOMBSTONE = "tombstone"
FAMILY_TOMBSTONE = "family_tombstone"
#: Versions of a transaction: what a client wrote, beside it or not its shadow cell.
CELL_KINDS = (PUT, TOMBSTONE, FAMILY_TOMBSTONE)
#: Those that hide others.
TOMBSTONES = (TOMBSTONE, FAMILY_TOMBSTONE)
#: A shadow cell without its data cell.
SHADOW = "shadow"
#: A cell that Omid does not write so.
UNKNOWN = "unknown"
#: Not a cell: what was read of a partition and family.
END_OF_RANGE = "end_of_range"
