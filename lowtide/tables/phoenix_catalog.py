"""Phoenix's catalog, ``SYSTEM.CATALOG``: which physical tables it holds for transactional, under which names, in which
state. Pure.

Formats as Phoenix 5.2 writes them. A row's key is tenant, schema, table, column and family, joined by zero bytes; a
*header* row has the first three alone. Its column ``TRANSACTION_PROVIDER`` says Omid (2), ``INDEX_STATE`` whether an
index is being built. Views and view indexes stand under their logical names; a link row names the physical table,
``_IDX_`` and the table's name for the indexes of all its views.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from lowtide.tables.inventory import Descriptor, Entry, Kind, is_phoenix

#: Where the catalog lies: without and with Phoenix's namespace mapping.
CATALOG_TABLES = ("SYSTEM.CATALOG", "SYSTEM:CATALOG")
#: The columns that are read, all in family ``0``.
COLUMNS = (b"TABLE_TYPE", b"TRANSACTION_PROVIDER", b"INDEX_STATE", b"LINK_TYPE")

_TYPE, _PROVIDER, _STATE, _LINK = COLUMNS
#: Omid among the providers, a ``TINYINT`` 2; the physical table among the links, an ``UNSIGNED_TINYINT`` 2.
_OMID, _PHYSICAL = b"\x82", b"\x02"
#: How the doubt of a table begins that is left alone because the catalog cannot be read.
UNREADABLE = "it is Phoenix's, and the catalog cannot be read"
#: How the doubt of a table begins whose index is not ready.
UNFINISHED = "Phoenix's "
#: Being built (also by MapReduce, later), being created, being rebuilt.
_UNFINISHED = {b"b": "is being built", b"c": "is being created", b"r": "is being rebuilt"}


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What the catalog says of one physical table: its names in SQL, whether Omid's transactions write it, what is
    unfinished.
    """

    names: tuple[str, ...] = ()
    transactional: bool = False
    unfinished: str = ""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The whole catalog by physical table; *unreadable*: why it could not be read, where Phoenix is there."""

    tables: Mapping[str, CatalogEntry]
    unreadable: str = ""


def parse(cells: Iterable[tuple[bytes, bytes, bytes]]) -> Catalog:
    """The catalog from its cells: (row, qualifier, value)."""
    headers: dict[tuple[bytes, bytes, bytes], dict[bytes, bytes]] = defaultdict(dict)
    physical: dict[tuple[bytes, bytes, bytes], str] = {}
    for row, qualifier, value in cells:
        parts = row.split(b"\x00")
        if len(parts) < 3:
            continue
        key = (parts[0], parts[1], parts[2])
        if len(parts) == 3:
            headers[key][qualifier] = value
        elif qualifier == _LINK and value == _PHYSICAL and len(parts) == 5:
            physical[key] = parts[4].decode(errors="replace")
    tables: dict[str, CatalogEntry] = {}
    for key, columns in sorted(headers.items()):
        if columns.get(_TYPE) not in (b"u", b"i", b"v"):
            continue
        _, schema, table = (part.decode(errors="replace") for part in key)
        name = f"{schema}.{table}" if schema else table
        mapped = f"{schema}:{table}" if schema else table
        unfinished = _UNFINISHED.get(columns.get(_STATE, b""), "")
        for place in {physical[key]} if key in physical else {name, mapped}:
            known = tables.get(place, CatalogEntry())
            tables[place] = CatalogEntry(
                # A view shares its table's place and name; the names of view indexes are all that place has.
                (*known.names, name) if columns[_TYPE] != b"v" else known.names,
                known.transactional or columns.get(_PROVIDER) == _OMID,
                known.unfinished or (f"index {name} {unfinished}" if unfinished else ""),
            )
    return Catalog(tables)


def with_catalog(catalog: Catalog | None, entry: Entry, descriptor: Descriptor) -> Entry:
    """*entry* with what the catalog adds: names, and reasons to leave a table alone. What the configuration says
    stands.

    Args:
        catalog: None where there is no Phoenix.
        entry: as its descriptor and its cells tell.
        descriptor: of that table.
    """
    if catalog is None or not is_phoenix(descriptor):
        return entry
    listed = catalog.tables.get(entry.table, CatalogEntry())
    entry = replace(entry, names=listed.names)
    system = entry.table.startswith(("SYSTEM.", "SYSTEM:"))
    if entry.mark == "configuration" or system:
        return entry
    if entry.kind is Kind.PLAIN and listed.transactional:
        return _doubted(
            entry, descriptor, "Phoenix's catalog says that Omid's transactions write it, but it bears no known mark"
        )
    if entry.kind is Kind.PLAIN and catalog.unreadable:
        return _doubted(entry, descriptor, f"{UNREADABLE} ({catalog.unreadable})")
    if entry.kind is Kind.TRANSACTIONAL and listed.unfinished:
        return replace(entry, doubt=f"{UNFINISHED}{listed.unfinished}")
    return entry


def _doubted(entry: Entry, descriptor: Descriptor, doubt: str) -> Entry:
    return replace(entry, kind=Kind.UNMARKED, unmarked=frozenset(descriptor.families), doubt=doubt)
