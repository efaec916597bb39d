"""Which families hide cells from their readers."""

from __future__ import annotations

import pytest

from lowtide.tables.inventory import Descriptor
from lowtide.tables.settings import ALL_VERSIONS, hiding, losing, shape_of

OPEN = {
    "VERSIONS": str(ALL_VERSIONS),
    "TTL": "2147483647",
    "KEEP_DELETED_CELLS": "FALSE",
    "NEW_VERSION_BEHAVIOR": "false",
}


def look(*asked: str, **families: dict[str, str]) -> list[str]:
    return hiding(Descriptor("t", True, {}, (), families), asked or families)


def test_a_family_that_keeps_everything_hides_nothing() -> None:
    """All versions, for ever, without special rules for deletions; HBase's defaults say so but for the versions."""
    assert look(f=OPEN) == look(f={"VERSIONS": str(ALL_VERSIONS)}) == look(f={**OPEN, "TTL": "FOREVER"}) == []


@pytest.mark.parametrize(
    ("changed", "told", "mended"),
    [
        ({"VERSIONS": "1"}, "VERSIONS => 1", "VERSIONS => 2147483647"),
        ({"VERSIONS": "2147483646"}, "VERSIONS => 2147483646", "VERSIONS => 2147483647"),
        ({"TTL": "86400"}, "TTL => 86400", "TTL => 'FOREVER'"),
        ({"KEEP_DELETED_CELLS": "TTL"}, "KEEP_DELETED_CELLS => TTL", "KEEP_DELETED_CELLS => 'FALSE'"),
        ({"NEW_VERSION_BEHAVIOR": "true"}, "NEW_VERSION_BEHAVIOR => true", "NEW_VERSION_BEHAVIOR => 'false'"),
        ({"VERSIONS": "3", "TTL": "60"}, "VERSIONS => 3, TTL => 60", "VERSIONS => 2147483647, TTL => 'FOREVER'"),
    ],
)
def test_a_setting_that_hides_is_named_with_what_mends_it(changed: dict[str, str], told: str, mended: str) -> None:
    """Family, settings, and the statement for HBase's shell."""
    [found] = look(f={**OPEN, **changed})
    assert f"family f has {told}," in found
    assert f"alter 't', {{NAME => 'f', {mended}}}" in found


def test_a_family_of_one_version_by_default() -> None:
    """A descriptor that is silent keeps one version."""
    assert "VERSIONS => 1" in look(f={})[0]


def test_only_the_families_that_are_asked_for() -> None:
    """Plain families beside transactional ones may keep what they like."""
    assert look("f", f=OPEN, g={"VERSIONS": "1"}) == []
    assert [each.split(" has ")[0] for each in look(g={}, f={})] == ["family f", "family g"]


def test_the_shape_is_told_apart_by_each_setting_that_hides_or_loses_cells() -> None:
    """A setting that the descriptor does not name has HBase's default; families that were not asked for do not
    matter.
    """
    plain = {"f": {"VERSIONS": str(ALL_VERSIONS)}, "g": {}}

    def told(change: dict[str, str], **attributes: str) -> str:
        families = {**plain, "f": {**plain["f"], **change}}
        return shape_of(Descriptor("t", True, attributes, (), families), ["f"])

    changes = ({"VERSIONS": "3"}, {"TTL": "60"}, {"KEEP_DELETED_CELLS": "TRUE"}, {"NEW_VERSION_BEHAVIOR": "true"})
    shapes = [told({}), *(told(change) for change in changes), told({}, DURABILITY="SKIP_WAL")]
    assert len(set(shapes)) == len(shapes)
    assert told({"TTL": "FOREVER"}) == told({"BLOOMFILTER": "NONE"}) == told({})


@pytest.mark.parametrize("durability", ["ASYNC_WAL", "SKIP_WAL", "skip_wal"])
def test_a_durability_that_loses_what_was_acknowledged_is_named_with_both_ways_out(durability: str) -> None:
    """The statement that mends it, and the word that accepts it."""
    told = losing(Descriptor("ns:t", True, {"DURABILITY": durability}, (), {"f": OPEN}))
    for word in (
        f"DURABILITY => {durability.upper()}",
        "alter 'ns:t', DURABILITY => 'SYNC_WAL'",
        "tables: {ns:t: {accept_durability: true}}",
    ):
        assert word in told


@pytest.mark.parametrize("attributes", [{}, *({"DURABILITY": d} for d in ("USE_DEFAULT", "SYNC_WAL", "FSYNC_WAL"))])
def test_a_durability_that_keeps_what_was_acknowledged(attributes: dict[str, str]) -> None:
    """HBase's default writes its log before it answers."""
    assert losing(Descriptor("t", True, attributes, (), {"f": OPEN})) == ""
