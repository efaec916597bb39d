"""Phoenix's catalog: names, transactional tables without known mark, and what is unfinished."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowtide.tables.inventory import Descriptor, Entry, Kind, classify
from lowtide.tables.phoenix_catalog import Catalog, CatalogEntry, parse, with_catalog

OMID = b"\x82"
INDEXER = "org.apache.phoenix.index.PhoenixTransactionalIndexer"
OTHER = "org.apache.phoenix.coprocessor.UngroupedAggregateRegionObserver"


def header(name: bytes, kind: bytes, schema: bytes = b"", **columns: bytes) -> list[tuple[bytes, bytes, bytes]]:
    row = b"\x00" + schema + b"\x00" + name
    return [(row, b"TABLE_TYPE", kind), *((row, column.encode(), value) for column, value in columns.items())]


CELLS = [
    *header(b"ORDERS", b"u", TRANSACTION_PROVIDER=OMID),
    *header(b"BY_DAY", b"i", TRANSACTION_PROVIDER=OMID, INDEX_STATE=b"a"),
    *header(b"LATE", b"i", b"S", TRANSACTION_PROVIDER=OMID, INDEX_STATE=b"b"),
    *header(b"PLAIN", b"u", b"S"),
    *header(b"V", b"v", TRANSACTION_PROVIDER=OMID),
    (b"\x00\x00V\x00\x00ORDERS", b"LINK_TYPE", b"\x02"),
    *header(b"V1", b"i", TRANSACTION_PROVIDER=OMID, INDEX_STATE=b"a"),
    (b"\x00\x00V1\x00\x00_IDX_ORDERS", b"LINK_TYPE", b"\x02"),
    *header(b"V2", b"i", TRANSACTION_PROVIDER=OMID, INDEX_STATE=b"r"),
    (b"\x00\x00V2\x00\x00_IDX_ORDERS", b"LINK_TYPE", b"\x02"),
    (b"\x00\x00V2\x00\x00V", b"LINK_TYPE", b"\x06"),
    (b"\x00\x00ORDERS\x00ID\x000", b"TABLE_TYPE", b"u"),
    *header(b"CATALOG", b"s", b"SYSTEM"),
]


def test_tables_are_found_under_their_physical_names() -> None:
    """Tables and indexes bear their own names, with schema and with namespace; view indexes share one table; views have
    their table's.
    """
    found = parse(CELLS).tables
    assert found["ORDERS"] == CatalogEntry(("ORDERS",), True)
    assert found["BY_DAY"] == CatalogEntry(("BY_DAY",), True)
    assert found["S.LATE"] == found["S:LATE"] == CatalogEntry(("S.LATE",), True, "index S.LATE is being built")
    assert found["S.PLAIN"] == CatalogEntry(("S.PLAIN",), False)
    assert found["_IDX_ORDERS"] == CatalogEntry(("V1", "V2"), True, "index V2 is being rebuilt")
    assert "V" not in found
    assert not any("CATALOG" in name for name in found)


@given(
    st.lists(st.tuples(st.binary(max_size=12), st.sampled_from([b"TABLE_TYPE", b"LINK_TYPE"]), st.binary(max_size=2)))
)
def test_any_rows_can_be_read(cells: list[tuple[bytes, bytes, bytes]]) -> None:
    """Rows of other forms are passed over; none makes reading fail."""
    assert isinstance(parse(cells), Catalog)


def look(table: str, *coprocessors: str, catalog: Catalog | None = None, configured: Kind | None = None) -> Entry:
    descriptor = Descriptor(table, True, {}, coprocessors, {"0": {}})
    return with_catalog(catalog, classify(descriptor, configured, frozenset()), descriptor)


def test_what_the_catalog_says_is_added() -> None:
    """A view-index table is found by its indexer and named as SQL names it; a table of another system gets nothing."""
    found = look("_IDX_ORDERS", INDEXER, catalog=replace(parse(CELLS), unreadable=""))
    assert (found.kind, found.names) == (Kind.TRANSACTIONAL, ("V1", "V2"))
    assert look("ORDERS", catalog=parse(CELLS)) == look("ORDERS")


def test_a_transactional_table_without_known_mark_is_doubted() -> None:
    """What the catalog holds for Omid's and bears no mark that is known, of another version of Phoenix, is left alone
    and named.
    """
    found = look("ORDERS", OTHER, catalog=parse(CELLS))
    assert (found.kind, found.unmarked, found.workable) == (Kind.UNMARKED, {"0"}, False)
    assert "catalog says" in found.doubt


def test_an_unfinished_index_is_doubted() -> None:
    """An index that is being built is transactional, and left alone until it is built."""
    found = look("S.LATE", INDEXER, catalog=parse(CELLS))
    assert (found.kind, found.workable) == (Kind.TRANSACTIONAL, False)
    assert "S.LATE is being built" in found.doubt


def test_without_the_catalog_phoenixs_tables_without_mark_are_doubted() -> None:
    """Where the catalog cannot be read, only marks prove: tables without one are left alone, Phoenix's own and others'
    are not meant.
    """
    blind = Catalog({}, "permission denied")
    assert "permission denied" in look("ORDERS", OTHER, catalog=blind).doubt
    assert look("ORDERS", INDEXER, catalog=blind).workable
    assert look("SYSTEM.STATS", OTHER, catalog=blind).kind is Kind.PLAIN
    assert look("ORDERS", catalog=blind).kind is Kind.PLAIN


@pytest.mark.parametrize("kind", [Kind.PLAIN, Kind.TRANSACTIONAL])
def test_the_configuration_outranks_the_catalog(kind: Kind) -> None:
    """What the configuration calls plain or transactional is that, whatever the catalog says."""
    found = look("S.LATE", OTHER, catalog=parse(CELLS), configured=kind)
    assert (found.kind, found.workable) == (kind, True)
