"""What a table's settings keep from whoever reads it: versions that HBase hides, writes that a crash takes back. Pure.

Every job decides by what it reads. Where HBase itself keeps versions from readers, committed cells without shadow cell
are not seen, and what is lowest to a reader is not the lowest there is: the versions below a deletion, hidden as long
as it stands, would be shown again when it goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from lowtide.tables.inventory import Descriptor

#: HBase's "all versions", and its "forever" in seconds.
ALL_VERSIONS = 2**31 - 1
FOREVER = 2**31 - 1

#: Attributes: what HBase takes where the descriptor is silent, the values that hide nothing, and how HBase's shell is
#: told the first of those.
_OPEN: dict[str, tuple[str, tuple[str, ...], str]] = {
    "VERSIONS": ("1", (str(ALL_VERSIONS),), str(ALL_VERSIONS)),
    "TTL": ("FOREVER", ("FOREVER", str(FOREVER)), "'FOREVER'"),
    "KEEP_DELETED_CELLS": ("FALSE", ("FALSE",), "'FALSE'"),
    "NEW_VERSION_BEHAVIOR": ("FALSE", ("FALSE",), "'false'"),
}
#: A table's attribute, and its values with which HBase acknowledges what it has not yet written, or never writes, to
#: its log.
DURABILITY = "DURABILITY"
_LOSING = ("ASYNC_WAL", "SKIP_WAL")


def shape_of(descriptor: Descriptor, families: Iterable[str]) -> str:
    """The settings of *families* by which HBase hides or loses cells, as text: what was read under one shape says
    nothing under another.
    """
    described = [
        f"{family}: " + " ".join(f"{name}={_value(descriptor, family, name)}" for name in _OPEN)
        for family in sorted(families)
    ]
    return "; ".join([*described, f"DURABILITY={descriptor.attributes.get('DURABILITY', 'USE_DEFAULT')}"])


def hiding(descriptor: Descriptor, families: Iterable[str]) -> list[str]:
    """One sentence for each of *families* that does not show all it holds: which settings, and the statement that mends
    them.
    """
    found = []
    for family in sorted(families):
        values = {name: _value(descriptor, family, name) for name in _OPEN}
        wrong = {name: value for name, value in values.items() if value.upper() not in _OPEN[name][1]}
        if wrong:
            described = ", ".join(f"{name} => {value}" for name, value in wrong.items())
            mended = ", ".join(f"{name} => {_OPEN[name][2]}" for name in wrong)
            found.append(
                f"family {family} has {described}, so HBase hides cells of it; in HBase's shell: "
                f"alter '{descriptor.table}', {{NAME => '{family}', {mended}}}"
            )
    return found


def _value(descriptor: Descriptor, family: str, name: str) -> str:
    """A family's setting; HBase's own default where the descriptor is silent."""
    return descriptor.families.get(family, {}).get(name, _OPEN[name][0])


def losing(descriptor: Descriptor) -> str:
    """Why the death of a region server takes proofs from the table, and what mends it; empty where it takes none.

    A client that had its shadow cells acknowledged removes its commit entry. If the shadow cells go with the server, a
    committed cell looks as an orphan does.
    """
    durability = descriptor.attributes.get(DURABILITY, "").upper()
    if durability not in _LOSING:
        return ""
    return (
        f"it has DURABILITY => {durability}: with a region server die shadow cells that were acknowledged, whose "
        "commit entries are gone, so that nothing found proves nothing; in HBase's shell: alter "
        f"'{descriptor.table}', DURABILITY => 'SYNC_WAL'; or, where what a crash took may be taken for never "
        f"committed, as its readers do, say tables: {{{descriptor.table}: {{accept_durability: true}}}}"
    )
