"""Whose tables are whose."""

from __future__ import annotations

from lowtide.config import Omid
from lowtide.run.oracles import problems
from lowtide.tables.inventory import FAMILY_FLAG, Descriptor, Kind, classify

FLAG = {FAMILY_FLAG: "true"}


def store(*plain: str, marked: tuple[str, ...] = (), commits: tuple[str, ...] = ()) -> list[Descriptor]:
    """Tables beside the configured commit table."""
    return [
        *(Descriptor(name, True, {}, (), {"f": {}}) for name in plain),
        *(Descriptor(name, True, {}, (), {"f": FLAG, "g": {}}) for name in marked),
        *(Descriptor(name, True, {}, (), {"F": {}, "LWF": {}}) for name in commits),
    ]


def look(tables: list[Descriptor], *ours: str, foreign: tuple[str, ...] = (), **families: str) -> list[str]:
    omid = Omid(tables=list(ours), foreign=list(foreign), **families)
    return problems(omid, tables, [classify(d, None, frozenset()) for d in tables if not omid.is_foreign(d.table)])


def test_one_oracle_needs_no_word() -> None:
    """Without another commit table nothing is asked, whatever ``omid.tables`` names."""
    assert look(store("p", marked=("t",))) == look(store("p", marked=("t",)), "others") == []
    half = [Descriptor("half", True, {}, (), {"F": {}}), Descriptor("other half", True, {}, (), {"LWF": {}})]
    assert look(half) == []


def test_another_commit_table_is_named() -> None:
    """It has the two families that the configuration has, and is told with the configured one; so is every table that
    must be named.
    """
    unnamed, undecided = look(store("p", marked=("mine", "theirs"), commits=("OTHER",)))
    for word in ("OMID_COMMIT_TABLE", "OTHER", "omid.foreign", "omid.tables", "F and LWF"):
        assert word in unnamed
    assert "mine, theirs" in undecided
    assert "p," not in undecided
    assert look(store(marked=("t",), commits=("OTHER",)), commit_family="C", watermark_family="W") == []
    other = [Descriptor("OTHER", True, {}, (), {"C": {}, "W": {}, "more": {}})]
    assert "OTHER" in look(other, commit_family="C", watermark_family="W")[0]


def test_every_table_must_be_named_beside_another_oracle() -> None:
    """The commit table alone does not tell whose the marked tables are; names and patterns do. Tables of unknown
    standing count, plain ones do not.
    """
    tables = store("p", marked=("mine", "b.one", "b.two"), commits=("b.commits",))
    [undecided] = look(tables, foreign=("b.commits",))
    assert "b.one, b.two, mine" in undecided
    [undecided] = look(tables, "mine", foreign=("b.commits", "b.one"))
    assert undecided.count("b.two") == 1
    assert look(tables, "mine", foreign=("b.*",)) == look(tables, "m*", foreign=("b.commits", "b.one", "b.two")) == []
    disabled = [*tables, Descriptor("off", False, {}, (), {"f": {}})]
    assert classify(disabled[-1], None, frozenset()).kind is Kind.UNMARKED
    assert "off" in look(disabled, "mine", foreign=("b.*",))[0]


def test_a_table_is_one_oracles() -> None:
    """One that both lists name is refused, and a marked one that is called foreign where there is no other commit
    table.
    """
    tables = store(marked=("mine", "b.one"), commits=("b.commits",))
    assert "b.commits, b.one" in look(tables, "*", foreign=("b.*",))[0]
    [alone] = look(store("b.plain", marked=("b.one",)), foreign=("b.*",))
    assert "omid.foreign names b.one," in alone
    assert look(store("b.plain", marked=("mine",)), foreign=("b.*",)) == []


def test_a_long_list_is_cut() -> None:
    """A message names some tables, and says how many more there are."""
    many = tuple(f"t{i:03}" for i in range(500))
    assert "t019 and 480 more" in look(store(marked=many, commits=("OTHER",)), foreign=("OTHER",))[0]
