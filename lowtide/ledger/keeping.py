"""Settings of the ledger's tables by which rows go that nobody removed. Pure.

The ledger never removes a transaction or a record. What expires does so in pairs, both records and their transaction
of one age: the books still balance, of less money, and a sender's numbers begin at 1 again. So no check of rows finds
it, and nothing is done with a ledger whose tables are set so.

Of a family's other settings none takes a row: readers go by the newest cell of a column, whatever ``VERSIONS``,
``KEEP_DELETED_CELLS`` and ``NEW_VERSION_BEHAVIOR`` say, and ``MIN_VERSIONS`` counts with a TTL alone.
"""

from __future__ import annotations

from datetime import timedelta

from lowtide.ledger.model import FAMILY
from lowtide.tables.settings import DURABILITY, LOSING
from lowtide.values.durations import duration_text

_GONE = "What went by then does not come back by it: see 'The ledger came back' in docs/backups.md"


def expiring(table: str, kept: timedelta | None) -> str:
    """Why a ledger's table loses what is older than *kept*, and what mends it; empty where it keeps all (None)."""
    if kept is None:
        return ""
    return (
        f"the ledger's table {table} keeps a cell for {duration_text(kept)} only (TTL): transactions and records "
        f"vanish, and with them what users have. In HBase's shell: alter '{table}', {{NAME => '{FAMILY}', TTL => "
        f"'FOREVER'}}. {_GONE}"
    )


def losing(table: str, durability: str) -> str:
    """Why the death of a region server takes acknowledged steps from a ledger's table of that *durability*, and what
    mends it; empty where it takes none.
    """
    if durability not in LOSING:
        return ""
    return (
        f"the ledger's table {table} has {DURABILITY} => {durability}: with a region server die claims, decisions and "
        f"states that were acknowledged, and others have gone by them. In HBase's shell: alter '{table}', {DURABILITY} "
        f"=> 'SYNC_WAL'. {_GONE}"
    )
