"""Another installation of Lowtide on the same HBase."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lowtide.config import State
from lowtide.journal.others import problems
from lowtide.tables.inventory import FAMILY_FLAG, Descriptor

FORMAT, OWN_ROW = b'{"format":4,"since":1}', b'{"horizon":0,"pruned":5}'


class RefusedError(OSError):
    """What the gateway says where this user may not read."""


def look(*descriptors: Descriptor, **held: bytes | Exception) -> list[str]:
    """*held*: the one cell of each table that is asked for."""

    def table(name: str) -> Any:
        def row(key: bytes, columns: list[bytes]) -> dict[bytes, bytes]:
            assert (key, columns) in ((b"format", [b"s:value"]), (b"journal", [b"j:value"]))
            value = held.get(name)
            if isinstance(value, Exception):
                raise value
            return {columns[0]: value} if value else {}

        return SimpleNamespace(row=row)

    return problems(SimpleNamespace(table=table), State(), descriptors)


def of(name: str, *families: str, enabled: bool = True, **attributes: str) -> Descriptor:
    return Descriptor(name, enabled, {}, (), {family: attributes for family in families})


def test_another_ones_tables_are_named_in_one_sentence() -> None:
    """With this one's, and with what to do in either case."""
    [told] = look(of("A", "s"), of("B", "j"), of("C", "f"), A=FORMAT, B=OWN_ROW, C=FORMAT)
    assert "A is the state table of another" in told
    assert "B is the journal of another" in told
    assert "C " not in told
    for word in ("LOWTIDE_STATE", "LOWTIDE_JOURNAL", "state.table", "state.journal_table", "omid.foreign"):
        assert word in told


@pytest.mark.parametrize(
    "held",
    [b"", b"no JSON", b"4", b'{"form":1}', RefusedError()],
    ids=["no row", "no JSON", "a number", "other JSON", "may not be read"],
)
def test_a_table_that_only_has_such_a_family_is_nobodys_but_its_owners(held: bytes | Exception) -> None:
    """Many are called ``s``; one that this user may not read is taken for one of them."""
    assert look(of("A", "s"), of("B", "j"), A=held, B=held) == []


def test_tables_that_cannot_be_lowtides_are_not_read() -> None:
    """Those with more families, with Omid's mark, or disabled."""
    assert look(of("A", "s", "t"), of("B", "j", enabled=False), A=FORMAT, B=OWN_ROW) == []
    assert look(of("A", "s", **{FAMILY_FLAG: "true"}), A=FORMAT) == []
