"""Which families hide cells from their readers."""

from __future__ import annotations

import pytest

from lowtide.tables.inventory import Change, Descriptor, Entry, Kind
from lowtide.tables.settings import ALL_VERSIONS, change_of, doubt_unopened, hiding, losing, losing_entries, shape_of
from lowtide.values.skew import MARGIN

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


def test_a_commit_table_that_loses_what_was_acknowledged_is_named_with_the_way_out() -> None:
    """Of others nothing is said there, nor of one that HBase's default keeps."""
    tables = [Descriptor(name, True, {"DURABILITY": "async_wal"}, (), {"F": {}}) for name in ("COMMITS", "orders")]
    fact, remedy = losing_entries(tables, "COMMITS")
    assert "the commit table COMMITS has DURABILITY => ASYNC_WAL" in fact
    assert "alter 'COMMITS', DURABILITY => 'SYNC_WAL'" in remedy
    assert losing_entries([Descriptor("COMMITS", True, {}, (), {"F": {}}), tables[1]], "COMMITS") == ("", "")


# -- settings that servers may not go by yet

ONE = "f: VERSIONS=1 TTL=FOREVER; DURABILITY=SYNC_WAL"
ALL = "f: VERSIONS=9 TTL=FOREVER; DURABILITY=SYNC_WAL"
SEEN, AGAIN = 1_000_000_000_000, 1_100_000_000_000


def seen(settings: str, change: Change | None = None) -> Entry:
    """A table as a collection recorded it."""
    return Entry("ns:t", Kind.TRANSACTIONAL, True, settings=settings, change=change)


def test_a_change_is_told_with_the_time_when_the_table_was_without_it() -> None:
    """What is as it was is no change; a table of which nothing was recorded, as by a Lowtide that did not keep
    settings, is taken at the master's word.
    """
    assert change_of(ALL, seen(ONE), SEEN) == Change(SEEN, "VERSIONS of family f 1 -> 9")
    assert change_of(ONE.replace("SYNC", "SKIP"), seen(ONE), SEEN) == Change(SEEN, "DURABILITY SYNC_WAL -> SKIP_WAL")
    assert [change_of(ALL, before, SEEN) for before in (seen(ALL), seen(""), None)] == [None] * 3


def test_a_setting_that_one_of_two_shapes_lacks_is_no_change() -> None:
    """A family that came has its regions opened for it; a later Lowtide may compare more."""
    for settings in (
        f"g: VERSIONS=1; {ALL}",
        ALL.replace("TTL=FOREVER", "TTL=FOREVER NEW=TRUE"),
        "DURABILITY=SYNC_WAL",
    ):
        assert change_of(settings, seen(ALL), SEEN) is None


def test_a_change_is_kept_until_every_region_was_opened_after_it() -> None:
    """A collection that has seen the new settings does not end it, nor does an alter back: regions that were opened in
    between go by what was then.
    """
    change = change_of(ALL, seen(ONE), SEEN)
    assert change is not None
    doubted = doubt_unopened(seen(ALL), change, {"r1": SEEN + 1, "r2": SEEN - 86_400_000, "r3": 0})
    assert doubted.change == change
    for word in (
        "VERSIONS of family f 1 -> 9",
        "2001-09-09 01:46 UTC",
        "2 of its 3 regions, such as r2,",
        "alter_status 'ns:t'",
        "disable 'ns:t', then enable 'ns:t'",
    ):
        assert word in doubted.doubt
    assert change_of(ALL, doubted, AGAIN) == change
    assert change_of(ONE, doubted, AGAIN) == Change(AGAIN, "VERSIONS of family f 9 -> 1")
    settled = doubt_unopened(seen(ALL), change, {"r1": SEEN + 1, "r2": SEEN + 2})
    assert (settled.doubt, settled.change) == ("", None)


def test_a_region_that_the_alter_opened_counts_though_clocks_are_apart() -> None:
    """By up to the margin: the one is the master's, the other that of the state table's region server."""
    margin = int(MARGIN.total_seconds() * 1000)
    change = Change(SEEN, "")
    assert doubt_unopened(seen(ALL), change, {"r": SEEN - margin + 1}).workable
    assert not doubt_unopened(seen(ALL), change, {"r": SEEN - margin}).workable


def test_a_table_of_whose_regions_nothing_is_told_stays_in_doubt() -> None:
    """That none is late is then no sign that each was opened."""
    assert "its regions, as far as is known, were not" in doubt_unopened(seen(ALL), Change(SEEN, ""), {}).doubt
