"""When the records may be reset after the oracle was made anew. Pure.

An oracle that lost its timestamps gives numbers a second time. What lies under a number then, a cell, a shadow cell, an
entry, a row of the journal, may be of either transaction, and nothing tells of which. The numbers of before cannot be
made unambiguous; those to come can, by an oracle that begins beyond all that were ever given.
"""

from __future__ import annotations

from lowtide.values.clock import is_world
from lowtide.values.formats import ALLOTTED_FAMILY, ALLOTTED_QUALIFIER, ALLOTTED_ROW, WORLD_CLOCK_MIN, base
from lowtide.values.hbase_shell import put_long

#: How far beyond the highest *low watermark* seen a counter is set: what was given out above that is not known. At a
#: million transactions a second this is eight months.
BEYOND = 10**15


def beginning(recorded: int) -> int:
    """A number that a counter has not given, by the highest low watermark *recorded*; below every world clock's."""
    return base(min(recorded + BEYOND, (recorded + WORLD_CLOCK_MIN) // 2))


def skipped(recorded: int, current: int) -> tuple[int, int] | None:
    """The numbers [from, to) that a counter was set beyond, so that no transaction of its new life has them; those of
    its last life's end are among them, and cannot be told apart. None: it was not set as :func:`refusal` says.

    Args:
        recorded: the highest low watermark seen before.
        current: the low watermark that the oracle stores now.
    """
    begins = beginning(recorded)
    if is_world(recorded) or is_world(current) or current < begins:
        return None
    return recorded + 1, begins


def before_its_start(recorded: int, current: int) -> str:
    """Why the records are not reset yet where the oracle gave no number twice; empty where they may be. It raises the
    low watermark above all that it gave when it starts.

    Args:
        recorded: the highest low watermark seen.
        current: the low watermark that stands in the commit table now.
    """
    if current >= recorded:
        return ""
    return (
        f"the low watermark in the commit table is {current}, below {recorded}, the highest recorded, as where the "
        "table came back from an HBase snapshot and the oracle was not started since. Start the oracle again, then "
        "reset; if it is running, it has begun anew, and --same-oracle is wrong"
    )


def refusal(recorded: int, current: int, timestamp_table: str, own_tables: tuple[str, str]) -> str:
    """Why the records are not reset, and what is to be done; empty where they may be.

    Args:
        recorded: the highest low watermark seen.
        current: the low watermark that the oracle stores now.
        timestamp_table: of the oracle.
        own_tables: the state's and the journal's.
    """
    if current >= recorded:
        return ""
    if is_world(recorded):
        how = "Set the clock of the oracle's machine, and wait until its low watermark has passed that one"
    else:
        number = beginning(recorded)
        put = put_long(timestamp_table, ALLOTTED_ROW, ALLOTTED_FAMILY, ALLOTTED_QUALIFIER, number)
        how = (
            f"Stop the oracle; let it begin at {number}: in HBase's shell {put}; start it, with "
            "DefaultHBaseTimestampStorageModule as its timestampStoreModule (one that keeps "
            "its timestamps in ZooKeeper has the number in /omid/timestamp). Then reset"
        )
    return (
        f"the oracle stores the low watermark {current}, below {recorded}, the highest recorded: it gives numbers a "
        "second time, and shadow cells and commit entries of before would prove transactions that have nothing to do "
        f"with them. {how}. Where no table holds a cell of before any more, drop {' and '.join(own_tables)} "
        "instead. If only the commit table came back, from an HBase snapshot: start the oracle again, then lowtide "
        "state reset --same-oracle"
    )
