"""Which tables are transactional."""

from __future__ import annotations

import pytest

from lowtide.tables.inventory import (
    FAMILY_FLAG,
    OMID_COPROCESSORS,
    PHOENIX_COPROCESSORS,
    UNMARKED_SINCE,
    Descriptor,
    Entry,
    Kind,
    came_after,
    checks_age,
    classify,
    contradiction,
    doubt_lost_marks,
    doubt_older_cells,
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
    """In a flagged table, shadow cells in another family are kept apart; those in flagged families are as they should
    be.
    """
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
    """No sample can be taken of a disabled table: without mark and without a word in the configuration it must hold the
    bound.
    """
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
    """A table whose mark is gone was transactional when it was listed last; one that had shadow cells only, or none,
    may be called plain.
    """
    assert "recorded as transactional" in contradiction(table(), "tables.t.kind", Kind.TRANSACTIONAL)
    assert contradiction(table(), "tables.t.kind", Kind.UNMARKED) == ""
    assert contradiction(table(), "tables.t.kind", Kind.PLAIN) == ""


def test_a_table_whose_mark_is_gone_is_doubted_until_something_is_said() -> None:
    """Both ways out are told; what is recorded of it next changes nothing; a word of the configuration and the mark
    itself end it.
    """
    before = look(table(f=FLAG, g=FLAG))
    bare = table(f={}, g={})
    found = doubt_lost_marks(look(bare), bare, before)
    assert (found.kind, found.unmarked, found.workable) == (Kind.UNMARKED, {"f", "g"}, False)
    for word in (
        "recorded as transactional",
        "{NAME => 'g', METADATA => {'OMID_ENABLED' => 'true'}}",
        "kind: transactional",
        "kind: plain",
    ):
        assert word in found.doubt
    assert doubt_lost_marks(look(bare), bare, found) == found, "another collection has seen it so"
    for kind in (Kind.PLAIN, Kind.TRANSACTIONAL):
        said = look(bare, configured=kind)
        assert doubt_lost_marks(said, bare, found) is said
    marked = table(f=FLAG, g=FLAG)
    assert doubt_lost_marks(look(marked), marked, found).doubt == ""
    assert contradiction(bare, "tables.t.kind", found.kind) == "", "it may be called plain then"


def test_a_family_whose_mark_is_gone_beside_another_is_doubted() -> None:
    """The table stays transactional, and is left alone; plain is no way out where another family bears the mark."""
    half = table(f=FLAG, g={})
    found = doubt_lost_marks(look(half), half, look(table(f=FLAG, g=FLAG)))
    assert (found.kind, found.families, found.unmarked) == (Kind.TRANSACTIONAL, {"f"}, {"g"})
    assert UNMARKED_SINCE in found.doubt
    assert "families g" in found.doubt
    assert "kind: plain" not in found.doubt
    assert not found.workable


def test_what_was_never_recorded_as_transactional_is_not_doubted() -> None:
    """A new table, one that was plain, a family that was dropped, and one of which shadow cells alone told."""
    bare, half = table(f={}), table(f=FLAG)
    assert doubt_lost_marks(look(bare), bare, None).doubt == ""
    assert doubt_lost_marks(look(bare), bare, look(bare)).doubt == ""
    assert doubt_lost_marks(look(half), half, look(table(f=FLAG, g=FLAG))).doubt == ""
    assert doubt_lost_marks(look(bare), bare, look(bare, "f")).doubt == ""


def test_doubts_add_up() -> None:
    """A table is left alone for all of its reasons; none is no reason."""
    entry = look(table(f=FLAG))
    assert entry.doubted("") is entry
    assert entry.doubted("one").doubted("two").doubt == "one; two"


def test_what_is_older_than_the_table_came_from_elsewhere() -> None:
    """Doubted, with the command, at every collection until somebody confirms it; the limit stays the one of when it was
    not there.
    """
    new = look(table(f=FLAG))
    after = came_after(new, None, 1000, confirmed=False)
    found = doubt_older_cells(new, after, older=True)
    assert (after, found.workable, found.came_after) == (1000, False, 1000)
    for word in ("it came from elsewhere", "at or below 1000", "lowtide confirm t", "omid.foreign"):
        assert word in found.doubt
    assert came_after(new, found, 2000, confirmed=False) == 1000, "later collections have seen it"
    confirmed = doubt_older_cells(new, came_after(new, found, 2000, confirmed=True), older=True)
    assert confirmed == new
    assert came_after(new, confirmed, 2000, confirmed=False) == 0, "it was asked once"


def test_a_table_made_between_two_runs_raises_no_doubt() -> None:
    """Nor does any where no collection was recorded, or one of before low watermarks were; nor one that was listed,
    whatever it was then.
    """
    new = look(table(f=FLAG))
    assert doubt_older_cells(new, came_after(new, None, 1000, confirmed=False), older=False) == new
    assert came_after(new, None, 0, confirmed=False) == 0
    for before in (new, look(table(f={})), look(table(f={}), "f")):
        assert came_after(new, before, 1000, confirmed=False) == 0
    for said in (look(table(f={}), configured=Kind.TRANSACTIONAL), look(table(f={}))):
        assert came_after(said, None, 1000, confirmed=False) == 0


def test_a_newcomer_that_cannot_be_looked_at_is_looked_at_later() -> None:
    """Disabled, or without a mark: whoever enables or marks it is asked then."""
    for hidden in (look(table(f=FLAG, enabled=False)), look(table(f={}), "f")):
        assert not checks_age(hidden)
        kept = doubt_older_cells(hidden, came_after(hidden, None, 1000, confirmed=False), older=False)
        assert (kept.doubt, kept.came_after) == ("", 1000)
        now = look(table(f=FLAG))
        assert doubt_older_cells(now, came_after(now, kept, 2000, confirmed=False), older=True).doubt
