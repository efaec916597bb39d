"""What HBase replicates to another cluster, and whether Lowtide's records go with it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from lowtide.tables.inventory import Descriptor
from lowtide.values.text import names_text

#: A family's attribute; HBase takes 0, which is not replicated, where the descriptor is silent.
SCOPE = "REPLICATION_SCOPE"
_LISTED = 3


def left_behind(
    descriptors: Iterable[Descriptor], replicated: Mapping[str, Collection[str]], records: Sequence[str]
) -> tuple[str, str]:
    """Why whoever promotes the other cluster misses proofs there, and what to do before; two empty texts where
    nothing is replicated, or the records are too.

    Args:
        descriptors: of all tables.
        replicated: the families of which it is asked, by table: the commit table's and those of transactions.
        records: the journal and the state table; one that is not there holds nothing to miss.
    """
    described = {d.table: d.families for d in descriptors}
    going = [table for table, families in sorted(replicated.items()) if _goes(described.get(table, {}), families)]
    staying = {
        table: [family for family in described[table] if not _goes(described[table], [family])]
        for table in records
        if table in described
    }
    staying = {table: families for table, families in staying.items() if families}
    if not going or not staying:
        return "", ""
    fact = (
        f"HBase replicates {names_text(going, _LISTED)} to another cluster ({SCOPE}), and not "
        f"{' and '.join(staying)}: that cluster lacks the proofs of what was pruned, and once it is promoted, "
        "committed cells whose shadow cells did not get there are taken for aborted"
    )
    alter = [
        f"alter '{table}', {{NAME => '{family}', {SCOPE} => '1'}}"
        for table, families in staying.items()
        for family in families
    ]
    return fact, (
        f"make tables of these names there, then in HBase's shell here: {'; '.join(alter)}; then copy what they hold "
        "already. Before that cluster is promoted see docs/backups.md"
    )


def _goes(described: Mapping[str, Mapping[str, str]], families: Collection[str]) -> bool:
    """Whether one of *families* is replicated."""
    return any(described.get(family, {}).get(SCOPE, "0") != "0" for family in families)
