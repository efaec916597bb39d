"""Many tables at once: what is asked of HBase for all of them in one call is what it says of each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import Outcome
from lowtide_spark.cleaning import suspects
from lowtide_spark.frames.inventory import _with_cells_up_to
from lowtide_spark.frames.store import Store, TableRead
from scene import Scene

from lowtide.errors import StoreError
from lowtide.lab.workload import OmidClient

Job = Callable[..., Outcome]

#: From so many on the connector reads where their regions are in one go (Tables.MANY).
MANY = 20


@pytest.fixture
def many(scene: Scene) -> list[str]:
    """So many tables, be one of them gone, and one beside them that nobody means."""
    tables = [scene.table() for _ in range(MANY + 1)]
    scene.table()
    return tables


def test_the_regions_of_many_tables_are_those_of_each(
    many: list[str], connector: Store, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their keys, sizes and lives, and their order; also of one that was split, whose parent hbase:meta still has, of
    one that is disabled, and of one that comes after all others by its name. One that is not there is named, alone: no
    other is asked for by itself.
    """
    split, disabled, gone = many[1], many[2], many[3]
    for row in (b"b", b"x"):
        omid.put(split, row, b"a", b"q", 50, b"v")
    omid.flush(split)
    omid.split(split, b"m")
    omid.disable(disabled)
    omid.drop(gone)
    asked: list[str] = []
    regions = Store.regions
    monkeypatch.setattr(Store, "regions", lambda self, table: (asked.append(table), regions(self, table))[1])
    listed = connector.regions_of(many)
    there = [table for table in many if table != gone]
    together = {table: listed(table) for table in there}
    assert asked == []
    assert together == {table: connector.regions(table) for table in there}
    assert [region.keys.start for region in listed(split)] == [b"", b"m"]
    with pytest.raises(StoreError, match=f"unknown table {gone}"):
        listed(gone)


def test_where_the_regions_of_many_are_is_what_a_read_goes_by(
    many: list[str], connector: Store, omid: OmidClient
) -> None:
    """Cells of all of them are read; where one is disabled none is, and it is named."""
    for number, table in enumerate(many):
        omid.put(table, b"r%d" % number, b"a", b"q", 50, b"v")
    reads = [TableRead(table, ["a"]) for table in many]
    found = [row for versions in connector.versions_of(reads) for row in versions.where("row is not null").collect()]
    assert sorted((row.table, bytes(row.row)) for row in found if row.qualifier is not None) == sorted(
        (table, b"r%d" % number) for number, table in enumerate(many)
    )
    omid.disable(many[7])
    with pytest.raises(Exception, match=f"Table {many[7]} is disabled"):
        [versions.collect() for versions in connector.versions_of(reads)]


def test_of_many_that_are_read_at_once_one_that_fails_is_found(
    many: list[str], job: Job, scene: Scene, omid: OmidClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and the others are cleaned: half of them are read, and of the other half half of it, down to it."""
    orphans = {table: scene.orphan(table) for table in (many[0], many[-1])}
    omid.advance_watermark()
    asked, reads = suspects._asked, []

    def refused(run: object, group: list[suspects.CleanupWork]) -> object:
        reads.append(len(group))
        if many[5] in [work.table for work in group]:
            msg = f"{many[5]} cannot be read"
            raise StoreError(msg)
        return asked(run, group)  # type: ignore[arg-type]

    monkeypatch.setattr(suspects, "_asked", refused)
    outcome = job("orphan_cleanup", *(word for table in many for word in ("--table", table)), "--execute")
    assert outcome.code == 1
    assert outcome.problems == f"{many[5]} cannot be read"
    assert outcome.totals["deleted"] == 2
    assert not any(scene.has(table, start) for table, start in orphans.items())
    assert len(reads) < MANY / 2


def test_of_many_those_are_found_that_hold_older_cells(many: list[str], connector: Store, omid: OmidClient) -> None:
    """Each by its own limit, inclusive; a delete marker counts, what is older than any oracle's timestamps does not.
    One that is gone is named.
    """
    early, limit, late = omid.begin(), omid.begin(), omid.begin()
    for number, at in enumerate((early, limit, late, late, 1)):
        omid.put(many[number], b"r", b"a", b"q", at, b"v")
    omid.delete_version(many[5], b"r", b"a", b"q", early)
    limits = dict.fromkeys(many, limit) | {many[3]: late}
    assert _with_cells_up_to(connector, limits) == {many[number] for number in (0, 1, 3, 5)}
    omid.drop(many[7])
    with pytest.raises(StoreError, match=many[7]):
        _with_cells_up_to(connector, limits)
