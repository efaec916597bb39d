"""What the commit table ever said, also of rows that were deleted since: a witness that no job can have changed."""

from __future__ import annotations

from lowtide.lab.workload import OmidClient
from lowtide.lab.workload.client import COMMIT_TABLE
from lowtide.values.formats import COMMIT_QUALIFIER, INVALID_QUALIFIER, decode_long


def ever_committed(omid: OmidClient) -> set[int]:
    """The start timestamps of all transactions that ever had a commit entry, and no mark.

    HBase shows what delete markers hide until it writes its memory to a file; a test's few commits stay in memory.
    """
    puts = [c for c in omid.raw(COMMIT_TABLE) if c.kind == "put" and len(c.row) == 9]
    entries, marks = (
        {decode_long(c.row[1:]) for c in puts if c.qualifier == qualifier}
        for qualifier in (COMMIT_QUALIFIER, INVALID_QUALIFIER)
    )
    return entries - marks
