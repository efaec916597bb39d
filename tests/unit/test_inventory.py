"""Which tables are transactional."""

from __future__ import annotations

import pytest

from lowtide.inventory import (
    FAMILY_FLAG,
    OMID_COPROCESSORS,
    PHOENIX_COPROCESSORS,
    Descriptor,
    Entry,
    Kind,
    classify,
    contradiction,
)

FLAG = {FAMILY_FLAG: "true"}
OMID = "org.apache.omid.transaction.OmidCompactor"
PHOENIX = "org.apache.phoenix.coprocessor.OmidTransactionalProcessor"


def table(*coprocessors: str, enabled: bool = True, **families: dict[str, str]) -> Descriptor:
    return Descriptor("t", enabled, {}, coprocessors, families or {"f": {}, "g": {}})


def look(descriptor: Descriptor, *shadowed: str, configured: Kind | None = None) -> Entry:
    return classify(descriptor, configured, frozenset(shadowed))


def test_table_without_mark_and_shadow_cells_is_plain() -> None:
    """An enabled table with neither mark nor shadow cells in its sample is plain."""
    assert look(table()) == Entry("t", Kind.PLAIN, True)


def test_flagged_families_alone_are_transactional() -> None:
    """The family flag, whatever its case, marks that family and no other, also beside Omid's coprocessor."""
    for descriptor in (
        table(f=FLAG, g={}),
        table(f={FAMILY_FLAG: "TRUE"}, g={FAMILY_FLAG: "false"}),
        table(OMID, f=FLAG, g={}),
    ):
        entry = look(descriptor)
        assert (entry.kind, entry.families, entry.mark) == (Kind.TRANSACTIONAL, {"f"}, FAMILY_FLAG)


@pytest.mark.parametrize("name", [*OMID_COPROCESSORS, *PHOENIX_COPROCESSORS])
def test_coprocessors_mark_every_family(name: str) -> None:
    """Each coprocessor of Omid or Phoenix alone marks all families, and is named as the mark."""
    entry = look(table("org.example.Other", name))
    assert (entry.kind, entry.families, entry.mark) == (Kind.TRANSACTIONAL, {"f", "g"}, name)


def test_omids_compactor_is_told_of() -> None:
    """Where Omid's own compactor runs, compactions are not Lowtide's to ask for."""
    assert look(table("other", OMID)).compactor
    assert look(table(OMID), configured=Kind.TRANSACTIONAL).compactor
    assert not look(table("other", PHOENIX)).compactor


def test_phoenix_outranks_the_flag() -> None:
    """Phoenix's compactor takes every family, whatever the flags say."""
    assert look(table(PHOENIX, f=FLAG, g={})).families == {"f", "g"}


def test_view_index_table_is_transactional() -> None:
    """The physical table of view indexes, which bears only Phoenix's indexer, is found."""
    assert look(table("org.apache.phoenix.index.PhoenixTransactionalIndexer")).kind is Kind.TRANSACTIONAL


def test_shadow_cells_without_mark_are_unmarked() -> None:
    """Shadow cells in a table without mark: neither plain nor transactional, until the configuration says."""
    entry = look(table(), "f")
    assert (entry.kind, entry.families, entry.unmarked) == (Kind.UNMARKED, frozenset(), {"f"})


def test_shadow_cells_beside_flagged_families_are_named() -> None:
    """In a flagged table, shadow cells in another family are kept apart; those in flagged families are as they should be."""
    entry = look(table(f=FLAG, g={}), "f", "g")
    assert (entry.kind, entry.families, entry.unmarked) == (Kind.TRANSACTIONAL, {"f"}, {"g"})


def test_configuration_outranks_marks_and_sample() -> None:
    """``transactional`` takes every family, ``plain`` none, whatever is seen."""
    said = look(table(f=FLAG, g={}), "g", configured=Kind.TRANSACTIONAL)
    assert (said.kind, said.families, said.unmarked, said.mark) == (
        Kind.TRANSACTIONAL,
        {"f", "g"},
        frozenset(),
        FAMILY_FLAG,
    )
    assert look(table(), configured=Kind.TRANSACTIONAL).mark == "configuration"
    plain = look(table(PHOENIX), "f", configured=Kind.PLAIN)
    assert (plain.kind, plain.families, plain.unmarked) == (Kind.PLAIN, frozenset(), frozenset())


def test_disabled_tables_keep_their_marks() -> None:
    """A disabled table is what its marks say, and known to be disabled."""
    entry = look(table(PHOENIX, enabled=False))
    assert (entry.kind, entry.enabled) == (Kind.TRANSACTIONAL, False)


def test_disabled_table_without_mark_is_not_taken_for_plain() -> None:
    """No sample can be taken of a disabled table: without mark and without a word in the configuration it must hold the bound."""
    assert look(table(enabled=False)).kind is not Kind.PLAIN
    assert look(table(enabled=False), configured=Kind.PLAIN).kind is Kind.PLAIN


def test_plain_is_contradicted_by_every_mark() -> None:
    """Both sides are named, and what takes the mark off; a table without mark may be plain."""
    flagged = contradiction(table(f=FLAG, g=FLAG, h={}), "tables.t.kind", None)
    for word in ("tables.t.kind is plain", "table t", "OMID_ENABLED is true of f, g", "{NAME => 'g', METADATA"):
        assert word in flagged
    for name in (*OMID_COPROCESSORS, *PHOENIX_COPROCESSORS):
        told = contradiction(table("org.example.Other", name, enabled=False), "defaults.kind", Kind.PLAIN)
        assert name in told
        assert "defaults.kind is plain" in told
    assert contradiction(table("org.example.Other"), "tables.t.kind", None) == ""


def test_plain_is_contradicted_by_what_was_recorded() -> None:
    """A table whose mark is gone was transactional when it was listed last; one that had shadow cells only, or none, may be called plain."""
    assert "recorded as transactional" in contradiction(table(), "tables.t.kind", Kind.TRANSACTIONAL)
    assert contradiction(table(), "tables.t.kind", Kind.UNMARKED) == ""
    assert contradiction(table(), "tables.t.kind", Kind.PLAIN) == ""
